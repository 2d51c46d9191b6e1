"""Solve X o A = B for hierarchical layouts; for F2 see ``layoutalg.f2.solve_outer``."""

from __future__ import annotations

import numpy as np

from layoutalg.ground.check import refuse
from layoutalg.ground.errors import shown
from layoutalg.hierarchy import bijection as maps
from layoutalg.hierarchy.blocks import moved_point
from layoutalg.hierarchy.guard import Guard
from layoutalg.hierarchy.layout import HierarchicalLayout
from layoutalg.hierarchy.levels import block_size, cut_level, require, same_levels


def solve_conversion(
    before: HierarchicalLayout, after: HierarchicalLayout, *, within: str | None = None
) -> HierarchicalLayout:
    """Return the unique bijection X with ``X @ before == after``.

    Args:
        after: Must have the same source box and equivalent guards, which carry over to X.
        within: A cut such as ``"lane|warp"``: require that X moves data only inside the blocks of that cut, i.e. keeps
            the coordinates of the levels above; both targets must then be the same box of levels.

    Raises: MalformedError: LA750. AdmissibilityError: LA751, LA756, LA757. BudgetError: LA754.

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
