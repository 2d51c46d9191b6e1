"""CUDA text that loads two tiles and multiplies them with warpgroup instructions."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from textwrap import dedent

from layoutalg.codegen.cuda import LOAD, MAP_TYPE, issue_text, origin_parameters, refusal_text, title
from layoutalg.codegen.kernel import KernelSource, checked_int, checked_name
from layoutalg.codegen.pipeline.emission import emit
from layoutalg.codegen.pipeline.program import Loop, Program, Worker
from layoutalg.codegen.plans import launchable, upheld
from layoutalg.codegen.prelude import wgmma_prelude
from layoutalg.ground.errors import Diagnostic, MalformedError
from layoutalg.ground.record import Checked
from layoutalg.integer import IntegerLayout, index_expression
from layoutalg.proofs.pipeline import Barrier, Buffer, Op, Pipeline, Role
from layoutalg.proofs.pipeline.resources import WARPGROUP
from layoutalg.proofs.tensormap import TensorMapPlan
from layoutalg.targets.nvidia.tensormap.limits import MAX_PHASE_BYTES
from layoutalg.targets.nvidia.wgmma import require_wgmma

FIRST_MULTIPLY = 4
"""Place of the first multiply in ``tile_pipeline``."""


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


_WRITE = """\
if (gave_up == 0) {{  // rows {row} to {row_end}, columns {column} to {column_end}
    #pragma unroll
    for (int v = 0; v < {registers}; ++v) d[{first} + {lane} + {value}] = acc[v];
}}"""


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
    origins_a, origins_b = origin_parameters(plan_a, "a"), origin_parameters(plan_b, "b")
    parameters = ((MAP_TYPE, "map_a"), *origins_a, (MAP_TYPE, "map_b"), *origins_b, ("float*", "d"))
    bodies = [
        (
            f"pre[{place}]",
            dedent(
                issue_text(
                    plan, LOAD.replace("&map", f"&map_{side}").replace("barrier", "$bar"), f"${side.upper()}", side
                )
            ),
        )
        for place, side, plan in ((1, "a", plan_a), (2, "b", plan_b))
    ]
    # the accumulator fragment (``targets.layouts.nvidia.wgmma_fragment``) as an offset into d, which has n columns
    lane = index_expression(IntegerLayout.from_strides({"q": 4, "g": 8, "w": 4}, (2, n, 16 * n)), flat="t")
    value = index_expression(IntegerLayout.from_strides({"v0": 2, "v1": 2, "v2": step_n // 8}, (1, 8 * n, 8)), flat="v")
    for number, (i, j) in enumerate(
        itertools.product(range(len(tiles_a.descriptors)), range(len(tiles_b.descriptors)))
    ):
        place = FIRST_MULTIPLY + 6 * number
        row, column = tiles_a.descriptors[i], tiles_b.descriptors[j]
        multiplies = "".join([
            f"la_wgmma_m64n{step_n}k16_{dtype}<{tiles_a.transposed}, {tiles_b.transposed}>(acc, "
            f"(($A & 0x3FFFF) >> 4) + {row[s]:#018x}ull, (($B & 0x3FFFF) >> 4) + {column[s]:#018x}ull, {int(s > 0)});\n"
            for s in range(k_steps)
        ])  # fmt: skip
        written = _WRITE.format(
            row=64 * i, row_end=64 * i + 63, column=step_n * j, column_end=step_n * (j + 1) - 1, lane=f"({lane.text})",
            registers=step_n // 2, first=64 * i * n + step_n * j, value=value.text,
        )  # fmt: skip
        bodies += [(f"pre[{place + 1}]", f"la_wgmma_fence();\n{multiplies}"), (f"pre[{place + 5}]", written)]
    worker = Worker((Loop("multiply", tuple(bodies)),), WARPGROUP, start=f"float acc[{step_n // 2}];")
    program = Program(
        tile_pipeline(plan_a, plan_b, len(tiles_a.descriptors) * len(tiles_b.descriptors)), (worker,), parameters,
        plans=(("A", plan_a), ("B", plan_b)), before=wgmma_prelude(dtype, step_n),
        start=dedent(refusal_text(plan_a, "a") + refusal_text(plan_b, "b")),
    )  # fmt: skip
    shapes = f"d[{m}, {n}] = A[{m}, {16 * k_steps}] B[{n}, {16 * k_steps}]^T in float"
    told = [f"A: {title(plan_a)}", f"B: {title(plan_b)}", f"{shapes}, one warpgroup, 64 x {step_n} at a time."]
    return emit(program, name, plan_a.problem.arch, title="\n".join(told)).kernel


def tile_pipeline(plan_a: TensorMapPlan, plan_b: TensorMapPlan, products: int) -> Pipeline:
    """Return the pipeline of one product of tiles: a warpgroup waits for both and multiplies.

    Args:
        plan_a: Load plan of A.
        plan_b: Load plan of B.
        products: Products of rows and columns that one instruction covers.
    """
    copied = plan_a.expect_tx_bytes, plan_b.expect_tx_bytes
    ops = [
        Op("arrive_tx", bar="full", bytes=sum(copied)), Op("tma_load", buf="A", bar="full", bytes=copied[0]),
        Op("tma_load", buf="B", bar="full", bytes=copied[1]), Op("wait", bar="full"),
    ]  # fmt: skip
    for number in range(products):
        ops += [
            Op("mma", buf="A"), Op("mma", buf="B"), Op("mma_write", buf="acc", idx_abs=number), Op("mma_commit"),
            Op("mma_wait"), Op("read", buf="acc", idx_abs=number),
        ]  # fmt: skip
    buffers = (
        ("A", Buffer(1, plan_a.smem_bytes)), ("B", Buffer(1, plan_b.smem_bytes)), ("acc", Buffer(1, space="register")),
    )  # fmt: skip
    return Pipeline(1, (("full", Barrier(1, 1)),), buffers, (Role("multiply", pre=tuple(ops)),))


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
