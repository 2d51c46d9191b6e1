"""Bank conflicts of an F2 access to banked memory, counted exactly by ranks.

Over F2 every touched bank has equally many of the touched words, since the words of one bank are a coset of a fixed
space. So the count is 2 to a difference of ranks; the affine part does not matter.

See also: ``layoutalg.targets.nvidia.banks.wavefronts`` counts a whole warp access, which the hardware may serve in
several groups of lanes; here all inputs of the layout are one group and active at once.
"""

from __future__ import annotations

from layoutalg.f2 import matrix
from layoutalg.f2.axes import log2, unpack
from layoutalg.f2.layout import LinearLayout, linear


def conflict_degree(access: LinearLayout, element_bits: int, *, banks: int = 32, bank_bits: int = 32) -> int:
    """Return how many turns the banks need to serve one access; 1 means conflict-free.

    Mathematically: the largest number of distinct words of one bank that the access touches. With W the word and
    K the bank of each element, this is ``2 ** (rank W - rank K)``. Elements in the same word are served together.

    Args:
        access: From everything active at once (lanes of one phase, elements of one vector) to the offset in elements
            (output axes packed, first axis in the low bits).
        banks: Number of banks, power of two.
        bank_bits: Bits per word of a bank, power of two.

    Example:
        >>> column = LinearLayout.from_bases({"lane": [(32,), (64,), (128,), (256,), (512,)]}, {"offset": 1024})
        >>> row = LinearLayout.identity({"lane": 32})
        >>> conflict_degree(column, 32), conflict_degree(column, 16), conflict_degree(row, 32)
        (32, 16, 1)

    Source: rank form of the count in arXiv 2505.23819, section 5.4, extended to elements of any size.
    """
    words, mask = _words(access, element_bits, banks, bank_bits)
    return 1 << matrix.rank(words) - matrix.rank([word & mask for word in words])


def bank_conflict(
    access: LinearLayout, element_bits: int, *, banks: int = 32, bank_bits: int = 32
) -> dict[str, int] | None:
    """Return a step between two inputs that keeps the bank and changes the word, or None if there is none.

    Mathematically: a kernel vector of K outside the kernel of W, see ``conflict_degree``; from any input ``x`` the
    inputs ``x`` and ``x xor step`` conflict. An all-zero step means that a single element is wider than all banks.

    Example:
        >>> bank_conflict(LinearLayout.from_bases({"lane": [(1,), (32,)]}, {"offset": 64}), 32)
        {'lane': 2}
    """
    words, mask = _words(access, element_bits, banks, bank_bits)
    for step in matrix.kernel([word & mask for word in words]):
        if matrix.apply(words, step):
            return unpack(step, access.in_axes)
    return None


def _words(access: LinearLayout, element_bits: int, banks: int, bank_bits: int) -> tuple[tuple[int, ...], int]:
    """Return the columns of the word index (bits of words within an element last) and the bank mask."""
    shift = log2(element_bits, "element_bits") - log2(bank_bits, "bank_bits")
    mask = (1 << log2(banks, "banks")) - 1
    columns = linear(access, "access").columns
    if shift < 0:
        return tuple(column >> -shift for column in columns), mask
    return (*(column << shift for column in columns), *(1 << bit for bit in range(shift))), mask
