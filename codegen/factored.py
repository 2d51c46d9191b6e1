"""CUDA text for a factored layout: TMA copy, loads from shared memory to registers, then shuffles.

Notation: thread t of the block is lane t % 32 of warp t / 32. Register r of a thread first holds the tile coordinate
of its place and, after the residual, the element that the factored layout assigns to it. A word holds as many elements
as the exchanges pack, or one for rounds of shuffles.

Implementation notes: the conversion through shared memory uses 32-bit accesses of the same words; its bank bits are
constant on a common complement of the lanes' span and its image, so both sides are conflict-free if the residual is
linear.
"""

from __future__ import annotations

import itertools
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.codegen.cuda import MAP_TYPE, fitting, issue_text, origin_parameters, refusal_text, title
from layoutalg.codegen.exchange import EXCHANGE, exchanged, repacked
from layoutalg.codegen.kernel import STATUS_DONE, STATUS_TIMEOUT, KernelSource, checked_name, signature
from layoutalg.codegen.plans import base_align, launchable, upheld
from layoutalg.codegen.prelude import PRELUDE
from layoutalg.codegen.thread_numbers import Numbers
from layoutalg.f2 import matrix
from layoutalg.ground.check import Checker
from layoutalg.proofs.factorisation import Factorisation
from layoutalg.proofs.shuffle import NONE
from layoutalg.targets.nvidia.tensormap.limits import MAX_PHASE_BYTES

IntArray: TypeAlias = npt.NDArray[np.int64]
Way: TypeAlias = Literal["exchanges", "shuffles", "shared"]
CHECK = Checker("LA883", "cannot generate a kernel for this factorisation")
LANES = 32
BANK_BITS = 5
WORD_TYPES = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int"}
MOST_REGISTERS = 64

