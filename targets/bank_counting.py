"""Count the turns of groups of lanes, by enumeration of the words that they touch.

Main statements: lanes that touch one word are served together and different words of one bank take turns, so a group
takes as many turns as its busiest bank has different words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

BANKS = 32
WORD_BYTES = 4
LANES = 32
JOINS = (1, 2)
"""On NVIDIA, neighbouring groups of a load merge if every lane shares its address with lane ^ one of these."""
Offsets: TypeAlias = "list[int | None]"
"""One byte offset per lane, None for an inactive one."""
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
_ROOM = 1 << 21
"""Array elements processed at once."""


def groups(count: int, access_bits: int) -> tuple[tuple[int, ...], ...]:
    """Return the lanes of ``count`` that are served together: up to 32 bits each all, else as many as access 32 words.

    Example:
        >>> [len(group) for group in groups(32, 128)]
        [8, 8, 8, 8]
    """
    together = min(LANES, LANES * 32 // access_bits)
    return tuple(tuple(range(at, min(at + together, count))) for at in range(0, count, together))


def arrays(offsets: Sequence[int | None]) -> tuple[IntArray, BoolArray]:
    """Return the offsets of one instruction, 0 for inactive lanes, and which lanes are active, as rows of arrays."""
    active = np.array([[offset is not None for offset in offsets]])
    return np.array([[offset or 0 for offset in offsets]], dtype=np.int64), active


def merged(addresses: IntArray, active: BoolArray, joins: Sequence[int]) -> BoolArray:
    """Return the instructions in which, for one of the steps, every lane shares its address with lane ^ step.

    An inactive lane shares any address.
    """
    found = np.zeros(len(addresses), dtype=bool)
    for step in joins:
        other = np.arange(addresses.shape[1]) ^ step
        found |= ((addresses == addresses[:, other]) | ~active | ~active[:, other]).all(axis=1)
    return found


def group_turns(
    groups: Sequence[Sequence[int]], joins: Sequence[int], size: int, banks: int, addresses: IntArray, active: BoolArray
) -> tuple[IntArray, IntArray]:
    """Return the turns of every group in every instruction, and those of as many words evenly spread over the banks.

    Args:
        groups: The lanes that are served together.
        joins: Steps s: neighbouring groups merge if every lane shares its address with lane ^ s; the second then
            takes no turn.
        size: Bytes accessed per lane.
        banks: Number of banks.
        addresses: First byte of every lane, int64[instruction, lane].
        active: Which lanes are active, bool[instruction, lane].

    Returns:
        Two arrays int64[instruction, group].

    Example:
        >>> rows = 16 * np.arange(64).reshape(2, 32)
        >>> [part.tolist() for part in group_turns(groups(32, 128), (), 16, 32, rows // 32 * 32, rows >= 0)]
        [[[1, 1, 1, 1], [1, 1, 1, 1]], [[1, 1, 1, 1], [1, 1, 1, 1]]]
    """
    found = np.zeros((2, len(addresses), len(groups)), dtype=np.int64)
    lanes, words = np.array(groups), np.arange(max(1, size // WORD_BYTES))
    both = merged(addresses, active, joins)
    for chosen, many in ((~both, 1), (both, 2)):
        rows = np.flatnonzero(chosen)
        if not rows.size:
            continue
        served = lanes.reshape(len(lanes) // many, -1)
        step = max(1, _ROOM // (len(served) * max(banks, served.shape[1] * len(words))))
        for part in (rows[at : at + step] for at in range(0, len(rows), step)):
            touched = addresses[part][:, served, None] // WORD_BYTES + words
            touched = np.where(active[part][:, served, None], touched, -1).reshape(len(part) * len(served), -1)
            busy = words_by_bank(touched, banks).reshape(len(part), len(served), banks)
            found[0, part, : len(lanes) : many] = busy.max(axis=2)
            found[1, part, : len(lanes) : many] = -(-busy.sum(axis=2) // banks)
    return found[0], found[1]


def words_by_bank(words: IntArray, banks: int = BANKS) -> IntArray:
    """Return how many different words every bank has in each row of words, int64[row, bank]; negative ones are none."""
    words = np.sort(words, axis=1)
    fresh = words >= 0
    fresh[:, 1:] &= words[:, 1:] != words[:, :-1]
    places = np.arange(len(words))[:, None] * banks + words % banks
    return np.bincount(places[fresh], minlength=len(words) * banks).reshape(len(words), banks).astype(np.int64)


def touched(offsets: Offsets, group: Sequence[int], size: int, banks: int = BANKS) -> list[dict[int, list[int]]]:
    """Return for every bank the words that a group touches, each with the lanes that do.

    Args:
        offsets: Byte offset of every lane, None for an inactive one.
        group: The lanes.
        size: Bytes accessed per lane.
        banks: Number of banks.
    """
    found: list[dict[int, list[int]]] = [{} for _ in range(banks)]
    for lane in group:
        offset = offsets[lane]
        if offset is not None:
            first = offset // WORD_BYTES
            for word in range(first, first + max(1, size // WORD_BYTES)):
                found[word % banks].setdefault(word, []).append(lane)
    return found
