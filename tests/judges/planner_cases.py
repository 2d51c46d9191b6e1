"""One problem through the planner, and what the judges say of the answer.

Implementation notes: the only file of this folder that calls the library.
"""

from __future__ import annotations

import itertools
import math
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from judges import planner_judge as judges
from judges import tma_engine as engine
from judges.map_search import Found, search_maps
from layoutalg.ground.errors import BudgetError, LayoutError
from layoutalg.ground.verdict import Proved
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProblem, check
from layoutalg.synth import InadmissibleError, synthesize_tensormap

ORIGINS_IN_BYTES = 3
MAX_MEMORY = 1 << 22


@dataclass(frozen=True)
class Case:
    """What became of one problem.

    Args:
        kind: ``right``, ``understated`` (right, and better than stated), ``bettered`` (right, but a plan of a better
            class exists), ``refused``, ``needless`` (although a plan exists), ``budget``, ``wrong``, ``leaked``.
        label: The class of a plan, the rule of a refusal, what was wrong.
        detail: Numbers for a reader.
        document: The problem.
    """

    kind: str
    label: str
    document: Mapping[str, Any]
    detail: Mapping[str, Any] = field(default_factory=dict)


def examine(document: Mapping[str, Any], *, search: bool = True) -> Case:
    """Plan one problem and judge the answer; refusals are searched where ``search`` says so."""
    try:
        plan = synthesize_tensormap(TensorMapProblem.from_json(document))
    except InadmissibleError as error:
        rule = error.violations[0].rule if error.violations else "NO_RULE"
        return _refusal(document, rule, search)
    except BudgetError as error:
        return Case("budget", error.diagnostic.code, document)
    except LayoutError as error:
        return Case("leaked", f"{type(error).__name__} {error.diagnostic.code}", document, {"text": str(error)})
    except Exception as error:
        return Case("leaked", type(error).__name__, document, {"text": traceback.format_exc()})
    case = judge_plan(document, plan)
    if search and case.kind == "right" and plan.oob != "exact":
        better = search_maps(judges.Statement.read(document)).answer()
        if (
            better is not None
            and not better.evades
            and judges.CLASSES.index(better.verdict) < judges.CLASSES.index(plan.oob)
        ):
            return Case("bettered", f"stated {plan.oob}, found {better.verdict}", document, better.to_json())
    return case


def judge_plan(document: Mapping[str, Any], plan: TensorMapPlan) -> Case:
    """Run a plan's own bytes and coordinates; compare with its problem and with what it states."""
    statement = judges.Statement.read(document)
    outcome, faults = run_plan(statement, plan)
    facts = {"stated": plan.oob, "found": outcome.verdict, "why": dict(outcome.why)}
    if faults:
        return Case("wrong", faults[0].partition(":")[0], document, facts | {"faults": faults})
    if not outcome.at_least(plan.oob):
        return Case("wrong", f"stated {plan.oob}, is {outcome.verdict}", document, facts)
    verdict = check(plan)
    if not isinstance(verdict, Proved):
        return Case("wrong", "the checker does not prove the plan", document, facts | {"verdict": repr(verdict)})
    if not judges.Outcome(plan.oob, {}).at_least(statement.required):
        return Case("wrong", "below the class required", document, facts)
    if outcome.verdict != plan.oob:
        return Case("understated", f"stated {plan.oob}, is {outcome.verdict}", document, facts)
    return Case("right", plan.oob, document, facts)


