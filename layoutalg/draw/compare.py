"""Compare two layouts, and show one layout in every family."""

from __future__ import annotations

from typing import Any

from layoutalg import convert
from layoutalg.draw.canvas import Canvas
from layoutalg.draw.grid import Cells, cells_of, cells_text, draw_cells
from layoutalg.ground.errors import LayoutError
from layoutalg.ground.layout import Layout

SIDE = 32


def first_differences(one: Cells, other: Cells) -> list[tuple[int, int]]:
    """Return the cells (row, column) shown in both pictures with different values, by flat index."""
    found = [
        (int(one.index[r, c]), r, c)
        for r in range(min(len(one.values), len(other.values)))
        for c in range(min(len(one.values[r]), len(other.values[r])))
        if one.index[r, c] == other.index[r, c] and one.values[r][c] != other.values[r][c]
    ]
    return [(r, c) for _, r, c in sorted(found)]


def draw_difference(canvas: Canvas, one: Layout, other: Layout, top: float) -> None:
    """Draw two layouts, one below the other, and outline where they differ."""
    cells = cells_of(one, SIDE), cells_of(other, SIDE)
    marks = first_differences(*cells)
    base = top
    for each in cells:
        grid = draw_cells(canvas, each, base)
        for row, column in marks:
            x, y, wide, tall = grid.cell(row, column)
            canvas.frame(x, y, wide - 1, tall - 1, "w")
        base = canvas.height + 10
    canvas.text(4, base + 8, difference_text(one, other).splitlines()[0], "n")


def difference_text(one: Layout, other: Layout) -> str:
    """Say where two layouts first differ, and show both."""
    cells = cells_of(one, SIDE), cells_of(other, SIDE)
    marks = first_differences(*cells)
    if one.size != other.size:
        head = f"different domains: {one.size} and {other.size} points"
    elif marks:
        row, column = marks[0]
        values = [each.values[row][column] for each in cells]
        head = f"first difference at flat coordinate {cells[0].index[row, column]}: {values[0]} and {values[1]}"
    else:
        head = "no difference among the cells shown"
    return "\n".join([head, cells_text(cells[0]), "", cells_text(cells[1])])


FAMILIES = (
    ("over F2", convert.to_linear),
    ("CuTe", convert.to_cute),
    ("integer", convert.to_integer),
    ("piecewise", convert.to_piecewise),
)


def in_families(layout: Any) -> list[tuple[str, str, bool]]:
    """Return (family, text or the reason why there is none, whether there is one) for every family.

    Example:
        >>> from layoutalg.cute import CuteLayout
        >>> [(name, there) for name, _, there in in_families(CuteLayout(6, 2))]
        [('over F2', False), ('CuTe', True), ('integer', True), ('piecewise', True)]
    """
    rows = []
    for name, into in FAMILIES:
        try:
            rows.append((name, str(into(layout)), True))
        except LayoutError as error:
            rows.append((name, error.diagnostic.because or error.diagnostic.what, False))
    return rows
