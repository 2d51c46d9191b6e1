"""Draw a TensorMap plan: the tile and its copies over the tensor, and the tile in shared memory."""

from __future__ import annotations

import numpy as np

from layoutalg.draw.canvas import LEVELS, Canvas
from layoutalg.proofs.tensormap.plan import TensorMapPlan
from layoutalg.targets.nvidia.swizzles import CHUNK_BYTES

WIDE, TALL = 340.0, 240.0
ROW_BYTES = 128
MEMORY_ROWS = 32


def draw_plan(canvas: Canvas, plan: TensorMapPlan, top: float) -> None:
    """Draw the tensor with its first and last tile on the left, the shared memory of one tile on the right."""
    tm, problem = plan.tensor_map, plan.problem
    count = f"{len(plan.issues)} cop{'ies' if len(plan.issues) > 1 else 'y'}"
    canvas.text(
        4,
        top + 14,
        f"{plan.direction} of tile {list(problem.tile)}: {count} of box {list(tm.box)}, swizzle {tm.swizzle}",
        "h",
    )
    _tensor(canvas, plan, top + 48)
    _shared(canvas, plan, WIDE + 130, top + 48)
    canvas.text(
        4,
        canvas.height + 30,  # below the extent under the tensor
        f"{plan.expect_tx_bytes} bytes per tile, base aligned to {plan.smem_align_bytes}; out of bounds {plan.oob}",
        "s",
    )


def _tensor(canvas: Canvas, plan: TensorMapPlan, top: float) -> None:
    """Draw the two innermost dimensions with the first tile's copies, and the last tile with its out-of-bounds part."""
    problem = plan.problem
    shape, tile, steps = ((1, *values)[-2:] for values in (problem.global_shape, problem.tile, problem.element_strides))
    reach = [(count - 1) * step + 1 for count, step in zip(tile, steps, strict=True)]
    last = [-(-extent // span) * span - span if span < extent else 0 for extent, span in zip(shape, reach, strict=True)]
    ends = [max(extent, start + span) for extent, start, span in zip(shape, last, reach, strict=True)]
    scale_x, scale_y = WIDE / ends[1], TALL / ends[0]
    left = 60.0
    canvas.text(left, top - 20, f"{problem.dtype} tensor {list(problem.global_shape)}, two innermost dimensions", "n")
    canvas.text(left, top - 6, "numbers: copies of the first tile; hatched: out of bounds", "s")
    canvas.box(left, top, shape[1] * scale_x, shape[0] * scale_y, "z", f"tensor of {shape[0]} x {shape[1]} elements")
    canvas.frame(left, top, shape[1] * scale_x, shape[0] * scale_y)
    for style, start in (("c3", [0, 0]), ("c10", last)):
        wide = min(reach[1], shape[1] - start[1]) * scale_x
        tall = min(reach[0], shape[0] - start[0]) * scale_y
        x, y = left + start[1] * scale_x, top + start[0] * scale_y
        canvas.box(x, y, reach[1] * scale_x, reach[0] * scale_y, "x", f"out of bounds: fill {problem.oob_fill}")
        canvas.box(x, y, max(wide, 1), max(tall, 1), style, f"tile at {start}")
        canvas.frame(x, y, reach[1] * scale_x, reach[0] * scale_y)
    if len(plan.issues) <= 64 and plan.tensor_map.dims[:1] == shape[1:]:
        box = (1, *plan.tensor_map.box[::-1])[-2:]
        for number, issue in enumerate(plan.issues):
            at = (0, *issue.coords[::-1])[-2:]
            canvas.frame(left + at[1] * scale_x, top + at[0] * scale_y, box[1] * scale_x, box[0] * scale_y)
            canvas.text(left + at[1] * scale_x + 3, top + at[0] * scale_y + 12, number, "t3")
    canvas.text(left - 6, top + 10, 0, "s e")
    canvas.text(left - 6, top + shape[0] * scale_y, shape[0], "s e")
    canvas.text(left + shape[1] * scale_x, top + TALL + 14, shape[1], "s e")


def _shared(canvas: Canvas, plan: TensorMapPlan, left: float, top: float) -> None:
    """Draw shared memory in rows of 128 bytes; a 16-byte chunk shows the tile coordinate of its first element."""
    problem = plan.problem
    addresses = problem.addresses().reshape(-1)
    order = np.argsort(addresses, kind="stable")
    rows = min(MEMORY_ROWS, -(-(int(addresses.max()) + problem.element_bytes) // ROW_BYTES))
    columns = ROW_BYTES // CHUNK_BYTES
    owner = np.full(rows * columns, -1, dtype=np.int64)
    for element in order[::-1].tolist():  # the first element of a chunk is written last
        chunk = int(addresses[element]) // CHUNK_BYTES
        if chunk < len(owner):
            owner[chunk] = element
    inner = problem.tile[-1]
    canvas.text(left, top - 20, "shared memory, rows of 128 bytes", "n")
    canvas.text(left, top - 6, "each 16 bytes: row,column of the tile", "s")
    grid = owner.reshape(rows, columns).tolist()
    widest = max((e % inner for row in grid for e in row if e >= 0), default=1) or 1
    longest = max((len(f"{e // inner},{e % inner}") for row in grid for e in row if e >= 0), default=1)
    size = (7.0 * longest + 8, 18.0)
    styles = [["z" if e < 0 else f"c{(e % inner) * (LEVELS - 1) // widest}" for e in row] for row in grid]
    labels = [["" if e < 0 else f"{e // inner},{e % inner}" for e in row] for row in grid]
    titles = [
        [
            f"{_bytes(ROW_BYTES * r + CHUNK_BYTES * c)}: "
            + ("nothing" if e < 0 else f"tile element {_point(e, problem.tile)}")
            for c, e in enumerate(row)
        ]
        for r, row in enumerate(grid)
    ]
    for row in range(rows):
        canvas.text(left - 4, top + row * size[1] + 13, ROW_BYTES * row, "s e")
    canvas.cells(left, top, size, styles, labels, titles)
    if rows == MEMORY_ROWS and plan.smem_bytes > rows * ROW_BYTES:
        canvas.text(left, canvas.height + 14, f"the first {rows * ROW_BYTES} of {plan.smem_bytes} bytes", "s")


def _bytes(first: int) -> str:
    return f"bytes {first} to {first + CHUNK_BYTES - 1} (0b{first:b})"


def _point(element: int, tile: tuple[int, ...]) -> tuple[int, ...]:
    point = []
    for extent in reversed(tile):
        element, digit = divmod(element, extent)
        point.append(digit)
    return tuple(reversed(point))
