"""The level profile of a conversion between F2 hardware layouts, including replicated values."""

from __future__ import annotations

from layoutalg.f2 import LinearLayout, matrix, solve
from layoutalg.f2.axes import fields
from layoutalg.ground.check import refuse
from layoutalg.hierarchy.levels import CUTS, malformed, require
from layoutalg.hierarchy.profile import CutProfile, LevelProfile

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
