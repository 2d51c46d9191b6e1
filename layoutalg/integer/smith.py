"""Smith normal forms of integer matrices with both transforms.

Main definitions: ``snf``, ``Smith``, ``bezout``.

Main statements: ``U A V = D`` with U, V unimodular, D diagonal and non-negative, each entry dividing the next; D is
unique.

Implementation notes: three engines in a row. Entries 1 and -1 in rows and columns with little else are cleared first,
which takes most of a layout's matrix. What is left over is divided by its content; where it is square and nonsingular
the form follows from its inverse (``packed``). Everything else alternates Hermite forms of the matrix and of its
transpose.

References: H. Cohen, A Course in Computational Algebraic Number Theory, section 2.4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from layoutalg.integer.matrix import Matrix, Vector, as_matrix, check_transform, column_count, echelon
from layoutalg.integer.packed import Work, bits, combinations, smith_from_inverse

Rows = list[list[int]]
# a unit pivot is taken first where it changes at most this many entries
FILL = 9
# up to this many entries Hermite forms are faster: than looking for units, than the inverse
SMALL, SMALL_CORE = 12, 16


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


def snf(A: object, columns: int | None = None) -> Smith:
    """Return the Smith normal form with both transforms.

    Mathematically: ``U A V = D``, U and V unimodular, D diagonal with d_1 | d_2 | ... and d_i >= 0. D is unique.

    Args:
        A: Rows of integers.
        columns: Number of columns, for a matrix without rows.

    Raises: MalformedError: LA720. BudgetError: LA739.

    Example:
        >>> from layoutalg.integer.matrix import multiply
        >>> D, U, V = snf([[2, 0], [0, 3]])
        >>> D, multiply(multiply(U, ((2, 0), (0, 3))), V) == D
        (((1, 0), (0, 6)), True)

    Source: H. Cohen, A Course in Computational Algebraic Number Theory, section 2.4.4.
    """
    rows = as_matrix(A, columns=columns)
    height, width = len(rows), column_count(rows, columns)
    check_transform(max(height, width))
    body = [list(row) for row in rows]
    left, right = _unit_rows(height), _unit_rows(width)
    work = Work()
    if height * width <= SMALL:
        diagonal, left, right = _alternate(body, left, right, work) if body and width else ([], left, right)
        return _smith(diagonal, left, right)
    pairs = _clear_units(body, left, right, work)
    if not pairs:
        return _smith(*_core(body, left, right, work))
    done_rows, done_columns = {i for i, _ in pairs}, {j for _, j in pairs}
    # rows and columns of zeros come last
    live = [i for i in range(height) if i not in done_rows and any(body[i])]
    kept = [j for j in range(width) if j not in done_columns and any(body[i][j] for i in live)]
    core = [[body[i][j] for j in kept] for i in live]
    diagonal, upper, lower = _core(core, [left[i] for i in live], [right[j] for j in kept], work)
    rest_rows = done_rows.union(live)
    rest_columns = done_columns.union(kept)
    return _smith(
        [1] * len(pairs) + diagonal,
        [left[i] for i, _ in pairs] + upper + [left[i] for i in range(height) if i not in rest_rows],
        [right[j] for _, j in pairs] + lower + [right[j] for j in range(width) if j not in rest_columns],
    )


def _smith(diagonal: list[int], left: Rows, right: Rows) -> Smith:
    """Return the form from its diagonal, the rows of U and the columns of V."""
    width = len(right)
    D = [(0,) * width] * len(left)
    for place, entry in enumerate(diagonal):
        D[place] = (0,) * place + (entry,) + (0,) * (width - place - 1)
    return Smith(tuple(D), tuple(map(tuple, left)), tuple(zip(*right, strict=True)))


def _unit_rows(size: int) -> Rows:
    rows = [[0] * size for _ in range(size)]
    for place, row in enumerate(rows):
        row[place] = 1
    return rows


def _clear_units(body: Rows, left: Rows, right: Rows, work: Work) -> list[tuple[int, int]]:
    """Use entries 1 and -1 as pivots while they change few others; return their places.

    In place: rows of ``left`` follow the rows of the body, rows of ``right`` its columns. The rows and columns of the
    pivots are left at zero.
    """
    pairs: list[tuple[int, int]] = []
    found = True
    while found:
        found = False
        # looking at an entry takes about two units
        work.look(2 * len(left) * len(right))
        for i, row in enumerate(body):
            here = len(row) - row.count(0)
            for unit in (1, -1):
                if unit not in row:
                    continue
                j = row.index(unit)
                touched = [k for k, other in enumerate(body) if other[j]]
                if (len(touched) - 1) * (here - 1) <= FILL:
                    _clear(body, left, right, i, j, touched, work)
                    pairs.append((i, j))
                    found = True
                    break
    return pairs


def _clear(body: Rows, left: Rows, right: Rows, i: int, j: int, touched: list[int], work: Work) -> None:
    """Clear the row and the column of the unit at (i, j)."""
    row = body[i]
    if row[j] < 0:
        row = [-a for a in row]
        left[i] = [-a for a in left[i]]
    tail = left[i]
    places = [k for k, entry in enumerate(row) if entry]
    tails = [k for k, entry in enumerate(tail) if entry]
    work.rows(len(places) + len(tails), bits(row) + bits(tail), bits([body[k][j] for k in touched]), len(touched))
    for k in touched:
        if k != i:
            other, follower = body[k], left[k]
            q = other[j]
            for place in places:
                other[place] -= q * row[place]
            for place in tails:
                follower[place] -= q * tail[place]
    base = right[j]
    tails = [k for k, entry in enumerate(base) if entry]
    work.rows(len(tails), bits(base), bits(row), len(places))
    for k in places:
        if k != j:
            follower, q = right[k], row[k]
            for place in tails:
                follower[place] -= q * base[place]
    body[i] = [0] * len(row)


def _core(core: Rows, left: Rows, right: Rows, work: Work) -> tuple[list[int], Rows, Rows]:
    """Return the diagonal and the rows of both transforms for what the units leave over."""
    content = math.gcd(*[math.gcd(*row) for row in core])
    if not content:
        return [], left, right
    if content > 1:
        core = [[entry // content for entry in row] for row in core]
    if len({*_single(core)}) == len(core):
        diagonal, left, right = _monomial(core, left, right, work)
    elif len(core) != len(core[0]) or len(core) ** 2 <= SMALL_CORE or (found := smith_from_inverse(core)) is None:
        diagonal, left, right = _alternate(core, left, right, work)
    else:
        diagonal, upper, lower = found
        turned = list(zip(*lower, strict=True))
        # without pivots before and without rows of zeros, both sides still are identities
        left = upper if len(left) == len(left[0]) else combinations(upper, left)
        right = list(map(list, turned)) if len(right) == len(right[0]) else combinations(turned, right)
    return [entry * content for entry in diagonal], left, right


def _single(core: Rows) -> list[int]:
    """Return the column of the only entry of every row that has one entry."""
    return [next(j for j, entry in enumerate(row) if entry) for row in core if row.count(0) == len(row) - 1]


def _monomial(core: Rows, left: Rows, right: Rows, work: Work) -> tuple[list[int], Rows, Rows]:
    """Return the diagonal and both transforms where every row has one entry, each in a column of its own."""
    pivots = sorted(zip([abs(sum(row)) for row in core], _single(core), range(len(core)), strict=True))
    diagonal = [entry for entry, _, _ in pivots]
    left = [left[i] if sum(core[i]) > 0 else [-a for a in left[i]] for _, _, i in pivots]
    used = [j for _, j, _ in pivots]
    right = [right[j] for j in used] + [column for j, column in enumerate(right) if j not in used]
    _chain(diagonal, left, right, work)
    return diagonal, left, right


def _alternate(body: Rows, left: Rows, right: Rows, work: Work) -> tuple[list[int], Rows, Rows]:
    """Return the diagonal and both transforms by Hermite forms of the body and of its transpose in turn."""
    height, width = len(body), len(body[0])
    while True:
        body, left = _reduced(body, left, width, work)
        if _is_diagonal(body):
            break
        body, right = _reduced([list(column) for column in zip(*body, strict=True)], right, height, work)
        body = [list(row) for row in zip(*body, strict=True)]
        if _is_diagonal(body):
            break
    diagonal = [body[place][place] for place in range(min(height, width))]
    _chain(diagonal, left, right, work)
    return diagonal, left, right


def _reduced(body: Rows, tails: Rows, width: int, work: Work) -> tuple[Rows, Rows]:
    """Return the Hermite form of ``body`` with the same row operations applied to ``tails``."""
    rows = [[*row, *tail] for row, tail in zip(body, tails, strict=True)]
    echelon(rows, width, work)
    return [row[:width] for row in rows], [row[width:] for row in rows]


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


def _chain(diagonal: list[int], left: Rows, right: Rows, work: Work) -> None:
    """Make each diagonal entry divide the next, in place; the entries that are not zero come first."""
    rank = sum(map(bool, diagonal))
    for i in range(rank):
        for j in range(i + 1, rank):
            a, b = diagonal[i], diagonal[j]
            if a == 1:
                break
            if b % a == 0:
                continue
            # two operations on both sides, with multipliers of the size of a and b
            size = a.bit_length() + b.bit_length()
            work.rows(len(left[i]) + 4, max(bits(left[i]), bits(left[j]), size), size, 2)
            work.rows(len(right[i]), max(bits(right[i]), bits(right[j])), size, 2)
            g, x, y = bezout(a, b)
            s, t = a // g, b // g
            upper, lower = left[i], left[j]
            left[i] = [x * p + y * q for p, q in zip(upper, lower, strict=True)]
            left[j] = [s * q - t * p for p, q in zip(upper, lower, strict=True)]
            upper, lower = right[i], right[j]
            right[i] = [p + q for p, q in zip(upper, lower, strict=True)]
            right[j] = [x * s * q - y * t * p for p, q in zip(upper, lower, strict=True)]
            diagonal[i], diagonal[j] = g, s * b
