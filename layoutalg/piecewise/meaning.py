"""Evaluate ISL texts without ISL: an independent check on everything that ISL computes.

An expression is a linear sum over atoms (variables, floors, remainders, minima and maxima) divided by a positive
number; a condition is a tree of comparisons of such sums with zero. Both are evaluated on arrays of points, with Python
integers if 64 bits might overflow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from layoutalg.ground import clock, limits
from layoutalg.ground.cache import kept
from layoutalg.piecewise.clauses import Array, Atom, Clause, UnreadError
from layoutalg.piecewise.grammar import Reader
from layoutalg.piecewise.spans import Span, hull, places_within
from layoutalg.piecewise.truth import atoms_at, exact, holds_at, shape_of, unknown

__all__ = ["Array", "Meaning", "UnreadError", "read"]


@dataclass(frozen=True, slots=True)
class Meaning:
    """A parsed set or map: a union of clauses; ``weight`` is the number of tokens of its text."""

    params: tuple[str, ...]
    is_map: bool
    inputs: int
    outputs: int
    clauses: tuple[Clause, ...]
    weight: int

    def holds(self, params: Mapping[str, Array], places: Sequence[Array]) -> Array:
        """Return which points (of a map: pairs of points) belong to it.

        Raises: UnreadError: A quantifier cannot be decided point by point.
        """
        answer = np.zeros(shape_of(params, places), dtype=bool)
        for clause in self.clauses:
            answer |= holds_at(clause, params, places)
        return answer

    def values(self, params: Mapping[str, Array], inputs: Sequence[Array]) -> tuple[list[Array], Array, Array]:
        """Return the outputs of a map, where it is defined, and where overlapping clauses disagree.

        Raises: UnreadError: An output is defined only by a condition.
        """
        shape = shape_of(params, inputs)
        covered, clash = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
        answers: list[Array] = [np.zeros(shape, dtype=object) for _ in range(self.outputs)]
        for clause in self.clauses:
            known = atoms_at(clause, params, inputs, self.inputs)
            inside = holds_at(clause, params, inputs, known)
            if not inside.any():
                continue
            if any(unknown(place, known) for place in clause.places):
                raise UnreadError("an output is not an expression of the inputs")
            for answer, place in zip(answers, clause.places[self.inputs :], strict=True):
                total, whole = exact(place, known, shape)
                inside = inside & whole
                clash |= inside & covered & (answer != total)
                answer[inside] = np.asarray(total, dtype=object)[inside]
            covered |= inside
        return answers, covered, clash

    def box(self, params: Mapping[str, int], places: int | None = None) -> list[Span] | None:
        """Return inclusive bounds of all points of a set (pairs of a map), per place; None if it is empty.

        Args:
            params: A value for every parameter.
            places: Number of leading places; None for all.

        Example:
            >>> read("[N] -> { [i, j] : 0 <= 3i <= N and i <= j }").box({"N": 8})
            [(0, 2), (0, None)]
        """
        whole: list[Span] | None = None
        for clause in self.clauses:
            clock.check("bounds of a text")
            spans: list[Span] = [(None, None)] * len(clause.atoms)
            for name, value in params.items():
                atom = clause.known.get(Atom("variable", name))
                if atom is not None:
                    spans[atom] = (value, value)
            mine = places_within(clause, spans, places)
            if mine is not None:
                whole = mine if whole is None else [hull(a, b) for a, b in zip(whole, mine, strict=True)]
        return whole


@kept(limits.ISL_CACHE_BYTES)
def read(text: str) -> Meaning:
    """Parse a text.

    Raises: UnreadError: The text is outside the grammar.

    Example:
        >>> meaning = read("[N] -> { [i] -> [floor(i/2) mod 3] : 0 <= i < N }")
        >>> values, covered, _ = meaning.values({"N": np.array(9)}, [np.array([0, 7, 9])])
        >>> values[0].tolist(), covered.tolist()
        ([0, 0, 0], [True, True, False])
    """
    try:
        reader = Reader(text)
        params, (is_map, inputs, outputs), clauses = reader.pieces()
    except RecursionError:
        raise UnreadError("it nests too deeply") from None
    return Meaning(params, is_map, inputs, outputs, clauses, len(reader.tokens))
