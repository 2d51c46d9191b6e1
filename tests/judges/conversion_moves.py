"""What a conversion plan says about how far values move, by enumeration."""

from __future__ import annotations

import itertools
import re

import numpy as np

from layoutalg.proofs.conversion import ConversionPlan


def stated_moves_hold(plan: ConversionPlan) -> None:
    """The line of the plan has the counts; there is none if the source has copies."""
    source = plan.source.elements()
    if len(np.unique(source)) < source.size:
        assert plan.movement == ""
        return
    stated, moving = _stated(plan), _moving(plan)
    assert sum(stated) == plan.destination.elements().size
    assert stated == moving


def _stated(plan: ConversionPlan) -> list[int]:
    """Values that stay, change lanes, change warps and, in a cluster, change blocks."""
    (line,) = (line for line in str(plan).splitlines() if line.startswith("  moves "))
    stay, whole, *others = map(int, re.findall(r"\d+", line))
    assert whole == plan.destination.elements().size
    return [stay, *others]


def _moving(plan: ConversionPlan) -> list[int]:
    """Values that their thread, otherwise their warp, otherwise their block, otherwise another block has before."""
    source, wanted = (end.elements() for end in (plan.source, plan.destination))
    inside = []
    for lanes, warps in ((1, 1), (plan.lanes, 1), (plan.lanes, plan.warps // plan.blocks), (plan.lanes, plan.warps)):
        owned = {(warp // warps, lane // lanes, int(element)) for (warp, lane, _), element in np.ndenumerate(source)}
        inside.append(
            sum(
                (warp // warps, lane // lanes, int(element)) in owned
                for (warp, lane, _), element in np.ndenumerate(wanted)
            )
        )
    counts = [inside[0], *(outer - one for one, outer in itertools.pairwise(inside))]
    return counts if plan.blocks > 1 else counts[:3]
