"""Draw swizzles: the order of chunks before and after one, the plan of a found one, the banks of a universal one.

Notation: a chunk is ``2**base`` elements (or bytes), which a swizzle moves as a whole; a row has ``2**shift`` chunks. A
row of a plan's heat map is one group of lanes served together; numbers are words that a bank serves in sequence.
"""

from __future__ import annotations

import numpy as np

from layoutalg.cute.swizzle import Swizzle
from layoutalg.draw.canvas import LEVELS, LINE_BYTES, LINES, TALL, Canvas, Cell, cut, draw_value, level_of, many
from layoutalg.draw.grid import columns_text
from layoutalg.draw.phases import draw_words, lane_spans, words_of
from layoutalg.ground.errors import LayoutError
from layoutalg.proofs.swizzling import IntArray, SwizzlePlan, instructions
from layoutalg.proofs.universal import ClassPlan
from layoutalg.targets.banks import BankModel, bank_model

SIDE = 32
"""Most rows and columns of chunks drawn."""
CHUNK_CELL, BANK_CELL, UNIVERSAL_CELL = (30.0, 22.0), 14.0, (30.0, 20.0)
LEFT, SPAN = 112.0, 17
"""Space for the lanes of a group, in pixels and characters."""
ACCESSES, MEMBERS = 6, 24
"""Most accesses of a plan, and members of a class, drawn."""
CHUNK_BYTES, WIDE = 16, 52.0


def chunks(swizzle: Swizzle) -> tuple[list[list[int]], list[list[int]]]:
    """Return the chunk at each row and column of memory, before and after."""
    columns = min(1 << max(abs(swizzle.shift), swizzle.bits), SIDE)
    rows = min(1 << swizzle.bits, SIDE)
    before = [[row * columns + column for column in range(columns)] for row in range(rows)]
    # a swizzle is its own inverse: the position of chunk k is also the chunk at position k
    after = [[swizzle(chunk << swizzle.base) >> swizzle.base for chunk in row] for row in before]
    return before, after


@draw_value.register(Swizzle)
def draw_swizzle(swizzle: Swizzle, canvas: Canvas, top: float) -> None:
    """Draw the memory before and after the swizzle side by side."""
    unit = "bytes" if swizzle.unit == "byte" else "elements"
    canvas.text(4, top + 14, f"{swizzle}: chunks of {1 << swizzle.base} {unit}", "h")
    before, after = chunks(swizzle)
    wide = len(before[0])
    for place, (name, rows) in enumerate((("before", before), ("after", after))):
        left = 30 + place * (wide * CHUNK_CELL[0] + 44)
        canvas.text(left, top + 34, name, "n")
        cells: list[list[Cell]] = [
            [
                (
                    f"c{(chunk % wide) * (LEVELS - 1) // max(1, wide - 1)}",
                    str(chunk),
                    f"row {r}, chunk {c}: {unit} {(r * wide + c) << swizzle.base} to "
                    f"{((r * wide + c + 1) << swizzle.base) - 1} hold chunk {chunk} = 0b{chunk:b}",
                )
                for c, chunk in enumerate(row)
            ]
            for r, row in enumerate(rows)
        ]
        canvas.cells(left, top + 42, CHUNK_CELL, cells, down=range(len(rows)))
    canvas.text(4, canvas.height + 14, f"bits {_span(swizzle.target_mask)} ^= bits {_span(swizzle.source_mask)}", "s")


def _span(mask: int) -> str:
    if not mask:
        return "none"
    low = (mask & -mask).bit_length() - 1
    return f"{low}..{mask.bit_length() - 1}"


def swizzle_text(swizzle: Swizzle) -> str:
    """Return the chunks after the swizzle as text, one line per row of memory.

    Example:
        >>> print(swizzle_text(Swizzle(2, 4, 3)).splitlines()[1])
         9  8 11 10 13 12 15 14
    """
    _, after = chunks(swizzle)
    return columns_text([[str(chunk) for chunk in row] for row in after], SIDE)


