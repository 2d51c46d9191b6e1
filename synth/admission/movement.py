"""What it takes to move data that already lies in a refused layout to where it is admitted.

*Registers*: the refused layout is converted into a tiling of the same tile by the instruction's fragment.

*Shared memory*: every thread reads vectors of the refused layout into registers and writes them to the repaired one.
Threads are assigned along the contiguous dimension of either layout, with blocks of registers if the two differ; bank
turns of both sides are counted, and the cheapest assignment found is stated. There are two barriers: all reads precede
the first write, which may be to the same bytes, and all writes precede the consumer.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from layoutalg.f2 import LinearLayout
from layoutalg.ground import clock
from layoutalg.ground.errors import LayoutError
from layoutalg.proofs.admission import Admitted
from layoutalg.proofs.conversion import ELEMENT_BITS, ConversionPlan, Held, counted
from layoutalg.proofs.conversion_steps import WORD_BITS, taken_by
from layoutalg.proofs.listed_access import UNCOUNTED
from layoutalg.synth.admission.ideas import Idea
from layoutalg.synth.admission.request import Finder, IntArray, Request
from layoutalg.synth.conversions import conversion
from layoutalg.synth.conversions.listed import VECTORS, side_of
from layoutalg.synth.fragments import coordinates
from layoutalg.targets.instruction_costs import instruction_costs
from layoutalg.targets.layouts.nvidia_instructions import fragment_of
from layoutalg.targets.layouts.tile import Tile
from layoutalg.targets.nvidia import wgmma
from layoutalg.targets.registry import lookup
from layoutalg.targets.target_model import model_of

WARPS = 4
"""Warps that move a tile of shared memory; fewer if it has less than a vector for each thread."""
BARRIERS = 2
ALIGN_BYTES = 16
"""Alignment of both bases that the widest vectors need."""
READ = "read it into registers"
READS = (
    "ldmatrix.x4", "ldmatrix.x4.trans", "ldmatrix.x2", "ldmatrix.x2.trans", "ld.shared.v4.b32", "ld.shared.v2.b32",
    "ld.shared.b32", "ld.shared.b16", "ld.shared.b8",
)  # fmt: skip


# ---------------------------------------------------------------- registers


def tilings(
    extents: Mapping[str, int],
    warps: int,
    fragment: LinearLayout,
    together: int = 1,
    kept: Sequence[tuple[int, ...]] = (),
) -> Iterator[LinearLayout]:
    """Yield tilings of a tile by a fragment: the warps at adjacent fragments, at the far ends, as copies, or as kept.

    Args:
        extents: The tile's dimensions, powers of two.
        warps: Number of warps, a power of two.
        fragment: (register, lane) -> coordinates of one instruction's tile.
        together: Warps of one instruction, which take adjacent fragments along the first dimension.
        kept: Steps of the bits of the warp number, tried first; not used if they are not those of a tiling.

    Example:
        >>> fragment = fragment_of("D", "k", 32, {"row": 16, "col": 8, "k": 16})
        >>> for each in tilings({"row": 32, "col": 16}, 2, fragment):
        ...     print(each)
        F2[register=(0,1)(8,0)(0,8)(16,0), lane=(0,2)(0,4)(1,0)(2,0)(4,0), warp=(0,0) -> row:32, col:16]
        F2[register=(0,1)(8,0)(16,0), lane=(0,2)(0,4)(1,0)(2,0)(4,0), warp=(0,8) -> row:32, col:16]
        F2[register=(0,1)(8,0)(0,8), lane=(0,2)(0,4)(1,0)(2,0)(4,0), warp=(16,0) -> row:32, col:16]
    """
    rank, sizes = len(extents), [*fragment.out_dims.values()]
    numbers = (warps, *extents.values())
    if any(number < 1 or number & (number - 1) for number in numbers) or any(size != 1 for size in sizes[rank:]):
        return
    sizes = sizes[:rank]
    sizes[0] *= together
    if warps < together or any(size > extent for size, extent in zip(sizes, extents.values(), strict=True)):
        return

    def steps(dim: int, low: int, high: int) -> list[tuple[int, ...]]:
        """Unit steps of a dimension from one extent to another."""
        bits = range(low.bit_length() - 1, high.bit_length() - 1)
        return [tuple(1 << bit if other == dim else 0 for other in range(rank)) for bit in bits]

    free = [steps(dim, size, extent) for dim, (size, extent) in enumerate(zip(sizes, extents.values(), strict=True))]
    own = [tuple(image[:rank] for image in fragment.bases[axis]) for axis in ("register", "lane")]
    first = steps(0, sizes[0] // together, sizes[0])
    made: dict[LinearLayout, None] = {}
    for taken in _dealt(free, (warps // together).bit_length() - 1, tuple(kept[len(first) :])):
        rest = [step for dim in reversed(free) for step in dim if step not in taken]
        axes = [("register", (*own[0], *rest)), ("lane", own[1]), ("warp", (*first, *taken))]
        made[LinearLayout.from_bases(axes if warps > 1 else axes[:2], tuple(extents.items()))] = None
    yield from made


def _dealt(
    free: list[list[tuple[int, ...]]], count: int, kept: tuple[tuple[int, ...], ...]
) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield the steps that so many bits of the warp number take; zeros are copies."""
    zero = (0,) * len(free)
    moving = [step for step in kept if any(step)]
    if len(kept) == count and len(set(moving)) == len(moving) and set(moving) <= {step for dim in free for step in dim}:
        yield kept
    for counts in itertools.product(*[range(min(len(dim), count) + 1) for dim in free]):
        copies = (zero,) * (count - sum(counts))
        for order in itertools.permutations(range(len(free))) if sum(counts) <= count else ():
            for far in (False, True):
                starts = [len(dim) - many if far else 0 for dim, many in zip(free, counts, strict=True)]
                taken = tuple(step for dim in order for step in free[dim][starts[dim] : starts[dim] + counts[dim]])
                yield (*copies, *taken)
                yield (*taken, *copies)


