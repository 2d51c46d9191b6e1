"""Swizzles, and strided layouts under stages of them."""

from __future__ import annotations

import copy
import pickle
import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from layoutalg import cute
from layoutalg.cute import ComposedLayout, Swizzle
from operations import tables
from operations.algebra import composed, inner_of, places, refines, split_exists, sums, tile_of, tiles
from operations.record import answer, attempt, draws, expect, failed, operation, refusal
from operations.strided import Strided, same, strided
from operations.tables import fits, is_strided, parts, size_of, swizzled, values

Stage = tuple[int, int, int, int]


@dataclass(frozen=True)
class Composed(Strided):
    """A layout under stages; ``table`` is what comes out, ``base`` what the modes give."""

    stages: tuple[Stage, ...] = ()

    def under(self, table: list[int]) -> list[int]:
        for bits, base, distance, offset in self.stages:
            table = [swizzled(value + offset, bits, base, distance) for value in table]
        return table

    @property
    def base(self) -> list[int]:
        return values(self.shape, self.stride)


def fields(rng: random.Random) -> tuple[int, int, int]:
    bits = rng.choice((0, 1, 1, 2, 2, 3))
    return bits, rng.randrange(5), rng.choice((1, 1, 1, -1)) * (max(bits, 1) + rng.choice((0, 0, 1, 2)))


@draws("composed")
def draw(rng: random.Random) -> Composed:
    below = strided(rng, most=64, positive=rng.random() < 0.95)
    count = rng.choice((1, 1, 1, 2, 3))
    stages = tuple((*fields(rng), rng.choice((0, 0, 0, 1, 3, 8, 16, 33, -4))) for _ in range(count))
    layout: Any = below.layout
    for bits, base, distance, offset in stages:
        layout = ComposedLayout(Swizzle(bits, base, distance), offset, layout)
    one = Composed(layout, below.shape, below.stride, [], stages)
    return Composed(layout, below.shape, below.stride, one.under(below.table), stages)


# ----------------------------------------------------------------------------------------------------------- swizzles


@operation("composed", weight=2)
def swizzle(one: Composed, rng: random.Random) -> None:
    """Values, masks, period and matrix of one swizzle, from the bits."""
    bits, base, distance, _ = one.stages[0]
    sw = Swizzle(bits, base, distance)
    numbers = [rng.randint(0, 2 ** rng.choice((4, 9, 20, 40))) for _ in range(5)]
    want = [swizzled(number, bits, base, distance) for number in numbers]
    expect([sw(number) for number in numbers] == want, f"{sw} of {numbers}")
    expect(sw.apply(np.array(numbers)).tolist() == want == sw.map(np.array(numbers)).tolist(), f"{sw} of {numbers}")
    expect(sw.inverse() == sw and [sw(value) for value in want] == numbers, f"{sw} twice")
    read = sum(1 << base + max(distance, 0) + k for k in range(bits))
    written = sum(1 << base + max(-distance, 0) + k for k in range(bits))
    expect((sw.source_mask, sw.target_mask) == (read, written), f"masks of {sw}")
    width = rng.randint(0, 12)
    want = tuple(swizzled(1 << k, bits, base, distance) for k in range(width))
    expect(sw.matrix_columns(width) == want, f"matrix of {sw}")
    period = sw.period
    expect(period == 1 if not bits else period.bit_count() == 1, f"period of {sw}")
    if bits:
        at = [rng.randrange(4 * period) for _ in range(4)]
        expect(all(sw(x + period) == sw(x) + period for x in at), f"period of {sw}")
        half = period // 2
        small = any(sw(x + half) != sw(x) + half for x in range(0, min(2 * period, 4096)))
        expect(small or period > 2048, f"the period of {sw} is less than {period}")


