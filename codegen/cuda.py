"""CUDA text for one plan: load a tile, store a tile, multiply two tiles.

Main definitions: ``load_kernel``, ``store_kernel``, ``matmul_kernel``, ``WgmmaTiles``.

Notation: the tile base is aligned as the plan states; issue q starts at the plan's coordinates for the kernel's origin
parameters, one int per tile dimension, outermost first.

Implementation notes: texts are meant to be read. Constants are the plan's own numbers; hardware is called by name only
(see ``prelude``). A load that does not complete ends with a status, never with a hang.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from layoutalg.codegen.kernel import (
    STATUS_DONE,
    STATUS_ORIGIN,
    STATUS_TIMEOUT,
    THREADS,
    KernelSource,
    checked_int,
    checked_name,
    signature,
)
from layoutalg.codegen.plans import base_align, image_bytes, launchable
from layoutalg.codegen.prelude import PRELUDE, wgmma_prelude
from layoutalg.ground.errors import Diagnostic, InfeasibleError, MalformedError
from layoutalg.ground.kinds import checked_kinds
from layoutalg.integer import IntegerLayout, index_expression
from layoutalg.proofs.tensormap import TensorMapPlan
from layoutalg.targets.nvidia.tensormap.limits import MAX_PHASE_BYTES, MAX_SMEM_BYTES
from layoutalg.targets.nvidia.wgmma import require_wgmma

UNROLLED_ISSUES = 8
"""Up to this many copies are written out separately; more go into a table and a loop."""
_MAP = "const __grid_constant__ la_tensor_map"

_LOAD_BODY = """
// {title}
extern "C" __global__ void __launch_bounds__({threads}) {name}({signature})
{{
    unsigned char* tile = la_aligned_shared({align});
    const la_u32 tile_address = la_shared_address(tile);
    const la_u32 barrier = tile_address + {barrier};
{refusal}
    // Poison what the copies must overwrite, and some bytes behind the tile that they must leave alone.
    for (int i = threadIdx.x; i < {image_bytes}; i += {threads}) tile[i] = 0xEE;
    if (threadIdx.x == 0) la_mbarrier_init(barrier, 1);
    la_fence_async();
    __syncthreads();

{phases}    __syncthreads();

    for (int i = threadIdx.x; i < {image_bytes}; i += {threads}) image[i] = tile[i];
    if (threadIdx.x == 0) *status = done ? {status_done} : {status_timeout};
}}
"""

_REFUSAL = """
    // No start coordinates express such an origin: nothing is copied.
    if ({condition}) {{
        if (threadIdx.x == 0) *status = {status_origin};
        return;
    }}
"""

_PHASE = """\
    if ({condition}threadIdx.x == 0) {{
        la_arrive_expect_tx(barrier, {bytes});
{issues}    }}
    {assign}la_wait_parity(barrier, {parity});
