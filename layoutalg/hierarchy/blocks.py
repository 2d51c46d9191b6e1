"""Bijections that keep the blocks of a cut together, and the equation X o A = B with X inside the blocks.

With K blocks of B points, the bijections that map every block onto a block form the wreath product of S_B and S_K.
Over F2, membership means one zero block of the matrix; for digit maps, no digit crosses the cut.
"""

from __future__ import annotations

import numpy as np

from layoutalg.ground.check import refuse
from layoutalg.ground.digits import Digits, placed, split_at, weights
from layoutalg.ground.errors import shown
from layoutalg.ground.verdict import Proved, Refuted, Verdict
from layoutalg.hierarchy import bijection as maps
from layoutalg.hierarchy.bijection import Bijection, DigitMap
from layoutalg.hierarchy.layout import Guard, HierarchicalLayout
from layoutalg.hierarchy.levels import block_size, cut_level, require, same_levels


def crossing_witness(bijection: Bijection, below: int) -> tuple[int, int] | None:
    """Return two indices of one block with images in different blocks, or None if blocks are kept together.

    Blocks have ``below`` points, a divisor of N.

    Complexity: linear in the digits if they divide at the cut; otherwise quadratic if two corners of a block are
    separated, else O(N); O(N) for tables.
    """
    pieces = cut_digits(bijection, below)
    if pieces is not None:
        crossing = (weight for weight, _, stride in placed(pieces) if weight < below <= max(weights(stride)))
        first = next(crossing, None)
        return None if first is None else (0, first)
    corners = _corners(bijection, below) if isinstance(bijection, DigitMap) else None
    if corners is not None:
        return corners
    blocks = bijection.table().reshape(-1, below) // below
    differs = np.argwhere(blocks != blocks[:, :1])
    if not len(differs):
        return None
    row, column = (int(value) for value in differs[0])
    return (row * below, row * below + column)


