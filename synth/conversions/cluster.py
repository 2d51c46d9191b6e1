"""Conversions across the blocks of a cluster: store to the block's own shared memory, load from any block's.

Mathematically: blocks are further bits of the warp. The map from a place of the destination to the source place of its
element is linear (``fetched``); its block part is the cluster rank to load from, and the element without the block's
contribution is a place in a tile that every block stores in the same way. The tile gets the optimal swizzle for the two
accesses; the registers of a vector are those that do not change the rank.
"""

from __future__ import annotations

from dataclasses import replace

from layoutalg.f2 import matrix
from layoutalg.proofs.conversion_steps import Step, Through
from layoutalg.synth.conversions.inside import Fetched, Places, basis_of
from layoutalg.synth.conversions.through import Asked, Side, moved_by, placed, sides_of, split_of, taken_around
from layoutalg.targets.bank_counting import TURN_BYTES
from layoutalg.targets.target_model import Fact, model_of


def across(
    source: Places, wanted: Places, moved: Fetched, blocks: int, element_bits: int, target: str, smem_bytes: int
) -> tuple[Step, ...] | str:
    """Return steps through the shared memory of a cluster, or why there are none."""
    refused = _without_cluster(target, 1 << blocks)
    if refused:
        return refused
    top = moved.registers + moved.lanes + moved.warps - blocks
    own = Places(source.registers, source.lanes, source.warps[: len(source.warps) - blocks], 0)
    basis, inner = basis_of(own.columns)

    def element(place: int) -> int:
        return inner(matrix.apply(own.columns, place & (1 << top) - 1))

    first, lanes = len(wanted.registers), len(wanted.registers) + moved.lanes
    columns = tuple(map(element, moved.columns))
    one, other = own.mapped(inner), Places(columns[:first], columns[first:lanes], columns[lanes:], 0)
    split = split_of(one, other, (), len(basis))
    near, far, base, _ = sides_of(one, other, element(moved.constant), split)
    size = element_bits // 8
    window = max(TURN_BYTES, size << split.tile)
    if window > smem_bytes:
        return f"the elements of a block need {window} bytes, but only {smem_bytes} are available"
    ranks = [place >> top for place in (*moved.columns, moved.constant)]
    # registers of a vector do not change the rank
    still = [matrix.apply(far.images, bits) for bits in matrix.kernel(ranks[:first])]
    asked = Asked(split.tile, base, 0, 0, element_bits, target, False)
    offsets, served = placed(asked, (near, replace(far, registers=matrix.extension((), still))), ("store", "load"))
    wide = _ranked(far, ranks, split.tile)
    places = (*offsets, *(window // size << bit for bit in range(blocks)))
    store = moved_by(asked, near, offsets, 0, served[0])
    load = moved_by(asked, wide, places, matrix.apply(places, base | ranks[-1] << split.tile), served[1])
    if store is None or load is None:
        name, each = ("store", served[0]) if store is None else ("load", served[1])
        return f"{each.instruction} cannot {name} these registers"
    stored = replace(store.access, threads=(*store.access.threads, *(window << bit for bit in range(blocks))))
    accesses = [replace(each, turns=each.counted(target, 1 << moved.lanes)) for each in (stored, load.access)]
    step = Through(window << blocks, "cluster", 1, accesses[0], accesses[1], 1 << blocks)
    return taken_around(asked, step, (near, wide), (store, load))


def _ranked(side: Side, ranks: list[int], tile: int) -> Side:
    """The side in coordinates of the tile, then the rank."""
    bits = len(side.images), len(side.images) + len(side.lanes)
    images = (*side.images, *side.lanes, *side.warps)
    every = tuple(image | rank << tile for image, rank in zip(images, ranks, strict=False))
    registers = matrix.extension((), every[: bits[0]])
    origins = tuple(1 << every.index(register) for register in registers)
    return Side(every[: bits[0]], registers, origins, (), every[bits[0] : bits[1]], every[bits[1] :], 0)


def _without_cluster(target: str, blocks: int) -> str:
    """Why a target has no cluster of this many blocks; empty if it has."""
    fact = model_of(target).limit("cluster_blocks")
    most = int(fact.value) if isinstance(fact, Fact) and isinstance(fact.value, int) else 1
    if most == 1:
        return f"elements change blocks, but {target} has no clusters: no block can read another's shared memory"
    if blocks <= most:
        return ""
    return f"elements change blocks, and {blocks} blocks exceed the {most} of a portable cluster"
