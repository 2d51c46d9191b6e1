"""Synthesize a proved TensorMap plan, or a refusal that names every broken rule and re-checked repairs.

Every returned plan has been proved by ``proofs.tensormap.check``. Among the candidates tried it has the best cost, in
this order: out-of-bounds class not ``lost``, number of issues, class ``exact``, rank, no undocumented rules.

There are two searches. The first uses the tensor's dimensions as the map's (merged,
cut or widened in simple ways) and nearly always succeeds. If it finds nothing, or only a weaker class than required,
the second enumerates every box and every assignment of moves to map dimensions. A tile is refused only after that.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from layoutalg.ground import clock
from layoutalg.ground.errors import BudgetError, Diagnostic, Repair, TargetRuleError
from layoutalg.ground.limits import PLAN_SECONDS
from layoutalg.ground.verdict import Proved, Refuted, Unknown
from layoutalg.proofs.fields import text as named
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProblem, check
from layoutalg.proofs.tensormap.listed_problem import ListedProblem, problem_from
from layoutalg.synth.tensormap.assemble import assemble, assemble_view
from layoutalg.synth.tensormap.axes import frames
from layoutalg.synth.tensormap.boxes import Box, boxes
from layoutalg.synth.tensormap.lines import room_for
from layoutalg.synth.tensormap.listed import plan_listed
from layoutalg.synth.tensormap.refusal import InadmissibleError, hard_violations, structural_violations
from layoutalg.synth.tensormap.repairs import proposals
from layoutalg.synth.tensormap.search import Candidate, candidates
from layoutalg.synth.tensormap.sight import Forms, sights
from layoutalg.synth.tensormap.slices import sliced_plans, why_not_sliced
from layoutalg.synth.tensormap.variants import seen, variants
from layoutalg.synth.tensormap.views import views
from layoutalg.targets.model import Violation
from layoutalg.targets.nvidia.tensormap import BIT_PRESERVING_DTYPES, INTERLEAVES, limits
from layoutalg.targets.nvidia.tensormap import violations as map_violations

_CLASS_ORDER = {"exact": 0, "weak": 1, "lost": 2}
_CALL = ("synthesize_tensormap",)


@dataclass(slots=True)
class _Task:
    """A problem and the outcome of its candidates.

    Args:
        stated: The problem.
        lenient: The same, accepting any class.
        documented_only: Whether maps that break documented rules are skipped.
        undecided: Number of undecided candidates.
        broken: The documented rules broken by skipped candidates, each with its first violation.
    """

    stated: TensorMapProblem
    lenient: TensorMapProblem
    documented_only: bool
    undecided: int = 0
    broken: dict[str, Violation] = field(default_factory=dict)


def synthesize_tensormap(
    problem: TensorMapProblem | Mapping[str, object],
    *,
    budget_seconds: float = PLAN_SECONDS,
    repair: bool = True,
    documented_only: bool = False,
    interleave: str = "NONE",
) -> TensorMapPlan:
    """Return a proved plan that realises the problem with TMA copies.

    Mathematically: find a TensorMap, start coordinates and shared offsets such that the box walks followed by the
    swizzle are the requested map from shared addresses to global elements, for every origin of the tile lattice.

    Args:
        problem: A ``TensorMapProblem`` or its JSON document (shapes and strides in elements, outermost first).
        budget_seconds: Wall-time budget, repairs included; an earlier deadline of ``ground.clock`` still applies.
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
    given = clock.checked_seconds(budget_seconds, "budget_seconds")
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
    raise InadmissibleError(_diagnostic(stated, outcome, repairs), tuple(outcome), repairs)


def tensormap(
    tensor: object,
    tile: Sequence[int],
    smem: object = None,
    target: str = "sm_90a",
    direction: str = "load",
    *,
    budget_seconds: float = PLAN_SECONDS,
    repair: bool = True,
    documented_only: bool = False,
    interleave: str = "NONE",
    **options: Any,
) -> TensorMapPlan:
    """Return a proved plan that copies tiles of a tensor to or from a shared-memory layout.

    Args:
        tensor: A ``layoutalg.Tensor``, ``(shape, stride, dtype)`` or an array of another library.
        tile: Tile extents in elements, outermost dimension first.
        smem: A layout of any family or its text: tile coordinates, outermost first, to element offsets. Defaults to
            row-major.
        target: Architecture.
        direction: ``"load"`` (global to shared) or ``"store"``.
        budget_seconds: As for ``synthesize_tensormap``.
        repair: As for ``synthesize_tensormap``.
        documented_only: As for ``synthesize_tensormap``.
        interleave: As for ``synthesize_tensormap``.
        options: As for ``TensorMapProblem.of``: ``swizzle``, ``axes``, ``bounds``, ``element_strides``, ...

    Raises: As ``TensorMapProblem.of`` and ``synthesize_tensormap``.

    Example:
        >>> plan = tensormap(((4096, 8192), None, "bf16"), (128, 64), "Sw<3,3,3> o 0 o (128,64):(64,1)")
        >>> plan.tensor_map.box, plan.tensor_map.swizzle, plan.expect_tx_bytes
        ((64, 128), '128B', 16384)
    """
    problem = TensorMapProblem.of(tensor, tile, smem, arch=target, direction=direction, **options)
    return synthesize_tensormap(
        problem, budget_seconds=budget_seconds, repair=repair, documented_only=documented_only, interleave=interleave
    )


