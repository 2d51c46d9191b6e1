"""CUDA text for a factored layout: the copy engine, registers from shared memory, then shuffles.

Main definitions: ``factored_kernel``.

Notation: thread t of the block is lane t % 32 of warp t / 32. Register r of a thread first holds the tile coordinate
that belongs to its place, and after the residual the element that the factored layout wants there, a word for each.

Implementation notes: numbers that differ between threads are written as the exclusive or of constants chosen by the
thread's bits where they are affine in them, as in every linear layout, and as tables else. The rival conversion goes
through shared memory with 32-bit accesses; its bank bits are constant on a common complement of the lanes' span and of
its image, so that neither side has conflicts where the residual is linear.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.codegen.cuda import MAP_TYPE, fitting, issue_text, origin_parameters, refusal_text, title
from layoutalg.codegen.kernel import STATUS_DONE, STATUS_TIMEOUT, KernelSource, checked_name, signature
from layoutalg.codegen.plans import base_align, launchable
from layoutalg.codegen.prelude import PRELUDE
from layoutalg.f2 import matrix
from layoutalg.ground.check import Checker
from layoutalg.proofs.factorisation import Factorisation
from layoutalg.proofs.shuffle import NONE
from layoutalg.targets.nvidia.tensormap.limits import MAX_PHASE_BYTES

IntArray: TypeAlias = npt.NDArray[np.int64]
Way: TypeAlias = Literal["shuffles", "shared"]
CHECK = Checker("LA883", "no kernel runs this factorisation")
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

    // What the copy engine carries: register r holds tile coordinate r of this thread.
    la_u32 held[{registers}];
{loads}
    const la_u64 cycles = la_cycles(), nanoseconds = la_nanoseconds();
    for (int turn = 0; turn < repeats; ++turn) {{
        la_u32 next[{registers}];
{residual}
        for (int r = 0; r < {registers}; ++r) held[r] = next[r];
    }}
    if (t == 0) {{
        times[0] = la_cycles() - cycles;
        times[1] = la_nanoseconds() - nanoseconds;
        *status = done ? {status_done} : {status_timeout};
    }}
    for (int r = 0; r < {registers}; ++r) words[t * {registers} + r] = held[r];
    (void)scratch;
}}
"""


