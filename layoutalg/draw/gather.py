"""Draw a register gather: the element of each index, and the alternatives.

Notation: columns are lanes of the first warp and rows are indices; a cell shows the element that the index selects for
the first index register, in the colour of the lane that has it.
"""

from __future__ import annotations

import numpy as np

from layoutalg.draw.canvas import Canvas, level_of
from layoutalg.draw.conversion import draw_alternatives, draw_lanes
from layoutalg.proofs.gather import GatherPlan

TALL, LEFT = 18.0, 84.0
INDICES, WORDS = 32, 150
"""Most indices, and characters per line, drawn."""


def draw_gather(canvas: Canvas, plan: GatherPlan, top: float) -> None:
    """Draw the elements that the first register's indices select, and the alternatives."""
    for place, line in enumerate(str(plan).splitlines()[:4]):
        words = " ".join(line.split())
        words = words if len(words) <= WORDS else words[: WORDS - 3] + "..."
        canvas.text(4, top + 14 + 18 * place, words, "s" if place else "h")
    top += 80
    lanes, shown = plan.index.lanes, min(plan.extent, INDICES)
    canvas.text(4, top + 12, f"the element that each index along {plan.axis} selects, register 0 of warp 0", "n")
    elements = plan.wanted()[0, :, :, 0]
    count = plan.source.registers * lanes * plan.source.warps
    places = plan.every(np.arange(count).reshape(plan.source.warps, lanes, -1))[0, :, :, 0]
    wide = max(20.0, 7.0 * len(str(int(elements.max()))) + 5)
    draw_lanes(canvas, lanes, top + 30, wide)
    styles, labels, titles = [], [], []
    for index in range(shown):
        canvas.text(LEFT - 6, top + 34 + index * TALL + 13, f"index {index}", "s e")
        threads, registers = np.divmod(places[:, index], plan.source.registers)
        styles.append([f"c{level_of(int(t) % lanes, 0, lanes - 1)}" if t < lanes else "z" for t in threads])
        labels.append([str(int(element)) for element in elements[:, index]])
        titles.append([
            f"lane {lane}, index {index}: element {int(elements[lane, index])}, in warp {int(thread) // lanes}, "
            f"lane {int(thread) % lanes}, register {int(register)}"
            for lane, (thread, register) in enumerate(zip(threads, registers, strict=True))
        ])  # fmt: skip
    canvas.cells(LEFT, top + 34, (wide, TALL), styles, labels, titles)
    base = canvas.height + 8
    rest = f"the first {shown} of {plan.extent} indices; " if shown < plan.extent else ""
    others = "; grey: another warp has it" if plan.source.warps > 1 else ""
    canvas.text(4, base + 12, f"{rest}colour: the lane that has the element, dark for lane 0{others}", "s")
    draw_alternatives(canvas, plan)
