"""Draw how elements move between registers: conversions, gathers and shuffles.

Notation: columns are lanes and rows are registers (or indices of a gather) of the first warp; a cell shows its element,
in the colour of the lane that had the element before, so that movement between lanes is visible.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from layoutalg.draw.canvas import TALL, Canvas, Cell, cut, draw_value, level_of, many
from layoutalg.draw.phases import draw_phases
from layoutalg.ground.errors import RepresentabilityError
from layoutalg.proofs.conversion import ConversionPlan
from layoutalg.proofs.conversion_steps import Access, Read, Through
from layoutalg.proofs.exchange import Choose, Exchange, Move, Rename, Take
from layoutalg.proofs.factorisation import Factorisation
from layoutalg.proofs.gather import GatherPlan
from layoutalg.proofs.listed_access import UNCOUNTED
from layoutalg.proofs.shuffle import NONE, ShufflePlan
from layoutalg.targets.banks import bank_model

LEFT = 84.0
REGISTERS, SHUFFLED, INDICES, ROUNDS = 16, 32, 32, 10
"""Most registers of a conversion and of a shuffle, indices of a gather, and rounds drawn."""
WORDS, FACTOR_WORDS = 150, 120
"""Characters per line of a plan, and of a factor."""
BAR = 320.0
"""Width of the longest cost bar."""


def steps_text(plan: ConversionPlan) -> tuple[str, ...]:
    """Return what a thread does, one line per step."""
    return tuple(_step_text(step, plan.lanes) for step in plan.steps)


def _step_text(step: Any, lanes: int) -> str:
    if isinstance(step, Take):
        permuted = f", {many(step.permutes, 'byte permutation')}" if step.permutes else ", without an instruction"
        return f"take: {many(len(step.registers), 'element')} of the same thread{permuted}"
    if isinstance(step, Read):
        return f"read: {many(len(step.taken), 'word')}, {step.shuffles(lanes)} of them from other lanes by shuffles"
    if isinstance(step, Through):
        passes = f" in {step.passes} passes" if step.passes > 1 else ""
        ends = f"store with {_issued(step.store)}, {step.barrier} barrier, load with {_issued(step.load)}"
        held = f"{step.smem_bytes // step.blocks} bytes of shared memory"
        return f"through {held}{f' in each of {step.blocks} blocks' if step.blocks > 1 else ''}{passes}: {ends}"
    if isinstance(step, ShufflePlan):
        return f"shuffle: {many(len(step.rounds), 'round')}, each a word from another lane"
    return _OTHERS[type(step)]


_OTHERS = {
    Choose: "choose: each word is one of two of the thread's own, selected by lane",
    Exchange: "exchange: of each pair of words a lane keeps one and sends the other to its partner",
    Move: "move: words from other lanes by shuffles",
    Rename: "rename: words get new numbers, without an instruction",
}


def _issued(access: Access) -> str:
    turns = "an unknown number of turns" if access.turns == UNCOUNTED else many(access.turns, "turn")
    return f"{access.count} {access.instruction} ({turns})"


@draw_value.register(ConversionPlan)
def draw_conversion(plan: ConversionPlan, canvas: Canvas, top: float) -> None:
    """Draw the registers before and after, the steps, the banks used, and the alternatives."""
    for place, line in enumerate(str(plan).splitlines()[:3]):
        canvas.text(4, top + 14 + 18 * place, " ".join(cut(line.strip(), WORDS).split()), "s" if place else "h")
    _registers(canvas, plan, top + 62)
    base = canvas.height + 22
    canvas.text(4, base, "what a thread does", "n")
    lines = steps_text(plan) or ("nothing: the layouts are equal",)
    canvas.lines(20, base + 18, (f"{number}. {line}" for number, line in enumerate(lines, 1)), 18)
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
        shown = min(places.shape[2], REGISTERS)
        cells: list[list[Cell]] = []
        for register in range(shown):
            found = [_place(plan, int(place)) for place in places[0, :, register]]
            elements = [str(int(held[place])) for place in found]
            befores = [
                "" if name == "before" else f", before in warp {was[0]}, lane {was[1]}, register {was[2]}"
                for was in found
            ]
            cells.append([
                (
                    f"c{level_of(lane, 0, plan.lanes - 1)}" if warp == 0 else "z",
                    element,
                    f"lane {at}, register {register}: element {element}{before}",
                )
                for at, ((warp, lane, _), element, before) in enumerate(zip(found, elements, befores, strict=True))
            ])  # fmt: skip
        draw_lanes(canvas, plan.lanes, LEFT, top + 30, wide)
        names = [f"register {register}" for register in range(shown)]
        canvas.cells(LEFT, top + 34, (wide, TALL), cells, down=names, gap=6)
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


def draw_lanes(canvas: Canvas, lanes: int, left: float, base: float, wide: float) -> None:
    """Draw the lane numbers above their columns."""
    canvas.text(left - 6, base, "lane", "s e")
    for lane in range(lanes):
        canvas.text(left + lane * wide + wide / 2, base, lane, "s m")


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


@draw_value.register(GatherPlan)
def draw_gather(plan: GatherPlan, canvas: Canvas, top: float) -> None:
    """Draw the elements that the first register's indices select, and the alternatives."""
    for place, line in enumerate(str(plan).splitlines()[:4]):
        canvas.text(4, top + 14 + 18 * place, cut(" ".join(line.split()), WORDS), "s" if place else "h")
    top += 80
    lanes, shown = plan.index.lanes, min(plan.extent, INDICES)
    canvas.text(4, top + 12, f"the element that each index along {plan.axis} selects, register 0 of warp 0", "n")
    elements = plan.wanted()[0, :, :, 0]
    count = plan.source.registers * lanes * plan.source.warps
    places = plan.every(np.arange(count).reshape(plan.source.warps, lanes, -1))[0, :, :, 0]
    wide = max(20.0, 7.0 * len(str(int(elements.max()))) + 5)
    cells: list[list[Cell]] = []
    for index in range(shown):
        threads, registers = np.divmod(places[:, index], plan.source.registers)
        cells.append([
            (
                f"c{level_of(int(thread) % lanes, 0, lanes - 1)}" if thread < lanes else "z",
                str(int(element)),
                f"lane {lane}, index {index}: element {int(element)}, in warp {int(thread) // lanes}, "
                f"lane {int(thread) % lanes}, register {int(register)}",
            )
            for lane, (thread, register, element) in enumerate(zip(threads, registers, elements[:, index], strict=True))
        ])  # fmt: skip
    draw_lanes(canvas, lanes, LEFT, top + 30, wide)
    names = [f"index {index}" for index in range(shown)]
    canvas.cells(LEFT, top + 34, (wide, TALL), cells, down=names, gap=6)
    base = canvas.height + 8
    rest = f"the first {shown} of {plan.extent} indices; " if shown < plan.extent else ""
    others = "; grey: another warp has it" if plan.source.warps > 1 else ""
    canvas.text(4, base + 12, f"{rest}colour: the lane that has the element, dark for lane 0{others}", "s")
    draw_alternatives(canvas, plan)


