"""Convert between coordinates, 1-D coordinates and offsets, one at a time or in arrays.

``idx2crd`` and ``crd2idx`` are inverse to each other inside the domain; outside it both raise.

References: CuTe ``crd2idx``, ``idx2crd``, ``crd2crd``.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from layoutalg.cute.conventions import STRICT, Convention, by_convention
from layoutalg.cute.inttuple import (
    INT_LIMIT,
    IntTuple,
    compact_col_major,
    congruent,
    extents,
    flatten,
    integer,
    malformed,
    product,
    shape_text,
    unflatten,
    validate,
)
from layoutalg.ground import memory
from layoutalg.ground.digits import IntArray, evaluate_many, merge, split
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, MalformedError, shown

QUICK = 2**20
"""Arrays up to this many entries are not checked against memory."""

TABLE_ENTRY = 24
"""Peak bytes per entry while a table is built: the table, its input and its swizzled copy."""

Coords: TypeAlias = Any
"""Input of ``apply``: an integer array of 1-D coordinates, or a tuple of such values with one entry per mode."""


def crd2idx(
    coord: IntTuple, shape: IntTuple, stride: IntTuple | None = None, *, convention: Convention = STRICT
) -> int:
    """Return the offset of a coordinate; without strides, its 1-D coordinate.

    Mathematically: the sum of digits times strides; an int coordinate of a tuple mode is split colexicographically.

    Args:
        coord: An int, or a tuple with one entry per mode, nested to any depth.
        shape: Extents >= 0.
        stride: Strides, congruent to the shape; default compact column-major. The result has their unit.
        convention: ``"cute_cpp"`` and ``"pycute"`` let the last digit grow past the end; strict raises.

    Raises: MalformedError: LA100, LA103, LA104, LA144. AdmissibilityError: LA105.

    Example:
        >>> crd2idx((1, 5), (4, 8), (8, 1)), crd2idx((1, 5), (4, 8)), crd2idx(21, (4, 8), (8, 1))
        (13, 21, 13)
    """
    if convention is not STRICT:
        return by_convention(convention, crd2idx, coord, shape, stride)
    sizes = extents(shape)
    return offset_of(validate(coord, "coordinate"), sizes, strides_of(sizes, stride))


def strides_of(shape: IntTuple, stride: IntTuple | None) -> IntTuple:
    """Return the validated strides of a shape; compact column-major by default."""
    if stride is None:
        return compact_col_major(shape)
    steps = validate(stride, "stride")
    if not congruent(shape, steps):
        raise malformed("stride", f"must be congruent to the shape {shape_text(shape)}", steps)
    return steps


def idx2crd(index: int, shape: IntTuple, *, convention: Convention = STRICT) -> IntTuple:
    """Return the natural coordinate, nested like ``shape``, of a 1-D coordinate.

    Args:
        index: 1-D coordinate.
        shape: Extents >= 0.
        convention: Past the end ``"cute_cpp"`` lets the last digit grow, ``"pycute"`` takes each digit modulo its
            extent; strict raises.

    Raises: MalformedError: LA100, LA103, LA144. AdmissibilityError: LA105.

    Example:
        >>> idx2crd(13, (4, (2, 3)))
        (1, (1, 1))

    Source: CuTe ``idx2crd``; pycute ``idx2crd``.
    """
    if convention is not STRICT:
        return by_convention(convention, idx2crd, index, shape)
    sizes = extents(shape)
    rest = integer(index, "index")
    if not 0 <= rest < product(sizes):
        raise outside(rest, sizes)
    return unflatten(split(rest, flatten(sizes))[0], sizes)


def crd2crd(coord: IntTuple, source: IntTuple, target: IntTuple) -> IntTuple:
    """Return the coordinate of ``target`` with the same 1-D coordinate as ``coord`` has in ``source``.

    Mathematically: idx2crd(crd2idx(coord, source), target). If the modes of both shapes have equal sizes this is the
    conversion mode by mode, the only one CuTe does for two tuples.

    Args:
        coord: A coordinate of ``source``.
        source: Extents.
        target: Extents with the same product.

    Raises: MalformedError: LA104, LA158. AdmissibilityError: LA105.

    Example:
        >>> crd2crd((3, 5), (4, 8), ((2, 2), 8)), crd2crd((3, 5), (4, 8), 32)
        (((1, 1), 5), 23)

    Laws: crd2crd(crd2crd(c, S, T), T, S) = c for natural coordinates c.
    """
    first, second = extents(source, "source"), extents(target, "target")
    if product(first) != product(second):
        because = f"{shape_text(first)} has {shown(product(first))} coordinates, "
        because += f"{shape_text(second)} has {shown(product(second))}"
        where = f"crd2crd({shape_text(first)}, {shape_text(second)})"
        raise MalformedError(Diagnostic("LA158", "the shapes have different sizes", (where,), because))
    return idx2crd(crd2idx(coord, first), second)


def offset_of(coord: IntTuple, shape: IntTuple, stride: IntTuple) -> int:
    """Return the offset for validated operands: ``shape`` and ``stride`` congruent, all entries plain ints."""
    if isinstance(coord, int):
        rest = coord
        total = 0
        for extent, step in zip(flatten(shape), flatten(stride), strict=True):
            if extent <= 0:
                raise outside(coord, shape)
            rest, digit = divmod(rest, extent)
            total += digit * step
        if rest:
            raise outside(coord, shape)
        return total
    if isinstance(shape, int) or isinstance(stride, int) or len(coord) != len(shape):
        raise malformed("coordinate", f"must match the shape {shape_text(shape)}", coord, "LA104")
    return sum([offset_of(c, s, d) for c, s, d in zip(coord, shape, stride, strict=True)])


def outside(coord: int, shape: IntTuple) -> AdmissibilityError:
    """Return the error for a 1-D coordinate outside a shape."""
    because = f"{coord} is not in [0, {product(shape)}), the extent of {shape_text(shape)}"
    witness = {"coordinate": coord}
    return AdmissibilityError(Diagnostic("LA105", "the coordinate lies outside the domain", (), because, witness))


def quick_offset(point: Any, shape: Any, stride: Any) -> int | None:
    """Return the offset at a coordinate nested exactly like the shape and in bounds, otherwise None."""
    if type(point) is int:
        if type(shape) is int and 0 <= point < shape:
            return int(point * stride)
        return None
    if type(point) is not tuple or type(shape) is not tuple or len(point) != len(shape):
        return None
    total = 0
    for entry, extent, step in zip(point, shape, stride, strict=True):
        if type(entry) is int and type(extent) is int:
            if not 0 <= entry < extent:
                return None
            total += entry * step
        else:
            part = quick_offset(entry, extent, step)
            if part is None:
                return None
            total += part
    return total


def offsets_of(coords: Coords, shape: IntTuple, stride: IntTuple) -> IntArray:
    """Return the offsets at an array of 1-D coordinates, or at a tuple of such arrays with one entry per mode."""
    if isinstance(coords, tuple):
        if isinstance(shape, int) or isinstance(stride, int) or len(coords) != len(shape):
            modes = "no modes" if isinstance(shape, int) else f"{len(shape)} modes"
            raise _malformed(
                f"a tuple of {len(coords)} coordinate arrays does not fit {shape_text(shape)}, with {modes}"
            )
        total: IntArray = np.zeros((), dtype=np.int64)
        for entry, extent, step in zip(coords, shape, stride, strict=True):
            part = offsets_of(entry, extent, step)
            try:
                if total.size * part.size > QUICK:
                    count = math.prod(np.broadcast_shapes(total.shape, part.shape))
                    memory.reserve("apply, the coordinates broadcast", count, TABLE_ENTRY)
                total = total + part
            except ValueError as error:
                raise _malformed(f"the arrays do not broadcast: {error}") from error
        return total
    index = index_array(coords)
    size = product(shape)
    if index.size and (int(index.min()) < 0 or int(index.max()) >= size):
        row = index.reshape(-1)
        place = int(np.flatnonzero((row < 0) | (row >= size))[0])
        because = f"{row[place]} is not in [0, {size}), the extent of {shape_text(shape)}"
        witness = {"position": place, "coordinate": int(row[place])}
        raise AdmissibilityError(Diagnostic("LA105", "the coordinate lies outside the domain", (), because, witness))
    return evaluate_many(merge(tuple(zip(flatten(shape), flatten(stride), strict=True))), index)


def _malformed(because: str) -> MalformedError:
    return MalformedError(Diagnostic(code="LA104", what="the coordinate is malformed", because=because))


def index_array(coords: object) -> IntArray:
    """Return ``coords`` as an int64 array; raise if it is not integers.

    Raises: MalformedError: LA104.
    """
    try:
        array = np.asarray(coords)
    except (ValueError, TypeError, OverflowError, RuntimeError) as error:
        raise malformed("coordinate", "must be an array of integers", coords, "LA104") from error
    if array.size == 0 and array.dtype == np.float64 and isinstance(coords, list):
        return array.astype(np.int64)  # numpy reads an empty list as floats
    if array.dtype.kind not in "iu":
        raise _malformed(f"coordinates must be integers in the signed 64-bit range, not an array of {array.dtype}")
    if array.dtype == np.uint64 and array.size and int(array.max()) >= INT_LIMIT:
        raise malformed("coordinate", "must fit a signed 64-bit integer", int(array.max()), "LA104")
    return array.astype(np.int64)
