"""The affine part at work: xor offsets, flips, aligned sub-slices and fixed coordinates.

Main definitions: ``xor_in``, ``xor_out``, ``flip_in``, ``flip_out``, ``slice_in``, ``fix_in``.

Main statements: all of these stay affine over F2, so none of them leaves the family; a slice ``x -> L(start + x)`` is
affine exactly when ``start + x`` is, which ``layoutalg.f2.carry`` decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations

from layoutalg.f2 import carry, matrix
from layoutalg.f2.axes import integer, log2
from layoutalg.f2.checked import bad_argument, linear, packed_point, place, recolumned, refuse, restricted, selected
from layoutalg.f2.layout import LinearLayout, _trusted


def xor_out(layout: LinearLayout, offset: Mapping[str, int]) -> LinearLayout:
    """Return ``x -> layout(x) xor offset``.

    Args:
        layout: Any.
        offset: Value per output axis; absent axes are 0.

    Raises:
        MalformedError: LA241, an unknown axis or a value outside it.

    Example:
        >>> xor_out(LinearLayout.identity({"row": 4}), {"row": 3}).table().tolist()
        [3, 2, 1, 0]
    """
    linear(layout, "layout")
    constant = layout.constant ^ packed_point(layout.outputs, offset, "offset")
    return _trusted(layout.inputs, layout.outputs, layout.columns, constant)


def xor_in(layout: LinearLayout, offset: Mapping[str, int]) -> LinearLayout:
    """Return ``x -> layout(x xor offset)``.

    Args:
        layout: Any.
        offset: Value per input axis; absent axes are 0.

    Raises:
        MalformedError: LA241, an unknown axis or a value outside it.

    Example:
        >>> xor_in(LinearLayout.identity({"row": 4}), {"row": 1}).table().tolist()
        [1, 0, 3, 2]
    """
    linear(layout, "layout")
    constant = layout.constant ^ matrix.apply(layout.columns, packed_point(layout.inputs, offset, "offset"))
    return _trusted(layout.inputs, layout.outputs, layout.columns, constant)


def flip_in(layout: LinearLayout, names: Iterable[str]) -> LinearLayout:
    """Run through the named input axes backwards: ``x -> size - 1 - x`` on each, before the layout.

    Raises:
        MalformedError: LA241, an unknown axis.

    Example:
        >>> flip_in(LinearLayout.identity({"row": 4}), "row").table().tolist()
        [3, 2, 1, 0]
    """
    linear(layout, "layout")
    sizes = layout.in_dims
    return xor_in(layout, {name: sizes[name] - 1 for name in selected(layout.inputs, names, "names")})


def flip_out(layout: LinearLayout, names: Iterable[str]) -> LinearLayout:
    """Mirror the named output axes: ``y -> size - 1 - y`` on each, after the layout.

    Raises:
        MalformedError: LA241, an unknown axis.

    Example:
        >>> flip_out(LinearLayout.identity({"row": 2, "col": 2}), "col").at(0)
        2
    """
    linear(layout, "layout")
    sizes = layout.out_dims
    return xor_out(layout, {name: sizes[name] - 1 for name in selected(layout.outputs, names, "names")})


def slice_in(layout: LinearLayout, name: str, start: int, size: int) -> LinearLayout:
    """Return the layout on the window ``[start, start + size)`` of one input axis: ``x -> layout(start + x)``.

    Mathematically: affine exactly when no carry occurs that depends on two bits of x, in particular wherever ``size``
    divides ``start``.

    Args:
        layout: Any.
        name: The axis.
        start: First coordinate of the window.
        size: Power of two; the window lies inside the axis.

    Raises:
        MalformedError: LA200, LA241, a bad size, an unknown axis or a window outside it.
        AdmissibilityError: LA254, the window is not affine; the witness holds four coordinates that an affine
            map would take to values whose xor is 0.

    Example:
        >>> slice_in(LinearLayout.identity({"row": 8}), "row", 4, 2).table().tolist()
        [4, 5]
    """
    linear(layout, "layout")
    low, bits = place(layout.inputs, name, "name")
    first = integer(start, "start")
    count = log2(size, "size")
    if first < 0 or first + (1 << count) > 1 << bits:
        raise bad_argument("start", f"the window must lie inside [0, {1 << bits})", (first, first + (1 << count)))
    moved = carry.sum_of_bits(first, tuple(1 << bit for bit in range(count)))
    if moved is None:
        # by the lemma some two bits of x show it
        values = next(
            (first, first + low_bit, first + high_bit, first + low_bit + high_bit)
            for low_bit, high_bit in combinations([1 << bit for bit in range(count)], 2)
            if first ^ (first + low_bit) ^ (first + high_bit) ^ (first + low_bit + high_bit)
        )
        raise refuse(
            "LA254",
            "the window is not affine over F2",
            f"{name} = {first} + x crosses a carry: the xor of the coordinates {values} is not 0",
            {"axis": name, "start": first, "x": values[3] - first, "coordinates": values},
            layout,
        )
    part = [matrix.apply(layout.columns, value << low) for value in moved]
    return recolumned(xor_in(layout, {name: first}), name, part)


def fix_in(layout: LinearLayout, point: Mapping[str, int]) -> LinearLayout:
    """Fix some input axes at a value and drop them.

    Args:
        layout: Any.
        point: Value per axis to fix.

    Raises:
        MalformedError: LA241, an unknown axis or a value outside it.

    Example:
        >>> str(fix_in(LinearLayout.identity({"row": 2, "col": 2}), {"col": 1}))
        'F2[row=(1,0) -> row:2, col:2] ^ (0,1)'
    """
    at = packed_point(linear(layout, "layout").inputs, point, "point")
    moved = _trusted(layout.inputs, layout.outputs, layout.columns, layout.constant ^ matrix.apply(layout.columns, at))
    return restricted(moved, [name for name, _ in layout.inputs if name not in point], layout.out_dims)
