"""From copy to consumer: what the copy engine writes is what the tensor cores read, element for element.

Main definitions: ``prove_handoff``, ``written_elements``, ``operand_view``.

Main statements: the certificate of a TensorMap plan ties shared bytes to tile elements; the operand plan ties (mn, k)
to shared bytes; the composition is the identity on tile elements, decided by walking both for the whole tile.

Implementation notes: the origin never moves shared addresses, so one walk speaks for every tile.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from layoutalg.errors import AdmissibilityError, Diagnostic
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProblem
from layoutalg.proofs.tensormap.walk import MismatchError, walk
from layoutalg.proofs.wgmma import OperandPlan, OperandProblem
from layoutalg.proofs.wgmma import handoff as wgmma_handoff
from layoutalg.verdict import Refuted, Verdict


@dataclass(frozen=True, slots=True)
class OperandView:
    """A TensorMap tile seen as a matrix operand: the statement for ``wgmma``, and which tile dimensions it took."""

    problem: OperandProblem
    mn_dim: int
    k_dim: int


def operand_view(problem: TensorMapProblem, operand: str, major: str) -> OperandView:
    """See a two-dimensional tile (other extents 1) as operand A or B of ``wgmma``.

    Args:
        problem: A load of f16 or bf16.
        operand: ``"A"`` or ``"B"``.
        major: ``"K"`` or ``"MN"``: which of the two is contiguous in global memory.

    Raises:
        AdmissibilityError: LA420, the tile is no such operand; says why.

    Example:
        >>> problem = TensorMapProblem.from_json({
        ...     "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": "load",
        ...     "global": {"shape": [1024, 512], "stride": [512, 1], "dtype": "bf16"},
        ...     "tile": [64, 64], "smem": {"modes": [[[64, 64]], [[64, 1]]], "swizzle": "128B"}})
        >>> view = operand_view(problem, "A", "K")
        >>> view.mn_dim, view.k_dim, view.problem.shape
        (0, 1, (64, 64))
    """
    wide = [dim for dim in range(problem.rank) if problem.tile[dim] > 1]
    inner = [dim for dim in wide if problem.global_strides[dim] == 1]
    reason = None
    if problem.dtype not in ("f16", "bf16"):
        reason = f"operands are f16 or bf16 here, not {problem.dtype}"
    elif problem.direction != "load":
        reason = "a store has no consumer in shared memory"
    elif len(wide) != 2 or len(inner) != 1:
        reason = f"an operand has two extents above 1, one of them contiguous; the tile is {list(problem.tile)}"
    elif problem.swizzle not in ("NONE", "32B", "64B", "128B"):
        reason = f"no descriptor has the swizzle {problem.swizzle}"
    if reason is not None:
        raise AdmissibilityError(Diagnostic("LA420", "the tile is no wgmma operand", (f"operand {operand}",), reason))
    other = next(dim for dim in wide if dim not in inner)
    k_dim, mn_dim = (inner[0], other) if major == "K" else (other, inner[0])
    statement = OperandProblem(
        operand,
        (problem.tile[mn_dim], problem.tile[k_dim]),
        (problem.smem_modes[mn_dim], problem.smem_modes[k_dim]),
        problem.swizzle,
        problem.dtype,
    )
    return OperandView(statement, mn_dim, k_dim)


def written_elements(plan: TensorMapPlan, view: OperandView) -> npt.NDArray[np.int64]:
    """Return, per 2-byte slot from the tile base on, the flat operand element mn * K + k that the plan writes, or -1.

    Raises:
        MismatchError: the plan does not even land on its own tile.
    """
    walked = walk(plan)
    addresses, tile_coords = walked.addresses, walked.tile_coords
    written = np.full(int(addresses.max()) // 2 + 1, -1, dtype=np.int64)
    written[addresses // 2] = tile_coords[view.mn_dim] * view.problem.shape[1] + tile_coords[view.k_dim]
    return written


def prove_handoff(copy: TensorMapPlan, view: OperandView, consumer: OperandPlan) -> Verdict:
    """Decide whether every element that ``wgmma`` reads at (mn, k) is the tile element (mn, k) that the copy wrote.

    Args:
        copy: A proved load plan.
        view: Which tile dimensions are MN and K.
        consumer: Descriptors for the same tile base.
    """
    try:
        written = written_elements(copy, view)
    except MismatchError as mismatch:
        return Refuted("checker", mismatch.witness)
    return wgmma_handoff(written, consumer)
