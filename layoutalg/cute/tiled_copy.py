"""Tiled copies: which elements of a tensor each thread reads and writes.

Notation: a thread-value layout maps (thread, value) to an element of an instruction (``CopyAtom``) or of the tile
(``TiledCopy``), first dimension fastest.

Main statements: with Z = zipped_divide(tensor, tile), thread t and value v of the tiled copy are element Z(tv(t, v), r)
of tile r. An instruction whose source and destination order their elements differently (``ldmatrix``) is first put in
its reference order, so that source and destination refer to the same elements.

References: CuTe ``TiledCopy``, ``make_tiled_copy``, ``make_layout_tv``; SM75 ``ldmatrix`` traits of CUTLASS.
"""

from __future__ import annotations

from dataclasses import dataclass

from layoutalg.cute.algebra import make_layout
from layoutalg.cute.compose_strided import after_strided
from layoutalg.cute.composed import ComposedLayout, Cute, bottom
from layoutalg.cute.composition import composition
from layoutalg.cute.divide import zipped_divide
from layoutalg.cute.inttuple import integer, malformed, product_each
from layoutalg.cute.inverse import right_inverse
from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.operands import Tiler, composed, read_tiler, refusal, within
from layoutalg.cute.partition import thread_value_partition
from layoutalg.cute.product import raked_product
from layoutalg.cute.slicing import moved
from layoutalg.cute.swizzled import strided_form
from layoutalg.ground.errors import LayoutError

Tile = tuple[int, ...]
_LDMATRIX_SOURCES = {
    1: CuteLayout(((8, 4), 8), ((8, 0), 1)),
    2: CuteLayout(((16, 2), 8), ((8, 0), 1)),
    4: CuteLayout((32, 8), (8, 1)),
}
_LDMATRIX_VALUES = {1: ((2,), (1,)), 2: ((2, 2), (1, 64)), 4: ((2, 4), (1, 64))}
_LDMATRIX_TRANSPOSED = {1: ((2,), (8,)), 2: ((2, 2), (8, 64)), 4: ((2, 4), (8, 64))}


@dataclass(frozen=True, slots=True)
class CopyAtom:
    """One copy instruction: which elements each thread supplies and receives.

    Args:
        source: (thread, value) -> element supplied.
        destination: (thread, value) -> element received.
        reference: The order in which a tiled copy counts threads and values; a bijection. None for ``destination``.

    Raises: MalformedError: LA179.

    Example:
        >>> print(CopyAtom.ldmatrix(4).destination)
        (32,(2,4)):(2,(1,64))
        >>> print(CopyAtom.vector(8).source)
        (1,8):(0,1)
    """

    source: CuteLayout
    destination: CuteLayout
    reference: CuteLayout | None = None

    def __post_init__(self) -> None:
        for name in ("source", "destination", "reference"):
            layout = getattr(self, name)
            if (name != "reference" or layout is not None) and (not isinstance(layout, CuteLayout) or layout.rank != 2):
                raise malformed(name, "must be a CuteLayout with two modes, threads and values", layout, "LA179")
        order = self.order
        if order.size != order.cosize or any(stride == 0 for extent, stride in order.flat if extent > 1):
            raise malformed("reference", "must contain every element of the instruction once", order, "LA179")

    @property
    def order(self) -> CuteLayout:
        """The reference order."""
        return self.destination if self.reference is None else self.reference

    @classmethod
    def vector(cls, values: int = 1) -> CopyAtom:
        """Return the copy of ``values`` consecutive values by one thread."""
        if integer(values, "values", "LA179") < 1:
            raise malformed("values", "must be at least 1", values, "LA179")
        each = CuteLayout((1, values), (0, 1))
        return cls(each, each)

    @classmethod
    def ldmatrix(cls, matrices: int, transposed: bool = False) -> CopyAtom:
        """Return ``ldmatrix`` of 1, 2 or 4 matrices of 16-bit elements; matrix i has element 64 i + 8 row + column.

        Raises: MalformedError: LA179.

        Source: PTX ISA 9.1 section 9.7.14.5.15.
        """
        if matrices not in _LDMATRIX_SOURCES:
            raise malformed("matrices", "must be 1, 2 or 4", matrices, "LA179")
        shape, stride = (_LDMATRIX_TRANSPOSED if transposed else _LDMATRIX_VALUES)[matrices]
        lanes = CuteLayout((4, 8), (16, 1)) if transposed else CuteLayout(32, 2)
        return cls(_LDMATRIX_SOURCES[matrices], make_layout(lanes, CuteLayout(shape, stride)))


def make_layout_tv(threads: Cute, values: Cute) -> tuple[Tile, CuteLayout]:
    """Return the tile that threads and their values cover, and the map from (thread, value) to its elements.

    Mathematically: element (v + V t) of each dimension, V the extent of ``values`` there, is value ``values(v)``
    of thread ``threads(t)``; the answer is the inverse, (thread, value) to flat tile coordinate.

    Args:
        threads: Thread coordinate to thread number; compact.
        values: Value coordinate to value number, of the same rank; compact.

    Raises: As ``raked_product`` and ``composition``; AdmissibilityError: LA179, the layouts are not compact.

    Example:
        >>> tile, tv = make_layout_tv(CuteLayout((4, 8), (8, 1)), CuteLayout((2, 2), (2, 1)))
        >>> print(tile, tv)
        (8, 16) ((8,4),(2,2)):((16,2),(8,1))

    Source: CuTe DSL ``make_layout_tv``.
    """
    given = {"threads": threads, "values": values}
    owners = [strided_form(composed(each, "make_layout_tv", name), "make_layout_tv") for name, each in given.items()]
    where = f"make_layout_tv({threads}, {values})"
    for name, each in zip(given, owners, strict=True):
        if each.size != each.cosize or any(stride == 0 for extent, stride in each.flat if extent > 1):
            because = f"{name} has {each.size} coordinates and numbers below {each.cosize}"
            raise refusal("LA179", "thread and value layouts must be bijections", where, because)
    try:
        covered = strided_form(raked_product(owners[0], owners[1]), "make_layout_tv")
        counted = CuteLayout((owners[0].size, owners[1].size))
        found = strided_form(composition(right_inverse(covered), counted), "make_layout_tv")
    except LayoutError as error:
        raise within(error, where) from error
    sizes = product_each(covered.shape)
    return (sizes if isinstance(sizes, tuple) else (sizes,)), found


