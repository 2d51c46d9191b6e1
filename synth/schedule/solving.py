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
from layoutalg.proofs.pipeline.document import LANES, MOST_SLOTS
from layoutalg.synth.schedule.bounds import allowed, infeasible, pool, ring_bytes, serial, shared_bytes
from layoutalg.synth.schedule.work import Dependence, Work, WorkOp
from layoutalg.targets.nvidia.registers import SETMAXNREG, THREAD_REGISTERS

STEPS: Final = 200_000_000
"""steps: of z3 for one question, by its own count, which does not depend on the machine"""
MOST_BYTES = 1 << 40
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
    """A question about a work at an II, with its unknowns."""

    work: Work
    ii: int  # the initiation interval
    asked: Any = field(default_factory=session)  # the session
    starts: dict[str, Any] = field(default_factory=dict)  # by op
    roles: dict[str, Any] = field(default_factory=dict)  # the number of the role of each op, one unknown for a team
    depths: dict[str, Any] = field(default_factory=dict)  # slots by ring

    def __post_init__(self) -> None:
        self.starts = {op.name: self.integer(0) for op in self.work.ops}
        self.depths = {ring.name: self.integer(1) for ring in self.work.rings}
        self.add(*[depth <= MOST_SLOTS for depth in self.depths.values()])
        numbers = {role.name: number for number, role in enumerate(self.work.roles)}
        for team in self.work.teams:
            role = self.integer()
            self.roles |= dict.fromkeys(team, role)
            for name in team:
                open_to = [numbers[one.name] for one in allowed(self.work, self.work.by_name[name])]
                self.add(self.asked.z3.Or([role == number for number in open_to]))

    def integer(self, low: int | None = None) -> Any:
        """Return a new unknown."""
        found = self.asked.z3.FreshInt("i", self.asked.context)
        if low is not None:
            self.add(found >= low)
        return found

    def add(self, *terms: Any) -> None:
        """Add assertions."""
        self.asked.solver.add(*terms)

    def when(self, condition: Any, one: Any) -> Any:
        """Return ``one`` if the condition holds, else 0."""
        return self.asked.z3.If(condition, one, 0)

    def implies(self, condition: Any, *terms: Any) -> None:
        """Add assertions that hold if the condition does."""
        self.add(*[self.asked.z3.Implies(condition, term) for term in terms])

    def keep_apart(self) -> None:
        """Keep ops apart: on one unit, on the warps of one role, and those of variable latency from others."""
        for one, other in itertools.combinations(self.work.ops, 2):
            far = self.starts[other.name] - self.starts[one.name] - self.ii * self.integer()
            if one.unit == other.unit and one.occupancy and other.occupancy:
                self.add(far >= one.occupancy, far <= self.ii - other.occupancy)
            elif one.holds and other.holds:
                together = self.roles[one.name] == self.roles[other.name]
                self.implies(together, far >= one.holds, far <= self.ii - other.holds)
            if one.variable != other.variable:
                self.add(self.roles[one.name] != self.roles[other.name])

    def depend(self) -> None:
        """Add the dependences and the slots that lifetimes need."""
        ops = self.work.by_name
        for edge in self.work.dependences:
            start, then = self.starts[edge.producer], self.starts[edge.consumer] + edge.distance * self.ii
            crossing = self.when(self.roles[edge.producer] != self.roles[edge.consumer], self.work.crossing)
            self.add(then >= start + ops[edge.producer].latency + crossing)
            if edge.ring:
                ends = then + ops[edge.consumer].latency + crossing
                self.add(self.depths[edge.ring] * self.ii >= ends - start)

    def fit_registers(self, target: str) -> None:
        """Bound the registers of each role at the start of each op that takes some, and those of all roles."""
        work, ii = self.work, self.ii
        values = [op for op in work.ops if op.result]
        ends = {op.name: self.integer() for op in values}
        for op in values:
            for name, far in uses(work, op):
                self.add(ends[op.name] >= self.starts[name] + far * ii + work.by_name[name].latency)
        alive = {}  # copies of the second at the start of the first
        for op, value in itertools.product(values, values):
            begun, over, now = self.integer(), self.integer(), self.starts[op.name]
            self.add(ii * (begun + 1) > now - self.starts[value.name], ii * over <= now - ends[value.name])
            alive[op.name, value.name] = begun - over
        total = 0
        for number, role in enumerate(work.roles):
            inside = {op.name: self.roles[op.name] == number for op in work.ops}
            held = role.registers + sum([self.when(inside[op.name], op.registers) for op in work.ops])
            eights = self.integer(SETMAXNREG[0] // SETMAXNREG.step)
            most = eights * SETMAXNREG.step
            self.add(most <= SETMAXNREG[-1], held <= most, held <= THREAD_REGISTERS)
            for op in values:
                parts = [(value.name, value.result * alive[op.name, value.name]) for value in values]
                taken = held + sum([self.when(inside[name], part) for name, part in parts])
                self.implies(inside[op.name], taken <= most, taken <= THREAD_REGISTERS)
            total += role.warps * LANES * most
        self.add(total <= pool(work, target))


def uses(work: Work, op: WorkOp) -> list[tuple[str, int]]:
    """Return the ops that keep the result of an op in registers until they end, with distances; the op itself first."""
    after = [edge for edge in work.dependences if edge.producer == op.name and not edge.ring]
    return [(op.name, 0), *[(edge.consumer, edge.distance) for edge in after]]


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
        ii: The initiation interval, at least the bounds.
        steps: Steps of z3.
        stages: All starts are before ``stages`` times ``ii``.
        most: Bytes of all rings; by default those of a block.
        registers: Whether registers are counted.

    Raises: BudgetError: LA976: the steps are used up.
    """
    question = _Question(work, ii)
    end = (most_stages(work, ii) if stages is None else stages) * ii
    question.add(*[start < end for start in question.starts.values()])
    question.keep_apart()
    question.depend()
    if registers:
        question.fit_registers(target)
    if work.rings:
        question.add(ring_bytes(work, question.depths) <= (shared_bytes(target) if most is None else most))
    groups = question.starts, question.roles
    question.asked.solver.set("rlimit", steps)
    try:
        names = [name for group in groups for name in group.values()]
        found = solve(question.asked, f"a schedule of {work.name} at II = {ii}", names, SECONDS)
    except BudgetError as error:
        if "resource" not in question.asked.solver.reason_unknown():
            raise
        because = f"z3 decided nothing at II = {ii} in {steps} of its own steps; more steps or a larger unit may help"
        raise BudgetError(Diagnostic("LA976", "no schedule was found or excluded", (work.name,), because)) from error
    if found is None:
        return None
    values = iter(found)
    starts, roles = ({name: next(values) for name in group} for group in groups)
    first = min(starts.values())
    starts = {name: start - first for name, start in starts.items()}
    named = {name: work.roles[number].name for name, number in roles.items()}
    depths = {
        ring.name: max([_slots(work, ii, starts, named, edge) for edge in work.uses(ring.name)]) for ring in work.rings
    }
    return Placed(ii, starts, named, depths)


def _slots(work: Work, ii: int, starts: Mapping[str, int], roles: Mapping[str, str], edge: Dependence) -> int:
    """Return the slots that a use of a ring needs with these starts."""
    crossing = work.crossing * (roles[edge.producer] != roles[edge.consumer])
    ends = starts[edge.consumer] + edge.distance * ii + work.by_name[edge.consumer].latency + crossing
    return -(-(ends - starts[edge.producer]) // ii)


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
    while work.rings:
        found = placed(work, target, best.ii, steps, best.stages, ring_bytes(work, best.depths) - 1)
        if found is None:
            break
        best = found
    return best


def pressure(work: Work, found: Placed, role: str) -> int:
    """Return the registers that a thread of a role needs, the most at any time."""
    mine = [op for op in work.ops if found.roles[op.name] == role]

    def alive(op: WorkOp, now: int) -> int:
        ends = [found.starts[name] + far * found.ii + work.by_name[name].latency for name, far in uses(work, op)]
        return op.result * ((now - found.starts[op.name]) // found.ii - (now - max(ends)) // found.ii)

    peaks = [sum([alive(op, found.starts[other.name]) for op in mine]) for other in mine]
    base = next(one.registers for one in work.roles if one.name == role)
    return base + sum([op.registers for op in mine]) + max(peaks, default=0)


def _none(work: Work, target: str, ii: int, steps: int) -> Exception:
    """Return the error of a work without a schedule: what it needs too much of."""
    if placed(work, target, ii, steps, registers=False) is not None:
        op = max(work.ops, key=lambda op: op.registers + op.result)
        each = op.registers + op.result
        because = f"{op.name} takes {each} registers of each thread; a thread has at most {THREAD_REGISTERS}, "
        because += f"the roles together {pool(work, target)}, and more are alive at one time"
        return infeasible(op.name, because, registers=each)
    if placed(work, target, ii, steps, most=MOST_BYTES) is not None:
        ring, most = max(work.rings, key=lambda ring: ring.bytes), shared_bytes(target)
        because = f"slots of {ring.bytes} bytes; no depths of the rings fit the {most} bytes of a block of {target}"
        return infeasible(f"ring {ring.name}", because, bytes=ring.bytes, most=most)
    variable = ", ".join([op.name for op in work.ops if op.variable])
    because = f"no choice of {len(work.roles)} roles keeps ops of variable latency ({variable}) from others, "
    return infeasible("roles", because + "and ops linked by registers together", roles=len(work.roles))
