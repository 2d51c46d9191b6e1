"""Synthesize one plan for all sizes: generalise plans at sample sizes, then let the checker derive their guards.

Every returned plan has been proved by ``proofs.symbolic.checker.prove``. Its guard is the weakest for its map, and no
clause follows from the others by the rules of ``proofs.symbolic.guard``.

The concrete planner runs first at sizes that are multiples of the tile, then at the least divisible sizes that still
have a plan. Plans that agree at several sizes are generalised, and the result's guard is derived.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from layoutalg.ground import clock
from layoutalg.ground.assumptions import Assumptions
from layoutalg.ground.conditions import divisible
from layoutalg.ground.decide import decide
from layoutalg.ground.errors import BudgetError, Diagnostic, MalformedError, Repair
from layoutalg.ground.limits import PLAN_SECONDS
from layoutalg.ground.verdict import Proved
from layoutalg.proofs.symbolic.checker import base_case, guard_implies_quickly, prove
from layoutalg.proofs.symbolic.guard import Clause, Guard, minimal, upper_bound
from layoutalg.proofs.symbolic.obligations import obligations
from layoutalg.proofs.symbolic.plan import SymbolicPlan, evaluated
from layoutalg.proofs.symbolic.problem import CHECK, SymbolicProblem
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProblem
from layoutalg.proofs.tensormap.checker import proved
from layoutalg.proofs.tensormap.plan import OOB_CLASSES
from layoutalg.proofs.tensormap.walk import MismatchError, UndecidedError
from layoutalg.synth.symbolic.lift import lifted
from layoutalg.synth.symbolic.samples import sample, tile_grains, wished
from layoutalg.synth.tensormap.assemble import assemble
from layoutalg.synth.tensormap.boxes import boxes
from layoutalg.synth.tensormap.planner import synthesize_tensormap
from layoutalg.synth.tensormap.refusal import InadmissibleError
from layoutalg.synth.tensormap.sight import Forms
from layoutalg.synth.tensormap.views import View, views
from layoutalg.targets.model import Violation
from layoutalg.targets.nvidia.tensormap import limits

GRAINS = (1, 2, 4, 8, 16, 32)
MOST_CANDIDATES = 8
_OF_SIZES = frozenset({"STRIDE_ALIGN", "STRIDE_RANGE", "STORE_CHUNK", "STORE_OVERLAP", "STORE", "DIM_RANGE", "RANK"})
_OF_SIZES |= {"CUT_EXTENT", "NO_BOX", "OOB_CLASS"}
"""Rules that may hold at other sizes."""
TURNS = 3


@dataclass(slots=True)
class _Search:
    """Outcome of the samples: symbolic plans, the first refusal, reasons why candidates were not proved."""

    problem: SymbolicProblem
    cases: list[SymbolicPlan] = field(default_factory=list)
    refusal: InadmissibleError | None = None
    open: list[str] = field(default_factory=list)
    known: Assumptions | None = None


def synthesize_symbolic(
    problem: SymbolicProblem, *, seconds: float = PLAN_SECONDS, repair: bool = True, for_all: bool = False
) -> SymbolicPlan:
    """Return a proved plan for all sizes that meet its guard.

    Mathematically: find a TensorMap with polynomials for extents and strides, and the weakest guard under which it
    realises the problem.

    Args:
        problem: The statement.
        seconds: Wall-time budget; an earlier deadline of ``ground.clock`` still applies.
        repair: Whether to look for repairs of a refused problem (each is planned and proved).
        for_all: Refuse if the guard requires more than the assumptions and the hardware's ranges.

    Raises: InadmissibleError: no plan exists (LA400). BudgetError: undecided (LA410, LA864).

    Example:
        >>> from layoutalg.proofs.tensor import Tensor
        >>> plan = synthesize_symbolic(SymbolicProblem.of(Tensor(("M", "K"), assume=("K % 8 == 0",)), (64, 64)))
        >>> print(plan.guard)
        K % 8 == 0, 1 <= K <= 2**31, 1 <= M <= 2**31

    Source: CUDA driver API, ``cuTensorMapEncodeTiled``; PTX ISA, tensor copies; measured behaviour in ``targets``.
    """
    CHECK.kind(problem, SymbolicProblem, "problem")
    given = clock.checked_seconds(seconds, "seconds")
    try:
        with clock.within(given):
            search = _searched(problem)
            if search.cases:
                plan = _joined(search.cases)
                asked = [clause for clause in plan.guard.open_under(problem.assumptions) if not _range(clause)]
                if not for_all or not asked:
                    return plan
                raise _asks_more(plan, asked)
            if search.refusal is not None and not search.open and _for_all_sizes(problem, search.refusal):
                raise _refusal(problem, search.refusal, _repairs(problem) if repair else ())
    except BudgetError as error:
        if error.diagnostic.code != "LA001":
            raise
        because = f"{error.diagnostic.where[0]}: {error.diagnostic.because}"
        raise BudgetError(Diagnostic("LA410", "gave up looking for a plan", (str(problem),), because)) from None
    refused = [f"refused at {search.refusal.diagnostic.where[0]}"] if search.refusal is not None else []
    because = "; ".join(dict.fromkeys([*search.open, *refused])) or "no sample sizes were found"
    raise BudgetError(
        Diagnostic("LA864", "no plan for all sizes was found, and none excluded", (str(problem),), because)
    )


def _searched(problem: SymbolicProblem) -> _Search:
    """Try sizes that are whole tiles, then the least divisible sizes that have a plan."""
    search = _Search(problem)
    rich = tile_grains(problem)
    _look(rich, search)
    if not search.cases:
        search.known = wished(problem)  # sums such as K + 4 may be whole chunks when K is not
        _look(rich, search)
    if search.cases and _covers(search.cases[-1]):
        return search
    least = _least_grains(rich, search)
    for way in (None, "copies", "dimensions"):
        if least is not None:
            _look(least, search, way)
    return search


def _for_all_sizes(problem: SymbolicProblem, error: InadmissibleError) -> bool:
    """Whether a refusal at some sizes holds for all sizes that the assumptions allow."""
    pattern = problem.pattern
    for found in error.violations:
        if found.rule not in _OF_SIZES:
            return True  # one rule that does not depend on sizes is enough
    for found in error.violations:
        dim = found.position
        if dim is None or found.rule not in ("STRIDE_ALIGN", "STORE_CHUNK"):
            continue
        low, high = problem.bounds[dim]
        moving = problem.tensor.strides[dim] if found.rule == "STRIDE_ALIGN" else high
        (value,) = evaluated((moving,))
        value = value * pattern.element_strides[dim] if found.rule == "STRIDE_ALIGN" else value - low
        bytes_needed = divisible(value * pattern.element_bytes, limits.GLOBAL_ALIGN_BYTES)
        if pattern.tile[dim] > 1 and decide(problem.assumptions, bytes_needed).status is False:
            return True
    return False


def _covers(case: SymbolicPlan) -> bool:
    """Whether the assumptions imply the guard except for ranges."""
    return all(_range(clause) for clause in case.guard.open_under(case.assumptions))


def _look(grains: dict[str, int], search: _Search, fewest: str | None = None) -> None:
    """Plan at several sizes, generalise, and keep the result if its guard is weaker than the last one."""
    problem = search.problem
    clock.check("the search for a symbolic plan")
    drawn = [sizes for turn in range(TURNS) if (sizes := sample(problem, grains, turn, search.known)) is not None]
    if not drawn or all(any(case.guard.broken_at(sizes) is None for case in search.cases) for sizes in drawn):
        return
    plans = _planned(problem, drawn, search, fewest)
    case = None if plans is None else _case(problem, plans, drawn, search)
    if case is None:
        return
    known = Guard(search.cases[-1].guard.clauses, case.guard.names) if search.cases else None
    asked = [clause for clause in case.guard.clauses if not _range(clause)]
    if known is None or all(guard_implies_quickly(known, clause) for clause in asked):
        search.cases.append(case)


def _least_grains(rich: dict[str, int], search: _Search) -> dict[str, int] | None:
    """Make the sizes less divisible, name by name, while plans exist; None if there are none."""
    problem, found = search.problem, dict(rich)
    some = bool(search.cases)
    for name in problem.names:
        for grain in GRAINS:
            if grain >= found[name]:
                break
            sizes = sample(problem, found | {name: grain}, 0, search.known)
            if sizes is None:
                continue
            if _planned(problem, [sizes], search) is not None:
                found[name], some = grain, True
                break
    return found if some else None


def _planned(
    problem: SymbolicProblem, drawn: list[dict[str, int]], search: _Search, fewest: str | None = None
) -> list[TensorMapPlan] | None:
    plans = []
    for sizes in drawn:
        try:
            at = problem.at(sizes)
            plan = plain_plan(at, fewest) if fewest else synthesize_tensormap(at, repair=False)
        except InadmissibleError as error:
            search.refusal = search.refusal or error
            return None
        if plan is None:
            return None
        plans.append(plan)
    return plans


def plain_plan(problem: TensorMapProblem, fewest: str) -> TensorMapPlan | None:
    """Return a plan whose map needs weak guards: with the tensor's own dimensions if there is one, else short rows.

    Args:
        problem: The problem at some sizes.
        fewest: What a plan has as few of as possible: ``"copies"``, or first ``"dimensions"`` of the map.
    """
    forms = Forms(problem)
    found: list[View] = []
    for box in boxes(problem, problem.swizzle, 1):
        best = (view for wanted in OOB_CLASSES for view in views(forms, box, 1, wanted, plain=True))
        found += itertools.islice(best, 1)

    def order(view: View) -> tuple[object, ...]:
        size = view.box.issues, len(view.lines)
        return not view.box.own, size if fewest == "copies" else size[::-1], [row.count for row in view.box.rows]

    for view in sorted(found, key=order)[:MOST_CANDIDATES]:
        plan, verdict = proved(assemble(problem, view))
        if isinstance(verdict, Proved):
            return plan
    return None


def _case(
    problem: SymbolicProblem, plans: list[TensorMapPlan], drawn: list[dict[str, int]], search: _Search
) -> SymbolicPlan | None:
    """Generalise concrete plans to a symbolic plan with guard and proof."""
    form = lifted(problem, plans, drawn) if len(plans) > 1 else None
    if form is None:
        search.open.append("the plans at different sizes do not generalise to one map")
        return None
    try:
        found = obligations(form, base_case(form.with_changes(oob="lost"), drawn[0]))
    except (MismatchError, UndecidedError) as error:
        search.open.append(str(error))
        return None
    answer = form.with_changes(oob=found.oob, guard=minimal(found.clauses, problem.names))
    if found.exact_where:
        exact = minimal((*found.clauses, *((entry,) for entry in found.exact_where)), problem.names)
        answer = answer.with_changes(better=tuple(_certified(form.with_changes(oob="exact", guard=exact), search)))
    return next(iter(_certified(answer, search)), None)


def _certified(plan: SymbolicPlan, search: _Search) -> Iterator[SymbolicPlan]:
    if OOB_CLASSES.index(plan.oob) > OOB_CLASSES.index(plan.problem.pattern.oob_required):
        if plan.better:
            yield plan.better[-1].with_changes(better=plan.better[:-1], certificate=None)
        return
    verdict = prove(plan)
    if isinstance(verdict, Proved):
        yield plan.with_changes(certificate=verdict.certificate)
    else:
        search.open.append(str(verdict))


def _joined(cases: list[SymbolicPlan]) -> SymbolicPlan:
    """Return the case with the weakest guard, plus those that are better at some of its sizes."""
    last = cases[-1]
    better = []
    for case in cases[:-1]:
        if (OOB_CLASSES.index(case.oob), len(case.issues)) < (OOB_CLASSES.index(last.oob), len(last.issues)):
            inside = minimal((*case.guard.clauses, *last.guard.clauses), case.guard.names)
            found = case.with_changes(guard=inside, better=(), certificate=None)
            verdict = prove(found)  # fails if the two guards exclude each other
            if isinstance(verdict, Proved):
                better.append(found.with_changes(certificate=verdict.certificate))
    if not better:
        return last
    joined = last.with_changes(better=(*better, *last.better), certificate=None)
    verdict = prove(joined)
    return joined.with_changes(certificate=verdict.certificate) if isinstance(verdict, Proved) else last


def _range(clause: Clause) -> bool:
    """Whether a clause is only a hardware range."""
    return all(upper_bound(entry) is not None for entry in clause)


def _refusal(problem: SymbolicProblem, error: InadmissibleError, repairs: tuple[Repair, ...]) -> InadmissibleError:
    because = "\n         ".join(f"{violation.rule}: {violation.message}" for violation in error.violations)
    at = error.diagnostic.where
    shown = tuple(replace(entry, document=None) for entry in repairs)
    what = "no TensorMap carries this tile at the sizes that the assumptions allow"
    return InadmissibleError(
        Diagnostic("LA400", what, (str(problem), *at), because, None, shown), error.violations, repairs
    )


def _asks_more(plan: SymbolicPlan, asked: list[Clause]) -> InadmissibleError:
    texts = [" or ".join(map(str, clause)) for clause in asked]
    rule = [Violation("UNDECIDED_SIZES", f"{text} does not follow from the assumptions", "assume") for text in texts]
    repairs = tuple(_assume(plan.problem, asked))
    because = "; ".join(entry.message for entry in rule)
    shown = tuple(replace(entry, document=None) for entry in repairs)
    what = "no plan was found for all sizes that the assumptions allow"
    diagnostic = Diagnostic("LA400", what, (str(plan.problem),), because, None, shown)
    return InadmissibleError(diagnostic, tuple(rule), repairs)


def _repairs(problem: SymbolicProblem) -> tuple[Repair, ...]:
    """Assumptions to make instead, if a plan exists without the given ones."""
    if not problem.tensor.assume:
        return ()
    tensor = replace(problem.tensor, assume=())
    search = _searched(SymbolicProblem(tensor, problem.bounds, problem.origin_multiple, problem.pattern))
    if not search.cases:
        return ()
    plan = _joined(search.cases)
    return tuple(_assume(plan.problem, [clause for clause in plan.guard.clauses if not _range(clause)]))


def _assume(problem: SymbolicProblem, asked: list[Clause]) -> Iterator[Repair]:
    """Assume what the guard requires; if that is divisibility of one name, also propose padding it."""
    single = [clause[0] for clause in asked if len(clause) == 1]
    if len(single) < len(asked):
        return
    texts = [str(entry) for entry in single]
    try:
        wider = replace(problem.tensor, assume=(*problem.tensor.assume, *texts))
    except MalformedError:
        wider = replace(problem.tensor, assume=tuple(texts))
    document = SymbolicProblem(wider, problem.bounds, problem.origin_multiple, problem.pattern).to_json()
    yield Repair("assume", ", ".join(texts), document)
    for entry in single:
        above, below = entry.value.split()
        modulus = below.as_int()
        if entry.kind == "integral" and modulus and len(above.names) == 1 and str(above) in above.names:
            yield Repair("pad", f"pad {above} to a multiple of {modulus}", document)
