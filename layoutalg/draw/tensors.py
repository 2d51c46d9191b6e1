"""Draw tensors in global memory and the tiles that TMA copies: tiled plans, and im2col maps with their pixels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from layoutalg.draw.canvas import LEVELS, LINE_BYTES, TALL, Canvas, Cell, draw_value, level_of, many
from layoutalg.draw.grid import ruler
from layoutalg.proofs.im2col import ConvolutionPlan
from layoutalg.proofs.tensor import Tensor
from layoutalg.proofs.tensormap.plan import TensorMapPlan
from layoutalg.targets.nvidia.im2col import Im2colMap
from layoutalg.targets.nvidia.im2col.execute import pixel_places
from layoutalg.targets.nvidia.tensormap import element_bytes

TENSOR, TILED = (300.0, 200.0), (340.0, 240.0)
"""Size of a tensor alone, and of one with its tiles."""
LEAST = 24.0
"""A tile smaller than this is drawn again, enlarged."""
CELL = (62.0, 18.0)
CORNER = 8
"""Rows and columns of the corner whose byte offsets are written out."""
CHUNK_BYTES, MEMORY_ROWS = 16, 32
MOST = 64
"""Most columns and rows of an image drawn."""
PLANES = 3
"""Most planes (images, depths) drawn."""


@draw_value.register(Tensor)
def draw_tensor(tensor: Tensor, canvas: Canvas, top: float) -> None:
    """Draw the shape on the left and, where all sizes are numbers, byte offsets of the corner on the right."""
    canvas.text(4, top + 14, str(tensor), "h")
    size = element_bytes(tensor.dtype)
    _draw_shape(canvas, tensor, size, top + 48)
    if not tensor.names:
        _draw_corner(canvas, tensor, size, TENSOR[0] + 170, top + 48)
    known = f"base aligned to {tensor.base_align_bytes} bytes, {size} bytes an element"
    canvas.text(4, canvas.height + 16, known, "s")


def _draw_shape(canvas: Canvas, tensor: Tensor, size: int, top: float) -> None:
    """The innermost two dimensions; the gap between one row and the next is hatched."""
    left = 60.0
    rows, columns = (1, *tensor.shape)[-2:]
    pitch, step = (0, *tensor.strides)[-2:]
    used, tall, padded = *TENSOR, False
    if isinstance(rows, int) and isinstance(columns, int):
        padded = isinstance(pitch, int) and step == 1 and pitch > columns
        row = pitch if padded else columns
        used = max(TENSOR[0] * columns / row, 2)
        tall = min(TENSOR[1], max(12.0, TENSOR[0] * rows / row))
    note = ", hatched: the gap between rows" if padded else ""
    canvas.text(left, top - 20, f"innermost {min(len(tensor.shape), 2)} of {len(tensor.shape)} dimensions{note}", "n")
    if padded:
        canvas.box(left, top, TENSOR[0], tall, "x", f"{pitch} elements from one row to the next")
    canvas.box(left, top, used, tall, "z", f"{rows} rows of {columns} elements")
    canvas.frame(left, top, used, tall)
    canvas.text(left - 6, top + tall, rows, "s e")
    canvas.text(left + used, top + tall + 14, columns, "s e")
    known = f" = {pitch * size} bytes" if isinstance(pitch, int) else ""
    canvas.text(left, top + tall + 30, f"row pitch {pitch} elements{known}, element stride {step}", "s")


def _draw_corner(canvas: Canvas, tensor: Tensor, size: int, left: float, top: float) -> None:
    """Byte offsets of the first rows and columns, all outer coordinates 0; a colour for each line of 128 bytes."""
    rows, columns = (min(int(extent), CORNER) for extent in (1, *tensor.shape)[-2:])
    pitch, step = (int(stride) for stride in (0, *tensor.strides)[-2:])
    offsets = [[(row * pitch + column * step) * size for column in range(columns)] for row in range(rows)]
    lines = sorted({offset // LINE_BYTES for row in offsets for offset in row})
    level = {line: place * (LEVELS - 1) // max(len(lines) - 1, 1) for place, line in enumerate(lines)}
    canvas.text(left, top - 20, "byte offsets of the first elements", "n")
    canvas.text(left, top - 6, f"one colour for each {LINE_BYTES}-byte line", "s")
    cells: list[list[Cell]] = [
        [
            (f"c{level[offset // LINE_BYTES]}", str(offset), f"({r},{c}) at byte {offset}")
            for c, offset in enumerate(row)
        ]
        for r, row in enumerate(offsets)
    ]
    wide = max(CELL[0], 7.4 * max(len(label) for row in cells for _, label, _ in row) + 8)
    canvas.cells(left, top, (wide, CELL[1]), cells)


@draw_value.register(TensorMapPlan)
def draw_plan(plan: TensorMapPlan, canvas: Canvas, top: float) -> None:
    """Draw the tensor with its first and last tile on the left, the shared memory of one tile on the right."""
    tm, problem = plan.tensor_map, plan.problem
    box = f"{many(len(plan.issues), 'copy')} of box {list(tm.box)}, swizzle {tm.swizzle}"
    canvas.text(4, top + 14, f"{plan.direction} of tile {list(problem.tile)}: {box}", "h")
    _shared(canvas, plan, _tensor(canvas, plan, top + 48) + 70, top + 48)
    words = f"{plan.expect_tx_bytes} bytes per tile, base aligned to {plan.smem_align_bytes}; out of bounds {plan.oob}"
    canvas.text(4, canvas.height + 30, words, "s")  # below the extent under the tensor


def _tensor(canvas: Canvas, plan: TensorMapPlan, top: float) -> float:
    """Draw the two innermost dimensions with the first and the last tile, and return how far right they reach.

    Where a tile would be a dot, its surroundings are drawn again, enlarged.
    """
    problem = plan.problem
    shape, tile, steps = ((1, *values)[-2:] for values in (problem.global_shape, problem.tile, problem.element_strides))
    reach = [(count - 1) * step + 1 for count, step in zip(tile, steps, strict=True)]
    last = [-(-extent // span) * span - span if span < extent else 0 for extent, span in zip(shape, reach, strict=True)]
    ends = [max(extent, start + span) for extent, start, span in zip(shape, last, reach, strict=True)]
    left = 20.0 + 6.2 * max(6, len(str(ends[0])))
    canvas.text(left, top - 20, f"{problem.dtype} tensor {list(problem.global_shape)}, two innermost dimensions", "n")
    canvas.text(left, top - 6, "numbers: copies of the first tile; hatched: out of bounds", "s")
    tiles = [("c3", [0, 0]), ("c10", last)]
    dots = any(span * side < LEAST * end for span, side, end in zip(reach, TILED[::-1], ends, strict=True))
    _window(canvas, plan, (left, top, *TILED), ([0, 0], ends), tiles, reach, numbers=not dots)
    if dots:
        wide, tall = (TILED[0] - 40) / 2, 120.0
        for place, (name, start) in enumerate((("first", [0, 0]), ("last", last))):
            low = [max(0, at - span // 2) for at, span in zip(start, reach, strict=True)]
            high = [min(end, at + span + span // 2) for end, at, span in zip(ends, start, reach, strict=True)]
            x, y = left + place * (wide + 40), top + TILED[1] + 52
            canvas.text(x, y - 8, f"{name} tile, enlarged", "s")
            _window(canvas, plan, (x, y, wide, tall), (low, high), tiles, reach, numbers=not place)
    return left + TILED[0]


def _window(
    canvas: Canvas, plan: TensorMapPlan, frame: tuple[float, float, float, float],
    window: tuple[Sequence[int], Sequence[int]], tiles: Sequence[tuple[str, Sequence[int]]], reach: Sequence[int],
    numbers: bool,
) -> None:  # fmt: skip
    """Draw the rows and columns of the tensor from the first to the second corner of ``window``, and tiles in them."""
    left, top, wide, tall = frame
    low, high = window
    shape = (1, *plan.problem.global_shape)[-2:]
    scale = tall / (high[0] - low[0]), wide / (high[1] - low[1])

    def place(start: Sequence[int], end: Sequence[int]) -> tuple[float, float, float, float] | None:
        """Position of the elements from ``start`` to before ``end``, as far as the window shows them."""
        start = [max(*pair) for pair in zip(start, low, strict=True)]
        end = [min(*pair) for pair in zip(end, high, strict=True)]
        if any(a >= b for a, b in zip(start, end, strict=True)):
            return None
        y, x = (origin + (a - first) * by for origin, a, first, by in zip((top, left), start, low, scale, strict=True))
        return x, y, max((end[1] - start[1]) * scale[1], 3), max((end[0] - start[0]) * scale[0], 3)

    def box(start: Sequence[int], end: Sequence[int], style: str, title: str = "") -> None:
        if (where := place(start, end)) is not None:
            canvas.box(*where, style, title)

    box((0, 0), shape, "z", f"tensor of {shape[0]} x {shape[1]} elements")
    for style, start in tiles:
        stop = [at + span for at, span in zip(start, reach, strict=True)]
        box(start, stop, "x", f"out of bounds: fill {plan.problem.oob_fill}")
        box(start, [min(*pair) for pair in zip(stop, shape, strict=True)], style, f"tile at {list(start)}")
        box(start, stop, "o")
    box((0, 0), shape, "o")
    if numbers and len(plan.issues) <= 64 and plan.tensor_map.dims[:1] == shape[1:]:
        extent = (1, *plan.tensor_map.box[::-1])[-2:]
        for number, issue in enumerate(plan.issues):
            at = (0, *issue.coords[::-1])[-2:]
            where = place(at, [first + many for first, many in zip(at, extent, strict=True)])
            if where is not None:
                canvas.frame(*where)
                canvas.text(where[0] + 3, where[1] + 12, number, "t3")
    edges = [[(at, at + span) for at, span in zip(start, reach, strict=True)] for _, start in tiles]
    for axis in (0, 1):
        taken: list[tuple[float, float]] = []
        for edge in dict.fromkeys([low[axis], shape[axis], *(at for start in edges for at in start[axis]), high[axis]]):
            along = (edge - low[axis]) * scale[axis]
            room = 3.1 * len(str(edge)) + 3 if axis else 5.5
            if low[axis] <= edge <= high[axis] and all(abs(along - other) >= room + rest for other, rest in taken):
                taken.append((along, room))
                if axis:
                    canvas.text(left + along, top + tall + 16, edge, "s m")
                else:
                    canvas.text(left - 6, top + along + 4, edge, "s e")


def _shared(canvas: Canvas, plan: TensorMapPlan, left: float, top: float) -> None:
    """Draw shared memory in rows of 128 bytes; a 16-byte chunk shows the tile coordinate of its first element."""
    problem = plan.problem
    addresses = problem.addresses().reshape(-1)
    order = np.argsort(addresses, kind="stable")
    rows = min(MEMORY_ROWS, -(-(int(addresses.max()) + problem.element_bytes) // LINE_BYTES))
    columns = LINE_BYTES // CHUNK_BYTES
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
    cells: list[list[Cell]] = [
        [
            ("z", "", f"{_chunk(r, c)}: nothing")
            if e < 0
            else (
                f"c{(e % inner) * (LEVELS - 1) // widest}",
                f"{e // inner},{e % inner}",
                f"{_chunk(r, c)}: tile element {tuple(map(int, np.unravel_index(e, problem.tile)))}",
            )
            for c, e in enumerate(row)
        ]
        for r, row in enumerate(grid)
    ]
    longest = max((len(label) for row in cells for _, label, _ in row if label), default=1)
    canvas.cells(left, top, (7.0 * longest + 8, TALL), cells, down=range(0, LINE_BYTES * rows, LINE_BYTES))
    if rows == MEMORY_ROWS and plan.smem_bytes > rows * LINE_BYTES:
        canvas.text(left, canvas.height + 14, f"the first {rows * LINE_BYTES} of {plan.smem_bytes} bytes", "s")


def _chunk(row: int, column: int) -> str:
    first = LINE_BYTES * row + CHUNK_BYTES * column
    return f"bytes {first} to {first + CHUNK_BYTES - 1} (0b{first:b})"


@draw_value.register(Im2colMap)
def draw_im2col(tm: Im2colMap, canvas: Canvas, top: float) -> None:
    """Draw the planes visited by the load that starts at the box's lower corner."""
    spatial = tm.spatial(tm.dims)
    start = list(tm.lower_corner)
    coords = [*start, 0, 0] if tm.interleave != "NONE" else [0, *start, 0]
    canvas.text(4, top + 14, f"im2col map, {tm.dtype}, extents {tm.dims}: {tm.pixels_per_column} pixels per load", "h")
    _planes(canvas, tm, coords, (0,) * len(spatial), top + 20)