"""

_STORE_BODY = """
// {title}
extern "C" __global__ void __launch_bounds__({threads}) {name}({signature})
{{
    unsigned char* tile = la_aligned_shared({align});
    const la_u32 tile_address = la_shared_address(tile);
{refusal}
    for (int i = threadIdx.x; i < {image_bytes}; i += {threads}) tile[i] = image[i];
    la_fence_async();  // every thread: its writes before the copy engine's reads
    __syncthreads();

    if (threadIdx.x == 0) {{
{issues}        la_store_commit();
        la_store_wait();
        *status = {status_done};
    }}
}}
"""


def load_kernel(plan: TensorMapPlan, name: str | None = None) -> KernelSource:
    """Return the kernel that loads one tile and writes the shared-memory image it finds.

    The kernel takes ``(map, origin..., image, status)``. The image starts at the aligned tile base and holds
    ``image_bytes`` bytes: the tile's footprint and a guard behind it, 0xEE wherever no copy wrote. The status is 1; 2
    when the expected bytes did not arrive; 3 when no start coordinates express the origin, and nothing is written.

    Args:
        plan: A plan with direction ``"load"``.
        name: Kernel symbol; made from the map when left out.

    Raises: MalformedError: LA503, LA506. InfeasibleError: LA504.
    """
    launchable(plan, "load")
    size = image_bytes(plan)
    barrier = -(-size // 8) * 8
    smem = barrier + 8 + base_align(plan)
    name = _name(plan) if name is None else checked_name(name)
    per_issue = plan.expect_tx_bytes // max(len(plan.issues), 1)
    per_phase = max(1, MAX_PHASE_BYTES // max(per_issue, 1))
    groups = [range(first, min(first + per_phase, len(plan.issues))) for first in range(0, len(plan.issues), per_phase)]
    phases = []
    for phase, group in enumerate(groups):
        expected = plan.expect_tx_bytes if len(groups) == 1 else per_issue * len(group)
        phases.append(
            _PHASE.format(
                condition="done && " if phase else "",
                bytes=expected,
                issues=_issues(plan, group, phase, "la_tma_load_{rank}d({address}, &map, barrier, {coords});"),
                assign="done = done && " if phase else "bool done = ",
                parity=phase % 2,
            )
        )
    parameters = (
        (_MAP, "map"), *_origins(plan), ("unsigned char*", "image"), ("int*", "status"),
    )  # fmt: skip
    text = _LOAD_BODY.format(
        title=_title(plan), threads=THREADS, name=name, signature=signature(parameters),
        align=base_align(plan), barrier=barrier, image_bytes=size, phases="".join(phases),
        status_done=STATUS_DONE, status_timeout=STATUS_TIMEOUT, refusal=_refusal(plan),
    )  # fmt: skip
    return KernelSource(name, PRELUDE + text, plan.problem.arch, THREADS, _fit(smem, plan), parameters, size)


def store_kernel(plan: TensorMapPlan, name: str | None = None) -> KernelSource:
    """Return the kernel that fills shared memory from an image and stores it as one tile.

    The kernel takes ``(map, origin..., image, status)`` and reads ``image_bytes`` bytes of the image. It returns when
    the writes are done. The status is 1; 3 when no start coordinates express the origin, and nothing is written.

    Args:
        plan: A plan with direction ``"store"``.
        name: Kernel symbol; made from the map when left out.

    Raises: MalformedError: LA503, LA506. InfeasibleError: LA504.
    """
    launchable(plan, "store")
    name = _name(plan) if name is None else checked_name(name)
    size = image_bytes(plan)
    parameters = (
        (_MAP, "map"), *_origins(plan), ("const unsigned char*", "image"), ("int*", "status"),
    )  # fmt: skip
    text = _STORE_BODY.format(
        title=_title(plan), threads=THREADS, name=name, signature=signature(parameters),
        align=base_align(plan), image_bytes=size,
        issues=_issues(plan, range(len(plan.issues)), 0, "la_tma_store_{rank}d(&map, {address}, {coords});"),
        status_done=STATUS_DONE, refusal=_refusal(plan),
    )  # fmt: skip
    smem = size + base_align(plan)
    return KernelSource(name, PRELUDE + text, plan.problem.arch, THREADS, _fit(smem, plan), parameters, size)


@dataclass(frozen=True, slots=True)
class WgmmaTiles:
    """Matrix descriptors of one operand: which bits address which instruction tile.

    Args:
        descriptors: ``descriptors[mn_step][k_step]``, 64 bits each, start address relative to the operand's tile base.
        transposed: 1 where the operand is M- or N-major, 0 where it is K-major.
        mn: Rows one ``mn_step`` covers: 64 for operand A, the instruction's N for operand B.

    Raises: MalformedError: LA505.
    """

    descriptors: tuple[tuple[int, ...], ...]
    transposed: int
    mn: int

    def __post_init__(self) -> None:
        checked_kinds(self, "LA505")
        if not self.descriptors or any(bits < 0 for row in self.descriptors for bits in row):
            because = "descriptors must be rows of unsigned 64-bit integers, at least one"
            raise MalformedError(Diagnostic("LA505", "these are not operand descriptors", ("WgmmaTiles",), because))
        checked_int(self.transposed, "transposed", 0, 2, "WgmmaTiles", "LA505")
        checked_int(self.mn, "mn", 1, 257, "WgmmaTiles", "LA505")


_MATMUL_BODY = """
// {title}
// d[{m}, {n}] = A[{m}, {k}] * B[{n}, {k}]^T in float, one warpgroup. Instruction tiles are 64 x {step_n} x 16.
extern "C" __global__ void __launch_bounds__({threads}) {name}({signature})
{{
    unsigned char* base = la_aligned_shared({align});
    const la_u32 a_address = la_shared_address(base);
    const la_u32 b_address = a_address + {b_offset};
    const la_u32 barrier = a_address + {barrier};
{refusal}
    if (threadIdx.x == 0) la_mbarrier_init(barrier, 1);
    __syncthreads();
    if (threadIdx.x == 0) {{
        la_arrive_expect_tx(barrier, {bytes});
{issues}    }}
    const bool done = la_wait_parity(barrier, 0);
    __syncthreads();
    if (threadIdx.x == 0) *status = done ? {status_done} : {status_timeout};
    if (!done) return;

    // Matrix descriptors with start addresses relative to each tile base, in units of 16 bytes.
    const la_u64 a_base = (a_address & 0x3FFFF) >> 4, b_base = (b_address & 0x3FFFF) >> 4;
    const int t = threadIdx.x, lane = {lane};  // where thread t's values begin in d
{tiles}}}
"""

_MATMUL_TILE = """\
    {{  // rows {row} to {row_end}, columns {column} to {column_end}
        float acc[{registers}];
#pragma unroll
        for (int v = 0; v < {registers}; ++v) acc[v] = 0.0f;
        la_wgmma_fence();
{steps}        la_wgmma_commit();
        la_wgmma_wait();
#pragma unroll
        for (int v = 0; v < {registers}; ++v)
            d[{first} + lane + {value}] = acc[v];
    }}
