"""Kernels of layout conversions: the steps of a plan as one text for CUDA, HIP and the CPU.

Notation: thread t = lane + lanes * warp holds 32-bit words w; all word and register numbers are compile-time constants,
so nothing goes to local memory. With p elements per word, element e starts at bit 32 (e % p) / p.

Implementation notes: the launch bounds ask for one block per multiprocessor. Without that, the compiler gives a small
kernel only 32 registers, and loads from shared memory serialise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from layoutalg.codegen.cluster import cluster_prelude
from layoutalg.codegen.conversion_steps import CHECK, StepWriter
from layoutalg.codegen.kernel import KernelSource, checked_name, signature
from layoutalg.codegen.plans import upheld
from layoutalg.codegen.portable import portable_prelude
from layoutalg.codegen.thread_numbers import Numbers
from layoutalg.proofs.conversion import ConversionPlan
from layoutalg.proofs.conversion_steps import WORD_BITS, Through

MOST_WORDS = 256
MOST_THREADS = 1024
_WAYS = {
    "nothing": "that moves nothing", "registers": "inside threads", "shuffles": "by shuffles",
    "shared": "through shared memory", "matrices": "through shared memory, by matrices",
    "cluster": "through the shared memory of a cluster",
}  # fmt: skip

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

_STIRRED = """
// Returns another word, in a way that nothing is moved across or joined with.
__device__ __forceinline__ la_u32 la_stirred(la_u32 word)
{
#ifdef __CUDACC__
    asm volatile("xor.b32 %0, %0, 0x5A5A5A5A;" : "+r"(word));
    return word;
#else
    return word ^ 0x5A5A5A5Au;
#endif
}