@draw_value.register(ConvolutionPlan)
def draw_convolution(plan: ConvolutionPlan, canvas: Canvas, top: float) -> None:
    """Draw the pixels of the first load of the tile at row 0, for the first tap."""
    problem = plan.problem
    taps = " x ".join(map(str, problem.filter))
    load = f"{plan.tensor_map.pixels_per_column} pixels x {plan.tensor_map.channels_per_pixel} channels"
    head = f"convolution of {problem.tensor} by {taps}: {many(len(plan.issues), 'load')} of {load}"
    canvas.text(4, top + 14, head, "h")
    first = (0,) * len(problem.filter)
    _planes(canvas, plan.tensor_map, plan.start(plan.issues[0], 0, 0), plan.offsets(first), top + 20, plan)


def _planes(
    canvas: Canvas, tm: Im2colMap, coords: Sequence[int], offsets: Sequence[int], top: float,
    plan: ConvolutionPlan | None = None,
) -> None:  # fmt: skip
    """Draw W across and H down, one plane per visited image (and depth)."""
    places = pixel_places(tm, tuple(coords))
    spatial = places.shape[1] - 1
    visited = places.copy()
    visited[:, :-1] += np.asarray(offsets, dtype=np.int64)
    extents = tm.spatial(tm.dims)
    box = list(tm.box)
    low = [min(0, box[axis][0]) for axis in range(spatial)]
    far = _taps(plan) if plan is not None else (0,) * spatial
    high = [max(extents[axis] - 1, box[axis][1] + far[axis]) for axis in range(spatial)]
    low2, high2 = [*low, 0, 0][:2], [*high, 0, 0][:2]
    if spatial == 1:
        low2, high2 = [low[0], 0], [high[0], 0]
    wide, tall = (min(high2[axis] - low2[axis] + 1, MOST) for axis in (0, 1))
    keys = [tuple(int(part) for part in row[2:]) if spatial > 1 else (int(row[1]),) for row in visited]
    planes = list(dict.fromkeys(keys))
    rows = visited[:, 1] if spatial > 1 else np.zeros(len(visited), dtype=np.int64)
    longest = len(str(len(visited) - 1))
    side = max(16.0, 7.0 * longest + 6) if wide <= 40 else 10.0
    left, base = 40.0, top + 44
    canvas.text(4, top + 14, "numbers: pixels of the load, in order; hatched: outside the image, filled", "n")
    outline = "outlined: where the filter's corner moves" + ("; red: the taps of pixel 0" if plan is not None else "")
    canvas.text(4, top + 28, outline, "s")
    for plane in planes[:PLANES]:
        base = _plane(
            canvas, plane,
            [(number, int(visited[number, 0]), int(rows[number])) for number, key in enumerate(keys) if key == plane],
            (low2, extents, box, spatial), (left, base, side), (wide, tall), len(visited),
        )  # fmt: skip
        if plane == planes[0] and plan is not None:
            _filter(canvas, plan, places[0], low2, (left, base - 34 - tall * side, side), spatial)
    left_out = len(planes) - PLANES
    more = f"; {left_out} more {'plane' if left_out == 1 else 'planes'}" if left_out > 0 else ""
    cut = (
        f"; columns from {low2[0]} to {low2[0] + wide - 1}, rows from {low2[1]} to {low2[1] + tall - 1}"
        if max(high2[a] - low2[a] + 1 for a in (0, 1)) > MOST
        else ""
    )
    steps = ", ".join(map(str, tm.spatial(tm.element_strides)))
    corner = f"corner from {tm.lower_corner} to {tuple(b[1] for b in box)}"
    canvas.text(4, canvas.height + 12, f"{corner}, steps {steps}{more}{cut}", "s")


