"""Matrix products: tiles by the copy engine through a ring, warpgroup multiplies, results stored by the copy engine.

One role loads, each of the others multiplies 64 rows or a multiple of them; blocks are persistent. While a result
leaves, the loads of the next tile are on their way. Tiles are taken in groups of rows, so that the blocks that run at
the same time share rows of A and B in the L2 cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from layoutalg.codegen.cuda import MAP_TYPE
from layoutalg.codegen.kernel import KernelSource, checked_name
from layoutalg.codegen.kernels import answer
from layoutalg.codegen.kernels.answer import CHECK, PERSISTENT_GRID
from layoutalg.codegen.kernels.arguments import ArrayArgument, Place, checked_places
from layoutalg.codegen.kernels.ring import checked_tiles, mover, tile_plan, tiles_of_block
from layoutalg.codegen.launch import place_map
from layoutalg.codegen.pipeline.emission import Emitted, emit
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
INPUTS: Final = {"bf16": 16, "f16": 16, "e4m3": 32, "e5m2": 32}
"""Operand types, and K of their instruction."""


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
        blocks: The number of tiles; any smaller number of blocks works as well.
    """

    emitted: Emitted
    shape: tuple[int, int, int]
    tile: tuple[int, int, int]
    stages: int
    maps: tuple[bytes, bytes, bytes]
    arrays: tuple[ArrayArgument, ...]
    blocks: int

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
            a: A, M x K row-major: an address, an array for a run on the CPU, or a ``DeviceTensor``.
            b: B, N x K row-major.
            d: D, M x N row-major.
            blocks: Blocks of the launch; by default one per tile.
            status: Array for one status word per block, 1 on success; by default a new array.
        """
        count = CHECK.integer(self.blocks if blocks is None else blocks, "blocks", 1, self.blocks + 1)
        addresses = checked_places(self.arrays, {"a": a, "b": b, "d": d})
        if status is None:
            status = np.zeros(count, dtype=np.int32)
        words = ArrayArgument("status", (count,), answer.STATUS_BYTES, answer.STATUS_BYTES, written=True)
        checked_places((words,), {"status": status})
        return [*[place_map(raw, at) for raw, at in zip(self.maps, addresses, strict=True)], count, status]


def matmul_pipeline(stages: int, consumers: int, a: int, b: int, result: int) -> Pipeline:
    """Return the pipeline: a ring of tiles of A and B, and one slot of results for each consumer.

    Args:
        stages: Slots of the ring.
        consumers: Warpgroups that multiply.
        a: Bytes of a tile of A.
        b: Bytes of a tile of B.
        result: Bytes of a result on its way out.

    Example:
        >>> from layoutalg.proofs.pipeline import verify
        >>> verify(matmul_pipeline(4, 2, 16384, 32768, 16384)).engine
        'event graph'
    """
    load = (
        Op("wait", bar="empty", ph=-1), Op("arrive_tx", bar="full", bytes=a + b),
        Op("tma_load", buf="A", bar="full"), Op("tma_load", buf="B", bar="full"),
    )  # fmt: skip
    multiply = (
        Op("wait", bar="full"), Op("mma", buf="A"), Op("mma", buf="B"), Op("mma_commit"), Op("mma_wait", n=0),
        Op("arrive", bar="empty", n=WARPS),
    )  # fmt: skip
    roles = [Role("load", loop=load)]
    for which in range(consumers):
        buffer = f"C{which}"
        store = (
            Op("bulk_wait"), Op("write", buf=buffer), Op("proxy_fence"), Op("tma_store", buf=buffer), Op("bulk_commit"),
        )  # fmt: skip
        roles += [Role(f"math{which}", loop=multiply), Role(f"store{which}", loop=store, post=(Op("bulk_wait"),))]
    return Pipeline(
        stages,
        (("full", Barrier(1, stages)), ("empty", Barrier(consumers * WARPS, stages))),
        (("A", Buffer(stages, a)), ("B", Buffer(stages, b)), *[(f"C{i}", Buffer(1, result)) for i in range(consumers)]),
        tuple(roles),
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
    plans = {
        "A": tile_plan((m, k), kind.name, (tm, tk), "128B", target, "load"),
        "B": tile_plan((n, k), kind.name, (tn, tk), "128B", target, "load"),
        "D": tile_plan((m, n), result, (GROUP_ROWS, columns), "128B" if columns >= 64 else "NONE", target, "store"),
    }
    a, b = (_operand(side, kind.name, (rows, tk), target) for side, rows in (("A", tm), ("B", tn)))
    pipeline = matmul_pipeline(
        stages, consumers, plans["A"].expect_tx_bytes, plans["B"].expect_tx_bytes, GROUP_ROWS * columns * 2
    )
    mt, nt = checked_tiles((m, n), (tm, tn), 1)
    name = f"la_gemm_{m}x{n}x{k}_{kind.name}" if name is None else checked_name(name)
    program = _program(pipeline, plans, (a, b), (mt, nt, -(-k // tk)), (tm, tn, tk), consumers, result, columns,
                       CHECK.integer(together, "together", 1), name)  # fmt: skip
    title = f"D[{m}, {n}] = A[{m}, {k}] B[{n}, {k}]^T, {kind.name} to {result}, tiles of {tm} x {tn} x {tk}."
    emitted = emit(program, name, target, title=title)
    arrays = (
        ArrayArgument("a", (m, k), size, 128), ArrayArgument("b", (n, k), size, 128),
        ArrayArgument("d", (m, n), 2, 128, written=True),
    )  # fmt: skip
    maps = (plans["A"].raw, plans["B"].raw, plans["D"].raw)
    return MatmulKernel(emitted, (m, n, k), (tm, tn, tk), stages, maps, arrays, mt * nt)


def _operand(side: str, dtype: str, tile: tuple[int, int], target: str) -> OperandPlan:
    """The descriptors of a K-major operand with rows of 128 bytes."""
    rows, k = tile
    base = {16: 3, 8: 4}[element_type(dtype).bits]
    return wgmma(side, dtype, tile, f"Sw<3,{base},3> o 0 o ({rows},{k}):({k},1)", target)


SETTLE = r"""
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
const int tile = (int)blockIdx.x + turn * blocks;
const int group = tile / {whole} * {together}, rest = tile % {whole};
const int rows = {mt} - group < {together} ? {mt} - group : {together};
const int row = (group + rest % rows) * {tm}, column = rest / rows * {tn};
"""


def _program(
    pipeline: Pipeline, plans: dict[str, Any], operands: tuple[OperandPlan, OperandPlan], counts: tuple[int, int, int],
    tile: tuple[int, int, int], consumers: int, result: str, columns: int, together: int, name: str,
) -> Program:  # fmt: skip
    (mt, nt, kt), (tm, tn, tk) = counts, tile
    parts = tm // GROUP_ROWS // consumers * (tn // columns)
    where = _TILE.format(whole=together * nt, together=together, mt=mt, tm=tm, tn=tn)
    load = (("loop[2]", f"{name}_a(&map_a, $A, $bar, row, step * {tk});"),
            ("loop[3]", f"{name}_b(&map_b, $B, $bar, column, step * {tk});"))  # fmt: skip
    numbers = Numbers()
    multiply, registers = _multiply(operands, tile, consumers)
    write = write_text(columns, result, numbers)
    leave = f"{name}_d(&map_d, $C, row + which * {tm // consumers} + step / {tn // columns} * {GROUP_ROWS}, "
    leave += f"column + step % {tn // columns} * {columns});"
    before = wgmma_prelude(operands[0].problem.dtype, operands[1].rows) + SETTLE
    before += mover(plans["A"], f"{name}_a", "Loads a tile of A.") + mover(
        plans["B"], f"{name}_b", "Loads a tile of B."
    )
    before += mover(plans["D"], f"{name}_d", "Stores a part of a result.")
    threads = (1 + consumers) * WARPS * WARP
    most = (65536 - LOADER_REGISTERS * WARPS * WARP) // (consumers * WARPS * WARP) // 8 * 8
    workers = (
        Worker((Loop("load", load, f"{kt}"),), WARPS, elected=True, registers=LOADER_REGISTERS, turn=where),
        Worker(
            (Loop("math", (("loop[2]", multiply),), f"{kt}"),
             Loop("store", (("loop[1]", write), ("loop[3]", leave)), f"{parts}", unroll=True)),
            WARPS, consumers, registers=min(most, 240) if threads > 256 else 0,
            start=numbers.declared().replace("    const", "const") + f"float acc[{registers}];", turn=where,
        ),
    )  # fmt: skip
    parameters = ((MAP_TYPE, "map_a"), (MAP_TYPE, "map_b"), (MAP_TYPE, "map_d"), ("int", PERSISTENT_GRID))
    return Program(
        pipeline, workers, parameters, plans=(("A", plans["A"]), ("B", plans["B"]), ("C0", plans["D"])),
        turns=tiles_of_block(mt * nt), before=before + "".join(numbers.tables),
    )  # fmt: skip


def _multiply(operands: tuple[OperandPlan, OperandPlan], tile: tuple[int, int, int], consumers: int) -> tuple[str, int]:
    """Statements that multiply a consumer's rows of a slot, and the number of accumulators."""
    a, b = operands
    k = a.problem.instruction_k
    steps = tile[2] // k
    groups, across = tile[0] // GROUP_ROWS // consumers, tile[1] // b.rows
    each = b.rows // 2
    lines = ["la_wgmma_fence();"]
    row = f" + which * {groups * (a.mn_step or 0)}" if consumers > 1 else ""
    lines.append(f"const la_u64 a = {a.tiles[0].encoded:#018x}ull + (($A & 0x3FFFF) >> 4){row};")
    lines.append(f"const la_u64 b = {b.tiles[0].encoded:#018x}ull + (($B & 0x3FFFF) >> 4);")
    kind = a.problem.dtype
    turned = "<0, 0>" if k == 16 else ""
    for group in range(groups):
        for over in range(across):
            first = (group * across + over) * each
            part = "acc" if groups * across == 1 else f"*(float (*)[{each}])(acc + {first})"
            for s in range(steps):
                at = group * (a.mn_step or 0) + s * (a.k_step or 0), over * (b.mn_step or 0) + s * (b.k_step or 0)
                more = "step > 0" if s == 0 else "1"
                lines.append(f"la_wgmma_m64n{b.rows}k{k}_{kind}{turned}({part}, a + {at[0]}, b + {at[1]}, {more});")
    return "\n".join(lines), groups * across * each


