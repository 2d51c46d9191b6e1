"""Hierarchical layouts: bijections between named boxes by digits, bits or tables, with guards or without."""

from __future__ import annotations

import math
import pickle
import random
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from layoutalg import hierarchy
from layoutalg.f2 import LinearLayout
from layoutalg.hierarchy import Box, DigitMap, Guard, HierarchicalLayout, TableMap
from operations import tables
from operations.record import answer, attempt, draws, expect, failed, operation

Extents = list[tuple[str, int]]
LEVELS = ("register", "lane", "warp", "cta", "cluster")


def digit_table(modes: list[tuple[int, Any]], flips: list[int]) -> list[int]:
    """Digits weighed by strides, reversed where negative; a tuple lists the target bits that a digit flips.

    A target bit that several digits reach, or that is 1 to begin with, is the xor of them.
    """
    shared = set(flips) | {w for _, d in modes if isinstance(d, tuple) for w in d}
    rows: list[tuple[int, frozenset[int]]] = [(0, frozenset(flips))]
    for extent, stride in modes:
        images: list[tuple[int, frozenset[int]]] = []
        for digit in range(extent):
            if isinstance(stride, tuple):
                images.append((0, frozenset(stride) if digit else frozenset()))
                continue
            left = digit if stride > 0 else extent - 1 - digit
            weight, count, plain, bits = abs(stride), extent, 0, set()
            while count % 2 == 0 and weight:
                if left & 1:
                    if weight in shared:
                        bits.add(weight)
                    else:
                        plain += weight
                left, count, weight = left >> 1, count >> 1, weight << 1
            images.append((plain + weight * left, frozenset(bits)))
        rows = [(value + more, bits ^ other) for more, other in images for value, bits in rows]
    return [value + sum(bits) for value, bits in rows]


def bijection(rng: random.Random, size: int) -> tuple[Any, list[int]]:
    """A map of the library and its table."""
    kind = rng.random()
    if kind < 0.3 and size & (size - 1) == 0 and size > 1:
        count = size.bit_length() - 1
        columns = [1 << k for k in rng.sample(range(count), count)]
        for _ in range(count):
            a, b = rng.randrange(count), rng.randrange(count)
            if a != b:
                columns[a] ^= columns[b]
        constant = rng.randrange(size)
        return DigitMap.from_bits(tuple(columns), constant), [tables.xored(columns, constant, i) for i in range(size)]
    if kind < 0.5:
        entries = rng.sample(range(size), size)
        return TableMap(tuple(entries)), entries
    extents = [n for n in tables.factors(size, rng, 0) if n > 1]
    strides, weight = [0] * len(extents), 1
    for place in rng.sample(range(len(extents)), len(extents)):
        strides[place] = weight * rng.choice((1, 1, 1, -1))
        weight *= extents[place]
    modes = list(zip(extents, strides, strict=True))
    return DigitMap(tuple(modes)), digit_table(modes, [])


def map_table(found: Any) -> list[int]:
    """The table of a map of the library, from its fields."""
    if isinstance(found, TableMap):
        return list(found.values)
    return digit_table(list(found.modes), list(found.flips))


def unflat(extents: list[int], index: int) -> list[int]:
    point = []
    for extent in extents:
        index, digit = divmod(index, extent)
        point.append(digit)
    return point


@dataclass(frozen=True)
class Mapped:
    """A layout with its boxes, the table of its map and its guards."""

    source: Extents
    target: Extents
    map: Any
    values: list[int]
    guards: list[tuple[Any, list[int], list[int], list[int]]]

    @cached_property
    def layout(self) -> HierarchicalLayout:
        guards = tuple(
            Guard(made, Box(tuple((f"g{k}", n) for k, n in enumerate(box))), tuple(bounds))
            for made, _, box, bounds in self.guards
        )
        return HierarchicalLayout(Box(tuple(self.source)), Box(tuple(self.target)), self.map, guards)

    def holds(self, index: int) -> bool:
        return all(
            all(x < bound for x, bound in zip(unflat(box, table[index]), bounds, strict=True))
            for _, table, box, bounds in self.guards
        )

    @cached_property
    def table(self) -> list[int]:
        return [value if self.holds(index) else -1 for index, value in enumerate(self.values)]


