"""A plan of a swizzle: what the banks make of each access by rows and behind the swizzle, and where elements lie.

Main definitions: ``draw_swizzle_plan``.

Notation: a row of a heat map is one group of lanes that is served together; its cells say how many words each bank has
to serve, one after the other.
"""

from __future__ import annotations

import numpy as np

from layoutalg.draw.canvas import Canvas, level_of
from layoutalg.ground.errors import LayoutError
from layoutalg.proofs.swizzling import IntArray, SwizzlePlan, instructions
from layoutalg.targets.bank_model import BankModel, bank_model

CELL, TALL, WIDE = 14.0, 18.0, 52.0
ACCESSES, LINES = 6, 32
"""Accesses and lines of memory that are drawn."""
CHUNK_BYTES, LINE_BYTES = 16, 128


def draw_swizzle_plan(canvas: Canvas, plan: SwizzlePlan, top: float) -> None:
    """Draw the busiest instruction of every access before and after, and the lines of shared memory."""
    state = "free of bank conflicts" if plan.conflict_free else f"{plan.ideal} without conflicts"
    canvas.text(4, top + 14, f"{plan.turns} turns of the banks for all accesses, {state}", "h")
    canvas.text(4, top + 32, f"{plan.cute or plan.smem}"[:160], "s")
    base = top + 44
    for each in plan.served[:ACCESSES]:
        access, bits = plan.accesses[each.access], plan.element_bits
        bottom, left = base, 40.0
        canvas.text(4, base + 14, f"access {each.access}: {each}", "n")
        for name, smem in (("by rows", plan.by_rows), ("behind the swizzle", plan.smem)):
            try:
                operation, issued = instructions(access, smem, bits, each.target)
            except LayoutError:
                canvas.text(left, base + 32, f"{name}: no instruction moves it", "s")
                left += 34 * CELL
                continue
            model = bank_model(each.target, operation)
            worst = max((row for rows in issued for row in rows), key=model.turns)
            canvas.text(left, base + 32, f"{name}: {operation}, {model.turns(worst)} turns", "s")
            _heat(canvas, model, worst, left, base + 38)
            bottom, left = max(bottom, canvas.height), left + (model.banks + 4) * CELL
        base = max(bottom, base + 40) + 10
    _lines(canvas, plan, base)


def _heat(canvas: Canvas, model: BankModel, addresses: IntArray, left: float, top: float) -> None:
    styles, labels, titles = [], [], []
    for phase in model.phases(addresses):
        words: list[dict[int, list[int]]] = [{} for _ in range(model.banks)]
        for lane in phase.lanes:
            first = int(addresses[lane]) // 4
            for word in range(first, first + max(1, model.access_bytes // 4)):
                words[word % model.banks].setdefault(word, []).append(lane)
        counts = [len(found) for found in words]
        styles.append([f"c{level_of(min(count, 9), 1, 9)}" if count else "z" for count in counts])
        labels.append([str(count) if count < 100 else "" for count in counts])
        titles.append([
            f"bank {bank}: " + ("; ".join(f"word {word} for lanes {lanes}" for word, lanes in found.items()) or "idle")
            for bank, found in enumerate(words)
        ])  # fmt: skip
    canvas.cells(left, top, (CELL, CELL), styles, labels, titles)
    for at, row in enumerate(labels):
        if max(map(len, titles[at])) and any(label not in ("0", "1") for label in row):
            canvas.frame(left - 2, top + at * CELL - 1, model.banks * CELL + 2, CELL + 1, "w")


def _lines(canvas: Canvas, plan: SwizzlePlan, top: float) -> None:
    """Draw which tile elements lie at the start of every chunk of a line, one colour for one chunk of a tile row."""
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
    canvas.text(4, top + 14, f"lines of {LINE_BYTES} bytes{shown}: the element ({', '.join(names)}) at each chunk", "n")
    inner = plan.smem.in_dims[names[-1]]
    rows = [found[first : first + per_line // step] for first in range(0, len(found), per_line // step)]
    starts = [places[first : first + per_line // step] for first in range(0, len(found), per_line // step)]
    styles = [[f"c{level_of(point[names[-1]], 0, max(1, inner - step))}" for point in row] for row in rows]
    labels = [[",".join(str(point[name]) for name in names) for point in row] for row in rows]
    titles = [[f"bytes {int(place) * size} on: element {label}" for place, label in zip(*both, strict=True)]
              for both in zip(starts, labels, strict=True)]  # fmt: skip
    for number in range(len(rows)):
        canvas.text(36, top + 34 + number * TALL, number, "s e")
    canvas.cells(40, top + 20, (WIDE, TALL), styles, labels, titles)
