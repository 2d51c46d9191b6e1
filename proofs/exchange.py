"""Exchanges of words between registers and lanes, as steps with known instruction counts.

A lane has 2^n words; w numbers a word and t = lane + lanes * warp a thread, both as bit vectors over F2. A functional
is a mask f with value f(x), the parity of x & f. A step has a *source*: place (w, t) after the step gets the word of
place source(w, t) before. A plan's source is the composition of its steps' sources, the first step outermost.

* ``Choose``: (w, t) -> (w + v f(t), t). Every word is selected from two by the lane: one select per word.
* ``Exchange``: (w, t) -> (w, t) + (v, u) (g(w) + f(t)), g(v) = f(u) = 1: swaps word bit g with lane bit f, along v and
  u. Of every pair w, w + v a lane keeps one word and sends the other to lane t + u: one shuffle and three selects per
  pair.
* ``Move``: (w, t) -> (w, A t + C w + c): one shuffle for every word not read from its own lane.
* ``Rename``: (w, t) -> (G w + c, t): no instruction.
* ``Repack``: a rename of elements narrower than a word: byte permutes.

Every affine bijection of a warp's words is Choose, Rename, Move, Choose (see ``synth.exchange``), so no more shuffles
than words are needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.f2 import matrix
from layoutalg.ground.check import Checker
from layoutalg.ground.record import Record

IntArray: TypeAlias = npt.NDArray[np.int64]
CHECK = Checker("LA884", "invalid exchange plan")
TAKE_CHECK = Checker("LA930", "invalid conversion plan")
MOST = 1 << 20
"""Most places of a plan."""
SHUFFLE_CYCLES, TURN_CYCLES, SELECT_CYCLES = 1.0, 1.0, 0.5
"""Multiprocessor cycles per warp instruction at compute capability 9.0: per cycle 32 lanes of a shuffle, 32 banks, or
64 lanes of a select or byte permute (CUDA C++ Programming Guide, arithmetic instructions)."""


def parity(mask: int, values: Any) -> IntArray:
    """Return the value of a functional at each number.

    Example:
        >>> parity(5, [0, 1, 4, 5, 7]).tolist()
        [0, 1, 1, 0, 0]
    """
    chosen = np.asarray(values, dtype=np.int64) & mask
    for shift in (16, 8, 4, 2, 1):
        chosen = chosen ^ chosen >> shift
    return np.asarray(chosen & 1, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Cost(Record, code="LA884", json="shuffles selects permutes turns cycles"):
    """Instruction counts of a thread."""

    shuffles: int = 0
    selects: int = 0  # selects, plus compares not shared by several selects
    permutes: int = 0  # byte permutes
    turns: int = 0  # shared-memory bank turns

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.shuffles + other.shuffles, self.selects + other.selects, self.permutes + other.permutes,
            self.turns + other.turns,
        )  # fmt: skip

    @property
    def cycles(self) -> float:
        """Multiprocessor cycles for one warp, its instructions in sequence."""
        slow = self.shuffles * SHUFFLE_CYCLES + self.turns * TURN_CYCLES
        return slow + (self.selects + self.permutes) * SELECT_CYCLES

    def __str__(self) -> str:
        parts = {"shuffle": self.shuffles, "select": self.selects, "permute": self.permutes, "turn": self.turns}
        told = [f"{count} {name}{'s' if count > 1 else ''}" for name, count in parts.items() if count]
        return f"{', '.join(told) or 'nothing'} ({self.cycles:g} cycles per warp)"


@dataclass(frozen=True, slots=True)
class Choose(Record, code="LA884", step="choose"):
    """Replaces word w by word w + ``vector`` in the threads where a functional is 1."""

    vector: int  # the XOR of the word number, not 0
    asked: int  # functional of the thread

    def source(self, word: IntArray, thread: IntArray) -> tuple[IntArray, IntArray]:
        """Return the source places."""
        return word ^ self.vector * parity(self.asked, thread), thread

    def cost(self, words: int) -> Cost:
        """Return the instructions of a lane with ``words`` words."""
        return Cost(selects=words)


@dataclass(frozen=True, slots=True)
class Exchange(Record, code="LA884", step="exchange"):
    """Swaps a bit of the word number with a bit of the lane number.

    Example:
        >>> word, thread = Exchange(1, 2, 1, 2).source(np.array([0, 1]), np.array([2, 2]))
        >>> word.tolist(), thread.tolist()
        ([1, 1], [0, 2])
    """

    vector: int  # the XOR of the word number
    lanes: int  # the XOR of the lane
    word_asked: int  # functional of the word, 1 at ``vector``
    lane_asked: int  # functional of the lane, 1 at ``lanes``

    def _validate(self) -> None:
        if not (self.vector & self.word_asked).bit_count() & (self.lanes & self.lane_asked).bit_count() & 1:
            raise CHECK.malformed("word_asked", "must be 1 at vector, and lane_asked 1 at lanes", self.word_asked)

    def source(self, word: IntArray, thread: IntArray) -> tuple[IntArray, IntArray]:
        """Return the source places."""
        goes = parity(self.word_asked, word) ^ parity(self.lane_asked, thread)
        return word ^ self.vector * goes, thread ^ self.lanes * goes

    def cost(self, words: int) -> Cost:
        """Return the instructions of a lane with ``words`` words."""
        return Cost(shuffles=words // 2, selects=3 * words // 2)


class LaneRead(Record):
    """Base of steps that read a word from another lane: ``threads(t)``, linear in the thread, xor ``beyond(word)``."""

    __slots__ = ()
    threads: tuple[int, ...]

    def beyond(self, word: int) -> int:
        """Return the XOR of the source lane that is the same in all threads."""
        raise NotImplementedError

    def read(self, word: int, thread: IntArray) -> IntArray:
        """Return the lane from which each thread reads a word."""
        return np.asarray(matrix.table(self.threads)[thread] ^ self.beyond(word), dtype=np.int64)

    def mask(self, word: int, lanes: int) -> int | None:
        """Return the XOR of source lane and own lane: 0 if the word stays, None if it varies by lane."""
        plain = all(column == (1 << bit) % lanes for bit, column in enumerate(self.threads))
        return self.beyond(word) if plain else None


@dataclass(frozen=True, slots=True)
class Move(LaneRead, code="LA884", step="move"):
    """Reads every word from some lane.

    Args:
        threads: Per thread bit, its column of the source lane; below the number of lanes.
        words: The same per bit of the word number.
        constant: The lane from which lane 0 reads word 0.
    """

    threads: tuple[int, ...]
    words: tuple[int, ...]
    constant: int

    def beyond(self, word: int) -> int:
        """Return the XOR of the source lane that is the same in all threads."""
        return matrix.apply(self.words, word) ^ self.constant

    def source(self, word: IntArray, thread: IntArray) -> tuple[IntArray, IntArray]:
        """Return the source places; the lanes must be those of a whole warp."""
        lanes = (1 << max((column.bit_length() for column in self.threads), default=0)) - 1
        lane = matrix.table(self.threads)[thread] ^ matrix.table(self.words)[word] ^ self.constant
        return word, np.asarray(thread & ~lanes | lane, dtype=np.int64)

    def cost(self, words: int) -> Cost:
        """Return the instructions of a lane with ``words`` words."""
        lanes = 1 << max((column.bit_length() for column in self.threads), default=0)
        return Cost(shuffles=sum(self.mask(word, lanes) != 0 for word in range(words)))


@dataclass(frozen=True, slots=True)
class Rename(Record, code="LA884", step="rename"):
    """Renumbers words; no instruction."""

    words: tuple[int, ...]  # per bit of the word number, its column of the source number
    constant: int  # the source of word 0

    def source(self, word: IntArray, thread: IntArray) -> tuple[IntArray, IntArray]:
        """Return the source places."""
        return np.asarray(matrix.table(self.words, self.constant)[word], dtype=np.int64), thread

    def cost(self, words: int) -> Cost:
        """Return the instructions of a lane with ``words`` words: none."""
        return Cost(shuffles=0 * words)


Step: TypeAlias = Choose | Exchange | Move | Rename


@dataclass(frozen=True, slots=True)
class Take(Record, code="LA930", step="take"):
    """Replaces the thread's elements by a selection of them, the same in all threads.

    Example:
        >>> Take((1, 0), 2, 2).parts(0), Take((1, 0), 2, 2).permutes, Take((2, 3, 0, 1), 2, 2).permutes
        (((0, 1), (0, 0)), 1, 0)
    """

    # for each element after the step, its number before; elements may be dropped or repeated
    registers: tuple[int, ...]
    packed: int  # elements per word before
    repacked: int  # elements per word after

    def _validate(self) -> None:
        if min(self.packed, self.repacked) < 1 or min(self.registers, default=-1) < 0:
            raise TAKE_CHECK.malformed(
                "registers", "must be element numbers, with packed and repacked >= 1", self.registers
            )

    def parts(self, word: int) -> tuple[tuple[int, int], ...]:
        """Return, for each part of a word, the (word, part) it comes from."""
        first = word * self.repacked
        return tuple(divmod(element, self.packed) for element in self.registers[first : first + self.repacked])

    @property
    def words(self) -> int:
        """Words after the step."""
        return -(-len(self.registers) // self.repacked)

    @property
    def permutes(self) -> int:
        """Byte permutes per thread: k - 1 for a word gathered from k words, one to reorder a single word."""
        count = 0
        for word in range(self.words):
            parts = self.parts(word)
            if any(part != place for place, (_, part) in enumerate(parts)) or len({source for source, _ in parts}) > 1:
                count += max(1, len({source for source, _ in parts}) - 1)
        return count


@dataclass(frozen=True, slots=True)
class Repack(Record, code="LA884", step="repack"):
    """Renumbers a lane's elements, packed several to a word: element e is part e % packed of word e // packed."""

    elements: tuple[int, ...]  # per bit of the element number, its column of the source number
    constant: int  # the source of element 0
    packed: int  # elements per word

    @property
    def take(self) -> Take:
        """The same as a selection of elements."""
        return Take(tuple(matrix.table(self.elements, self.constant).tolist()), self.packed, self.packed)

    @property
    def cost(self) -> Cost:
        """Instructions of a lane."""
        return Cost(permutes=self.take.permutes)

    def source(self, element: IntArray) -> IntArray:
        """Return the source elements."""
        return np.asarray(matrix.table(self.elements, self.constant)[element], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class ExchangePlan(
    Record,
    code="LA884",
    schema="layoutalg/exchanges/1",
    json="registers lanes warps before steps after cost shared_cost",
):
    """A permutation of the elements of every warp, as steps on words.

    Args:
        registers: Elements per lane.
        lanes: Lanes per warp.
        warps: Number of warps.
        before: Repacking before the steps.
        steps: The steps on words.
        after: Repacking after the steps.

    Example:
        >>> plain = Repack((1,), 0, 1)
        >>> plan = ExchangePlan(2, 2, 1, plain, (Exchange(1, 1, 1, 1),), plain)
        >>> plan.source().tolist(), str(plan.cost)
        ([[[0, 2], [1, 3]]], '1 shuffle, 3 selects (2.5 cycles per warp)')
    """

    registers: int
    lanes: int
    warps: int
    before: Repack
    steps: tuple[Step, ...]
    after: Repack

    def _validate(self) -> None:
        for name in ("registers", "lanes", "warps"):
            value = CHECK.integer(getattr(self, name), name, 1, MOST)
            if value & (value - 1):
                raise CHECK.malformed(name, "must be a power of two", value)
        if self.registers * self.lanes * self.warps > MOST:
            raise CHECK.malformed("registers", f"must give at most {MOST} places", self.registers)
        if self.packed < 1 or self.before.packed != self.after.packed or self.registers % self.packed:
            raise CHECK.malformed("before", "must have the packing of after", self.before.packed)
        for place, step in (("before", self.before), *(("steps", step) for step in self.steps), ("after", self.after)):
            if not self._fits(step):
                raise CHECK.malformed(place, "must fit the registers, lanes and warps", str(step))
        wrong = np.flatnonzero(np.bincount(self.source().reshape(-1), minlength=1) != 1)
        if len(wrong):
            raise CHECK.malformed("steps", "must use every word once", int(wrong[0]))

    def _fits(self, step: Step | Repack) -> bool:
        """Whether a step only names existing words, lanes and threads."""
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
        """Elements per word."""
        return self.before.packed

    @property
    def words(self) -> int:
        """Words per lane."""
        return self.registers // self.packed

    @property
    def cost(self) -> Cost:
        """Instructions of a thread."""
        total = self.before.cost + self.after.cost
        for step in self.steps:
            total += step.cost(self.words)
        return total

    @property
    def shared_cost(self) -> Cost:
        """The cost through shared memory: every word stored and loaded, one turn each."""
        packing = self.before.cost + self.after.cost
        moved = any(not isinstance(step, Rename) for step in self.steps)
        return packing + Cost(turns=2 * self.words if moved else 0)

    def word_source(self) -> IntArray:
        """Return, by thread and word, the source place thread * words + word, before packing."""
        thread, word = np.indices((self.lanes * self.warps, self.words), dtype=np.int64)
        for step in reversed(self.steps):
            word, thread = step.source(word, thread)
        return np.asarray(thread * self.words + word, dtype=np.int64)

    def source(self) -> IntArray:
        """Return the source place of each place, int64[warp, lane, register].

        Places are numbered (warp * lanes + lane) * registers + register.
        """
        thread, element = np.indices((self.lanes * self.warps, self.registers), dtype=np.int64)
        element = self.after.source(element)
        taken = self.word_source()[thread, element // self.packed]
        thread, element = taken // self.words, taken % self.words * self.packed + element % self.packed
        answer = thread * self.registers + self.before.source(element)
        return np.asarray(answer.reshape(self.warps, self.lanes, self.registers), dtype=np.int64)

    def __str__(self) -> str:
        return f"{len(self.steps)} steps on {self.words} words of {self.packed} elements: {self.cost}"
