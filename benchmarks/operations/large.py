"""Large layouts, judged at sampled points: tables of 2^16 points, extents beyond 2^31, matrices of many bits."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import layoutalg as la
from layoutalg import convert, cute, f2, integer
from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.integer import IntegerLayout
from operations import tables
from operations.linear import Linear, pack, unpack
from operations.record import answer, attempt, draws, expect, failed, operation, refusal

SAMPLES = 24


@dataclass(frozen=True)
class Wide:
    """Modes of a strided layout, too many points to list."""

    modes: list[tuple[int, int]]

    @cached_property
    def layout(self) -> CuteLayout:
        return CuteLayout(tuple(n for n, _ in self.modes), tuple(d for _, d in self.modes))

    @property
    def size(self) -> int:
        return math.prod(n for n, _ in self.modes)

    def value(self, index: int) -> int:
        return value(self.modes, index)


def value(modes: list[tuple[int, int]], index: int) -> int:
    total = 0
    for extent, step in modes:
        index, digit = divmod(index, extent)
        total += digit * step
    return total


def modes_of(layout: Any) -> list[tuple[int, int]]:
    return list(zip(tables.leaves(layout.shape), tables.leaves(layout.stride), strict=True))


def sampled(size: int, rng: random.Random) -> list[int]:
    """The corners and random places of a range."""
    return [0, size - 1, size // 2] + [rng.randrange(size) for _ in range(SAMPLES)]


@draws("large")
def draw(rng: random.Random) -> Wide:
    """Compact in some order with padding, sizes from 2^16 to beyond 2^31."""
    extents = [rng.choice((16, 64, 100, 256, 1000, 4096, 1 << 20, 3 << 30)) for _ in range(rng.randint(2, 4))]
    while math.prod(extents) < 1 << 16:
        extents.append(256)
    while math.prod(extents) >= 1 << 61:
        extents.remove(max(extents))
    strides, weight = [0] * len(extents), 1
    for place in rng.sample(range(len(extents)), len(extents)):
        strides[place] = weight
        weight *= extents[place] * rng.choice((1, 1, 1, 2))
    while weight >= 1 << 62:
        return draw(rng)
    return Wide(list(zip(extents, strides, strict=True)))


def agree(found: CuteLayout, one: Any, size: int, rng: random.Random, what: object) -> None:
    modes = modes_of(found)
    expect(math.prod(n for n, _ in modes) == size, f"{what} gave {found} of another size")
    for index in sampled(size, rng):
        expect(value(modes, index) == one(index), f"{what} gave {found}, wrong at {index}")


@operation("large", weight=2)
def evaluate(one: Wide, rng: random.Random) -> None:
    layout = one.layout
    places = sampled(one.size, rng)
    want = [one.value(index) for index in places]
    expect([layout(index) for index in places] == want, f"{layout}")
    expect(layout.apply(np.array(places)).tolist() == want, f"apply of {layout}")
    expect(layout.size == one.size and layout.cosize == 1 + sum((n - 1) * d for n, d in one.modes), f"size of {layout}")


@operation("large")
def coalesce(one: Wide, rng: random.Random) -> None:
    agree(cute.coalesce(one.layout), one.value, one.size, rng, f"coalesce({one.layout})")


@operation("large", weight=2)
def composition(one: Wide, rng: random.Random) -> None:
    extent, _ = rng.choice(one.modes)
    count = rng.choice([n for n in (2, 4, 8, 16, 256) if extent % n == 0] or [1])
    step = rng.choice([n for n in (1, 2, 4, one.modes[0][0]) if one.size % (n * count) == 0] or [1])
    inner = CuteLayout(count, step)
    found = attempt(cute.composition, one.layout, inner)
    inside = (count - 1) * step < one.size
    if failed(found):
        table = [one.value(step * k) for k in range(count)] if inside else [1]
        raise refusal(found, inside and tables.is_strided(table), f"composition({one.layout}, {inner})")
    agree(found, lambda k: one.value(step * k), count, rng, f"composition({one.layout}, {inner})")


@operation("large", weight=2)
def inverses(one: Wide, rng: random.Random) -> None:
    """right_inverse at its values, left_inverse at the values of the layout."""
    found = cute.right_inverse(one.layout)
    modes = modes_of(found)
    for at in sampled(found.size, rng):
        index = value(modes, at)
        expect(0 <= index < one.size and one.value(index) == at, f"right_inverse({one.layout}) = {found} at {at}")
    back = cute.left_inverse(one.layout)
    modes = modes_of(back)
    for index in sampled(one.size, rng):
        expect(value(modes, one.value(index)) == index, f"left_inverse({one.layout}) = {back} at {one.value(index)}")


@operation("large", weight=2)
def complement(one: Wide, rng: random.Random) -> None:
    """Every offset below the end is a value plus a start, in one way: divide it by the strides of both, in order."""
    found = answer(cute.complement, one.layout)
    both = sorted([mode for mode in one.modes + modes_of(found) if mode[0] > 1], key=lambda mode: mode[1])
    weight = 1
    for extent, step in both:
        expect(step == weight, f"complement({one.layout}) = {found} leaves a gap at {weight}")
        weight *= extent
    expect(weight >= one.layout.cosize, f"complement({one.layout}) = {found} ends at {weight}")


@operation("large", weight=2)
def divide(one: Wide, rng: random.Random) -> None:
    count = rng.choice([n for n in (2, 4, 16, 100) if one.modes[0][0] % n == 0] or [1])
    found = answer(cute.logical_divide, one.layout, count)
    agree(found, one.value, one.size, rng, f"logical_divide({one.layout}, {count})")


@operation("large")
def listed(one: Wide, rng: random.Random) -> None:
    """A table of 2^16 points, of a swizzled layout too."""
    rows = 1 << rng.randint(6, 10)
    columns = (1 << 16) // rows
    pad = rng.choice((0, 8))
    layout = CuteLayout((rows, columns), (columns + pad, 1))
    grid = np.add.outer(np.arange(columns), np.arange(rows) * (columns + pad)).reshape(-1)
    expect(np.array_equal(layout.table(), grid), f"table of {layout}")
    bits, base, shift = 3, rng.choice((0, 3, 4)), 3
    swizzled = ComposedLayout(Swizzle(bits, base, shift), 0, layout)
    want = grid ^ ((grid >> shift) & (7 << base))
    expect(np.array_equal(swizzled.table(), want), f"table of {swizzled}")
    expect(swizzled.cosize == int(want.max()) + 1, f"cosize of {swizzled}")
    if not pad:
        back = answer(cute.right_inverse, swizzled, declined="LA643")
        places = sampled(back.size, rng)
        expect(np.array_equal(want[back.apply(np.array(places))], places), f"right_inverse({swizzled}) = {back}")


@operation("large", weight=2)
def converted(one: Wide, rng: random.Random) -> None:
    """to_integer and to_linear, sampled; equivalent to the answer, and not to a changed one."""
    whole = convert.to_integer(one.layout)
    rows, extents = list(whole.matrix[0]), [n for _, n in whole.inputs]
    for index in sampled(one.size, rng):
        got = value(list(zip(extents, rows, strict=True)), index) + whole.offset[0]
        expect(got == one.value(index), f"to_integer({one.layout}) = {whole} at {index}")
    expect(bool(la.equivalent(one.layout, whole)), f"equivalent({one.layout}, {whole})")
    place = rng.randrange(len(one.modes))
    other = Wide([(n, d + (k == place)) for k, (n, d) in enumerate(one.modes)])
    expect(not la.equivalent(one.layout, other.layout), f"equivalent({one.layout}, {other.layout})")
    power = all(n & (n - 1) == 0 for n, _ in one.modes) and all(d & (d - 1) == 0 for _, d in one.modes)
    found = answer(convert.to_linear, one.layout, exists=power)
    for index in sampled(one.size, rng):
        got = tables.xored(found.columns, found.constant, index)
        expect(got == one.value(index), f"to_linear({one.layout}) = {found} at {index}")


@operation("large", weight=2)
def wide_matrices(one: Wide, rng: random.Random) -> None:
    """Composition, inverse and solutions of linear layouts of 20 to 60 bits, at sampled points."""
    bits = rng.randint(20, 60)
    columns = [1 << k for k in rng.sample(range(bits), bits)]
    for _ in range(3 * bits):
        a, b = rng.randrange(bits), rng.randrange(bits)
        if a != b:
            columns[a] ^= columns[b]
    cut = rng.randint(0, bits)
    first = Linear([("x", cut), ("y", bits - cut)], [("z", bits)], columns, rng.randrange(1 << bits))
    inverse = first.layout.inverse()
    second = Linear([("z", bits)], [("w", bits)], rng.sample(columns, bits), 5)
    composed = second.layout @ first.layout
    for at in sampled(1 << bits, rng):
        there = tables.xored(columns, first.constant, at)
        expect(tables.xored(inverse.columns, inverse.constant, there) == at, "inverse of a wide layout")
        want = tables.xored(second.columns, second.constant, there)
        expect(tables.xored(composed.columns, composed.constant, at) == want, "composition of wide layouts")
        expect(pack(first.outs, first.layout(**unpack(first.ins, at))) == there, "a wide layout at a point")
    target = Linear([("t", 8)], first.outs, rng.sample(columns, 8), 3)
    found = f2.solve(first.layout, target.layout).choose()
    for at in range(0, 256, 17):
        there = tables.xored(found.columns, found.constant, at)
        want = tables.xored(target.columns, 3, at)
        expect(tables.xored(columns, first.constant, there) == want, "a solution of wide layouts")


@operation("large", weight=2)
def wide_boxes(one: Wide, rng: random.Random) -> None:
    """Integer layouts on boxes beyond 2^31: reshaped, flipped, inverted, at sampled points."""
    dims = {f"k{k}": n for k, (n, _) in enumerate(one.modes)}
    layout = IntegerLayout.from_strides(dims, [d for _, d in one.modes], 7)
    places = sampled(one.size, rng)
    expect([layout.at(i) for i in places] == [one.value(i) + 7 for i in places], f"{layout}")
    name, extent = rng.choice(list(dims.items()))
    split = integer.split(layout, name, {"a": math.gcd(extent, 4), "b": extent // math.gcd(extent, 4)})
    expect([split.at(i) for i in places] == [one.value(i) + 7 for i in places], f"split of {layout}")
    flipped = integer.flip(layout, name)
    for i in places:
        point = list(layout.coordinate(i))
        k = list(dims).index(name)
        point[k] = extent - 1 - point[k]
        expect(flipped.at(i) == layout.value(point)[0], f"flip of {layout}")
    expect(bool(integer.injective(layout)), f"injective({layout})")
    found = integer.right_inverse(layout)
    if isinstance(found, integer.RightInverse):
        box = [n for _, n in found.layout.inputs]
        for _ in range(SAMPLES):
            digits = [rng.randrange(n) for n in box]
            expect(layout.value(found.layout.value(digits)) == found.values.value(digits), f"right_inverse({layout})")
