"""Decide whether a pipeline is safe for every trip count: proved by its event graph, or refuted by a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from layoutalg.ground import clock
from layoutalg.ground.errors import BudgetError, Repair, RepresentabilityError
from layoutalg.ground.verdict import SCHEMA, Unknown
from layoutalg.ground.verdict import Proved as Holds
from layoutalg.ground.verdict import Refuted as Fails
from layoutalg.proofs.certify.certificate import Certificate
from layoutalg.proofs.pipeline import explore
from layoutalg.proofs.pipeline.certificate import certificate
from layoutalg.proofs.pipeline.document import Pipeline
from layoutalg.proofs.pipeline.expansion import expanded
from layoutalg.proofs.pipeline.explore import Run
from layoutalg.proofs.pipeline.kernels.recovery import recovered
from layoutalg.proofs.pipeline.machine import Machine
from layoutalg.proofs.pipeline.ops import CHECK
from layoutalg.proofs.pipeline.proving import Gap, Proof, prove
from layoutalg.proofs.pipeline.repairs import repairs
from layoutalg.proofs.pipeline.resources import infeasible

POLICIES: Final = ("strict", "practice")
SECONDS: Final = 60.0
"""seconds: deciding one pipeline"""
STATES: Final = 10_000
"""states: of the search for the shortest run"""
RUN_EVENTS: Final = 4_000
"""events: the most of one run that holds an event back; larger N are not tried"""


@dataclass(frozen=True, slots=True)
class Refuted(Fails):
    """A pipeline that can go wrong: the kind, where, and a run that ends there.

    Args:
        kind: ``"deadlock"``, ``"race"``, ``"tx_mismatch"``, ``"ub"`` or ``"infeasible"``; see docs/pipelines.md.
        role: The role whose op goes wrong.
        barrier: Barrier of that op, if it has one.
        buffer: Buffer of that op, if it has one.
        slot: Slot of the barrier, or of the buffer; None where no run leads there.
        phase: Phase that the op names.
        trips: N of the run.
        interleaving: Its events in order: (role, op, k), the last goes wrong.
        subject: The pipeline and the policy.
        run: The same run as states of the machine.
    """

    kind: str = ""
    role: str = ""
    barrier: str = ""
    buffer: str = ""
    slot: int | None = None
    phase: int | None = None
    trips: int | None = None
    interleaving: tuple[tuple[str, str, int], ...] = ()
    subject: tuple[Pipeline, str] | None = field(default=None, repr=False)
    run: Run | None = field(default=None, repr=False, compare=False)

    @property
    def repairs(self) -> tuple[Repair, ...]:
        """Single changes with which the pipeline is proved; looked for when they are read."""
        return repairs(*self.subject) if self.subject else ()

    @property
    def place(self) -> str:
        """Where it goes wrong, as far as it is known."""
        known = [(name, getattr(self, name)) for name in ("role", "barrier", "buffer", "slot", "phase")]
        return ", ".join(f"{name} {value}" for name, value in (*known, ("N", self.trips)) if value not in ("", None))

    def __str__(self) -> str:
        lines = [f"refuted       {self.kind}: {self.witness.get('what', '')}"]
        lines += [f"  at          {self.place}"] if self.place else []
        if self.kind == "deadlock" and not self.interleaving:
            lines.append("  run         before any event")
        if self.interleaving:
            lines.append("  run")
            width = max(len(role) for role, _, _ in self.interleaving)
            lines += [f"    {role:<{width}}  k={k:<3} {op}" for role, op, k in self.interleaving]
        lines += [f"  repair      {repair}" for repair in self.repairs]
        return "\n".join(lines)

    def to_json(self) -> dict[str, object]:
        """Return the verdict as JSON-ready data."""
        names = ("kind", "role", "barrier", "buffer", "slot", "phase", "trips")
        lists = {
            "interleaving": [list(event) for event in self.interleaving],
            "repairs": [repair.to_json() for repair in self.repairs],
        }
        witness = {**self.witness, **{name: getattr(self, name) for name in names}, **lists}
        return {"schema": SCHEMA, "verdict": "refuted", "engine": self.engine, "witness": witness}


@dataclass(frozen=True, slots=True)
class Proved(Holds):
    """A pipeline that is safe for every N.

    Args:
        subject: The pipeline, the policy and the proof.
    """

    subject: tuple[Pipeline, str, Proof] | None = field(default=None, repr=False, compare=False)

    def to_certificate(self) -> Certificate:
        """Return the certificate with which the stand-alone checker confirms this.

        Raises: MalformedError: LA970: this was not made by ``verify``.
        """
        if self.subject is None:
            raise CHECK.malformed("subject", "must be the proof that verify keeps", None)
        return certificate(*self.subject)


def verify(pipeline: object, target: str = "sm_90a", policy: str = "strict") -> Proved | Refuted | Unknown:
    """Decide whether a pipeline can hang or touch a slot at the wrong time, for every N that it allows.

    Args:
        pipeline: A ``Pipeline``, or a document of one: data or JSON text; or the text of a Triton kernel (TTGIR).
        target: Architecture.
        policy: ``"strict"``, or ``"practice"``: a copy may overwrite a slot after generic reads with no proxy fence,
            and stores may run when the block ends.

    Raises: MalformedError: LA970, LA972, LA010 to LA014.

    Example:
        >>> ring = {"schema": "layoutalg/pipeline/1", "stages": 2, "buffers": {"A": {}},
        ...     "barriers": {"full": {"count": 1}, "empty": {"count": 1}},
        ...     "roles": [
        ...         {"name": "load", "loop": [{"op": "wait", "bar": "empty", "ph": -1},
        ...             {"op": "arrive_tx", "bar": "full", "bytes": 64},
        ...             {"op": "tma_load", "buf": "A", "bar": "full", "bytes": 64}]},
        ...         {"name": "use", "loop": [{"op": "wait", "bar": "full"}, {"op": "read", "buf": "A"},
        ...             {"op": "proxy_fence"}, {"op": "arrive", "bar": "empty"}]}]}
        >>> safe = verify(ring)
        >>> print(safe.engine, "|", safe.to_certificate().check().certificate["claim"])
        event graph | safe for every N >= 0, by 10 facts
        >>> del ring["roles"][1]["loop"][3]
        >>> wrong = verify(ring)
        >>> print(wrong.kind, "of", wrong.role, "at", wrong.barrier, wrong.slot)
        deadlock of load at empty 0
        >>> for what in wrong.witness["what"].split("; "):
        ...     print(what)
        load waits for empty[0] phase 0: 0 of 1 arrival, nobody arrives
        use waits for full[0] phase 1: 0 of 1 arrival, load never arrives
        >>> print(wrong.repairs[0])
        add an op: arrive empty[k] at the end of use.loop
    """
    CHECK.choice(policy, "policy", POLICIES)
    if isinstance(pipeline, str) and pipeline.lstrip()[:1] not in ("{", "[", ""):
        return _of_kernel(pipeline, target, policy)
    value = pipeline if isinstance(pipeline, Pipeline) else Pipeline.from_json(pipeline)
    broken = infeasible(value, target)
    if broken is not None:
        what, ring = broken
        return Refuted("capacity", {"what": what}, "infeasible", barrier=ring)
    try:
        with clock.within(SECONDS):
            found = prove(value, policy)
            if isinstance(found, Proof):
                claim = {"claim": f"safe for every N >= {value.least}", "obligations": len(found.shown)}
                return Proved("event graph", claim, (expanded(value), policy, found))
            refuted, tried = refute(value, policy, found)
    except BudgetError as error:
        return Unknown(error.diagnostic.because, ("event graph", "runs"))
    return refuted if refuted is not None else Unknown(found.reason, ("event graph", *tried))


def _of_kernel(text: str, target: str, policy: str) -> Proved | Refuted | Unknown:
    """Decide about a Triton kernel. Its text names no phases, so those that were guessed refute nothing."""
    try:
        document, apart = recovered(text)
    except RepresentabilityError as error:
        told = error.diagnostic
        return Unknown(f"{', '.join(told.where)}: {told.because}", ("TTGIR",))
    found = verify(document, target, policy)
    if apart and isinstance(found, Refuted) and found.kind not in ("deadlock", "tx_mismatch"):
        return Unknown(f"inner loops are taken apart, and alone {found.witness['what']}", ("TTGIR",))
    if isinstance(found, Refuted) and found.kind == "ub" and "phase" in str(found.witness["what"]):
        return Unknown(f"{found.role} at {found.barrier} {found.witness['what']}", ("TTGIR", found.engine))
    return found


def refute(pipeline: Pipeline, policy: str, gap: Gap) -> tuple[Refuted | None, tuple[str, ...]]:
    """Return a refutation, or None and what was tried."""
    subject = pipeline, policy
    pipeline = expanded(pipeline)
    wrong = gap.miscount
    run, tried = _run(pipeline, policy, wrong.trips if wrong else None)
    events = () if run is None else tuple(map(run.machine.named, run.events))
    slot: int | None
    phase: int | None
    if wrong is not None and (wrong.kind == "tx_mismatch" or not (run or pipeline.reset)):
        kind, what, role, op, trips = wrong.kind, wrong.what, wrong.use.role, wrong.use.op, wrong.trips
        phase, slot = divmod(wrong.number, pipeline.rings[wrong.ring])
    elif run is not None:
        task, trips = run.violation.task, run.machine.trips
        kind, what, role, op = run.violation.kind, run.violation.what, pipeline.roles[task.role].name, task.op
        slot, phase = run.machine.slot(task), task.phase if op.bar else None
    else:
        return None, tried
    return Refuted("runs", {"what": what}, kind, role, op.bar, op.buf, slot, phase, trips, events, subject, run), tried


def _run(pipeline: Pipeline, policy: str, likely: int | None) -> tuple[Run | None, tuple[str, ...]]:
    """Return a run to a violation, the shortest where the states of all shorter ones are few."""
    least = pipeline.least
    slots = max(pipeline.rings.values(), default=1)
    lag = max([abs(op.off) + op.first + op.last + abs(op.idx_abs or 0) for op in pipeline.ops()], default=0)
    far = 2 * slots + lag + 3 + 2 * pipeline.reset
    tries = {least, least + 1, least + 2, slots, slots + 1, slots + 2, 2 * slots, 2 * slots + 1, far}
    tries |= set() if likely is None else {likely}
    for soft in (False, True):
        for trips in sorted([trips for trips in tries if trips >= least]):
            machine = Machine(pipeline, trips, policy, soft)
            if sum(map(len, machine.tasks)) ** 2 > RUN_EVENTS * 100:
                break
            run = explore.delayed(machine)
            run = run or (None if soft else explore.delayed(machine, signals_last=True))
            if run is not None:
                shorter, _ = _shortest(machine, trips)
                return shorter or (run if run.violation.kind == "deadlock" else explore.pruned(run)), ()
        run, trips = _shortest(Machine(pipeline, least, policy, soft), max(least, far))
        if run is not None:
            return run, ()
    return None, (f"runs with N up to {trips}",)


def _shortest(machine: Machine, most: int) -> tuple[Run | None, int]:
    """Return the shortest run with the fewest iterations if the states suffice, and the last N tried."""
    budget = STATES
    for trips in range(machine.pipeline.least, most + 1):
        found, budget = explore.shortest(Machine(machine.pipeline, trips, machine.policy, machine.soft), budget)
        if found is not None or not budget:
            break
    return found, trips
