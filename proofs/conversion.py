"""Register conversion plans: the steps of a thread, re-executed on labels, with their costs.

A register layout maps a place (register, lane, warp) to an element, a packed tensor coordinate; several places may map
to one element. A plan is correct if, after its steps, every destination place has the element that the destination
layout names.

A kernel executes ``plan.steps`` in order, each a ``Take``, ``Choose``, ``Exchange``, ``Move``, ``Rename``, ``Read``,
``ShufflePlan`` or ``Through`` (``proofs.conversion_steps``, ``proofs.exchange``). A thread starts with
``source.registers`` elements and ends with ``destination.registers``, ``plan.packed`` of them to a 32-bit word: element
e is part e % packed of word e // packed, and the last word may be partial. A ``Take`` may change the packing, down to
one element per word and back; the parts above a lone element are undefined. Elements wider than a word are
``plan.element_bits // 32`` words that move together; ``packed`` is then 1.

``check`` runs the steps on element labels, which enumerates all places, and counts bank turns from addresses. It shares
no code with the finder.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.f2 import LinearLayout, matrix
from layoutalg.ground.errors import LayoutError
from layoutalg.ground.listed import ListedLayout
from layoutalg.ground.picture import Shown
from layoutalg.ground.record import Checked, Record
from layoutalg.hierarchy import conversion_profile
from layoutalg.proofs.certify import Certificate
from layoutalg.proofs.certify.algebra import composition
from layoutalg.proofs.conversion_steps import WORD_BITS, WRONG, Access, Read, Step, Through, ran
from layoutalg.proofs.exchange import Choose, Exchange, Move, Take
from layoutalg.proofs.listed_access import CHECK, UNCOUNTED
from layoutalg.proofs.register_words import Lowering, Mixed
from layoutalg.proofs.shuffle import ShufflePlan
from layoutalg.targets.bank_counting import TURN_BYTES
from layoutalg.targets.instruction_costs import InstructionCosts, instruction_costs
from layoutalg.targets.registry import asked_bits, lookup
from layoutalg.targets.target_model import model_of

IntArray: TypeAlias = npt.NDArray[np.int64]
MECHANISMS = ("nothing", "registers", "shuffles", "shared", "matrices", "cluster")
MOST_CYCLES = 1e15


@dataclass(frozen=True, slots=True)
class Held(Checked, code="LA930"):
    """A register layout: the element at each place (register, lane, warp)."""

    # from the axes register, lane, warp, in this order, to one axis, the packed element; None with a table
    layout: LinearLayout | None
    # the elements [warp][lane][register] of a layout that is not linear
    table: tuple[tuple[tuple[int, ...], ...], ...] | None
    registers: int  # elements per thread
    lanes: int  # lanes of a warp
    warps: int  # number of warps

    def _validate(self) -> None:
        if (self.layout is None) == (self.table is None):
            raise CHECK.malformed("layout", "must be given if and only if table is None", self.layout)
        counts = (self.warps, self.lanes, self.registers)
        if self.layout is not None:
            fits = tuple(1 << bits for _, bits in reversed(self.layout.in_axes)) == counts
        else:
            rows = {len(lane) for warp in self.table or () for lane in warp}
            lanes = {len(warp) for warp in self.table or ()}
            fits = (len(self.table or ()), lanes, rows) == (self.warps, {self.lanes}, {self.registers})
        if not fits or min(counts) < 1:
            raise CHECK.malformed("registers", "must match the layout, and so must lanes and warps", counts)

    def register_excess(self, element_bits: int, target: str, blocks: int = 1) -> str:
        """Return the register limit of the target that the layout exceeds, with both numbers; "" within the limits."""
        words = -(-self.registers * element_bits // WORD_BITS)
        return model_of(target).register_excess(words, self.lanes * self.warps // blocks)

    def elements(self) -> IntArray:
        """Return the element of every place: int64[warp, lane, register]."""
        if self.layout is None:
            return np.array(self.table, dtype=np.int64)
        flat = matrix.table(self.layout.columns, self.layout.constant)
        return flat.reshape(self.warps, self.lanes, -1)

    def with_blocks(self, blocks: int) -> LinearLayout | None:
        """Return the layout with the block, by which warps are numbered, as an axis of its own; None with a table."""
        if self.layout is None:
            return None
        register, lane, (warp, bits) = self.layout.in_axes
        high = blocks.bit_length() - 1
        return replace(self.layout, in_axes=(register, lane, (warp, bits - high), ("block", high)))

    def to_json(self) -> dict[str, object]:
        """Return the layout as JSON-ready data."""
        said: object = self.table if self.layout is None else str(self.layout)
        return {"layout": said, "registers": self.registers, "lanes": self.lanes, "warps": self.warps}


@dataclass(frozen=True, slots=True)
class ConversionCost(Record, code="LA930"):
    """Instructions of a thread, bank turns of all warps, and estimated cycles.

    Args:
        shuffles: Word shuffles.
        selects: Selects.
        permutes: Byte permutes.
        accesses: Shared-memory loads and stores.
        turns: Bank turns of all warps; a lower bound if the bank model of an access is unknown.
        barriers: Barriers.
        cycles: Multiprocessor cycles for the block, by the target's cost table.
    """

    shuffles: int
    selects: int
    permutes: int
    accesses: int
    turns: int
    barriers: int
    cycles: float

    def _validate(self) -> None:
        if not 0 <= self.cycles < MOST_CYCLES:
            raise CHECK.malformed("cycles", f"must be in [0, {MOST_CYCLES:g})", self.cycles)

    def __str__(self) -> str:
        named = {"shuffle": self.shuffles, "select": self.selects, "byte permutation": self.permutes,
                 "access": self.accesses, "turn": self.turns, "barrier": self.barriers}  # fmt: skip
        told = [f"{count} {name}{('es' if name[-1] == 's' else 's') if count > 1 else ''}"
                for name, count in named.items() if count]  # fmt: skip
        return f"{', '.join(told) or 'no instruction'} ({self.cycles:g} cycles)"


@dataclass(frozen=True, slots=True)
class Alternative(Record, code="LA930", json="mechanism because smem_bytes cost"):
    """A mechanism that was considered, and why it was or was not chosen."""

    mechanism: str  # its name
    because: str  # why it was rejected, or that it was chosen
    cost: ConversionCost | None = None  # its cost; None if it cannot do the conversion
    smem_bytes: int = 0  # shared memory it needs
    steps: tuple[Step, ...] = ()  # its steps; empty if it cannot do the conversion or there is nothing to do
    least: bool = field(default=False, repr=False)  # as in the plan

    @property
    def cycles(self) -> float:
        """Its cycles; infinite if it cannot do the conversion."""
        return float("inf") if self.cost is None else self.cost.cycles

    def __str__(self) -> str:
        where = f", {self.smem_bytes} bytes" if self.smem_bytes else ""
        return f"{self.mechanism:<12}{'no' if self.cost is None else self.cost}{where}: {self.because}"


@dataclass(frozen=True, slots=True)
class ConversionPlan(
    Record,
    Shown,
    code="LA930",
    schema="layoutalg/conversion/1",
    json="mechanism target element_bits source destination packed rounds least smem_bytes why blocks? cost steps "
    "alternatives",
):
    """How threads convert one register layout into another.

    Args:
        source: Layout before.
        destination: Layout after.
        element_bits: Bits of an element.
        target: The target whose costs were compared.
        mechanism: ``"nothing"``, ``"registers"``, ``"shuffles"``, ``"shared"``, ``"matrices"`` or ``"cluster"``.
        steps: The steps of a thread.
        cost: Their cost.
        why: Why this mechanism.
        alternatives: All mechanisms considered, this one included.
        least: Whether the number of shuffles is proved minimal; mechanism ``"shuffles"`` only.
        blocks: Blocks of the cluster; the layouts number their warps block after block.

    Example:
        >>> place = LinearLayout.identity({"register": 2, "lane": 32, "warp": 1})
        >>> held = Held(LinearLayout(place.in_axes, (("element", 6),), place.columns), None, 2, 32, 1)
        >>> free = ConversionCost(0, 0, 0, 0, 0, 0, 0.0)
        >>> plan = ConversionPlan(held, held, 32, "sm_90a", "nothing", (), free, "all is there", ())
        >>> plan.check().rounds, plan.certificate.kind
        (0, 'composition')
    """

    source: Held
    destination: Held
    element_bits: int
    target: str
    mechanism: str
    steps: tuple[Step, ...]
    cost: ConversionCost
    why: str
    alternatives: tuple[Alternative, ...] = field(repr=False)
    least: bool = False
    blocks: int = 1

    def _validate(self) -> None:
        CHECK.choice(self.mechanism, "mechanism", MECHANISMS)
        lookup(self.target)
        asked_bits(CHECK, self.element_bits)
        if (self.source.lanes, self.source.warps) != (self.destination.lanes, self.destination.warps):
            raise CHECK.malformed("destination", "must have the lanes and warps of the source", self.destination.warps)
        if self.blocks < 1 or self.source.warps % self.blocks:
            raise CHECK.malformed("blocks", f"must divide the {self.source.warps} warps", self.blocks)
        if any(isinstance(step, Through) and step.blocks not in (1, self.blocks) for step in self.steps):
            raise CHECK.malformed("steps", f"must be for {self.blocks} blocks", str(self.steps))

    @property
    def packed(self) -> int:
        """Elements per 32-bit word, before and after."""
        return max(1, WORD_BITS // self.element_bits)

    @property
    def lanes(self) -> int:
        """Lanes of a warp."""
        return self.source.lanes

    @property
    def warps(self) -> int:
        """Number of warps."""
        return self.source.warps

    @property
    def rounds(self) -> int:
        """Shuffles per thread, or passes through shared memory."""
        passes = sum(step.passes for step in self.steps if isinstance(step, Through))
        return passes or self.cost.shuffles

    @property
    def smem_bytes(self) -> int:
        """Shared memory per block, in bytes."""
        return max((step.smem_bytes // step.blocks for step in self.steps if isinstance(step, Through)), default=0)

    @property
    def excess(self) -> str:
        """The register limit of the target that one of the layouts exceeds, so that it spills; "" within the limits."""
        ends = (self.source, self.destination)
        return next(
            filter(None, (end.register_excess(self.element_bits, self.target, self.blocks) for end in ends)), ""
        )

    def run(self, elements: Any) -> IntArray:
        """Return the registers after the steps.

        Args:
            elements: The registers before: any integers, indexed by warp, lane and register.
        """
        held = np.asarray(elements, dtype=np.int64)
        shape = (self.warps, self.lanes, self.source.registers)
        if held.shape != shape:
            raise WRONG.malformed("elements", f"must have the shape {shape}", held.shape)
        packed = self.packed
        for step in self.steps:
            held, packed = ran(step, held, packed, self.element_bits)
        if packed != self.packed:
            raise WRONG.malformed("steps", f"must end with {self.packed} elements per word", packed)
        return held

    def check_elements(self) -> ConversionPlan:
        """Return the plan after running its steps on element labels.

        Raises: MalformedError: LA931, with the first place that gets the wrong element.
        """
        found, wanted = self.run(self.source.elements()), self.destination.elements()
        if found.shape != wanted.shape:
            raise WRONG.malformed("steps", f"must end with registers of shape {wanted.shape}", found.shape)
        if (found != wanted).any():
            warp, lane, register = (int(part) for part in np.argwhere(found != wanted)[0])
            place = f"register {register} of lane {lane} of warp {warp}"
            rule = f"must move element {int(wanted[warp, lane, register])} to {place}"
            raise WRONG.malformed("steps", rule, int(found[warp, lane, register]))
        return self

    def check(self) -> ConversionPlan:
        """Return the plan after running its steps on labels and recounting its instructions and turns.

        Raises: MalformedError: LA931, with the first place that gets the wrong element, or the wrong count.
        """
        self.check_elements()
        for step in self.steps:
            for access in (step.store, step.load) if isinstance(step, Through) else ():
                turns = access.counted(self.target, self.lanes)
                if turns != access.turns:
                    raise WRONG.malformed("turns", f"must be {turns} for {access.instruction}", access.turns)
        again = counted(self.steps, self.source, self.element_bits, instruction_costs(self.target))
        if again != self.cost:
            raise WRONG.malformed("cost", f"must be {again}", str(self.cost))
        return self

    @property
    def moved(self) -> LinearLayout | ListedLayout:
        """The source place that the steps copy to each destination place.

        Places are numbered register + registers * (lane + lanes * warp).
        """
        count = self.source.registers * self.lanes * self.warps
        places = self.run(np.arange(count, dtype=np.int64).reshape(self.warps, self.lanes, -1)).reshape(-1)
        return place_map(places, count)

    @property
    def certificate(self) -> Certificate:
        """Proof that the steps fetch the destination's element from the source, for every place."""
        return composition(flat_layout(self.source), self.moved, flat_layout(self.destination))

    @property
    def movement(self) -> str:
        """How many values stay in their thread, and across what the others must move.

        Values are counted by ``hierarchy.conversion_profile``: once for each destination place. Empty for tables, and
        if the source holds copies: any of them may serve.
        """
        source, destination = (end.with_blocks(self.blocks) for end in (self.source, self.destination))
        if source is None or destination is None or not source.is_injective:
            return ""
        try:
            profile = conversion_profile(source, destination)
        except LayoutError:  # the source lacks an element: for ``check`` to say
            return ""
        stay, lanes, warps, blocks, _ = profile.traffic.values()
        more = f", {blocks} change blocks" if self.blocks > 1 else ""
        text = f"{stay} of {profile.active} values stay in their thread, {lanes} change lanes, {warps} change warps"
        return text + more

    def __str__(self) -> str:
        least = ", the minimum" if self.least and self.cost.shuffles else ""
        lines = [
            f"conversion    {self.mechanism}: {self.cost}{least}",
            f"  from        {told(self.source)}",
            f"  to          {told(self.destination)}",
            *([f"  moves       {movement}"] if (movement := self.movement) else []),
            f"  why         {self.why}",
        ]
        if self.excess:
            lines.append(f"  spills      {self.excess}")
        for step in self.steps:
            if isinstance(step, Through):
                held = f"{step.smem_bytes // step.blocks} bytes{_of(step.blocks)}"
                lines.append(
                    f"  shared      {held}, {step.passes} pass{'es' if step.passes > 1 else ''}, "
                    f"{step.store.instruction} then {step.load.instruction}, barrier of the {step.barrier}"
                )
        lines += [f"  {other}" for other in self.alternatives if other.mechanism != self.mechanism]
        return "\n".join(lines)

    def to_json(self) -> dict[str, object]:
        """Return the plan as JSON-ready data."""
        return Record.to_json(self) | ({"excess": self.excess} if self.excess else {})


