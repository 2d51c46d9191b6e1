"""Conversions across the blocks of a cluster: store to the block's own shared memory, load from any block's.

Mathematically: blocks are further bits of the warp. The map from a place of the destination to the source place of its
element is linear (``fetched``); its block part is the cluster rank to load from, and the element without the block's
contribution is a place in a tile that every block stores in the same way. The tile gets the optimal swizzle for the two
accesses; the registers of a vector are those that do not change the rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from layoutalg.f2 import matrix
from layoutalg.proofs.conversion_steps import WORD_BITS, SharedAccess, Step, Through, taken_by
from layoutalg.proofs.swizzling import instruction_bits
from layoutalg.synth.conversions.inside import Fetched, Places, basis_of
from layoutalg.synth.conversions.through import Asked, Side, completed, moved_by, placed, sides_of, split_of
from layoutalg.targets.target_model import Fact, model_of

LINE_BYTES = 128


def across(
    source: Places, wanted: Places, moved: Fetched, blocks: int, element_bits: int, target: str, smem_bytes: int
) -> tuple[Step, ...] | str:
    """Return steps through the shared memory of a cluster, or why there are none."""
    refused = _without_cluster(target, 1 << blocks)
    if refused:
        return refused
    tile = _tile(source, wanted, moved, blocks)
    size = element_bits // 8
    window = max(LINE_BYTES, size << tile.bits)
    if window > smem_bytes:
        return f"the elements of a block need {window} bytes, but only {smem_bytes} are available"
    asked = Asked(tile.bits, tile.base, 0, 0, element_bits, target, False)
    far = replace(tile.far, registers=tuple(matrix.apply(tile.far.images, bits) for bits in tile.vectors))
    offsets, served = placed(asked, (tile.near, far), ("store", "load"))
    store = moved_by(asked, tile.near, offsets, 0, served[0])
    if store is None:
        return f"{served[0].instruction} cannot store these registers"
    loaded = _loaded(tile, offsets, served[1].instruction, element_bits, window)
    if loaded is None:
        return f"{served[1].instruction} cannot load these registers"
    stored = replace(store.access, threads=(*store.access.threads, *(window << bit for bit in range(blocks))))
    accesses = [replace(each, turns=each.counted(target, 1 << moved.lanes)) for each in (stored, loaded.access)]
    step = Through(window << blocks, "cluster", 1, accesses[0], accesses[1], 1 << blocks)
    natural = max(1, WORD_BITS // element_bits)
    before = taken_by(matrix.table(store.numbers).tolist(), 1 << len(source.registers), natural)
    return (*before, step, *taken_by(loaded.order, 1 << len(loaded.numbers), natural))


def _without_cluster(target: str, blocks: int) -> str:
    """Why a target has no cluster of this many blocks; empty if it has."""
    fact = model_of(target).limit("cluster_blocks")
    most = int(fact.value) if isinstance(fact, Fact) and isinstance(fact.value, int) else 1
    if most == 1:
        return f"elements change blocks, but {target} has no clusters: no block can read another's shared memory"
    if blocks <= most:
        return ""
    return f"elements change blocks, and {blocks} blocks exceed the {most} of a portable cluster"


@dataclass(frozen=True, slots=True)
class _Tile:
    """The stores to the own block and the loads from any block, in coordinates of the block's tile.

    ``near`` stores and ``far`` loads; the register sets ``vectors`` of ``far`` do not change the rank. ``ranks`` are
    the ranks that the images of ``far`` are loaded from, ``rank`` and ``base`` the rank and coordinate of place 0.
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
    basis, inner = basis_of(own.columns)

    def element(place: int) -> int:
        return matrix.apply(own.columns, place & (1 << top) - 1)

    columns, first = [element(place) for place in moved.columns], len(wanted.registers)
    lanes = first + moved.lanes
    images = Places(tuple(columns[:first]), tuple(columns[first:lanes]), tuple(columns[lanes:]), 0)
    one, other = own.mapped(inner), images.mapped(inner)
    split = split_of(one, other, (), len(basis))
    near, far, base, _ = sides_of(one, other, inner(element(moved.constant)), split)
    ranks = tuple(place >> top for place in moved.columns)
    sets = matrix.kernel(ranks[:first])
    reached = [matrix.apply(far.images, bits) for bits in sets]
    vectors = tuple(sets[reached.index(image)] for image in matrix.extension((), reached))
    return _Tile(split.tile, near, far, vectors, ranks, moved.constant >> top, base)


@dataclass(frozen=True, slots=True)
class _Loaded:
    """Loads from any block, the register set of each number bit, and the final register order."""

    access: SharedAccess
    numbers: tuple[int, ...]
    order: list[int]


def _loaded(tile: _Tile, offsets: Sequence[int], instruction: str, element_bits: int, window: int) -> _Loaded | None:
    """Return the loads of a tile at given offsets; None if the instruction does not fit."""
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
    numbers = [*vector, *completed(registers, vector, low, size.bit_length() - 1)]
    start = size * matrix.apply(offsets, tile.base) | window * tile.rank
    added = start // size & elements - 1
    starts = matrix.table([matrix.apply(registers, bits) for bits in numbers[low:]], start ^ size * added)
    access = SharedAccess(instruction, elements, tuple(threads), tuple(starts.tolist()), 0, 0)
    reached = matrix.eliminate([matrix.apply(registers, bits) for bits in numbers])
    order = matrix.table([reached.reduce(each)[1] for each in registers], added).tolist()
    return _Loaded(access, tuple(numbers), order)
