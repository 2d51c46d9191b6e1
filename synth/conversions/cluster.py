"""Conversions across the blocks of a cluster: own shared memory is stored to, any block's is loaded from.

Mathematically: blocks are taken as further bits of the warp. Where each place of the destination finds its element in
the source is linear (``fetched``); its block part is the rank that is loaded from, and its element, without what the
block adds, a place of one tile that every block stores alike. The tile's swizzle is the optimal one of the two
accesses, the registers of a vector being those that change no rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from layoutalg.f2 import matrix
from layoutalg.ground.errors import RepresentabilityError
from layoutalg.proofs.conversion_steps import WORD_BITS, SharedAccess, Step, Take, Through
from layoutalg.proofs.served import Served
from layoutalg.proofs.swizzling import TileAccess, instruction_bits
from layoutalg.synth.conversions.inside import Fetched, Places
from layoutalg.synth.conversions.through import Asked, Side, apart, layout_of, moved_by, sides_of, split_of
from layoutalg.synth.swizzles import swizzle
from layoutalg.targets.target_model import Fact, model_of

LINE_BYTES = 128


def across(
    source: Places, wanted: Places, moved: Fetched, blocks: int, element_bits: int, target: str, smem_bytes: int
) -> tuple[Step, ...] | str:
    """Return steps through the shared memory of a cluster; why there are none, else.

    Args:
        source: What registers hold, the last warp bits being those of the block.
        wanted: What they are to hold.
        moved: Where the destination's elements are found.
        blocks: Bits of the block.
        element_bits: Bits of an element.
        target: The target.
        smem_bytes: Most bytes of shared memory of a block.
    """
    refused = _without_cluster(target, 1 << blocks)
    if refused:
        return refused
    tile = _tile(source, wanted, moved, blocks)
    size = element_bits // 8
    window = max(LINE_BYTES, size << tile.bits)
    if window > smem_bytes:
        return f"the elements of a block take {window} bytes, more than the {smem_bytes} bytes there are"
    asked = Asked(tile.bits, tile.base, 0, 0, element_bits, target, False)
    offsets, served = _placed(asked, tile)
    store = moved_by(asked, tile.near, offsets, 0, served[0])
    if store is None:
        return f"no {served[0].instruction} stores what registers hold"
    loaded = _loaded(tile, offsets, served[1].instruction, element_bits, window)
    if loaded is None:
        return f"no {served[1].instruction} loads what registers want"
    stored = replace(store.access, threads=(*store.access.threads, *(window << bit for bit in range(blocks))))
    accesses = [replace(each, turns=each.counted(target, 1 << moved.lanes)) for each in (stored, loaded.access)]
    step = Through(window << blocks, "cluster", 1, accesses[0], accesses[1], 1 << blocks)
    taken = (matrix.table(store.numbers).tolist(), loaded.order)
    natural = max(1, WORD_BITS // element_bits)
    before, after = (() if order == list(range(1 << len(registers))) else (Take(tuple(order), natural, natural),)
                     for order, registers in zip(taken, (source.registers, loaded.numbers), strict=True))  # fmt: skip
    return (*before, step, *after)


def _without_cluster(target: str, blocks: int) -> str:
    """Why a target has no cluster of so many blocks; empty where it has."""
    fact = model_of(target).limit("cluster_blocks")
    most = int(fact.value) if isinstance(fact, Fact) and isinstance(fact.value, int) else 1
    if most == 1:
        return f"elements change their block, and {target} has no clusters: no block reads another's shared memory"
    few = blocks <= most
    return (
        ""
        if few
        else f"elements change their block, and {blocks} blocks are more than the {most} of a portable cluster"
    )


@dataclass(frozen=True, slots=True)
class _Tile:
    """What a block stores, and loads from any block, in coordinates of the block's tile.

    ``near`` stores; ``far`` loads, of its registers the sets ``vectors`` change no rank; ``ranks`` are those that the
    images of ``far`` are loaded from, ``rank`` and ``base`` the rank and the coordinate of place 0.
    """

    bits: int
    near: Side
    far: Side
    vectors: tuple[int, ...]
    ranks: tuple[int, ...]
    rank: int
    base: int


def _tile(source: Places, wanted: Places, moved: Fetched, blocks: int) -> _Tile:
    """Return the tile of a block."""
    top = moved.registers + moved.lanes + moved.warps - blocks
    own = Places(source.registers, source.lanes, source.warps[: len(source.warps) - blocks], 0)
    held = matrix.eliminate(own.columns)
    tops = [vector.bit_length() - 1 for vector, _ in held.pivots]

    def element(place: int) -> int:
        return matrix.apply(own.columns, place & (1 << top) - 1)

    def inner(vector: int) -> int:
        return sum((vector >> top & 1) << at for at, top in enumerate(tops))

    columns, first = [element(place) for place in moved.columns], len(wanted.registers)
    lanes = first + moved.lanes
    images = Places(tuple(columns[:first]), tuple(columns[first:lanes]), tuple(columns[lanes:]), 0)
    one, other = own.mapped(inner), images.mapped(inner)
    split = split_of(one, other, (), len(tops))
    near, far, base, _ = sides_of(one, other, inner(element(moved.constant)), split)
    ranks = tuple(place >> top for place in moved.columns)
    vectors: list[int] = []
    for bits in matrix.kernel(ranks[:first]):
        if matrix.rank([matrix.apply(far.images, each) for each in (*vectors, bits)]) > len(vectors):
            vectors.append(bits)
    return _Tile(split.tile, near, far, tuple(vectors), ranks, moved.constant >> top, base)


def _placed(asked: Asked, tile: _Tile) -> tuple[Sequence[int], Sequence[Served]]:
    """Return the offsets of the tile's coordinates, and how both accesses are served."""
    far = replace(tile.far, registers=tuple(matrix.apply(tile.far.images, bits) for bits in tile.vectors))
    sides = (tile.near, far)
    accesses = [
        TileAccess(layout_of(side, tile.bits), kind) for side, kind in zip(sides, ("store", "load"), strict=True)
    ]
    try:
        plan = swizzle(accesses, asked.target, asked.element_bits)
        return plan.smem.columns, plan.served
    except RepresentabilityError:
        return apart(asked, sides)