def factored_kernel(found: Factorisation, way: Way = "shuffles", name: str | None = None) -> KernelSource:
    """Return the kernel that loads a tile by its descriptor and brings every register the word it wants.

    The kernel takes ``(map, origin..., words, times, repeats, status)``: ``words`` receives 32 bits per thread and
    register, the register fastest; ``times`` the cycles and nanoseconds of the residual done ``repeats`` times (1 for
    the layout itself); the status is that of a load.

    Args:
        found: A factorisation of places with 32 lanes, carried by a load.
        way: ``"shuffles"``, or ``"shared"`` for the same residual through shared memory.
        name: Kernel symbol; made from the way when left out.

    Raises: MalformedError: LA503, LA506, LA883. InfeasibleError: LA504.

    Example:
        >>> import layoutalg as la
        >>> from layoutalg.synth import factorise
        >>> bases = {"register": [(1,), (2,), (8,)], "lane": [(4,), (16,), (32,), (64,), (128,)]}
        >>> kernel = factored_kernel(factorise(la.LinearLayout.from_bases(bases, {"offset": 256})))
        >>> kernel.threads, kernel.text.count("= la_shuffle(")
        (32, 4)
    """
    steps = CHECK.kind(found, Factorisation, "found").shuffles
    if way not in ("shuffles", "shared"):
        raise CHECK.malformed("way", "must be shuffles or shared", way)
    plan = found.plan.descriptor
    launchable(plan, "load")
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
    numbers = _Numbers()
    loads = [
        f"    held[{r}] = *(const {WORD_TYPES[element]}*)(tile + {numbers.text(offsets[:, r])});\n"
        for r in range(registers)
    ]
    residual = _shuffled(found, numbers) if way == "shuffles" else _shared(found, numbers)
    barrier = -(-size // 16) * 16
    scratch = barrier + 16
    end = scratch + (4 * registers * threads if way == "shared" else 0)
    parameters = (
        (MAP_TYPE, "map"), *origin_parameters(plan), ("la_u32*", "words"), ("la_u64*", "times"), ("int", "repeats"),
        ("int*", "status"),
    )  # fmt: skip
    name = f"la_factored_{way}" if name is None else checked_name(name)
    text = _BODY.format(
        title=title(plan), told=f"residual by {way}: {steps}", threads=threads, name=name,
        signature=signature(parameters), align=base_align(plan), barrier=barrier, scratch=scratch,
        bytes=plan.expect_tx_bytes, refusal=refusal_text(plan), registers=registers, loads="".join(loads),
        issues=issue_text(
            plan, range(len(plan.issues)), 0, "la_tma_load_{rank}d({address}, &map, barrier, {coords});"
        ),
        residual="".join(f"        {line}\n" for line in residual), tables="".join(numbers.tables),
        shared_parts=numbers.declared(),
        status_done=STATUS_DONE, status_timeout=STATUS_TIMEOUT,
    )  # fmt: skip
    smem = fitting(end + base_align(plan), plan)
    return KernelSource(name, PRELUDE + SHUFFLE + text, plan.problem.arch, threads, smem, parameters)


class _Numbers:
    """Numbers that depend on the thread, as C text; tables collect what is not affine in its bits."""

    def __init__(self) -> None:
        self.tables: list[str] = []
        self.parts: dict[str, str] = {}

    def declared(self) -> str:
        """Return the statements that compute what expressions share."""
        return "".join(f"    const la_u32 {name} = {part};\n" for part, name in self.parts.items())

    def text(self, values: IntArray, live: npt.NDArray[np.bool_] | None = None) -> str:
        """Return an expression in t; at threads that are not live it may be anything."""
        fit = _affine(values, np.ones(len(values), dtype=bool) if live is None else live)
        if fit is not None:
            first, columns = fit
            if not any(columns):
                return f"{first}u"
            parts = [f"(0u - (t >> {bit} & 1u) & {column}u)" for bit, column in enumerate(columns) if column]
            name = self.parts.setdefault(" ^ ".join(parts), f"of_t{len(self.parts)}")
            return f"({name} ^ {first}u)" if first else name
        name = f"la_numbers{len(self.tables)}"
        listed = ", ".join(str(int(value)) for value in values)
        self.tables.append(f"__device__ const int {name}[{len(values)}] = {{{listed}}};\n")
        return f"(la_u32){name}[t]"


def _affine(values: IntArray, live: npt.NDArray[np.bool_]) -> tuple[int, tuple[int, ...]] | None:
    """Return (constant, columns) of an affine map of the thread's bits that has these values at the live threads."""
    width = (len(values) - 1).bit_length()
    rows: dict[int, tuple[int, int]] = {}
    for thread in np.flatnonzero(live).tolist():
        point, value = thread << 1 | 1, int(values[thread])
        while point and point.bit_length() in rows:
            other, theirs = rows[point.bit_length()]
            point, value = point ^ other, value ^ theirs
        if point:
            rows[point.bit_length()] = (point, value)
        elif value:
            return None
    solved = [0] * (width + 1)
    for length in sorted(rows):
        point, value = rows[length]
        for bit in range(length - 1):
            if point >> bit & 1:
                value ^= solved[bit]
        solved[length - 1] = value
    return solved[0], tuple(solved[1:])


def _shuffled(found: Factorisation, numbers: _Numbers) -> list[str]:
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


def _chosen(target: str, registers: IntArray, live: npt.NDArray[np.bool_], numbers: _Numbers) -> list[str]:
    """Statements that set a word to the register that each live thread names."""
    named = np.unique(registers[live])
    if len(named) == 1:
        return [f"{target} = held[{named[0]}];"]
    which = numbers.text(np.where(live, registers, named[0]), live)
    lines = [f"{target} = held[{named[0]}];"]
    return lines + [f"{target} = {which} == {other}u ? held[{other}] : {target};" for other in named[1:]]


def _shared(found: Factorisation, numbers: _Numbers) -> list[str]:
    """The statements of the same residual through shared memory."""
    steps = found.shuffles
    threads = steps.warps * steps.lanes
    source = steps.source().reshape(-1)
    where = _scratch(source, steps.registers, threads)
    at = where.reshape(threads, steps.registers)
    back = where[source].reshape(threads, steps.registers)
    lines = [f"scratch[{numbers.text(at[:, r])}] = held[{r}];" for r in range(steps.registers)]
    lines.append("la_sync_warp();")
    lines += [f"next[{r}] = scratch[{numbers.text(back[:, r])}];" for r in range(steps.registers)]
    lines.append("la_sync_warp();")
    return lines


def _scratch(source: IntArray, registers: int, threads: int) -> IntArray:
    """The word of shared memory of every (thread, register): free of conflicts where the residual is linear."""
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
