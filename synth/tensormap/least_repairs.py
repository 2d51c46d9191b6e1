"""Minimal repairs of a refused TensorMap problem, cheapest first.

Repairs are ordered by: whether the out-of-bounds class is weaker than required, bytes of global memory added, issues,
bytes of shared memory, number of changes. Every change is necessary: undoing it makes the problem inadmissible again,
or makes rows overlap that did not.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from layoutalg.ground import clock
from layoutalg.ground.errors import BudgetError, LayoutError
from layoutalg.ground.limits import PLAN_SECONDS
from layoutalg.ground.picture import Shown
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProblem
from layoutalg.proofs.tensormap.listed_problem import problem_from
from layoutalg.proofs.tensormap.plan import OOB_CLASSES
from layoutalg.synth.tensormap import InadmissibleError, synthesize_tensormap
from layoutalg.synth.tensormap.repairs import proposals
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.nvidia.swizzles import PLAIN

Entry = tuple[str, int | None]


@dataclass(frozen=True, slots=True)
class RankedRepair(Shown):
    """A repair that was planned and proved.

    Args:
        name: What to do.
        changes: (entry of the problem, before, after), all necessary.
        plan: The proved plan of the repaired problem.
        cost: (weaker class, global bytes added, issues, shared bytes, changes).
    """

    name: str
    changes: tuple[tuple[str, object, object], ...]
    plan: TensorMapPlan
    cost: tuple[int, int, int, int, int]

    def __str__(self) -> str:
        told = "; ".join(f"{name}: {before} -> {after}" for name, before, after in self.changes)
        _, added, issues, shared, _ = self.cost
        many = f"{issues} issue{'s' * (issues != 1)}"
        return f"{self.name}: {told}; {added} more bytes of global memory, {many}, {shared} shared bytes"

    def to_json(self) -> dict[str, object]:
        """Return the repair as JSON-ready data."""
        changes = [{"entry": name, "before": str(before), "after": str(after)} for name, before, after in self.changes]
        return {
            "schema": "layoutalg/ranked-repair/1", "name": self.name, "changes": changes, "cost": list(self.cost),
            "plan": self.plan.to_json(),
        }  # fmt: skip


def least_repairs(
    problem: TensorMapProblem | Mapping[str, object], *, seconds: float = PLAN_SECONDS
) -> tuple[RankedRepair, ...]:
    """Return the repairs of a refused problem, cheapest first; () if the problem has a plan.

    Args:
        problem: A ``TensorMapProblem`` or its JSON document.
        seconds: Wall-time budget.

    Raises: BudgetError: whether the problem has a plan was not decided in time.

    Example:
        >>> problem = TensorMapProblem.of(((64, 100), (100, 1), "bf16"), (64, 64), "(64,64):(64,1)")
        >>> print(least_repairs(problem)[0])
        pad the pitch: global_strides[0]: 100 -> 104; 504 more bytes of global memory, 1 issue, 8192 shared bytes
    """
    stated = problem_from(problem)
    with clock.within(clock.checked_seconds(seconds, "seconds")):
        try:
            synthesize_tensormap(stated, repair=False)
        except InadmissibleError as refused:
            rules = {violation.rule for violation in refused.violations}
        else:
            return ()
        found: dict[TensorMapProblem, RankedRepair] = {}
        for name, repaired in _ideas(stated, rules):
            with contextlib.suppress(BudgetError):
                least = _least(stated, repaired)
                if least is not None and least.problem not in found:
                    found[least.problem] = _ranked(name, stated, least)
    return tuple(sorted(found.values(), key=lambda repair: (repair.cost, repair.name)))


def _ideas(stated: TensorMapProblem, rules: set[str]) -> Iterator[tuple[str, TensorMapProblem]]:
    """Yield the proposals for each broken rule, then every other swizzle, alone and combined with them."""
    made = [(name, repaired) for name, _, repaired in proposals(stated, rules)]
    yield from made
    for swizzle in PLAIN:
        if swizzle != stated.swizzle and hardware.swizzle_supported(swizzle, stated.arch):
            for name, repaired in [("", stated), *made]:
                both = f"{name}, then " if name else ""
                yield f"{both}use the {swizzle} swizzle", replace(repaired, swizzle=swizzle)


def _planned(problem: TensorMapProblem) -> TensorMapPlan | None:
    try:
        return synthesize_tensormap(problem, repair=False, seconds=clock.left(PLAN_SECONDS))
    except BudgetError:
        raise
    except (InadmissibleError, LayoutError):
        return None


def _least(stated: TensorMapProblem, repaired: TensorMapProblem) -> TensorMapPlan | None:
    """Undo every change that the plan does not need; None if there is no plan."""
    plan = _planned(repaired)
    if plan is None:
        return None
    for entry in _changed(stated, repaired):
        fewer = _with(repaired, entry, _at(stated, entry))
        if fewer is None or (_apart(stated) and not _apart(fewer)):
            continue
        lesser = _planned(fewer)
        if lesser is not None and fewer != stated:
            repaired, plan = fewer, lesser
    return plan


def _changed(one: TensorMapProblem, two: TensorMapProblem) -> list[Entry]:
    """The entries in which two problems differ; pitches, extents and bounds individually."""
    found: list[Entry] = []
    for held in fields(one):
        before, after = getattr(one, held.name), getattr(two, held.name)
        if before == after:
            continue
        if held.name in ("global_strides", "global_shape", "bounds", "origin_multiple"):
            found += [(held.name, place) for place in range(len(before)) if before[place] != after[place]]
        else:
            found.append((held.name, None))
    return found


def _at(problem: TensorMapProblem, entry: Entry) -> Any:
    name, place = entry
    return getattr(problem, name) if place is None else getattr(problem, name)[place]


def _with(problem: TensorMapProblem, entry: Entry, value: Any) -> TensorMapProblem | None:
    name, place = entry
    if place is not None:
        held = list(getattr(problem, name))
        held[place] = value
        value = tuple(held)
    try:
        changed: dict[str, Any] = {name: value}
        return replace(problem, **changed)
    except LayoutError:
        return None


def _apart(problem: TensorMapProblem) -> bool:
    """Whether every stride exceeds the span of the faster dimensions."""
    reach = 0
    for stride, extent in sorted(zip(problem.global_strides, problem.global_shape, strict=True)):
        if extent > 1 and stride <= reach:
            return False
        reach += stride * (extent - 1)
    return True


def _ranked(name: str, stated: TensorMapProblem, plan: TensorMapPlan) -> RankedRepair:
    problem = plan.problem
    changes = []
    for entry in _changed(stated, problem):
        shown = entry[0] if entry[1] is None else f"{entry[0]}[{entry[1]}]"
        changes.append((shown, _at(stated, entry), _at(problem, entry)))
    weaker = max(0, OOB_CLASSES.index(plan.oob) - OOB_CLASSES.index(stated.oob_required))
    added = max(0, _bytes(problem) - _bytes(stated))
    cost = weaker, added, len(plan.issues), plan.smem_bytes, len(changes)
    return RankedRepair(name, tuple(changes), plan, cost)


def _bytes(problem: TensorMapProblem) -> int:
    """Bytes of global memory from the first to the last element."""
    pairs = zip(problem.global_strides, problem.global_shape, strict=True)
    return problem.element_bytes * (1 + sum(abs(stride) * (extent - 1) for stride, extent in pairs))
