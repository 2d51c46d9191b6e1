"""Mixed-radix digits: lists of (extent, stride), the flat form that every family computes with; named axes.

Notation: a digit list is a tuple of (extent, stride) pairs, fastest first. It stands for the function that splits a
flat index i into digits, i = c_0 + s_0 (c_1 + s_1 (c_2 + ...)) with 0 <= c_k < s_k, and returns the sum of c_k d_k.
In ``Digits``, the digits of a bijection, a negative stride reverses the digit. A tuple of weights in place of a stride
belongs to a digit of extent 2: it flips the target bits of these weights, and several digits may flip the same bit.
These target bits are called *shared*.

``merge`` is a complete normal form: two digit lists of equal size are the same function if and only if their merged
forms are equal. The table fixes the first stride as its entry at 1 and the first extent as the first k where the entry
at k is not k times that stride; the rest follows by induction.

Digit boundaries are running products, so they form a divisibility chain. Two digit systems have a common refinement
exactly when the union of their boundaries is such a chain.

Axes are (name, extent) pairs, fastest first; their flat indices are colexicographic (first axis fastest).

References: J. Cecka, CuTe Layout Representation and Algebra, arXiv:2603.02298.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import gcd
from typing import Any, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt

from layoutalg.ground.check import Checker

Flat: TypeAlias = tuple[tuple[int, int], ...]
Stride: TypeAlias = int | tuple[int, ...]
Digits: TypeAlias = tuple[tuple[int, Stride], ...]
AnyStride = TypeVar("AnyStride", bound=Stride)
IntArray: TypeAlias = npt.NDArray[np.int64]


@overload
def merge(flat: Flat) -> Flat: ...


@overload
def merge(flat: Iterable[tuple[int, Stride]]) -> Digits: ...


def merge(flat: Iterable[tuple[int, Stride]]) -> Digits:
    """Return the normal form: no extent 1, neighbours fused if the next stride continues the run.

    The normal form of an empty function (some extent 0) is ``((0, 0),)``, that of a single point ``()``.

    Example:
        >>> merge(((2, 1), (1, 7), (4, 2), (3, 100)))
        ((8, 1), (3, 100))
        >>> merge([(2, 1), (3, 2), (5, -6), (2, (1, 30))])
        ((6, 1), (5, -6), (2, (1, 30)))
    """
    answer: list[tuple[int, Stride]] = []
    for extent, stride in flat:
        if extent == 1:
            continue
        if extent == 0:
            return ((0, 0),)
        # false for a tuple of weights: repeating it never gives a valid tuple, whose weights are distinct
        if answer and answer[-1][0] * answer[-1][1] == stride:
            answer[-1] = (answer[-1][0] * extent, answer[-1][1])
        else:
            answer.append((extent, stride))
    return tuple(answer)


def span(flat: Flat) -> tuple[int, int]:
    """Return the least and the greatest value; (0, 0) for an empty function."""
    low = high = 0
    for extent, stride in flat:
        if extent == 0:
            return 0, 0
        if stride < 0:
            low += (extent - 1) * stride
        else:
            high += (extent - 1) * stride
    return low, high


def evaluate(flat: Flat, index: int) -> int:
    """Return the value at a flat index inside the domain."""
    total = 0
    for extent, stride in flat:
        index, digit = divmod(index, extent)
        total += digit * stride
    return total


def split(index: int, extents: Iterable[int]) -> tuple[tuple[int, ...], int]:
    """Return the digits of a flat index, fastest first, and the rest beyond the last digit (0 inside the domain)."""
    digits: list[int] = []
    for extent in extents:
        index, digit = divmod(index, extent)
        digits.append(digit)
    return tuple(digits), index


def evaluate_many(flat: Flat, index: IntArray) -> IntArray:
    """Return the values at flat indices inside the domain, one vectorised step per digit."""
    total = np.zeros_like(index)
    last = len(flat) - 1
    for position, (extent, stride) in enumerate(flat):
        if position == last:
            total += index * stride
        else:
            index, digit = np.divmod(index, extent)
            total += digit * stride
    return total


def table(flat: Flat) -> IntArray:
    """Return the values at 0, 1, ..., size - 1 as an outer sum, slowest digit outermost."""
    values = np.zeros(1, dtype=np.int64)
    for extent, stride in flat:
        steps = np.arange(extent, dtype=np.int64) * stride if extent > 1 else np.zeros(extent, dtype=np.int64)
        values = np.add.outer(steps, values).reshape(-1)
    return values


def first_outside(flat: Flat, bound: int) -> int | None:
    """Return the least flat index whose value is negative or at least ``bound``, or None.

    Fixes digits from the slowest, without enumeration: each gets the least value from which the faster digits can still
    reach the bound.
    """
    if any(extent == 0 for extent, _ in flat):
        return None
    above = _first_reaching(flat, bound)
    below = _first_reaching(tuple([(extent, -stride) for extent, stride in flat]), 1)
    if above is None or below is None:
        return below if above is None else above
    return min(above, below)


def _first_reaching(flat: Flat, bound: int) -> int | None:
    """Return the least flat index with a value >= ``bound``."""
    reach = [0]
    for extent, stride in flat:
        reach.append(reach[-1] + max(0, (extent - 1) * stride))
    if reach[-1] < bound:
        return None
    index = 0
    need = bound
    for position in range(len(flat) - 1, -1, -1):
        extent, stride = flat[position]
        missing = need - reach[position]
        digit = 0 if missing <= 0 else -(-missing // stride)
        need -= digit * stride
        index = index * extent + digit
    return index


def weights(stride: Stride) -> tuple[int, ...]:
    """Return the weights of the target digits that a digit touches: the bits it flips, or ``abs(stride)``."""
    return (abs(stride),) if isinstance(stride, int) else stride


def shared_bits(modes: Iterable[tuple[int, Stride]]) -> frozenset[int]:
    """Return the weights of the shared target bits."""
    return frozenset(weight for _, stride in modes if isinstance(stride, tuple) for weight in stride)


def placed(modes: Iterable[tuple[int, AnyStride]]) -> Iterator[tuple[int, int, AnyStride]]:
    """Yield (weight in the source, extent, stride) of every digit."""
    weight = 1
    for extent, stride in modes:
        yield weight, extent, stride
        weight *= extent


def split_at(modes: Digits, source_cuts: Iterable[int], target_cuts: Iterable[int]) -> Digits | None:
    """Return the digits split so that none crosses a cut on either side; None if a cut does not divide.

    Shared target bits are split off as digits of their own.

    Args:
        modes: Digits of a bijection, fastest first.
        source_cuts: Weights at which a source digit must begin.
        target_cuts: Weights at which a target digit must begin.

    Example:
        >>> split_at(((12, 1),), [2], [4]), split_at(((6, 1),), [2], [3])
        (((2, 1), (2, 2), (3, 4)), None)
        >>> split_at(((8, 1), (2, (2, 8))), [], [])
        ((2, 1), (2, 2), (2, 4), (2, (2, 8)))
    """
    pieces: list[tuple[int, Stride]] = list(modes)
    ends = {end for weight in shared_bits(modes) for end in (weight, 2 * weight)}
    for on_target, cuts in ((False, source_cuts), (True, ends.union(target_cuts))):
        for cut in sorted(cuts):
            weight, answer = 1, list[tuple[int, Stride]]()
            for extent, stride in pieces:
                start = weight if not on_target else weights(stride)[0]
                if isinstance(stride, tuple):
                    if any(bit < cut < 2 * bit for bit in (stride if on_target else (weight,))):
                        return None
                    answer.append((extent, stride))
                elif start < cut < start * extent:
                    if cut % start or start * extent % cut:
                        return None
                    inner = cut // start
                    answer += [(inner, stride), (extent // inner, stride * inner)]
                else:
                    answer.append((extent, stride))
                weight *= extent
            pieces = answer
    return tuple(pieces)


def aligned(modes: Digits, cuts: Sequence[int]) -> Digits | None:
    """Return the digits split so that both sides share one list of boundaries that includes ``cuts``; else None.

    Example:
        >>> aligned(((6, 2), (2, 1)), [])
        >>> aligned(((4, 2), (2, 1)), [])
        ((2, 2), (2, 4), (2, 1))
    """
    pieces: Digits | None = modes
    known: set[int] = set()
    while pieces is not None:
        found = set(cuts) | {1}
        for weight, extent, stride in placed(pieces):
            found |= {weight, weight * extent}
            for place in weights(stride):
                found |= {place, place * extent}
        if any(second % first for first, second in pairwise(sorted(found))):
            return None
        if found == known:
            return pieces
        known = found
        pieces = split_at(pieces, found, found)
    return None


def chained(digits: Iterable[tuple[int, int]]) -> tuple[int, int] | None:
    """Return (weight, expected weight) of the first target digit that breaks the chain; None if it is complete.

    Args:
        digits: (weight, extent) of every digit of the target, in any order.
    """
    expected = 1
    for weight, extent in sorted(digits):
        if weight != expected:
            return weight, expected
        expected *= extent
    return None


def digit_extent(broken: npt.NDArray[np.bool_], weight: int) -> int:
    """Return the largest extent of a digit of weight ``weight`` that is consistent with the broken steps.

    Args:
        broken: For every x but the last ``weight`` ones, whether the step from x to x + weight differs from the first.
        weight: Weight of the digit.

    Returns:
        The greatest common divisor of the number of steps and of all x // weight + 1 with a broken step.
    """
    count = len(broken) // weight + 1
    places = np.flatnonzero(broken) // weight + 1
    some = gcd(count, *places[:256].tolist())
    if some == 1 or not (places % some).any():
        return some
    return gcd(some, int(np.gcd.reduce(places)))


def read_table(values: IntArray) -> Digits | None:
    """Return the only digits that a table can have if it is a digit map; the caller must check them.

    Mathematically: for a plain digit of weight p, f(x + p) - f(x) must equal f(p) - f(0) wherever the digit does not
    overflow. So its extent divides y + 1 for every y = x // p with another difference, and the gcd of these is the
    largest extent. If that is 1, the digit is a bit that flips shared target bits: those that no plain digit covers.

    Example:
        >>> read_table(np.array([0, 3, 1, 4, 2, 5])), read_table(np.array([0, 1, 3, 2]))
        (((2, 3), (3, 1)), ((2, (1,)), (2, (1, 2))))
    """
    size, weight = len(values), 1
    plain: list[tuple[int, int, int]] = []
    shared: list[int] = []
    while weight < size:
        step = int(values[weight] - values[0])
        extent = digit_extent(values[weight:] - values[:-weight] != step, weight)
        if extent > 1:
            plain.append((weight, extent, step))
        elif size // weight % 2:
            return None
        else:
            extent = 2
            shared.append(weight)
        weight *= extent
    starts = {abs(step): extent for _, extent, step in plain}
    free, expected = [], 1
    while expected < size:
        if expected not in starts:
            free.append(expected)
        expected *= starts.get(expected, 2)
    modes: list[tuple[int, int, Stride]] = [*plain]
    for place in shared:
        before, after = int(values[0]), int(values[place])
        flipped = tuple(bit for bit in free if (before // bit ^ after // bit) & 1)
        if not flipped:
            return None
        modes.append((place, 2, flipped))
    return tuple((extent, stride) for _, extent, stride in sorted(modes, key=lambda mode: mode[0]))


Axes: TypeAlias = tuple[tuple[str, int], ...]
Coordinate: TypeAlias = int | npt.NDArray[Any]
"""One coordinate or an array of them."""


def checked_axes(value: object, argument: str, check: Checker, low: int = 0) -> Axes:
    """Return a mapping or (name, extent) pairs as axes: distinct identifiers, extents of at least ``low``."""
    pairs = check.pairs(value, argument)
    for place, (name, extent) in enumerate(pairs):
        if type(extent) is not int or extent < low:
            pairs[place] = name, check.integer(extent, f"{argument}[{name!r}]", low)
    return tuple(pairs)


def size(axes: Axes) -> int:
    """Return the number of points."""
    return math.prod([extent for _, extent in axes])


def flat_index(axes: Axes, point: object, check: Checker, argument: str = "point") -> int:
    """Return the flat index of a point given by name, all axes present."""
    index, weight = 0, 1
    for (name, extent), value in zip(axes, by_name(axes, point, check, argument), strict=True):
        inside = type(value) is int and 0 <= value < extent
        index += weight * (value if inside else check.integer(value, name, 0, extent))
        weight *= extent
    return index


def point_at(axes: Axes, index: int) -> dict[str, int]:
    """Return the coordinates of a flat index inside the box."""
    point = {}
    for name, extent in axes:
        index, point[name] = divmod(index, extent)
    return point


def digits_of(axes: Axes, index: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    """Return one coordinate array per axis for flat indices inside the box."""
    digits = []
    for _, extent in axes:
        index, digit = np.divmod(index, extent) if extent else (index, index)
        digits.append(digit)
    return digits


def by_name(axes: Axes, coords: object, check: Checker, argument: str = "coords") -> list[Any]:
    """Return the values of a mapping whose keys are exactly the axes, in axis order."""
    if isinstance(coords, Mapping) and len(coords) == len(axes) and all(name in coords for name, _ in axes):
        return [coords[name] for name, _ in axes]
    names = [name for name, _ in axes]
    if not isinstance(coords, Mapping):
        raise check.malformed(argument, f"must map each of {names} to integers", coords)
    raise check.malformed(argument, f"must name the axes {names}", list(coords))


def coordinates(axes: Axes, coords: object, check: Checker) -> tuple[list[Coordinate], tuple[int, ...] | None]:
    """Return checked coordinates, one entry per axis, and their broadcast shape (None if all are ints).

    Args:
        axes: The box.
        coords: Axis name -> integer or array of integers.
        check: Reports the first coordinate outside its axis.
    """
    given = by_name(axes, coords, check)
    values = [check.coordinate(value, name, extent) for (name, extent), value in zip(axes, given, strict=True)]
    if all(type(value) is int for value in values):
        return values, None
    shapes = [np.shape(value) for value in values]
    try:
        return values, np.broadcast_shapes(*shapes)
    except ValueError:
        raise check.malformed("coords", "must be arrays that broadcast together", shapes) from None
