"""Read Triton's layout pictures: which thread has which element.

Notation: a *tensor view* has a cell per element, ``[[ T0:0, T0:1]``, next line ``[ T1:0, T1:1]]``: thread in the block
and register; ``T0:0|T8:0`` for replicated elements, ``B1:T0:0`` with several blocks. A *hardware view* has a heading
per warp, ``Warp0:``, then a line per register with the coordinates of each lane, ``( 0,0), ( 0,2)``. Units: elements.

Main statements: a tensor view does not show the number of lanes in a warp, so its layout has the axes ``register``,
``thread`` and ``block``; a hardware view gives ``register``, ``lane`` and ``warp``. The map must be linear over F2 and
cover every cell.

References: Triton 3.9.0 (``triton-tensor-layout``, Gluon ``format_tensor_view`` and ``format_hardware_view``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import NoReturn

from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import Diagnostic, MalformedError
from layoutalg.ground.limits import NOTATION_CHARACTERS
from layoutalg.notation.triton import CODE, WHAT

CELL = re.compile(r"(?:B\s*(\d{1,9}):)?\s*T\s*(\d{1,9}):\s*(\d{1,9})")
WARP = re.compile(r"Warp\s*(\d{1,9}):")
COORDINATE = re.compile(r"\(\s*(\d{1,9}(?:\s*,\s*\d{1,9})*)\s*\)")
Point = tuple[int, ...]


def parse_view(text: str) -> LinearLayout:
    """Return the layout in a picture.

    Args:
        text: A complete tensor view or hardware view, of one or two dimensions.

    Example:
        >>> print(parse_view("[[ T0:0, T0:1]" + chr(10) + "[ T1:0, T1:1]]"))
        F2[register=(0,1), thread=(1,0) -> dim0:2, dim1:2]
        >>> print(parse_view("Warp0:" + chr(10) + "(0,0), (1,0)" + chr(10) + "(0,1), (1,1)"))
        F2[register=(0,1), lane=(1,0), warp= -> dim0:2, dim1:2]
    """
    if len(text) > NOTATION_CHARACTERS:
        _fail(text, f"it has {len(text)} characters, the limit is {NOTATION_CHARACTERS}")
    return _hardware(text) if WARP.search(text) else _tensor(text)


def _tensor(text: str) -> LinearLayout:
    """Read a cell per element."""
    lines = [line.strip().strip("[],").strip() for line in text.strip().splitlines() if line.strip(" []\t,")]
    if not text.rstrip().endswith("]"):
        _fail(text, "the view is cut off: the last ] is missing")
    cells = [[cell.split("|") for cell in line.split(",")] for line in lines]
    widths = {len(row) for row in cells}
    if len(widths) != 1:
        _fail(text, f"all lines must have equally many cells, got {sorted(widths)}")
    flat = len(cells) == 1 and not text.lstrip().startswith("[[")
    found: dict[Point, Point] = {}
    for row, line in enumerate(cells):
        for column, holders in enumerate(line):
            for holder in holders:
                cell = CELL.fullmatch(holder.strip())
                if cell is None:
                    _fail(text, f"a cell must be T0:0 or B0:T0:0, copies joined by |, not {holder.strip()[:20]!r}")
                place = (int(cell[3]), int(cell[2]), int(cell[1] or 0))
                if found.setdefault(place, (column,) if flat else (row, column)) != (
                    (column,) if flat else (row, column)
                ):
                    _fail(text, f"{holder.strip()} is at two elements")
    axes = ("register", "thread", "block") if any(place[2] for place in found) else ("register", "thread")
    sizes = (len(cells[0]),) if flat else (len(cells), len(cells[0]))
    return _linear(text, axes, {place[: len(axes)]: point for place, point in found.items()}, sizes)


def _hardware(text: str) -> LinearLayout:
    """Read a heading per warp and a line of lanes per register."""
    parts = WARP.split(text)
    found: dict[Point, Point] = {}
    for number, body in zip(parts[1::2], parts[2::2], strict=True):
        for register, line in enumerate([line for line in body.splitlines() if line.strip()]):
            points = COORDINATE.findall(line)
            if not points or COORDINATE.sub("", line).strip(" ,\t|"):
                _fail(text, f"a line must have coordinates such as ( 0,2), not {line.strip()[:20]!r}")
            for lane, point in enumerate(points):
                found[register, lane, int(number)] = tuple([int(part) for part in point.split(",")])
    ranks = {len(point) for point in found.values()}
    if len(ranks) != 1:
        _fail(text, "all coordinates must have equally many parts, and there must be at least one")
    sizes = tuple([1 + max(parts) for parts in zip(*found.values(), strict=True)])
    return _linear(text, ("register", "lane", "warp"), found, sizes)


def _linear(text: str, axes: Sequence[str], found: Mapping[Point, Point], sizes: Point) -> LinearLayout:
    """Return the linear layout with these values, or refuse them if they are not linear."""
    extents = [1 + max(place[axis] for place in found) for axis in range(len(axes))]
    if len(found) != math.prod(extents) or any(extent & (extent - 1) for extent in extents):
        _fail(text, f"the {' x '.join(map(str, extents))} places must be powers of two and all be shown")
    bases = []
    for axis, name in enumerate(axes):
        steps = [1 << bit for bit in range(extents[axis].bit_length() - 1)]
        bases.append(
            (name, [found[tuple([step if place == axis else 0 for place in range(len(axes))])] for step in steps])
        )
    if any(size & (size - 1) for size in sizes):
        _fail(text, f"the tensor {list(sizes)} has extents that are not powers of two")
    layout = LinearLayout.from_bases(bases, [(f"dim{index}", size) for index, size in enumerate(sizes)])
    for place, point in found.items():
        if tuple(layout(**dict(zip(axes, place, strict=True))).values()) != point:
            _fail(text, f"it is not linear over F2: {dict(zip(axes, place, strict=True))} is at {point}")
    return layout


def _fail(text: str, because: str) -> NoReturn:
    raise MalformedError(Diagnostic(CODE, WHAT, (text[:100],), because))
