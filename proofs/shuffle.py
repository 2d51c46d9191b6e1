"""Warp shuffles as data: which register each lane sends, which lane it reads, which register it writes.

A place is (register, lane, warp). A source map takes each place to the place, in the same warp, whose word it receives.
One round is one ``shfl.sync.idx.b32``: every lane offers one register and reads one lane.

Let k be the largest number of words that one lane receives from other lanes. Every plan has at least k rounds, because
a lane receives at most one word per round. For a bijection k rounds suffice: the words that change lanes are the edges
of a bipartite multigraph of senders and receivers with degree at most k (a lane sends as many as it receives), and such
a graph has an edge colouring with k colours (König). A colour is a round.

References: D. König, Über Graphen und ihre Anwendung, Math. Ann. 77 (1916); PTX ISA, shfl.sync.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground.check import Checker
from layoutalg.ground.picture import Shown
from layoutalg.ground.record import Record
from layoutalg.proofs.exchange import Cost

IntArray: TypeAlias = npt.NDArray[np.int64]
CHECK = Checker("LA881", "invalid shuffle plan")
NONE = -1
"""No register: in ``into``, the lane drops its word; in ``kept``, a round writes the register."""


@dataclass(frozen=True, slots=True)
class Round(Record, code="LA881"):
    """One shuffle of every warp; fields are indexed [warp][lane]."""

    send: tuple[tuple[int, ...], ...]  # the register that a lane offers
    read: tuple[tuple[int, ...], ...]  # the lane that it reads
    into: tuple[tuple[int, ...], ...]  # the register that it writes; -1 to drop the word


@dataclass(frozen=True, slots=True)
class ShufflePlan(Record, Shown, code="LA881", schema="layoutalg/shuffles/1"):
    """A permutation of every warp's words, as moves within lanes and rounds of shuffles.

    Args:
        registers: Words per lane.
        lanes: Lanes per warp.
        warps: Number of warps.
        kept: Per warp, lane and register, the register of the same lane to copy; -1 if a round writes it.
        rounds: The shuffles; all read the words from before the first round.

    Example:
        >>> swap = Round(((0, 0),), ((1, 0),), ((0, 0),))
        >>> plan = ShufflePlan(1, 2, 1, (((-1,), (-1,)),), (swap,))
        >>> plan.run([[[5], [7]]]).tolist(), plan.source().tolist()
        ([[[7], [5]]], [[[1], [0]]])
    """

    registers: int
    lanes: int
    warps: int
    kept: tuple[tuple[tuple[int, ...], ...], ...]
    rounds: tuple[Round, ...]

    def _validate(self) -> None:
        if min(self.registers, self.lanes, self.warps) < 1:
            raise CHECK.malformed("registers", "must be positive, and so must lanes and warps", self.registers)
        kept = _array(self.kept, (self.warps, self.lanes, self.registers), NONE, self.registers, "kept")
        written = (kept != NONE).astype(np.int64)
        warp, lane = np.indices((self.warps, self.lanes))
        for each in self.rounds:
            _array(each.send, (self.warps, self.lanes), 0, self.registers, "send")
            _array(each.read, (self.warps, self.lanes), 0, self.lanes, "read")
            into = _array(each.into, (self.warps, self.lanes), NONE, self.registers, "into")
            live = into != NONE
            written[warp[live], lane[live], into[live]] += 1
        if (written != 1).any():
            at = tuple(int(part) for part in np.argwhere(written != 1)[0])
            raise CHECK.malformed("rounds", "must write every register once", f"(warp, lane, register) = {at}")

    def __str__(self) -> str:
        return (
            f"{len(self.rounds)} shuffles of {self.registers} registers, {self.lanes} lanes"
            f"{f', {self.warps} warps' if self.warps > 1 else ''}"
        )

    @property
    def cost(self) -> Cost:
        """Instructions of a thread; selecting one of n registers takes n - 1 compares and n - 1 selects."""
        selects = 0
        for each in self.rounds:
            sent = {value for row in each.send for value in row}
            written = {value for row in each.into for value in row}
            selects += 2 * (len(sent) - 1) + (2 * len(written - {NONE}) if len(written) > 1 else 0)
        return Cost(shuffles=len(self.rounds), selects=selects)

    def run(self, words: Any) -> npt.NDArray[Any]:
        """Return the registers after the rounds.

        Args:
            words: The words before, indexed by warp, lane and register.
        """
        held = np.asarray(words)
        shape = (self.warps, self.lanes, self.registers)
        if held.shape != shape:
            raise CHECK.malformed("words", f"must have the shape {shape}", held.shape)
        kept = np.array(self.kept, dtype=np.int64)
        answer = np.take_along_axis(held, np.maximum(kept, 0), axis=2)
        warp, lane = np.indices(shape[:2])
        for each in self.rounds:
            send, read, into = (np.array(rows, dtype=np.int64) for rows in (each.send, each.read, each.into))
            offered = held[warp, lane, send]
            taken = offered[warp, read]
            live = into != NONE
            answer[warp[live], lane[live], into[live]] = taken[live]
        return answer

    def source(self) -> IntArray:
        """Return the source place of each place, int64[warp, lane, register].

        Places are numbered (warp * lanes + lane) * registers + register.
        """
        shape = (self.warps, self.lanes, self.registers)
        return np.asarray(self.run(np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)), dtype=np.int64)


def moved(source: IntArray) -> int:
    """Return the largest number of words that one lane receives from other lanes: the minimum number of rounds.

    Example:
        >>> moved(np.array([[[0, 2], [1, 3]]]))
        1
    """
    _, lanes, registers = source.shape
    here = np.arange(lanes, dtype=np.int64)[None, :, None]
    return int((source // registers % lanes != here).sum(axis=2).max())


def _array(rows: object, shape: tuple[int, ...], low: int, end: int, name: str) -> IntArray:
    try:
        found = np.array(rows, dtype=np.int64)
    except (ValueError, OverflowError):
        raise CHECK.malformed(name, f"must be integers of shape {shape}", rows) from None
    if found.shape != shape or (found.size and not low <= int(found.min()) <= int(found.max()) < end):
        raise CHECK.malformed(name, f"must be integers in [{low}, {end}) of shape {shape}", found.shape)
    return found
