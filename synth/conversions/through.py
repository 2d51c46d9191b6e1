"""Conversions through shared memory: the tile that is swizzled, the passes that share it, the instructions.

Mathematically: the elements of the source are a space; both layouts are written in coordinates of it. Registers that
both hold, and that no lane or warp of either moves, number passes: a complement that holds all lanes and warps is the
tile of one pass. The tile's layout is the optimal swizzle of (store source, load destination). An instruction moves the
registers that the swizzle put at the low offset bits, the others number instructions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from layoutalg.f2 import LinearLayout, matrix
from layoutalg.ground.errors import LayoutError, RepresentabilityError
from layoutalg.proofs.conversion_steps import SharedAccess, Step, Take, Through
from layoutalg.proofs.listed_access import UNCOUNTED
from layoutalg.proofs.served import Served
from layoutalg.proofs.swizzling import TileAccess, instruction_bits, instruction_name
from layoutalg.synth.conversions.inside import Places
from layoutalg.synth.swizzles import swizzle
from layoutalg.targets.registry import vendor_of

WORD_BITS = 32
ROW_BITS = 128


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a conversion, of one pass, in coordinates of the tile.

    ``images`` are those of all register bits, the pass above the tile; ``registers`` are independent images of register
    bits, ``origins`` the sets of register bits that they are; ``last`` are the sets of those that number passes.
    ``idle`` are thread bits whose threads need not take part.
    """

    images: tuple[int, ...]
    registers: tuple[int, ...]
    origins: tuple[int, ...]
    last: tuple[int, ...]
    lanes: tuple[int, ...]
    warps: tuple[int, ...]
    idle: int


@dataclass(frozen=True, slots=True)
class Passage:
    """Steps through shared memory, and whether matrices move.

    Args:
        steps: The steps.
        matrices: Whether an instruction moves matrices.
    """

    steps: tuple[Step, ...]
    matrices: bool


def through(
    source: Places, wanted: Places, element_bits: int, target: str, local: bool, smem_bytes: int, lanes: int
) -> list[Passage] | str:
    """Return steps in the fewest passes that fit, by vectors and by matrices; why there are none, else.

    Args:
        source: What registers hold; it holds all that is wanted.
        wanted: What they are to hold.
        element_bits: Bits of an element.
        target: The target.
        local: Whether no element changes its warp.
        smem_bytes: Most bytes of shared memory.
        lanes: Lanes of a warp.
    """
    held = matrix.eliminate(source.columns)
    tops = [vector.bit_length() - 1 for vector, _ in held.pivots]

    def inner(vector: int) -> int:
        return sum((vector >> top & 1) << at for at, top in enumerate(tops))

    one, other = source.mapped(inner), wanted.mapped(inner)
    constant = inner(source.constant ^ wanted.constant)
    size = len(tops)
    able = _able(one, other)
    most = smem_bytes * 8 // element_bits
    if not most:
        return f"an element does not fit into {smem_bytes} bytes"
    passes = max(0, size - (most.bit_length() - 1))
    if passes > len(able):
        least = element_bits * (1 << size - len(able)) // 8
        return f"a pass needs {least} bytes at least, more than the {smem_bytes} bytes there are"
    split = split_of(one, other, able[len(able) - passes :], size)
    first, second, base, pass_base = sides_of(one, other, constant, split)
    asked = Asked(split.tile, base, pass_base, passes, element_bits, target, local)
    found: dict[bool, tuple[Step, ...]] = {}
    because = "no instruction was found"
    for kinds, sides in _kinds(first, second, element_bits, target, lanes):
        try:
            made = _made(asked, sides, kinds)
        except LayoutError as error:
            because = error.diagnostic.because or error.diagnostic.what
            continue
        matrices = kinds != ("store", "load")
        if made is not None and (matrices not in found or _load(made) < _load(found[matrices])):
            found[matrices] = made
    return [Passage(steps, matrices) for matrices, steps in found.items()] or because


