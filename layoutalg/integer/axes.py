"""Operations on the axes of integer layouts: all closed and exact.

Main definitions: ``flip``, ``slice_axis``, ``fix``, ``permute``, ``rename``, ``extend``, ``select``, ``shift``,
``stack``, ``same_function``, ``normal``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from layoutalg.integer.layout import IntegerLayout, layout_or_refuse
from layoutalg.integer.matrix import Vector, as_vector, integer, malformed


def place_of(layout: IntegerLayout, axis: object, argument: str = "axis") -> int:
    """Return the position of an input axis, or refuse the name."""
    names = list(layout_or_refuse(layout).in_dims)
    # the comparison of an array with a name is an array
    if not isinstance(axis, str) or axis not in names:
        raise malformed(argument, f"must be one of {names}", axis, "LA731")
    return names.index(axis)


def names_each(order: object, names: Iterable[str]) -> bool:
    """Return whether a sequence holds every name exactly once."""
    listed = isinstance(order, (tuple, list)) and all(isinstance(name, str) for name in order)
    return listed and sorted(order) == sorted(names)  # type: ignore[call-overload]


def _rebuilt(layout: IntegerLayout, place: int, extent: int, scale: int, start: int) -> IntegerLayout:
    """Return the layout with x_place replaced by ``start + scale x`` on a new extent."""
    inputs = [*layout.inputs]
    inputs[place] = (inputs[place][0], extent)
    rows = [tuple(a * scale if k == place else a for k, a in enumerate(row)) for row in layout.matrix]
    offset = [b + row[place] * start for row, b in zip(layout.matrix, layout.offset, strict=True)]
    return IntegerLayout(tuple(inputs), layout.outputs, tuple(rows), tuple(offset))


def flip(layout: IntegerLayout, axis: str) -> IntegerLayout:
    """Return the layout with one axis read backwards: x becomes extent - 1 - x.

    Raises: MalformedError: LA731.

    Example:
        >>> flip(IntegerLayout.from_strides({"i": 4}, (2,)), "i").table().tolist()
        [6, 4, 2, 0]
    """
    place = place_of(layout, axis)
    return _rebuilt(layout, place, layout.extents[place], -1, layout.extents[place] - 1)


def slice_axis(layout: IntegerLayout, axis: str, start: int, count: int, step: int = 1) -> IntegerLayout:
    """Return the layout on ``start, start + step, ...``, ``count`` points of one axis.

    Args:
        layout: The layout.
        axis: Name of an input axis.
        start: First point.
        count: Number of points, at least 0.
        step: Distance; negative walks backwards, 0 repeats.

    Raises: MalformedError: LA731.

    Example:
        >>> slice_axis(IntegerLayout.from_strides({"i": 7}, (2,)), "i", 6, 3, -2).table().tolist()
        [12, 8, 4]
    """
    place = place_of(layout, axis)
    first, points, stride = (integer(v, n, "LA731") for v, n in ((start, "start"), (count, "count"), (step, "step")))
    extent = layout.extents[place]
    if points < 0:
        raise malformed("count", "must be at least 0", points, "LA731")
    for argument, point in (("start", first), ("start + (count - 1) * step", first + (points - 1) * stride)):
        if points and not 0 <= point < extent:
            raise malformed(argument, f"must be a point of {axis}, in [0, {extent})", point, "LA731")
    return _rebuilt(layout, place, points, stride, first)


def fix(layout: IntegerLayout, axis: str, point: int) -> IntegerLayout:
    """Return the layout with one axis held at a point; the axis disappears.

    Raises: MalformedError: LA731.

    Example:
        >>> str(fix(IntegerLayout.from_strides({"i": 4, "j": 3}, (2, 10)), "j", 2))
        'Z[i:4=(2) -> offset] + (20)'
    """
    held = slice_axis(layout, axis, point, 1)
    place = place_of(layout, axis)
    rows = tuple(tuple(a for k, a in enumerate(row) if k != place) for row in held.matrix)
    return IntegerLayout(held.inputs[:place] + held.inputs[place + 1 :], held.outputs, rows, held.offset)


def permute(layout: IntegerLayout, order: Sequence[str]) -> IntegerLayout:
    """Return the layout with its input axes in a new order, fastest first; the map by names stays the same.

    Raises: MalformedError: LA731.

    Example:
        >>> permute(IntegerLayout.from_strides({"i": 2, "j": 3}, (3, 1)), ["j", "i"]).table().tolist()
        [0, 1, 2, 3, 4, 5]
    """
    names = list(layout_or_refuse(layout).in_dims)
    if not names_each(order, names):
        raise malformed("order", f"must name each of {names} once", order, "LA731")
    places = [names.index(name) for name in order]
    rows = tuple(tuple(row[k] for k in places) for row in layout.matrix)
    return IntegerLayout(tuple(layout.inputs[k] for k in places), layout.outputs, rows, layout.offset)


def rename(layout: IntegerLayout, names: Mapping[str, str]) -> IntegerLayout:
    """Return the layout with input axes and outputs renamed.

    Raises: MalformedError: LA731, LA724.

    Example:
        >>> str(rename(IntegerLayout.from_strides({"i": 4}, (2,)), {"i": "lane", "offset": "address"}))
        'Z[lane:4=(2) -> address]'
    """
    known = {*layout_or_refuse(layout).in_dims, *layout.out_dims}
    if not isinstance(names, Mapping) or not set(names) <= known:
        raise malformed("names", f"must map names among {sorted(known)}", names, "LA731")
    return IntegerLayout(
        tuple((names.get(name, name), extent) for name, extent in layout.inputs),
        tuple((names.get(name, name), modulus) for name, modulus in layout.outputs),
        layout.matrix,
        layout.offset,
    )


def extend(layout: IntegerLayout, axis: str, extent: int) -> IntegerLayout:
    """Return the same affine map on a longer (padded) or shorter axis.

    Raises: MalformedError: LA731.

    Example:
        >>> extend(IntegerLayout.from_strides({"i": 3}, (2,)), "i", 4).table().tolist()
        [0, 2, 4, 6]
    """
    place = place_of(layout, axis)
    length = integer(extent, "extent", "LA731")
    if length < 0:
        raise malformed("extent", "must be at least 0", length, "LA731")
    return _rebuilt(layout, place, length, 1, 0)


def select(layout: IntegerLayout, outputs: Sequence[str]) -> IntegerLayout:
    """Return the layout with some of its outputs, in the order given.

    Raises: MalformedError: LA731.

    Example:
        >>> str(select(IntegerLayout.identity({"i": 3, "j": 2}), ["j"]))
        'Z[i:3=(0), j:2=(1) -> j]'
    """
    names = list(layout_or_refuse(layout).out_dims)
    listed = isinstance(outputs, (tuple, list)) and all(isinstance(name, str) for name in outputs)
    if not listed or len(set(outputs)) != len(outputs) or not set(outputs) <= set(names):
        raise malformed("outputs", f"must be distinct names among {names}", outputs, "LA731")
    places = [names.index(name) for name in outputs]
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
    by = as_vector(amounts, "amounts", len(layout_or_refuse(layout).outputs), "LA731")
    offset = tuple(b + a for b, a in zip(layout.offset, by, strict=True))
    return IntegerLayout(layout.inputs, layout.outputs, layout.matrix, offset)


def stack(first: IntegerLayout, second: IntegerLayout) -> IntegerLayout:
    """Return x -> (first(x), second(x)) for layouts on the same box.

    Raises: MalformedError: LA731, LA724.

    Example:
        >>> L = IntegerLayout.from_strides({"i": 8}, (3,))
        >>> str(stack(L, IntegerLayout.from_strides({"i": 8}, (3,), output="bank", modulus=4)))
        'Z[i:8=(3,3) -> offset, bank%4]'
    """
    if layout_or_refuse(first).inputs != layout_or_refuse(second, "second").inputs:
        raise malformed("second", f"must have the input axes {first.inputs}", second.inputs, "LA731")
    return IntegerLayout(
        first.inputs, first.outputs + second.outputs, first.matrix + second.matrix, first.offset + second.offset
    )


def normal(layout: IntegerLayout) -> IntegerLayout:
    """Return the normal form: strides of axes of extent 0 or 1 are zero, an empty layout is zero.

    Two layouts with the same axes and outputs are the same function exactly when their normal forms are equal: the
    values at the origin and at the unit points determine every stride of an axis of extent 2 or more.

    Example:
        >>> normal(IntegerLayout.from_strides({"i": 1, "j": 2}, (7, 3))).matrix
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
    return normal(first) == normal(second)


def first_difference(first: IntegerLayout, second: IntegerLayout) -> Vector | None:
    """Return the first point of the common box where the layouts differ, None where they never do.

    Raises: MalformedError: LA731.

    Example:
        >>> L = IntegerLayout.from_strides({"i": 4, "j": 3}, (1, 4))
        >>> first_difference(L, IntegerLayout.from_strides({"i": 4, "j": 3}, (1, 5)))
        (0, 1)
    """
    if (layout_or_refuse(first).inputs, first.outputs) != (layout_or_refuse(second, "second").inputs, second.outputs):
        raise malformed("second", "must have the same axes and outputs", str(second), "LA731")
    if not first.size:
        return None
    count = len(first.inputs)
    # affine maps that agree on the faster axes first differ at the origin or at a unit point
    for place in range(-1, count):
        point = tuple(int(k == place) for k in range(count))
        inside = place < 0 or first.extents[place] > 1
        if inside and first.value(point) != second.value(point):
            return point
    return None
