"""Mixed-radix digits as lists of modes: splitting, joining, aligning, and recognising them in a table.

Main definitions: ``Modes``, ``coalesce``, ``split_at``, ``aligned``, ``chained``, ``read_table``.

Notation: a mode (extent, stride) is one digit of the source, fastest first. An integer stride adds digit * stride, a
negative one the reversed digit. A tuple of weights belongs to a bit: it flips the target bits of these weights, which
are digits of extent 2 of the target and may be flipped by several modes. These target bits are called *shared*.

Implementation notes: the boundaries of a digit system are running products, so they form a divisibility chain. Two
systems have a common refinement exactly when the union of their boundaries is such a chain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from math import gcd
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

IntArray: TypeAlias = npt.NDArray[np.int64]
Stride: TypeAlias = int | tuple[int, ...]
Modes: TypeAlias = tuple[tuple[int, Stride], ...]


def weights(stride: Stride) -> tuple[int, ...]:
    """Return the weights of the target digits that a mode touches: the bits it flips, or the size of its stride.

    Example:
        >>> weights(-6), weights((1, 4))
        ((6,), (1, 4))
    """
    return (abs(stride),) if isinstance(stride, int) else stride


def shared_bits(modes: Iterable[tuple[int, Stride]]) -> frozenset[int]:
    """Return the weights of the shared target bits.

    Example:
        >>> sorted(shared_bits(((2, 1), (3, 4), (2, (1, 2)))))
        [1, 2]
    """
    return frozenset(weight for _, stride in modes if isinstance(stride, tuple) for weight in stride)


def placed(modes: Iterable[tuple[int, Stride]]) -> Iterator[tuple[int, int, Stride]]:
    """Yield (weight in the source, extent, stride) of every mode.

    Example:
        >>> list(placed(((2, 3), (3, 1))))
        [(1, 2, 3), (2, 3, 1)]
    """
    weight = 1
    for extent, stride in modes:
        yield weight, extent, stride
        weight *= extent


def coalesce(modes: Iterable[tuple[int, Stride]]) -> Modes:
    """Return the modes without extent 1 and with every two neighbours that make one mode joined.

    Example:
        >>> coalesce([(2, 1), (1, 7), (3, 2), (5, -6), (2, (1, 30))])
        ((6, 1), (5, -6), (2, (1, 30)))
    """
    merged: list[tuple[int, Stride]] = []
    for extent, stride in modes:
        if extent == 1:
            continue
        if merged:
            width, first = merged[-1]
            if isinstance(first, int) and isinstance(stride, int) and width * first == stride:
                merged[-1] = (width * extent, first)
                continue
        merged.append((extent, stride))
    return tuple(merged)


def split_at(modes: Modes, source_cuts: Iterable[int], target_cuts: Iterable[int]) -> Modes | None:
    """Return the modes split so that no mode crosses a cut on either side; None where a cut does not divide.

    Shared target bits become modes of their own as well.

    Args:
        modes: Modes of a digit map, fastest first.
        source_cuts: Numbers p; index positions x // p must begin a digit.
        target_cuts: The same for the values.

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


def aligned(modes: Modes, cuts: Sequence[int]) -> Modes | None:
    """Return the modes split so that both sides use one list of digit boundaries, ``cuts`` among them; else None.

    Example:
        >>> aligned(((6, 2), (2, 1)), [])
        >>> aligned(((4, 2), (2, 1)), [])
        ((2, 2), (2, 4), (2, 1))
    """
    pieces: Modes | None = modes
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
    """Return (weight, expected weight) of the first target digit that breaks the chain; None where it is whole.

    Args:
        digits: (weight, extent) of every digit of the target, in any order.

    Example:
        >>> chained([(3, 2), (1, 3)]), chained([(1, 2), (4, 2)])
        (None, (4, 2))
    """
    expected = 1
    for weight, extent in sorted(digits):
        if weight != expected:
            return weight, expected
        expected *= extent
    return None


def digit_extent(broken: npt.NDArray[np.bool_], weight: int) -> int:
    """Return the longest digit from a boundary on that no broken step stops.

    Args:
        broken: For every x but the last ``weight`` ones, whether the step from x to x + weight is not the usual one.
        weight: The boundary.

    Returns:
        The greatest common divisor of the number of steps and of all x // weight + 1 with a broken step.

    Example:
        >>> digit_extent(np.array([False, True, False, True, False]), 1)
        2
    """
    count = len(broken) // weight + 1
    places = np.flatnonzero(broken) // weight + 1
    some = gcd(count, *places[:256].tolist())
    if some == 1 or not (places % some).any():
        return some
    return gcd(some, int(np.gcd.reduce(places)))


def read_table(values: IntArray) -> Modes | None:
    """Return modes that a table must have if it is a digit map at all; to be checked by the caller.

    Mathematically: from a boundary p on, the longest plain digit is decided by the function. f(x + p) - f(x) must equal
    f(p) - f(0) wherever the digit does not overflow; so its extent divides y + 1 for every y = x // p with another
    difference, and the greatest common divisor of these is the longest extent. Where it is 1, the digit is a bit that
    shares a target bit. These leave open which target bits are the shared ones: those that no plain digit covers.

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
