"""Modulo schedules by z3: starts, roles, slots and registers for a given initiation interval (II), and the least one.

All times are integers. Two ops share a unit, or the warps of a role, if their starts differ by between the time of the
first and II minus that of the second, up to whole II; so each pair has one integer for the whole II, and the numbers
stay small whatever the unit of time is.

Feasibility is monotone in II: with s = II stage + row, the same stages and rows hold at II + 1. Less than the least II
found is therefore excluded by the one below it alone.

References: Rau, "Iterative Modulo Scheduling" (MICRO 1994); Twill (arXiv 2512.18134): modulo scheduling and warp
specialisation as one question to a solver, with barrier costs, memory and registers.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from layoutalg.ground.errors import BudgetError, Diagnostic
from layoutalg.ground.solver import session, solve, whole
from layoutalg.synth.schedule.bounds import (
    BARRIER_BYTES,
    THREADS,
    allowed,
    crosses,
    infeasible,
    pool,
    serial,
    shared_bytes,
)
from layoutalg.synth.schedule.work import Dependence, Work
from layoutalg.targets.pipeline_costs import SETMAXNREG

STEPS: Final = 200_000_000
"""steps: of z3 for one question, by its own count, which does not depend on the machine"""
SECONDS: Final = 3_600.0
"""seconds: of one such question, if the steps were not used up by then"""


@dataclass(frozen=True, slots=True)
class Placed:
    """A modulo schedule: II, the starts and the roles of the ops, the slots of the rings."""

    ii: int
    starts: Mapping[str, int]
    roles: Mapping[str, str]
    depths: Mapping[str, int]

    @property
    def stages(self) -> int:
        """How many iterations overlap."""
        return max(self.starts.values()) // self.ii + 1


@dataclass(slots=True)
class _Question:
    """The terms of one question."""

    work: Work
    target: str
    ii: int
    asked: Any = field(default_factory=session)
    count: int = 0

    def integer(self, low: int | None = None) -> Any:
        """Return a new unknown."""
        self.count += 1
        found = self.asked.z3.Int(f"i{self.count}", self.asked.context)
        if low is not None:
            self.add(found >= low)
        return found

    def add(self, *terms: Any) -> None:
        """Add assertions; constants of Python that hold are left out."""
        self.asked.solver.add(*[term for term in terms if term is not True])

    def implies(self, condition: Any, then: Any) -> None:
        """Add an implication whose condition may be a constant of Python."""
        if condition is True:
            self.add(then)
        elif condition is not False:
            self.add(self.asked.z3.Implies(condition, then))

    def chosen(self, condition: Any, one: Any) -> Any:
        """Return ``one`` if the condition holds and else 0."""
        if isinstance(condition, bool):
            return one if condition else 0
        return self.asked.z3.If(condition, one, 0)


@dataclass(slots=True)
class _Terms:
    """The unknowns: starts of ops, the number of the role of each op, slots of rings, registers of roles in eights."""

    starts: dict[str, Any]
    roles: dict[str, Any]
    depths: dict[str, Any]
    registers: list[Any]

    def together(self, one: str, other: str) -> Any:
        """Whether two ops are in one role: a constant of Python if that is known."""
        first, second = self.roles[one], self.roles[other]
        return True if first is second else first == second


def _terms(question: _Question) -> _Terms:
    work = question.work
    starts = {op.name: question.integer(0) for op in work.ops}
    roles: dict[str, Any] = {}
    numbers = {role.name: number for number, role in enumerate(work.roles)}
    leaders = []
    for team in work.teams:
        shared = [{numbers[role.name] for role in allowed(work, work.by_name[name])} for name in team]
        choices = sorted(set.intersection(*shared))
        if len(choices) == 1:
            role: Any = choices[0]
        else:
            role = question.integer()
            question.add(question.asked.z3.Or([role == number for number in choices]))
        roles |= dict.fromkeys(team, role)
        leaders.append(team[0])
    for one, other in itertools.combinations(leaders, 2):
        if work.by_name[one].variable != work.by_name[other].variable:
            apart = roles[one] != roles[other]
            question.add(apart if apart is not False else question.asked.z3.BoolVal(False, question.asked.context))
    _like_roles(question, [roles[name] for name in leaders])
    depths = {ring.name: question.integer(1) for ring in work.rings}
    registers = [question.integer(SETMAXNREG[0] // SETMAXNREG.step) for _ in work.roles]
    return _Terms(starts, roles, depths, registers)


def _like_roles(question: _Question, roles: list[Any]) -> None:
    """Take roles with the same warps and registers in order: exchanging their names changes nothing."""
    work = question.work
    pinned = {op.role for op in work.ops}
    for number, role in enumerate(work.roles[1:], 1):
        before = work.roles[number - 1]
        alike = (before.warps, before.registers) == (role.warps, role.registers)
        if alike and not pinned & {before.name, role.name}:
            for place, taken in enumerate(roles):
                earlier = [other == number - 1 for other in roles[:place]]
                known = [term for term in earlier if term is not False]
                if True not in known:
                    false = question.asked.z3.BoolVal(False, question.asked.context)
                    question.implies(taken == number, question.asked.z3.Or(known) if known else false)


def _apart(question: _Question, terms: _Terms) -> None:
    """Keep ops on one unit, and ops that occupy the warps of one role, apart."""
    for one, other in itertools.combinations(question.work.ops, 2):
        if one.unit == other.unit and one.occupancy and other.occupancy:
            condition, times = True, (one.occupancy, other.occupancy)
        elif one.holds and other.holds:
            condition, times = terms.together(one.name, other.name), (one.holds, other.holds)
        else:
            continue
        far = terms.starts[other.name] - terms.starts[one.name] - question.ii * question.integer()
        question.implies(condition, far >= times[0])
        question.implies(condition, far <= question.ii - times[1])
    for op in question.work.ops:
        question.add(op.occupancy <= question.ii or question.asked.z3.BoolVal(False, question.asked.context))


def _crossing(question: _Question, terms: _Terms, edge: Dependence) -> Any:
    """Return the cycles that the two roles of a dependence add."""
    cycles = question.work.crossing
    if not edge.ring or not cycles:
        return 0
    if crosses(question.work, edge):
        return cycles
    return question.chosen(terms.together(edge.producer, edge.consumer), 0 - cycles) + cycles


def _depend(question: _Question, terms: _Terms) -> None:
    """Add the dependences and the slots that lifetimes need."""
    ops, ii = question.work.by_name, question.ii
    for edge in question.work.dependences:
        start, then = terms.starts[edge.producer], terms.starts[edge.consumer] + edge.distance * ii
        crossing = _crossing(question, terms, edge)
        question.add(then >= start + ops[edge.producer].latency + crossing)
        if edge.ring:
            question.add(terms.depths[edge.ring] * ii >= then + ops[edge.consumer].latency + crossing - start)


def _registers(question: _Question, terms: _Terms) -> None:
    """Bound the registers of each role at the start of each op that takes some, and those of all roles."""
    work, ii = question.work, question.ii
    values = [op for op in work.ops if op.result]
    ends = {op.name: question.integer() for op in values}
    for op in values:
        question.add(ends[op.name] >= terms.starts[op.name] + op.latency)
    for edge in work.dependences:
        if edge.producer in ends and not edge.ring:
            used = terms.starts[edge.consumer] + edge.distance * ii + work.by_name[edge.consumer].latency
            question.add(ends[edge.producer] >= used)
    alive: dict[tuple[str, str], Any] = {}
    for op, value in itertools.product(values, values):
        if terms.together(op.name, value.name) is not False:
            begun, over = (0 if op is value else question.integer()), question.integer()
            now = terms.starts[op.name]
            if op is not value:
                question.add(ii * (begun + 1) > now - terms.starts[value.name])
            question.add(ii * over <= now - ends[value.name])
            alive[op.name, value.name] = begun - over
    for number, role in enumerate(work.roles):
        inside = {op.name: terms.roles[op.name] == number for op in work.ops}
        held = role.registers + sum([question.chosen(inside[op.name], op.registers) for op in work.ops if op.registers])
        most = terms.registers[number] * SETMAXNREG.step
        question.add(most <= SETMAXNREG[-1], held <= most, held < SETMAXNREG[-1])
        for op in values:
            taken = [
                question.chosen(inside[value.name], value.result * alive[op.name, value.name])
                for value in values
                if (op.name, value.name) in alive
            ]
            question.implies(inside[op.name], held + sum(taken) <= most)
            question.implies(inside[op.name], held + sum(taken) < SETMAXNREG[-1])
    parts = [
        role.warps * THREADS * SETMAXNREG.step * taken for role, taken in zip(work.roles, terms.registers, strict=True)
    ]
    question.add(sum(parts) <= pool(work, question.target))


@whole
def placed(
    work: Work,
    target: str,
    ii: int,
    steps: int,
    stages: int | None = None,
    most: int | None = None,
    registers: bool = True,
) -> Placed | None:
    """Return a modulo schedule, or None if z3 proves that there is none.

    Args:
        work: The work.
        target: Architecture.
        ii: The initiation interval.
        steps: Steps of z3.
        stages: All starts are before ``stages`` times ``ii``.
        most: Bytes of all rings; by default those of a block.
        registers: Whether registers are counted.

    Raises: BudgetError: LA976: the steps are used up.
    """
    question = _Question(work, target, ii)
    terms = _terms(question)
    end = (most_stages(work, ii) if stages is None else stages) * ii
    question.add(*[start < end for start in terms.starts.values()])
    _apart(question, terms)
    _depend(question, terms)
    if registers:
        _registers(question, terms)
    if work.rings:
        sizes = [terms.depths[ring.name] * (ring.bytes + BARRIER_BYTES) for ring in work.rings]
        question.add(sum(sizes) <= (shared_bytes(target) if most is None else most))
    names = [*terms.starts.values(), *terms.depths.values(), *terms.registers]
    unknown = {name: role for name, role in terms.roles.items() if not isinstance(role, int)}
    question.asked.solver.set("rlimit", steps)
    try:
        found = solve(question.asked, f"a schedule of {work.name} at II = {ii}", [*names, *unknown.values()], SECONDS)
    except BudgetError as error:
        if "resource" not in question.asked.solver.reason_unknown():
            raise
        because = f"z3 decided nothing at II = {ii} in {steps} of its own steps"
        hint = "give more steps, or a larger unit"
        raise BudgetError(
            Diagnostic("LA976", "no schedule was found or excluded", (work.name, hint), because)
        ) from error
    if found is None:
        return None
    values = iter(found)
    starts = {name: next(values) for name in terms.starts}
    depths = {name: next(values) for name in terms.depths}
    for _ in work.roles:
        next(values)  # more than needed, as the solver liked it
    numbers = {name: role for name, role in terms.roles.items() if isinstance(role, int)}
    numbers |= {name: next(values) for name in unknown}
    first = min(starts.values())
    roles = {name: work.roles[numbers[name]].name for name in starts}
    return Placed(ii, {name: start - first for name, start in starts.items()}, roles, depths)


def most_stages(work: Work, ii: int) -> int:
    """Return a number of stages with which there is a schedule at an II if there is one at all.

    Where no op starts for longer than the longest dependence and its distance, all later ops can start II earlier: no
    dependence leads back over that gap.
    """
    longest = max([op.latency for op in work.ops]) + work.crossing
    far = max([edge.distance for edge in work.dependences], default=0)
    return len(work.ops) * (-(-longest // ii) + far + 1) + 1


def least(work: Work, target: str, bound: int, steps: int) -> Placed:
    """Return the schedule of least II, of these of least stages, of these of least bytes.

    Raises:
        InfeasibleError: LA975: there is none at any II.
        BudgetError: LA976.
    """
    low, best, step = bound, placed(work, target, bound, steps), 1
    last = max(bound, serial(work))
    while best is None:
        if low >= last:
            raise _none(work, target, last, steps)
        high = min(last, low + step)
        best, step = placed(work, target, high, steps), 2 * step
        low = high if best is None else low
    while best.ii - low > 1:
        middle = (low + best.ii) // 2
        found = placed(work, target, middle, steps)
        low, best = (middle, best) if found is None else (low, found)
    while best.stages > 1 and (found := placed(work, target, best.ii, steps, best.stages - 1)) is not None:
        best = found
    while (
        work.rings and (found := placed(work, target, best.ii, steps, best.stages, taken(work, best) - 1)) is not None
    ):
        best = found
    return best


def taken(work: Work, found: Placed) -> int:
    """Return the bytes of the rings and their barriers."""
    return sum([found.depths[ring.name] * (ring.bytes + BARRIER_BYTES) for ring in work.rings])


def pressure(work: Work, found: Placed, role: str) -> int:
    """Return the registers that a thread of a role needs, the most at any time."""
    mine = [op for op in work.ops if found.roles[op.name] == role]
    base = next(one.registers for one in work.roles if one.name == role) + sum([op.registers for op in mine])

    def alive(now: int) -> int:
        total = 0
        for op in mine:
            start = found.starts[op.name]
            uses = [
                (edge.consumer, edge.distance)
                for edge in work.dependences
                if not edge.ring and edge.producer == op.name
            ]
            ends = [
                found.starts[name] + far * found.ii + work.by_name[name].latency for name, far in [(op.name, 0), *uses]
            ]
            total += op.result * ((now - start) // found.ii - (now - max(ends)) // found.ii)
        return total

    return base + max([alive(found.starts[op.name]) for op in mine], default=0)


def _none(work: Work, target: str, ii: int, steps: int) -> Exception:
    """Return the error of a work without a schedule: what it needs too much of."""
    if placed(work, target, ii, steps, registers=False) is None:
        variable = ", ".join(op.name for op in work.ops if op.variable)
        because = f"{len(work.roles)} roles do not keep ops of variable latency ({variable}) from the others"
        return infeasible("roles", because, roles=len(work.roles))
    op = max(work.ops, key=lambda op: op.registers + op.result)
    each = op.registers + op.result
    because = f"{op.name} takes {each} registers of each thread; a thread has at most {SETMAXNREG[-1] - 1}, the roles "
    return infeasible(
        op.name, because + f"together {pool(work, target)}, and more are alive at one time", registers=each
    )
