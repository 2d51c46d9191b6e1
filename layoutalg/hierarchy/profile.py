"""The level profile of a conversion: what crosses each cut, and which mechanism must move it.

Let P = dst^-1 o src on the box of levels. At a cut, over F2, with r the rank of the matrix block from below to above,
every source block feeds exactly 2**r destination blocks, and every destination block reads from 2**r source blocks.
The ranks r of all corner blocks are invariant when P is multiplied on either side by maps that keep blocks together.
The same holds for digits that divide at the cut, with the product of the extents that cross it. ``moved`` is finer: how
many values change their block number.

Notation: ``mechanism`` is what the conversion needs: it is given by the innermost cut that nothing crosses.
``intrinsic`` is what it would need if the blocks above a cut could be renumbered for free: then every block must feed
at most one block and read from at most one, no matter which.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from layoutalg.f2 import LinearLayout, matrix, solve
from layoutalg.f2.axes import fields
from layoutalg.ground.check import refuse
from layoutalg.ground.digits import Digits, IntArray, aligned, placed, shared_bits, weights
from layoutalg.hierarchy.bijection import Bijection, DigitMap
from layoutalg.hierarchy.blocks import cut_digits
from layoutalg.hierarchy.layout import HierarchicalLayout
from layoutalg.hierarchy.levels import (
    CUTS,
    MECHANISMS,
    Cut,
    Mechanism,
    block_size,
    cut_level,
    malformed,
    require,
    same_levels,
)


def kept_on_common_digits(pieces: Digits, origin: int, below: int) -> int:
    """Return how many points keep every digit above the cut, for common digits of both sides.

    For bits this is an affine system over F2, for the other digits see ``_cycles``.
    """
    bits = [(weight, stride) for weight, extent, stride in placed(pieces) if extent == 2]
    others = [(weight, extent, stride) for weight, extent, stride in placed(pieces) if extent != 2]
    place = {weight: 1 << k for k, (weight, _) in enumerate(bits) if weight >= below}
    change = [sum(place.get(bit, 0) for bit in weights(stride)) ^ place.get(weight, 0) for weight, stride in bits]
    wanted = sum(mask for weight, mask in place.items() if origin // weight % 2)
    solved = matrix.solve(change, wanted)
    if solved is None:
        return 0
    plain = [(weight, extent, stride) for weight, extent, stride in others if isinstance(stride, int)]
    return _cycles(plain, below) << len(solved[1])


def _cycles(digits: list[tuple[int, int, int]], below: int) -> int:
    """Return how many values of plain digits, as (weight, extent, stride), keep every digit above the cut.

    Above the cut, the digit that arrives at a place must equal the digit that was there. These equations form chains
    and cycles. Each has one solution per digit value, except that a cycle with an odd number of reversals has only the
    midpoint of an odd extent.
    """
    arrow = {place: (abs(stride), stride < 0) for place, _, stride in digits if abs(stride) >= below}
    reached = {place for place, _ in arrow.values()}
    kept, seen = 1, set[int]()
    # chains first, from their start; the rest are cycles
    for place, extent, _ in sorted(digits, key=lambda digit: digit[0] in reached):
        if place in seen:
            continue
        here, turned = place, False
        while here not in seen:
            seen.add(here)
            here, reversed_ = arrow.get(here, (here, False))
            turned ^= reversed_
        kept *= extent % 2 if turned and place in reached else extent
    return kept


@dataclass(frozen=True, slots=True)
class CutProfile:
    """What happens at one cut.

    Args:
        block: Points of one block, inactive ones included.
        blocks: Number of blocks.
        fanout: Least and greatest number of destination blocks fed by one source block; (0, 0) if no point is active.
            Blocks without active points are ignored.
        fanin: Least and greatest number of source blocks read by one destination block.
        moved: Active points that change their block number.
        rank: Over F2 without guards the rank r, with ``fanin`` = (2**r, 2**r); otherwise None.
    """

    cut: Cut
    block: int
    blocks: int
    fanout: tuple[int, int]
    fanin: tuple[int, int]
    moved: int
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class LevelProfile:
    """How much data each level moves across the next.

    Args:
        cuts: One profile per cut, innermost first.
        active: Number of values to convert.
    """

    cuts: tuple[CutProfile, ...]
    active: int

    def at(self, cut: str) -> CutProfile:
        """Return the profile of one cut."""
        return self.cuts[cut_level(cut)]

    @property
    def mechanism(self) -> Mechanism:
        """The cheapest mechanism that moves every value to its destination."""
        quiet = next((k for k, entry in enumerate(self.cuts) if entry.moved == 0), len(CUTS))
        return MECHANISMS[quiet]

    @property
    def intrinsic(self) -> Mechanism:
        """The cheapest mechanism that suffices if whole blocks may be renumbered for free.

        Mathematically: that of the innermost cut where the relation "source block feeds destination block" is
        one-to-one, so that some numbering keeps every value in its block.
        """
        quiet = next((k for k, entry in enumerate(self.cuts) if max(*entry.fanout, *entry.fanin) <= 1), len(CUTS))
        return MECHANISMS[quiet]

    @property
    def traffic(self) -> dict[Mechanism, int]:
        """Mechanism -> number of values for which it is the cheapest sufficient one; the sum is ``active``."""
        reach = [self.active, *(entry.moved for entry in self.cuts), 0]
        return {name: reach[k] - reach[k + 1] for k, name in enumerate(MECHANISMS)}

    def __str__(self) -> str:
        lines = [f"{self.mechanism}: {self.active} values"]
        for entry in self.cuts:
            feeds, reads = (str(low) if low == high else f"{low}..{high}" for low, high in (entry.fanout, entry.fanin))
            spread = f"feeds and reads {feeds}" if feeds == reads else f"feeds {feeds}, reads {reads}"
            rank = "" if entry.rank is None else f", rank {entry.rank}"
            lines.append(f"  {entry.cut}: {entry.moved} moved, each block {spread} of {entry.blocks}{rank}")
        return "\n".join(lines)


def _digit_fanout(bijection: Bijection, below: int) -> int | None:
    """Return how many blocks every block feeds and reads from; None if enumeration is needed."""
    pieces = cut_digits(bijection, below)
    if pieces is None:
        return None
    bits = sorted(shared_bits(pieces))
    spread, columns = 1, []
    for weight, extent, stride in placed(pieces):
        touched = weights(stride)
        if weight < below and bits and not set(bits).isdisjoint(touched):
            columns.append(sum(1 << bits.index(bit) for bit in touched if bit >= below))
        elif weight < below <= touched[0]:
            spread *= extent
    return spread << matrix.rank(columns)


def _digit_moved(mapping: DigitMap, below: int) -> int | None:
    """Return how many points change their block number, counted digit by digit on common boundaries.

    None if there are none, so that enumeration is needed.
    """
    pieces = aligned(mapping.modes, [below])
    return None if pieces is None else mapping.size - kept_on_common_digits(pieces, mapping.offset, below)


Counts: TypeAlias = tuple[tuple[int, int], tuple[int, int], int]
"""Fan-out and fan-in of the blocks (least, greatest), and the number of points that change their block number."""


def counts_by_digits(bijection: Bijection, below: int) -> Counts | None:
    """Return the counts at blocks of ``below`` points; None if enumeration is needed."""
    spread = _digit_fanout(bijection, below)
    if spread is None or not isinstance(bijection, DigitMap):
        return None
    moved = _digit_moved(bijection, below)
    return None if moved is None else ((spread, spread), (spread, spread), moved)


def counts_of_table(values: IntArray, below: int) -> Counts:
    """Return the counts of a table at blocks of ``below`` points; -1 marks inactive points."""
    inside = np.flatnonzero(values >= 0)
    if not len(inside):
        return (0, 0), (0, 0), 0
    count = len(values) // below
    here, there = inside // below, values[inside] // below
    pairs = np.sort(here * count + there)
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]
    return _extremes(pairs // count), _extremes(pairs % count), int(np.count_nonzero(here != there))


def _extremes(blocks: IntArray) -> tuple[int, int]:
    """Return the least and greatest number of occurrences."""
    counts = np.bincount(blocks)
    return int(counts[counts > 0].min()), int(counts.max())


def level_profile(source: HierarchicalLayout, destination: HierarchicalLayout) -> LevelProfile:
    """Return what crosses each cut when data is converted from ``source`` to ``destination``.

    Args:
        source: From a box of levels to a tensor: which element each register holds now.
        destination: From the same box of levels to the same tensor: which element each register must hold.

    Returns:
        The profile of P = destination^-1 o source. Values excluded by a guard of either side do not count.

    Example:
        >>> from layoutalg.hierarchy import Box, hierarchy
        >>> levels, tensor = hierarchy(lane=4, register=2), Box.of(x=8)
        >>> blocked = HierarchicalLayout(levels, tensor, DigitMap(((8, 1),)))
        >>> striped = HierarchicalLayout(levels, tensor, DigitMap(((2, 4), (4, 1))))
        >>> profile = level_profile(blocked, striped)
        >>> print(profile)
        shuffle: 8 values
          register|lane: 6 moved, each block feeds and reads 2 of 4, rank 1
          lane|warp: 0 moved, each block feeds and reads 1 of 1, rank 0
          warp|cta: 0 moved, each block feeds and reads 1 of 1, rank 0
          cta|cluster: 0 moved, each block feeds and reads 1 of 1, rank 0

    Source: parabolic double cosets (classical).
    """
    require(source, HierarchicalLayout, "source")
    require(destination, HierarchicalLayout, "destination")
    same_levels(source.source, destination.source, source, destination)
    if source.target != destination.target:
        because = f"the source maps to ({source.target}), the destination to ({destination.target})"
        witness = {"source": source.target.dims, "destination": destination.target.dims}
        raise refuse("LA751", "the two layouts map to different tensors", because, witness, source, destination)
    return profile_of(destination.inverse() @ source)


def profile_of(conversion: HierarchicalLayout) -> LevelProfile:
    """Return the level profile of a bijection of a box of levels; see ``level_profile``."""
    box = require(conversion, HierarchicalLayout, "conversion").source
    same_levels(box, conversion.target, conversion)
    values: IntArray | None = None
    linear = isinstance(conversion.map, DigitMap) and not conversion.guards and conversion.size.bit_count() == 1
    entries = []
    for cut in CUTS:
        below = block_size(box, cut)
        found = None if conversion.guards else counts_by_digits(conversion.map, below)
        if found is None:
            values = conversion.table() if values is None else values
            found = counts_of_table(values, below)
        feeds, reads, count = found
        rank = feeds[0].bit_length() - 1 if linear else None
        entries.append(CutProfile(cut, below, conversion.size // below, feeds, reads, count, rank))
    active = conversion.active() if values is None else int(np.count_nonzero(values >= 0))
    return LevelProfile(tuple(entries), active)


AXES = ("register", "lane", "warp", "block")
"""Compiler names of the levels, innermost first; a block is a CTA of the cluster."""


def conversion_profile(source: LinearLayout, destination: LinearLayout) -> LevelProfile:
    """Return what crosses each cut when data is converted from ``source`` to ``destination``.

    Mathematically: C maps positions of ``destination`` to positions of ``source``, with ``source @ C == destination``,
    and keeps block, warp, lane and register in place as far as possible, choosing among copies in ``source``. At a cut
    with 2**a blocks, let F be the part of C from the axes below to the axes above, E the part from above to above, and
    r the rank of F. Every destination block reads from 2**r source blocks. Every source block that is read feeds
    2**(a + r - s) destination blocks, s the rank of (E F); the others are not read. For layouts without copies s = a,
    and the profile equals ``level_profile``. ``intrinsic`` renumbers blocks but does not choose other copies.

    Args:
        source: (register, lane, warp, block) -> tensor, in any order, axes may be missing: where each value is.
        destination: The same for the required layout, over the same output axes.

    Example:
        >>> rows = LinearLayout.from_bases({"register": [(1,)], "lane": [(2,)], "warp": [(4,)]}, {"x": 8})
        >>> copied = LinearLayout.from_bases({"register": [(2,)], "lane": [(1,)], "warp": [(0,)]}, {"x": 8})
        >>> print(conversion_profile(rows, copied))
        shared: 8 values
          register|lane: 6 moved, each block feeds 4, reads 2 of 4, rank 1
          lane|warp: 4 moved, each block feeds 2, reads 1 of 2, rank 0
          warp|cta: 0 moved, each block feeds and reads 1 of 1, rank 0
          cta|cluster: 0 moved, each block feeds and reads 1 of 1, rank 0

    Source: arXiv 2505.23819, section 5 (conversions of linear layouts); the ranks are explained in ``profile``.
    """
    for argument, layout in (("source", source), ("destination", destination)):
        for name in require(layout, LinearLayout, argument).in_dims:
            if name not in AXES:
                raise malformed(argument, f"must have input axes among {list(AXES)}", name)
    for name in AXES[1:]:
        extents = source.in_dims.get(name, 1), destination.in_dims.get(name, 1)
        if extents[0] != extents[1]:
            because = f"the source has {extents[0]} of {name}, the destination {extents[1]}"
            witness = {"axis": name, "source": extents[0], "destination": extents[1]}
            raise refuse("LA756", "the layouts are for different machine shapes", because, witness, source, destination)
    gather = solve(source, destination).choose("local")
    entries = []
    for index, cut in enumerate(CUTS):
        above = AXES[index + 1 :]
        mask = sum(((1 << bits) - 1) << low for name, low, bits in fields(gather.out_axes) if name in above)
        crossing, carried, displaced = [], [], []
        for name, low, bits in fields(gather.in_axes):
            at = {axis: place for axis, place, _ in fields(gather.out_axes)}.get(name, 0)
            for bit in range(bits):
                image = gather.columns[low + bit] & mask
                if name in above:
                    carried.append(image)
                    image ^= 1 << (at + bit)
                else:
                    crossing.append(image)
                displaced.append(image)
        rank = matrix.rank(crossing)
        feeds = 1 << (len(carried) + rank - matrix.rank([*crossing, *carried]))
        entries.append(
            CutProfile(
                cut=cut,
                block=1 << len(crossing),
                blocks=1 << len(carried),
                fanout=(feeds, feeds),
                fanin=(1 << rank, 1 << rank),
                moved=gather.size - _still(displaced, gather.constant & mask),
                rank=rank,
            )
        )
    return LevelProfile(tuple(entries), gather.size)


def _still(columns: list[int], constant: int) -> int:
    """Return the number of zeros of an affine map over F2."""
    reduced = matrix.eliminate(columns)
    return 0 if reduced.reduce(constant)[0] else 1 << len(reduced.null)
