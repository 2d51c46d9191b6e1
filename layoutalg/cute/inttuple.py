"""Nested tuples of integers: the shapes, strides and coordinates of CuTe layouts.

Main definitions: ``IntTuple``, ``validate``, ``extents``, ``flatten``, ``unflatten``, ``product``, ``rank``, ``depth``,
``congruent``, ``compact_col_major``, ``crd2idx``, ``idx2crd``.

Notation: an int tuple is an int (a leaf) or a tuple of int tuples. 1-D coordinates are colexicographic: the first leaf
runs fastest.

Implementation notes: ``validate`` is the only door for foreign values; it bounds depth and number of leaves first, so
that every recursion below it is shallow. Values are Python ints; the signed 64-bit range is enforced where values
enter.

References: CuTe documentation of NVIDIA CUTLASS, "Layouts" and "Layout algebra".
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from layoutalg.ground.errors import AdmissibilityError, Diagnostic, MalformedError, shown
from layoutalg.ground.limits import TUPLE_DEPTH, TUPLE_MODES

IntTuple: TypeAlias = "int | tuple[IntTuple, ...]"

INT_LIMIT = 2**63


def malformed(argument: str, rule: str, actual: object, code: str = "LA100") -> MalformedError:
    """Return the error for a bad argument: its name, the rule and the value that broke the rule."""
    hint = "; layoutalg.parse reads text" if isinstance(actual, str) and "ayout" in rule else ""
    because = f"{argument} {rule}, not {shown(actual)}{hint}"
    return MalformedError(Diagnostic(code=code, what=f"{argument} is malformed", because=because))


def integer(value: object, argument: str, code: str = "LA100") -> int:
    """Return ``value`` as an int; numpy integer scalars are accepted, booleans and floats are not.

    Args:
        value: Anything.
        argument: Name of the argument, for the message.
        code: Error code of the message.

    Raises: MalformedError: LA100.

    Example:
        >>> integer(np.int32(7), "extent")
        7
    """
    if type(value) is not int:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise malformed(argument, "must be an integer", value, code)
        value = int(value)
    if not -INT_LIMIT <= value < INT_LIMIT:
        raise malformed(argument, "must fit a signed 64-bit integer", value, code)
    return value


def validate(value: object, argument: str) -> IntTuple:
    """Return ``value`` as an int tuple of plain ints, or refuse it.

    Args:
        value: An integer or a tuple of such values, nested at most 64 deep, at most 10,000 leaves.
        argument: Name of the argument, for the message.

    Raises: MalformedError: LA100.

    Example:
        >>> validate((np.int64(4), (2, 2)), "shape")
        (4, (2, 2))
    """
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
        error = malformed(argument, "must be an integer or a tuple of integers", value)
        hint = _hint(value)
        raise MalformedError(replace(error.diagnostic, because=error.diagnostic.because + hint)) if hint else error
    return integer(value, argument)


def _hint(value: object) -> str:
    """Return what would help where a value is not an int tuple, or nothing."""
    if isinstance(value, str):
        return "; layoutalg.parse reads text"
    if isinstance(value, list):
        return "; a list is written as a tuple"
    return "; its .shape is one" if isinstance(getattr(value, "shape", None), int | tuple) else ""


def extents(value: object, argument: str = "shape") -> IntTuple:
    """Return ``validate`` of a shape, whose leaves are at least 0.

    Raises: MalformedError: LA100, LA103.

    Example:
        >>> extents((4, (2, 0)))
        (4, (2, 0))
    """
    shape = validate(value, argument)
    if any(extent < 0 for extent in flatten(shape)):
        raise malformed(argument, "must have extents >= 0", shape, "LA103")
    return shape


def _count(argument: str, seen: list[int]) -> None:
    seen[0] += 1
    if seen[0] > TUPLE_MODES:
        raise MalformedError(
            Diagnostic(
                code="LA100", what=f"{argument} is malformed", because=f"{argument} has more than {TUPLE_MODES} modes"
            )
        )


def flatten(value: IntTuple) -> tuple[int, ...]:
    """Return the leaves from left to right.

    Example:
        >>> flatten(((2, 3), 4, ((5,),)))
        (2, 3, 4, 5)
    """
    if isinstance(value, int):
        return (value,)
    leaves: list[int] = []
    _collect(value, leaves)
    return tuple(leaves)


def _collect(value: IntTuple, leaves: list[int]) -> None:
    if isinstance(value, int):
        leaves.append(value)
    else:
        for entry in value:
            _collect(entry, leaves)


def unflatten(flat: tuple[int, ...], profile: IntTuple) -> IntTuple:
    """Return the leaves of ``flat`` nested like ``profile``; only the structure of ``profile`` counts.

    Raises: MalformedError: LA100.

    Example:
        >>> unflatten((2, 3, 4), ((0, 0), 0))
        ((2, 3), 4)
    """
    leaves = len(flatten(profile))
    if leaves != len(flat):
        raise malformed("flat", f"must have {leaves} entries, one per leaf of the profile", flat)
    return _nest(iter(flat), profile)


def _nest(leaves: Iterator[int], profile: IntTuple) -> IntTuple:
    if isinstance(profile, int):
        return next(leaves)
    return tuple([_nest(leaves, entry) for entry in profile])


def product(value: IntTuple) -> int:
    """Return the product of the leaves; 1 for the empty tuple.

    Example:
        >>> product(((2, 3), 4))
        24
    """
    if isinstance(value, int):
        return value
    return math.prod(flatten(value))


def rank(value: IntTuple) -> int:
    """Return the number of top-level modes; an int has one.

    Example:
        >>> rank(7), rank((2, (3, 4))), rank(())
        (1, 2, 0)
    """
    return 1 if isinstance(value, int) else len(value)


def depth(value: IntTuple) -> int:
    """Return how deep the value nests: 0 for an int, 1 for a tuple of ints.

    Example:
        >>> depth(7), depth((2, 3)), depth((2, (3, 4)))
        (0, 1, 2)
    """
    if isinstance(value, int):
        return 0
    return 1 + max((depth(entry) for entry in value), default=0)


def congruent(a: IntTuple, b: IntTuple) -> bool:
    """Return whether both values nest alike.

    Example:
        >>> congruent((2, (3, 4)), (0, (0, 1))), congruent((2, 3), 6)
        (True, False)
    """
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int)
    return len(a) == len(b) and all(congruent(x, y) for x, y in zip(a, b, strict=True))


def compact_col_major(shape: IntTuple) -> IntTuple:
    """Return the strides of the compact column-major layout: each the product of the extents before it.

    Example:
        >>> compact_col_major((4, (2, 3)))
        (1, (4, 8))
    """
    if isinstance(shape, int):
        return 1
    strides: list[int] = []
    current = 1
    for extent in flatten(shape):
        strides.append(current)
        current *= extent
    return unflatten(tuple(strides), shape)


def crd2idx(coord: IntTuple, shape: IntTuple, stride: IntTuple) -> int:
    """Return the offset of a coordinate: the sum of digits times strides.

    Mathematically: an int coordinate of a tuple mode is read as a colexicographic 1-D coordinate of that mode; a
    coordinate outside the domain is refused, never continued past the last mode.

    Args:
        coord: An int, or a tuple with one entry per mode, nested as far as wanted.
        shape: Extents.
        stride: Strides, congruent to ``shape``. Any unit; the result has the same.

    Raises: MalformedError: LA104. AdmissibilityError: LA105.

    Example:
        >>> crd2idx((1, 5), (4, 8), (8, 1)), crd2idx(21, (4, 8), (8, 1))
        (13, 13)

    Source: CuTe ``crd2idx``; unlike it, bounded.
    """
    checked = validate(coord, "coordinate")
    if not congruent(shape, stride):
        raise malformed("stride", f"must be congruent to the shape {shape_text(shape)}", stride)
    return offset_of(checked, shape, stride)


def offset_of(coord: IntTuple, shape: IntTuple, stride: IntTuple) -> int:
    """Return ``crd2idx`` of operands already validated: ``shape`` and ``stride`` congruent, all entries plain ints."""
    if isinstance(coord, int):
        rest = coord
        total = 0
        for extent, step in zip(flatten(shape), flatten(stride), strict=True):
            if extent <= 0:
                raise _outside(coord, shape)
            rest, digit = divmod(rest, extent)
            total += digit * step
        if rest:
            raise _outside(coord, shape)
        return total
    if isinstance(shape, int) or isinstance(stride, int) or len(coord) != len(shape):
        raise malformed("coordinate", f"must match the shape {shape_text(shape)}", coord, "LA104")
    return sum([offset_of(c, s, d) for c, s, d in zip(coord, shape, stride, strict=True)])


def _outside(coord: int, shape: IntTuple) -> AdmissibilityError:
    return AdmissibilityError(
        Diagnostic(
            code="LA105",
            what="the coordinate lies outside the domain",
            because=f"{coord} is not in [0, {product(shape)}), the extent of {shape_text(shape)}",
            witness={"coordinate": coord},
        )
    )


def idx2crd(index: int, shape: IntTuple) -> IntTuple:
    """Return the natural coordinate, nested like ``shape``, of a 1-D colexicographic coordinate.

    Raises: AdmissibilityError: LA105.

    Example:
        >>> idx2crd(13, (4, (2, 3)))
        (1, (1, 1))

    Source: CuTe ``idx2crd``.
    """
    index = integer(index, "index")
    if not 0 <= index < product(shape):
        raise _outside(index, shape)
    digits: list[int] = []
    for extent in flatten(shape):
        index, digit = divmod(index, extent)
        digits.append(digit)
    return unflatten(tuple(digits), shape)


def shape_text(value: IntTuple) -> str:
    """Return the value in the field's notation: no blanks, no comma after a single entry.

    Example:
        >>> shape_text((4, (2, 2), (3,)))
        '(4,(2,2),(3))'
    """
    if isinstance(value, int):
        return str(value)
    return "(" + ",".join([shape_text(entry) for entry in value]) + ")"
