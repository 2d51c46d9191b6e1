"""Nested tuples of integers, the shapes, strides and coordinates of CuTe layouts, and their conversions.

Notation: an int tuple is an int (a leaf) or a tuple of int tuples. 1-D coordinates are colexicographic: the first leaf
runs fastest. ``idx2crd`` and ``crd2idx`` are inverse to each other inside the domain; outside it both raise.

User input enters through ``validate``, which bounds depth, leaf count and the signed 64-bit range first, so all later
recursion is shallow.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeAlias, TypeVar

import numpy as np

from layoutalg.ground import memory
from layoutalg.ground.check import Checker
from layoutalg.ground.digits import IntArray, evaluate_many, merge, split
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, MalformedError, shown
from layoutalg.ground.limits import TUPLE_DEPTH, TUPLE_MODES

IntTuple: TypeAlias = "int | tuple[IntTuple, ...]"
Leaf = TypeVar("Leaf")

INT_LIMIT = 2**63


def malformed(argument: str, rule: str, actual: object, code: str = "LA100") -> MalformedError:
    """Return the error for a bad argument: its name, the rule and the value."""
    hint = "; layoutalg.parse reads text" if isinstance(actual, str) and "ayout" in rule else ""
    return Checker(code).malformed(argument, rule, actual, hint)


def integer(value: object, argument: str, code: str = "LA100") -> int:
    """Return ``value`` as an int in the signed 64-bit range."""
    number = value if type(value) is int else Checker(code).integer(value, argument)
    if not -INT_LIMIT <= number < INT_LIMIT:
        raise malformed(argument, "must fit a signed 64-bit integer", number, code)
    return number


def validate(value: object, argument: str) -> IntTuple:
    """Return ``value`` as an int tuple of plain ints, or raise."""
    if type(value) is int and -INT_LIMIT <= value < INT_LIMIT:
        return value
    return _validate(value, argument, 0, [0])


def _validate(value: object, argument: str, level: int, seen: list[int]) -> IntTuple:
    if isinstance(value, tuple):
        if level >= TUPLE_DEPTH:
            raise malformed(argument, f"must nest at most {TUPLE_DEPTH} deep", value)
        if not value:
            _count(argument, seen)
        return tuple([_validate(entry, argument, level + 1, seen) for entry in value])
    _count(argument, seen)
    if type(value) is int and -INT_LIMIT <= value < INT_LIMIT:
        return value
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        shaped = isinstance(getattr(value, "shape", None), int | tuple)
        hint = "; its .shape is one" if shaped else ""
        hint = "; a list is written as a tuple" if isinstance(value, list) else hint
        hint = "; layoutalg.parse reads text" if isinstance(value, str) else hint
        raise Checker("LA100").malformed(argument, "must be an integer or a tuple of integers", value, hint)
    return integer(value, argument)


def extents(value: object, argument: str = "shape", code: str = "LA103") -> IntTuple:
    """``validate`` a shape, whose leaves must be >= 0."""
    shape = validate(value, argument)
    if min(flatten(shape), default=0) < 0:
        raise malformed(argument, "must have extents >= 0", shape, code)
    return shape


def _count(argument: str, seen: list[int]) -> None:
    seen[0] += 1
    if seen[0] > TUPLE_MODES:
        because = f"{argument} has more than {TUPLE_MODES} modes"
        raise MalformedError(Diagnostic("LA100", f"{argument} is malformed", because=because))


def flatten(value: IntTuple) -> tuple[int, ...]:
    """Return the leaves from left to right."""
    if not isinstance(value, tuple):
        return (value,)
    leaves: list[int] = []
    for entry in value:
        if isinstance(entry, tuple):
            leaves += flatten(entry)
        else:
            leaves.append(entry)
    return tuple(leaves)


def unflatten(flat: tuple[int, ...], profile: IntTuple) -> IntTuple:
    """Return the leaves of ``flat`` nested like ``profile``; only the structure of ``profile`` counts."""
    leaves = len(flatten(profile))
    if leaves != len(flat):
        raise malformed("flat", f"must have {leaves} entries, one per leaf of the profile", flat)
    return graft(iter(flat), profile)


def graft(leaves: Iterator[Leaf], profile: IntTuple) -> Leaf | tuple[Any, ...]:
    """Replace the leaves of ``profile`` from left to right by any values, including nested tuples."""
    if not isinstance(profile, tuple):
        return next(leaves)
    return tuple([graft(leaves, entry) for entry in profile])


def product(value: IntTuple) -> int:
    """Return the product of the leaves; 1 for the empty tuple."""
    if isinstance(value, int):
        return value
    return math.prod(flatten(value))


def rank(value: IntTuple) -> int:
    """Return the number of top-level modes; an int has one."""
    return 1 if isinstance(value, int) else len(value)


def depth(value: IntTuple) -> int:
    """Return the nesting depth: 0 for an int, 1 for a tuple of ints."""
    if isinstance(value, int):
        return 0
    return 1 + max((depth(entry) for entry in value), default=0)


def congruent(a: IntTuple, b: IntTuple) -> bool:
    """Return whether both values have the same nesting."""
    if not isinstance(a, tuple) or not isinstance(b, tuple):
        return not isinstance(a, tuple) and not isinstance(b, tuple)
    return len(a) == len(b) and all(congruent(x, y) for x, y in zip(a, b, strict=True))


def compact_col_major(shape: IntTuple) -> IntTuple:
    """Return the strides of the compact column-major layout: each the product of the extents before it."""
    if isinstance(shape, int):
        return 1
    strides: list[int] = []
    current = 1
    for extent in flatten(shape):
        strides.append(current)
        current *= extent
    return unflatten(tuple(strides), shape)


def shape_text(value: IntTuple) -> str:
    """Return the value in CuTe notation: no blanks, no comma after a single entry."""
    if not isinstance(value, tuple):
        return str(value)
    return "(" + ",".join([shape_text(entry) for entry in value]) + ")"


def ceil_div(shape: IntTuple, divisor: IntTuple) -> IntTuple:
    """Return how many steps of ``divisor`` cover ``shape``, mode by mode, rounded up.

    Mathematically: for two ints the least n with n * divisor >= shape. An int divisor goes through the modes of a tuple
    from the fastest: each mode is divided by what is left of the divisor, then the divisor by the mode, both rounded
    up. A tuple divisor divides mode by mode; modes without an entry stay.

    Args:
        shape: Extents >= 0.
        divisor: An int >= 1, or a tuple of divisors with at most one entry per mode.

    Example:
        >>> ceil_div(10, 4), ceil_div((6, 4), 4), ceil_div((6, 4), 12), ceil_div((6, 4), (4, 2))
        (3, (2, 4), (1, 2), (2, 2))
    """
    shape = extents(shape, code="LA147")
    divisor = validate(divisor, "divisor")
    if any(value < 1 for value in flatten(divisor)):
        raise malformed("divisor", "must be at least 1", divisor, "LA147")
    return _ceil_div(shape, divisor)


def steps_over(extent: int, step: int) -> int:
    """Return the least number of steps that cover an extent."""
    return -(-extent // step)


def _ceil_div(shape: IntTuple, divisor: IntTuple) -> IntTuple:
    if isinstance(divisor, tuple):
        if isinstance(shape, int):
            return steps_over(shape, product(divisor))
        if len(divisor) > len(shape):
            raise malformed("divisor", f"must have at most {len(shape)} entries, one per mode", divisor, "LA147")
        divided = [_ceil_div(extent, entry) for extent, entry in zip(shape, divisor, strict=False)]
        return (*divided, *shape[len(divisor) :])
    if isinstance(shape, int):
        return steps_over(shape, divisor)
    modes: list[IntTuple] = []
    for extent in shape:
        modes.append(_ceil_div(extent, divisor))
        size = product(extent)
        divisor = steps_over(divisor, size) if size else 1
    return tuple(modes)


def product_each(shape: IntTuple) -> tuple[int, ...]:
    """Return the size of each top-level mode.

    Example:
        >>> product_each(((2, 3), 4)), product_each(6)
        ((6, 4), (6,))
    """
    shape = extents(shape)
    return (shape,) if isinstance(shape, int) else tuple([product(entry) for entry in shape])


def compatible(coarse: IntTuple, fine: IntTuple) -> bool:
    """Return whether every coordinate of ``coarse`` is also one of ``fine``: ``fine`` refines it mode by mode.

    Args:
        coarse: A shape; of a layout, its ``shape``.
        fine: A shape.

    Example:
        >>> compatible((6, 4), ((2, 3), 4)), compatible(24, (6, 4)), compatible((6, 4), 24)
        (True, True, False)
    """
    return _compatible(extents(coarse, "coarse"), extents(fine, "fine"))


def _compatible(coarse: IntTuple, fine: IntTuple) -> bool:
    if isinstance(coarse, int):
        return coarse == product(fine)
    return (
        isinstance(fine, tuple)
        and len(coarse) == len(fine)
        and all(_compatible(a, b) for a, b in zip(coarse, fine, strict=True))
    )


QUICK = 2**20
"""Arrays up to this many entries are not checked against memory."""

TABLE_ENTRY = 24
"""Peak bytes per entry while a table is built: the table, its input and its swizzled copy."""

Coords: TypeAlias = Any
"""Input of ``apply``: an integer array of 1-D coordinates, or a tuple of such values with one entry per mode."""


def crd2idx(coord: IntTuple, shape: IntTuple, stride: IntTuple | None = None) -> int:
    """Return the offset of a coordinate; without strides, its 1-D coordinate.

    Mathematically: the sum of digits times strides; an int coordinate of a tuple mode is split colexicographically.

    Args:
        coord: An int, or a tuple with one entry per mode, nested to any depth.
        shape: Extents >= 0.
        stride: Strides, congruent to the shape; default compact column-major. The result has their unit.

    Example:
        >>> crd2idx((1, 5), (4, 8), (8, 1)), crd2idx((1, 5), (4, 8)), crd2idx(21, (4, 8), (8, 1))
        (13, 21, 13)
    """
    sizes = extents(shape)
    steps = compact_col_major(sizes) if stride is None else validate(stride, "stride")
    if not congruent(sizes, steps):
        raise malformed("stride", f"must be congruent to the shape {shape_text(sizes)}", steps)
    return offset_of(validate(coord, "coordinate"), sizes, steps)


def idx2crd(index: int, shape: IntTuple) -> IntTuple:
    """Return the natural coordinate, nested like ``shape``, of a 1-D coordinate.

    Example:
        >>> idx2crd(13, (4, (2, 3)))
        (1, (1, 1))
    """
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
    """Return ``coords`` as an int64 array; raise if it is not integers."""
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
