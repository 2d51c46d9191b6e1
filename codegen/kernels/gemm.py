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
from layoutalg.codegen.kernels.gemm_forms import GROUP_ROWS, SPANS, WARPS, Form, fitted, forms
from layoutalg.codegen.kernels.ring import checked_tiles, mover, tile_plan, tiles_of, tiles_of_block
from layoutalg.codegen.pipeline.emission import Emitted, emit
from layoutalg.codegen.pipeline.memory import Memory, placed
from layoutalg.codegen.pipeline.program import WARP, Loop, Program, Worker, consumer_registers
from layoutalg.codegen.prelude import wgmma_prelude
from layoutalg.codegen.thread_numbers import Numbers
from layoutalg.ground.record import Checked
from layoutalg.proofs.dtypes import ElementType, element_type
from layoutalg.proofs.pipeline import Barrier, Buffer, Op, Pipeline, Role
from layoutalg.proofs.pipeline.transfers import Transfer
from layoutalg.proofs.tensormap import TensorMapPlan
from layoutalg.proofs.wgmma import OperandPlan
from layoutalg.synth.wgmma.plan import wgmma
from layoutalg.targets.global_memory import LINE_BYTES
from layoutalg.targets.nvidia.registers import THREAD_REGISTERS, launch_registers
from layoutalg.targets.nvidia.swizzles import XORS
from layoutalg.targets.nvidia.wgmma import require_wgmma

RESULTS: Final = {"bf16": "la_pack_bf16", "f16": "la_pack_f16"}
LOADER_REGISTERS: Final = 40
OTHER_REGISTERS: Final = 32
"""Registers of a thread that multiplies beside its accumulators: measured with ptxas 13.0, which needs 26."""
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
        if count % self.form.ctas:
            raise CHECK.malformed("blocks", f"must be a multiple of {self.form.ctas}, whole clusters", count)
        addresses = checked_places(self.arrays, {"a": a, "b": b, "d": d})
        maps, status = answer.launch_values(self.maps, addresses, count, status)
        return [*maps, count, status]