@operation("composed")
def swizzle_units(one: Composed, rng: random.Random) -> None:
    """Recast to bytes and back, raised."""
    bits, base, distance, _ = one.stages[0]
    sw, low = Swizzle(bits, base, distance), rng.randrange(4)
    wide = 1 << low
    numbers = [rng.randrange(2**12) for _ in range(6)]
    up = sw.raised(low)
    expect(all(up(x * wide) == sw(x) * wide for x in numbers), f"{sw} raised {low}")
    on_bytes = sw.recast_bytes(wide)
    expect(on_bytes.unit == "byte" and all(on_bytes(x * wide) == sw(x) * wide for x in numbers), f"{sw} in bytes")
    inside = all(on_bytes(x) == on_bytes(x - x % wide) + x % wide for x in range(64))
    expect(inside, f"{sw} in bytes moves bytes of an element")
    raw = Swizzle(bits, base, distance, "byte")
    exists = bits == 0 or base >= low
    back = answer(raw.recast_elements, wide, exists=exists)
    expect(all(raw(x * wide) == back(x) * wide for x in numbers), f"{raw}.recast_elements({wide}) = {back}")


@operation("composed", weight=0.3)
def swizzle_after_swizzle(one: Composed, rng: random.Random) -> None:
    first, second = one.stages[0][:3], fields(rng)
    f, g = Swizzle(*first), Swizzle(*second)
    found = attempt(cute.composition, f, g)
    numbers = [*range(256), *[rng.randrange(2**16) for _ in range(20)]]
    want = [swizzled(swizzled(x, *second), *first) for x in numbers]
    if failed(found):
        same_one = [
            (bits, base, distance)
            for bits in range(7)
            for base in range(8)
            for size in range(max(bits, 1), 8)
            for distance in (size, -size)
            if all(swizzled(x, bits, base, distance) == y for x, y in zip(numbers, want, strict=True))
        ]
        raise refusal(found, bool(same_one), f"{f} after {g}")
    expect([found(x) for x in numbers] == want, f"{f} after {g} gave {found}")
    expect(f @ g == found == g.then(f), "@ and then")


# ------------------------------------------------------------------------------------------------------------ layouts


@operation("composed")
def measures(one: Composed, rng: random.Random) -> None:
    layout = one.layout
    expect(layout.size == len(one.table) == cute.size(layout), "size")
    expect(layout.rank == len(parts(one.shape)) and layout.depth == tables.depth_of(one.shape), "rank and depth")
    expect(layout.shape == one.shape, "shape")
    expect(layout.value_range() == (min(one.table), max(one.table)), f"value_range of {layout}")
    expect(layout.cosize == cute.cosize(layout) == 1 + max(one.table) - min(one.table), f"cosize of {layout}")
    expect(list(layout.in_dims.values()) == tables.leaves(one.shape), "in_dims")
    expect(list(layout.out_dims) == ["offset"], "out_dims")
    step = layout.period
    moved = layout.rebase(layout.base, step)
    same(moved, [value + step for value in one.table], f"period of {layout}")
    amount = rng.randint(0, 40)
    same(layout.rebase(layout.base, amount), one.under([value + amount for value in one.base]), f"rebase of {layout}")


@operation("composed", weight=0.5)
def copies(one: Composed, rng: random.Random) -> None:
    layout = one.layout
    names = {"ComposedLayout": ComposedLayout, "Swizzle": Swizzle, "CuteLayout": cute.CuteLayout}
    for other in (pickle.loads(pickle.dumps(layout)), copy.copy(layout), eval(repr(layout), names)):
        expect(other == layout and hash(other) == hash(layout), f"copy of {layout}")


