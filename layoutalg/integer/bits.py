"""The values of one affine form on a box, as a bitset in one Python integer.

Implementation notes: axes are added one by one; the union of the shifted copies is built by doubling, so an axis of
extent s costs about 2 log s shifts of the whole set. A population count shows whether two copies overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layoutalg.ground import clock
from layoutalg.ground.limits import TABLE_BYTES
from layoutalg.integer.forms import span
from layoutalg.integer.matrix import Vector

BITSET_VALUES = 2**27
"""Largest range of candidate values."""


@dataclass(frozen=True, slots=True)
class ValueSet:
    """Values as bits: bit k stands for ``low + k``; ``collision`` is two points with the same value, or None."""

    low: int
    count: int
    bits: int
    collision: tuple[Vector, Vector] | None

    def first_missing(self, low: int, high: int) -> int | None:
        """Return the first value of [low, high) not in the set, or None."""
        if low < self.low:
            return low if low < high else None
        absent = ~(self.bits >> (low - self.low))
        found = low + (absent & -absent).bit_length() - 1
        return found if found < high else None


class _Shift:
    """Adds an amount to every value of a set, modulo the modulus if there is one."""

    def __init__(self, modulus: int) -> None:
        self.modulus = modulus
        self.mask = (1 << modulus) - 1 if modulus else 0

    def __call__(self, bits: int, amount: int) -> int:
        if not self.modulus:
            return bits << amount if amount >= 0 else bits >> -amount
        turn = amount % self.modulus
        return ((bits << turn) | (bits >> (self.modulus - turn))) & self.mask


def _union(bits: int, stride: int, extent: int, shift: _Shift) -> int:
    """Return the union of ``bits`` moved by 0, stride, ..., (extent - 1) stride."""
    total, count = bits, 1
    for digit in bin(extent)[3:]:
        total |= shift(total, count * stride)
        count *= 2
        if digit == "1":
            total = bits | shift(total, stride)
            count += 1
    return total


def value_set(row: Sequence[int], constant: int, modulus: int, extents: Sequence[int], limit: int) -> ValueSet | None:
    """Return the values of ``row x + constant`` on a box; None above ``limit`` candidates or the byte limit.

    Args:
        row: Coefficients.
        constant: The constant.
        modulus: The modulus of the values, or 0.
        extents: The box; must not be empty.
        limit: Most candidate values.

    Example:
        >>> found = value_set((2, 3), 0, 0, (2, 2), 100)
        >>> bin(found.bits), found.collision, found.first_missing(0, 9)
        ('0b101101', None, 1)
    """
    low, high = (0, modulus - 1) if modulus else span(row, constant, extents)
    # one set is kept per axis
    if high - low >= limit or (high - low) // 8 * (len(row) + 3) > TABLE_BYTES:
        return None
    shift = _Shift(modulus)
    bits = 1 << (constant % modulus if modulus else constant - low)
    stages = [bits]
    collision: tuple[Vector, Vector] | None = None
    for place, (stride, extent) in enumerate(zip(row, extents, strict=True)):
        clock.check("the values of a layout")
        before = stages[-1]
        bits = _union(before, stride, extent, shift)
        if collision is None and bits.bit_count() != before.bit_count() * extent:
            collision = _meeting(stages, row, extents, place, shift)
        stages.append(bits)
    return ValueSet(low, high - low + 1, bits, collision)


def point_of(row: Sequence[int], constant: int, modulus: int, extents: Sequence[int], value: int) -> Vector:
    """Return a point of a box where the form takes a value, which must be one of its values.

    Example:
        >>> point_of((2, 3), 1, 0, (2, 2), 4)
        (0, 1)
    """
    low = 0 if modulus else span(row, constant, extents)[0]
    shift = _Shift(modulus)
    stages = [1 << (constant % modulus if modulus else constant - low)]
    for stride, extent in zip(row, extents, strict=True):
        stages.append(_union(stages[-1], stride, extent, shift))
    return _back([*stages, 0], [*row, 0], [*extents, 1], len(extents), 0, 1 << (value - low), shift)[:-1]


def _meeting(
    stages: Sequence[int], row: Sequence[int], extents: Sequence[int], place: int, shift: _Shift
) -> tuple[Vector, Vector]:
    """Return two points that first share a value when the axis ``place`` is added."""
    before, seen, second = stages[place], stages[place], 0
    both = 0
    while not both:
        clock.check("the first collision of a layout")
        second += 1
        moved = shift(before, second * row[place])
        both = seen & moved
        seen |= moved
    value = both & -both
    first = 0
    while not shift(before, first * row[place]) & value:
        clock.check("the first collision of a layout")
        first += 1
    return _back(stages, row, extents, place, first, value, shift), _back(
        stages, row, extents, place, second, value, shift
    )


def _back(
    stages: Sequence[int], row: Sequence[int], extents: Sequence[int], place: int, digit: int, value: int, shift: _Shift
) -> Vector:
    """Return a point with ``digit`` at ``place`` and zeros above whose value is the given bit."""
    point = [0] * len(extents)
    point[place] = digit
    value = shift(value, -digit * row[place])
    for axis in range(place - 1, -1, -1):
        for t in range(extents[axis]):
            clock.check("a point with a given value")
            earlier = shift(value, -t * row[axis])
            if earlier & stages[axis]:
                point[axis], value = t, earlier
                break
    return tuple(point)
