"""Linear algebra over F2 with columns as Python integers.

A matrix is a sequence of columns; bit ``r`` of a column is its entry in row ``r``. The numbers of rows and columns are
unlimited. A set of columns is an integer too, with bit ``j`` for column ``j``.

Notation: ``M x`` is the xor of the columns ``j`` with bit ``j`` of ``x`` set.

Implementation notes: a work row of the elimination is one integer, the vector in the high bits and the set of columns
that produced it in the low bits. One xor updates both, and ``bit_length`` finds the pivot without a mask.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from sys import byteorder
from typing import Final

import numpy as np
import numpy.typing as npt

from layoutalg.ground import clock, memory
from layoutalg.ground.errors import AdmissibilityError, BudgetError, Diagnostic

TABLE_OUTPUT_BITS = 63

F2_TABLE_BITS: Final = 27
"""bits: the inputs of an F2 layout with a table"""
TABLE_BLOCK = 1 << 22
"""Values written between two deadline checks."""
SMALL = 64
"""Up to this many rows and columns, thousands of answers are cached: searches repeat the same queries."""


@dataclass(frozen=True)
class Elimination:
    """The column space of a matrix, with the combination of columns behind each basis vector."""

    rows: Mapping[int, int]  # bit length -> work row of that length, before back substitution
    # sets of columns whose xor is zero; a basis of the kernel. The highest column of each is in no other.
    null: tuple[int, ...]
    column_count: int  # number of columns of the matrix

    @property
    def rank(self) -> int:
        """The dimension of the column space."""
        return len(self.rows)

    @cached_property
    def pivots(self) -> tuple[tuple[int, int], ...]:
        """For each pivot row (ascending) the pair (vector, set of columns whose xor is that vector).

        The pivot row is the highest bit of its vector and zero in all other vectors.
        """
        count, mask = self.column_count, (1 << self.column_count) - 1
        return tuple([(row >> count, row & mask) for row in _backward(self.rows)])

    def reduce(self, vector: int) -> tuple[int, int]:
        """Return (remainder, columns used): ``vector`` is in the column space exactly when the remainder is 0."""
        count, lookup = self.column_count, self.rows.get
        row, rest = vector << count, 0
        length = row.bit_length()
        while length > count:
            pivot = lookup(length)
            if pivot is None:  # this bit stays
                pivot = 1 << length - 1
                rest |= pivot
            row ^= pivot
            length = row.bit_length()
        return rest >> count, row


def forward(columns: Sequence[int]) -> tuple[dict[int, int], list[int], int]:
    """Return (bit length -> work row, kernel sets, number of columns), before back substitution."""
    count = len(columns)
    work: dict[int, int] = {}
    null: list[int] = []
    lookup = work.get
    for index, column in enumerate(columns):
        if index & 63 == 63:
            clock.check("an elimination over F2")
        row = column << count | 1 << index
        length = row.bit_length()
        while length > count:
            other = lookup(length)
            if other is None:
                work[length] = row
                break
            row ^= other
            length = row.bit_length()
        else:
            null.append(row)
    return work, null, count


def _backward(work: Mapping[int, int]) -> list[int]:
    """Return the work rows after back substitution, ascending by pivot."""
    lengths = sorted(work)
    pivot_rows = 0
    done: dict[int, int] = {}
    for index, length in enumerate(lengths):
        if index & 63 == 63:
            clock.check("an elimination over F2")
        row = work[length]
        other = (row & pivot_rows) if pivot_rows else 0
        while other:
            low = other.bit_length()
            row ^= done[low]
            other ^= 1 << (low - 1)
        done[length] = row
        pivot_rows |= 1 << (length - 1)
    return [done[length] for length in lengths]


def eliminate(columns: Sequence[int]) -> Elimination:
    """Reduce the columns; the result answers rank, kernel, image, membership and solving.

    Complexity: O(n * rank) operations on integers of rows + columns bits.

    Example:
        >>> found = eliminate((0b11, 0b01, 0b10))
        >>> found.pivots, found.null
        (((1, 2), (2, 3)), (7,))
    """
    small = len(columns) <= SMALL and not (columns and max(columns) >> SMALL)
    return (_small if small else _large)(tuple(columns))


def eliminate_uncached(columns: Sequence[int]) -> Elimination:
    """Like ``eliminate``, without its cache."""
    work, null, count = forward(columns)
    return Elimination(work, tuple(null), count)


_small = lru_cache(maxsize=4096)(eliminate_uncached)
_large = lru_cache(maxsize=4)(eliminate_uncached)


def rank(columns: Iterable[int]) -> int:
    """Return the dimension of the span of ``columns``."""
    by_length: dict[int, int] = {}
    for column in columns:
        while column:
            length = column.bit_length()
            other = by_length.get(length)
            if other is None:
                by_length[length] = column
                break
            column ^= other
    return len(by_length)


def image_basis(columns: Sequence[int]) -> tuple[int, ...]:
    """Return the reduced basis of the column space, ascending; it is unique."""
    return tuple([vector for vector, _ in eliminate(columns).pivots])


def remainder(reduced: Sequence[int], value: int) -> int:
    """Return the least element of ``value + span`` for a reduced basis."""
    for vector in reduced:
        value = min(value, value ^ vector)
    return value


def kernel(columns: Sequence[int]) -> tuple[int, ...]:
    """Return a basis of the inputs x with ``M x = 0``."""
    return tuple(forward(columns)[1])


def solve(columns: Sequence[int], target: int) -> tuple[int, tuple[int, ...]] | None:
    """Return all solutions of ``M x = target`` as (one solution, basis of the kernel), or None if there are none.

    Example:
        >>> solve((1, 2, 3), 2), solve((1, 3), 4)
        ((2, (7,)), None)
    """
    reduced = eliminate(columns)
    remainder, used = reduced.reduce(target)
    return None if remainder else (used, reduced.null)


def inverse(columns: Sequence[int]) -> tuple[int, ...]:
    """Return the columns of the inverse of a square matrix."""
    work, null, count = forward(columns)
    if null:
        raise AdmissibilityError(
            Diagnostic(
                code="LA210",
                what="the matrix over F2 is singular",
                where=(f"inverse({tuple(columns)})",),
                because=f"rank {count - len(null)} is less than {count}",
                witness={"kernel": null[0]},
            )
        )
    if work and max(work) > 2 * count:
        highest = max(columns)
        raise AdmissibilityError(
            Diagnostic(
                code="LA210",
                what="the matrix over F2 is not square",
                where=(f"inverse({tuple(columns)})",),
                because=f"{count} columns, but column value {highest} reaches row {highest.bit_length() - 1}",
                witness={"column": highest},
            )
        )
    mask = (1 << count) - 1
    return tuple([row & mask for row in _backward(work)])


def apply(columns: Sequence[int], vector: int) -> int:
    """Return ``M x``. Bits of ``vector`` beyond the columns must be zero."""
    answer = 0
    while vector:
        low = vector & -vector
        answer ^= columns[low.bit_length() - 1]
        vector ^= low
    return answer


def multiply(left: Sequence[int], right: Sequence[int]) -> tuple[int, ...]:
    """Return the columns of the product: ``left`` after ``right``.

    Args:
        left: At least as many columns as ``right`` has rows.

    Complexity: one xor per set entry of ``right``, or one step per column of ``left`` if dense.

    Example:
        >>> multiply((2, 1), (3, 1))
        (3, 2)
    """
    # two columns suffice as a density probe: the choice affects only speed
    if len(right) > 5 and right[-1].bit_count() + right[len(right) // 2].bit_count() > 5:
        dense = _multiply_packed(left, right)
        if dense is not None:
            return dense
    # most columns of real layouts have one bit: a look-up
    return tuple(
        [
            left[vector.bit_length() - 1] if vector and not vector & vector - 1 else apply(left, vector)
            for vector in right
        ]
    )


def _multiply_packed(left: Sequence[int], right: Sequence[int]) -> tuple[int, ...] | None:
    """Return the product computed on one big integer with a word per column, or with numpy above 32 rows.

    Row k of ``right`` is one bit per word; multiplied by column k of ``left`` it puts that column into each such word.
    None above 64 rows, or if ``left`` lacks a column.
    """
    highest = max(right)
    widest = max(highest, max(left))
    if widest >> 64 or highest >> len(left):
        return None
    if widest >> 32:
        bits = np.array(right, dtype=np.uint64)[:, None] >> _PLACES[: len(left)] & _PLACES[1]
        return tuple(np.bitwise_xor.reduce(bits * np.array(left[:64], dtype=np.uint64), axis=1).tolist())
    words = int.from_bytes(array("I", right), byteorder)
    ones = _ONES >> 32 * (SMALL - len(right)) if len(right) <= SMALL else sum(1 << 32 * at for at in range(len(right)))
    product = 0
    for column in left[:32]:
        product ^= (words & ones) * column
        words >>= 1
    return tuple(array("I", product.to_bytes(4 * len(right), byteorder)))


_PLACES = np.arange(64, dtype=np.uint64)


_ONES: Final = sum(1 << 32 * at for at in range(SMALL))
"""The lowest bit of each of 64 words of 32 bits."""


def transpose(columns: Sequence[int], row_count: int) -> tuple[int, ...]:
    """Return the ``row_count`` columns of the transpose."""
    return tuple(sum((column >> row & 1) << index for index, column in enumerate(columns)) for row in range(row_count))


def table(columns: Sequence[int], constant: int = 0) -> npt.NDArray[np.int64]:
    """Return ``M x xor constant`` for every x, as int64 of length ``2 ** len(columns)``.

    Complexity: one vectorised xor per column (doubling).

    Example:
        >>> table((1, 3), 4).tolist()
        [4, 5, 7, 6]
    """
    bits = len(columns)
    widest = max((value.bit_length() for value in (constant, *columns)), default=0)
    if bits > F2_TABLE_BITS or widest > TABLE_OUTPUT_BITS:
        raise BudgetError(
            Diagnostic(
                code="LA211",
                what="the table of this F2 map is too large",
                where=(f"{bits} input bits, {widest} output bits",),
                because=f"the limit is {F2_TABLE_BITS} input bits and {TABLE_OUTPUT_BITS} output bits",
            )
        )
    memory.reserve("the table of an F2 map", 1 << bits, 8)
    values = np.empty(1 << bits, dtype=np.int64)
    values[0] = constant
    for index, column in enumerate(columns):
        half = 1 << index
        for start in range(0, half, TABLE_BLOCK):
            clock.check("the table of an F2 map")
            end = min(start + TABLE_BLOCK, half)
            np.bitwise_xor(values[start:end], column, out=values[half + start : half + end])
    return values


def intersection(left: Sequence[int], right: Sequence[int]) -> tuple[int, ...]:
    """Return the reduced basis of span(left) intersected with span(right)."""
    first, second = image_basis(left), image_basis(right)
    mask = (1 << len(first)) - 1
    return image_basis([apply(first, null & mask) for null in kernel((*first, *second))])


def common_complement(left: Sequence[int], right: Sequence[int], bits: int) -> tuple[int, ...]:
    """Return a basis of a largest subspace of F2^bits that meets span(left) and span(right) only in 0.

    Mathematically: with I the intersection, I + E = span(left), I + F = span(right) and C completing I + E + F to the
    whole space, the result is C with the vectors ``e_i xor f_i``. Its dimension is ``bits - max(dim left, dim right)``.

    Args:
        left: Vectors below ``2 ** bits``.
        right: Vectors below ``2 ** bits``.

    Example:
        >>> common_complement((1,), (2,), 2)
        (3,)

    Source: arXiv 2505.23819, lemma 9.5 (the idea); the construction is stated above.
    """
    shared = intersection(left, right)
    extra_left = extension(shared, left)
    extra_right = extension(shared, right)
    rest = extension((*shared, *extra_left, *extra_right), tuple(1 << bit for bit in range(bits)))
    return (*rest, *(e ^ f for e, f in zip(extra_left, extra_right, strict=False)))


def extension(base: Sequence[int], candidates: Sequence[int]) -> tuple[int, ...]:
    """Return the candidates that enlarge the span, starting from ``base``."""
    by_length: dict[int, int] = {}
    chosen = []
    for position, vector in enumerate((*base, *candidates)):
        rest = vector
        while rest:
            other = by_length.get(rest.bit_length())
            if other is None:
                by_length[rest.bit_length()] = rest
                if position >= len(base):
                    chosen.append(vector)
                break
            rest ^= other
    return tuple(chosen)
