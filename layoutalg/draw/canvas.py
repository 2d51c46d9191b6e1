"""Build an SVG picture from rectangles and text, with one style for all pictures.

Implementation notes: colours are classes, which keeps a cell to a few dozen characters. The ramp runs from dark blue to
light yellow with increasing luminance, so it works for colour-blind readers and in greyscale; important marks
(conflicts, out of bounds, a witness) also differ by stroke or hatching. Text outside cells follows the reader's colour
scheme. Pictures cannot execute anything: all text is escaped, and there are no scripts or references.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise

LEVELS = 16
"""Steps of the colour ramp."""
_ANCHORS = ((0.0, (0, 46, 99)), (0.35, (84, 92, 118)), (0.65, (140, 136, 117)), (1.0, (253, 231, 110)))
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
        *(f".k{level}{{fill:{colour}}}" for level, colour in enumerate(("#e8684a", "#d4351c", "#9e1b0b"))),
        ".tf,.tk0,.tk1,.tk2{fill:#fff}",
    ]
)
"""Bank colours: blue for one word, redder for more; added only to pictures with banks."""
_HATCH = (
    '<defs><pattern id="la-hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect width="6" height="6" fill="#b8bfc6"/><path d="M0 0v6" stroke="#4b545e" stroke-width="2"/></pattern></defs>'
)


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

    def cells(
        self,
        x: float,
        y: float,
        size: tuple[float, float],
        styles: Sequence[Sequence[str]],
        labels: Sequence[Sequence[str]] | None,
        titles: Sequence[Sequence[str]],
    ) -> None:
        """Draw a grid of cells.

        Args:
            x: Left edge of the first column.
            y: Upper edge of the first row.
            size: Width and height of a cell.
            styles: Class of each cell, by row and column: ``c0`` to ``c15``, ``z`` (empty) or ``x`` (out of bounds).
            labels: Text of each cell; None for colour only.
            titles: Tooltip of each cell.
        """
        wide, tall = size
        shape = f"h{wide - 1:g}v{tall - 1:g}h{1 - wide:g}z"
        parts = self.parts
        for row, (classes, notes) in enumerate(zip(styles, titles, strict=True)):
            top = y + row * tall
            parts += [
                f'<path d="M{x + column * wide:g} {top:g}{shape}" class="{kind}"><title>{note}</title></path>'
                for column, (kind, note) in enumerate(zip(classes, map(escape, notes), strict=True))
            ]
            if labels is not None:
                base, middle = top + tall / 2 + 4, x + wide / 2 - 0.5
                parts += [
                    f'<text x="{middle + column * wide:g}" y="{base:g}" class="m t{kind[kind[0] == "c" :]}">'
                    f"{escape(label)}</text>"
                    for column, (kind, label) in enumerate(zip(classes, labels[row], strict=True))
                    if label
                ]
        self.reach(x + wide * max(map(len, styles), default=0) + 1, y + tall * len(styles) + 1)

    def frame(self, x: float, y: float, wide: float, tall: float, style: str = "o") -> None:
        """Outline a rectangle: ``o`` plain, ``w`` a warning."""
        self.box(x, y, wide, tall, style)

    def svg(self, title: str) -> str:
        """Return the picture as one SVG document; ``title`` is for screen readers."""
        wide, tall = round(self.width + 8), round(self.height + 8)
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="la" width="{wide}" height="{tall}" '
            f'viewBox="0 0 {wide} {tall}" role="img" aria-label="{escape(title, quote=True)}">'
        )
        body = "".join(self.parts)
        style = _STYLE + (_BANKS if 'class="f"' in body or 'class="k' in body else "")
        return "".join([head, f"<style>{style}</style>", _HATCH, body, "</svg>"])


def level_of(value: int, low: int, high: int) -> int:
    """Return the level of the ramp for a value in [low, high].

    Example:
        >>> level_of(0, 0, 63), level_of(63, 0, 63), level_of(5, 5, 5)
        (0, 15, 0)
    """
    return 0 if high <= low else (value - low) * (LEVELS - 1) // (high - low)