def _diagnostic(problem: TensorMapProblem, violations: list[Violation], repairs: tuple[Repair, ...]) -> Diagnostic:
    shape = f"tile {list(problem.tile)} of {problem.dtype} {list(problem.global_shape)}:{list(problem.global_strides)}"
    because = "\n         ".join(f"{violation.rule}: {violation.message}" for violation in violations)
    shown = tuple(replace(r, document=None) for r in repairs)
    return Diagnostic("LA400", "no TensorMap carries this tile", (shape,), because, None, shown)


def _plan(stated: TensorMapProblem, documented_only: bool) -> TensorMapPlan | list[Violation]:
    """Return the plan, or every rule that the problem breaks."""
    clock.check("the search for a plan")
    if isinstance(stated, ListedProblem):
        return plan_listed(stated, documented_only)
    problem = seen(stated)
    hard = hard_violations(problem)
    if not hard:
        task = _Task(
            stated, stated if stated.oob_required == "lost" else replace(stated, oob_required="lost"), documented_only
        )
        found = _found(problem, task)
        if found is not None and _suffices(found):
            return found
        if task.broken:
            return list(task.broken.values())
        if found is not None:
            text = f"the best plan has out-of-bounds class {found.oob}; {problem.oob_required} is required"
            return [Violation("OOB_CLASS", text, "oob_required")]
    if hard and any(next(candidates(frame, problem.swizzle), None) for frame in frames(problem)):
        return hard  # a box exists: nothing structural is broken
    structural = structural_violations(problem)
    if hard:  # drop the catch-all: a hard rule already explains the refusal
        structural = [violation for violation in structural if violation.rule != "NO_BOX"]
    return [*hard, *structural]


def _sliced(stated: TensorMapProblem, documented_only: bool, interleave: str) -> TensorMapPlan | list[Violation]:
    """Return the plan with an interleaved map, or every rule that the problem breaks."""
    if isinstance(stated, ListedProblem):
        because = "interleaved maps are only searched for tiles made of digits, not for tables"
        raise BudgetError(Diagnostic("LA411", "gave up looking for a plan", _CALL, because))
    hard = hard_violations(stated)
    if hard:
        return hard
    task = _Task(stated, replace(stated, oob_required="lost"), documented_only)
    found: TensorMapPlan | None = None
    for proposal in sliced_plans(stated, interleave):
        proved = _prove(proposal, task)
        if proved is not None and (found is None or _cost(proved) < _cost(found)):
            found = proved
        if found is not None and _suffices(found):
            return found
    if task.broken:
        return list(task.broken.values())
    if found is not None:
        return [Violation("OOB_CLASS", f"the best plan has out-of-bounds class {found.oob}", "oob_required")]
    if task.undecided:
        raise BudgetError(Diagnostic("LA411", "gave up looking for a plan", _CALL, "the checker did not decide"))
    return [why_not_sliced(stated, interleave)]


def _suffices(plan: TensorMapPlan) -> bool:
    return _CLASS_ORDER[plan.oob] <= _CLASS_ORDER[plan.problem.oob_required]


def _found(problem: TensorMapProblem, task: _Task) -> TensorMapPlan | None:
    """Return the best plan, possibly weaker than required; None if no map carries the tile."""
    best = _plain(variants(problem), task)
    if best is None or best.oob != "exact" or len(best.issues) > 1:
        best = _viewed(variants(problem), best, task)
    if task.undecided and (best is None or not _suffices(best)):
        because = f"{task.undecided} candidate plans were neither proved nor refuted"  # no proof of impossibility
        raise BudgetError(Diagnostic("LA411", "gave up looking for a plan", _CALL, because))
    return best


def _plain(problems: Iterable[TensorMapProblem], task: _Task) -> TensorMapPlan | None:
    """Search the plain frames of every variant of a problem."""
    best: TensorMapPlan | None = None
    for problem in problems:
        found = [candidate for frame in frames(problem) for candidate in candidates(frame, problem.swizzle)]
        best = _better(best, _proved(problem, found, task))
        if best is not None and len(best.issues) == 1:
            break
    return best


