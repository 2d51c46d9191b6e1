"""Linear equations over the integers and modulo integers, with a certificate if there is no solution.

``A x = b`` has no integer solution exactly when some integer row y and modulus d satisfy ``y A = 0 (mod d)`` and
``y b != 0 (mod d)``, where d = 0 means equality over the integers. The Smith form finds x or the pair (y, d).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from layoutalg.integer.matrix import Matrix, Vector, apply, as_matrix, check, column_count, transpose
from layoutalg.integer.normal_forms import Smith, Work, hermite_basis, hnf, snf


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
    [0, m)^n is m^n divided by the lattice's index (see ``count_mod``).

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


def count_mod(solution: Solution | NoSolution, modulus: int) -> int:
    """Return how many solutions of a system modulo one modulus lie in [0, modulus)^n.

    Example:
        >>> count_mod(solve_mod([[2]], [2], 4), 4)
        2
    """
    if isinstance(solution, NoSolution):
        return 0
    if not isinstance(solution, Solution):
        raise check.malformed("solution", "must be a Solution or a NoSolution", solution)
    m = check.integer(modulus, "modulus")
    width = len(solution.particular)
    if m < 1 or any(
        reduce([m if i == j else 0 for j in range(width)], solution.basis) != (0,) * width for i in range(width)
    ):
        raise check.malformed("modulus", "must be a positive modulus of the solved system", modulus)
    if len(solution.basis) < width:
        raise check.malformed("solution", "must have one basis vector per unknown", solution)
    index = math.prod(row[place] for place, row in enumerate(solution.basis))
    return int(m**width) // index