def _plane(
    canvas: Canvas, plane: tuple[int, ...], pixels: list[tuple[int, int, int]],
    image: tuple[list[int], Sequence[int], list[tuple[int, int]], int], at: tuple[float, float, float],
    shape: tuple[int, int], count: int,
) -> float:  # fmt: skip
    """Draw one plane and return where the next begins."""
    low, extents, box, spatial = image
    left, base, side = at
    wide, tall = shape
    named = ("image",) if len(plane) == 1 else ("depth", "image")
    canvas.text(left, base + 6, ", ".join(f"{n} {p}" for n, p in zip(named, plane, strict=True)), "n")
    base += 24
    order = {(row, column): number for number, column, row in pixels}
    cells: list[list[Cell]] = []
    for row in range(low[1], low[1] + tall):
        line: list[Cell] = []
        for column in range(low[0], low[0] + wide):
            inside = 0 <= column < extents[0] and (spatial == 1 or 0 <= row < extents[1])
            number = order.get((row, column))
            style = "x" if not inside else "z" if number is None else f"c{level_of(number, 0, count - 1)}"
            loaded = ": not loaded" if number is None else f": pixel {number}{'' if inside else ', filled'}"
            title = f"w {column}{f', h {row}' if spatial > 1 else ''}{loaded}"
            line.append((style, "" if number is None else str(number), title))
        cells.append(line)
    small = side < 16
    canvas.cells(left, base, (side, side), cells, labels=not small)
    for place, name in enumerate(ruler(range(low[0], low[0] + wide), 8 if small else 1)):
        if name is not None:
            canvas.text(left + place * side + side / 2, base - 4, name, "s m")
    for place, name in enumerate(ruler(range(low[1], low[1] + tall), 8 if small else 1)):
        if name is not None:
            canvas.text(left - 4, base + place * side + side / 2 + 4, name, "s e")
    (w0, w1), (h0, h1) = box[0], (box[1] if spatial > 1 else (0, 0))
    right, bottom = min(w1, low[0] + wide - 1), min(h1, low[1] + tall - 1)
    canvas.frame(
        left + (w0 - low[0]) * side, base + (h0 - low[1]) * side, (right - w0 + 1) * side, (bottom - h0 + 1) * side
    )  # fmt: skip
    return base + tall * side + 10


def _taps(plan: ConvolutionPlan) -> tuple[int, ...]:
    """Distance from the first tap to the last, W first."""
    problem = plan.problem
    return tuple((taps - 1) * gap for taps, gap in zip(problem.filter[::-1], problem.dilation[::-1], strict=True))


def _filter(
    canvas: Canvas, plan: ConvolutionPlan, corner: Sequence[int], low: list[int], at: tuple[float, float, float],
    spatial: int,
) -> None:  # fmt: skip
    """Outline the filter taps of pixel 0 at the first depth."""
    left, base, side = at
    problem = plan.problem
    counts, gaps = problem.filter[::-1], problem.dilation[::-1]
    for row in range(counts[1] if spatial > 1 else 1):
        for column in range(counts[0]):
            w = int(corner[0]) + column * gaps[0]
            h = int(corner[1]) + row * gaps[1] if spatial > 1 else 0
            if w - low[0] < MOST and h - low[1] < MOST:
                canvas.frame(left + (w - low[0]) * side, base + 24 + (h - low[1]) * side, side - 1, side - 1, "w")
