"""Operations that use the affine part: xor offsets, flips, slices and fixed coordinates.

Xor offsets, flips and fixed coordinates always stay affine over F2; a slice ``x -> L(start + x)`` is affine exactly
when L ignores the carries of ``start + x`` that are not affine, which ``layoutalg.f2.carry`` decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from layoutalg.f2 import carry, matrix
from layoutalg.f2.axes import bad_argument, fields_check, log2, packed_point, place, selected, unpack
from layoutalg.f2.layout import LinearLayout, trusted
from layoutalg.f2.steps import linear, recolumned, restricted
from layoutalg.ground.check import refuse


def xor_out(layout: LinearLayout, offset: Mapping[str, int]) -> LinearLayout:
    """Return ``x -> layout(x) xor offset``; output axes absent from ``offset`` are 0.

    Example:
        >>> xor_out(LinearLayout.identity({"row": 4}), {"row": 3}).table().tolist()
        [3, 2, 1, 0]
    """
    linear(layout, "layout")
    constant = layout.constant ^ packed_point(layout.out_axes, offset, "offset")
    return trusted(layout.in_axes, layout.out_axes, layout.columns, constant)


def xor_in(layout: LinearLayout, offset: Mapping[str, int]) -> LinearLayout:
    """Return ``x -> layout(x xor offset)``; input axes absent from ``offset`` are 0.

    Example:
        >>> xor_in(LinearLayout.identity({"row": 4}), {"row": 1}).table().tolist()
        [1, 0, 3, 2]
    """
    linear(layout, "layout")
    constant = layout.constant ^ matrix.apply(layout.columns, packed_point(layout.in_axes, offset, "offset"))
    return trusted(layout.in_axes, layout.out_axes, layout.columns, constant)


def flip_in(layout: LinearLayout, names: Iterable[str]) -> LinearLayout:
    """Reverse the named input axes: ``x -> size - 1 - x`` on each, before the layout.

    Example:
        >>> flip_in(LinearLayout.identity({"row": 4}), "row").table().tolist()
        [3, 2, 1, 0]
    """
    linear(layout, "layout")
    sizes = layout.in_dims
    return xor_in(layout, {name: sizes[name] - 1 for name in selected(layout.in_axes, names, "names")})


def flip_out(layout: LinearLayout, names: Iterable[str]) -> LinearLayout:
    """Reverse the named output axes: ``y -> size - 1 - y`` on each, after the layout.

    Example:
        >>> flip_out(LinearLayout.identity({"row": 2, "col": 2}), "col").at(0)
        2
    """
    linear(layout, "layout")
    sizes = layout.out_dims
    return xor_out(layout, {name: sizes[name] - 1 for name in selected(layout.out_axes, names, "names")})


def slice_in(layout: LinearLayout, name: str, start: int, size: int) -> LinearLayout:
    """Return the layout on the window ``[start, start + size)`` of one input axis: ``x -> layout(start + x)``.

    Mathematically: it exists exactly when ``x -> layout(start + x)`` is affine over F2. It is if no carry of ``start +
    x`` depends on two bits of x, in particular if ``size`` divides ``start``; otherwise the layout must map to 0 each
    bit below ``size`` that receives such a carry, and the sum of the bits above it that receive the carry out of the
    window (*Carries of a window* in ``layoutalg.f2.carry``).

    Args:
        start: First coordinate of the window.
        size: Power of two; the window must be inside the axis.

    Raises: MalformedError: LA200, LA241. AdmissibilityError: LA254.

    Complexity: O(bits) operations on integers.

    Example:
        >>> slice_in(LinearLayout.identity({"row": 8}), "row", 4, 2).table().tolist()
        [4, 5]
        >>> slice_in(LinearLayout.from_bases({"a": [(1,), (0,), (0,)]}, {"o": 2}), "a", 1, 4).table().tolist()
        [1, 0, 1, 0]
    """
    linear(layout, "layout")
    low, bits = place(layout.in_axes, name, "name")
    first = fields_check.integer(start, "start")
    count = log2(size, "size")
    if first < 0 or first + (1 << count) > 1 << bits:
        raise bad_argument("start", f"the window must be inside [0, {1 << bits})", (first, first + (1 << count)))
    four = carry.carry_seen(layout.columns[low : low + bits], first, count)
    if four is not None:
        at = tuple(first + x for x in four)
        values = tuple(unpack(layout.at(coordinate << low), layout.out_axes) for coordinate in at)
        raise refuse(
            "LA254",
            "the layout is not affine over F2 on this window",
            f"{name} - {first} over {name} in {at} xors to 0, the values of the layout there do not",
            {"axis": name, "start": first, "x": four, "coordinates": at, "values": values},
            layout,
        )
    # affine, so determined by the values at 0 and at the powers of two
    part = [matrix.apply(layout.columns, (first ^ first + (1 << bit)) << low) for bit in range(count)]
    return recolumned(xor_in(layout, {name: first}), name, part)


def fix_in(layout: LinearLayout, point: Mapping[str, int]) -> LinearLayout:
    """Fix the input axes in ``point`` at the given values and drop them.

    Example:
        >>> str(fix_in(LinearLayout.identity({"row": 2, "col": 2}), {"col": 1}))
        'F2[row=(1,0) -> row:2, col:2] ^ (0,1)'
    """
    at = packed_point(linear(layout, "layout").in_axes, point, "point")
    moved = trusted(layout.in_axes, layout.out_axes, layout.columns, layout.constant ^ matrix.apply(layout.columns, at))
    return restricted(moved, [name for name, _ in layout.in_axes if name not in point], layout.out_dims)
