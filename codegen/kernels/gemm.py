"""Matrix products: tiles by the copy engine through a ring, warpgroup multiplies, results stored by the copy engine.

One role loads, each of the others multiplies 64 rows or a multiple of them; blocks are persistent. While a result
leaves, the loads of the next tile are on their way. Tiles are taken in groups of rows, so that the blocks that run at
the same time share rows of A and B in the L2 cache.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, TypeVar

import numpy as np

from layoutalg.codegen.cuda import MAP_TYPE
from layoutalg.codegen.kernel import KernelSource, checked_name
from layoutalg.codegen.kernels import answer
from layoutalg.codegen.kernels.answer import CHECK, PERSISTENT_GRID
from layoutalg.codegen.kernels.arguments import ArrayArgument, Place, checked_places
from layoutalg.codegen.kernels.gemm_forms import GROUP_ROWS, LINE_BYTES, SPANS, WARPS, Form, fitted, forms
from layoutalg.codegen.kernels.ring import checked_tiles, mover, tile_plan, tiles_of, tiles_of_block
from layoutalg.codegen.launch import place_map
from layoutalg.codegen.pipeline.emission import REGISTERS, Emitted, Memory, emit, launch_registers, placed
from layoutalg.codegen.pipeline.program import SLOT_ALIGN, WARP, Loop, Program, Worker
from layoutalg.codegen.prelude import wgmma_prelude
from layoutalg.codegen.thread_numbers import Numbers
from layoutalg.ground.record import Checked
from layoutalg.proofs.dtypes import ElementType, element_type
from layoutalg.proofs.pipeline.document import Barrier, Buffer, Op, Pipeline, Role
from layoutalg.proofs.tensormap import TensorMapPlan
from layoutalg.proofs.wgmma import OperandPlan
from layoutalg.synth.wgmma.plan import wgmma
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE, XORS
from layoutalg.targets.nvidia.tensormap.limits import MAX_SMEM_BYTES
from layoutalg.targets.nvidia.wgmma import require_wgmma

SPAN: Final = SWIZZLE_TABLE["128B"].span_bytes
RESULTS: Final = {"bf16": "la_pack_bf16", "f16": "la_pack_f16"}
LOADER_REGISTERS: Final = 40
OTHER_REGISTERS: Final = 32
"""Registers of a thread that multiplies beside its accumulators: measured with ptxas 13.0, which needs 26."""
BARRIERS_BYTES: Final = 256
"""Room for barriers, 16 bytes a slot, and the word of waits that gave up."""
MOST_STEPS: Final = 1 << 31
"""Steps in K of all tiles, which one block counts in an ``int`` if it is alone."""
PARAMETERS: Final = ((MAP_TYPE, "map_a"), (MAP_TYPE, "map_b"), (MAP_TYPE, "map_d"), ("int", PERSISTENT_GRID))
INPUTS: Final = {"bf16": 16, "f16": 16, "e4m3": 32, "e5m2": 32}
"""Operand types, and K of their instruction."""


Part = TypeVar("Part", int, str)


@dataclass(frozen=True, slots=True)
class MatmulKernel(Checked):
    """A kernel that computes D = A B^T, and what its launch needs.

    Args:
        emitted: The kernel, its pipeline and the proof.
        shape: (M, N, K).
        form: Tile, warpgroups, cluster and stages.
        maps: Descriptors of A, B and D, relative to their addresses.
        arrays: The arrays that it takes.
        blocks: The number of tiles; any smaller number of whole clusters works as well.
    """

    emitted: Emitted
    shape: tuple[int, int, int]
    form: Form
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
            a: A in its order: an address, an array for a run on the CPU, or a ``DeviceTensor``.
            b: B in its order.
            d: D, M x N row-major.
            blocks: Blocks of the launch; by default one per tile.
            status: Array for one status word per block, 1 on success; by default a new array.

        Example:
            >>> made = gemm_kernel((256, 256, 128))
            >>> len(made.arguments(0x10000, 0x20000, 0x40000, blocks=1))
            5
        """
        count = CHECK.integer(self.blocks if blocks is None else blocks, "blocks", 1, self.blocks + 1)
        if count % self.form.cluster:
            raise CHECK.malformed("blocks", f"must be a multiple of {self.form.cluster}, whole clusters", count)
        addresses = checked_places(self.arrays, {"a": a, "b": b, "d": d})
        if status is None:
            status = np.zeros(count, dtype=np.int32)
        words = ArrayArgument("status", (count,), answer.STATUS_BYTES, answer.STATUS_BYTES, written=True)
        checked_places((words,), {"status": status})
        return [*[place_map(raw, at) for raw, at in zip(self.maps, addresses, strict=True)], count, status]


