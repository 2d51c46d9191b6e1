"""Conversions through shared memory: the swizzled tile, the passes that reuse it, the instructions.

Mathematically: the elements of the source form a space; both layouts are written in its coordinates. Register bits that
both layouts have, and that no lane or warp of either touches, number passes; a complement that contains all lanes and
warps is the tile of one pass. The tile gets the optimal swizzle for (store source, load destination). An instruction
moves the registers that the swizzle puts at the low offset bits; the others number instructions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from layoutalg.f2 import LinearLayout, matrix
from layoutalg.ground.errors import LayoutError, RepresentabilityError
from layoutalg.proofs.conversion_steps import WORD_BITS, SharedAccess, Step, Through, taken_by
from layoutalg.proofs.listed_access import UNCOUNTED
from layoutalg.proofs.served import Served
from layoutalg.proofs.swizzling import TileAccess, instruction_bits, instruction_name
from layoutalg.synth.conversions.inside import Places, basis_of
from layoutalg.synth.swizzles import swizzle
from layoutalg.targets.registry import vendor_of

ROW_BITS = 128


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a conversion, for one pass, in coordinates of the tile.

    ``images`` are the images of all register bits, the pass above the tile; ``registers`` are independent images,
    ``origins`` the register sets they come from; ``last`` the register sets that number passes. ``idle`` are thread
    bits whose threads need not take part.
    """

    images: tuple[int, ...]
    registers: tuple[int, ...]
    origins: tuple[int, ...]
    last: tuple[int, ...]
    lanes: tuple[int, ...]
    warps: tuple[int, ...]
    idle: int


def through(
    source: Places, wanted: Places, element_bits: int, target: str, local: bool, smem_bytes: int, lanes: int
) -> dict[str, tuple[Step, ...]] | str:
    """Return steps in the fewest passes that fit, by vectors (shared) and by matrices, or why there are none."""
    basis, inner = basis_of(source.columns)
    one, other = source.mapped(inner), wanted.mapped(inner)
    constant = inner(source.constant ^ wanted.constant)
    size = len(basis)
    able = _able(one, other)
    most = smem_bytes * 8 // element_bits
    if not most:
        return f"an element does not fit into {smem_bytes} bytes"
    passes = max(0, size - (most.bit_length() - 1))
    if passes > len(able):
        least = element_bits * (1 << size - len(able)) // 8
        return f"a pass needs at least {least} bytes, but only {smem_bytes} are available"
    split = split_of(one, other, able[len(able) - passes :], size)
    first, second, base, pass_base = sides_of(one, other, constant, split)
    asked = Asked(split.tile, base, pass_base, passes, element_bits, target, local)
    found: dict[str, tuple[Step, ...]] = {}
    because = "no instruction was found"
    for kinds, sides in _kinds(first, second, element_bits, target, lanes):
        try:
            made = _made(asked, sides, kinds)
        except LayoutError as error:
            because = error.diagnostic.because or error.diagnostic.what
            continue
        name = "shared" if kinds == ("store", "load") else "matrices"
        if made is not None and (name not in found or _load(made) < _load(found[name])):
            found[name] = made
    return found or because


@dataclass(frozen=True, slots=True)
class Spread:
    """Placement of a source's elements in shared memory, for loads of single elements.

    Args:
        registers: The source's registers in store order.
        store: The stores.
        bases: Elements that span all differences of two source elements.
        bytes_of: Per base, the byte it XORs into the address.
        load: The instruction that loads an element.
    """

    registers: tuple[int, ...]
    store: SharedAccess
    bases: tuple[int, ...]
    bytes_of: tuple[int, ...]
    load: str

    def at(self, element: int) -> int:
        """Return the byte address of an element of the source's space, relative to element 0."""
        _, used = matrix.eliminate(self.bases).reduce(element)
        return matrix.apply(self.bytes_of, used)


