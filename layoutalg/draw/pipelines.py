"""Draw pipelines: a lane for each role, a row for each slot, time to the right, arrows from phases to waits."""

from __future__ import annotations

import textwrap
from typing import Final

from layoutalg.draw.answers import draw_verdict
from layoutalg.draw.canvas import LEVELS, Canvas, cut, draw_value
from layoutalg.draw.timeline import Fill, Mark, Timeline, of_pipeline, of_proof, of_refutation
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.pipeline.decision import Proved, Refuted, verify
from layoutalg.proofs.pipeline.document import Pipeline

STEP, LANE, ROW = 32.0, 40.0, 18.0
"""Width of a step; height of a role's lane and of a slot's row."""
STEPS, SLOTS = 64, 8
"""Most steps and most slots of a buffer that are drawn."""
LINE = 110
SHORT: Final = {
    "wait": "wait",
    "arrive": "arr",
    "expect": "exp",
    "arrive_tx": "tx",
    "tma_load": "load",
    "read": "read",
    "write": "wr",
    "mma": "mma",
    "mma_arrive": "sig",
    "tma_store": "st",
    "cp_async": "cp",
    "cp_async_arrive": "sig",
    "proxy_fence": "fnc",
}
"""What stands in the box of an op; a wait for groups shows how many it leaves open."""
MEANS: Final = {
    "arr": "arrive",
    "exp": "expect",
    "tx": "arrive_tx",
    "wr": "write",
    "sig": "an arrival after asynchronous ops",
    "st": "tma_store",
    "cp": "cp_async",
    "fnc": "proxy_fence",
}


@draw_value.register(Pipeline)
def draw_pipeline(pipeline: Pipeline, canvas: Canvas, top: float) -> None:
    """Decide the pipeline and draw the verdict."""
    found = verify(pipeline)
    if isinstance(found, Unknown):
        canvas.text(8, top + 18, f"unknown: {found.reason}"[:LINE], "h")
        note = "a run in which the roles go on in turn; it proves nothing"
        _timeline(canvas, of_pipeline(pipeline, "strict"), top + 26, note)
    else:
        draw_value(found, canvas, top)


@draw_value.register(Proved)
def draw_proved(found: Proved, canvas: Canvas, top: float) -> None:
    """Draw the first iterations of a proved pipeline."""
    if found.subject is None:
        draw_verdict(found, canvas, top)
        return
    pipeline, _, proof = found.subject
    timeline = of_proof(proof)
    canvas.text(8, top + 18, f"proved: safe for every N >= {pipeline.least}; shown: N = {timeline.trips}", "h")
    note = "the earliest times that the order of the proof allows; a copy takes 5 steps, an mma 4: not measured"
    _timeline(canvas, timeline, top + 26, note)


@draw_value.register(Refuted)
def draw_refuted(found: Refuted, canvas: Canvas, top: float) -> None:
    """Draw the run of a refutation, one event per step, with what goes wrong in red, and the repairs."""
    y = top + 18
    for place, line in enumerate(textwrap.wrap(f"{found.kind}: {found.witness.get('what', '')}", LINE)):
        canvas.text(8, y + 16 * place, line, "h")
        y += 16 * bool(place)
    places = [("role", found.role), ("barrier", found.barrier), ("buffer", found.buffer), ("slot", found.slot)]
    places += [("phase", found.phase), ("N", found.trips)]
    at = ", ".join(f"{name} {value}" for name, value in places if value not in ("", None))
    canvas.text(8, y + 18, f"at {at}" if at else "", "n")
    timeline = of_refutation(found)
    if timeline is not None:
        _timeline(canvas, timeline, y + 26, "a run, one event per step; red: what goes wrong")
    y = canvas.height + 14
    for place, repair in enumerate(found.repairs):
        canvas.text(8, y, "proved with one change:" if not place else "", "s")
        for line in textwrap.wrap(str(repair), LINE - 20):
            canvas.text(160, y, line, "n")
            y += 16
    canvas.frame(1, top + 2, canvas.width + 6, canvas.height - top + 4, "w")


