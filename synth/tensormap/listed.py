"""Plan any table of shared offsets from pitches that fit a box, locating each copy by its innermost coordinate.

The map's base is the lowest start of a copy, and the rows of the box are its dimensions from the second on. Each copy
starts at innermost coordinate ``(start - base) / element bytes``, all others 0; the innermost extent ends with the
highest row. So the map spans exactly the tile's elements and carries every tile for which ``fits`` finds copies. The
checker decides, as for all plans.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from layoutalg.ground.errors import BudgetError, Diagnostic, TargetRuleError
from layoutalg.ground.refusal import Broken
from layoutalg.ground.verdict import Proved
from layoutalg.proofs.tensormap import ListedProblem, TensorMapPlan, TensorMapProblem
from layoutalg.proofs.tensormap.checker import proved
from layoutalg.proofs.tensormap.plan import Issue, OriginTerm
from layoutalg.synth.tensormap.assemble import filled_in
from layoutalg.synth.tensormap.pitches import CHUNK, Fit, fits
from layoutalg.targets.model import Violation
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.nvidia.tensormap import limits

MOST_FITS = 64
"""Limit on boxes tried."""
_CALL = ("synthesize_tensormap",)


def plan_listed(problem: ListedProblem, documented_only: bool = False) -> TensorMapPlan | list[Violation]:
    """Return a proved plan of a problem whose tile is a table, or the rule that all boxes break.

    Raises: BudgetError: boxes fit, but none of their plans was proved.
    """
    pitches = [step * stride for step, stride in zip(problem.element_strides, problem.global_strides, strict=True)]
    found = fits(problem.linear_offsets(), problem.element_bytes, strides=pitches)
    outcomes = list(itertools.islice(found, MOST_FITS))
    for fit in (outcome for outcome in outcomes if isinstance(outcome, Fit)):
        made = carried(problem, fit)
        if made is not None and not (documented_only and made.undocumented):
            return made
    first = next((outcome for outcome in outcomes if isinstance(outcome, Broken)), None)
    if first is not None and not any(isinstance(outcome, Fit) for outcome in outcomes):
        return [Violation(first.rule, first.reason, "smem.offsets")]
    because = f"{len(outcomes)} boxes fit the table, but no plan was proved for all tile origins"
    raise BudgetError(Diagnostic("LA411", "gave up looking for a plan", _CALL, because))


def carried(problem: TensorMapProblem, fit: Fit) -> TensorMapPlan | None:
    """Return the proved plan for a fit, with the class that the checker found.

    None if the map, its coordinates or the required class is out of range.
    """
    size = problem.element_bytes
    pitches = [step * stride for step, stride in zip(problem.element_strides, problem.global_strides, strict=True)]
    rows = _rows(fit.rows, size)
    if rows is None:
        return None
    strides = [CHUNK * rows[0]] * (len(rows) - len(fit.rows)) + [_dot(step, pitches) * size for step in fit.steps]
    firsts = [(problem.base_elem_offset + _dot(head, pitches)) * size for _, head in fit.starts]
    terms: list[OriginTerm] = []
    low = high = 0
    for dim, (multiple, (_, end)) in enumerate(zip(problem.origin_multiple, problem.bounds, strict=True)):
        slope = problem.global_strides[dim]
        if multiple and slope:
            terms.append((dim, slope, 1))
            reach = slope * ((end - 1) // multiple * multiple) * size
            low, high = low + min(0, reach), high + max(0, reach)
    base, row = min(firsts) + low, rows[0] * CHUNK // size
    extent = (max(firsts) + high - base) // size + row
    if base < 0 or base % CHUNK or extent > limits.MAX_DIM:
        return None
    try:
        tensor_map = hardware.TensorMap(
            dtype=problem.dtype,
            dims=(extent, *rows[1:]),
            strides_bytes=tuple(strides),
            box=(row, *rows[1:]),
            element_strides=(1,) * len(rows),
            swizzle=fit.swizzle,
            l2_promotion="128B",
            oob_fill=problem.oob_fill if problem.direction == "load" else "ZERO",
            base_address=base,
        )
        rest = (0,) * (len(rows) - 1)
        issues = [
            Issue(((first - base) // size, *rest), place) for first, (place, _) in zip(firsts, fit.starts, strict=True)
        ]
        plan = filled_in(problem, tensor_map, tuple(issues), (tuple(terms), *[()] * (len(rows) - 1)), "exact")
    except TargetRuleError:
        return None
    plan, verdict = proved(plan)
    return plan if isinstance(verdict, Proved) else None


def _rows(rows: tuple[int, ...], size: int) -> tuple[int, ...] | None:
    """Return the extents of a box (chunks, then rows); a first one too long for the map is split."""
    longest = limits.MAX_BOX * size // CHUNK
    if rows[0] <= longest:
        return rows
    part = next((part for part in range(longest, 0, -1) if rows[0] % part == 0 and rows[0] // part <= 256), 0)
    return (part, rows[0] // part, *rows[1:]) if part and len(rows) < limits.MAX_RANK else None


def _dot(form: Sequence[int], vector: Sequence[int]) -> int:
    return sum(a * b for a, b in zip(form, vector, strict=True))
