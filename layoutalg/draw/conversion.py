"""Draw a register conversion: registers before and after, the steps, and the alternatives.

Notation: columns are lanes and rows are registers of the first warp; a cell shows its element, in the colour of the
lane that had the element before, so that movement between lanes is visible.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from layoutalg.draw.banks import draw_phases
from layoutalg.draw.canvas import Canvas, level_of
from layoutalg.ground.errors import RepresentabilityError
from layoutalg.proofs.conversion import ConversionPlan
from layoutalg.proofs.conversion_steps import Access, Read, Take, Through
from layoutalg.proofs.exchange import Choose, Exchange, Move, Rename
from layoutalg.proofs.gather import GatherPlan
from layoutalg.proofs.listed_access import UNCOUNTED
from layoutalg.proofs.shuffle import ShufflePlan
from layoutalg.targets.banks import bank_model

TALL, LEFT = 18.0, 84.0
REGISTERS, WORDS = 16, 150
"""Most registers, and characters per line, drawn."""
BAR = 320.0
"""Width of the longest cost bar."""


def steps_text(plan: ConversionPlan) -> tuple[str, ...]:
    """Return what a thread does, one line per step.

    Example:
        >>> from layoutalg.synth.conversions import conversion
        >>> for line in steps_text(conversion("(32,4):(4,1)", "(32,4):(1,32)", 32, mechanism="shuffles")):
        ...     print(line)
        choose: each word is one of two of the thread's own, selected by lane
        choose: each word is one of two of the thread's own, selected by lane
        read: 4 words, 4 of them from other lanes by shuffles
        choose: each word is one of two of the thread's own, selected by lane
        choose: each word is one of two of the thread's own, selected by lane
    """
    return tuple(_said(step, plan.lanes) for step in plan.steps)


def _said(step: Any, lanes: int) -> str:
    if isinstance(step, Take):
        many = f", {_many(step.permutes, 'byte permutation')}" if step.permutes else ", without an instruction"
        return f"take: {_many(len(step.registers), 'element')} of the same thread{many}"
    if isinstance(step, Read):
        return f"read: {_many(len(step.taken), 'word')}, {step.shuffles(lanes)} of them from other lanes by shuffles"
    if isinstance(step, Through):
        passes = f" in {step.passes} passes" if step.passes > 1 else ""
        ends = f"store with {_issued(step.store)}, {step.barrier} barrier, load with {_issued(step.load)}"
        held = f"{step.smem_bytes // step.blocks} bytes of shared memory"
        return f"through {held}{f' in each of {step.blocks} blocks' if step.blocks > 1 else ''}{passes}: {ends}"
    if isinstance(step, ShufflePlan):
        return f"shuffle: {_many(len(step.rounds), 'round')}, each a word from another lane"
    return _OTHERS[type(step)]


_OTHERS = {
    Choose: "choose: each word is one of two of the thread's own, selected by lane",
    Exchange: "exchange: of each pair of words a lane keeps one and sends the other to its partner",
    Move: "move: words from other lanes by shuffles",
    Rename: "rename: words get new numbers, without an instruction",
}


def _issued(access: Access) -> str:
    turns = "an unknown number of turns" if access.turns == UNCOUNTED else _many(access.turns, "turn")
    return f"{access.count} {access.instruction} ({turns})"


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def draw_conversion(canvas: Canvas, plan: ConversionPlan, top: float) -> None:
    """Draw the registers before and after, the steps, the banks used, and the alternatives."""
    for place, line in enumerate(str(plan).splitlines()[:3]):
        words = line.strip()
        words = words if len(words) <= WORDS else words[: WORDS - 3] + "..."
        canvas.text(4, top + 14 + 18 * place, " ".join(words.split()), "s" if place else "h")
    _registers(canvas, plan, top + 62)
    base = canvas.height + 22
    canvas.text(4, base, "what a thread does", "n")
    lines = steps_text(plan) or ("nothing: the layouts are equal",)
    for number, line in enumerate(lines):
        canvas.text(20, base + 18 * (number + 1), f"{number + 1}. {line}", "s")
    for step in plan.steps:
        if isinstance(step, Through):
            for access in (step.store, step.load):
                _busiest(canvas, plan, access)
    draw_alternatives(canvas, plan)


def _registers(canvas: Canvas, plan: ConversionPlan, top: float) -> None:
    """The registers of the first warp before and after."""
    count = plan.source.registers * plan.lanes * plan.warps
    before = np.arange(count, dtype=np.int64).reshape(plan.warps, plan.lanes, -1)
    held = plan.source.elements()
    wide = max(20.0, 7.0 * len(str(int(held.max()))) + 5)
    of_warps = f" of warp 0 of {plan.warps}" if plan.warps > 1 else ""
    for name, places in (("before", before), ("after", plan.run(before))):
        canvas.text(4, top + 12, f"{name}: the element in each register{of_warps}", "n")
        draw_lanes(canvas, plan.lanes, top + 30, wide)
        shown = min(places.shape[2], REGISTERS)
        styles, labels, titles = [], [], []
        for register in range(shown):
            canvas.text(LEFT - 6, top + 34 + register * TALL + 13, f"register {register}", "s e")
            found = [_place(plan, int(place)) for place in places[0, :, register]]
            elements = [int(held[place]) for place in found]
            styles.append([f"c{level_of(lane, 0, plan.lanes - 1)}" if warp == 0 else "z" for warp, lane, _ in found])
            labels.append([str(element) for element in elements])
            titles.append([
                f"lane {lane}, register {register}: element {element}"
                + ("" if name == "before" else f", before in warp {place[0]}, lane {place[1]}, register {place[2]}")
                for lane, (place, element) in enumerate(zip(found, elements, strict=True))
            ])  # fmt: skip
        canvas.cells(LEFT, top + 34, (wide, TALL), styles, labels, titles)
        top = canvas.height + 8
        if shown < places.shape[2]:
            canvas.text(4, top + 8, f"the first {shown} of {places.shape[2]} registers", "s")
            top += 18
    legend = "colour: the lane that had the element before, dark for lane 0"
    hatched = "; grey: another warp had it" if plan.warps > 1 else ""
    canvas.text(4, top + 12, f"{legend}{hatched}", "s")


def _place(plan: ConversionPlan, place: int) -> tuple[int, int, int]:
    thread, register = divmod(place, plan.source.registers)
    warp, lane = divmod(thread, plan.lanes)
    return warp, lane, register


def draw_lanes(canvas: Canvas, lanes: int, base: float, wide: float) -> None:
    """Draw the lane numbers above their columns."""
    canvas.text(LEFT - 6, base, "lane", "s e")
    for lane in range(lanes):
        canvas.text(LEFT + lane * wide + wide / 2, base, lane, "s m")


def _busiest(canvas: Canvas, plan: ConversionPlan, access: Access) -> None:
    """Draw the banks of the slowest instruction, if its bank model is known."""
    try:
        model = bank_model(plan.target, access.instruction)
    except RepresentabilityError:
        return
    shape = (access.count, plan.warps, plan.lanes)
    rows = access.addresses().reshape(shape)[:, :, : model.lanes].reshape(-1, model.lanes)
    takes = access.taking(plan.lanes * plan.warps).reshape(shape)[:, :, : model.lanes].reshape(-1, model.lanes)
    issued = [
        [int(at) if part else None for at, part in zip(row, parts, strict=True)]
        for row, parts in zip(rows, takes, strict=True)
        if parts.any()
    ]
    draw_phases(canvas, model, max(issued, key=model.turns), canvas.height + 12)


def draw_alternatives(canvas: Canvas, plan: ConversionPlan | GatherPlan) -> None:
    """Draw the cycles of the plan and its alternatives as bars, or why an alternative is impossible."""
    base = canvas.height + 24
    canvas.text(4, base, f"cycles of the block on {plan.target}, from its instruction costs", "n")
    taken = [each for each in plan.alternatives if each.mechanism == plan.mechanism]
    others = [each for each in plan.alternatives if each.mechanism != plan.mechanism]
    dearest = max([each.cost.cycles for each in plan.alternatives if each.cost is not None], default=0.0)
    for number, each in enumerate([*taken, *others]):
        y = base + 10 + TALL * number
        canvas.text(4, y + 13, each.mechanism, "n" if each in taken else "s")
        if each.cost is None:
            canvas.text(LEFT, y + 13, f"no: {each.because}"[:WORDS], "s")
            continue
        long = max(1.0, BAR * each.cost.cycles / dearest) if dearest else 1.0
        canvas.box(LEFT, y + 2, long, TALL - 4, "c3" if each in taken else "z", str(each))
        canvas.text(LEFT + long + 6, y + 13, f"{each.cost}"[:WORDS], "s")
