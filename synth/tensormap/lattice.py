"""Solve linear conditions on pitches: integer points of a lattice on which given forms are non-negative.

Notation: a pitch vector g has the global element stride of every tile dimension; a form is an integer vector f with
value f . g.

``meeting`` and ``at_least`` neither lose nor add solutions. ``solved`` returns a point exactly if one exists: it tries
some points, then asks z3 over the integers. Steps go along a basis in Hermite form, because other bases can have rows
so long that no tried point keeps the tile compact.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import add, mul

import numpy as np
import numpy.typing as npt

from layoutalg.ground import clock
from layoutalg.ground.errors import BudgetError, Diagnostic
from layoutalg.ground.solver import session, solve, whole
from layoutalg.integer.lattice import reduce
from layoutalg.integer.matrix import hermite_basis

IntArray = npt.NDArray[np.int64]
FAR = 1 << 14
"""Minimum pitch, in chunks, of an unconstrained dimension."""
NEAR = 1 << 28
"""Preferred limit on a tile's span in elements, so that one coordinate reaches all of it."""
APART = 64
"""Limit on pairs of elements that the solver is asked to keep distinct, one after another."""
TRIED = 16
"""Points tried before the solver is used."""
CHOICES = 1 << 11
"""Limit on sign choices made to find them."""