@dataclass(frozen=True, slots=True)
class _Loaded:
    """Loads from any block, the sets of registers that their numbers are, and the order to bring registers into."""

    access: SharedAccess
    numbers: tuple[int, ...]
    order: list[int]


def _loaded(tile: _Tile, offsets: Sequence[int], instruction: str, element_bits: int, window: int) -> _Loaded | None:
    """Return the loads of a tile behind its offsets; None where the instruction does not fit."""
    size, elements = element_bits // 8, instruction_bits(instruction) // element_bits
    low, far = elements.bit_length() - 1, tile.far
    found = matrix.eliminate([matrix.apply(offsets, matrix.apply(far.images, bits)) for bits in tile.vectors])
    solved = [found.reduce(1 << bit) for bit in range(low)]
    if any(left for left, _ in solved):
        return None
    vector = [matrix.apply(tile.vectors, used) for _, used in solved]
    byte = [size * matrix.apply(offsets, image) | window * rank
            for image, rank in zip((*far.images, *far.lanes, *far.warps), tile.ranks, strict=True)]  # fmt: skip
    registers, threads = byte[: len(far.images)], byte[len(far.images) :]
    numbers = [*vector, *_rest(registers, vector, size)]
    start = size * matrix.apply(offsets, tile.base) | window * tile.rank
    added = start // size & elements - 1
    starts = matrix.table([matrix.apply(registers, bits) for bits in numbers[low:]], start ^ size * added)
    access = SharedAccess(instruction, elements, tuple(threads), tuple(starts.tolist()), 0, 0)
    reached = matrix.eliminate([matrix.apply(registers, bits) for bits in numbers])
    order = matrix.table([reached.reduce(each)[1] for each in registers], added).tolist()
    return _Loaded(access, tuple(numbers), order)


def _rest(byte: Sequence[int], vector: Sequence[int], size: int) -> list[int]:
    """Sets of registers that complete those of a vector, at bytes that are 0 in the vector's bits."""
    chosen: list[int] = []
    low = size.bit_length() - 1
    for bit, at in enumerate(byte):
        unit = 1 << bit
        for place, bits in enumerate(vector):
            if at >> low + place & 1:
                unit ^= bits
        every = [matrix.apply(byte, bits) for bits in (*vector, *chosen, unit)]
        if matrix.rank(every) == len(every):
            chosen.append(unit)
    return chosen