def named(rng: random.Random, size: int, name: str) -> Extents:
    return [(f"{name}{k}", n) for k, n in enumerate(tables.factors(size, rng))]


def drawn(rng: random.Random, size: int | None = None, guarded: float = 0.3, source: Extents | None = None) -> Mapped:
    size = size or rng.choice((1, 2, 4, 6, 8, 8, 12, 16, 16, 24, 32))
    made, values = bijection(rng, size)
    guards = []
    if rng.random() < guarded:
        inner, table = bijection(rng, size)
        box = tables.factors(size, rng)
        guards.append((inner, table, box, [rng.randint(max(n - 2, 0), n) for n in box]))
    return Mapped(source or named(rng, size, "s"), named(rng, size, "t"), made, values, guards)


@draws("hierarchical")
def draw(rng: random.Random) -> Mapped:
    return drawn(rng)


def read(found: Any) -> list[int]:
    """The table of an answer, from its fields."""
    table = map_table(found.map)
    for guard in found.guards:
        inner = map_table(guard.map)
        box = [n for _, n in guard.box.axes]
        for index in range(len(table)):
            if any(x >= bound for x, bound in zip(unflat(box, inner[index]), guard.bounds, strict=True)):
                table[index] = -1
    return table


def agree(found: Any, table: list[int], what: object) -> None:
    got = read(found)
    expect(got == table, f"{what} gave {found}, values {got[:24]} for {table[:24]}")


# ------------------------------------------------------------------------------------------------------------- values


@operation("hierarchical", weight=2)
def evaluate(one: Mapped, rng: random.Random) -> None:
    layout, table = one.layout, one.table
    expect(layout.table().tolist() == table, f"table of {layout}")
    index = rng.randrange(len(table))
    expect(layout.holds(index) == (table[index] >= 0), f"{layout}.holds({index})")
    expect(layout.active() == sum(v >= 0 for v in table), f"active of {layout}")
    picked = [rng.randrange(len(table)) for _ in range(4)]
    expect(layout.apply(np.array(picked)).tolist() == [table[i] for i in picked], f"apply of {layout}")
    point = dict(zip([n for n, _ in one.source], unflat([n for _, n in one.source], index), strict=True))
    expect(layout.source.flat(point) == index and layout.source.point(index) == point, "flat and point of the box")
    at = answer(layout.at, index, exists=lambda: table[index] >= 0)
    expect(at == table[index], f"{layout}.at({index}) = {at}")
    want = dict(zip([n for n, _ in one.target], unflat([n for _, n in one.target], at), strict=True))
    expect(layout(**point) == want == layout.apply(point), f"{layout} at {point}")


@operation("hierarchical", weight=0.7)
def measures(one: Mapped, rng: random.Random) -> None:
    layout = one.layout
    expect(layout.size == len(one.table) and layout.is_total == (not layout.guards), "size, is_total")
    expect(layout.in_dims == dict(one.source) and layout.out_dims == dict(one.target), "dims")
    expect(layout.is_identity == (not layout.guards and one.values == sorted(one.values)), f"is_identity of {layout}")
    box = layout.source
    expect(box.dims == dict(one.source) and box.names == tuple(n for n, _ in one.source), "box")
    expect(Box.of(**dict(one.source)) == box and box.size == len(one.table), "Box.of")
    weight = 1
    for name, extent in one.source:
        expect(box.stride(name) == weight, f"stride of {name}")
        weight *= extent
    expect(box.is_hierarchy == ([n for n, _ in one.source] == list(LEVELS)), "is_hierarchy")
    for guard, (_, table, sides, bounds) in zip(layout.guards, one.guards, strict=False):
        inside = [all(x < b for x, b in zip(unflat(sides, v), bounds, strict=True)) for v in table]
        expect(guard.count == sum(inside) == math.prod(bounds), f"count of {guard}")
        expect(guard.holds(np.arange(len(table))).tolist() == inside, f"holds of {guard}")
        expect(guard.holds_at(0) == inside[0], "holds_at")
    digits = layout.digits()
    if digits is not None and not any(isinstance(d, tuple) for axis in digits.values() for _, d in axis):
        modes = [mode for axis in digits.values() for mode in axis]
        expect(digit_table(modes, []) == one.values, f"digits of {layout}")


