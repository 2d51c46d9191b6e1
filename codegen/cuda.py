"""CUDA text for one plan: load a tile, store a tile.

The tile base is aligned as the plan states; issue q starts at the plan's coordinates for the kernel's origin
parameters, one int per tile dimension, outermost first.

Implementation notes: the texts are meant to be read. Constants are the plan's own numbers; hardware is called only by
name (see ``prelude``). A load that does not complete ends with a status instead of hanging.
"""

from __future__ import annotations

import math

from layoutalg.codegen.kernel import (
    STATUS_DONE,
    STATUS_ORIGIN,
    STATUS_TIMEOUT,
    THREADS,
    KernelSource,
    checked_name,
    signature,
)
from layoutalg.codegen.plans import CHECK, base_align, image_bytes, launchable, upheld
from layoutalg.codegen.prelude import PRELUDE
from layoutalg.ground.errors import Diagnostic, InfeasibleError
from layoutalg.proofs.tensormap import TensorMapPlan
from layoutalg.targets.nvidia.tensormap.limits import MAX_PHASE_BYTES, MAX_SMEM_BYTES

UNROLLED_ISSUES = 8
"""Up to this many copies are unrolled; more go into a table and a loop."""
MAP_TYPE = "const __grid_constant__ la_tensor_map"
LOAD = "la_tma_load_{rank}d({address}, &map, barrier, {coords});"
STORE = "la_tma_store_{rank}d(&map, {address}, {coords});"

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

    if (threadIdx.x == 0) {{
        la_arrive_expect_tx(barrier, {bytes});
{issues}    }}
    bool done = la_wait_parity(barrier, 0);
    __syncthreads();

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
    """Return the kernel that loads one tile and writes out the resulting shared-memory image.

    Parameters: ``(map, origin..., image, status)``. The image starts at the aligned tile base and has ``image_bytes``
    bytes: the tile's footprint followed by a guard, 0xEE where no copy wrote. Status: 1 done; 2 the expected bytes did
    not arrive; 3 no start coordinates express the origin, and nothing is written.

    Args:
        plan: A plan with direction ``"load"``.
        name: Kernel symbol; by default derived from the map.
    """
    launchable(plan, "load")
    return _kernel(upheld(plan), name)


def store_kernel(plan: TensorMapPlan, name: str | None = None) -> KernelSource:
    """Return the kernel that fills shared memory from an image and stores it as one tile.

    Parameters: ``(map, origin..., image, status)``; ``image_bytes`` bytes of the image are read. The kernel returns
    when the writes are done. Status: 1 done; 3 no start coordinates express the origin, and nothing is written.

    Args:
        plan: A plan with direction ``"store"``.
        name: Kernel symbol; by default derived from the map.
    """
    launchable(plan, "store")
    return _kernel(upheld(plan), name)


def tile_kernel(plan: TensorMapPlan) -> KernelSource:
    """Return the kernel of a plan without asking its checker. Only for ``validate``, which shows the first byte that a
    wrong plan gets wrong.
    """
    launchable(plan)
    return _kernel(plan, None)


def _kernel(plan: TensorMapPlan, name: str | None) -> KernelSource:
    load, size, align = plan.direction == "load", image_bytes(plan), base_align(plan)
    barrier = -(-size // 8) * 8
    name = _name(plan) if name is None else checked_name(name)
    smem = fitting((barrier + 8 if load else size) + align, plan)
    if load and plan.expect_tx_bytes > MAX_PHASE_BYTES:
        raise CHECK.malformed("plan", f"must copy at most {MAX_PHASE_BYTES} bytes", plan.expect_tx_bytes)
    parameters = (
        (MAP_TYPE, "map"), *origin_parameters(plan),
        ("unsigned char*" if load else "const unsigned char*", "image"), ("int*", "status"),
    )  # fmt: skip
    text = (_LOAD_BODY if load else _STORE_BODY).format(
        title=title(plan), threads=THREADS, name=name, signature=signature(parameters), align=align, barrier=barrier,
        image_bytes=size, bytes=plan.expect_tx_bytes, issues=issue_text(plan, LOAD if load else STORE),
        status_done=STATUS_DONE, status_timeout=STATUS_TIMEOUT, refusal=refusal_text(plan),
    )  # fmt: skip
    return KernelSource(name, PRELUDE + text, plan.problem.arch, THREADS, smem, parameters, size)


def fitting(smem: int, plan: TensorMapPlan) -> int:
    """Return ``smem``, refused if a block has less shared memory."""
    if smem > MAX_SMEM_BYTES:
        where, because = f"footprint {plan.smem_bytes} bytes", f"{smem} bytes with alignment and barrier"
        source = "CUDA C++ programming guide, compute capability 9.0"
        what = "the tile does not fit a block's shared memory"
        raise InfeasibleError(Diagnostic("LA504", what, (where,), f"{because}, of {MAX_SMEM_BYTES}", source=source))
    return smem


def _name(plan: TensorMapPlan) -> str:
    shape = "x".join(str(extent) for extent in plan.problem.tile)
    return f"la_{plan.direction}_{plan.problem.dtype}_{shape}_{plan.tensor_map.swizzle.lower()}"


def title(plan: TensorMapPlan) -> str:
    """Describe a plan in one line."""
    tm = plan.tensor_map
    copies = "1 copy" if len(plan.issues) == 1 else f"{len(plan.issues)} copies"
    return (
        f"{plan.direction} of a {plan.problem.dtype} tile {list(plan.problem.tile)}: box {list(tm.box)}, swizzle "
        f"{tm.swizzle}, {copies}, {plan.expect_tx_bytes} bytes in all"
    )


def origin_parameters(plan: TensorMapPlan, side: str = "") -> tuple[tuple[str, str], ...]:
    """Return the kernel parameters of the tile origin; ``side`` distinguishes two plans in one kernel."""
    prefix = f"{side}_origin" if side else "origin"
    return tuple(("int", f"{prefix}{dim}") for dim in range(len(plan.problem.tile)))


def refusal_text(plan: TensorMapPlan, side: str = "") -> str:
    """Return the statement that refuses what ``plan.coordinates`` refuses; empty if every origin is expressible."""
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
    """Return the C expression of how far the origin moves coordinate j; empty if it does not."""
    prefix = f"{side}_origin" if side else "origin"
    parts = []
    for dim, numerator, denominator in plan.origin_map[j]:
        shrink = math.gcd(numerator, denominator)
        top, bottom = numerator // shrink, denominator // shrink
        if top:
            parts.append(f"{prefix}{dim}" + (f" / {bottom}" if bottom > 1 else "") + (f" * {top}" if top != 1 else ""))
    return " + ".join(parts)


def issue_text(plan: TensorMapPlan, call: str, address: str = "tile_address", side: str = "") -> str:
    """Return the statements that issue the plan's copies."""
    rank = len(plan.origin_map)
    shifts = [_shift(plan, j, side) for j in range(rank)]
    lines = []
    if len(plan.issues) <= UNROLLED_ISSUES:
        for issue in plan.issues:
            coords = ", ".join(_sum(str(c), shift) for c, shift in zip(issue.coords, shifts, strict=True))
            place = address if issue.smem_offset_bytes == 0 else f"{address} + {issue.smem_offset_bytes}"
            lines.append(call.format(rank=rank, address=place, coords=coords))
    else:
        table = f"{side or 'issue'}s0"
        rows = [f"    {{{', '.join(map(str, (issue.smem_offset_bytes, *issue.coords)))}}}," for issue in plan.issues]
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
