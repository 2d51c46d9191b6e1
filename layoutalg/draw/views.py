"""Draw other views of a layout: the owners of each element of a distributed tensor, and the matrix over F2.

Notation: T is the thread in its block (lane and warp together), V the register, B the block of a cluster if there are
several. Replicated elements list their owners; elements without an owner stay empty.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from layoutalg.draw.canvas import Canvas, Cell, level_of
from layoutalg.draw.grid import ruler
from layoutalg.f2 import LinearLayout
from layoutalg.ground.layout import Layout

SIDE = 64
POINTS = 1 << 16
HARDWARE = ("register", "lane", "warp", "block", "cta", "cluster")
NAMED = 2
"""Most owners written into one cell."""
CELL = 20.0


def is_distributed(layout: Layout) -> bool:
    """Whether the inputs are hardware levels (lane, warp, ...) and the outputs a bounded box."""
    ins, outs = layout.in_dims, layout.out_dims
    bounded = 1 <= len(outs) <= 3 and all(isinstance(extent, int) for extent in outs.values())
    return bounded and "lane" in ins and set(ins) <= set(HARDWARE) and layout.size <= POINTS


def owners(layout: Layout) -> tuple[list[list[list[tuple[int, int, int]]]], tuple[str, str]]:
    """Return the (block, thread, register) owners of every element, [row][column], and the names of both axes."""
    outs = list(layout.out_dims.items())
    dims = layout.in_dims
    flat = np.arange(layout.size)
    point: dict[str, Any] = {}
    for name, extent in dims.items():
        flat, point[name] = np.divmod(flat, extent)
    zero = np.zeros(layout.size, dtype=np.int64)
    thread = point["lane"] + dims["lane"] * point.get("warp", zero)
    block = point.get("block", point.get("cta", zero))
    images = layout.apply(point)
    rows, columns = (outs[0][1], math.prod(extent for _, extent in outs[1:])) if len(outs) > 1 else (1, outs[0][1])
    row = np.broadcast_to(images[outs[0][0]], zero.shape) if len(outs) > 1 else zero
    column, weight = zero.copy(), 1
    for name, extent in reversed(outs[1:] or outs):
        column = column + weight * images[name]
        weight *= extent
    grid: list[list[list[tuple[int, int, int]]]] = [
        [[] for _ in range(min(columns, SIDE))] for _ in range(min(rows, SIDE))
    ]
    for r, c, b, t, v in np.stack([row, column, block, thread, point.get("register", zero)], axis=1).tolist():
        if r < SIDE and c < SIDE:
            grid[r][c].append((b, t, v))
    names = (outs[0][0], " x ".join(name for name, _ in outs[1:])) if len(outs) > 1 else ("", outs[0][0])
    return grid, names


def _label(held: list[tuple[int, int, int]], blocks: bool) -> str:
    if not held:
        return ""
    shown = [f"{f'B{b} ' if blocks else ''}T{t} V{v}" for b, t, v in held[:NAMED]]
    return " ".join(shown) if len(held) <= 1 else f"{shown[0]} +{len(held) - 1}"


def draw_owners(canvas: Canvas, layout: Layout, top: float, head: str = "") -> None:
    """Draw the tensor with the owner of each element, coloured by thread."""
    grid, names = owners(layout)
    blocks = any(b for row in grid for held in row for b, _, _ in held)
    threads = max((t for row in grid for held in row for _, t, _ in held), default=0)
    labels = [[_label(held, blocks) for held in row] for row in grid]
    longest = max((len(label) for row in labels for label in row), default=1)
    small = len(grid) * len(grid[0]) > 2048
    canvas.text(4, top + 14, head or f"{', '.join(layout.in_dims)} -> {', '.join(layout.out_dims)}", "h")
    rows: list[list[Cell]] = [
        [
            (
                f"c{level_of(held[0][1], 0, threads)}" if held else "z",
                label,
                f"{f'{names[0]} {r}, ' if names[0] else ''}{names[1]} {c}: {_owned(held)}",
            )
            for c, (held, label) in enumerate(zip(row, words, strict=True))
        ]
        for r, (row, words) in enumerate(zip(grid, labels, strict=True))
    ]
    canvas.cells(
        34,
        top + 40,
        (9.0, 9.0) if small else (7.0 * longest + 8, 20.0),
        rows,
        across=ruler(range(len(grid[0])), 8 if small else 1),
        down=ruler(range(len(grid)), 8 if small else 1),
        labels=not small,
    )
    whole = [f"{name}: {extent}" for name, extent in layout.out_dims.items()]
    canvas.text(4, canvas.height + 14, f"T thread, V register; {', '.join(whole)}", "s")


def _owned(held: list[tuple[int, int, int]]) -> str:
    named = ", ".join(f"block {b} thread {t} register {v}" for b, t, v in held[:16])
    return f"owned by {named}{f' and {len(held) - 16} more' if len(held) > 16 else ''}" if held else "no owner"


def owners_text(layout: Layout, side: int = 16) -> str:
    """Return the owners as text, at most ``side`` rows and columns."""
    grid, _ = owners(layout)
    blocks = any(b for row in grid for held in row for b, _, _ in held)
    labels = [[_label(held, blocks) or "-" for held in row[:side]] for row in grid[:side]]
    width = max(len(label) for row in labels for label in row)
    more = " ..." if len(grid[0]) > side else ""
    return "\n".join(
        ["  ".join(label.ljust(width) for label in row).rstrip() + more for row in labels]
        + (["..."] if len(grid) > side else [])
    )


def _bits(axes: dict[str, int]) -> list[str]:
    """The name of each bit, lowest first: ``lane 4`` is the lane bit of weight 4."""
    return [f"{name} {1 << bit}" for name, extent in axes.items() for bit in range(extent.bit_length() - 1)]


def entries(layout: LinearLayout) -> tuple[list[str], list[str], list[list[int]]]:
    """Return output bits, input bits and the matrix, one row per output bit."""
    outs, ins = _bits(layout.out_dims), _bits(layout.in_dims)
    return outs, ins, [[column >> row & 1 for column in layout.columns] for row in range(len(outs))]


def draw_matrix(canvas: Canvas, layout: LinearLayout, top: float) -> None:
    """Draw the matrix below ``top``: rows are output bits, columns input bits, a last column for the constant."""
    outs, ins, rows = entries(layout)
    constant = [layout.constant >> bit & 1 for bit in range(len(outs))]
    heads = ins + (["constant"] if any(constant) else [])
    canvas.text(4, top + 14, f"{', '.join(layout.in_dims)} -> {', '.join(layout.out_dims)} over F2", "h")
    left = 16 + 7.0 * max((len(name) for name in outs), default=0)
    base = top + 34 + 5.4 * max((len(name) for name in heads), default=0)
    for place, name in enumerate(heads):
        x = left + place * CELL + 12
        canvas.parts.append(
            f'<g transform="translate({x:g},{base - 6:g}) rotate(-60)"><text class="s">{name}</text></g>'
        )
    shown = [row + ([one] if any(constant) else []) for row, one in zip(rows, constant, strict=True)]
    cells: list[list[Cell]] = [
        [
            ("c2", "1", f"{name} {'sets' if name == 'constant' else 'flips'} {out}")
            if one
            else ("z", "", f"{name} does not touch {out}")
            for name, one in zip(heads, row, strict=True)
        ]
        for out, row in zip(outs, shown, strict=True)
    ]
    canvas.cells(left, base, (CELL, CELL), cells, down=outs, gap=6)
    canvas.text(4, canvas.height + 14, f"rank {layout.rank} of {len(ins)} inputs and {len(outs)} outputs", "s")


def matrix_text(layout: LinearLayout) -> str:
    """Return the matrix as text.

    Example:
        >>> print(matrix_text(LinearLayout.from_bases({"i": [(1,), (3,)]}, {"o": 4})))
            i 1 i 2
        o 1   1   1
        o 2   .   1
    """
    outs, ins, rows = entries(layout)
    left = max((len(name) for name in outs), default=0)
    widths = [max(len(name), 1) for name in ins]
    lines = [" ".join([" " * left, *(name.rjust(width) for name, width in zip(ins, widths, strict=True))])]
    for name, row in zip(outs, rows, strict=True):
        cells = ("1".rjust(width) if one else ".".rjust(width) for one, width in zip(row, widths, strict=True))
        lines.append(" ".join([name.ljust(left), *cells]))
    return "\n".join(line.rstrip() for line in lines)