@draw_value.register(Factorisation)
def draw_factorisation(found: Factorisation, canvas: Canvas, top: float) -> None:
    """Draw the factors as text, the residual as shuffles, and the carried part."""
    carrier = f"{found.plan.consumer} on {found.plan.target}, {found.plan.dtype}"
    least = ", the least" if found.least and found.rounds else ""
    shuffled = f"{many(found.rounds, 'shuffle')} per thread" if found.rounds else "no shuffle"
    canvas.text(4, top + 14, f"factored for {carrier}: {shuffled}{least}", "h")
    facts = [("layout", found.layout), ("carried", found.carried), ("residual", found.residual)]
    facts += [("unique", found.unique), *(found.costs.items() if found.rounds else ())]
    for place, (name, value) in enumerate(facts):
        cheapest = ", the cheapest way" if name == found.cheapest else ""
        canvas.text(4, top + 36 + 18 * place, name, "s")
        canvas.text(80, top + 36 + 18 * place, cut(f"{value}{cheapest}", FACTOR_WORDS), "n")
    if found.rounds:
        draw_shuffles(found.shuffles, canvas, canvas.height + 10)
    canvas.text(4, canvas.height + 24, "the carried part", "h")
    draw_value(found.plan, canvas, canvas.height + 2)


@draw_value.register(ShufflePlan)
def draw_shuffles(plan: ShufflePlan, canvas: Canvas, top: float) -> None:
    """Draw the word that each register of warp 0 receives and in which round, then the rounds."""
    warps = f", warp 0 of {plan.warps}" if plan.warps > 1 else ""
    canvas.text(4, top + 14, f"the word each register receives (lane.register), coloured by source lane{warps}", "n")
    source = plan.source()[0]
    rounds = _rounds(plan)
    registers = min(plan.registers, SHUFFLED)
    cells: list[list[Cell]] = []
    for register in range(registers):
        words = (source[:, register] % (plan.lanes * plan.registers)).tolist()
        cells.append([
            (
                f"c{level_of(lane, 0, plan.lanes - 1)}" if rounds[at][register] >= 0 else "z",
                f"{lane}.{word}",
                f"lane {at}, register {register}: lane {lane}, register {word}, {_when(rounds[at][register])}",
            )
            for at, (lane, word) in enumerate(divmod(word, plan.registers) for word in words)
        ])  # fmt: skip
    longest = max(len(label) for row in cells for _, label, _ in row)
    size = (max(22.0, 7.0 * longest + 4), TALL)
    left, base = 76.0, top + 40
    draw_lanes(canvas, plan.lanes, left, base - 4, size[0])
    canvas.cells(left, base, size, cells, down=[f"register {register}" for register in range(registers)], gap=6)
    _note(canvas, plan.registers, registers, "registers")
    canvas.text(4, canvas.height + 14, "coloured: shuffled from another lane; grey: stays in its lane", "s")
    if plan.rounds:
        _draw_rounds(canvas, plan, canvas.height + 12, left)


