"""Integer matrices: checked input, products, Hermite and Smith normal forms with their transforms.

Notation: a matrix is a tuple of rows of Python ints. A matrix without rows has no column count of its own, so functions
that need one take ``columns``.

``U A = H`` with U unimodular; H depends only on the lattice of the rows. ``U A V = D`` with U and V unimodular; D is
unique.

Implementation notes: each row carries its transform in its tail and is eliminated by nearest quotients, smallest pivot
first. This keeps transforms as short as the form itself: about 60 bits for 16 x 16 digits. The Smith form alternates
Hermite forms of the matrix and its transpose. One work budget and one clock cover a whole computation.

References: H. Cohen, A Course in Computational Algebraic Number Theory, section 2.4.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import add, mul, sub
from typing import Any, TypeAlias

import numpy as np

from layoutalg.ground import clock
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import BudgetError, Diagnostic

Matrix: TypeAlias = tuple[tuple[int, ...], ...]
Vector: TypeAlias = tuple[int, ...]
Form: TypeAlias = tuple[Vector, int, int]
"""The affine form ``row x + constant``, modulo the last number unless that is 0."""
MAX_ENTRIES = 1_000_000
_INT = {int}
check = Checker("LA720", "this is not a matrix of integers")


def as_matrix(value: object, argument: str = "A", columns: int | None = None) -> Matrix:
    """Return rows of integers as a matrix.

    Args:
        value: A sequence of rows of equal length, or a two-dimensional integer array.
        argument: Name of the argument, for the message.
        columns: Expected number of columns, if known.

    Example:
        >>> as_matrix([[1, 2], (3, np.int8(4))])
        ((1, 2), (3, 4))
    """
    width = None if columns is None else check.integer(columns, "columns", 0, MAX_ENTRIES + 1)
    if isinstance(value, np.ndarray):
        value = value.tolist() if value.dtype.kind in "iuO" else value
    if not isinstance(value, (tuple, list)):
        raise check.malformed(argument, "must be a sequence of rows", value)
    rows = []
    for place, row in enumerate(value):
        plain = type(row) is tuple and (width is None or len(row) == width) and set(map(type, row)) <= _INT
        rows.append(row if plain else check.vector(row, f"{argument}[{place}]", width))
        width = len(row)
    if width and len(rows) * width > MAX_ENTRIES:
        raise check.malformed(argument, f"must have at most {MAX_ENTRIES} entries", f"{len(rows)} x {width}")
    return tuple(rows)


def column_count(A: Matrix, columns: int | None) -> int:
    """Return the number of columns; ``columns`` is used for a matrix without rows."""
    return len(A[0]) if A else columns or 0


def identity(size: int) -> Matrix:
    """Return the identity matrix.

    Example:
        >>> identity(2)
        ((1, 0), (0, 1))
    """
    return tuple([tuple([int(i == j) for j in range(size)]) for i in range(size)])


def transpose(A: Matrix, columns: int | None = None) -> Matrix:
    """Return the transpose; ``columns`` is used for a matrix without rows.

    Example:
        >>> transpose(((1, 2, 3),))
        ((1,), (2,), (3,))
    """
    return tuple(zip(*A, strict=True)) if A else ((),) * (columns or 0)


def multiply(A: Matrix, B: Matrix) -> Matrix:
    """Return the product A B.

    Example:
        >>> multiply(((1, 2),), ((3,), (4,)))
        ((11,),)
    """
    for row in A:
        if len(row) != len(B):
            raise check.malformed("B", f"must have {len(row)} rows, one per column of A", len(B))
    turned = transpose(B)
    return tuple([tuple([sum(map(mul, row, column)) for column in turned]) for row in A])


def apply(A: Matrix, x: Vector) -> Vector:
    """Return A x.

    Example:
        >>> apply(((1, 2), (0, 1)), (3, 4))
        (11, 4)
    """
    return tuple([sum(map(mul, row, x)) for row in A])


# normal forms

Rows = list[list[int]]
WORD_BITS = 64
MAX_WORK = 600_000_000
"""Word steps, a few nanoseconds each, allowed per computation."""
STEP = 24
"""Fixed cost of one operation in word steps, in addition to its words."""
FREE_ENTRIES, FREE_BITS = 1024, 2**16
"""Work is not counted for matrices up to this many entries and bits in total."""


@dataclass(slots=True)
class Work:
    """Counts the work of one computation and raises once the budget is exceeded."""

    done: int = 0

    def rows(self, length: int, bits: int, quotient_bits: int) -> None:
        """Count one operation ``row - q * base`` on rows of this length, with base and q of these bit sizes."""
        self.steps(length * (STEP + 2 * (bits // WORD_BITS + 1) * (quotient_bits // WORD_BITS + 2)))

    def steps(self, count: int) -> None:
        """Count word steps."""
        self.done += count
        if self.done > MAX_WORK:
            raise BudgetError(
                Diagnostic(
                    code="LA739",
                    what="the matrix elimination takes too many steps",
                    because=f"{self.done} steps on {WORD_BITS}-bit words; the limit is {MAX_WORK}",
                    witness={"work": self.done, "limit": MAX_WORK},
                )
            )
        clock.check("an elimination over the integers")


def _bits(row: Iterable[int]) -> int:
    return max(map(int.bit_length, row), default=0)


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
        """Number of nonzero rows of H."""
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
        """The nonzero diagonal entries."""
        diagonal = [row[place] for place, row in enumerate(self.D) if place < len(row)]
        return tuple([entry for entry in diagonal if entry])

    @property
    def rank(self) -> int:
        """Rank of the matrix."""
        return len(self.invariants)


def hnf(A: object, columns: int | None = None, work: Work | None = None) -> Hermite:
    """Return the row Hermite normal form with its transform: ``U A = H``, U unimodular.

    Args:
        A: Rows of integers.
        columns: Number of columns; needed for a matrix without rows.
        work: Work counter of the enclosing computation.

    Complexity: about rows x columns^2 operations on integers that stay small for layout-sized input.

    Example:
        >>> H, U = hnf([[4, 6], [2, 2]])
        >>> H, multiply(U, ((4, 6), (2, 2))) == H
        (((2, 0), (0, 2)), True)

    Source: H. Cohen, A Course in Computational Algebraic Number Theory, section 2.4.2.
    """
    rows = as_matrix(A, columns=columns)
    _check_transform(len(rows))
    form, transform = _reduced(list(map(list, rows)), _unit_rows(len(rows)), column_count(rows, columns), work)
    return Hermite(tuple(map(tuple, form)), tuple(map(tuple, transform)))


def hermite_basis(generators: Sequence[Sequence[int]], width: int, work: Work | None = None) -> Matrix:
    """Return the nonzero rows of the Hermite form: the canonical basis of the lattice spanned by the generators.

    Example:
        >>> hermite_basis([(2, 0), (3, 0), (0, 0)], 2)
        ((1, 0),)
    """
    rows = [list(row) for row in generators]
    rank = _eliminate(rows, width, work)
    return tuple(map(tuple, rows[:rank]))


def snf(A: object, columns: int | None = None) -> Smith:
    """Return the Smith normal form with both transforms; ``columns`` as in ``hnf``.

    Mathematically: ``U A V = D``, U and V unimodular, D diagonal with d_1 | d_2 | ... and d_i >= 0.

    Example:
        >>> D, U, V = snf([[2, 0], [0, 3]])
        >>> D, multiply(multiply(U, ((2, 0), (0, 3))), V) == D
        (((1, 0), (0, 6)), True)

    Source: H. Cohen, A Course in Computational Algebraic Number Theory, section 2.4.4.
    """
    rows = as_matrix(A, columns=columns)
    height, width = len(rows), column_count(rows, columns)
    _check_transform(max(height, width))
    body, left, right, work = [list(row) for row in rows], _unit_rows(height), _unit_rows(width), Work()
    while body and width:
        body, left = _reduced(body, left, width, work)
        if _is_diagonal(body):
            break
        turned, right = _reduced([list(column) for column in zip(*body, strict=True)], right, height, work)
        body = [list(row) for row in zip(*turned, strict=True)]
        if _is_diagonal(body):
            break
    diagonal = [body[place][place] for place in range(min(height, width))]
    _divide_in_order(diagonal, left, right, work)
    D = [[0] * width for _ in rows]
    for place, entry in enumerate(diagonal):
        D[place][place] = entry
    return Smith(tuple(map(tuple, D)), tuple(map(tuple, left)), tuple(zip(*right, strict=True)))


def is_unimodular(A: object) -> bool:
    """Return whether a matrix is invertible over the integers: square, with the identity as its Hermite form.

    Example:
        >>> is_unimodular([[1, 5], [0, -1]]), is_unimodular([[2, 0], [0, 1]])
        (True, False)
    """
    rows = as_matrix(A)
    return all(len(row) == len(rows) for row in rows) and hermite_basis(rows, len(rows)) == identity(len(rows))


def _unit_rows(size: int) -> Rows:
    return list(map(list, identity(size)))


def _check_transform(size: int) -> None:
    """Raise if a square transform would have too many entries."""
    if size * size > MAX_ENTRIES:
        raise BudgetError(
            Diagnostic(
                code="LA739",
                what="the transform of the matrix is too large",
                because=f"it has {size} x {size} entries; the limit is {MAX_ENTRIES}",
                witness={"size": size, "limit": MAX_ENTRIES},
            )
        )


def _is_diagonal(body: Rows) -> bool:
    return not any(any(row[:place]) or any(row[place + 1 :]) for place, row in enumerate(body))


def _reduced(body: Rows, tails: Rows, width: int, work: Work | None) -> tuple[Rows, Rows]:
    """Return the Hermite form of ``body``, and ``tails`` after the same row operations."""
    rows = [[*row, *tail] for row, tail in zip(body, tails, strict=True)]
    _eliminate(rows, width, work)
    return [row[:width] for row in rows], [row[width:] for row in rows]


def _eliminate(rows: Rows, width: int, work: Work | None) -> int:
    """Bring rows to Hermite form in their first ``width`` columns, in place; return the rank."""
    top, count = 0, len(rows)
    entries = count * len(rows[0]) if rows else 0
    counted = entries > FREE_ENTRIES or entries * max(map(_bits, rows), default=0) > FREE_BITS
    work = work or Work()
    for column in range(width):
        live = [i for i in range(top, count) if rows[i][column]]
        if not live:
            continue
        while len(live) > 1:
            best = min(live, key=lambda i: abs(rows[i][column]))
            base = rows[best]
            pivot = base[column]
            size = _bits(base) if counted else 0
            rest = [best]
            for i in live:
                if i == best:
                    continue
                # rounding to the nearest quotient at least halves the remainder
                q = (2 * rows[i][column] + pivot) // (2 * pivot)
                if counted:
                    work.rows(len(base), size, q.bit_length())
                rows[i] = _subtracted(rows[i], q, base)
                if rows[i][column]:
                    rest.append(i)
            live = rest
        place = live[0]
        base = rows[place] if rows[place][column] > 0 else [-a for a in rows[place]]
        rows[place], rows[top] = rows[top], base
        size = _bits(base) if counted else 0
        for i in range(top):
            q = rows[i][column] // base[column]
            if q:
                if counted:
                    work.rows(len(base), size, q.bit_length())
                rows[i] = _subtracted(rows[i], q, base)
        top += 1
        if top == count:
            break
    return top


def _subtracted(row: list[int], q: int, base: list[int]) -> list[int]:
    """Return ``row - q * base``."""
    if q == 1:
        return list(map(sub, row, base))
    if q == -1:
        return list(map(add, row, base))
    return [a - q * b for a, b in zip(row, base, strict=True)]


def _divide_in_order(diagonal: list[int], left: Rows, right: Rows, work: Work) -> None:
    """Make each diagonal entry divide the next, in place; nonzero entries come first."""
    rank = sum(map(bool, diagonal))
    for i in range(rank):
        for j in range(i + 1, rank):
            a, b = diagonal[i], diagonal[j]
            if a == 1:
                break
            if b % a == 0:
                continue
            g = math.gcd(a, b)
            s, t = a // g, b // g
            x = pow(s, -1, t) if t > 1 else 0
            y = (1 - x * s) // t
            # two row operations on each side, with multipliers as large as a and b
            size = a.bit_length() + b.bit_length()
            for rows in (left, right):
                for _ in range(2):
                    work.rows(len(rows[i]), max(_bits(rows[i]), _bits(rows[j]), size), size)
            p, q = left[i], left[j]
            left[i] = [x * c + y * d for c, d in zip(p, q, strict=True)]
            left[j] = [s * d - t * c for c, d in zip(p, q, strict=True)]
            p, q = right[i], right[j]
            right[i] = [c + d for c, d in zip(p, q, strict=True)]
            right[j] = [x * s * d - y * t * c for c, d in zip(p, q, strict=True)]
            diagonal[i], diagonal[j] = g, s * b
