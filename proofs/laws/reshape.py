"""Rearranged modes and texts: the function stays, and what is written is read back."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import permutations, product
from typing import Any

from layoutalg.cute import (
    ComposedLayout,
    CoordinateLayout,
    CuteLayout,
    E,
    Morphism,
    Swizzle,
    append,
    coalesce,
    flatten,
    group,
    make_identity_layout,
    make_layout,
    make_layout_like,
    make_ordered_layout,
    prepend,
    replace,
    select,
    take,
    tile_to_shape,
    unflatten,
)
from layoutalg.cute.inttuple import IntTuple
from layoutalg.cute.inttuple import flatten as leaves
from layoutalg.cute.layout import from_flat
from layoutalg.cute.notation import parse_cute, parse_morphism
from layoutalg.cute.pointed import prefix_products
from layoutalg.ground.digits import Flat, evaluate
from layoutalg.proofs.laws.engines import enumerated, integers
from layoutalg.proofs.laws.law import Law
from layoutalg.proofs.laws.places import digits_of, index, modes
from layoutalg.proofs.laws.trial import Trial

_STRUCTURE = "how modes nest is structure, not a value; partition.additive is what it rests on, proved for all values"

Weights = Callable[[Any], Any]


def _compact(trial: Trial, weights: Weights = prefix_products) -> None:
    extents = tuple([extent for extent, _ in modes(trial, 3)])
    i = index(trial, digits_of(trial, "c", extents), extents)
    flat = tuple(zip(extents, weights(extents), strict=False))
    trial.claim(evaluate(flat, i) == i, "the compact layout takes i to i")


def _row_major(extents: Any) -> tuple[Any, ...]:
    return prefix_products(extents[::-1])[-2::-1]


def _alone(trial: Trial, at: int = 1) -> None:
    flat = modes(trial, 3)
    extents = [extent for extent, _ in flat]
    c = trial.digit("c", extents[1])
    digits = [0, 0, 0]
    digits[at] = c
    trial.assume(c < extents[at])
    i = index(trial, digits, extents)
    chosen: Flat = flat[1:2]
    trial.divides(c, extents[1], 0, c)
    trial.claim(evaluate(chosen, c) == evaluate(flat, i), "a mode is the layout with the other coordinates at 0")


def _layouts() -> Iterator[CuteLayout]:
    shapes: tuple[IntTuple, ...] = (6, (2, 3), (3, 1, 2), ((2, 2), 3), (2, (3, (1, 2))), ((3,), (2, 2)), (2, 3, 2, 2))
    for shape in shapes:
        count = len(leaves(shape))
        for stride in product((0, 1, -2, 6), repeat=count):
            flat = from_flat(tuple(zip(leaves(shape), stride, strict=True)))
            yield unflatten(flat, shape) if isinstance(shape, tuple) else flat


def _keeps(layout: CuteLayout, nest: Callable[[CuteLayout], CuteLayout] | None = None) -> str | None:
    values = layout.table().tolist()
    nestings = [nest] if nest else [flatten, coalesce, lambda each: unflatten(flatten(each), each.shape)]
    found = [operation(layout) for operation in nestings]
    if isinstance(layout.shape, tuple):
        found.append(coalesce(layout, (0,) * layout.rank))
        ranges = [(a, b) for a in range(layout.rank) for b in range(a + 1, layout.rank + 1)]
        found += [group(layout, a, b) for a, b in ranges]
    return None if all(each.table().tolist() == values for each in found) else "the function of i changed"


def _grouped_last(layout: CuteLayout) -> CuteLayout:
    """Bring the grouped modes to the end."""
    return make_layout(*list(layout)[1:], layout[0])


def _chosen(layout: CuteLayout, choose: Callable[..., CuteLayout] = select) -> str | None:
    tables = [mode.table().tolist() for mode in layout]
    for order in permutations(range(layout.rank), min(2, layout.rank)):
        if choose(layout, *order).table().tolist() != _sums([tables[k] for k in order]):
            return "select does not give the modes in the order named"
    extra = CuteLayout(2, 50)
    added = _sums([*tables, [0, 50]]), _sums([[0, 50], *tables])
    if (append(layout, extra).table().tolist(), prepend(layout, extra).table().tolist()) != added:
        return "append and prepend do not add a mode at their end"
    for k in range(layout.rank):
        if take(layout, k, layout.rank).table().tolist() != _sums(tables[k:]):
            return "take does not give the modes of its range"
        if replace(layout, k, extra).table().tolist() != _sums([*tables[:k], [0, 50], *tables[k + 1 :]]):
            return "replace changes another mode"
    return None if make_layout(*layout).table().tolist() == _sums(tables) else "the modes do not make the layout"


def _sums(tables: list[list[int]]) -> list[int]:
    return [sum(parts) for parts in product(*tables[::-1])]


def _in_given_order(layout: CuteLayout, *modes: int) -> CuteLayout:
    """Keep the order of the layout."""
    return select(layout, *sorted(modes))


Ordered = tuple[tuple[int, ...], tuple[int, ...]]


def _orders() -> Iterator[Ordered]:
    shapes: list[tuple[int, ...]] = [(2, 3, 4), (3, 3), (4, 2, 2), (5,)]
    return ((shape, order) for shape in shapes for order in permutations(range(len(shape))))


def _ordered(case: Ordered, make: Callable[..., CuteLayout] = make_ordered_layout) -> str | None:
    shape, order = case
    found = make(shape, order)
    if sorted(found.table().tolist()) != list(range(math.prod(shape))):
        return "the layout is no bijection"
    strides = [stride for _, (_, stride) in sorted(zip(order, found.flat, strict=True))]
    if strides != sorted(strides) or found.shape != shape:
        return "the modes are not in order"
    return None if make_layout_like(found) == found else "its compact likeness is another layout"


def _from_the_right(shape: tuple[int, ...], order: tuple[int, ...]) -> CuteLayout:
    """Take the greatest number for the fastest mode."""
    return make_ordered_layout(shape, tuple([-number for number in order]))


Tile = tuple[CuteLayout, tuple[int, int]]


def _tilings() -> Iterator[Tile]:
    tiles = [CuteLayout((2, 3), stride) for stride in ((1, 2), (3, 1))] + [CuteLayout((2, 2), (1, 2)), CuteLayout(2)]
    return product(tiles, [(2, 6), (4, 6), (6, 12)])


def _tiled(case: Tile, repeat: Callable[..., Any] = tile_to_shape) -> str | None:
    tile, shape = case
    found = repeat(tile, shape)
    if sorted(found.table().tolist()) != list(range(math.prod(shape))):
        return "the tiles do not fill the shape"
    block = append(tile, rank=2)
    rows, columns = block[0].size, block[1].size
    for i, j in product(range(shape[0]), range(shape[1])):
        start = found(i // rows * rows, j // columns * columns)
        if found(i, j) != start + block(i % rows, j % columns) or start % tile.size:
            return "a tile is not the block given"
    return None


def _compact_whole(tile: CuteLayout, shape: tuple[int, int]) -> CuteLayout:  # noqa: ARG001
    """Fill the shape without regard to the tile."""
    return CuteLayout(shape)


def _values() -> Iterator[Any]:
    yield from _layouts()
    for layout in (CuteLayout((4, (2, 2)), (1, (8, -4))), CuteLayout((4,)), CuteLayout(0, 3), CuteLayout(((), 4))):
        yield layout
        for swizzle in (Swizzle(0, 0, 0), Swizzle(2, 1, 3), Swizzle(1, 0, -1)):
            yield from [ComposedLayout(swizzle, offset, layout) for offset in (0, 7, -7)]
            yield ComposedLayout(Swizzle(1, 4, 2), 16, ComposedLayout(swizzle, 5, layout))
    yield from [Swizzle(3, 4, 3), Swizzle(3, 4, 3, "byte"), Swizzle(0, 2, -5), Swizzle(1, 0, -1, "byte")]
    yield from [make_identity_layout(shape) for shape in (4, (4, 8), (4, (2, 3)))]
    yield CoordinateLayout((4, 8), (E(1), 2 * E(0) - 3 * E(1)))
    yield CoordinateLayout(4, E(0), (0, 0))
    yield from [Morphism((4, (2, 3)), (3, (4, 2)), (1, 2, 0)), Morphism((6, 2), (6, 2), (0, None), (1, 10))]
    yield from [Morphism(4, (4, 3), (0,)), Morphism.identity(())]


def _read_back(value: Any, write: Callable[[Any], str] = str) -> str | None:
    text = write(value)
    found = parse_morphism(text) if isinstance(value, Morphism) else parse_cute(text)
    return None if found == value else f"{text} is read as {found}"


def _without_single(value: Any) -> str:
    """Write a tuple of one mode as its mode."""
    return str(value).replace("(4):(1)", "4:1")


LAWS = (
    Law(
        "reshape.compact",
        "The compact column-major layout takes every 1-D coordinate to itself; by induction over the modes.",
        ("layoutalg.cute.CuteLayout", "layoutalg.cute.pointed.prefix_products"),
        integers(_compact, partial(_compact, weights=_row_major), "all extents of three modes"),
    ),
    Law(
        "reshape.mode",
        "A mode of a layout is the layout with the other coordinates at 0.",
        ("layoutalg.cute.layout.CuteLayout.__getitem__", "layoutalg.ground.digits.evaluate"),
        integers(_alone, partial(_alone, at=0), "all extents and strides, the middle one of three modes"),
    ),
    Law(
        "reshape.function",
        "group, flatten, unflatten and coalesce by mode keep the function of the 1-D coordinate.",
        ("layoutalg.cute.group", "layoutalg.cute.flatten", "layoutalg.cute.unflatten", "layoutalg.cute.coalesce"),
        enumerated(
            _layouts, _keeps, partial(_keeps, nest=_grouped_last), "7 nested shapes, strides 0, 1, -2 and 6", 724
        ),
        _STRUCTURE,
    ),
    Law(
        "reshape.modes",
        "select, take, append, prepend, replace and make_layout give the modes named, in their order.",
        (
            "layoutalg.cute.select",
            "layoutalg.cute.take",
            "layoutalg.cute.append",
            "layoutalg.cute.prepend",
            "layoutalg.cute.replace",
            "layoutalg.cute.make_layout",
        ),
        enumerated(
            _layouts, _chosen, partial(_chosen, choose=_in_given_order), "7 nested shapes, strides 0, 1, -2 and 6", 724
        ),
        _STRUCTURE,
    ),
    Law(
        "reshape.ordered",
        "make_ordered_layout is a bijection whose strides are in the order given; make_layout_like leaves it as it is.",
        ("layoutalg.cute.make_ordered_layout", "layoutalg.cute.make_layout_like"),
        enumerated(_orders, _ordered, partial(_ordered, make=_from_the_right), "4 shapes, all orders", 15),
        "an order is structure; compact layouts are proved for all values (reshape.compact)",
    ),
    Law(
        "reshape.tile_to_shape",
        "tile_to_shape fills the shape with copies of the tile, a bijection where the tile is one.",
        ("layoutalg.cute.tile_to_shape", "layoutalg.cute.divide._repeated"),
        enumerated(_tilings, _tiled, partial(_tiled, repeat=_compact_whole), "4 tiles to 3 shapes", 12),
        "it is a blocked product (product.by_mode) with a compact layout (reshape.compact)",
    ),
    Law(
        "notation.round_trip",
        "Every layout, swizzle and morphism is read back from the text it writes.",
        ("layoutalg.cute.notation.parse_cute", "layoutalg.cute.notation.parse_morphism"),
        enumerated(
            _values, _read_back, partial(_read_back, write=_without_single), "layouts and stacks of every kind", 789
        ),
        "texts are characters, which solvers are not asked about",
    ),
)
