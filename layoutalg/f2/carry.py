"""Decide exactly when integer addition is an affine map over F2, and when one swizzle separates the columns of a map.

*Carry-free lemma.* Let ``f(x) = o + sum_j a_j x_j`` over bits ``x_j``, with any integers ``o`` and ``a_j``. Put
``c_j = (o + a_j) xor o`` (two's complement, unbounded). Then f is affine over F2 exactly when the ``c_j`` have pairwise
disjoint supports, and then ``f(x) = o xor (xor of c_j x_j)``.
Proof. Choose a word so wide that the two top bits of every value of f agree. With ``s_k = 1 - 2 o_k``,
flipping the bits ``z`` of ``o`` adds ``sum_k z_k s_k 2^k``; so ``a_j = sum_k c_jk s_k 2^k`` modulo the word. Affine on
{0, e_i, e_j, e_i + e_j} says ``2 sum_k (c_i and c_j)_k s_k 2^k = 0`` modulo the word, so ``c_i and c_j`` can only have
the top bit, hence (top two bits agree) is zero. Conversely, with disjoint supports no bit is flipped twice, so
``o + sum_j a_j x_j`` is ``o`` with exactly the bits of the chosen ``c_j`` flipped.

*First failure.* If f is not affine, then the smallest x where it differs from the affine map fixed by f(0) and the unit
inputs has exactly two bits set: restrict f to the bits of x and apply the lemma there. The same holds for ``shifted``:
the lowest sum bit that is not affine has degree two, so one of its second differences at the origin is 1.

*Carries of a window.* Let ``c_k(x)`` be the carry into bit k of ``s + x``, x of n bits, and t the lowest set bit of
``s > 0``. Then ``c_k = 0`` for ``k <= t``, ``c_(t+1) = x_t``, and ``c_(k+1)`` is the majority of ``s_k``, ``x_k`` and
``c_k``; its part of degree two in ``x_k`` and ``c_k`` is their product, so ``c_k`` has degree ``k - t`` for
``t < k <= n``. Above bit n there are no bits of x: the carry stays ``c_n`` up to the lowest zero of s at or above n,
and is 0 beyond. So for a linear M the map ``x -> M (s + x)`` is affine exactly when M maps to 0 every bit k with
``t + 2 <= k < n`` and, if ``t + 2 <= n``, the sum of the bits from n to that lowest zero: the remaining carries have
distinct degrees >= 2, so a combination of them with vector coefficients has degree >= 2 in some component unless all
coefficients are 0.

Notation: ``Sw<bits, base, shift>`` xors ``bits`` consecutive bits of a number into others: with a positive shift the
bits from ``base + shift`` into those from ``base``, with a negative one the bits from ``base`` into those from
``base - shift``. The two fields are disjoint (``bits <= |shift|``), so a swizzle is its own inverse.

Implementation notes: ``shifted`` follows the carry of a binary adder as an affine function of the input. A product of
two affine functions u, v is affine only if one is constant or ``u = v`` or ``u = v + 1``: otherwise their linear parts
are independent and the product has degree two. Sum bit k is affine exactly when carry k is, so the walk decides.
"""

from __future__ import annotations

from collections.abc import Sequence

from layoutalg.f2 import matrix

Affine = tuple[int, int]
"""An affine function of the input to F2: (set of input bits, constant bit)."""


def sum_of_bits(offset: int, addends: Sequence[int]) -> tuple[int, ...] | None:
    """Return the columns of ``x -> offset + sum of addends[j] x_j`` over F2, or None if it is not affine.

    Mathematically: ``(offset + addends[j]) xor offset``, if these have pairwise disjoint supports. A column is negative
    if its bit changes the sign of the value. The affine constant is ``offset``.

    Args:
        offset: Any integer.
        addends: Any integers, one per input bit.

    Complexity: O(n) operations on integers.

    Example:
        >>> sum_of_bits(0, (1, 12)), sum_of_bits(0, (1, 3)), sum_of_bits(3, (-1,))
        ((1, 12), None, (1,))
    """
    columns = []
    seen = 0
    for addend in addends:
        column = (offset + addend) ^ offset
        if seen & column:
            return None
        seen |= column
        columns.append(column)
    return tuple(columns)


def shifted(columns: Sequence[int], constant: int, offset: int) -> tuple[tuple[int, ...], int] | None:
    """Return (columns, constant) of ``x -> offset + (M x xor constant)``, or None if that is not affine over F2.

    Args:
        columns: Columns of M, two's complement integers.
        constant: Any integer.
        offset: Any integer.

    Complexity: O(n * bits).

    Example:
        >>> shifted((1, 6), 0, 2), shifted((4, 6), 0, 2)
        (((1, 10), 2), None)
    """
    if offset == 0:
        return tuple(columns), constant
    top = max(value.bit_length() for value in (offset, constant, *columns)) + 1
    carry: Affine = (0, 0)
    sums: list[Affine] = []
    for bit in range(top + 1):
        inputs = sum((column >> bit & 1) << index for index, column in enumerate(columns))
        term: Affine = (inputs, constant >> bit & 1)
        one = offset >> bit & 1
        sums.append((term[0] ^ carry[0], term[1] ^ carry[1] ^ one))
        product = _product(term, carry)
        if product is None:
            return None if bit < top else _assemble(sums, len(columns))
        carry = (product[0] ^ term[0] ^ carry[0], product[1] ^ term[1] ^ carry[1]) if one else product
    return _assemble(sums, len(columns))


