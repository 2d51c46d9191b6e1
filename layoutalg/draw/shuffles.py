"""Draw the shuffles of a warp round by round, and factorisations into a carried part and shuffles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from layoutalg.draw.canvas import Canvas, level_of
from layoutalg.proofs.factorisation import Factorisation
from layoutalg.proofs.shuffle import NONE, ShufflePlan

TALL = 18.0
ROWS, ROUNDS = 32, 10
"""Most registers and rounds drawn."""
WORDS = 120
"""Characters shown of a layout."""


def draw_factorisation(
    canvas: Canvas, found: Factorisation, top: float, draw: Callable[[Canvas, Any, float], bool]
) -> None:
    """Draw the factors as text, the residual as shuffles, and the carried part with ``draw``."""
    carrier = f"{found.plan.consumer} on {found.plan.target}, {found.plan.dtype}"
    least = ", the least" if found.least and found.rounds else ""
    many = "no shuffle" if not found.rounds else f"{found.rounds} shuffle{'s' if found.rounds > 1 else ''} per thread"
    canvas.text(4, top + 14, f"factored for {carrier}: {many}{least}", "h")
    facts = [("layout", found.layout), ("carried", found.carried), ("residual", found.residual)]
    facts += [("unique", found.unique), *(found.costs.items() if found.rounds else ())]
    for place, (name, value) in enumerate(facts):
        cheapest = ", the cheapest way" if name == found.cheapest else ""
        canvas.text(4, top + 36 + 18 * place, name, "s")
        canvas.text(80, top + 36 + 18 * place, _cut(f"{value}{cheapest}"), "n")
    if found.rounds:
        draw_shuffles(canvas, found.shuffles, canvas.height + 10)
    canvas.text(4, canvas.height + 24, "the carried part", "h")
    draw(canvas, found.plan, canvas.height + 2)


def draw_shuffles(canvas: Canvas, plan: ShufflePlan, top: float) -> None:
    """Draw the word that each register of warp 0 receives and in which round, then the rounds."""
    warps = f", warp 0 of {plan.warps}" if plan.warps > 1 else ""
    canvas.text(4, top + 14, f"the word each register receives (lane.register), coloured by source lane{warps}", "n")
    source = plan.source()[0]
    rounds = _rounds(plan)
    registers = min(plan.registers, ROWS)
    longest = max(
        len(f"{int(word) // plan.registers % plan.lanes}.{int(word) % plan.registers}")
        for row in source[:, :registers]
        for word in row
    )
    size = (max(22.0, 7.0 * longest + 4), TALL)
    left, base = 76.0, top + 40
    _lanes(canvas, plan.lanes, left, base, size[0])
    styles, labels, titles = [], [], []
    for register in range(registers):
        canvas.text(left - 6, base + register * TALL + 13, f"register {register}", "s e")
        cells = [divmod(int(source[lane, register]) % (plan.lanes * plan.registers), plan.registers)
                 for lane in range(plan.lanes)]  # fmt: skip
        styles.append(
            [
                f"c{level_of(lane, 0, plan.lanes - 1)}" if rounds[at][register] >= 0 else "z"
                for at, (lane, _) in enumerate(cells)
            ]
        )
        labels.append([f"{lane}.{word}" for lane, word in cells])
        titles.append(
            [
                f"lane {at}, register {register}: lane {lane}, register {word}, {_when(rounds[at][register])}"
                for at, (lane, word) in enumerate(cells)
            ]
        )
    canvas.cells(left, base, size, styles, labels, titles)
    _note(canvas, plan.registers, registers, "registers")
    canvas.text(4, canvas.height + 14, "coloured: shuffled from another lane; grey: stays in its lane", "s")
    if plan.rounds:
        _draw_rounds(canvas, plan, canvas.height + 12, left)


def _draw_rounds(canvas: Canvas, plan: ShufflePlan, top: float, left: float) -> None:
    """Draw each round: the lane that each lane reads, and the registers that it offers and writes."""
    many = min(len(plan.rounds), ROUNDS)
    canvas.text(4, top + 14, "rounds of shfl.sync.idx, lane by lane", "n")
    base, wide = top + 40, 24.0
    _lanes(canvas, plan.lanes, left + 60, base, wide)
    for number, each in enumerate(plan.rounds[:many]):
        rows = (("offers", each.send[0]), ("reads lane", each.read[0]), ("writes", each.into[0]))
        y = base + number * (3 * TALL + 6)
        canvas.text(4, y + TALL + 13, f"round {number}", "s")
        for place, (name, _) in enumerate(rows):
            canvas.text(left + 54, y + place * TALL + 13, name, "s e")
        idle = [into == NONE for into in each.into[0]]
        styles = [
            [
                "z" if idle[lane] or name != "reads lane" else f"c{level_of(value, 0, plan.lanes - 1)}"
                for lane, value in enumerate(values)
            ]
            for name, values in rows
        ]
        labels = [
            ["" if idle[lane] and name != "offers" else str(v) for lane, v in enumerate(row)] for name, row in rows
        ]
        titles = [
            [
                f"round {number}, lane {lane}: offers register {each.send[0][lane]}, reads lane {each.read[0][lane]}, "
                + ("writes nothing" if idle[lane] else f"writes register {each.into[0][lane]}")
                for lane in range(plan.lanes)
            ]
            for _ in rows
        ]
        canvas.cells(left + 60, y, (wide, TALL), styles, labels, titles)
    canvas.text(4, canvas.height + 14, "registers offered and written; lanes that write nothing stay empty", "s")
    _note(canvas, len(plan.rounds), many, "rounds")


def _cut(text: str) -> str:
    return text if len(text) <= WORDS else text[: WORDS - 3] + "..."


def _note(canvas: Canvas, whole: int, drawn: int, what: str) -> None:
    if drawn < whole:
        canvas.text(4, canvas.height + 14, f"the first {drawn} of {whole} {what}", "s")


def _lanes(canvas: Canvas, lanes: int, left: float, base: float, wide: float) -> None:
    canvas.text(left - 6, base - 4, "lane", "s e")
    for lane in range(lanes):
        canvas.text(left + lane * wide + wide / 2, base - 4, lane, "s m")


def _rounds(plan: ShufflePlan) -> list[list[int]]:
    """The round that writes each register of warp 0, [lane][register]; -1 if the word stays in its lane."""
    found = [[-1] * plan.registers for _ in range(plan.lanes)]
    for number, each in enumerate(plan.rounds):
        for lane, into in enumerate(each.into[0]):
            if into != NONE:
                found[lane][into] = number
    return found


def _when(number: int) -> str:
    return "stays in its lane" if number < 0 else f"in round {number}"
