"""CUDA text for a plan of exchanges: shuffles, selects and byte permutations of named words.

Main definitions: ``EXCHANGE``, ``Written``, ``repacked``, ``stepped``, ``exchanged``.

Notation: words are names of 32-bit variables of a thread; the thread is ``t``, its lane the low five bits. Statements
declare each name once, so that all numbers of registers are constants of the text and nothing lies in local memory.

Implementation notes: part p of a word with k elements is its bits 32 p / k and up. A word that only changes its number
costs no statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from layoutalg.codegen.thread_numbers import Numbers
from layoutalg.ground.check import Checker
from layoutalg.proofs.exchange import Choose, ExchangePlan, Move, Rename, Repack, Step

CHECK = Checker("LA883", "no kernel runs these exchanges")
LANES = 32
WORD_BYTES = 4

EXCHANGE = """
// Returns the word of the lane whose number differs in the bits of a mask.
__device__ __forceinline__ la_u32 la_shuffle_xor(la_u32 word, la_u32 mask)
{
#ifdef LA_HOST
    return la_shuffle(word, (threadIdx.x ^ mask) & 31u);
#else
    return __shfl_xor_sync(0xFFFFFFFFu, word, (int)mask);
#endif
}

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
    """Statements.

    Args:
        lines: The statements, in order.
        words: The names of the words after them.
    """

    lines: tuple[str, ...]
    words: tuple[str, ...]


def exchanged(plan: ExchangePlan, words: Sequence[str], numbers: Numbers, prefix: str = "x") -> Written:
    """Return the statements of a plan.

    Args:
        plan: The plan, of warps of 32 lanes.
        words: Names of the words before.
        numbers: Collects what depends on the thread; its declarations go before the statements.
        prefix: Begins the names of new words.

    Raises: MalformedError: LA883.

    Example:
        >>> from layoutalg.proofs.exchange import Exchange
        >>> plain = Repack((1,), 0, 1)
        >>> plan = ExchangePlan(2, 32, 1, plain, (Exchange(1, 1, 1, 1),), plain)
        >>> for line in exchanged(plan, ("a", "b"), numbers := Numbers()).lines:
        ...     print(line)
        const la_u32 x0 = la_shuffle_xor(of_t0 ? a : b, 1u);
        const la_u32 x1 = of_t0 ? x0 : a;
        const la_u32 x2 = of_t0 ? b : x0;
    """
    if plan.lanes != LANES or len(words) != plan.words:
        raise CHECK.malformed("plan", f"must have {LANES} lanes and a name per word", str(plan))
    names = (f"{prefix}{number}" for number in count())
    lines, now = repacked(plan.before, words, names)
    for step in plan.steps:
        more, now = stepped(step, now, numbers, names, plan.warps)
        lines += more
    more, now = repacked(plan.after, now, names)
    return Written((*lines, *more), tuple(now))


def repacked(step: Repack, words: Sequence[str], names: Iterator[str]) -> tuple[list[str], list[str]]:
    """Return the statements of a repacking, and the names after it.

    Args:
        step: The repacking.
        words: Names of the words.
        names: Fresh names.

    Example:
        >>> repacked(Repack((2, 1), 0, 2), ("a", "b"), iter("xy"))[0]
        ['const la_u32 x = la_bytes(a, b, 0x5410u);', 'const la_u32 y = la_bytes(a, b, 0x7632u);']
    """
    wide = WORD_BYTES // step.packed
    lines: list[str] = []
    after: list[str] = []
    for word in range(len(words)):
        parts = step.parts(word)
        sources = list(dict.fromkeys(source for source, _ in parts))
        if len(sources) == 1 and tuple(part for _, part in parts) == tuple(range(step.packed)):
            after.append(words[sources[0]])
            continue
        taken = [(source, part * wide + byte) for source, part in parts for byte in range(wide)]
        held, low = words[sources[0]], 0
        for place, other in enumerate(sources[1:] or sources):
            mine = sources[: place + 1]
            nibbles = [
                4 + byte if source == other and len(sources) > 1 else
                (byte if not low else at) if source in mine else at
                for at, (source, byte) in enumerate(taken)
            ]  # fmt: skip
            name = next(names)
            selector = sum(nibble << 4 * at for at, nibble in enumerate(nibbles))
            lines.append(f"const la_u32 {name} = la_bytes({held}, {words[other]}, {selector:#06x}u);")
            held, low = name, 1
        after.append(held)
    return lines, after


def stepped(
    step: Step, words: Sequence[str], numbers: Numbers, names: Iterator[str], warps: int = 1, lanes: int = LANES
) -> tuple[list[str], list[str]]:
    """Return the statements of one step of words, and the names after it.

    Args:
        step: The step.
        words: Names of the words.
        numbers: Collects what depends on the thread.
        names: Fresh names.
        warps: Warps of the block.
        lanes: Lanes of a warp.
    """
    after, lines = list(words), list[str]()
    if isinstance(step, Rename):
        return [], [words[int(word)] for word in step.source(np.arange(len(words)), np.zeros(1, np.int64))[0]]
    if isinstance(step, Move):
        threads = np.arange(lanes * warps, dtype=np.int64)
        for word, name in enumerate(words):
            mask = step.mask(word, lanes)
            if mask == 0:
                continue
            after[word] = next(names)
            call = (
                f"la_shuffle({name}, {numbers.text(step.read(word, threads))})"
                if mask is None else f"la_shuffle_xor({name}, {mask}u)"
            )  # fmt: skip
            lines.append(f"const la_u32 {after[word]} = {call};")
        return lines, after
    asked = numbers.asked(step.asked if isinstance(step, Choose) else step.lane_asked)
    for word, name in enumerate(words):
        pair = word ^ step.vector
        if isinstance(step, Choose):
            if word < pair:
                after[word], after[pair] = next(names), next(names)
                other = words[pair]
                lines.append(f"const la_u32 {after[word]} = {asked} ? {other} : {name};")
                lines.append(f"const la_u32 {after[pair]} = {asked} ? {name} : {other};")
        elif not (word & step.word_asked).bit_count() & 1:
            taken, after[word], after[pair] = next(names), next(names), next(names)
            other = words[pair]
            lines.append(f"const la_u32 {taken} = la_shuffle_xor({asked} ? {name} : {other}, {step.lanes}u);")
            lines.append(f"const la_u32 {after[word]} = {asked} ? {taken} : {name};")
            lines.append(f"const la_u32 {after[pair]} = {asked} ? {other} : {taken};")
    return lines, after
