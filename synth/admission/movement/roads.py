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
from layoutalg.proofs.conversion import ConversionPlan, Held, counted
from layoutalg.proofs.conversion_steps import WORD_BITS, taken_by
from layoutalg.proofs.listed_access import UNCOUNTED
from layoutalg.proofs.tile_map import extents_of
from layoutalg.synth.admission.form import form_of
from layoutalg.synth.admission.ideas import Idea, inner_of
from layoutalg.synth.admission.request import Finder, IntArray, Request
from layoutalg.synth.conversions import conversion
from layoutalg.synth.conversions.listed import VECTORS, side_of
from layoutalg.synth.fragments import coordinates
from layoutalg.synth.lds import WIDTHS
from layoutalg.targets.instruction_costs import instruction_costs
from layoutalg.targets.layouts.nvidia_instructions import fragment_of
from layoutalg.targets.layouts.tile import Tile
from layoutalg.targets.nvidia import wgmma
from layoutalg.targets.registry import ELEMENT_BITS, lookup
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
    """Yield tilings of a tile by a fragment: the warps as kept, or at adjacent fragments, the rest of them as copies.

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
    first, every = steps(0, sizes[0] // together, sizes[0]), [step for dim in free for step in dim]
    count, zero = (warps // together).bit_length() - 1, (0,) * rank
    dealt = [tuple(kept[len(first) :])]
    for counts in itertools.product(*[range(len(dim) + 1) for dim in free]):
        for order in itertools.permutations(range(rank)) if sum(counts) <= count else ():
            taken = [step for dim in order for step in free[dim][: counts[dim]]]
            dealt.append((*taken, *(zero,) * (count - len(taken))))
    own = [tuple(image[:rank] for image in fragment.bases[axis]) for axis in ("register", "lane")]
    for warp in dict.fromkeys(dealt):
        moving = [step for step in warp if any(step)]
        if len(warp) == count and len(set(moving)) == len(moving) and set(moving) <= set(every):
            rest = [step for dim in reversed(free) for step in dim if step not in warp]
            axes = [("register", (*own[0], *rest)), ("lane", own[1]), ("warp", (*first, *warp))]
            yield LinearLayout.from_bases(axes if warps > 1 else axes[:2], tuple(extents.items()))


def converted(request: Request, find: Finder, fragment: LinearLayout, together: int = 1) -> Iterator[Idea]:
    """Yield the admitted conversion that costs least: one into as many registers as there are, if it exists."""
    held, bits = request.layout, request.dtype.bits
    outer = {name: size for name, size in held.in_dims.items() if name not in ("register", "lane")}
    extents = {name: size or 0 for name, size in held.out_dims.items()}
    if bits not in ELEMENT_BITS or set(outer) - {"warp"} or held.in_dims.get("lane") != fragment.in_dims["lane"]:
        return
    kept = held.bases.get("warp", ()) if isinstance(held, LinearLayout) else ()
    found = list(tilings(extents, outer.get("warp", 1), fragment, together, kept))
    for alike in (True, False):
        made: list[tuple[float, int, LinearLayout, ConversionPlan]] = []
        for place, wanted in enumerate(found):
            clock.check("repairs")
            if (wanted.in_dims["register"] == held.in_dims.get("register", 1)) == alike:
                # LayoutError: an element that no register holds, or a layout that is not read
                with contextlib.suppress(LayoutError):
                    plan = conversion(held, wanted, bits, request.target)
                    made += [(plan.cost.cycles, place, wanted, plan)] if isinstance(plan, ConversionPlan) else []
        for cycles, _, wanted, plan in sorted(made, key=lambda each: each[:2]):
            part, cost = replace(request, layout=wanted), plan.cost
            if isinstance(find(part), Admitted):
                extra = cost.shuffles + cost.selects + cost.permutes + cost.accesses
                told = {"mechanism": plan.mechanism, "rounds": plan.rounds, "barriers": cost.barriers, "cycles": cycles}
                yield Idea("convert the registers", str(wanted), 0, plan.source.registers, (part,), extra, told)
                return


# ---------------------------------------------------------------- shared memory


def moved(before: Request, after: Request) -> dict[str, Any] | None:
    """Return the cheapest movement found from a shared layout to another of the same tile; None if none was planned.

    Example:
        >>> from layoutalg.synth.admission.request import request_of
        >>> ask = [request_of(text, "ldmatrix.x4", "sm_90a", "f16", None, 1024, {}) for text in
        ...        ("(64,64):(65,1)", "Sw<3,3,3> o 0 o (64,64):(64,1)")]
        >>> found = moved(*ask)
        >>> found["read"], found["write"], found["cycles"]
        ('ld.shared.b16 x32, 128 turns', 'st.shared.b32 x16, 64 turns', 292.0)
    """
    bits, extents = before.dtype.bits, before.extents
    powers = all(extent & (extent - 1) == 0 for extent in extents)
    low = min(before.align_bytes, after.align_bytes) < ALIGN_BYTES
    if bits not in ELEMENT_BITS or low or not powers or (after.extents, after.dtype.bits) != (extents, bits):
        return None
    best: dict[str, Any] | None = None
    for registers in _assignments(before, after):
        clock.check("repairs")
        at = tuple(np.moveaxis(coordinates(registers)[0], -1, 0))
        most = math.inf if best is None else best["cycles"]
        best = _counted(registers, (before.offsets[at], after.offsets[at]), bits, before.target, most) or best
    return best


def _assignments(before: Request, after: Request) -> Iterator[LinearLayout]:
    """Yield (register, lane, warp) -> tile coordinates: blocks of registers along the contiguous dimensions."""
    extents, lanes = before.extents, lookup(before.target).lanes
    first, second = (inner_of(form_of(each), len(extents)) for each in (before, after))
    counts = tuple(dict.fromkeys(max(1, wide // before.dtype.bits) for wide in (VECTORS[0], WORD_BITS, 1)))
    made: dict[LinearLayout, None] = {}
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
                made[LinearLayout.from_bases(tile.bases, tuple((f"dim{d}", n) for d, n in enumerate(extents)))] = None
    yield from made


def _counted(
    registers: LinearLayout, offsets: tuple[IntArray, IntArray], bits: int, target: str, most: float
) -> dict[str, Any] | None:
    """The description of a movement by these registers; None if turns are unknown or it takes ``most`` cycles."""
    warps, lanes, count = offsets[0].shape
    live = np.ones((warps * lanes, count), dtype=bool)
    read, write = (
        side_of(each.reshape(warps * lanes, count), live, kind, bits, target, lanes)
        for each, kind in zip(offsets, ("load", "store"), strict=True)
    )
    costs, natural = instruction_costs(target), max(1, WORD_BITS // bits)
    turns, waits = read.turns + write.turns, costs.shared_latency + BARRIERS * costs.block_barrier
    spills = model_of(target).register_excess(-(-count // natural), warps * lanes)
    if spills or UNCOUNTED in (read.turns, write.turns) or costs.taken(0, 0, 0, turns, warps) + waits >= most:
        return None
    loaded = {register: place for place, register in enumerate(read.order)}
    steps = taken_by([loaded[register] for register in write.order], count, natural)
    axes = LinearLayout.identity({"register": count, "lane": lanes, "warp": warps})
    width = (("element", sum(size for _, size in axes.in_axes)),)
    held = Held(LinearLayout(axes.in_axes, width, axes.columns), None, count, lanes, warps)
    permutes = counted(steps, held, bits, costs).permutes
    for side in (read, write):  # parts of words are put together, or taken apart
        permutes += max(0, natural // side.elements - 1) * -(-count // natural)
    cycles = float(costs.taken(0, 0, permutes, turns, warps) + waits)
    ends = [f"{side.instruction} x{len(side.order) // side.elements}, {side.turns} turns" for side in (read, write)]
    return None if cycles >= most else {
        "mechanism": "shared", "registers": str(registers), "read": ends[0], "write": ends[1], "permutes": permutes,
        "barriers": BARRIERS, "cycles": cycles,
    }  # fmt: skip


def read_tile(request: Request, fragment: LinearLayout, together: int) -> Iterator[Idea]:
    """Yield how a tile in shared memory, given in place of registers, is read into a tiling of the fragment."""
    extents: tuple[int, ...] = ()
    with contextlib.suppress(LayoutError):  # no tile
        extents = extents_of(request.layout)
    if len(extents) > len(fragment.out_dims) or not extents:
        return
    named = {f"dim{dim}": extent for dim, extent in enumerate(extents)}
    registers: Any = next(tilings(named, together, fragment, together), None)
    for reader in () if registers is None else READS if lookup(request.target).vendor == "nvidia" else WIDTHS:
        part = replace(request, consumer=reader, extents=extents, options={"registers": registers})
        yield Idea(READ, f"{reader}, registers {registers}", 0, 2, (part,))


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
    costs, found = instruction_costs(request.target), []
    for place, reader in enumerate(READS if registers is not None else ()):
        part = replace(request, consumer=reader, options={"registers": registers})
        answer = find(part)
        if isinstance(answer, Admitted) and answer.descriptor.turns is not None:
            turns, count = answer.descriptor.turns, answer.descriptor.count
            words = -(-registers.in_dims["register"] * bits // WORD_BITS)
            permutes = 0 if "matrix" in reader else max(0, count - words)
            cycles = float(costs.taken(0, 0, permutes, turns, WARPS) + costs.shared_latency)
            told = {"mechanism": reader, "rounds": count, "turns": turns, "barriers": 0, "cycles": cycles}
            idea = Idea(READ, f"{reader}, registers {registers}", 0, 2, (part,), permutes, told)
            found.append((cycles, place, idea))
    yield from (idea for _, _, idea in sorted(found, key=lambda each: each[:2])[:1])