def _corners(mapping: DigitMap, below: int) -> tuple[int, int] | None:
    """Return two corners of one block with images in different blocks; None is inconclusive.

    Looks at the blocks where a digit begins; the corners are the first steps and the ends of the digits inside.
    """
    digits = list(placed(mapping.pieces()))
    inside = [(weight, min(extent - 1, (below - 1) // weight)) for weight, extent, _ in digits if weight < below]
    corners = sorted({0, below - 1, *(weight * count for weight, most in inside for count in (1, most))})
    for block in sorted({weight // below for weight, _, _ in digits}):
        start = block * below
        home = mapping.at(start) // below
        away = next((start + corner for corner in corners if mapping.at(start + corner) // below != home), None)
        if away is not None:
            return start, away
    return None


def cut_digits(bijection: Bijection, below: int) -> Digits | None:
    """Return the digits split at the cut on both sides; None for a table or digits that do not divide."""
    return split_at(bijection.modes, [below], [below]) if isinstance(bijection, DigitMap) else None


def preserves_blocks(layout: HierarchicalLayout, cut: str) -> Verdict:
    """Decide whether a bijection of a box of levels maps every block of a cut onto a block.

    Mathematically: membership in the wreath product S_B wr S_K (see the module). Guards are ignored: the claim is about
    the bijection of the whole box.

    Args:
        layout: From a box of levels to itself, for example ``dst.inverse() @ src``.
        cut: Such as ``"lane|warp"``.

    Returns:
        Proved, or Refuted with two points of one block that land in different blocks.

    Example:
        >>> from layoutalg.hierarchy import hierarchy, reindex
        >>> swap = reindex(hierarchy(lane=2, register=2), [0, 2, 1, 3])
        >>> preserves_blocks(swap, "register|lane").witness["second"]
        {'register': 1, 'lane': 0, 'warp': 0, 'cta': 0, 'cluster': 0}
        >>> bool(preserves_blocks(swap, "lane|warp"))
        True
    """
    same_levels(require(layout, HierarchicalLayout, "layout").source, layout.target, layout)
    pair = crossing_witness(layout.map, block_size(layout.source, cut))
    engine = "digits" if isinstance(layout.map, DigitMap) else "table"
    if pair is None:
        return Proved(engine, {"cut": cut})
    first, second = pair
    return Refuted(
        engine,
        {
            "first": layout.source.point(first),
            "second": layout.source.point(second),
            "first_image": layout.target.point(layout.map.at(first)),
            "second_image": layout.target.point(layout.map.at(second)),
        },
    )


def moved_point(layout: HierarchicalLayout, below: int) -> int | None:
    """Return a point (flat, inside the guards) that moves to another block number, or None.

    Both sides of the layout have blocks of ``below`` points.
    """
    pieces = None if layout.guards else cut_digits(layout.map, below)
    if pieces is not None:
        # if 0 and a single step of every digit stay in their block, so does every sum of digits
        candidates = [0, *(weight for weight, _, _ in placed(pieces))]
        return next((index for index in candidates if layout.map.at(index) // below != index // below), None)
    corners = _corners(layout.map, below) if isinstance(layout.map, DigitMap) and not layout.guards else None
    if corners is not None:
        return next(index for index in corners if layout.map.at(index) // below != index // below)
    values = layout.table()
    moved = np.flatnonzero((values >= 0) & (values // below != np.arange(layout.size) // below))
    return int(moved[0]) if len(moved) else None


def solve_conversion(
    before: HierarchicalLayout, after: HierarchicalLayout, *, within: str | None = None
) -> HierarchicalLayout:
    """Return the unique bijection X with ``X @ before == after``.

    Args:
        after: Must have the same source box and equivalent guards, which carry over to X.
        within: A cut such as ``"lane|warp"``: require that X moves data only inside the blocks of that cut, i.e. keeps
            the coordinates of the levels above; both targets must then be the same box of levels.

    Example:
        >>> from layoutalg.hierarchy import Box, DigitMap
        >>> rows = HierarchicalLayout(Box.of(i=2, j=3), Box.of(x=6), DigitMap(((2, 3), (3, 1))))
        >>> cols = HierarchicalLayout(Box.of(i=2, j=3), Box.of(x=6), DigitMap(((6, 1),)))
        >>> X = solve_conversion(rows, cols)
        >>> X @ rows == cols, X.map.modes
        (True, ((3, 2), (2, 1)))
    """
    if within is not None:
        cut_level(within, "within")
    require(before, HierarchicalLayout, "before")
    require(after, HierarchicalLayout, "after")
    if before.source != after.source:
        because = f"one maps from ({before.source}), the other from ({after.source})"
        witness: dict[str, object] = {"before": before.source.dims, "after": after.source.dims}
        raise refuse("LA751", "a conversion needs two layouts of the same box", because, witness, before, after)
    if before.guards != after.guards:
        differs = np.flatnonzero((before.table() >= 0) != (after.table() >= 0))
        if len(differs):
            because = "one side is defined at a point where the other is not"
            witness = dict(before.source.point(int(differs[0])))
            what = "the conversion equation has no solution"
            raise refuse("LA757", what, because, witness, f"X o ({before})", f"= {after}")
    back = maps.inverse(before.map)
    guards = tuple(Guard(maps.compose(g.map, back), g.box, g.bounds) for g in before.guards)
    answer = HierarchicalLayout(before.target, after.target, maps.compose(after.map, back), guards)
    if within is not None:
        same_levels(before.target, after.target, f"solve_conversion(within={shown(within)})")
        point = moved_point(answer, block_size(before.target, within))
        if point is not None:
            because = "the only solution moves a value to another block"
            witness = {"from": answer.source.point(point), "to": answer.target.point(answer.map.at(point))}
            what = f"no conversion stays inside the blocks of {within}"
            raise refuse("LA757", what, because, witness, f"X o ({before})", f"= {after}")
    return answer
