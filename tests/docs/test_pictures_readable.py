"""Texts of pictures lie beside each other and inside the frame, by the widths of a monospaced font."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import NamedTuple

from docs.drawn import pictures

from layoutalg.draw.canvas import Canvas

WIDTH = 0.602
"""Of a character, in sizes of the font."""
SIZES = {"h": 12.0, "s": 10.0}
SLACK = 1.5
SVG = "{http://www.w3.org/2000/svg}"


class Box(NamedTuple):
    """Where something is drawn."""

    left: float
    top: float
    right: float
    bottom: float
    words: str

    def meets(self, other: Box) -> bool:
        """Whether two boxes share more than a hair."""
        across = min(self.right, other.right) - max(self.left, other.left)
        return across > SLACK and min(self.bottom, other.bottom) - max(self.top, other.top) > SLACK


def texts(picture: str) -> tuple[list[Box], list[Box]]:
    """The boxes of texts: those inside cells, and all others; turned ones left out."""
    inside, beside = [], []
    root = ET.fromstring(picture)
    turned = {node for group in root.iter(f"{SVG}g") if group.get("transform") for node in group}
    for node in root.iter(f"{SVG}text"):
        if node in turned:
            continue
        styles, words = node.get("class", "").split(), node.text or ""
        size = next((SIZES[style] for style in styles if style in SIZES), 11.0)
        wide, x, y = WIDTH * size * len(words), float(node.get("x", 0)), float(node.get("y", 0))
        left = x - wide / 2 if "m" in styles else x - wide if "e" in styles else x
        box = Box(left, y - 0.72 * size, left + wide, y + 0.1 * size, words)
        (inside if any(re.fullmatch(r"t(\d+|z|x|f|k\d)", style) for style in styles) else beside).append(box)
    return inside, beside


def cells(picture: str) -> list[Box]:
    """The boxes of cells."""
    found = []
    for path in re.findall(r'<path d="M([\d.e-]+) ([\d.e-]+)h([\d.e]+)v([\d.e]+)h', picture):
        x, y, wide, tall = map(float, path)
        found.append(Box(x, y, x + wide, y + tall, ""))
    return found


def clashes(picture: str) -> list[str]:
    """What lies over something else, or outside the frame."""
    inside, beside = texts(picture)
    root = ET.fromstring(picture)
    frame = Box(0, 0, float(root.get("width", 0)), float(root.get("height", 0)), "")
    found = [f"{box.words} is outside" for box in (*inside, *beside)
             if box.left < 0 or box.top < 0 or box.right > frame.right or box.bottom > frame.bottom]  # fmt: skip
    for group in (inside, beside):
        lines = sorted(group, key=lambda box: box.top)
        for place, box in enumerate(lines):
            for other in lines[place + 1 :]:
                if other.top > box.bottom:
                    break
                if box.meets(other):
                    found.append(f"{box.words} lies over {other.words}")
    rooms = cells(picture)
    found += [f"{box.words} lies over a cell" for box in beside if any(box.meets(room) for room in rooms)]
    return found


def test_no_text_lies_over_another_thing() -> None:
    assert {name: found for name, picture in pictures().items() if (found := clashes(picture))} == {}


def test_an_overlap_would_be_seen() -> None:
    canvas = Canvas()
    canvas.text(4, 20, "one line of words")
    canvas.text(60, 22, "another")
    canvas.cells(4, 40, (20, 20), [[("c1", "far too wide for it", "title")]])
    canvas.text(4, 50, "over it", "s")
    assert [words.split(" is ")[-1].split(" lies ")[-1] for words in clashes(canvas.svg("planted"))] == [
        "outside", "over another", "over a cell",
    ]  # fmt: skip
