"""Build an SVG picture from rectangles and text, with one style for all pictures.

Implementation notes: colours are classes, which keeps a cell to a few dozen characters. The ramp runs from dark
violet by teal to light yellow with increasing luminance, so it works for colour-blind readers and in greyscale;
important marks (conflicts, out of bounds, a witness) also differ by stroke or hatching. Text outside cells follows the
reader's colour scheme. Pictures cannot execute anything: all text is escaped, and there are no scripts or references.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from html import escape
from itertools import pairwise
from typing import Any, TypeAlias

Cell: TypeAlias = tuple[str, str, str]
"""Class (``c0`` to ``c15``, ``z`` empty, ``x`` out of bounds), label and tooltip of a cell of a grid."""

LEVELS = 16
"""Steps of the colour ramp."""
_ANCHORS = (
    (0.0, (60, 15, 90)), (0.25, (59, 82, 139)), (0.5, (33, 145, 140)), (0.75, (94, 201, 98)), (1.0, (253, 231, 76))
)  # fmt: skip
FONT = "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"


def _mixed(share: float) -> tuple[int, int, int]:
    """The colour at a position of the ramp, from 0 to 1."""
    for (low, first), (high, second) in pairwise(_ANCHORS):
        if share <= high:
            part = (share - low) / (high - low)
            red, green, blue = (round(a + part * (b - a)) for a, b in zip(first, second, strict=True))
            return red, green, blue
    return _ANCHORS[-1][1]


def _ramp() -> list[str]:
    """The style of each level: its colour, and a contrasting colour for text on it."""
    rules = []
    for level in range(LEVELS):
        red, green, blue = _mixed(level / (LEVELS - 1))
        light = 0.2126 * red + 0.7152 * green + 0.0722 * blue > 118
        rules.append(
            f".c{level}{{fill:#{red:02x}{green:02x}{blue:02x}}}.t{level}{{fill:{'#111' if light else '#fff'}}}"
        )
    return rules


_RULES = [
    f"text{{{FONT};font-size:11px}}",
    ".h{font-weight:bold;font-size:12px}",
    *(f"{name}{{fill:#1b1f24}}" for name in (".h", ".n")),
    ".s{fill:#59636e;font-size:10px}",
    ".m{text-anchor:middle}",
    ".e{text-anchor:end}",
    ".o{fill:none;stroke:#1b1f24}",
    ".w{fill:none;stroke:#d4351c;stroke-width:2.5}",
    ".x{fill:url(#la-hatch)}",
    ".z{fill:#e8ebee}",
    ".tz,.tx{fill:#111}",
    *_ramp(),
]
_DARK = [*(f"{name}{{fill:#e6edf3}}" for name in (".h", ".n", ".tz")), ".s{fill:#9da7b1}", ".o{stroke:#e6edf3}"]
_DARK += [".z{fill:#3a424c}", ".w{stroke:#ff7b5c}"]


def _scoped(rules: Iterable[str]) -> str:
    """Limit the rules to our pictures, so that the surrounding page keeps its own style."""
    return "".join(
        ",".join(f".la {name}" for name in rule.split("{")[0].split(",")) + "{" + rule.split("{", 1)[1]
        for rule in rules
    )


_STYLE = _scoped(_RULES) + "@media(prefers-color-scheme:dark){" + _scoped(_DARK) + "}"
_BANKS = _scoped(
    [
        ".f{fill:#2f6fb5}",
        *(f".k{level}{{fill:url(#la-k{level})}}" for level in range(3)),
        ".tf,.tk0,.tk1,.tk2{fill:#fff;font-weight:bold}",
    ]
)
"""Bank colours: blue for one word, hatched and redder for more; added only to pictures with banks."""
_ARROWS = _scoped(["line{stroke:#8a3ea8;stroke-width:1.3}", "polygon{fill:#8a3ea8}"]) + (
    "@media(prefers-color-scheme:dark){" + _scoped(["line{stroke:#d9a4ef}", "polygon{fill:#d9a4ef}"]) + "}"
)
"""Added only to pictures with arrows."""


def _hatch(name: str, back: str, stripe: str) -> str:
    return (
        f'<pattern id="{name}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        f'<rect width="6" height="6" fill="{back}"/><path d="M0 0v6" stroke="{stripe}" stroke-width="2"/></pattern>'
    )


_HATCH = _hatch("la-hatch", "#b8bfc6", "#4b545e")
_CONFLICTS = "".join(
    _hatch(f"la-k{level}", *colours)
    for level, colours in enumerate((("#d9583a", "#b03a20"), ("#c42d15", "#961d0a"), ("#961a0a", "#640e03")))
)
"""Conflicts differ from free banks by hatching too, for readers who do not see red."""


class Canvas:
    """The parts of a picture; grows to fit them."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.width = 0.0
        self.height = 0.0

    def reach(self, x: float, y: float) -> None:
        """Grow to include a point."""
        self.width, self.height = max(self.width, x), max(self.height, y)

    def text(self, x: float, y: float, words: object, style: str = "n") -> None:
        """Write a line at its baseline; ``style``: h heading, n normal, s small, plus m (centred) or e (ends here)."""
        line = str(words)
        self.parts.append(f'<text x="{x:g}" y="{y:g}" class="{style}">{escape(line)}</text>')
        if "e" not in style.split() and "m" not in style.split():
            self.reach(x + 7.4 * len(line), y + 4)

    def box(self, x: float, y: float, wide: float, tall: float, style: str, title: str = "") -> None:
        """Draw a rectangle with an optional tooltip."""
        note = f"<title>{escape(title)}</title>" if title else ""
        self.parts.append(f'<rect x="{x:g}" y="{y:g}" width="{wide:g}" height="{tall:g}" class="{style}">{note}</rect>')
        self.reach(x + wide + 1, y + tall + 1)

    def lines(self, x: float, y: float, lines: Iterable[str], step: float = 16, style: str = "s") -> None:
        """Write lines of text below each other."""
        for place, line in enumerate(lines):
            self.text(x, y + step * place, line, style)

    def cells(
        self,
        x: float,
        y: float,
        size: tuple[float, float],
        rows: Sequence[Sequence[Cell]],
        *,
        across: Iterable[object] = (),
        down: Iterable[object] = (),
        gap: float = 4,
        labels: bool = True,
    ) -> None:
        """Draw a grid of cells below the names of its columns and to the right of the names of its rows.

        Args:
            x: Left edge of the first column.
            y: Upper edge of the first row.
            size: Width and height of a cell.
            rows: The cells.
            across: Name of each column; None for no name.
            down: Name of each row, likewise.
            gap: Distance of a row's name from the row.
            labels: Whether cells show their labels.
        """
        wide, tall = size
        for column, name in enumerate(across):
            if name is not None:
                self.text(x + column * wide + wide / 2, y - 4, name, "s m")
        for row, name in enumerate(down):
            if name is not None:
                self.text(x - gap, y + row * tall + tall / 2 + 4, name, "s e")
        shape = f"h{wide - 1:g}v{tall - 1:g}h{1 - wide:g}z"
        parts = self.parts
        for place, row_cells in enumerate(rows):
            top = y + place * tall
            parts += [
                f'<path d="M{x + column * wide:g} {top:g}{shape}" class="{kind}"><title>{escape(note)}</title></path>'
                for column, (kind, _, note) in enumerate(row_cells)
            ]
            if labels:
                base, middle = top + tall / 2 + 4, x + wide / 2 - 0.5
                parts += [
                    f'<text x="{middle + column * wide:g}" y="{base:g}" class="m t{kind[kind[0] == "c" :]}">'
                    f"{escape(label)}</text>"
                    for column, (kind, label, _) in enumerate(row_cells)
                    if label
                ]
        self.reach(x + wide * max(map(len, rows), default=0) + 1, y + tall * len(rows) + 1)

    def frame(self, x: float, y: float, wide: float, tall: float, style: str = "o") -> None:
        """Outline a rectangle: ``o`` plain, ``w`` a warning."""
        self.box(x, y, wide, tall, style)

    def arrow(self, start: tuple[float, float], end: tuple[float, float], title: str) -> None:
        """Draw an arrow between two different points."""
        (x, y), (to_x, to_y) = start, end
        long = math.hypot(to_x - x, to_y - y)
        along, up = (to_x - x) / long, (to_y - y) / long
        back_x, back_y = to_x - 6 * along, to_y - 6 * up
        head = [(to_x, to_y), (back_x - 3 * up, back_y + 3 * along), (back_x + 3 * up, back_y - 3 * along)]
        points = " ".join(f"{one:.4g},{other:.4g}" for one, other in head)
        note = f"<title>{escape(title)}</title>"
        self.parts.append(f'<line x1="{x:g}" y1="{y:g}" x2="{back_x:.4g}" y2="{back_y:.4g}">{note}</line>')
        self.parts.append(f'<polygon points="{points}"/>')

    def svg(self, title: str) -> str:
        """Return the picture as one SVG document; ``title`` is for screen readers."""
        wide, tall = round(self.width + 8), round(self.height + 8)
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="la" width="{wide}" height="{tall}" '
            f'viewBox="0 0 {wide} {tall}" role="img" aria-label="{escape(title, quote=True)}">'
        )
        body = "".join(self.parts)
        conflicts = 'class="k' in body
        style = _STYLE + (_BANKS if conflicts or 'class="f"' in body else "")
        style += _ARROWS if "<line" in body else ""
        defs = f"<defs>{_HATCH}{_CONFLICTS if conflicts else ''}</defs>"
        return "".join([head, f"<style>{style}</style>", defs, body, "</svg>"])


