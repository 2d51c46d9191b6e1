"""Smith forms of nonsingular square matrices from the scaled inverse, on rows packed into single integers.

Main definitions: ``ScaledInverse``, ``scaled_inverse``, ``smith_from_inverse``, ``combinations``, ``Work``.

Main statements: with B = d A^-1 integral, a row vector v is a combination of the rows of A exactly when ``v B = 0
(mod d)``. Where B is, modulo d, a sum of K columns times rows whose columns w_1, w_2, ... each hold a unit, this is K
congruences ``v w_k = 0 (mod m_k)`` with m_1 ... m_K = |d|. Then V has the columns w_k next to unit columns, D holds the
m_k, and ``U = D V^-1 A^-1``. So transforms are as small as the inverse, while elimination lets them grow.

Notation: a packed row is ``sum x_k 2^(k w)`` with signed x_k. Sums, products with a number and exact quotients of
packed rows are those of their entries, whatever overlaps on the way; only reading needs ``|x_k| < 2^(w-1)``.

References: E. Bareiss, Sylvester's identity and multistep integer-preserving Gaussian elimination, 1968;
H. Cohen, A Course in Computational Algebraic Number Theory, section 2.2.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import mul

from layoutalg.ground import clock
from layoutalg.ground.errors import BudgetError, Diagnostic

Rows = list[list[int]]
WORD_BITS = 64
MAX_WORK = 300_000_000
# what one operation on numbers of one word costs besides its words
STEP = 24
# more congruences than this and elimination is the faster way
LEVELS = 8
# at most this many rows are added to others in search of a unit
MOVES = 4
# room above the entries of the inverse, for the combinations that become rows of U
SLACK_BITS = 10


def spend(work: int) -> None:
    """Refuse work beyond the budget, a few seconds; the unit is a few nanoseconds.

    Raises: BudgetError: LA739.
    """
    if work > MAX_WORK:
        raise BudgetError(
            Diagnostic(
                code="LA739",
                what="the elimination of the matrix is too long",
                because=f"{work} steps on words of {WORD_BITS} bits, the limit is {MAX_WORK}",
                witness={"work": work, "limit": MAX_WORK},
            )
        )


@dataclass(slots=True)
class Work:
    """A count of row operations that refuses to pass the budget; one per computation, whatever its parts."""

    done: int = 0

    def rows(self, length: int, bits: int, quotient_bits: int = 0, count: int = 1) -> None:
        """Count ``count`` operations ``row - q * base`` on rows of this length, base and q of these sizes.

        Raises: BudgetError: LA739.
        """
        words = bits // WORD_BITS + 1
        self.look(count * length * (STEP + 2 * words * (quotient_bits // WORD_BITS + 2)))

    def look(self, amount: int) -> None:
        """Count an amount of work.

        Raises: BudgetError: LA739.
        """
        self.done += amount
        spend(self.done)
        clock.check("an elimination over the integers")


def bits(row: Iterable[int]) -> int:
    """Return the size of the largest entry.

    Example:
        >>> bits((3, -8, 0)), bits(())
        (4, 0)
    """
    return max(map(int.bit_length, row), default=0)


def pack(rows: Iterable[Sequence[int]], width: int) -> list[int]:
    """Return rows of signed entries as integers, entry k at bit k width."""
    packed = []
    for row in rows:
        total = 0
        for entry in reversed(row):
            total = (total << width) + entry
        packed.append(total)
    return packed


def unpack(rows: Iterable[int], width: int, count: int) -> Rows:
    """Return the entries of packed rows.

    Example:
        >>> unpack(pack([(3, -1, 0)], 4), 4, 3)
        [[3, -1, 0]]
    """
    half, mask = 1 << (width - 1), (1 << width) - 1
    # half a field more in every field makes all entries non-negative
    lift = half * (((1 << (count * width)) - 1) // mask)
    shifts = range(0, count * width, width)
    return [[(row >> shift & mask) - half for shift in shifts] for row in [packed + lift for packed in rows]]


def field(packed: Iterable[int], place: int, width: int) -> list[int]:
    """Return the entry at a place of every packed row."""
    shift, half, mask = place * width, 1 << (width - 1), (1 << width) - 1
    # half a unit below the field rounds the lower fields away, half a field makes the entry non-negative
    lift = (half << shift) + (1 << shift >> 1)
    return [((row + lift) >> shift & mask) - half for row in packed]


def combinations(factors: Iterable[Sequence[int]], rows: Sequence[Sequence[int]]) -> Rows:
    """Return the product of a matrix and rows.

    Raises: BudgetError: LA739.

    Example:
        >>> combinations([(1, 2), (0, -1)], [(1, 0, 5), (0, 1, 7)])
        [[1, 2, 19], [0, -1, -7]]
    """
    factors = list(factors)
    reach = max([sum(map(abs, factor)) for factor in factors], default=0)
    size = max([max(map(abs, row), default=0) for row in rows], default=0)
    width = (reach * size).bit_length() + 2
    packed, count = pack(rows, width), len(rows[0]) if rows else 0
    words = width // WORD_BITS + 1
    spend(len(factors) * len(rows) * (count * words + STEP) * (reach.bit_length() // WORD_BITS + 1))
    return unpack([sum(map(mul, factor, packed)) for factor in factors], width, count)


@dataclass(frozen=True, slots=True)
class ScaledInverse:
    """``B = d A^-1`` with d = det A, as packed rows; column k of the packed rows is column ``order[k]`` of B."""

    d: int
    packed: list[int]
    order: list[int]
    width: int

    def read(self, rows: Iterable[int]) -> Rows:
        """Return the entries of packed rows in their own order."""
        found = unpack(rows, self.width, len(self.order))
        if self.order == sorted(self.order):
            return found
        back = [self.order.index(place) for place in range(len(self.order))]
        return [[row[place] for place in back] for row in found]

    def column(self, place: int) -> list[int]:
        """Return one column of B."""
        return field(self.packed, self.order.index(place), self.width)


def scaled_inverse(rows: Sequence[Sequence[int]]) -> ScaledInverse | None:
    """Return ``det(A) A^-1`` of a square matrix, or None where A is singular.

    Fraction-free Gauss-Jordan elimination in place: every entry on the way is a minor of A, so Hadamard's bound fixes
    the width, and the division by the previous pivot is exact.

    Raises: BudgetError: LA739.

    Example:
        >>> found = scaled_inverse([[2, 1], [1, 3]])
        >>> found.d, found.read(found.packed)
        (5, [[3, -1], [-1, 2]])
    """
    count = len(rows)
    bound = 1
    for row in rows:
        bound *= sum(map(mul, row, row))
    if not bound:
        return None
    width = (bound.bit_length() + 1) // 2 + 2 + SLACK_BITS
    # a step on a packed row multiplies twice and divides once
    spend(2 * count**3 * (width // WORD_BITS + 1) ** 2)
    packed = pack(rows, width)
    order = list(range(count))
    previous, sign = 1, 1
    for k in range(count):
        shift = k * width
        column = field(packed, k, width)
        pivot = column[k]
        if not pivot:
            other = next((i for i in range(k + 1, count) if column[i]), None)
            if other is None:
                return None
            for each in (packed, column, order):
                each[k], each[other] = each[other], each[k]
            sign = -sign
            pivot = column[k]
        # the column that is eliminated makes room for the column of the identity, which holds `previous` by now
        top = packed[k]
        base = top + (previous << shift)
        packed = [
            (pivot * row - entry * base) // previous if entry else pivot * row // previous
            for row, entry in zip(packed, column, strict=True)
        ]
        packed[k] = top + ((previous - pivot) << shift)
        previous = pivot
    return ScaledInverse(sign * previous, packed if sign > 0 else [-row for row in packed], order, width)


@dataclass(slots=True)
class _Search:
    """The congruences found so far, and what is left of B modulo the current modulus.

    Args:
        columns: The columns of B, reduced by the congruences found.
        free: Places without a congruence.
        found: (place, column w, modulus) with ``w[place] = 1`` and zeros at the places before in the list.
        moves: (place, other, times) in order: this multiple of another row of B was added to a row.
    """

    columns: Rows
    free: list[int]
    found: list[tuple[int, list[int], int]]
    moves: list[tuple[int, int, int]]

    def place(self, modulus: int) -> int | None:
        """Return a free place whose entries are coprime to the modulus, after adding rows where that is needed."""
        best, least = -1, 0
        for place in self.free:
            content = math.gcd(modulus, *[column[place] for column in self.columns])
            if content == 1:
                return place
            if not least or content < least:
                best, least = place, content
        for other in self.free:
            if other == best or len(self.moves) >= MOVES:
                continue
            for times in (1, -1):
                trial = [column[best] + times * column[other] for column in self.columns]
                content = math.gcd(modulus, *trial)
                if content < least:
                    self.moves.append((best, other, times))
                    for column in (*self.columns, *[column for _, column, _ in self.found]):
                        column[best] += times * column[other]
                    least = content
                    break
            if least == 1:
                return best
        return None

    def take(self, place: int, modulus: int) -> None:
        """Add the congruence with a 1 at the place, and reduce the columns by it."""
        monic = _monic(_unit_at(place, self.columns, modulus), place, modulus)
        for earlier, _, _ in self.found:
            monic[earlier] = 0
        self.found.append((place, monic, modulus))
        self.free.remove(place)
        self.columns = [
            [(entry - turn * w) % modulus for entry, w in zip(column, monic, strict=True)]
            for column in self.columns
            for turn in [column[place]]
        ]


def _congruences(inverse: ScaledInverse) -> _Search | None:
    """Return congruences that hold exactly for the combinations of the rows of A, or None where they are not found."""
    size = len(inverse.order)
    modulus = abs(inverse.d)
    if modulus == 1:
        return _Search([], [], [], [])
    # most often one congruence says it all: any unit modulo d in the last rows shows it
    for place in range(size - 1, max(size - 3, -1), -1):
        for k, entry in enumerate(inverse.read([inverse.packed[place]])[0]):
            if math.gcd(entry, modulus) == 1:
                return _Search([], [], [(place, _monic(inverse.column(k), place, modulus), modulus)], [])
    columns = zip(*inverse.read(inverse.packed), strict=True)
    search = _Search([list(column) for column in columns], list(range(size - 1, -1, -1)), [], [])
    remaining = modulus
    while True:
        content = math.gcd(modulus, *[math.gcd(*column) for column in search.columns])
        if content > 1:
            search.columns = [[entry // content for entry in column] for column in search.columns]
            modulus //= content
        # each later modulus divides this one
        if modulus == 1 or remaining % modulus or remaining > modulus ** (LEVELS - len(search.found)):
            return None
        unit = search.place(modulus)
        if unit is None:
            return None
        search.take(unit, modulus)
        remaining //= modulus
        if remaining == 1:
            return search


def _unit_at(place: int, columns: Sequence[list[int]], modulus: int) -> list[int]:
    """Return a combination of columns with a unit at ``place``, where the entries there are coprime to the modulus."""
    best = columns[0]
    for column in columns[1:]:
        if math.gcd(best[place], modulus) == 1:
            break
        goal = math.gcd(best[place], column[place], modulus)
        times = 0
        # a small multiple avoids every prime that divides the modulus and not the goal
        while math.gcd(best[place] + times * column[place], modulus) != goal:
            times += 1
        best = [a + times * b for a, b in zip(best, column, strict=True)] if times else best
    return best


def _monic(column: list[int], place: int, modulus: int) -> list[int]:
    """Return the column times the inverse of its entry at ``place``, in least absolute residues."""
    unit = pow(column[place], -1, modulus)
    half = (modulus - 1) // 2
    return [(entry * unit + half) % modulus - half for entry in column]


def smith_from_inverse(rows: Sequence[Sequence[int]]) -> tuple[list[int], Rows, Rows] | None:
    """Return the diagonal of D, U and V with ``U A V = D``, or None where this way does not apply.

    It does not apply to singular matrices, and to those whose congruences are many or hold no unit.

    Example:
        >>> smith_from_inverse([[2, 1], [1, 3]])
        ([1, 5], [[1, -1], [-1, 2]], [[1, 2], [0, 1]])
    """
    inverse = scaled_inverse(rows)
    search = None if inverse is None else _congruences(inverse)
    if inverse is None or search is None:
        return None
    size, packed, d, levels = len(rows), inverse.packed, inverse.d, search.found
    for place, other, times in search.moves:
        packed[place] += times * packed[other]
    places = [place for place, _, _ in levels]
    plain = [place for place in range(size) if place not in places]
    limit = abs(d) << (SLACK_BITS - MOVES - 1)
    left: list[int] = []
    # row c of D V^-1, then times B / d: the vector whose image under V is m e_c
    for c, m, depth in [
        *[(place, 1, len(levels)) for place in plain],
        *[(place, m, depth) for depth, (place, _, m) in reversed(list(enumerate(levels)))],
    ]:
        parts = {c: m}
        for place, column, _ in reversed(levels[:depth]):
            parts[place] = -sum([column[other] * part for other, part in parts.items()])
        if sum(map(abs, parts.values())) > limit:
            return None
        total = sum([part * packed[other] for other, part in parts.items()])
        left.append(total // d)
    last = [column for _, column, _ in reversed(levels)]
    right = [[*[int(place == c) for place in plain], *[column[c] for column in last]] for c in range(size)]
    # the rows that were added to B are columns that were subtracted in A
    for place, other, times in reversed(search.moves):
        right[place] = [a - times * b for a, b in zip(right[place], right[other], strict=True)]
    return [1] * len(plain) + [m for _, _, m in reversed(levels)], inverse.read(left), right
