"""Shuffles of a warp as data: which register each lane sends, from which lane it reads, into which register it writes.

Notation: a place is (register, lane, warp). A source map takes a place to the place whose word it receives; it stays
in its warp. One round is one ``shfl.sync.idx.b32`` of every lane: a lane offers one register and reads one lane.

Main statements: let k be the largest number of words that one lane receives from other lanes. Every plan has at least k
rounds, because a round brings a lane at most one word. A plan of k rounds exists for every bijection: the words that
change lanes are the edges of a bipartite multigraph between senders and receivers of degree at most k (a lane sends as
many as it receives), and such a graph has an edge colouring of k colours (König). A colour is a round.

References: D. König, Über Graphen und ihre Anwendung, Math. Ann. 77 (1916); PTX ISA, shfl.sync.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground.check import Checker
from layoutalg.ground.kinds import checked_kinds
from layoutalg.ground.picture import Shown
from layoutalg.proofs.exchange import Cost

IntArray: TypeAlias = npt.NDArray[np.int64]
CHECK = Checker("LA881", "this is not a plan of shuffles")
SCHEMA = "layoutalg/shuffles/1"
NONE = -1
"""No register: a lane that writes nothing in a round, or a register that a round writes."""


@dataclass(frozen=True, slots=True)
class Round:
    """One shuffle of every warp; each field has one row per warp with one entry per lane.

    Args:
        send: The register that a lane offers.
        read: The lane that it reads.
        into: The register that takes the word; -1 where it is dropped.
    """

    send: tuple[tuple[int, ...], ...]
    read: tuple[tuple[int, ...], ...]
    into: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        checked_kinds(self, "LA881")

    def to_json(self) -> dict[str, object]:
        """Return the round as JSON-ready data."""
        return {"send": self.send, "read": self.read, "into": self.into}


@dataclass(frozen=True, slots=True)
class ShufflePlan(Shown):
    """A permutation of the words of every warp, as moves inside lanes and rounds of shuffles.

    Args:
        registers: Words that a lane holds.
        lanes: Lanes of a warp.
        warps: Number of warps.
        kept: Per warp, lane and register the register of the same lane that it copies; -1 where a round writes it.
        rounds: The shuffles, all from the words held before the first.

    Raises: MalformedError: LA881.

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

    def __post_init__(self) -> None:
        checked_kinds(self, "LA881")
        if min(self.registers, self.lanes, self.warps) < 1:
            raise CHECK.malformed("registers", "must be positive, as lanes and warps are", self.registers)
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
    def selects(self) -> int:
        """Most registers that a lane chooses among in one round, to send or to write; 0 without rounds."""
        wide = [len({value for row in rows for value in row} - {NONE}) for each in self.rounds for rows in
                (each.send, each.into)]  # fmt: skip
        return max(wide, default=0)

    @property
    def cost(self) -> Cost:
        """Instructions of a thread; for each register that is chosen among beyond the first a comparison, a select."""
        selects = 0
        for each in self.rounds:
            sent = {value for row in each.send for value in row}
            written = {value for row in each.into for value in row}
            selects += 2 * (len(sent) - 1) + (2 * len(written - {NONE}) if len(written) > 1 else 0)
        return Cost(shuffles=len(self.rounds), selects=selects)

    def run(self, words: Any) -> npt.NDArray[Any]:
        """Return what every register holds after the rounds.

        Args:
            words: The words before, indexed by warp, lane and register.

        Raises: MalformedError: LA881.
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
        """Return, by warp, lane and register, the place whose word it receives: (warp * lanes + lane) * registers +
        register."""
        shape = (self.warps, self.lanes, self.registers)
        return np.asarray(self.run(np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)), dtype=np.int64)

    def to_json(self) -> dict[str, object]:
        """Return the plan as JSON-ready data."""
        return {
            "schema": SCHEMA, "registers": self.registers, "lanes": self.lanes, "warps": self.warps, "kept": self.kept,
            "rounds": [each.to_json() for each in self.rounds],
        }  # fmt: skip


def moved(source: IntArray) -> int:
    """Return the largest number of words that one lane receives from other lanes: the least number of rounds.

    Args:
        source: As ``ShufflePlan.source`` returns it.

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
        raise CHECK.malformed(name, f"must be integers of the shape {shape}", rows) from None
    if found.shape != shape or (found.size and not low <= int(found.min()) <= int(found.max()) < end):
        raise CHECK.malformed(name, f"must hold integers of [{low}, {end}) of the shape {shape}", found.shape)
    return found
