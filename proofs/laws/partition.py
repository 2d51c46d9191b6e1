"""Tiles, partitions and tiled copies: every element once, and value by value the one that is promised.

Main statements: with Z = zipped_divide(L, tiler), a tile is a slice of Z's second mode and a partition a slice of its
first. A slice of a layout keeps its offset: L(x) = L(fixed part) + rest, as layouts add up over their modes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

from layoutalg.cute import (
    ComposedLayout,
    CopyAtom,
    CuteLayout,
    Swizzle,
    TiledCopy,
    crd2idx,
    idx2crd,
    local_partition,
    local_tile,
    make_layout_tv,
    make_tiled_copy,
    shift,
    slice_and_offset,
    thread_value_partition,
    zipped_divide,
)
from layoutalg.cute.swizzle import Cute
from layoutalg.ground.digits import Flat, evaluate
from layoutalg.proofs.laws.engines import enumerated, integers
from layoutalg.proofs.laws.law import Law
from layoutalg.proofs.laws.places import digits_of, index, modes
from layoutalg.proofs.laws.trial import Trial

_TENSORS: tuple[Cute, ...] = (
    CuteLayout((8, 12)),
    CuteLayout((8, 12), (12, 1)),
    CuteLayout(((2, 4), 12), ((1, 40), 3)),
    ComposedLayout(Swizzle(2, 1, 3), 0, CuteLayout((8, 12), (16, 1))),
    ComposedLayout(Swizzle(1, 0, 2), 5, CuteLayout((8, 12), (1, 8))),
)
_WHY = (
    "which modes are cut is structure; that layouts add up over their modes (partition.additive) and what a division "
    "is (division.tiles) are proved for all values"
)

Values = Callable[..., Any]


def _values(layout: Cute) -> list[int]:
    return [int(value) for value in layout.table()]


def _adds_up(trial: Trial, value: Callable[[Flat, Any], Any] = evaluate) -> None:
    flat = modes(trial, 3)
    extents = [extent for extent, _ in flat]
    digits = digits_of(trial, "c", extents)
    i, x, y = [index(trial, digits[part], extents[part]) for part in (_ALL, _FIRST, _REST)]
    trial.claim(value(flat, i) == value(flat[_FIRST], x) + value(flat[_REST], y), "L(x, y) = L_0(x) + L_1(y)")


_ALL, _FIRST, _REST = slice(0, 3), slice(0, 1), slice(1, 3)


def _continued(flat: Flat, i: Any) -> Any:
    """Let the first mode run on where the next one begins."""
    return evaluate(flat, i) + (i // flat[0][0]) * flat[0][1]


Sliced = tuple[Cute, Any]


def _slices() -> Iterator[Sliced]:
    for layout in _TENSORS:
        yield from ((layout, (row, None)) for row in range(8))
        yield from ((layout, (None, column)) for column in range(12))
        yield from ((layout, (row, column)) for row, column in product(range(0, 8, 3), range(0, 12, 5)))
    yield from ((_TENSORS[2], ((None, row), None)) for row in range(4))
    yield from ((_TENSORS[2], ((column % 2, None), column)) for column in range(12))


def _sliced(case: Sliced, cut: Values = slice_and_offset) -> str | None:
    layout, coordinate = case
    found = cut(coordinate, layout)
    leaves = _leaves(coordinate, layout.shape)
    wanted = [layout(i) for i in range(layout.size) if _agrees(_digits(i, layout.shape), leaves)]
    return None if _values(found) == wanted else "the slice has other offsets than the layout there"


def _digits(i: int, shape: Any) -> tuple[int, ...]:
    coordinate = idx2crd(i, shape)
    return tuple(_flat(coordinate))


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for entry in value:
            yield from _flat(entry)
    else:
        yield value


def _leaves(coordinate: Any, shape: Any) -> tuple[Any, ...]:
    """Return the digit of every leaf that a coordinate fixes, None where it is free."""
    if isinstance(coordinate, tuple):
        return tuple([leaf for c, s in zip(coordinate, shape, strict=True) for leaf in _leaves(c, s)])
    if coordinate is None:
        return (None,) * len(list(_flat(shape)))
    return tuple(_flat(idx2crd(coordinate, shape)))


def _agrees(digits: tuple[int, ...], leaves: tuple[Any, ...]) -> bool:
    return all(leaf is None or digit == leaf for digit, leaf in zip(digits, leaves, strict=True))


def _decayed(coordinate: Any, layout: Cute) -> Cute:
    """Slice the layout under the swizzle and add the swizzled offset outside."""
    base = layout.base if isinstance(layout, ComposedLayout) else layout
    kept = slice_and_offset(coordinate, base)
    first = layout(crd2idx(tuple([0 if entry is None else entry for entry in coordinate]), (8, 12)))
    return shift(kept.base, first)


Tiling = tuple[Cute, Any]


def _tilings() -> Iterator[Tiling]:
    return product(_TENSORS, ((2, 3), (4, 6), (8, 4), (CuteLayout(2, 4), 3)))


def _tiles(case: Tiling, tile: Values = local_tile) -> str | None:
    layout, tiler = case
    zipped = zipped_divide(layout, tiler)
    inside, count = zipped[0].size, zipped[1].size
    seen: list[int] = []
    for number in range(count):
        found = _values(tile(layout, tiler, number))
        if found != [zipped(i, number) for i in range(inside)]:
            return "a tile holds other elements"
        seen += found
    return None if sorted(seen) == sorted(_values(layout)) else "the tiles do not hold every element once"


def _without_offset(layout: Cute, tiler: Any, number: int) -> Cute:
    """Forget where the tile starts."""
    found = local_tile(layout, tiler, number)
    return found.rebase(found.base, -found.stages[-1][1])


Partition = tuple[Cute, CuteLayout]


def _partitions() -> Iterator[Partition]:
    threads = [CuteLayout((4, 2)), CuteLayout((4, 2), (2, 1)), CuteLayout((2, 3), (4, 1)), CuteLayout(((2, 2), 3))]
    return product(_TENSORS, threads)


def _shares(case: Partition, part: Values = local_partition) -> str | None:
    layout, threads = case
    sizes = tuple([mode.size for mode in threads])
    zipped = zipped_divide(layout, sizes)
    seen: list[int] = []
    for place in range(threads.size):
        found = _values(part(layout, threads, threads(place)))
        if found != [zipped(place, rest) for rest in range(zipped[1].size)]:
            return "a thread gets other elements"
        seen += found
    return None if sorted(seen) == sorted(_values(layout)) else "the partitions do not hold every element once"


def _by_place(layout: Cute, threads: CuteLayout, number: int) -> Cute:
    """Take the number of a thread for its place."""
    compact = CuteLayout(threads.shape)
    return local_partition(layout, compact, number % compact.size)


Copying = tuple[CuteLayout, CuteLayout]


def _thread_values() -> Iterator[Copying]:
    threads = [CuteLayout((4, 2), stride) for stride in ((1, 4), (2, 1))]
    values = [CuteLayout((1, 3), (0, 1)), CuteLayout((2, 3), (1, 2)), CuteLayout((2, 2), (2, 1)), CuteLayout((1, 1))]
    return product(threads, values)


def _owned(case: Copying, make: Values = make_layout_tv) -> str | None:
    threads, values = case
    (rows, columns), found = make(threads, values)
    high, wide = [mode.size for mode in values]
    if (rows, columns) != (threads[0].size * high, threads[1].size * wide):
        return "the tile is not that of the threads times their values"
    for row, column in product(range(rows), range(columns)):
        thread, value = threads(row // high, column // wide), values(row % high, column % wide)
        if found(thread, value) != row + rows * column:
            return "an element belongs to another thread or value"
    return None


def _interleaved(threads: CuteLayout, values: CuteLayout) -> tuple[tuple[int, ...], CuteLayout]:
    """Let the values of a thread lie a tile of threads apart."""
    tile, found = make_layout_tv(values, threads)
    return tile, CuteLayout((found.shape[1], found.shape[0]), (found.stride[1], found.stride[0]))  # type: ignore[index]


Copied = tuple[Cute, Copying]


def _copies() -> Iterator[Copied]:
    return product(
        [*_TENSORS[:2], _TENSORS[3]],
        [(CuteLayout((4, 2), (2, 1)), CuteLayout((2, 2), (1, 2))), (CuteLayout((2, 4)), CuteLayout((4, 1)))],
    )


def _whole(case: Copied, view: Values = TiledCopy.partition_S) -> str | None:
    layout, (threads, values) = case
    for atom in (CopyAtom.vector(), CopyAtom.vector(2)):
        copy = make_tiled_copy(threads, values, atom)
        zipped = zipped_divide(layout, copy.tiler)
        seen: list[int] = []
        for thread in range(copy.threads):
            found = view(copy, layout, thread)
            wanted = [zipped(copy.layout_tv(thread, v), rest) for rest in range(zipped[1].size) for v in range(4)]
            if _values(found) != wanted:
                return "a thread copies other elements"
            seen += _values(found)
        if sorted(seen) != sorted(_values(layout)):
            return "the copy does not move every element once"
        if sorted(_values(copy.tidfrg_S(layout))) != sorted(seen):
            return "the view of all threads has other elements"
    return None


def _one_thread(copy: TiledCopy, layout: Cute, thread: int) -> Cute:
    """Number the threads backwards."""
    return copy.partition_S(layout, copy.threads - 1 - thread)


Accumulator = tuple[Cute, int]
_ACCUMULATOR = CuteLayout(((4, 2), (2, 2)), ((16, 1), (8, 4)))


def _owners() -> Iterator[Accumulator]:
    tensors = (CuteLayout((8, 8)), CuteLayout((8, 8), (8, 1)), ComposedLayout(Swizzle(1, 1, 2), 0, CuteLayout((8, 8))))
    return product(tensors, range(8))


def _held(case: Accumulator, part: Values = thread_value_partition) -> str | None:
    layout, thread = case
    found = _values(part(layout, _ACCUMULATOR, thread))
    wanted = [layout(_ACCUMULATOR(thread, value)) for value in range(4)]
    return None if found == wanted else "a thread holds other values"


def _first_values(layout: Cute, thread_value: CuteLayout, thread: int) -> Cute:
    """Read threads as values."""
    return thread_value_partition(layout, CuteLayout(thread_value.shape, thread_value.stride[::-1]), thread)  # type: ignore[index]


LAWS = (
    Law(
        "partition.additive",
        "A layout adds up over its modes, so a slice is the layout of the free modes behind the offset of the fixed "
        "ones; by induction over the modes.",
        ("layoutalg.ground.digits.evaluate", "layoutalg.cute.slice_and_offset", "layoutalg.cute.make_layout"),
        integers(_adds_up, partial(_adds_up, value=_continued), "all extents and strides of one mode before two"),
    ),
    Law(
        "partition.slice",
        "slice_and_offset(c, L) has the values of L at the coordinates that agree with c, in order, swizzled or not.",
        ("layoutalg.cute.slice_and_offset",),
        enumerated(
            _slices, _sliced, partial(_sliced, cut=_decayed), "5 tensors, two of them swizzled, all slices", 161
        ),
        _WHY,
    ),
    Law(
        "partition.tiles",
        "local_tile(L, T, j) is Z(_, j) for Z = zipped_divide(L, T); all tiles together hold every element once.",
        ("layoutalg.cute.local_tile", "layoutalg.cute.zipped_divide"),
        enumerated(_tilings, _tiles, partial(_tiles, tile=_without_offset), "5 tensors by 4 tilers, all tiles", 20),
        _WHY,
    ),
    Law(
        "partition.threads",
        "local_partition(L, threads, n) is Z(c, _) where threads(c) = n; all threads together hold every element once.",
        ("layoutalg.cute.local_partition",),
        enumerated(
            _partitions, _shares, partial(_shares, part=_by_place), "5 tensors by 4 layouts of threads, all threads", 20
        ),
        _WHY,
    ),
    Law(
        "partition.values",
        "thread_value_partition(L, TV, t)(v) = L(TV(t, v)).",
        ("layoutalg.cute.thread_value_partition",),
        enumerated(_owners, _held, partial(_held, part=_first_values), "3 tensors, all 8 threads", 24),
        "it is a composition, then a slice, which composition.value and partition.slice decide",
    ),
    Law(
        "partition.owner",
        "make_layout_tv(threads, values): element v + V t of each dimension, V its number of values, belongs to thread "
        "threads(t) as value values(v).",
        ("layoutalg.cute.make_layout_tv",),
        enumerated(
            _thread_values, _owned, partial(_owned, make=_interleaved), "2 layouts of threads by 4 of values", 8
        ),
        "it is the inverse of a raked product: inverse.right and product.by_mode",
    ),
    Law(
        "partition.copy",
        "A tiled copy reads element Z(tv(t, v), r) for value v of thread t in tile r, and every element once.",
        (
            "layoutalg.cute.TiledCopy.partition_S",
            "layoutalg.cute.TiledCopy.tidfrg_S",
            "layoutalg.cute.TiledCopy._placed",
        ),
        enumerated(_copies, _whole, partial(_whole, view=_one_thread), "3 tensors by 2 copies by 2 instructions", 6),
        _WHY,
    ),
)