SHUFFLE = """
#ifndef LA_HOST
// Returns the word that another lane of the warp offers.
__device__ __forceinline__ la_u32 la_shuffle(la_u32 word, la_u32 lane)
{
    return __shfl_sync(0xFFFFFFFFu, word, (int)lane);
}

__device__ __forceinline__ void la_sync_warp() { __syncwarp(); }

__device__ __forceinline__ la_u64 la_cycles() { return (la_u64)clock64(); }

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
    la_u32* scratch = (la_u32*)(tile + {scratch});
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
{stores}    (void)scratch;
}}
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
    way = found.cheapest if way is None else way
    if way not in found.costs:
        raise CHECK.malformed("way", f"must be one of {', '.join(found.costs)}", way)
    plan = found.plan.descriptor
    launchable(upheld(plan), "load")
    registers, threads = steps.registers, steps.lanes * steps.warps
    size = plan.smem_bytes
    element = plan.expect_tx_bytes // (registers * threads)
    if steps.lanes != LANES or element not in WORD_TYPES or registers > MOST_REGISTERS or threads > 1024:
        rule = f"must have {LANES} lanes, at most {MOST_REGISTERS} registers and elements of at most 4 bytes"
        raise CHECK.malformed("found", rule, str(steps))
    if plan.expect_tx_bytes > MAX_PHASE_BYTES:
        raise CHECK.malformed("found", f"must have at most {MAX_PHASE_BYTES} bytes", plan.expect_tx_bytes)
    places = np.array(found.places, dtype=np.int64).reshape(threads, registers)
    offsets = np.asarray(found.carried.table(), dtype=np.int64)[places] * element
    numbers = Numbers()
    packed = 1 if found.exchange is None or way == "shuffles" else found.exchange.packed
    words = registers // packed
    loads, stores = _ends(offsets, element, packed, numbers)
    written = {"shuffles": _shuffled, "shared": _shared, "exchanges": _exchanged}[way](found, numbers)
    barrier = -(-size // 16) * 16
    scratch = barrier + 16
    end = scratch + (4 * words * threads if way == "shared" else 0)
    parameters = (
        (MAP_TYPE, "map"), *origin_parameters(plan), ("la_u32*", "words"), ("la_u64*", "times"), ("int", "repeats"),
        ("int*", "status"),
    )  # fmt: skip
    name = f"la_factored_{way}" if name is None else checked_name(name)
    text = _BODY.format(
        title=title(plan), told=f"residual by {way}: {found.costs[way]}", threads=threads, name=name,
        signature=signature(parameters), align=base_align(plan), barrier=barrier, scratch=scratch,
        bytes=plan.expect_tx_bytes, refusal=refusal_text(plan), words=words, loads=loads, stores=stores,
        issues=issue_text(
            plan, range(len(plan.issues)), 0, "la_tma_load_{rank}d({address}, &map, barrier, {coords});"
        ),
        residual="".join(f"        {line}\n" for line in written), tables="".join(numbers.tables),
        shared_parts=numbers.declared(),
        status_done=STATUS_DONE, status_timeout=STATUS_TIMEOUT,
    )  # fmt: skip
    smem = fitting(end + base_align(plan), plan)
    return KernelSource(name, PRELUDE + SHUFFLE + EXCHANGE + text, plan.problem.arch, threads, smem, parameters)


def _ends(offsets: IntArray, element: int, packed: int, numbers: Numbers) -> tuple[str, str]:
    """The loads of words from the tile, and their stores at 32 bits per element."""
    registers, wide = offsets.shape[1], 32 // packed
    kind = WORD_TYPES[element]
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


def _exchanged(found: Factorisation, numbers: Numbers) -> list[str]:
    """The statements of the exchanges."""
    plan = found.exchange
    if plan is None:
        raise CHECK.malformed("way", "must be shuffles or shared: the residual is not affine over F2", "exchanges")
    written = exchanged(plan, [f"held[{word}]" for word in range(plan.words)], numbers)
    return [*written.lines, *(f"next[{word}] = {name};" for word, name in enumerate(written.words))]


def _shuffled(found: Factorisation, numbers: Numbers) -> list[str]:
    """The statements of the rounds."""
    steps = found.shuffles
    threads = steps.warps * steps.lanes
    kept = np.array(steps.kept, dtype=np.int64).reshape(threads, steps.registers)
    lines = []
    for register in range(steps.registers):
        column = kept[:, register]
        if (column == NONE).all():
            lines.append(f"next[{register}] = 0;")
        else:
            lines += _chosen(f"next[{register}]", column, column != NONE, numbers)
    for number, each in enumerate(steps.rounds):
        send, read, into = (
            np.array(rows, dtype=np.int64).reshape(threads) for rows in (each.send, each.read, each.into)
        )
        live = into != NONE
        asked = np.zeros(threads, dtype=bool)
        asked[(np.arange(threads) // steps.lanes * steps.lanes + read)[live]] = True
        body = ["la_u32 word;", *_chosen("word", send, asked, numbers)]
        body.append(f"word = la_shuffle(word, {numbers.text(read, live)});  // round {number + 1}")
        targets = np.unique(into[live])
        if len(targets) == 1 and live.all():
            body.append(f"next[{targets[0]}] = word;")
        else:
            nowhere = steps.registers
            body.append(f"const la_u32 into = {numbers.text(np.where(live, into, nowhere))};")
            body += [f"next[{target}] = into == {target}u ? word : next[{target}];" for target in targets]
        lines += ["{", *(f"    {line}" for line in body), "}"]
    return lines


def _chosen(target: str, registers: IntArray, live: npt.NDArray[np.bool_], numbers: Numbers) -> list[str]:
    """Statements that set a word to the register selected by each live thread."""
    named = np.unique(registers[live])
    if len(named) == 1:
        return [f"{target} = held[{named[0]}];"]
    which = numbers.text(np.where(live, registers, named[0]), live)
    lines = [f"{target} = held[{named[0]}];"]
    return lines + [f"{target} = {which} == {other}u ? held[{other}] : {target};" for other in named[1:]]


def _shared(found: Factorisation, numbers: Numbers) -> list[str]:
    """The statements of the same residual through shared memory."""
    steps, plan = found.shuffles, found.exchange
    threads = steps.warps * steps.lanes
    words = steps.registers if plan is None else plan.words
    source = (steps.source() if plan is None else plan.word_source()).reshape(-1)
    where = _scratch(source, words, threads)
    at, back = where.reshape(threads, words), where[source].reshape(threads, words)
    held, lines = [f"held[{word}]" for word in range(words)], list[str]()
    names = (f"y{number}" for number in itertools.count())
    if plan is not None:
        lines, held = repacked(plan.before, held, names)
    lines += [f"scratch[{numbers.text(at[:, word])}] = {name};" for word, name in enumerate(held)]
    lines.append("la_sync_warp();")
    loaded = [next(names) for _ in held]
    lines += [f"const la_u32 {name} = scratch[{numbers.text(back[:, word])}];" for word, name in enumerate(loaded)]
    if plan is not None:
        more, loaded = repacked(plan.after, loaded, names)
        lines += more
    lines += [f"next[{word}] = {name};" for word, name in enumerate(loaded)]
    lines.append("la_sync_warp();")
    return lines


def _scratch(source: IntArray, registers: int, threads: int) -> IntArray:
    """The shared-memory word of every (thread, register): conflict-free if the residual is linear."""
    plain = (np.arange(threads)[:, None] + threads * np.arange(registers)[None, :]).reshape(-1)
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
    return np.asarray(matrix.table(list(order)), dtype=np.int64)
