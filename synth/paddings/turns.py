"""Turns of many paddings at once, from arrays of addresses.

If rows share no word, turns depend on each pitch only modulo ``banks * 4`` bytes: banks depend only on that, and which
lanes share a word does not change, since lanes of one row keep their distance and lanes of different rows share none.
Rows share no word if 4 divides the pitch, or if the gap between them is at least 3 bytes. So one period of pitches
above that gap shows all possible turns, including the minimum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.targets.banks import BankModel

IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
WORD_BYTES = 4
_ROOM = 1 << 21
"""Array elements processed at once."""


def period_bytes(models: Sequence[BankModel]) -> int:
    """Return the period of a pitch in bytes: the largest of the models', whose bank counts are powers of two."""
    return max(model.banks for model in models) * WORD_BYTES


def turns_of(model: BankModel, addresses: IntArray, active: BoolArray) -> tuple[IntArray, IntArray]:
    """Return the turns of many instructions, int64[instruction, lane] addresses, and the minimum that words allow."""
    joined = np.zeros(len(addresses), dtype=bool)
    for step in model.joins:
        other = np.arange(model.lanes) ^ step
        joined |= ((addresses == addresses[:, other]) | ~active | ~active[:, other]).all(axis=1)
    turns = np.zeros((len(addresses), 2), dtype=np.int64)
    groups = np.array(model.groups)
    wide = groups.reshape(-1, 2 * groups.shape[1]) if joined.any() else groups
    for chosen, lanes in ((~joined, groups), (joined, wide)):
        if chosen.any():
            turns[chosen] = _counted(model, addresses[chosen], active[chosen], lanes)
    return turns[:, 0], turns[:, 1]


def _counted(model: BankModel, addresses: IntArray, active: BoolArray, groups: IntArray) -> IntArray:
    """Return turns and their minimum, int64[instruction, 2], some instructions at a time."""
    words = max(1, model.access_bytes // WORD_BYTES)
    step = max(1, _ROOM // (groups.shape[0] * max(model.banks, groups.shape[1] * words)))
    starts = range(0, len(addresses), step)
    return np.concatenate([_part(model, addresses[at : at + step], active[at : at + step], groups) for at in starts])


def _part(model: BankModel, addresses: IntArray, active: BoolArray, groups: IntArray) -> IntArray:
    count, words = len(addresses), max(1, model.access_bytes // WORD_BYTES)
    touched = addresses[:, groups, None] // WORD_BYTES + np.arange(words)
    touched = np.where(active[:, groups, None], touched, -1).reshape(count * len(groups), -1)
    busy = words_by_bank(touched, model.banks).reshape(count, len(groups), model.banks)
    turns = busy.max(axis=2).sum(axis=1)
    least = -(-busy.sum(axis=2) // model.banks)
    return np.stack([turns, least.sum(axis=1)], axis=1).astype(np.int64)


def words_by_bank(words: IntArray, banks: int) -> IntArray:
    """Return how many different words every bank has in each row of words, int64[row, bank]; negative ones are none."""
    words = np.sort(words, axis=1)
    fresh = words >= 0
    fresh[:, 1:] &= words[:, 1:] != words[:, :-1]
    places = np.arange(len(words))[:, None] * banks + words % banks
    return np.bincount(places[fresh], minlength=len(words) * banks).reshape(len(words), banks).astype(np.int64)