@dataclass(frozen=True, slots=True)
class Pitches:
    """The integer points ``point + sum of z * basis`` with ``f . g >= 0`` for every f of ``least``."""

    point: tuple[int, ...]  # one solution of the equations so far
    basis: tuple[tuple[int, ...], ...]  # independent directions
    least: tuple[tuple[int, ...], ...] = ()  # forms that must be non-negative

    def meeting(self, form: Sequence[int], value: int, modulus: int = 0) -> Pitches | None:
        """Return the points with ``form . g = value`` (modulo ``modulus`` unless 0); None if there are none.

        Example:
            >>> Pitches((0, 0), ((1, 0), (0, 1))).meeting((1, -5), 1)
            Pitches(point=(1, 0), basis=((5, 1),), least=())
        """
        rows = [(_dot(form, row), row) for row in self.basis]
        still = [row for dot, row in rows if dot == 0]
        moving = [(dot, row) for dot, row in rows if dot]
        while len(moving) > 1:  # Euclid on the values of the form, by unimodular steps
            moving.sort(key=lambda entry: abs(entry[0]))
            dot, row = moving[0]
            kept = [moving[0]]
            for other, mine in moving[1:]:
                turns = other // dot
                reduced = tuple(a - turns * b for a, b in zip(mine, row, strict=True))
                if other - turns * dot:
                    kept.append((other - turns * dot, reduced))
                else:
                    still.append(reduced)
            moving = kept
        wanted = value - _dot(form, self.point)
        if not moving:
            met = wanted % modulus == 0 if modulus else wanted == 0
            return Pitches(self.point, tuple(still), self.least) if met else None
        dot, row = moving[0]
        common = math.gcd(dot, modulus)
        if wanted % common:
            return None
        turns = wanted // dot
        if modulus:
            period = modulus // common
            turns = wanted // common * pow(dot // common, -1, period) % period if period > 1 else 0
            still.append(tuple(period * b for b in row))
        point = tuple(a + turns * b for a, b in zip(self.point, row, strict=True))
        return Pitches(point, tuple(still), self.least)

    def meeting_all(self, rows: IntArray, value: int, modulus: int = 0) -> tuple[Pitches | None, int]:
        """Apply ``meeting`` to every row; returns (None, i) if row i contradicts the earlier ones.

        Example:
            >>> Pitches((0, 0), ((1, 0), (0, 1))).meeting_all(np.array([[0, 1], [0, 2], [1, 0]]), 1)
            (None, 1)
        """
        system, at = self, np.arange(len(rows))
        while True:
            clock.check("the steps of a layout")
            wide = max(map(abs, chain(system.point, *system.basis))) >= 1 << 32
            known = np.array([system.point, *system.basis], dtype=object if wide else np.int64)
            left = rows[at] @ known.T
            left[:, 0] -= value
            at = at[(left % modulus if modulus else left).any(axis=1)]  # satisfied rows stay satisfied
            if not at.size:
                return system, len(rows)
            met = system.meeting([int(v) for v in rows[at[0]]], value, modulus)
            if met is None:
                return None, int(at[0])
            system, at = met, at[1:]

    def at_least(self, form: Sequence[int]) -> Pitches | None:
        """Return the points with ``form . g >= 0``; None if the form is a negative constant."""
        if all(_dot(form, row) == 0 for row in self.basis):
            return self if _dot(form, self.point) >= 0 else None
        return Pitches(self.point, self.basis, (*self.least, tuple(form)))

    def some(self) -> tuple[int, ...] | None:
        """Return a point, preferring large distinct positive pitches; None if none of the tried points works."""
        moves = _scaled(self.basis, [FAR << 2 * place for place in range(len(self.basis))])
        for least in (1, 0, None):
            found = list(self._tried(moves, least=least))
            if found:
                return max(found, key=min)
        return None

    def solved(self, tile: Sequence[int], most: int, apart: bool = False) -> tuple[int, ...] | None:
        """Return a point whose forms of ``least`` are at most ``most``; None if there is none.

        Args:
            tile: Extents of the tile, whose span is kept small if possible.
            most: Upper bound on the forms.
            apart: Whether tile elements must have distinct addresses.

        Raises: BudgetError: out of time, or no answer from the solver.

        Example:
            >>> Pitches((0,), ((8,),)).solved((4,), 100), Pitches((0,), ()).solved((4,), 100, apart=True)
            ((8,), None)
        """
        merged = self.merged(tile) is not None
        if apart and merged:
            return None
        basis = hermite_basis(self.basis, len(self.point))
        short = Pitches(reduce(self.point, basis), basis, self.least)
        steps, reach = [], 1 + _span(short.point, tile)
        for row in reversed(basis):  # innermost dimensions come last
            # a step moves elements by nothing or by a multiple of the row's common divisor: beyond all moves before it
            steps.append(-(-reach // math.gcd(*row)))
            reach += steps[-1] * _span(row, tile)
        best: tuple[int, ...] | None = None
        for scale in (steps, [1 + place for place in range(len(steps))]):
            for point in short._tried(_scaled(basis, scale), most=most):
                if _span(point, tile) >= NEAR:
                    continue
                if merged or together(point, tile) is None:
                    return point
                best = best or (None if apart else point)
        return best or short._by_solver(tile, most, apart)

    def merged(self, tile: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Return two elements of a tile that share an address at every point, if any."""
        coords = _elements(tile)
        rows = np.array([self.point, *self.basis], dtype=np.int64)
        _, first, owner = np.unique(rows @ coords, axis=1, return_index=True, return_inverse=True)
        twice = np.flatnonzero(first[owner.reshape(-1)] != np.arange(coords.shape[1]))
        if not twice.size:
            return None
        pair = int(first[owner.reshape(-1)[twice[0]]]), int(twice[0])
        one, other = (tuple(int(v) for v in coords[:, at]) for at in pair)
        return one, other

    def _tried(
        self, moves: Sequence[tuple[int, ...]], least: int | None = None, most: int | None = None
    ) -> Iterator[tuple[int, ...]]:
        """Yield points that meet ``self.least``, adding 1, -1 or 0 times each move, last move first.

        Moves are directions scaled by their steps; ``least`` bounds every pitch that can reach it, ``most`` the forms.
        A branch is pruned as soon as the remaining moves can no longer make a form non-negative.
        """
        top = [sum(map(abs, column)) for column in zip(self.point, *moves, strict=True)]
        bounded = [] if least is None else [at for at, end in enumerate(top) if end >= least]

        def measured(vector: Sequence[int], low: int = 0, high: int = 0) -> list[int]:
            values = [_dot(form, vector) for form in self.least]
            more = [] if most is None else [high - value for value in values]
            return [*values, *more, *(vector[at] - low for at in bounded)]

        turns = [measured(move) for move in moves]
        reach = [[0] * len(measured(self.point))]
        for row in turns:
            reach.append([old + abs(turn) for old, turn in zip(reach[-1], row, strict=True)])
        choices, found = CHOICES, 0
        open_ = [(len(moves), self.point, measured(self.point, least or 0, most or 0))]
        while open_ and choices and found < TRIED:
            clock.check("the pitches of a tile")
            choices -= 1
            place, point, values = open_.pop()
            if min(map(add, values, reach[place]), default=0) < 0:
                continue
            if not place:
                found += 1
                yield point
                continue
            move, turn = moves[place - 1], turns[place - 1]
            for sign in (0, -1, 1):  # popped in reverse: 1 first
                moved = tuple(a + sign * b for a, b in zip(point, move, strict=True))
                open_.append((place - 1, moved, [v + sign * step for v, step in zip(values, turn, strict=True)]))

    @whole
    def _by_solver(self, tile: Sequence[int], most: int, apart: bool) -> tuple[int, ...] | None:
        """Return a point as ``solved`` does, by z3; each pair of merged elements adds a constraint."""
        asked = session()
        turns = [asked.z3.Int(f"z{place}", asked.context) for place in range(len(self.basis))]

        def value(form: Sequence[int]) -> object:
            parts = (_dot(form, row) * turn for row, turn in zip(self.basis, turns, strict=True))
            return sum(parts, asked.z3.IntVal(_dot(form, self.point), asked.context))

        for form in self.least:
            asked.solver.add(value(form) >= 0, value(form) <= most)  # type: ignore[operator]
        for _ in range(APART):
            clock.check("pitches that keep the elements of a tile apart")
            found = solve(asked, "the pitches of a tile", turns)
            if found is None:
                return None
            point = self.point
            for turn, row in zip(found, self.basis, strict=True):
                point = tuple(a + turn * b for a, b in zip(point, row, strict=True))
            pair = together(point, tile) if apart else None
            if pair is None:
                return point
            asked.solver.add(value(pair) != 0)
        because = f"{APART} pairs of elements were separated one after another, and others still share an address"
        raise BudgetError(Diagnostic("LA411", "gave up looking for a plan", ("the pitches of a tile",), because))


def _scaled(basis: Sequence[tuple[int, ...]], steps: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the directions scaled by their steps, innermost dimensions first."""
    order = sorted(basis, key=lambda row: [abs(v) for v in row])
    return [tuple(step * b for b in row) for step, row in zip(steps, order, strict=True)]


def _span(row: Sequence[int], tile: Sequence[int]) -> int:
    """Return the span of a tile under these pitches."""
    return sum(abs(b) * (extent - 1) for b, extent in zip(row, tile, strict=True))


def _elements(tile: Sequence[int]) -> IntArray:
    """Return the coordinates of a tile's elements, one column each; ``np.indices`` fails at 64 dimensions."""
    return np.array(np.unravel_index(np.arange(math.prod(tile)), tuple(tile)), dtype=np.int64)


def _dot(form: Sequence[int], vector: Sequence[int]) -> int:
    return sum(map(mul, form, vector))


def together(point: Sequence[int], tile: Sequence[int]) -> tuple[int, ...] | None:
    """Return the step between two elements of a tile that share an address under these pitches, if any.

    Example:
        >>> together((8, 1), (2, 8)), together((7, 1), (2, 8))
        (None, (1, -7))
    """
    coords = _elements(tile)
    places = np.array(point, dtype=object) @ coords if max(map(abs, point)) >= 1 << 40 else np.array(point) @ coords
    order = np.argsort(places, kind="stable")
    same = np.flatnonzero(places[order][1:] == places[order][:-1])
    if not same.size:
        return None
    one, other = order[int(same[0])], order[int(same[0]) + 1]
    return tuple(int(v) for v in coords[:, other] - coords[:, one])
