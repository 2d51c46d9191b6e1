"""Draw the banks of the chunks of a universal swizzle, row by row."""

from __future__ import annotations

from layoutalg.draw.canvas import LEVELS, Canvas
from layoutalg.proofs.universal import ClassPlan
from layoutalg.targets.banks import bank_model

WIDE, TALL = 30.0, 20.0
ROWS, CHUNKS, LINES = 32, 32, 24


def draw_universal(canvas: Canvas, plan: ClassPlan, top: float) -> None:
    """Draw the banks, in units of a chunk, of each chunk of the first rows; then the turns of the members."""
    slots = max(bank_model(each.target, each.instruction).banks for each in plan.plan.served) * 4 // plan.chunk_bytes
    chunks = plan.row_bytes // plan.chunk_bytes
    rows, columns = min(plan.rows, ROWS), min(chunks, CHUNKS)
    canvas.text(4, top + 14, f"{plan.formula}: the banks of chunk (across) and row (down)", "h")
    base, left = top + 42, 44.0
    for chunk in range(columns):
        canvas.text(left + chunk * WIDE + WIDE / 2, base - 4, chunk, "s m")
    styles, labels, titles = [], [], []
    for row in range(rows):
        canvas.text(left - 6, base + row * TALL + 14, row, "s e")
        places = [plan.place(row, chunk) for chunk in range(columns)]
        styles.append([f"c{place % slots * (LEVELS - 1) // max(1, slots - 1)}" for place in places])
        labels.append([str(place % slots) for place in places])
        titles.append([f"row {row}, chunk {chunk}: chunk {place} of the tile" for chunk, place in enumerate(places)])
    canvas.cells(left, base, (WIDE, TALL), styles, labels, titles)
    part = f", {rows} of {plan.rows} rows, {columns} of {chunks} chunks"
    drawn = "" if (rows, columns) == (plan.rows, chunks) else part
    says = f"numbers: slot of the chunk among the {slots} {plan.chunk_bytes}-byte slots of all banks{drawn}"
    canvas.text(4, canvas.height + 14, says, "s")
    line = canvas.height + 18
    for place, each in enumerate(plan.plan.served[:LINES]):
        canvas.text(4, line + 16 * place, f"{plan.members[each.access].name}: {each}", "s")
