"""Lower register steps to selects and byte permutes of 32-bit words, in as few instructions as known.

``W`` names materialised words of four bytes. A *mixed* word takes each byte from one of at most two words, with one
selection where a functional of the thread is 0 and another where it is 1. It takes one instruction: a select if all
bytes keep their positions, otherwise a byte permute whose selector is computed once.

Words stay mixed until something reads them. This fuses a lane-dependent select with the packing before or after it, and
unread words cost nothing. ``Lowering`` walks the steps of a plan this way, both to count costs (``proofs.conversion``)
and to write kernels (``codegen.conversion_steps``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeAlias, TypeVar

import numpy as np

from layoutalg.proofs.conversion_steps import WORD_BITS, Access, Read, Step, Through
from layoutalg.proofs.exchange import Choose, Exchange, Move, Rename, Take
from layoutalg.proofs.shuffle import ShufflePlan

W = TypeVar("W", bound=Hashable)
WORD_BYTES, OPEN = WORD_BITS // 8, -1
"""``OPEN``: a don't-care byte."""
STRAIGHT, SECOND = (0, 1, 2, 3), (4, 5, 6, 7)
"""The bytes of the first word and of the second."""
WordStep: TypeAlias = Choose | Exchange | Move | Rename | Read


@dataclass(frozen=True, slots=True)
class Mixed(Generic[W]):
    """A word made of one or two others.

    Example:
        >>> Mixed(("a", "b"), 1, STRAIGHT, (4, 5, 6, 7)).instruction, Mixed(("a",), 0, STRAIGHT, STRAIGHT).instruction
        ('select', '')
    """

    words: tuple[W, ...]  # its source words
    asked: int  # functional of the thread; 0 if all threads do the same
    off: tuple[int, ...]  # per byte, the source byte (4 and up: second word) where the functional is 0
    on: tuple[int, ...]  # the same where it is 1

    @property
    def whole(self) -> tuple[int | None, int | None]:
        """The source word it equals where the functional is 0, and where it is 1; None if bytes move."""
        off = _whole(self.off)
        return off, off if self.on == self.off else _whole(self.on)

    @property
    def instruction(self) -> str:
        """``"select"``, ``"permute"``, or empty if it equals one of its words."""
        off, on = self.whole
        if off is None or on is None:
            return "permute"
        return "" if off == on else "select"


Part: TypeAlias = "tuple[Mixed[W], int] | None"
"""A byte of a word; None: don't care."""


def plain(word: W) -> Mixed[W]:
    """Return an existing word as a mixed one."""
    return Mixed((word,), 0, STRAIGHT, STRAIGHT)


@lru_cache(maxsize=4096)
def _whole(taken: tuple[int, ...]) -> int | None:
    if all(byte in (place, OPEN) for place, byte in enumerate(taken)):
        return 0
    return 1 if all(byte in (place + WORD_BYTES, OPEN) for place, byte in enumerate(taken)) else None


def _joined(off: Sequence[tuple[W, int] | None], on: Sequence[tuple[W, int] | None], asked: int) -> Mixed[W] | None:
    """Return the mixed word of these bytes; None if they come from more than two words."""
    words = tuple(dict.fromkeys(part[0] for part in (*off, *on) if part is not None))
    if len(words) > 2:
        return None
    first = {word: WORD_BYTES * number for number, word in enumerate(words)}
    ways = [tuple(OPEN if part is None else first[part[0]] + part[1] for part in way) for way in (off, on)]
    return Mixed(words, 0 if ways[0] == ways[1] else asked, ways[0], ways[1])