def _viewed(problems: Iterable[TensorMapProblem], best: TensorMapPlan | None, task: _Task) -> TensorMapPlan | None:
    """Search every map for every box that could improve class or issues, fewest issues first."""
    found = _boxes(problems)
    for forms, ratio, box in found:
        thin = box.thin(forms.problem.swizzle, forms.problem.element_bytes)
        if thin and best is not None and _suffices(best) and best.oob != "lost":
            break
        for wanted in ("exact", "weak"):
            if best is None or _foreseen(forms.problem, wanted, box) < _cost(best)[:4]:
                best = _better(best, _first_proved(forms, box, ratio, wanted, task))
    if best is None and task.stated.direction == "load":
        for forms, ratio, box in found:
            best = best or _first_proved(forms, box, ratio, "lost", task)
    return best


def _first_proved(forms: Forms, box: Box, ratio: int, wanted: str, task: _Task) -> TensorMapPlan | None:
    """Return the first proved view of a box, fewer dimensions first."""
    for view in views(forms, box, ratio, wanted):
        plan = _prove(assemble_view(task.stated, view), task)
        if plan is not None:
            return plan
    return None


def _boxes(problems: Iterable[TensorMapProblem]) -> list[tuple[Forms, int, Box]]:
    """Every box of every variant with its element width, fewest issues first, thin ones last."""
    found = []
    for problem in problems:
        size = problem.element_bytes
        wide = problem.dtype in BIT_PRESERVING_DTYPES
        wide &= problem.direction == "store" or problem.oob_fill == "ZERO"
        below, above = room_for(problem)
        long = above - below > limits.MAX_DIM * size
        forms = Forms(problem, sights(problem))
        for ratio in (1, 2, 4, 8):
            if ratio == 1 or (wide and ratio * size <= 8):
                for box in boxes(problem, problem.swizzle, ratio):
                    if ratio == 1 or long or box.rows[0].count > limits.MAX_BOX:
                        found.append((forms, ratio, box))

    def order(entry: tuple[Forms, int, Box]) -> tuple[object, ...]:
        forms, ratio, box = entry
        thin = box.thin(forms.problem.swizzle, forms.problem.element_bytes)
        return thin, box.issues, ratio, len(box.rows), -box.rows[0].count

    return sorted(found, key=order)


def _foreseen(problem: TensorMapProblem, wanted: str, box: Box) -> tuple[object, ...]:
    """Lower bound on the cost of a plan of this class and box."""
    short = _CLASS_ORDER[wanted] > _CLASS_ORDER[problem.oob_required]
    return short, wanted == "lost", box.issues, _CLASS_ORDER[wanted]


def _proved(problem: TensorMapProblem, found: list[Candidate], task: _Task) -> TensorMapPlan | None:
    """Return the best candidate that the checker proves."""
    best: TensorMapPlan | None = None
    for candidate in sorted(found, key=lambda c: (c.issues, c.rank, -_box_volume(c))):
        if best is not None and (best.oob == "exact" or (best.oob == "weak" and candidate.issues > len(best.issues))):
            break
        with contextlib.suppress(TargetRuleError):  # maps that the target rejects are no candidates
            best = _better(best, _prove(assemble(task.stated, problem, candidate), task))
    return best


def _box_volume(candidate: Candidate) -> int:
    return math.prod(carried.extent for carried in candidate.carried)


def _prove(plan: TensorMapPlan, task: _Task) -> TensorMapPlan | None:
    """Return the plan with its certificate and the class that the checker found; None if it is not proved."""
    clock.check("the proof of a plan")
    if task.documented_only and plan.undocumented:
        for broken in map_violations(plan.tensor_map, target=plan.problem.arch, evidence="documented"):
            task.broken.setdefault(broken.rule, broken)
        return None
    lenient = plan if task.lenient is task.stated else plan.with_changes(problem=task.lenient)
    verdict = check(lenient)
    if isinstance(verdict, Refuted) and verdict.witness.get("field") == "oob":
        lenient = lenient.with_changes(oob=verdict.witness["expected"])
        verdict = check(lenient)
    if not isinstance(verdict, Proved):
        task.undecided += isinstance(verdict, Unknown)
        return None
    certificate = dict(verdict.certificate)
    if task.lenient is not task.stated:
        lenient = lenient.with_changes(problem=task.stated)
        certificate["digest"] = lenient.digest()
    return lenient.with_changes(certificate=certificate)


def _cost(plan: TensorMapPlan) -> tuple[object, ...]:
    return (
        not _suffices(plan),
        plan.oob == "lost",
        len(plan.issues),
        _CLASS_ORDER[plan.oob],
        len(plan.tensor_map.dims),
        len(plan.undocumented),
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
