"""Kernels that gather registers: a plan as one text for CUDA, HIP and the CPU.

Notation: thread t holds 32-bit words of the source, one 32-bit index per element of the result, and finally words of
the result. ``at`` is the source place that an index selects, or its byte in shared memory.
"""

from __future__ import annotations

from itertools import count

from layoutalg.codegen.conversion import MOST_THREADS, MOST_WORDS
from layoutalg.codegen.conversion_steps import StepWriter
from layoutalg.codegen.kernel import KernelSource, checked_name, signature
from layoutalg.codegen.plans import upheld
from layoutalg.codegen.portable import portable_prelude
from layoutalg.codegen.thread_numbers import Numbers, shifted
from layoutalg.f2 import matrix
from layoutalg.ground.check import Checker
from layoutalg.proofs.conversion_steps import WORD_BITS
from layoutalg.proofs.exchange import Take
from layoutalg.proofs.gather import GatherPlan, Stage

CHECK = Checker("LA937", "cannot generate a kernel for this gather")
_KERNEL = """{tables}
// {title}
extern "C" __global__ void __launch_bounds__({threads}, 1) {name}({signature})
{{
    const la_u32 t = threadIdx.x;
{shared}{lines}}}
"""


def gather_registers_kernel(plan: GatherPlan, name: str = "la_gather") -> KernelSource:
    """Return the kernel that loads registers and indices, gathers along the axis, and stores the result.

    Parameters: ``(source, index, destination)``; word w of thread t is at w * threads + t of source and destination,
    the index of register q at q * threads + t. An index outside the axis gives 0.

    Args:
        plan: The plan.
        name: Kernel symbol.

    Example:
        >>> from layoutalg.f2 import LinearLayout
        >>> from layoutalg.synth import gather
        >>> bits = [(0, 1 << bit) for bit in range(5)]
        >>> rows = LinearLayout.from_bases({"register": [(1, 0)], "lane": bits}, {"row": 2, "col": 32})
        >>> gather_registers_kernel(gather(rows, rows, "col", 32)).text.count("= la_shuffle(")
        2
    """
    upheld(CHECK.kind(plan, GatherPlan, "plan"))
    threads, registers = plan.index.lanes * plan.index.warps, plan.index.registers
    words, after = (-(-held.registers * plan.element_bits // WORD_BITS) for held in (plan.source, plan.index))
    if threads > MOST_THREADS or max(words, after, registers) > MOST_WORDS:
        rule = f"must have at most {MOST_THREADS} threads, and {MOST_WORDS} words and indices per thread"
        raise CHECK.malformed("plan", rule, f"{threads} threads, {max(words, after, registers)} words")
    numbers = Numbers()
    lines = [f"const la_u32 s{word} = source[{word * threads}u + t];" for word in range(words)]
    lines += [f"const la_u32 i{number} = (la_u32)index[{number * threads}u + t];" for number in range(registers)]
    if plan.stage is not None:
        lines += _stored(plan, plan.stage, numbers, words)
    values = []
    for register in range(registers):
        lines += _place(plan, numbers, register)
        lines += _loaded(plan, register) if plan.stage is not None else _chosen(plan, register)
        values.append([f"v{register}_{plane}" for plane in range(max(1, plan.element_bits // WORD_BITS))])
    joined = _joined(plan, values)
    lines += [f"destination[{word * threads}u + t] = {value};" for word, value in enumerate(joined)]
    parameters = (("const la_u32*", "source"), ("const int*", "index"), ("la_u32*", "destination"))
    text = _KERNEL.format(
        tables="".join(numbers.tables), title=str(plan).splitlines()[0], threads=threads, name=checked_name(name),
        signature=signature(parameters), shared=numbers.declared(), lines="".join(f"    {line}\n" for line in lines),
    )  # fmt: skip
    smem = 0 if plan.stage is None else -(-plan.stage.smem_bytes // 128) * 128
    return KernelSource(name, portable_prelude(plan.target) + text, plan.target, threads, smem, parameters)


def _stored(plan: GatherPlan, stage: Stage, numbers: Numbers, words: int) -> list[str]:
    """The stores of the source and the barrier."""
    names = (f"x{number}" for number in count())
    writer = StepWriter(plan.element_bits, numbers, names, plan.index.lanes, plan.index.warps, 0)
    held = writer.begun([f"s{word}" for word in range(words)], plan.source.registers)
    held = writer.step(Take(stage.registers, plan.packed, plan.packed), held)
    writer.put(stage.store, held, 0, 1)
    return [*writer.lines, "__syncthreads();" if stage.barrier == "block" else "la_sync_warp();"]


def _place(plan: GatherPlan, numbers: Numbers, register: int) -> list[str]:
    """The place (without its warp, which is the thread's own) or byte that a register's index selects."""
    low, high = plan.index.registers.bit_length() - 1, plan.extent.bit_length() - 1
    reach = {"registers": plan.source.registers, "shuffles": plan.source.registers * plan.source.lanes}
    mask = reach.get(plan.mechanism, 0) - 1
    columns = [column & mask for column in plan.columns]
    constant = (plan.constant & mask) ^ matrix.apply(columns[:low], register)
    along, thread = columns[low : low + high], columns[low + high :]
    parts = []
    if any(thread):
        parts.append(numbers.shared(shifted(thread)))
    lines = []
    if any(along):
        lines.append(f"const la_u32 j{register} = i{register} & {plan.extent - 1}u;")
        part = shifted(along, f"j{register}")
        parts.append(part if "^" in part else _grouped(part))
    if constant or not parts:
        parts.append(f"{constant}u")
    return [*lines, f"const la_u32 at{register} = {' ^ '.join(parts)};"]


def _chosen(plan: GatherPlan, register: int) -> list[str]:
    """The element from a register of this or another lane: read each candidate word, keep the one that contains it."""
    planes, bits = max(1, plan.element_bits // WORD_BITS), plan.source.registers.bit_length() - 1
    words = plan.words()[register]
    lines = []
    which = f"at{register} & {plan.source.registers - 1}u"
    if plan.packed > 1:
        which = f"({which}) >> {plan.packed.bit_length() - 1}"
    if len(words) > 1:
        lines.append(f"const la_u32 w{register} = {which};")
    for plane in range(planes):
        value = ""
        for number, word in enumerate(words):
            held = f"s{word * planes + plane}"
            if plan.mechanism == "shuffles":
                of = f"of{register}_{plane}_{number}"
                lines.append(f"const la_u32 {of} = la_shuffle({held}, at{register} >> {bits});")
                held = of
            value = f"w{register} == {word}u ? {held} : {value}" if value else held
        name = f"v{register}_{plane}"
        if plan.packed > 1:
            part = min(plan.packed, plan.source.registers) - 1
            if part:
                value = f"{_grouped(value)} >> {plan.element_bits}u * (at{register} & {part}u)"
            value = f"{value} & {(1 << plan.element_bits) - 1:#x}u"
        lines.append(f"const la_u32 {name} = i{register} < {plan.extent}u ? {_grouped(value)} : 0u;")
    return lines


def _grouped(value: str) -> str:
    return f"({value})" if " " in value else value


def _loaded(plan: GatherPlan, register: int) -> list[str]:
    """The element at a byte of shared memory."""
    planes = max(1, plan.element_bits // WORD_BITS)
    kind = "la_u32" if planes == 1 else f"la_words{planes}"
    name = f"of{register}"
    lines = [f"const {kind} {name} = la_shared_load_b{plan.element_bits}(at{register});"]
    for plane in range(planes):
        value = name if planes == 1 else f"{name}.word[{plane}]"
        lines.append(f"const la_u32 v{register}_{plane} = i{register} < {plan.extent}u ? {value} : 0u;")
    return lines


def _joined(plan: GatherPlan, values: list[list[str]]) -> list[str]:
    """The words of the result."""
    if plan.packed == 1:
        return [plane for value in values for plane in value]
    joined = []
    for first in range(0, len(values), plan.packed):
        group = [value[0] for value in values[first : first + plan.packed]]
        joined.append(" | ".join(f"{name} << {part * plan.element_bits}" if part else name
                                 for part, name in enumerate(group)))  # fmt: skip
    return joined