def matmul_pipeline(
    stages: int, consumers: int, a: int, b: int, result: int, cluster: int = 1, behind: int = 0
) -> Pipeline:
    """Return the pipeline: a ring of tiles of A and B; for each consumer its accumulators and one slot of results.

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
    last = [Op("arrive", bar="empty", n=WARPS, off=-back, to=everyone) for back in range(behind, 0, -1)]
    roles = [Role("load", loop=load)]
    for which in range(consumers):
        buffer, acc = f"C{which}", f"acc{which}"
        multiply = (
            Op("wait", bar="full"), Op("mma", buf="A"), Op("mma", buf="B"), Op("mma_write", buf=acc, idx_abs=0),
            Op("mma_commit"), Op("mma_wait", n=behind), Op("arrive", bar="empty", n=WARPS, off=-behind, to=everyone),
        )  # fmt: skip
        store = (
            Op("mma_wait"), Op("read", buf=acc, idx_abs=0), Op("bulk_wait"), Op("write", buf=buffer),
            Op("proxy_fence"), Op("tma_store", buf=buffer), Op("bulk_commit"),
        )  # fmt: skip
        end = (Op("mma_wait"), *last) if behind else ()
        # the first multiply of a tile overwrites them, as if they were zeroed
        roles.append(Role(f"math{which}", (Op("write", buf=acc, idx_abs=0),), multiply, end))
        roles.append(Role(f"store{which}", loop=store, post=(Op("bulk_wait"),), threads_of=f"math{which}"))
    results = [(f"C{which}", Buffer(1, result)) for which in range(consumers)]
    sums = [(f"acc{which}", Buffer(1, space="register")) for which in range(consumers)]
    return Pipeline(
        stages,
        (("full", Barrier(1, stages)), ("empty", Barrier(cluster * consumers * WARPS, stages))),
        (("A", Buffer(stages, a)), ("B", Buffer(stages, b)), *results, *sums),
        tuple(roles),
        cluster=cluster,
    )


def gemm_kernel(
    shape: Sequence[int],
    dtype: object = "bf16",
    target: str = "sm_90a",
    *,
    form: Form | None = None,
    result: str = "bf16",
    major_a: str = "K",
    major_b: str = "K",
    name: str | None = None,
) -> MatmulKernel:
    """Return the kernel that computes D = A B^T with float accumulators.

    Mathematically: ``D[i, j] = sum over l of A[i, l] B[j, l]``, rounded once to the type of D.

    Args:
        shape: (M, N, K); rows of A, B and D must be multiples of 16 bytes.
        dtype: Type of A and B: bf16, f16, e4m3, e5m2.
        target: A target with ``wgmma``.
        form: Tile, warpgroups, cluster; by default the first of ``gemm_forms.forms``.
        result: Type of D: bf16 or f16.
        major_a: ``"K"``: A is M x K row-major; ``"MN"``: K x M row-major, for 16-bit types.
        major_b: ``"K"``: B is N x K row-major; ``"MN"``: K x N row-major, for 16-bit types.
        name: Kernel symbol.

    Raises: MalformedError: LA945, LA340, LA985. InfeasibleError: LA946, LA948. AdmissibilityError: no descriptor does
        it.

    Example:
        >>> made = gemm_kernel((4096, 4096, 4096))
        >>> made.kernel.threads, made.blocks, made.emitted.proof.engine
        (384, 512, 'event graph')
    """
    (m, n, k), kind = checked_product(shape, dtype, target, result, major_a, major_b)
    size = kind.bits // 8
    lengths = [extents[major == "K"] * size for extents, major in (((m, k), major_a), ((n, k), major_b))]
    even = all(length % LINE_BYTES == 0 for length in lengths)
    chosen = CHECK.kind(forms((m, n, k), size, even)[0][1] if form is None else form, Form, "form")
    chosen = checked_form(chosen, (m, n, k), size, target, major_a, major_b)
    depth, across = chosen.step_bytes // size, chosen.columns // chosen.cluster
    sides = {"A": ((m, k), chosen.rows, chosen.rows, major_a), "B": ((n, k), chosen.columns, across, major_b)}
    plans = {
        side: tile_plan(
            _ordered(extents, major), kind.name, _ordered((own, depth), major), chosen.swizzle, target, "load"
        )
        for side, (extents, _, own, major) in sides.items()
    }
    swizzle = "128B" if chosen.leaving >= 64 else "NONE"
    plans["D"] = tile_plan((m, n), result, (GROUP_ROWS, chosen.leaving), swizzle, target, "store")
    a, b = (
        _operand(side, kind.name, (rows, depth), major, chosen.swizzle, target)
        for side, (_, rows, _, major) in sides.items()
    )
    mt, nt = tiles_of((m, n), (chosen.cluster * chosen.rows, chosen.columns))
    name = f"la_gemm_{m}x{n}x{k}_{kind.name}" if name is None else checked_name(name)
    product = _Product(name, chosen, plans, a, b, (mt, nt, -(-k // depth)), result)
    what = f"D[{m}, {n}] = A[{m}, {k}] B[{n}, {k}]^T, {kind.name} to {result}"
    emitted = emit(
        product.program(), name, target, title=f"{what}, tiles of {chosen.rows} x {chosen.columns} x {depth}."
    )
    arrays = (
        ArrayArgument("a", _ordered((m, k), major_a), size, 128),
        ArrayArgument("b", _ordered((n, k), major_b), size, 128),
        ArrayArgument("d", (m, n), 2, 128, written=True),
    )  # fmt: skip
    maps = (plans["A"].raw, plans["B"].raw, plans["D"].raw)
    return MatmulKernel(emitted, (m, n, k), chosen, maps, arrays, mt * nt * chosen.cluster)


def checked_product(
    shape: Sequence[int], dtype: object, target: str, result: str, major_a: str, major_b: str
) -> tuple[tuple[int, int, int], ElementType]:
    """Return (M, N, K) and the type of A and B; see ``gemm_kernel``."""
    m, n, k = answer.checked_extents(shape, "MNK")
    for extents in ((m, k), (n, k), (m, n)):
        answer.checked_shape(extents)
    kind = element_type(dtype)
    CHECK.choice(kind.name, "dtype", INPUTS)
    CHECK.choice(result, "result", RESULTS)
    for argument, major in (("major_a", major_a), ("major_b", major_b)):
        CHECK.choice(major, argument, ("K", "MN") if kind.bits == 16 else ("K",))
    answer.checked_target(target)
    require_wgmma(target)
    return (m, n, k), kind


def checked_form(
    form: Form, shape: tuple[int, int, int], size: int, target: str, major_a: str = "K", major_b: str = "K"
) -> Form:
    """Return the form with its stages; refused where it has no kernel, before anything is planned.

    Args:
        form: The form.
        shape: (M, N, K).
        size: Bytes of an element of A and B.
        target: The target.
        major_a: As of ``gemm_kernel``.
        major_b: As of ``gemm_kernel``.
    """
    _registers(form)
    _spans(form, form.columns // form.cluster, size, major_a, major_b)
    stage, leaving = (form.rows + form.columns) * form.step_bytes, GROUP_ROWS * form.leaving * 2
    room = MAX_SMEM_BYTES - SLOT_ALIGN - BARRIERS_BYTES
    form = fitted(form, stage, form.consumers * leaving, room)
    a, b = form.rows * form.step_bytes, form.columns * form.step_bytes
    _memory(form.stages, form.consumers, a, b, leaving, form.cluster, target)
    mt, nt = checked_tiles(shape[:2], (form.cluster * form.rows, form.columns), 1)
    steps = mt * nt * -(-shape[2] * size // form.step_bytes)
    if steps >= MOST_STEPS:
        raise CHECK.malformed("shape", f"must take fewer than {MOST_STEPS} steps", steps)
    return form


@lru_cache(maxsize=4096)
def _memory(stages: int, consumers: int, a: int, b: int, leaving: int, cluster: int, target: str) -> Memory:
    """Where the rings are."""
    return placed(matmul_pipeline(stages, consumers, a, b, leaving, cluster), target)


def _registers(form: Form) -> None:
    """Refuse accumulators that a thread has no registers for."""
    room = launch_registers((1 + form.consumers) * WARPS * WARP) - OTHER_REGISTERS
    if form.accumulators > room:
        rule = f"must need at most {room} accumulators per thread with {form.consumers} consumers"
        raise CHECK.malformed("form", rule, form.accumulators)


def _spans(form: Form, across: int, size: int, major_a: str, major_b: str) -> None:
    """Refuse tiles that are not whole spans of the swizzle, or whose parts of a cluster would not lie side by side."""
    span = SPANS[form.swizzle]
    if "K" in (major_a, major_b) and form.step_bytes % span:
        raise CHECK.malformed("form", f"must have a depth of whole spans of {span} bytes", form.step_bytes)
    if major_b == "MN" and across * size % span:
        rule = f"must have a multiple of {span // size} columns of B per block where B is N-major"
        raise CHECK.malformed("form", rule, across)
    if form.cluster > 1 and major_b == "K" and form.step_bytes > span:
        raise CHECK.malformed("form", f"must have a depth of one span, {span} bytes, in a cluster", form.step_bytes)


def _ordered(extents: tuple[Part, Part], major: str) -> tuple[Part, Part]:
    """Extents (MN, K) as the array has them, the contiguous dimension last."""
    return extents if major == "K" else extents[::-1]


def _operand(side: str, dtype: str, tile: tuple[int, int], major: str, swizzle: str, target: str) -> OperandPlan:
    """The descriptors of an operand as ``tile_plan`` lays it out: spans of a swizzle are contiguous in K or in MN."""
    rows, k = tile
    size = element_type(dtype).bits // 8
    bits, base, shift = XORS[swizzle]
    span = SPANS[swizzle] // size
    if major == "K":
        smem = f"({rows},({span},{k // span})):({span},(1,{rows * span}))"
    else:
        smem = f"(({span},{rows // span}),{k}):((1,{span * k}),{span})"
    return wgmma(side, dtype, tile, f"Sw<{bits},{base - size.bit_length() + 1},{shift}> o 0 o {smem}", target)


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
const int tile = (int)blockIdx.x{cluster} + turn * (blocks{cluster});
const int group = tile / {whole} * {together}, rest = tile % {whole};
const int rows = {mt} - group < {together} ? {mt} - group : {together};
const int row = {own}(group + rest % rows) * {rows}, column = rest / rows * {columns};
"""