def run_plan(statement: judges.Statement, plan: TensorMapPlan) -> tuple[judges.Outcome, list[str]]:
    """Return the class that a plan's bytes reach, and everything else that is wrong about the plan."""
    faults: list[str] = []
    try:
        tm = engine.read_map(plan.raw)
    except engine.FaultError as fault:
        return judges.Outcome("wrong", {"lost": fault.rule}), [f"bytes: {fault}"]
    if plan.hex != plan.raw.hex():
        faults.append("hex is not raw")
    origins = statement.window()
    origins = np.unique(np.concatenate([origins, _aliases(statement, plan, origins)]), axis=0)
    starts = starts_of(statement, plan, origins)
    offsets = [issue.smem_offset_bytes for issue in plan.issues]
    if not plan.issues or plan.expect_tx_bytes != len(plan.issues) * tm.bytes_moved:
        faults.append(f"expect_tx_bytes: {plan.expect_tx_bytes}")
    if plan.smem_bytes < max(offsets, default=0) + tm.footprint:
        faults.append(f"smem_bytes: {plan.smem_bytes}")
    align = max(128, engine.period(tm.swizzle), engine.period(statement.swizzle))
    if plan.smem_align_bytes % align:
        faults.append(f"smem_align_bytes: {plan.smem_align_bytes}")
    outcome = judges.judge(statement, tm, starts, offsets, origins)
    if outcome.verdict == "wrong":
        return outcome, faults
    expressed = judges.expressed(statement, starts, len(origins))
    for row in np.flatnonzero(~expressed)[:: max(1, int((~expressed).sum()) // ORIGINS_IN_BYTES)]:
        if _coordinates(plan, origins[row].tolist()) is not None:
            faults.append(f"coordinates answers where the engine faults: {origins[row].tolist()}")
    sample = np.flatnonzero(expressed if plan.oob == "exact" else statement.in_bounds(origins))
    last = len(sample) - 1
    chosen = [sample[k * last // ORIGINS_IN_BYTES] for k in range(ORIGINS_IN_BYTES + 1)] if last >= 0 else []
    for row in dict.fromkeys(int(r) for r in chosen):
        origin = origins[row].tolist()
        stated = _coordinates(plan, origin)
        if stated is None or [list(c) for c in stated] != [start[row].tolist() for start in starts]:
            faults.append(f"coordinates are unlike origin_map: {origin}, {stated}")
            continue
        low, high = statement.memory
        if outcome.verdict != "lost" and high - low <= MAX_MEMORY:
            wrong = judges.first_wrong_byte(statement, tm, stated, offsets, origin)
            if wrong:
                faults.append(f"a wrong byte: origin {origin}, {wrong}")
    return outcome, faults


def _aliases(statement: judges.Statement, plan: TensorMapPlan, origins: judges.Ints) -> judges.Ints:
    """Return far origins that leave a shared coordinate where it is: along two tile dimensions that both move it."""
    unit = np.diag([m or 0 for m in statement.multiples]).astype(np.int64)
    zero = np.zeros((1, statement.rank), dtype=np.int64)
    moves = starts_of(statement, plan, unit)[0] - starts_of(statement, plan, zero)[0]
    _, inside = statement.wanted(origins)
    near = origins[inside.any(axis=1)]
    near = near[:: max(1, len(near) // 8)]
    found = [zero[:0]]
    for row in moves.T.tolist():
        for a, b in itertools.combinations([dim for dim, move in enumerate(row) if move], 2):
            divisor = math.gcd(row[a], row[b])
            shift = row[b] // divisor * unit[a] - row[a] // divisor * unit[b]
            if np.abs(shift).max() < 1 << 40:
                found += [near + k * shift for k in (-2, -1, 1, 2)]
    return np.concatenate(found)


def _coordinates(plan: TensorMapPlan, origin: list[int]) -> tuple[tuple[int, ...], ...] | None:
    """Return the start coordinates, None where the plan refuses the origin."""
    try:
        return plan.coordinates(origin)
    except LayoutError:
        return None


def starts_of(statement: judges.Statement, plan: TensorMapPlan, origins: judges.Ints) -> list[judges.Ints]:
    """Return, per issue, the start coordinates for every origin, read from the plan's terms."""
    shift = np.zeros((len(origins), len(plan.origin_map)), dtype=np.int64)
    for j, terms in enumerate(plan.origin_map):
        for dim, numerator, denominator in terms:
            shift[:, j] += numerator * origins[:, dim] // denominator
    return [shift + np.array(issue.coords, dtype=np.int64) for issue in plan.issues]


def _refusal(document: Mapping[str, Any], rule: str, search: bool) -> Case:
    if not search:
        return Case("refused", rule, document)
    searched = search_maps(judges.Statement.read(document))
    found = searched.answer()
    if found is None or found.vacuous or (found.evades and searched.statement.required == "exact"):
        return Case("refused", rule, document, {"cut": searched.cut, "trials": searched.trials})
    return Case("needless", rule, document, {"cause": cause(searched.statement, found), **found.to_json()})


def cause(statement: judges.Statement, found: Found) -> str:
    """Return what is odd about a problem that was refused although this plan carries it; ``plain`` where nothing is."""
    _, inside = statement.wanted(statement.window())
    if not inside.any(axis=0).all():
        return "dead elements"
    if any(np.count_nonzero(row) > 1 for row in found.moves):
        return "two coordinates"
    if found.tm.swizzle != statement.swizzle and 0 in found.tm.strides:
        return "permuted copies"
    return "plain"
