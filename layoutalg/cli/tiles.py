"""Process one tile of a collection: plan, machine code, comparison and consumer."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from layoutalg.codegen.compile import to_cubin
from layoutalg.codegen.cuda import load_kernel, store_kernel
from layoutalg.codegen.validate import ValidationReport, validate
from layoutalg.ground import clock
from layoutalg.ground.document import Reader
from layoutalg.ground.errors import LayoutError, MalformedError, MissingExtraError
from layoutalg.ground.verdict import Proved
from layoutalg.proofs.handoff import operand_view, prove_handoff
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProblem
from layoutalg.synth import InadmissibleError, synthesize_tensormap
from layoutalg.synth.wgmma import InadmissibleOperandError, synthesize_wgmma
from layoutalg.targets.nvidia import wgmma


@dataclass(slots=True)
class Row:
    """The outcome for one tile.

    Args:
        name: Name of the tile.
        expected: The verdict that the collection expects.
        problem: The TensorMap problem.
        seconds: Wall time of plan and proof.
        plan: The plan, or None.
        refusal: Why there is no plan.
        cubin_bytes: Size of the kernel's machine code; None if it was not compiled.
        report: The comparison; None without a plan.
        consumer: How ``wgmma`` reads the tile, as ``"A K x8"``, or why it cannot; empty without a consumer.
        proved: Whether the handoff to ``wgmma`` is proved; None if there was nothing to prove.
        notes: What was skipped, and why.
        failure: An error, such as an exhausted budget.
    """

    name: str
    expected: str
    problem: TensorMapProblem
    seconds: float = 0.0
    plan: TensorMapPlan | None = None
    refusal: InadmissibleError | None = None
    cubin_bytes: int | None = None
    report: ValidationReport | None = None
    consumer: str = ""
    proved: bool | None = None
    notes: list[str] = field(default_factory=list)
    failure: LayoutError | None = None

    @property
    def good(self) -> bool:
        """Whether the outcome is the expected one and every comparison agreed."""
        if self.failure is not None:
            return False
        verdict = "admissible" if self.plan is not None else "inadmissible"
        agreed = self.report is None or bool(self.report)
        return verdict == self.expected and agreed and self.proved is not False

    def to_json(self) -> dict[str, object]:
        """Return the row as JSON-ready data."""
        return {
            "name": self.name,
            "good": self.good,
            "plan_seconds": round(self.seconds, 5),
            "plan": None if self.plan is None else self.plan.to_json(),
            "refusal": None if self.refusal is None else self.refusal.to_json(),
            "error": None if self.failure is None else self.failure.diagnostic.to_json(),
            "cubin_bytes": self.cubin_bytes,
            "consumer": self.consumer,
            "consumer_proved": self.proved,
            "validation": None if self.report is None else self.report.to_json(),
            "notes": self.notes,
        }


def row_of(tile: Reader, device: str, budget_seconds: float) -> Row:
    """Answer one tile of a collection.

    Raises: MalformedError: LA010, LA540.
    """
    tile.keys(("name", "source", "expect", "problem"), ("note", "rule", "consumer"))
    for key in ("source", "note", "rule"):
        if tile.has(key):
            tile.get(key).text()
    name, expected = tile.get("name").text(), tile.get("expect").text(("admissible", "inadmissible"))
    row = Row(name, expected, TensorMapProblem.from_json(tile.get("problem")))
    try:
        with clock.within(budget_seconds):
            clock.check("a tile")
            _fill(row, device, budget_seconds)
            if row.plan is not None and tile.has("consumer"):
                _consume(row, row.plan, tile.get("consumer"))
    except MalformedError:
        raise
    except LayoutError as error:  # e.g. an exhausted budget: the other tiles are still processed
        row.failure = error
    return row


def _fill(row: Row, device: str, budget_seconds: float) -> None:
    """Plan, compile and compare one tile."""
    began = time.perf_counter()
    try:
        row.plan = synthesize_tensormap(row.problem, budget_seconds=budget_seconds)
    except InadmissibleError as error:
        row.refusal = error
    row.seconds = time.perf_counter() - began
    if row.plan is None:
        return
    kernel = load_kernel(row.plan) if row.plan.direction == "load" else store_kernel(row.plan)
    try:
        row.cubin_bytes = len(to_cubin(kernel))
    except MissingExtraError as error:
        row.notes.append(error.diagnostic.what)
    row.report = validate(row.plan, device=device)


def _consume(row: Row, plan: TensorMapPlan, node: Reader) -> None:
    """Prove that wgmma reads what the copy writes."""
    node.keys(("instruction", "operand", "major"))
    node.get("instruction").text()
    operand, major = node.get("operand").text(("A", "B")), node.get("major").text(("K", "MN"))
    if plan.problem.dtype not in wgmma.DTYPES:
        row.consumer = f"({plan.problem.dtype})"
        row.notes.append(f"wgmma operands are modelled only for {' and '.join(wgmma.DTYPES)}")
        return
    view = operand_view(plan.problem, operand, major)
    try:
        found = synthesize_wgmma(view.problem)
    except InadmissibleOperandError as error:
        row.consumer = "none"
        row.notes.append(f"{row.name}: {error.reasons[0]}")
        return
    row.proved = isinstance(prove_handoff(plan, view, found), Proved)
    row.consumer = f"{view.problem.operand} {found.major} x{len(found.tiles)}"
