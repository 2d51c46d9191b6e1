"""Draw a swizzle plan: the banks of each access without and with the swizzle, and the elements in memory.

Notation: a row of a heat map is one group of lanes served together; numbers are words that a bank serves in sequence.
"""

from __future__ import annotations

import numpy as np

from layoutalg.draw.banks import busy, spans, words_of
from layoutalg.draw.canvas import Canvas, level_of
from layoutalg.ground.errors import LayoutError
from layoutalg.proofs.swizzling import IntArray, SwizzlePlan, instructions
from layoutalg.targets.banks import BankModel, bank_model
from layoutalg.targets.nvidia.swizzles import CHUNK_BYTES

CELL, TALL, WIDE = 14.0, 18.0, 52.0
LEFT, SPAN = 112.0, 17
"""Space for the lanes of a group, in pixels and characters."""
ACCESSES, LINES = 6, 32
"""Most accesses and lines of memory drawn."""
LINE_BYTES = 128


def draw_swizzle_plan(canvas: Canvas, plan: SwizzlePlan, top: float) -> None:
    """Draw the busiest instruction of every access without and with the swizzle, and the lines of shared memory."""
    state = "free of bank conflicts" if plan.conflict_free else f"{plan.ideal} without conflicts"
    canvas.text(4, top + 14, f"{plan.turns} bank turns for all accesses, {state}", "h")
    lines = [plan.cute or str(plan.smem), plan.claim, *(" ".join(line.split()) for line in plan.better_lines)]
    for place, line in enumerate(lines):
        canvas.text(4, top + 32 + 16 * place, line[:160], "s")
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
                left += LEFT + 32 * CELL
                continue
            model = bank_model(each.target, operation)
            worst = max((row for rows in issued for row in rows), key=model.turns)
            turns = model.turns(worst)
            canvas.text(left, base + 32, f"{name}: {operation}, {turns} turn{'' if turns == 1 else 's'}", "s")
            _heat(canvas, model, worst, left, base + 50)
            bottom = max(bottom, canvas.height)
            if model.banks > 32:  # one below the other
                base = bottom
            else:
                left += LEFT + model.banks * CELL
        base = max(bottom, end) + 10
    for more in [f"the first {ACCESSES} of {len(plan.served)} accesses"] if len(plan.served) > ACCESSES else []:
        canvas.text(4, base + 4, more, "s")
        base += 18
    says = "numbers: distinct words of a bank (across) for one group of lanes (down) in the busiest instruction"
    canvas.text(4, base + 4, f"{says}; outlined: a conflict", "s")
    _lines(canvas, plan, base + 16)


def _heat(canvas: Canvas, model: BankModel, addresses: IntArray, left: float, top: float) -> None:
    rows = words_of(model, [int(address) for address in addresses])
    worst = max(len(words) for _, banks in rows for words in banks)
    for bank in range(0, model.banks, 4):
        canvas.text(left + bank * CELL + CELL / 2, top - 4, bank, "s m")
    styles, labels, titles = [], [], []
    for place, (phase, banks) in enumerate(rows):
        lanes = spans(phase.lanes)
        lanes = lanes if len(lanes) <= SPAN else f"{lanes[: SPAN - 3]}..."
        canvas.text(left - 5, top + place * CELL + 11, lanes, "s e")
        styles.append([busy(len(words), worst) for words in banks])
        labels.append([str(len(words)) if 0 < len(words) < 100 else "" for words in banks])
        titles.append([
            f"bank {bank}: " + ("; ".join(f"word {word} for lanes {by}" for word, by in words.items()) or "idle")
            for bank, words in enumerate(banks)
        ])  # fmt: skip
    canvas.cells(left, top, (CELL, CELL), styles, labels, titles)
    for place, (phase, _) in enumerate(rows):
        if phase.turns > phase.least:
            canvas.frame(left - 2, top + place * CELL - 1, model.banks * CELL + 2, CELL + 1, "w")


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
    styles = [[f"c{level_of(point[names[-1]], 0, max(1, inner - step))}" for point in row] for row in rows]
    labels = [[",".join(str(point[name]) for name in names) for point in row] for row in rows]
    titles = [[f"from byte {int(place) * size}: element {label}" for place, label in zip(*both, strict=True)]
              for both in zip(starts, labels, strict=True)]  # fmt: skip
    for number in range(len(rows)):
        canvas.text(36, top + 34 + number * TALL, number, "s e")
    canvas.cells(40, top + 20, (WIDE, TALL), styles, labels, titles)
