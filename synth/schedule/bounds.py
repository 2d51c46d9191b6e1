"""Lower bounds on the initiation interval (II), exact, each with the reason that binds.

Notation: R is the time from the start of the op that fills a slot to its release, D the number of slots. Every
schedule has ``D II >= R``.

References: Rau, "Iterative Modulo Scheduling" (MICRO 1994): ResMII and RecMII; Little's law for D.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from layoutalg.ground.errors import Diagnostic, InfeasibleError
from layoutalg.proofs.pipeline.cycles import critical
from layoutalg.proofs.pipeline.document import LANES
from layoutalg.proofs.pipeline.resources import limits_of
from layoutalg.synth.schedule.work import UNITS, Dependence, Work, WorkOp, WorkRole
from layoutalg.targets.nvidia.registers import launch_registers
from layoutalg.targets.registry import lookup

BARRIER_BYTES = 16
"""Of the two barriers of a slot."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower bound on the cycles of an iteration: its value, the reason in words."""

    cycles: Fraction
    reason: str


def shared_bytes(target: str) -> int:
    """Return the bytes of shared memory of a block."""
    return lookup(target).shared_kib[0] * 1024


def pool(work: Work, target: str) -> int:
    """Return the registers that the roles share: those of all threads at launch, a multiple of 8 for each.

    Raises: InfeasibleError: LA975: more threads than a block has.
    """
    threads = sum([role.warps for role in work.roles]) * LANES
    most = limits_of(target)["threads_per_block"]
    if threads > most:
        raise infeasible("roles", f"{threads} threads; a block of {target} has {most}", threads=threads, most=most)
    return threads * launch_registers(threads)


def infeasible(where: str, because: str, **witness: object) -> InfeasibleError:
    """Return the error of a work that has no schedule."""
    return InfeasibleError(Diagnostic("LA975", "no schedule exists", (where,), because, witness))


def allowed(work: Work, op: WorkOp) -> list[WorkRole]:
    """Return the roles that may run an op, as far as the op alone says."""
    return [role for role in work.roles if op.role in ("", role.name) and role.warps >= op.warps]


def crosses(work: Work, edge: Dependence) -> bool:
    """Whether the ends of a dependence are in two roles whatever the solver chooses."""
    one, other = work.by_name[edge.producer], work.by_name[edge.consumer]
    return one.variable != other.variable or bool(one.role and other.role and one.role != other.role)


def bounds(work: Work, target: str) -> list[Bound]:
    """Return the lower bounds of a work, the largest first.

    Raises: InfeasibleError: LA975: a ring does not fit, or no role can run an op.
    """
    check_fits(work, target)
    found = [*_units(work), *_warps(work), _recurrence(work), _memory(work, target)]
    return sorted(found, key=lambda bound: -bound.cycles)


def check_fits(work: Work, target: str) -> None:
    """Refuse what no initiation interval helps.

    Raises: InfeasibleError: LA975.
    """
    for op in work.ops:
        if not allowed(work, op):
            most = max(role.warps for role in work.roles if op.role in ("", role.name))
            raise infeasible(op.name, f"{op.warps} warps; its roles have at most {most}", warps=op.warps)
    depths, most = slots(work, serial(work)), shared_bytes(target)
    least = ring_bytes(work, depths)
    if least > most:
        ring = max(work.rings, key=lambda ring: ring.bytes * depths[ring.name])
        because = f"{depths[ring.name]} slots of {ring.bytes} bytes at the least; all rings then take {least} bytes of "
        because += f"shared memory, a block of {target} has {most}"
        raise infeasible(f"ring {ring.name}", because, bytes=least, most=most)


def ring_bytes(work: Work, depths: Mapping[str, Any]) -> Any:
    """Return the bytes of all rings with these numbers of slots, integers or terms of z3, and of their barriers."""
    return sum([depths[ring.name] * (ring.bytes + BARRIER_BYTES) for ring in work.rings])


def serial(work: Work) -> int:
    """Return an II at which there is a schedule if there is one at all.

    Cycles in which nothing runs, seen modulo II, can be left out of any schedule; these are the others.
    """
    return sum([op.latency + 2 * work.crossing for op in work.ops])


def _units(work: Work) -> Iterator[Bound]:
    """Yield ResMII of each unit."""
    for unit, words in UNITS.items():
        ops = [op for op in work.ops if op.unit == unit and op.occupancy]
        total = sum([op.occupancy for op in ops])
        yield Bound(Fraction(total), f"{words}: {', '.join(op.name for op in ops)} occupy {total} cycles")


def _warps(work: Work) -> Iterator[Bound]:
    """Yield ResMII of the warps that run each team."""
    for team in work.teams:
        total = sum([work.by_name[name].holds for name in team])
        yield Bound(Fraction(total), f"the warps of {', '.join(team)}: {total} cycles one after another")


def weight(work: Work, edge: Dependence, crossing: bool) -> int:
    """Return the cycles from the start of the producer to that of the consumer, at least."""
    return work.by_name[edge.producer].latency + work.crossing * crossing


def _recurrence(work: Work) -> Bound:
    """Return RecMII: the largest ratio of latency to distance of a cycle."""
    names = list(work.by_name)
    edges = [
        (
            names.index(edge.producer), names.index(edge.consumer), edge.distance,
            Fraction(weight(work, edge, crosses(work, edge))),
        )
        for edge in work.dependences
    ]  # fmt: skip
    cycle, total, turns = critical(len(names), edges)
    if not cycle:
        return Bound(total, "no recurrence")
    first = cycle.index(min(cycle))
    path = " -> ".join([names[op] for op in (*cycle[first:], *cycle[: first + 1])])
    words = f"recurrence {path}: {total} cycles in {turns} iteration{'s' * (turns != 1)}"
    return Bound(total / turns, words)


def slots(work: Work, cycles: int) -> dict[str, int]:
    """Return the slots that each ring needs at an II, at least."""
    return {ring: max([-(-far // cycles) + turns for far, turns in found]) for ring, found in lifetimes(work).items()}


def lifetimes(work: Work) -> Mapping[str, list[tuple[int, int]]]:
    """Return for each ring pairs (R, d): a slot is not free before R cycles and d iterations after its start."""
    late: dict[str, dict[str, int]] = {op.name: {op.name: 0} for op in work.ops}  # from a producer, to those after it
    for op in work.order():
        for edge in work.dependences:
            if edge.producer == op.name and not edge.distance:
                far = weight(work, edge, crosses(work, edge))
                for start, times in late.items():
                    if op.name in times:
                        reach = late[start].get(edge.consumer, 0)
                        late[start][edge.consumer] = max(reach, times[op.name] + far)
    found: dict[str, list[tuple[int, int]]] = {ring.name: [] for ring in work.rings}
    for edge in work.dependences:
        if edge.ring:
            crossing = crosses(work, edge)
            free = work.by_name[edge.consumer].latency + crossing * work.crossing
            found[edge.ring].append((weight(work, edge, crossing) + free, 0))
            if edge.consumer in late[edge.producer]:
                found[edge.ring].append((late[edge.producer][edge.consumer] + free, edge.distance))
    return found


def _memory(work: Work, target: str) -> Bound:
    """Return the least II at which all rings fit with the slots that their lifetimes need: the cap ``II >= R / D``."""
    low, high, most = 1, serial(work), shared_bytes(target)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if ring_bytes(work, slots(work, middle)) <= most else (middle + 1, high)
    words = f"shared memory: at {low} cycles the rings need {ring_bytes(work, slots(work, low))} of {most} bytes"
    return Bound(Fraction(low), words)
