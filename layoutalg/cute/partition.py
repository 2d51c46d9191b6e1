"""Extract one tile, one thread's elements or one thread's values of a layout, as layout plus offset.

Main statements: a tile slices the rest mode of ``zipped_divide``, a partition slices its tile mode; all tiles together,
and all partitions together, contain every element exactly once.

References: CuTe ``local_tile``, ``local_partition``, ``inner_partition``, ``outer_partition``.
"""

from __future__ import annotations

from layoutalg.cute.algebra import make_layout
from layoutalg.cute.compose_strided import after_strided
from layoutalg.cute.composed import ComposedLayout, Cute, bottom
from layoutalg.cute.coords import idx2crd
from layoutalg.cute.divide import zipped_divide
from layoutalg.cute.inttuple import integer, malformed, product_each
from layoutalg.cute.inverse import left_inverse
from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.operands import Tiler, composed, refusal, tiler_text, within
from layoutalg.cute.slicing import Coord, moved, slice_and_offset
from layoutalg.cute.swizzled import strided_form
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
    where = f"local_tile({composed(layout, 'local_tile')}, {tiler_text(tiler)}, {tiler_text(coord)})"
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
    base = bottom(zipped)
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
    threads = strided_form(composed(threads, "local_partition", "threads"), "local_partition")
    where = f"local_partition({composed(layout, 'local_partition')}, {threads}, {number})"
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
    where = f"thread_value_partition({composed(layout, 'thread_value_partition')}, {thread_value}, {number})"
    try:
        if tiler is None:
            base, rest = after_strided(bottom(layout), thread_value), []
        else:
            zipped = bottom(zipped_divide(layout, tiler))
            rest = list(zipped[1])
            base = make_layout(*after_strided(zipped[0], thread_value), *rest)
        return slice_and_offset((number, None, *[None] * len(rest)), moved(layout, base, 0))
    except LayoutError as error:
        raise within(error, where) from error
