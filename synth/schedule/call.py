"""``schedule``: the least II of a work, and the pipeline of that schedule, which the verifier proves."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Final

from layoutalg.ground.errors import Diagnostic, InfeasibleError, RepresentabilityError
from layoutalg.ground.picture import Shown
from layoutalg.ground.record import Record
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.pipeline.decision import Proved, verify
from layoutalg.proofs.pipeline.document import LANES, Pipeline
from layoutalg.synth.schedule.bounds import BARRIER_BYTES, bounds, pool, ring_bytes, shared_bytes
from layoutalg.synth.schedule.candidates import Candidate
from layoutalg.synth.schedule.document import pipeline_of
from layoutalg.synth.schedule.solving import STEPS, Placed, least, pressure
from layoutalg.synth.schedule.work import CHECK, Work
from layoutalg.targets.nvidia.registers import SETMAXNREG, whole_units
from layoutalg.targets.registry import lookup

DEEPEST: Final = 16
"""slots: of a ring that is deepened"""


@dataclass(frozen=True, slots=True)
class Schedule(
    Record, Shown, code="LA974", schema="layoutalg/schedule/1",
    json="target ii bound stages unit why proof candidate depths roles starts registers work pipeline",
):  # fmt: skip
    """A modulo schedule whose pipeline is proved safe for every trip count.

    Args:
        work: The work.
        target: Architecture.
        ii: Cycles between the starts of two iterations.
        bound: No schedule has fewer, as counting shows.
        stages: Iterations that overlap.
        depths: Slots of each ring.
        roles: The role that runs each op.
        starts: Cycle in which each op of iteration 0 starts.
        registers: ``setmaxnreg`` of each role.
        why: What binds, in words.
        proof: Why no II is smaller: ``"bound"``, or ``"z3"``: z3 excluded all below.
        pipeline: The pipeline.
        verdict: Its proof.
        unit: All times were rounded up to this many cycles; the schedule is optimal for the rounded ones.
        candidate: The layouts that were chosen, if there was a choice.
    """

    work: Work
    target: str
    ii: int
    bound: int
    stages: int
    depths: Mapping[str, int] = field(hash=False)
    roles: Mapping[str, str] = field(hash=False)
    starts: Mapping[str, int] = field(hash=False)
    registers: Mapping[str, int] = field(hash=False)
    why: str
    proof: str
    pipeline: Pipeline
    verdict: Proved
    unit: int = 1
    candidate: str = ""

    @property
    def gap(self) -> Fraction:
        """II divided by the bound: 1 where nothing can be faster."""
        return Fraction(self.ii, self.bound)

    @property
    def bytes(self) -> int:
        """Bytes of shared memory: rings and barriers."""
        return int(ring_bytes(self.work, self.depths))

    def __str__(self) -> str:
        lines = [f"schedule of {self.work.name}: II {self.ii} cycles, bound {self.bound}, {self.stages} stages"]
        lines += [f"  why        {self.why}", f"  proof      {self.proof}"]
        lines += [f"  unit       {self.unit} cycles"] * (self.unit > 1)
        lines += [f"  layouts    {self.candidate}"] * bool(self.candidate)
        lines.append("  rings      " + ", ".join(f"{ring} {slots}" for ring, slots in self.depths.items()))
        for role, registers in self.registers.items():
            mine = sorted([(start, name) for name, start in self.starts.items() if self.roles[name] == role])
            ops = ", ".join(f"{name} {start}" for start, name in mine) or "idle"
            lines.append(f"  {role:<10} {registers} registers: {ops}")
        return "\n".join(lines)


def schedule(
    work: Work,
    target: str = "sm_90a",
    *,
    candidates: Sequence[Candidate] = (),
    deepen: bool = False,
    unit: int = 1,
    steps: int = STEPS,
) -> Schedule:
    """Return the schedule of least II, then fewest stages, then least shared memory, with a pipeline that is proved.

    Mathematically: op v of iteration k starts at ``s_v + k II`` on one role; dependences, units, warps, registers and
    ``D II >= R`` for the D slots of each ring hold, where R is the time from the start of a fill to its release.

    Args:
        work: Ops, dependences, rings and roles.
        target: Architecture.
        candidates: Layouts to choose from, each with what it changes; the best schedule of all is returned.
        deepen: Whether rings get all shared memory that is left, against latencies longer than stated.
        unit: Cycles to which times are rounded up before solving.
        steps: Steps of z3 for one question, by its own count.

    Raises:
        MalformedError: LA974.
        InfeasibleError: LA975: no II helps; names the op, ring or role and the number.
        BudgetError: LA976: z3 gave up.
        RepresentabilityError: LA977: the pipeline of the schedule is not proved, or the target has no barriers for it.

    Example:
        >>> from layoutalg.synth.schedule.kernels import gemm_work
        >>> found = schedule(gemm_work(128, 256, 64, "bf16", consumers=2))
        >>> found.ii, found.bound, found.proof, found.verdict.engine
        (1024, 1024, 'bound', 'event graph')
        >>> print(found.why)
        the tensor cores: mma0, mma1 occupy 1024 cycles

    Source: Rau, "Iterative Modulo Scheduling" (MICRO 1994); Twill (arXiv 2512.18134).
    """
    CHECK.kind(work, Work, "work")
    CHECK.integer(unit, "unit", 1, 1 << 16)
    CHECK.integer(steps, "steps", 1, 1 << 32)
    if not lookup(target).has_tensor_maps or lookup(target).vendor != "nvidia":
        because = f"{target} has no copies that barriers wait for"
        raise RepresentabilityError(Diagnostic("LA977", "no pipeline carries the schedule", (target,), because))
    if not candidates:
        return _scheduled(work, target, deepen, unit, steps)
    found, told, refused = {}, [], None
    for place, candidate in enumerate(candidates):
        changed = CHECK.kind(candidate, Candidate, f"candidates[{place}]").changed(work, target)
        try:
            found[candidate.name] = _scheduled(changed, target, deepen, unit, steps)
            told.append(f"{candidate.name} {found[candidate.name].ii} cycles")
        except InfeasibleError as error:
            refused = error
            told.append(f"{candidate.name} none")
    if not found and refused is not None:
        raise refused
    best = min(found, key=lambda name: (found[name].ii, found[name].stages, found[name].bytes))
    why = f"{found[best].why}; layouts: {', '.join(told)}"
    return dataclasses.replace(found[best], why=why, candidate=best)


def _scheduled(work: Work, target: str, deepen: bool, unit: int, steps: int) -> Schedule:
    pool(work, target)
    exact, rounded = bounds(work, target), _rounded(work, unit)
    first = bounds(rounded, target)[0]
    found = least(rounded, target, max(1, ceil(first.cycles)), steps)
    bound = max(1, ceil(exact[0].cycles))
    proof, why = "bound", exact[0].reason
    if found.ii > max(1, ceil(first.cycles)):
        proof = "z3"
        why += f"; z3 excludes every II below {found.ii * unit}: the bounds do not hold together"
    elif found.ii * unit > bound:
        why += f"; rounded up to units of {unit} cycles"
    found = _deepened(rounded, target, found) if deepen else found
    pipeline = pipeline_of(rounded, found)
    verdict = verify(pipeline, target)
    if isinstance(verdict, Unknown):
        pipeline = pipeline_of(rounded, found, anchored=True)
        verdict = verify(pipeline, target)
    if not isinstance(verdict, Proved):
        because = f"the verifier says: {str(verdict).splitlines()[0]}"
        raise RepresentabilityError(Diagnostic("LA977", "no pipeline carries the schedule", (work.name,), because))
    starts = {name: start * unit for name, start in found.starts.items()}
    registers = _registers(rounded, target, found)
    counts = found.ii * unit, bound, found.stages
    return Schedule(
        work, target, *counts, found.depths, found.roles, starts, registers, why, proof, pipeline, verdict, unit
    )


def _rounded(work: Work, unit: int) -> Work:
    ops = tuple(
        [dataclasses.replace(op, occupancy=-(-op.occupancy // unit), latency=-(-op.latency // unit)) for op in work.ops]
    )
    return dataclasses.replace(work, ops=ops, crossing=-(-work.crossing // unit))


def _registers(work: Work, target: str, found: Placed) -> dict[str, int]:
    """Return the registers of each role: what it needs; what is left goes to the computing roles with the least."""
    variable = {found.roles[op.name] for op in work.ops if op.variable}
    given = {role.name: max(SETMAXNREG[0], _eights(pressure(work, found, role.name))) for role in work.roles}
    busy = [role for role in work.roles if role.name in set(found.roles.values()) - variable]
    left = pool(work, target) - sum([role.warps * LANES * given[role.name] for role in work.roles])
    while fits := [
        role for role in busy if role.warps * LANES * SETMAXNREG.step <= left and given[role.name] < SETMAXNREG[-1]
    ]:
        least = min(fits, key=lambda role: given[role.name])
        given[least.name] += SETMAXNREG.step
        left -= least.warps * LANES * SETMAXNREG.step
    return given


def _eights(registers: int) -> int:
    return whole_units(registers + SETMAXNREG.step - 1)


def _deepened(work: Work, target: str, found: Placed) -> Placed:
    """Return the schedule with as many slots as fit, the same number more for each ring as far as possible."""
    depths = dict(found.depths)
    left = shared_bytes(target) - ring_bytes(work, found.depths)
    while fits := [
        ring for ring in work.rings if 0 < ring.bytes <= left - BARRIER_BYTES and depths[ring.name] < DEEPEST
    ]:
        least = min(fits, key=lambda ring: depths[ring.name] - found.depths[ring.name])
        depths[least.name] += 1
        left -= least.bytes + BARRIER_BYTES
    return dataclasses.replace(found, depths=depths)
