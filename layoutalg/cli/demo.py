"""``layoutalg demo``: plan, prove, compile and validate a collection of real tiles; print a 100-column table.

Each row shows the plan, its proof and the time for both, the kernel's machine code, and the byte-for-byte comparison on
the device, or on the simulator without one. Tiles with a ``wgmma`` consumer also show whether every copied element is
proved to be read by the right descriptor. Rows are grouped by outcome.
"""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from layoutalg.cli import commands
from layoutalg.cli.answers import PROVED, REFUTED, exit_code
from layoutalg.cli.files import read_document
from layoutalg.cli.output import Steps, say, say_json
from layoutalg.codegen.compile import to_cubin
from layoutalg.codegen.cuda import load_kernel, store_kernel
from layoutalg.codegen.launch import device as gpu
from layoutalg.codegen.validation import ValidationReport, validate
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
ANSWER = "layoutalg/demo/1"
TILES = Path(__file__).parent / "data" / "real_tiles.json"
WIDTH = 100


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


def row_of(tile: Reader, device: str, seconds: float) -> Row:
    """Answer one tile of a collection."""
    tile.keys(("name", "source", "expect", "problem"), ("note", "rule", "consumer"))
    for key in ("source", "note", "rule"):
        if tile.has(key):
            tile.get(key).text()
    name, expected = tile.get("name").text(), tile.get("expect").text(("admissible", "inadmissible"))
    row = Row(name, expected, TensorMapProblem.from_json(tile.get("problem")))
    try:
        with clock.within(seconds):
            clock.check("a tile")
            _fill(row, device, seconds)
            if row.plan is not None and tile.has("consumer"):
                _consume(row, row.plan, tile.get("consumer"))
    except MalformedError:
        raise
    except LayoutError as error:  # e.g. an exhausted budget: the other tiles are still processed
        row.failure = error
    return row


def _fill(row: Row, device: str, seconds: float) -> None:
    """Plan, compile and compare one tile."""
    began = time.perf_counter()
    try:
        row.plan = synthesize_tensormap(row.problem, seconds=seconds)
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


def run_demo(given: commands.Demo) -> int:
    """Run the collection; print the table, its legend and remarks."""
    reader = Reader(read_document(str(TILES) if given.file is None else given.file))
    reader.keys(("schema", "tiles"))
    reader.schema(SCHEMA)
    tiles = list(reader.get("tiles").items())
    if not tiles:
        reader.get("tiles").fail("must have at least one tile")
    began = time.perf_counter()
    steps, rows = Steps(len(tiles)), []
    for index, tile in enumerate(tiles):
        rows.append(row_of(tile, given.device, given.budget))
        steps.done(index + 1, rows[-1].name)
    spent = time.perf_counter() - began
    if given.json:
        say_json({"schema": ANSWER, "rows": [row.to_json() for row in rows], "seconds": round(spent, 3)})
    else:
        say("\n".join([*_table(rows), *_legend(rows), "", *_remarks(rows, spent)]))
    codes = [exit_code(row.failure) if row.failure else PROVED if row.good else REFUTED for row in rows]
    return max(codes)


_HEADER = ("tile", "type", "box", "swizzle", "copies", "fill", "ms", "wgmma")
_GROUPS = (
    ("loads proved to match their wgmma descriptors", lambda row: row.plan is not None and row.proved is True),
    ("other loads", lambda row: row.plan is not None and row.plan.direction == "load"),
    ("stores", lambda row: row.plan is not None),
    ("refused: no TensorMap can copy these tiles, because of these rules", lambda row: row.refusal is not None),
    ("not decided", lambda row: row.failure is not None),
)


def _groups(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    left = list(rows)
    for title, belongs in _GROUPS:
        here = [row for row in left if belongs(row)]
        left = [row for row in left if not belongs(row)]
        if here:
            yield f"{title} ({len(here)})", here


def _table(rows: Sequence[Row]) -> Iterator[str]:
    cells = {id(row): _cells(row) for row in rows if row.plan is not None}
    lines = [_HEADER, *cells.values()]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADER))]
    widths[0] += min(0, WIDTH - sum(widths) - 2 * (len(widths) - 1))  # long names are cut to fit
    for title, here in _groups(rows):
        yield title
        if here[0].plan is not None:
            yield _line(_HEADER, widths)
            yield "  ".join("-" * width for width in widths)
        for row in here:
            if row.plan is not None:
                yield _line(cells[id(row)], widths)
                continue
            rules = ", ".join(violation.rule for violation in row.refusal.violations) if row.refusal else ""
            why = row.failure.diagnostic.code if row.failure else rules
            yield f"{_short(row.name, 40):<42}{why}"[:WIDTH]
        yield ""


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    parts = [_short(cell, width).ljust(width) for cell, width in zip(cells, widths, strict=True)]
    return "  ".join(parts).rstrip()


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 2, 0)] + ".."


