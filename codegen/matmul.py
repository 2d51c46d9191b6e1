"""CUDA text that loads two tiles and multiplies them with warpgroup instructions."""

from __future__ import annotations

from dataclasses import dataclass

from layoutalg.codegen.cuda import LOAD, MAP_TYPE, fitting, issue_text, origin_parameters, refusal_text, title
from layoutalg.codegen.kernel import STATUS_DONE, STATUS_TIMEOUT, KernelSource, checked_int, checked_name, signature
from layoutalg.codegen.plans import launchable, upheld
from layoutalg.codegen.prelude import PRELUDE, wgmma_prelude
from layoutalg.ground.errors import Diagnostic, MalformedError
from layoutalg.ground.record import Checked
from layoutalg.integer import IntegerLayout, index_expression
from layoutalg.proofs.tensormap import TensorMapPlan
from layoutalg.targets.nvidia.tensormap.limits import MAX_PHASE_BYTES
from layoutalg.targets.nvidia.wgmma import require_wgmma


@dataclass(frozen=True, slots=True)
class WgmmaTiles(Checked, code="LA505"):
    """Matrix descriptors of one operand, one per instruction tile.

    Args:
        descriptors: ``descriptors[mn_step][k_step]``, 64 bits each, start address relative to the operand's tile base.
        transposed: 1 for an M- or N-major operand, 0 for K-major.
        mn: Rows per ``mn_step``: 64 for operand A, the instruction's N for operand B.
    """

    descriptors: tuple[tuple[int, ...], ...]
    transposed: int
    mn: int

    def _validate(self) -> None:
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

    Parameters: ``(map_a, a_origin..., map_b, b_origin..., d, status)``. The float product of the A tile [M, K] and the
    B tile [N, K] is written row-major to ``d``. The status is as for ``load_kernel``; ``d`` is written only if it is 1.

    Args:
        plan_a: Load plan of the A tile.
        plan_b: Load plan of the B tile, same element type.
        tiles_a: Descriptors of A, one ``mn_step`` per 64 rows, one ``k_step`` per 16 columns.
        tiles_b: Descriptors of B, one ``mn_step`` per instruction N, as many ``k_step``s.
        name: Kernel symbol.
    """
    checked_name(name)
    for plan in (plan_a, plan_b):
        launchable(plan, "load")
        upheld(plan)
    dtype = plan_a.problem.dtype
    k_steps = _operands(plan_a, plan_b, tiles_a, tiles_b)
    m, n, step_n = len(tiles_a.descriptors) * 64, len(tiles_b.descriptors) * tiles_b.mn, tiles_b.mn
    align = max(plan_a.smem_align_bytes, plan_b.smem_align_bytes, 1024)
    b_offset = -(-plan_a.smem_bytes // 1024) * 1024
    barrier = b_offset + -(-plan_b.smem_bytes // 16) * 16
    origins_a, origins_b = origin_parameters(plan_a, "a"), origin_parameters(plan_b, "b")
    parameters = ((MAP_TYPE, "map_a"), *origins_a, (MAP_TYPE, "map_b"), *origins_b, ("float*", "d"), ("int*", "status"))
    issues = "".join(
        issue_text(plan, LOAD.replace("&map", f"&map_{side}"), f"{side}_address", side)
        for side, plan in (("a", plan_a), ("b", plan_b))
    )
    multiply = f"la_wgmma_m64n{step_n}k16_{dtype}<{tiles_a.transposed}, {tiles_b.transposed}>"
    # the accumulator fragment (``targets.layouts.nvidia.wgmma_fragment``) as an offset into d, which has n columns
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
        title=f"A: {title(plan_a)}\n// B: {title(plan_b)}", m=m, n=n, k=16 * k_steps, step_n=step_n, threads=128,
        name=name,
        signature=signature(parameters), align=align, b_offset=b_offset, barrier=barrier, lane=lane.text,
        bytes=plan_a.expect_tx_bytes + plan_b.expect_tx_bytes, issues=issues, status_done=STATUS_DONE,
        status_timeout=STATUS_TIMEOUT, tiles="".join(blocks),
        refusal=refusal_text(plan_a, "a") + refusal_text(plan_b, "b"),
    )  # fmt: skip
    smem = fitting(barrier + 8 + align, plan_a)
    return KernelSource(name, PRELUDE + wgmma_prelude(dtype, step_n) + text, plan_a.problem.arch, 128, smem, parameters)


def _operands(plan_a: TensorMapPlan, plan_b: TensorMapPlan, tiles_a: WgmmaTiles, tiles_b: WgmmaTiles) -> int:
    """Check that the operands match; return the number of K steps."""
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
