"""A timing kernel: two conversions, there and back, in a loop that counts its cycles."""

from __future__ import annotations

from layoutalg.codegen.conversion import at, converted, prelude, sizes, smem_bytes, title
from layoutalg.codegen.conversion_steps import CHECK
from layoutalg.codegen.kernel import KernelSource, checked_name, signature
from layoutalg.codegen.thread_numbers import Numbers
from layoutalg.proofs.conversion import ConversionPlan
from layoutalg.proofs.conversion_steps import Through

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
    """
    CHECK.integer(pairs, "pairs", 1)
    threads, before, after = sizes(CHECK.kind(there, ConversionPlan, "there"))
    if sizes(CHECK.kind(back, ConversionPlan, "back")) != (threads, after, before):
        raise CHECK.malformed("back", "must convert from the destination to the source", str(back))
    if there.blocks > 1 or back.blocks > 1:
        raise CHECK.malformed("there", "must use one block: cluster loops are not supported", there.blocks)
    numbers = Numbers()
    lines = [f"held[{word}] = la_stirred(held[{word}]);" for word in range(before)]
    lines += _alone(there, back)
    first = converted(there, [f"held[{word}]" for word in range(before)], numbers, "x") if converts else None
    lines += [] if first is None else first[0]
    middle = [f"held[{word % before}]" for word in range(after)] if first is None else first[1]
    stirred = "la_stirred" if converts else "la_added"
    lines += [f"next[{word}] = {stirred}({held});" for word, held in enumerate(middle)]
    lines += _alone(back, there)
    second = None
    if converts:
        second = converted(back, [f"next[{word}]" for word in range(after)], numbers, "y", smem_bytes(there))
    lines += [] if second is None else second[0]
    last = [f"next[{word % after}]" for word in range(before)] if second is None else second[1]
    lines += [f"held[{word}] = {held};" for word, held in enumerate(last)]
    parameters = (("const la_u32*", "source"), ("la_u32*", "destination"), ("la_u64*", "cycles"), ("int", "turns"))
    text = _LOOP.format(
        tables="".join(numbers.tables), there=title(there), back=title(back), threads=threads,
        name=checked_name(name), signature=signature(parameters), shared=numbers.declared(), words=before,
        others=after, pairs=pairs,
        loads="".join(f"    held[{word}] = source[{at(word * threads)}];\n" for word in range(before)),
        lines="".join(f"            {line}\n" for line in lines),
        stores="".join(f"    destination[{at(word * threads)}] = held[{word}];\n" for word in range(before)),
    )  # fmt: skip
    size = smem_bytes(there) + smem_bytes(back)
    return KernelSource(name, prelude(there, text) + _STIRRED + text, there.target, threads, size, parameters)


def _alone(plan: ConversionPlan, other: ConversionPlan) -> list[str]:
    """A barrier before the stores of a plan, if the other plan's barriers do not separate them from its last loads."""
    mine, theirs = ({step.barrier for step in each.steps if isinstance(step, Through)} for each in (plan, other))
    if not mine or "block" in theirs or (mine == {"warp"} and theirs == {"warp"}):
        return []
    return ["__syncthreads();" if "block" in mine else "la_sync_warp();"]