def converted(request: Request, find: Finder, fragment: LinearLayout, together: int = 1) -> Iterator[Idea]:
    """Yield the admitted conversion that costs least: one into as many registers as there are, if it exists."""
    held, bits = request.layout, request.dtype.bits
    outer = {name: size for name, size in held.in_dims.items() if name not in ("register", "lane")}
    extents = {name: size or 0 for name, size in held.out_dims.items()}
    if bits not in ELEMENT_BITS or set(outer) - {"warp"} or held.in_dims.get("lane") != fragment.in_dims["lane"]:
        return
    kept = held.bases.get("warp", ()) if isinstance(held, LinearLayout) else ()
    found = list(tilings(extents, outer.get("warp", 1), fragment, together, kept))
    alike = [wanted for wanted in found if wanted.in_dims["register"] == held.in_dims.get("register", 1)]
    made: list[tuple[float, int, LinearLayout, ConversionPlan]] = []
    for place, wanted in enumerate([*alike, *(wanted for wanted in found if wanted not in alike)]):
        clock.check("repairs")
        if place == len(alike) and (idea := _admitted(request, find, made)) is not None:
            yield idea
            return
        with contextlib.suppress(LayoutError):  # an element that no register holds, or a layout that is not read
            plan = conversion(held, wanted, bits, request.target)
            if isinstance(plan, ConversionPlan):
                made.append((plan.cost.cycles, place, wanted, plan))
    if (idea := _admitted(request, find, made)) is not None:
        yield idea


def _admitted(
    request: Request, find: Finder, made: list[tuple[float, int, LinearLayout, ConversionPlan]]
) -> Idea | None:
    """The cheapest conversion whose destination is admitted."""
    for cycles, _, wanted, plan in sorted(made, key=lambda each: each[:2]):
        part, cost = replace(request, layout=wanted), plan.cost
        if isinstance(find(part), Admitted):
            extra = cost.shuffles + cost.selects + cost.permutes + cost.accesses
            told = {"mechanism": plan.mechanism, "rounds": plan.rounds, "barriers": cost.barriers, "cycles": cycles}
            return Idea("convert the registers", str(wanted), 0, plan.source.registers, (part,), extra, told)
    return None


# ---------------------------------------------------------------- shared memory


def moved(before: Request, after: Request) -> dict[str, object] | None:
    """Return the cheapest movement found from a shared layout to another of the same tile; None if none was planned.

    Example:
        >>> from layoutalg.synth.admission.request import request_of
        >>> ask = [request_of(text, "ldmatrix.x4", "sm_90a", "f16", None, 1024, {}) for text in
        ...        ("(64,64):(65,1)", "Sw<3,3,3> o 0 o (64,64):(64,1)")]
        >>> found = moved(*ask)
        >>> found["read"], found["write"], found["cycles"]
        ('ld.shared.b16 x32, 128 turns', 'st.shared.b32 x16, 64 turns', 292.0)
    """
    bits, target, extents = before.dtype.bits, before.target, before.extents
    powers = all(extent & (extent - 1) == 0 for extent in extents)
    low = min(before.align_bytes, after.align_bytes) < ALIGN_BYTES
    if bits not in ELEMENT_BITS or low or not powers or (after.extents, after.dtype.bits) != (extents, bits):
        return None
    best: tuple[float, dict[str, object]] | None = None
    for registers in _assignments(before, after):
        clock.check("repairs")
        places = coordinates(registers)[0]
        at = tuple(np.moveaxis(places, -1, 0))
        offsets = before.offsets[at], after.offsets[at]
        best = _counted(registers, offsets, bits, target, math.inf if best is None else best[0]) or best
    return None if best is None else best[1]


