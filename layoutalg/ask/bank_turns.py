"""Count the bank turns (wavefronts) of reading or writing a shared tile from the registers of warps or waves.

``ask.bank_moves`` picks the instructions and ``targets.banks`` counts their turns.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from layoutalg import f2
from layoutalg.ask.bank_moves import Move, cure_of, moves
from layoutalg.cute import ComposedLayout, CuteLayout
from layoutalg.draw.canvas import Canvas, draw_value
from layoutalg.draw.phases import draw_phases, lane_spans, phases_text
from layoutalg.f2 import LinearLayout, matrix
from layoutalg.ground.layout import Layout
from layoutalg.ground.listed import ListedLayout, listed
from layoutalg.ground.picture import Shown
from layoutalg.ground.recognize import Departure, linear
from layoutalg.ground.record import Record
from layoutalg.notation import parse_tile
from layoutalg.notation.written import operand_of
from layoutalg.proofs.certify import Certificate
from layoutalg.proofs.certify.banks import bank_turns
from layoutalg.proofs.dtypes import stated_bits
from layoutalg.proofs.padding import CellAccess
from layoutalg.proofs.register_map import CHECK, bit_addresses
from layoutalg.proofs.tile_map import extents_of, layout_of, offsets
from layoutalg.synth.named_accesses import Named, countable, lanes_text, name_of, named, require
from layoutalg.synth.paddings.accesses import read_accesses
from layoutalg.targets.banks import BankModel, Phase, bank_model, disputed_models, unknown
from layoutalg.targets.lds_rules import WAVES
from layoutalg.targets.nvidia.banks import LANES
from layoutalg.targets.registry import TARGETS, lookup

_PHASES = 4
"""Phases that ``why`` shows."""


@dataclass(frozen=True, slots=True)
class BankAccess(Record, Shown, code="LA374", json="instruction warp registers addresses_bytes turns ideal bank lanes"):
    """One instruction of one warp or wave.

    Args:
        instruction: Its name.
        warp: Warp number.
        registers: The registers it moves, in address order.
        addresses_bytes: Byte address of each lane.
        turns: Turns it takes.
        ideal: Turns without conflicts.
        bank: The busiest bank of the slowest group of lanes.
        lanes: The lanes of that group that touch this bank.
    """

    instruction: str
    warp: int
    registers: tuple[int, ...]
    addresses_bytes: tuple[int, ...]
    turns: int
    ideal: int
    bank: int
    lanes: tuple[int, ...]

    def __str__(self) -> str:
        shown = ", ".join(f"{lane}:{self.addresses_bytes[lane]}" for lane in self.lanes[:8])
        more = ", ..." if len(self.lanes) > 8 else ""
        return (
            f"warp {self.warp}, registers {list(self.registers)}: {self.turns} turns instead of {self.ideal}; bank "
            + (f"{self.bank} is touched by lanes (lane:byte) {shown}{more}")
        )


@dataclass(frozen=True, slots=True)
class BankReport(
    Record,
    Shown,
    code="LA374",
    schema="layoutalg/banks/1",
    json="instruction accesses turns ideal conflicts conflict_free target evidence ways lanes cure notes worst step",
):
    """Bank turns of an access.

    Args:
        instruction: The instruction, or the widest of several.
        accesses: Number of instructions, over all warps.
        turns: Their total turns.
        ideal: Their total turns without conflicts.
        worst: The instruction with the most turns above its ideal; the first such.
        target: The target.
        evidence: ``"measured"``, ``"documented"``, or ``"disputed"`` if sources disagree on the lane groups but agree
            on these turns.
        notes: Remarks on the choice of instruction or on the sources.
        ways: The most words one bank serves in sequence, over all lane groups and instructions; 8 is an 8-way conflict.
        lanes: Which elements the lanes access, in words.
        asked: The arguments of the question, reused by ``certificates`` and ``cure``.
    """

    instruction: str
    accesses: int
    turns: int
    ideal: int
    worst: BankAccess
    target: str = "sm_90a"
    evidence: str = "measured"
    notes: tuple[str, ...] = ()
    ways: int = 1
    lanes: str = ""
    asked: tuple[Any, ...] | None = field(default=None, compare=False, repr=False)

    @property
    def conflicts(self) -> int:
        """Turns above the ideal."""
        return self.turns - self.ideal

    @property
    def conflict_free(self) -> bool:
        """Whether the turns are the ideal ones."""
        return not self.conflicts

    @property
    def cure(self) -> Any:
        """A shared layout of the same tile, in the same bytes if possible, that makes this access conflict-free.

        Tried in order: swizzles of the layout (whole 16-byte chunks first), any bijection of the tile linear over F2,
        padding. The result was recounted. None if there is no conflict, if the addresses came without a shared layout,
        or if none of these works.
        """
        if self.conflict_free or self.asked is None or self.asked[1] is None:
            return None
        return cure_of(*self.asked, freed=self._freed)

    @property
    def assumed(self) -> str:
        """How a single CuTe layout, whose modes have no names, was read; empty if nothing was assumed."""
        if self.asked is None or self.asked[1] is not None:
            return ""
        layout = parse_tile(self.asked[0]) if isinstance(self.asked[0], str) else self.asked[0]
        if not isinstance(layout, CuteLayout | ComposedLayout):
            return ""
        name = "ldmatrix" if lookup(self.target).vendor == "nvidia" else "rows"
        return f'read as (thread, value) -> element offset; for a tile in shared memory: banks("{name}", "{layout}")'

    def _cost_of(self, cure: object) -> str:
        """Return in words how many bytes a cure takes, compared with the layout that was asked about."""
        _, shared, bits, _, _, tile, _, _ = self.asked or (None,) * 8
        box = None if tile is None else tuple(tile)
        now, then = (
            -(-(int(offsets(layout, box or extents_of(layout)).max()) + 1) * int(bits or 0) // 8)
            for layout in (layout_of(each, box, max(1, int(bits or 0) // 8)) for each in (shared, cure))
        )
        return f"in the same {now} bytes" if then == now else f"{then} bytes in place of {now}"

    def _freed(self, shared: object) -> bool:
        """Whether the same access is conflict-free under another shared layout."""
        registers, _, bits, kind, target, tile, lanes, warps = self.asked or ()
        return banks(registers, shared, bits, kind, target=target, tile=tile, lanes=lanes, warps=warps).conflict_free

    @property
    def model(self) -> BankModel:
        """The bank model of the worst instruction; the first one if sources disagree."""
        sides = disputed_models(self.target, self.worst.instruction)
        return sides[0][1] if sides else bank_model(self.target, self.worst.instruction)

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The phases of the worst instruction: its groups of lanes served together."""
        return self.model.phases(self.worst.addresses_bytes)

    @property
    def step(self) -> int | None:
        """A lane XOR that keeps the bank and changes the word, for every lane of a group.

        None if there is none or the worst instruction's addresses are not linear over F2.
        """
        return _step(self.model, self.worst.addresses_bytes)

    @property
    def why(self) -> str:
        """Which lanes of the worst instruction conflict in which bank, phase by phase."""
        model, phases = self.model, self.phases
        lines = [str(model)]
        crowded = [(place, phase) for place, phase in enumerate(phases) if phase.turns > phase.least]
        if not crowded:
            lines.append(f"none of its {len(phases)} phases has a conflict")
        else:
            where = f"warp {self.worst.warp}, registers {list(self.worst.registers)}"
            lines.append(f"{where}: conflicts in {len(crowded)} of {len(phases)} phases")
        for place, phase in crowded[:_PHASES]:
            met = ", ".join(f"{lane}:{word}" for lane, word in phase.busy[:8])
            more = ", ..." if len(phase.busy) > 8 else ""
            turns = f"{phase.turns} turns instead of {phase.least}"
            served = f"phase {place} serves lanes {lane_spans(phase.lanes)} in {turns}"
            lines.append(f"{served}; bank {phase.bank} has (lane:word) {met}{more}")
        step = self.step
        if step is not None:
            lines.append(f"in every phase, lanes l and l ^ {step} touch different words of one bank")
        return "\n".join([*lines, *self.notes])

    @property
    def map_text(self) -> str:
        """The words per bank of the worst instruction, one line per phase."""
        return phases_text(self.model, self.worst.addresses_bytes)

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """The turns of all instructions as ``bank-turns`` certificates, one per instruction name.

        Raises: RepresentabilityError: LA436, for an unmeasured target or disputed turns.
        """
        found = []
        for name, each in _named(_asked_again(self)).items():
            rows = np.concatenate([move.addresses for move in each]).reshape(-1)
            found.append(bank_turns(self.target, name, rows))
        return tuple(found)

    @property
    def certificate(self) -> Certificate:
        """The first of ``certificates``; the only one if all instructions have the same name."""
        return self.certificates[0]

    @property
    def witness(self) -> Certificate | None:
        """The certificate of the worst instruction's turns; None if it has no conflict."""
        if self.worst.turns == self.worst.ideal:
            return None
        return bank_turns(self.target, self.worst.instruction, self.worst.addresses_bytes)

    def __str__(self) -> str:
        head = f"{self.accesses} x {self.instruction}: {self.turns} turn{'s' if self.turns != 1 else ''}"
        head += "" if self.conflict_free else " (wavefronts)"
        if self.evidence == "assumed":
            head += f" ({self.model.basis})"
        assumed = [f"note   {self.assumed}"] if self.assumed else []
        if self.conflict_free:
            return "\n".join([f"{head}, free of bank conflicts", *assumed])
        found = [
            f"{head} where {self.ideal} would do, {_article(self.ways)} {self.ways}-way conflict",
            f"worst  {self.worst}",
        ]
        if (cure := self.cure) is not None:
            found.append(f"cure   {cure}: free of bank conflicts, {self._cost_of(cure)}")
        return "\n".join([*found, *assumed])

    def to_json(self) -> dict[str, object]:
        """Return the report as JSON-ready data."""
        return Record.to_json(self) | {"phases": [_phase_json(phase) for phase in self.phases]}


