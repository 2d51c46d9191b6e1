"""Nested tuples of integers: the shapes, strides and coordinates of CuTe layouts.

Notation: an int tuple is an int (a leaf) or a tuple of int tuples. 1-D coordinates are colexicographic: the first leaf
runs fastest.

Implementation notes: user input enters through ``validate``, which bounds depth, leaf count and the signed 64-bit
range first, so all later recursion is shallow. Values are Python ints.

References: CuTe documentation of NVIDIA CUTLASS, "Layouts" and "Layout algebra"; CuTe ``ceil_div``, ``product_each``,
``compatible``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

import numpy as np

from layoutalg.ground.check import Checker
from layoutalg.ground.errors import Diagnostic, MalformedError
from layoutalg.ground.limits import TUPLE_DEPTH, TUPLE_MODES

IntTuple: TypeAlias = "int | tuple[IntTuple, ...]"
Leaf = TypeVar("Leaf")

INT_LIMIT = 2**63


def malformed(argument: str, rule: str, actual: object, code: str = "LA100") -> MalformedError:
    """Return the error for a bad argument: its name, the rule and the value."""
    hint = "; layoutalg.parse reads text" if isinstance(actual, str) and "ayout" in rule else ""
    return Checker(code).malformed(argument, rule, actual, hint)


def integer(value: object, argument: str, code: str = "LA100") -> int:
    """Return ``value`` as an int in the signed 64-bit range.

    Raises: MalformedError: LA100, or ``code``.

    Example:
        >>> integer(np.int32(7), "extent")
        7
    """
    number = value if type(value) is int else Checker(code).integer(value, argument)
    if not -INT_LIMIT <= number < INT_LIMIT:
        raise malformed(argument, "must fit a signed 64-bit integer", number, code)
    return number


def validate(value: object, argument: str) -> IntTuple:
    """Return ``value`` as an int tuple of plain ints, or raise.

    Args:
        value: An integer or a tuple of such values, nested at most 64 deep, with at most 10,000 leaves.
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
    """Return a hint for a value that is not an int tuple, or an empty string."""
    if isinstance(value, str):
        return "; layoutalg.parse reads text"
    if isinstance(value, list):
        return "; a list is written as a tuple"
    return "; its .shape is one" if isinstance(getattr(value, "shape", None), int | tuple) else ""


def extents(value: object, argument: str = "shape") -> IntTuple:
    """``validate`` a shape, whose leaves must be >= 0.

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
        because = f"{argument} has more than {TUPLE_MODES} modes"
        raise MalformedError(Diagnostic("LA100", f"{argument} is malformed", because=because))


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
    return graft(iter(flat), profile)


def graft(leaves: Iterator[Leaf], profile: IntTuple) -> Leaf | tuple[Any, ...]:
    """Replace the leaves of ``profile`` from left to right by any values, including nested tuples.

    Example:
        >>> graft(iter([1, (7, 8), 3]), (4, (2, 2)))
        (1, ((7, 8), 3))
    """
    if isinstance(profile, int):
        return next(leaves)
    return tuple([graft(leaves, entry) for entry in profile])


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
    """Return the nesting depth: 0 for an int, 1 for a tuple of ints.

    Example:
        >>> depth(7), depth((2, 3)), depth((2, (3, 4)))
        (0, 1, 2)
    """
    if isinstance(value, int):
        return 0
    return 1 + max((depth(entry) for entry in value), default=0)


def congruent(a: IntTuple, b: IntTuple) -> bool:
    """Return whether both values have the same nesting.

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


def shape_text(value: IntTuple) -> str:
    """Return the value in CuTe notation: no blanks, no comma after a single entry.

    Example:
        >>> shape_text((4, (2, 2), (3,)))
        '(4,(2,2),(3))'
    """
    if isinstance(value, int):
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

    Raises: MalformedError: LA147.

    Example:
        >>> ceil_div(10, 4), ceil_div((6, 4), 4), ceil_div((6, 4), 12), ceil_div((6, 4), (4, 2))
        (3, (2, 4), (1, 2), (2, 2))
    """
    shape = validate(shape, "shape")
    divisor = validate(divisor, "divisor")
    if any(extent < 0 for extent in flatten(shape)):
        raise malformed("shape", "must have extents >= 0", shape, "LA147")
    if any(value < 1 for value in flatten(divisor)):
        raise malformed("divisor", "must be at least 1", divisor, "LA147")
    return _ceil_div(shape, divisor)


def steps_over(extent: int, step: int) -> int:
    """Return the least number of steps that cover an extent.

    Example:
        >>> steps_over(10, 4)
        3
    """
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

    Raises: MalformedError: LA100, LA103.

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

    Raises: MalformedError: LA100, LA103.

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
