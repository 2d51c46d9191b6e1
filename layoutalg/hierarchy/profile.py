"""The level profile of a conversion: what crosses each cut, and which mechanism must move it.

Let P = dst^-1 o src on the box of levels. At a cut, over F2, with r the rank of the matrix block from below to above,
every source block feeds exactly 2**r destination blocks, and every destination block reads from 2**r source blocks.
The ranks r of all corner blocks are invariant when P is multiplied on either side by maps that keep blocks together.
The same holds for digits that divide at the cut, with the product of the extents that cross it. ``moved`` is finer: how
many values change their block number.

The counts behind ``moved`` are in ``staying``.

Notation: ``mechanism`` is what the conversion needs: it is given by the innermost cut that nothing crosses.
``intrinsic`` is what it would need if the blocks above a cut could be renumbered for free: then every block must feed
at most one block and read from at most one, no matter which.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from layoutalg.f2 import matrix
from layoutalg.ground.check import refuse
from layoutalg.ground.digits import IntArray, aligned, placed, shared_bits, weights
from layoutalg.hierarchy.bijection import Bijection
from layoutalg.hierarchy.blocks import cut_digits
from layoutalg.hierarchy.digitmap import DigitMap
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
from layoutalg.hierarchy.staying import kept_by_equation, kept_on_common_digits


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


def fanout(bijection: Bijection, below: int) -> tuple[int, int]:
    """Return the least and the greatest number of destination blocks that a source block feeds.

    Blocks have ``below`` points, a divisor of N.

    Raises: BudgetError: LA754.

    Complexity: linear in the digits, cubic in the shared bits; O(N log N) if it enumerates.

    Example:
        >>> fanout(DigitMap.from_bits((4, 2, 1)), 2), fanout(DigitMap(((3, 2), (2, 1))), 2)
        ((2, 2), (2, 2))
    """
    _divides(bijection, below)
    spread = _digit_fanout(bijection, below)
    return _table_counts(bijection.table(), below)[0] if spread is None else (spread, spread)


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


def _divides(bijection: Bijection, below: int) -> None:
    if below < 1 or bijection.size % below:
        raise malformed("below", f"must divide the {bijection.size} points", below)


def _table_counts(values: IntArray, below: int) -> tuple[tuple[int, int], tuple[int, int], int]:
    """Return the fan-out, fan-in and number of moved points of a table; -1 marks inactive points."""
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


def moved(bijection: Bijection, below: int) -> int:
    """Return how many points change their block number.

    Mathematically: on common boundaries, the points that stay are counted digit by digit, by cycles of equal digits and
    one affine system over F2 for the bits; for other digits that divide at the cut they are the solutions of one linear
    equation in the digits that affect the block number.

    Blocks have ``below`` points, a divisor of N.

    Raises: BudgetError: LA754.

    Example:
        >>> moved(DigitMap.from_bits((4, 2, 1)), 2), moved(DigitMap(((3, -1),)), 1)
        (4, 2)
    """
    _divides(bijection, below)
    count = _digit_moved(bijection, below)
    return _table_counts(bijection.table(), below)[2] if count is None else count


def _digit_moved(bijection: Bijection, below: int) -> int | None:
    """Return how many points change their block number; None if enumeration is needed."""
    if not isinstance(bijection, DigitMap):
        return None
    size, origin = bijection.size, bijection.offset
    pieces = aligned(bijection.modes, [below])
    if pieces is not None:
        return size - kept_on_common_digits(pieces, origin, below)
    pieces = cut_digits(bijection, below)
    kept = None if pieces is None else kept_by_equation(pieces, origin, below)
    return None if kept is None else size - kept


def level_profile(source: HierarchicalLayout, destination: HierarchicalLayout) -> LevelProfile:
    """Return what crosses each cut when data is converted from ``source`` to ``destination``.

    Args:
        source: From a box of levels to a tensor: which element each register holds now.
        destination: From the same box of levels to the same tensor: which element each register must hold.

    Returns:
        The profile of P = destination^-1 o source. Values excluded by a guard of either side do not count.

    Raises: AdmissibilityError: LA751, LA756, LA754.

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
    """Return the level profile of a bijection of a box of levels; see ``level_profile``.

    Raises: AdmissibilityError: LA756, LA754.
    """
    box = require(conversion, HierarchicalLayout, "conversion").source
    same_levels(box, conversion.target, conversion)
    values: IntArray | None = None
    linear = isinstance(conversion.map, DigitMap) and not conversion.guards and conversion.size.bit_count() == 1
    entries = []
    for cut in CUTS:
        below = block_size(box, cut)
        spread = None if conversion.guards else _digit_fanout(conversion.map, below)
        count = None if spread is None else _digit_moved(conversion.map, below)
        if spread is not None and count is not None:
            feeds = reads = (spread, spread)
        else:
            values = conversion.table() if values is None else values
            feeds, reads, count = _table_counts(values, below)
        rank = feeds[0].bit_length() - 1 if linear else None
        entries.append(CutProfile(cut, below, conversion.size // below, feeds, reads, count, rank))
    active = conversion.active() if values is None else int(np.count_nonzero(values >= 0))
    return LevelProfile(tuple(entries), active)
