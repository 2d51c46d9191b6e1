"""Draw the shared-memory banks of one access: which lanes touch which bank; heat maps of paddings.

Notation: a group of lanes that are served together takes one turn per distinct word in its busiest bank. A row of a
padding's heat map is the slowest group of an access.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2, prod
from typing import TypeAlias

from layoutalg.draw.canvas import Canvas, Cell, draw_value, many, ranges
from layoutalg.proofs.padding import CellAccess, IntArray, PaddingPlan, offsets_of
from layoutalg.targets.bank_counting import touched
from layoutalg.targets.banks import BankModel, Phase, bank_model

CELL = 22.0
PADDED_CELL = 18.0
Words: TypeAlias = "dict[int, list[int]]"
"""The words of a bank that a group of lanes touches, each with these lanes."""


def words_of(model: BankModel, addresses: Sequence[int | None]) -> list[tuple[Phase, list[Words]]]:
    """Return every phase with each bank's words and the lanes that touch them."""
    offsets = list(addresses)
    return [
        (phase, touched(offsets, phase.lanes, model.access_bytes, model.banks)) for phase in model.phases(addresses)
    ]


def draw_phases(canvas: Canvas, model: BankModel, addresses: Sequence[int | None], top: float) -> None:
    """Draw one instruction: a row per phase, a column per bank; below, the lanes that conflict in the busiest bank."""
    rows = words_of(model, addresses)
    turns, least = (sum(getattr(phase, name) for phase, _ in rows) for name in ("turns", "least"))
    said = f"{many(turns, 'turn')}, {f'{least} without conflicts' if turns > least else 'free of conflicts'}"
    canvas.text(4, top + 14, f"{model}: {said}", "h")
    wide = CELL if model.banks <= 32 else CELL / 2 + 3
    groups = [(lane_spans(phase.lanes), banks) for phase, banks in rows]
    canvas.text(4, top + 38, "lanes / bank", "s")
    draw_words(canvas, groups, 130.0, top + 42, (wide, CELL), 1 if model.banks <= 32 else 2)
    canvas.text(
        4, canvas.height + 14, "numbers: distinct words of a bank in one phase; hatched and outlined: a conflict", "s"
    )
    _draw_lanes(canvas, model, rows, canvas.height + 14)


def draw_words(
    canvas: Canvas,
    rows: Sequence[tuple[str, list[Words]]],
    left: float,
    base: float,
    size: tuple[float, float],
    step: int,
    worst: int = 0,
) -> None:
    """Draw the number of words that each named group of lanes needs from each bank; conflicts are outlined.

    Args:
        canvas: The canvas.
        rows: Name of a group, and its words by bank.
        left: Left edge of the first bank.
        base: Upper edge of the first group.
        size: Width and height of a cell.
        step: Banks from one that is numbered to the next; 0 for no numbers.
        worst: The number of words of the reddest cell; 0 for the most of these rows.
    """
    worst = worst or max((len(words) for _, row in rows for words in row), default=1)
    for bank in range(0, len(rows[0][1]) if rows and step else 0, step or 1):
        canvas.text(left + bank * size[0] + size[0] / 2, base - 4, bank, "s m")
    cells: list[list[Cell]] = [
        [
            (busy(len(words), worst), str(len(words)) if words else "", f"bank {bank}: {_touching(words)}")
            for bank, words in enumerate(row)
        ]
        for _, row in rows
    ]
    canvas.cells(left, base, size, cells, down=[name for name, _ in rows], gap=6)
    for place, (_, row) in enumerate(rows):
        for bank, words in enumerate(row):
            if len(words) > 1:
                canvas.frame(left + bank * size[0], base + place * size[1], size[0] - 1, size[1] - 1, "w")


def busy(count: int, worst: int) -> str:
    """Return the style class of a bank by its words: grey for none, blue for one, hatched and ever redder for more."""
    if count <= 1:
        return "f" if count else "z"
    return f"k{int(2 * log2(count) / log2(max(worst, 2)))}"


