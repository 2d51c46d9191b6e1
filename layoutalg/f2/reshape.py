"""Build linear layouts; rename, reorder and reshape their axes; xor offsets, flips, windows and fixed coordinates.

Reshaping keeps the map of flat (packed) points; transposing reorders the axes and keeps the map by name. The direct sum
is associative with unit ``empty()``, not commutative; it is injective (surjective) exactly when both factors are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from itertools import zip_longest
from operator import or_

from layoutalg.f2 import carry, matrix
from layoutalg.f2.axes import (
    F2_AXIS_BITS,
    AxisBits,
    argument_check,
    as_names,
    axes_of,
    bad_argument,
    field,
    fields,
    fields_check,
    flag,
    gather,
    log2,
    packed_point,
    place,
    selected,
    unpack,
    width,
)
from layoutalg.f2.layout import Bases, LinearLayout, columns_of, linear, mapped, recolumned, restricted, trusted
from layoutalg.ground.check import refuse
from layoutalg.ground.errors import MalformedError


def empty() -> LinearLayout:
    """Return the layout without axes, from one point to one point. See ``direct_sum``, whose unit it is."""
    return LinearLayout((), (), ())


def identity_1d(size: int, in_dim: str, out_dim: str) -> LinearLayout:
    """Return ``x -> x`` from one axis to another of the same size, a power of two.

    Example:
        >>> str(identity_1d(4, "lane", "col"))
        'F2[lane=(1)(2) -> col:4]'
    """
    return strided_1d(size, 1, in_dim, out_dim)


def strided_1d(size: int, stride: int, in_dim: str, out_dim: str) -> LinearLayout:
    """Return ``x -> stride * x`` onto an axis of size ``size * stride``, both powers of two.

    Example:
        >>> str(strided_1d(4, 2, "lane", "col"))
        'F2[lane=(2)(4) -> col:8]'
    """
    _check_names(in_dim, out_dim)
    bits, shift = log2(size, "size"), log2(stride, "stride")
    outputs = ((out_dim, width(bits + shift, "stride")),)
    return trusted(((in_dim, bits),), outputs, tuple(1 << bit + shift for bit in range(bits)), 0)


def zeros_1d(size: int, in_dim: str, out_dim: str, out_size: int = 1) -> LinearLayout:
    """Return ``x -> 0`` onto an axis of size ``out_size``; above 1 the layout is not surjective.

    Example:
        >>> str(zeros_1d(4, "warp", "col"))
        'F2[warp=(0)(0) -> col:1]'
    """
    _check_names(in_dim, out_dim)
    bits = log2(size, "size")
    return trusted(((in_dim, bits),), ((out_dim, log2(out_size, "out_size")),), (0,) * bits, 0)


def _check_names(in_dim: object, out_dim: object) -> None:
    fields_check.name(in_dim, "in_dim")
    fields_check.name(out_dim, "out_dim")


def from_bases_minimal(
    bases: Bases | Sequence[tuple[str, Sequence[Sequence[int]]]],
    out_names: Sequence[str],
    offset: Mapping[str, int] | Sequence[int] | None = None,
    *,
    require_surjective: bool = True,
) -> LinearLayout:
    """Return the layout with the given images of the input bits and the smallest output axes that fit.

    Args:
        bases: As for ``LinearLayout.from_bases``.
        offset: As for ``LinearLayout.from_bases``.
        require_surjective: Raise if some output is never reached.

    Example:
        >>> from_bases_minimal({"i": [(1, 0), (0, 2), (0, 1)]}, ("row", "col")).out_dims
        {'row': 2, 'col': 4}
    """
    flag(require_surjective, "require_surjective")
    names = as_names(out_names, "out_names", ordered=True)
    try:
        wide = LinearLayout.from_bases(bases, [(name, 1 << 60) for name in names], offset)
    except MalformedError:  # unusually large, or invalid
        wide = LinearLayout.from_bases(bases, [(name, 1 << F2_AXIS_BITS) for name in names], offset)
    used = reduce(or_, wide.columns, wide.constant)
    places = [(low, field(used, (low, bits)).bit_length()) for _, low, bits in fields(wide.out_axes)]
    outputs = tuple((name, bits) for name, (_, bits) in zip(names, places, strict=True))
    layout = mapped(wide, outputs, lambda value: gather(value, places))
    if require_surjective:
        check_surjective(layout)
    return layout


def check_surjective(layout: LinearLayout) -> None:
    """Raise if some output is never reached."""
    missed = layout.missed()
    if missed is not None:
        because = f"rank {layout.rank} is less than the {layout.out_bits} output bits"
        raise refuse("LA245", "the linear layout is not surjective", because, {"missed": missed}, layout)


def direct_sum(inner: LinearLayout, outer: LinearLayout) -> LinearLayout:
    """Return ``inner * outer``: the inner layout repeated at the positions given by the outer one.

    Mathematically: the inner layout takes the low bits of every shared axis:
    ``(inner * outer)(x + size_in * y) = inner(x) + size_out * outer(y)`` axis by axis, where the sizes are those of the
    axes of ``inner`` (1 for axes it lacks). The order of the axes agrees with both layouts.

    Example:
        >>> str(direct_sum(identity_1d(2, "reg", "col"), identity_1d(4, "reg", "col")))
        'F2[reg=(1)(2)(4) -> col:8]'

    Source: arXiv 2505.23819 (product of layouts), extended to affine parts.
    """
    return linear(inner, "inner") * linear(outer, "outer")


Dims = Mapping[str, int] | Sequence[tuple[str, int]]
Change = Callable[[AxisBits], AxisBits]


def _with_ins(layout: LinearLayout, change: Change) -> LinearLayout:
    """Return the layout with its input bits regrouped into other axes."""
    return trusted(change(linear(layout, "layout").in_axes), layout.out_axes, layout.columns, layout.constant)


def _with_outs(layout: LinearLayout, change: Change) -> LinearLayout:
    """Return the layout with its output bits regrouped into other axes."""
    return trusted(linear(layout, "layout").in_axes, change(layout.out_axes), layout.columns, layout.constant)


def reshape_ins(layout: LinearLayout, dims: Dims) -> LinearLayout:
    """Reshape the flat input into the axes ``dims`` (name -> size, minor to major).

    Example:
        >>> str(reshape_ins(LinearLayout.from_bases({"i": [(1,), (2,)]}, {"o": 4}), {"lane": 2, "warp": 2}))
        'F2[lane=(1), warp=(2) -> o:4]'
    """
    return _with_ins(layout, lambda axes: _regroup(layout, axes, dims, "input"))


def reshape_outs(layout: LinearLayout, dims: Dims) -> LinearLayout:
    """Reshape the flat output into the axes ``dims``. See ``reshape_ins``.

    Example:
        >>> str(reshape_outs(LinearLayout.from_bases({"i": [(1,), (2,)]}, {"o": 4}), {"row": 2, "col": 2}))
        'F2[i=(1,0)(0,1) -> row:2, col:2]'
    """
    return _with_outs(layout, lambda axes: _regroup(layout, axes, dims, "output"))


def _regroup(layout: LinearLayout, old: AxisBits, dims: Dims, side: str) -> AxisBits:
    axes = axes_of(dims, "dims")
    total, bits = (sum(count for _, count in some) for some in (old, axes))
    if bits != total:
        because = f"the {side} axes have {total} bits, the new ones {bits}"
        witness = {"bits": total, "new_bits": bits}
        raise refuse("LA249", "the reshape changes the number of points", because, witness, layout)
    return axes


def flatten_ins(layout: LinearLayout, name: str | None = None) -> LinearLayout:
    """Flatten all input axes into one, by default named after the first.

    Example:
        >>> str(flatten_ins(LinearLayout.identity({"row": 2, "col": 2})))
        'F2[row=(1,0)(0,1) -> row:2, col:2]'
    """
    return _with_ins(layout, lambda axes: _flatten(axes, name))


def flatten_outs(layout: LinearLayout, name: str | None = None) -> LinearLayout:
    """Flatten all output axes into one, by default named after the first. See ``flatten_ins``.

    Example:
        >>> layout = LinearLayout.from_bases({"lane": [(1, 0), (0, 1)]}, {"row": 2, "col": 2})
        >>> flatten_outs(layout, "offset").out_dims
        {'offset': 4}
    """
    return _with_outs(layout, lambda axes: _flatten(axes, name))


def _flatten(axes: AxisBits, name: str | None) -> AxisBits:
    if name is None and not axes:
        raise bad_argument("name", "must be given if the layout has no axes", None)
    joined = argument_check.name(axes[0][0] if name is None else name, "name")
    return ((joined, width(sum(bits for _, bits in axes), "layout")),)


def transpose_ins(layout: LinearLayout, names: Sequence[str]) -> LinearLayout:
    """Reorder the input axes; ``names`` lists each once, minor to major.

    Example:
        >>> str(transpose_ins(LinearLayout.from_bases({"a": [(1,)], "b": [(2,)]}, {"o": 4}), ("b", "a")))
        'F2[b=(2), a=(1) -> o:4]'
    """
    order = _reorder(linear(layout, "layout").in_axes, names)
    columns = tuple(column for name, _ in order for column in columns_of(layout, name, "names"))
    return trusted(order, layout.out_axes, columns, layout.constant)


def transpose_outs(layout: LinearLayout, names: Sequence[str]) -> LinearLayout:
    """Reorder the output axes. See ``transpose_ins``.

    Example:
        >>> str(transpose_outs(LinearLayout.from_bases({"i": [(1, 0)]}, {"row": 2, "col": 4}), ("col", "row")))
        'F2[i=(0,1) -> col:4, row:2]'
    """
    order = _reorder(linear(layout, "layout").out_axes, names)
    places = [place(layout.out_axes, name, "names") for name, _ in order]
    return mapped(layout, order, lambda value: gather(value, places))


def _reorder(axes: AxisBits, names: Sequence[str]) -> AxisBits:
    wanted = as_names(names, "names", ordered=True)
    sizes = dict(axes)
    if len(wanted) != len(axes) or any(name not in sizes for name in wanted):
        raise bad_argument("names", f"must list each of {list(sizes)} once", wanted)
    return tuple((name, sizes[name]) for name in wanted)


def rename_ins(layout: LinearLayout, names: Mapping[str, str]) -> LinearLayout:
    """Rename input axes (old name -> new name).

    Example:
        >>> str(rename_ins(LinearLayout.from_bases({"a": [(1,)]}, {"o": 2}), {"a": "lane"}))
        'F2[lane=(1) -> o:2]'
    """
    return _with_ins(layout, lambda axes: _rename(axes, names))


def rename_outs(layout: LinearLayout, names: Mapping[str, str]) -> LinearLayout:
    """Rename output axes (old name -> new name). See ``rename_ins``."""
    return _with_outs(layout, lambda axes: _rename(axes, names))


def _rename(axes: AxisBits, names: Mapping[str, str]) -> AxisBits:
    if not isinstance(names, Mapping):
        raise bad_argument("names", "must be a mapping from old to new names", names)
    for old in names:
        place(axes, old, "names")
    answer: dict[str, int] = {}
    for name, bits in axes:
        answer[argument_check.name(names.get(name, name), "names", answer)] = bits
    return tuple(answer.items())


def squeeze_ins(layout: LinearLayout, names: Iterable[str] | None = None) -> LinearLayout:
    """Drop input axes of size 1: those named, or all of them.

    Example:
        >>> str(squeeze_ins(LinearLayout.from_bases({"a": [(1,)], "b": []}, {"o": 2})))
        'F2[a=(1) -> o:2]'
    """
    return _with_ins(layout, lambda axes: _squeeze(layout, axes, names))


def squeeze_outs(layout: LinearLayout, names: Iterable[str] | None = None) -> LinearLayout:
    """Drop output axes of size 1: those named, or all of them. See ``squeeze_ins``.

    Example:
        >>> layout = LinearLayout.from_bases({"lane": [(1, 0), (2, 0)]}, {"row": 4, "block": 1})
        >>> squeeze_outs(layout, ["block"]).out_dims
        {'row': 4}
    """
    return _with_outs(layout, lambda axes: _squeeze(layout, axes, names))


def _squeeze(layout: LinearLayout, axes: AxisBits, names: Iterable[str] | None) -> AxisBits:
    if names is None:
        return tuple(axis for axis in axes if axis[1])
    dropped = selected(axes, names, "names")
    for name, bits in axes:
        if name in dropped and bits:
            witness = {"axis": name, "size": 1 << bits}
            because = f"axis {name!r} has size {1 << bits}"
            raise refuse("LA250", "only an axis of size 1 can be dropped", because, witness, layout)
    return tuple(axis for axis in axes if axis[0] not in dropped)


def concat_ins(left: LinearLayout, right: LinearLayout) -> LinearLayout:
    """Return ``(x, y) -> left(x) xor right(y)``: same output axes, disjoint input axes.

    Example:
        >>> lane, warp = (LinearLayout.from_bases({n: [(v,)]}, {"o": 4}) for n, v in (("lane", 1), ("warp", 2)))
        >>> str(concat_ins(lane, warp))
        'F2[lane=(1), warp=(2) -> o:4]'
    """
    _check_joinable(left, right, "output", "input")
    inputs = left.in_axes + right.in_axes
    return trusted(inputs, left.out_axes, left.columns + right.columns, left.constant ^ right.constant)


def concat_outs(left: LinearLayout, right: LinearLayout) -> LinearLayout:
    """Return ``x -> (left(x), right(x))``: same input axes, disjoint output axes.

    Example:
        >>> row, col = (LinearLayout.from_bases({"i": [(v,)]}, {n: 4}) for n, v in (("row", 1), ("col", 2)))
        >>> str(concat_outs(row, col))
        'F2[i=(1,2) -> row:4, col:4]'
    """
    _check_joinable(left, right, "input", "output")
    shift = left.out_bits
    columns = tuple(low | high << shift for low, high in zip(left.columns, right.columns, strict=True))
    return trusted(left.in_axes, left.out_axes + right.out_axes, columns, left.constant | right.constant << shift)


def _check_joinable(left: LinearLayout, right: LinearLayout, same: str, other: str) -> None:
    """Check that two layouts have equal axes on side ``same`` and disjoint names on the other."""
    one, two = (
        {"input": linear(layout, name).in_axes, "output": layout.out_axes}
        for layout, name in ((left, "left"), (right, "right"))
    )
    what = "the linear layouts cannot be concatenated"
    if one[same] != two[same]:
        first = next(a or b for a, b in zip_longest(one[same], two[same]) if a != b)
        sizes = {side: {n: 1 << b for n, b in axes[same]} for side, axes in (("left", one), ("right", two))}
        because = f"their {same} axes differ: {sizes['left']} and {sizes['right']}"
        raise refuse("LA251", what, because, {"axis": first[0], **sizes}, left, right)
    for name, _ in two[other]:
        if name in dict(one[other]):
            raise refuse("LA251", what, f"both have an {other} axis {name!r}", {"axis": name}, left, right)


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