def matmul_pipeline(
    stages: int,
    consumers: int,
    a: int,
    b: int,
    result: int,
    cluster: int = 1,
    behind: int = 0,
    split: int = 1,
    piece: int = 0,
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
        split: Blocks that share the K of a tile, instead of a cluster. Each consumer sends a piece of its partial sums
            to each other block, and adds up what it receives.
        piece: Bytes of such a piece.

    Example:
        >>> from layoutalg.proofs.pipeline import verify
        >>> [verify(matmul_pipeline(4, 2, 16384, 32768, 16384, cluster)).engine for cluster in (1, 2)]
        ['event graph', 'event graph']
        >>> verify(matmul_pipeline(3, 1, 16384, 32768, 4096, split=4, piece=8192)).engine
        'event graph'
    """
    everyone = (tuple(range(cluster)),) if cluster > 1 else ()
    load = (
        Op("wait", bar="empty", ph=-1), Op("arrive_tx", bar="full", bytes=a + b),
        Op("tma_load", buf="A", bar="full"),
        Op("tma_load", buf="B", bar="full", bytes=b // cluster, multicast=everyone),
    )  # fmt: skip
    last = [Op("arrive", bar="empty", n=WARPS, off=-back, to=everyone) for back in range(behind, 0, -1)]
    roles = [Role("load", loop=load)]
    barriers = [("full", Barrier(1, stages)), ("empty", Barrier(cluster * consumers * WARPS, stages))]
    buffers = [("A", Buffer(stages, a)), ("B", Buffer(stages, b)), *_each("C", consumers, Buffer(1, result))]
    if split > 1:
        barriers += _each("got", consumers, Barrier(1, 1)) + _each("sent", consumers, Barrier((split - 1) * WARPS, 1))
        sums = Buffer(1, (split - 1) * piece)
        buffers += _each("P", consumers, sums) + _each("R", consumers, sums)
    for which in range(consumers):
        buffer, acc = f"C{which}", f"acc{which}"
        multiply = (
            Op("wait", bar="full"), Op("mma", buf="A"), Op("mma", buf="B"), Op("mma_write", buf=acc, idx_abs=0),
            Op("mma_commit"), Op("mma_wait", n=behind), Op("arrive", bar="empty", n=WARPS, off=-behind, to=everyone),
        )  # fmt: skip
        take = (Op("mma_wait"), Op("read", buf=acc, idx_abs=0))
        store = (
            Op("bulk_wait"), Op("write", buf=buffer), Op("proxy_fence"), Op("tma_store", buf=buffer), Op("bulk_commit"),
        )  # fmt: skip
        end = (Op("mma_wait"), *last) if behind else ()
        # the first multiply of a tile overwrites them, as if they were zeroed
        roles.append(Role(f"math{which}", (Op("write", buf=acc, idx_abs=0),), multiply, end))
        first, follows = f"math{which}", Role(f"store{which}", loop=(*take, *store), post=(Op("bulk_wait"),))
        # A role on the threads of another one has no barriers, so the sums are taken before. The text of the exchange
        # reads them later, in the same threads and before their next multiply, which is the order of the text.
        if split > 1:
            exchange, release = _exchange(which, split, piece)
            roles.append(Role(f"take{which}", loop=take, threads_of=first))
            roles.append(replace(follows, loop=(*exchange, *store, *release)))
        else:
            roles.append(replace(follows, threads_of=first))
    buffers += _each("acc", consumers, Buffer(1, space="register"))
    return Pipeline(stages, tuple(barriers), tuple(buffers), tuple(roles), cluster=cluster * split)


Ring = TypeVar("Ring", Barrier, Buffer)


def _each(name: str, consumers: int, ring: Ring) -> list[tuple[str, Ring]]:
    """A ring of each consumer."""
    return [(f"{name}{which}", ring) for which in range(consumers)]


def _exchange(which: int, split: int, piece: int) -> tuple[tuple[Op, ...], tuple[Op, ...]]:
    """What a consumer does to have the sums of its columns, and when it is through with what it has received."""
    copy = Transfer((split - 1) * piece, "dsmem_copy", ctas=(tuple(range(split)),))
    others = copy.reaches
    got, sent, sums, parts = (f"{name}{which}" for name in ("got", "sent", "P", "R"))
    exchange = (
        Op("wait", bar=sent, ph=-1), Op("write", buf=sums), Op("proxy_fence"),
        Op("arrive_tx", bar=got, bytes=copy.bytes),
        Op("dsmem_copy", src=sums, buf=parts, bar=got, bytes=copy.share, to=others),
        Op("wait", bar=got), Op("read", buf=parts),
    )  # fmt: skip
    # after the last tile nobody sends any more
    release = Op("arrive", bar=sent, n=WARPS, last=1, to=tuple([tuple(sorted(ranks)) for ranks in others]))
    return exchange, (release,)


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
    if form is None:
        form = next(one for _, one in forms((m, n, k), size, even) if major_b == "K" or one.shared_columns % 64 == 0)
    chosen = checked_form(CHECK.kind(form, Form, "form"), (m, n, k), size, target, major_a, major_b)
    depth, across = chosen.step_bytes // size, chosen.shared_columns
    sides = {"A": ((m, k), chosen.rows, chosen.rows, major_a), "B": ((n, k), chosen.columns, across, major_b)}
    plans = {
        side: tile_plan(
            ordered(extents, major), kind.name, ordered((own, depth), major), chosen.swizzle, target, "load"
        )
        for side, (extents, _, own, major) in sides.items()
    }
    swizzle = "128B" if chosen.leaving >= 64 else "NONE"
    plans["D"] = tile_plan((m, n), result, (GROUP_ROWS, chosen.leaving), swizzle, target, "store")
    a, b = (
        operand(side, kind.name, (rows, depth), major, chosen.swizzle, target)
        for side, (_, rows, _, major) in sides.items()
    )
    mt, nt = tiles_of((m, n), (chosen.cluster * chosen.rows, chosen.columns))
    steps = -(-k // (depth * chosen.split))
    name = f"la_gemm_{m}x{n}x{k}_{kind.name}" if name is None else checked_name(name)
    product = Product(name, chosen, plans, a, b, (mt, nt, steps), result)
    what = f"D[{m}, {n}] = A[{m}, {k}] B[{n}, {k}]^T, {kind.name} to {result}"
    emitted = emit(
        product.program(), name, target, title=f"{what}, tiles of {chosen.rows} x {chosen.columns} x {depth}."
    )
    arrays = (
        ArrayArgument("a", ordered((m, k), major_a), size, 128),
        ArrayArgument("b", ordered((n, k), major_b), size, 128),
        ArrayArgument("d", (m, n), 2, 128, written=True),
    )  # fmt: skip
    maps = (plans["A"].raw, plans["B"].raw, plans["D"].raw)
    return MatmulKernel(emitted, (m, n, k), chosen, maps, arrays, mt * nt * chosen.ctas)


def checked_product(
    shape: Sequence[int], dtype: object, target: str, result: str, major_a: str, major_b: str
) -> tuple[tuple[int, int, int], ElementType]:
    """Return (M, N, K) and the type of A and B; see ``gemm_kernel``."""
    m, n, k = answer.checked_extents(shape, "MNK")
    for extents in ((m, k), (n, k), (m, n)):
        answer.checked_shape(extents)
    return (m, n, k), checked_types(dtype, result, target, major_a=major_a, major_b=major_b)


def checked_types(dtype: object, result: str, target: str, **majors: str) -> ElementType:
    """Return the type of A and B; see ``gemm_kernel``."""
    kind = element_type(dtype)
    CHECK.choice(kind.name, "dtype", INPUTS)
    CHECK.choice(result, "result", RESULTS)
    for argument, major in majors.items():
        CHECK.choice(major, argument, ("K", "MN") if kind.bits == 16 else ("K",))
    answer.checked_target(target)
    require_wgmma(target)
    return kind


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
    check_form(form, size, major_a, major_b)
    depth = form.step_bytes // size
    if form.split > 1 and shape[2] <= depth:  # then the plan of a copy may have its origin in K at 0
        raise CHECK.malformed("form", f"must not split a K of one step, {depth}", shape[2])
    form = fitted(form)
    _memory(replace(form, together=1, swizzle="128B", depth=form.step_bytes), target)
    mt, nt = checked_tiles(shape[:2], (form.cluster * form.rows, form.columns), 1)
    steps = -(-shape[2] // (depth * form.split))
    if mt * nt * steps >= MOST_STEPS or form.split * steps * depth >= 1 << 31:
        raise CHECK.malformed("shape", f"must take fewer than {MOST_STEPS} steps", mt * nt * steps)
    return form


@lru_cache(maxsize=4096)
def _memory(form: Form, target: str) -> Memory:
    """Where the rings are."""
    a, b = form.rows * form.step_bytes, form.columns * form.step_bytes
    return placed(form_pipeline(form, a, b), target)


def form_pipeline(form: Form, a: int, b: int) -> Pipeline:
    """Return the pipeline of a form whose tiles of A and B have so many bytes."""
    leaving = GROUP_ROWS * form.leaving * 2
    split = form.split, form.piece
    return matmul_pipeline(form.stages, form.consumers, a, b, leaving, form.cluster, form.behind, *split)


def check_form(form: Form, size: int, major_a: str, major_b: str) -> None:
    """Refuse accumulators that a thread has no registers for, and tiles that are not whole spans of the swizzle."""
    room = min(THREAD_REGISTERS, launch_registers((1 + form.consumers) * WARPS * WARP)) - OTHER_REGISTERS
    if form.accumulators > room:
        rule = f"must need at most {room} accumulators per thread with {form.consumers} consumers"
        raise CHECK.malformed("form", rule, form.accumulators)
    span, across = SPANS[form.swizzle], form.shared_columns
    if "K" in (major_a, major_b) and form.step_bytes % span:
        raise CHECK.malformed("form", f"must have a depth of whole spans of {span} bytes", form.step_bytes)
    if major_b == "MN" and across * size % span:
        rule = f"must have a multiple of {span // size} columns of B per block where B is N-major"
        raise CHECK.malformed("form", rule, across)
    if form.cluster > 1 and major_b == "K" and form.step_bytes > span:
        raise CHECK.malformed("form", f"must have a depth of one span, {span} bytes, in a cluster", form.step_bytes)


def ordered(extents: tuple[Part, Part], major: str) -> tuple[Part, Part]:
    """Extents (MN, K) as the array has them, the contiguous dimension last."""
    return extents if major == "K" else extents[::-1]


def operand(side: str, dtype: str, tile: tuple[int, int], major: str, swizzle: str, target: str) -> OperandPlan:
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
EXCHANGE = r"""
// Partial sums of a warpgroup in shared memory: 16 bytes of each thread, then the next 16 of each.
union la_four_sums { float sum[4]; la_words4 words; };

template <int n>
__device__ __forceinline__ void la_take(float (&own)[n], const float (&part)[n])
{
#pragma unroll
    for (int i = 0; i < n; ++i) own[i] = part[i];
}

template <int n>
__device__ __forceinline__ void la_put_sums(la_u32 byte, const float (&part)[n])
{
#pragma unroll
    for (int i = 0; i < n; i += 4) {
        la_four_sums four = {{part[i], part[i + 1], part[i + 2], part[i + 3]}};
        la_shared_store_b128(byte + 512 * i, four.words);
    }
}

template <int n>
__device__ __forceinline__ void la_add_sums(la_u32 byte, float (&own)[n])
{
#pragma unroll
    for (int i = 0; i < n; i += 4) {
        la_four_sums four;
        four.words = la_shared_load_b128(byte + 512 * i);
#pragma unroll
        for (int j = 0; j < 4; ++j) own[i + j] += four.sum[j];
    }
}
"""
_TILE = "const int tile = (int)blockIdx.x{cluster} + turn * (blocks{cluster});\n"
_GROUP = """\
const int group = tile / {whole} * {together}, rest = tile % {whole};
"""


@dataclass(frozen=True, slots=True)
class Product:
    """What the text of a product is made of."""

    name: str  # kernel symbol
    form: Form
    plans: Mapping[str, TensorMapPlan]  # copies of A, B and D
    a: OperandPlan  # descriptors of A
    b: OperandPlan  # descriptors of B
    counts: tuple[int, int, int]  # tiles in M (of all blocks of a cluster), in N, and steps in K of a block
    result: str  # type of D

    def program(self) -> Program:
        """Return the program."""
        form, (mt, nt, kt) = self.form, self.counts
        numbers = Numbers()
        multiply = _multiply((self.a, self.b), form)
        loops = (Loop("math", (("loop[2]", multiply),), f"{kt}"), *self._results(numbers))
        start = numbers.declared(0) + f"float acc[{form.accumulators}];"
        start += f"\nfloat own[{form.leaving // 2}];" * (form.split > 1)
        registers = consumer_registers(form.consumers, LOADER_REGISTERS)
        workers = (
            Worker((Loop("load", self._load(), f"{kt}"),), WARPS, elected=True,
                   registers=LOADER_REGISTERS, turn=self._tile()),
            Worker(loops, WARPS, form.consumers, registers=registers, start=start, turn=self._tile()),
        )  # fmt: skip
        plans = (("A", self.plans["A"]), ("B", self.plans["B"]), ("C0", self.plans["D"]))
        return Program(
            self._pipeline(), workers, PARAMETERS, plans=plans, turns=tiles_of_block(mt * nt, form.ctas),
            before=self._before() + "".join(numbers.tables),
        )  # fmt: skip

    def _results(self, numbers: Numbers) -> tuple[Loop, ...]:
        """What takes the sums of a tile and stores them."""
        settle, split = ("loop[1]", "la_settle(acc);"), self.form.split > 1
        write = write_text(self.form.leaving, self.result, numbers, *(("0", "own") if split else ("step", "acc")))
        if split:
            texts = zip((1, 4, 6, 8, 10), (*self._exchange(), write, self._leave()), strict=True)
            store = [(f"loop[{place}]", text) for place, text in texts]
        else:
            store = [settle, ("loop[3]", write), ("loop[5]", self._leave())]
        leave = Loop("store", tuple(store), f"{self.form.parts}", unroll=True)
        return (Loop("take", (settle,), "1"), leave) if split else (leave,)

    def _pipeline(self) -> Pipeline:
        form = self.form
        a, b = self.plans["A"].expect_tx_bytes, form.cluster * self.plans["B"].expect_tx_bytes
        return form_pipeline(form, a, b)

    def _before(self) -> str:
        """Device functions."""
        movers = [
            mover(self.plans["A"], f"{self.name}_a", "Loads a tile of A."),
            mover(self.plans["B"], f"{self.name}_b", "Loads a tile of B.", self.form.cluster > 1),
            mover(self.plans["D"], f"{self.name}_d", "Stores a part of a result."),
        ]
        split = EXCHANGE * (self.form.split > 1)
        return wgmma_prelude(self.a.problem.dtype, self.b.rows) + SETTLE + split + "".join(movers)

    def _tile(self) -> str:
        """Where the tile of a turn is; all divisors are constants, for the first copy waits for this."""
        form, (mt, nt, _), together = self.form, self.counts, self.form.together
        own = f"(int)la_cluster_rank() * {form.rows} + " * (form.cluster > 1)
        text = _TILE.format(cluster=f" / {form.ctas}" * (form.ctas > 1))
        whole, rest, first = together * nt, "rest", "group + "
        if mt <= together:
            rest, first, down, across = "tile", "", f"tile % {mt}", f"tile / {mt}"
        elif tail := mt % together:
            last = f"group + {together} > {mt}"
            down, across = (f"({last} ? rest {op} {tail} : rest {op} {together})" for op in "%/")
        else:
            down, across = f"rest % {together}", f"rest / {together}"
        text += _GROUP.format(whole=whole, together=together) if rest == "rest" else ""
        row = f"{own}({first}{down}) * {form.cluster * form.rows}"
        return f"{text}const int row = {row}, column = {across} * {form.columns};\n"

    def _load(self) -> tuple[tuple[str, str], ...]:
        """The copies of a step."""
        step = f"step * {self.a.problem.shape[1]}"
        if self.form.split > 1:  # beyond the last column of K copies deliver zeros
            step = f"((int)la_cluster_rank() * {self.counts[2]} + step) * {self.a.problem.shape[1]}"
        slot, column = "$B, $bar", "column"
        if self.form.cluster > 1:
            slot = f"$B + la_cluster_rank() * {self.plans['B'].expect_tx_bytes}, $bar, $mask"
            column += f" + (int)la_cluster_rank() * {self.form.columns // self.form.cluster}"
        first, second = (
            ", ".join(ordered((where, step), each.major)) for where, each in (("row", self.a), (column, self.b))
        )
        return (
            ("loop[2]", f"{self.name}_a(&map_a, $A, $bar, {first});"),
            ("loop[3]", f"{self.name}_b(&map_b, {slot}, {second});"),
        )

    def _exchange(self) -> list[str]:
        """What a consumer does with partial sums: it keeps its own, sends the others', adds those that it gets."""
        form = self.form
        each, last = form.leaving // 2, form.split - 1
        # the piece for the block d ranks further lies at d - 1, in the sender's memory and in the receiver's
        send = f"""\
#pragma unroll
for (la_u32 to = 0; to < {form.split}; ++to) {{
    const float (&part)[{each}] = *(float (*)[{each}])(acc + (step * {form.split} + to) * {each});
    const la_u32 at = ((to - la_cluster_rank() - 1) & {last}) * {form.piece};
    if (to == la_cluster_rank()) la_take(own, part);
    else la_put_sums($P_byte + at + 16 * t, part);
}}"""
        copy = f"""\
#pragma unroll
for (la_u32 far = 0; far < {last}; ++far) {{
    const la_u32 at = far * {form.piece}, to = (la_cluster_rank() + far + 1) & {last};
    la_dsmem_copy($R + at, $P + at, {form.piece}, $bar, to);
}}"""
        add = f"""\
#pragma unroll
for (la_u32 far = 0; far < {last}; ++far) la_add_sums($R_byte + far * {form.piece} + 16 * t, own);"""
        return [send, copy, add]

    def _leave(self) -> str:
        """The store of a part."""
        form = self.form
        across = form.columns // form.leaving
        if form.split > 1:
            part = f"step * {form.split} + (int)la_cluster_rank()"
            return f"{self.name}_d(&map_d, $C, row + which * {GROUP_ROWS}, column + ({part}) * {form.leaving});"
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
