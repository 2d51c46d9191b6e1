"""Split, merge, reshape and coalesce axes of any extents; digit permutations.

As a function of the flat index, a layout has one coalesced form (no axis of extent 1, no neighbours with
stride_{k+1} = extent_k stride_k), and two layouts are the same function of the flat index exactly when their coalesced
forms are equal. This holds for strides in any abelian group, so for several outputs and for moduli.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from layoutalg.ground.axes import Axes, checked_axes
from layoutalg.ground.errors import Diagnostic, RepresentabilityError
from layoutalg.integer.axes import place_of
from layoutalg.integer.layout import IntegerLayout, layout_or_refuse
from layoutalg.integer.layout import check_argument as check
from layoutalg.integer.matrix import Vector, transpose

Modes = tuple[tuple[int, Vector], ...]


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
        point = part.coordinate(at)
        affine = tuple(b + s for b, s in zip(part.offset, _times(modes[0][1], at, part.moduli), strict=True))
        raise RepresentabilityError(
            Diagnostic(
                code="LA733",
                what="the axes do not merge into one",
                where=(str(layout), f"merging {', '.join(axes)}"),
                because=f"the first {at} flat indices have stride {modes[0][1]}, the next step differs",
                witness={
                    "flat": at,
                    "coordinate": dict(zip(part.in_dims, point, strict=True)),
                    "value": part.value(point),
                    "affine": affine,
                },
            )
        )
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
    value, point = layout.value(layout.coordinate(at)), candidate.coordinate(at)
    affine = candidate.value(point)
    raise RepresentabilityError(
        Diagnostic(
            code="LA732",
            what="the layout is not affine on the new box",
            where=(str(layout), f"as {_dims_text(inputs)}"),
            because=f"at the flat index {at} the value is {value}, the only affine candidate gives {affine}",
            witness={
                "flat": at,
                "coordinate": dict(zip(dict(inputs), point, strict=True)),
                "value": value,
                "affine": affine,
            },
        )
    )


def _dims_text(inputs: Axes) -> str:
    return "(" + ", ".join(f"{name}:{extent}" for name, extent in inputs) + ")"


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


def digit_permutation(
    dims: Mapping[str, int] | Sequence[tuple[str, int]], order: Sequence[str], output: str = "offset"
) -> IntegerLayout:
    """Return the layout that reorders mixed-radix digits: a bijection onto [0, size).

    Args:
        dims: Digits (name, extent), fastest first in the input.
        order: The same names, fastest first in the output.
        output: Name of the output.

    Example:
        >>> digit_permutation({"i": 2, "j": 3}, ["j", "i"]).table().tolist()
        [0, 3, 1, 4, 2, 5]
    """
    inputs = dict(checked_axes(dims, "dims", check))
    weight, strides = 1, {}
    for name in check.names(order, "order", inputs, whole=True):
        strides[name] = weight
        weight *= inputs[name]
    return IntegerLayout.from_strides(inputs, [strides[name] for name in inputs], output=output)