def write_text(
    columns: int, result: str, numbers: Numbers, part: str = "step", sums: str = "acc", into: str = "$C_byte"
) -> str:
    """Return statements that write one part of the accumulators to shared memory as the store's descriptor reads it.

    Args:
        columns: Columns of the part.
        result: Type of the result.
        numbers: Collects the per-thread numbers.
        part: C expression of its number.
        sums: The accumulators.
        into: C expression of the first byte, with 1024-byte alignment.
    """
    t = np.arange(WARPS * WARP)
    row, half = t // WARP * 16 + t % 16, t % WARP // 16
    pack, lines = RESULTS[result], [f"la_settle({sums});"]
    panel = min(columns, 64)
    for group in range(columns // 16):
        chunk = group % (panel // 16) * 2 + half
        swizzled = chunk ^ row % 8 if panel == 64 else chunk
        at = group // (panel // 16) * (GROUP_ROWS * panel * 2) + row * panel * 2 + swizzled * 16
        first = f"{part} * {columns // 2} + {group * 8}"
        words = ", ".join([f"{pack}({sums}[{first} + {2 * i}], {sums}[{first} + {2 * i + 1}])" for i in range(4)])
        lines.append(f"la_stmatrix_x4({into} + {numbers.text(at)}, {{{words}}});")
    return "\n".join(lines)