@dataclass(frozen=True, slots=True)
class _Product:
    """What the text of a product is made of.

    Args:
        name: Kernel symbol.
        form: The form.
        plans: Copies of A, B and D.
        a: Descriptors of A.
        b: Descriptors of B.
        counts: Tiles in M (of all blocks of a cluster), in N, and steps in K.
        result: Type of D.
    """

    name: str
    form: Form
    plans: Mapping[str, TensorMapPlan]
    a: OperandPlan
    b: OperandPlan
    counts: tuple[int, int, int]
    result: str

    def program(self) -> Program:
        """Return the program."""
        form, (mt, nt, kt) = self.form, self.counts
        numbers = Numbers()
        multiply = _multiply((self.a, self.b), form)
        write = write_text(form.leaving, self.result, numbers)
        store = (("loop[1]", "la_settle(acc);"), ("loop[3]", write), ("loop[5]", self._leave()))
        start = numbers.declared().replace("    const", "const") + f"float acc[{form.accumulators}];"
        threads = form.consumers * WARPS * WARP
        most = (REGISTERS - LOADER_REGISTERS * WARPS * WARP) // threads // 8 * 8
        workers = (
            Worker((Loop("load", self._load(), f"{kt}"),), WARPS, elected=True,
                   registers=LOADER_REGISTERS, turn=self._tile()),
            Worker(
                (Loop("math", (("loop[2]", multiply),), f"{kt}"), Loop("store", store, f"{form.parts}", unroll=True)),
                WARPS, form.consumers, registers=min(most, 240), start=start, turn=self._tile(),
            ),
        )  # fmt: skip
        plans = (("A", self.plans["A"]), ("B", self.plans["B"]), ("C0", self.plans["D"]))
        return Program(
            self._pipeline(), workers, PARAMETERS, plans=plans, turns=tiles_of_block(mt * nt, form.cluster),
            before=self._before() + "".join(numbers.tables),
        )  # fmt: skip

    def _pipeline(self) -> Pipeline:
        form = self.form
        a, b = self.plans["A"].expect_tx_bytes, form.cluster * self.plans["B"].expect_tx_bytes
        leaving = GROUP_ROWS * form.leaving * 2
        return matmul_pipeline(form.stages, form.consumers, a, b, leaving, form.cluster, form.behind)

    def _before(self) -> str:
        """Device functions."""
        movers = [
            mover(self.plans["A"], f"{self.name}_a", "Loads a tile of A."),
            mover(self.plans["B"], f"{self.name}_b", "Loads a tile of B.", self.form.cluster > 1),
            mover(self.plans["D"], f"{self.name}_d", "Stores a part of a result."),
        ]
        return wgmma_prelude(self.a.problem.dtype, self.b.rows) + SETTLE + "".join(movers)

    def _tile(self) -> str:
        """Where the tile of a turn is."""
        form, (mt, nt, _) = self.form, self.counts
        alone = form.cluster == 1
        return _TILE.format(
            whole=form.together * nt, together=form.together, mt=mt,
            columns=form.columns, rows=form.cluster * form.rows,
            own="" if alone else f"(int)la_cluster_rank() * {form.rows} + ",
            cluster="" if alone else f" / {form.cluster}",
        )  # fmt: skip

    def _load(self) -> tuple[tuple[str, str], ...]:
        """The copies of a step."""
        step = f"step * {self.a.problem.shape[1]}"
        slot, column = "$B, $bar", "column"
        if self.form.cluster > 1:
            slot = f"$B + la_cluster_rank() * {self.plans['B'].expect_tx_bytes}, $bar, $mask"
            column += f" + (int)la_cluster_rank() * {self.form.columns // self.form.cluster}"
        first, second = (
            ", ".join(_ordered((where, step), each.major)) for where, each in (("row", self.a), (column, self.b))
        )
        return (
            ("loop[2]", f"{self.name}_a(&map_a, $A, $bar, {first});"),
            ("loop[3]", f"{self.name}_b(&map_b, {slot}, {second});"),
        )

    def _leave(self) -> str:
        """The store of a part."""
        form = self.form
        across = form.columns // form.leaving
        row = f"row + which * {form.rows // form.consumers} + step / {across} * {GROUP_ROWS}"
        return f"{self.name}_d(&map_d, $C, {row}, column + step % {across} * {form.leaving});"


