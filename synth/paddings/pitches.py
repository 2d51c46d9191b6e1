"""The least pitches of a tile, by complete enumeration of one period.

If rows share no word, turns depend on each pitch only modulo ``banks * 4`` bytes: banks depend only on that, and which
lanes share a word does not change, since lanes of one row keep their distance and lanes of different rows share none.
Rows share no word if 4 divides the pitch, or if the gap between them is at least 3 bytes. So one period of pitches
above that gap shows all possible turns.

For fixed instructions the minimum of a group's turns does not depend on pitches, so conflict-free is optimal. Pitches
from p[d + 1] * shape[d + 1] through one period, plus the 3 bytes from which on rows share no word, contain the
lexicographic minimum: any larger pitch can be lowered by the period without changing a turn or any other pitch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground import clock
from layoutalg.ground.errors import Diagnostic, InfeasibleError
from layoutalg.proofs.padding import CHECK
from layoutalg.synth.paddings.accesses import Asked
from layoutalg.targets.bank_counting import WORD_BYTES
from layoutalg.targets.banks import BankModel, bank_model

IntArray: TypeAlias = npt.NDArray[np.int64]
MOST = 1 << 20
"""Largest number of pitch vectors to enumerate."""
Where: TypeAlias = tuple[tuple[int, ...], int, int, tuple[int, ...]]
"""Pitches, interval, amount, order of the rows."""
FREE = "every access is free of conflicts"
UNFINISHED = "the best of {}; the search ran out of time"


@dataclass(frozen=True, slots=True)
class Question:
    """A tile, its accesses and their targets."""

    shape: tuple[int, ...]
    element_bits: int
    targets: tuple[str, ...]
    accesses: tuple[Asked, ...]

    @property
    def models(self) -> list[tuple[Asked, BankModel]]:
        """Each access with each of its instructions."""
        pairs = [(each, self.targets[place]) for each in self.accesses for place in each.targets]
        return [(each, bank_model(target, each.access.instruction(target))) for each, target in pairs]


@dataclass(frozen=True, slots=True)
class Pattern:
    """Instructions of one access on one target, those with equal turns under any pitches merged."""

    model: BankModel  # the instruction
    steps: IntArray  # coordinates of each lane relative to the first, int64[pattern, lane, dimension]
    active: npt.NDArray[np.bool_]  # bool[pattern, lane]
    often: IntArray  # how many instructions each pattern stands for
    aligned: IntArray  # distinct coordinates modulo the elements per lane, int64[place, dimension]

    @property
    def grain_bits(self) -> int:
        """Alignment of a lane's start, in bits."""
        return 8 * self.model.grain_bytes


@dataclass(frozen=True, slots=True)
class Found:
    """A padding, its turns, and what is proved."""

    where: Where
    turns: int
    bound: int
    proof: str


def cells_of(each: Asked) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """Return the cells of an access, 0 for inactive lanes, and which are active."""
    cells = each.access.table
    return np.maximum(cells, 0), cells >= 0


