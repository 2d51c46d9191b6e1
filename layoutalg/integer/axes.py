"""Exact operations on the axes of integer layouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from layoutalg.integer.layout import IntegerLayout, layout_or_refuse
from layoutalg.integer.layout import check_argument as check
from layoutalg.integer.matrix import Vector


def place_of(layout: IntegerLayout, axis: object, argument: str = "axis") -> int:
    """Return the position of an input axis; raise on an unknown name."""
    names = list(layout_or_refuse(layout).in_dims)
    # checked first: comparing an array with a name gives an array
    if not isinstance(axis, str) or axis not in names:
        raise check.malformed(argument, f"must be one of {names}", axis)
    return names.index(axis)


def _rebuilt(layout: IntegerLayout, place: int, extent: int, scale: int, start: int) -> IntegerLayout:
    """Return the layout with x_place replaced by ``start + scale x`` on a new extent."""
    inputs = [*layout.inputs]
    inputs[place] = (inputs[place][0], extent)
    rows = [tuple(a * scale if k == place else a for k, a in enumerate(row)) for row in layout.matrix]
    offset = [b + row[place] * start for row, b in zip(layout.matrix, layout.offset, strict=True)]
    return IntegerLayout(tuple(inputs), layout.outputs, tuple(rows), tuple(offset))


def flip(layout: IntegerLayout, axis: str) -> IntegerLayout:
    """Return the layout with one axis read backwards: x becomes extent - 1 - x.

    Example:
        >>> flip(IntegerLayout.from_strides({"i": 4}, (2,)), "i").table().tolist()
        [6, 4, 2, 0]
    """
    place = place_of(layout, axis)
    return _rebuilt(layout, place, layout.extents[place], -1, layout.extents[place] - 1)


def slice(layout: IntegerLayout, axis: str, start: int, count: int, step: int = 1) -> IntegerLayout:
    """Return the layout on ``start, start + step, ...``, ``count`` points of one axis.

    Args:
        layout: The layout.
        axis: Name of an input axis.
        start: First point.
        count: Number of points, at least 0.
        step: Distance between points; negative walks backwards, 0 repeats.

    Example:
        >>> slice(IntegerLayout.from_strides({"i": 7}, (2,)), "i", 6, 3, -2).table().tolist()
        [12, 8, 4]
    """
    place = place_of(layout, axis)
    first, points, stride = check.integer(start, "start"), check.integer(count, "count", 0), check.integer(step, "step")
    for argument, point in (("start", first), ("start + (count - 1) * step", first + (points - 1) * stride)):
        if points:
            check.integer(point, argument, 0, layout.extents[place])
    return _rebuilt(layout, place, points, stride, first)


def fix(layout: IntegerLayout, axis: str, point: int) -> IntegerLayout:
    """Return the layout with one axis fixed at a point; the axis disappears.

    Example:
        >>> str(fix(IntegerLayout.from_strides({"i": 4, "j": 3}, (2, 10)), "j", 2))
        'Z[i:4=(2) -> offset] + (20)'
    """
    held = slice(layout, axis, point, 1)
    place = place_of(layout, axis)
    rows = tuple(tuple(a for k, a in enumerate(row) if k != place) for row in held.matrix)
    return IntegerLayout(held.inputs[:place] + held.inputs[place + 1 :], held.outputs, rows, held.offset)


def permute(layout: IntegerLayout, order: Sequence[str]) -> IntegerLayout:
    """Return the layout with its input axes in a new order, fastest first; the map by name is unchanged.

    Example:
        >>> permute(IntegerLayout.from_strides({"i": 2, "j": 3}, (3, 1)), ["j", "i"]).table().tolist()
        [0, 1, 2, 3, 4, 5]
    """
    names = list(layout_or_refuse(layout).in_dims)
    places = [names.index(name) for name in check.names(order, "order", names, whole=True)]
    rows = tuple(tuple(row[k] for k in places) for row in layout.matrix)
    return IntegerLayout(tuple(layout.inputs[k] for k in places), layout.outputs, rows, layout.offset)


def rename(layout: IntegerLayout, names: Mapping[str, str]) -> IntegerLayout:
    """Return the layout with input axes and outputs renamed.

    Example:
        >>> str(rename(IntegerLayout.from_strides({"i": 4}, (2,)), {"i": "lane", "offset": "address"}))
        'Z[lane:4=(2) -> address]'
    """
    known = {*layout_or_refuse(layout).in_dims, *layout.out_dims}
    if not isinstance(names, Mapping) or not set(names) <= known:
        raise check.malformed("names", f"must map names among {sorted(known)}", names)
    return IntegerLayout(
        tuple((names.get(name, name), extent) for name, extent in layout.inputs),
        tuple((names.get(name, name), modulus) for name, modulus in layout.outputs),
        layout.matrix,
        layout.offset,
    )


def resize(layout: IntegerLayout, axis: str, extent: int) -> IntegerLayout:
    """Return the same affine map on a longer (padded) or shorter axis.

    Example:
        >>> resize(IntegerLayout.from_strides({"i": 3}, (2,)), "i", 4).table().tolist()
        [0, 2, 4, 6]
    """
    place = place_of(layout, axis)
    length = check.integer(extent, "extent", 0)
    return _rebuilt(layout, place, length, 1, 0)


def select_outputs(layout: IntegerLayout, outputs: Sequence[str]) -> IntegerLayout:
    """Return the layout with some of its outputs, in the given order.

    Example:
        >>> str(select_outputs(IntegerLayout.identity({"i": 3, "j": 2}), ["j"]))
        'Z[i:3=(0), j:2=(1) -> j]'
    """
    names = list(layout_or_refuse(layout).out_dims)
    places = [names.index(name) for name in check.names(outputs, "outputs", names)]
    return IntegerLayout(
        layout.inputs,
        tuple(layout.outputs[k] for k in places),
        tuple(layout.matrix[k] for k in places),
        tuple(layout.offset[k] for k in places),
    )


def shift(layout: IntegerLayout, amounts: Sequence[int]) -> IntegerLayout:
    """Return the layout with an amount added to each output.

    Example:
        >>> str(shift(IntegerLayout.from_strides({"i": 3}, (2,)), [5]))
        'Z[i:3=(2) -> offset] + (5)'
    """
    by = check.vector(amounts, "amounts", len(layout_or_refuse(layout).outputs))
    offset = tuple(b + a for b, a in zip(layout.offset, by, strict=True))
    return IntegerLayout(layout.inputs, layout.outputs, layout.matrix, offset)


def stack(first: IntegerLayout, second: IntegerLayout) -> IntegerLayout:
    """Return x -> (first(x), second(x)) for layouts on the same box.

    Example:
        >>> L = IntegerLayout.from_strides({"i": 8}, (3,))
        >>> str(stack(L, IntegerLayout.from_strides({"i": 8}, (3,), output="bank", modulus=4)))
        'Z[i:8=(3,3) -> offset, bank%4]'
    """
    if layout_or_refuse(first).inputs != layout_or_refuse(second, "second").inputs:
        raise check.malformed("second", f"must have the input axes {first.inputs}", second.inputs)
    return IntegerLayout(
        first.inputs, first.outputs + second.outputs, first.matrix + second.matrix, first.offset + second.offset
    )


def normal_form(layout: IntegerLayout) -> IntegerLayout:
    """Return the normal form: strides of axes of extent 0 or 1 become 0, and so does an empty layout.

    Two layouts with the same axes and outputs are the same function exactly when their normal forms are equal: the
    values at the origin and the unit points determine every stride of an axis of extent 2 or more.

    Example:
        >>> normal_form(IntegerLayout.from_strides({"i": 1, "j": 2}, (7, 3))).matrix
        ((0, 3),)
    """
    empty = not layout_or_refuse(layout).size
    rows = tuple(
        tuple(0 if empty or extent < 2 else a for a, extent in zip(row, layout.extents, strict=True))
        for row in layout.matrix
    )
    return IntegerLayout(layout.inputs, layout.outputs, rows, (0,) * len(rows) if empty else layout.offset)


def same_function(first: IntegerLayout, second: IntegerLayout) -> bool:
    """Return whether both have the same axes and outputs and agree at every point.

    Example:
        >>> same_function(IntegerLayout.from_strides({"i": 1}, (7,)), IntegerLayout.from_strides({"i": 1}, (0,)))
        True
    """
    return normal_form(first) == normal_form(second)


def first_difference(first: IntegerLayout, second: IntegerLayout) -> Vector | None:
    """Return the first point of the common box where the layouts differ, or None.

    Example:
        >>> L = IntegerLayout.from_strides({"i": 4, "j": 3}, (1, 4))
        >>> first_difference(L, IntegerLayout.from_strides({"i": 4, "j": 3}, (1, 5)))
        (0, 1)
    """
    if (layout_or_refuse(first).inputs, first.outputs) != (layout_or_refuse(second, "second").inputs, second.outputs):
        raise check.malformed("second", "must have the same axes and outputs", str(second))
    if not first.size:
        return None
    count = len(first.inputs)
    # two affine maps first differ at the origin or at a unit point
    for place in range(-1, count):
        point = tuple(int(k == place) for k in range(count))
        inside = place < 0 or first.extents[place] > 1
        if inside and first.value(point) != second.value(point):
            return point
    return None
