"""Tile a matrix instruction over threads and values: which elements of A, B and C each thread of a tile has.

Main statements: a tile of M x N x K is cut into instructions; those along N do not move the threads of A, along M those
of B, along K those of C, which therefore have stride 0 there.

References: CuTe ``TiledMMA``: ``thrfrg_A``, ``get_layoutA_TV`` and the same of B and C.
"""

from __future__ import annotations

from dataclasses import dataclass

from layoutalg.cute.algebra import make_layout
from layoutalg.cute.composition import composition
from layoutalg.cute.divide import logical_divide, zipped_divide
from layoutalg.cute.fit import strided_form
from layoutalg.cute.inttuple import integer, malformed
from layoutalg.cute.inverse import right_inverse
from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.operands import Tiler, read_tiler, refusal, within
from layoutalg.ground.errors import LayoutError

OPERANDS = {"A": (0, 2), "B": (1, 2), "C": (0, 1)}
"""The dimensions, among M, N and K, of each operand."""


@dataclass(frozen=True, slots=True)
class MmaAtom:
    """One matrix instruction: which elements of each operand each of its threads has.

    Args:
        shape: Extents M, N and K.
        A: (thread, value) to flat coordinate of the M x K matrix, M fastest; stride 0 along threads that share values.
        B: The same of the N x K matrix.
        C: The same of the M x N matrix.

    Raises: MalformedError: LA179.

    Example:
        >>> a = CuteLayout(((4, 8), (2, 2, 2)), ((32, 1), (16, 8, 128)))
        >>> b, c = (CuteLayout(((4, 8), (2, 2)), strides) for strides in (((16, 1), (8, 64)), ((32, 1), (16, 8))))
        >>> MmaAtom((16, 8, 16), a, b, c).threads
        32
    """

    shape: tuple[int, int, int]
    A: CuteLayout
    B: CuteLayout
    C: CuteLayout

    def __post_init__(self) -> None:
        if not isinstance(self.shape, tuple) or len(self.shape) != 3:
            raise malformed("shape", "must be the extents M, N and K", self.shape, "LA179")
        for extent in self.shape:
            if integer(extent, "shape", "LA179") < 1:
                raise malformed("shape", "must be extents of at least 1", self.shape, "LA179")
        for name in OPERANDS:
            layout = getattr(self, name)
            if not isinstance(layout, CuteLayout) or layout.rank != 2:
                raise malformed(name, "must be a CuteLayout with two modes, threads and values", layout, "LA179")
        for name, dims in OPERANDS.items():
            layout, size = getattr(self, name), self.shape[dims[0]] * self.shape[dims[1]]
            if layout[0].size != self.C[0].size or layout.cosize > size or any(stride < 0 for _, stride in layout.flat):
                rule = f"must map {self.C[0].size} threads to elements below {size}"
                raise malformed(name, rule, str(layout), "LA179")

    @property
    def threads(self) -> int:
        """Number of threads of the instruction."""
        return int(self.C[0].size)


@dataclass(frozen=True, slots=True)
class TiledMMA:
    """A matrix instruction repeated over the threads and values of a tile.

    Args:
        threads: Layout from (thread of the instruction, instruction along M, along N, along K) to thread number.
        permutation: Tilers of M, N and K, each an extent, a layout or None; a layout reorders the elements of its
            dimension before they are cut into instructions.
        atom: The instruction.

    Raises: MalformedError: LA141, LA179.

    Example:
        >>> a = CuteLayout(((4, 8), (2, 2, 2)), ((32, 1), (16, 8, 128)))
        >>> b, c = (CuteLayout(((4, 8), (2, 2)), strides) for strides in (((16, 1), (8, 64)), ((32, 1), (16, 8))))
        >>> threads = CuteLayout((32, 2, 4, 1), (1, 32, 64, 0))
        >>> mma = TiledMMA(threads, (None, None, None), MmaAtom((16, 8, 16), a, b, c))
        >>> mma.tile, mma.size
        ((32, 32, 16), 256)
        >>> print(mma.operand("C"))
        ((4,8,2,4),((2,2),(1,1))):((64,1,16,256),((32,8),(0,0)))
    """

    threads: CuteLayout
    permutation: tuple[Tiler, Tiler, Tiler]
    atom: MmaAtom

    def __post_init__(self) -> None:
        if not isinstance(self.threads, CuteLayout) or self.threads.rank != 4:
            raise malformed("threads", "must be a layout with four modes, V, M, N and K", self.threads, "LA179")
        if not isinstance(self.atom, MmaAtom):
            raise malformed("atom", "must be an MmaAtom", self.atom, "LA179")
        if self.threads[0].size != self.atom.threads:
            rule = f"must have {self.atom.threads} threads in mode 0, like the instruction"
            raise malformed("threads", rule, str(self.threads), "LA179")
        found = read_tiler(self.permutation, lambda: f"TiledMMA({self.threads}, ...)")
        if not isinstance(found, tuple) or len(found) != 3 or any(isinstance(entry, tuple) for entry in found):
            raise malformed("permutation", "must be tilers of M, N and K", self.permutation, "LA179")
        object.__setattr__(self, "permutation", found)

    @property
    def size(self) -> int:
        """Number of threads."""
        return int(self.threads.size)

    @property
    def tile(self) -> tuple[int, int, int]:
        """Extents M, N and K of the tile."""
        found = []
        for dim, entry in enumerate(self.permutation):
            least = self.atom.shape[dim] * self.threads[dim + 1].size
            found.append(least if entry is None else max(least, entry if isinstance(entry, int) else entry.size))  # type: ignore[union-attr]
        return found[0], found[1], found[2]

    def operand(self, name: str) -> CuteLayout:
        """Return (thread, value) to flat coordinate of the operand's tile, its first dimension fastest.

        Args:
            name: ``"A"`` (M x K), ``"B"`` (N x K) or ``"C"`` (M x N).

        Raises: As ``zipped_divide`` and ``composition``. AdmissibilityError: LA179, thread numbers with gaps.

        Laws: of the values of all threads each element of the tile occurs as often as the instruction and the threads
            along the third dimension share it.
        """
        if not isinstance(name, str) or name not in OPERANDS:
            raise malformed("name", f"must be one of {', '.join(OPERANDS)}", name, "LA179")
        dims, where = OPERANDS[name], f"TiledMMA({self.threads}, ...).operand({name!r})"
        counted = right_inverse(self.threads)
        if counted.size != self.size:
            because = f"{counted.size} of the numbers below {self.size} are threads"
            raise refusal("LA179", "the threads of a tiled instruction must be numbered without gaps", where, because)
        try:
            matrix = CuteLayout(tuple([self.tile[dim] for dim in dims]))
            ordered = logical_divide(matrix, tuple([self.permutation[dim] for dim in dims]))
            cut = zipped_divide(ordered, tuple([CuteLayout(self.atom.shape[dim]) for dim in dims]))
            inside = strided_form(composition(cut[0], getattr(self.atom, name)), where)
            rest = zipped_divide(cut[1], tuple([CuteLayout(self.threads[dim + 1].size) for dim in dims]))
            along = {dim: rest[0][place] for place, dim in enumerate(dims)}
            shared = [along.get(dim, CuteLayout(self.threads[dim + 1].size, 0)) for dim in range(3)]
            owners = strided_form(composition(make_layout(inside[0], *shared), counted), where)
        except LayoutError as error:
            raise within(error, where) from error
        return make_layout(owners, make_layout(inside[1], rest[1]))
