"""Maps with all moves assigned, as tight as alignment allows, and their predicted out-of-bounds class.

Among all maps with one laying, the tightest extents and starts give the fewest elements in bounds of the map; so if
this one moves foreign elements, all of them do. A line that alone carries a dimension of the tensor may have its whole
extent: no tile has a coordinate between the two. The class is predicted one tile dimension at a time: a dimension is
guarded if its out-of-bounds elements fail the test of some line for any contribution of the dimensions guarded before.
The checker decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from layoutalg.proofs.tensormap.problem import TensorMapProblem
from layoutalg.synth.tensormap.boxes import Box
from layoutalg.synth.tensormap.layings import Laying, alignment, grain, layings
from layoutalg.synth.tensormap.lines import Line, Move, box_moves, row_lines
from layoutalg.synth.tensormap.sight import Forms
from layoutalg.targets.nvidia.tensormap import limits

COORDINATE_LIMIT = 2**31


@dataclass(frozen=True, slots=True)
class View:
    """A map with its moves assigned, input of ``assemble_view``."""

    problem: TensorMapProblem  # the variant of the problem
    box: Box  # what one copy carries
    ratio: int  # problem elements per map element
    lines: tuple[Line, ...]  # the dimensions, rows of the box first
    factors: tuple[dict[int, int], ...]  # per line, coordinates per count of every atom (innermost: problem elements)
    slopes: tuple[dict[int, int], ...]  # per line, coordinates per lattice step of the origin of each tile dimension
    starts: tuple[int, ...]  # per line the coordinate of the first tile element at origin 0
    extents: tuple[int, ...]  # per line the extent
    base_bytes: int  # the map's base address
    oob: str  # the predicted class


def views(forms: Forms, box: Box, ratio: int, wanted: str, plain: bool = False) -> Iterator[View]:
    """Yield the views of a box predicted to reach a class, fewer dimensions first; arguments as for ``layings``."""
    moves = box_moves(forms.problem, box)
    for lines in row_lines(forms.problem, box, moves, plain):
        for laying in layings(forms, box, moves, lines, ratio, wanted, plain):
            view = _placed(forms, box, ratio, laying, wanted)
            if view is not None:
                yield view


def _placed(forms: Forms, box: Box, ratio: int, laying: Laying, wanted: str) -> View | None:
    """Return the view with the tensor's own extents where they fit, the tightest elsewhere; None without one."""
    problem = forms.problem
    size = problem.element_bytes
    lines = laying.lines
    if forms.blank:
        return _blank(problem, box, ratio, laying)
    if any(line.stride_bytes >= limits.STRIDE_LIMIT_BYTES for line in lines):
        return None
    tight = [(sum(p.low for p in parts.values()), sum(p.high for p in parts.values())) for parts in laying.parts]
    slack = alignment(problem, laying.parts[0], ratio)
    tight[0] = (tight[0][0] - slack[0], tight[0][1] + slack[1])
    own = list(tight)
    for at, dim in _alone(laying):
        low, high = (value * lines[at].unit for value in problem.bounds[dim])
        odd = at == 0 and (low % limits.GLOBAL_ALIGN_BYTES or high % grain(problem, ratio))
        fits = lines[at].unit == problem.global_strides[dim] * size and high - low <= limits.MAX_DIM * lines[at].unit
        if fits and not odd:
            own[at] = (low, high - lines[at].unit)
    views = (_view(forms, box, ratio, laying, ranges, wanted) for ranges in ([own] if own == tight else [own, tight]))
    return next((view for view in views if view is not None), None)