@draw_value.register(BankReport)
def draw_report(report: BankReport, canvas: Canvas, top: float) -> None:
    """Draw the worst instruction's words per bank and phase, before and after the cure."""
    cure = report.cure
    if cure is None or report.asked is None:
        draw_phases(canvas, report.model, report.worst.addresses_bytes, top)
        return
    canvas.text(4, top + 14, f"as it is, {_article(report.ways)} {report.ways}-way conflict:", "h")
    draw_phases(canvas, report.model, report.worst.addresses_bytes, top + 18)
    registers, _, bits, kind, target, tile, lanes, warps = report.asked
    addresses = bit_addresses(registers, cure, bits, tile, lanes, warps, _wave(target))
    same = [move for move in moves(addresses, bits, kind, target)[0] if move.registers == report.worst.registers]
    if same:
        top = canvas.height + 16
        canvas.text(4, top + 14, f"with {cure}:", "h")
        draw_phases(canvas, report.model, same[0].addresses[report.worst.warp].tolist(), top + 18)


def _article(number: int) -> str:
    return "an" if str(number)[0] == "8" or number in (11, 18) else "a"


def _phase_json(phase: Phase) -> dict[str, object]:
    busy = [list(pair) for pair in phase.busy]
    counts = {"turns": phase.turns, "ideal": phase.least, "bank": phase.bank}
    return {"lanes": list(phase.lanes), **counts, "lane_words": busy}


