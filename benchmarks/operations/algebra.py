"""Operations of strided layouts that make other functions: composition, complement, inverses, divisions, products."""

from __future__ import annotations

import itertools
import random
from typing import Any

from layoutalg import cute
from layoutalg.cute import CuteLayout
from operations import tables
from operations.record import answer, attempt, expect, failed, operation, refusal
from operations.strided import SIZES, Strided, is_coalesced, same, strided
from operations.tables import fits, is_strided, leaves, parts, size_of, tiling, values

CHAIN = "LA131 LA132 LA133 LA134 LA136 LA148"
"""Refusals of layouts that are not injective, or whose strides form no divisible chain."""


def inner_of(one: Strided, rng: random.Random) -> Strided:
    """A layout whose values mostly are coordinates of another."""
    for _ in range(8):
        extents = tables.factors(rng.choice([n for n in SIZES if n <= max(one.size, 1)]), rng)
        found = []
        for extent in extents:
            most = (one.size - 1) // max(extent - 1, 1)
            weights = [w for w in (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32) if w <= most]
            found.append(rng.choice(weights) if weights else 0)
        shape = tables.nested(extents, rng)
        stride = tables.like(shape, found)
        table = values(shape, stride)
        if max(table) < one.size or rng.random() < 0.03:
            return Strided(CuteLayout(shape, stride), shape, stride, table)
    return Strided(CuteLayout(one.size), one.size, 1, list(range(one.size)))


def composed(outer: list[int], inner: list[int]) -> list[int] | None:
    """The table of one function after another, or None where it leaves the first one's domain."""
    if any(not 0 <= value < len(outer) for value in inner):
        return None
    return [outer[value] for value in inner]


def refines(fine: Any, rough: Any) -> bool:
    """Whether a shape refines another leaf by leaf."""
    if isinstance(rough, tuple):
        return isinstance(fine, tuple) and len(fine) == len(rough) and all(map(refines, fine, rough))
    return bool(size_of(fine) == rough)


@operation("cute", weight=3)
def composition(one: Strided, rng: random.Random) -> None:
    inner = inner_of(one, rng)
    want = composed(one.table, inner.table)
    found = attempt(cute.composition, one.layout, inner.layout)
    if failed(found):
        exists = want is not None and fits(inner.shape, want)
        raise refusal(found, exists, f"composition({one.layout}, {inner.layout})")
    expect(want is not None, f"composition({one.layout}, {inner.layout}) leaves the domain and gave {found}")
    same(found, want, f"composition({one.layout}, {inner.layout})")
    expect(refines(found.shape, inner.shape), f"{found} does not refine {inner.shape}")
    expect(one.layout @ inner.layout == found == inner.layout.then(one.layout), "@ and then")