// The same by an instruction that an assembler cannot make one with the other.
__device__ __forceinline__ la_u32 la_added(la_u32 word)
{
#ifdef __CUDACC__
    asm volatile("add.u32 %0, %0, 0x5A5A5A5A;" : "+r"(word));
    return word;
#else
    return word + 0x5A5A5A5Au;
#endif
}
"""

_KERNEL = """{tables}
// {title}
extern "C" __global__ void {cluster}__launch_bounds__({threads}, 1) {name}({signature})
{{
    const la_u32 t = {thread};
{shared}{loads}{lines}{stores}}}
"""

_LOOP = """{tables}
// There and back: {there}
//                 {back}
extern "C" __global__ void __launch_bounds__({threads}, 1) {name}({signature})
{{
    const la_u32 t = threadIdx.x;
{shared}    la_u32 held[{words}], next[{others}];
{loads}    __syncthreads();
    const la_u64 begun = la_cycles();
#pragma unroll 1
    for (int turn = 0; turn < turns; ++turn) {{
#pragma unroll
        for (int pair = 0; pair < {pairs}; ++pair) {{
{lines}        }}
    }}
    if (t == 0) *cycles = la_cycles() - begun;
{stores}}}
"""


@dataclass(frozen=True, slots=True)
class Converted:
    """The statements of a plan.

    Args:
        lines: The statements, in order.
        words: Names of the resulting words, packed with as many elements as fit.
    """

    lines: tuple[str, ...]
    words: tuple[str, ...]


def conversion_kernel(plan: ConversionPlan, name: str = "la_convert") -> KernelSource:
    """Return the kernel that loads registers, converts them from one layout to the other, and stores them.

    Parameters: ``(source, destination)``; word w of thread t is at index w * threads + t of each. Threads of a cluster
    are numbered block by block.

    Args:
        plan: The plan.
        name: Kernel symbol.

    Raises: MalformedError: LA506, LA955.

    Example:
        >>> from layoutalg.f2 import LinearLayout
        >>> from layoutalg.proofs.conversion import ConversionCost, Held
        >>> from layoutalg.proofs.exchange import Exchange
        >>> axes = (("register", 1), ("lane", 5), ("warp", 0)), (("element", 6),)
        >>> ends = [LinearLayout(*axes, columns) for columns in ((1, 2, 4, 8, 16, 32), (2, 1, 4, 8, 16, 32))]
        >>> cost = ConversionCost(1, 3, 0, 0, 0, 0, 32.0)
        >>> plan = ConversionPlan(*(Held(end, None, 2, 32, 1) for end in ends), 32, "sm_90a", "shuffles",
        ...     (Exchange(1, 1, 1, 1),), cost, "one bit", ())
        >>> conversion_kernel(plan).text.count("= la_shuffle_xor(")
        1
    """
    CHECK.kind(plan, ConversionPlan, "plan")
    threads, before, _ = _sizes(plan)
    numbers, each = Numbers(), threads // plan.blocks
    made = converted(plan, [f"s{word}" for word in range(before)], numbers)
    parameters = (("const la_u32*", "source"), ("la_u32*", "destination"))
    text = _KERNEL.format(
        tables="".join(numbers.tables), title=_title(plan), threads=each, name=checked_name(name),
        cluster=f"LA_CLUSTER({plan.blocks}) " if plan.blocks > 1 else "",
        thread=f"la_cluster_thread({each}u)" if plan.blocks > 1 else "threadIdx.x",
        signature=signature(parameters), shared=numbers.declared(),
        loads="".join(f"    const la_u32 s{word} = source[{_at(word * threads)}];\n" for word in range(before)),
        lines="".join(f"    {line}\n" for line in made.lines),
        stores="".join(f"    destination[{_at(word * threads)}] = {held};\n" for word, held in enumerate(made.words)),
    )  # fmt: skip
    return KernelSource(name, _prelude(plan, text) + text, plan.target, each, smem_bytes(plan), parameters)


def conversion_loop(
    there: ConversionPlan, back: ConversionPlan, name: str = "la_convert_loop", converts: bool = True, pairs: int = 1
) -> KernelSource:
    """Return a benchmark kernel that converts back and forth in a loop.

    Parameters: ``(source, destination, cycles, turns)``; words as in ``conversion_kernel``. Every iteration changes all
    words before and between the conversions so that none can be optimised away. Each conversion has its own shared
    memory, so the barriers of one also separate the other's next stores from its loads.

    Args:
        there: The conversion.
        back: A conversion from its destination to its source.
        name: Kernel symbol.
        converts: Whether to convert; False gives the baseline to subtract, with the same changes to the words.
        pairs: Round trips per iteration; the difference of two values cancels the loop overhead.

    Raises: MalformedError: LA506, LA955.
    """
    CHECK.integer(pairs, "pairs", 1)
    threads, before, after = _sizes(CHECK.kind(there, ConversionPlan, "there"))
    if _sizes(CHECK.kind(back, ConversionPlan, "back")) != (threads, after, before):
        raise CHECK.malformed("back", "must convert from the destination to the source", str(back))
    if there.blocks > 1 or back.blocks > 1:
        raise CHECK.malformed("there", "must use one block: cluster loops are not supported", there.blocks)
    numbers = Numbers()
    lines = [f"held[{word}] = la_stirred(held[{word}]);" for word in range(before)]
    lines += _alone(there, back)
    first = converted(there, [f"held[{word}]" for word in range(before)], numbers, "x") if converts else None
    lines += [] if first is None else first.lines
    middle = [f"held[{word % before}]" for word in range(after)] if first is None else first.words
    stirred = "la_stirred" if converts else "la_added"
    lines += [f"next[{word}] = {stirred}({held});" for word, held in enumerate(middle)]
    lines += _alone(back, there)
    second = None
    if converts:
        second = converted(back, [f"next[{word}]" for word in range(after)], numbers, "y", smem_bytes(there))
    lines += [] if second is None else second.lines
    last = [f"next[{word % after}]" for word in range(before)] if second is None else second.words
    lines += [f"held[{word}] = {held};" for word, held in enumerate(last)]
    parameters = (("const la_u32*", "source"), ("la_u32*", "destination"), ("la_u64*", "cycles"), ("int", "turns"))
    text = _LOOP.format(
        tables="".join(numbers.tables), there=_title(there), back=_title(back), threads=threads,
        name=checked_name(name), signature=signature(parameters), shared=numbers.declared(), words=before,
        others=after, pairs=pairs,
        loads="".join(f"    held[{word}] = source[{_at(word * threads)}];\n" for word in range(before)),
        lines="".join(f"            {line}\n" for line in lines),
        stores="".join(f"    destination[{_at(word * threads)}] = held[{word}];\n" for word in range(before)),
    )  # fmt: skip
    size = smem_bytes(there) + smem_bytes(back)
    return KernelSource(name, _prelude(there, text) + _STIRRED + text, there.target, threads, size, parameters)


def smem_bytes(plan: ConversionPlan) -> int:
    """Return the shared memory of a plan in bytes, rounded up to 128."""
    return -(-plan.smem_bytes // 128) * 128


def converted(
    plan: ConversionPlan, words: Sequence[str], numbers: Numbers, prefix: str = "x", area: int = 0
) -> Converted:
    """Return the statements of a plan.

    Args:
        plan: The plan.
        words: Names of the input words, packed with as many elements as fit.
        numbers: Collects expressions of the thread; its declarations go before the statements.
        prefix: Prefix of new names.
        area: First byte of shared memory to use.

    Raises: MalformedError: LA955.
    """
    threads, before, _ = _sizes(upheld(plan))
    if len(words) != before:
        raise CHECK.malformed("words", f"must be {before}", len(words))
    names = (f"{prefix}{number}" for number in count())
    writer = StepWriter(plan.element_bits, numbers, names, plan.lanes, threads // plan.lanes, area)
    held = writer.begun(list(words), plan.source.registers)
    through = False
    for step in plan.steps:
        if isinstance(step, Through):
            writer.lines += ["__syncthreads();"] * through
            through = True
        held = writer.step(step, held)
    after = writer.ended(held)
    return Converted(tuple(writer.lines), tuple(after))


def _alone(plan: ConversionPlan, other: ConversionPlan) -> list[str]:
    """A barrier before the stores of a plan, if the other plan's barriers do not separate them from its last loads."""
    mine, theirs = ({step.barrier for step in each.steps if isinstance(step, Through)} for each in (plan, other))
    if not mine or "block" in theirs or (mine == {"warp"} and theirs == {"warp"}):
        return []
    return ["__syncthreads();" if "block" in mine else "la_sync_warp();"]


def _sizes(plan: ConversionPlan) -> tuple[int, int, int]:
    """Threads, and words per thread before and after."""
    threads = plan.lanes * plan.warps
    words = [-(-plan.element_bits * held.registers // WORD_BITS) for held in (plan.source, plan.destination)]
    if threads > MOST_THREADS * plan.blocks or max(words) > MOST_WORDS:
        rule = f"must have at most {MOST_THREADS} threads per block and {MOST_WORDS} words per thread"
        raise CHECK.malformed("plan", rule, f"{threads // plan.blocks} threads, {max(words)} words")
    return threads, words[0], words[1]


def _prelude(plan: ConversionPlan, text: str) -> str:
    """The device functions that a text calls."""
    cluster = cluster_prelude() if plan.blocks > 1 else ""
    return portable_prelude(plan.target) + (WARP if "la_shuffle_xor(" in text else "") + cluster


def _at(first: int) -> str:
    return f"{first}u + t" if first else "t"


def _title(plan: ConversionPlan) -> str:
    _, told = str(plan).splitlines()[0].split(": ", maxsplit=1)
    return f"Conversion {_WAYS[plan.mechanism]}: {told}"
