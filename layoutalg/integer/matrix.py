"""Exact integer matrices and their Hermite normal form with its transform.

Main definitions: ``as_matrix``, ``multiply``, ``transpose``, ``identity``, ``determinant``, ``is_unimodular``,
``unimodular_inverse``, ``hnf``, ``hermite_basis``, ``Hermite``.

Main statements: ``U A = H`` with U unimodular and H unique. The Smith form is in ``smith``.

Notation: a matrix is a tuple of rows of Python ints. A matrix without rows does not know its number of columns, so the
functions where that matters take ``columns``.

Implementation notes: only row operations are used, on rows that carry their transform in their tail. Entries never
overflow: Python integers throughout.

References: H. Cohen, A Course in Computational Algebraic Number Theory, section 2.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import add, mul, sub
from typing import Any, TypeAlias

import numpy as np

from layoutalg.ground.errors import AdmissibilityError, BudgetError, Diagnostic, MalformedError, shown
from layoutalg.integer.packed import Work, bits, scaled_inverse

Matrix: TypeAlias = tuple[tuple[int, ...], ...]
Vector: TypeAlias = tuple[int, ...]
MAX_ENTRIES = 1_000_000
# matrices of fewer entries, and of fewer bits in all, need no count of the work
FREE_ENTRIES, FREE_BITS = 1024, 2**16
_INT = {int}


def malformed(argument: str, rule: str, actual: object, code: str = "LA720", what: str = "") -> MalformedError:
    """Return the error for a bad argument: its name, the rule and the value that broke the rule."""
    return MalformedError(
        Diagnostic(
            code=code,
            what=what or f"{argument} is malformed",
            where=(argument,),
            because=f"{rule}, not {shown(actual)}",
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
    if set(map(type, value)) <= _INT:
        return tuple(value)
    return tuple([integer(entry, f"{argument}[{place}]", code) for place, entry in enumerate(value)])


def as_matrix(value: object, argument: str = "A", columns: int | None = None) -> Matrix:
    """Return rows of integers as a matrix.

    Args:
        value: A sequence of rows of equal length, or a two-dimensional integer array.
        argument: Name of the argument, for the message.
        columns: The number of columns, where it is known.

    Raises: MalformedError: LA720.

    Example:
        >>> as_matrix([[1, 2], (3, np.int8(4))])
        ((1, 2), (3, 4))
    """
    if columns is not None and not 0 <= integer(columns, "columns") <= MAX_ENTRIES:
        raise malformed("columns", f"must be in [0, {MAX_ENTRIES}]", columns)
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


def column_count(A: Matrix, columns: int | None) -> int:
    """Return the number of columns; ``columns`` counts for a matrix without rows."""
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

    Raises: MalformedError: LA720.

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

    Raises: MalformedError: LA720. BudgetError: LA739.

    Example:
        >>> determinant([[2, 1], [1, 3]])
        5
    """
    rows = as_matrix(A)
    if rows and len(rows[0]) != len(rows):
        raise malformed("A", "must be square", f"{len(rows)} x {len(rows[0])}")
    inverse = scaled_inverse(rows)
    return 0 if inverse is None else inverse.d


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

    Raises: AdmissibilityError: LA722. BudgetError: LA739.

    Example:
        >>> unimodular_inverse([[1, 5], [0, -1]])
        ((1, 5), (0, -1))
    """
    rows = as_matrix(A)
    square = all(len(row) == len(rows) for row in rows)
    inverse = scaled_inverse(rows) if square else None
    if inverse is None or inverse.d not in (1, -1):
        found = "not square" if not square else 0 if inverse is None else inverse.d
        raise AdmissibilityError(
            Diagnostic(
                code="LA722",
                what="the matrix has no integer inverse",
                because=f"the determinant must be 1 or -1, it is {found}",
                witness={"determinant": found},
            )
        )
    return tuple([tuple([inverse.d * entry for entry in row]) for row in inverse.read(inverse.packed)])


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


def echelon(rows: list[list[int]], width: int, work: Work | None = None) -> list[int]:
    """Bring rows to Hermite form in their first ``width`` columns, in place; return the pivot columns.

    Args:
        rows: The rows, changed in place.
        width: Columns that take part; the rest follows.
        work: The count of a larger computation that this is a part of.

    Raises: BudgetError: LA739.
    """
    pivots: list[int] = []
    count = len(rows)
    work = work or Work()
    entries = count * len(rows[0]) if rows else 0
    counted = entries > FREE_ENTRIES or entries * max(map(bits, rows), default=0) > FREE_BITS
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
            size = bits(base) if counted else 0
            rest = [best]
            for i in live:
                if i == best:
                    continue
                row = rows[i]
                # the nearest quotient halves the remainder at least
                q = (2 * row[column] + pivot) // (2 * pivot)
                if counted:
                    work.rows(len(base), size, q.bit_length())
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
        size = bits(row) if counted else 0
        for i in range(top):
            q = rows[i][column] // pivot
            if q:
                if counted:
                    work.rows(len(row), size, q.bit_length())
                rows[i] = [a - q * b for a, b in zip(rows[i], row, strict=True)]
        pivots.append(column)
    return pivots


def check_transform(size: int) -> None:
    """Refuse a square transform of too many entries.

    Raises: BudgetError: LA739.
    """
    if size * size > MAX_ENTRIES:
        raise BudgetError(
            Diagnostic(
                code="LA739",
                what="the transform of the matrix is too large",
                because=f"it has {size} x {size} entries, the limit is {MAX_ENTRIES}",
                witness={"size": size, "limit": MAX_ENTRIES},
            )
        )


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

    Raises: MalformedError: LA720. BudgetError: LA739.

    Complexity: about rows x columns^2 operations on integers that stay small for layout-sized input.

    Example:
        >>> H, U = hnf([[4, 6], [2, 2]])
        >>> H, multiply(U, ((4, 6), (2, 2))) == H
        (((2, 0), (0, 2)), True)

    Source: H. Cohen, A Course in Computational Algebraic Number Theory, section 2.4.2.
    """
    rows = as_matrix(A, columns=columns)
    return hermite(rows, column_count(rows, columns), Work())


def hermite(rows: Matrix, width: int, work: Work) -> Hermite:
    """Return the form with its transform; see ``hnf``. The work counts as a part of a larger computation."""
    check_transform(len(rows))
    tailed = _tailed(rows)
    echelon(tailed, width, work)
    return Hermite(tuple([tuple(row[:width]) for row in tailed]), tuple([tuple(row[width:]) for row in tailed]))


def hermite_basis(generators: Sequence[Sequence[int]], width: int, work: Work | None = None) -> Matrix:
    """Return the rows of the Hermite form that are not zero: the canonical basis of the lattice of the generators.

    Raises: BudgetError: LA739.

    Example:
        >>> hermite_basis([(2, 0), (3, 0), (0, 0)], 2)
        ((1, 0),)
    """
    rows = [list(row) for row in generators]
    rank = len(echelon(rows, width, work))
    return tuple([tuple(row) for row in rows[:rank]])