@operation("hierarchical")
def maps(one: Mapped, rng: random.Random) -> None:
    """The bijection by itself."""
    found = one.map
    index = rng.randrange(len(one.values))
    expect(found.at(index) == one.values[index] and found.table().tolist() == one.values, f"{found}")
    expect(found.apply(np.array([index, 0])).tolist() == [one.values[index], one.values[0]], f"apply of {found}")
    expect(found.size == len(one.values), "size")
    if isinstance(found, DigitMap):
        expect(found.offset == one.values[0], "offset")
        expect(map_table(DigitMap(found.pieces(), found.flips)) == one.values, f"pieces of {found}")
        plain = not any(isinstance(d, tuple) for _, d in found.modes)
        expect(found.is_plain == (plain and not found.flips), f"is_plain of {found}")
        columns = found.columns
        power = found.size & (found.size - 1) == 0
        if columns is not None:
            got = [tables.xored(columns, found.offset, i) for i in range(found.size)]
            expect(power and got == one.values, f"columns of {found}")


@operation("hierarchical", weight=0.5)
def copies(one: Mapped, rng: random.Random) -> None:
    layout = one.layout
    names = {
        "HierarchicalLayout": HierarchicalLayout,
        "Box": Box,
        "DigitMap": DigitMap,
        "TableMap": TableMap,
        "Guard": Guard,
    }
    for other in (pickle.loads(pickle.dumps(layout)), eval(repr(layout), names)):
        expect(other == layout and hash(other) == hash(layout), f"copy of {layout}")


# ---------------------------------------------------------------------------------------------------------- combining


@operation("hierarchical", weight=2)
def inverse(one: Mapped, rng: random.Random) -> None:
    found = one.layout.inverse()
    table = [-1] * len(one.table)
    for index, value in enumerate(one.table):
        if value >= 0:
            table[value] = index
    agree(found, table, f"inverse of {one.layout}")
    expect(found.source == one.layout.target and found.target == one.layout.source, "boxes")
    expect(~one.layout == found, "~")


@operation("hierarchical", weight=2)
def composition(one: Mapped, rng: random.Random) -> None:
    outer = drawn(rng, len(one.table), source=one.target)
    want = [outer.table[value] if value >= 0 else -1 for value in one.table]
    what = f"{outer.layout} @ {one.layout}"
    found = outer.layout @ one.layout
    agree(found, want, what)
    expect(found == one.layout.then(outer.layout), "then")
    expect(found.source == one.layout.source and found.target == outer.layout.target, "boxes")


@operation("hierarchical")
def solve_conversion(one: Mapped, rng: random.Random) -> None:
    """X with X @ before equal to after; guards must be the same."""
    other = drawn(rng, len(one.table), 0, one.source)
    other = Mapped(
        one.source, other.target, other.map, other.values, one.guards if rng.random() < 0.8 else other.guards
    )
    same = [v >= 0 for v in one.table] == [v >= 0 for v in other.table]
    found = answer(hierarchy.solve_conversion, one.layout, other.layout, exists=same and one.guards == other.guards)
    expect(same, f"solve_conversion({one.layout}, {other.layout}) gave {found}")
    table = read(found)
    want = [table[v] if v >= 0 else -1 for v in one.table]
    expect(want == other.table, f"solve_conversion({one.layout}, {other.layout}) gave {found}")


