"""Rename, reorder and reshape the axes of linear layouts; concatenate layouts.

Reshaping keeps the map of flat (packed) points; transposing reorders the axes and keeps the map by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest

from layoutalg.f2.axes import (
    AxisBits,
    argument_check,
    as_names,
    axes_of,
    bad_argument,
    gather,
    place,
    selected,
    width,
)
from layoutalg.f2.layout import LinearLayout, trusted
from layoutalg.f2.steps import columns_of, linear, mapped
from layoutalg.ground.check import refuse

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

    Raises: MalformedError: LA200, LA241. AdmissibilityError: LA249.

    Example:
        >>> str(reshape_ins(LinearLayout.from_bases({"i": [(1,), (2,)]}, {"o": 4}), {"lane": 2, "warp": 2}))
        'F2[lane=(1), warp=(2) -> o:4]'
    """
    return _with_ins(layout, lambda axes: _cut(layout, axes, dims, "input"))


def reshape_outs(layout: LinearLayout, dims: Dims) -> LinearLayout:
    """Reshape the flat output into the axes ``dims``. See ``reshape_ins``.

    Example:
        >>> str(reshape_outs(LinearLayout.from_bases({"i": [(1,), (2,)]}, {"o": 4}), {"row": 2, "col": 2}))
        'F2[i=(1,0)(0,1) -> row:2, col:2]'
    """
    return _with_outs(layout, lambda axes: _cut(layout, axes, dims, "output"))


def _cut(layout: LinearLayout, old: AxisBits, dims: Dims, side: str) -> AxisBits:
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
    return _with_ins(layout, lambda axes: _joined(axes, name))


def flatten_outs(layout: LinearLayout, name: str | None = None) -> LinearLayout:
    """Flatten all output axes into one, by default named after the first. See ``flatten_ins``.

    Example:
        >>> str(flatten_outs(LinearLayout.identity({"row": 2, "col": 2}), "offset"))
        'F2[row=(1), col=(2) -> offset:4]'
    """
    return _with_outs(layout, lambda axes: _joined(axes, name))


def _joined(axes: AxisBits, name: str | None) -> AxisBits:
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
    order = _permuted(linear(layout, "layout").in_axes, names)
    columns = tuple(column for name, _ in order for column in columns_of(layout, name, "names"))
    return trusted(order, layout.out_axes, columns, layout.constant)


def transpose_outs(layout: LinearLayout, names: Sequence[str]) -> LinearLayout:
    """Reorder the output axes. See ``transpose_ins``.

    Example:
        >>> str(transpose_outs(LinearLayout.from_bases({"i": [(1, 0)]}, {"row": 2, "col": 4}), ("col", "row")))
        'F2[i=(0,1) -> col:4, row:2]'
    """
    order = _permuted(linear(layout, "layout").out_axes, names)
    places = [place(layout.out_axes, name, "names") for name, _ in order]
    return mapped(layout, order, lambda value: gather(value, places))


def _permuted(axes: AxisBits, names: Sequence[str]) -> AxisBits:
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
    return _with_ins(layout, lambda axes: _renamed(axes, names))


def rename_outs(layout: LinearLayout, names: Mapping[str, str]) -> LinearLayout:
    """Rename output axes (old name -> new name). See ``rename_ins``.

    Example:
        >>> str(rename_outs(LinearLayout.from_bases({"a": [(1,)]}, {"o": 2}), {"o": "bank"}))
        'F2[a=(1) -> bank:2]'
    """
    return _with_outs(layout, lambda axes: _renamed(axes, names))


def _renamed(axes: AxisBits, names: Mapping[str, str]) -> AxisBits:
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

    Raises: MalformedError: LA241. AdmissibilityError: LA250.

    Example:
        >>> str(squeeze_ins(LinearLayout.from_bases({"a": [(1,)], "b": []}, {"o": 2})))
        'F2[a=(1) -> o:2]'
    """
    return _with_ins(layout, lambda axes: _squeezed(layout, axes, names))


def squeeze_outs(layout: LinearLayout, names: Iterable[str] | None = None) -> LinearLayout:
    """Drop output axes of size 1: those named, or all of them. See ``squeeze_ins``.

    Example:
        >>> str(squeeze_outs(LinearLayout.from_bases({"a": [(1, 0)]}, {"o": 2, "p": 1}), "p"))
        'F2[a=(1) -> o:2]'
    """
    return _with_outs(layout, lambda axes: _squeezed(layout, axes, names))


def _squeezed(layout: LinearLayout, axes: AxisBits, names: Iterable[str] | None) -> AxisBits:
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

    Raises: AdmissibilityError: LA251.

    Example:
        >>> lane, warp = (LinearLayout.from_bases({n: [(v,)]}, {"o": 4}) for n, v in (("lane", 1), ("warp", 2)))
        >>> str(concat_ins(lane, warp))
        'F2[lane=(1), warp=(2) -> o:4]'
    """
    _joinable(left, right, "output", "input")
    inputs = left.in_axes + right.in_axes
    return trusted(inputs, left.out_axes, left.columns + right.columns, left.constant ^ right.constant)


def concat_outs(left: LinearLayout, right: LinearLayout) -> LinearLayout:
    """Return ``x -> (left(x), right(x))``: same input axes, disjoint output axes.

    Raises: AdmissibilityError: LA251.

    Example:
        >>> row, col = (LinearLayout.from_bases({"i": [(v,)]}, {n: 4}) for n, v in (("row", 1), ("col", 2)))
        >>> str(concat_outs(row, col))
        'F2[i=(1,2) -> row:4, col:4]'
    """
    _joinable(left, right, "input", "output")
    shift = left.out_bits
    columns = tuple(low | high << shift for low, high in zip(left.columns, right.columns, strict=True))
    return trusted(left.in_axes, left.out_axes + right.out_axes, columns, left.constant | right.constant << shift)


def _joinable(left: LinearLayout, right: LinearLayout, same: str, other: str) -> None:
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