def _draw_lanes(canvas: Canvas, model: BankModel, rows: list[tuple[Phase, list[Words]]], top: float) -> None:
    """Draw the lanes, coloured by phase; lanes that conflict in the busiest bank of their phase are outlined."""
    canvas.text(4, top + 14, "lanes by phase; outlined: conflicts in its busiest bank", "n")
    base, per_row = top + 22, min(32, model.lanes)
    served = {lane: (place, phase) for place, (phase, _) in enumerate(rows) for lane in phase.lanes}
    meet = {lane: word for phase, _ in rows if phase.turns > phase.least for lane, word in phase.busy}
    cells: list[list[Cell]] = [
        [
            (
                f"c{served[lane][0] * 15 // max(1, len(rows) - 1)}" if lane in served else "z",
                str(lane),
                _of_lane(lane, served, meet),
            )
            for lane in range(first, first + per_row)
        ]
        for first in range(0, model.lanes, per_row)
    ]
    canvas.cells(130.0, base, (CELL, CELL), cells)
    for lane in sorted(meet):
        canvas.frame(130.0 + lane % per_row * CELL, base + lane // per_row * CELL, CELL - 1, CELL - 1, "w")


def _of_lane(lane: int, served: dict[int, tuple[int, Phase]], meet: dict[int, int]) -> str:
    if lane not in served:
        return f"lane {lane} is inactive"
    place, phase = served[lane]
    here = f", touches word {meet[lane]} of bank {phase.bank}" if lane in meet else ""
    return f"lane {lane}: phase {place}{here}"


def _touching(words: Words) -> str:
    parts = [f"word {w} by lane{'s' if len(by) > 1 else ''} {', '.join(map(str, by))}" for w, by in words.items()]
    return "; ".join(parts) or "idle"


def lane_spans(lanes: Sequence[int]) -> str:
    """Return lanes as text, such as ``0-3 20``."""
    return ranges(lanes, "-", " ")


def phases_text(model: BankModel, addresses: Sequence[int | None]) -> str:
    """Return the words per bank as text, one line per phase; ``+`` means ten or more.

    Example:
        >>> from layoutalg.targets.banks import bank_model
        >>> print(phases_text(bank_model("gfx1100", "ds_read_b64"), [16 * lane for lane in range(32)]))
        ds_read_b64 of gfx1100: 8 bytes a lane, 2 groups of 16 lanes, 32 banks (measured): 4 turns
        22..22..22..22..22..22..22..22.. lanes 0-15
        22..22..22..22..22..22..22..22.. lanes 16-31
    """
    rows = words_of(model, addresses)
    turns = sum(phase.turns for phase, _ in rows)
    lines = [f"{model}: {many(turns, 'turn')}"]
    for phase, banks in rows:
        marks = "".join("." if not words else str(len(words)) if len(words) < 10 else "+" for words in banks)
        lines.append(f"{marks} lanes {lane_spans(phase.lanes)}")
    return "\n".join(lines)


@draw_value.register(PaddingPlan)
def draw_padding(plan: PaddingPlan, canvas: Canvas, top: float) -> None:
    """Draw the banks of the worst group of every access, before and after."""
    canvas.text(4, top + 14, " ".join(str(plan).splitlines()[0].split()), "h")
    dense = tuple(prod(plan.shape[place + 1 :]) for place in range(len(plan.shape)))
    before = offsets_of(plan.shape, dense, 0, 0, ())
    base = top + 44
    rows = []
    for each in plan.served:
        access = plan.accesses[each.access]
        found = [
            ("dense", _busiest(access, before, plan.element_bits, each.target)),
            ("padded", _busiest(access, plan.offsets(), plan.element_bits, each.target)),
        ]
        rows += [(f"{access.name}, {each.target}, {when}", banks) for when, banks in found]
    left = 20 + 6.2 * max(len(name) for name, _ in rows)
    most = max((len(words) for _, banks in rows for words in banks), default=1)
    first = next((place for place, (_, banks) in enumerate(rows) if banks), 0)
    for place, (name, banks) in enumerate(rows):
        y = base + place * PADDED_CELL + (place // 2) * 6
        if banks:
            draw_words(canvas, [(name, banks)], left, y, (PADDED_CELL, PADDED_CELL), int(place == first), most)
        else:
            canvas.text(left - 6, y + 13, name, "s e")
            canvas.text(left, y + 13, "misaligned", "s")
    says = "numbers: distinct words that the worst group of lanes needs from a bank (across); hatched: a conflict"
    canvas.text(4, canvas.height + 14, says, "s")


def _busiest(access: CellAccess, offsets: IntArray, element_bits: int, target: str) -> list[Words]:
    """Return the words per bank of the group with the most turns; empty if a lane is misaligned."""
    model = bank_model(target, access.instruction(target))
    worst: list[Words] = []
    for lanes in access.cells:
        places = [None if cell is None else int(offsets[cell]) * element_bits // 8 for cell in lanes]
        if any(place is not None and place % model.grain_bytes for place in places):
            return []
        groups = [worst, *(banks for _, banks in words_of(model, places))]
        worst = max(groups, key=lambda banks: max(map(len, banks), default=0))
    return worst