def _cells(row: Row) -> tuple[str, ...]:
    plan = row.plan
    if plan is None:
        raise ValueError("only a plan has cells")
    tm = plan.tensor_map
    consumer = row.consumer + {True: "", False: " REFUTED", None: ""}[row.proved]
    mark = "" if row.report is None or row.report else " DIFFERS"
    box = "x".join(str(extent) for extent in tm.box)
    spent = f"{1e3 * row.seconds:.1f}"
    return row.name, plan.problem.dtype, box + mark, tm.swizzle, str(len(plan.issues)), plan.oob, spent, consumer


def _legend(rows: Sequence[Row]) -> Iterator[str]:
    yield "box      extents of one copy, innermost dimension first; copies: copies per tile"
    yield "fill     exact: correct for every tile, including those over the tensor's edge; weak: for every"
    yield "         tile that starts in bounds; lost: some tile at the edge gets wrong data"
    yield "ms       time for plan and proof"
    yield "wgmma    operand, major and number of instructions whose descriptors read the tile, proved for"
    yield "         every element; none: no descriptor reads it; (type): not modelled; empty: not asked"
    engines = sorted({str(row.plan.certificate["engine"]) for row in rows if row.plan and row.plan.certificate})
    if engines:
        yield f"Every plan is proved for every tile origin, by {' or '.join(engines)}."


def _remarks(rows: Sequence[Row], spent: float) -> Iterator[str]:
    planned = sorted(row.seconds for row in rows)
    plans = [(row, row.plan) for row in rows if row.plan is not None]
    agreed = sum(1 for row in rows if row.report is not None and row.report)
    compared = sum(row.report.compared_bytes for row in rows if row.report is not None)
    info = gpu() if any(row.report is not None and row.report.backend == "cuda" for row in rows) else None
    where = "the simulator" if info is None else info.name
    yield f"{len(rows)} tiles in {spent:.1f} s; plan and proof: median {1e3 * planned[len(planned) // 2]:.1f} ms"
    if plans:
        yield f"{agreed} of {len(plans)} plans agree byte for byte, {compared:,} bytes compared on {where}"
    compiled = [row.cubin_bytes for row in rows if row.cubin_bytes is not None]
    if compiled:
        yield f"{len(compiled)} kernels compiled, {min(compiled):,} to {max(compiled):,} bytes of machine code each"
    for note in sorted({note for row in rows for note in row.notes if not note.startswith(row.name)}):
        many = sum(note in row.notes for row in rows)
        yield f"skipped for {many} tiles: {note}"[:WIDTH]
    unexpected = [row.name for row in rows if not row.good]
    if unexpected:
        yield f"NOT AS EXPECTED: {', '.join(unexpected)}"
    yield from _remarkable(rows)


def _remarkable(rows: Sequence[Row]) -> Iterator[str]:
    """Rows of the table worth a look."""
    found = []
    plans = [(row, row.plan) for row in rows if row.plan is not None]
    viewed = [row.name for row, plan in plans if len(plan.tensor_map.dims) != plan.problem.rank]
    if viewed:
        found.append(f"{len(viewed)} maps differ in rank from their tensor, such as {viewed[0]}")
    chip = [row.name for row, plan in plans if plan.undocumented]
    if chip:
        found.append(f"{len(chip)} maps break documented rules that the chip does not enforce; synth, check and")
        found.append(f"  emit refuse them with --documented-only; for instance {chip[0]}")
    several = max(plans, key=lambda entry: len(entry[1].issues), default=None)
    if several is not None and len(several[1].issues) > 1:
        found.append(f"{several[0].name} needs the most copies, {len(several[1].issues)}")
    short = [f"{row.name} ({plan.oob})" for row, plan in plans if plan.oob != "exact"]
    if short:
        more = ", ..." if len(short) > 2 else ""
        found.append(f"{len(short)} do not have exact out-of-bounds fill: {', '.join(short[:2])}{more}")
    refused = [(row, row.refusal) for row in rows if row.refusal is not None]
    helped = [(row, refusal) for row, refusal in refused if refusal.repairs]
    if refused:
        found.append(f"{len(helped)} of {len(refused)} refusals come with a planned and proved repair")
    if found:
        yield ""
        yield "remarkable"
        yield from (f"  {line}" for line in found)
    if refused:
        row, refusal = (helped or refused)[0]
        yield ""
        yield f"a refusal, {row.name}"
        for line in str(refusal).split("\n"):
            yield from textwrap.wrap(line, WIDTH, initial_indent="  ", subsequent_indent=" " * 11)
