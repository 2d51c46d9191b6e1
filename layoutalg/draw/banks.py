"""Shared-memory banks of one access: which lanes meet in which bank, turn by turn.

Main definitions: ``draw_banks``, ``banks_text``.

Notation: lanes are served in groups (32 for accesses up to 32 bits, 16 for 64, 8 for 128 bits and matrices). A group
takes as many turns as its busiest bank has different words; equal words are one turn.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, cast

from layoutalg.draw.canvas import Canvas
from layoutalg.targets.nvidia import banks as hardware

CELL = 22.0


def traffic(offsets_bytes: Sequence[int | None], access_bits: int) -> list[list[dict[int, list[int]]]]:
    """Return, per group and bank, the words touched and the lanes that touch each."""
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
    """Draw how many words each group of lanes wants of each bank; banks that need several turns are outlined."""
    turns = hardware.wavefronts(cast(Any, offsets_bytes), access_bits, kind)
    canvas.text(4, top + 14, f"{kind} of {access_bits} bits a lane: {turns} turn{'s' if turns > 1 else ''}", "h")
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
        styles.append(
            [f"c{15 if worst == 1 else (len(words) - 1) * 15 // (worst - 1)}" if words else "z" for words in group]
        )
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
    canvas.text(4, canvas.height + 14, "numbers: different words of a bank in one group; outlined: a conflict", "s")


def banks_text(offsets_bytes: Sequence[int | None], access_bits: int, kind: str) -> str:
    """Return the words per bank as text, one line a group of lanes.

    Example:
        >>> print(banks_text([8 * lane for lane in range(32)], 32, "load"))
        load of 32 bits a lane: 2 turns
        2.2.2.2.2.2.2.2.2.2.2.2.2.2.2.2.
    """
    turns = hardware.wavefronts(cast(Any, offsets_bytes), access_bits, kind)
    lines = [
        "".join(str(len(words)) if words else "." for words in group) for group in traffic(offsets_bytes, access_bits)
    ]
    return "\n".join([f"{kind} of {access_bits} bits a lane: {turns} turn{'s' if turns > 1 else ''}", *lines])
