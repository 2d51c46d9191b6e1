"""Extract one tile, one thread's elements or one thread's values of a layout, as layout plus offset.

Main statements: a tile slices the rest mode of ``zipped_divide``, a partition slices its tile mode; all tiles together,
and all partitions together, contain every element exactly once.

References: CuTe ``local_tile``, ``local_partition``, ``inner_partition``, ``outer_partition``.
"""

from __future__ import annotations

from dataclasses import dataclass

from layoutalg.cute.algebra import Coord, make_layout, moved, slice_and_offset
from layoutalg.cute.composition import after_strided, composition
from layoutalg.cute.divide import raked_product, zipped_divide
from layoutalg.cute.fit import strided_form
from layoutalg.cute.inttuple import idx2crd, integer, malformed, product_each
from layoutalg.cute.inverse import left_inverse, right_inverse
from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.operands import Tiler, read_tiler, refusal, require_cute, tiler_text, within
from layoutalg.cute.swizzle import ComposedLayout, Cute
from layoutalg.ground.errors import Diagnostic, LayoutError, MalformedError


def local_tile(layout: Cute, tiler: Tiler, coord: Coord, keep: Coord = None) -> ComposedLayout:
    """Return one tile of ``layout``, with the offset of its first element.

    Mathematically: with Z = zipped_divide(layout, tiler), the function (x, y) -> Z(x, coord with y at None). Modes of
    the tile come first, then the modes of the rest where ``coord`` is None.

    Args:
        layout: A layout or a swizzled layout. Elements.
        tiler: As in ``zipped_divide``: the shape of a tile, or layouts.
        coord: Which tile: its 1-D number, or one entry per mode of the rest, where None keeps the mode. Missing
            trailing entries count as None.
        keep: None, or a tuple of ints and None with one entry per mode of ``tiler`` and of ``coord``: None
            drops that entry of both, like a CuTe projection.

    Raises: As ``zipped_divide`` and ``slice``; MalformedError: LA176, coord or keep does not fit the tiler.

    Example:
        >>> print(local_tile(CuteLayout((64, 32)), (16, 8), (1, 2)))
        1040 + (16,8):(1,64)
        >>> print(local_tile(CuteLayout((64, 32)), (16, 8), (1, None)))
        16 + (16,8,4):(1,64,512)
        >>> print(local_tile(CuteLayout((64, 32)), (16, 4, 8), (1, 0, 2), keep=(1, None, 1)))
        1040 + (16,8):(1,64)

    Laws: the tiles of all coordinates contain every element once.
    """
    where = f"local_tile({require_cute(layout, 'local_tile')}, {tiler_text(tiler)}, {tiler_text(coord)})"
    if keep is not None:
        tiler, coord = _project(tiler, coord, keep, where)
    return _slice_zipped(zipped_divide(layout, tiler), coord, 1, where)


def _project(tiler: Tiler, coord: Coord, keep: Coord, where: str) -> tuple[Tiler, Coord]:
    if not isinstance(keep, tuple) or not isinstance(tiler, tuple) or not isinstance(coord, tuple):
        raise _unfit(where, "with keep, the tiler and the coordinate must be tuples of the length of keep")
    if not len(keep) == len(tiler) == len(coord):
        raise _unfit(where, f"keep has {len(keep)} entries, the tiler {len(tiler)}, the coordinate {len(coord)}")
    for entry in keep:
        if entry is not None:
            integer(entry, "keep", "LA176")
    chosen = [position for position, entry in enumerate(keep) if entry is not None]
    return tuple([tiler[position] for position in chosen]), tuple([coord[position] for position in chosen])


def _slice_zipped(zipped: Cute, coord: Coord, side: int, where: str) -> ComposedLayout:
    """Slice mode ``side`` of a zipped layout at ``coord``; the modes of the other side stay, unpacked."""
    base = zipped.base
    sliced: CuteLayout = base[side]
    other: CuteLayout = base[1 - side]
    if isinstance(coord, tuple):
        if len(coord) > sliced.rank:
            raise _unfit(where, f"{len(coord)} entries for {sliced.rank} modes")
        filled = (*coord, *[None] * (sliced.rank - len(coord)))
        coord = filled[0] if isinstance(sliced.shape, int) else filled
    other_coord: Coord = tuple([None] * other.rank) if isinstance(other.shape, tuple) else None
    if coord is None and isinstance(sliced.shape, tuple):
        coord = tuple([None] * sliced.rank)
    try:
        return slice_and_offset((other_coord, coord) if side == 1 else (coord, other_coord), zipped)
    except LayoutError as error:
        raise within(error, where) from error


def _unfit(where: str, because: str) -> MalformedError:
    return MalformedError(
        Diagnostic(code="LA176", what="the coordinate does not fit the tiler", where=(where,), because=because)
    )


