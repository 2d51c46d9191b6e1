"""Exact integer matrices: Hermite and Smith normal forms with their transforms.

Main definitions: ``as_matrix``, ``multiply``, ``transpose``, ``identity``, ``determinant``, ``is_unimodular``,
``unimodular_inverse``, ``hnf``, ``snf``, ``Hermite``, ``Smith``.

Main statements: ``U A = H`` with U unimodular and H unique; ``U A V = D`` with U, V unimodular, D diagonal, each entry
dividing the next, and unique.

Notation: a matrix is a tuple of rows of Python ints. A matrix without rows does not know its number of columns, so the
functions where that matters take ``columns``.

Implementation notes: only row operations are used, on rows that carry their transform in their tail; the Smith form
alternates between the matrix and its transpose. Entries never overflow: Python integers throughout.

References: H. Cohen, A Course in Computational Algebraic Number Theory, section 2.4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import add, mul, sub
from typing import Any, TypeAlias

import numpy as np

from layoutalg.errors import AdmissibilityError, Diagnostic, MalformedError

Matrix: TypeAlias = tuple[tuple[int, ...], ...]
Vector: TypeAlias = tuple[int, ...]
MAX_ENTRIES = 1_000_000


def malformed(argument: str, rule: str, actual: object, code: str = "LA720", what: str = "") -> MalformedError:
    """Return the error for a bad argument: its name, the rule and the value that broke the rule."""
    shown = repr(actual)
    return MalformedError(
        Diagnostic(
            code=code,
            what=what or f"{argument} is malformed",
            where=(argument,),
            because=f"{rule}, not {shown if len(shown) <= 120 else shown[:117] + '...'}",
            witness={"actual": actual},
        )
    )


def integer(value: object, argument: str, code: str = "LA720", what: str = "") -> int:
    """Return ``value`` as int; bools and floats are refused, numpy integers accepted."""
    if type(value) is int:
        return value
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise malformed(argument, "must be an integer", value, code, what)
    return int(value)


def as_vector(value: object, argument: str, length: int | None = None, code: str = "LA720") -> Vector:
    """Return a sequence of integers as a tuple of ints, of the given length where one is given.

    Example:
        >>> as_vector([np.int64(3), 4], "b")
        (3, 4)
    """
    if isinstance(value, np.ndarray):
        value = value.tolist() if value.dtype.kind in "iuO" else value
    if not isinstance(value, (tuple, list)):
        raise malformed(argument, "must be a sequence of integers", value, code)
    if length is not None and len(value) != length:
        raise malformed(argument, f"must have {length} entries", value, code)
    return tuple([integer(entry, f"{argument}[{place}]", code) for place, entry in enumerate(value)])


def as_matrix(value: object, argument: str = "A", columns: int | None = None) -> Matrix:
    """Return rows of integers as a matrix.

    Args:
        value: A sequence of rows of equal length, or a two-dimensional integer array.
        argument: Name of the argument, for the message.
        columns: The number of columns, where it is known.

    Raises:
        MalformedError: LA720, not rows of integers, rows of different lengths or more than a million entries.

    Example:
        >>> as_matrix([[1, 2], (3, np.int8(4))])
        ((1, 2), (3, 4))
    """
    if isinstance(value, np.ndarray):
        value = value.tolist() if value.dtype.kind in "iuO" else value
    if not isinstance(value, (tuple, list)):
        raise malformed(argument, "must be a sequence of rows", value)
    rows = [as_vector(row, f"{argument}[{place}]") for place, row in enumerate(value)]
    width = len(rows[0]) if columns is None and rows else columns
    for place, row in enumerate(rows):
        if len(row) != width:
            raise malformed(f"{argument}[{place}]", f"must have {width} entries", row)
    if width and len(rows) * width > MAX_ENTRIES:
        raise malformed(argument, f"must have at most {MAX_ENTRIES} entries", f"{len(rows)} x {width}")
    return tuple(rows)


def _columns(A: Matrix, columns: int | None) -> int:
    return len(A[0]) if A else columns or 0


def identity(size: int) -> Matrix:
    """Return the identity matrix.

    Example:
        >>> identity(2)
        ((1, 0), (0, 1))
    """
    return tuple([tuple([int(i == j) for j in range(size)]) for i in range(size)])


def transpose(A: Matrix, columns: int | None = None) -> Matrix:
    """Return the transpose; ``columns`` counts for a matrix without rows.

    Example:
        >>> transpose(((1, 2, 3),))
        ((1,), (2,), (3,))
    """
    return tuple(zip(*A, strict=True)) if A else ((),) * (columns or 0)


def multiply(A: Matrix, B: Matrix) -> Matrix:
    """Return the product A B.

    Raises:
        MalformedError: LA720, the inner sizes differ.

    Example:
        >>> multiply(((1, 2),), ((3,), (4,)))
        ((11,),)
    """
    for row in A:
        if len(row) != len(B):
            raise malformed("B", f"must have {len(row)} rows, the columns of A", len(B))
    turned = transpose(B)
    return tuple([tuple([sum(map(mul, row, column)) for column in turned]) for row in A])


def apply(A: Matrix, x: Vector) -> Vector:
    """Return A x.

    Example:
        >>> apply(((1, 2), (0, 1)), (3, 4))
        (11, 4)
    """
    return tuple([sum(map(mul, row, x)) for row in A])


def determinant(A: object) -> int:
    """Return the determinant of a square matrix, by fraction-free elimination.

    Raises:
        MalformedError: LA720, not square.

    Example:
        >>> determinant([[2, 1], [1, 3]])
        5
    """
    rows = [list(row) for row in as_matrix(A)]
    size = len(rows)
    if rows and len(rows[0]) != size:
        raise malformed("A", "must be square", f"{size} x {len(rows[0])}")
    sign, previous = 1, 1
    for k in range(size - 1):
        pivot = next((i for i in range(k, size) if rows[i][k]), None)
        if pivot is None:
            return 0
        if pivot != k:
            rows[k], rows[pivot], sign = rows[pivot], rows[k], -sign
        top = rows[k]
        for row in rows[k + 1 :]:
            for j in range(size - 1, k, -1):
                row[j] = (row[j] * top[k] - row[k] * top[j]) // previous
        previous = top[k]
    return sign * rows[-1][-1] if size else 1


def is_unimodular(A: object) -> bool:
    """Square, of determinant 1 or -1: invertible over the integers.

    Example:
        >>> is_unimodular([[1, 5], [0, -1]]), is_unimodular([[2, 0], [0, 1]])
        (True, False)
    """
    rows = as_matrix(A)
    return all(len(row) == len(rows) for row in rows) and determinant(rows) in (1, -1)


def unimodular_inverse(A: object) -> Matrix:
    """Return the integer inverse of a unimodular matrix.

    Raises:
        AdmissibilityError: LA722, the determinant is neither 1 nor -1; carries it.

    Example:
        >>> unimodular_inverse([[1, 5], [0, -1]])
        ((1, 5), (0, -1))
    """
    rows = as_matrix(A)
    reduced = hnf(rows) if all(len(row) == len(rows) for row in rows) else None
    if reduced is None or identity(len(rows)) != reduced.H:
        found = "not square" if reduced is None else determinant(rows)
        raise AdmissibilityError(
            Diagnostic(
                code="LA722",
                what="the matrix has no integer inverse",
                because=f"the determinant must be 1 or -1, it is {found}",
                witness={"determinant": found},
            )
        )
    return reduced.U


@dataclass(frozen=True, slots=True)
class Hermite:
    """A row Hermite form with its transform: ``U A = H``; unpacks as ``H, U = hnf(A)``.

    H is in row echelon form, pivots positive, entries above a pivot in [0, pivot), zero rows last.
    """

    H: Matrix
    U: Matrix

    def __iter__(self) -> Any:
        return iter((self.H, self.U))

    @property
    def rank(self) -> int:
        """Number of rows of H that are not zero."""
        return sum(map(any, self.H))


@dataclass(frozen=True, slots=True)
class Smith:
    """A Smith form with its transforms: ``U A V = D``; unpacks as ``D, U, V = snf(A)``.

    D is diagonal and non-negative, and each diagonal entry divides the next.
    """

    D: Matrix
    U: Matrix
    V: Matrix

    def __iter__(self) -> Any:
        return iter((self.D, self.U, self.V))

    @property
    def invariants(self) -> Vector:
        """The diagonal entries that are not zero."""
        diagonal = [row[place] for place, row in enumerate(self.D) if place < len(row)]
        return tuple([entry for entry in diagonal if entry])

    @property
    def rank(self) -> int:
        """Rank of the matrix."""
        return len(self.invariants)


def _echelon(rows: list[list[int]], width: int) -> list[int]:
    """Bring rows to Hermite form in their first ``width`` columns, in place; return the pivot columns."""
    pivots: list[int] = []
    count = len(rows)
    for column in range(width):
        top = len(pivots)
        if top == count:
            break
        live = [i for i in range(top, count) if rows[i][column]]
        if not live:
            continue
        while len(live) > 1:
            best = min(live, key=lambda i: abs(rows[i][column]))
            base = rows[best]
            pivot = base[column]
            rest = [best]
            for i in live:
                if i == best:
                    continue
                row = rows[i]
                # the nearest quotient halves the remainder at least
                q = (2 * row[column] + pivot) // (2 * pivot)
                if q == 1:
                    rows[i] = row = list(map(sub, row, base))
                elif q == -1:
                    rows[i] = row = list(map(add, row, base))
                else:
                    rows[i] = row = [a - q * b for a, b in zip(row, base, strict=True)]
                if row[column]:
                    rest.append(i)
            live = rest
        place = live[0]
        row = rows[place]
        if row[column] < 0:
            row = [-a for a in row]
        rows[place] = rows[top]
        rows[top] = row
        pivot = row[column]
        for i in range(top):
            q = rows[i][column] // pivot
            if q:
                rows[i] = [a - q * b for a, b in zip(rows[i], row, strict=True)]
        pivots.append(column)
    return pivots


def _tailed(A: Matrix) -> list[list[int]]:
    """Return the rows of A followed by the identity."""
    count = len(A)
    rows = []
    for place, row in enumerate(A):
        tail = [0] * count
        tail[place] = 1
        rows.append([*row, *tail])
    return rows


def hnf(A: object, columns: int | None = None) -> Hermite:
    """Return the row Hermite normal form with its transform.

    Mathematically: ``U A = H`` with U unimodular. H depends only on the lattice that the rows of A span.

    Args:
        A: Rows of integers.
        columns: Number of columns, for a matrix without rows.

    Raises:
        MalformedError: LA720, not a matrix of integers.

    Complexity: about rows x columns^2 operations on integers that stay small for layout-sized input.

    Example:
        >>> H, U = hnf([[4, 6], [2, 2]])
        >>> H, multiply(U, ((4, 6), (2, 2))) == H
        (((2, 0), (0, 2)), True)

    Source: H. Cohen, A Course in Computational Algebraic Number Theory, section 2.4.2.
    """
    rows = as_matrix(A, columns=columns)
    width = _columns(rows, columns)
    work = _tailed(rows)
    _echelon(work, width)
    return Hermite(tuple([tuple(row[:width]) for row in work]), tuple([tuple(row[width:]) for row in work]))


def hermite_basis(generators: Sequence[Sequence[int]], width: int) -> Matrix:
    """Return the rows of the Hermite form that are not zero: the canonical basis of the lattice of the generators.

    Example:
        >>> hermite_basis([(2, 0), (3, 0), (0, 0)], 2)
        ((1, 0),)
    """
    work = [list(row) for row in generators]
    rank = len(_echelon(work, width))
    return tuple([tuple(row) for row in work[:rank]])


def snf(A: object, columns: int | None = None) -> Smith:
    """Return the Smith normal form with both transforms.

    Mathematically: ``U A V = D``, U and V unimodular, D diagonal with d_1 | d_2 | ... and d_i >= 0. D is unique.

    Args:
        A: Rows of integers.
        columns: Number of columns, for a matrix without rows.

    Raises:
        MalformedError: LA720, not a matrix of integers.

    Example:
        >>> D, U, V = snf([[2, 0], [0, 3]])
        >>> D, multiply(multiply(U, ((2, 0), (0, 3))), V) == D
        (((1, 0), (0, 6)), True)

    Source: H. Cohen, A Course in Computational Algebraic Number Theory, section 2.4.4.
    """
    rows = as_matrix(A, columns=columns)
    height, width = len(rows), _columns(rows, columns)
    left = [list(row) for row in identity(height)]
    right = [list(row) for row in identity(width)]
    body = [list(row) for row in rows]
    while True:
        body, left = _reduced(body, left, width)
        if _is_diagonal(body):
            break
        body, right = _reduced([list(column) for column in zip(*body, strict=True)], right, height)
        body = [list(row) for row in zip(*body, strict=True)]
        if _is_diagonal(body):
            break
    diagonal = [body[place][place] for place in range(min(height, width))]
    _chain(diagonal, left, right)
    D = tuple([tuple([diagonal[i] if i == j else 0 for j in range(width)]) for i in range(height)])
    return Smith(D, tuple([tuple(row) for row in left]), transpose(tuple([tuple(row) for row in right])))


def _reduced(body: list[list[int]], tails: list[list[int]], width: int) -> tuple[list[list[int]], list[list[int]]]:
    """Return the Hermite form of ``body`` with the same row operations applied to ``tails``."""
    work = [[*row, *tail] for row, tail in zip(body, tails, strict=True)]
    _echelon(work, width)
    return [row[:width] for row in work], [row[width:] for row in work]


def _is_diagonal(body: list[list[int]]) -> bool:
    return not any(any(row[:place]) or any(row[place + 1 :]) for place, row in enumerate(body))


def bezout(a: int, b: int) -> tuple[int, int, int]:
    """Return (g, x, y) with g = gcd(a, b) = x a + y b, for positive a and b.

    Example:
        >>> bezout(6, 4)
        (2, 1, -1)
    """
    g = math.gcd(a, b)
    a, b = a // g, b // g
    x = pow(a, -1, b) if b > 1 else 0
    return g, x, (1 - x * a) // b


def _chain(diagonal: list[int], left: list[list[int]], right: list[list[int]]) -> None:
    """Make each diagonal entry divide the next, in place; the entries that are not zero come first."""
    rank = sum(map(bool, diagonal))
    for i in range(rank):
        for j in range(i + 1, rank):
            a, b = diagonal[i], diagonal[j]
            if a == 1:
                break
            if b % a == 0:
                continue
            g, x, y = bezout(a, b)
            s, t = a // g, b // g
            upper, lower = left[i], left[j]
            left[i] = [x * p + y * q for p, q in zip(upper, lower, strict=True)]
            left[j] = [s * q - t * p for p, q in zip(upper, lower, strict=True)]
            upper, lower = right[i], right[j]
            right[i] = [p + q for p, q in zip(upper, lower, strict=True)]
            right[j] = [x * s * q - y * t * p for p, q in zip(upper, lower, strict=True)]
            diagonal[i], diagonal[j] = g, s * b
