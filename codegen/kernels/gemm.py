"""Matrix products: tiles by the copy engine through a ring, warpgroup multiplies, results stored by the copy engine.

One role loads, each of the others multiplies 64 rows or a multiple of them; blocks are persistent. While a result
leaves, the loads of the next tile are on their way. Tiles are taken in groups of rows, so that the blocks that run at
the same time share rows of A and B in the L2 cache.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import numpy as np

from layoutalg.codegen.cuda import MAP_TYPE
from layoutalg.codegen.kernel import KernelSource, checked_name
from layoutalg.codegen.kernels import answer
from layoutalg.codegen.kernels.answer import CHECK, PERSISTENT_GRID
from layoutalg.codegen.kernels.arguments import ArrayArgument, Place, checked_places
from layoutalg.codegen.kernels.ring import checked_tiles, mover, tile_plan, tiles_of_block
from layoutalg.codegen.launch import place_map
from layoutalg.codegen.pipeline.emission import Emitted, emit, launch_registers
from layoutalg.codegen.pipeline.program import WARP, Loop, Program, Worker
from layoutalg.codegen.prelude import wgmma_prelude
from layoutalg.codegen.thread_numbers import Numbers
from layoutalg.ground.record import Checked
from layoutalg.proofs.dtypes import element_type
from layoutalg.proofs.pipeline.document import Barrier, Buffer, Op, Pipeline, Role
from layoutalg.proofs.wgmma import OperandPlan
from layoutalg.synth.wgmma.plan import wgmma
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE
from layoutalg.targets.nvidia.wgmma import require_wgmma

SPAN: Final = SWIZZLE_TABLE["128B"].span_bytes
GROUP_ROWS: Final = 64
"""Rows of a warpgroup multiply (PTX ISA 9.1, section 9.7.15.2)."""
WARPS: Final = 4
RESULTS: Final = {"bf16": "la_pack_bf16", "f16": "la_pack_f16"}
LOADER_REGISTERS: Final = 40
OTHER_REGISTERS: Final = 32
"""Registers of a thread that multiplies beside its accumulators: measured with ptxas 13.0, which needs 26."""
INPUTS: Final = {"bf16": 16, "f16": 16, "e4m3": 32, "e5m2": 32}
"""Operand types, and K of their instruction."""


Part = TypeVar("Part", int, str)


@dataclass(frozen=True, slots=True)
class MatmulKernel(Checked):
    """A kernel that computes D = A B^T, and what its launch needs.

    Args:
        emitted: The kernel, its pipeline and the proof.
        shape: (M, N, K).
        tile: (M, N, K) of a tile.
        stages: Slots of the ring.
        maps: Descriptors of A, B and D, relative to their addresses.
        arrays: The arrays that it takes.
        blocks: The number of tiles; any smaller number of whole clusters works as well.
        cluster: Blocks of a cluster.
    """

    emitted: Emitted
    shape: tuple[int, int, int]
    tile: tuple[int, int, int]
    stages: int
    maps: tuple[bytes, bytes, bytes]
    arrays: tuple[ArrayArgument, ...]
    blocks: int
    cluster: int = 1

    @property
    def kernel(self) -> KernelSource:
        """The text and the numbers of a launch."""
        return replace(self.emitted.kernel, grid=PERSISTENT_GRID)

    @property
    def flops(self) -> int:
        """Multiplications and additions."""
        m, n, k = self.shape
        return 2 * m * n * k

    def arguments(
        self, a: Place, b: Place, d: Place, blocks: int | None = None, status: Place | None = None
    ) -> list[Any]:
        """Return the arguments of a launch, one per parameter.

        Args:
            a: A in its order: an address, an array for a run on the CPU, or a ``DeviceTensor``.
            b: B in its order.
            d: D, M x N row-major.
            blocks: Blocks of the launch; by default one per tile.
            status: Array for one status word per block, 1 on success; by default a new array.
        """
        count = CHECK.integer(self.blocks if blocks is None else blocks, "blocks", 1, self.blocks + 1)
        if count % self.cluster:
            raise CHECK.malformed("blocks", f"must be a multiple of {self.cluster}, whole clusters", count)
        addresses = checked_places(self.arrays, {"a": a, "b": b, "d": d})
        if status is None:
            status = np.zeros(count, dtype=np.int32)
        words = ArrayArgument("status", (count,), answer.STATUS_BYTES, answer.STATUS_BYTES, written=True)
        checked_places((words,), {"status": status})
        return [*[place_map(raw, at) for raw, at in zip(self.maps, addresses, strict=True)], count, status]


def matmul_pipeline(
    stages: int, consumers: int, a: int, b: int, result: int, cluster: int = 1, behind: int = 0
) -> Pipeline:
    """Return the pipeline: a ring of tiles of A and B, and one slot of results for each consumer.

    The blocks of a cluster have rows of A of their own and share columns of B: each loads its part for all.

    Args:
        stages: Slots of the ring.
        consumers: Warpgroups that multiply.
        a: Bytes of a tile of A.
        b: Bytes of a tile of B.
        result: Bytes of a result on its way out.
        cluster: Blocks of a cluster.
        behind: Multiplies that may still run when the next are started; their slots are handed back later.

    Example:
        >>> from layoutalg.proofs.pipeline import verify
        >>> [verify(matmul_pipeline(4, 2, 16384, 32768, 16384, cluster)).engine for cluster in (1, 2)]
        ['event graph', 'event graph']
    """
    everyone = (tuple(range(cluster)),) if cluster > 1 else ()
    load = (
        Op("wait", bar="empty", ph=-1), Op("arrive_tx", bar="full", bytes=a + b),
        Op("tma_load", buf="A", bar="full"),
        Op("tma_load", buf="B", bar="full", bytes=b // cluster, multicast=everyone),
    )  # fmt: skip
    multiply = (
        Op("wait", bar="full"), Op("mma", buf="A"), Op("mma", buf="B"), Op("mma_commit"), Op("mma_wait", n=behind),
        Op("arrive", bar="empty", n=WARPS, off=-behind, to=everyone),
    )  # fmt: skip
    last = [Op("arrive", bar="empty", n=WARPS, off=-back, to=everyone) for back in range(behind, 0, -1)]
    roles = [Role("load", loop=load)]
    for which in range(consumers):
        buffer = f"C{which}"
        store = (
            Op("mma_wait"), Op("bulk_wait"), Op("write", buf=buffer), Op("proxy_fence"), Op("tma_store", buf=buffer),
            Op("bulk_commit"),
        )  # fmt: skip
        roles.append(Role(f"math{which}", loop=multiply, post=(Op("mma_wait"), *last) if behind else ()))
        roles.append(Role(f"store{which}", loop=store, post=(Op("bulk_wait"),)))
    return Pipeline(
        stages,
        (("full", Barrier(1, stages)), ("empty", Barrier(cluster * consumers * WARPS, stages))),
        (("A", Buffer(stages, a)), ("B", Buffer(stages, b)), *[(f"C{i}", Buffer(1, result)) for i in range(consumers)]),
        tuple(roles),
        cluster=cluster,
    )


def gemm_kernel(
    shape: Sequence[int],
    dtype: object = "bf16",
    target: str = "sm_90a",
    *,
    tile: Sequence[int] | None = None,
    stages: int = 4,
    consumers: int = 2,
    result: str = "bf16",
    cluster: int = 1,
    behind: int = 0,
    major_a: str = "K",
    major_b: str = "K",
    together: int = 16,
    out_columns: int = 128,
    name: str | None = None,
) -> MatmulKernel:
    """Return the kernel that computes D = A B^T with float accumulators.

    Mathematically: ``D[i, j] = sum over l of A[i, l] B[j, l]``, rounded once to the type of D.

    Args:
        shape: (M, N, K); rows of A, B and D must be multiples of 16 bytes.
        dtype: Type of A and B: bf16, f16, e4m3, e5m2.
        target: A target with ``wgmma``.
        tile: (M, N, K) of a tile: M a multiple of 64 times ``consumers``, N a multiple of 16 up to 256, K 128 bytes.
        stages: Slots of the ring, 2 to 8.
        consumers: Warpgroups that multiply, 1 to 3.
        result: Type of D: bf16 or f16.
        cluster: Blocks that share the columns of a tile, 1, 2 or 4: each loads a part of B for all.
        behind: Multiplies in flight when the next are started, 0 or 1.
        major_a: ``"K"``: A is M x K row-major; ``"MN"``: K x M row-major, for 16-bit types.
        major_b: ``"K"``: B is N x K row-major; ``"MN"``: K x N row-major, for 16-bit types.
        together: Rows of tiles that are taken together.
        out_columns: Columns of a result that leave at once.
        name: Kernel symbol.

    Raises: MalformedError: LA945, LA340, LA985. InfeasibleError: LA946, LA948. AdmissibilityError: no descriptor does
        it.

    Example:
        >>> made = gemm_kernel((4096, 4096, 4096))
        >>> made.kernel.threads, made.blocks, made.emitted.proof.engine
        (384, 512, 'event graph')
    """
    m, n, k = answer.checked_shape(shape, 3)
    kind = element_type(dtype)
    CHECK.choice(kind.name, "dtype", INPUTS)
    CHECK.choice(result, "result", RESULTS)
    for argument, major in (("major_a", major_a), ("major_b", major_b)):
        CHECK.choice(major, argument, ("K", "MN") if kind.bits == 16 else ("K",))
    answer.checked_target(target)
    require_wgmma(target)
    size = kind.bits // 8
    depth = SPAN // size
    tm, tn, tk = (128, 256, depth) if tile is None else answer.checked_shape(tile, 3)
    CHECK.integer(consumers, "consumers", 1, 4)
    if tm % (GROUP_ROWS * consumers) or tn % 16 or tn > 256 or tk != depth:
        rule = f"must have a multiple of {GROUP_ROWS * consumers} rows, of 16 columns up to 256, and K {depth}"
        raise CHECK.malformed("tile", rule, (tm, tn, tk))
    columns = CHECK.integer(out_columns, "out_columns", 16, 257)
    if tn % columns or columns % 16 or (columns > 64 and columns % 64):
        raise CHECK.malformed("out_columns", f"must divide {tn}, be a multiple of 16, and of 64 above that", columns)
    CHECK.integer(stages, "stages", 2, 9)
    if CHECK.integer(cluster, "cluster", 1, 9) and (
        tn % (cluster * (16 if major_b == "K" else 64)) or cluster & (cluster - 1)
    ):
        raise CHECK.malformed("cluster", f"must be a power of two that divides the {tn} columns of a tile", cluster)
    held, launched = tm // consumers * tn // (WARPS * WARP), launch_registers((1 + consumers) * WARPS * WARP)
    if held > launched - OTHER_REGISTERS:
        rule = f"must need at most {launched - OTHER_REGISTERS} accumulators per thread with {consumers} consumers"
        raise CHECK.malformed("tile", rule, held)
    plans = {
        side: tile_plan(_ordered(extents, major), kind.name, _ordered(part, major), "128B", target, "load")
        for side, extents, part, major in (
            ("A", (m, k), (tm, tk), major_a),
            ("B", (n, k), (tn // cluster, tk), major_b),
        )
    }
    plans |= {
        "D": tile_plan((m, n), result, (GROUP_ROWS, columns), "128B" if columns >= 64 else "NONE", target, "store"),
    }
    sides = (("A", tm, major_a), ("B", tn, major_b))
    a, b = (_operand(side, kind.name, (rows, tk), major, target) for side, rows, major in sides)
    pipeline = matmul_pipeline(
        stages,
        consumers,
        plans["A"].expect_tx_bytes,
        cluster * plans["B"].expect_tx_bytes,
        GROUP_ROWS * columns * 2,
        cluster,
        CHECK.integer(behind, "behind", 0, 2),
    )
    mt, nt = checked_tiles((m, n), (cluster * tm, tn), 1)
    name = f"la_gemm_{m}x{n}x{k}_{kind.name}" if name is None else checked_name(name)
    program = _program(pipeline, plans, (a, b), (mt, nt, -(-k // tk)), (tm, tn, tk), consumers, result, columns,
                       CHECK.integer(together, "together", 1), name, cluster)  # fmt: skip
    title = f"D[{m}, {n}] = A[{m}, {k}] B[{n}, {k}]^T, {kind.name} to {result}, tiles of {tm} x {tn} x {tk}."
    emitted = emit(program, name, target, title=title)
    arrays = (
        ArrayArgument("a", _ordered((m, k), major_a), size, 128),
        ArrayArgument("b", _ordered((n, k), major_b), size, 128),
        ArrayArgument("d", (m, n), 2, 128, written=True),
    )  # fmt: skip
    maps = (plans["A"].raw, plans["B"].raw, plans["D"].raw)
    return MatmulKernel(emitted, (m, n, k), (tm, tn, tk), stages, maps, arrays, mt * nt * cluster, cluster)


def _ordered(extents: tuple[Part, Part], major: str) -> tuple[Part, Part]:
    """Extents (MN, K) as the array has them, the contiguous dimension last."""
    return extents if major == "K" else extents[::-1]


def _operand(side: str, dtype: str, tile: tuple[int, int], major: str, target: str) -> OperandPlan:
    """The descriptors of an operand as ``tile_plan`` lays it out: rows of 128 bytes are contiguous in K or in MN."""
    rows, k = tile
    bits = element_type(dtype).bits
    base = {16: 3, 8: 4}[bits]
    if major == "K":
        return wgmma(side, dtype, tile, f"Sw<3,{base},3> o 0 o ({rows},{k}):({k},1)", target)
    across = SPAN * 8 // bits
    return wgmma(
        side, dtype, tile, f"Sw<3,{base},3> o 0 o (({across},{rows // across}),{k}):((1,{across * k}),{across})", target
    )


_SETTLE = r"""
// Whatever uses the accumulators stays behind the wait for the multiplies that write them.
template <int n>
__device__ __forceinline__ void la_settle(float (&d)[n])
{
#ifndef LA_HOST
#pragma unroll
    for (int i = 0; i < n; ++i) asm volatile("" : "+f"(d[i]) :: "memory");
#endif
}
"""
_TILE = """\
const int tile = (int)blockIdx.x{cluster} + turn * (blocks{cluster});
const int group = tile / {whole} * {together}, rest = tile % {whole};
const int rows = {mt} - group < {together} ? {mt} - group : {together};
const int row = {own}(group + rest % rows) * {all_rows}, column = rest / rows * {tn};
"""


def _program(
    pipeline: Pipeline, plans: dict[str, Any], operands: tuple[OperandPlan, OperandPlan], counts: tuple[int, int, int],
    tile: tuple[int, int, int], consumers: int, result: str, columns: int, together: int, name: str, cluster: int,
) -> Program:  # fmt: skip
    (mt, nt, kt), (tm, tn, tk) = counts, tile
    parts = tm // GROUP_ROWS // consumers * (tn // columns)
    where = _TILE.format(
        whole=together * nt, together=together, mt=mt, tn=tn, all_rows=cluster * tm,
        own=f"(int)la_cluster_rank() * {tm} + " if cluster > 1 else "", cluster=f" / {cluster}" if cluster > 1 else "",
    )  # fmt: skip
    shared: tuple[str, tuple[str, str]] = ("$B, $bar", ("column", f"step * {tk}"))
    if cluster > 1:
        part = f"(int)la_cluster_rank() * {tn // cluster}"
        there = f"$B + la_cluster_rank() * {plans['B'].expect_tx_bytes}, $bar, $mask"
        shared = there, (f"column + {part}", f"step * {tk}")
    load = tuple([
        (f"loop[{place}]", f"{name}_{side}(&map_{side}, {slot}, {', '.join(_ordered(at, major))});")
        for place, side, slot, at, major in (
            (2, "a", "$A, $bar", ("row", f"step * {tk}"), operands[0].major),
            (3, "b", *shared, operands[1].major),
        )
    ])  # fmt: skip
    numbers = Numbers()
    multiply, registers = _multiply(operands, tile, consumers)
    write = _write(columns, result, numbers)
    leave = f"{name}_d(&map_d, $C, row + which * {tm // consumers} + step / {tn // columns} * {GROUP_ROWS}, "
    leave += f"column + step % {tn // columns} * {columns});"
    before = wgmma_prelude(operands[0].problem.dtype, operands[1].rows) + _SETTLE
    before += mover(plans["A"], f"{name}_a", "Loads a tile of A.") + mover(
        plans["B"], f"{name}_b", "Loads a tile of B.", cluster > 1
    )
    before += mover(plans["D"], f"{name}_d", "Stores a part of a result.")
    threads = (1 + consumers) * WARPS * WARP
    most = (65536 - LOADER_REGISTERS * WARPS * WARP) // (consumers * WARPS * WARP) // 8 * 8
    store = (("loop[0]", "la_settle(acc);"), ("loop[2]", write), ("loop[4]", leave))
    workers = (
        Worker((Loop("load", load, f"{kt}"),), WARPS, elected=True, registers=LOADER_REGISTERS, turn=where),
        Worker(
            (Loop("math", (("loop[2]", multiply),), f"{kt}"),
             Loop("store", store, f"{parts}", unroll=True)),
            WARPS, consumers, registers=min(most, 240) if threads > 256 else 0,
            start=numbers.declared().replace("    const", "const") + f"float acc[{registers}];", turn=where,
        ),
    )  # fmt: skip
    parameters = ((MAP_TYPE, "map_a"), (MAP_TYPE, "map_b"), (MAP_TYPE, "map_d"), ("int", PERSISTENT_GRID))
    return Program(
        pipeline, workers, parameters, plans=(("A", plans["A"]), ("B", plans["B"]), ("C0", plans["D"])),
        turns=tiles_of_block(mt * nt, cluster), before=before + "".join(numbers.tables),
    )  # fmt: skip


def _multiply(operands: tuple[OperandPlan, OperandPlan], tile: tuple[int, int, int], consumers: int) -> tuple[str, int]:
    """Statements that multiply a consumer's rows of a slot, and the number of accumulators."""
    a, b = operands
    words = [{(part.mn, part.k): part.encoded for part in plan.tiles} for plan in operands]
    k, rows, each = a.problem.instruction_k, tile[0] // consumers, b.rows // 2
    moved = words[0][rows, 0] - words[0][0, 0] if consumers > 1 else 0
    if any(words[0][mn, at] != words[0][mn % rows, at] + mn // rows * moved for mn, at in words[0]):
        raise CHECK.malformed("tile", "must have equal steps from consumer to consumer", tile)
    lines = ["la_wgmma_fence();"]
    lines.append(f"const la_u64 a = (($A & 0x3FFFF) >> 4){f' + which * {moved}' if consumers > 1 else ''};")
    lines.append("const la_u64 b = (($B & 0x3FFFF) >> 4);")
    turned = f"<{a.transpose}, {b.transpose}>" if k == 16 else ""
    parts = list(itertools.product(range(0, rows, GROUP_ROWS), range(0, tile[1], b.rows)))
    for number, (row, column) in enumerate(parts):
        held = "acc" if len(parts) == 1 else f"*(float (*)[{each}])(acc + {number * each})"
        for at in range(0, tile[2], k):
            left, right = words[0][row, at], words[1][column, at]
            call = f"la_wgmma_m64n{b.rows}k{k}_{a.problem.dtype}{turned}"
            lines.append(f"{call}({held}, a + {left:#x}ull, b + {right:#x}ull, {'1' if at else 'step > 0'});")
    return "\n".join(lines), len(parts) * each


def _write(columns: int, result: str, numbers: Numbers) -> str:
    """Statements that write one part of the accumulators to shared memory as the store's descriptor reads it."""
    t = np.arange(WARPS * WARP)
    row, half = t // WARP * 16 + t % 16, t % WARP // 16
    pack, lines = RESULTS[result], list[str]()
    panel = min(columns, 64)
    for group in range(columns // 16):
        chunk = group % (panel // 16) * 2 + half
        swizzled = chunk ^ row % 8 if panel == 64 else chunk
        at = group // (panel // 16) * (GROUP_ROWS * panel * 2) + row * panel * 2 + swizzled * 16
        first = f"step * {columns // 2} + {group * 8}"
        words = ", ".join([f"{pack}(acc[{first} + {2 * i}], acc[{first} + {2 * i + 1}])" for i in range(4)])
        lines.append(f"la_stmatrix_x4($C_byte + {numbers.text(at)}, {{{words}}});")
    return "\n".join(lines)
