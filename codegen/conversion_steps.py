"""Statements of the steps of a conversion: named words, byte permutations, cheap addresses.

Implementation notes: a byte address is a linear map of the thread, written as a few shifted parts of t, combined with a
constant per instruction. Constant bits outside the map's range are added (an immediate of the instruction); the others
are XORed in, once for all instructions that share them. Addresses that are not linear over F2 are sums of strided
digits of t, or table look-ups, shared by instructions whose addresses differ by a constant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from layoutalg.codegen.thread_numbers import Numbers, shifted
from layoutalg.ground.check import Checker
from layoutalg.proofs.conversion_steps import Access, Read, Step, Through
from layoutalg.proofs.exchange import Exchange, Move
from layoutalg.proofs.listed_access import OUT, TABLE_BITS, ListedAccess, taking
from layoutalg.proofs.register_words import OPEN, WORD_BYTES, Elements, Lowering, Mixed
from layoutalg.proofs.shuffle import NONE, ShufflePlan

CHECK = Checker("LA955", "cannot generate a kernel for this conversion")

WARP = """
#ifndef LA_HOST
// Returns the word of the lane whose number differs in the bits of a mask.
__device__ __forceinline__ la_u32 la_shuffle_xor(la_u32 word, la_u32 mask)
{
#ifdef __CUDACC__
    return __shfl_xor_sync(0xFFFFFFFFu, word, (int)mask);
#else
    return la_shuffle(word, (threadIdx.x ^ mask) % LA_LANES);
#endif
}
#endif
"""
"""A function of the statements that is not portable."""


class StepWriter(Lowering[str]):
    """Collects the statements.

    Args:
        element_bits: Bits of an element.
        numbers: Collects expressions of the thread.
        names: Fresh names.
        lanes: Lanes of a warp.
        warps: Warps of the block.
        area: First byte of shared memory to use.
    """

    def __init__(
        self, element_bits: int, numbers: Numbers, names: Iterator[str], lanes: int, warps: int, area: int
    ) -> None:
        super().__init__(element_bits, lanes)
        self.numbers, self.names, self.warps, self.area = numbers, names, warps, area
        self.lines: list[str] = []
        self.window = 0
        self.listed: dict[int, tuple[tuple[tuple[int, int], ...], npt.NDArray[np.int64]]] = {}

    def through(self, step: Through, held: Elements[str]) -> Elements[str]:
        """Write a pass through shared memory."""
        self.window = step.smem_bytes // step.blocks if step.blocks > 1 else 0
        return super().through(step, held)

    def written(self, steps: Sequence[Step], words: Sequence[str], registers: int) -> list[str]:
        """Write the steps of a thread; return the names of its words after them."""
        held, through = self.begun(words, registers), False
        for step in steps:
            if isinstance(step, Through):
                self.lines += ["__syncthreads();"] * through
                through = True
            held = self.step(step, held)
        return self.ended(held)

    def new(self, expression: str) -> str:
        """Declare a word and return its name."""
        name = next(self.names)
        self.lines.append(f"const la_u32 {name} = {expression};")
        return name

    def made(self, mixed: Mixed[str]) -> str:
        """Write a select or a permutation."""
        return self.new(mixed_text(mixed, self.numbers))

    def shuffled(self, word: str, step: Exchange | Move | Read, number: int) -> str:
        """Write a shuffle."""
        if isinstance(step, Exchange):
            return self.new(f"la_shuffle_xor({word}, {step.lanes}u)")
        mask = step.mask(number, self.lanes)
        if mask is not None:
            return self.new(f"la_shuffle_xor({word}, {mask}u)")
        if isinstance(step, Read):
            return self.new(f"la_shuffle({word}, {self._linear(step.threads, step.lanes[number])})")
        threads = np.arange(self.lanes * self.warps, dtype=np.int64)
        return self.new(f"la_shuffle({word}, {self.numbers.text(step.read(number, threads))})")

    def rounds(self, step: ShufflePlan, words: Sequence[str]) -> list[str]:
        """Write rounds of shuffles, one word per lane each."""
        planes = [self._rounds(step, words[plane :: self.planes]) for plane in range(self.planes)]
        return [word for group in zip(*planes, strict=True) for word in group]

    def _rounds(self, step: ShufflePlan, words: Sequence[str]) -> list[str]:
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
        """The word selected by each live thread."""
        named = [int(register) for register in np.unique(registers[live])]
        if len(named) == 1:
            return words[named[0]]
        which = self.new(self.numbers.text(np.where(live, registers, named[0]), live))
        chosen = words[named[0]]
        for other in named[1:]:
            chosen = self.new(f"{which} == {other}u ? {words[other]} : {chosen}")
        return chosen

    def barrier(self, step: Through) -> None:
        """Write a barrier."""
        said = {"block": "__syncthreads();", "warp": "la_sync_warp();", "cluster": "la_cluster_barrier();"}
        self.lines.append(said[step.barrier])

    def stored(self, access: Access, number: int, words: Sequence[str]) -> None:
        """Write a store."""
        at = self._own(self._address(access, number))
        value, body = words[0], list[str]()
        if len(words) > 1:
            value = next(self.names)
            body.append(f"const la_words{len(words)} {value} = {{{{{', '.join(words)}}}}};")
        bits = access.elements * self.bits
        call = _matrix_call("st", access) if access.matrices else f"la_shared_store_b{bits}"
        body.append(f"{call}({at}, {value});")
        takes = self._takes(access, number)
        if takes:
            body = [f"if ({takes}) {{", *(f"    {line}" for line in body), "}"]
        self.lines += body

    def loaded(self, access: Access, number: int) -> list[str]:
        """Write a load; return its words."""
        size = access.elements * self.bits // 8
        words = -(-size // WORD_BYTES)
        kind = "la_u32" if words == 1 else f"la_words{words}"
        at = self._address(access, number)
        call = _matrix_call("ld", access) if access.matrices else f"la_shared_load_b{8 * size}"
        if self.window:
            call, at = f"la_cluster_load_b{8 * size}", f"{at}, {self.window}u"
        name = next(self.names)
        takes = self._takes(access, number)
        if takes:
            self.lines += [f"{kind} {name} = {{}};", f"if ({takes}) {name} = {call}({at});"]
        else:
            self.lines.append(f"const {kind} {name} = {call}({at});")
        return [name] if words == 1 else [f"{name}.word[{word}]" for word in range(words)]

    def _own(self, address: str) -> str:
        """The byte within the block's own shared memory."""
        return f"la_own({address}, {self.window}u)" if self.window else address

    def _address(self, access: Access, number: int) -> str:
        """The byte address of each thread, as an expression."""
        if not isinstance(access, ListedAccess):
            return self._linear(access.threads, access.starts[number], self.area)
        bases, rows = self._listed(access)
        first, beyond = bases[number]
        beyond += self.area
        live = rows[first] != OUT
        if len(np.unique(rows[first][live])) == 1:
            return f"{int(rows[first][live][0]) + beyond}u"
        name = self.numbers.summed(rows[first], live)
        return f"{name} {'-' if beyond < 0 else '+'} {abs(beyond)}u" if beyond else name

    def _listed(self, access: ListedAccess) -> tuple[tuple[tuple[int, int], ...], npt.NDArray[np.int64]]:
        """The shared base addresses of the instructions, and all addresses."""
        if id(access) not in self.listed:
            self.listed[id(access)] = (access.bases(), access.addresses())
        return self.listed[id(access)]

    def _takes(self, access: Access, number: int) -> str:
        """The condition under which a thread executes an instruction; empty if all do."""
        if not isinstance(access, ListedAccess):
            return f"(t & {access.idle}u) == 0" if access.idle else ""
        active = self._listed(access)[1] != OUT
        how, bound = taking(active[number])
        if how == "listed":
            first = number // TABLE_BITS * TABLE_BITS
            bits = np.left_shift(1, np.arange(len(active[first : first + TABLE_BITS])))
            listed = self.numbers.listed((bits @ active[first : first + TABLE_BITS]).tolist())
            return f"{self.numbers.shared(listed)} >> {number - first} & 1u"
        forms = {"all": "", "below": "t < {}u", "from": "t >= {}u", "clear": "(t & {}u) == 0"}
        return forms[how].format(bound)

    def _linear(self, columns: Sequence[int], start: int, area: int = 0) -> str:
        """The number ``(columns(t) xor start) + area`` as an expression."""
        reach = 0
        for column in columns:
            reach |= column
        if not reach:
            return f"{start + area}u"
        name = self.numbers.shared(shifted(columns))
        inside, outside = start & reach, (start & ~reach) + area
        if inside:
            name = self.numbers.shared(f"{name} ^ {inside}u")
        return f"{name} + {outside}u" if outside else name


