"""Draw a layout as a grid of its values, as SVG and as text, and compare two layouts.

Notation: rows are the first mode or axis, columns the rest, as in a matrix. A layout of one mode is wrapped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg import convert
from layoutalg.draw.canvas import Canvas, Cell, cut, level_of
from layoutalg.ground.errors import LayoutError
from layoutalg.ground.layout import Layout

Show: TypeAlias = Literal["value", "coordinate", "both"]
SHOWN_SIDE = 128
"""Most rows and columns drawn; of a larger layout only the corner is drawn, and the picture says so."""
LABELLED_CELLS = 2048
HEAD = 110
"""Characters of the heading."""
WRAP = 32
COMPARED_SIDE = 32
"""Most rows and columns of two compared layouts."""


@dataclass(frozen=True, slots=True)
class Cells:
    """The part of a layout that is drawn."""

    head: str  # the heading
    rows: int  # full extent of the first mode or axis
    columns: int  # full product of the other extents
    index: npt.NDArray[np.int64]  # flat coordinate of each cell drawn; -1 after the end of a wrapped layout
    values: Sequence[Sequence[Any]]  # the value of each cell, a number or a tuple; None where the layout is undefined
    names: tuple[str, str]  # names of the row and the column coordinate

    @property
    def note(self) -> str:
        """What part is shown; empty if everything is."""
        tall, wide = self.index.shape
        if tall == self.rows and wide == self.columns:
            return ""
        return f"the first {tall} of {self.rows} rows and {wide} of {self.columns} columns"


def sides(layout: Layout) -> tuple[int, int, tuple[str, str]]:
    """Return rows, columns and their names: the first mode or axis against the rest."""
    shape = getattr(layout, "shape", None)
    if shape is not None:  # CuTe: top-level modes
        extents = [math.prod(_leaves(mode)) for mode in shape] if isinstance(shape, tuple) else [shape]
        names = [f"mode {place}" for place in range(len(extents))]
    else:
        dims = layout.in_dims
        extents, names = list(dims.values()), list(dims)
    if len(extents) < 2 or layout.size in extents:  # one mode, or all others of extent 1
        return 1, layout.size, ("", names[0] if names else "")
    return extents[0], math.prod(extents[1:]), (names[0], " x ".join(names[1:]))


def _leaves(shape: Any) -> list[int]:
    return [leaf for part in shape for leaf in _leaves(part)] if isinstance(shape, tuple) else [shape]


def cells_of(layout: Layout, side: int = SHOWN_SIDE) -> Cells:
    """Return the corner of a layout, at most ``side`` rows and columns."""
    rows, columns, names = sides(layout)
    size = rows * columns
    if rows == 1 and columns > WRAP:  # one mode: wrapped as text is
        wide = WRAP
        tall = min(side, -(-columns // wide))
        index = np.arange(tall * wide, dtype=np.int64).reshape(tall, wide)
        rows, columns, names = -(-columns // wide), wide, ("", names[1])
        index = np.where(index < size, index, -1)
    else:
        index = np.arange(min(rows, side), dtype=np.int64)[:, None] + rows * np.arange(
            min(columns, side), dtype=np.int64
        )
    flat = index.reshape(-1)
    inside = flat[flat >= 0]
    found = iter(_values(layout, inside))
    values = [[next(found) if cell >= 0 else None for cell in row] for row in index.tolist()]
    return Cells(str(layout), rows, columns, index, values, names)


def _values(layout: Layout, flat: npt.NDArray[np.int64]) -> list[Any]:
    """The values at flat coordinates: numbers, tuples, or None where a partial layout is undefined."""
    table = layout.apply(flat)
    rows: list[Any] = table.tolist()
    if table.ndim > 1:
        return [tuple(row) for row in rows]
    return rows


def _number(value: Any) -> int | None:
    """The number that determines a cell's colour: the value, or the last entry of a tuple."""
    if isinstance(value, tuple):
        value = value[-1] if value else None
    return value if isinstance(value, int) else None


def written(value: Any) -> str:
    """A value as a cell shows it."""
    if value is None:
        return ""
    return f"({','.join(map(str, value))})" if isinstance(value, tuple) else str(value)


def bits(value: Any) -> str:
    """A value in decimal and binary, for tooltips."""
    if isinstance(value, int) and value >= 0:
        return f"{value} = 0b{value:b}"
    return written(value) or "nothing"


