"""Count the turns of one group of lanes: by enumeration of its words, and by ranks over F2.

Main statements: lanes that touch one word are served together and different words of one bank take turns, so a group
takes as many turns as its busiest bank has different words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from layoutalg.f2 import matrix

BANKS = 32
WORD_BYTES = 4
LANES = 32
JOINS = (1, 2)
"""On NVIDIA, neighbouring groups of a load merge if every lane shares its address with lane ^ one of these."""
Offsets: TypeAlias = "list[int | None]"
"""One byte offset per lane, None for an inactive one."""


def groups(offsets: Offsets, access_bits: int, joins: bool = False) -> tuple[tuple[int, ...], ...]:
    """Return the lanes that are served together: all up to 32 bits each, otherwise as many as access 32 words.

    Args:
        offsets: One offset per lane.
        access_bits: Bits per lane.
        joins: Whether neighbouring groups merge where lanes share addresses.

    Example:
        >>> [len(group) for group in groups([16 * lane for lane in range(32)], 128)]
        [8, 8, 8, 8]
    """
    together = min(LANES, LANES * 32 // access_bits)
    if joins and any(shared(offsets, step) for step in JOINS):
        together *= 2
    return tuple(tuple(range(at, min(at + together, len(offsets)))) for at in range(0, len(offsets), together))


def shared(offsets: Offsets, step: int) -> bool:
    """Return whether every lane shares its address with lane ^ step, inactive lanes aside."""
    for lane, offset in enumerate(offsets):
        other = offsets[lane ^ step] if lane ^ step < len(offsets) else None
        if offset is not None and other is not None and other != offset:
            return False
    return True


def touched(offsets: Offsets, group: Sequence[int], size: int, banks: int = BANKS) -> list[dict[int, int]]:
    """Return for every bank the words that a group touches, each with the first lane that does.

    Args:
        offsets: Byte offset of every lane, None for an inactive one.
        group: The lanes.
        size: Bytes accessed per lane.
        banks: Number of banks.
    """
    found: list[dict[int, int]] = [{} for _ in range(banks)]
    for lane in group:
        offset = offsets[lane]
        if offset is not None:
            for word in words(offset, size):
                found[word % banks].setdefault(word, lane)
    return found


def words(offset: int, size: int) -> range:
    """Return the words of an access of ``size`` bytes."""
    first = offset // WORD_BYTES
    return range(first, first + max(1, size // WORD_BYTES))


def degree(images: Sequence[int], size: int, banks: int = BANKS) -> tuple[int, int]:
    """Return the turns of one group, and those of as many words evenly spread, by ranks.

    Args:
        images: The bytes that the bits of a lane number in the group contribute, linearly over F2.
        size: Bytes accessed per lane, a power of two.
        banks: Number of banks.

    Example:
        >>> degree([128, 256, 512], 16)
        (8, 1)

    Source: arXiv 2505.23819, section 5.4, extended to words of any size.
    """
    inner = [1 << bit for bit in range(2, size.bit_length() - 1)]
    steps = [image >> 2 for image in (*inner, *images)]
    rank = matrix.rank(steps)
    return 1 << rank - matrix.rank([word & banks - 1 for word in steps]), -(-(1 << rank) // banks)
