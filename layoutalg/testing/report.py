"""Report a failed comparison: the first difference, the number of differences, and a table around the first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np

from layoutalg import draw
from layoutalg.draw.grid import cells_of, first_differences
from layoutalg.ground.errors import LayoutError, shown
from layoutalg.ground.layout import Layout
from layoutalg.testing.functions import Function, TabledLayout

ROWS = 8
"""Rows of the table around the first difference."""
SIDE = 16
"""Rows and columns of a picture in text."""
CHUNK = 2**16
TABLED = 2**20
"""Largest size at which both functions are tabulated over one box for pictures."""
_where: ContextVar[tuple[Path, str] | None] = ContextVar("layoutalg_pictures", default=None)


@contextmanager
def pictures_into(folder: Path, name: str) -> Iterator[None]:
    """Save the picture of the last failed comparison in this block as ``folder/name.svg``."""
    token = _where.set((folder, name))
    try:
        yield
    finally:
        _where.reset(token)


def differing(f: Function, g: Function, size: int, most: int) -> tuple[list[int], int] | None:
    """Return the first few differing coordinates and their number; None for more than ``most`` points."""
    if size > most:
        return None
    first: list[int] = []
    count = 0
    for start in range(0, size, CHUNK):
        index = np.arange(start, min(size, start + CHUNK), dtype=np.int64)
        one, other = f.values(index), g.values(index)
        here = [start + place for place, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1]]
        first += here[: ROWS - len(first)]
        count += len(here)
    return first, count


def difference_report(f: Function, g: Function, witness: int, size: int, most: int, picture: bool) -> list[str]:
    """Return the lines that show where two functions of equal size differ."""
    found = differing(f, g, size, most)
    values = [each.values(np.array([witness]))[0] for each in (f, g)]
    at = f"coordinate {witness}" + (f" = {_point(f, witness)}" if len(f.axes) > 1 else "")
    lines = [f"at     {at}: f is {shown(values[0])}, g is {shown(values[1])}"]
    if found is not None:
        lines.append(f"in     {found[1]} of {size} coordinates")
    else:
        lines.append(f"in     an unknown number of the {size} coordinates; at most {most} are counted")
    lines += ["", *_table(f, g, _around(witness, size))]
    if picture:
        lines += ["", *_marked(f, g, size)]
    return lines


def _point(function: Function, index: int) -> str:
    return f"({','.join(map(str, function.point(index)))})"


def _around(witness: int, size: int) -> list[int]:
    start = max(0, min(witness - ROWS // 4, size - ROWS))
    return list(range(start, min(size, start + ROWS)))


def _table(f: Function, g: Function, index: Sequence[int]) -> list[str]:
    """An aligned table of coordinates and both values; differing rows are marked."""
    columns = np.array(index, dtype=np.int64)
    rows = [["coordinate", *["of f"] * (len(f.axes) > 1), "f", "g", ""]]
    for place, one, other in zip(index, f.values(columns), g.values(columns), strict=True):
        point = [_point(f, place)] * (len(f.axes) > 1)
        rows.append([str(place), *point, shown(one, 40), shown(other, 40), "<--" if one != other else ""])
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    cells = (zip(row, widths, strict=True) for row in rows)
    return ["  ".join([cell.rjust(width) if cell != "<--" else cell for cell, width in row]).rstrip() for row in cells]


def _drawn(f: Function, g: Function, size: int) -> list[Layout]:
    """Both as layouts over one box, that of ``f`` or, if it has one axis, of ``g``, so that cells correspond."""
    if size > TABLED and isinstance(f.layout, Layout) and isinstance(g.layout, Layout):
        return [f.layout, g.layout]
    axes = dict(f.axes if len(f.axes) > 1 else g.axes) or {"i": size}
    index = np.arange(size, dtype=np.int64)
    return [TabledLayout(each.text, axes, each.rows(index)) for each in (f, g)]


def _marked(f: Function, g: Function, size: int) -> list[str]:
    """Both functions as grids, one below the other; differing cells are in brackets."""
    try:
        cells = [cells_of(layout, SIDE) for layout in _drawn(f, g, size)]
    except LayoutError:
        return []
    marks = set(first_differences(*cells))
    lines = []
    for name, each in zip("fg", cells, strict=True):
        texts = [
            [
                f"[{value}]" if (r, c) in marks else str(value) if value is not None else ""
                for c, value in enumerate(row)
            ]
            for r, row in enumerate(each.values)
        ]
        wide = max(len(text) for row in texts for text in row)
        lines.append(f"{name}:" + (f" {each.note}" if each.note else ""))
        lines += ["  " + " ".join([text.rjust(wide) for text in row]).rstrip() for row in texts]
    return lines


def picture_of(f: Function, g: Function, size: int) -> str | None:
    """Return one picture of both functions with differing cells outlined, or None if they cannot be drawn."""
    try:
        return draw.difference(*_drawn(f, g, size))
    except LayoutError:
        return None


def saved(f: Function, g: Function, size: int, picture: Any) -> list[str]:
    """Save the picture if requested, and return the report line with its path."""
    where = _where.get()
    if isinstance(picture, (str, Path)):
        target = Path(picture)
    elif where is not None:
        folder, name = where
        target = folder / f"{name}.svg"  # overwritten while Hypothesis shrinks: the last one is the smallest
    else:
        return []
    text = picture_of(f, g, size)
    if text is None:
        return []
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    return ["", f"picture  {target}"]
