"""Division and product: tiles and their complement put together again, copies of a block at their places.

Main statements: A / T is A after (T, C) with C the complement of T, so dividing reorders A and loses nothing; A * T is
(A, C o T) with C the complement of A, so copy j of A starts at C(T(j)) and copies do not overlap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

from layoutalg.cute import (
    CuteLayout,
    blocked_product,
    complement,
    composition,
    flat_divide,
    flat_product,
    logical_divide,
    logical_product,
    raked_product,
    tiled_divide,
    tiled_product,
    zipped_divide,
    zipped_product,
)
from layoutalg.cute.complement import gaps
from layoutalg.cute.factor import Broken, factor_run
from layoutalg.ground.digits import Flat, evaluate
from layoutalg.ground.errors import LayoutError
from layoutalg.proofs.laws.composition import strided_on
from layoutalg.proofs.laws.engines import enumerated, integers
from layoutalg.proofs.laws.law import Law
from layoutalg.proofs.laws.places import index
from layoutalg.proofs.laws.trial import Trial

_SPLIT = "one mode of extent t q r with stride d, the tile t:q; all t, q, r >= 1, all strides"
_COPIES = "a block s:g, all s >= 2, all g >= 1, all places; step of the induction over the chain"


def _run(outer: Flat, step: Any, extent: Any) -> Flat:
    found = factor_run(outer, step, extent)
    return () if isinstance(found, Broken) else found


def _divided(trial: Trial, fill: Callable[..., Flat] = gaps) -> None:
    t, q, r, d = trial.extent("t"), trial.extent("q"), trial.extent("r"), trial.integer("d")
    trial.assume(t >= 2)
    outer = ((t * q * r, d),)
    end = t * q
    trial.divides(-(t * q * r), end, -r, 0)
    rest = fill(((t, q, 1),), t * q * r)
    x, y, z = trial.digit("x", t), trial.digit("y", q), trial.digit("z", r)
    inside = [(digit, extent) for digit, extent in ((y, q), (z, r)) if extent != 1]
    trial.claim(math.prod([extent for extent, _ in rest]) == q * r, "as many tiles as fit")
    trial.claim(len(rest) == len(inside), "a digit of the rest for every gap")
    tile, runs = _run(outer, q, t), [_run(outer, stride, extent) for extent, stride in rest]
    trial.claim(len(tile) == 1, "the tile is one run")
    trial.claim(all(len(run) == 1 for run in runs), "so is every digit of the rest")
    value = x * tile[0][1] + sum([digit * run[0][1] for (digit, _), run in zip(inside, runs, strict=True)])
    element = y + q * (x + t * z)
    trial.claim(element < t * q * r, "the element lies inside A")
    trial.divides(element, t * q * r, 0, element)
    trial.claim(value == evaluate(outer, element), "element (x, (y, z)) of A / T is A's at y + q (x + t z)")


def _next_to_each_other(chain: Any, bound: Any) -> Flat:
    """Put the tiles one behind the other, whatever their stride."""
    (extent, _, _) = chain[0]
    return ((-(-bound // extent), extent),)


def _copied(trial: Trial, fill: Callable[..., Flat] = gaps) -> None:
    s, g, steps = [trial.extent(name) for name in ("s", "g", "steps")]
    a, b, c = trial.digit("a", s), trial.digit("b", g), trial.digit("c", steps)
    trial.assume(s >= 2)
    chain, end = ((s, g, 1),), s * g
    trial.divides(-(steps * end), end, -steps, 0)
    rest = fill(chain, steps * end)
    trial.claim(math.prod([extent for extent, _ in rest]) == g * steps, "every place is counted")
    digits = [(digit, extent) for digit, extent in ((b, g), (c, steps)) if extent != 1]
    trial.claim(len(rest) == len(digits), "a digit for every gap")
    place = index(trial, [digit for digit, _ in digits], [extent for extent, _ in rest]) if rest else 0
    offset = a * g + evaluate(rest, place)
    trial.divides(offset, end, c, b + a * g)
    trial.divides(b + a * g, g, a, b)
    trial.claim(offset // end == c, "the place of the copy is read back")
    trial.claim(offset % end // g == a, "so is the element of the block")
    trial.claim(offset % end % g == b, "so is the start within the gap: copies at two places are disjoint")


def _over_the_size(chain: Any, bound: Any) -> Flat:
    """Start copies at multiples of the size of the block instead of its reach."""
    (extent, _, _) = chain[0]
    return gaps(((extent, 1, 1),), bound)


Pair = tuple[CuteLayout, CuteLayout]


def _pairs() -> Iterator[Pair]:
    outers = [CuteLayout(extent, stride) for extent in (4, 6, 12) for stride in (1, 3)]
    outers += [CuteLayout(s, d) for s in product((2, 3, 4), repeat=2) for d in ((1, 4), (4, 1), (1, 9), (0, 2))]
    tiles = [CuteLayout(extent, stride) for extent in (1, 2, 3, 4) for stride in (1, 2, 3, 4)]
    tiles += [CuteLayout((2, 2), stride) for stride in product((1, 2, 3, 4, 6), repeat=2)]
    return product(outers, tiles)


def _reassembled(pair: Pair, divide: Callable[..., CuteLayout] = logical_divide) -> str | None:
    outer, tile = pair
    try:
        rest = complement(tile, outer.size)
        starts, inside = rest.table().tolist(), tile.table().tolist()
        places = [start + element for start in starts for element in inside]
    except LayoutError:
        places = []
    tiles = sorted(places) == list(range(outer.size))
    exists = tiles and strided_on(
        [outer(place) for place in places], [extent for part in (tile, rest) for extent, _ in part.flat]
    )
    try:
        found = divide(outer, tile)
    except LayoutError as error:
        return f"refused: {error}" if exists else None
    if not exists:
        return "a division of a layout that has no such form"
    return None if found.table().tolist() == [outer(place) for place in places] else "the tiles hold other elements"


def _rounded_up(outer: CuteLayout, tile: CuteLayout) -> CuteLayout:
    try:
        return logical_divide(outer, tile)
    except LayoutError:
        return CuteLayout((tile.size, -(-outer.size // tile.size)))


def _blocks() -> Iterator[Pair]:
    blocks = [CuteLayout(extent, stride) for extent in (2, 3) for stride in (1, 2, 3)]
    blocks += [CuteLayout((2, 2), stride) for stride in product((0, 1, 2, 4), repeat=2)]
    tiles = [CuteLayout(extent, stride) for extent in (1, 2, 3) for stride in (1, 2)]
    tiles += [CuteLayout((2, 3), stride) for stride in ((1, 2), (3, 1), (2, 4))]
    return product(blocks, tiles)


def _at_places(pair: Pair, multiply: Callable[..., CuteLayout] = logical_product) -> str | None:
    block, tile = pair
    moving = math.prod(extent for extent, stride in block.flat if stride)
    try:
        starts = complement(block, moving * tile.cosize)
        found = multiply(block, tile)
    except LayoutError:
        return None
    for j in range(tile.size):
        for i in range(block.size):
            if found(i, j) != block(i) + starts(tile(j)):
                return "a copy is not at its place"
    first = {block(i) for i in range(block.size)}
    copies = [{start + offset for offset in first} for start in starts.table().tolist()]
    return None if len(set().union(*copies)) == sum(map(len, copies)) else "copies overlap"


def _by_size(block: CuteLayout, tile: CuteLayout) -> CuteLayout:
    """Start copy j at T(j) times the size of the block."""
    starts = composition(CuteLayout(tile.cosize, block.size), tile)
    return CuteLayout((block.shape, starts.shape), (block.stride, starts.stride))


_SHAPES = ((4, 6), (2, 9), (6, (2, 2)), ((2, 2), 3))
_TILERS: tuple[Any, ...] = ((2, 3), (2,), (CuteLayout(2, 2), 3), (None, 3), 2)
Call = tuple[CuteLayout, Any]
Operations = tuple[Callable[..., CuteLayout], ...]


def _divisions() -> Iterator[Call]:
    return product([CuteLayout(shape) for shape in _SHAPES], _TILERS)


def _forms(call: Call, operations: Operations) -> str | None:
    layout, tiler = call
    logical, zipped, tiled, flat = operations
    whole, *open_forms = [_table(operation, layout, tiler) for operation in (zipped, tiled, flat)]
    if open_forms != [whole, whole]:
        return "tiled or flat is not zipped laid open"
    if whole is None or not isinstance(tiler, tuple):
        return None
    ones = [CuteLayout((1, layout[k].shape), (0, layout[k].stride)) for k in range(layout.rank)]
    parts = [ones[k] if entry is None else logical(layout[k], entry) for k, entry in enumerate(tiler)]
    rest = [layout[k] for k in range(len(tiler), layout.rank)]
    by_hand = [part[side] for side in (0, 1) for part in parts] + rest
    values = [sum(offsets) for offsets in product(*[mode.table().tolist() for mode in by_hand[::-1]])]
    return None if values == whole else "zipped does not gather the tiles and then the rests of all modes"


def _table(operation: Callable[..., CuteLayout], layout: CuteLayout, tiler: Any) -> list[int] | None:
    try:
        return [int(value) for value in operation(layout, tiler).table()]
    except LayoutError:
        return None


def _zipped_by_mode(pair: Pair, blocked: Any = blocked_product, raked: Any = raked_product) -> str | None:
    block, tile = pair
    try:
        whole = logical_product(block, tile)
    except LayoutError:
        return None
    offsets = sorted(whole.table().tolist())
    first, second = blocked(block, tile), raked(block, tile)
    if sorted(first.table().tolist()) != offsets or sorted(second.table().tolist()) != offsets:
        return "other offsets than those of the logical product"
    for k in range(first.rank):
        if k < block.rank and first[k][0].table().tolist() != block[k].table().tolist():
            return "a mode of the blocked product does not begin with the block's"
        if [first[k][side].table().tolist() for side in (1, 0)] != [
            second[k][side].table().tolist() for side in (0, 1)
        ]:
            return "a mode of the raked product is not that of the blocked one turned around"
    return None


_DIVIDES = (logical_divide, zipped_divide, tiled_divide, flat_divide)
_PRODUCTS = (logical_product, zipped_product, tiled_product, flat_product)

LAWS = (
    Law(
        "division.tiles",
        "A / T = A o (T, C) with C the complement of T: element x of tile (y, z) is A's at y + q (x + t z), each "
        "element of A once; by induction over the modes of T.",
        ("layoutalg.cute.logical_divide", "layoutalg.cute.complement.gaps", "layoutalg.cute.factor.factor_run"),
        (
            *integers(_divided, partial(_divided, fill=_next_to_each_other), _SPLIT),
            *enumerated(
                _pairs,
                _reassembled,
                partial(_reassembled, divide=_rounded_up),
                "A of at most 2 modes with extents 2..12, tiles of at most 2 modes, refusals included",
                1722,
            ),
        ),
    ),
    Law(
        "division.forms",
        "zipped_divide gathers the tiles of all modes in front of their rests; tiled_divide and flat_divide are the "
        "same function, laid open.",
        (
            *("layoutalg.cute.zipped_divide", "layoutalg.cute.tiled_divide", "layoutalg.cute.flat_divide"),
            *(f"layoutalg.cute.divide.{name}" for name in ("shaped", "unzip", "_by_mode")),
            "layoutalg.cute.composition.after_tiler",
        ),
        enumerated(
            _divisions,
            partial(_forms, operations=_DIVIDES),
            partial(_forms, operations=(*_DIVIDES[:1], *_DIVIDES[:1], *_DIVIDES[2:])),
            "4 nested layouts by 5 tilers",
            20,
        ),
        "which modes stand where is structure; their values are those of division.tiles",
    ),
    Law(
        "product.copies",
        "A * T = (A, C o T) with C the complement of A: copy j starts at C(T(j)), and from any offset its copy, the "
        "element in it and the start within the gap are read back, so copies at different places are disjoint.",
        ("layoutalg.cute.logical_product", "layoutalg.cute.divide.product_of", "layoutalg.cute.complement.gaps"),
        (
            *integers(_copied, partial(_copied, fill=_over_the_size), _COPIES),
            *enumerated(
                _blocks,
                _at_places,
                partial(_at_places, multiply=_by_size),
                "blocks of at most 2 modes with strides 0..4, copies of at most 2 modes",
                198,
            ),
        ),
    ),
    Law(
        "product.forms",
        "zipped_product gathers the blocks of all modes in front of their copies; tiled_product and flat_product are "
        "the same function, laid open.",
        ("layoutalg.cute.zipped_product", "layoutalg.cute.tiled_product", "layoutalg.cute.flat_product"),
        enumerated(
            _divisions,
            partial(_forms, operations=_PRODUCTS),
            partial(_forms, operations=(*_PRODUCTS[:1], *_PRODUCTS[:1], *_PRODUCTS[2:])),
            "4 nested blocks by 5 tilers",
            20,
        ),
        "which modes stand where is structure; their values are those of product.copies",
    ),
    Law(
        "product.by_mode",
        "Mode k of the blocked product is (block mode k, copies mode k), of the raked product the two turned around; "
        "both have the offsets of the logical product.",
        ("layoutalg.cute.blocked_product", "layoutalg.cute.raked_product", "layoutalg.cute.divide.interleaved"),
        enumerated(
            _blocks,
            _zipped_by_mode,
            partial(_zipped_by_mode, raked=blocked_product),
            "blocks of at most 2 modes with strides 0..4, copies of at most 2 modes",
            198,
        ),
        "which modes stand where is structure; their values are those of product.copies",
    ),
)