def _draw_rounds(canvas: Canvas, plan: ShufflePlan, top: float, left: float) -> None:
    """Draw each round: the lane that each lane reads, and the registers that it offers and writes."""
    drawn = min(len(plan.rounds), ROUNDS)
    canvas.text(4, top + 14, "rounds of shfl.sync.idx, lane by lane", "n")
    base, wide = top + 40, 24.0
    draw_lanes(canvas, plan.lanes, left + 60, base - 4, wide)
    for number, each in enumerate(plan.rounds[:drawn]):
        rows = (("offers", each.send[0]), ("reads lane", each.read[0]), ("writes", each.into[0]))
        y = base + number * (3 * TALL + 6)
        canvas.text(4, y + TALL + 13, f"round {number}", "s")
        idle = [into == NONE for into in each.into[0]]
        notes = [
            f"round {number}, lane {lane}: offers register {each.send[0][lane]}, reads lane {each.read[0][lane]}, "
            + ("writes nothing" if idle[lane] else f"writes register {each.into[0][lane]}")
            for lane in range(plan.lanes)
        ]
        cells: list[list[Cell]] = [
            [
                (
                    "z" if idle[lane] or name != "reads lane" else f"c{level_of(value, 0, plan.lanes - 1)}",
                    "" if idle[lane] and name != "offers" else str(value),
                    notes[lane],
                )
                for lane, value in enumerate(values)
            ]
            for name, values in rows
        ]
        canvas.cells(left + 60, y, (wide, TALL), cells, down=[name for name, _ in rows], gap=6)
    canvas.text(4, canvas.height + 14, "registers offered and written; lanes that write nothing stay empty", "s")
    _note(canvas, len(plan.rounds), drawn, "rounds")


def _note(canvas: Canvas, whole: int, drawn: int, what: str) -> None:
    if drawn < whole:
        canvas.text(4, canvas.height + 14, f"the first {drawn} of {whole} {what}", "s")


def _rounds(plan: ShufflePlan) -> list[list[int]]:
    """The round that writes each register of warp 0, [lane][register]; -1 if the word stays in its lane."""
    found = [[-1] * plan.registers for _ in range(plan.lanes)]
    for number, each in enumerate(plan.rounds):
        for lane, into in enumerate(each.into[0]):
            if into != NONE:
                found[lane][into] = number
    return found


def _when(number: int) -> str:
    return "stays in its lane" if number < 0 else f"in round {number}"