@dataclass(frozen=True, slots=True)
class TiledCopy:
    """A copy instruction repeated over the threads and values of a tile.

    Args:
        layout_tv: (thread, value) to flat coordinate of the tile, in the instruction's reference order.
        tiler: The tile, as in ``zipped_divide``.
        atom: The instruction.

    Raises: MalformedError: LA141, LA179. AdmissibilityError: as ``zipped_divide``.

    Example:
        >>> copy = make_tiled_copy(CuteLayout((4, 8), (8, 1)), CuteLayout((1, 4)))
        >>> print(copy.partition_S(CuteLayout((8, 64), (64, 1)), 9))
        68 + ((1,4),2,2):((0,1),256,32)
    """

    layout_tv: CuteLayout
    tiler: Tiler
    atom: CopyAtom

    def __post_init__(self) -> None:
        if not isinstance(self.layout_tv, CuteLayout) or self.layout_tv.rank != 2:
            raise malformed("layout_tv", "must be a layout with two modes, threads and values", self.layout_tv, "LA179")
        object.__setattr__(self, "tiler", read_tiler(self.tiler, lambda: f"TiledCopy({self.layout_tv}, ...)"))
        if not isinstance(self.atom, CopyAtom):
            raise malformed("atom", "must be a CopyAtom", self.atom, "LA179")
        for target in (self.atom.source, self.atom.destination):
            self._placed(target)

    @property
    def threads(self) -> int:
        """Number of threads that copy together."""
        return int(self.layout_tv[0].size)

    def partition_S(self, layout: Cute, thread: int) -> ComposedLayout:  # noqa: N802 - CuTe's name
        """Return what one thread reads: ((value of the instruction, instruction), tiles of each dimension).

        Args:
            layout: The source tensor. Elements.
            thread: Number of the thread.

        Raises: As ``thread_value_partition``.
        """
        return thread_value_partition(layout, self._placed(self.atom.source), thread, self.tiler)

    def partition_D(self, layout: Cute, thread: int) -> ComposedLayout:  # noqa: N802 - CuTe's name
        """Return what one thread writes, like ``partition_S``."""
        return thread_value_partition(layout, self._placed(self.atom.destination), thread, self.tiler)

    def tidfrg_S(self, layout: Cute) -> Cute:  # noqa: N802 - CuTe's name
        """Return what all threads read: (thread, values, (tiles of each dimension)).

        Example:
            >>> copy = make_tiled_copy(CuteLayout((4, 8), (8, 1)), CuteLayout((1, 4)))
            >>> print(copy.tidfrg_S(CuteLayout((8, 64), (64, 1))))
            ((1,(8,4)),(1,4),(2,2)):((0,(4,64)),(0,1),(256,32))
        """
        return self._view(layout, self.atom.source)

    def tidfrg_D(self, layout: Cute) -> Cute:  # noqa: N802 - CuTe's name
        """Return what all threads write, like ``tidfrg_S``."""
        return self._view(layout, self.atom.destination)

    def _view(self, layout: Cute, target: CuteLayout) -> Cute:
        zipped = bottom(zipped_divide(layout, self.tiler))
        placed = after_strided(zipped[0], self._placed(target))
        view = make_layout(*placed, zipped[1])
        return view if isinstance(layout, CuteLayout) else moved(layout, view, 0)

    def _placed(self, target: CuteLayout) -> CuteLayout:
        """Return ((thread of the instruction, of the tile), (value of it, instruction)) to flat tile coordinate."""
        order = self.atom.order
        where = f"TiledCopy({self.layout_tv}, ...)"
        try:
            split = zipped_divide(self.layout_tv, tuple([mode.size for mode in order]))
            counted = composition(right_inverse(order), target)
            inside = strided_form(composition(split[0], counted), "TiledCopy")
        except LayoutError as error:
            raise within(error, where) from error
        rest = split[1]
        return make_layout(make_layout(inside[0], rest[0]), make_layout(inside[1], rest[1]))


def make_tiled_copy(threads: Cute, values: Cute, atom: CopyAtom | None = None) -> TiledCopy:
    """Return the copy in which ``threads`` cover the tile with ``values`` each.

    Args:
        threads: Thread coordinate to thread number; compact.
        values: Value coordinate to value number; compact.
        atom: The instruction; by default a copy of single values.

    Raises: As ``make_layout_tv`` and ``TiledCopy``.

    Example:
        >>> copy = make_tiled_copy(CuteLayout((4, 8), (8, 1)), CuteLayout((1, 4)), CopyAtom.vector(4))
        >>> copy.threads, copy.tiler
        (32, (4, 32))

    Source: CuTe C++ ``make_tiled_copy``; CuTe DSL ``make_tiled_copy_tv``.
    """
    tile, layout_tv = make_layout_tv(threads, values)
    return TiledCopy(layout_tv, tile, CopyAtom.vector() if atom is None else atom)