def place(cells: Cells, row: int, column: int) -> str:
    """The coordinate of a cell, in words."""
    flat = int(cells.index[row, column])
    if cells.names[0]:
        return f"{cells.names[0]}: {row}, {cells.names[1]}: {column} (flat {flat})"
    return f"flat {flat} = 0b{flat:b}"


@dataclass(frozen=True, slots=True)
class Placed:
    """Position of a grid in a picture."""

    left: float
    top: float
    size: tuple[float, float]

    def cell(self, row: int, column: int) -> tuple[float, float, float, float]:
        """Return x, y, width and height of a cell."""
        wide, tall = self.size
        return self.left + column * wide, self.top + row * tall, wide, tall


def draw_cells(canvas: Canvas, cells: Cells, top: float, show: Show = "value") -> Placed:
    """Draw the cells below ``top`` and return their position."""
    numbers = [number for row in cells.values for value in row if (number := _number(value)) is not None]
    low, high = (min(numbers), max(numbers)) if numbers else (0, 0)
    labels = _labels(cells, show)
    small = cells.index.size > LABELLED_CELLS
    longest = max((len(label) for row in labels for label in row), default=1)
    placed = Placed(42.0, top + 40, (8.0, 8.0) if small else (max(20.0, 7.0 * longest + 8), 20.0))
    rows: list[list[Cell]] = [
        [
            (
                "z" if (number := _number(value)) is None else f"c{level_of(number, low, high)}",
                label,
                f"{place(cells, r, c)} -> {bits(value)}",
            )
            for c, (value, label) in enumerate(zip(row, words, strict=True))
        ]
        for r, (row, words) in enumerate(zip(cells.values, labels, strict=True))
    ]
    canvas.text(4, top + 14, cut(cells.head, HEAD), "h")
    step = 8 if small else 1
    tall, wide = cells.index.shape
    down = [r if cells.names[0] else int(cells.index[r, 0]) for r in range(tall if cells.columns else 0)]
    canvas.cells(
        placed.left,
        placed.top,
        placed.size,
        rows,
        across=ruler(range(wide), step),
        down=ruler(down, step),
        labels=not small,
    )
    said = f"rows: {cells.names[0]}, columns: {cells.names[1]}" if cells.names[0] else ""
    words = [part for part in (said, cells.note, f"values {low} to {high}") if part]
    canvas.text(4, canvas.height + 14, "; ".join(words), "s")
    return placed


def ruler(names: Sequence[int], step: int) -> list[int | None]:
    """The names of a grid's rows or columns, of which every ``step``-th is written."""
    return [name if at % step == 0 else None for at, name in enumerate(names)]


def _labels(cells: Cells, show: Show) -> list[list[str]]:
    if show == "value":
        return [[written(value) for value in row] for row in cells.values]
    where = [
        [f"{r},{c}" if cells.names[0] else str(int(flat)) for c, flat in enumerate(row)]
        for r, row in enumerate(cells.index)
    ]
    if show == "coordinate":
        return where
    return [
        [f"{at}:{written(value)}" for at, value in zip(places, row, strict=True)]
        for places, row in zip(where, cells.values, strict=True)
    ]


def cells_text(cells: Cells, show: Show = "value", side: int = 16) -> str:
    """The cells as text, at most ``side`` rows and columns."""
    labels = _labels(cells, show)
    more = cells.rows > min(side, len(labels)), cells.columns > min(side, cells.index.shape[1])
    return columns_text(labels, side, more=more)


def columns_text(rows: Sequence[Sequence[str]], side: int, more: tuple[bool, bool] = (False, False)) -> str:
    """Labels as text in columns, at most ``side`` rows and columns; ``more`` says whether rows and columns go on."""
    shown = [row[:side] for row in rows[:side]]
    width = max((len(label) for row in shown for label in row), default=0)
    lines = [" ".join(label.rjust(width) for label in row) + " ..." * more[1] for row in shown]
    return "\n".join([*lines, *["..."] * more[0]])


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
    cells = cells_of(one, COMPARED_SIDE), cells_of(other, COMPARED_SIDE)
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
    cells = cells_of(one, COMPARED_SIDE), cells_of(other, COMPARED_SIDE)
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
    """Return (family, text or the reason why there is none, whether there is one) for every family."""
    rows = []
    for name, into in FAMILIES:
        try:
            rows.append((name, str(into(layout)), True))
        except LayoutError as error:
            rows.append((name, error.diagnostic.because or error.diagnostic.what, False))
    return rows