def _multiply(operands: tuple[OperandPlan, OperandPlan], form: Form) -> str:
    """Statements that multiply a consumer's rows of a slot."""
    a, b = operands
    words = [{(part.mn, part.k): part.encoded for part in plan.tiles} for plan in operands]
    k, rows, each = a.problem.instruction_k, form.rows // form.consumers, b.rows // 2
    moved = words[0][rows, 0] - words[0][0, 0] if form.consumers > 1 else 0
    if any(words[0][mn, at] != words[0][mn % rows, at] + mn // rows * moved for mn, at in words[0]):
        raise CHECK.malformed("form", "must have equal steps from consumer to consumer", form)
    lines = ["la_wgmma_fence();"]
    lines.append(f"const la_u64 a = (($A & 0x3FFFF) >> 4) + which * {moved};")
    lines.append("const la_u64 b = (($B & 0x3FFFF) >> 4);")
    turned = f"<{a.transpose}, {b.transpose}>" if k == 16 else ""
    parts = list(itertools.product(range(0, rows, GROUP_ROWS), range(0, form.columns, b.rows)))
    for number, (row, column) in enumerate(parts):
        held = "acc" if len(parts) == 1 else f"*(float (*)[{each}])(acc + {number * each})"
        for at in range(0, a.problem.shape[1], k):
            left, right = words[0][row, at], words[1][column, at]
            call = f"la_wgmma_m64n{b.rows}k{k}_{a.problem.dtype}{turned}"
            lines.append(f"{call}({held}, a + {left:#x}ull, b + {right:#x}ull, {'1' if at else 'step > 0'});")
    return "\n".join(lines)


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
    pack, lines = RESULTS[result], list[str]()
    panel = min(columns, 64)
    for group in range(columns // 16):
        chunk = group % (panel // 16) * 2 + half
        swizzled = chunk ^ row % 8 if panel == 64 else chunk
        at = group // (panel // 16) * (GROUP_ROWS * panel * 2) + row * panel * 2 + swizzled * 16
        first = f"{part} * {columns // 2} + {group * 8}"
        words = ", ".join([f"{pack}({sums}[{first} + {2 * i}], {sums}[{first} + {2 * i + 1}])" for i in range(4)])
        lines.append(f"la_stmatrix_x4({into} + {numbers.text(at)}, {{{words}}});")
    return "\n".join(lines)