@operation("composed", weight=2)
def composition(one: Composed, rng: random.Random) -> None:
    """Swizzled after strided, strided after swizzled, and a swizzle after a layout."""
    kind = rng.random()
    if kind < 0.5:
        inner = inner_of(Strided(None, one.shape, one.stride, one.base), rng)
        want = composed(one.table, inner.table)
        base = composed(one.base, inner.table)
        found = attempt(cute.composition, one.layout, inner.layout)
        what = f"composition({one.layout}, {inner.layout})"
        exists = base is not None and fits(inner.shape, base)
        shape = inner.shape
    elif kind < 0.8:
        most = max(one.table) + 1
        outer = strided(rng, rng.choice([n for n in (4, 8, 16, 32, 64, 24, 48) if n >= most] or [64]), most=64)
        want = composed(outer.table, one.table)
        found = attempt(cute.composition, outer.layout, one.layout)
        what = f"composition({outer.layout}, {one.layout})"
        exists = want is not None and (fits(one.shape, want) or one_swizzle(one.shape, want))
        shape = one.shape
    else:
        sw = fields(rng)
        want = [swizzled(value, *sw) for value in one.table]
        found = attempt(cute.composition, Swizzle(*sw), one.layout)
        what, exists, shape = f"composition({sw}, {one.layout})", True, one.shape
    if failed(found):
        raise refusal(found, exists, what, "LA641 LA640 LA643")
    expect(want is not None, f"{what} gave {found}")
    same(found, want or [], what)
    expect(refines(tables.bottom(found).shape, shape), f"{what} gave {found}")


def one_swizzle(shape: Any, table: list[int]) -> bool:
    """Whether one swizzle of up to 4 bits over strides and an offset has a table; tried sparsely, small ones only."""
    if len(table) > 32 or min(table) < 0 or max(table) > 255:
        return False
    for bits in (1, 2, 3):
        for base in range(5):
            for distance in range(bits, 5):
                for sign in (1, -1):
                    undone = [swizzled(value, bits, base, sign * distance) for value in table]
                    if fits(shape, [value - undone[0] for value in undone]):
                        return True
    return False


@operation("composed", weight=2)
def right_inverse(one: Composed, rng: random.Random) -> None:
    found = answer(
        cute.right_inverse,
        one.layout,
        exists=lambda: len(one.table) > 1 and 0 in one.table,
        declined="LA643 LA644 LA131",
    )
    for value, index in enumerate(tables.read(found)):
        fine = 0 <= index < one.size and one.table[index] == value
        expect(fine, f"right_inverse({one.layout}) = {found} at {value}")


@operation("composed", weight=0.3)
def left_inverse(one: Composed, rng: random.Random) -> None:
    found = attempt(cute.left_inverse, one.layout)
    injective = len(set(one.table)) == one.size
    if failed(found):
        declined = "LA131 LA132 LA133 LA134 LA643 LA644 LA649"
        raise refusal(found, injective and min(one.table) >= 0, f"left_inverse({one.layout})", declined)
    table = tables.read(found)
    for index, value in enumerate(one.table):
        expect(0 <= value < len(table), f"left_inverse({one.layout}) = {found} misses {value}")
        back = table[value]
        fine = back == index if injective else 0 <= back < one.size and one.table[back] == value
        expect(fine, f"left_inverse({one.layout}) = {found} at {value}")


@operation("composed")
def inverse(one: Composed, rng: random.Random) -> None:
    bijective = sorted(one.table) == list(range(one.size))
    found = answer(one.layout.inverse, exists=bijective, strict=True, declined="LA643 LA644")
    same(found, sorted(range(one.size), key=lambda i: one.table[i]), "inverse")


@operation("composed", weight=0.5)
def complement(one: Composed, rng: random.Random) -> None:
    bound = rng.choice((None, rng.randint(1, 2 * abs(max(one.table)) + 4)))
    found = attempt(cute.complement, one.layout, bound)
    image = sorted(set(one.table))
    want = tables.tiling(image, 1 + max(image) - min(image) if bound is None else bound)
    if failed(found):
        exists = len(image) == one.size and want is not None and is_strided(want[1])
        raise refusal(found, exists, f"complement({one.layout}, {bound})", "LA133 LA134 LA136")
    if len(image) == one.size:
        expect(want is not None, f"complement({one.layout}, {bound}) gave {found}")
        same(found, want[1] if want else [], f"complement({one.layout}, {bound})")
    starts = tables.read(found)
    expect(len({a + b for a in image for b in starts}) == len(image) * len(starts), "copies overlap")


