"""Draw pipelines: a lane for each role, a row for each slot, time to the right, arrows from phases to waits."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Final

from layoutalg.draw.answers import draw_verdict
from layoutalg.draw.canvas import LEVELS, Canvas, cut, draw_value
from layoutalg.draw.timeline import Fill, Mark, Passing, Timeline, in_turn, of_proof, of_run
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.pipeline.decision import Proved, Refuted, verify
from layoutalg.proofs.pipeline.document import Pipeline

STEP, LANE, ROW = 32.0, 40.0, 18.0
"""Width of a step; height of a role's lane and of a slot's row."""
STEPS, SLOTS = 64, 8
"""Most steps and most slots of a buffer that are drawn."""
LINE, NAME = 110, 24
"""Most characters of a line, and of a name."""
SHORT: Final = {
    "wait": "wait",
    "arrive": "arr",
    "expect": "exp",
    "arrive_tx": "tx",
    "tma_load": "load",
    "dsmem_copy": "dsm",
    "read": "read",
    "write": "wr",
    "mma": "mma",
    "mma_write": "acc",
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
    "acc": "mma_write",
    "sig": "an arrival after asynchronous ops",
    "st": "tma_store",
    "dsm": "dsmem_copy",
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
        _timeline(canvas, in_turn(pipeline, "strict"), top + 26, note)
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
    lines = textwrap.wrap(f"{found.kind}: {found.witness.get('what', '')}", LINE)
    for place, line in enumerate(lines):
        canvas.text(8, y + 16 * place, line, "h")
    y += 16 * (len(lines) - 1)
    canvas.text(8, y + 18, f"at {found.place}" if found.place else "", "n")
    if found.run is not None:
        _timeline(canvas, of_run(found.run), y + 26, "a run, one event per step; red: what goes wrong")
    y = canvas.height + 14
    for place, repair in enumerate(found.repairs):
        canvas.text(8, y, "proved with one change:" if not place else "", "s")
        for line in textwrap.wrap(str(repair), LINE - 20):
            canvas.text(160, y, line, "n")
            y += 16
    canvas.frame(1, top + 2, canvas.width + 6, canvas.height - top + 4, "w")


@dataclass(frozen=True, slots=True)
class Room:
    """Where things are drawn: the steps from ``first`` to ``last``, lanes of roles, the first row of each buffer."""

    pipeline: Pipeline
    first: int
    last: int
    left: float
    lanes: dict[int, float]
    rows: dict[str, float]

    def x(self, step: int) -> float:
        """Return the left edge of a step."""
        return self.left + STEP * (step - self.first)

    def shows(self, mark: Mark) -> bool:
        """Return whether a mark is among the steps."""
        return self.first <= mark.start and mark.end <= self.last


def _timeline(canvas: Canvas, timeline: Timeline, top: float, note: str) -> None:
    """Draw lanes, rows and arrows, and below them what they mean."""
    pipeline = timeline.pipeline
    first = max(0, timeline.end - STEPS) if timeline.wrong or timeline.spot else 0
    groups = _groups(timeline)
    names = [role.name for role in pipeline.roles] + [", ".join(group) for group in groups]
    left = 80 + 7.0 * max([len(cut(name, NAME)) for name in names], default=0)
    lanes = {number: top + 20 + LANE * number for number in range(len(pipeline.roles))}
    room = Room(pipeline, first, min(timeline.end, first + STEPS), left, lanes, {})
    y = top + 36 + LANE * len(pipeline.roles)
    for group in groups:
        y = _slots(canvas, room, group, timeline.fills, y)
    for number, role in enumerate(pipeline.roles):
        canvas.text(8, lanes[number] + 27, cut(role.name, NAME), "n")
    for mark in timeline.marks:
        if room.shows(mark):
            _mark(canvas, room, mark)
    for mark in timeline.wrong:
        if room.shows(mark):
            canvas.frame(room.x(mark.start), lanes[mark.role] + 13, STEP * (mark.end - mark.start) - 1, 20, "w")
    if timeline.spot is not None and timeline.spot[1] < SLOTS:
        buffer, slot, step = timeline.spot
        canvas.frame(room.x(step), room.rows[buffer] + ROW * slot, STEP - 1, ROW - 3, "w")
    _arrows(canvas, room, timeline.passings)
    _iterations(canvas, room, timeline.marks)
    if first:
        canvas.text(left, top + 14, f"after {first} earlier events", "s")
    elif room.last < timeline.end:
        canvas.text(left, top + 14, f"the first {room.last} steps", "s")
    _legend(canvas, timeline, canvas.height, note)


def _slots(canvas: Canvas, room: Room, group: tuple[str, ...], fills: list[Fill], top: float) -> float:
    """Draw the slots of buffers that are filled and read together; return where they end."""
    every = room.pipeline.rings[group[0]]
    slots = min(SLOTS, every)
    room.rows.update(dict.fromkeys(group, top))
    canvas.text(8, top + 13, cut(", ".join(group), NAME), "n")
    for slot in range(slots):
        canvas.text(room.left - 8, top + 13 + ROW * slot, f"slot {slot}", "s e")
        wide = STEP * (room.last - room.first)
        canvas.box(room.left, top + ROW * slot, wide, ROW - 3, "z", f"slot {slot}: empty")
    for fill in fills:
        if fill.buffer == group[0] and fill.slot < slots:
            _fill(canvas, room, fill, top + ROW * fill.slot)
    if slots < every:
        canvas.text(room.left, top + ROW * slots + 11, f"{every - slots} more slots", "s")
    return top + ROW * (slots + (slots < every)) + 14


def _arrows(canvas: Canvas, room: Room, passings: list[Passing]) -> None:
    for one in passings:
        if not room.first <= one.start or one.end >= room.last or one.source == one.role:
            continue
        lane = room.lanes[one.role]
        if isinstance(one.source, int):
            begin = room.lanes[one.source] + (13 if room.lanes[one.source] > lane else 33)
        else:
            begin = room.rows[one.source] + ROW * min(one.slot, SLOTS - 1)
        end = lane + (33 if begin > lane + 33 else 13)
        words = f"{one.barrier}[{one.slot}] completes and lets {room.pipeline.roles[one.role].name} pass"
        canvas.arrow((room.x(one.start), begin), (room.x(one.end) + 0.8 * STEP, end), words)


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


def _fill(canvas: Canvas, room: Room, fill: Fill, y: float) -> None:
    level = _level(fill.slot, room.pipeline.rings[fill.buffer])
    for start, end, style, words in (
        (fill.start, fill.full, "x", "is written"),
        (fill.full, fill.empty, f"c{level}", "is there"),
    ):
        begin, stop = max(room.first, start), min(room.last, end)
        if begin < stop:
            wide = STEP * (stop - begin) - 1
            canvas.box(room.x(begin), y, wide, ROW - 3, style, f"slot {fill.slot}: index {fill.index} {words}")
            if style != "x":
                canvas.text(room.x(begin) + wide / 2, y + 11.5, fill.index, f"m t{level}")


def _mark(canvas: Canvas, room: Room, mark: Mark) -> None:
    op, x, y = mark.ops[0], room.x(mark.start), room.lanes[mark.role] + 13
    ring = room.pipeline.rings.get(op.buf or op.bar, 1)
    style = "z" if mark.slot is None else f"c{_level(mark.slot, ring)}"
    phase = "" if mark.phase is None else f", slot {mark.slot}, phase {mark.phase}"
    wide = STEP * (mark.end - mark.start) - 1
    canvas.box(x, y, wide, 20, style, f"{_when(mark)}: {'; '.join(map(str, mark.ops))}{phase}")
    canvas.text(x + wide / 2, y + 14, SHORT.get(op.op, f"<={op.n}"), f"m t{style.removeprefix('c')}")


def _when(mark: Mark) -> str:
    return f"k={mark.k}" if mark.part == "loop" else {"pre": "before", "post": "after"}[mark.part]


def _iterations(canvas: Canvas, room: Room, marks: list[Mark]) -> None:
    """Write k above the first op of each iteration, where there is room."""
    for role, top in room.lanes.items():
        before, free = "", 0.0
        for mark in marks:
            if mark.role == role and room.shows(mark):
                x, words = room.x(mark.start), _when(mark)
                if words != before and x >= free:
                    canvas.text(x, top + 9, words, "s")
                    free = x + 6.2 * len(words) + 4
                before = words
