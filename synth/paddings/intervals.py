"""The least padding inserted at intervals of a dense tile, optionally with permuted bits of the row number.

A pad of a bytes after every interval separates runs of elements. Runs with at least 3 bytes between them share no word
(nor do runs of whole words with whole words between them), so from there on turns depend only on the pad modulo the
bytes of all banks, and one period of pads shows all turns.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from math import prod

import numpy as np

from layoutalg.ground import clock
from layoutalg.proofs.padding import CHECK, offsets_of
from layoutalg.synth.paddings.pitches import (
    FREE,
    UNFINISHED,
    Found,
    Question,
    cells_of,
    counted_turns,
    dense_pitches,
    period_bytes,
    unaligned,
)
from layoutalg.targets.bank_counting import WORD_BYTES

MOST_ROW_BITS = 8


def least_interval(asked: Question, form: str) -> Found:
    """Return the least interval padding among those with the fewest turns; InfeasibleError if none aligns lanes."""
    best: Found | None = None
    tried = floor = 0
    for interval, amount in _candidates(asked, form):
        for order in _orders(asked, form):
            tried += 1
            if best is not None and tried % 16 == 0 and clock.left() <= 0:
                return replace(best, bound=floor, proof=UNFINISHED.format(f"{tried} paddings"))
            counted = _turns(asked, interval, amount, order)
            if counted is None:
                continue
            turns, floor = counted
            if best is None or turns < best.turns:
                best = Found((dense_pitches(asked.shape), interval, amount, order), turns, floor, FREE)
            if best.turns == floor:
                return best
    if best is None:
        raise unaligned(asked, f"each of {tried} intervals and amounts misaligns a lane of some access")
    return replace(best, bound=best.turns, proof=f"all {tried} intervals and amounts of one period were tried")


def _candidates(asked: Question, form: str) -> Iterator[tuple[int, int]]:
    """Yield intervals and amounts in elements, the least padding first, then the longest interval."""
    size, bits = prod(asked.shape), asked.element_bits
    period = period_bytes([model for _, model in asked.models])
    unit = max(1, 32 // bits) if form == "interval" else 1
    amounts = list(range(0, 8 * (period + WORD_BYTES - 1) // bits + 1, unit))
    if form != "interval":
        amounts = [0, *(1 << bit for bit in range(amounts[-1].bit_length()))]
    intervals = [1 << bit for bit in range((size - 1).bit_length()) if 1 << bit >= unit]
    listed = {(interval, amount) for interval in intervals for amount in amounts if amount}
    # no padding is written as amount 0 with the whole tile as interval
    whole = 1 << max(0, (size - 1).bit_length())
    yield whole, 0
    yield from sorted(listed, key=lambda pair: (pair[1] * ((size - 1) // pair[0]), -pair[0]))


def _orders(asked: Question, form: str) -> Iterator[tuple[int, ...]]:
    """Yield permutations of the row number's bits, the identity first; just () if rows stay in order."""
    if form != "reordered":
        yield ()
        return
    rows = prod(asked.shape[:-1])
    if rows & (rows - 1) or rows >> MOST_ROW_BITS or rows < 2:
        raise CHECK.malformed("shape", f"must have a power-of-two row count up to {1 << MOST_ROW_BITS}", asked.shape)
    yield from itertools.permutations(range(rows.bit_length() - 1))


def _turns(asked: Question, interval: int, amount: int, order: tuple[int, ...]) -> tuple[int, int] | None:
    """Return the turns of all accesses and their minimum; None if an access is misaligned."""
    offsets = offsets_of(asked.shape, dense_pitches(asked.shape), interval, amount, order) * asked.element_bits // 8
    turns = least = 0
    for each, model in asked.models:
        cells, active = cells_of(each)
        places = offsets[cells]
        if (places[active] % model.grain_bytes).any():
            return None
        first = np.where(active, places, np.iinfo(np.int64).max).min(axis=1)
        steps = np.where(active, places - (first - first % WORD_BYTES)[:, None], -1)
        kept, often = np.unique(steps, axis=0, return_counts=True)
        found = counted_turns(model, kept, kept >= 0)
        turns, least = turns + int(found[0] @ often), least + int(found[1] @ often)
    return turns, least