def _assignments(before: Request, after: Request) -> Iterator[LinearLayout]:
    """Yield (register, lane, warp) -> tile coordinates: blocks of registers along the contiguous dimensions."""
    extents, lanes = before.extents, lookup(before.target).lanes
    first, second = (_contiguous(each.offsets) for each in (before, after))
    most = max(1, VECTORS[0] // before.dtype.bits)
    counts = tuple(dict.fromkeys(min(count, most) for count in (most, max(1, WORD_BITS // before.dtype.bits), 1)))
    seen = set()
    for wide, tall in itertools.product(counts, counts if first != second else (1,)):
        for order in ((first, second), (second, first)):
            tile = Tile.start(tuple(range(len(extents)))).grow("register", first, min(wide, extents[first]))
            tile = tile.grow("register", second, min(tall, extents[second] // tile.sizes[second]))
            whole = dict.fromkeys((*order, *range(len(extents) - 1, -1, -1)))
            for axis, count in (("lane", lanes), ("warp", WARPS)):
                for dim in whole:
                    size = min(count, extents[dim] // tile.sizes[dim])
                    tile, count = tile.grow(axis, dim, size), count // size
                if count > 1 and axis == "lane":
                    break
            else:
                rest = [extent // size for extent, size in zip(extents, tile.sizes, strict=True)]
                tile = tile.grow_all("register", rest, tuple(whole))
                if tile.bases not in seen:
                    seen.add(tile.bases)
                    yield LinearLayout.from_bases(tile.bases, tuple((f"dim{d}", n) for d, n in enumerate(extents)))


def _contiguous(table: IntArray) -> int:
    """The dimension whose second element follows the first; the last if there is none."""
    last, origin = table.ndim - 1, int(table.reshape(-1)[0])
    steps = [int(table.take(1, dim).reshape(-1)[0]) - origin if size > 1 else 0 for dim, size in enumerate(table.shape)]
    return steps.index(1) if 1 in steps else last


def _counted(
    registers: LinearLayout, offsets: tuple[IntArray, IntArray], bits: int, target: str, most: float
) -> tuple[float, dict[str, object]] | None:
    """The cycles and the description of a movement by these registers; None if turns are unknown or it is no better."""
    warps, lanes, count = offsets[0].shape
    if model_of(target).register_excess(-(-count * bits // WORD_BITS), warps * lanes):
        return None
    live = np.ones((warps * lanes, count), dtype=bool)
    read, write = (
        side_of(each.reshape(warps * lanes, count), live, kind, bits, target, lanes)
        for each, kind in zip(offsets, ("load", "store"), strict=True)
    )
    natural, costs = max(1, WORD_BITS // bits), instruction_costs(target)
    turns, waits = read.turns + write.turns, costs.shared_latency + BARRIERS * costs.block_barrier
    if UNCOUNTED in (read.turns, write.turns) or costs.taken(0, 0, 0, turns, warps) + waits >= most:
        return None
    loaded = {register: place for place, register in enumerate(read.order)}
    steps = taken_by([loaded[register] for register in write.order], count, natural)
    places = LinearLayout.identity({"register": count, "lane": lanes, "warp": warps})
    bits_of = (("element", sum(size for _, size in places.in_axes)),)
    held = Held(LinearLayout(places.in_axes, bits_of, places.columns), None, count, lanes, warps)
    permutes = counted(steps, held, bits, costs).permutes
    for side in (read, write):  # parts of words are put together, or taken apart
        permutes += max(0, natural // side.elements - 1) * -(-count // natural)
    cycles = float(costs.taken(0, 0, permutes, turns, warps) + waits)
    if cycles >= most:
        return None
    ends = [f"{side.instruction} x{len(side.order) // side.elements}, {side.turns} turns" for side in (read, write)]
    return cycles, {
        "mechanism": "shared", "registers": str(registers), "read": ends[0], "write": ends[1], "permutes": permutes,
        "barriers": BARRIERS, "cycles": cycles,
    }  # fmt: skip


def into_registers(request: Request, find: Finder) -> Iterator[Idea]:
    """Yield how one warpgroup reads operand A of ``wgmma`` into registers instead, by the cheapest instruction."""
    name, bits = request.dtype.operand, request.dtype.bits
    known = name in wgmma.DTYPES and bits in ELEMENT_BITS
    if request.consumer != "wgmma.A" or len(request.extents) != 2 or not known or request.options:
        return
    made = wgmma.multiply(name)
    fragment = fragment_of("A", "k", made.bits, {"row": 16, "col": 8, "k": made.k})
    extents = {f"dim{dim}": extent for dim, extent in enumerate(request.extents)}
    registers: Any = next(tilings(extents, WARPS, fragment, WARPS), None)
    costs, best = instruction_costs(request.target), None
    for place, reader in enumerate(READS if registers is not None else ()):
        part = replace(request, consumer=reader, options={"registers": registers})
        answer = find(part)
        if not isinstance(answer, Admitted) or answer.descriptor.turns is None:
            continue
        plan = answer.descriptor
        held = registers.in_dims["register"]
        natural = max(1, WORD_BITS // bits)
        permutes = max(0, plan.count - -(-held // natural)) if "matrix" not in reader else 0
        cycles = costs.taken(0, 0, permutes, plan.turns, WARPS) + costs.shared_latency
        if best is None or (cycles, place) < best[0]:
            told = {"mechanism": reader, "rounds": plan.count, "turns": plan.turns, "barriers": 0}
            told["cycles"] = float(cycles)
            detail = f"{reader}, registers {registers}"
            best = (cycles, place), Idea(READ, detail, 0, 2, (part,), permutes, told)
    if best is not None:
        yield best[1]
