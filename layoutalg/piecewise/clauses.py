"""The parts of an ISL text that was read without ISL: sums over atoms, and clauses of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy.typing as npt

Array: TypeAlias = "npt.NDArray[Any]"
Condition: TypeAlias = "tuple[Any, ...]"

NEVER: Condition = ("any", ())


class UnreadError(Exception):
    """The text is outside the grammar of this reader."""


@dataclass(frozen=True, slots=True)
class Linear:
    """The number ``(constant + sum of coefficient * atom) / denominator``; terms hold (atom, coefficient)."""

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
    """A variable (its name), or the floor, remainder, least or greatest of linear sums over earlier atoms."""

    kind: str
    name: str = ""
    sums: tuple[Linear, ...] = ()
    modulus: int = 0


@dataclass(slots=True)
class Clause:
    """One piece of a text: atoms, what every place of the tuples holds, and the condition.

    Args:
        atoms: The atoms, each over earlier ones.
        places: The sum at every place of the input tuple, then of the output tuple (for a set of its only tuple).
        inputs: Number of places before the arrow; 0 for a set.
        bound: Names that quantifiers introduce without a definition.
        condition: ``("all", parts)``, ``("any", parts)``, ``("not", part)``, ``("zero", sum)``, ``("least", sum)`` for
            a sum that is not negative, or ``("some", names, part)``.
    """

    atoms: list[Atom] = field(default_factory=list)
    places: list[Linear] = field(default_factory=list)
    inputs: int = 0
    bound: set[str] = field(default_factory=set)
    condition: Condition = ("all", ())
    known: dict[Atom, int] = field(default_factory=dict)
    names: dict[str, Linear] = field(default_factory=dict)

    def by_values(self, inputs: int) -> bool:
        """Return whether every place after the inputs is an expression of these and of the parameters, if it holds."""
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
