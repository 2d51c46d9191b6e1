"""Strided layouts: drawing them, and the operations that look at them or rearrange their modes."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from layoutalg import cute
from layoutalg.cute import CuteLayout
from operations import tables
from operations.record import answer, attempt, draws, expect, failed, operation, refusal
from operations.tables import leaves, like, parts, ravel, size_of, unravel, values

SIZES = (1, 2, 2, 3, 4, 4, 5, 6, 6, 7, 8, 8, 8, 9, 10, 12, 12, 15, 16, 16, 16, 18, 20, 24, 24, 30, 32, 36, 48, 64)


@dataclass(frozen=True)
class Strided:
    """A layout with what the judge knows of it."""

    layout: Any
    shape: Any
    stride: Any
    table: list[int]

    @property
    def modes(self) -> list[tuple[int, int]]:
        return list(zip(leaves(self.shape), leaves(self.stride), strict=True))

    @property
    def size(self) -> int:
        return len(self.table)

    def under(self, table: list[int]) -> list[int]:
        """A table of the modes as it looks through what lies over them: nothing."""
        return table

    @property
    def base(self) -> list[int]:
        """The table of the modes alone."""
        return self.table

    @property
    def moving(self) -> list[tuple[int, int]]:
        """The modes that move something."""
        return [(n, d) for n, d in self.modes if n > 1 and d]


def steps(extents: list[int], rng: random.Random) -> list[int]:
    """Strides: compact in some order, padded, repeated, backwards, or any."""
    kind = rng.random()
    if kind < 0.55:
        found, weight = [0] * len(extents), rng.choice((1, 1, 1, 2, 3, 4))
        order = range(len(extents)) if rng.random() < 0.4 else rng.sample(range(len(extents)), len(extents))
        for place in order:
            found[place] = weight
            weight = weight * extents[place] * rng.choice((1, 1, 1, 1, 1, 2, 3)) + rng.choice((0, 0, 0, 0, 0, 1, 8))
        repeated = rng.random() < 0.15
        return [0 if repeated and rng.random() < 0.4 else step for step in found]
    if kind < 0.75:
        return [rng.choice((0, 1, 2, 4, 8, 16, 3, 12)) for _ in extents]
    low = -9 if kind > 0.9 else 0
    return [rng.randint(low, 20) for _ in extents]


def strided(rng: random.Random, size: int | None = None, most: int = 64, positive: bool = False) -> Strided:
    """A random layout, of a size where one is given."""
    if size is None:
        size = rng.choice([n for n in SIZES if n <= most])
    extents = tables.factors(size, rng)
    found = steps(extents, rng)
    if positive:
        found = [abs(step) for step in found]
    shape = tables.nested(extents, rng)
    stride = like(shape, found)
    return Strided(CuteLayout(shape, stride), shape, stride, values(shape, stride))


@draws("cute")
def draw(rng: random.Random) -> Strided:
    return strided(rng)


def same(found: Any, table: list[int], what: object = "") -> None:
    """An answer has a table."""
    got = tables.read(found)
    expect(got == table, f"{what} gave {found}, values {got[:40]} for {list(table)[:40]}")


def congruent(found: Any, shape: Any, what: object) -> None:
    expect(tables.bottom(found).shape == shape, f"{what} gave the shape {found}, not {shape}")


# ---------------------------------------------------------------------------------------------------------- values


@operation("cute", "composed", weight=2)
def evaluate(one: Strided, rng: random.Random) -> None:
    layout = one.layout
    index = rng.randrange(one.size)
    want = one.table[index]
    coord = tables.any_coordinate(index, one.shape, rng)
    expect(layout(index) == want == layout.at(index), f"{layout} at {index}")
    expect(layout.is_total and bool(layout.stages) == (layout.base != layout), f"the stages of {layout}")
    expect(layout(coord) == want, f"{layout} at {coord}")
    if isinstance(coord, tuple):
        expect(layout(*coord) == want, f"{layout} at {coord}")


@operation("cute", "composed", weight=2)
def evaluate_arrays(one: Strided, rng: random.Random) -> None:
    layout = one.layout
    expect(layout.table().tolist() == one.table, f"table of {layout}")
    picked = [rng.randrange(one.size) for _ in range(rng.choice((1, 4, 6)))]
    want = [one.table[i] for i in picked]
    kind = rng.choice((np.int64, np.int32, np.uint16))
    expect(layout.apply(np.array(picked, dtype=kind)).tolist() == want, f"apply of {layout}")
    columns = []
    rest = np.array(picked)
    for mode in parts(one.shape):
        columns.append(rest % size_of(mode))
        rest = rest // size_of(mode)
    if isinstance(one.shape, tuple):
        expect(layout.apply(tuple(columns)).tolist() == want, f"apply of {layout} by modes")
    digits, rest = [], np.array(picked)
    for extent in leaves(one.shape):
        digits.append(rest % extent)
        rest = rest // extent
    named = layout.apply(dict(zip(layout.in_dims, digits, strict=True)))
    expect(list(named) == ["offset"] and named["offset"].tolist() == want, f"apply of {layout} by names")


@operation("cute", "composed")
def outside(one: Strided, rng: random.Random) -> None:
    """A coordinate outside is refused."""
    index = rng.choice((-1, one.size, one.size + rng.randrange(9), -rng.randint(1, 50)))
    answer = attempt(rng.choice((one.layout, one.layout.at)), index)
    expect(failed(answer), f"{one.layout} at {index} gave {answer}")
    raise refusal(answer, False, "")


@operation("cute", weight=0.5)
def measures(one: Strided, rng: random.Random) -> None:
    layout, shape = one.layout, one.shape
    expect(layout.size == cute.size(layout) == cute.size(shape) == one.size, "size")
    expect(layout.rank == cute.rank(layout) == cute.rank(shape) == len(parts(shape)), "rank")
    expect(layout.depth == cute.depth(layout) == cute.depth(shape) == tables.depth_of(shape), f"depth of {shape}")
    expect(layout.cosize == cute.cosize(layout) == 1 + max(one.table) - min(one.table), "cosize")
    expect(layout.flat == tuple(one.modes), "flat")
    expect(list(layout.in_dims.values()) == leaves(shape), "in_dims")
    expect(list(layout.out_dims) == ["offset"], "out_dims")
    expect(cute.product_each(shape) == tuple(size_of(mode) for mode in parts(shape)), "product_each")


@operation("cute", weight=0.5)
def copies(one: Strided, rng: random.Random) -> None:
    layout = one.layout
    made = {"CuteLayout": CuteLayout}
    for other in (pickle.loads(pickle.dumps(layout)), copy.copy(layout), eval(repr(layout), made)):
        expect(other == layout and hash(other) == hash(layout), f"copy of {layout}")
    expect(cute.make_layout(one.shape, one.stride) == layout, "make_layout")
    compact = cute.make_layout(one.shape)
    same(compact, list(range(one.size)), "make_layout of a shape")


# ------------------------------------------------------------------------------------------------------- rearranging


def is_coalesced(modes: list[tuple[int, int]]) -> bool:
    if modes == [(1, 0)]:
        return True
    return all(n > 1 for n, _ in modes) and all(d * n != e for (n, d), (_, e) in itertools.pairwise(modes))


@operation("cute", "composed", weight=2)
def coalesce(one: Strided, rng: random.Random) -> None:
    found = cute.coalesce(one.layout)
    same(found, one.table, "coalesce")
    expect(found.depth <= 1 and is_coalesced(list(tables.bottom(found).flat)), f"coalesce of {one.layout} gave {found}")


@operation("cute", "composed")
def coalesce_by_mode(one: Strided, rng: random.Random) -> None:
    if not isinstance(one.shape, tuple):
        return
    found = cute.coalesce(one.layout, tuple(rng.randrange(9) for _ in one.shape))
    expect(found.rank == len(one.shape), "coalesce by mode keeps the rank")
    for place, (shape, stride) in enumerate(zip(one.shape, one.stride, strict=True)):
        same(found[place], one.under(values(shape, stride)), "coalesce by mode")
        expect(
            is_coalesced(list(tables.bottom(found)[place].flat)),
            f"coalesce of mode {place} of {one.layout} gave {found}",
        )


@operation("cute", "composed")
def flatten(one: Strided, rng: random.Random) -> None:
    found = cute.flatten(one.layout)
    flat = tuple(leaves(one.shape)) if isinstance(one.shape, tuple) else one.shape
    congruent(found, flat, "flatten")
    same(found, one.table, "flatten")
    back = cute.unflatten(found, one.shape)
    expect(back == one.layout, f"unflatten of {found} by {one.shape} gave {back}")


@operation("cute", "composed")
def group(one: Strided, rng: random.Random) -> None:
    modes = parts(one.shape)
    begin, end = sorted((rng.randint(0, len(modes)), rng.randint(0, len(modes) + rng.choice((0, 0, 0, 1)))))
    fine = begin < end <= len(modes)
    found = answer(cute.group, one.layout, begin, end, exists=fine)
    if fine:
        congruent(found, (*modes[:begin], modes[begin:end], *modes[end:]), f"group {begin} {end}")
    same(found, one.table, "group")


@operation("cute", "composed")
def select(one: Strided, rng: random.Random) -> None:
    count = len(parts(one.shape))
    chosen = [rng.randrange(count) for _ in range(rng.randint(1, count))]
    chosen = list(dict.fromkeys(chosen))
    found = cute.select(one.layout, *chosen)
    shape = tuple(parts(one.shape)[k] for k in chosen)
    congruent(found, shape, f"select {chosen}")
    same(found, one.under(values(shape, tuple(parts(one.stride)[k] for k in chosen))), "select")
    first = chosen[0]
    same(one.layout[first], one.under(values(parts(one.shape)[first], parts(one.stride)[first])), "[]")


@operation("cute", "composed")
def take(one: Strided, rng: random.Random) -> None:
    modes = parts(one.shape)
    begin, end = sorted((rng.randint(0, len(modes)), rng.randint(0, len(modes) + rng.choice((0, 0, 0, 1)))))
    found = answer(cute.take, one.layout, begin, end, exists=lambda: begin < end <= len(modes))
    congruent(found, modes[begin:end], f"take {begin} {end}")
    same(found, one.under(values(modes[begin:end], parts(one.stride)[begin:end])), "take")


@operation("cute", "composed")
def append(one: Strided, rng: random.Random) -> None:
    other = strided(rng, most=8)
    modes, count = parts(one.shape), len(parts(one.shape))
    rank = rng.choice((None, None, count - 1, count, count + 1, count + 2))
    given = rng.choice((None, other.layout))
    shape, stride = (1, 0) if given is None else (other.shape, other.stride)
    times = 1 if rank is None else rank - count
    before = rng.random() < 0.5
    found = answer(cute.prepend if before else cute.append, one.layout, given, rank, exists=times >= 0, strict=True)
    if not times:
        expect(found == one.layout, "append to the rank that is there")
        return
    shapes, strides = (shape,) * times, (stride,) * times
    shapes = (*shapes, *modes) if before else (*modes, *shapes)
    strides = (*strides, *parts(one.stride)) if before else (*parts(one.stride), *strides)
    congruent(found, shapes, f"append {given} {rank}")
    same(found, one.under(values(shapes, strides)), "append")


@operation("cute", "composed")
def replace(one: Strided, rng: random.Random) -> None:
    other = strided(rng, most=8)
    place = rng.randrange(len(parts(one.shape)))
    found = cute.replace(one.layout, place, other.layout)
    shape, stride = list(parts(one.shape)), list(parts(one.stride))
    shape[place], stride[place] = other.shape, other.stride
    same(found, one.under(values(tuple(shape), tuple(stride))), f"replace({one.layout}, {place}, {other.layout})")


@operation("cute")
def make_layout(one: Strided, rng: random.Random) -> None:
    others = [strided(rng, most=6) for _ in range(rng.randint(1, 2))]
    found = cute.make_layout(one.layout, *[other.layout for other in others])
    shape = tuple(other.shape for other in (one, *others))
    congruent(found, shape, "make_layout")
    same(found, values(shape, tuple(other.stride for other in (one, *others))), "make_layout")


@operation("cute", "composed")
def filter_zeros(one: Strided, rng: random.Random) -> None:
    found = cute.filter_zeros(one.layout)
    shape = like(one.shape, [n if d or not n else 1 for n, d in one.modes])
    congruent(found, shape, "filter_zeros")
    expect(tables.bottom(found).stride == one.stride, "filter_zeros keeps the strides")
    short = cute.filter(one.layout)
    same(short, one.under(values(*zip(*one.moving, strict=True)) if one.moving else [0]), "filter")
    expect(is_coalesced(list(tables.bottom(short).flat)), f"filter of {one.layout} gave {short}")


@operation("cute", "composed")
def make_layout_like(one: Strided, rng: random.Random) -> None:
    found = cute.make_layout_like(one.layout)
    congruent(found, one.shape, "make_layout_like")
    order = sorted(
        [k for k, (_, d) in enumerate(one.modes) if d], key=lambda k: (abs(one.modes[k][1]), one.modes[k][0] > 1, k)
    )
    wanted, weight = [0] * len(one.modes), 1
    for place in order:
        wanted[place] = weight
        weight *= one.modes[place][0]
    expect(values(one.shape, like(one.shape, wanted)) == tables.read(found), f"make_layout_like({one.layout}): {found}")


@operation("cute")
def make_ordered_layout(one: Strided, rng: random.Random) -> None:
    modes = parts(one.shape)
    order = tuple(rng.sample(range(9), len(modes)))
    if rng.random() < 0.1:
        order = tuple(range(len(modes)))
        found = cute.make_ordered_layout(one.shape)
    else:
        found = cute.make_ordered_layout(one.shape, order if isinstance(one.shape, tuple) else order[0])
    ranked = sorted(range(len(modes)), key=lambda k: order[k])
    wanted: list[Any] = [None] * len(modes)
    weight = 1
    for place in ranked:
        flat = []
        for extent in leaves(modes[place]):
            flat.append(weight)
            weight *= extent
        wanted[place] = like(modes[place], flat)
    congruent(found, one.shape, "make_ordered_layout")
    same(found, values(one.shape, tuple(wanted)), f"make_ordered_layout({one.shape}, {order})")


# ------------------------------------------------------------------------------------------------- shapes, coordinates


@operation("cute")
def coordinates(one: Strided, rng: random.Random) -> None:
    index = rng.randrange(one.size)
    natural = unravel(index, one.shape)
    expect(cute.idx2crd(index, one.shape) == natural, f"idx2crd({index}, {one.shape})")
    coord = tables.any_coordinate(index, one.shape, rng)
    expect(cute.crd2idx(coord, one.shape) == index == ravel(coord, one.shape), f"crd2idx({coord}, {one.shape})")
    expect(cute.crd2idx(coord, one.shape, one.stride) == one.table[index], "crd2idx with strides")
    other = tables.nested(tables.factors(one.size, rng), rng)
    expect(cute.crd2crd(coord, one.shape, other) == unravel(index, other), f"crd2crd({coord}, {one.shape}, {other})")
    answer = attempt(cute.idx2crd, one.size + rng.randrange(3), one.shape)
    expect(failed(answer), f"idx2crd past the end of {one.shape}")


def steps_to_cover(shape: Any, divisor: Any) -> Any:
    """ceil_div as its sentence says it."""
    if isinstance(shape, int) and isinstance(divisor, int):
        return -(-shape // divisor)
    if isinstance(divisor, int):
        found = []
        for mode in shape:
            found.append(steps_to_cover(mode, divisor))
            divisor = -(-divisor // size_of(mode)) if size_of(mode) else divisor
        return tuple(found)
    rest = tuple(steps_to_cover(mode, part) for mode, part in zip(shape, divisor, strict=False))
    return (*rest, *shape[len(divisor) :])


@operation("cute")
def shapes(one: Strided, rng: random.Random) -> None:
    shape = one.shape
    coarse = size_of(shape) if rng.random() < 0.3 else shape
    if isinstance(shape, tuple) and rng.random() < 0.5:
        coarse = tuple(size_of(mode) if rng.random() < 0.6 else mode for mode in shape)
    if rng.random() < 0.4:
        coarse = tables.nested(tables.factors(one.size, rng), rng)

    def refines(rough: Any, fine: Any) -> bool:
        if not isinstance(rough, tuple):
            return bool(rough == size_of(fine))
        if not isinstance(fine, tuple) or len(rough) != len(fine):
            return False
        return all(refines(a, b) for a, b in zip(rough, fine, strict=True))

    expect(cute.compatible(coarse, shape) == refines(coarse, shape), f"compatible({coarse}, {shape})")
    flat = tuple(leaves(shape))
    divisor: Any = rng.randint(1, 9)
    if rng.random() < 0.5:
        divisor = tuple(rng.randint(1, 5) for _ in range(rng.randint(1, len(flat))))
    expect(cute.ceil_div(flat, divisor) == steps_to_cover(flat, divisor), f"ceil_div({flat}, {divisor})")


@operation("cute")
def mutual_refinement(one: Strided, rng: random.Random) -> None:
    """Cut points of both shapes together; refused where a cut does not divide the next."""
    other = tables.nested(tables.factors(rng.choice((one.size, one.size, rng.choice(SIZES))), rng), rng)
    found = attempt(cute.mutual_refinement, one.shape, other)

    def cuts(shape: Any) -> list[int]:
        marks, weight = [1], 1
        for extent in leaves(shape):
            weight *= extent
            marks.append(weight)
        return marks

    least = min(size_of(one.shape), size_of(other))
    most_marks = max((cuts(one.shape), cuts(other)), key=lambda marks: marks[-1])
    inner = sorted({mark for mark in (*cuts(one.shape), *cuts(other)) if mark <= least} | {1})
    exists = all(b % a == 0 for a, b in itertools.pairwise(inner))
    beyond = [mark for mark in most_marks if mark > least]
    exists = exists and (not beyond or beyond[0] % least == 0)
    if failed(found):
        raise refusal(found, exists, f"mutual_refinement({one.shape}, {other})")
    expect(exists, f"mutual_refinement({one.shape}, {other}) gave {found}")
    sides = [[n for n in leaves(side) if n != ()] for side in (found.first, found.second)]
    short, long = sorted(sides, key=len)
    expect(long[: len(short)] == short, f"the flattenings of {found}")
    marks = [1]
    for extent in short:
        marks.append(marks[-1] * extent)
    expect(sorted(set(marks)) == inner, f"the cuts of {found} for {one.shape} and {other}")
    for rough, fine in ((one.shape, found.first), (other, found.second)):
        rebuilt = [math.prod(leaf for leaf in leaves(fine) if leaf != ())]
        expect(rebuilt[0] == size_of(rough), f"the size of {fine}")


@operation("cute", weight=0.5)
def find_isomorphism(one: Strided, rng: random.Random) -> None:
    flat = leaves(one.shape)
    other = rng.sample(flat, len(flat))
    if rng.random() < 0.3:
        other[rng.randrange(len(other))] += 1
    second = tables.nested(other, rng)
    found = cute.find_isomorphism(one.shape, second)
    expect((found is None) == (sorted(flat) != sorted(other)), f"find_isomorphism({one.shape}, {second}) = {found}")
    if found is not None:
        expect(sorted(found.to_layout().table().tolist()) == list(range(one.size)), "no bijection")


@operation("cute", weight=0.5)
def is_tractable(one: Strided, rng: random.Random) -> None:
    found = cute.is_tractable(one.layout)
    modes = sorted(one.moving, key=lambda mode: mode[1])
    chain = all(d > 0 for _, d in modes)
    chain = chain and all(e % (n * d) == 0 for (n, d), (_, e) in itertools.pairwise(modes))
    expect((found.kind == "tractable") == chain == (found.morphism is not None), f"is_tractable({one.layout})")
    if found.morphism is not None:
        same(found.morphism.to_layout(), one.table, "the morphism")


@operation("cute")
def domain_distribute(one: Strided, rng: random.Random) -> None:
    count = rng.choice((rng.randint(1, one.size + 2), rng.choice(list(range(1, one.size + 1)))))
    flat = tuple(leaves(one.shape))
    found = answer(cute.domain_distribute, flat, count, exists=one.size % count == 0, strict=True)
    want, weight, left = [0], 1, count
    for extent in flat:
        part = math.gcd(extent, left)
        want = [value + weight * digit for digit in range(part) for value in want]
        weight, left = weight * extent, left // part
    same(found, want, f"domain_distribute({flat}, {count})")
