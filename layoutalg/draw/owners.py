"""Draw a distributed tensor: the thread and register of each element.

Notation: T is the thread in its block (lane and warp together), V the register, B the block of a cluster if there are
several. Replicated elements list their owners; elements without an owner stay empty.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from layoutalg.draw.canvas import Canvas, level_of
from layoutalg.ground.layout import Layout

SIDE = 64
POINTS = 1 << 16
HARDWARE = ("register", "lane", "warp", "block", "cta", "cluster")
NAMED = 2
"""Most owners written into one cell."""


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
    for r, c, b, t, v in zip(
        row.tolist(),
        column.tolist(),
        block.tolist(),
        thread.tolist(),
        point.get("register", zero).tolist(),
        strict=True,
    ):
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
    size = (9.0, 9.0) if small else (7.0 * longest + 8, 20.0)
    canvas.text(4, top + 14, head or f"{', '.join(layout.in_dims)} -> {', '.join(layout.out_dims)}", "h")
    for column in range(0, len(grid[0]), 8 if small else 1):
        canvas.text(34 + column * size[0] + size[0] / 2, top + 36, column, "s m")
    for row in range(0, len(grid), 8 if small else 1):
        canvas.text(30, top + 40 + row * size[1] + size[1] / 2 + 4, row, "s e")
    styles = [[f"c{level_of(held[0][1], 0, threads)}" if held else "z" for held in row] for row in grid]
    titles = [
        [
            f"{names[0] + ' ' if names[0] else ''}{r if names[0] else ''}{', ' if names[0] else ''}{names[1]} {c}: "
            + (
                "owned by " + ", ".join(f"block {b} thread {t} register {v}" for b, t, v in held[:16])
                if held
                else "no owner"
            )
            + (f" and {len(held) - 16} more" if len(held) > 16 else "")
            for c, held in enumerate(row)
        ]
        for r, row in enumerate(grid)
    ]
    canvas.cells(34, top + 40, size, styles, None if small else labels, titles)
    whole = [f"{name}: {extent}" for name, extent in layout.out_dims.items()]
    canvas.text(4, canvas.height + 14, f"T thread, V register; {', '.join(whole)}", "s")


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
