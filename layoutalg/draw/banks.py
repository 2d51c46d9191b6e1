"""Draw the shared-memory banks of one access: which lanes touch which bank; heat maps of paddings.

Notation: lanes are served in groups (32 for accesses up to 32 bits, 16 for 64, 8 for 128 bits and matrices). A group
takes one turn per distinct word in its busiest bank. A row of a padding's heat map is the slowest group of an access.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import log2, prod
from typing import Any, TypeAlias, cast

from layoutalg.draw.canvas import Canvas, Cell, draw_value, many, ranges
from layoutalg.proofs.padding import CellAccess, IntArray, PaddingPlan, offsets_of
from layoutalg.targets.banks import BankModel, Phase, bank_model
from layoutalg.targets.nvidia import banks as hardware

CELL = 22.0
PADDED_CELL = 18.0
Words: TypeAlias = "dict[int, list[int]]"
"""The words of a bank that a group of lanes touches, each with these lanes."""


def words_of(model: BankModel, addresses: Sequence[int | None]) -> list[tuple[Phase, list[dict[int, list[int]]]]]:
    """Return every phase with each bank's words and the lanes that touch them."""
    found = []
    for phase in model.phases(addresses):
        touched: list[dict[int, list[int]]] = [defaultdict(list) for _ in range(model.banks)]
        for lane in phase.lanes:
            first = cast(int, addresses[lane]) // hardware.WORD_BYTES
            for word in range(first, first + max(1, model.access_bytes // hardware.WORD_BYTES)):
                touched[word % model.banks][word].append(lane)
        found.append((phase, touched))
    return found


def busy(count: int, worst: int) -> str:
    """Return the style class of a bank by its words: grey for none, blue for one, redder with each doubling."""
    if count <= 1:
        return "f" if count else "z"
    return f"k{int(2 * log2(count) / log2(max(worst, 2)))}"


def draw_phases(canvas: Canvas, model: BankModel, addresses: Sequence[int | None], top: float) -> None:
    """Draw one instruction: a row per phase, a column per bank; below, the lanes that conflict in the busiest bank."""
    rows = words_of(model, addresses)
    turns = sum(phase.turns for phase, _ in rows)
    canvas.text(4, top + 14, f"{model}: {many(turns, 'turn')}", "h")
    groups = [(lane_spans(phase.lanes), banks) for phase, banks in rows]
    _draw_words(canvas, groups, 130.0, top + 42, "phase")
    _draw_lanes(canvas, model, rows, canvas.height + 14)


def _draw_words(canvas: Canvas, groups: list[tuple[str, list[Words]]], left: float, base: float, what: str) -> None:
    """Draw the number of words of each bank that each group of lanes needs; conflicts are outlined."""
    banks = len(groups[0][1]) if groups else hardware.BANKS
    narrow = banks <= 32
    wide = CELL if narrow else CELL / 2 + 3
    worst = max((len(words) for _, row in groups for words in row), default=1)
    for bank in range(0, banks, 1 if narrow else 2):
        canvas.text(left + bank * wide + wide / 2, base - 4, bank, "s m")
    canvas.text(4, base - 4, "lanes / bank", "s")
    cells: list[list[Cell]] = [
        [
            (busy(len(words), worst), str(len(words)) if words else "", f"bank {bank}: {_touching(words)}")
            for bank, words in enumerate(row)
        ]
        for _, row in groups
    ]
    canvas.cells(left, base, (wide, CELL), cells, down=[name for name, _ in groups], gap=6)
    for place, (_, row) in enumerate(groups):
        for bank, words in enumerate(row):
            if len(words) > 1:
                canvas.frame(left + bank * wide, base + place * CELL, wide - 1, CELL - 1, "w")
    canvas.text(4, canvas.height + 14, f"numbers: distinct words of a bank in one {what}; outlined: a conflict", "s")


def _draw_lanes(
    canvas: Canvas, model: BankModel, rows: list[tuple[Phase, list[dict[int, list[int]]]]], top: float
) -> None:
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


def _touching(words: dict[int, list[int]]) -> str:
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


def traffic(offsets_bytes: Sequence[int | None], access_bits: int) -> list[list[dict[int, list[int]]]]:
    """Return for each group and bank the words and the lanes that touch them."""
    lanes = 32 if access_bits <= 32 else 1024 // access_bits
    groups = []
    for start in range(0, len(offsets_bytes), lanes):
        found: list[dict[int, list[int]]] = [defaultdict(list) for _ in range(hardware.BANKS)]
        for lane, offset in enumerate(offsets_bytes[start : start + lanes], start):
            if offset is not None:
                first = offset // hardware.WORD_BYTES
                for word in range(first, first + max(1, access_bits // 32)):
                    found[word % hardware.BANKS][word].append(lane)
        groups.append(found)
    return groups


def draw_banks(canvas: Canvas, offsets_bytes: Sequence[int | None], access_bits: int, kind: str, top: float) -> None:
    """Draw the number of words that each group of lanes needs from each bank; conflicts are outlined."""
    canvas.text(4, top + 14, _head(offsets_bytes, access_bits, kind), "h")
    groups = []
    for group in traffic(offsets_bytes, access_bits):
        lanes = [lane for words in group for lanes in words.values() for lane in lanes]
        groups.append((f"{min(lanes)} to {max(lanes)}" if lanes else "inactive", group))
    _draw_words(canvas, groups, 90.0, top + 42, "group")


def _head(offsets_bytes: Sequence[int | None], access_bits: int, kind: str) -> str:
    turns = hardware.wavefronts(cast(Any, offsets_bytes), access_bits, kind)
    return f"{kind} of {access_bits} bits per lane: {turns} turn{'s' if turns > 1 else ''}"


def banks_text(offsets_bytes: Sequence[int | None], access_bits: int, kind: str) -> str:
    """Return the words per bank as text, one line per group of lanes."""
    lines = [
        "".join(str(len(words)) if words else "." for words in group) for group in traffic(offsets_bytes, access_bits)
    ]
    return "\n".join([_head(offsets_bytes, access_bits, kind), *lines])


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
        rows += [(f"{access.name}, {each.target}, {when}", counts) for when, counts in found]
    left = 20 + 6.2 * max(len(name) for name, _ in rows)
    most = max((max(counts) for _, counts in rows if counts), default=1)
    banks = max((len(counts) for _, counts in rows if counts), default=0)
    for bank in range(banks):
        canvas.text(left + bank * PADDED_CELL + PADDED_CELL / 2, base - 4, bank, "s m")
    for place, (name, counts) in enumerate(rows):
        y = base + place * PADDED_CELL + (place // 2) * 6
        canvas.text(left - 6, y + 13, name, "s e")
        if not counts:
            canvas.text(left, y + 13, "misaligned", "s")
            continue
        cells: list[Cell] = [
            (busy(count, most), str(count) if count else "", f"bank {bank}: {count} words")
            for bank, count in enumerate(counts)
        ]
        canvas.cells(left, y, (PADDED_CELL, PADDED_CELL), [cells])
        for bank, count in enumerate(counts):
            if count == max(counts) > 1:
                canvas.frame(left + bank * PADDED_CELL, y, PADDED_CELL - 1, PADDED_CELL - 1, "w")
    says = "numbers: distinct words that the worst group of lanes needs from a bank (across); outlined: the busiest"
    canvas.text(4, canvas.height + 14, says, "s")


def _busiest(access: CellAccess, offsets: IntArray, element_bits: int, target: str) -> list[int]:
    """Return the words per bank of the group with the most turns; empty if a lane is misaligned."""
    model = bank_model(target, access.instruction(target))
    grain = 4 if model.access_bytes == 12 else model.access_bytes
    worst: list[int] = []
    for lanes in access.cells:
        places = [None if cell is None else int(offsets[cell]) * element_bits // 8 for cell in lanes]
        if any(place is not None and place % grain for place in places):
            return []
        for phase in model.phases(places):
            words = set()
            for lane in phase.lanes:
                first = (places[lane] or 0) // 4
                words |= set(range(first, first + max(1, model.access_bytes // 4)))
            counts = [0] * model.banks
            for word in words:
                counts[word % model.banks] += 1
            if max(counts) > max(worst, default=0):
                worst = counts
    return worst
