"""Exchanges of words between registers and lanes, as steps whose instructions can be counted.

Notation: a lane holds 2^n words; w is the number of a word, t = lane + lanes * warp that of a thread, both vectors of
bits over F2. A functional is a mask: its value at x is the parity of x and the mask. A step has a *source*: after the
step the place (w, t) holds what the place source(w, t) held before. The plan's source is the composition of its
steps', the first step outermost.

Main statements, with the parity of a mask f at x written f(x):

* ``Choose``: (w, t) -> (w + v f(t), t). Every word is one of two, chosen by the lane: a select a word.
* ``Exchange``: (w, t) -> (w, t) + (v, u) (g(w) + f(t)), g(v) = f(u) = 1: the bit g of the word and the bit f of the
  lane change places, along v and u. Of every pair w, w + v a lane keeps one word and sends the other to the lane t + u:
  a shuffle and three selects a pair.
* ``Move``: (w, t) -> (w, A t + C w + c): a shuffle for every word that is not read from its own lane.
* ``Rename``: (w, t) -> (G w + c, t): no instruction.
* ``Repack``: the same of elements narrower than a word, several of which lie in one: byte permutations.

Every affine bijection of a warp's words is Choose, Rename, Move, Choose (``synth.exchange`` says how), so the number of
shuffles is at most the number of words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.f2 import matrix
from layoutalg.ground.check import Checker
from layoutalg.ground.kinds import checked_kinds

IntArray: TypeAlias = npt.NDArray[np.int64]
CHECK = Checker("LA884", "this is not a plan of exchanges")
SCHEMA = "layoutalg/exchanges/1"
MOST = 1 << 20
"""Places of a plan."""
SHUFFLE_CYCLES, TURN_CYCLES, SELECT_CYCLES = 1.0, 1.0, 0.5
"""Cycles of a multiprocessor of compute capability 9.0 a warp instruction: 32 lanes of a shuffle, 32 banks, 64 lanes of
a select or a byte permutation a cycle (CUDA C++ Programming Guide, arithmetic instructions)."""


def parity(mask: int, values: Any) -> IntArray:
    """Return the value of a functional at every number.

    Example:
        >>> parity(5, [0, 1, 4, 5, 7]).tolist()
        [0, 1, 1, 0, 0]
    """
    chosen = np.asarray(values, dtype=np.int64) & mask
    for shift in (16, 8, 4, 2, 1):
        chosen = chosen ^ chosen >> shift
    return np.asarray(chosen & 1, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Cost:
    """Instructions of a thread, and what they cost.

    Args:
        shuffles: Shuffles.
        selects: Selects, with the comparisons that no other select shares.
        permutes: Byte permutations.
        turns: Turns of the banks of shared memory.
    """

    shuffles: int = 0
    selects: int = 0
    permutes: int = 0
    turns: int = 0

    def __post_init__(self) -> None:
        checked_kinds(self, "LA884")

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.shuffles + other.shuffles, self.selects + other.selects, self.permutes + other.permutes,
            self.turns + other.turns,
        )  # fmt: skip

    @property
    def cycles(self) -> float:
        """Cycles of a multiprocessor for one warp, all of its instructions one after another."""
        slow = self.shuffles * SHUFFLE_CYCLES + self.turns * TURN_CYCLES
        return slow + (self.selects + self.permutes) * SELECT_CYCLES

    def __str__(self) -> str:
        parts = {"shuffle": self.shuffles, "select": self.selects, "permute": self.permutes, "turn": self.turns}
        told = [f"{count} {name}{'s' if count > 1 else ''}" for name, count in parts.items() if count]
        return f"{', '.join(told) or 'nothing'} ({self.cycles:g} cycles a warp)"

    def to_json(self) -> dict[str, object]:
        """Return the cost as JSON-ready data."""
        return {
            "shuffles": self.shuffles, "selects": self.selects, "permutes": self.permutes, "turns": self.turns,
            "cycles": self.cycles,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Choose:
    """Every word becomes itself or the one ``vector`` away, as the thread says.

    Args:
        vector: What is added to the number of the word, not 0.
        asked: Functional of the thread.
    """

    vector: int
    asked: int

    def __post_init__(self) -> None:
        checked_kinds(self, "LA884")

    def source(self, word: IntArray, thread: IntArray) -> tuple[IntArray, IntArray]:
        """Return the places that these places take their words from."""
        return word ^ self.vector * parity(self.asked, thread), thread

    def cost(self, words: int) -> Cost:
        """Return the instructions of a lane with so many words."""
        return Cost(selects=words)

    def to_json(self) -> dict[str, object]:
        """Return the step as JSON-ready data."""
        return {"step": "choose", "vector": self.vector, "asked": self.asked}


@dataclass(frozen=True, slots=True)
class Exchange:
    """A bit of the word and a bit of the lane change places.

    Args:
        vector: What is added to the number of the word.
        lanes: What is added to the number of the lane.
        word_asked: Functional of the word, 1 at ``vector``.
        lane_asked: Functional of the lane, 1 at ``lanes``.

    Raises: MalformedError: LA884.

    Example:
        >>> word, thread = Exchange(1, 2, 1, 2).source(np.array([0, 1]), np.array([2, 2]))
        >>> word.tolist(), thread.tolist()
        ([1, 1], [0, 2])
    """

    vector: int
    lanes: int
    word_asked: int
    lane_asked: int

    def __post_init__(self) -> None:
        checked_kinds(self, "LA884")
        if not (self.vector & self.word_asked).bit_count() & (self.lanes & self.lane_asked).bit_count() & 1:
            raise CHECK.malformed("word_asked", "must be 1 at vector, as lane_asked at lanes", self.word_asked)

    def source(self, word: IntArray, thread: IntArray) -> tuple[IntArray, IntArray]:
        """Return the places that these places take their words from."""
        goes = parity(self.word_asked, word) ^ parity(self.lane_asked, thread)
        return word ^ self.vector * goes, thread ^ self.lanes * goes

    def cost(self, words: int) -> Cost:
        """Return the instructions of a lane with so many words."""
        return Cost(shuffles=words // 2, selects=3 * words // 2)

    def to_json(self) -> dict[str, object]:
        """Return the step as JSON-ready data."""
        return {
            "step": "exchange", "vector": self.vector, "lanes": self.lanes, "word_asked": self.word_asked,
            "lane_asked": self.lane_asked,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Move:
    """Every word is read from a lane.

    Args:
        threads: By bit of the thread what it adds to the lane that is read; below the number of lanes.
        words: The same by bit of the word.
        constant: The lane that lane 0 reads word 0 from.
    """

    threads: tuple[int, ...]
    words: tuple[int, ...]
    constant: int

    def __post_init__(self) -> None:
        checked_kinds(self, "LA884")

    def read(self, word: int, thread: IntArray) -> IntArray:
        """Return the lane that every thread reads a word from."""
        lane = matrix.table(self.threads)[thread]
        return np.asarray(lane ^ matrix.apply(self.words, word) ^ self.constant, dtype=np.int64)

    def mask(self, word: int, lanes: int) -> int | None:
        """Return what is to be added to every lane's own number; None where it is not the same for all."""
        plain = all(column == (1 << bit) % lanes for bit, column in enumerate(self.threads))
        return matrix.apply(self.words, word) ^ self.constant if plain else None

    def source(self, word: IntArray, thread: IntArray) -> tuple[IntArray, IntArray]:
        """Return the places that these places take their words from; the lanes are those of a whole warp."""
        lanes = (1 << max((column.bit_length() for column in self.threads), default=0)) - 1
        lane = matrix.table(self.threads)[thread] ^ matrix.table(self.words)[word] ^ self.constant
        return word, np.asarray(thread & ~lanes | lane, dtype=np.int64)

    def cost(self, words: int) -> Cost:
        """Return the instructions of a lane with so many words."""
        lanes = 1 << max((column.bit_length() for column in self.threads), default=0)
        return Cost(shuffles=sum(self.mask(word, lanes) != 0 for word in range(words)))

    def to_json(self) -> dict[str, object]:
        """Return the step as JSON-ready data."""
        return {"step": "move", "threads": self.threads, "words": self.words, "constant": self.constant}