@dataclass(frozen=True, slots=True)
class Spread:
    """Where a source's elements lie in shared memory, for loads of single elements.

    Args:
        registers: The source's registers in the order in which they are stored.
        store: The stores.
        bases: Elements, of which every difference of two of the source's is a combination.
        bytes_of: By base the byte that it adds to the address, by exclusive or.
        load: The instruction that loads an element.
    """

    registers: tuple[int, ...]
    store: SharedAccess
    bases: tuple[int, ...]
    bytes_of: tuple[int, ...]
    load: str

    def at(self, element: int) -> int:
        """Return the byte of an element of the source's space, from that of 0."""
        _, used = matrix.eliminate(self.bases).reduce(element)
        return matrix.apply(self.bytes_of, used)


def spread(source: Places, wanted: Places, element_bits: int, target: str) -> Spread | str:
    """Return the optimal swizzle for storing a source and loading single elements; why there is none, else.

    Args:
        source: What registers hold.
        wanted: What threads load at one instruction: lanes and warps.
        element_bits: Bits of an element.
        target: The target.
    """
    held = matrix.eliminate(source.columns)
    tops = [vector.bit_length() - 1 for vector, _ in held.pivots]

    def inner(vector: int) -> int:
        return sum((vector >> top & 1) << at for at, top in enumerate(tops))

    one, other = source.mapped(inner), replace(wanted, registers=()).mapped(inner)
    split = split_of(one, other, (), len(tops))
    first, second, base, pass_base = sides_of(one, other, inner(source.constant ^ wanted.constant), split)
    asked = Asked(split.tile, base, pass_base, 0, element_bits, target, False)
    accesses = [TileAccess(layout_of(side, split.tile), kind) for side, kind in ((first, "store"), (second, "load"))]
    try:
        plan = swizzle(accesses, target, element_bits)
        offsets, served = plan.smem.columns, plan.served
    except RepresentabilityError:
        offsets, served = apart(asked, (first, second))
    store = moved_by(asked, first, offsets, 0, served[0])
    if store is None:
        return f"no {served[0].instruction} stores what registers hold"
    bases = tuple(vector for vector, _ in held.pivots)
    at = tuple(
        matrix.apply(offsets, matrix.apply(split.order, inner(vector))) * (element_bits // 8) for vector in bases
    )
    name = instruction_name(target, "load", element_bits)
    return Spread(tuple(matrix.table(store.numbers).tolist()), store.access, bases, at, name)


def _able(one: Places, other: Places) -> tuple[int, ...]:
    """A basis of registers of both that lanes and warps of either do not touch, those to number passes last."""
    common = matrix.intersection(one.registers, other.registers)
    moving = [*one.lanes, *one.warps, *other.lanes, *other.warps]
    basis = matrix.image_basis(moving)
    chosen = []
    plain = [column for column in one.registers if column and not matrix.remainder(common, column)]
    for vector in (*plain, *common):
        if matrix.remainder(basis, vector):
            basis = matrix.image_basis([*basis, vector])
            chosen.append(vector)
    return tuple(vector for vector in chosen if matrix.remainder(common, vector) == 0)


@dataclass(frozen=True, slots=True)
class Passes:
    """Coordinates of tile and pass: the columns of the map from elements to (tile coordinate, pass) and its sizes."""

    order: tuple[int, ...]
    tile: int


def split_of(one: Places, other: Places, numbers: Sequence[int], size: int) -> Passes:
    """Return the coordinates in which ``numbers`` are the last ones and all lanes and warps lie in the others."""
    moving = [*one.lanes, *one.warps, *other.lanes, *other.warps]
    units = [1 << bit for bit in range(size)]
    outside = list(numbers)
    inside = matrix.image_basis(moving)
    basis: list[int] = []
    chain = matrix.image_basis(outside)
    for vector in (*(unit for unit in units if not matrix.remainder(inside, unit)), *inside, *units):
        if matrix.remainder(chain, vector):
            basis.append(vector)
            chain = matrix.image_basis([*chain, vector])
            if len(chain) == size:
                break
    basis.sort()
    return Passes(matrix.inverse([*basis, *outside]), len(basis))


def sides_of(one: Places, other: Places, constant: int, split: Passes) -> tuple[Side, Side, int, int]:
    """Return both sides in coordinates of the tile, the tile's part of the constant, and that of the pass."""
    mask = (1 << split.tile) - 1
    sides = []
    for number, places in enumerate((one, other)):
        images = [matrix.apply(split.order, column) for column in places.registers]
        lanes = [matrix.apply(split.order, column) for column in places.lanes]
        warps = [matrix.apply(split.order, column) for column in places.warps]
        # Sets of registers that change the pass alone: the accesses of every pass have the same addresses.
        reduced = matrix.eliminate(images)
        last = tuple(reduced.reduce(1 << bit)[1] for bit in range(split.tile, len(split.order)))
        registers: list[int] = []
        origins: list[int] = []
        for bit, image in enumerate(images):
            origin = 1 << bit
            for at, numbering in enumerate(last):
                if image >> split.tile + at & 1:
                    origin ^= numbering
            vector = matrix.apply(images, origin)
            if matrix.rank([*registers, vector & mask]) > len(registers):
                registers.append(vector & mask)
                origins.append(origin)
        idle = 0
        if number == 0:  # of threads that hold the same, one stores it
            reached = list(registers)
            for bit, column in enumerate((*lanes, *warps)):
                if matrix.rank([*reached, column]) > len(reached):
                    reached.append(column)
                    continue
                idle |= 1 << bit
                if bit < len(lanes):
                    lanes[bit] = 0
                else:
                    warps[bit - len(lanes)] = 0
        sides.append(Side(tuple(images), tuple(registers), tuple(origins), last, tuple(lanes), tuple(warps), idle))
    inner = matrix.apply(split.order, constant)
    return sides[0], sides[1], inner & mask, inner >> split.tile


def _kinds(
    first: Side, second: Side, element_bits: int, target: str, lanes: int
) -> Iterator[tuple[tuple[str, str], tuple[Side, Side]]]:
    """Yield the kinds of instructions that may do it, with the registers in the order that they want."""
    yield ("store", "load"), (first, second)
    if vendor_of(target) != "nvidia" or lanes != 32 or element_bits > WORD_BITS:
        return
    common = matrix.intersection(first.registers, second.registers)
    vector = (ROW_BITS // element_bits).bit_length() - 1
    if len(common) >= vector:
        return
    held = (WORD_BITS // element_bits).bit_length() - 1
    for mine, theirs, name in ((first, second, "stmatrix"), (second, first, "ldmatrix")):
        reach = list(matrix.image_basis(theirs.registers))
        shared = [column for column in mine.registers if not matrix.remainder(reach, column)]
        options = []
        if (
            len(shared) >= held
            and matrix.rank(mine.lanes[:2]) == 2
            and not any(matrix.remainder(reach, lane) for lane in mine.lanes[:2])
        ):
            options.append((name, _ordered(mine, shared[:held])))
        if (
            element_bits == 16
            and mine.registers
            and matrix.rank(mine.lanes[2:5]) == 3
            and not any(matrix.remainder(reach, lane) for lane in mine.lanes[2:5])
        ):
            options.append((f"{name}.trans", mine))
        for kind, ordered in options:
            if name == "stmatrix":
                if not first.idle & lanes - 1:  # every lane names a row
                    yield (kind, "load"), (ordered, second)
            else:
                yield ("store", kind), (first, ordered)


def _ordered(side: Side, begin: Sequence[int]) -> Side:
    """The side with some registers first."""
    order = sorted(range(len(side.registers)), key=lambda at: (side.registers[at] not in begin, at))
    return replace(
        side, registers=tuple(side.registers[at] for at in order), origins=tuple(side.origins[at] for at in order)
    )


@dataclass(frozen=True, slots=True)
class Asked:
    """What all kinds of instructions have in common: tile bits, the constant of tile and pass, log of passes."""

    tile: int
    base: int
    pass_base: int
    passes: int
    element_bits: int
    target: str
    local: bool


@dataclass(frozen=True, slots=True)
class Moved:
    """Accesses, the set of register bits that each bit of an element's number is, and what is added to the number."""

    access: SharedAccess
    numbers: tuple[int, ...]
    added: int


def _made(asked: Asked, sides: tuple[Side, Side], kinds: tuple[str, str]) -> tuple[Step, ...] | None:
    """The steps with instructions of these kinds; None where they do not fit."""
    accesses = [TileAccess(layout_of(side, asked.tile), kind) for side, kind in zip(sides, kinds, strict=True)]
    try:
        plan = swizzle(accesses, asked.target, asked.element_bits)
        offsets, served = plan.smem.columns, plan.served
    except RepresentabilityError:
        if kinds != ("store", "load"):
            raise
        offsets, served = apart(asked, sides)
    store = moved_by(asked, sides[0], offsets, 0, served[0])
    load = moved_by(asked, sides[1], offsets, matrix.apply(offsets, asked.base), served[1])
    if store is None or load is None:
        return None
    barrier = "warp" if asked.local and not sides[0].idle >> len(sides[0].lanes) else "block"
    smem = asked.element_bits * (1 << asked.tile) // 8
    step = Through(smem, barrier, 1 << asked.passes, store.access, load.access)
    natural = max(1, WORD_BITS // asked.element_bits)
    images = sides[1].images
    reached = matrix.eliminate([matrix.apply(images, bits) for bits in load.numbers])
    back = [reached.reduce(image)[1] for image in images]
    added = load.added ^ asked.pass_base << len(load.numbers) - asked.passes
    steps: list[Step] = [step]
    before, after = matrix.table(store.numbers).tolist(), matrix.table(back, added).tolist()
    if before != list(range(1 << len(sides[0].images))):
        steps.insert(0, Take(tuple(before), natural, natural))
    if after != list(range(1 << len(load.numbers))):
        steps.append(Take(tuple(after), natural, natural))
    return tuple(steps)


def apart(asked: Asked, sides: tuple[Side, Side]) -> tuple[tuple[int, ...], tuple[Served, Served]]:
    """Offsets for instructions whose banks are not known: lanes of either side differ in the lowest bits they can."""
    first, second = sides
    common = matrix.intersection(first.registers, second.registers)
    reached = matrix.image_basis([*first.lanes, *first.warps, *second.lanes, *second.warps])
    moving = list(reached)
    vector: list[int] = []
    for element in common:
        if len(vector) < (ROW_BITS // asked.element_bits).bit_length() - 1 and matrix.remainder(reached, element):
            vector.append(element)
            reached = matrix.image_basis([*reached, element])
    rest: list[int] = []
    chain = matrix.image_basis(vector)
    for element in (*moving, *(1 << bit for bit in range(asked.tile))):
        if matrix.remainder(chain, element):
            rest.append(element)
            chain = matrix.image_basis([*chain, element])
    order, low = matrix.inverse([*vector, *rest]), len(vector)
    lanes = [[matrix.apply(order, lane) >> low for lane in side.lanes] for side in sides]
    high = matrix.common_complement(lanes[0], lanes[1], len(rest))
    near: list[int] = []
    for element in (*lanes[0], *(1 << bit for bit in range(len(rest)))):
        if matrix.rank([*high, *near, element]) > len(high) + len(near):
            near.append(element)
    back = matrix.inverse([*near, *high])
    columns = tuple(column & (1 << low) - 1 | matrix.apply(back, column >> low) << low for column in order)
    wide = asked.element_bits << low
    store, load = (instruction_name(asked.target, kind, wide) for kind in ("store", "load"))
    return columns, (Served(0, asked.target, store, 0, -1, 0, ""), Served(1, asked.target, load, 0, -1, 0, ""))


def layout_of(side: Side, tile: int) -> LinearLayout:
    """The side as a layout; warps that do nothing are left out."""
    warps = [warp for bit, warp in enumerate(side.warps) if not side.idle >> len(side.lanes) + bit & 1]
    axes = (("register", len(side.registers)), ("lane", len(side.lanes)), ("warp", len(warps)))
    return LinearLayout(axes, (("tile", tile),), (*side.registers, *side.lanes, *warps))


def moved_by(asked: Asked, side: Side, offsets: Sequence[int], base: int, served: Served) -> Moved | None:
    """The accesses of a side behind a swizzle; None where the instruction does not fit."""
    size = asked.element_bits // 8
    registers, lanes, warps = (
        [matrix.apply(offsets, image) for image in images] for images in (side.registers, side.lanes, side.warps)
    )
    if "matrix" in served.instruction:
        row = (ROW_BITS // asked.element_bits).bit_length() - 1
        held = (WORD_BITS // asked.element_bits).bit_length() - 1
        trans = served.instruction.endswith("trans")
        inside = [1 << bit for bit in range(held)]
        rest = _beside(registers, inside, 0 if trans else held)
        if base & (1 << row) - 1 or any(matrix.apply(registers, bits) & (1 << row) - 1 for bits in rest):
            return None
        many = int(served.instruction.split(".x")[1][0]).bit_length() - 1
        matrices = [matrix.apply(registers, bits) for bits in rest[:many]]
        rows = [registers[0], *lanes[:2]] if trans else lanes[2:5]
        threads = [*rows, *matrices, *[0] * (2 - many), *warps]
        low, vector, base_low = held + many, inside + rest[:many], 0
        rest = rest[many:]
    else:
        elements = instruction_bits(served.instruction) // asked.element_bits
        low = elements.bit_length() - 1
        found = matrix.eliminate(registers)
        solved = [found.reduce(1 << bit) for bit in range(low)]
        if any(left for left, _ in solved):
            return None
        vector = [used for _, used in solved]
        rest = _beside(registers, vector, low)
        threads, base_low = [*lanes, *warps], base & elements - 1
    starts = matrix.table([matrix.apply(registers, bits) for bits in rest], base ^ base_low)
    numbers = [matrix.apply(side.origins, bits) for bits in (*vector, *rest)]
    access = SharedAccess(
        served.instruction, 1 << low, tuple(size * offset for offset in threads),
        tuple(size * offset for offset in starts.tolist()) * (1 << asked.passes), side.idle,
        UNCOUNTED if served.turns < 0 or side.idle & (1 << len(side.lanes)) - 1 else served.turns << asked.passes,
    )  # fmt: skip
    if access.turns == UNCOUNTED:
        access = replace(access, turns=access.counted(asked.target, 1 << len(side.lanes)))
    return Moved(access, (*numbers, *side.last), base_low)


def _beside(offsets: Sequence[int], vector: Sequence[int], low: int) -> list[int]:
    """Sets of registers that complete those of a vector, with offsets that are 0 in the vector's bits."""
    chosen: list[int] = []
    for bit, offset in enumerate(offsets):
        unit = 1 << bit
        for at in range(low):
            if offset >> at & 1:
                unit ^= vector[at]
        if matrix.rank([*vector, *chosen, unit]) > len(vector) + len(chosen):
            chosen.append(unit)
    return chosen


def _load(steps: tuple[Step, ...]) -> tuple[int, int]:
    """Turns and accesses of the steps."""
    found = [access for step in steps if isinstance(step, Through) for access in (step.store, step.load)]
    return sum(access.turns for access in found), sum(access.count for access in found)