"""


def matmul_kernel(
    plan_a: TensorMapPlan, plan_b: TensorMapPlan, tiles_a: WgmmaTiles, tiles_b: WgmmaTiles, name: str = "la_matmul"
) -> KernelSource:
    """Return the kernel that loads two tiles and multiplies them with warpgroup instructions.

    The kernel takes ``(map_a, a_origin..., map_b, b_origin..., d, status)`` and writes the float product of the A tile
    [M, K] and the B tile [N, K] row-major to ``d``. The status is as for ``load_kernel``; ``d`` is written under 1.

    Args:
        plan_a: Load plan of the A tile.
        plan_b: Load plan of the B tile, same element type.
        tiles_a: Descriptors of A, one ``mn_step`` per 64 rows, one ``k_step`` per 16 columns.
        tiles_b: Descriptors of B, one ``mn_step`` per instruction N, as many ``k_step``s.
        name: Kernel symbol.

    Raises: MalformedError: LA503, LA505, LA506. InfeasibleError: LA504. TargetRuleError: LA373.
    """
    checked_name(name)
    for plan in (plan_a, plan_b):
        launchable(plan, "load")
    dtype = plan_a.problem.dtype
    k_steps = _operands(plan_a, plan_b, tiles_a, tiles_b)
    m, n, step_n = len(tiles_a.descriptors) * 64, len(tiles_b.descriptors) * tiles_b.mn, tiles_b.mn
    align = max(plan_a.smem_align_bytes, plan_b.smem_align_bytes, 1024)
    b_offset = -(-plan_a.smem_bytes // 1024) * 1024
    barrier = b_offset + -(-plan_b.smem_bytes // 16) * 16
    origins_a, origins_b = _origins(plan_a, "a"), _origins(plan_b, "b")
    parameters = ((_MAP, "map_a"), *origins_a, (_MAP, "map_b"), *origins_b, ("float*", "d"), ("int*", "status"))
    call = "la_tma_load_{rank}d({address}, &map_MAP, barrier, {coords});"
    issues = "".join(
        _issues(plan, range(len(plan.issues)), 0, call.replace("MAP", side), f"{side}_address", side)
        for side, plan in (("a", plan_a), ("b", plan_b))
    )
    multiply = f"la_wgmma_m64n{step_n}k16_{dtype}<{tiles_a.transposed}, {tiles_b.transposed}>"
    # the accumulator fragment (``targets.layouts.nvidia.wgmma_fragment``) as an offset in d, which has n columns
    lane = index_expression(IntegerLayout.from_strides({"q": 4, "g": 8, "w": 4}, (2, n, 16 * n)), flat="t")
    value = index_expression(IntegerLayout.from_strides({"v0": 2, "v1": 2, "v2": step_n // 8}, (1, 8 * n, 8)), flat="v")
    blocks = []
    for i, row in enumerate(tiles_a.descriptors):
        for j, column in enumerate(tiles_b.descriptors):
            steps = "".join(
                f"        {multiply}(acc, a_base + {row[s]:#018x}ull, b_base + {column[s]:#018x}ull, {int(s > 0)});\n"
                for s in range(k_steps)
            )
            blocks.append(
                _MATMUL_TILE.format(
                    row=64 * i, row_end=64 * i + 63, column=step_n * j, column_end=step_n * (j + 1) - 1,
                    registers=step_n // 2, steps=steps, first=64 * i * n + step_n * j, value=value.text,
                )
            )  # fmt: skip
    text = _MATMUL_BODY.format(
        title=f"A: {_title(plan_a)}\n// B: {_title(plan_b)}", m=m, n=n, k=16 * k_steps, step_n=step_n, threads=128,
        name=name,
        signature=signature(parameters), align=align, b_offset=b_offset, barrier=barrier, lane=lane.text,
        bytes=plan_a.expect_tx_bytes + plan_b.expect_tx_bytes, issues=issues, status_done=STATUS_DONE,
        status_timeout=STATUS_TIMEOUT, tiles="".join(blocks), refusal=_refusal(plan_a, "a") + _refusal(plan_b, "b"),
    )  # fmt: skip
    smem = _fit(barrier + 8 + align, plan_a)
    return KernelSource(name, PRELUDE + wgmma_prelude(dtype, step_n) + text, plan_a.problem.arch, 128, smem, parameters)


def _operands(plan_a: TensorMapPlan, plan_b: TensorMapPlan, tiles_a: WgmmaTiles, tiles_b: WgmmaTiles) -> int:
    """Check that the operands fit together; return the number of K steps."""
    k_steps = len(tiles_a.descriptors[0]) if tiles_a.descriptors else 0
    a, b = plan_a.problem, plan_b.problem
    rows = (*tiles_a.descriptors, *tiles_b.descriptors)
    fits = plan_a.expect_tx_bytes + plan_b.expect_tx_bytes <= MAX_PHASE_BYTES
    rules = (
        (a.dtype == b.dtype, f"dtypes {a.dtype} and {b.dtype} differ"),
        (a.arch == b.arch, f"architectures {a.arch} and {b.arch} differ"),
        (k_steps > 0 and bool(tiles_b.descriptors), "an operand has no descriptors"),
        (all(len(row) == k_steps for row in rows), "the operands have different numbers of K steps"),
        (tiles_a.mn == 64, f"operand A covers 64 rows per step, not {tiles_a.mn}"),
        (fits, "one barrier phase cannot count both tiles"),
    )
    require_wgmma(a.arch)
    for holds, reason in rules:
        if not holds:
            raise MalformedError(Diagnostic("LA505", "the operands do not fit together", ("matmul_kernel",), reason))
    return k_steps


def _fit(smem: int, plan: TensorMapPlan) -> int:
    if smem > MAX_SMEM_BYTES:
        where, because = f"footprint {plan.smem_bytes} bytes", f"{smem} bytes with alignment and barrier"
        source = "CUDA C++ programming guide, compute capability 9.0"
        what = "the tile does not fit a block's shared memory"
        raise InfeasibleError(Diagnostic("LA504", what, (where,), f"{because}, of {MAX_SMEM_BYTES}", source=source))
    return smem


def _name(plan: TensorMapPlan) -> str:
    shape = "x".join(str(extent) for extent in plan.problem.tile)
    return f"la_{plan.direction}_{plan.problem.dtype}_{shape}_{plan.tensor_map.swizzle.lower()}"


def _title(plan: TensorMapPlan) -> str:
    tm = plan.tensor_map
    copies = "1 copy" if len(plan.issues) == 1 else f"{len(plan.issues)} copies"
    return (
        f"{plan.direction} of a {plan.problem.dtype} tile {list(plan.problem.tile)}: box {list(tm.box)}, swizzle "
        f"{tm.swizzle}, {copies}, {plan.expect_tx_bytes} bytes in all"
    )


def _origins(plan: TensorMapPlan, side: str = "") -> tuple[tuple[str, str], ...]:
    prefix = f"{side}_origin" if side else "origin"
    return tuple(("int", f"{prefix}{dim}") for dim in range(len(plan.problem.tile)))


def _refusal(plan: TensorMapPlan, side: str = "") -> str:
    """Return the statement that refuses what ``plan.coordinates`` refuses; empty where every origin is expressible."""
    prefix = f"{side}_origin" if side else "origin"
    conditions = []
    for dim, step in enumerate(plan.problem.origin_multiple):
        needs = {bottom // math.gcd(top, bottom) for terms in plan.origin_map for d, top, bottom in terms if d == dim}
        if step == 0:
            conditions.append(f"{prefix}{dim} != 0")
        elif (whole := math.lcm(step, *needs)) > 1:
            conditions.append(f"{prefix}{dim} % {whole} != 0" if whole < 2**31 else f"{prefix}{dim} != 0")
    if plan.direction == "store":
        for j in range(len(plan.origin_map)):
            shift = _shift(plan, j, side)
            first = min(issue.coords[j] for issue in plan.issues)
            if shift or first < 0:
                conditions.append(f"{_sum(str(first), shift)} < 0")
        if plan.oob != "exact":
            for dim, (low, high) in enumerate(plan.problem.bounds):
                if plan.problem.origin_multiple[dim]:
                    conditions.append(f"{prefix}{dim} < {low} || {prefix}{dim} >= {min(high, 2**31 - 1)}")
    if not conditions:
        return ""
    return _REFUSAL.format(condition=" || ".join(conditions), status_origin=STATUS_ORIGIN)


def _shift(plan: TensorMapPlan, j: int, side: str) -> str:
    """Return the C expression of how far the origin moves coordinate j; empty when it does not."""
    prefix = f"{side}_origin" if side else "origin"
    parts = []
    for dim, numerator, denominator in plan.origin_map[j]:
        shrink = math.gcd(numerator, denominator)
        top, bottom = numerator // shrink, denominator // shrink
        if top:
            parts.append(f"{prefix}{dim}" + (f" / {bottom}" if bottom > 1 else "") + (f" * {top}" if top != 1 else ""))
    return " + ".join(parts)


def _issues(
    plan: TensorMapPlan, group: Sequence[int], phase: int, call: str, address: str = "tile_address", side: str = ""
) -> str:
    """Return the statements that issue some of the plan's copies."""
    rank = len(plan.origin_map)
    shifts = [_shift(plan, j, side) for j in range(rank)]
    lines = []
    if len(group) <= UNROLLED_ISSUES:
        for q in group:
            issue = plan.issues[q]
            coords = ", ".join(_sum(str(c), shift) for c, shift in zip(issue.coords, shifts, strict=True))
            place = address if issue.smem_offset_bytes == 0 else f"{address} + {issue.smem_offset_bytes}"
            lines.append(call.format(rank=rank, address=place, coords=coords))
    else:
        table = f"{side or 'issue'}s{phase}" if side else f"issues{phase}"
        rows = [
            "    {" + ", ".join(str(v) for v in (plan.issues[q].smem_offset_bytes, *plan.issues[q].coords)) + "},"
            for q in group
        ]
        lines += [
            "// Shared byte offset and start coordinates of each copy.",
            f"static const int {table}[{len(rows)}][{rank + 1}] = {{",
            *rows,
            "};",
        ]
        coords = ", ".join(_sum(f"{table}[q][{j + 1}]", shift) for j, shift in enumerate(shifts))
        lines.append(f"for (int q = 0; q < {len(rows)}; ++q)")
        lines.append("    " + call.format(rank=rank, address=f"{address} + {table}[q][0]", coords=coords))
    return "".join(f"        {line}\n" for line in lines)


def _sum(constant: str, shift: str) -> str:
    if not shift:
        return constant
    return shift if constant == "0" else f"{constant} + {shift}"
