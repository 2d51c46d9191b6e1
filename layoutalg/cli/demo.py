"""``layoutalg demo``: the main job over a collection of real tiles, one table.

Main definitions: ``demo``.

Each row: the plan, its proof and the time both took, the kernel's machine code, and the byte-for-byte comparison on the
device (or on the simulator where there is none). Tiles that name a ``wgmma`` consumer also show whether the copy is
proved to hand every element to the descriptor that reads it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from layoutalg.cli.exits import PROVED, REFUTED, exit_code
from layoutalg.cli.files import read_document
from layoutalg.cli.output import progress, say, say_json
from layoutalg.codegen.compile import to_cubin
from layoutalg.codegen.cuda import load_kernel, store_kernel
from layoutalg.codegen.launch import device as gpu
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

SCHEMA = "layoutalg/real-tiles/1"


@dataclass(slots=True)
class _Row:
    """What became of one tile."""

    name: str
    expected: str
    seconds: float = 0.0
    plan: TensorMapPlan | None = None
    refusal: InadmissibleError | None = None
    cubin_bytes: int | None = None
    report: ValidationReport | None = None
    consumer: str = ""
    notes: list[str] = field(default_factory=list)
    failure: LayoutError | None = None

    @property
    def good(self) -> bool:
        """Whether everything came out as the collection says, and every comparison agreed."""
        if self.failure is not None:
            return False
        verdict = "admissible" if self.plan is not None else "inadmissible"
        agreed = self.report is None or bool(self.report)
        return verdict == self.expected and agreed and "refuted" not in self.consumer

    def to_json(self) -> dict[str, object]:
        """Return the row as JSON-ready data."""
        answer: dict[str, object] = {"name": self.name, "good": self.good, "plan_seconds": round(self.seconds, 5)}
        if self.plan is not None:
            answer["plan"] = self.plan.to_json()
        if self.refusal is not None:
            answer["refusal"] = self.refusal.to_json()
        if self.failure is not None:
            answer["error"] = self.failure.diagnostic.to_json()
        answer |= {"cubin_bytes": self.cubin_bytes, "consumer": self.consumer}
        answer["validation"] = None if self.report is None else self.report.to_json()
        return answer


def demo(name: str, device: str, budget_seconds: float, as_json: bool) -> int:
    """Run the main job over a collection and print one table; then the first refusal with its repairs."""
    reader = Reader(read_document(name))
    reader.keys(("schema", "tiles"))
    reader.schema(SCHEMA)
    tiles = list(reader.get("tiles").items())
    if not tiles:
        reader.get("tiles").fail("must have at least one tile")
    began = time.perf_counter()
    rows = []
    for index, tile in enumerate(tiles):
        rows.append(_row(tile, device, budget_seconds))
        progress(index + 1, len(tiles), rows[-1].name)
    spent = time.perf_counter() - began
    if as_json:
        say_json({"rows": [row.to_json() for row in rows], "seconds": round(spent, 3)})
    else:
        _print_table(rows, spent)
    codes = [exit_code(row.failure) if row.failure else PROVED if row.good else REFUTED for row in rows]
    return max(codes)


def _row(tile: Reader, device: str, budget_seconds: float) -> _Row:
    tile.keys(("name", "source", "expect", "problem"), ("note", "rule", "consumer"))
    for key in ("source", "note", "rule"):
        if tile.has(key):
            tile.get(key).text()
    row = _Row(tile.get("name").text(), tile.get("expect").text(("admissible", "inadmissible")))
    problem = TensorMapProblem.from_json(tile.get("problem"))
    try:
        with clock.within(budget_seconds):
            clock.check("a tile")
            _fill(row, problem, device, budget_seconds)
            if row.plan is not None and tile.has("consumer") and problem.dtype in wgmma.DTYPES:
                row.consumer = _consumer(row.plan, tile.get("consumer"))
    except MalformedError:
        raise
    except LayoutError as error:  # a budget, say: the other tiles are still answered
        row.failure = error
    return row


def _fill(row: _Row, problem: TensorMapProblem, device: str, budget_seconds: float) -> None:
    """Plan, compile and compare one tile."""
    began = time.perf_counter()
    try:
        row.plan = synthesize_tensormap(problem, budget_seconds=budget_seconds)
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


def _consumer(plan: TensorMapPlan, node: Reader) -> str:
    """Prove that wgmma reads what the copy writes."""
    node.keys(("instruction", "operand", "major"))
    node.get("instruction").text()
    view = operand_view(plan.problem, node.get("operand").text(("A", "B")), node.get("major").text(("K", "MN")))
    try:
        operand = synthesize_wgmma(view.problem)
    except InadmissibleOperandError as error:
        return f"none: {error.reasons[0]}"
    verdict = prove_handoff(plan, view, operand)
    what = f"{view.problem.operand} {operand.major}-major x{len(operand.tiles)}"
    return f"{what} proved" if isinstance(verdict, Proved) else f"{what} refuted"


_HEADER = (
    "tile", "verdict", "box", "swizzle", "issues", "fill", "proof", "ms", "cubin B", "validated", "wgmma reads it",
)  # fmt: skip


def _print_table(rows: list[_Row], spent: float) -> None:
    table = [_HEADER, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in table) for column in range(len(_HEADER))]
    for index, line in enumerate(table):
        say("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
        if index == 0:
            say("  ".join("-" * width for width in widths))
    info = gpu()
    where = "no GPU here: the simulator compared" if info is None else f"{info.name} compared"
    agreed = sum(1 for row in rows if row.report is not None and row.report)
    compared = sum(row.report.compared_bytes for row in rows if row.report is not None)
    planned = sorted(row.seconds for row in rows)
    say("")
    say(f"{len(rows)} tiles in {spent:.1f} s; plan and proof: median {1e3 * planned[len(planned) // 2]:.1f} ms")
    say(f"{agreed} plans agree byte for byte, {compared} bytes in all ({where})")
    unexpected = [row.name for row in rows if not row.good]
    if unexpected:
        say(f"NOT AS EXPECTED: {', '.join(unexpected)}")
    refused = next((row for row in rows if row.refusal is not None), None)
    if refused is not None:
        say(f"\nthe first refusal, {refused.name}:\n{refused.refusal}")


def _cells(row: _Row) -> tuple[str, ...]:
    if row.failure is not None:
        return (row.name, "not decided", row.failure.diagnostic.code, *[""] * 4, f"{1e3 * row.seconds:.1f}", *[""] * 3)
    if row.plan is None:
        rules = ", ".join(violation.rule for violation in row.refusal.violations) if row.refusal else ""
        return (row.name, "inadmissible", rules, "", "", "", "", f"{1e3 * row.seconds:.1f}", "", "", "")
    plan = row.plan
    engine = str(plan.certificate["engine"]) if plan.certificate is not None else ""
    report = row.report
    checked = "" if report is None else f"{'agrees' if report else 'DIFFERS'} ({report.backend})"
    return (
        row.name,
        "admissible" if plan.direction == "load" else "admissible, store",
        "x".join(str(extent) for extent in plan.tensor_map.box),
        plan.tensor_map.swizzle,
        str(len(plan.issues)),
        plan.oob,
        engine,
        f"{1e3 * row.seconds:.1f}",
        "" if row.cubin_bytes is None else str(row.cubin_bytes),
        checked,
        row.consumer,
    )
