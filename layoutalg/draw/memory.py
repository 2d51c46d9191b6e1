"""Draw shared memory in lines of 128 bytes, the width of all banks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from layoutalg.draw.canvas import Canvas

LINE_BYTES = 128
LINES = 32
"""Most lines drawn; if there are more, the picture says so."""
TALL = 18.0


@dataclass(frozen=True, slots=True)
class Unit:
    """Appearance of a unit of shared memory.

    Args:
        label: Its text.
        style: Its class: ``c0`` to ``c15``, ``z``.
        title: Its tooltip.
        mark: Outline: ``""``, ``"o"`` plain, ``"w"`` a warning.
    """

    label: str
    style: str
    title: str
    mark: str = ""


def draw_memory(
    canvas: Canvas, left: float, top: float, units: Mapping[int, Unit], unit_bytes: int, whole: bool = True
) -> None:
    """Draw lines of shared memory below ``top``.

    Args:
        canvas: The canvas.
        left: Left edge of the first unit.
        top: Upper edge of the first line.
        units: Unit number, counted from byte 0, -> appearance; others are empty.
        unit_bytes: Bytes per unit, a power of two up to 128.
        whole: Whether empty lines are drawn.
    """
    many = LINE_BYTES // unit_bytes
    lines = sorted({unit // many for unit in units})
    if whole and lines:
        lines = list(range(lines[-1] + 1))
    shown = lines[:LINES]
    longest = max((len(unit.label) for unit in units.values()), default=1)
    size = (max(14.0 if many > 8 else 24.0, 7.0 * longest + 6), TALL)
    empty = Unit("", "z", "")
    rows = [[units.get(line * many + column, empty) for column in range(many)] for line in shown]
    for place, line in enumerate(shown):
        canvas.text(left - 4, top + place * TALL + 13, line * LINE_BYTES, "s e")
    canvas.cells(
        left,
        top,
        size,
        [[unit.style for unit in row] for row in rows],
        [[unit.label for unit in row] for row in rows],
        [
            [
                f"{span(line * LINE_BYTES + column * unit_bytes, unit_bytes)}: {unit.title or 'nothing'}"
                for column, unit in enumerate(row)
            ]
            for line, row in zip(shown, rows, strict=True)
        ],
    )
    for mark in ("o", "w"):
        for place, row in enumerate(rows):
            for column, unit in enumerate(row):
                if unit.mark == mark:
                    canvas.frame(left + column * size[0], top + place * TALL, size[0] - 1, TALL - 1, mark)
    if len(lines) > len(shown):
        canvas.text(left, top + len(shown) * TALL + 14, f"{len(lines) - len(shown)} more lines", "s")


def span(first: int, many: int) -> str:
    """A byte range as text.

    Example:
        >>> span(16, 16)
        'bytes 16 to 31'
    """
    return f"byte {first}" if many == 1 else f"bytes {first} to {first + many - 1}"


def ranges(numbers: Iterable[int]) -> str:
    """Numbers as text, runs as ranges.

    Example:
        >>> ranges([3, 0, 1, 2, 7])
        '0..3, 7'
    """
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(f"{low}..{high}" if low < high else str(low) for low, high in found)
