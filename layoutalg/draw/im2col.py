"""Draw im2col maps: the bounding box of the filter's corner, and the pixels of one load in order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from layoutalg.draw.canvas import Canvas, level_of
from layoutalg.proofs.im2col import ConvolutionPlan
from layoutalg.targets.nvidia.im2col import Im2colMap
from layoutalg.targets.nvidia.im2col.execute import pixel_places

MOST = 64
"""Most columns and rows of the image drawn."""
PLANES = 3
"""Most planes (images, depths) drawn."""


def draw_im2col(canvas: Canvas, tm: Im2colMap, top: float) -> None:
    """Draw the planes visited by the load that starts at the box's lower corner."""
    spatial = tm.spatial(tm.dims)
    start = list(tm.lower_corner)
    coords = [*start, 0, 0] if tm.interleave != "NONE" else [0, *start, 0]
    canvas.text(4, top + 14, f"im2col map, {tm.dtype}, extents {tm.dims}: {tm.pixels_per_column} pixels per load", "h")
    _planes(canvas, tm, coords, (0,) * len(spatial), top + 20)


def draw_convolution(canvas: Canvas, plan: ConvolutionPlan, top: float) -> None:
    """Draw the pixels of the first load of the tile at row 0, for the first tap."""
    problem = plan.problem
    taps = " x ".join(map(str, problem.filter))
    canvas.text(
        4, top + 14,
        f"convolution of {problem.tensor} by {taps}: {len(plan.issues)} load{'s' if len(plan.issues) > 1 else ''} of "
        f"{plan.tensor_map.pixels_per_column} pixels x {plan.tensor_map.channels_per_pixel} channels", "h",
    )  # fmt: skip
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
    more = f"; {left_out} more plane{'s' if left_out > 1 else ''}" if left_out > 0 else ""
    cut = (
        f"; columns from {low2[0]} to {low2[0] + wide - 1}, rows from {low2[1]} to {low2[1] + tall - 1}"
        if max(high2[a] - low2[a] + 1 for a in (0, 1)) > MOST
        else ""
    )
    steps = ", ".join(map(str, tm.spatial(tm.element_strides)))
    canvas.text(
        4,
        canvas.height + 12,
        f"corner from {tm.lower_corner} to {tuple(b[1] for b in box)}, steps {steps}{more}{cut}",
        "s",
    )


def _plane(
    canvas: Canvas, plane: tuple[int, ...], pixels: list[tuple[int, int, int]],
    image: tuple[list[int], Sequence[int], list[tuple[int, int]], int], at: tuple[float, float, float],
    shape: tuple[int, int], many: int,
) -> float:  # fmt: skip
    """Draw one plane and return where the next begins."""
    low, extents, box, spatial = image
    left, base, side = at
    wide, tall = shape
    named = ("image",) if len(plane) == 1 else ("depth", "image")
    canvas.text(left, base + 6, ", ".join(f"{n} {p}" for n, p in zip(named, plane, strict=True)), "n")
    base += 24
    order = {(row, column): number for number, column, row in pixels}
    styles, labels, titles = [], [], []
    for row in range(low[1], low[1] + tall):
        line: list[str] = []
        for column in range(low[0], low[0] + wide):
            inside = 0 <= column < extents[0] and (spatial == 1 or 0 <= row < extents[1])
            number = order.get((row, column))
            line.append("x" if not inside else "z" if number is None else f"c{level_of(number, 0, many - 1)}")
        styles.append(line)
        labels.append([str(order.get((row, column), "")) for column in range(low[0], low[0] + wide)])
        titles.append(
            [
                f"w {column}" + (f", h {row}" if spatial > 1 else "")
                + (f": pixel {order[row, column]}" if (row, column) in order else ": not loaded")
                + (", filled" if style == "x" and (row, column) in order else "")
                for column, style in zip(range(low[0], low[0] + wide), line, strict=True)
            ]
        )  # fmt: skip
    small = side < 16
    canvas.cells(left, base, (side, side), styles, None if small else labels, titles)
    for column in range(0, wide, 1 if not small else 8):
        canvas.text(left + column * side + side / 2, base - 4, low[0] + column, "s m")
    for row in range(0, tall, 1 if not small else 8):
        canvas.text(left - 4, base + row * side + side / 2 + 4, low[1] + row, "s e")
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
