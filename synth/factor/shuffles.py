"""Permute the words of a warp with the fewest shuffles.

The plan has ``moved(source)`` rounds, the minimum (see ``proofs.shuffle``). Words are coloured by the caller's classes
(``colours``), which makes each round's registers affine in the lane; if that is not a minimal edge colouring,
alternating paths find one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.proofs.shuffle import NONE, Round, ShufflePlan, moved

IntArray: TypeAlias = npt.NDArray[np.int64]
Edge: TypeAlias = tuple[int, int, int, int]
"""Sending lane, receiving lane, register sent, register written."""


def shuffles(source: IntArray, colours: IntArray | None = None) -> ShufflePlan:
    """Return a plan with the fewest rounds that moves to every place the word of its source.

    Args:
        source: By warp, lane and register the place (warp * lanes + lane) * registers + register of its word; a
            bijection inside every warp.
        colours: By warp, lane and register any number; words with equal numbers should move in one round.

    Example:
        >>> plan = shuffles(np.array([[[0, 2], [1, 3]]]))
        >>> len(plan.rounds), plan.source().tolist()
        (1, [[[0, 2], [1, 3]]])
    """
    warps, lanes, registers = source.shape
    least = moved(source)
    from_lane, from_register = source // registers % lanes, source % registers
    stays = (from_lane == np.arange(lanes)[None, :, None]) & (least < registers)  # otherwise staying saves no round
    kept = np.where(stays, from_register, NONE)
    tables = np.zeros((least, 3, warps, lanes), dtype=np.int64)
    tables[:, 1] = np.arange(lanes)
    tables[:, 2] = NONE
    for warp in range(warps):
        edges = [
            (int(from_lane[warp, lane, register]), int(lane), int(from_register[warp, lane, register]), int(register))
            for lane, register in np.argwhere(~stays[warp])
        ]
        wanted = None if colours is None else [int(colours[warp, lane, register]) for _, lane, _, register in edges]
        for (sender, receiver, sent, written), colour in zip(
            edges, _coloured(edges, wanted, lanes, least), strict=True
        ):
            tables[colour, 0, warp, sender] = sent
            tables[colour, 1, warp, receiver] = sender
            tables[colour, 2, warp, receiver] = written
    rounds = tuple(Round(*(_rows(table) for table in each)) for each in tables)
    return ShufflePlan(registers, lanes, warps, tuple(_rows(table) for table in kept), rounds)


def _rows(table: IntArray) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(row) for row in table.tolist())


def _coloured(edges: list[Edge], wanted: list[int] | None, lanes: int, least: int) -> list[int]:
    """Return a colour below ``least`` per edge, distinct at every sender and receiver."""
    if wanted is not None:
        places = {colour: place for place, colour in enumerate(sorted(set(wanted)))}
        found = [places[colour] for colour in wanted]
        sends = {(sender, colour) for (sender, _, _, _), colour in zip(edges, found, strict=True)}
        takes = {(receiver, colour) for (_, receiver, _, _), colour in zip(edges, found, strict=True)}
        if len(places) <= least and len(sends) == len(takes) == len(edges):
            return found
    return by_paths(edges, lanes, least)


def by_paths(edges: Sequence[Edge], lanes: int, least: int) -> list[int]:
    """Return a colour below ``least`` per edge of a bipartite graph, distinct at every end.

    Edges are coloured one by one; if the free colours of the ends differ, two colours are swapped along a path first.

    Args:
        edges: The first two numbers are the ends; the others are ignored.
        lanes: Number of ends per side.
        least: Number of colours: at least the maximum degree.

    Example:
        >>> by_paths([(0, 0, 0, 0), (0, 1, 0, 0), (1, 0, 0, 0)], 2, 2)
        [1, 0, 0]
    """
    used = [[NONE] * least for _ in range(2 * lanes)]
    answer = [NONE] * len(edges)
    for number, (sender, receiver, _, _) in enumerate(edges):
        ends = (sender, lanes + receiver)
        first, second = (used[end].index(NONE) for end in ends)
        if used[ends[1]][first] != NONE:
            path, at, colour = list[int](), ends[1], first
            while (step := used[at][colour]) != NONE:
                path.append(step)
                one, other = edges[step][0], lanes + edges[step][1]
                at, colour = (one if at == other else other), first + second - colour
            for step in path:
                for end in (edges[step][0], lanes + edges[step][1]):
                    if used[end][answer[step]] == step:
                        used[end][answer[step]] = NONE
                answer[step] = first + second - answer[step]
            for step in path:
                for end in (edges[step][0], lanes + edges[step][1]):
                    used[end][answer[step]] = step
        answer[number] = first
        for end in ends:
            used[end][first] = number
    return answer
