"""Prove that wgmma reads, element for element, what TMA wrote.

A TensorMap plan maps tile elements to shared bytes, an operand plan shared bytes to (mn, k); the composition must be
the identity. It is decided by walking both for one tile, which suffices because shared addresses do not depend on the
tile origin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from layoutalg.ground.errors import AdmissibilityError, Diagnostic
from layoutalg.ground.limits import PROBLEM_RANK
from layoutalg.ground.record import Checked
from layoutalg.ground.verdict import Proved, Verdict
from layoutalg.proofs.fields import instance, integer, malformed
from layoutalg.proofs.tensormap import ListedProblem, TensorMapPlan, TensorMapProblem, check
from layoutalg.proofs.tensormap.walk import walk
from layoutalg.proofs.wgmma import OperandPlan, OperandProblem
from layoutalg.proofs.wgmma import handoff as wgmma_handoff
from layoutalg.targets.nvidia.wgmma import ARCH as WGMMA_ARCH
from layoutalg.targets.nvidia.wgmma import DTYPES, SWIZZLES, checked_major, has_wgmma


@dataclass(frozen=True, slots=True)
class OperandView(Checked, code="LA372"):
    """A TensorMap tile viewed as a matrix operand: the ``wgmma`` problem, and which tile dimensions are MN and K."""

    problem: OperandProblem
    mn_dim: int
    k_dim: int

    def _validate(self) -> None:
        for name in ("mn_dim", "k_dim"):
            integer(name, getattr(self, name), 0, PROBLEM_RANK - 1)
        if self.mn_dim == self.k_dim:
            raise malformed("k_dim", "must differ from mn_dim", self.k_dim)


def operand_view(problem: TensorMapProblem, operand: str, major: str) -> OperandView:
    """View a two-dimensional tile (other extents 1) as ``wgmma`` operand A or B.

    Args:
        problem: A load of f16 or bf16.
        operand: ``"A"`` or ``"B"``.
        major: ``"K"`` or ``"MN"``: which of the two is contiguous in global memory.

    Example:
        >>> problem = TensorMapProblem.of(((1024, 512), None, "bf16"), (64, 64), "Sw<3,3,3> o 0 o (64,64):(64,1)")
        >>> view = operand_view(problem, "A", "K")
        >>> view.mn_dim, view.k_dim, view.problem.shape
        (0, 1, (64, 64))
    """
    instance("problem", problem, TensorMapProblem)
    k_major = checked_major(major, "operand_view") == "K"
    wide = [dim for dim in range(problem.rank) if problem.tile[dim] > 1]
    inner = [dim for dim in wide if problem.global_strides[dim] == 1]
    reason = None
    if problem.dtype not in DTYPES:
        reason = f"operand types are {', '.join(DTYPES)}, got {problem.dtype}"
    elif isinstance(problem, ListedProblem):
        reason = "its shared layout is a table: use layoutalg.admissible"
    elif problem.direction != "load":
        reason = "a store does not write shared memory"
    elif not has_wgmma(problem.arch):
        reason = f"{problem.arch} has no wgmma; it needs {WGMMA_ARCH}"
    elif len(wide) != 2 or len(inner) != 1:
        reason = f"an operand needs two extents above 1, one of them contiguous; the tile is {list(problem.tile)}"
    elif problem.swizzle not in SWIZZLES:
        reason = f"descriptors do not support the swizzle {problem.swizzle}"
    if reason is not None:
        where = (f"operand {operand}",)
        raise AdmissibilityError(Diagnostic("LA420", "the tile is not a wgmma operand", where, reason))
    other = next(dim for dim in wide if dim not in inner)
    k_dim, mn_dim = (inner[0], other) if k_major else (other, inner[0])
    statement = OperandProblem(
        operand,
        (problem.tile[mn_dim], problem.tile[k_dim]),
        (problem.smem_modes[mn_dim], problem.smem_modes[k_dim]),
        problem.swizzle,
        problem.dtype,
    )
    return OperandView(statement, mn_dim, k_dim)


def written_elements(plan: TensorMapPlan, view: OperandView) -> npt.NDArray[np.int64]:
    """Return, per element-sized slot from the tile base, the operand element mn * K + k that the plan writes, or -1.

    Raises: MalformedError: LA372. MismatchError: the plan does not land on its own tile.
    """
    _require_view(plan, view)
    walked = walk(plan)
    addresses, tile_coords = walked.addresses, walked.tile_coords
    size = view.problem.element_bits // 8
    written = np.full(int(addresses.max()) // size + 1, -1, dtype=np.int64)
    written[addresses // size] = tile_coords[view.mn_dim] * view.problem.shape[1] + tile_coords[view.k_dim]
    return written


def prove_handoff(copy: TensorMapPlan, view: OperandView, consumer: OperandPlan) -> Verdict:
    """Decide whether every element that ``wgmma`` reads at (mn, k) is tile element (mn, k) as written by the copy.

    Args:
        copy: A load plan; it is proved first.
        view: Which tile dimensions are MN and K.
        consumer: Descriptors for the same tile base.

    Returns:
        The verdict on the copy if that is not ``Proved``, otherwise the one on the handoff.
    """
    _require_view(copy, view)
    instance("consumer", consumer, OperandPlan)
    for name in ("operand", "shape", "dtype"):
        if getattr(consumer.problem, name) != getattr(view.problem, name):
            rule = f"must read the view's {name} {getattr(view.problem, name)}"
            raise malformed("consumer", rule, getattr(consumer.problem, name))
    proved = check(copy)
    if not isinstance(proved, Proved):
        return proved
    return wgmma_handoff(written_elements(copy, view), consumer)


def _require_view(plan: TensorMapPlan, view: OperandView) -> None:
    """Refuse a view that does not match the plan's tile in extents, element type and direction."""
    tile = instance("plan", plan, TensorMapPlan).problem.tile
    instance("view", view, OperandView)
    dims = (view.mn_dim, view.k_dim)
    others = [extent for dim, extent in enumerate(tile) if dim not in dims]
    if max(dims) >= len(tile) or tuple(tile[dim] for dim in dims) != view.problem.shape or math.prod(others) != 1:
        raise malformed("view", f"must be a view of the tile {list(tile)}", f"{view.problem.shape} at {dims}")
    if plan.direction != "load" or plan.problem.dtype != view.problem.dtype:
        raise malformed("view", f"must belong to a load of {plan.problem.dtype}", view.problem.dtype)
