"""Sublattices of Z^n in canonical form, their cosets, and row modules over Z/m.

The Hermite basis is a complete normal form, so ``==`` decides equality of lattices. The row module of G over Z/m is the
lattice spanned by the rows of ``[G; m I]``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from layoutalg.ground.check import Checker
from layoutalg.integer.matrix import Matrix, Vector, as_matrix, transpose
from layoutalg.integer.normal_forms import hermite_basis
from layoutalg.integer.solve import NoSolution, kernel, reduce, solve

check = Checker("LA723", "this is not a lattice")


@dataclass(frozen=True, slots=True)
class Lattice:
    """A subgroup of Z^n, given by its Hermite basis; build one with ``spanned_by`` or ``modulo``.

    Args:
        dimension: n.
        basis: Rows in Hermite form without zero rows; other bases are rejected, so ``==`` compares subgroups.

    Example:
        >>> even = Lattice.spanned_by([(2, 0), (0, 2), (1, 1)])
        >>> even.basis, even.index, (3, 5) in even, (1, 0) in even
        (((1, 1), (0, 2)), 2, True, False)
    """

    dimension: int
    basis: Matrix = ()

    def __post_init__(self) -> None:
        size = check.integer(self.dimension, "dimension", 0)
        rows = as_matrix(self.basis, "basis", size)
        if not _is_hermite(rows):
            raise check.malformed("basis", "must be in Hermite form; use Lattice.spanned_by for any rows", self.basis)
        object.__setattr__(self, "dimension", size)
        object.__setattr__(self, "basis", rows)

    @classmethod
    def spanned_by(cls, generators: object, dimension: int | None = None) -> Lattice:
        """Return the lattice of all integer combinations of the generators.

        Args:
            generators: Rows of integers.
            dimension: n; needed if there are no generators.

        Example:
            >>> Lattice.spanned_by([(4,), (6,)]).basis
            ((2,),)
        """
        rows = as_matrix(generators, "generators", dimension)
        width = len(rows[0]) if rows else check.integer(dimension, "dimension", rule="is needed without generators")
        return cls(width, hermite_basis(rows, width))

    @classmethod
    def modulo(cls, generators: object, modulus: int, dimension: int | None = None) -> Lattice:
        """Return the row module of the generators over Z/modulus, as a lattice containing modulus times Z^n.

        Two sets of generators span the same module exactly when these lattices are equal.

        Example:
            >>> Lattice.modulo([(2, 4)], 6) == Lattice.modulo([(4, 2)], 6)
            True
        """
        m = check.integer(modulus, "modulus", 1)
        rows = as_matrix(generators, "generators", dimension)
        width = len(rows[0]) if rows else check.integer(dimension, "dimension", rule="is needed without generators")
        return cls.spanned_by([*rows, *[[m if i == j else 0 for j in range(width)] for i in range(width)]], width)

    @property
    def rank(self) -> int:
        """Number of basis vectors."""
        return len(self.basis)

    @property
    def index(self) -> int:
        """Number of cosets in Z^n; 0 if infinite (rank below n)."""
        if self.rank < self.dimension:
            return 0
        return math.prod(row[place] for place, row in enumerate(self.basis))

    def reduce(self, vector: object) -> Vector:
        """Return the canonical representative of the coset of a vector; zero exactly for members.

        Example:
            >>> Lattice.spanned_by([(4, 0), (0, 3)]).reduce((-1, 7))
            (3, 1)
        """
        return reduce(check.vector(vector, "vector", self.dimension), self.basis)

    def __contains__(self, vector: object) -> bool:
        return not any(self.reduce(vector))

    def coordinates(self, vector: object) -> Vector | NoSolution:
        """Return the coefficients of a vector in the basis, or a proof that it is not in the lattice.

        Example:
            >>> Lattice.spanned_by([(2, 0), (0, 3)]).coordinates((4, 3))
            (2, 1)
        """
        target = check.vector(vector, "vector", self.dimension)
        answer = solve(transpose(self.basis, self.dimension), target, columns=self.rank)
        return answer if isinstance(answer, NoSolution) else answer.particular

    def __add__(self, other: Lattice) -> Lattice:
        """Return the smallest lattice containing both."""
        self._same(other)
        return Lattice.spanned_by([*self.basis, *other.basis], self.dimension)

    def __and__(self, other: Lattice) -> Lattice:
        """Return the intersection.

        Example:
            >>> (Lattice.spanned_by([(4,)]) & Lattice.spanned_by([(6,)])).basis
            ((12,),)
        """
        self._same(other)
        # common members are combinations of both bases: the kernel of the stacked bases
        stacked = transpose((*self.basis, *other.basis), self.dimension)
        found = kernel(stacked, columns=self.rank + other.rank)
        members = [
            [sum(c * row[k] for c, row in zip(vector, self.basis, strict=False)) for k in range(self.dimension)]
            for vector in found
        ]
        return Lattice.spanned_by(members, self.dimension)

    def __le__(self, other: Lattice) -> bool:
        """Return whether ``self`` is contained in ``other``."""
        self._same(other)
        return all(row in other for row in self.basis)

    def _same(self, other: Lattice) -> None:
        if not isinstance(other, Lattice) or other.dimension != self.dimension:
            raise check.malformed("other", f"must be a lattice in Z^{self.dimension}", other)

    def __str__(self) -> str:
        return "Z{" + ", ".join("(" + ",".join(map(str, row)) + ")" for row in self.basis) + f"}}^{self.dimension}"


def _is_hermite(rows: Matrix) -> bool:
    last = -1
    for count, row in enumerate(rows):
        place = next((k for k, entry in enumerate(row) if entry), -1)
        if place <= last or row[place] < 0 or any(not 0 <= above[place] < row[place] for above in rows[:count]):
            return False
        last = place
    return True


@dataclass(frozen=True, slots=True)
class Coset:
    """``offset`` plus a lattice; the offset is stored reduced, so ``==`` compares sets.

    Example:
        >>> Coset((7,), Lattice.spanned_by([(4,)])) & Coset((1,), Lattice.spanned_by([(6,)]))
        Coset(offset=(7,), lattice=Lattice(dimension=1, basis=((12,),)))
    """

    offset: Vector
    lattice: Lattice

    def __post_init__(self) -> None:
        check.kind(self.lattice, Lattice, "lattice")
        object.__setattr__(self, "offset", self.lattice.reduce(self.offset))

    def __contains__(self, vector: object) -> bool:
        point = check.vector(vector, "vector", self.lattice.dimension)
        return tuple(a - b for a, b in zip(point, self.offset, strict=True)) in self.lattice

    def __and__(self, other: Coset) -> Coset | NoSolution:
        """Return the intersection, again a coset, or a proof that it is empty."""
        check.kind(other, Coset, "other")
        mine, theirs = self.lattice, other.lattice
        both = mine & theirs
        columns: Sequence[Sequence[int]] = (*mine.basis, *theirs.basis)
        wanted = tuple(b - a for a, b in zip(self.offset, other.offset, strict=True))
        answer = solve(transpose(tuple(map(tuple, columns)), mine.dimension), wanted, columns=len(columns))
        if isinstance(answer, NoSolution):
            return answer
        point = list(self.offset)
        for c, row in zip(answer.particular, mine.basis, strict=False):
            point = [p + c * entry for p, entry in zip(point, row, strict=True)]
        return Coset(tuple(point), both)
