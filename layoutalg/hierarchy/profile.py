"""The level profile of a conversion: what crosses each cut, and which mechanism must carry it.

Main definitions: ``level_profile``, ``profile_of``, ``LevelProfile``, ``CutProfile``, ``fanout``, ``moved``.

Main statements: let P = dst^-1 o src on the box of levels. At a cut, over F2, with r the rank of the block of the
matrix that leads from below into above, every source block feeds exactly 2**r destination blocks; the numbers r of all
corner blocks do not change when P is multiplied on either side by maps that keep blocks together. ``moved`` is the
finer count for fixed numbers of clusters, CTAs, warps and lanes: how many values land in a block with another number.

The counts behind ``moved`` are in ``staying``.

Notation: ``mechanism`` is what the conversion needs as it stands: the innermost cut that nothing moves across says
which one. ``intrinsic`` is what it would need if the blocks above a cut could be renumbered for free: it asks that
every block feeds one block (rank 0), no matter which.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from layoutalg.errors import AdmissibilityError, Diagnostic
from layoutalg.f2 import matrix
from layoutalg.hierarchy import bijection as maps
from layoutalg.hierarchy.bijection import Bijection, BitMap, TableMap
from layoutalg.hierarchy.digitmap import DigitMap
from layoutalg.hierarchy.digits import IntArray, aligned, placed, shared_bits, split_at, weights
from layoutalg.hierarchy.layout import HierarchicalLayout
from layoutalg.hierarchy.levels import CUTS, MECHANISMS, Cut, Mechanism, block_size, malformed, require, same_levels
from layoutalg.hierarchy.membership import cut_digits
from layoutalg.hierarchy.staying import kept_by_equation, kept_on_common_digits


@dataclass(frozen=True, slots=True)
class CutProfile:
    """What happens at one cut.

    Args:
        cut: The cut.
        block: Points of one block, guarded ones included.
        blocks: Number of blocks.
        fanout: Least and greatest number of destination blocks that one source block feeds; (0, 0) where no point is
            active. Blocks without active points do not count.
        moved: Active points that land in a block with another number.
        rank: Over F2 without guards the rank r, then ``fanout`` is (2**r, 2**r); else None.
    """

    cut: Cut
    block: int
    blocks: int
    fanout: tuple[int, int]
    moved: int
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class LevelProfile:
    """How much data each level moves across the next.

    Args:
        cuts: One profile per cut, innermost first.
        active: Number of values that the conversion carries.
    """

    cuts: tuple[CutProfile, ...]
    active: int

    def at(self, cut: str) -> CutProfile:
        """Return the profile of one cut.

        Raises:
            MalformedError: LA750, there is no such cut.
        """
        for entry in self.cuts:
            if entry.cut == cut:
                return entry
        raise malformed("cut", f"must be among {list(CUTS)}", cut)

    @property
    def mechanism(self) -> Mechanism:
        """The least mechanism that carries every value to where it must be."""
        quiet = next((k for k, entry in enumerate(self.cuts) if entry.moved == 0), len(CUTS))
        return MECHANISMS[quiet]

    @property
    def intrinsic(self) -> Mechanism:
        """The least mechanism that is enough when whole blocks may be renumbered for free."""
        quiet = next((k for k, entry in enumerate(self.cuts) if entry.fanout[1] <= 1), len(CUTS))
        return MECHANISMS[quiet]

    @property
    def traffic(self) -> dict[Mechanism, int]:
        """Mechanism -> number of values for which it is the least that will do; they add up to ``active``."""
        reach = [self.active, *(entry.moved for entry in self.cuts), 0]
        return {name: reach[k] - reach[k + 1] for k, name in enumerate(MECHANISMS)}

    def __str__(self) -> str:
        lines = [f"{self.mechanism}: {self.active} values"]
        for entry in self.cuts:
            low, high = entry.fanout
            spread = str(low) if low == high else f"{low}..{high}"
            rank = "" if entry.rank is None else f", rank {entry.rank}"
            lines.append(f"  {entry.cut}: {entry.moved} moved, each block feeds {spread} of {entry.blocks}{rank}")
        return "\n".join(lines)


def fanout(bijection: Bijection, below: int) -> tuple[int, int]:
    """Return the least and the greatest number of destination blocks that a source block feeds.

    Args:
        bijection: Any bijection of [0, N).
        below: Points of a block; divides N.

    Raises:
        BudgetError: LA754, a table or digits that do not divide the cut, on more than 2**20 points.

    Complexity: linear in the digits, cubic in the shared bits; O(N log N) where it enumerates.

    Example:
        >>> fanout(BitMap((4, 2, 1)), 2), fanout(DigitMap(((3, 2), (2, 1))), 2)
        ((2, 2), (2, 2))
    """
    _divides(bijection, below)
    pieces = cut_digits(bijection, below)
    if pieces is None:
        return _enumerated_fanout(bijection.table(), below)
    bits = sorted(shared_bits(pieces))
    spread, columns = 1, []
    for weight, extent, stride in placed(pieces):
        touched = weights(stride)
        if weight < below and bits and not set(bits).isdisjoint(touched):
            columns.append(sum(1 << bits.index(bit) for bit in touched if bit >= below))
        elif weight < below <= touched[0]:
            spread *= extent
    spread <<= matrix.rank(columns)
    return (spread, spread)


def _divides(bijection: Bijection, below: int) -> None:
    if below < 1 or bijection.size % below:
        raise malformed("below", f"must divide the {bijection.size} points", below)


def _enumerated_fanout(values: IntArray, below: int) -> tuple[int, int]:
    """Return the fan-out of a table in which -1 marks points outside a guard."""
    inside = np.flatnonzero(values >= 0)
    if not len(inside):
        return (0, 0)
    count = len(values) // below
    pairs = np.unique(inside // below * count + values[inside] // below)
    feeds = np.unique(pairs // count, return_counts=True)[1]
    return (int(feeds.min()), int(feeds.max()))


def bit_rank(bijection: Bijection, below: int) -> int | None:
    """Return the rank of the block of the matrix from below into above; None where the map is not over F2.

    Example:
        >>> bit_rank(BitMap((4, 2, 1)), 2), bit_rank(DigitMap(((3, 1),)), 3)
        (1, None)
    """
    if isinstance(bijection, TableMap) or bijection.size & (bijection.size - 1):
        return None
    return fanout(bijection, below)[0].bit_length() - 1


def moved(bijection: Bijection, below: int) -> int:
    """Return how many points land in a block with another number.

    Mathematically: on common boundaries, the points that stay are counted digit by digit, by the cycles of equal digits
    and by one affine system over F2 for the bits; for other digits that divide the cut they are the solutions of one
    linear equation in the digits that touch the part above.

    Args:
        bijection: Any bijection of [0, N).
        below: Points of a block; divides N.

    Raises:
        BudgetError: LA754, no such structure and more than 2**20 points.

    Example:
        >>> moved(BitMap((4, 2, 1)), 2), moved(DigitMap(((3, -1),)), 1)
        (4, 2)
    """
    _divides(bijection, below)
    form = maps.canonical(bijection) if isinstance(bijection, BitMap) else bijection
    if isinstance(form, DigitMap):
        pieces = aligned(form.modes, [below])
        if pieces is not None:
            return form.size - kept_on_common_digits(pieces, form.offset, below)
        pieces = split_at(form.modes, [below], [below])
        kept = None if pieces is None else kept_by_equation(pieces, form.offset, below)
        if kept is not None:
            return form.size - kept
    values = form.table()
    return int((values // below != np.arange(len(values)) // below).sum())


def level_profile(source: HierarchicalLayout, destination: HierarchicalLayout) -> LevelProfile:
    """Return what each level moves across the next when data held as ``source`` must become ``destination``.

    Args:
        source: From a box of levels to a tensor: which element each register holds now.
        destination: From the same box of levels to the same tensor: which element each register must hold.

    Returns:
        The profile of P = destination^-1 o source. Values outside a guard of either side do not count.

    Raises:
        AdmissibilityError: LA751, the tensors differ; LA756, the boxes of levels differ; BudgetError: LA754, guards,
            tables or digits that do not divide on more than 2**20 points.

    Example:
        >>> from layoutalg.hierarchy import Box, hierarchy
        >>> levels, tensor = hierarchy(lane=4, register=2), Box.of(x=8)
        >>> blocked = HierarchicalLayout(levels, tensor, DigitMap(((8, 1),)))
        >>> striped = HierarchicalLayout(levels, tensor, DigitMap(((2, 4), (4, 1))))
        >>> profile = level_profile(blocked, striped)
        >>> print(profile)
        shuffle: 8 values
          register|lane: 6 moved, each block feeds 2 of 4, rank 1
          lane|warp: 0 moved, each block feeds 1 of 1, rank 0
          warp|cta: 0 moved, each block feeds 1 of 1, rank 0
          cta|cluster: 0 moved, each block feeds 1 of 1, rank 0

    Source: parabolic double cosets (classical).
    """
    first, second = (
        require(source, HierarchicalLayout, "source"),
        require(destination, HierarchicalLayout, "destination"),
    )
    same_levels(first.source, second.source, (str(source), str(destination)))
    if source.target != destination.target:
        raise AdmissibilityError(
            Diagnostic(
                code="LA751",
                what="the two layouts hold different tensors",
                where=(str(source), str(destination)),
                because=f"one ends in ({source.target}), the other in ({destination.target})",
                witness={"source": source.target.dims, "destination": destination.target.dims},
            )
        )
    return profile_of(destination.inverse() @ source)


def profile_of(conversion: HierarchicalLayout) -> LevelProfile:
    """Return the level profile of a bijection of one box of levels; see ``level_profile``.

    Raises:
        AdmissibilityError: LA756, not one box of levels on both sides; BudgetError: LA754, see ``level_profile``.
    """
    box = require(conversion, HierarchicalLayout, "conversion").source
    same_levels(box, conversion.target, (str(conversion),))
    size = conversion.size
    entries = []
    for cut in CUTS:
        below = block_size(box, cut)
        if conversion.guards:
            values = conversion.table()
            crossed = (values >= 0) & (values // below != np.arange(size) // below)
            spread, count, rank = _enumerated_fanout(values, below), int(crossed.sum()), None
        else:
            spread, count = fanout(conversion.map, below), moved(conversion.map, below)
            rank = bit_rank(conversion.map, below)
        entries.append(CutProfile(cut, below, size // below, spread, count, rank))
    return LevelProfile(tuple(entries), conversion.active())
