"""Every map that could carry a small tile, tried: what a refusal of the planner is held against.

Main statements, for one map and any number of issues:

1. *Chunks.* Rows are whole 16-byte chunks, and a swizzle permutes chunks. So under the swizzle of the map (each of the
   four is tried) the wanted shared bytes must be whole chunks whose elements that are ever in bounds are neighbours in
   global memory from a multiple of 16 bytes on.
2. *Boxes.* A box that divides into boxes whose shared memory starts at multiples of 128 bytes may be divided, more
   issues being allowed: each element keeps its coordinates, hence its bounds. So only boxes without such a divisor
   count (``_divisible``), a handful of rows, and every ordered factorisation of every number of rows is tried.
3. *Walked strides.* The byte step along each dimension of a box is the difference of two elements of the box, the same
   for every issue; a negative one cannot be. The stride is that step divided by an element stride of 1 to 8.
4. *Extents.* Widening the range of a coordinate only lets more foreign elements in. So the range of each coordinate is
   the tightest that holds all elements in bounds (for a store also all starts), and the base address follows.

Steps 1 to 4 leave nothing out but this: where no two origins have a tile in bounds along a dimension, or elements are
never in bounds, addresses are taken as the problem's formula goes on, or evicted (below), not as every integer.

5. *Dimensions that are not walked* have a box of 1; what matters is how starts move. This is the part where a class of
   maps is searched instead of all: the displacement of issues and of origins along one tile dimension is carried by one
   dimension of the map (walked, innermost, new, or shared with another tile dimension) or by two (quotient and
   remainder of a stride, or any two walked ones); or one new dimension carries the displacement of all issues. The
   stride of a new dimension is the greatest common divisor of what it carries, or a displacement itself where a
   remainder goes elsewhere. Where a dimension of the tile has one origin only with anything in bounds, other origins
   may instead push any coordinate out of bounds (*evict*).

What is found was run through ``planner_judge`` for every origin of its window; so it is a plan, whatever the arguments
above. What is not found may still exist outside of 5: displacements spread over three dimensions, or other issues
moved by other rules; ``Search.cut`` says where a limit of candidates ended a search.

Notation: everything of the problem outermost first, of the map innermost first; addresses in bytes.
"""

from __future__ import annotations

import itertools

import numpy as np

from judges import planner_judge as judges
from judges import tma_engine as engine
from judges.map_candidates import candidates
from judges.map_geometry import Geometry, geometries_of
from judges.map_trial import Found, Search, View, try_candidate

__all__ = ["Found", "Search", "search_maps"]


def search_maps(statement: judges.Statement) -> Search:
    """Return the search when it is over: ``answer()`` is the plan of the best class found, or None."""
    search = Search(statement)
    _search(search)
    return search


def _search(search: Search) -> None:
    statement = search.statement
    window = search.windows[-1]
    if statement.base_align % 16 or judges.contradiction(statement, window):
        return
    if statement.storing and not statement.in_bounds(window).any():
        return  # no origin that a store may start at
    live, lives = live_elements(statement, window)
    if not live.any():
        _nothing(search)
        return
    if not _steps_align(statement, lives):
        return
    geometries = sorted(geometries_of(statement, live), key=lambda geometry: len(geometry.counts))
    if statement.storing:
        geometries = [geometry for geometry in geometries if _whole_chunks(statement, geometry, window)]
    views = {geometry: [View(statement, geometry, origins) for origins in search.windows] for geometry in geometries}
    turns = (candidates(statement, geometry, lives) for geometry in geometries)
    for batch in itertools.zip_longest(*turns):  # every geometry takes its turn
        for geometry, candidate in zip(geometries, batch, strict=True):
            if candidate is not None:
                try_candidate(search, views[geometry], candidate)
            if search.over():
                return


def _nothing(search: Search) -> None:
    """Nothing is ever in bounds: boxes that start beyond the end of the map fill the tile, or store nothing."""
    statement = search.statement
    for geometry in geometries_of(statement, np.zeros(statement.shared.size, dtype=np.bool_)):
        rank = len(geometry.counts)
        tm = engine.Map(
            statement.dtype, statement.size, 0, (1,) * rank, (statement.size, *(16,) * (rank - 1)), geometry.counts,
            (1,) * rank, geometry.swizzle, statement.nan,
        )  # fmt: skip
        coords = (16, *(0,) * (rank - 1))
        starts = [np.tile(np.array(coords), (len(search.windows[-1]), 1)) for _ in geometry.offsets]
        outcome = judges.judge(statement, tm, starts, geometry.offsets, search.windows[-1])
        if outcome.verdict != "wrong":
            issues = tuple((coords, offset) for offset in geometry.offsets)
            search.best = Found(outcome.verdict, tm, issues, ((0,) * rank,) * statement.rank, True)
            return


def _steps_align(statement: judges.Statement, lives: list[list[int]]) -> bool:
    """Whether lattice steps are multiples of 16 bytes along dimensions that have several origins with elements."""
    return all(
        m * stride * statement.size % 16 == 0
        for m, stride, points in zip(statement.multiples, statement.strides, lives, strict=True)
        if len(points) > 1
    )


def _whole_chunks(statement: judges.Statement, geometry: Geometry, origins: judges.Ints) -> bool:
    """Whether every chunk is wholly in bounds or wholly out of bounds: a store writes all of it or nothing."""
    _, inside = statement.wanted(origins[statement.in_bounds(origins)])
    chunk = engine.xor(geometry.swizzle, statement.shared) // 16
    order = np.argsort(chunk, kind="stable")
    _, first = np.unique(chunk[order], return_index=True)
    some = np.logical_or.reduceat(inside[:, order], first, axis=1)
    every = np.logical_and.reduceat(inside[:, order], first, axis=1)
    return bool((some == every).all())


def live_elements(statement: judges.Statement, origins: judges.Ints) -> tuple[judges.Flags, list[list[int]]]:
    """Return which elements are ever in bounds, and per dimension the lattice points at which one is."""
    needed = origins[statement.in_bounds(origins)] if statement.storing else origins
    _, inside = statement.wanted(needed)
    some = needed[inside.any(axis=1)]
    lives = []
    for dim, step in enumerate(statement.multiples):
        lives.append(sorted({int(o) // step for o in some[:, dim]}) if step else [0])
    return inside.any(axis=0), lives
