"""Draw the shared-memory banks of one access: which lanes touch which bank.

Notation: lanes are served in groups (32 for accesses up to 32 bits, 16 for 64, 8 for 128 bits and matrices). A group
takes one turn per distinct word in its busiest bank.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import log2
from typing import Any, cast

from layoutalg.draw.canvas import Canvas
from layoutalg.targets.banks import BankModel, Phase
from layoutalg.targets.nvidia import banks as hardware

CELL = 22.0


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
    """Return the style class of a bank by its words: grey for none, blue for one, redder with each doubling.

    Example:
        >>> busy(0, 32), busy(1, 32), busy(2, 32), busy(32, 32), busy(2, 2)
        ('z', 'f', 'k0', 'k2', 'k2')
    """
    if count <= 1:
        return "f" if count else "z"
    return f"k{int(2 * log2(count) / log2(max(worst, 2)))}"


def draw_phases(canvas: Canvas, model: BankModel, addresses: Sequence[int | None], top: float) -> None:
    """Draw one instruction: a row per phase, a column per bank; below, the lanes that conflict in the busiest bank.

    Args:
        canvas: The canvas.
        model: The instruction.
        addresses: One byte address per lane, None for an inactive lane.
        top: Upper edge.
    """
    rows = words_of(model, addresses)
    turns = sum(phase.turns for phase, _ in rows)
    canvas.text(4, top + 14, f"{model}: {turns} turn{'s' if turns != 1 else ''}", "h")
    wide = CELL if model.banks <= 32 else CELL / 2 + 3
    left, base = 130.0, top + 42
    worst = max((len(words) for _, banks in rows for words in banks), default=1)
    for bank in range(0, model.banks, 1 if model.banks <= 32 else 2):
        canvas.text(left + bank * wide + wide / 2, base - 4, bank, "s m")
    canvas.text(4, base - 4, "lanes / bank", "s")
    styles, labels, titles = [], [], []
    for place, (phase, banks) in enumerate(rows):
        canvas.text(left - 6, base + place * CELL + 15, spans(phase.lanes), "s e")
        styles.append([busy(len(words), worst) for words in banks])
        labels.append([str(len(words)) if words else "" for words in banks])
        titles.append([f"bank {bank}: {_told(words)}" for bank, words in enumerate(banks)])
    canvas.cells(left, base, (wide, CELL), styles, labels, titles)
    for place, (_, banks) in enumerate(rows):
        for bank, words in enumerate(banks):
            if len(words) > 1:
                canvas.frame(left + bank * wide, base + place * CELL, wide - 1, CELL - 1, "w")
    canvas.text(4, canvas.height + 14, "numbers: distinct words of a bank in one phase; outlined: a conflict", "s")
    _draw_lanes(canvas, model, rows, canvas.height + 14)


def _draw_lanes(
    canvas: Canvas, model: BankModel, rows: list[tuple[Phase, list[dict[int, list[int]]]]], top: float
) -> None:
    """Draw the lanes, coloured by phase; lanes that conflict in the busiest bank of their phase are outlined."""
    canvas.text(4, top + 14, "lanes by phase; outlined: conflicts in its busiest bank", "n")
    base, many = top + 22, min(32, model.lanes)
    served = {lane: (place, phase) for place, (phase, _) in enumerate(rows) for lane in phase.lanes}
    meet = {lane: word for phase, _ in rows if phase.turns > phase.least for lane, word in phase.busy}
    styles: list[list[str]] = []
    labels: list[list[str]] = []
    titles: list[list[str]] = []
    for first in range(0, model.lanes, many):
        lanes = range(first, first + many)
        styles.append(
            [f"c{served[lane][0] * 15 // max(1, len(rows) - 1)}" if lane in served else "z" for lane in lanes]
        )
        labels.append([str(lane) for lane in lanes])
        titles.append([_of_lane(lane, served, meet) for lane in lanes])
    canvas.cells(130.0, base, (CELL, CELL), styles, labels, titles)
    for lane in sorted(meet):
        canvas.frame(130.0 + lane % many * CELL, base + lane // many * CELL, CELL - 1, CELL - 1, "w")


def _of_lane(lane: int, served: dict[int, tuple[int, Phase]], meet: dict[int, int]) -> str:
    if lane not in served:
        return f"lane {lane} is inactive"
    place, phase = served[lane]
    here = f", touches word {meet[lane]} of bank {phase.bank}" if lane in meet else ""
    return f"lane {lane}: phase {place}{here}"


def _told(words: dict[int, list[int]]) -> str:
    parts = [f"word {w} by lane{'s' if len(by) > 1 else ''} {', '.join(map(str, by))}" for w, by in words.items()]
    return "; ".join(parts) or "idle"


def spans(lanes: Sequence[int]) -> str:
    """Return lanes as text, runs as ranges.

    Example:
        >>> spans((0, 1, 2, 3, 20))
        '0-3 20'
    """
    runs: list[list[int]] = []
    for lane in lanes:
        if runs and lane == runs[-1][1] + 1:
            runs[-1][1] = lane
        else:
            runs.append([lane, lane])
    return " ".join(f"{first}-{last}" if first != last else str(first) for first, last in runs)


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
    lines = [f"{model}: {turns} turn{'s' if turns != 1 else ''}"]
    for phase, banks in rows:
        marks = "".join("." if not words else str(len(words)) if len(words) < 10 else "+" for words in banks)
        lines.append(f"{marks} lanes {spans(phase.lanes)}")
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
    turns = hardware.wavefronts(cast(Any, offsets_bytes), access_bits, kind)
    canvas.text(4, top + 14, f"{kind} of {access_bits} bits per lane: {turns} turn{'s' if turns > 1 else ''}", "h")
    groups = traffic(offsets_bytes, access_bits)
    worst = max((len(words) for group in groups for words in group), default=1)
    left, base = 90.0, top + 42
    for bank in range(hardware.BANKS):
        canvas.text(left + bank * CELL + CELL / 2, base - 4, bank, "s m")
    canvas.text(4, base - 4, "lanes / bank", "s")
    styles, labels, titles = [], [], []
    for place, group in enumerate(groups):
        lanes = [lane for words in group for lanes in words.values() for lane in lanes]
        span = f"{min(lanes)} to {max(lanes)}" if lanes else "inactive"
        canvas.text(left - 6, base + place * CELL + 15, span, "s e")
        styles.append([busy(len(words), worst) for words in group])
        labels.append([str(len(words)) if words else "" for words in group])
        titles.append(
            [
                f"bank {bank}: "
                + (
                    "; ".join(
                        f"word {w} by lane{'s' if len(by) > 1 else ''} {', '.join(map(str, by))}"
                        for w, by in words.items()
                    )
                    or "idle"
                )
                for bank, words in enumerate(group)
            ]
        )
    canvas.cells(left, base, (CELL, CELL), styles, labels, titles)
    for place, group in enumerate(groups):
        for bank, words in enumerate(group):
            if len(words) > 1:
                canvas.frame(left + bank * CELL, base + place * CELL, CELL - 1, CELL - 1, "w")
    canvas.text(4, canvas.height + 14, "numbers: distinct words of a bank in one group; outlined: a conflict", "s")


def banks_text(offsets_bytes: Sequence[int | None], access_bits: int, kind: str) -> str:
    """Return the words per bank as text, one line per group of lanes.

    Example:
        >>> print(banks_text([8 * lane for lane in range(32)], 32, "load"))
        load of 32 bits per lane: 2 turns
        2.2.2.2.2.2.2.2.2.2.2.2.2.2.2.2.
    """
    turns = hardware.wavefronts(cast(Any, offsets_bytes), access_bits, kind)
    lines = [
        "".join(str(len(words)) if words else "." for words in group) for group in traffic(offsets_bytes, access_bits)
    ]
    return "\n".join([f"{kind} of {access_bits} bits per lane: {turns} turn{'s' if turns > 1 else ''}", *lines])