@operation("hierarchical", weight=2)
def boxes(one: Mapped, rng: random.Random) -> None:
    """reshape, permute, tile, restrict, reindex, hierarchy."""
    box = one.layout.source
    size = len(one.table)
    agree(hierarchy.reshape(box, one.layout.target), list(range(size)), "reshape")
    names = rng.sample([n for n, _ in one.source], len(one.source))
    extents = [n for _, n in one.source]
    found = hierarchy.permute(box, names)
    weights, weight = {}, 1
    for name in names:
        weights[name] = weight
        weight *= dict(one.source)[name]
    want = [sum(weights[n] * x for (n, _), x in zip(one.source, unflat(extents, i), strict=True)) for i in range(size)]
    agree(found, want, f"permute({box}, {names})")
    expect(list(found.target.names) == names, "permute")
    bounds = {n: rng.randint(0, e) for n, e in one.source if rng.random() < 0.5}
    limits = {n: rng.randint(0, e) for n, e in one.target if rng.random() < 0.3}
    tops = [n for _, n in one.target]
    want = []
    for i, v in enumerate(one.table):
        here = dict(zip([n for n, _ in one.source], unflat(extents, i), strict=True))
        there = dict(zip([n for n, _ in one.target], unflat(tops, one.values[i]), strict=True))
        kept = all(here[n] < b for n, b in bounds.items()) and all(there[n] < b for n, b in limits.items())
        want.append(v if kept else -1)
    agree(
        hierarchy.restrict(one.layout, source=bounds, target=limits),
        want,
        f"restrict({one.layout}, {bounds}, {limits})",
    )
    agree(hierarchy.reindex(box, one.values), one.values, "reindex")
    agree(hierarchy.reindex(box, lambda i: one.values[i]), one.values, "reindex")
    entries = list(one.values)
    if size > 1:
        entries[0] = entries[1]
        clash = attempt(hierarchy.reindex, box, entries)
        expect(failed(clash), f"reindex of {entries} gave {clash}")


