"""Draw plans for all sizes: the rows of a group that each copy moves, the tails, the map words that depend on sizes."""

from __future__ import annotations

import textwrap
from dataclasses import replace

from layoutalg.draw.canvas import LEVELS, Canvas, Cell, cut, draw_value, many
from layoutalg.ground.conditions import divisible
from layoutalg.ground.polynomial_text import polynomial
from layoutalg.proofs.ragged import RaggedFamily
from layoutalg.proofs.symbolic.checker import guard_implies_quickly
from layoutalg.proofs.symbolic.guard import Guard
from layoutalg.proofs.symbolic.plan import SymbolicPlan
from layoutalg.proofs.tensor import Size

WIDE = 620.0
_UPPER, _WIDTH = 7, 30
"""The map word with the upper bits of all strides; characters shown per word."""
LINE = 100
"""Characters per line of a guard."""


@draw_value.register(RaggedFamily)
def draw_ragged(family: RaggedFamily, canvas: Canvas, top: float) -> None:
    """Draw groups of a few sizes and their copies; rows copied twice or beyond the group are marked."""
    tile = family.tile_rows
    canvas.text(4, top + 14, f"ragged dimension {family.axis}, tiles of {tile} rows: {family.strategy}", "h")
    canvas.text(4, top + 32, family.stated or "every row of every group is copied exactly once, for all sizes", "n")
    examples = (max(1, tile - 1 - tile // 4), tile, 2 * tile + tile // 2 + tile // 8)
    step = family.multiple
    sizes = sorted({-(-max(family.least_rows, size) // step) * step for size in examples})
    reach = max(-(-size // tile) * tile for size in sizes)
    left, y = 96.0, top + 62
    scale = WIDE / reach
    for at in range(0, reach + 1, tile):
        canvas.text(left + at * scale, y - 6, at, "s m")
    canvas.text(left - 10, y - 6, "rows", "s e")
    for size in sizes:
        y = _group(canvas, family, size, (left, y, scale))
    hatched = "beyond the group's map, filled" if _clips(family) else "rows after the group"
    note = f"numbers: map: rows copied; hatched: {hatched}; red: rows already copied"
    canvas.text(4, canvas.height + 20, note, "s")
    for rule in family.rules:
        for place, line in enumerate(textwrap.wrap(rule.text, LINE)):
            canvas.text(4, canvas.height + 14, f"rows {rule.rows}" if not place else "", "s")
            canvas.text(70, canvas.height - 4, line, "n")


def _group(canvas: Canvas, family: RaggedFamily, size: int, at: tuple[float, float, float]) -> float:
    left, top, scale = at
    canvas.text(left - 10, top + 14, f"n = {size}", "n e")
    canvas.box(left, top, size * scale, 20, "z", f"a group of {size} rows")
    canvas.frame(left, top, size * scale, 20)
    taken = [0] * size
    copies = replace(family, groups=None).copies([size])
    lane, ends = 0, 0
    for copy in copies:
        boxed = family.heights[copy.member]
        overlap = [row for row in range(copy.row, min(size, copy.row + copy.rows)) if taken[row]]
        for row in range(copy.row, min(size, copy.row + copy.rows)):
            taken[row] += 1
        lane = lane + 1 if copy.row < ends else 0
        ends = copy.row + boxed
        y = top + 26 + 22 * lane
        clipped = max(0, copy.row + boxed - size)
        style = f"c{(3 + 5 * copy.member) % LEVELS}"
        title = f"map {copy.member}: rows {copy.row} to {copy.row + copy.rows - 1}"
        if clipped:
            what = "clipped by the map's extent" if _clips(family) else "read beyond the group"
            canvas.box(left + size * scale, y, clipped * scale, 20, "x", f"{clipped} rows {what}")
        canvas.box(left + copy.row * scale, y, copy.rows * scale, 20, style, title)
        canvas.frame(left + copy.row * scale, y, boxed * scale, 20)
        label = f"{copy.member}: {copy.rows}"
        if copy.rows * scale > 7 * len(label) + 2:
            canvas.text(left + (copy.row + copy.rows / 2) * scale, y + 14, label, f"m t{style[1:]}")
        if overlap:
            canvas.frame(left + overlap[0] * scale, y, len(overlap) * scale, 20, "w")
    once, twice = taken.count(1), sum(count > 1 for count in taken)
    counted = f"{many(len(copies), 'copy')}: {once} rows once{f', {twice} twice' if twice else ''}"
    counted += f", {taken.count(0)} never" if 0 in taken else ""
    canvas.text(left + WIDE + 14, top + 40, counted, "s")
    return top + 64 + 22 * max(0, lane)


def _clips(family: RaggedFamily) -> bool:
    return family.strategy in ("clip", "descriptors")


@draw_value.register(SymbolicPlan)
def draw_symbolic(plan: SymbolicPlan, canvas: Canvas, top: float) -> None:
    """Draw the guard, the tiles of a tensor of any size with their tails, and the words that depend on the sizes."""
    problem = plan.problem.pattern
    copies = many(len(plan.issues), "copy")
    canvas.text(4, top + 14, f"{plan.problem.tensor}: {copies} of box {list(plan.tensor_map.box)} for all sizes", "h")
    lines = textwrap.wrap(f"{plan.guard}", LINE)
    for place, line in enumerate(lines):
        canvas.text(4, top + 34 + 16 * place, "" if place else "guard", "s")
        canvas.text(60, top + 34 + 16 * place, line, "n")
    for case in plan.better:
        for place, line in enumerate(textwrap.wrap(f"{len(case.issues)} issues, {case.oob}, where {case.guard}", LINE)):
            y = canvas.height + 12
            canvas.text(4, y, "" if place else "better", "s")
            canvas.text(60, y, line, "n")
    base = canvas.height + 44
    bottom = _tiles(canvas, plan, problem.tile, base)
    _words(canvas, plan, 420.0, base)
    canvas.height = max(canvas.height, bottom)
    canvas.text(
        4, canvas.height + 16, f"out of bounds {plan.oob}; {plan.expect_tx_bytes} bytes per tile for all sizes", "s"
    )


def _tiles(canvas: Canvas, plan: SymbolicPlan, tile: tuple[int, ...], top: float) -> float:
    """Draw the two innermost dimensions: full tiles, and edge tiles with the part that may lie outside the tensor."""
    shape: tuple[Size, ...] = (1, *plan.problem.tensor.shape)[-2:]
    spans = (1, *tile)[-2:]
    tails = [_has_tail(plan, extent, span) for extent, span in zip(shape, spans, strict=True)]
    side, left = 62.0, 60.0
    canvas.text(left, top - 22, "the tensor's two innermost dimensions", "n")
    canvas.text(left, top - 8, f"tiles of {spans[0]} x {spans[1]}; hatched: filled, not read", "s")
    names = [str(extent) for extent in shape]
    for row in range(3):
        for column in range(3):
            x, y = left + column * (side + 10), top + row * (side + 10)
            wide = side * (0.55 if column == 2 and tails[1] else 1)
            tall = side * (0.55 if row == 2 and tails[0] else 1)
            canvas.box(x, y, side, side, "x" if (wide, tall) != (side, side) else "c4", "out of bounds: filled")
            tail = (row == 2 and tails[0]) or (column == 2 and tails[1])
            canvas.box(x, y, wide, tall, "c10" if tail else "c4", "a tail" if tail else "a whole tile, copied once")
            canvas.frame(x, y, side, side)
            if (row, column) in ((0, 0), (2, 2)) or (tail and 1 in (row, column) and 2 in (row, column)):
                canvas.text(x + wide / 2, y + tall / 2 + 4, "tail" if tail else "core", f"m t{10 if tail else 4}")
    end = 3 * (side + 10)
    for axis, (name, span, tail) in enumerate(zip(names, spans, tails, strict=True)):
        if len(tile) == 1 and not axis:
            continue
        words = f"last tile {name} mod {span}" if tail else "only whole tiles"
        canvas.text(left, top + end + 12 + 16 * axis, f"dimension {len(tile) - 2 + axis}, {name}: {words}", "s")
    return top + end + 34


def _has_tail(plan: SymbolicPlan, extent: Size, span: int) -> bool:
    """Whether the last tile may cross the edge, unless the guard implies that tiles divide the extent."""
    if span == 1:
        return False
    if isinstance(extent, int):
        return extent % span != 0
    known = Guard((*plan.guard.clauses, *((one,) for one in plan.assumptions.conditions)))
    return not guard_implies_quickly(known, (divisible(polynomial(extent), span),))


def _words(canvas: Canvas, plan: SymbolicPlan, left: float, top: float) -> None:
    """Draw the first 16 words of the map: constants verbatim, the others by the fields they contain."""
    canvas.text(left, top - 22, "the map's 128 bytes: words 0 to 15; the rest are 0", "n")
    canvas.text(left, top - 8, "light: patched, because they depend on the sizes", "s")
    raw = plan.template
    patched: dict[int, list[str]] = {}
    for patch in plan.patch:
        for word, low, width in patch.words:
            bits = "" if width == 32 else f" bits {low + width - 1}:{low}"
            patched.setdefault(word, []).append(f"{patch.field}[{patch.index}] = {patch.value}{bits}")
    cells: list[list[Cell]] = []
    for row in range(8):
        line: list[Cell] = []
        for word in (row, row + 8):
            value = f"{int.from_bytes(raw[4 * word : 4 * word + 4], 'little'):#010x}"
            fields = patched.get(word)
            if fields is None:
                line.append(("z", value, f"word {word}: {value}, constant"))
            else:
                short = "upper bits of strides" if word == _UPPER else cut(fields[0], _WIDTH)
                line.append(("c14", short, f"word {word}: {'; '.join(fields)}"))
        cells.append(line)
    longest = max(len(label) for row in cells for _, label, _ in row)
    for row in range(8):
        canvas.text(left - 6 + 16, top + row * 26 + 16, f"{row}", "s e")
    size = (7.0 * longest + 10, 26.0)
    canvas.cells(left + 16, top, size, cells)
    for row in range(8):
        canvas.text(left + 16 + 2 * size[0] + 4, top + row * 26 + 16, row + 8, "s")