@draw_value.register(SwizzlePlan)
def draw_swizzle_plan(plan: SwizzlePlan, canvas: Canvas, top: float) -> None:
    """Draw the busiest instruction of every access without and with the swizzle, and the lines of shared memory."""
    state = "free of bank conflicts" if plan.conflict_free else f"{plan.ideal} without conflicts"
    canvas.text(4, top + 14, f"{plan.turns} bank turns for all accesses, {state}", "h")
    lines = [plan.cute or str(plan.smem), plan.claim, *(" ".join(line.split()) for line in plan.better_lines)]
    canvas.lines(4, top + 32, (line[:160] for line in lines))
    base = top + 28 + 16 * len(lines)
    for each in plan.served[:ACCESSES]:
        access, bits = plan.accesses[each.access], plan.element_bits
        bottom, left, end = base, LEFT, base + 40
        canvas.text(4, base + 14, f"access {each.access}, {access.kind}: {each}", "n")
        for name, smem in (("row-major", plan.by_rows), ("swizzled", plan.smem)):
            try:
                operation, issued = instructions(access, smem, bits, each.target)
            except LayoutError:
                canvas.text(left, base + 32, f"{name}: no instruction can move it", "s")
                left += LEFT + 32 * BANK_CELL
                continue
            model = bank_model(each.target, operation)
            worst = max((row for rows in issued for row in rows), key=model.turns)
            turns = model.turns(worst)
            canvas.text(left, base + 32, f"{name}: {operation}, {many(turns, 'turn')}", "s")
            _heat(canvas, model, worst, left, base + 50)
            bottom = max(bottom, canvas.height)
            if model.banks > 32:  # one below the other
                base = bottom
            else:
                left += LEFT + model.banks * BANK_CELL
        base = max(bottom, end) + 10
    if len(plan.served) > ACCESSES:
        canvas.text(4, base + 4, f"the first {ACCESSES} of {len(plan.served)} accesses", "s")
        base += 18
    says = "numbers: distinct words of a bank (across) for one group of lanes (down) in the busiest instruction"
    canvas.text(4, base + 4, f"{says}; outlined: a conflict", "s")
    _lines(canvas, plan, base + 16)


def _heat(canvas: Canvas, model: BankModel, addresses: IntArray, left: float, top: float) -> None:
    rows = words_of(model, [int(address) for address in addresses])
    named = [(cut(lane_spans(phase.lanes), SPAN), banks) for phase, banks in rows]
    draw_words(canvas, named, left, top, (BANK_CELL, BANK_CELL), 4)


def _lines(canvas: Canvas, plan: SwizzlePlan, top: float) -> None:
    """Draw the tile element at the start of each chunk of memory, coloured by its column in the tile."""
    size = plan.element_bits // 8
    step = max(1, CHUNK_BYTES // size)
    total = 1 << plan.smem.in_bits
    per_line = LINE_BYTES // size
    lines = min(-(-total // per_line), LINES)
    places = np.arange(0, min(total, lines * per_line), step)
    inverse = plan.smem.inverse()
    names = [name for name, _ in plan.smem.in_axes]
    found = [{name: int(at) for name, at in inverse(offset=int(place)).items()} for place in places]
    shown = f", the first {lines} of {-(-total // per_line)}" if lines * per_line < total else ""
    what = f"the element ({', '.join(names)}) at each chunk, coloured by {names[-1]}"
    canvas.text(4, top + 14, f"lines of {LINE_BYTES} bytes{shown}: {what}", "n")
    inner = plan.smem.in_dims[names[-1]]
    rows = [found[first : first + per_line // step] for first in range(0, len(found), per_line // step)]
    starts = [places[first : first + per_line // step] for first in range(0, len(found), per_line // step)]
    cells: list[list[Cell]] = [
        [
            (
                f"c{level_of(point[names[-1]], 0, max(1, inner - step))}",
                label := ",".join(str(point[name]) for name in names),
                f"from byte {int(place) * size}: element {label}",
            )
            for place, point in zip(*both, strict=True)
        ]
        for both in zip(starts, rows, strict=True)
    ]
    for number in range(len(rows)):
        canvas.text(36, top + 34 + number * TALL, number, "s e")
    canvas.cells(40, top + 20, (WIDE, TALL), cells)


@draw_value.register(ClassPlan)
def draw_universal(plan: ClassPlan, canvas: Canvas, top: float) -> None:
    """Draw the banks, in units of a chunk, of each chunk of the first rows; then the turns of the members."""
    slots = max(bank_model(each.target, each.instruction).banks for each in plan.plan.served) * 4 // plan.chunk_bytes
    chunks = plan.row_bytes // plan.chunk_bytes
    rows, columns = min(plan.rows, SIDE), min(chunks, SIDE)
    canvas.text(4, top + 14, f"{plan.formula}: the banks of chunk (across) and row (down)", "h")
    base, left = top + 42, 44.0
    cells: list[list[Cell]] = [
        [
            (
                f"c{place % slots * (LEVELS - 1) // max(1, slots - 1)}",
                str(place % slots),
                f"row {row}, chunk {chunk}: chunk {place} of the tile",
            )
            for chunk, place in enumerate(plan.place(row, chunk) for chunk in range(columns))
        ]
        for row in range(rows)
    ]
    canvas.cells(left, base, UNIVERSAL_CELL, cells, across=range(columns), down=range(rows), gap=6)
    part = f", {rows} of {plan.rows} rows, {columns} of {chunks} chunks"
    drawn = "" if (rows, columns) == (plan.rows, chunks) else part
    says = f"numbers: slot of the chunk among the {slots} {plan.chunk_bytes}-byte slots of all banks{drawn}"
    canvas.text(4, canvas.height + 14, says, "s")
    served = [f"{plan.members[each.access].name}: {each}" for each in plan.plan.served[:MEMBERS]]
    canvas.lines(4, canvas.height + 18, served)
