"""Exact operations on the axes of integer layouts: flips, slices, splits, merges, reshapes, digit permutations.

As a function of the flat index, a layout has one coalesced form (no axis of extent 1, no neighbours with
stride_{k+1} = extent_k stride_k), and two layouts are the same function of the flat index exactly when their coalesced
forms are equal. This holds for strides in any abelian group, so for several outputs and for moduli.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from layoutalg.ground.digits import Axes, checked_axes, point_at
from layoutalg.ground.errors import Diagnostic, RepresentabilityError
from layoutalg.integer.layout import IntegerLayout, layout_or_refuse
from layoutalg.integer.layout import check_argument as check
from layoutalg.integer.matrix import Vector, transpose

Modes = tuple[tuple[int, Vector], ...]


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


# the flat index


def _times(stride: Vector, factor: int, moduli: Vector) -> Vector:
    return tuple([a * factor % m if m else a * factor for a, m in zip(stride, moduli, strict=True)])


def coalesced(layout: IntegerLayout) -> Modes:
    """Return the coalesced form of the flat index function: (extent, strides per output), fastest first.

    Example:
        >>> coalesced(IntegerLayout.from_strides({"i": 4, "j": 1, "k": 3}, (2, 7, 8)))
        ((12, (2,)),)
    """
    modes: list[tuple[int, Vector]] = []
    for extent, stride in zip(layout_or_refuse(layout).extents, layout.columns, strict=True):
        if extent == 0:
            return ((0, (0,) * len(layout.outputs)),)
        if extent == 1:
            continue
        if modes and _times(modes[-1][1], modes[-1][0], layout.moduli) == stride:
            modes[-1] = (modes[-1][0] * extent, modes[-1][1])
        else:
            modes.append((extent, stride))
    return tuple(modes)


def _with_axes(layout: IntegerLayout, inputs: Sequence[tuple[str, int]], columns: Sequence[Vector]) -> IntegerLayout:
    return IntegerLayout(tuple(inputs), layout.outputs, transpose(tuple(columns), len(layout.outputs)), layout.offset)


def split(layout: IntegerLayout, axis: str, digits: Mapping[str, int] | Sequence[tuple[str, int]]) -> IntegerLayout:
    """Return the layout with one axis replaced by its mixed-radix digits, fastest first. Always exact.

    Example:
        >>> str(split(IntegerLayout.from_strides({"i": 6}, (5,)), "i", {"low": 3, "high": 2}))
        'Z[low:3=(5), high:2=(15) -> offset]'
    """
    place = place_of(layout, axis)
    parts = checked_axes(digits, "digits", check)
    if math.prod(extent for _, extent in parts) != layout.extents[place]:
        rule = f"must have extents that multiply to {layout.extents[place]}, the extent of {axis}"
        raise check.malformed("digits", rule, parts)
    columns, inputs, weight = [*layout.columns], [*layout.inputs], 1
    fresh = []
    for _, extent in parts:
        fresh.append(_times(columns[place], weight, layout.moduli))
        weight *= extent
    inputs[place : place + 1] = parts
    columns[place : place + 1] = fresh
    return _with_axes(layout, inputs, columns)


def merge(layout: IntegerLayout, axes: Sequence[str], into: str) -> IntegerLayout:
    """Return the layout with some axes, fastest first, replaced by their flat index at the position of the first.

    Example:
        >>> str(merge(IntegerLayout.from_strides({"i": 3, "j": 2}, (5, 15)), ["i", "j"], "k"))
        'Z[k:6=(5) -> offset]'
    """
    names = list(layout_or_refuse(layout).in_dims)
    places = [names.index(axis) for axis in check.names(axes, "axes", names)]
    if not places:
        raise check.malformed("axes", "must name at least one axis", axes)
    part = _with_axes(layout, [layout.inputs[k] for k in places], [layout.columns[k] for k in places])
    modes = coalesced(part)
    if len(modes) > 1:
        at = modes[0][0]
        affine = tuple(b + s for b, s in zip(part.offset, _times(modes[0][1], at, part.moduli), strict=True))
        because = f"the first {at} flat indices have stride {modes[0][1]}, the next step differs"
        where = (str(layout), f"merging {', '.join(axes)}")
        raise _not_affine("LA733", "the axes do not merge into one", where, because, part, at, part.inputs, affine)
    # the stride of an axis of extent 1 is irrelevant
    stride = modes[0][1] if modes else layout.columns[places[0]]
    inputs, columns = [], []
    for k, (entry, column) in enumerate(zip(layout.inputs, layout.columns, strict=True)):
        if k == places[0]:
            inputs.append((into, part.size))
            columns.append(stride)
        elif k not in places:
            inputs.append(entry)
            columns.append(column)
    return _with_axes(layout, inputs, columns)


def reshape(layout: IntegerLayout, dims: Mapping[str, int] | Sequence[tuple[str, int]]) -> IntegerLayout:
    """Return the same function of the flat index on another box of the same size.

    Mathematically: the values at the new unit points determine the only affine candidate, which is right exactly when
    its coalesced form is that of the layout.

    Example:
        >>> str(reshape(IntegerLayout.from_strides({"i": 4, "j": 9}, (1, 4)), {"a": 3, "b": 12}))
        'Z[a:3=(1), b:12=(3) -> offset]'
        >>> str(reshape(IntegerLayout.from_strides({"i": 12, "j": 5}, (1, 100)), {"a": 3, "b": 4, "c": 5}))
        'Z[a:3=(1), b:4=(3), c:5=(100) -> offset]'
    """
    inputs = checked_axes(dims, "dims", check)
    size = math.prod(extent for _, extent in inputs)
    if size != layout_or_refuse(layout).size:
        raise check.malformed("dims", f"must have extents that multiply to {layout.size}", inputs)
    zero = (0,) * len(layout.outputs)
    if not size:
        return _with_axes(layout, inputs, [zero] * len(inputs))
    columns, weight = [], 1
    for _, extent in inputs:
        if extent > 1:
            value = layout.value(layout.coordinate(weight))
            columns.append(tuple(v - o for v, o in zip(value, layout.offset, strict=True)))
        else:
            columns.append(zero)
        weight *= extent
    candidate = _with_axes(layout, inputs, columns)
    at = _first_difference(coalesced(candidate), coalesced(layout))
    if at is None:
        return candidate
    value, affine = layout.value(layout.coordinate(at)), candidate.value(candidate.coordinate(at))
    because = f"at the flat index {at} the value is {value}, the only affine candidate gives {affine}"
    where = (str(layout), f"as ({', '.join(f'{name}:{extent}' for name, extent in inputs)})")
    raise _not_affine("LA732", "the layout is not affine on the new box", where, because, layout, at, inputs, affine)


def _not_affine(
    code: str,
    what: str,
    where: tuple[str, ...],
    because: str,
    layout: IntegerLayout,
    at: int,
    axes: Axes,
    affine: Vector,
) -> RepresentabilityError:
    """Return the error for a layout whose value at a flat index, a point of some axes, is not the affine one."""
    value = layout.value(layout.coordinate(at))
    witness = {"flat": at, "coordinate": point_at(axes, at), "value": value, "affine": affine}
    return RepresentabilityError(Diagnostic(code, what, where, because, witness))


def _first_difference(left: Modes, right: Modes) -> int | None:
    """Return the first flat index where two coalesced forms of the same size and origin differ."""
    weight = 1
    for (extent, stride), (other, step) in zip(left, right, strict=False):
        if stride != step:
            return weight
        if extent != other:
            return weight * min(extent, other)
        weight *= extent
    return None
