"""Linear equations over the integers and modulo integers, and sublattices of Z^n in canonical form.

``A x = b`` has no integer solution exactly when some integer row y and modulus d satisfy ``y A = 0 (mod d)`` and
``y b != 0 (mod d)``, where d = 0 means equality over the integers. The Smith form finds x or the pair (y, d). The
Hermite basis of a lattice is a complete normal form, so ``==`` decides equality of lattices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from layoutalg.ground.check import Checker
from layoutalg.integer.matrix import (
    Matrix,
    Smith,
    Vector,
    Work,
    apply,
    as_matrix,
    check,
    column_count,
    hermite_basis,
    hnf,
    snf,
    transpose,
)

check_lattice = Checker("LA723", "this is not a lattice")


@dataclass(frozen=True, slots=True)
class Solution:
    """All solutions of a system: ``particular`` plus the lattice spanned by the rows of ``basis``.

    Args:
        particular: One solution, reduced modulo the lattice: each pivot entry lies in [0, pivot).
        basis: Canonical (Hermite) basis of the solutions of the homogeneous system.
    """

    particular: Vector
    basis: Matrix

    def __post_init__(self) -> None:
        object.__setattr__(self, "particular", check.vector(self.particular, "particular"))
        object.__setattr__(self, "basis", as_matrix(self.basis, "basis", len(self.particular)))

    def __bool__(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class NoSolution:
    """Proof that a system has no solution: ``row A = 0 (mod modulus)`` but ``row b = value != 0 (mod modulus)``.

    Args:
        row: Multipliers of the equations.
        modulus: The modulus; 0 if the combination vanishes over the integers.
        value: The combination of the right-hand sides, reduced.
    """

    row: Vector
    modulus: int
    value: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "row", check.vector(self.row, "row"))
        object.__setattr__(self, "modulus", check.integer(self.modulus, "modulus"))
        object.__setattr__(self, "value", check.integer(self.value, "value"))

    def __bool__(self) -> bool:
        return False


def reduce(vector: Sequence[int], basis: Matrix) -> Vector:
    """Return the canonical representative of a vector modulo a lattice in Hermite form."""
    answer = list(vector)
    for row in basis:
        place = next(k for k, entry in enumerate(row) if entry)
        q = answer[place] // row[place]
        if q:
            answer = [a - q * b for a, b in zip(answer, row, strict=True)]
    return tuple(answer)


def kernel(A: object, columns: int | None = None) -> Matrix:
    """Return the canonical basis of the lattice of integer x with ``A x = 0``; ``columns`` as in ``solve``.

    Example:
        >>> kernel([[1, 2]])
        ((2, -1),)
    """
    rows = as_matrix(A, columns=columns)
    width = column_count(rows, columns)
    # the kernel is spanned by the transform's rows at the zero rows of the transpose's Hermite form
    work = Work()
    turned = hnf(transpose(rows, width), len(rows), work)
    return hermite_basis(turned.U[turned.rank :], width, work)


def solve(A: object, b: object, columns: int | None = None) -> Solution | NoSolution:
    """Return all integer solutions of ``A x = b``, or a proof that there is none.

    ``columns`` is the number of unknowns; needed for a matrix without rows.

    Example:
        >>> solve([[2, 4]], [6])
        Solution(particular=(1, 1), basis=((2, -1),))
        >>> solve([[2, 4]], [7])
        NoSolution(row=(1,), modulus=2, value=1)
    """
    rows = as_matrix(A, columns=columns)
    width = column_count(rows, columns)
    form, right = snf(rows, columns=width), check.vector(b, "b", len(rows))
    point = _particular(form, right)
    if isinstance(point, NoSolution):
        return point
    basis = hermite_basis(transpose(form.V, width)[form.rank :], width)
    return Solution(reduce(point, basis), basis)


def _particular(form: Smith, right: Vector) -> list[int] | NoSolution:
    """Return a solution of ``A x = right`` from the Smith form of A."""
    invariants = form.invariants
    turned: list[int] = []
    for place, (row, value) in enumerate(zip(form.U, apply(form.U, right), strict=True)):
        d = invariants[place] if place < len(invariants) else 0
        if value % d if d else value:
            return NoSolution(row, d, value % d if d else value)
        if d:
            turned.append(value // d)
    point = [0] * len(form.V)
    for y, column in zip(turned, transpose(form.V, len(form.V)), strict=False):
        if y:
            point = [p + y * c for p, c in zip(point, column, strict=True)]
    return point


def solve_mod(A: object, b: object, moduli: object, columns: int | None = None) -> Solution | NoSolution:
    """Return all integer solutions of ``A x = b``, each row modulo its own modulus.

    Singular systems and composite moduli are allowed. The answer's lattice contains every integer difference of
    solutions, so for a single modulus m > 0 it contains m times every unit vector, and the number of solutions in
    [0, m)^n is m^n divided by the lattice's index.

    Args:
        A: Rows of integers.
        b: One integer per row.
        moduli: One modulus for all rows, or one per row; 0 means equality over the integers.
        columns: As in ``solve``.

    Example:
        >>> solve_mod([[2]], [2], 4)
        Solution(particular=(1,), basis=((2,),))
        >>> solve_mod([[2]], [1], 4)
        NoSolution(row=(1,), modulus=2, value=1)
    """
    rows = as_matrix(A, columns=columns)
    width = column_count(rows, columns)
    each = _moduli(moduli, len(rows))
    wrapped = [place for place, modulus in enumerate(each) if modulus]
    wide = tuple(
        [(*row, *[each[place] if place == other else 0 for other in wrapped]) for place, row in enumerate(rows)]
    )
    answer = solve(wide, b, columns=width + len(wrapped))
    if isinstance(answer, NoSolution):
        return answer
    basis = hermite_basis([row[:width] for row in answer.basis], width)
    return Solution(reduce(answer.particular[:width], basis), basis)


def _moduli(moduli: object, count: int) -> Vector:
    """Return one modulus per row."""
    if isinstance(moduli, (tuple, list)):
        return tuple([check.integer(modulus, "moduli", 0) for modulus in check.vector(moduli, "moduli", count)])
    return (check.integer(moduli, "moduli", 0),) * count


@dataclass(frozen=True, slots=True)
class Lattice:
    """A subgroup of Z^n, given by its Hermite basis; build one with ``spanned_by``.

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
        size = check_lattice.integer(self.dimension, "dimension", 0)
        rows = as_matrix(self.basis, "basis", size)
        if not _is_hermite(rows):
            raise check_lattice.malformed(
                "basis", "must be in Hermite form; use Lattice.spanned_by for any rows", self.basis
            )
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
        width = (
            len(rows[0]) if rows else check_lattice.integer(dimension, "dimension", rule="is needed without generators")
        )
        return cls(width, hermite_basis(rows, width))

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
        return reduce(check_lattice.vector(vector, "vector", self.dimension), self.basis)

    def __contains__(self, vector: object) -> bool:
        return not any(self.reduce(vector))

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