def tiler_of(one: Strided, rng: random.Random) -> tuple[Any, list[Any]]:
    """A tiler by mode: what the library gets, and per mode (shape, stride), or None."""
    given: list[Any] = []
    known: list[Any] = []
    for shape in parts(one.shape):
        size = size_of(shape)
        kind = rng.random()
        if kind < 0.15:
            given.append(None)
            known.append(None)
        elif kind < 0.6:
            extent = rng.choice([n for n in range(1, size + 1) if size % n == 0] or [1])
            given.append(extent)
            known.append((extent, 1))
        else:
            extent = rng.choice([n for n in range(1, size + 1) if size % n == 0])
            step = rng.choice([d for d in range(1, size // extent + 1) if size % (extent * d) == 0])
            given.append(CuteLayout(extent, step))
            known.append((extent, step))
    return tuple(given), known


@operation("cute", weight=2)
def composition_by_mode(one: Strided, rng: random.Random) -> None:
    if not isinstance(one.shape, tuple):
        return
    given, known = tiler_of(one, rng)
    shapes, tops, exists = [], [], True
    for shape, stride, tile in zip(one.shape, one.stride, known, strict=True):
        table = values(shape, stride)
        got = table if tile is None else composed(table, values(*tile))
        assert got is not None
        shapes.append(shape if tile is None else tile[0])
        exists = exists and (tile is None or fits(tile[0], got))
        tops.append(got)
    found = answer(cute.composition, one.layout, given, exists=exists)
    expect(refines(found.shape, tuple(shapes)), f"{found} does not refine {shapes}")
    for place, table in enumerate(tops):
        same(found[place], table, f"mode {place} of composition({one.layout}, {given})")


# -------------------------------------------------------------------------------------------------------- complement


def tiles(one: Strided, bound: int) -> tuple[int, list[int]] | None:
    """The (end, starts) of a complement: of the modes that move, copies that fill a range from 0."""
    moving = one.moving
    table = values(tuple(n for n, _ in moving), tuple(d for _, d in moving))
    return None if min(table) < 0 else tiling(table, bound)


@operation("cute", weight=2)
def complement(one: Strided, rng: random.Random) -> None:
    reach = 1 + max(one.table)
    bound = rng.choice((None, reach, rng.randint(1, 3 * max(reach, 1)), max(reach, 1) * rng.randint(1, 4)))
    if bound is not None and bound < 1:
        bound = 1
    found = attempt(cute.complement, one.layout, bound)
    want = tiles(one, 1 + max(one.table) - min(one.table) if bound is None else bound)
    if failed(found):
        exists = want is not None and is_strided(want[1])
        raise refusal(found, exists, f"complement({one.layout}, {bound})")
    expect(want is not None, f"complement({one.layout}, {bound}) gave {found}; nothing tiles")
    same(found, want[1] if want else [], f"complement({one.layout}, {bound})")
    expect(is_coalesced(list(found.flat)), f"{found} is not coalesced")


# ---------------------------------------------------------------------------------------------------------- inverses


@operation("cute", weight=2)
def right_inverse(one: Strided, rng: random.Random) -> None:
    found = cute.right_inverse(one.layout)
    table = tables.read(found)
    for value, index in enumerate(table):
        expect(0 <= index < one.size and one.table[index] == value, f"right_inverse({one.layout}) = {found} at {value}")
    expect(is_coalesced(list(found.flat)), f"{found} is not coalesced")
    if found.size < one.size:
        fused: list[tuple[int, int]] = []
        for extent, step in [(n, d) for n, d in one.modes if n > 1]:
            if fused and fused[-1][0] * fused[-1][1] == step:
                extent, step = extent * fused[-1][0], fused.pop()[1]
            fused.append((extent, step))
        expect(
            len(table) not in {d for _, d in fused},
            f"right_inverse({one.layout}) = {found} stops before a stride {len(table)}",
        )


def chained(one: Strided) -> bool:
    """Strides above 0, each a multiple of the one before and no less than its reach."""
    modes = sorted((d, n) for n, d in one.moving)
    return all(d > 0 for d, _ in modes) and all(
        e % d == 0 and e >= n * d for (d, n), (e, _) in itertools.pairwise(modes)
    )


@operation("cute", weight=2)
def left_inverse(one: Strided, rng: random.Random) -> None:
    found = attempt(cute.left_inverse, one.layout)
    if failed(found):
        distinct = len(set(values(*zip(*one.moving, strict=True)))) if one.moving else 1
        injective = distinct == tables.math.prod(n for n, _ in one.moving) and min(one.table) >= 0
        declined = "" if chained(one) else "LA131 LA132 LA133 LA134 LA649"
        raise refusal(found, injective, f"left_inverse({one.layout})", declined)
    table = tables.read(found)
    expect(len(table) > max(one.table), f"left_inverse({one.layout}) = {found} is too short")
    injective = len(set(one.table)) == one.size
    for index, value in enumerate(one.table):
        back = table[value]
        right = back == index if injective else 0 <= back < one.size and one.table[back] == value
        expect(right, f"left_inverse({one.layout}) = {found} at {value}")
    expect(is_coalesced(list(found.flat)), f"{found} is not coalesced")


@operation("cute")
def inverse(one: Strided, rng: random.Random) -> None:
    found = attempt(one.layout.inverse)
    bijective = sorted(one.table) == list(range(one.size))
    if failed(found):
        back = sorted(range(one.size), key=lambda i: one.table[i])
        raise refusal(found, bijective and is_strided(back), f"{one.layout}.inverse()")
    expect(bijective, f"{one.layout}.inverse() gave {found}")
    same(found, sorted(range(one.size), key=lambda i: one.table[i]), "inverse")


@operation("cute")
def nullspace(one: Strided, rng: random.Random) -> None:
    found = cute.nullspace(one.layout)
    want, weight = [0], 1
    for extent, step in one.modes:
        if not step:
            want = [value + weight * digit for digit in range(extent) for value in want]
        weight *= extent
    same(found, want, f"nullspace({one.layout})")
    expect(is_coalesced(list(found.flat)), f"{found} is not coalesced")


@operation("cute", weight=2)
def max_common_layout(one: Strided, rng: random.Random) -> None:
    if rng.random() < 0.5:  # compact in some order
        extents = tables.factors(one.size, rng, 0)
        steps, weight = [0] * len(extents), 1
        for place in rng.sample(range(len(extents)), len(extents)):
            steps[place] = weight
            weight *= extents[place]
        shape, stride = tuple(extents), tuple(steps)
        one = Strided(CuteLayout(shape, stride), shape, stride, values(shape, stride))
    other = strided(rng, one.size) if rng.random() < 0.4 else one
    found = cute.max_common_layout(one.layout, other.layout)
    table = tables.read(found)
    for value, index in enumerate(table):
        expect(
            index < min(one.size, other.size) and one.table[index] == other.table[index] == value,
            f"max_common_layout({one.layout}, {other.layout}) = {found}",
        )
    expect(cute.max_common_vector(one.layout, other.layout) == len(table), "max_common_vector")
    if len(set(other.table)) == other.size and min(other.table) >= 0:  # then it is unique, and the longest
        place = {value: index for index, value in enumerate(other.table)}
        run = []
        while len(run) in place and place[len(run)] < one.size and one.table[place[len(run)]] == len(run):
            run.append(place[len(run)])
        best = max(n for n in range(1, len(run) + 1) if is_strided(run[:n]))
        expect(best == len(table), f"max_common_layout({one.layout}, {other.layout}) = {found}; one of {best} exists")


# --------------------------------------------------------------------------------------------------------- divisions


def divided(table: list[int], tile: Strided) -> tuple[list[int], list[int]] | None:
    """The offsets inside a tile and from tile to tile, or None where the tile does not divide."""
    cut = tiles(tile, len(table))
    return None if cut is None or cut[0] != len(table) or not is_strided(cut[1]) else (tile.table, cut[1])


def split_exists(table: list[int], tile: Strided, rest: list[int]) -> bool:
    """Whether A o (T, C) is strided over the shape of T and any modes for C, and adds up."""
    inside = [table[value] for value in tile.table]
    across = [table[value] for value in rest]
    if not (fits(tile.shape, inside) and is_strided(across)):
        return False
    return all(table[a + b] == inside[i] + across[j] for j, b in enumerate(rest) for i, a in enumerate(tile.table))


def tile_of(size: int, rng: random.Random) -> tuple[Any, Strided]:
    """A tiler of a size and the layout it means."""
    extent = rng.choice([n for n in range(1, size + 1) if size % n == 0]) if rng.random() < 0.9 else rng.randint(1, 9)
    if rng.random() < 0.5:
        return extent, Strided(CuteLayout(extent, 1), extent, 1, list(range(extent)))
    step = rng.choice(list(range(1, max(size // extent, 1) + 1)))
    if rng.random() < 0.5 or extent == 1:
        return CuteLayout(extent, step), Strided(CuteLayout(extent, step), extent, step, values(extent, step))
    cut = rng.choice([n for n in range(1, extent + 1) if extent % n == 0])
    weights = (step, step * cut * rng.randint(1, 2))
    shape = (cut, extent // cut)
    if rng.random() < 0.3:
        weights = weights[::-1]
    return CuteLayout(shape, weights), Strided(CuteLayout(shape, weights), shape, weights, values(shape, weights))


@operation("cute", weight=2)
def logical_divide(one: Strided, rng: random.Random) -> None:
    given, tile = tile_of(one.size, rng)
    what = f"logical_divide({one.layout}, {given})"
    cut = divided(one.table, tile) if tile.size <= one.size and max(tile.table) < one.size else None
    found = answer(
        cute.logical_divide, one.layout, given, exists=lambda: cut is not None and split_exists(one.table, tile, cut[1])
    )
    expect(cut is not None, f"{what} gave {found}")
    assert cut is not None
    same(found, [one.table[a + b] for b in cut[1] for a in tile.table], what)
    expect(found.rank == 2 and refines(found[0].shape, tile.shape), f"{what} gave {found}")


def check_arrangement(
    kind: str, found: Any, pairs: list[tuple[list[int], list[int]]], rest: list[list[int]], what: str
) -> None:
    """Modes stand as the kind of a division or product says: pair by pair, or all first ones, then the others."""
    tops = [found[place] for place in range(found.rank)]
    wanted = [a for a, _ in pairs] + [b for _, b in pairs] + rest
    if kind == "logical":
        wanted = [sums([a, b]) for a, b in pairs] + rest
    elif kind == "zipped":
        expect(found.rank == 2, what)
        tops = [*found[0], *found[1]]
    elif kind == "tiled":
        tops = [*found[0], *tops[1:]]
    expect([tables.read(mode) for mode in tops] == wanted, f"{what} gave {found}")


@operation("cute", weight=3)
def divide_by_mode(one: Strided, rng: random.Random) -> None:
    """logical, zipped, tiled and flat divide by a tuple of tilers; modes left out stay, or go to the rest."""
    if not isinstance(one.shape, tuple):
        return
    count = rng.randint(1, len(one.shape))
    given, splits, exists = [], [], True
    for place in range(count):
        table = values(one.shape[place], one.stride[place])
        tiler, tile = tile_of(len(table), rng)
        cut = divided(table, tile) if max(tile.table) < len(table) else None
        exists = exists and cut is not None and split_exists(table, tile, cut[1])
        given.append(tiler)
        splits.append(cut and ([table[a] for a in tile.table], [table[b] for b in cut[1]]))
    rest = [values(s, d) for s, d in zip(one.shape[count:], one.stride[count:], strict=True)]
    kind = rng.choice(("logical", "zipped", "tiled", "flat"))
    call = getattr(cute, f"{kind}_divide")
    what = f"{kind}_divide({one.layout}, {given})"
    found = answer(call, one.layout, tuple(given), exists=exists, strict=True)
    check_arrangement(kind, found, [pair for pair in splits if pair], rest, what)


def sums(modes: list[list[int]]) -> list[int]:
    total = [0]
    for mode in modes:
        total = [value + step for step in mode for value in total]
    return total


# ---------------------------------------------------------------------------------------------------------- products


def places(block: Strided, copies: list[int]) -> list[int] | None:
    """Where the copies of a block start: in order of the gaps that it leaves."""
    moving = block.moving
    count = tables.math.prod(n for n, _ in moving)
    cut = tiles(block, count * (1 + max(copies) - min(copies)))
    if cut is None or not is_strided(cut[1]) or any(not 0 <= value < len(cut[1]) for value in copies):
        return None
    return [cut[1][value] for value in copies]


def copies_of(rng: random.Random) -> tuple[Any, Strided]:
    if rng.random() < 0.5:
        count = rng.randint(1, 6)
        return count, Strided(CuteLayout(count, 1), count, 1, list(range(count)))
    other = strided(rng, rng.choice((1, 2, 3, 4, 6, 8)), positive=True)
    return other.layout, other


@operation("cute", weight=2)
def logical_product(one: Strided, rng: random.Random) -> None:
    given, copies = copies_of(rng)
    what = f"logical_product({one.layout}, {given})"
    starts = places(one, copies.table)
    found = answer(
        cute.logical_product,
        one.layout,
        given,
        exists=lambda: starts is not None and fits(copies.shape, starts),
        declined=CHAIN,
    )
    expect(starts is not None, f"{what} gave {found}")
    expect(found.rank == 2 and found[0] == one.layout, f"{what} gave {found}")
    same(found[1], starts or [], what)
    expect(refines(found[1].shape, copies.shape), f"{what} gave {found}")


@operation("cute", weight=2)
def product_by_mode(one: Strided, rng: random.Random) -> None:
    if not isinstance(one.shape, tuple):
        return
    count = rng.randint(1, len(one.shape))
    given, copied, exists = [], [], True
    for place in range(count):
        tiler, copies = copies_of(rng)
        block = Strided(None, one.shape[place], one.stride[place], values(one.shape[place], one.stride[place]))
        starts = places(block, copies.table)
        exists = exists and starts is not None and fits(copies.shape, starts)
        given.append(tiler)
        copied.append(starts or [])
    kind = rng.choice(("logical", "zipped", "tiled", "flat"))
    what = f"{kind}_product({one.layout}, {given})"
    found = answer(getattr(cute, f"{kind}_product"), one.layout, tuple(given), exists=exists, declined=CHAIN)
    blocks = [values(s, d) for s, d in zip(one.shape[:count], one.stride[:count], strict=True)]
    rest = [values(s, d) for s, d in zip(one.shape[count:], one.stride[count:], strict=True)]
    check_arrangement(kind, found, list(zip(blocks, copied, strict=True)), rest, what)


@operation("cute", weight=2)
def blocked_product(one: Strided, rng: random.Random) -> None:
    """Blocked and raked: both sides filled up with 1:0, multiplied, zipped mode by mode."""
    copies = strided(rng, rng.choice((1, 2, 4, 6)), positive=True)
    raked = rng.random() < 0.5
    call = cute.raked_product if raked else cute.blocked_product
    what = f"{'raked' if raked else 'blocked'}_product({one.layout}, {copies.layout})"
    starts = places(one, copies.table)
    exists = starts is not None and fits(copies.shape, starts)
    found = answer(call, one.layout, copies.layout, exists=exists, declined=CHAIN)
    expect(starts is not None, f"{what} gave {found}")
    assert starts is not None
    rank = max(len(parts(one.shape)), len(parts(copies.shape)))
    expect(found.rank == rank, f"{what} gave {found}")
    weight = 1
    for place in range(rank):
        block, copied = [0], [0]
        if place < len(parts(one.shape)):
            block = values(parts(one.shape)[place], parts(one.stride)[place])
        if place < len(parts(copies.shape)):
            extent = size_of(parts(copies.shape)[place])
            copied = [starts[weight * digit] for digit in range(extent)]
            weight *= extent
        pair = [copied, block] if raked else [block, copied]
        same(found[place], sums(pair), f"mode {place} of {what}")


@operation("cute")
def tile_to_shape(one: Strided, rng: random.Random) -> None:
    modes = parts(one.shape)
    counts = [rng.choice((1, 1, 2, 3, 4)) for _ in modes]
    shape = tuple(size_of(mode) * n for mode, n in zip(modes, counts, strict=True))
    while rng.random() < 0.2:
        counts.append(rng.randint(1, 3))
        shape = (*shape, counts[-1])
    order = tuple(rng.sample(range(len(shape)), len(shape))) if rng.random() < 0.6 else None
    what = f"tile_to_shape({one.layout}, {shape}, {order})"
    found = attempt(cute.tile_to_shape, one.layout, shape, order)
    weights, weight = [0] * len(counts), 1
    for place in sorted(range(len(counts)), key=lambda k: order[k]) if order else range(len(counts)):
        weights[place] = weight
        weight *= counts[place]
    starts = places(one, values(tuple(counts), tuple(weights)))
    if failed(found):
        raise refusal(found, starts is not None and fits(tuple(counts), starts), what, CHAIN)
    expect(starts is not None, f"{what} gave {found}")
    assert starts is not None
    wanted, step = [], 1
    for place, count in enumerate(counts):
        block = values(modes[place], parts(one.stride)[place]) if place < len(modes) else [0]
        wanted.append(sums([block, [starts[step * digit] for digit in range(count)]]))
        step *= count
    got = [found] if isinstance(found.shape, int) else [found[place] for place in range(found.rank)]
    expect([tables.read(mode) for mode in got] == wanted, f"{what} gave {found}")
    expect(len(leaves(found.shape)) >= len(shape) or found.rank == len(shape), what)
