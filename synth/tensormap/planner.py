"""From a problem to a proved plan, or to a refusal that names every broken rule and re-checked repairs.

Main definitions: ``synthesize_tensormap``.

Main statements: a plan returned here has been proved by ``proofs.tensormap.check``; among the search's candidates it
has the best cost, in this order: out-of-bounds class not lost, issues, class exact, rank, documented rules kept.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from layoutalg.errors import BudgetError, Diagnostic, Repair
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProblem, check
from layoutalg.proofs.tensormap.problem import problem_from
from layoutalg.synth.tensormap.assemble import assemble
from layoutalg.synth.tensormap.axes import Frame, deeper_folds, frames, promotions
from layoutalg.synth.tensormap.refusal import InadmissibleError, hard_violations, structural_violations
from layoutalg.synth.tensormap.repairs import proposals
from layoutalg.synth.tensormap.search import Candidate, candidates
from layoutalg.targets.model import Violation
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.nvidia.tensormap import limits
from layoutalg.verdict import Proved, Refuted, Unknown

MAX_PROOFS = 24
MAX_FRAMES = 64
_CLASS_ORDER = {"exact": 0, "weak": 1, "lost": 2}


@dataclass(slots=True)
class _Clock:
    """The time budget of one call."""

    seconds: float
    started: float
    tried: int = 0
    undecided: int = 0

    def spend(self) -> None:
        self.tried += 1
        spent = time.monotonic() - self.started
        if spent > self.seconds:
            because = f"{self.tried} candidates in {spent:.2f} s of a budget of {self.seconds} s"
            raise BudgetError(Diagnostic("LA410", "gave up looking for a plan", ("synthesize_tensormap",), because))


def synthesize_tensormap(
    problem: TensorMapProblem | Mapping[str, object], *, budget_seconds: float = 30.0, repair: bool = True
) -> TensorMapPlan:
    """Return a proved plan that realises the problem with TMA copies.

    Mathematically: find a TensorMap, start coordinates and shared offsets such that the box walks followed by the
    swizzle are the requested map from shared addresses to global elements, for every origin of the tile lattice.

    Args:
        problem: A ``TensorMapProblem`` or its JSON document (shapes and strides in elements, outermost first).
        budget_seconds: Wall-clock budget.
        repair: Whether a refusal looks for repairs (each is planned and proved again).

    Raises:
        MalformedError: the document is not a problem; names the JSON pointer.
        InadmissibleError: no plan; ``.violations`` and ``.repairs``.
        BudgetError: gave up within the budget; says what was tried.

    Example:
        >>> plan = synthesize_tensormap({
        ...     "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": "load",
        ...     "global": {"shape": [1024, 512], "stride": [512, 1], "dtype": "bf16", "base_align_bytes": 256},
        ...     "tile": [64, 64], "smem": {"modes": [[[64, 64]], [[64, 1]]], "swizzle": "128B"}})
        >>> plan.tensor_map.box, len(plan.issues), plan.oob, plan.expect_tx_bytes
        ((64, 64), 1, 'exact', 8192)

    Source: CUDA driver API, ``cuTensorMapEncodeTiled``; PTX ISA, tensor copies; measured behaviour in ``targets``.
    """
    stated = problem_from(problem)
    clock = _Clock(budget_seconds, time.monotonic())
    outcome = _plan(stated, clock)
    if isinstance(outcome, TensorMapPlan):
        return outcome
    repairs = _checked_repairs(stated, outcome, clock) if repair else ()
    raise InadmissibleError(_diagnostic(stated, outcome, repairs), tuple(outcome), repairs)


def _diagnostic(problem: TensorMapProblem, violations: list[Violation], repairs: tuple[Repair, ...]) -> Diagnostic:
    shape = f"tile {list(problem.tile)} of {problem.dtype} {list(problem.global_shape)}:{list(problem.global_strides)}"
    because = "\n         ".join(f"{violation.rule}: {violation.message}" for violation in violations)
    shown = tuple(replace(r, document=None) for r in repairs)
    return Diagnostic("LA400", "no TensorMap carries this tile", (shape,), because, None, shown)


def _plan(problem: TensorMapProblem, clock: _Clock) -> TensorMapPlan | list[Violation]:
    """Return the plan, or every rule that the problem breaks."""
    hard = hard_violations(problem)
    found = None if hard else _best(problem, clock)
    if found is not None:
        order = _CLASS_ORDER[found.oob], _CLASS_ORDER[problem.oob_required]
        if order[0] <= order[1]:
            return found
        text = f"out of bounds, the best plan is {found.oob}; {problem.oob_required} was required"
        return [Violation("OOB_CLASS", text, "oob_required")]
    if not hard and clock.undecided:  # candidates were left without a verdict: that is no proof of impossibility
        because = f"{clock.undecided} candidate plans were neither proved nor refuted"
        raise BudgetError(Diagnostic("LA411", "gave up looking for a plan", ("synthesize_tensormap",), because))
    if hard and any(next(candidates(frame, problem.swizzle), None) for frame in frames(problem)):
        return hard  # a box exists: nothing structural is broken
    structural = structural_violations(problem)
    if hard:  # the catch-all means nothing where a hard rule already explains the refusal
        structural = [violation for violation in structural if violation.rule != "NO_BOX"]
    return [*hard, *structural]


def _best(problem: TensorMapProblem, clock: _Clock) -> TensorMapPlan | None:
    """Search plain elements under the requested swizzle; wider elements and equal swizzles where they can help."""
    best: TensorMapPlan | None = None
    for swizzle in _swizzles(problem):
        plain = list(frames(problem))
        best = _better(best, _proved(problem, _collect(plain, swizzle, clock), clock))
        if best is None or len(best.issues) > 1:
            wide = [wider for frame in plain for wider in promotions(problem, frame)]
            best = _better(best, _proved(problem, _collect(wide, swizzle, clock), clock))
        if best is None or len(best.issues) > 1:
            folded = list(dict.fromkeys(deeper_folds(problem)))[:MAX_FRAMES]
            best = _better(best, _proved(problem, _collect(folded, swizzle, clock), clock))
        if best is not None and len(best.issues) == 1:
            break
    return best


def _swizzles(problem: TensorMapProblem) -> Iterator[str]:
    """The requested swizzle, then those that agree with it on every address of the tile."""
    if limits.swizzle_supported(problem.swizzle, problem.arch):
        yield problem.swizzle
    linear = problem.linear_offsets() * problem.element_bytes
    wanted = problem.addresses()
    for mode in hardware.SWIZZLES:
        if mode == problem.swizzle or not limits.swizzle_supported(mode, problem.arch):
            continue
        if np.array_equal(hardware.apply_swizzle(mode, linear), wanted):
            yield mode


def _collect(choices: list[Frame], swizzle: str, clock: _Clock) -> list[Candidate]:
    found: list[Candidate] = []
    for frame in choices:
        for candidate in candidates(frame, swizzle):
            clock.spend()
            found.append(candidate)
    return found


def _guess(candidate: Candidate) -> str:
    """A coordinate moved by two tile dimensions can only be right for tiles that start in bounds."""
    return "weak" if any(len(axis.moves) > 1 for axis in candidate.frame.axes) else "exact"


def _proved(problem: TensorMapProblem, found: list[Candidate], clock: _Clock) -> TensorMapPlan | None:
    """Return the best candidate that the checker proves."""
    best: TensorMapPlan | None = None
    ranked = sorted(found, key=lambda c: (c.issues, _CLASS_ORDER[_guess(c)], c.rank, c.frame.ratio, -_box_volume(c)))
    for attempt, candidate in enumerate(ranked):
        settled = best is not None and (
            best.oob == "exact"
            or (best.oob == "weak" and (candidate.issues > len(best.issues) or _guess(candidate) == "weak"))
        )
        if settled or (best is not None and attempt >= MAX_PROOFS):
            break
        clock.spend()
        best = _better(best, _prove(problem, assemble(problem, candidate, _guess(candidate)), clock))
    return best


def _box_volume(candidate: Candidate) -> int:
    total = 1
    for carried in candidate.carried:
        total *= carried.extent
    return total


def _prove(problem: TensorMapProblem, plan: TensorMapPlan, clock: _Clock) -> TensorMapPlan | None:
    """Return the plan with its certificate, its class set to what the checker found; None where it is not proved."""
    lenient = plan.with_changes(problem=replace(problem, oob_required="lost"))
    verdict = check(lenient)
    if isinstance(verdict, Refuted) and verdict.witness.get("field") == "oob":
        lenient = lenient.with_changes(oob=verdict.witness["expected"])
        verdict = check(lenient)
    if not isinstance(verdict, Proved):
        clock.undecided += isinstance(verdict, Unknown)
        return None
    stated = lenient.with_changes(problem=problem)
    return stated.with_changes(certificate=dict(verdict.certificate) | {"digest": stated.digest()})


def _cost(plan: TensorMapPlan) -> tuple[object, ...]:
    return (
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


def _checked_repairs(problem: TensorMapProblem, violations: list[Violation], clock: _Clock) -> tuple[Repair, ...]:
    """Return the proposals whose repaired problem has a proved plan."""
    repairs = []
    for name, detail, repaired in proposals(problem, {violation.rule for violation in violations}):
        clock.spend()
        with contextlib.suppress(BudgetError):  # a repair that cannot be confirmed in time is not shown
            if isinstance(_plan(repaired, replace(clock, undecided=0)), TensorMapPlan):
                repairs.append(Repair(name, detail, repaired.to_json()))
    return tuple(repairs)
