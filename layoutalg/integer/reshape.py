"""Mixed radix: splitting, merging and reshaping axes of any extents, coalescing, digit permutations.

Main definitions: ``split``, ``merge``, ``reshape``, ``coalesced``, ``digit_permutation``.

Main statements: as a function of the flat index, a layout has one coalesced form (no axis of extent 1, no two
neighbours with stride_{k+1} = extent_k stride_k), and two layouts are the same function of the flat index exactly when
their coalesced forms are equal. This holds for strides in any abelian group, so for several outputs and for moduli.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from layoutalg.ground.errors import Diagnostic, RepresentabilityError
from layoutalg.integer.axes import names_each, place_of
from layoutalg.integer.layout import Axes, IntegerLayout, axis_pairs, layout_or_refuse
from layoutalg.integer.matrix import Vector, malformed, transpose

Modes = tuple[tuple[int, Vector], ...]


def _times(stride: Vector, factor: int, moduli: Vector) -> Vector:
    return tuple([a * factor % m if m else a * factor for a, m in zip(stride, moduli, strict=True)])


def coalesced(layout: IntegerLayout) -> Modes:
    """Return the coalesced form of the flat index function: (extent, strides per output), fastest first.

    Complexity: linear in the number of axes.

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

    Raises: MalformedError: LA731.

    Example:
        >>> str(split(IntegerLayout.from_strides({"i": 6}, (5,)), "i", {"low": 3, "high": 2}))
        'Z[low:3=(5), high:2=(15) -> offset]'
    """
    place = place_of(layout, axis)
    parts = axis_pairs(digits, "digits", "an extent must be at least 0", "LA731")
    if math.prod(extent for _, extent in parts) != layout.extents[place]:
        raise malformed(
            "digits", f"extents must multiply to {layout.extents[place]}, the extent of {axis}", parts, "LA731"
        )
    columns, inputs, weight = [*layout.columns], [*layout.inputs], 1
    fresh = []
    for _, extent in parts:
        fresh.append(_times(columns[place], weight, layout.moduli))
        weight *= extent
    inputs[place : place + 1] = parts
    columns[place : place + 1] = fresh
    return _with_axes(layout, inputs, columns)


def merge(layout: IntegerLayout, axes: Sequence[str], into: str) -> IntegerLayout:
    """Return the layout with some axes, fastest first, replaced by their flat index, in place of the first.

    Raises: MalformedError: LA731. RepresentabilityError: LA733.

    Example:
        >>> str(merge(IntegerLayout.from_strides({"i": 3, "j": 2}, (5, 15)), ["i", "j"], "k"))
        'Z[k:6=(5) -> offset]'
    """
    listed = isinstance(axes, (tuple, list)) and all(isinstance(axis, str) for axis in axes)
    if not listed or not axes or len(set(axes)) != len(axes):
        raise malformed("axes", "must be distinct names, at least one", axes, "LA731")
    places = [place_of(layout, axis, "axes") for axis in axes]
    part = _with_axes(layout, [layout.inputs[k] for k in places], [layout.columns[k] for k in places])
    modes = coalesced(part)
    if len(modes) > 1:
        at = modes[0][0]
        raise RepresentabilityError(
            Diagnostic(
                code="LA733",
                what="the axes do not merge",
                where=(str(layout), f"merging {', '.join(axes)}"),
                because=f"the first {at} flat indices advance by {modes[0][1]}, the next step differs",
                witness={
                    "flat": at,
                    "coordinate": dict(zip(axes, part.coordinate(at), strict=True)),
                    "value": part.at(at),
                    "affine": tuple(
                        b + s for b, s in zip(part.offset, _times(modes[0][1], at, part.moduli), strict=True)
                    ),
                },
            )
        )
    # an axis of extent 1 keeps the stride of the first axis, which no point sees
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
    """Return the same function of the flat index on another box of the same size, of any extents.

    Mathematically: values at the new unit points fix the only affine candidate; it is the answer exactly when its
    coalesced form is that of the layout.

    Raises: MalformedError: LA731. RepresentabilityError: LA732.

    Example:
        >>> str(reshape(IntegerLayout.from_strides({"i": 4, "j": 9}, (1, 4)), {"a": 3, "b": 12}))
        'Z[a:3=(1), b:12=(3) -> offset]'
        >>> str(reshape(IntegerLayout.from_strides({"i": 12, "j": 5}, (1, 100)), {"a": 3, "b": 4, "c": 5}))
        'Z[a:3=(1), b:4=(3), c:5=(100) -> offset]'
    """
    inputs = axis_pairs(dims, "dims", "an extent must be at least 0", "LA731")
    size = math.prod(extent for _, extent in inputs)
    if size != layout_or_refuse(layout).size:
        raise malformed("dims", f"extents must multiply to {layout.size}", inputs, "LA731")
    zero = (0,) * len(layout.outputs)
    if not size:
        return _with_axes(layout, inputs, [zero] * len(inputs))
    origin, columns, weight = layout.at(0), [], 1
    for _, extent in inputs:
        if extent > 1:
            columns.append(tuple(v - o for v, o in zip(layout.at(weight), origin, strict=True)))
        else:
            columns.append(zero)
        weight *= extent
    candidate = _with_axes(layout, inputs, columns)
    at = _first_difference(coalesced(candidate), coalesced(layout))
    if at is None:
        return candidate
    raise RepresentabilityError(
        Diagnostic(
            code="LA732",
            what="the layout is not affine on the new box",
            where=(str(layout), f"as {_dims_text(inputs)}"),
            because=f"at the flat index {at} the value is {layout.at(at)}, the only affine candidate gives "
            f"{candidate.at(at)}",
            witness={
                "flat": at,
                "coordinate": dict(zip(dict(inputs), candidate.coordinate(at), strict=True)),
                "value": layout.at(at),
                "affine": candidate.at(at),
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
    """Return the layout of mixed-radix digits that are read in another order: a bijection onto [0, size).

    Args:
        dims: Digits, fastest first in the coordinates.
        order: The same names, fastest first in the output.
        output: Name of the output.

    Raises: MalformedError: LA731.

    Example:
        >>> digit_permutation({"i": 2, "j": 3}, ["j", "i"]).table().tolist()
        [0, 3, 1, 4, 2, 5]
    """
    inputs = dict(axis_pairs(dims, "dims", "an extent must be at least 0", "LA731"))
    if not names_each(order, inputs):
        raise malformed("order", f"must name each of {list(inputs)} once", order, "LA731")
    weight, strides = 1, {}
    for name in order:
        strides[name] = weight
        weight *= inputs[name]
    return IntegerLayout.from_strides(inputs, [strides[name] for name in inputs], output=output)