def carry_seen(columns: Sequence[int], start: int, count: int) -> tuple[int, int, int, int] | None:
    """Return four x that show that ``x -> M (start + x)`` is not affine over F2, or None if it is affine.

    Mathematically: the four x xor to 0, their values do not. They vary the bit that generates the carry and the last
    bit that the lowest visible carry depends on; the bits between propagate the carry and the bit above stops it.

    Args:
        columns: Columns of M.
        start: Non-negative, with ``start + 2**count <= 2**len(columns)``.
        count: Number of bits of x.

    Complexity: O(bits).

    Example:
        >>> carry_seen((1, 2, 4), 1, 2), carry_seen((1, 0, 0), 1, 2)
        ((0, 1, 2, 3), None)
    """
    low = (start & -start).bit_length() - 1
    if start == 0 or low + 2 > count:
        return None
    seen = next((bit for bit in range(low + 2, count) if columns[bit]), None)
    if seen is None:
        total = 0
        for bit in range(count, len(columns)):
            total ^= columns[bit]
            if not start >> bit & 1:
                break
        if not total:
            return None
        seen = count
    between = (1 << seen - 1) - (1 << low + 1)
    base = between & ~start | (start & 1 << seen if seen < count else 0)
    first, second = 1 << low, 1 << seen - 1
    return base, base | first, base | second, base | first | second


def _product(left: Affine, right: Affine) -> Affine | None:
    """Return the product of two affine functions to F2, or None if it has degree two."""
    if left[0] == 0:
        return right if left[1] else (0, 0)
    if right[0] == 0:
        return left if right[1] else (0, 0)
    if left[0] == right[0]:
        return left if left[1] == right[1] else (0, 0)
    return None


def _assemble(bits: Sequence[Affine], count: int) -> tuple[tuple[int, ...], int]:
    """Return columns and constant from the affine functions of the output bits; the last one is the sign."""
    width = len(bits)

    def signed(value: int) -> int:
        return value - (1 << width) if value >> (width - 1) & 1 else value

    columns = tuple(
        signed(sum((inputs >> index & 1) << bit for bit, (inputs, _) in enumerate(bits))) for index in range(count)
    )
    return columns, signed(sum(one << bit for bit, (_, one) in enumerate(bits)))


def one_swizzle(columns: Sequence[int]) -> tuple[int, int, int] | None:
    """Return (bits, base, shift) of a swizzle S such that the columns of S M have disjoint supports, or None.

    Mathematically: S must write every output bit that depends on two or more input bits, and needs to write no other.
    The written bits are consecutive, so for each shift the shortest candidate runs from the lowest such bit to the
    highest; a longer one works only if this one does. The search over shifts is therefore complete. The shortest
    working shift is returned, positive before negative; (0, 0, 0) means that no swizzle is needed.

    Complexity: O(width^2).

    Example:
        >>> one_swizzle((1, 2, 4, 8 | 1)), one_swizzle((1, 2)), one_swizzle((3, 1, 1))
        ((1, 0, 3), (0, 0, 0), None)
    """
    width = max((column.bit_length() for column in columns), default=0)
    rows = matrix.transpose(columns, width)
    heavy = [position for position, row in enumerate(rows) if row & (row - 1)]
    if not heavy:
        return 0, 0, 0
    low, bits = heavy[0], heavy[-1] - heavy[0] + 1
    for distance in range(bits, width):
        for shift in (distance, -distance):
            if low + shift >= 0 and low + shift + bits <= width:
                mixed = [rows[position] ^ rows[position + shift] for position in range(low, low + bits)]
                if not any(row & (row - 1) for row in mixed):
                    return bits, low if shift > 0 else low - distance, shift
    return None


def swizzled(value: int, bits: int, base: int, shift: int) -> int:
    """Return ``Sw<bits, base, shift>`` of a number (two's complement if negative).

    Example:
        >>> swizzled(0b1_000_0000, 3, 4, 3)
        144
    """
    picked = value & source_mask(bits, base, shift)
    return value ^ (picked >> shift if shift >= 0 else picked << -shift)


def source_mask(bits: int, base: int, shift: int) -> int:
    """Return the mask of bits that a swizzle reads; it writes those that the opposite shift reads."""
    return ((1 << bits) - 1) << (base + max(0, shift))


def swizzle_period(bits: int, base: int, shift: int) -> int:
    """Return the least P > 0 such that the swizzle commutes with adding P."""
    return 1 << (base + bits + abs(shift)) if bits else 1


def swizzle_columns(bits: int, base: int, shift: int, columns: Sequence[int]) -> tuple[int, ...]:
    """Return the swizzled columns: ``Sw<bits, base, shift>`` applied to each."""
    return tuple([swizzled(column, bits, base, shift) for column in columns])