def patterns(asked: Question) -> list[Pattern]:
    """Return the patterns of all accesses on all targets."""
    found = []
    for each, model in asked.models:
        cells, active = cells_of(each)
        places = np.stack(np.unravel_index(cells, asked.shape), axis=2).astype(np.int64)
        first = places[np.arange(len(places)), active.argmax(axis=1)]
        held = max(1, 32 // asked.element_bits) if model.access_bytes < WORD_BYTES else 1
        steps = np.where(active[:, :, None], places - first[:, None, :] + first[:, None, :] % held, 0)
        keys = np.concatenate([steps.reshape(len(steps), -1), active, first % held], axis=1)
        _, kept, often = np.unique(keys, axis=0, return_index=True, return_counts=True)
        grain = max(1, 8 * model.grain_bytes // asked.element_bits)
        aligned = np.unique(places[active] % grain, axis=0)
        found.append(Pattern(model, steps[kept], active[kept], often, aligned))
    return found


def dense_pitches(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the pitches without padding."""
    return tuple(prod(shape[place + 1 :]) for place in range(len(shape)))


def plain_turns(asked: Question) -> int | None:
    """Return the turns without padding; None if an access is misaligned."""
    counted = patterns(asked)
    pitches = np.array([dense_pitches(asked.shape)], dtype=np.int64)
    return int(_turns(asked, counted, pitches)[0][0]) if _fits(asked, counted, pitches).all() else None


def period_bytes(models: Sequence[BankModel]) -> int:
    """Return the period of a pitch in bytes: the largest of the models', whose bank counts are powers of two."""
    return max(model.banks for model in models) * WORD_BYTES


def least_pitches(asked: Question) -> Found:
    """Return the lexicographically least pitches, outermost first, among those with the fewest turns."""
    counted = patterns(asked)
    period = period_bytes([pattern.model for pattern in counted])
    listed = _listed(asked, counted, period)
    listed = listed[_fits(asked, counted, listed)]
    if not len(listed):
        raise unaligned(asked, f"every pitch of one period ({period} bytes) misaligns a lane of some access")
    listed = listed[np.lexsort(listed.T[::-1])]
    best: tuple[int, int] | None = None
    step, at = 1, 0
    while at < len(listed):
        turns, least = _turns(asked, counted, listed[at : at + step])
        place = int(turns.argmin())
        if best is None or turns[place] < best[0]:
            best = int(turns[place]), at + place
        floor = int(least.min())
        first = np.flatnonzero(turns == least)
        if len(first):
            return _found(listed[at + int(first[0])], int(turns[first[0]]), floor, FREE)
        at, step = at + step, min(2 * step, 256)
        if clock.left() <= 0 and at < len(listed):
            return _found(listed[best[1]], best[0], floor, UNFINISHED.format(f"{at} pitches"))
    if best is None:
        raise CHECK.malformed("shape", "must have at least one dimension", asked.shape)
    proof = f"all {len(listed)} aligned pitches of one period of {period} bytes were tried"
    return _found(listed[best[1]], best[0], best[0], proof)


def unaligned(asked: Question, because: str) -> InfeasibleError:
    """Return the error if no padding aligns every access."""
    return InfeasibleError(Diagnostic("LA922", "no padding aligns all accesses", (str(asked.shape),), because))


def _found(pitches: IntArray, turns: int, bound: int, proof: str) -> Found:
    return Found((tuple(pitches.tolist()), 0, 0, ()), turns, bound, proof)


def _listed(asked: Question, counted: Sequence[Pattern], period: int) -> IntArray:
    """Return the pitches of one period, without those that alone misalign an access, int64[candidate, dimension]."""
    bits, shape = asked.element_bits, asked.shape
    vectors: list[tuple[int, ...]] = [(1,)]
    for place in reversed(range(len(shape) - 1)):
        step = _step(counted, place, bits)
        if shape[place] == 1:
            vectors = [(vector[0] * shape[place + 1], *vector) for vector in vectors]
            continue
        window = -(-8 * (period + WORD_BYTES - 1) // bits) if step * bits % 32 else 8 * period // bits
        if len(vectors) * -(-window // step) > MOST:
            rule = f"must leave at most {MOST} pitches to try"
            raise CHECK.malformed("shape", rule, f"{len(vectors)} x {-(-window // step)}")
        vectors = [
            (pitch, *vector)
            for vector in vectors
            for low in [-(-vector[0] * shape[place + 1] // step) * step]
            for pitch in range(low, low + window, step)
        ]
    return np.array(vectors, dtype=np.int64)


def _step(counted: Sequence[Pattern], place: int, bits: int) -> int:
    """Return a divisor that the pitch of a dimension must have, from the cells on that axis alone."""
    step = 1
    for pattern in counted:
        others = np.delete(pattern.aligned, place, axis=1)
        alone = pattern.aligned[(others == 0).all(axis=1), place].tolist()
        for value in alone:
            if value:
                need = max(1, pattern.grain_bits // gcd(pattern.grain_bits, value * bits))
                step = step * need // gcd(step, need)
    return step


def _fits(asked: Question, counted: Sequence[Pattern], pitches: IntArray) -> npt.NDArray[np.bool_]:
    """Return which pitches align all lanes."""
    fits = np.ones(len(pitches), dtype=bool)
    for pattern in counted:
        starts = pitches @ pattern.aligned.T * asked.element_bits
        fits &= (starts % pattern.grain_bits == 0).all(axis=1)
    return fits


def _turns(asked: Question, counted: Sequence[Pattern], pitches: IntArray) -> tuple[IntArray, IntArray]:
    """Return the turns of all accesses under each of these pitches, and their minimum."""
    turns = np.zeros(len(pitches), dtype=np.int64)
    least = np.zeros_like(turns)
    for pattern in counted:
        starts = np.tensordot(pitches, pattern.steps, axes=(1, 2)) * asked.element_bits // 8
        found = counted_turns(
            pattern.model, starts.reshape(-1, starts.shape[2]), np.tile(pattern.active, (len(pitches), 1))
        )
        for total, each in zip((turns, least), found, strict=True):
            total += each.reshape(len(pitches), -1) @ pattern.often
    return turns, least


def counted_turns(model: BankModel, addresses: IntArray, active: npt.NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
    """Return turns and their minimum; addresses may be negative and count only modulo whole periods."""
    period = model.banks * WORD_BYTES
    first = np.where(active, addresses, np.iinfo(np.int64).max).min(axis=1)
    turns, least = model.group_turns(np.where(active, addresses - (first - first % period)[:, None], 0), active)
    return turns.sum(axis=1), least.sum(axis=1)