def _view(
    forms: Forms, box: Box, ratio: int, laying: Laying, ranges: list[tuple[int, int]], wanted: str
) -> View | None:
    """Return the view whose lines span these byte ranges; None if it leaves the tensor or the limits."""
    problem, lines = forms.problem, laying.lines
    starts = [-low // line.unit for (low, _), line in zip(ranges, lines, strict=True)]
    extents = [start + high // line.unit + 1 for start, (_, high), line in zip(starts, ranges, lines, strict=True)]
    below = -sum(start * line.stride_bytes for start, line in zip(starts, lines, strict=True))
    above = sum((n - 1) * line.stride_bytes for n, line in zip(extents, lines, strict=True)) + below
    room = forms.room
    if below < room[0] or above > room[1] or max(extents[0] // ratio, *extents[1:], 1) > limits.MAX_DIM:
        return None
    base = problem.base_elem_offset * problem.element_bytes + below
    factors, slopes = _factors(problem, box, laying)
    if not _starts_in_range(forms, box, starts, factors, slopes):
        return None
    return View(problem, box, ratio, lines, factors, slopes, tuple(starts), tuple(extents), base, wanted)


def _alone(laying: Laying) -> Iterator[tuple[int, int]]:
    """Yield each line that alone carries a tile dimension and nothing else, with this dimension."""
    carried = [dim for parts in laying.parts for dim in parts]
    for at, parts in enumerate(laying.parts):
        for dim in parts:
            if len(parts) == carried.count(dim) == 1:
                yield at, dim


def _blank(problem: TensorMapProblem, box: Box, ratio: int, laying: Laying) -> View:
    """A view of a tile that is never in bounds: every copy starts past the map's only chunk."""
    nothing: tuple[dict[int, int], ...] = ({},) * len(laying.lines)
    chunk = math.lcm(ratio, max(1, limits.GLOBAL_ALIGN_BYTES // problem.element_bytes))
    rest = len(laying.lines) - 1
    starts, extents = (chunk, *(0,) * rest), (chunk, *(1,) * rest)
    base = problem.base_elem_offset * problem.element_bytes
    return View(problem, box, ratio, laying.lines, nothing, nothing, starts, extents, base, "exact")


def _factors(
    problem: TensorMapProblem, box: Box, laying: Laying
) -> tuple[tuple[dict[int, int], ...], tuple[dict[int, int], ...]]:
    """What every atom, and every origin, adds to every coordinate."""
    factors: list[dict[int, int]] = [{} for _ in laying.lines]
    slopes: list[dict[int, int]] = [{} for _ in laying.lines]
    for at, row in enumerate(box.rows):
        place = laying.lines[at].element_stride
        for atom in row.atoms:
            factors[at][atom] = place
            place *= box.atoms[atom].extent
    for at, (line, moves) in enumerate(zip(laying.lines, laying.moves, strict=True)):
        for move in moves:
            factor = _coordinates(move, problem.element_bytes) // line.unit
            if move.atom is None:
                slopes[at][move.dim] = factor
            else:
                factors[at][move.atom] = factor
    return tuple(factors), tuple(slopes)


def _coordinates(move: Move, size: int) -> int:
    """A move in the units of a form."""
    return move.step * size or move.tile_step


def _starts_in_range(
    forms: Forms, box: Box, starts: list[int], factors: tuple[dict[int, int], ...], slopes: tuple[dict[int, int], ...]
) -> bool:
    """Whether start coordinates fit in 32 bits for all in-bounds origins, and are non-negative for a store."""
    lowest = 0 if forms.problem.direction == "store" else -COORDINATE_LIMIT
    turned = {box.rows[-1].atoms[-1]: box.starts[-1]} | {index: box.atoms[index].extent - 1 for index in box.loops}
    for start, mine, slope in zip(starts, factors, slopes, strict=True):
        low = high = start
        for index, factor in mine.items():
            reach = factor * turned.get(index, 0)
            low, high = low + min(0, reach), high + max(0, reach)
        for dim, factor in slope.items():
            ends = [factor * u for u in forms.sights[dim].starts]
            low, high = low + min(ends), high + max(ends)
        if not lowest <= low <= high < COORDINATE_LIMIT:
            return False
    return True
