"""Candidate map dimensions and the moves along them, for ``layings``.

Notation: a line is a dimension of the map. A move changes where copies start: the origin of a tile dimension, or an
atom that the box leaves to a loop of issues.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TypeAlias

from layoutalg.proofs.tensormap.problem import TensorMapProblem
from layoutalg.synth.tensormap.boxes import Box
from layoutalg.targets.nvidia.tensormap import limits

ALIGN = limits.GLOBAL_ALIGN_BYTES


@dataclass(frozen=True, slots=True)
class Move:
    """A move: an atom left to a loop, or (None) the origin; global elements and tile steps per count."""

    dim: int
    atom: int | None
    step: int
    tile_step: int


Moves: TypeAlias = list[list[Move]]
"""The moves of each tile dimension."""


@dataclass(frozen=True, slots=True)
class Line:
    """A dimension of the map."""

    stride_bytes: int  # byte stride; for the innermost, the size of one problem element
    box: int  # elements of the box
    element_stride: int  # element stride of the box along it
    owner: int | None  # the tile dimension whose coordinate it is, for stride 0 only
    unit: int  # one coordinate in forms: the stride, or steps of the owner if that is 0

    def carries(self, move: Move, size: int) -> bool:
        """Whether a move is a whole number of coordinates and of 16-byte chunks."""
        if self.stride_bytes == 0:
            return move.step == 0 and move.dim == self.owner and move.tile_step % self.unit == 0
        step = move.step * size
        return step != 0 and step % self.stride_bytes == 0 and step % ALIGN == 0


def box_moves(problem: TensorMapProblem, box: Box) -> Moves:
    """Return the moves per tile dimension if a copy carries this box, longest steps first."""
    moves: Moves = [[] for _ in problem.tile]
    for dim, multiple in enumerate(problem.origin_multiple):
        if multiple:
            moves[dim].append(Move(dim, None, multiple * problem.global_strides[dim], multiple))
    for index in box.loops:
        atom = box.atoms[index]
        moves[atom.dim].append(Move(atom.dim, index, atom.step, atom.place * problem.element_strides[atom.dim]))
    return [sorted(mine, key=lambda move: -move.tile_step) for mine in moves]


def row_lines(problem: TensorMapProblem, box: Box, moves: Moves, plain: bool = False) -> list[tuple[Line, ...]]:
    """Return the lines of a box's rows for each choice of element strides: those of the problem, then the smallest.

    ``plain``: a row that begins at a tile dimension's first coordinate has the element stride and pitch of it.
    """
    size = problem.element_bytes
    every = [move for mine in moves for move in mine]
    choices: list[list[Line]] = []
    for row in box.rows[1:]:
        kept: dict[tuple[bool, ...], Line] = {}
        first = box.atoms[row.atoms[0]]
        stated = problem.element_strides[first.dim] if first.place == 1 else 1
        if plain and first.place == 1:
            steps = [stated] if stated <= limits.MAX_ELEMENT_STRIDE else []
        else:
            steps = sorted(range(1, limits.MAX_ELEMENT_STRIDE + 1), key=lambda step: step != stated)
        for step in steps:
            line = _row_line(problem, box, row.atoms, row.count, row.step * size, step)
            if line is not None:
                kept.setdefault(tuple(line.carries(move, size) for move in every), line)
        choices.append(list(kept.values()))
    inner = Line(size, box.rows[0].count, 1, None, size)
    ranked = sorted(itertools.product(*map(enumerate, choices)), key=lambda lines: sum(at for at, _ in lines))
    return [(inner, *(line for _, line in lines)) for lines in ranked]


def _row_line(
    problem: TensorMapProblem, box: Box, atoms: tuple[int, ...], count: int, step_bytes: int, step: int
) -> Line | None:
    """The line of a row walked by an element stride, None if it exceeds a limit."""
    if (count - 1) * step + 1 > limits.MAX_BOX or step_bytes % (step * ALIGN):
        return None
    if step_bytes // step >= limits.STRIDE_LIMIT_BYTES:
        return None
    if step_bytes:
        return Line(step_bytes // step, count, step, None, step_bytes // step)
    owners = {box.atoms[index].dim for index in atoms}
    first = box.atoms[atoms[0]]
    unit = first.place * problem.element_strides[first.dim]
    if unit % step:
        return None
    return Line(0, count, step, first.dim if len(owners) == 1 else None, unit // step)
