"""Attention: softmax of scaled Q K^T, times V, with the scores in registers.

One role loads Q once, and K and V through rings of their own; each of the others keeps 64 queries. Scores are the
accumulators of one warpgroup multiply and, packed to 16 bits, operand A of the next: value v of a thread's accumulators
and element v of its operand of columns 16 j, ... are the same matrix element, up to the order that ``_packed`` derives
from the fragments of ``targets.nvidia.wgmma``. Maxima and sums of rows are kept while keys arrive in blocks, and what
was summed is scaled when a maximum grows (Milakov and Gimelshein, arXiv:1805.02867; Dao et al., arXiv:2205.14135).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from layoutalg.codegen.conversion_steps import WARP as SHUFFLES
from layoutalg.codegen.cuda import MAP_TYPE
from layoutalg.codegen.kernel import KernelSource, checked_name
from layoutalg.codegen.kernels import answer
from layoutalg.codegen.kernels.answer import CHECK
from layoutalg.codegen.kernels.arguments import ArrayArgument, Place, checked_places
from layoutalg.codegen.kernels.gemm import RESULTS, SETTLE, operand, write_text
from layoutalg.codegen.kernels.gemm_forms import GROUP_ROWS, WARPS
from layoutalg.codegen.kernels.ring import MOST_COORDINATE, checked_tiles, mover, tile_plan
from layoutalg.codegen.pipeline.emission import Emitted, emit
from layoutalg.codegen.pipeline.memory import placed
from layoutalg.codegen.pipeline.program import BODIES, Loop, Program, Worker, consumer_registers
from layoutalg.codegen.prelude import wgmma_prelude, wgmma_registers_prelude
from layoutalg.codegen.thread_numbers import Numbers
from layoutalg.ground.record import Checked
from layoutalg.proofs.dtypes import element_type
from layoutalg.proofs.pipeline import Barrier, Buffer, Op, Pipeline, Role
from layoutalg.proofs.tensormap import TensorMapPlan
from layoutalg.proofs.wgmma import OperandPlan
from layoutalg.targets.nvidia.wgmma import accumulator_coordinates, register_coordinates, require_wgmma

SWIZZLE: Final = "128B"
HEADS: Final = (64, 128)
"""Columns of Q, K, V: one or two swizzle spans, one instruction of the second product."""
LEAST_SCALE: Final = 2.0**-100
"""So that scaled maxima are normal floats."""
LOADER_REGISTERS: Final = 24
SHARE: Final = 6
"""One in so many registers of a consumer is for other values than scores, sums and packed scores: with fewer, ptxas
13.0 spills (measured)."""


@dataclass(frozen=True, slots=True)
class AttentionKernel(Checked):
    """A kernel that computes O = softmax(scale Q K^T) V, and what its launch needs.

    Args:
        emitted: The kernel, its pipeline and the proof.
        shape: (batches times heads, queries, keys, columns).
        tile: (queries, keys) of a tile.
        stages: Slots of each ring.
        scale: What scores are multiplied by.
        last: Query i sees keys up to i + last; None: it sees all.
        maps: Descriptors of Q, K, V and O, relative to their addresses.
        arrays: The arrays that it takes.
        blocks: Blocks of the grid.
    """

    emitted: Emitted
    shape: tuple[int, int, int, int]
    tile: tuple[int, int]
    stages: int
    scale: float
    last: int | None
    maps: tuple[bytes, bytes, bytes, bytes]
    arrays: tuple[ArrayArgument, ...]
    blocks: int

    @property
    def kernel(self) -> KernelSource:
        """The text and the numbers of a launch."""
        return replace(self.emitted.kernel, grid=self.blocks)

    @property
    def flops(self) -> int:
        """Multiplications and additions of the two products, for the keys that queries see."""
        batches, queries, keys, columns = self.shape
        pairs = queries * keys
        if self.last is not None:
            pairs = int(np.clip(np.arange(queries) + self.last + 1, 0, keys).sum())
        return 4 * batches * pairs * columns

    def arguments(self, q: Place, k: Place, v: Place, o: Place, status: Place | None = None) -> list[Any]:
        """Return the arguments of a launch, one per parameter.

        Args:
            q: Q, batches x queries x columns: an address, an array for a run on the CPU, or a ``DeviceTensor``.
            k: K, batches x keys x columns.
            v: V, likewise.
            o: O, like Q.
            status: Array for one status word per block, 1 on success; by default a new array.

        Example:
            >>> made = attention_kernel((1, 128, 128, 64))
            >>> len(made.arguments(0x10000, 0x20000, 0x30000, 0x40000))
            5
        """
        addresses = checked_places(self.arrays, {"q": q, "k": k, "v": v, "o": o})
        maps, status = answer.launch_values(self.maps, addresses, self.blocks, status)
        return [*maps, status]


def attention_pipeline(
    stages: int, consumers: int, q: int, k: int, v: int, *, ahead: bool = False, alternate: bool = False
) -> Pipeline:
    """Return the pipeline: Q once, rings of K and V; each consumer's result leaves through the memory of its Q.

    A consumer has registers of scores S, of packed weights P, operand of the second product, and of sums O. K is free
    as soon as the scores are there, V when it is summed. With ``alternate`` a consumer hands its turn on when
    it has started its multiplies; the loader gives the first turn.

    Args:
        stages: Slots of each ring.
        consumers: Warpgroups that multiply.
        q: Bytes of one consumer's Q.
        k: Bytes of a tile of K.
        v: Bytes of a tile of V.
        ahead: Whether scores of the next keys are multiplied before the values of these.
        alternate: Whether consumers start to multiply in turn; only with ``ahead``.

    Example:
        >>> from layoutalg.proofs.pipeline import verify
        >>> [verify(attention_pipeline(2, 2, 16384, 32768, 32768, ahead=ahead)).engine for ahead in (False, True)]
        ['event graph', 'event graph']
        >>> verify(attention_pipeline(2, 2, 16384, 32768, 32768, ahead=True, alternate=True)).engine
        'event graph'
    """
    load = Role(
        "load",
        (
            *[Op("arrive", bar="turn0", n=1)] * alternate,
            Op("arrive_tx", bar="full_q", bytes=consumers * q),
            *[Op("tma_load", buf=f"Q{which}", bar="full_q") for which in range(consumers)],
        ),
        (
            Op("wait", bar="empty_k", ph=-1), Op("arrive_tx", bar="full_k", bytes=k),
            Op("tma_load", buf="K", bar="full_k"),
            Op("wait", bar="empty_v", ph=-1), Op("arrive_tx", bar="full_v", bytes=v),
            Op("tma_load", buf="V", bar="full_v"),
        ),
    )  # fmt: skip
    barriers = [("full_q", Barrier(1, 1)), *[(f"turn{which}", Barrier(1, 1)) for which in range(consumers * alternate)]]
    for name in ("k", "v"):
        barriers += [(f"full_{name}", Barrier(1, stages)), (f"empty_{name}", Barrier(consumers * WARPS, stages))]
    buffers = [(f"Q{which}", Buffer(1, q)) for which in range(consumers)]
    buffers += [("K", Buffer(stages, k)), ("V", Buffer(stages, v))]
    buffers += [(f"{name}{which}", Buffer(1, space="register")) for name in "SPO" for which in range(consumers)]
    roles = [load, *[_math(which, consumers, ahead, alternate) for which in range(consumers)]]
    return Pipeline(stages, tuple(barriers), tuple(buffers), tuple(roles), least=1)


def _math(which: int, consumers: int, ahead: bool, alternate: bool) -> Role:
    """A consumer: with ``ahead``, its loop multiplies the next scores and these values; the first scores are before."""
    own, off, done, then = f"Q{which}", int(ahead), Op("mma_wait", n=0), (which + 1) % consumers
    score, weight, sums = f"S{which}", f"P{which}", f"O{which}"
    wait_k, wait_v = Op("wait", bar="full_k", off=off), Op("wait", bar="full_v")
    scores = (
        Op("mma", buf=own, idx_abs=0), Op("mma", buf="K", off=off), Op("mma_write", buf=score, off=off),
        Op("mma_commit"),
    )  # fmt: skip
    values = Op("mma", buf=weight), Op("mma", buf="V"), Op("mma_write", buf=sums), Op("mma_commit")
    # weights of the scores; sums are scaled, or zeroed at first, before values are added to them
    read, pack = Op("read", buf=score, off=off), Op("write", buf=weight, off=off)
    scaled = Op("read", buf=sums, off=off - 1), Op("write", buf=sums, off=off)
    free_k, free_v = Op("arrive", bar="empty_k", off=off, n=WARPS), Op("arrive", bar="empty_v", n=WARPS)
    leave = (
        Op("read", buf=sums, off=off - 1), Op("write", buf=own, idx_abs=1), Op("proxy_fence"),
        Op("tma_store", buf=own, idx_abs=1), Op("bulk_commit"), Op("bulk_wait"),
    )  # fmt: skip
    if not ahead:
        behind = (wait_k, *scores, done, free_k, wait_v, read, *scaled, pack, *values, done, free_v)
        return Role(f"math{which}", (Op("wait", bar="full_q"),), behind, leave)
    start: tuple[Op, ...] = (wait_k, *scores, wait_v, *values)
    if alternate:  # the turn of the first consumer is one ahead: it had one from the loader
        hand_on = Op("arrive", bar=f"turn{then}", off=int(then == 0), n=1)
        start = (wait_k, wait_v, Op("wait", bar=f"turn{which}"), *scores, *values, hand_on)
    first = tuple([replace(op, off=0) for op in (wait_k, *scores, done, read, scaled[1], pack, free_k)])
    loop = (*start, Op("mma_wait", n=1), read, free_k, done, *scaled, pack, free_v)
    return Role(f"math{which}", (Op("wait", bar="full_q"), *first), loop, (wait_v, *values, done, *leave), -1)


def attention_kernel(
    shape: Sequence[int],
    dtype: object = "bf16",
    target: str = "sm_90a",
    *,
    causal: bool = False,
    shift: int = 0,
    scale: float | None = None,
    tile: Sequence[int] | None = None,
    stages: int = 2,
    consumers: int | None = None,
    ahead: bool = True,
    alternate: bool = False,
    name: str | None = None,
) -> AttentionKernel:
    """Return the kernel that computes O = softmax(scale Q K^T) V for every batch and head.

    Mathematically: ``O[i] = sum over j of p[i, j] V[j] / sum over j of p[i, j]`` with ``p[i, j] = exp(scale Q[i] .
    K[j])`` for the keys j that query i sees; 0 if it sees none. Products and sums are float, p is rounded to the type
    of V before the second product.

    Args:
        shape: (batches times heads, queries, keys, columns); 64 or 128 columns.
        dtype: Type of Q, K, V and O: bf16 or f16.
        target: A target with ``wgmma``.
        causal: Whether query i sees only keys j <= i + shift; tiles of keys that no query sees are left out.
        shift: The difference of the positions of query 0 and key 0: 0, or keys - queries if the last query sees
            all keys.
        scale: A number from 2^-100 to 2^100; by default 1 / sqrt(columns).
        tile: (queries, keys) of a tile: 64 queries per consumer, a multiple of 16 keys that registers suffice for; by
            default (128, 128), or (192, 128) for 64 columns.
        stages: Slots of the rings of K and V, 1 to 8.
        consumers: Warpgroups that multiply, 1 to 3; by default one for 64 queries of a tile.
        ahead: Whether scores of the next keys are multiplied before the values of these.
        alternate: Whether consumers start to multiply in turn, so that exponentials of one run beside the multiplies of
            another; only with ``ahead`` and several consumers.
        name: Kernel symbol.

    Raises: MalformedError: LA945, LA340, LA985. InfeasibleError: LA946, LA948.

    Example:
        >>> made = attention_kernel((32, 4096, 4096, 128), causal=True)
        >>> made.kernel.threads, made.blocks, made.emitted.proof.engine
        (384, 1024, 'event graph')
    """
    (batches, queries, keys, columns), kind = checked_attention(shape, dtype, target)
    for argument, flag in (("causal", causal), ("ahead", ahead), ("alternate", alternate)):
        CHECK.kind(flag, bool, argument)
    tm, tn = (192 if columns == 64 else 128, 128) if tile is None else answer.checked_shape(tile, 2)
    consumers = CHECK.integer(max(1, tm // GROUP_ROWS) if consumers is None else consumers, "consumers", 1, 4)
    checked_schedule((tm, tn), columns, stages, consumers, target, ahead, alternate)
    factor = 1 / math.sqrt(columns) if scale is None else scale
    if isinstance(factor, bool) or not isinstance(factor, (int, float)) or not LEAST_SCALE <= factor <= 1 / LEAST_SCALE:
        raise CHECK.malformed("scale", f"must be a number from {LEAST_SCALE} to {1 / LEAST_SCALE}", scale)
    if queries + keys + tm + tn >= MOST_COORDINATE:
        raise CHECK.malformed("shape", f"must have fewer than {MOST_COORDINATE} queries and keys", (queries, keys))
    # beyond these ends nothing changes, and the sum of a query and the shift stays an int
    shift = CHECK.integer(shift, "shift")
    last = min(max(shift, -queries), keys) if causal else None
    sizes = {"Q": (queries, GROUP_ROWS), "K": (keys, tn), "V": (keys, tn), "O": (queries, GROUP_ROWS)}
    plans = {
        side: tile_plan((batches, rows, columns), kind, (1, part, columns), SWIZZLE, target,
                        "store" if side == "O" else "load")
        for side, (rows, part) in sizes.items()
    }  # fmt: skip
    _, tiles = checked_tiles((batches, queries), (1, tm), 1)
    made = f"la_attention_{batches}x{queries}x{keys}x{columns}_{kind}" + "_causal" * causal
    name = made if name is None else checked_name(name)
    writer = _Attention((batches, queries, keys, columns), kind, target, (tm, tn), consumers, float(factor), last, name)
    bytes_ = [plans[side].smem_bytes for side in "QKV"]
    pipeline = attention_pipeline(stages, consumers, *bytes_, ahead=ahead, alternate=alternate)
    title = f"O[{batches}, {queries}, {columns}] = softmax({factor:.6g} Q K^T) V, {keys} keys, {kind}"
    title += ", all of them seen." if last is None else f", query i sees keys up to i{last:+d}."
    emitted = emit(writer.program(pipeline, plans), name, target, title=title)
    arrays = tuple(
        [
            ArrayArgument(side.lower(), (batches, rows, columns), 2, 128, written=side == "O")
            for side, (rows, _) in sizes.items()
        ]
    )
    raw = plans["Q"].raw, plans["K"].raw, plans["V"].raw, plans["O"].raw
    return AttentionKernel(
        emitted, (batches, queries, keys, columns), (tm, tn), stages, float(factor), last, raw, arrays, batches * tiles
    )


def checked_attention(shape: Sequence[int], dtype: object, target: str) -> tuple[tuple[int, int, int, int], str]:
    """Return the extents and the type of an attention; see ``attention_kernel``."""
    batches, queries, keys, columns = answer.checked_extents(
        shape, ("batches times heads", "queries", "keys", "columns")
    )
    for rows in (queries, keys):
        answer.checked_shape((batches, rows, columns))
    kind = element_type(dtype).name
    CHECK.choice(kind, "dtype", RESULTS)
    if columns not in HEADS:
        raise CHECK.malformed("shape", f"must have {' or '.join(map(str, HEADS))} columns", columns)
    answer.checked_target(target)
    require_wgmma(target)
    return (batches, queries, keys, columns), kind


def checked_schedule(
    tile: tuple[int, int], columns: int, stages: int, consumers: int, target: str, ahead: bool, alternate: bool
) -> None:
    """Refuse a tile, rings and an order that no kernel has, before anything is planned; see ``attention_kernel``."""
    tm, tn = tile
    if tm != GROUP_ROWS * consumers or tn % 16 or tn > 256:
        rule = f"must have {GROUP_ROWS * consumers} queries, and a multiple of 16 keys up to 256"
        raise CHECK.malformed("tile", rule, (tm, tn))
    held, most = (
        tn // 2 + tn // 4 + columns // 2,
        consumer_registers(consumers, LOADER_REGISTERS) * (SHARE - 1) // SHARE,
    )
    if held > most:
        raise CHECK.malformed("tile", f"must need at most {most} registers with {consumers} consumers", held)
    CHECK.integer(stages, "stages", 1, 9)
    if alternate and not (ahead and consumers > 1):
        raise CHECK.malformed("alternate", "must be left out without ahead, or with one consumer", alternate)
    q, k = (rows * columns * 2 for rows in (GROUP_ROWS, tn))
    placed(attention_pipeline(stages, consumers, q, k, k, ahead=ahead, alternate=alternate), target)


_FLOATS = r"""
#ifdef LA_HOST
#define LA_NO_SCORE (-__builtin_inff())
__device__ __forceinline__ float la_exp2(float x) { return __builtin_exp2f(x); }
__device__ __forceinline__ float la_reciprocal(float x) { return 1.0f / x; }
__device__ __forceinline__ float la_max(float x, float y) { return __builtin_fmaxf(x, y); }
#else
__device__ __forceinline__ float la_exp2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ __forceinline__ float la_reciprocal(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ __forceinline__ float la_max(float x, float y) { return fmaxf(x, y); }
#define LA_NO_SCORE __uint_as_float(0xFF800000u)
#endif

__device__ __forceinline__ float la_other_lane(float x, la_u32 mask)
{
    union { float number; la_u32 word; } both;
    both.number = x;
    both.word = la_shuffle_xor(both.word, mask);
    return both.number;
}

// Of the four lanes that have a row.
__device__ __forceinline__ float la_row_max(float x)
{
    x = la_max(x, la_other_lane(x, 1));
    return la_max(x, la_other_lane(x, 2));
}

__device__ __forceinline__ float la_row_sum(float x)
{
    x += la_other_lane(x, 1);
    return x + la_other_lane(x, 2);
}

// Operands in registers are complete before the multiplies that read them.
template <int n>
__device__ __forceinline__ void la_settle(la_u32 (&a)[n][4])
{
#ifndef LA_HOST
#pragma unroll
    for (int j = 0; j < n; ++j)
#pragma unroll
        for (int i = 0; i < 4; ++i) asm volatile("" : "+r"(a[j][i]) :: "memory");
#endif
}
"""
_VALUES = """\
float s[{scores}], o[{sums}], top[2] = {{LA_NO_SCORE, LA_NO_SCORE}}, total[2] = {{0.0f, 0.0f}}, keep[2];
la_u32 p[{steps}][4];
#pragma unroll
for (int i = 0; i < {sums}; ++i) o[i] = 0.0f;
const int query = row + (int)which * {rows};"""
_MASK = """\
if ({block} * {tn} + {tn} > {all}) {{
    const int first = {block} * {tn} + (int)(t % 4) * 2;  // the key of score 0
    const int seen[2] = {{{seen}}};
    #pragma unroll
    for (int i = 0; i < {scores}; ++i)
        if (i / 4 * 8 + i % 2 >= seen[i / 2 % 2] - first) s[i] = LA_NO_SCORE;
}}
"""
_SCORES = """\
la_settle(s);
{mask}#pragma unroll
for (int r = 0; r < 2; ++r) {{
    float most = top[r], sum = 0.0f;
    #pragma unroll
    for (int i = 2 * r; i < {scores}; i += 4) most = la_max(most, la_max(s[i], s[i + 1]));
    most = la_row_max(most);
    const float base = most == LA_NO_SCORE ? 0.0f : most * {scale};
    keep[r] = la_exp2(top[r] * {scale} - base);
    top[r] = most;
    #pragma unroll
    for (int i = 2 * r; i < {scores}; i += 4) {{
        s[i] = la_exp2(s[i] * {scale} - base);
        s[i + 1] = la_exp2(s[i + 1] * {scale} - base);
        sum += s[i] + s[i + 1];
    }}
    total[r] = total[r] * keep[r] + sum;
}}
la_settle(s);
"""
_RESCALE = """\
la_settle(o);
#pragma unroll
for (int i = 0; i < {sums}; ++i) o[i] *= keep[i / 2 % 2];
"""
_NORMALISE = """\
la_settle(o);
#pragma unroll
for (int r = 0; r < 2; ++r) {{
    total[r] = la_row_sum(total[r]);
    keep[r] = la_reciprocal(la_max(total[r], 0x1p-100f));  // at least 1, or 0 with values of 0
}}
#pragma unroll
for (int i = 0; i < {sums}; ++i) o[i] *= keep[i / 2 % 2];
"""


@dataclass(frozen=True, slots=True)
class _Attention:
    """Writes the text of the ops."""

    shape: tuple[int, int, int, int]
    dtype: str
    target: str
    tile: tuple[int, int]
    consumers: int
    scale: float
    last: int | None
    name: str

    def program(self, pipeline: Pipeline, plans: dict[str, TensorMapPlan]) -> Program:
        """Return the pipeline with its text."""
        tm, tn = self.tile
        columns = self.shape[3]
        numbers = Numbers()
        load = {
            f"pre tma_load Q{which}": f"{self.name}_q(&map_q, $Q{which}, $bar, batch, row + {which * GROUP_ROWS}, 0);"
            for which in range(self.consumers)
        }
        for side in "KV":
            load[f"loop tma_load {side}"] = (
                f"{self.name}_{side.lower()}(&map_{side.lower()}, ${side}, $bar, batch, k * {tn}, 0);"
            )
        values = _VALUES.format(scores=tn // 2, sums=columns // 2, steps=tn // 16, rows=GROUP_ROWS)
        workers = (
            Worker((_loop("load", pipeline.roles[0], load),), WARPS, elected=True, registers=LOADER_REGISTERS),
            Worker((_loop("math", pipeline.roles[1], self.bodies(bool(pipeline.roles[1].trip), numbers)),),
                   WARPS, self.consumers, registers=consumer_registers(self.consumers, LOADER_REGISTERS),
                   start=numbers.declared(0) + values),
        )  # fmt: skip
        before = wgmma_prelude(self.dtype, tn) + wgmma_registers_prelude(self.dtype, columns)
        before += SETTLE + SHUFFLES + _FLOATS
        for side, plan in plans.items():
            doing = "Stores a consumer's rows of" if side == "O" else "Loads a tile of"
            before += mover(plan, f"{self.name}_{side.lower()}", f"{doing} {side}.")
        return Program(
            pipeline, workers, tuple([(MAP_TYPE, f"map_{side.lower()}") for side in plans]),
            trips=f"(seen + {tn - 1}) / {tn}", plans=(("Q0", plans["Q"]), ("K", plans["K"]), ("V", plans["V"])),
            before=before + "".join(numbers.tables), start=self.where(-(-self.shape[1] // tm)),
        )  # fmt: skip

    def bodies(self, ahead: bool, numbers: Numbers) -> dict[str, str]:
        """The text of a consumer's ops."""
        sums = self.shape[3] // 2
        multiply, add = self.multiply_scores(), self.multiply_values()
        rescale, packed = _RESCALE.format(sums=sums), f"{self.packed()}\nla_settle(p);"
        found = {
            "loop mma K": multiply,
            "post write Q0": _NORMALISE.format(sums=sums)
            + write_text(self.shape[3], self.dtype, numbers, "0", "o", "$Q_byte"),
            "post tma_store Q0": f"{self.name}_o(&map_o, $Q, batch, query, 0);",
        }
        if not ahead:
            return found | {
                "loop read S0": self.scores("k"), "loop write O0": rescale, "loop write P0": packed, "loop mma V": add
            }  # fmt: skip
        return found | {
            "pre mma K": multiply, "pre read S0": self.scores("0"), "pre write P0": packed, "loop mma V": add,
            "loop read S0": self.scores("(k + 1)"), "loop write O0": rescale, "loop write P0": packed,
            "post mma V": add,
        }  # fmt: skip

    def where(self, tiles: int) -> str:
        """Which rows a block has, and how many keys it takes: those that some row sees, at least one.

        Blocks with many keys come first.
        """
        tm, keys = self.tile[0], self.shape[2]
        lines = [f"const int batch = (int)blockIdx.x / {tiles};"]
        if self.last is None:
            return "\n".join([*lines, f"const int row = (int)blockIdx.x % {tiles} * {tm}, seen = {keys};"])
        lines.append(f"const int row = ({tiles - 1} - (int)blockIdx.x % {tiles}) * {tm};")
        return "\n".join([*lines, f"const int seen = {self.within(f'row + {tm + self.last}', 1)};"])

    def within(self, keys: str, least: int = 0) -> str:
        """A number of keys, at most all."""
        return f"({keys}) < {least} ? {least} : ({keys}) < {self.shape[2]} ? ({keys}) : {self.shape[2]}"

    def scores(self, block: str) -> str:
        """Scores of a block of keys become weights; their maxima and sums are kept."""
        tn, keys = self.tile[1], self.shape[2]
        mask, scale = "", f"{np.float32(self.scale * math.log2(math.e))!s}f"
        if self.last is not None:
            least = self.within(f"query + {self.last + 1}")
            each = [self.within(f"query + (int)(t / 32 * 16 + t % 32 / 4) + {8 * r + self.last + 1}") for r in range(2)]
            mask = _MASK.format(block=block, tn=tn, all=f"({least})", seen=", ".join(each), scores=tn // 2)
        elif keys % tn:
            mask = _MASK.format(block=block, tn=tn, all=keys, seen=f"{keys}, {keys}", scores=tn // 2)
        return _SCORES.format(mask=mask, scores=tn // 2, scale=scale)

    def packed(self) -> str:
        """Weights as operand A, word by word."""
        pack = RESULTS[self.dtype]
        return "\n".join(
            [
                f"p[{step}][{word}] = {pack}(s[{low}], s[{high}]);"
                for step, words in enumerate(packed_scores(self.tile[1]))
                for word, (low, high) in enumerate(words)
            ]
        )

    def multiply_scores(self) -> str:
        """S = Q K^T."""
        tn, columns = self.tile[1], self.shape[3]
        q = operand("A", self.dtype, (GROUP_ROWS, columns), "K", SWIZZLE, self.target)
        k = operand("B", self.dtype, (tn, columns), "K", SWIZZLE, self.target)
        call = f"la_wgmma_m64n{tn}k16_{self.dtype}<{q.transpose}, {k.transpose}>"
        lines = ["la_wgmma_fence();", _based("q", q, "$Q"), _based("keys", k, "$K")]
        for step, (at, to) in enumerate(zip(_moves(q), _moves(k), strict=True)):
            lines.append(f"{call}(s, q + {at}, keys + {to}, {int(step > 0)});")
        return "\n".join(lines)

    def multiply_values(self) -> str:
        """O += P V."""
        tn, columns = self.tile[1], self.shape[3]
        v = operand("B", self.dtype, (columns, tn), "MN", SWIZZLE, self.target)
        call = f"la_wgmma_registers_m64n{columns}k16_{self.dtype}<{v.transpose}>"
        lines = ["la_wgmma_fence();", _based("values", v, "$V")]
        return "\n".join([*lines, *[f"{call}(o, p[{step}], values + {at}, 1);" for step, at in enumerate(_moves(v))]])


def _loop(name: str, role: Role, bodies: dict[str, str]) -> Loop:
    """A loop whose bodies are named by what the ops do."""
    places = {
        f"{part} {op.op} {op.buf or op.n}": f"{part}[{place}]" for part, place, op in role.ops() if op.op in BODIES
    }
    return Loop(name, tuple([(places[what], text) for what, text in bodies.items()]))


def packed_scores(keys: int) -> list[list[tuple[int, int]]]:
    """Return, for each instruction along the keys and each word of operand A, the accumulators of its halves.

    Example:
        >>> packed_scores(32)[1]
        [(8, 9), (10, 11), (12, 13), (14, 15)]
    """
    sums, wanted, found = accumulator_coordinates(keys), register_coordinates(16), []
    for step in range(keys // 16):
        place = [
            next(v for v in range(keys // 2) if (sums[:, v] == wanted[:, e] + (0, 16 * step)).all()) for e in range(8)
        ]
        found.append([(place[e], place[e + 1]) for e in range(0, 8, 2)])
    return found


def _based(name: str, plan: OperandPlan, at: str) -> str:
    """The declaration of an operand's first descriptor, at a tile's address."""
    return f"const la_u64 {name} = {plan.tiles[0].encoded:#018x}ull + (({at} & 0x3FFFF) >> 4);"


def _moves(plan: OperandPlan) -> list[int]:
    """What each instruction's descriptor adds to the first."""
    return [tile.encoded - plan.tiles[0].encoded for tile in plan.tiles]
