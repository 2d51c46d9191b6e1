"""Checker of symbolic plans: proves or refutes them for all sizes that meet the guard.

A plan is proved if it is right at one size that meets the guard (``proofs.tensormap.check``) and the guard implies
every obligation (``obligations`` has the argument); it is refuted by sizes that meet the guard and break an obligation.
"""

from __future__ import annotations

from layoutalg.ground import clock
from layoutalg.ground.assumptions import Assumptions
from layoutalg.ground.conditions import Condition
from layoutalg.ground.decide import decide, find_sizes
from layoutalg.ground.errors import BudgetError, LayoutError, MalformedError
from layoutalg.ground.verdict import Proved, Refuted, Unknown, Verdict
from layoutalg.proofs.fields import instance, wrong_certificate
from layoutalg.proofs.symbolic.guard import Clause, Guard
from layoutalg.proofs.symbolic.obligations import obligations
from layoutalg.proofs.symbolic.plan import SymbolicPlan
from layoutalg.proofs.tensormap import TensorMapPlan
from layoutalg.proofs.tensormap.checker import proved
from layoutalg.proofs.tensormap.plan import OOB_CLASSES
from layoutalg.proofs.tensormap.walk import MismatchError, UndecidedError

SCHEMA = "layoutalg/symbolic-certificate/1"
CLAIM = "at all sizes that meet the guard the plan realises the problem, for every tile origin"


def prove(plan: SymbolicPlan) -> Verdict:
    """Decide whether a plan holds at all sizes that meet its guard.

    Args:
        plan: A plan from the finder, or read by ``SymbolicPlan.from_json``.

    Returns:
        ``Proved`` with the certificate (claim, guard, number of obligations by deciding engine, base-case sizes,
        digest), ``Refuted`` with sizes, or ``Unknown``.
    """
    instance("plan", plan, SymbolicPlan)
    try:
        for case in plan.better:
            verdict = prove(case)
            if not isinstance(verdict, Proved):
                return verdict
            if case.problem != plan.problem:
                raise MismatchError("a better case is for another problem")
        certificate = _certify(plan)
        differs = wrong_certificate(plan.certificate, certificate)
        if differs is not None:
            raise MismatchError("wrong certificate", **differs)
    except MismatchError as mismatch:
        return Refuted("checker", mismatch.witness)
    except UndecidedError as undecided:
        return Unknown(str(undecided), ("polynomials", "residues", "z3"))
    except BudgetError as spent:
        return Unknown(spent.diagnostic.because, ("polynomials", "residues", "z3"))
    return Proved(str(certificate["engine"]), certificate)


def base_case(plan: SymbolicPlan, sizes: dict[str, int]) -> TensorMapPlan:
    """Return the plan at these sizes, proved.

    Raises:
        MismatchError: the plan is refuted.
        UndecidedError: the plan is not decided.
    """
    try:
        found = plan.unproved(sizes)
    except LayoutError as error:
        raise MismatchError("no plan at sizes of the guard", sizes=sizes, reason=str(error)) from None
    found, verdict = proved(found)
    if OOB_CLASSES.index(found.oob) > OOB_CLASSES.index(plan.oob):
        raise MismatchError("wrong claim", field="oob", sizes=sizes, expected=found.oob, got=plan.oob)
    if isinstance(verdict, Refuted):
        raise MismatchError("refuted at sizes of the guard", sizes=sizes, **{"because": dict(verdict.witness)})
    if not isinstance(verdict, Proved):
        raise UndecidedError("the base case was not decided")
    return found


def _certify(plan: SymbolicPlan) -> dict[str, object]:
    sizes = guard_sizes(plan.guard)
    found = obligations(plan, base_case(plan, sizes))
    if OOB_CLASSES.index(found.oob) > OOB_CLASSES.index(plan.oob):
        raise MismatchError("wrong claim", field="oob", expected=found.oob, got=plan.oob)
    required = plan.problem.pattern.oob_required
    if OOB_CLASSES.index(plan.oob) > OOB_CLASSES.index(required):
        raise MismatchError("out-of-bounds class weaker than required", expected=required, got=plan.oob)
    decided: dict[str, int] = {}
    for clause in found.clauses:
        clock.check("the proof of a plan for all sizes")
        engine = _follows(plan.guard, clause)
        decided[engine] = decided.get(engine, 0) + 1
    return {
        "schema": SCHEMA,
        "claim": CLAIM,
        "oob": plan.oob,
        "engine": "polynomials, residues, " + " and ".join(sorted(decided)),
        "guard": plan.guard.to_json(),
        "weakest": not found.sufficient_only,
        "base_case": sizes,
        "obligations": decided,
        "digest": plan.digest(),
    }


def guard_sizes(guard: Guard) -> dict[str, int]:
    """Return sizes that meet a guard.

    Raises:
        MismatchError: the guard contradicts itself.
        UndecidedError: no sizes were found.
    """
    try:
        known = Assumptions(guard.conditions)
    except MalformedError:
        raise MismatchError("no sizes meet the guard", guard=str(guard)) from None
    found = find_sizes(known, None, True, names=frozenset(guard.names))
    if found is None:
        raise UndecidedError("no sizes were found that meet the guard")
    sizes = {name: value for name, value in found if name in guard.names}
    if guard.broken_at(sizes) is None:
        return sizes
    for clause in guard.clauses:
        if len(clause) > 1:
            for entry in clause:
                found = find_sizes(known, entry, True, names=frozenset(guard.names))
                if found is not None and guard.broken_at(dict(found)) is None:
                    return {name: value for name, value in found if name in guard.names}
    raise UndecidedError("no sizes were found that meet the guard")


def _follows(guard: Guard, clause: Clause) -> str:
    """Return the engine that proves that a guard implies a clause.

    Raises:
        MismatchError: the guard does not imply it.
        UndecidedError: no engine decided.
    """
    if clause in guard.clauses or any(entry.value.constant is not None and entry.true_at({}) for entry in clause):
        return "arithmetic"
    known = Assumptions(guard.conditions)
    if not guard_implies_quickly(guard, clause):
        for entry in clause:
            answer = decide(known, entry)
            if answer.status:
                return answer.engine
            if len(clause) == 1 and answer.fails_at is not None:
                raise _broken(guard, entry, dict(answer.fails_at))
        raise UndecidedError(f"undecided whether {guard} implies {' or '.join(map(str, clause))}")
    return "interval x congruence"


def guard_implies_quickly(guard: Guard, clause: Clause) -> bool:
    """Return whether intervals, congruences and bounds of products prove that a guard implies a clause."""
    opened = Guard((clause,)).open_under(Assumptions(guard.conditions))
    return not opened or any(set(other) <= set(clause) for other in guard.clauses)


def _broken(guard: Guard, entry: Condition, sizes: dict[str, int]) -> MismatchError | UndecidedError:
    whole = {name: sizes.get(name, 1) for name in guard.names}
    if guard.broken_at(whole) is None and not entry.true_at(whole):
        return MismatchError("the guard allows sizes at which the plan is wrong", sizes=whole, needs=str(entry))
    return UndecidedError(f"undecided whether {guard} implies {entry}")