@operation("composed")
def logical_divide(one: Composed, rng: random.Random) -> None:
    given, tile = tile_of(one.size, rng)
    cut = tiles(tile, one.size) if max(tile.table) < one.size else None
    fine = cut is not None and cut[0] == one.size and is_strided(cut[1])
    kind = rng.choice(("logical", "zipped", "tiled", "flat"))
    what = f"{kind}_divide({one.layout}, {given})"
    found = answer(
        getattr(cute, f"{kind}_divide"),
        one.layout,
        given,
        exists=lambda: fine and split_exists(one.base, tile, cut[1] if cut else []),
    )
    expect(fine and cut is not None, f"{what} gave {found}")
    base = [one.base[a + b] for b in cut[1] for a in tile.table] if cut else []
    same(found, one.under(base), what)


@operation("composed")
def logical_product(one: Composed, rng: random.Random) -> None:
    count = rng.randint(1, 5)
    kind = rng.choice(("logical", "blocked", "raked", "zipped"))
    what = f"{kind}_product({one.layout}, {count})"
    below = Strided(None, one.shape, one.stride, one.base)
    space = tables.math.prod(n for n, _ in below.moving)
    cut = tiles(below, space * count)
    fine = cut is not None and is_strided(cut[1]) and len(cut[1]) >= count
    found = answer(
        getattr(cute, f"{kind}_product"),
        one.layout,
        count,
        exists=lambda: fine and is_strided(cut[1][:count] if cut else []),
    )
    expect(fine and cut is not None, f"{what} gave {found}")
    starts = cut[1][:count] if cut else []
    if kind in ("logical", "zipped"):
        same(found, one.under(sums([one.base, starts])), what)
    else:
        first = values(parts(one.shape)[0], parts(one.stride)[0])
        rest = [values(s, d) for s, d in zip(parts(one.shape)[1:], parts(one.stride)[1:], strict=True)]
        pair = [starts, first] if kind == "raked" else [first, starts]
        same(found, one.under(sums([*pair, *rest])), what)


@operation("composed")
def nullspace(one: Composed, rng: random.Random) -> None:
    """The coordinates with the value of coordinate 0."""
    kernel = [i for i, value in enumerate(one.table) if value == one.table[0]]
    found = answer(cute.nullspace, one.layout, exists=lambda: is_strided(kernel), declined="LA643 LA644")
    got = tables.read(found)
    expect(set(got) <= set(kernel) and len(set(got)) == len(got), f"nullspace({one.layout}) = {found}")


@operation("composed", weight=0.5)
def max_alignment(one: Composed, rng: random.Random) -> None:
    found = answer(cute.max_alignment, one.layout, declined="LA644 LA114")
    wide = cute.upcast(one.layout, found)
    memory = sorted(found * unit + r for unit in tables.read(wide) for r in range(found))
    expect(memory == sorted(one.table), f"max_alignment({one.layout}) = {found}")


@operation("composed")
def tile_to_shape(one: Composed, rng: random.Random) -> None:
    counts = [rng.choice((1, 1, 2, 4)) for _ in parts(one.shape)]
    shape = tuple(size_of(mode) * n for mode, n in zip(parts(one.shape), counts, strict=True))
    found = attempt(cute.tile_to_shape, one.layout, shape)
    bijective = sorted(one.table) == list(range(one.size))
    what = f"tile_to_shape({one.layout}, {shape})"
    if failed(found):
        starts = places(Strided(None, one.shape, one.stride, one.base), list(range(tables.math.prod(counts))))
        whole = sums([[starts[0]], one.base, starts]) if starts else []
        kept = sorted(one.under(whole)) == list(range(size_of(shape)))
        raise refusal(found, starts is not None and fits(tuple(counts), starts) and kept, what)
    table = tables.read(found)
    expect(size_of(tables.bottom(found).shape) == size_of(shape), f"{what} gave {found}")
    if bijective:
        expect(sorted(table) == list(range(len(table))), f"{what} gave {found}, which is no bijection")
