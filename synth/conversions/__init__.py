"""Conversions between register layouts: the cheapest known way to bring every element to its destination.

Implementation notes: if every element stays in its thread, registers are only renamed. Otherwise plans inside warps and
through shared memory are built and compared by the target's costs (``targets.instruction_costs``). A plan is skipped if
moving its bytes alone already costs more than the best plan found.

References: arXiv 2505.23819, section on conversions; generalised here to any maps over F2 by common complements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from layoutalg.f2 import matrix
from layoutalg.ground.errors import Diagnostic, InfeasibleError
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.conversion import MECHANISMS, Alternative, ConversionPlan, Held, counted
from layoutalg.proofs.conversion_steps import WORD_BITS, Step, Through, flattened, taken_by
from layoutalg.proofs.dtypes import stated_bits
from layoutalg.proofs.exchange import Take
from layoutalg.proofs.listed_access import UNCOUNTED
from layoutalg.proofs.shuffle import moved as least_rounds
from layoutalg.synth.conversions.cluster import across
from layoutalg.synth.conversions.inside import Fetched, Places, fetched, inside, nobody, renamed
from layoutalg.synth.conversions.listed import IntArray, listed
from layoutalg.synth.conversions.reading import CHECK, Given, parsed, read, same_tensor, shared_bytes
from layoutalg.synth.conversions.through import through
from layoutalg.synth.exchange import exchanges
from layoutalg.synth.factor.shuffles import shuffles
from layoutalg.targets.bank_counting import TURN_BYTES
from layoutalg.targets.instruction_costs import InstructionCosts, instruction_costs
from layoutalg.targets.registry import asked_bits, lookup

__all__ = ["conversion"]


def conversion(
    source: object,
    destination: object,
    element_bits: int | str | None = None,
    target: str = "sm_90a",
    *,
    smem_bytes: int | None = None,
    mechanism: str | None = None,
    exhaustive: bool = False,
    shape: tuple[int, ...] | None = None,
) -> ConversionPlan | Unknown:
    """Return the cheapest plan that converts one register layout into another.

    Both layouts map places (register, lane, warp) to elements of one tensor. The plan's steps rename registers, select
    words by lane, read words from other lanes, or store elements to shared memory and load them.

    Args:
        source: A linear layout from register, lane, warp to the axes of a tensor, or a CuTe layout of threads and
            values.
        destination: Another one of the same tensor and threads; the number of registers may differ.
        element_bits: Bits of an element: 8, 16, 32, 64 or 128, or the name of its type; None for that of the
            texts, or 16.
        target: The target, for its lanes, banks and costs.
        smem_bytes: Shared memory that the plan may use; by default all that a block of the target can have. Less means
            more passes.
        mechanism: ``"nothing"``, ``"registers"``, ``"shuffles"``, ``"shared"``, ``"matrices"`` or ``"cluster"``: only
            plans of this mechanism, or ``"nothing"`` if the layouts are equal.
        shape: Extents of the tensor, outermost first: for Triton attributes if neither layout states them, and for CuTe
            layouts and tables, which only number its elements.
        exhaustive: Build every plan, even those that cannot be the cheapest.

    Returns:
        The plan of least cost with its alternatives; ``Unknown`` if no way to do it is known.

    Raises: MalformedError: LA933. InfeasibleError: LA934, if the source does not contain an element, or the requested
        mechanism cannot do it. The plan is run on element labels before it is returned; LA931 is a bug in the finder.

    Example:
        >>> from layoutalg import LinearLayout
        >>> bits = [(1 << bit,) for bit in range(6)]
        >>> blocked = LinearLayout.from_bases({"register": bits[:1], "lane": bits[1:]}, {"x": 64})
        >>> striped = LinearLayout.from_bases({"register": bits[5:], "lane": bits[:5]}, {"x": 64})
        >>> plan = conversion(blocked, striped, 32).check()
        >>> plan.mechanism, plan.rounds, plan.least
        ('shuffles', 2, True)
    """
    asked = lookup(CHECK.kind(target, str, "target"))
    bits = asked_bits(CHECK, stated_bits(element_bits, source, destination, check=CHECK))
    if mechanism is not None:
        CHECK.choice(mechanism, "mechanism", MECHANISMS)
    extents = None if shape is None else CHECK.vector(shape, "shape", low=1)
    given, wanted = parsed(source, destination, extents)
    first = read(given, "source", asked.lanes, extents)
    second = same_tensor(first, read(wanted, "destination", asked.lanes, extents))
    limit = shared_bytes(target) if smem_bytes is None else CHECK.integer(smem_bytes, "smem_bytes", 0)
    if _crosses(first, second):
        first, second = (each.clustered() for each in (first, second))
    costs = instruction_costs(target)
    question = _Question(first.held(), second.held(), bits, target, costs, limit, exhaustive, first.clusters)
    if first.places is None or second.places is None:
        made = _by_table(question, mechanism)
    elif first.clusters > 1:
        made = _across(question, first.places, second.places, mechanism)
    else:
        made = _linear(question, first.places, second.places, mechanism)
    return _chosen(question, made, mechanism)


@dataclass(frozen=True, slots=True)
class _Question:
    source: Held
    destination: Held
    element_bits: int
    target: str
    costs: InstructionCosts
    smem_bytes: int
    exhaustive: bool
    blocks: int = 1

    def alternative(self, mechanism: str, steps: tuple[Step, ...], because: str, least: bool = False) -> Alternative:
        cost = counted(steps, self.source, self.element_bits, self.costs)
        smem = max((step.smem_bytes // step.blocks for step in steps if isinstance(step, Through)), default=0)
        return Alternative(mechanism, because, cost, smem, steps, least)

    def renamed(self, taken: Sequence[int]) -> Alternative:
        """Return the plan that only renames registers, the same in all threads."""
        steps = taken_by(taken, self.source.registers, self.natural)
        if steps:
            return self.alternative("registers", steps, "every element stays in its thread", least=True)
        return self.alternative("nothing", (), "layouts are equal; nothing to move", least=True)

    @property
    def natural(self) -> int:
        """Elements per word."""
        return max(1, WORD_BITS // self.element_bits)


def _crosses(source: Given, wanted: Given) -> bool:
    """Whether elements may have to leave their block."""
    if len(source.blocks) != len(wanted.blocks):
        rule = f"must have {1 << len(source.blocks)} blocks, like the source"
        raise CHECK.malformed("destination", rule, 1 << len(wanted.blocks))
    if not source.blocks:
        return False
    if source.places is None or wanted.places is None or source.blocks != wanted.blocks:
        return True
    held = matrix.image_basis(source.places.columns)
    if matrix.rank((*held, *source.blocks)) < len(held) + matrix.rank(source.blocks):
        return True
    asked = (*wanted.places.columns, source.places.constant ^ wanted.places.constant)
    return any(matrix.remainder(held, column) for column in asked)


def _across(asked: _Question, source: Places, wanted: Places, mechanism: str | None) -> list[Alternative]:
    """Plans between linear layouts across a cluster, its blocks taken as further warps."""
    moved = fetched(source, wanted)
    made: list[Alternative] = []
    if moved.local:
        made = _linear(asked, source, wanted, "shuffles" if mechanism is None else mechanism)
        made = [each for each in made if each.mechanism in ("nothing", "registers", "shuffles")]
    bits = asked.blocks.bit_length() - 1
    steps = across(source, wanted, moved, bits, asked.element_bits, asked.target, asked.smem_bytes)
    if isinstance(steps, str):
        return [*made, Alternative("cluster", steps)]
    because = f"elements change blocks; remote shared memory is costed like local{_unknown(steps)}"
    return [*made, asked.alternative("cluster", steps, because)]


def _linear(asked: _Question, source: Places, wanted: Places, mechanism: str | None) -> list[Alternative]:
    """Plans between linear layouts."""
    moved = fetched(source, wanted)
    made: list[Alternative] = []
    taken = renamed(moved, wanted)
    if taken is not None:
        made.append(asked.renamed(taken))
        if not asked.exhaustive and mechanism in (None, "registers"):
            return made
    if mechanism == "nothing":
        return made
    if not moved.local:
        made.append(Alternative("shuffles", "elements change warps"))
    if mechanism in ("shared", "matrices") or (mechanism is None and not moved.local):
        return [*made, *_shared(asked, source, wanted, moved.local, [])]
    if not moved.local or mechanism == "cluster":
        return made
    passing: list[Alternative] | None = None
    if mechanism is None and not asked.exhaustive:
        floor = _inside_floor(asked, moved)
        if floor > _shared_floor(asked, wanted):
            passing = _shared(asked, source, wanted, moved.local, [])
            if floor > min(each.cycles for each in passing):
                because = f"its shuffles and selects alone take {floor:g} cycles"
                return [*made, Alternative("shuffles", because), *passing]
    made += _inside(asked, moved, wanted)
    if mechanism is None:
        made += _shared(asked, source, wanted, moved.local, made) if passing is None else passing
    return _exchanged(asked, moved, made) if mechanism in (None, "shuffles") else made


def _inside_floor(asked: _Question, moved: Fetched) -> float:
    """Lower bound on the cycles of any plan inside warps, if every element is held once; otherwise 0.

    A lane already has at most 2^-r of its elements, r being the rank of the map from registers to lanes, and a shuffle
    brings it one word. A select, a byte permutation or an exchange tests one functional of the lane, so the rank of the
    map from lanes to registers bounds the number of instructions per word.
    """
    if not _bijective(asked, moved) or asked.source.registers < asked.natural:
        return 0.0
    words = asked.source.registers * max(1, asked.element_bits // WORD_BITS) // asked.natural
    first = len(moved.columns) - moved.lanes - moved.warps
    across_lanes = matrix.rank([moved.lane(column) for column in moved.columns[:first]])
    chosen = matrix.rank([moved.word(column) for column in moved.columns[first : first + moved.lanes]])
    shuffles = words * (1 - 2.0**-across_lanes)
    cycles = asked.costs.taken(shuffles, chosen * words, 0, 0, asked.source.warps)
    return cycles + asked.costs.shuffle_latency * (across_lanes > 0)


def _bijective(asked: _Question, moved: Fetched) -> bool:
    """Whether source and destination both hold every element exactly once."""
    size = asked.source.registers * asked.source.lanes * asked.source.warps
    return moved.forced and 1 << len(moved.columns) == size and matrix.rank(moved.columns) == len(moved.columns)


def _inside(asked: _Question, moved: Fetched, wanted: Places) -> list[Alternative]:
    """Plans that keep elements in their warps, the cheapest of each mechanism."""
    best: dict[str, Alternative] = {}
    fewest: int | None = None
    for steps, least in inside(moved, wanted, asked.element_bits):
        made = asked.alternative("shuffles", steps, "every element stays in its warp")
        cost = made.cost
        if cost is None:
            continue
        fewest = cost.shuffles if least else fewest
        if not cost.shuffles:
            made = replace(made, mechanism="registers", because="every element stays in its thread")
        name = made.mechanism
        if name not in best or made.cycles < best[name].cycles:
            best[name] = made
    return [replace(made, least=made.cost is not None and made.cost.shuffles == fewest)
            for made in best.values()]  # fmt: skip


def _exchanged(asked: _Question, moved: Fetched, made: list[Alternative]) -> list[Alternative]:
    """The plans, with shuffles replaced by exchanges of bits if those are cheaper.

    Exchanges need at least the minimum of shuffles, and three selects for every two words; if that alone costs more
    than the best plan, they are not built.
    """
    now = next((each for each in made if each.mechanism == "shuffles"), None)
    if now is None or now.cost is None:
        return made
    if not _bijective(asked, moved) or asked.source.registers < asked.natural:
        return made
    words, costs = asked.source.registers // asked.natural, asked.costs
    selects = min(now.cost.selects, words * 3 // 2)
    fewest = now.cost.shuffles if now.least else words // 2
    bound = costs.taken(fewest, selects, 0, 0, asked.source.warps) + costs.shuffle_latency
    if bound >= min(each.cycles for each in made) and not asked.exhaustive:
        return made
    table = matrix.table(moved.columns, moved.constant)
    shape = (asked.source.warps, asked.source.lanes, asked.source.registers)
    plan = exchanges(table.reshape(shape), min(asked.element_bits, WORD_BITS))
    if plan is None:
        return made
    other = asked.alternative("shuffles", flattened(plan, asked.natural), "every element stays in its warp")
    if other.cost is None or other.cycles >= now.cycles:
        return made
    least = now.least and other.cost.shuffles == now.cost.shuffles
    return [replace(other, least=least) if each is now else each for each in made]


def _shared_floor(asked: _Question, wanted: Places) -> float:
    """Lower bound on the cycles of any plan through shared memory: every bank busy in every turn."""
    elements = 1 << matrix.rank(wanted.columns)
    turns = max(2, 2 * elements * asked.element_bits // 8 // TURN_BYTES)
    costs = asked.costs
    waits = costs.shared_latency + min(costs.warp_barrier, costs.block_barrier)
    return costs.taken(0, 0, 0, turns, asked.source.warps) + waits


def _shared(
    asked: _Question, source: Places, wanted: Places, local: bool, others: list[Alternative]
) -> list[Alternative]:
    """The plans through shared memory, unless they cannot beat the others."""
    bound = _shared_floor(asked, wanted)
    best = min((each.cycles for each in others), default=None)
    if best is not None and best <= bound and not asked.exhaustive:
        because = f"moving its bytes alone takes {bound:g} cycles"
        return [Alternative("shared", because)]
    found = through(source, wanted, asked.element_bits, asked.target, local, asked.smem_bytes, asked.source.lanes)
    if isinstance(found, str):
        return [Alternative("shared", found)]
    because = "shared memory can move any element"
    return [asked.alternative(name, steps, because + _unknown(steps)) for name, steps in found.items()]


def _by_table(asked: _Question, mechanism: str | None) -> list[Alternative]:
    """Plans between layouts, at least one of which is not linear over F2."""
    have, want = asked.source.elements(), asked.destination.elements()
    warps, lanes, registers = have.shape
    places = {int(element): place for place, element in reversed(list(enumerate(have.reshape(-1).tolist())))}
    missing = next((element for element in want.reshape(-1).tolist() if element not in places), None)
    if missing is not None:
        raise nobody(missing)
    made: list[Alternative] = []
    taken = []
    for register in range(want.shape[2]):
        same = np.flatnonzero((have == want[:, :, register : register + 1]).all(axis=(0, 1)))
        taken.append(int(same[0]) if len(same) else -1)
    if -1 not in taken:
        made.append(asked.renamed(taken))
        if not asked.exhaustive and mechanism in (None, "registers"):
            return made
    if mechanism == "nothing":
        return made
    source = np.array([places[element] for element in want.reshape(-1).tolist()], dtype=np.int64)
    size = registers * lanes * warps
    warp = np.arange(len(source)) // (want.shape[2] * lanes)
    no = "the layouts are not linear over F2, and elements change warps or are not held exactly once"
    if mechanism in (None, "shared"):
        made.append(_by_placement(asked, have, want))
    if want.shape != have.shape or len(np.unique(source)) < size or (source // (registers * lanes) != warp).any():
        return [*made, Alternative("shuffles", no)]
    if mechanism not in (None, "shuffles"):
        return made
    plan = shuffles(source.reshape(want.shape))
    every: tuple[Step, ...] = (
        Take(tuple(range(registers)), asked.natural, 1),
        plan,
        Take(tuple(range(registers)), 1, asked.natural),
    )
    kept = every if asked.natural > 1 else (plan,)
    least = len(plan.rounds) == least_rounds(plan.source()) and asked.natural == 1
    return [*made, asked.alternative("shuffles", kept, "every element stays in its warp", least)]


def _by_placement(asked: _Question, have: IntArray, want: IntArray) -> Alternative:
    """The plan through shared memory with listed addresses."""

    def cycles(steps: tuple[Step, ...]) -> float:
        return counted(steps, asked.source, asked.element_bits, asked.costs).cycles

    found = listed(have, want, asked.element_bits, asked.target, asked.smem_bytes, cycles)
    if isinstance(found, str):
        return Alternative("shared", found)
    steps, placement = found
    return asked.alternative("shared", steps, f"elements stored {placement}{_unknown(steps)}")


def _unknown(steps: tuple[Step, ...]) -> str:
    """Say which instructions have an unknown number of turns; empty if none."""
    unknown = {access.instruction for step in steps if isinstance(step, Through)
               for access in (step.store, step.load) if access.turns == UNCOUNTED}  # fmt: skip
    return f"; turns of {', '.join(sorted(unknown))} are unknown, the minimum is counted" if unknown else ""


def _no_plan(asked: _Question, made: list[Alternative], mechanism: str | None) -> str:
    """Return why no plan of the mechanism is known.

    Raises: InfeasibleError: LA934, if there can be none.
    """
    if mechanism is None:
        return "; ".join(f"{each.mechanism}: {each.because}" for each in made)
    because = _impossible(asked, mechanism)
    if because is not None:
        what = f"mechanism {mechanism} cannot do this conversion"
        raise InfeasibleError(Diagnostic("LA934", what, ("mechanism",), because))
    own = [each.because for each in made if each.mechanism == mechanism]
    if mechanism == "matrices":
        own.append(f"no stmatrix or ldmatrix of {asked.target} matches these registers")
    if mechanism == "shuffles":
        own.append('every element stays in its thread; mechanism="registers" needs no shuffle')
    if mechanism == "registers":
        own.append("the register depends on the lane, and the layouts are not linear over F2")
    return f"{mechanism}: {own[0]}"


def _impossible(asked: _Question, mechanism: str) -> str | None:
    """Return why the mechanism cannot do it at all; None if it may."""
    if mechanism == "nothing":
        return "the layouts differ"
    if mechanism == "cluster":
        return "no element leaves its block" if asked.blocks == 1 else None
    if mechanism in ("shared", "matrices"):
        return None if asked.blocks == 1 else 'elements leave their block; use mechanism="cluster"'
    have, want = asked.source.elements(), asked.destination.elements()
    warps, lanes, _ = have.shape
    own = np.arange(warps)[:, None, None] * lanes + np.arange(lanes)[:, None]
    owner, word = (own, "thread") if mechanism == "registers" else (own // lanes, "warp")
    size = 1 + max(int(have.max()), int(want.max()))
    held = np.isin(want + size * owner, have + size * owner)
    if held.all():
        return None
    warp, lane, register = (int(part[0]) for part in np.nonzero(~held))
    element = int(want[warp, lane, register])
    return f"lane {lane} of warp {warp} needs element {element}, which no register of its {word} holds"


def _chosen(asked: _Question, made: list[Alternative], mechanism: str | None) -> ConversionPlan | Unknown:
    """The plan of least cost."""
    able = [each for each in made if each.cost is not None]
    if mechanism is not None:
        able = [each for each in able if each.mechanism in {mechanism, "nothing"}]
    if not able:
        return Unknown(_no_plan(asked, made, mechanism), ("conversion",))
    best = min(able, key=lambda each: each.cycles)
    cost = best.cost if best.cost is not None else counted((), asked.source, asked.element_bits, asked.costs)
    others, why = [each for each in made if each is not best], best.because
    rivals = [(other.cycles, other.mechanism) for other in others if other.cost is not None]
    if rivals:
        cycles, name = min(rivals)
        why += f"; {name} would {'also ' * (cycles == cost.cycles)}take {cycles:g} cycles"
    why += "".join(f"; {other.mechanism}: {other.because}" for other in others if other.cost is None)
    return ConversionPlan(
        asked.source, asked.destination, asked.element_bits, asked.target, best.mechanism, best.steps, cost, why,
        tuple(made), best.least, asked.blocks,
    ).check_elements()  # fmt: skip
