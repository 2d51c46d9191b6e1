"""Draw a padding as heat maps of the banks, without and with it.

Notation: a row shows the slowest group of lanes of one access; numbers are distinct words that it needs from a bank.
"""

from __future__ import annotations

from math import prod

from layoutalg.draw.banks import busy
from layoutalg.draw.canvas import Canvas
from layoutalg.proofs.padding import CellAccess, IntArray, PaddingPlan, offsets_of
from layoutalg.targets.banks import bank_model

CELL = 18.0


def draw_padding(canvas: Canvas, plan: PaddingPlan, top: float) -> None:
    """Draw the banks of the worst group of every access, before and after."""
    for place, line in enumerate(str(plan).splitlines()[:1]):
        canvas.text(4, top + 14 + 18 * place, " ".join(line.split()), "h")
    dense = tuple(prod(plan.shape[place + 1 :]) for place in range(len(plan.shape)))
    before = offsets_of(plan.shape, dense, 0, 0, ())
    base = top + 44
    rows = []
    for each in plan.served:
        access = plan.accesses[each.access]
        found = [
            ("dense", _busiest(access, before, plan.element_bits, each.target)),
            ("padded", _busiest(access, plan.offsets(), plan.element_bits, each.target)),
        ]
        rows += [(f"{access.name}, {each.target}, {when}", counts) for when, counts in found]
    left = 20 + 6.2 * max(len(name) for name, _ in rows)
    most = max((max(counts) for _, counts in rows if counts), default=1)
    banks = max((len(counts) for _, counts in rows if counts), default=0)
    for bank in range(banks):
        canvas.text(left + bank * CELL + CELL / 2, base - 4, bank, "s m")
    for place, (name, counts) in enumerate(rows):
        y = base + place * CELL + (place // 2) * 6
        canvas.text(left - 6, y + 13, name, "s e")
        if not counts:
            canvas.text(left, y + 13, "misaligned", "s")
            continue
        styles = [busy(count, most) for count in counts]
        titles = [f"bank {bank}: {count} words" for bank, count in enumerate(counts)]
        canvas.cells(left, y, (CELL, CELL), [styles], [[str(count) if count else "" for count in counts]], [titles])
        for bank, count in enumerate(counts):
            if count == max(counts) > 1:
                canvas.frame(left + bank * CELL, y, CELL - 1, CELL - 1, "w")
    says = "numbers: distinct words that the worst group of lanes needs from a bank (across); outlined: the busiest"
    canvas.text(4, canvas.height + 14, says, "s")


def _busiest(access: CellAccess, offsets: IntArray, element_bits: int, target: str) -> list[int]:
    """Return the words per bank of the group with the most turns; empty if a lane is misaligned."""
    model = bank_model(target, access.instruction(target))
    grain = 4 if model.access_bytes == 12 else model.access_bytes
    worst: list[int] = []
    for lanes in access.cells:
        places = [None if cell is None else int(offsets[cell]) * element_bits // 8 for cell in lanes]
        if any(place is not None and place % grain for place in places):
            return []
        for phase in model.phases(places):
            words = set()
            for lane in phase.lanes:
                first = (places[lane] or 0) // 4
                words |= set(range(first, first + max(1, model.access_bytes // 4)))
            counts = [0] * model.banks
            for word in words:
                counts[word % model.banks] += 1
            if max(counts) > max(worst, default=0):
                worst = counts
    return worst