@operation("hierarchical")
def tile(one: Mapped, rng: random.Random) -> None:
    """x = x_in + tile * x_out, rounded up to whole tiles and guarded to the real points."""
    extents = [(n, rng.randint(1, 6)) for n in ("a", "b")[: rng.randint(1, 2)]]
    tiles = {n: rng.randint(1, e) for n, e in extents if rng.random() < 0.8}
    box = Box(tuple(extents))
    found = hierarchy.tile(box, tiles)
    cut = [(n, tiles.get(n, e), -(-e // tiles.get(n, e))) for n, e in extents]
    expect(found.in_dims == {n: t * c for n, t, c in cut}, f"tile({box}, {tiles}) has the source {found.source}")
    weights, weight = {}, 1
    for end in ("_in", "_out"):
        for n, t, c in cut:
            weights[n + end] = weight
            weight *= t if end == "_in" else c
    expect(found.out_dims == {n + "_in": t for n, t, _ in cut} | {n + "_out": c for n, _, c in cut}, "tile")
    want = []
    for i in range(math.prod(t * c for _, t, c in cut)):
        point = unflat([t * c for _, t, c in cut], i)
        inside = all(x < e for x, (_, e) in zip(point, extents, strict=True))
        total = sum(
            x % t * weights[n + "_in"] + x // t * weights[n + "_out"] for x, (n, t, _) in zip(point, cut, strict=True)
        )
        want.append(total if inside else -1)
    agree(found, want, f"tile({box}, {tiles})")


# ------------------------------------------------------------------------------------------------------------- levels


def leveled(rng: random.Random) -> tuple[Any, list[int], list[int]]:
    """A bijection of a box of levels: the layout, its table and the extents."""
    extents = [rng.choice((1, 2, 2, 4)), rng.choice((2, 4, 3)), rng.choice((1, 2)), 1, 1]
    size = math.prod(extents)
    made, values = bijection(rng, size)
    box = hierarchy.hierarchy(**dict(zip(LEVELS, extents, strict=True)))
    return HierarchicalLayout(box, box, made), values, extents


@operation("hierarchical")
def distribute(one: Mapped, rng: random.Random) -> None:
    """Which element each register holds: the digits of an axis, register first, are its digits from fast to slow."""
    digits: dict[str, list[tuple[str, int]]] = {}
    extents = {"m": rng.randint(1, 8), "n": rng.randint(1, 6)}
    for level in LEVELS[:3]:
        digits[level] = [(rng.choice("mn"), rng.choice((1, 2, 2, 3))) for _ in range(rng.randint(0, 2))]
    covered = {axis: math.prod(n for each in digits.values() for a, n in each if a == axis) for axis in extents}
    for axis, extent in extents.items():
        if covered[axis] < extent:
            more = -(-extent // covered[axis])
            digits["warp"].append((axis, more))
            covered[axis] *= more
    found = hierarchy.distribute(Box(tuple(extents.items())), **digits)
    sizes = [math.prod(n for _, n in digits.get(level, [])) for level in LEVELS]
    expect(list(found.in_dims.values()) == sizes, f"the levels of {found}")
    want = []
    for index in range(math.prod(sizes)):
        point = dict.fromkeys(extents, 0)
        weight = dict.fromkeys(extents, 1)
        for level, x in zip(LEVELS, unflat(sizes, index), strict=True):
            for axis, n in digits.get(level, []):
                x, digit = divmod(x, n)
                point[axis] += weight[axis] * digit
                weight[axis] *= n
        inside = all(point[a] < e for a, e in extents.items())
        want.append(point["m"] + covered["m"] * point["n"] if inside else -1)
    expect(found.out_dims == covered, f"the target of {found}")
    agree(found, want, f"distribute({extents}, {digits})")


@operation("hierarchical", weight=2)
def kept_blocks(one: Mapped, rng: random.Random) -> None:
    """preserves_blocks at a cut, by looking at the blocks."""
    layout, values, extents = leveled(rng)
    cut = rng.choice(hierarchy.CUTS[:3])
    level = LEVELS.index(cut.split("|")[0]) + 1
    block = math.prod(extents[:level])
    lands = [{values[x + block * j] // block for x in range(block)} for j in range(len(values) // block)]
    kept = all(len(each) == 1 for each in lands)
    verdict = hierarchy.preserves_blocks(layout, cut)
    expect(bool(verdict) == kept, f"preserves_blocks({layout}, {cut}) = {verdict}")


def blocks(extents: list[int], level: int) -> int:
    """Points below the cut behind a level."""
    return math.prod(extents[: level + 1])


@operation("hierarchical")
def conversion_profile(one: Mapped, rng: random.Random) -> None:
    """Of two layouts of registers and lanes without copies: that of the map of places between them."""
    axes, count = [("register", rng.randrange(3)), ("lane", rng.randrange(4))], 0
    count = sum(bits for _, bits in axes)
    tables_, layouts = [], []
    for _ in range(2):
        columns = [1 << k for k in rng.sample(range(count), count)]
        for _ in range(count):
            a, b = rng.randrange(count), rng.randrange(count)
            if a != b:
                columns[a] ^= columns[b]
        layouts.append(LinearLayout(tuple(axes), (("x", count),), tuple(columns)))
        tables_.append([tables.xored(columns, 0, i) for i in range(1 << count)])
    found = hierarchy.conversion_profile(*layouts)
    block = 1 << axes[0][1]
    pairs = [(tables_[0].index(value) // block, i // block) for i, value in enumerate(tables_[1])]
    first = found.at("register|lane")
    expect(first.moved == sum(a != b for a, b in pairs), f"conversion_profile: {found}")
    feeds = {len({b for a, b in pairs if a == k}) for k in range(len(pairs) // block)}
    reads = {len({a for a, b in pairs if b == k}) for k in range(len(pairs) // block)}
    expect(set(first.fanout) == feeds and set(first.fanin) == reads, f"conversion_profile: {found}")
    expect(found.active == len(pairs), "active")


@operation("hierarchical", weight=2)
def profiles(one: Mapped, rng: random.Random) -> None:
    """profile_of and level_profile: values that move across each cut, and how many blocks a block feeds."""
    layout, values, extents = leveled(rng)
    found = hierarchy.profile_of(layout)
    identity = hierarchy.reshape(layout.source, layout.source)
    again = hierarchy.level_profile(layout, identity)
    expect(again == found, f"level_profile of {layout} differs from profile_of")
    for each in found.cuts:
        level = LEVELS.index(each.cut.split("|")[0]) + 1
        block = math.prod(extents[:level])
        pairs = [(i // block, v // block) for i, v in enumerate(values)]
        moved = sum(a != b for a, b in pairs)
        feeds = [len({b for a, b in pairs if a == k}) for k in range(len(values) // block)]
        fed = [len({a for a, b in pairs if b == k}) for k in range(len(values) // block)]
        expect(each.moved == moved and each.block == block, f"profile of {layout} at {each.cut}: {each}")
        expect(tuple(each.fanout) == (min(feeds), max(feeds)), f"profile of {layout} at {each.cut}: {each}, {feeds}")
        expect(tuple(each.fanin) == (min(fed), max(fed)), f"profile of {layout} at {each.cut}: {each}, {fed}")
        expect(found.at(each.cut) == each, "at")
    expect(found.active == len(values), "active")
    quiet = [each.moved == 0 for each in found.cuts] + [True]
    expect(hierarchy.MECHANISMS.index(found.mechanism) == quiet.index(True), f"mechanism of {found}")
    apart = [max(*each.fanout, *each.fanin) <= 1 for each in found.cuts] + [True]
    expect(hierarchy.MECHANISMS.index(found.intrinsic) == apart.index(True), f"intrinsic of {found}")
    reach = dict.fromkeys(hierarchy.MECHANISMS, 0)
    for index, value in enumerate(values):
        least = next((k for k in range(4) if index // blocks(extents, k) == value // blocks(extents, k)), 4)
        reach[hierarchy.MECHANISMS[least]] += 1
    expect(dict(found.traffic) == reach, f"traffic of {found}, not {reach}")


@operation("hierarchical")
def exchange_plan(one: Mapped, rng: random.Random) -> None:
    """The stages in a row are the conversion again."""
    layout, values, _extents = leveled(rng)
    found = answer(hierarchy.exchange_plan, layout, declined="LA756 LA758")
    at = list(range(len(values)))
    for stage in found.stages:
        table = map_table(stage)
        at = [table[i] for i in at]
    expect(at == values, f"exchange_plan({layout}) = {found}")
    for cut in hierarchy.CUTS:
        expect(len(found.leaving(cut)) == found.crossing(cut), "crossing")
        fed = math.prod(found.extents[place] for place in found.leaving(cut))
        expect(found.fanout(cut) == fed, f"fanout of {found}")
    expect(all(found.level_of(a) != found.level_of(b) for a, b in found.exchanged), "exchanged")
    expect(len(found.product) == len(found.first), "product")


@operation("hierarchical")
def crossing_ranks(one: Mapped, rng: random.Random) -> None:
    """Ranks of corner blocks, by the number of distinct values."""
    count = rng.randint(1, 5)
    columns = [1 << k for k in rng.sample(range(count), count)]
    for _ in range(count):
        a, b = rng.randrange(count), rng.randrange(count)
        if a != b:
            columns[a] ^= columns[b]
    first = rng.randint(0, count)
    levels = [first, rng.randint(0, count - first)]
    levels.append(count - sum(levels))
    found = hierarchy.crossing_ranks(DigitMap.from_bits(tuple(columns)), levels)
    marks = [levels[0], levels[0] + levels[1]]
    for i, above in enumerate(marks):
        for j, below in enumerate(marks):
            span = tables.spans([column >> above for column in columns[:below]])
            expect(1 << found[i][j] == len(span), f"crossing_ranks({columns}, {levels}) = {found}")
