"""CUDA text for a plan of exchanges: shuffles, selects and byte permutations of named words.

Notation: words are names of 32-bit variables of a thread; the thread is ``t``, its lane the low five bits. Statements
declare each name once; register numbers are compile-time constants, so nothing goes to local memory.

Implementation notes: part p of a word with k elements starts at bit 32 p / k. Renaming a word costs no statement; a
select by lane combined with a repacking is one statement (``proofs.register_words``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from layoutalg.codegen.thread_numbers import Numbers
from layoutalg.ground.check import Checker
from layoutalg.proofs.conversion_steps import Read
from layoutalg.proofs.exchange import Exchange, ExchangePlan, Move, Repack
from layoutalg.proofs.register_words import OPEN, WORD_BYTES, Mixed, Mixer, plain, stepped

CHECK = Checker("LA883", "cannot generate a kernel for these exchanges")
LANES = 32

EXCHANGE = """
#ifndef LA_HOST
// Returns the word of the lane whose number differs in the bits of a mask.
__device__ __forceinline__ la_u32 la_shuffle_xor(la_u32 word, la_u32 mask)
{
    return __shfl_xor_sync(0xFFFFFFFFu, word, (int)mask);
}
#endif

// Returns four bytes of two words: nibble i of the selector names byte i.
__device__ __forceinline__ la_u32 la_bytes(la_u32 low, la_u32 high, la_u32 selector)
{
#ifdef LA_HOST
    la_u32 word = 0;
    for (int i = 0; i < 4; ++i) {
        const la_u32 from = selector >> 4 * i & 7u;
        word |= ((from < 4 ? low >> 8 * from : high >> 8 * (from - 4)) & 0xFFu) << 8 * i;
    }
    return word;
#else
    return __byte_perm(low, high, selector);
#endif
}
"""
"""Functions that the statements call; they call ``la_shuffle``."""


@dataclass(frozen=True, slots=True)
class Written:
    """Statements in order, and the names of the words that result."""

    lines: tuple[str, ...]
    words: tuple[str, ...]


def exchanged(plan: ExchangePlan, words: Sequence[str], numbers: Numbers, prefix: str = "x") -> Written:
    """Return the statements of a plan of warps of 32 lanes; ``numbers`` collects what to declare before them.

    Example:
        >>> from layoutalg.proofs.exchange import Exchange
        >>> plain = Repack((1,), 0, 1)
        >>> plan = ExchangePlan(2, 32, 1, plain, (Exchange(1, 1, 1, 1),), plain)
        >>> for line in exchanged(plan, ("a", "b"), numbers := Numbers()).lines:
        ...     print(line)
        const la_u32 x0 = of_t0 ? a : b;
        const la_u32 x1 = la_shuffle_xor(x0, 1u);
        const la_u32 x2 = of_t0 ? x1 : a;
        const la_u32 x3 = of_t0 ? b : x1;
    """
    if plan.lanes != LANES or len(words) != plan.words:
        raise CHECK.malformed("plan", f"must have {LANES} lanes and a name per word", str(plan))
    names = (f"{prefix}{number}" for number in count())
    lines: list[str] = []
    threads = np.arange(plan.lanes * plan.warps, dtype=np.int64)

    def new(expression: str) -> str:
        lines.append(f"const la_u32 {(name := next(names))} = {expression};")
        return name

    def shuffled(word: str, step: Exchange | Move | Read, number: int) -> str:
        if isinstance(step, Exchange):
            return new(f"la_shuffle_xor({word}, {step.lanes}u)")
        mask = step.mask(number, plan.lanes)
        if mask is not None:
            return new(f"la_shuffle_xor({word}, {mask}u)")
        return new(f"la_shuffle({word}, {numbers.text(step.read(number, threads))})")

    mixer = Mixer[str](lambda mixed: new(mixed_text(mixed, numbers, "la_bytes")))
    now = _repacked(plan.before, [plain(word) for word in words], mixer)
    for step in plan.steps:
        now = stepped(step, now, mixer, shuffled, plan.lanes)
    after = [mixer.word(word) for word in _repacked(plan.after, now, mixer)]
    return Written(tuple(lines), tuple(after))


def repacked(step: Repack, words: Sequence[str], names: Iterator[str]) -> tuple[list[str], list[str]]:
    """Return the statements of a repacking and the resulting names.

    Example:
        >>> repacked(Repack((2, 1), 0, 2), ("a", "b"), iter("xy"))[0]
        ['const la_u32 x = la_bytes(a, b, 0x5410u);', 'const la_u32 y = la_bytes(a, b, 0x7632u);']
    """
    lines: list[str] = []

    def made(mixed: Mixed[str]) -> str:
        lines.append(f"const la_u32 {(name := next(names))} = {mixed_text(mixed, Numbers(), 'la_bytes')};")
        return name

    mixer = Mixer(made)
    return lines, [mixer.word(word) for word in _repacked(step, [plain(word) for word in words], mixer)]


def _repacked(step: Repack, words: Sequence[Mixed[str]], mixer: Mixer[str]) -> list[Mixed[str]]:
    wide = WORD_BYTES // step.packed
    return mixer.gathered_all([
        [(words[source], part * wide + byte) for source, part in step.parts(word) for byte in range(wide)]
        for word in range(len(words))
    ])  # fmt: skip


def mixed_text(mixed: Mixed[str], numbers: Numbers, permute: str) -> str:
    """Return the expression of a word made of one or two others.

    Args:
        mixed: The word.
        numbers: Collects expressions of the thread: bits, and the selectors they choose.
        permute: Name of the byte-permute function of two words and a selector.

    Example:
        >>> mixed_text(Mixed(("a", "b"), 1, (0, 1, 4, 5), (2, 3, 6, 7)), numbers := Numbers(), "la_bytes")
        'la_bytes(a, b, of_t1)'
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
    return f"{permute}({first}, {second}, {said})"