@dataclass(frozen=True, slots=True)
class Rename:
    """Every word is the one of another number; no instruction.

    Args:
        words: By bit of the word what it adds to the number.
        constant: What word 0 becomes.
    """

    words: tuple[int, ...]
    constant: int

    def __post_init__(self) -> None:
        checked_kinds(self, "LA884")

    def source(self, word: IntArray, thread: IntArray) -> tuple[IntArray, IntArray]:
        """Return the places that these places take their words from."""
        return np.asarray(matrix.table(self.words, self.constant)[word], dtype=np.int64), thread

    def cost(self, words: int) -> Cost:
        """Return the instructions of a lane with so many words: none."""
        return Cost(shuffles=0 * words)

    def to_json(self) -> dict[str, object]:
        """Return the step as JSON-ready data."""
        return {"step": "rename", "words": self.words, "constant": self.constant}


Step: TypeAlias = Choose | Exchange | Move | Rename


@dataclass(frozen=True, slots=True)
class Repack:
    """Elements of a lane change places; several of them lie in one word, element e at part e % packed of e // packed.

    Args:
        elements: By bit of the element what it adds to the number.
        constant: What element 0 becomes.
        packed: Elements of a word.
    """

    elements: tuple[int, ...]
    constant: int
    packed: int

    def __post_init__(self) -> None:
        checked_kinds(self, "LA884")

    def parts(self, word: int) -> tuple[tuple[int, int], ...]:
        """Return for every part of a word the (word, part) that it is taken from.

        Example:
            >>> Repack((2, 1, 4), 0, 2).parts(0)
            ((0, 0), (1, 0))
        """
        first = word * self.packed
        taken = [matrix.apply(self.elements, first + part) ^ self.constant for part in range(self.packed)]
        return tuple(divmod(element, self.packed) for element in taken)

    def cost(self, words: int) -> Cost:
        """Return the instructions of a lane with so many words."""
        straight = tuple(range(self.packed))
        permutes = 0
        for word in range(words):
            parts = self.parts(word)
            sources = len({source for source, _ in parts})
            permutes += max(1, sources - 1) if sources > 1 or tuple(part for _, part in parts) != straight else 0
        return Cost(permutes=permutes)

    def source(self, element: IntArray) -> IntArray:
        """Return the elements that these elements are."""
        return np.asarray(matrix.table(self.elements, self.constant)[element], dtype=np.int64)

    def to_json(self) -> dict[str, object]:
        """Return the step as JSON-ready data."""
        return {"step": "repack", "elements": self.elements, "constant": self.constant, "packed": self.packed}


