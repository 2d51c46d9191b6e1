"""Data of an ISL text that was parsed without ISL: linear sums over atoms, and clauses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy.typing as npt

Array: TypeAlias = "npt.NDArray[Any]"
Condition: TypeAlias = "tuple[Any, ...]"

NEVER: Condition = ("any", ())


class UnreadError(Exception):
    """The text is outside the grammar that is parsed without ISL."""


@dataclass(frozen=True, slots=True)
class Linear:
    """The number ``(constant + sum of coefficient * atom) / denominator``; terms are (atom, coefficient)."""

    terms: tuple[tuple[int, int], ...]
    constant: int
    denominator: int = 1

    def scaled(self, factor: int) -> Linear:
        """Return ``factor`` times the number."""
        if not factor:
            return Linear((), 0)
        return Linear(tuple((k, factor * a) for k, a in self.terms), factor * self.constant, self.denominator)

    def plus(self, other: Linear) -> Linear:
        """Return the sum."""
        mine, theirs = other.denominator, self.denominator
        if mine == theirs:
            mine = theirs = 1
        total = {k: mine * a for k, a in self.terms}
        for k, a in other.terms:
            total[k] = total.get(k, 0) + theirs * a
        constant = mine * self.constant + theirs * other.constant
        terms = tuple((k, a) for k, a in total.items() if a)
        return Linear(terms, constant, self.denominator * mine)


@dataclass(frozen=True, slots=True)
class Atom:
    """A variable (by name), or the floor, remainder, minimum or maximum of linear sums over earlier atoms."""

    kind: str
    name: str = ""
    sums: tuple[Linear, ...] = ()
    modulus: int = 0


@dataclass(slots=True)
class Clause:
    """One piece of a text: atoms, the tuple entries, and the condition.

    Args:
        atoms: The atoms, each over earlier ones.
        places: The sum at every place of the input tuple, then of the output tuple (for a set, of its only tuple).
        inputs: Number of places before the arrow; 0 for a set.
        bound: Names that quantifiers introduce without a definition.
        condition: ``("all", parts)``, ``("any", parts)``, ``("not", part)``, ``("zero", sum)``, ``("least", sum)`` for
            sum >= 0, or ``("some", names, part)``.
    """

    atoms: list[Atom] = field(default_factory=list)
    places: list[Linear] = field(default_factory=list)
    inputs: int = 0
    bound: set[str] = field(default_factory=set)
    condition: Condition = ("all", ())
    known: dict[Atom, int] = field(default_factory=dict)
    names: dict[str, Linear] = field(default_factory=dict)

    def by_values(self, inputs: int) -> bool:
        """Return whether all outputs are expressions of the inputs and parameters, or the condition is never true."""
        if self.condition == NEVER:
            return True
        free = {Atom("variable", f"#{place}") for place in range(inputs, len(self.places))}
        return not any(self.atoms[atom] in free for place in self.places[inputs:] for atom, _ in place.terms)

    def atom(self, atom: Atom) -> Linear:
        """Return an atom as a sum; equal atoms are one."""
        if atom not in self.known:
            self.known[atom] = len(self.atoms)
            self.atoms.append(atom)
        return Linear(((self.known[atom], 1),), 0)