def spread(source: Places, wanted: Places, element_bits: int, target: str) -> Spread | str:
    """Return the optimal swizzle for storing a source and loading single elements by lanes and warps, or why none."""
    basis, inner = basis_of(source.columns)
    one, other = source.mapped(inner), replace(wanted, registers=()).mapped(inner)
    split = split_of(one, other, (), len(basis))
    first, second, base, pass_base = sides_of(one, other, inner(source.constant ^ wanted.constant), split)
    asked = Asked(split.tile, base, pass_base, 0, element_bits, target, False)
    offsets, served = placed(asked, (first, second), ("store", "load"))
    store = moved_by(asked, first, offsets, 0, served[0])
    if store is None:
        return f"{served[0].instruction} cannot store these registers"
    at = tuple(
        matrix.apply(offsets, matrix.apply(split.order, inner(vector))) * (element_bits // 8) for vector in basis
    )
    name = instruction_name(target, "load", element_bits)
    return Spread(tuple(matrix.table(store.numbers).tolist()), store.access, basis, at, name)


def _able(one: Places, other: Places) -> tuple[int, ...]:
    """A basis of the common registers not touched by lanes or warps of either; those that number passes come last."""
    common = matrix.intersection(one.registers, other.registers)
    moving = [*one.lanes, *one.warps, *other.lanes, *other.warps]
    plain = [column for column in one.registers if column and not matrix.remainder(common, column)]
    chosen = matrix.extension(moving, (*plain, *common))
    return tuple(vector for vector in chosen if not matrix.remainder(common, vector))


@dataclass(frozen=True, slots=True)
class Passes:
    """The columns of the map from elements to (tile coordinate, pass), and the tile's bits."""

    order: tuple[int, ...]
    tile: int


def split_of(one: Places, other: Places, numbers: Sequence[int], size: int) -> Passes:
    """Return coordinates with ``numbers`` last and all lanes and warps in the others."""
    moving = [*one.lanes, *one.warps, *other.lanes, *other.warps]
    units = [1 << bit for bit in range(size)]
    inside = matrix.image_basis(moving)
    plain = [unit for unit in units if not matrix.remainder(inside, unit)]
    basis = sorted(matrix.extension(numbers, (*plain, *inside, *units)))
    return Passes(matrix.inverse([*basis, *numbers]), len(basis))


def sides_of(one: Places, other: Places, constant: int, split: Passes) -> tuple[Side, Side, int, int]:
    """Return both sides in coordinates of the tile, and the tile and pass parts of the constant."""
    mask = (1 << split.tile) - 1
    sides = []
    for number, places in enumerate((one, other)):
        images = [matrix.apply(split.order, column) for column in places.registers]
        lanes = [matrix.apply(split.order, column) for column in places.lanes]
        warps = [matrix.apply(split.order, column) for column in places.warps]
        # Register sets that change only the pass, so the accesses of every pass have the same addresses.
        reduced = matrix.eliminate(images)
        last = tuple(reduced.reduce(1 << bit)[1] for bit in range(split.tile, len(split.order)))
        sets = [1 << bit ^ matrix.apply(last, image >> split.tile) for bit, image in enumerate(images)]
        vectors = [matrix.apply(images, each) & mask for each in sets]
        registers = matrix.extension((), vectors)
        origins = tuple(sets[vectors.index(vector)] for vector in registers)
        idle = 0
        if number == 0:  # threads that hold the same element: only one stores it
            threads = (*lanes, *warps)
            for bit, column in enumerate(threads):
                idle |= (not matrix.extension([*registers, *threads[:bit]], [column])) << bit
            kept = [0 if idle >> bit & 1 else column for bit, column in enumerate(threads)]
            lanes, warps = kept[: len(lanes)], kept[len(lanes) :]
        sides.append(Side(tuple(images), registers, origins, last, tuple(lanes), tuple(warps), idle))
    inner = matrix.apply(split.order, constant)
    return sides[0], sides[1], inner & mask, inner >> split.tile


def _kinds(
    first: Side, second: Side, element_bits: int, target: str, lanes: int
) -> Iterator[tuple[tuple[str, str], tuple[Side, Side]]]:
    """Yield the instruction kinds to try, with the registers in the order they need."""
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
                if not first.idle & lanes - 1:  # every lane supplies a row address
                    yield (kind, "load"), (ordered, second)
            else:
                yield ("store", kind), (first, ordered)


def _ordered(side: Side, begin: Sequence[int]) -> Side:
    """The side with the registers of ``begin`` first."""
    order = sorted(range(len(side.registers)), key=lambda at: (side.registers[at] not in begin, at))
    return replace(
        side, registers=tuple(side.registers[at] for at in order), origins=tuple(side.origins[at] for at in order)
    )


@dataclass(frozen=True, slots=True)
class Asked:
    """Common to all kinds of instructions: tile bits, tile and pass part of the constant, log2 of the passes."""

    tile: int
    base: int
    pass_base: int
    passes: int
    element_bits: int
    target: str
    local: bool


@dataclass(frozen=True, slots=True)
class Moved:
    """Accesses, the register set of each bit of an element's number, and the constant added to the number."""

    access: SharedAccess
    numbers: tuple[int, ...]
    added: int


def _made(asked: Asked, sides: tuple[Side, Side], kinds: tuple[str, str]) -> tuple[Step, ...] | None:
    """The steps with instructions of these kinds; None if they do not fit."""
    offsets, served = placed(asked, sides, kinds)
    store = moved_by(asked, sides[0], offsets, 0, served[0])
    load = moved_by(asked, sides[1], offsets, matrix.apply(offsets, asked.base), served[1])
    if store is None or load is None:
        return None
    barrier = "warp" if asked.local and not sides[0].idle >> len(sides[0].lanes) else "block"
    smem = asked.element_bits * (1 << asked.tile) // 8
    return taken_around(
        asked, Through(smem, barrier, 1 << asked.passes, store.access, load.access), sides, (store, load)
    )


def taken_around(asked: Asked, step: Through, sides: tuple[Side, Side], moves: tuple[Moved, Moved]) -> tuple[Step, ...]:
    """A step through shared memory between those that bring registers in store order and out of load order."""
    natural = max(1, WORD_BITS // asked.element_bits)
    (store, load), images = moves, sides[1].images
    reached = matrix.eliminate([matrix.apply(images, bits) for bits in load.numbers])
    back = [reached.reduce(image)[1] for image in images]
    added = load.added ^ asked.pass_base << len(load.numbers) - asked.passes
    return (
        *taken_by(matrix.table(store.numbers).tolist(), 1 << len(sides[0].images), natural),
        step,
        *taken_by(matrix.table(back, added).tolist(), 1 << len(load.numbers), natural),
    )


def placed(asked: Asked, sides: tuple[Side, Side], kinds: tuple[str, str]) -> tuple[Sequence[int], Sequence[Served]]:
    """Return the offsets of the tile's coordinates under the optimal swizzle, and how both accesses are served."""
    accesses = [TileAccess(layout_of(side, asked.tile), kind) for side, kind in zip(sides, kinds, strict=True)]
    try:
        plan = swizzle(accesses, asked.target, asked.element_bits)
    except RepresentabilityError:
        if kinds != ("store", "load"):
            raise
        return _apart(asked, sides)
    return plan.smem.columns, plan.served


def _apart(asked: Asked, sides: tuple[Side, Side]) -> tuple[tuple[int, ...], tuple[Served, Served]]:
    """Offsets for instructions with unknown banks: lanes of both sides differ in the lowest bits possible."""
    first, second = sides
    common = matrix.intersection(first.registers, second.registers)
    reached = matrix.image_basis([*first.lanes, *first.warps, *second.lanes, *second.warps])
    vector = matrix.extension(reached, common)[: (ROW_BITS // asked.element_bits).bit_length() - 1]
    rest = matrix.extension(vector, (*reached, *(1 << bit for bit in range(asked.tile))))
    order, low = matrix.inverse([*vector, *rest]), len(vector)
    lanes = [[matrix.apply(order, lane) >> low for lane in side.lanes] for side in sides]
    high = matrix.common_complement(lanes[0], lanes[1], len(rest))
    near = matrix.extension(high, (*lanes[0], *(1 << bit for bit in range(len(rest)))))
    back = matrix.inverse([*near, *high])
    columns = tuple(column & (1 << low) - 1 | matrix.apply(back, column >> low) << low for column in order)
    wide = asked.element_bits << low
    store, load = (instruction_name(asked.target, kind, wide) for kind in ("store", "load"))
    return columns, (Served(0, asked.target, store, 0, -1, 0, ""), Served(1, asked.target, load, 0, -1, 0, ""))


def layout_of(side: Side, tile: int) -> LinearLayout:
    """The side as a layout, without idle warps."""
    warps = [warp for bit, warp in enumerate(side.warps) if not side.idle >> len(side.lanes) + bit & 1]
    axes = (("register", len(side.registers)), ("lane", len(side.lanes)), ("warp", len(warps)))
    return LinearLayout(axes, (("tile", tile),), (*side.registers, *side.lanes, *warps))


def moved_by(asked: Asked, side: Side, offsets: Sequence[int], base: int, served: Served) -> Moved | None:
    """The accesses of a side under a swizzle; None if the instruction does not fit."""
    size = asked.element_bits // 8
    registers, lanes, warps = (
        [matrix.apply(offsets, image) for image in images] for images in (side.registers, side.lanes, side.warps)
    )
    if "matrix" in served.instruction:
        row = (ROW_BITS // asked.element_bits).bit_length() - 1
        held = (WORD_BITS // asked.element_bits).bit_length() - 1
        trans = served.instruction.endswith("trans")
        inside = [1 << bit for bit in range(held)]
        rest = completed(registers, inside, 0 if trans else held)
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
        rest = completed(registers, vector, low)
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


def completed(offsets: Sequence[int], vector: Sequence[int], low: int) -> list[int]:
    """Return register sets that complete a vector's to a basis, at offsets that are 0 in the ``low`` lowest bits."""
    sets = [1 << bit ^ matrix.apply(vector, offset & (1 << low) - 1) for bit, offset in enumerate(offsets)]
    images = [matrix.apply(offsets, each) for each in sets]
    chosen = matrix.extension([matrix.apply(offsets, each) for each in vector], images)
    return [sets[images.index(image)] for image in chosen]


def _load(steps: tuple[Step, ...]) -> tuple[int, int]:
    """Turns and accesses of the steps."""
    found = [access for step in steps if isinstance(step, Through) for access in (step.store, step.load)]
    return sum(access.turns for access in found), sum(access.count for access in found)
