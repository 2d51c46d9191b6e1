"""Draw answers: the plan of an admission; the rule, witness and repairs of a refusal; the evidence of a verdict."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from layoutalg.draw.canvas import Canvas, Cell, Unit, draw_memory, draw_value, level_of
from layoutalg.ground.errors import LayoutError, shown
from layoutalg.ground.verdict import Proved, Refuted, Unknown, Verdict
from layoutalg.proofs.admission import Admitted, Refused
from layoutalg.proofs.dtypes import element_type
from layoutalg.proofs.tile_map import SHARED_LAYOUTS, extents_of, layout_of, offsets

LINE, FACT = 108, 110
"""Characters per line of a reason, and of a fact."""
SIDE = 12
"""Rows and columns drawn around a witness."""
_PLACES = (("mn", "k"), ("row", "column"))
_HERE = (("requested_byte", 1, "byte"), ("requested_bit", 8, "byte"), ("byte", 1, "byte"), ("offset", 0, "element"))
_NEEDED = (("read_byte", 1), ("read_bit", 8), ("needed_byte", 1), ("strided", 0))


@dataclass(frozen=True, slots=True)
class Witness:
    """The witness of a refusal."""

    at: str  # the coordinate, or the register, lane and warp, in words
    point: tuple[int, ...] | None  # the tile coordinate, if the witness names one
    here: str  # what the layout requests there, in words; may be empty
    needed: str  # what the instruction needs there, in words; may be empty
    here_byte: int | None = None  # the shared byte that the layout requests, if known
    needed_byte: int | None = None  # the shared byte that the instruction accesses, if known


def witness_of(facts: Mapping[str, Any]) -> Witness | None:
    """Return the actual and the needed value at a witness, or None for an empty one."""
    if not facts:
        return None
    point = facts.get("coordinate")
    if not isinstance(point, tuple):
        point = next((tuple(int(facts[name]) for name in names) for names in _PLACES if set(names) <= set(facts)), None)
    held = [f"{name} {facts[name]}" for name in ("register", "lane", "warp", "access", "thread") if name in facts]
    at = f"coordinate {point}" if point is not None else ", ".join(held)
    here = needed = ""
    here_byte = needed_byte = None
    for name, unit, word in _HERE:
        if name in facts:
            here = f"{word} {_number(facts[name], unit)}"
            here_byte = facts[name] // unit if unit else None
            break
    for name, unit in _NEEDED:
        if name in facts:
            word = "byte" if unit else "element"
            needed = f"{word} {_number(facts[name], unit)}"
            needed_byte = facts[name] // unit if unit else None
            break
    here = here or (f"holds {facts['holds']}" if "holds" in facts else "")
    needed = needed or (f"{facts['needs']}" if "needs" in facts else "")
    return Witness(at, point, here, needed, here_byte, needed_byte)


def _number(value: int, unit: int) -> str:
    return str(value) if unit < 2 or value % unit else str(value // unit)


@draw_value.register(Admitted)
def draw_admitted(found: Admitted, canvas: Canvas, top: float) -> None:
    """Draw a heading and the plan, as a picture or as text."""
    canvas.text(4, top + 14, f"admitted: {found.consumer} on {found.target}, {found.dtype} ({found.evidence})", "h")
    if draw_value(found.descriptor, canvas, top + 20) is False:
        canvas.lines(4, top + 40, (line[:140] for line in str(found.descriptor).splitlines()[:24]), style="n")
    canvas.text(4, canvas.height + 14, f"certificate: {found.certificate.kind}", "s")


@draw_value.register(Refused)
def draw_refused(found: Refused, canvas: Canvas, top: float, layout: Any = None) -> None:
    """Draw the broken rules, the witness in memory and in the layout, and the repairs."""
    canvas.text(8, top + 16, f"refused: {found.consumer} on {found.target}, {found.dtype}", "h")
    y = top + 38
    for rule, reason in zip(found.rules, found.reasons, strict=True):
        canvas.text(8, y, rule, "n")
        for line in textwrap.wrap(reason, LINE):
            canvas.text(24, y + 15, line, "s")
            y += 14
        y += 20
    seen = witness_of(found.witness)
    if seen is not None:
        y = _witness(canvas, seen, found, y + 4, layout)
    for place, repair in enumerate(found.repairs[:4]):
        canvas.text(8, y + 6, "try" if not place else "", "s")
        for line in textwrap.wrap(f"{repair.name}: {repair.detail}", LINE):
            canvas.text(40, y + 6, line, "n")
            y += 16
    canvas.frame(1, top + 1, canvas.width + 6, canvas.height - top + 4, "w")


def _witness(canvas: Canvas, seen: Witness, found: Refused, top: float, layout: Any) -> float:
    canvas.text(8, top + 10, f"at {seen.at}", "h")
    told = "; ".join(
        part for part in (f"the layout: {seen.here}" if seen.here else "",
                          f"{found.consumer} takes: {seen.needed}" if seen.needed else "") if part
    )  # fmt: skip
    y = top + 28
    if told:
        canvas.text(8, y, told, "n")
        y += 14
    if seen.here_byte is not None and min(seen.here_byte, seen.needed_byte or 0) >= 0:
        y = _bytes(canvas, seen, y + 8)
    if layout is not None and seen.point is not None:
        y = _neighbours(canvas, seen, layout, element_type(found.dtype).bits // 8 or 1, y + 8)
    return y + 8


def _bytes(canvas: Canvas, seen: Witness, top: float) -> float:
    """Draw the two bytes in lines of 128 bytes or, if both are in the same 16 bytes, within those."""
    marks = [(seen.needed_byte, "takes", 13, "o"), (seen.here_byte, "asked", 3, "w")]
    told = [(byte, word, level, mark) for byte, word, level, mark in marks if byte is not None]
    cells = {byte // 16 for byte, _, _, _ in told}
    if len(cells) < len(told):
        first = cells.pop() * 16
        canvas.text(8, top + 4, "bytes of shared memory; red: requested, light: accessed by the instruction", "s")
        styles = {byte: f"c{level}" for byte, _, level, _ in told}
        size = (max(26.0, 7.0 * len(str(first + 15)) + 8), 18.0)
        row: list[Cell] = [(styles.get(at, "z"), str(at), f"byte {at}") for at in range(first, first + 16)]
        canvas.cells(60, top + 12, size, [row])
        for byte, _, _, mark in told:
            canvas.frame(60 + (byte - first) * size[0], top + 12, size[0] - 1, 17, mark)
        return top + 40
    units = {byte // 16: Unit(word, f"c{level}", f"byte {byte}, {word}", mark) for byte, word, level, mark in told}
    canvas.text(
        8, top + 4, "shared memory, 16 bytes per cell, 128 per line; asked: by the layout, takes: the instruction", "s"
    )
    draw_memory(canvas, 60, top + 12, units, 16, whole=False)
    return top + 20 + 18 * len({unit // 8 for unit in units})


def _neighbours(canvas: Canvas, seen: Witness, layout: Any, element_bytes: int, top: float) -> float:
    """Draw the layout's offsets around the witness."""
    try:
        value = layout_of(layout, None, element_bytes) if not isinstance(layout, SHARED_LAYOUTS) else layout
        extents = extents_of(value)
        table = offsets(value, extents)
    except LayoutError:
        return top
    point = seen.point
    if point is None or len(point) != len(extents) or any(not 0 <= p < n for p, n in zip(point, extents, strict=True)):
        return top
    rows, columns = int((1, *extents)[-2]), int(extents[-1])
    at = (0, *point)[-2:]
    plane = table[point[:-2]] if len(extents) > 2 else np.atleast_2d(table)
    starts = [max(0, min(place - SIDE // 2, extent - SIDE)) for place, extent in zip(at, (rows, columns), strict=True)]
    part = plane[starts[0] : starts[0] + SIDE, starts[1] : starts[1] + SIDE]
    low, high = int(part.min()), int(part.max())
    longest = len(str(high))
    size = (max(24.0, 7.0 * longest + 8), 18.0)
    canvas.text(8, top + 6, "element offsets around it; red: the witness", "s")
    left, base = 60.0, top + 28
    cells: list[list[Cell]] = [
        [
            (f"c{level_of(value, low, high)}", str(value), f"({starts[0] + r}, {starts[1] + c}) -> element {value}")
            for c, value in enumerate(row)
        ]
        for r, row in enumerate(part.tolist())
    ]
    tall, wide = part.shape
    across, down = range(starts[1], starts[1] + wide), range(starts[0], starts[0] + tall)
    canvas.cells(left, base, size, cells, across=across, down=down)
    row, column = at[0] - starts[0], at[1] - starts[1]
    canvas.frame(left + column * size[0] - 1, base + row * size[1] - 1, size[0] + 1, size[1] + 1, "w")
    return base + len(part) * size[1] + 8


@draw_value.register(Proved | Refuted | Unknown)
def draw_verdict(verdict: Verdict, canvas: Canvas, top: float) -> None:
    """Write the verdict and its evidence, one fact per line; a refutation is framed."""
    if isinstance(verdict, Proved):
        head, facts = f"proved by {verdict.engine}", dict(verdict.certificate)
    elif isinstance(verdict, Refuted):
        head, facts = f"refuted by {verdict.engine}", dict(verdict.witness)
    else:
        head, facts = f"unknown: {verdict.reason}", {"tried": ", ".join(verdict.tried)} if verdict.tried else {}
    canvas.text(8, top + 18, head[:FACT], "h")
    left = 20 + 7.2 * max((len(str(key)) for key in facts), default=0)
    for place, (key, value) in enumerate(facts.items()):
        canvas.text(8, top + 40 + 18 * place, key, "s")
        canvas.text(left, top + 40 + 18 * place, value if isinstance(value, str) else shown(value, FACT), "n")
    if isinstance(verdict, Refuted):
        canvas.frame(1, top + 2, canvas.width + 6, canvas.height - top + 4, "w")