class Mixer(Generic[W]):
    """Materialises mixed words, each once.

    Args:
        made: Emits the instruction for a mixed word and returns the new word's name.

    Example:
        >>> mixer = Mixer(lambda mixed: "made")
        >>> halves = [(plain("a"), 0), (plain("a"), 1), (plain("b"), 0), (plain("b"), 1)]
        >>> mixer.gathered(halves).off, mixer.word(mixer.gathered(halves)), mixer.word(plain("a"))
        ((0, 1, 4, 5), 'made', 'a')
    """

    def __init__(self, made: Callable[[Mixed[W]], W]) -> None:
        self.made = made
        self.known: dict[Mixed[W], W] = {}

    def word(self, mixed: Mixed[W]) -> W:
        """Return the name of a word, materialising it if needed."""
        off, on = mixed.whole
        if off is not None and off == on:
            return mixed.words[off]
        if mixed not in self.known:
            self.known[mixed] = self.made(mixed)
        return self.known[mixed]

    def settled(self, mixed: Mixed[W]) -> Mixed[W]:
        """Return the word, materialised."""
        return plain(self.word(mixed))

    def chosen(self, off: Mixed[W], on: Mixed[W], asked: int) -> Mixed[W]:
        """Return ``off`` where the functional is 0 and ``on`` where it is 1."""
        one, other = (each if each.asked in (0, asked) else self.settled(each) for each in (off, on))
        if one.off == one.on == STRAIGHT == other.off == other.on and one.words[0] != other.words[0]:
            return Mixed((one.words[0], other.words[0]), asked, STRAIGHT, SECOND)
        found = _joined(_bytes(one, one.off), _bytes(other, other.on), asked)
        if found is None:
            two = (self.word(off), self.word(on))
            found = Mixed(two, asked, STRAIGHT, SECOND)
        return found

    def gathered(self, parts: Sequence[Part[W]]) -> Mixed[W]:
        """Return the word of these bytes, lowest first; missing bytes are don't-care."""
        live = [part for part in parts if part is not None]
        whole = live[0][0]
        if all(part is None or (part[0] == whole and part[1] == place) for place, part in enumerate(parts)):
            return whole
        asked = {each.asked for each, byte in live if each.off[byte] != each.on[byte]}
        found = _spread(parts, asked.pop() if asked else 0) if len(asked) < 2 else None
        if found is not None:
            return found
        settled = [None if part is None else (self.word(part[0]), part[1]) for part in parts]
        words = list(dict.fromkeys(part[0] for part in settled if part is not None))
        while len(words) > 2:  # merge the first two into one word of the bytes needed
            two, words = words[:2], words[2:]
            made = self.word(_two([part if part and part[0] in two else None for part in settled]))
            settled = [(made, place) if part and part[0] in two else part for place, part in enumerate(settled)]
            words.insert(0, made)
        return _two(settled)

    def gathered_all(self, every: Sequence[Sequence[Part[W]]]) -> list[Mixed[W]]:
        """Return the words of these bytes; two words gathered from the same four words share halves."""
        found: list[Mixed[W] | None] = [None] * len(every)
        waiting: dict[frozenset[W], int] = {}
        for number, parts in enumerate(every):
            words = _four(parts)
            if words is None:
                found[number] = self.gathered(parts)
            elif (key := frozenset(words)) in waiting:
                other = waiting.pop(key)
                found[other], found[number] = self._shared(every[other], parts)
            else:
                waiting[key] = number
        for number in waiting.values():
            found[number] = self.gathered(every[number])
        return [each for each in found if each is not None]

    def _shared(self, one: Sequence[Part[W]], other: Sequence[Part[W]]) -> tuple[Mixed[W], Mixed[W]]:
        """Return two words gathered from the same four: 4 permutes, each half feeds both, instead of 6."""
        byte = [{part[0].words[0]: (part, place) for place, part in enumerate(parts) if part} for parts in (one, other)]
        names = list(byte[0])
        halves = [self.gathered([byte[way][name][0] for way in (0, 1) for name in pair])
                  for pair in (names[:2], names[2:])]  # fmt: skip
        held = [self.settled(half) for half in halves]
        made = []
        for way in (0, 1):
            parts: list[Part[W]] = [None] * WORD_BYTES
            for number, name in enumerate(names):
                parts[byte[way][name][1]] = (held[number // 2], 2 * way + number % 2)
            made.append(self.gathered(parts))
        return made[0], made[1]


def _four(parts: Sequence[Part[W]]) -> list[W] | None:
    """Return the four distinct existing words that the bytes come from; otherwise None."""
    words = [part[0].words[0] for part in parts if part is not None and part[0].off == STRAIGHT == part[0].on]
    return words if len(words) == WORD_BYTES == len(set(words)) else None


def _two(parts: Sequence[tuple[W, int] | None]) -> Mixed[W]:
    """Return the mixed word of these bytes of at most two words."""
    words = tuple(dict.fromkeys(part[0] for part in parts if part is not None))
    taken = tuple(OPEN if part is None else WORD_BYTES * words.index(part[0]) + part[1] for part in _filled(parts))
    return Mixed(words, 0, taken, taken)


def _filled(parts: Sequence[tuple[W, int] | None]) -> list[tuple[W, int] | None]:
    return [*parts, *[None] * (WORD_BYTES - len(parts))]


def _bytes(mixed: Mixed[W], taken: tuple[int, ...]) -> list[tuple[W, int] | None]:
    return [None if byte == OPEN else (mixed.words[byte // WORD_BYTES], byte % WORD_BYTES) for byte in taken]


def _spread(parts: Sequence[Part[W]], asked: int) -> Mixed[W] | None:
    """Return bytes of mixed words as a mixed word of their source words; None if those are more than two."""
    ways = []
    for on in (False, True):
        taken: list[tuple[W, int] | None] = []
        for part in parts:
            byte = OPEN if part is None else (part[0].on if on else part[0].off)[part[1]]
            taken.append(
                None if part is None or byte == OPEN else (part[0].words[byte // WORD_BYTES], byte % WORD_BYTES)
            )
        ways.append(_filled(taken))
    return _joined(ways[0], ways[1], asked)


@dataclass(frozen=True, slots=True)
class Elements(Generic[W]):
    """A thread's elements: the bytes of each, lowest first, and the elements per word."""

    parts: tuple[tuple[tuple[Mixed[W], int], ...], ...]
    packed: int


class Lowering(ABC, Generic[W]):
    """Walks over the steps of a plan.

    Args:
        element_bits: Bits of an element.
        lanes: Lanes of a warp.
    """

    def __init__(self, element_bits: int, lanes: int) -> None:
        self.bits, self.lanes = element_bits, lanes
        self.natural = max(1, WORD_BITS // element_bits)
        self.planes = max(1, element_bits // WORD_BITS)
        self.mixer: Mixer[W] = Mixer(self.made)

    @abstractmethod
    def made(self, mixed: Mixed[W]) -> W:
        """Emit one instruction for a mixed word."""

    @abstractmethod
    def shuffled(self, word: W, step: Exchange | Move | Read, number: int, /) -> W:
        """Read a word from another lane, as the step specifies for word ``number``."""

    @abstractmethod
    def stored(self, access: Access, number: int, words: Sequence[W], /) -> None:
        """Store words by instruction ``number``."""

    @abstractmethod
    def loaded(self, access: Access, number: int, /) -> Sequence[W]:
        """Load words by instruction ``number``."""

    @abstractmethod
    def rounds(self, step: ShufflePlan, words: Sequence[W], /) -> list[W]:
        """Shuffle whole words; the words of a wide element are consecutive."""

    def barrier(self, step: Through) -> None:
        """Wait at the step's barrier."""

    def step(self, step: Step, held: Elements[W]) -> Elements[W]:
        """Return the elements that a thread holds after a step."""
        if isinstance(step, Take):
            return Elements(tuple(held.parts[register] for register in step.registers), step.repacked)
        if isinstance(step, Through):
            return self.through(step, held)
        if isinstance(step, ShufflePlan):
            return self.of_words(self.rounds(step, [self.mixer.word(word) for word in self.words(held)]), held.packed)
        return self.moved(step, held)

    def begun(self, words: Sequence[W], registers: int) -> Elements[W]:
        """Return the elements of fully packed words."""
        return self._elements([plain(word) for word in words], registers, self.natural)

    def of_words(self, words: Sequence[W], packed: int) -> Elements[W]:
        """Return the elements of words with ``packed`` elements each."""
        return self._elements([plain(word) for word in words], len(words) // self.planes * packed, packed)

    def ended(self, held: Elements[W]) -> list[W]:
        """Return the elements as fully packed words."""
        return [self.mixer.word(each) for each in self.words(Elements(held.parts, self.natural))]

    def words(self, held: Elements[W]) -> list[Mixed[W]]:
        """Return the words of the elements; the words of a wide element are consecutive."""
        if self.bits >= WORD_BITS:
            return [self.mixer.gathered(part[first : first + WORD_BYTES])
                    for part in held.parts for first in range(0, len(part), WORD_BYTES)]  # fmt: skip
        wide = WORD_BYTES // held.packed
        groups = []
        for first in range(0, len(held.parts), held.packed):
            group: list[Part[W]] = []
            for part in held.parts[first : first + held.packed]:
                group += [*part, *[None] * (wide - len(part))]
            groups.append(group)
        return self.mixer.gathered_all(groups)

    def _elements(self, words: Sequence[Mixed[W]], registers: int, packed: int) -> Elements[W]:
        """Return the elements of words."""
        size = self.bits // 8
        if self.planes > 1:
            return Elements(tuple(tuple((words[self.planes * register + byte // WORD_BYTES], byte % WORD_BYTES)
                                        for byte in range(size)) for register in range(registers)), packed)  # fmt: skip
        wide = WORD_BYTES // packed
        return Elements(
            tuple(
                tuple((words[register // packed], register % packed * wide + byte) for byte in range(size))
                for register in range(registers)
            ),
            packed,
        )

    def moved(self, step: WordStep, held: Elements[W]) -> Elements[W]:
        """Apply a step that moves words between lanes and registers."""
        mine = self.words(held)
        after = [stepped(step, mine[plane :: self.planes], self.mixer, self.shuffled, self.lanes)
                 for plane in range(self.planes)]  # fmt: skip
        words = [word for group in zip(*after, strict=True) for word in group]
        return self._elements(words, len(after[0]) * held.packed, held.packed)

    def through(self, step: Through, held: Elements[W]) -> Elements[W]:
        """Apply a pass through shared memory."""
        after: list[tuple[tuple[Mixed[W], int], ...]] = []
        for number in range(step.passes):
            if number:
                self.barrier(step)
            self.put(step.store, held, number, step.passes)
            self.barrier(step)
            for each in _part(step.load, number, step.passes):
                words = [plain(word) for word in self.loaded(step.load, each)]
                size = self.bits // 8
                after += [
                    tuple((words[byte // WORD_BYTES], byte % WORD_BYTES) for byte in range(first, first + size))
                    for first in range(0, step.load.elements * size, size)
                ]
        if step.blocks > 1:
            self.barrier(step)
        return Elements(tuple(after), self.natural)

    def put(self, access: Access, held: Elements[W], number: int, passes: int) -> None:
        """Store the elements of a pass."""
        many = access.elements
        flat = [
            [byte for part in held.parts[each * many : (each + 1) * many] for byte in part]
            for each in _part(access, number, passes)
        ]
        steps = range(0, len(flat[0]), WORD_BYTES)
        every = self.mixer.gathered_all([row[first : first + WORD_BYTES] for row in flat for first in steps])
        words = [self.mixer.word(each) for each in every]
        for place, each in enumerate(_part(access, number, passes)):
            self.stored(access, each, words[place * len(steps) : (place + 1) * len(steps)])


def stepped(
    step: WordStep,
    words: Sequence[Mixed[W]],
    mixer: Mixer[W],
    shuffled: Callable[[W, Exchange | Move | Read, int], W],
    lanes: int,
) -> list[Mixed[W]]:
    """Return the words after a step.

    Args:
        step: The step.
        words: The words before.
        mixer: Materialises the words that are read.
        shuffled: Reads a word from another lane; gets the word, the step and the number of the new word.
        lanes: Lanes of a warp.
    """
    if isinstance(step, Rename):
        return [words[int(word)] for word in step.source(np.arange(len(words)), np.zeros(1, np.int64))[0]]
    if isinstance(step, Read):
        return _read(step, words, mixer, shuffled, lanes)
    if isinstance(step, Move):
        return [word if step.mask(number, lanes) == 0 else plain(shuffled(mixer.word(word), step, number))
                for number, word in enumerate(words)]  # fmt: skip
    after = list(words)
    for number, word in enumerate(words):
        pair = number ^ step.vector
        other = words[pair]
        if isinstance(step, Choose):
            after[number] = mixer.chosen(word, other, step.asked)
        elif not (number & step.word_asked).bit_count() & 1:
            taken_ = plain(shuffled(mixer.word(mixer.chosen(other, word, step.lane_asked)), step, number))
            after[number] = mixer.chosen(word, taken_, step.lane_asked)
            after[pair] = mixer.chosen(taken_, other, step.lane_asked)
    return after


def _read(
    step: Read,
    words: Sequence[Mixed[W]],
    mixer: Mixer[W],
    shuffled: Callable[[W, Exchange | Move | Read, int], W],
    lanes: int,
) -> list[Mixed[W]]:
    """Return the words after a read; duplicates are sent once. Last words first: ptxas overlaps that order better."""
    sent = [None if step.mask(number, lanes) == 0 else (mixer.word(words[taken]), step.lanes[number])
            for number, taken in enumerate(step.taken)]  # fmt: skip
    done: dict[tuple[W, int], Mixed[W]] = {}
    for number in reversed(range(len(sent))):
        key = sent[number]
        if key is not None and key not in done:
            done[key] = plain(shuffled(key[0], step, number))
    return [words[step.taken[number]] if key is None else done[key] for number, key in enumerate(sent)]


def _part(access: Access, number: int, passes: int) -> range:
    """Return the instruction numbers of a pass."""
    each = access.count // passes
    return range(number * each, (number + 1) * each)