def _timeline(canvas: Canvas, timeline: Timeline, top: float, note: str) -> None:
    """Draw lanes, rows and arrows, and below them what they mean."""
    pipeline = timeline.pipeline
    first = max(0, timeline.end - STEPS) if any(mark.wrong for mark in timeline.marks) else 0
    last = min(timeline.end, first + STEPS)
    groups = _groups(timeline)
    names = [role.name for role in pipeline.roles] + [", ".join(group) for group in groups]
    left = 24 + 7.0 * max([len(cut(name, 24)) for name in names], default=0) + 56
    lanes = {number: top + 20 + LANE * number for number in range(len(pipeline.roles))}
    y = top + 20 + LANE * len(pipeline.roles) + 16
    rows: dict[str, float] = {}
    for group in groups:
        slots = min(SLOTS, pipeline.rings[group[0]])
        canvas.text(8, y + 13, cut(", ".join(group), 24), "n")
        for slot in range(slots):
            canvas.text(left - 8, y + 13 + ROW * slot, f"slot {slot}", "s e")
            canvas.box(left, y + ROW * slot, STEP * (last - first), ROW - 3, "z", f"slot {slot}: empty")
        rows |= dict.fromkeys(group, y)
        _fills(canvas, [fill for fill in timeline.fills if fill.buffer == group[0]], (left, y), (first, last), pipeline)
        if slots < pipeline.rings[group[0]]:
            canvas.text(left, y + ROW * slots + 11, f"{pipeline.rings[group[0]] - slots} more slots", "s")
            y += ROW
        y += ROW * slots + 14
    for number, role in enumerate(pipeline.roles):
        canvas.text(8, lanes[number] + 27, cut(role.name, 24), "n")
    for mark in timeline.marks:
        if first <= mark.start and mark.end <= last:
            x = left + STEP * (mark.start - first)
            _mark(canvas, mark, x, lanes[mark.role] + 13, pipeline)
            buffer = mark.ops[0].buf
            if mark.wrong and buffer and mark.slot is not None and mark.slot < SLOTS:
                canvas.frame(x, rows[buffer] + ROW * mark.slot, STEP - 1, ROW - 3, "w")
    _iterations(canvas, timeline.marks, lanes, left, (first, last))
    for passing in timeline.passings:
        if first <= passing.start and passing.end < last and passing.source != passing.role:
            source = passing.source
            if isinstance(source, int):
                begin = lanes[source] + (13 if lanes[source] > lanes[passing.role] else 33)
            else:
                begin = rows[source] + ROW * min(passing.slot, SLOTS - 1)
            end = lanes[passing.role] + (33 if begin > lanes[passing.role] + 33 else 13)
            ends = left + STEP * (passing.end - first) + 0.8 * STEP
            words = f"{passing.barrier}[{passing.slot}] completes and lets {pipeline.roles[passing.role].name} pass"
            canvas.arrow((left + STEP * (passing.start - first), begin), (ends, end), words)
    if first:
        canvas.text(left, top + 14, f"after {first} earlier events", "s")
    elif last < timeline.end:
        canvas.text(left, top + 14, f"the first {last} steps", "s")
    _legend(canvas, timeline, canvas.height, note)


def _legend(canvas: Canvas, timeline: Timeline, top: float, note: str) -> None:
    used = {SHORT.get(op.op, "<=n") for mark in timeline.marks for op in mark.ops}
    words = [f"{short}: {MEANS[short]}" for short in MEANS if short in used]
    words += ["<=n: wait until at most n groups are open"] * ("<=n" in used)
    lines = [note, *textwrap.wrap("; ".join(words), LINE + 20)]
    if timeline.fills:
        lines.append(
            "slots: hatched while their index is written, coloured while it is there, grey when all have read it"
        )
    if timeline.passings:
        lines.append("an arrow: this arrival or copy completes a phase, and the wait passes")
    canvas.lines(8, top + 16, lines, 14)


def _groups(timeline: Timeline) -> list[tuple[str, ...]]:
    """Return the buffers, those that are filled and read at the same times together."""
    found: dict[tuple[object, ...], list[str]] = {}
    for name, buffer in timeline.pipeline.buffers:
        mine = [fill for fill in timeline.fills if fill.buffer == name]
        key = (buffer.slots, *((fill.slot, fill.index, fill.start, fill.full, fill.empty) for fill in mine))
        found.setdefault(key, []).append(name)
    return [tuple(names) for names in found.values()]


def _level(slot: int, slots: int) -> int:
    return 3 + slot * (LEVELS - 4) // max(1, slots - 1) if slots > 1 else 8


def _fills(
    canvas: Canvas, fills: list[Fill], at: tuple[float, float], shown: tuple[int, int], pipeline: Pipeline
) -> None:
    (left, top), (first, last) = at, shown
    for fill in fills:
        if fill.slot >= SLOTS:
            continue
        level, y = _level(fill.slot, pipeline.rings[fill.buffer]), top + ROW * fill.slot
        for start, end, style, words in (
            (fill.start, fill.full, "x", "is written"),
            (fill.full, fill.empty, f"c{level}", "is there"),
        ):
            begin, stop = max(first, start), min(last, end)
            if begin < stop:
                x, wide = left + STEP * (begin - first), STEP * (stop - begin) - 1
                canvas.box(x, y, wide, ROW - 3, style, f"slot {fill.slot}: index {fill.index} {words}")
                if style != "x":
                    canvas.text(x + wide / 2, y + 11.5, fill.index, f"m t{level}")


def _mark(canvas: Canvas, mark: Mark, x: float, y: float, pipeline: Pipeline) -> None:
    op = mark.ops[0]
    ring = pipeline.rings.get(op.buf or op.bar, 1)
    style = "z" if mark.slot is None else f"c{_level(mark.slot, ring)}"
    phase = "" if mark.phase is None else f", slot {mark.slot}, phase {mark.phase}"
    words = f"{_when(mark)}: {'; '.join(map(str, mark.ops))}{phase}"
    wide = STEP * (mark.end - mark.start) - 1
    canvas.box(x, y, wide, 20, style, words)
    label = SHORT.get(op.op, f"<={op.n}")
    canvas.text(x + wide / 2, y + 14, label, f"m t{style.removeprefix('c')}")
    if mark.wrong:
        canvas.frame(x, y, wide, 20, "w")


def _when(mark: Mark) -> str:
    return f"k={mark.k}" if mark.part == "loop" else {"pre": "before", "post": "after"}[mark.part]


def _iterations(
    canvas: Canvas, marks: list[Mark], lanes: dict[int, float], left: float, shown: tuple[int, int]
) -> None:
    """Write k above the first op of each iteration, where there is room."""
    first, last = shown
    for role, top in lanes.items():
        before, free = "", 0.0
        for mark in marks:
            if mark.role != role or not first <= mark.start or mark.end > last:
                continue
            x, words = left + STEP * (mark.start - first), _when(mark)
            if words != before and x >= free:
                canvas.text(x, top + 9, words, "s")
                free = x + 6.2 * len(words) + 4
            before = words
