"""Conversions across the blocks of a cluster: own shared memory is stored to, any block's is loaded from.

Main definitions: ``across``.

Mathematically: blocks are taken as further bits of the warp. Where each place of the destination finds its element in
the source is linear (``fetched``); its block part is the rank that is loaded from, and its element, without what the
block adds, a place of one tile that every block stores alike. The tile's swizzle is the optimal one of the two
accesses, the registers of a vector being those that change no rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from layoutalg.f2 import matrix
from layoutalg.ground.errors import RepresentabilityError
from layoutalg.proofs.conversion_steps import WORD_BITS, SharedAccess, Step, Take, Through
from layoutalg.proofs.swizzling import TileAccess, instruction_bits
from layoutalg.synth.conversions.inside import Fetched, Places
from layoutalg.synth.conversions.through import Asked, apart, layout_of, moved_by, sides_of, split_of
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
    fact = model_of(target).limit("cluster_blocks")
    most = int(fact.value) if isinstance(fact, Fact) and isinstance(fact.value, int) else 1
    if most == 1:
        return f"elements change their block, and {target} has no clusters: no block reads another's shared memory"
    if 1 << blocks > most:
        return f"elements change their block, and {1 << blocks} blocks are more than the {most} of a portable cluster"
    size = element_bits // 8
    top = moved.registers + moved.lanes + moved.warps - blocks
    own = Places(source.registers, source.lanes, source.warps[: len(source.warps) - blocks], 0)

    def element(place: int) -> int:
        return matrix.apply(own.columns, place & (1 << top) - 1)

    held = matrix.eliminate(own.columns)
    tops = [vector.bit_length() - 1 for vector, _ in held.pivots]

    def inner(vector: int) -> int:
        return sum((vector >> top & 1) << at for at, top in enumerate(tops))

    window = max(LINE_BYTES, size << len(tops))
    if window > smem_bytes:
        return f"the elements of a block take {window} bytes, more than the {smem_bytes} bytes there are"
    columns, first = [element(place) for place in moved.columns], len(wanted.registers)
    images = Places(
        tuple(columns[:first]), tuple(columns[first : first + moved.lanes]), tuple(columns[first + moved.lanes :]), 0
    )
    one, other = own.mapped(inner), images.mapped(inner)
    split = split_of(one, other, (), len(tops))
    near, far, base, _ = sides_of(one, other, inner(element(moved.constant)), split)
    asked = Asked(split.tile, base, 0, 0, element_bits, target, False)
    ranks = [place >> top for place in moved.columns]
    still = matrix.kernel(ranks[:first])
    vectors: list[int] = []
    for bits in still:
        if matrix.rank([matrix.apply(far.images, each) for each in (*vectors, bits)]) > len(vectors):
            vectors.append(bits)
    load_side = replace(far, registers=tuple(matrix.apply(far.images, bits) for bits in vectors))
    accesses = [TileAccess(layout_of(side, split.tile), kind) for side, kind in ((near, "store"), (load_side, "load"))]
    try:
        plan = swizzle(accesses, target, element_bits)
        offsets, served = plan.smem.columns, plan.served
    except RepresentabilityError:
        offsets, served = apart(asked, (near, load_side))
    store = moved_by(asked, near, offsets, 0, served[0])
    if store is None:
        return f"no {served[0].instruction} stores what registers hold"
    elements = instruction_bits(served[1].instruction) // element_bits
    low = elements.bit_length() - 1
    found = matrix.eliminate([matrix.apply(offsets, image) for image in load_side.registers])
    solved = [found.reduce(1 << bit) for bit in range(low)]
    if any(left for left, _ in solved):
        return f"no {served[1].instruction} loads what registers want"
    vector = [matrix.apply(vectors, used) for _, used in solved]
    byte = [size * matrix.apply(offsets, image) | window * rank
            for image, rank in zip((*far.images, *far.lanes, *far.warps), ranks, strict=True)]  # fmt: skip
    numbers = [*vector, *_rest(byte[:first], vector, size)]
    start = size * matrix.apply(offsets, base) | window * (moved.constant >> top)
    added = start // size & elements - 1
    starts = matrix.table([matrix.apply(byte[:first], bits) for bits in numbers[low:]], start ^ size * added)
    load = SharedAccess(served[1].instruction, elements, tuple(byte[first:]), tuple(starts.tolist()), 0, 0)
    stored = replace(store.access, threads=(*store.access.threads, *(window << bit for bit in range(blocks))))
    lanes = 1 << moved.lanes
    stored, load = (replace(each, turns=each.counted(target, lanes)) for each in (stored, load))
    step = Through(window << blocks, "cluster", 1, stored, load, 1 << blocks)
    reached = matrix.eliminate([matrix.apply(byte[:first], bits) for bits in numbers])
    after = matrix.table([reached.reduce(each)[1] for each in byte[:first]], added).tolist()
    before = matrix.table(store.numbers).tolist()
    natural = max(1, WORD_BITS // element_bits)
    steps: list[Step] = [step]
    if before != list(range(1 << len(source.registers))):
        steps.insert(0, Take(tuple(before), natural, natural))
    if after != list(range(1 << len(numbers))):
        steps.append(Take(tuple(after), natural, natural))
    return tuple(steps)


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