def banks(
    access: object,
    shared: object = None,
    element_bits: int | str | None = None,
    kind: str | None = None,
    *,
    target: str = "sm_90a",
    tile: Sequence[int] | None = None,
    lanes: Sequence[str] | None = None,
    warps: Sequence[str] | None = None,
    operand: str | None = None,
) -> BankReport:
    """Count the bank conflicts of a shared-memory access by one or more warps, and find a layout without them.

    Mathematically: element (register, lane, warp) is at ``shared(access(register, lane, warp))``; turns (wavefronts)
    are counted for every instruction of every warp. One turn serves one word of each bank.

    Args:
        access: A named access to the whole tile by one warp: an instruction (``"ldmatrix"``, ``"ld.shared.v4"``,
            ``"ds_read_b128"``), an operand (``"mma.A"``, ``"mfma.B"``, ``"mma.D"``: fragments by ordinary loads),
            ``"rows"``, ``"columns:store"``; see ``synth.named_accesses``. Or the registers as a layout in any form:
            axes ``register``, ``lane`` and ``warp`` (or ``thread``) to tile coordinates; a CuTe layout or a table from
            (thread, value) to the flat tile coordinate, first dimension fastest; or, with ``shared`` None, either of
            these to element offsets, as ``f2.invert_and_compose`` returns them.
        shared: A layout in any form that ``layoutalg.layout`` reads, from tile coordinates to element offsets.
        element_bits: Element width, a power of two from 4 to 128, or the name of a type; None for that of the texts,
            or 16.
        kind: How registers are moved: ``"load"`` (the default) or ``"store"``, by the widest instruction of up to 128
            bits whose banks are known; ``"ldmatrix"``, ``"ldmatrix.trans"``, ``"stmatrix"``, ``"stmatrix.trans"``; or
            an instruction such as ``"ld.shared.v2.b32"``, ``"ds_read_b128"``. An architecture given here is the target.
        target: ``"sm_90a"``, ``"gfx942"``, ...; waves of gfx90a, gfx942 and gfx950 have 64 lanes.
        tile: Tile extents, if neither layout determines them.
        lanes: Names of the lane axes, fastest first; None for ``lane``.
        warps: Names of the warp axes, fastest first; None for ``warp``.
        operand: Which layout of ``access``, if it is a printed tiled copy or matrix instruction: ``"A"``, ``"B"``,
            ``"C"``; ``"source"``, ``"destination"``.

    Raises: MalformedError: LA340, LA709, LA713, and those of the shared layout. RepresentabilityError: LA712, if
        nobody has published which lanes the instruction serves together, or sources disagree on the turns.

    Example:
        >>> print(banks("ldmatrix", "(16,64):(64,1)"))
        4 x ldmatrix.x4: 128 turns (wavefronts) where 16 would do, an 8-way conflict
        worst  warp 0, registers [0, 1, 2, 3, 4, 5, 6, 7]: 32 turns instead of 4; bank 0 is touched by lanes \
(lane:byte) 0:0, 1:128, 2:256, 3:384, 4:512, 5:640, 6:768, 7:896
        cure   Sw<3,3,3> o 0 o (16,64):(64,1): free of bank conflicts, in the same 2048 bytes
        >>> from layoutalg.targets.layouts.nvidia import mma_operand
        >>> fragment = mma_operand("A", (16, 64), (1, 1), 2)
        >>> print(banks(fragment, "Sw<3,3,3> o 0 o (16,64):(64,1)", kind="ldmatrix"))
        4 x ldmatrix.x4: 16 turns, free of bank conflicts

        >>> rows = "(64,4):(64,1)"  # each lane of a wave reads 4 elements of its own row
        >>> print(banks(rows, None, 32, target="gfx942").why)
        ds_read_b128 of gfx942: 16 bytes a lane, 8 groups of 8 lanes, 32 banks (measured)
        warp 0, registers [0, 1, 2, 3]: conflicts in 8 of 8 phases
        phase 0 serves lanes 0-3 20-23 in 8 turns instead of 1; bank 0 has (lane:word) 0:0, 1:64, 2:128, 3:192, \
20:1280, 21:1344, 22:1408, 23:1472
        phase 1 serves lanes 4-7 16-19 in 8 turns instead of 1; bank 0 has (lane:word) 4:256, 5:320, 6:384, 7:448, \
16:1024, 17:1088, 18:1152, 19:1216
        phase 2 serves lanes 8-11 28-31 in 8 turns instead of 1; bank 0 has (lane:word) 8:512, 9:576, 10:640, 11:704, \
28:1792, 29:1856, 30:1920, 31:1984
        phase 3 serves lanes 12-15 24-27 in 8 turns instead of 1; bank 0 has (lane:word) 12:768, 13:832, 14:896, \
15:960, 24:1536, 25:1600, 26:1664, 27:1728
        in every phase, lanes l and l ^ 1 touch different words of one bank

    Source: ``targets.nvidia.banks``, measured on an H200; for AMD ``targets.lds_rules``.
    """
    bits = stated_bits(element_bits, access, shared, check=CHECK)
    if bits not in (4, 8, 16, 32, 64, 128):
        raise CHECK.malformed("element_bits", "must be a power of two from 4 to 128", bits)
    if kind is not None and CHECK.kind(kind, str, "kind") in TARGETS:
        target, kind = kind, None
    arch = CHECK.kind(target, str, "target")
    wave = _wave(arch)
    access = access if operand is None else operand_of(access, operand)
    registers: object = access
    said = name_of(access)
    if said is None and (said := name_of(shared)) is not None:
        registers, shared = shared, access
    lanes_are = "as the layout of registers says"
    if said is not None:
        require(said, [arch])
        if not said.name.startswith("ds_"):
            countable(said)
        registers, kind, tile = _of_name(said, shared, bits, kind, tile, arch)
        lanes_are = lanes_text(said, bits, arch, tile)
    kind = "load" if kind is None else kind
    addresses = bit_addresses(registers, shared, bits, tile, lanes, warps, wave)
    moved, notes = moves(addresses, bits, kind, arch)
    if not moved:
        raise CHECK.malformed("registers", "must have at least one element", 0)
    return _report(arch, moved, notes, (registers, shared, bits, kind, arch, tile, lanes, warps), lanes_are)


