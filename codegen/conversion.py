"""Kernels of layout conversions: the steps of a plan as one text for CUDA, HIP and the CPU.

Notation: thread t = lane + lanes * warp holds 32-bit words w; all word and register numbers are compile-time constants,
so nothing goes to local memory. With p elements per word, element e starts at bit 32 (e % p) / p.

Implementation notes: the launch bounds ask for one block per multiprocessor. Without that, the compiler gives a small
kernel only 32 registers, and loads from shared memory serialise.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from layoutalg.codegen.cluster import cluster_prelude
from layoutalg.codegen.conversion_steps import CHECK, WARP, StepWriter
from layoutalg.codegen.kernel import KernelSource, checked_name, signature
from layoutalg.codegen.plans import upheld
from layoutalg.codegen.portable import portable_prelude
from layoutalg.codegen.thread_numbers import Numbers
from layoutalg.proofs.conversion import ConversionPlan
from layoutalg.proofs.conversion_steps import WORD_BITS

MOST_WORDS = 256
MOST_THREADS = 1024
_WAYS = {
    "nothing": "that moves nothing", "registers": "inside threads", "shuffles": "by shuffles",
    "shared": "through shared memory", "matrices": "through shared memory, by matrices",
    "cluster": "through the shared memory of a cluster",
}  # fmt: skip

_KERNEL = """{tables}
// {title}
extern "C" __global__ void {cluster}__launch_bounds__({threads}, 1) {name}({signature})
{{
    const la_u32 t = {thread};
{shared}{loads}{lines}{stores}}}
"""


def conversion_kernel(plan: ConversionPlan, name: str = "la_convert") -> KernelSource:
    """Return the kernel that loads registers, converts them from one layout to the other, and stores them.

    Parameters: ``(source, destination)``; word w of thread t is at index w * threads + t of each. Threads of a cluster
    are numbered block by block.

    Args:
        plan: The plan.
        name: Kernel symbol.

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
    threads, before, _ = sizes(plan)
    numbers, each = Numbers(), threads // plan.blocks
    lines, after = converted(plan, [f"s{word}" for word in range(before)], numbers)
    parameters = (("const la_u32*", "source"), ("la_u32*", "destination"))
    text = _KERNEL.format(
        tables="".join(numbers.tables), title=title(plan), threads=each, name=checked_name(name),
        cluster=f"LA_CLUSTER({plan.blocks}) " if plan.blocks > 1 else "",
        thread=f"la_cluster_thread({each}u)" if plan.blocks > 1 else "threadIdx.x",
        signature=signature(parameters), shared=numbers.declared(),
        loads="".join(f"    const la_u32 s{word} = source[{at(word * threads)}];\n" for word in range(before)),
        lines="".join(f"    {line}\n" for line in lines),
        stores="".join(f"    destination[{at(word * threads)}] = {held};\n" for word, held in enumerate(after)),
    )  # fmt: skip
    return KernelSource(name, prelude(plan, text) + text, plan.target, each, smem_bytes(plan), parameters)


def smem_bytes(plan: ConversionPlan) -> int:
    """Return the shared memory of a plan in bytes, rounded up to 128."""
    return -(-plan.smem_bytes // 128) * 128


def converted(
    plan: ConversionPlan, words: Sequence[str], numbers: Numbers, prefix: str = "x", area: int = 0
) -> tuple[list[str], list[str]]:
    """Return the statements of a plan for named packed words, and the names of the words that result.

    Shared memory is used from byte ``area`` on.
    """
    threads, before, _ = sizes(upheld(plan))
    if len(words) != before:
        raise CHECK.malformed("words", f"must be {before}", len(words))
    names = (f"{prefix}{number}" for number in count())
    writer = StepWriter(plan.element_bits, numbers, names, plan.lanes, threads // plan.lanes, area)
    after = writer.written(plan.steps, words, plan.source.registers)
    return writer.lines, after


def sizes(plan: ConversionPlan) -> tuple[int, int, int]:
    """Threads, and words per thread before and after."""
    threads = plan.lanes * plan.warps
    words = [-(-plan.element_bits * held.registers // WORD_BITS) for held in (plan.source, plan.destination)]
    if threads > MOST_THREADS * plan.blocks or max(words) > MOST_WORDS:
        rule = f"must have at most {MOST_THREADS} threads per block and {MOST_WORDS} words per thread"
        raise CHECK.malformed("plan", rule, f"{threads // plan.blocks} threads, {max(words)} words")
    return threads, words[0], words[1]


def prelude(plan: ConversionPlan, text: str) -> str:
    """The device functions that a text calls."""
    cluster = cluster_prelude() if plan.blocks > 1 else ""
    return portable_prelude(plan.target) + (WARP if "la_shuffle_xor(" in text else "") + cluster


def at(first: int) -> str:
    return f"{first}u + t" if first else "t"


def title(plan: ConversionPlan) -> str:
    _, told = str(plan).splitlines()[0].split(": ", maxsplit=1)
    return f"Conversion {_WAYS[plan.mechanism]}: {told}"
