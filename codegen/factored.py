"""CUDA text for a factored layout: TMA copy, loads from shared memory to registers, then shuffles.

Notation: thread t of the block is lane t % 32 of warp t / 32. Register r of a thread first holds the tile coordinate
of its place and, after the residual, the element that the factored layout assigns to it. A word holds as many elements
as the exchanges pack, or one for rounds of shuffles.

Implementation notes: the conversion through shared memory uses 32-bit accesses of the same words; its bank bits are
constant on a common complement of the lanes' span and its image, so both sides are conflict-free if the residual is
linear.
"""

from __future__ import annotations

from itertools import count

import numpy as np

from layoutalg.codegen.conversion_steps import WARP, StepWriter
from layoutalg.codegen.cuda import LOAD, MAP_TYPE, fitting, issue_text, origin_parameters, refusal_text, title
from layoutalg.codegen.kernel import STATUS_DONE, STATUS_TIMEOUT, KernelSource, checked_name, signature
from layoutalg.codegen.plans import base_align, launchable, upheld
from layoutalg.codegen.portable import ELEMENT_TYPES, TENSOR_PRELUDE
from layoutalg.codegen.thread_numbers import IntArray, Numbers
from layoutalg.f2 import matrix
from layoutalg.ground.check import Checker
from layoutalg.proofs.conversion_steps import Step, Through, flattened
from layoutalg.proofs.factorisation import Factorisation, Way
from layoutalg.proofs.listed_access import UNCOUNTED, ListedAccess
from layoutalg.targets.nvidia.tensormap.limits import MAX_PHASE_BYTES

CHECK = Checker("LA883", "cannot generate a kernel for this factorisation")
LANES = 32
BANK_BITS = 5
MOST_REGISTERS = 64

NANOSECONDS = """
#ifndef LA_HOST
__device__ __forceinline__ la_u64 la_nanoseconds()
{
    la_u64 now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
}
#endif
"""

_BODY = """{tables}
// {title}
// {told}
extern "C" __global__ void __launch_bounds__({threads}) {name}({signature})
{{
    unsigned char* tile = la_aligned_shared({align});
    const la_u32 tile_address = la_shared_address(tile);
    const la_u32 barrier = tile_address + {barrier};
    const la_u32 t = threadIdx.x;
{shared_parts}{refusal}
    if (t == 0) la_mbarrier_init(barrier, 1);
    la_fence_async();
    __syncthreads();
    if (t == 0) {{
        la_arrive_expect_tx(barrier, {bytes});
{issues}    }}
    const bool done = la_wait_parity(barrier, 0);
    __syncthreads();

    // What the copy engine carries: element r, in the words in order, is tile coordinate r of this thread.
    la_u32 held[{words}];
{loads}
    const la_u64 cycles = la_cycles(), nanoseconds = la_nanoseconds();
#pragma unroll 4
    for (int turn = 0; turn < repeats; ++turn) {{
        la_u32 next[{words}];
{residual}
        for (int r = 0; r < {words}; ++r) held[r] = next[r];
    }}
    if (t == 0) {{
        times[0] = la_cycles() - cycles;
        times[1] = la_nanoseconds() - nanoseconds;
        *status = done ? {status_done} : {status_timeout};
    }}
{stores}}}
"""


