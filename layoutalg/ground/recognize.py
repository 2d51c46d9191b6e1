"""Recognize the layout that produces a table of values.

The coalesced modes of a table are unique: its entry at 1 is the first stride, the first k where the entry at k is not k
times that stride is the first extent, and the rest follows on the multiples of that extent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias, overload

import numpy as np
import numpy.typing as npt

IntArray: TypeAlias = npt.NDArray[np.int64]
Modes: TypeAlias = tuple[tuple[int, int], ...]
_BLOCK = 2**12
_SUSPECTS = 16
_SAFE = 2**61
_TOP = 62


@dataclass(frozen=True, slots=True)
class Departure:
    """The first coordinate where a table differs from what its earlier entries force, with both values."""

    coordinate: int
    value: int
    forced: int


def strided(table: IntArray) -> Modes | Departure:
    """Return the coalesced modes (extent, stride), fastest first, after subtracting the first entry.

    Args:
        table: At least one entry.

    Complexity: O(N), one vectorised pass per mode.

    Example:
        >>> strided(np.array([7, 9, 8, 10])), strided(np.array([0, 1, 4]))
        (((2, 2), (2, 1)), Departure(coordinate=2, value=4, forced=2))
    """
    return _walk(table, len(table))


def _walk(table: IntArray, total: int) -> Modes | Departure:
    """Return ``strided`` of a table of ``total`` entries, given only a prefix."""
    if int(table.max()) >= _SAFE or int(table.min()) <= -_SAFE:
        table = table.astype(object)  # differences and their multiples could overflow 64 bits
    first = int(table[0])
    count, done = len(table), 1
    modes: list[tuple[int, int]] = []
    while done < count:
        line = table[::done]
        stride = int(line[1]) - first
        breaks = np.flatnonzero(line != first + stride * np.arange(len(line), dtype=np.int64).astype(table.dtype))
        extent = int(breaks[0]) if breaks.size else len(line)
        block = table[: min(done * extent, count)]
        steps = (np.arange(len(block), dtype=np.int64) // done).astype(table.dtype) * stride
        forced = np.resize(table[:done], len(block)) + steps
        wrong = np.flatnonzero(block != forced)
        at = int(wrong[0]) if wrong.size else done * extent
        if wrong.size or (breaks.size and total % at):
            return Departure(at, int(table[at]), int(forced[at]) if wrong.size else first + extent * stride)
        modes.append((extent, stride))
        done *= extent
    return tuple(modes)


def linear(table: IntArray) -> tuple[tuple[int, ...], int] | Departure:
    """Return (columns, constant) of a table of 2**n entries as an affine map over F2, or its first departure."""
    constant = int(table[0])
    columns = tuple(int(table[1 << bit]) ^ constant for bit in range(len(table).bit_length() - 1))
    forced = table[:1]
    for column in columns:
        forced = np.concatenate((forced, forced ^ column))
    wrong = np.flatnonzero(forced != table)
    if wrong.size:
        at = int(wrong[0])
        return Departure(at, int(table[at]), int(forced[at]))
    return columns, constant


def swizzled(table: IntArray) -> tuple[tuple[int, int, int], Modes, int] | None:
    """Return (swizzle (bits, base, shift), modes, offset) such that the swizzled table is offset plus modes.

    The first of ``swizzled_forms``; None proves that no swizzle makes the table strided.

    Args:
        table: Values of magnitude below 2**61, at least one.

    Complexity: O(width^3) probes of a prefix; the whole table only if the prefix matches.

    Example:
        >>> swizzled(np.array([0, 1, 2, 4, 5, 6, 9, 8, 11]))
        ((1, 0, 3), ((3, 1), (3, 4)), 0)
    """
    for (bits, base, shift), modes in swizzled_forms(table):
        return (bits, base, shift), modes, _swizzle(table[:1], bits, base, shift).tolist()[0]
    return None


def swizzled_forms(table: IntArray) -> Iterator[tuple[tuple[int, int, int], Modes]]:
    """Yield every swizzle of at least one bit that makes the table strided, with the modes.

    Fewest bits first, then lowest base, then shortest shift. Complete up to equivalent swizzles: with w the bit width
    of the table and n entries, bits read above w are 0 or the sign, and bits written from w + log2(n) + 2 up are copies
    of one another that would have to be strided by themselves, so the table would already be strided. All other
    swizzles are tried.

    Args:
        table: Values of magnitude below 2**61, at least one.
    """
    low, high = int(table.min()), int(table.max())
    width = max(high.bit_length(), low.bit_length())
    written = min(_TOP, width + len(table).bit_length() + 1)
    read = written if low < 0 else width
    both = (written, read)
    probe = _Probe.of(table)
    for bits in range(1, max(both) // 2 + 1):
        for base in range(max(both) - 2 * bits + 1):
            for distance in range(bits, _TOP - base - bits + 1):
                for shift in (distance, -distance):
                    source, target = (base + distance, base) if shift > 0 else (base, base + distance)
                    # bits read above the width are 0, so an equivalent swizzle with fewer bits was already tried
                    if source + bits > read or target + bits > written:
                        continue
                    found = probe.modes(bits, base, shift)
                    if found is not None:
                        yield (bits, base, shift), found


@overload
def _swizzle(table: int, bits: int, base: int, shift: int) -> int: ...
@overload
def _swizzle(table: IntArray, bits: int, base: int, shift: int) -> IntArray: ...
def _swizzle(table: int | IntArray, bits: int, base: int, shift: int) -> int | IntArray:
    picked = table & ((1 << bits) - 1) << (base + max(shift, 0))
    return table ^ (picked >> shift if shift >= 0 else picked << -shift)


@dataclass(frozen=True, slots=True)
class _Probe:
    """A table with data for rejecting most swizzles at once.

    The extents of a strided table multiply to divisors of its size, so its entries at 0 and at the divisors fix the
    only modes it can have. A coordinate that refuted one swizzle usually refutes the next one too.
    """

    table: IntArray  # the values
    weights: tuple[int, ...]  # the proper divisors of the size, ascending
    units: IntArray  # the entries at 0 and at the weights
    suspects: list[int]  # coordinates that refuted a swizzle, latest first; updated during the search

    @classmethod
    def of(cls, table: IntArray) -> _Probe:
        size = len(table)
        small = [weight for weight in range(1, math.isqrt(size) + 1) if size % weight == 0]
        weights = sorted({*small, *(size // weight for weight in small)} - {size})
        return cls(table, tuple(weights), table[[0, *weights]], [])

    def modes(self, bits: int, base: int, shift: int) -> Modes | None:
        """Return the modes of the swizzled table, or None if it is not strided."""
        first, *rest = _swizzle(self.units, bits, base, shift).tolist()
        modes = _only_modes(first, dict(zip(self.weights, rest, strict=True)), len(self.table))
        for place, at in enumerate(self.suspects):
            if _swizzle(int(self.table[at]), bits, base, shift) != _value(first, modes, at):
                self.suspects.insert(0, self.suspects.pop(place))
                return None
        ends = [(extent - 1) * stride for extent, stride in modes]
        if first + sum(min(end, 0) for end in ends) < -(2**63) or first + sum(max(end, 0) for end in ends) >= 2**63:
            return None  # the forced values overflow 64 bits, the swizzled ones do not
        for stop in (_BLOCK, len(self.table)):
            block = _swizzle(self.table[:stop], bits, base, shift)
            wrong = np.flatnonzero(block != _beginning(first, modes, len(block)))
            if wrong.size:
                self.suspects.insert(0, int(wrong[0]))
                del self.suspects[_SUSPECTS:]
                return None
        return modes


def _only_modes(first: int, units: dict[int, int], size: int) -> Modes:
    """Return the only coalesced modes that a strided table with these entries can have."""
    done, modes = 1, []
    while done < size:
        stride, extent = units[done] - first, size // done
        for weight, value in units.items():
            if weight > done and weight % done == 0 and value != first + weight // done * stride:
                extent = weight // done
                break
        modes.append((extent, stride))
        done *= extent
    return tuple(modes)


def _value(first: int, modes: Modes, index: int) -> int:
    for extent, stride in modes:
        index, digit = divmod(index, extent)
        first += digit * stride
    return first


def _beginning(first: int, modes: Modes, count: int) -> IntArray:
    """Return the first ``count`` entries of a strided table, or all if it has fewer."""
    table = np.array([first], dtype=np.int64)
    for extent, stride in modes:
        steps = np.arange(min(extent, -(-count // len(table))), dtype=np.int64) * stride
        table = (steps[:, None] + table).reshape(-1)[:count]
    return table
