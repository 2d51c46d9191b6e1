"""Layouts whose values are coordinates: strides are sums of basis elements."""

from __future__ import annotations

import itertools
import pickle
import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from layoutalg import cute
from layoutalg.cute import Basis, CoordinateLayout, E
from operations import tables
from operations.algebra import divided, inner_of, split_exists
from operations.record import answer, attempt, draws, expect, failed, operation, refusal
from operations.strided import Strided, strided
from operations.tables import fits, like, parts, size_of, unravel, values

PATHS = {(0, 0): [(0,), (1,)], (0, (0, 0)): [(0,), (1, 0), (1, 1)], 0: [()]}


@dataclass(frozen=True)
class Coordinates:
    """A layout with one table per leaf of its value."""

    layout: Any
    shape: Any
    strides: dict[tuple[int, ...], Any]
    profile: Any

    @property
    def columns(self) -> list[list[int]]:
        return [values(self.shape, stride) for stride in self.strides.values()]

    @property
    def size(self) -> int:
        return size_of(self.shape)


@draws("coordinate")
def draw(rng: random.Random) -> Coordinates:
    profile = rng.choice(((0, 0), (0, 0), (0, (0, 0))))
    paths = PATHS[profile]
    extents = tables.factors(rng.choice((1, 2, 4, 6, 8, 12, 16, 24)), rng)
    found: list[dict[tuple[int, ...], int]] = []
    weights = dict.fromkeys(paths, 1)
    for extent in extents:
        path = rng.choice(paths)
        step = {path: rng.choice((weights[path], weights[path], rng.randint(0, 4)))}
        weights[path] *= extent
        if rng.random() < 0.1:
            step[rng.choice(paths)] = rng.randint(1, 3)
        found.append(step)
    shape = tables.nested(extents, rng)
    flat = [Basis(tuple(sorted((path, scale) for path, scale in step.items() if scale))) for step in found]
    layout = CoordinateLayout(shape, like(shape, flat), profile)
    return Coordinates(layout, shape, {p: like(shape, [s.get(p, 0) for s in found]) for p in paths}, profile)


def columns(layout: Any) -> list[list[int]]:
    """One table per leaf of the value, from the strides."""
    flat = tables.leaves(layout.stride)
    paths = {0: [()], (0, 0): [(0,), (1,)], (0, (0, 0)): [(0,), (1, 0), (1, 1)]}.get(layout.profile)
    if paths is None:
        paths = list(_paths(layout.profile, ()))
    scales = [[dict(step.terms).get(path, 0) if step else 0 for step in flat] for path in paths]
    return [values(layout.shape, like(layout.shape, scale)) for scale in scales]


def _paths(profile: Any, path: tuple[int, ...]) -> list[tuple[int, ...]]:
    if not isinstance(profile, tuple):
        return [path]
    return [found for place, part in enumerate(profile) for found in _paths(part, (*path, place))]


def agree(found: Any, want: list[list[int]], what: object) -> None:
    got = columns(found)
    expect(got == want, f"{what} gave {found}: {got} for {want}")


@operation("coordinate", weight=2)
def evaluate(one: Coordinates, rng: random.Random) -> None:
    layout = one.layout
    index = rng.randrange(one.size)
    want = [column[index] for column in one.columns]
    nested = like(one.profile, want)
    coord = tables.any_coordinate(index, one.shape, rng)
    expect(layout(index) == nested == layout(coord), f"{layout} at {coord} is not {nested}")
    expect(list(layout.at(index)) == want, f"{layout}.at({index})")
    table = layout.table()
    expect(table.T.tolist() == one.columns, f"table of {layout}")
    picked = [rng.randrange(one.size) for _ in range(3)]
    expect(layout.apply(np.array(picked)).tolist() == [[c[i] for c in one.columns] for i in picked], "apply")
    expect([tables.read(part) for _, part in layout.components] == one.columns, "components")
    expect((layout.size, layout.rank) == (one.size, len(parts(one.shape))), "size")
    expect(layout.depth == tables.depth_of(one.shape) and len(layout.out_dims) == len(want), "depth, out_dims")
    expect(list(layout.in_dims.values()) == tables.leaves(one.shape), "in_dims")
    expect([n for n, _ in layout.flat] == tables.leaves(one.shape), "flat")


@operation("coordinate", weight=0.5)
def copies(one: Coordinates, rng: random.Random) -> None:
    names = {"CoordinateLayout": CoordinateLayout, "Basis": Basis, "E": E}
    for other in (pickle.loads(pickle.dumps(one.layout)), eval(repr(one.layout), names)):
        expect(other == one.layout and hash(other) == hash(one.layout), f"copy of {one.layout}")


@operation("coordinate", weight=0.5)
def basis(one: Coordinates, rng: random.Random) -> None:
    path, other = rng.sample(PATHS[0, (0, 0)], 2)
    a, b = rng.randint(-4, 4), rng.randint(-4, 4)
    total = E(*path) * a + E(*other) * b
    expect((total.scale(path), total.scale(other)) == (a, b), f"{a} E{path} + {b} E{other} = {total}")
    expect(total - E(*path) * a == E(*other) * b and total * 0 == Basis(), "difference, and times 0")


@operation("coordinate")
def coalesce(one: Coordinates, rng: random.Random) -> None:
    found = cute.coalesce(one.layout)
    agree(found, one.columns, "coalesce")
    flat = [(n, [dict(step.terms).get(p, 0) if step else 0 for p in one.strides]) for n, step in found.flat]
    merges = any([n * x for x in d] == e for (n, d), (_, e) in itertools.pairwise(flat))
    expect(not merges and (len(flat) == 1 or all(n > 1 for n, _ in flat)), f"coalesce of {one.layout} gave {found}")