@dataclass(frozen=True, slots=True)
class ExchangePlan:
    """A permutation of the elements of every warp as steps of words.

    Args:
        registers: Elements that a lane holds.
        lanes: Lanes of a warp.
        warps: Number of warps.
        before: What is done to the parts of words first.
        steps: What is done to words.
        after: What is done to the parts of words last.

    Raises: MalformedError: LA884.

    Example:
        >>> plain = Repack((1,), 0, 1)
        >>> plan = ExchangePlan(2, 2, 1, plain, (Exchange(1, 1, 1, 1),), plain)
        >>> plan.run([[[0, 1], [2, 3]]]).tolist(), str(plan.cost)
        ([[[0, 2], [1, 3]]], '1 shuffle, 3 selects (2.5 cycles a warp)')
    """

    registers: int
    lanes: int
    warps: int
    before: Repack
    steps: tuple[Step, ...]
    after: Repack

    def __post_init__(self) -> None:
        checked_kinds(self, "LA884")
        for name in ("registers", "lanes", "warps"):
            value = CHECK.integer(getattr(self, name), name, 1, MOST)
            if value & (value - 1):
                raise CHECK.malformed(name, "must be a power of two", value)
        if self.registers * self.lanes * self.warps > MOST:
            raise CHECK.malformed("registers", f"must make at most {MOST} places", self.registers)
        if self.packed < 1 or self.before.packed != self.after.packed or self.registers % self.packed:
            raise CHECK.malformed("before", "must pack as many elements into a word as after", self.before.packed)
        for place, step in (("before", self.before), *(("steps", step) for step in self.steps), ("after", self.after)):
            if not self._fits(step):
                raise CHECK.malformed(place, "must be of these registers and lanes", str(step))
        wrong = np.flatnonzero(np.bincount(self.source().reshape(-1), minlength=1) != 1)
        if len(wrong):
            raise CHECK.malformed("steps", "must take every word once", int(wrong[0]))

    def _fits(self, step: Step | Repack) -> bool:
        """Whether the numbers of a step are those of words, lanes and threads that there are."""
        words, threads = self.words, self.lanes * self.warps

        def below(end: int, *values: int) -> bool:
            return all(0 <= value < end for value in values)

        if isinstance(step, Choose):
            return below(words, step.vector) and below(threads, step.asked)
        if isinstance(step, Exchange):
            return below(words, step.vector, step.word_asked) and below(self.lanes, step.lanes, step.lane_asked)
        if isinstance(step, Move):
            sizes = 1 << len(step.threads) == threads and 1 << len(step.words) == words
            return sizes and below(self.lanes, *step.threads, *step.words, step.constant)
        columns, size = (step.words, words) if isinstance(step, Rename) else (step.elements, self.registers)
        return 1 << len(columns) == size and below(size, *columns, step.constant)

    @property
    def packed(self) -> int:
        """Elements of a word."""
        return self.before.packed

    @property
    def words(self) -> int:
        """Words that a lane holds."""
        return self.registers // self.packed

    @property
    def cost(self) -> Cost:
        """Instructions of a thread."""
        total = self.before.cost(self.words) + self.after.cost(self.words)
        for step in self.steps:
            total += step.cost(self.words)
        return total

    @property
    def shared_cost(self) -> Cost:
        """The same through shared memory: every word stored and loaded, a turn each."""
        packing = self.before.cost(self.words) + self.after.cost(self.words)
        moved = any(not isinstance(step, Rename) for step in self.steps)
        return packing + Cost(turns=2 * self.words if moved else 0)

    def word_source(self) -> IntArray:
        """Return, by thread and word, the place thread * words + word that it takes its word from, before packing."""
        thread, word = np.indices((self.lanes * self.warps, self.words), dtype=np.int64)
        for step in reversed(self.steps):
            word, thread = step.source(word, thread)
        return np.asarray(thread * self.words + word, dtype=np.int64)

    def source(self) -> IntArray:
        """Return, by warp, lane and register, the place whose element it receives: (warp * lanes + lane) * registers +
        register."""
        thread, element = np.indices((self.lanes * self.warps, self.registers), dtype=np.int64)
        element = self.after.source(element)
        taken = self.word_source()[thread, element // self.packed]
        thread, element = taken // self.words, taken % self.words * self.packed + element % self.packed
        answer = thread * self.registers + self.before.source(element)
        return np.asarray(answer.reshape(self.warps, self.lanes, self.registers), dtype=np.int64)

    def run(self, elements: Any) -> npt.NDArray[Any]:
        """Return what every register holds after the steps.

        Args:
            elements: The elements before, indexed by warp, lane and register.

        Raises: MalformedError: LA884.
        """
        held = np.asarray(elements)
        if held.shape != (self.warps, self.lanes, self.registers):
            raise CHECK.malformed("elements", "must be indexed by warp, lane and register", held.shape)
        return np.asarray(held.reshape(-1)[self.source()])

    def __str__(self) -> str:
        return f"{len(self.steps)} steps of {self.words} words, {self.packed} elements each: {self.cost}"

    def to_json(self) -> dict[str, object]:
        """Return the plan as JSON-ready data."""
        return {
            "schema": SCHEMA, "registers": self.registers, "lanes": self.lanes, "warps": self.warps,
            "before": self.before.to_json(), "steps": [step.to_json() for step in self.steps],
            "after": self.after.to_json(), "cost": self.cost.to_json(), "shared_cost": self.shared_cost.to_json(),
        }  # fmt: skip