def counted(steps: tuple[Step, ...], source: Held, element_bits: int, costs: InstructionCosts) -> ConversionCost:
    """Return the instruction counts and cycles of steps.

    Warps of a block share the multiprocessor (``InstructionCosts.taken``); a latency is paid once for each step that
    waits for the previous one. Three costs are unmeasured assumptions: reading an address table is an access of one
    turn, another block's shared memory costs the same as one's own, and a cluster barrier the same as a block barrier.
    """
    work = _Counting(source, element_bits)
    accesses = turns = barriers = turns_of_tables = 0
    blocks = max((step.blocks for step in steps if isinstance(step, Through)), default=1)
    waits = 0.0
    for step in steps:
        before = work.shuffles
        try:
            work.count_step(step)
        except IndexError:
            raise WRONG.malformed("steps", "must name existing registers and words", str(step)) from None
        if isinstance(step, Through):
            accesses += step.store.count + step.load.count
            turns += sum(_turns(access, source, element_bits) for access in (step.store, step.load))
            barriers += step.barriers
            one = costs.warp_barrier if step.barrier == "warp" else costs.block_barrier
            waits += step.barriers * one + step.passes * costs.shared_latency
            turns_of_tables += (step.store.lookups + step.load.lookups) * source.warps
            waits += costs.shared_latency * any(access.lookups for access in (step.store, step.load))
        waits += costs.shuffle_latency * (work.shuffles > before)
    shuffles, selects, permutes = work.done()
    every = (turns + turns_of_tables) / blocks
    cycles = costs.taken(shuffles, selects, permutes, every, source.warps // blocks) + waits
    return ConversionCost(shuffles, selects, permutes, accesses, turns, barriers, float(cycles))


class _Counting(Lowering[int]):
    """Counts register instructions: by lowering packed elements, by step alone for whole-word elements."""

    def __init__(self, source: Held, element_bits: int) -> None:
        super().__init__(element_bits, source.lanes)
        self.shuffles = self.selects = self.permutes = self.number = 0
        self.count = -(-source.registers // self.natural)
        self.held = self.begun([self.new() for _ in range(self.count)], source.registers) if self.natural > 1 else None

    def new(self) -> int:
        """Return a new word."""
        self.number += 1
        return self.number

    def made(self, mixed: Mixed[int]) -> int:
        """Count a select or a permute."""
        if mixed.instruction == "select":
            self.selects += 1
        else:
            self.permutes += 1
        return self.new()

    def shuffled(self, *_: object) -> int:
        """Count a shuffle."""
        self.shuffles += 1
        return self.new()

    def stored(self, *_: object) -> None:
        """Count nothing: accesses are counted per step."""

    def loaded(self, access: Access, *_: object) -> list[int]:
        """Return new words for a load."""
        return [self.new() for _ in range(-(-access.elements * self.bits // WORD_BITS))]

    def rounds(self, step: ShufflePlan, _: object) -> list[int]:
        """Count rounds of shuffles."""
        self.shuffles += step.cost.shuffles * self.planes
        self.selects += step.cost.selects * self.planes
        return [self.new() for _ in range(step.registers)]

    def count_step(self, step: Step) -> None:
        """Count a step."""
        if self.held is not None:
            self.held = self.step(step, self.held)
        elif isinstance(step, ShufflePlan):
            self.rounds(step, ())
        elif isinstance(step, Read):
            self.shuffles += step.shuffles(self.lanes) * self.planes
            self.count = len(step.taken)
        elif isinstance(step, Choose | Exchange | Move):
            cost = step.cost(self.count)
            self.shuffles += cost.shuffles * self.planes
            self.selects += cost.selects * self.planes
        elif isinstance(step, Take):
            self.count = len(step.registers)
        elif isinstance(step, Through):
            self.count = step.load.count * step.load.elements

    def done(self) -> tuple[int, int, int]:
        """Return the shuffles, selects and permutes of all steps."""
        if self.held is not None:
            self.ended(self.held)
        return self.shuffles, self.selects, self.permutes


def place_map(places: IntArray, count: int) -> LinearLayout | ListedLayout:
    """Return the map from place numbers to places below ``count``: linear over F2 if possible, otherwise a table."""
    size = len(places)
    bits = size.bit_length() - 1
    if size == 1 << bits:
        first = int(places[0])
        columns = tuple(int(places[1 << bit]) ^ first for bit in range(bits))
        wide = (count - 1).bit_length()
        if np.array_equal(matrix.table(columns, first), places):
            return LinearLayout((("place", bits),), (("source", wide),), columns, first)
    return ListedLayout((size,), tuple(places.tolist()))


def _turns(access: Access, source: Held, element_bits: int) -> int:
    """Return the turns of accesses; if unknown, the lower bound with every bank busy in every turn."""
    if access.turns != UNCOUNTED:
        return access.turns
    elements = access.elements * int(np.count_nonzero(access.taking(source.lanes * source.warps)))
    return max(1, elements * element_bits // 8 // TURN_BYTES)


def flat_layout(held: Held) -> LinearLayout | ListedLayout:
    """Return the layout with a single input axis, the place."""
    if held.layout is None:
        flat = held.elements().reshape(-1)
        return ListedLayout((len(flat),), tuple(flat.tolist()))
    layout = held.layout
    return LinearLayout((("place", layout.in_bits),), (("element", layout.out_bits),), layout.columns, layout.constant)


def _of(blocks: int) -> str:
    return f" of each of {blocks} blocks" if blocks > 1 else ""


def told(held: Held) -> str:
    """Return a layout as text."""
    if held.layout is not None:
        return str(held.layout)
    return f"{held.registers} registers, {held.lanes} lanes, {held.warps} warps, as a table"