def level_of(value: int, low: int, high: int) -> int:
    """Return the level of the ramp for a value in [low, high]."""
    return 0 if high <= low else (value - low) * (LEVELS - 1) // (high - low)


def cut(text: str, most: int) -> str:
    """Return a text of at most ``most`` characters, dots at the end if it was longer."""
    return text if len(text) <= most else text[: most - 3] + "..."


def many(count: int, what: str) -> str:
    """Return a count with its noun."""
    if count == 1:
        return f"{count} {what}"
    return f"{count} {what[:-1]}ies" if what.endswith("y") else f"{count} {what}s"


@singledispatch
def draw_value(value: Any, canvas: Canvas, top: float) -> bool | None:  # noqa: ARG001
    """Draw a value below ``top``; return False if it has no picture. Each kind registers its own function."""
    return False


def is_drawn(kind: type) -> bool:
    """Return whether values of a type have a function that draws them."""
    return draw_value.dispatch(kind) is not draw_value.dispatch(object)


LINE_BYTES = 128
LINES = 32
"""Most lines drawn; if there are more, the picture says so."""
TALL = 18.0


@dataclass(frozen=True, slots=True)
class Unit:
    """Appearance of a unit of shared memory."""

    label: str  # its text
    style: str  # its class: ``c0`` to ``c15``, ``z``
    title: str  # its tooltip
    mark: str = ""  # outline: ``""``, ``"o"`` plain, ``"w"`` a warning


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
    cells = [
        [
            (
                unit.style,
                unit.label,
                f"{span(line * LINE_BYTES + at * unit_bytes, unit_bytes)}: {unit.title or 'nothing'}",
            )
            for at, unit in enumerate(row)
        ]
        for line, row in zip(shown, rows, strict=True)
    ]
    canvas.cells(left, top, size, cells, down=[line * LINE_BYTES for line in shown])
    for mark in ("o", "w"):
        for place, row in enumerate(rows):
            for column, unit in enumerate(row):
                if unit.mark == mark:
                    canvas.frame(left + column * size[0], top + place * TALL, size[0] - 1, TALL - 1, mark)
    if len(lines) > len(shown):
        canvas.text(left, top + len(shown) * TALL + 14, f"{len(lines) - len(shown)} more lines", "s")


def span(first: int, many: int) -> str:
    """A byte range as text."""
    return f"byte {first}" if many == 1 else f"bytes {first} to {first + many - 1}"


def ranges(numbers: Iterable[int], dash: str = "..", between: str = ", ") -> str:
    """Ascending numbers as text, runs as ranges.

    Example:
        >>> ranges([0, 1, 2, 3, 7]), ranges([0, 1, 2, 3, 20], "-", " ")
        ('0..3, 7', '0-3 20')
    """
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return between.join(f"{low}{dash}{high}" if low < high else str(low) for low, high in found)
