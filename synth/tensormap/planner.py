"""Synthesize a proved TensorMap plan, or a refusal that names every broken rule and re-checked repairs.

Every returned plan has been proved by ``proofs.tensormap.check``. Among the candidates tried it has the best cost, in
this order: out-of-bounds class not ``lost``, number of issues, class ``exact``, dimensions of the tensor itself, fewest
documented rules broken, rank.

The search enumerates every box, and every assignment of moves to map dimensions: first those of the tensor itself
(merged, cut or walked in steps), which nearly always suffice. A tile is refused only after all of them.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from layoutalg.ground import clock
from layoutalg.ground.errors import BudgetError, Diagnostic, Repair
from layoutalg.ground.limits import PLAN_SECONDS
from layoutalg.ground.verdict import Proved, Refuted, Unknown
from layoutalg.proofs.fields import text as named
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProblem
from layoutalg.proofs.tensormap.checker import WEAKER, proved
from layoutalg.proofs.tensormap.listed_problem import ListedProblem, problem_from
from layoutalg.proofs.tensormap.plan import OOB_CLASSES
from layoutalg.synth.tensormap.assemble import assemble
from layoutalg.synth.tensormap.boxes import Box, boxes
from layoutalg.synth.tensormap.listed import plan_listed
from layoutalg.synth.tensormap.refusal import InadmissibleError, hard_violations, structural_violations
from layoutalg.synth.tensormap.repairs import proposals
from layoutalg.synth.tensormap.sight import Forms
from layoutalg.synth.tensormap.slices import sliced_plans, why_not_sliced
from layoutalg.synth.tensormap.variants import fold, seen, statements
from layoutalg.synth.tensormap.views import views
from layoutalg.targets.model import Violation
from layoutalg.targets.nvidia.tensormap import BIT_PRESERVING_DTYPES, INTERLEAVES, TensorMap, element_bytes, limits
from layoutalg.targets.nvidia.tensormap import violations as map_violations

OWN, OTHER = "the tensor's own dimensions", "other dimensions over the tensor's memory"
SLICES, LISTED = "slices of an interleaved map", "boxes fitted to the listed offsets"
"""Roads to a plan, in the order in which they are tried."""
_CALL = ("synthesize_tensormap",)
_Sized: TypeAlias = tuple[Forms, int, Box]
"""A box of a statement of the problem, and how many elements of the problem are one of the map."""


@dataclass(slots=True)
class _Task:
    """A problem and the outcome of its candidates.

    Args:
        stated: The problem.
        documented_only: Whether maps that break documented rules are skipped.
        undecided: Number of undecided candidates.
        broken: The documented rules broken by skipped candidates, each with its first violation.
    """

    stated: TensorMapProblem
    documented_only: bool
    undecided: int = 0
    broken: dict[str, Violation] = field(default_factory=dict)


def synthesize_tensormap(
    problem: TensorMapProblem | Mapping[str, object],
    *,
    seconds: float = PLAN_SECONDS,
    repair: bool = True,
    documented_only: bool = False,
    interleave: str = "NONE",
) -> TensorMapPlan:
    """Return a proved plan that realises the problem with TMA copies.

    Mathematically: find a TensorMap, start coordinates and shared offsets such that the box walks followed by the
    swizzle are the requested map from shared addresses to global elements, for every origin of the tile lattice.

    Args:
        problem: A ``TensorMapProblem`` or its JSON document (shapes and strides in elements, outermost first).
        seconds: Wall-time budget, repairs included; an earlier deadline of ``ground.clock`` still applies.
        repair: Whether to look for repairs of a refused problem (each is planned and proved).
        documented_only: Refuse maps that break documented rules, even if the measured chip accepts them.
        interleave: ``"NONE"``; ``"16B"`` or ``"32B"``: a map of 16- or 32-byte slices, within the class of
            ``synth.tensormap.slices``; ``"any"``: the first of the three that carries the tile.

    Raises: InadmissibleError: no plan exists (LA400). BudgetError: undecided in time (LA410, LA411).

    Example:
        >>> plan = synthesize_tensormap({
        ...     "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": "load",
        ...     "global": {"shape": [1024, 512], "stride": [512, 1], "dtype": "bf16", "base_align_bytes": 256},
        ...     "tile": [64, 64], "smem": {"modes": [[[64, 64]], [[64, 1]]], "swizzle": "128B"}})
        >>> plan.tensor_map.box, len(plan.issues), plan.oob, plan.expect_tx_bytes
        ((64, 64), 1, 'exact', 8192)
        >>> sliced = TensorMapProblem.of(((16, 56, 50, 8), None, "f16"), (1, 4, 16, 8))  # rows of 50 slices
        >>> synthesize_tensormap(sliced, interleave="16B").tensor_map.box
        (16, 4, 1, 1)

    Source: CUDA driver API, ``cuTensorMapEncodeTiled``; PTX ISA, tensor copies; measured behaviour in ``targets``.
    """
    stated = problem_from(problem)
    given = clock.checked_seconds(seconds, "seconds")
    named("interleave", interleave, (*INTERLEAVES, "any"))
    try:
        with clock.within(given):
            outcome = _plan(stated, documented_only) if interleave in ("NONE", "any") else []
            for kind in {"NONE": (), "any": ("16B", "32B")}.get(interleave, (interleave,)):
                if isinstance(outcome, list):
                    sliced = _sliced(stated, documented_only, kind)
                    outcome = sliced if isinstance(sliced, TensorMapPlan) or not outcome else outcome
            if isinstance(outcome, TensorMapPlan):
                return outcome
            if any(violation.rule == "ARCH_UNMEASURED" for violation in outcome):
                because = f"no {stated.arch} device was measured; the behaviour of its copy engine is unknown"
                raise BudgetError(Diagnostic("LA411", "gave up looking for a plan", _CALL, because))
            mendable = interleave == "NONE" and not isinstance(stated, ListedProblem)
            repairs = _checked_repairs(stated, outcome, documented_only) if repair and mendable else ()
    except BudgetError as error:
        if error.diagnostic.code != "LA001":
            raise
        because = f"{error.diagnostic.where[0]}: {error.diagnostic.because}"
        raise BudgetError(Diagnostic("LA410", "gave up looking for a plan", _CALL, because)) from None
    raise inadmissible(stated, outcome, repairs)


def inadmissible(
    problem: TensorMapProblem, violations: Sequence[Violation], repairs: tuple[Repair, ...] = ()
) -> InadmissibleError:
    """Return the error of a problem without a plan."""
    shape = f"tile {list(problem.tile)} of {problem.dtype} {list(problem.global_shape)}:{list(problem.global_strides)}"
    because = "\n         ".join(f"{violation.rule}: {violation.message}" for violation in violations)
    shown = tuple(replace(r, document=None) for r in repairs)
    diagnostic = Diagnostic("LA400", "no TensorMap carries this tile", (shape,), because, None, shown)
    return InadmissibleError(diagnostic, tuple(violations), repairs)


def _plan(stated: TensorMapProblem, documented_only: bool) -> TensorMapPlan | list[Violation]:
    """Return the plan, or every rule that the problem breaks."""
    clock.check("the search for a plan")
    if isinstance(stated, ListedProblem):
        listed = plan_listed(stated, documented_only)
        return replace(listed, road=LISTED) if isinstance(listed, TensorMapPlan) else listed
    problem = seen(stated)
    hard = hard_violations(problem)
    if not hard:
        task = _Task(stated, documented_only)
        found = _found(problem, task)
        settled = _settled(found, task)
        if settled is not None:
            return settled
    if hard and (_viewed(problem) or _viewed(fold(problem))):
        return hard  # nothing structural is broken
    structural = structural_violations(problem)
    if hard:  # drop the catch-all: a hard rule already explains the refusal
        structural = [violation for violation in structural if violation.rule != "NO_BOX"]
    return [*hard, *structural]


def _viewed(problem: TensorMapProblem) -> bool:
    """Whether a box has a map but for the alignment of its base."""
    forms, weakest = Forms(problem), "lost" if problem.direction == "load" else "weak"
    return any(any(views(forms, box, 1, weakest, plain=True)) for box in boxes(problem, problem.swizzle, 1))


def _sliced(stated: TensorMapProblem, documented_only: bool, interleave: str) -> TensorMapPlan | list[Violation]:
    """Return the plan with an interleaved map, or every rule that the problem breaks."""
    if isinstance(stated, ListedProblem):
        because = "interleaved maps are only searched for tiles made of digits, not for tables"
        raise BudgetError(Diagnostic("LA411", "gave up looking for a plan", _CALL, because))
    hard = hard_violations(stated)
    if hard:
        return hard
    task = _Task(stated, documented_only)
    found: TensorMapPlan | None = None
    for proposal in sliced_plans(stated, interleave):
        proved = _prove(replace(proposal, road=SLICES), task)
        if proved is not None and (found is None or _cost(proved) < _cost(found)):
            found = proved
        if found is not None and _suffices(found):
            return found
    settled = _settled(found, task)
    if settled is not None:
        return settled
    if task.undecided:
        raise BudgetError(Diagnostic("LA411", "gave up looking for a plan", _CALL, "the checker did not decide"))
    return [why_not_sliced(stated, interleave)]


def _settled(found: TensorMapPlan | None, task: _Task) -> TensorMapPlan | list[Violation] | None:
    """Return the plan, or what is wrong with the plans that were found; None if there were none."""
    if found is not None and _suffices(found):
        return found
    if task.broken or found is None:
        return list(task.broken.values()) or None
    text = f"the best plan has out-of-bounds class {found.oob}; {task.stated.oob_required} is required"
    return [Violation("OOB_CLASS", text, "oob_required")]


def _suffices(plan: TensorMapPlan) -> bool:
    return OOB_CLASSES.index(plan.oob) <= OOB_CLASSES.index(plan.problem.oob_required)


def _found(problem: TensorMapProblem, task: _Task) -> TensorMapPlan | None:
    """Return the best plan, possibly weaker than required; None if no map carries the tile."""
    best: TensorMapPlan | None = None
    tried: list[_Sized] = []
    for statement in statements(problem):  # maps with the tensor's own dimensions are preferred to any others
        found = _boxes(statement)
        tried += found
        best = _best_of(sorted(found, key=_plain_order), best, task, plain=True)
        other = statement.swizzle != problem.swizzle
        if best is not None and best.oob == "exact" and len(best.issues) == 1 and (other or not _cuts(best.tensor_map)):
            return best
    if best is not None and best.oob == "exact" and len(best.issues) == 1:
        return best
    tried.sort(key=_order)
    best = _best_of(tried, best, task)
    if best is None and task.stated.direction == "load":
        plans = (_first_proved(sized, "lost", task) for sized in tried)
        best = next((plan for plan in plans if plan is not None), None)
    if task.undecided and (best is None or not _suffices(best)):
        because = f"{task.undecided} candidate plans were neither proved nor refuted"  # no proof of impossibility
        raise BudgetError(Diagnostic("LA411", "gave up looking for a plan", _CALL, because))
    return best


def _cuts(tensor_map: TensorMap) -> bool:
    """Whether a swizzle span cuts a row of the tensor in two dimensions, which another swizzle may leave whole."""
    row = tensor_map.box[0] * element_bytes(tensor_map.dtype)
    return tensor_map.swizzle != "NONE" and tensor_map.strides_bytes[:1] == (row,)


def _best_of(found: list[_Sized], best: TensorMapPlan | None, task: _Task, plain: bool = False) -> TensorMapPlan | None:
    """Search the maps of every box that could improve class or issues, fewest issues first.

    ``plain``: or break fewer documented rules or, given the plan of an earlier statement, have a lower rank.
    """
    compared = 4 if not plain else 5 if best is None else 6
    for forms, ratio, box in found:
        thin = _thin(forms, box) and not (plain and box.own)  # as the boxes are ordered
        if thin and best is not None and _suffices(best) and best.oob != "lost":
            break
        for wanted in ("exact", "weak"):
            if best is None or _foreseen(forms.problem, wanted, box)[:compared] < _cost(best)[:compared]:
                best = _better(best, _first_proved((forms, ratio, box), wanted, task, plain, best))
    return best


def _first_proved(
    sized: _Sized, wanted: str, task: _Task, plain: bool = False, best: TensorMapPlan | None = None
) -> TensorMapPlan | None:
    """Return the first proved view of a box that could be better, fewer dimensions first."""
    forms, ratio, box = sized
    road = OWN if plain else OTHER
    plans = (replace(assemble(task.stated, view), road=road) for view in views(forms, box, ratio, wanted, plain))
    tried = (_prove(plan, task) for plan in plans if best is None or _cost(plan) < _cost(best))
    return next((plan for plan in tried if plan is not None), None)


def _boxes(problem: TensorMapProblem) -> list[_Sized]:
    """Every box of a statement with its element width, fewest issues first, thin ones last."""
    size = problem.element_bytes
    wide = problem.dtype in BIT_PRESERVING_DTYPES and (problem.direction == "store" or problem.oob_fill == "ZERO")
    forms = Forms(problem)
    long = forms.room[1] - forms.room[0] > limits.MAX_DIM * size
    wide = wide and (long or (problem.swizzle == "NONE" and math.prod(problem.tile) > limits.MAX_BOX))
    found = [
        (forms, ratio, box)
        for ratio in (1, 2, 4, 8)
        if ratio == 1 or (wide and ratio * size <= 8)
        for box in boxes(problem, problem.swizzle, ratio)
        if ratio == 1 or long or box.rows[0].count > limits.MAX_BOX
    ]
    return sorted(found, key=_order)


def _order(sized: _Sized) -> tuple[object, ...]:
    forms, ratio, box = sized
    return _thin(forms, box), box.issues, ratio, len(box.rows), not box.own, [-row.count for row in box.rows]


def _plain_order(sized: _Sized) -> tuple[object, ...]:
    """The order with rows of the tensor's own dimensions among the long ones."""
    thin, *rest = _order(sized)
    return thin and not sized[2].own, *rest


