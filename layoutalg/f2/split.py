"""Split an F2 map into one swizzle and a map whose columns have disjoint supports.

Notation: ``Sw<bits, base, shift>`` xors ``bits`` consecutive bits of a number into others: with a positive shift the
bits from ``base + shift`` into those from ``base``, with a negative one the bits from ``base`` into those from
``base - shift``. The two fields are disjoint (``bits <= |shift|``), so a swizzle is its own inverse.
"""

from __future__ import annotations

from collections.abc import Sequence

from layoutalg.f2 import matrix


def one_swizzle(columns: Sequence[int]) -> tuple[int, int, int] | None:
    """Return (bits, base, shift) of a swizzle S such that the columns of S M have disjoint supports, or None.

    Mathematically: S must write every output bit that depends on two or more input bits, and needs to write no other.
    The written bits are consecutive, so for each shift the shortest candidate runs from the lowest such bit to the
    highest; a longer one works only if this one does. The search over shifts is therefore complete. The shortest
    working shift is returned, positive before negative; (0, 0, 0) means that no swizzle is needed.

    Complexity: O(width^2).

    Example:
        >>> one_swizzle((1, 2, 4, 8 | 1)), one_swizzle((1, 2)), one_swizzle((3, 1, 1))
        ((1, 0, 3), (0, 0, 0), None)
    """
    width = max((column.bit_length() for column in columns), default=0)
    rows = matrix.transpose(columns, width)
    heavy = [position for position, row in enumerate(rows) if row & (row - 1)]
    if not heavy:
        return 0, 0, 0
    low, bits = heavy[0], heavy[-1] - heavy[0] + 1
    for distance in range(bits, width):
        for shift in (distance, -distance):
            if low + shift >= 0 and low + shift + bits <= width:
                mixed = [rows[position] ^ rows[position + shift] for position in range(low, low + bits)]
                if not any(row & (row - 1) for row in mixed):
                    return bits, low if shift > 0 else low - distance, shift
    return None


def swizzled(value: int, bits: int, base: int, shift: int) -> int:
    """Return ``Sw<bits, base, shift>`` of a number (two's complement if negative).

    Example:
        >>> swizzled(0b1_000_0000, 3, 4, 3)
        144
    """
    picked = value & source_mask(bits, base, shift)
    return value ^ (picked >> shift if shift >= 0 else picked << -shift)


def source_mask(bits: int, base: int, shift: int) -> int:
    """Return the mask of bits that a swizzle reads; it writes those that the opposite shift reads.

    Example:
        >>> source_mask(2, 0, 3), source_mask(2, 0, -3)
        (24, 3)
    """
    return ((1 << bits) - 1) << (base + max(0, shift))


def swizzle_period(bits: int, base: int, shift: int) -> int:
    """Return the least P > 0 such that the swizzle commutes with adding P.

    Example:
        >>> swizzle_period(3, 4, 3), swizzle_period(0, 4, 3)
        (1024, 1)
    """
    return 1 << (base + bits + abs(shift)) if bits else 1


def swizzle_columns(bits: int, base: int, shift: int, columns: Sequence[int]) -> tuple[int, ...]:
    """Return the swizzled columns: ``Sw<bits, base, shift>`` applied to each.

    Example:
        >>> swizzle_columns(1, 0, 3, (8, 4))
        (9, 4)
    """
    return tuple([swizzled(column, bits, base, shift) for column in columns])