def _wave(arch: str) -> int:
    return WAVES[arch] if arch in WAVES else LANES if lookup(arch).vendor == "nvidia" else lookup(arch).lanes


def _of_name(
    said: Named, shared: object, bits: int, kind: str | None, tile: Sequence[int] | None, target: str
) -> tuple[Layout, str, tuple[int, ...]]:
    """Return the registers of a named access, how they are moved, and the tile extents."""
    name = said.name
    if shared is None:
        raise CHECK.malformed("shared", f"must be the shared layout of the tile for {name}", None)
    size = max(1, bits // 8)
    extents = extents_of(layout_of(shared, tile, size)) if tile is None else CHECK.vector(tile, "tile", low=1)
    if said.is_instruction and kind not in (None, name, said.move):
        raise CHECK.malformed("kind", f"must be omitted for {name}, which is itself an instruction", kind)
    how = kind or (said.name if said.is_instruction else said.by(bits, target))
    if any(extent & (extent - 1) for extent in extents):
        if said.is_operand:
            rule = f"must be a tile with power-of-two extents for {name}; for others give the registers as a layout"
            raise CHECK.malformed("shared", rule, extents)
        (asked,) = read_accesses([str(said)], tuple(extents), bits, [target])
        how = kind or asked.access.instruction(target)
        return _of_cells(said, asked.access, tuple(extents), bits), how, tuple(extents)
    return named(said, tuple(extents), bits, target), how, tuple(extents)


def _of_cells(said: Named, access: CellAccess, extents: tuple[int, ...], bits: int) -> ListedLayout:
    """Return a named access to a tile of any extents as a table from (lane, register) to flat tile coordinates."""
    if None in itertools.chain(*access.cells):
        rule = f"must be moved by {said} with all lanes active; layoutalg.padding also counts idle ones"
        raise CHECK.malformed("shared", rule, extents)
    cells, held = access.table, access.bits // bits
    if said.is_matrix:  # lane l has row l / 4 and word l % 4 of each matrix; transposed, column l / 4
        rows, lane, word = cells.reshape(-1, 8), np.arange(LANES), np.arange(max(1, 32 // bits))
        first, second = lane // 4, (lane % 4)[:, None] * len(word) + word
        picked = rows[:, second] + first[:, None] if said.name.endswith("trans") else rows[:, first, None] + second
    else:
        picked = cells[:, :, None] + np.arange(held)
    flat = picked.transpose(1, 0, 2).reshape(picked.shape[1], -1)
    return listed(np.ravel_multi_index(np.unravel_index(flat, extents), extents, order="F"))


def _asked_again(report: BankReport) -> list[Move]:
    if report.asked is None:
        raise CHECK.malformed("report", "must come from layoutalg.banks to have certificates for all accesses", None)
    registers, shared, bits, kind, target, tile, lanes, warps = report.asked
    addresses = bit_addresses(registers, shared, bits, tile, lanes, warps, _wave(str(target)))
    return moves(addresses, bits, kind, str(target))[0]


def _named(moved: list[Move]) -> dict[str, list[Move]]:
    found: dict[str, list[Move]] = {}
    for move in moved:
        found.setdefault(move.instruction, []).append(move)
    return found


def _report(target: str, moved: list[Move], notes: tuple[str, ...], asked: tuple[Any, ...], lanes: str) -> BankReport:
    sides = disputed_models(target, moved[0].instruction)
    if not sides:
        return _counted(target, moved, notes, asked, lanes, None)
    found = [(says, _counted(target, moved, notes, asked, lanes, model)) for says, model in sides]
    told = [f"{says}: {each.turns} turns where {each.ideal} would do" for says, each in found]
    if len({each.turns for _, each in found}) > 1:
        raise unknown(target, moved[0].instruction, f"sources disagree on it: {'; '.join(told)}")
    first = found[0][1]
    extra = (f"sources disagree on the lane groups but agree on these turns: {'; '.join(told)}",)
    return replace(first, evidence="disputed", notes=(*notes, *extra))


def _counted(
    target: str,
    moved: list[Move],
    notes: tuple[str, ...],
    asked: tuple[Any, ...],
    lanes: str,
    given: BankModel | None,
) -> BankReport:
    turns = ideal = accesses = 0
    ways = 1
    worst: tuple[int, Move, int] | None = None
    for name, same in _named(moved).items():
        model = given or bank_model(target, name)
        taken, least = model.group_turns(np.concatenate([move.addresses for move in same]))
        excess = (taken - least).sum(axis=1)
        turns, ideal, accesses = turns + int(taken.sum()), ideal + int(least.sum()), accesses + len(taken)
        ways = max(ways, int(taken[excess > 0].max(initial=1)))
        if worst is None or excess.max() > worst[0]:
            number, warp = divmod(int(excess.argmax()), len(same[0].addresses))
            worst = int(excess.max()), same[number], warp
    if worst is None:
        raise CHECK.malformed("registers", "must have at least one element", 0)
    _, move, warp = worst
    model = given or bank_model(target, move.instruction)
    row = tuple(move.addresses[warp].tolist())
    phases = model.phases(row)
    most = max(phases, key=lambda phase: phase.turns)  # the first of equals
    busy = tuple(sorted({lane for lane, _ in most.busy}))
    counts = sum(phase.turns for phase in phases), sum(phase.least for phase in phases)
    access = BankAccess(move.instruction, warp, move.registers, row, *counts, most.bank, busy)
    head = (moved[0].instruction, accesses, turns, ideal, access, target, model.evidence, notes)
    return BankReport(*head, ways=ways, lanes=lanes, asked=asked)


def _step(model: BankModel, addresses: Sequence[int]) -> int | None:
    """Return a lane XOR that keeps the bank and changes the word, if the addresses are linear."""
    columns = linear(np.array(addresses, dtype=np.int64))
    if isinstance(columns, Departure) or model.access_bytes == 12:
        return None
    unit = model.access_bytes
    images = [(matrix.apply(columns[0], step) // unit,) for step in model.space]
    reach = 1 << max(1, max(image for (image,) in images).bit_length())
    group = LinearLayout.from_bases({"lane": images}, {"offset": reach})
    found = f2.bank_conflict(group, 8 * unit, banks=model.banks)
    if found is None:
        return None
    return matrix.apply(model.space, found["lane"])