def _thin(forms: Forms, box: Box) -> bool:
    return box.thin(forms.problem.swizzle, forms.problem.element_bytes)


def _foreseen(problem: TensorMapProblem, wanted: str, box: Box) -> tuple[object, ...]:
    """Lower bound on the cost of a plan of this class and box."""
    short = OOB_CLASSES.index(wanted) > OOB_CLASSES.index(problem.oob_required)
    return short, wanted == "lost", box.issues, OOB_CLASSES.index(wanted), 0, len(box.rows)


def _prove(plan: TensorMapPlan, task: _Task) -> TensorMapPlan | None:
    """Return the plan with the class that the checker found, proved if that class suffices; None if it is wrong."""
    clock.check("the proof of a plan")
    if task.documented_only and plan.undocumented:
        for broken in map_violations(plan.tensor_map, target=plan.problem.arch, evidence="documented"):
            task.broken.setdefault(broken.rule, broken)
        return None
    plan, verdict = proved(plan)
    task.undecided += isinstance(verdict, Unknown)
    weaker = isinstance(verdict, Refuted) and verdict.witness["what"] == WEAKER
    return plan if weaker or isinstance(verdict, Proved) else None


def _cost(plan: TensorMapPlan) -> tuple[object, ...]:
    return (
        not _suffices(plan),
        plan.oob == "lost",
        len(plan.issues),
        OOB_CLASSES.index(plan.oob),
        len(plan.undocumented),
        len(plan.tensor_map.dims),
        plan.tensor_map.dtype != plan.problem.dtype,
    )


def _better(one: TensorMapPlan | None, two: TensorMapPlan | None) -> TensorMapPlan | None:
    if one is None or two is None:
        return one or two
    return two if _cost(two) < _cost(one) else one


def _checked_repairs(
    problem: TensorMapProblem, violations: list[Violation], documented_only: bool
) -> tuple[Repair, ...]:
    """Return the proposals whose repaired problem has a proved plan."""
    repairs = []
    for name, detail, repaired in proposals(problem, {violation.rule for violation in violations}):
        with contextlib.suppress(BudgetError):  # drop repairs that cannot be confirmed in time
            if isinstance(_plan(repaired, documented_only), TensorMapPlan):
                repairs.append(Repair(name, detail, repaired.to_json()))
    return tuple(repairs)
