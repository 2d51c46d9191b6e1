"""Statements of the single steps of a conversion: words as names, bytes joined by permutations, addresses of few parts.

Main definitions: ``StepWriter``, ``StepHeld``.

Implementation notes: a byte address is a linear map of the thread, written as few shifted parts of t, and a constant of
each instruction. Of the constant the bits that no thread has are added, which is an immediate of the instruction; the
others are joined by exclusive or, once for all instructions that have them in common.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from layoutalg.codegen.exchange import stepped
from layoutalg.codegen.thread_numbers import Numbers
from layoutalg.ground.check import Checker
from layoutalg.proofs.conversion_steps import Read, SharedAccess, Through
from layoutalg.proofs.exchange import Choose, Exchange, Move, Rename
from layoutalg.proofs.shuffle import NONE, ShufflePlan

CHECK = Checker("LA955", "no kernel runs this conversion")
WORD_BITS, WORD_BYTES = 32, 4


@dataclass(frozen=True, slots=True)
class StepHeld:
    """What a thread holds: names of machine words, in order, of ``packed`` elements each (or parts of one)."""

    words: list[str]
    elements: int
    packed: int
    bits: int

    @property
    def planes(self) -> int:
        """Machine words of an element."""
        return max(1, self.bits // WORD_BITS)

    def bytes_of(self, element: int) -> list[tuple[str, int]]:
        """The (word, byte) of every byte of an element."""
        if self.bits > WORD_BITS:
            first = element * self.planes
            return [(self.words[first + plane], byte) for plane in range(self.planes) for byte in range(WORD_BYTES)]
        word, part = divmod(element, self.packed)
        return [(self.words[word], part * WORD_BYTES // self.packed + byte) for byte in range(self.bits // 8)]


class StepWriter:
    """Collects the statements."""

    def __init__(self, numbers: Numbers, names: Iterator[str], lanes: int, warps: int, area: int) -> None:
        self.numbers, self.names, self.lanes, self.warps, self.area = numbers, names, lanes, warps, area
        self.lines: list[str] = []
        self.known: dict[tuple[tuple[str, int], ...], str] = {}

    def new(self, expression: str) -> str:
        """Declare a word and return its name."""
        name = next(self.names)
        self.lines.append(f"const la_u32 {name} = {expression};")
        return name

    def word(self, parts: Sequence[tuple[str, int]]) -> str:
        """Return the name of a word of these bytes, lowest first; fewer than four leave the others open."""
        key = tuple(parts)
        if key not in self.known:
            self.known[key] = self._word(key)
        return self.known[key]

    def _word(self, parts: tuple[tuple[str, int], ...]) -> str:
        sources = list(dict.fromkeys(name for name, _ in parts))
        if len(sources) == 1 and all(byte == place for place, (_, byte) in enumerate(parts)):
            return sources[0]
        if len(sources) == 1 and len(parts) < WORD_BYTES and parts[-1][1] - parts[0][1] == len(parts) - 1:
            return self.new(f"{sources[0]} >> {8 * parts[0][1]}")
        held, done = sources[0], {sources[0]}
        placed = False
        for other in sources[1:] or sources:
            selector = 0
            for place in range(WORD_BYTES):
                name, byte = parts[place] if place < len(parts) else (None, place)
                if len(sources) > 1 and name == other:
                    nibble = 4 + byte
                elif name in done:
                    nibble = place if placed else byte
                else:
                    nibble = place
                selector |= nibble << 4 * place
            held, placed = self.new(f"la_permute({held}, {other}, {selector:#06x}u)"), True
            done.add(other)
        return held

    def take(self, registers: Sequence[int], packed: int, held: StepHeld) -> StepHeld:
        """Elements become others of the same thread."""
        words = []
        if held.bits > WORD_BITS:
            planes = held.planes
            words = [held.words[register * planes + plane] for register in registers for plane in range(planes)]
            return StepHeld(words, len(registers), packed, held.bits)
        wide = WORD_BYTES // packed
        for first in range(0, len(registers), packed):
            parts: list[tuple[str, int]] = []
            for register in registers[first : first + packed]:
                mine = held.bytes_of(register)
                parts += [*mine, *[(mine[0][0], mine[-1][1])] * (wide - len(mine))] if wide > len(mine) else mine
            if packed == 1:
                parts = held.bytes_of(registers[first])
            words.append(self.word(parts))
        return StepHeld(words, len(registers), packed, held.bits)

    def words(self, step: object, held: StepHeld) -> StepHeld:
        """Words move between lanes and registers."""
        planes, after = held.planes, list[list[str]]()
        for plane in range(planes):
            mine = held.words[plane::planes]
            if isinstance(step, ShufflePlan):
                after.append(self._rounds(step, mine))
            elif isinstance(step, Read):
                after.append(self._read(step, mine))
            elif isinstance(step, (Choose, Exchange, Move, Rename)):
                lines, found = stepped(step, mine, self.numbers, self.names, self.warps, self.lanes)
                self.lines += lines
                after.append(found)
            else:
                raise CHECK.malformed("plan", "must have steps that are known", type(step).__name__)
        words = [word for group in zip(*after, strict=True) for word in group]
        return StepHeld(words, len(after[0]) * held.packed, held.packed, held.bits)

    def _read(self, step: Read, words: Sequence[str]) -> list[str]:
        after, done = list[str](), dict[tuple[str, int], str]()
        for word, taken in enumerate(step.taken):
            mask = step.mask(word, self.lanes)
            name = words[taken]
            key = (name, step.lanes[word])
            if mask == 0:
                after.append(name)
                continue
            if key not in done:
                if mask is not None:
                    done[key] = self.new(f"la_shuffle_xor({name}, {mask}u)")
                else:
                    lane = self._linear(step.threads, step.lanes[word])
                    done[key] = self.new(f"la_shuffle({name}, {lane})")
            after.append(done[key])
        return after

    def _rounds(self, step: ShufflePlan, words: Sequence[str]) -> list[str]:
        """Rounds of shuffles of one word of each lane."""
        threads = self.lanes * self.warps
        kept = np.array(step.kept, dtype=np.int64).reshape(threads, step.registers)
        after = []
        for register in range(step.registers):
            column = kept[:, register]
            name = next(self.names)
            live = column != NONE
            self.lines.append(f"la_u32 {name} = {self._chosen(words, column, live) if live.any() else '0'};")
            after.append(name)
        for each in step.rounds:
            send, read, into = (
                np.array(rows, dtype=np.int64).reshape(threads) for rows in (each.send, each.read, each.into)
            )
            live = into != NONE
            asked = np.zeros(threads, dtype=bool)
            asked[(np.arange(threads) // self.lanes * self.lanes + read)[live]] = True
            taken = self.new(f"la_shuffle({self._chosen(words, send, asked)}, {self.numbers.text(read, live)})")
            targets = np.unique(into[live])
            if len(targets) == 1 and live.all():
                self.lines.append(f"{after[targets[0]]} = {taken};")
                continue
            where = self.new(self.numbers.text(np.where(live, into, step.registers)))
            self.lines += [f"{after[target]} = {where} == {target}u ? {taken} : {after[target]};" for target in targets]
        return after

    def _chosen(self, words: Sequence[str], registers: npt.NDArray[np.int64], live: npt.NDArray[np.bool_]) -> str:
        """The word that each live thread names."""
        named = [int(register) for register in np.unique(registers[live])]
        if len(named) == 1:
            return words[named[0]]
        which = self.new(self.numbers.text(np.where(live, registers, named[0]), live))
        chosen = words[named[0]]
        for other in named[1:]:
            chosen = self.new(f"{which} == {other}u ? {words[other]} : {chosen}")
        return chosen

    def through(self, step: Through, held: StepHeld) -> StepHeld:
        """Elements pass through shared memory."""
        barrier = "__syncthreads();" if step.barrier == "block" else "la_sync_warp();"
        after: list[list[tuple[str, int]]] = []
        for number in range(step.passes):
            if number:
                self.lines.append(barrier)
            self._store(step.store, held, _part(step.store, number, step.passes))
            self.lines.append(barrier)
            after += self._load(step.load, held.bits, _part(step.load, number, step.passes))
        self.known = {}
        packed = max(1, WORD_BITS // held.bits)
        flat = [byte for element in after for byte in element]
        words = [self.word(flat[first : first + WORD_BYTES]) for first in range(0, len(flat), WORD_BYTES)]
        return StepHeld(words, len(after), packed, held.bits)

    def _store(self, access: SharedAccess, held: StepHeld, which: range) -> None:
        many = access.elements
        body = []
        for number in which:
            flat = [byte for element in range(number * many, (number + 1) * many) for byte in held.bytes_of(element)]
            words = [self.word(flat[first : first + WORD_BYTES]) for first in range(0, len(flat), WORD_BYTES)]
            at = self._linear(access.threads, access.starts[number], self.area)
            value = words[0]
            if len(words) > 1:
                value = next(self.names)
                body.append(f"const la_words{len(words)} {value} = {{{{{', '.join(words)}}}}};")
            call = _matrix_call("st", access) if access.matrices else f"la_shared_store_b{8 * len(flat)}"
            body.append(f"{call}({at}, {value});")
        if access.idle:
            body = [f"if ((t & {access.idle}u) == 0) {{", *(f"    {line}" for line in body), "}"]
        self.lines += body

    def _load(self, access: SharedAccess, bits: int, which: range) -> list[list[tuple[str, int]]]:
        """The (word, byte) of every byte of the elements that are loaded."""
        found = []
        size = access.elements * bits // 8
        words = -(-size // WORD_BYTES)
        kind = "la_u32" if words == 1 else f"la_words{words}"
        for number in which:
            at = self._linear(access.threads, access.starts[number], self.area)
            call = _matrix_call("ld", access) if access.matrices else f"la_shared_load_b{8 * size}"
            name = next(self.names)
            if access.idle:
                self.lines += [f"{kind} {name} = {{}};", f"if ((t & {access.idle}u) == 0) {name} = {call}({at});"]
            else:
                self.lines.append(f"const {kind} {name} = {call}({at});")
            names = [name] if words == 1 else [f"{name}.word[{word}]" for word in range(words)]
            flat = [(names[byte // WORD_BYTES], byte % WORD_BYTES) for byte in range(size)]
            each = bits // 8
            found += [flat[first : first + each] for first in range(0, size, each)]
        return found

    def _linear(self, columns: Sequence[int], start: int, area: int = 0) -> str:
        """The number ``columns(t) xor start``, and ``area`` more, as an expression."""
        reach = 0
        for column in columns:
            reach |= column
        if not reach:
            return f"{start + area}u"
        name = self._shared(_shifted(columns))
        inside, outside = start & reach, (start & ~reach) + area
        if inside:
            name = self._shared(f"{name} ^ {inside}u")
        return f"{name} + {outside}u" if outside else name

    def _shared(self, expression: str) -> str:
        """The name of an expression that is computed once, before all statements."""
        return self.numbers.parts.setdefault(expression, f"of_t{len(self.numbers.parts)}")


def _shifted(columns: Sequence[int]) -> str:
    """A linear map of t as the exclusive or of shifted parts of t, one for each distance that a bit goes."""
    masks: dict[int, int] = {}
    for bit, column in enumerate(columns):
        for to in range(column.bit_length()):
            if column >> to & 1:
                masks[to - bit] = masks.get(to - bit, 0) | 1 << bit
    parts = []
    for distance, mask in sorted(masks.items()):
        kept = "t" if mask == (1 << len(columns)) - 1 else f"(t & {mask:#x}u)"
        parts.append(kept if not distance else f"({kept} {'<<' if distance > 0 else '>>'} {abs(distance)})")
    return " ^ ".join(parts)


def _part(access: SharedAccess, number: int, passes: int) -> range:
    """The instructions of a pass."""
    each = len(access.starts) // passes
    return range(number * each, (number + 1) * each)


def _matrix_call(end: str, access: SharedAccess) -> str:
    trans = "_trans" if access.instruction.endswith(".trans") else ""
    return f"la_{end}matrix_x{access.matrices}{trans}"