def local_partition(layout: Cute, threads: Cute, index: int) -> ComposedLayout:
    """Return the elements of one thread when the thread layout tiles ``layout`` repeatedly.

    Mathematically: with Z = zipped_divide(layout, shape of ``threads`` mode by mode) and c the coordinate that
    ``threads`` sends to ``index``, the function y -> Z(c, y).

    Args:
        layout: A layout or a swizzled layout. Elements.
        threads: Layout from coordinates of a tile to thread numbers; injective, with strides as for ``left_inverse``.
        index: Thread number.

    Raises:
        As ``zipped_divide``; LA131 to LA134, ``threads`` is not injective or not a chain; LA177, no coordinate has
        this thread number.

    Example:
        >>> print(local_partition(CuteLayout((64, 32)), CuteLayout((8, 4), (4, 1)), 6))
        129 + (8,8):(8,256)

    Laws: the partitions of all threads contain every element once.
    """
    number = integer(index, "index", "LA177")
    threads = strided_form(require_cute(threads, "local_partition", "threads"), "local_partition")
    where = f"local_partition({require_cute(layout, 'local_partition')}, {threads}, {number})"
    sizes: tuple[int, ...] | int = product_each(threads.shape)
    if isinstance(threads.shape, int):
        sizes = threads.shape
    place = _coordinate(threads, number, where)
    zipped = zipped_divide(layout, sizes)
    tops = tuple([CuteLayout(threads.shape)[mode].size for mode in range(threads.rank)])
    coord = idx2crd(place, tops if isinstance(threads.shape, tuple) else threads.shape)
    return _slice_zipped(zipped, coord, 0, where)


def _coordinate(threads: CuteLayout, number: int, where: str) -> int:
    """Return the 1-D coordinate that ``threads`` sends to ``number``."""
    for extent, stride in threads.flat:
        if stride == 0 and extent > 1:
            raise refusal(
                "LA133", "the thread layout is not injective", where, f"mode {extent}:0 repeats thread numbers"
            )
    try:
        back = left_inverse(threads)
    except LayoutError as error:
        raise within(error, where) from error
    if 0 <= number < back.size:
        place = back(number)
        if 0 <= place < threads.size and threads(place) == number:
            return place
    raise refusal(
        "LA177", "there is no such thread", where, f"{threads} never takes the value {number}", {"index": number}
    )


def thread_value_partition(layout: Cute, thread_value: Cute, thread: int, tiler: Tiler = None) -> ComposedLayout:
    """Return the values of one thread under a thread-value layout.

    Mathematically: v -> layout(thread_value(thread, v)); with a tiler, (v, y) -> Z(thread_value(thread, v), y) with
    Z = zipped_divide(layout, tiler).

    Args:
        layout: A layout or a swizzled layout. Elements.
        thread_value: Rank-2 layout from (thread, value) to the 1-D coordinate in ``layout``, or in one tile of it.
        thread: Number of the thread, in [0, size of mode 0).
        tiler: None, or the tile that ``thread_value`` covers.

    Raises:
        As ``composition``, ``zipped_divide`` and ``slice``; MalformedError: LA178, ``thread_value`` is not of rank 2.

    Example:
        >>> accumulator = CuteLayout(((4, 8), (2, 2)), ((32, 1), (16, 8)))
        >>> print(thread_value_partition(CuteLayout((16, 8), (8, 1)), accumulator, 5))
        10 + ((2,2)):((1,64))

    Source: CuTe thread-value layouts of ``TiledCopy`` and ``TiledMMA``.
    """
    if isinstance(thread_value, ComposedLayout):
        thread_value = strided_form(thread_value, "thread_value_partition")
    if not isinstance(thread_value, CuteLayout) or thread_value.rank != 2:
        raise malformed("thread_value", "must be a layout with two modes, threads and values", thread_value, "LA178")
    number = integer(thread, "thread", "LA178")
    where = f"thread_value_partition({require_cute(layout, 'thread_value_partition')}, {thread_value}, {number})"
    try:
        if tiler is None:
            base, rest = after_strided(layout.base, thread_value), []
        else:
            zipped = zipped_divide(layout, tiler).base
            rest = list(zipped[1])
            base = make_layout(*after_strided(zipped[0], thread_value), *rest)
        return slice_and_offset((number, None, *[None] * len(rest)), moved(layout, base, 0))
    except LayoutError as error:
        raise within(error, where) from error


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
        reference: The order in which a tiled copy counts threads and values; a bijection, also of the values alone if
            all threads have them. None for ``destination``.

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
        order = self.order if any(stride for _, stride in self.order[0].flat) else self.order[1]
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

        Source: PTX ISA 9.1 section 9.7.14.5.15.
        """
        if integer(matrices, "matrices", "LA179") not in _LDMATRIX_SOURCES:
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
    """
    given = {"threads": threads, "values": values}
    name = "make_layout_tv"
    owners = [strided_form(require_cute(each, name, argument), name) for argument, each in given.items()]
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

    @property
    def source(self) -> CuteLayout:
        """(thread, value) to the flat coordinate of the tile that the thread reads.

        Example:
            >>> print(make_tiled_copy(CuteLayout((4, 8), (8, 1)), CuteLayout((1, 4))).source)
            ((1,(8,4)),(1,4)):((0,(16,1)),(0,4))
        """
        return self._placed(self.atom.source)

    @property
    def destination(self) -> CuteLayout:
        """(thread, value) to the flat coordinate of the tile that the thread writes."""
        return self._placed(self.atom.destination)

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
        zipped = zipped_divide(layout, self.tiler).base
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