def _matrix_call(end: str, access: Access) -> str:
    trans = "_trans" if access.instruction.endswith(".trans") else ""
    return f"la_{end}matrix_x{access.matrices}{trans}"


def mixed_text(mixed: Mixed[str], numbers: Numbers) -> str:
    """Return the expression of a word made of one or two others; ``numbers`` collects the selectors of threads.

    Example:
        >>> mixed_text(Mixed(("a", "b"), 1, (0, 1, 4, 5), (2, 3, 6, 7)), numbers := Numbers())
        'la_permute(a, b, of_t1)'
        >>> numbers.declared().splitlines()[1].strip()
        'const la_u32 of_t1 = of_t0 ? 0x7632u : 0x5410u;'
    """
    off, on = mixed.whole
    first, second = mixed.words[0], mixed.words[-1]
    if off is not None and on is not None:
        return f"{numbers.asked(mixed.asked)} ? {mixed.words[on]} : {mixed.words[off]}"
    taken = [byte for byte in mixed.off if byte != OPEN]
    run = tuple(range(taken[0], taken[0] + len(taken))) == mixed.off[: len(taken)]
    if not mixed.asked and len(mixed.words) == 1 and run and len(taken) < WORD_BYTES:
        return f"{first} >> {8 * taken[0]}"
    selectors = [
        sum((place if byte == OPEN else byte) << 4 * place for place, byte in enumerate(way))
        for way in (mixed.off, mixed.on)
    ]
    said = f"{selectors[0]:#06x}u"
    if mixed.asked:
        said = numbers.shared(f"{numbers.asked(mixed.asked)} ? {selectors[1]:#06x}u : {said}")
    return f"la_permute({first}, {second}, {said})"