@operation("coordinate")
def flatten(one: Coordinates, rng: random.Random) -> None:
    found = cute.flatten(one.layout)
    agree(found, one.columns, "flatten")
    expect(cute.unflatten(found, one.shape) == one.layout, "unflatten")
    count = len(parts(one.shape))
    end = rng.randint(1, count)
    agree(cute.group(one.layout, 0, end), one.columns, "group")
    chosen = rng.sample(range(count), rng.randint(1, count))
    shape = tuple(parts(one.shape)[k] for k in chosen)
    want = [values(shape, tuple(parts(stride)[k] for k in chosen)) for stride in one.strides.values()]
    agree(cute.select(one.layout, *chosen), want, f"select {chosen}")
    place = chosen[0]
    want = [values(parts(one.shape)[place], parts(stride)[place]) for stride in one.strides.values()]
    agree(one.layout[place], want, f"[{place}]")
    want = [values(parts(one.shape)[:end], parts(stride)[:end]) for stride in one.strides.values()]
    agree(cute.take(one.layout, 0, end), want, f"take {end}")


@operation("coordinate", weight=2)
def composition(one: Coordinates, rng: random.Random) -> None:
    inner = inner_of(Strided(None, one.shape, None, [0] * one.size), rng)
    inside = max(inner.table) < one.size
    want = [[column[i] for i in inner.table] for column in one.columns] if inside else []
    what = f"composition({one.layout}, {inner.layout})"
    found = attempt(cute.composition, one.layout, inner.layout)
    if failed(found):
        joint = inside and all(fits(inner.shape, column) for column in want) and together(inner.shape, want)
        raise refusal(found, joint, what)
    expect(inside, f"{what} gave {found}")
    agree(found, want, what)


def together(shape: Any, want: list[list[int]]) -> bool:
    """Whether one refinement of a shape serves all tables: weigh them so far apart that sums cannot mix."""
    reach = 1 + 2 * sum(max(map(abs, column)) for column in want) * size_of(shape)
    joint = [sum(value * reach**k for k, value in enumerate(row)) for row in zip(*want, strict=True)]
    return fits(shape, joint)


@operation("coordinate")
def read_at_coordinates(one: Coordinates, rng: random.Random) -> None:
    """A strided layout after a coordinate layout."""
    columns_ = one.columns
    if len(columns_) != 2 or one.profile != (0, 0):
        return
    extents = [1 + max(max(column), 0) + rng.choice((0, 0, 0, 1, -1)) for column in columns_]
    if min(extents) < 1:
        return
    stride = (rng.choice((1, extents[1], 3)), rng.choice((1, extents[0], 2)))
    outer = cute.CuteLayout(tuple(extents), stride)
    inside = all(0 <= v < n for column, n in zip(columns_, extents, strict=True) for v in column)
    want = [a * stride[0] + b * stride[1] for a, b in zip(*columns_, strict=True)]
    what = f"composition({outer}, {one.layout})"
    found = answer(cute.composition, outer, one.layout, exists=lambda: inside and fits(one.shape, want))
    expect(inside and tables.read(found) == want, f"{what} gave {found}")


@operation("coordinate")
def logical_divide(one: Coordinates, rng: random.Random) -> None:
    extent = rng.choice([n for n in range(1, one.size + 1) if one.size % n == 0])
    tile = Strided(None, extent, 1, list(range(extent)))
    reach = 1 + 2 * sum(max(map(abs, column)) for column in one.columns) * one.size
    joint = [sum(value * reach**k for k, value in enumerate(row)) for row in zip(*one.columns, strict=True)]
    cut = divided(joint, tile)
    exists = cut is not None and split_exists(joint, tile, cut[1])
    kind = rng.choice(("logical", "zipped", "tiled", "flat"))
    found = answer(getattr(cute, f"{kind}_divide"), one.layout, extent, exists=exists)
    agree(found, one.columns, f"{kind}_divide({one.layout}, {extent})")


@operation("coordinate")
def identity(one: Coordinates, rng: random.Random) -> None:
    shape = strided(rng, most=24).shape
    found = cute.make_identity_layout(shape)
    want = [tables.leaves(unravel(i, shape)) for i in range(size_of(shape))]
    agree(found, [list(column) for column in zip(*want, strict=True)], f"make_identity_layout({shape})")
    index = rng.randrange(len(want))
    expect(found(index) == unravel(index, shape), f"make_identity_layout({shape}) at {index}")


@operation("coordinate")
def right_inverse(one: Coordinates, rng: random.Random) -> None:
    """R from coordinates to indices: the layout after R is the identity on the box of R."""
    found = answer(cute.right_inverse, one.layout, exists=False)
    table = tables.read(found)
    box = tables.leaves(tuple(size_of(mode) for mode in tops(found.shape, one.profile)))
    for flat, index in enumerate(table):
        point, rest = [], flat
        for extent in box:
            rest, digit = divmod(rest, extent)
            point.append(digit)
        fine = 0 <= index < one.size and [column[index] for column in one.columns] == point
        expect(fine, f"right_inverse({one.layout}) = {found} at {point}")


def tops(shape: Any, profile: Any) -> list[Any]:
    """The modes of a shape at the leaves of a profile."""
    if not isinstance(profile, tuple):
        return [shape]
    return [mode for part, below in zip(shape, profile, strict=True) for mode in tops(part, below)]


@operation("coordinate", weight=0.5)
def inverse(one: Coordinates, rng: random.Random) -> None:
    """Values are coordinates, and no such layout is a bijection of a range."""
    found = attempt(one.layout.inverse)
    expect(failed(found), f"{one.layout}.inverse() gave {found}")
    raise refusal(found, False, "")
