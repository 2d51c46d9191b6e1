"""Subspaces of named axes over F2, stored as reduced bases (``==`` is equality of sets), and bank conflicts by ranks.

Over F2 every touched bank has equally many of the touched words, since the words of one bank are a coset of a fixed
space. So the count is 2 to a difference of ranks; the affine part does not matter.

See also: ``layoutalg.targets.nvidia.banks.wavefronts`` counts a whole warp access, which the hardware may serve in
several groups of lanes; here all inputs of the layout are one group and active at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from layoutalg.f2 import matrix
from layoutalg.f2.axes import AxisBits, bad_argument, check_axes, fields_check, items, log2, packed_point, unpack
from layoutalg.f2.layout import LinearLayout, linear, trusted
from layoutalg.ground.check import refuse


@dataclass(frozen=True, slots=True)
class Subspace:
    """A linear subspace of the points of named axes.

    Args:
        axes: Axis names with their bits, minor to major.
        basis: The reduced basis, packed, ascending; ``Subspace.spanned`` computes it from any vectors.

    Example:
        >>> plane = Subspace.spanned((("lane", 2), ("warp", 1)), [3, 5])
        >>> plane.basis, plane.points, plane.contains({"lane": 2, "warp": 1})
        ((3, 5), ({'lane': 3, 'warp': 0}, {'lane': 1, 'warp': 1}), True)
    """

    axes: AxisBits
    basis: tuple[int, ...]

    def __post_init__(self) -> None:
        check_axes(self.axes, "axes")
        if not isinstance(self.basis, tuple):
            raise bad_argument("basis", "must be a tuple of integers", self.basis)
        for vector in self.basis:
            if type(vector) is not int or not 0 < vector < 1 << self.bits:
                raise bad_argument("basis", f"must contain integers in [1, 2**{self.bits})", vector)
        if self.basis != matrix.image_basis(self.basis):
            raise bad_argument("basis", "must be reduced and ascending", self.basis)

    @classmethod
    def spanned(cls, axes: AxisBits, vectors: Iterable[int | Mapping[str, int]]) -> Subspace:
        """Return the span of packed vectors or points by name."""
        check_axes(axes, "axes")
        points = items(vectors, "vectors", "must be a sequence of points")
        return cls(axes, matrix.image_basis([packed_point(axes, each, "vectors", flat=True) for each in points]))

    @property
    def bits(self) -> int:
        """Dimension of the whole space."""
        return sum(bits for _, bits in self.axes)

    @property
    def dimension(self) -> int:
        """Dimension of the subspace: it has ``2 ** dimension`` points."""
        return len(self.basis)

    @property
    def points(self) -> tuple[dict[str, int], ...]:
        """The basis by axis name."""
        return tuple(unpack(vector, self.axes) for vector in self.basis)

    def contains(self, point: int | Mapping[str, int]) -> bool:
        """Whether a point, packed or by name (absent axes 0), is in the subspace."""
        return matrix.remainder(self.basis, self._packed(point)) == 0

    def includes(self, other: Subspace) -> bool:
        """Whether every point of ``other`` is in this subspace.

        Example:
            >>> line, plane = (Subspace.spanned((("x", 3),), span) for span in ([3], [1, 2]))
            >>> plane.includes(line), line.includes(plane)
            (True, False)
        """
        self._same(other)
        return all(matrix.remainder(self.basis, vector) == 0 for vector in other.basis)

    def coordinates(self, point: int | Mapping[str, int]) -> tuple[int, ...]:
        """Return the indices of the basis vectors whose xor is the point."""
        packed = self._packed(point)
        rest, used = matrix.eliminate(self.basis).reduce(packed)
        if rest:
            witness = {"point": unpack(packed, self.axes), "rest": unpack(rest, self.axes)}
            raise refuse("LA260", "the point is not in the subspace", f"reduction by {self!r} leaves {rest}", witness)
        return tuple(index for index in range(len(self.basis)) if used >> index & 1)

    def intersection(self, other: Subspace) -> Subspace:
        """Return the intersection.

        Example:
            >>> one, two = (Subspace.spanned((("x", 3),), span) for span in ([1, 2], [2, 4]))
            >>> one.intersection(two).basis
            (2,)
        """
        self._same(other)
        return Subspace(self.axes, matrix.intersection(self.basis, other.basis))

    def sum(self, other: Subspace) -> Subspace:
        """Return the sum (span of the union).

        Example:
            >>> one, two = (Subspace.spanned((("x", 3),), span) for span in ([1, 2], [2, 4]))
            >>> one.sum(two).bits
            3
        """
        self._same(other)
        return Subspace(self.axes, matrix.image_basis((*self.basis, *other.basis)))

    def complement(self) -> Subspace:
        """Return a complement of this subspace, spanned by unit vectors."""
        tops = {vector.bit_length() - 1 for vector in self.basis}
        return Subspace(self.axes, tuple(1 << bit for bit in range(self.bits) if bit not in tops))

    def common_complement(self, other: Subspace) -> Subspace:
        """Return a largest subspace that meets this one and ``other`` only in 0.

        Its dimension is ``bits - max(dimension, other.dimension)``.

        Example:
            >>> Subspace.spanned((("x", 2),), [1]).common_complement(Subspace.spanned((("x", 2),), [2])).basis
            (3,)

        Source: arXiv 2505.23819, lemma 9.5 (the idea); construction in ``matrix.common_complement``.
        """
        self._same(other)
        return Subspace.spanned(self.axes, matrix.common_complement(self.basis, other.basis, self.bits))

    def annihilator(self) -> Subspace:
        """Return the vectors whose bitwise product with every point has even parity."""
        rows = matrix.transpose(self.basis, self.bits)
        return Subspace(self.axes, matrix.image_basis(matrix.kernel(rows)))

    def image(self, layout: LinearLayout) -> Subspace:
        """Return the image under the linear part of a layout with these input axes."""
        if linear(layout, "layout").in_axes != self.axes:
            raise bad_argument("layout", f"must have the input axes {self.axes}", layout.in_axes)
        vectors = [matrix.apply(layout.columns, vector) for vector in self.basis]
        return Subspace(layout.out_axes, matrix.image_basis(vectors))

    def preimage(self, layout: LinearLayout) -> Subspace:
        """Return the preimage under the linear part of a layout with these output axes."""
        if linear(layout, "layout").out_axes != self.axes:
            raise bad_argument("layout", f"must have the output axes {self.axes}", layout.out_axes)
        mask = (1 << layout.in_bits) - 1
        null = matrix.kernel((*layout.columns, *self.basis))
        return Subspace(layout.in_axes, matrix.image_basis([vector & mask for vector in null]))

    def as_layout(self, name: str) -> LinearLayout:
        """Return the injective layout onto the subspace; bit i maps to basis vector i."""
        fields_check.name(name, "name")
        return trusted(((name, len(self.basis)),), self.axes, self.basis, 0)

    def _same(self, other: Subspace) -> None:
        if not isinstance(other, Subspace) or other.axes != self.axes:
            raise bad_argument("other", f"must be a Subspace of the axes {self.axes}", other)

    def _packed(self, point: int | Mapping[str, int]) -> int:
        return packed_point(self.axes, point, "point", flat=True)


def kernel_of(layout: LinearLayout) -> Subspace:
    """Return the kernel: the differences of inputs with the same value.

    Example:
        >>> kernel_of(LinearLayout.from_bases({"i": [(1,), (1,)]}, {"o": 2})).basis
        (3,)
    """
    return Subspace(linear(layout, "layout").in_axes, matrix.image_basis(matrix.kernel(layout.columns)))


def image_of(layout: LinearLayout) -> Subspace:
    """Return the image of the linear part; the layout's values are ``constant xor`` these.

    Example:
        >>> image_of(LinearLayout.from_bases({"i": [(3,), (1,)]}, {"o": 4})).basis
        (1, 2)
    """
    return Subspace(linear(layout, "layout").out_axes, matrix.image_basis(layout.columns))


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