def factored_kernel(found: Factorisation, way: Way | None = None, name: str | None = None) -> KernelSource:
    """Return the kernel that loads a tile by its descriptor and moves every element to its register.

    Parameters: ``(map, origin..., words, times, repeats, status)``; ``words`` receives 32 bits per thread and register,
    register fastest; ``times`` the cycles and nanoseconds of ``repeats`` runs of the residual (1 for the layout
    itself); the status is that of a load.

    Args:
        found: A factorisation of places with 32 lanes, carried by a load.
        way: ``"exchanges"``: exchange bits between words and lanes; ``"shuffles"``: the fewest shuffles of one element
            each; ``"shared"``: through shared memory. By default the cheapest.
        name: Kernel symbol; by default derived from the way.

    Example:
        >>> import layoutalg as la
        >>> from layoutalg.synth import factorise
        >>> bases = {"register": [(1,), (2,), (8,)], "lane": [(4,), (16,), (32,), (64,), (128,)]}
        >>> found = factorise(la.LinearLayout.from_bases(bases, {"offset": 256}))
        >>> found.cheapest, factored_kernel(found).text.count("= la_shuffle_xor(")
        ('exchanges', 2)
        >>> factored_kernel(found, "shuffles").text.count("= la_shuffle(")
        4
    """
    steps = upheld(CHECK.kind(found, Factorisation, "found")).shuffles
    if found.plan.consumer not in ("tma", "tma.store"):
        raise CHECK.malformed("found", "must be carried by the copy engine", found.plan.consumer)
    costs = found.costs
    way = found.cheapest if way is None else way
    CHECK.choice(way, "way", costs)
    plan = found.plan.descriptor
    launchable(upheld(plan), "load")
    registers, threads = steps.registers, steps.lanes * steps.warps
    size = plan.smem_bytes
    element = plan.expect_tx_bytes // (registers * threads)
    if steps.lanes != LANES or element not in (1, 2, 4) or registers > MOST_REGISTERS or threads > 1024:
        rule = f"must have {LANES} lanes, at most {MOST_REGISTERS} registers and elements of at most 4 bytes"
        raise CHECK.malformed("found", rule, str(steps))
    if plan.expect_tx_bytes > MAX_PHASE_BYTES:
        raise CHECK.malformed("found", f"must have at most {MAX_PHASE_BYTES} bytes", plan.expect_tx_bytes)
    places = np.array(found.places, dtype=np.int64).reshape(threads, registers)
    offsets = np.asarray(found.carried.table(), dtype=np.int64)[places] * element
    numbers = Numbers()
    packed = 1 if found.exchange is None or way == "shuffles" else found.exchange.packed
    words, align = registers // packed, base_align(plan)
    loads, stores = _ends(offsets, element, packed, numbers)
    barrier = -(-size // 16) * 16
    end = barrier + 16 + (4 * words * threads if way == "shared" else 0)
    writer = StepWriter(
        32 // packed, numbers, (f"x{number}" for number in count()), LANES, steps.warps, align + barrier + 16
    )
    after = writer.written(_steps(found, way, packed), [f"held[{word}]" for word in range(words)], registers)
    lines = [*writer.lines, *(f"next[{word}] = {name};" for word, name in enumerate(after))]
    lines += ["la_sync_warp();"] * (way == "shared")  # the next turn stores to the same words
    parameters = (
        (MAP_TYPE, "map"), *origin_parameters(plan), ("la_u32*", "words"), ("la_u64*", "times"), ("int", "repeats"),
        ("int*", "status"),
    )  # fmt: skip
    name = f"la_factored_{way}" if name is None else checked_name(name)
    text = _BODY.format(
        title=title(plan), told=f"residual by {way}: {costs[way]}", threads=threads, name=name,
        signature=signature(parameters), align=align, barrier=barrier,
        bytes=plan.expect_tx_bytes, refusal=refusal_text(plan), words=words, loads=loads, stores=stores,
        issues=issue_text(plan, LOAD),
        residual="".join(f"        {line}\n" for line in lines), tables="".join(numbers.tables),
        shared_parts=numbers.declared(),
        status_done=STATUS_DONE, status_timeout=STATUS_TIMEOUT,
    )  # fmt: skip
    smem = fitting(end + align, plan)
    return KernelSource(name, TENSOR_PRELUDE + WARP + NANOSECONDS + text, plan.problem.arch, threads, smem, parameters)


def _ends(offsets: IntArray, element: int, packed: int, numbers: Numbers) -> tuple[str, str]:
    """The loads of words from the tile, and their stores at 32 bits per element."""
    registers, wide = offsets.shape[1], 32 // packed
    kind = ELEMENT_TYPES[element]
    loads, stores = [], []
    for word in range(registers // packed):
        parts = []
        for part in range(packed):
            register = word * packed + part
            place = numbers.text(offsets[:, register])
            parts.append(f"(la_u32)*(const {kind}*)(tile + {place})" + (f" << {wide * part}" if part else ""))
            shifted = f"held[{word}] >> {wide * part}" if part else f"held[{word}]"
            taken = shifted if packed == 1 else f"{shifted} & {(1 << wide) - 1:#x}u"
            stores.append(f"    words[t * {registers} + {register}] = {taken};\n")
        loads.append(f"    held[{word}] = {' | '.join(parts)};\n")
    return "".join(loads), "".join(stores)


def _steps(found: Factorisation, way: Way, packed: int) -> tuple[Step, ...]:
    """The residual as steps between words of ``packed`` elements."""
    plan, moves = found.exchange, found.shuffles
    steps: tuple[Step, ...] = (moves,)
    if way == "exchanges" and plan is not None:
        steps = plan.steps
    if way == "shared":
        source = (moves.source() if plan is None else plan.word_source()).reshape(-1)
        where = 4 * _scratch(source, len(source) // (moves.warps * moves.lanes), moves.warps * moves.lanes)
        store, load = (
            ListedAccess(f"{name}.shared.b32", packed, tuple(map(tuple, rows.tolist())), UNCOUNTED)
            for name, rows in (("st", where.T), ("ld", where.reshape(-1)[source].reshape(where.shape).T))
        )
        steps = (Through(4 * len(source), "warp", 1, store, load),)
    return steps if plan is None or way == "shuffles" else flattened(plan, packed, steps)


def _scratch(source: IntArray, registers: int, threads: int) -> IntArray:
    """The shared-memory word of every [thread, register]: conflict-free if the residual is linear."""
    plain = np.arange(threads)[:, None] + threads * np.arange(registers)[None, :]
    size = len(source)
    bits = size.bit_length() - 1
    if size & (size - 1) or registers & (registers - 1):
        return plain
    low = registers.bit_length() - 1
    columns = [int(source[1 << bit]) ^ int(source[0]) for bit in range(bits)]
    if not np.array_equal(matrix.table(columns, int(source[0])), source):
        return plain
    lanes = [1 << bit for bit in range(low, low + BANK_BITS)]
    outside = [1 << bit for bit in range(low + BANK_BITS, bits)]
    images = [columns[bit] for bit in range(low, low + BANK_BITS)]
    common = matrix.common_complement([*lanes, *outside], [*images, *outside], bits)
    # banks: coordinates along the lanes, modulo the common complement
    order = matrix.inverse([*lanes, *common, *outside])
    return np.asarray(matrix.table(list(order)), dtype=np.int64).reshape(threads, registers)
