"""Morphisms of nested tuples, padded or not: judged by where each digit goes and what it weighs there."""

from __future__ import annotations

import itertools
import math
import pickle
import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from layoutalg import cute
from layoutalg.cute import CuteLayout, Morphism
from operations import tables
from operations.record import answer, attempt, draws, expect, failed, operation, refusal
from operations.strided import steps
from operations.tables import leaves, like, nested, parts, size_of, values


@dataclass(frozen=True)
class Arrow:
    """A morphism with its fields as the judge drew them."""

    layout: Morphism
    domain: Any
    codomain: Any
    map: tuple[int | None, ...]
    pitch: Any

    @property
    def table(self) -> list[int]:
        return values(self.domain, like(self.domain, strides(self.codomain, self.map, self.pitch)))


def weights(codomain: Any, pitch: Any) -> list[int]:
    if pitch is not None:
        return leaves(pitch)
    found, weight = [], 1
    for extent in leaves(codomain):
        found.append(weight)
        weight *= extent
    return found


def strides(codomain: Any, images: tuple[int | None, ...], pitch: Any) -> list[int]:
    scale = weights(codomain, pitch)
    return [0 if place is None else scale[place] for place in images]


def offsets(found: Morphism) -> list[int]:
    """The table of an answer, from its fields."""
    return values(found.domain, like(found.domain, strides(found.codomain, found.map, found.pitch)))


def valid(found: Morphism) -> bool:
    """Extents are kept, and no two leaves meet away from the base point."""
    source, target = leaves(found.domain), leaves(found.codomain)
    hit = [place for place in found.map if place is not None]
    if len(hit) != len(set(hit)) or len(found.map) != len([n for n in source if n != ()]):
        return False
    return all(place is None or target[place] == n for n, place in zip(source, found.map, strict=True))


def drawn(rng: random.Random, codomain: list[int] | None = None, padded: float = 0.25) -> Arrow:
    target = codomain or [rng.choice((1, 2, 2, 3, 3, 4, 5)) for _ in range(rng.randint(1, 4))]
    order = rng.sample(range(len(target)), len(target))[: rng.randint(0, len(target))]
    whole = rng.random() < 0.3
    if whole:
        order = rng.sample(range(len(target)), len(target))
    flat: list[tuple[int, int | None]] = [(target[place], place) for place in order]
    if not flat or (not whole and rng.random() < 0.3):
        flat.insert(rng.randint(0, len(flat)), (rng.choice((1, 2, 3)), None))
    domain = nested([n for n, _ in flat], rng)
    shape = nested(target, rng)
    pitch = None
    if rng.random() < padded:
        found, reach = [], 0
        for extent in target:
            found.append(reach + 1 + rng.choice((0, 0, 1, 3)))
            reach += (extent - 1) * found[-1]
        pitch = like(shape, found)
    images = tuple(place for _, place in flat)
    return Arrow(Morphism(domain, shape, images, pitch), domain, shape, images, pitch)


@draws("morphism")
def draw(rng: random.Random) -> Arrow:
    return drawn(rng)


def same(found: Morphism, table: list[int], what: object) -> None:
    expect(valid(found), f"{what} gave {found}, which is no morphism")
    expect(offsets(found) == table, f"{what} gave {found}, offsets {offsets(found)[:30]} for {table[:30]}")


def after(outer: Arrow, inner: Arrow) -> list[int]:
    """The table of a composite of plain morphisms, digit by digit."""
    hit = [None if place is None else outer.map[place] for place in inner.map]
    return values(inner.domain, like(inner.domain, strides(outer.codomain, tuple(hit), outer.pitch)))


@operation("morphism", weight=2)
def evaluate(one: Arrow, rng: random.Random) -> None:
    f, table = one.layout, one.table
    index = rng.randrange(len(table))
    expect(f(index) == table[index] == f.at(index), f"{f} at {index}")
    expect(f.table().tolist() == table, f"table of {f}")
    expect(f.apply(np.array([index, 0])).tolist() == [table[index], table[0]], f"apply of {f}")
    tables.read(f.to_layout())
    expect(tables.read(f.to_layout()) == table and f.to_layout().shape == one.domain, f"to_layout of {f}")
    expect(tuple(leaves(f.strides)) == tuple(strides(one.codomain, one.map, one.pitch)), f"strides of {f}")
    expect(leaves(f.weights) == weights(one.codomain, one.pitch), f"weights of {f}")
    expect((f.size, f.rank) == (len(table), len(parts(one.domain))), f"size of {f}")
    expect(f.depth == tables.depth_of(one.domain) and f.shape == one.domain, f"depth of {f}")
    whole = None not in one.map and len(one.map) == len(leaves(one.codomain))
    expect(f.is_isomorphism == whole, f"is_isomorphism of {f}")
    expect(list(f.in_dims.values()) == leaves(one.domain) and list(f.out_dims) == ["offset"], f"dims of {f}")
    expect(f.base == Morphism(one.domain, one.codomain, one.map), f"base of {f}")


@operation("morphism", weight=2)
def carry(one: Arrow, rng: random.Random) -> None:
    """Where digits go, as nested coordinates too, and the least preimage of an offset."""
    f, table = one.layout, one.table
    index = rng.randrange(len(table))
    digits = leaves(tables.unravel(index, one.domain))
    image = [0] * len(leaves(one.codomain))
    for digit, place in zip(digits, one.map, strict=True):
        if place is not None:
            image[place] = digit
    expect(f.carry(tuple(digits)) == tuple(image), f"{f}.carry({digits})")
    if isinstance(one.domain, tuple):
        expect(f(tables.unravel(index, one.domain)) == like(one.codomain, image), f"{f} at a coordinate")
    top = sum((n - 1) * d for n, d in zip(leaves(one.codomain), weights(one.codomain, one.pitch), strict=True))
    offset = rng.randint(0, top)
    wanted = table.index(offset) if offset in table else None
    expect(f.preimage(offset) == wanted, f"{f}.preimage({offset}) = {f.preimage(offset)}")


@operation("morphism", weight=0.5)
def copies(one: Arrow, rng: random.Random) -> None:
    for other in (pickle.loads(pickle.dumps(one.layout)), eval(repr(one.layout), {"Morphism": Morphism})):
        expect(other == one.layout and hash(other) == hash(one.layout), f"copy of {one.layout}")
    expect(isinstance(one.layout.target(), str), "target")


@operation("morphism", weight=2)
def same_function(one: Arrow, rng: random.Random) -> None:
    """coalesce, squeeze, flatten, standard_form, padded, unpadded: the function of the flat index stays."""
    f, table = one.layout, one.table
    name = rng.choice(("coalesce", "squeeze", "flatten", "standard_form", "padded", "unpadded"))
    found = attempt(getattr(f, name))
    if failed(found):
        steps_ = strides(one.codomain, one.map, one.pitch)
        modes = sorted((d, n) for n, d in zip(leaves(one.domain), steps_, strict=True))
        moving = [(d, n) for d, n in modes if n > 1 and d]
        chain = all(e % (n * d) == 0 for (d, n), (e, _) in itertools.pairwise(moving))
        raise refusal(found, name != "unpadded" or chain, f"{name} of {f}")
    same(found, table, f"{name} of {f}")
    flat = list(zip(leaves(found.domain), leaves(found.strides), strict=True))
    if name == "coalesce":
        want = cute_coalesced(table)
        expect([(n, d) for n, d in flat if n > 1] == want, f"coalesce of {f} gave {found}")
    if name in ("squeeze", "coalesce"):
        expect(all(n > 1 for n, _ in flat) or found.domain == 1, f"{name} of {f} gave {found}")
        expect(tables.depth_of(found.domain) <= 1 >= tables.depth_of(found.codomain), f"{name} of {f} gave {found}")
    if name == "standard_form":
        hit = {place for place in found.map if place is not None}
        target = leaves(found.codomain)
        gaps = [place for place in range(len(target)) if place not in hit]
        expect(not target or len(target) - 1 in hit, f"standard form {found} has a leaf after the last that is hit")
        expect(all(b - a > 1 for a, b in itertools.pairwise(gaps)), f"standard form {found} has two gaps")
        expect(all(n > 1 for n in target), f"standard form {found} has an extent 1")
        expect(found.domain == one.domain and (one.pitch is None or not gaps), f"standard form {found}")
    if name == "padded":
        expect(found.pitch is not None, "padded has a pitch")
    if name == "unpadded":
        expect(found.pitch is None, "unpadded has none")
    if name == "flatten":
        expect((found.domain, found.codomain) == (tuple(leaves(one.domain)), tuple(leaves(one.codomain))), f"{found}")


def cute_coalesced(table: list[int]) -> list[tuple[int, int]]:
    """The one coalesced form of a strided table: cut where a step differs, at the greatest runs."""
    modes: list[tuple[int, int]] = []
    weight = 1
    while weight < len(table):
        step = table[weight]
        run = 1
        while True:  # as long as whole blocks continue
            wide = weight * (run + 1)
            if wide > len(table) or any(
                table[i] != table[i - weight * run] + run * step for i in range(weight * run, wide)
            ):
                break
            run += 1
        while len(table) % (weight * run):
            run -= 1
        modes.append((run, step))
        weight *= run
    return modes


@operation("morphism")
def sort(one: Arrow, rng: random.Random) -> None:
    f = one.layout
    found, order = f.sort(), f.sorting()
    expect(valid(found) and valid(order), f"sort of {f}")
    steps_ = [d for n, d in zip(leaves(found.domain), leaves(found.strides), strict=True) if n > 1]
    expect(steps_ == sorted(steps_), f"sort of {f} gave the strides {steps_}")
    expect(sorted(offsets(found)) == sorted(one.table) and found.codomain == one.codomain, f"sort of {f}")
    expect(sorted(offsets(order)) == list(range(len(one.table))), f"sorting of {f}")
    expect([one.table[i] for i in offsets(order)] == offsets(found), f"sort of {f} is not f after its sorting")


@operation("morphism")
def complement(one: Arrow, rng: random.Random) -> None:
    f = one.layout
    found = f.complement()
    expect(valid(found), f"complement of {f} gave {found}")
    full = values(one.codomain, like(one.codomain, weights(one.codomain, one.pitch)))
    moving = [
        (n, d)
        for n, place, d in zip(leaves(one.domain), one.map, strides(one.codomain, one.map, one.pitch), strict=True)
        if place is not None
    ]
    mine = values(tuple(n for n, _ in moving), tuple(d for _, d in moving))
    both = [a + b for a in mine for b in offsets(found)]
    expect(sorted(both) == sorted(full), f"complement of {f} gave {found}")
    expect(leaves(found.strides) == sorted(leaves(found.strides)) or one.pitch, f"complement of {f} gave {found}")


@operation("morphism", weight=2)
def inverses(one: Arrow, rng: random.Random) -> None:
    """transpose, left_inverse, right_inverse by digits; inverse by offsets."""
    f = one.layout
    name = rng.choice(("transpose", "left_inverse", "right_inverse", "inverse"))
    g = attempt(getattr(f, name))
    source, target = leaves(one.domain), leaves(one.codomain)
    hit = {place for place in one.map if place is not None}
    mapped, covered = None not in one.map, len(hit) == len(target)
    exists = {"transpose": True, "left_inverse": mapped, "right_inverse": covered}
    if name == "inverse":
        bijective = sorted(one.table) == list(range(len(one.table)))
        bijective = bijective and (one.pitch is not None or math.prod(target) == len(one.table))
        if failed(g):
            raise refusal(g, bijective, f"{f}.inverse()")
        expect(bijective, f"{f}.inverse() gave {g}")
        same(g, sorted(range(len(one.table)), key=lambda i: one.table[i]), f"inverse of {f}")
        expect(attempt(lambda: ~f) == g, "~")
        return
    if failed(g):
        raise refusal(g, exists[name], f"{f}.{name}()", "LA611" if one.pitch is not None else "")
    expect(valid(g) and (g.domain, g.codomain) == (one.codomain, one.domain), f"{name} of {f} gave {g}")
    x = leaves(tables.unravel(rng.randrange(math.prod(source)), one.domain))
    y = leaves(tables.unravel(rng.randrange(math.prod(target)), one.codomain))

    def go(images: tuple[int | None, ...], digits: Any, count: int) -> list[int]:
        moved = [0] * count
        for digit, place in zip(digits, images, strict=True):
            if place is not None:
                moved[place] = digit
        return moved

    fx, gy = go(one.map, x, len(target)), go(g.map, y, len(source))
    if name == "left_inverse":
        expect(mapped and go(g.map, fx, len(source)) == list(x), f"left_inverse of {f} gave {g}")
    elif name == "right_inverse":
        expect(covered and go(one.map, gy, len(target)) == list(y), f"right_inverse of {f} gave {g}")
    else:
        expect(go(one.map, go(g.map, fx, len(source)), len(target)) == fx, f"transpose of {f} gave {g}")
        expect(go(g.map, go(one.map, gy, len(target)), len(source)) == gy, f"transpose of {f} gave {g}")


@operation("morphism", weight=2)
def composition(one: Arrow, rng: random.Random) -> None:
    """Composites of matching morphisms."""
    inner = drawn(rng, leaves(one.domain), padded=0.1)
    inner = Arrow(
        Morphism(inner.domain, one.domain, inner.map, inner.pitch and like(one.domain, leaves(inner.pitch))),
        inner.domain,
        one.domain,
        inner.map,
        inner.pitch and like(one.domain, leaves(inner.pitch)),
    )
    what = f"{one.layout} @ {inner.layout}"
    found = answer(lambda: one.layout @ inner.layout, declined="LA611" if inner.pitch is not None else "", what=what)
    want = after(one, inner)
    same(found, want, what)
    expect(found == inner.layout.then(one.layout), "then")


@operation("morphism")
def weak_composite(one: Arrow, rng: random.Random) -> None:
    """Where the middle objects differ: any answer has the function |g| after |f|."""
    size = len(one.table)
    target = tables.factors(size, rng, 0)
    if rng.random() < 0.3:
        target = leaves(one.domain)
    inner = drawn(rng, target, padded=0)
    what = f"weak_composite({inner.layout}, {one.layout})"
    found = attempt(cute.weak_composite, inner.layout, one.layout, by_layout=rng.random() < 0.3)
    inside = max(inner.table) < size
    if failed(found):
        want = [one.table[i] for i in inner.table] if inside else [1]
        shaped = tables.fits(inner.domain, want)
        raise refusal(found, inside and shaped, what, "LA600 LA601 LA603 LA612 LA611")
    expect(inside, f"{what} gave {found}")
    same(found, [one.table[i] for i in inner.table], what)


@operation("morphism", weight=2)
def sums(one: Arrow, rng: random.Random) -> None:
    """sum, concat, restrict, factorize, extend, and modes by []."""
    f = one.layout
    name = rng.choice(("sum", "concat", "restrict", "factorize", "extend"))
    modes = parts(one.domain)
    if name == "sum":
        other = drawn(rng, padded=0.1)
        found = attempt(f.sum, other.layout)
        if failed(found):
            padded = one.pitch is not None or other.pitch is not None
            raise refusal(found, True, "sum", "LA611" if padded else "")
        shift = size_of(one.codomain)
        same(found, [a + shift * b for b in other.table for a in one.table], f"{f}.sum({other.layout})")
        return
    if name == "restrict":
        chosen = tuple(rng.sample(range(len(modes)), rng.randint(1, len(modes))))
        steps_ = like(one.domain, strides(one.codomain, one.map, one.pitch))
        want = values(tuple(modes[k] for k in chosen), tuple(parts(steps_)[k] for k in chosen))
        same(f.restrict(chosen), want, f"{f}.restrict({chosen})")
        place = chosen[0]
        same(f[place], values(modes[place], parts(steps_)[place]), f"{f}[{place}]")
        return
    if name == "extend":
        extent, known = rng.randint(1, 4), zip(leaves(one.codomain), weights(one.codomain, one.pitch), strict=True)
        reach = sum((n - 1) * d for n, d in known)
        pitch = reach + rng.randint(0, 3)
        found = answer(f.extend, extent, pitch, exists=pitch > reach)
        expect(pitch > reach or extent == 1, f"{f}.extend({extent}, {pitch}) gave {found}")
        same(found, one.table, f"{f}.extend({extent}, {pitch})")
        return
    if name == "concat":
        other = drawn(rng, leaves(one.codomain), padded=0)
        second = Morphism(other.domain, one.codomain, other.map, one.pitch)
        hit = {place for place in one.map if place is not None}
        apart = not hit & {place for place in other.map if place is not None}
        found = answer(f.concat, second, exists=apart, strict=True)
        same(found, [a + b for b in offsets(second) for a in one.table], f"{f}.concat({second})")
        return
    tops = parts(one.codomain)
    chosen = tuple(rng.sample(range(len(tops)), rng.randint(1, len(tops))))
    found = attempt(f.factorize, chosen)
    starts = [0]
    for mode in tops:
        starts.append(starts[-1] + len(leaves(mode)))
    kept = [leaf for k in chosen for leaf in range(starts[k], starts[k + 1])]
    inside = all(place is None or place in kept for place in one.map)
    if failed(found):
        raise refusal(found, inside, f"{f}.factorize({chosen})", "LA611" if one.pitch is not None else "")
    expect(inside, f"{f}.factorize({chosen}) gave {found}")
    want = tuple(None if place is None else kept.index(place) for place in one.map)
    expect((found.domain, found.map) == (one.domain, want), f"{f}.factorize({chosen}) gave {found}")
    expect(found.codomain == tuple(tops[k] for k in chosen), f"{f}.factorize({chosen}) gave {found}")


@operation("morphism")
def refinements(one: Arrow, rng: random.Random) -> None:
    """pullback over a refined codomain, pushforward over a refined domain: the function of the flat index stays."""
    pull = rng.random() < 0.5
    rough = one.codomain if pull else one.domain
    fine = like(rough, [n if rng.random() < 0.5 else nested(tables.factors(n, rng, 0), rng) for n in leaves(rough)])
    call = one.layout.pullback if pull else one.layout.pushforward
    what = f"{call.__name__} of {one.layout} over {fine}"
    found = answer(call, fine)
    expect((found.codomain if pull else found.domain) == fine, f"{what} gave {found}")
    same(found, one.table, what)


@operation("morphism", weight=2)
def divisions(one: Arrow, rng: random.Random) -> None:
    """logical and flat divide and product, by the definition in terms of complements."""
    f = one.layout
    name = rng.choice(("logical_divide", "flat_divide", "logical_product", "flat_product"))
    hit = {place for place in one.map if place is not None}
    target = leaves(one.codomain)
    middle = leaves(one.domain) if "divide" in name else [n for k, n in enumerate(target) if k not in hit]
    if not middle:
        middle = [1]
    inner = drawn(rng, middle, padded=0)
    shape = one.domain if "divide" in name else f.complement().domain
    if sorted(leaves(shape)) != sorted(middle) or len(leaves(shape)) != len(middle):
        return
    tiler = Morphism(inner.domain, shape, inner.map)
    what = f"{name} of {f} by {tiler}"
    found = answer(getattr(f, name), tiler)
    if "divide" in name:
        taken = {place for place in inner.map if place is not None}
        rest = [k for k in range(len(middle)) if k not in taken]
        steps_ = strides(one.codomain, one.map, one.pitch)
        tile = values(inner.domain, like(inner.domain, [0 if k is None else steps_[k] for k in inner.map]))
        across = values(tuple(middle[k] for k in rest), tuple(steps_[k] for k in rest))
    else:
        free = [k for k in range(len(target)) if k not in hit]
        scale = weights(one.codomain, one.pitch)
        tile = one.table
        across = values(inner.domain, like(inner.domain, [0 if k is None else scale[free[k]] for k in inner.map]))
    same(found, [a + b for b in across for a in tile], what)
    if "flat" in name:
        expect(tables.depth_of(found.domain) <= 1, f"{what} gave {found}")


@operation("morphism")
def from_layout(one: Arrow, rng: random.Random) -> None:
    extents = tables.factors(rng.choice((1, 4, 6, 8, 12, 16, 24)), rng)
    found = steps(extents, rng)
    shape = nested(extents, rng)
    layout = CuteLayout(shape, like(shape, found))
    moving = sorted((d, n) for n, d in zip(extents, found, strict=True) if n > 1 and d)
    positive = all(d > 0 for d, _ in moving)
    chain = positive and all(e % (n * d) == 0 for (d, n), (e, _) in itertools.pairwise(moving))
    reach, apart = 0, positive
    for step, extent in moving:
        apart = apart and step > reach
        reach += (extent - 1) * step
    padded = rng.random() < 0.5
    made = answer(Morphism.from_layout, layout, padded=padded, exists=apart if padded else chain, strict=True)
    same(made, values(layout.shape, layout.stride), f"from_layout({layout})")
    expect((made.pitch is not None) == padded, f"from_layout({layout}, padded={padded}) gave {made}")


@operation("morphism", weight=0.5)
def plain_ones(one: Arrow, rng: random.Random) -> None:
    """identity, reshape, inclusion."""
    shape = one.codomain
    same(Morphism.identity(shape), list(range(size_of(shape))), "identity")
    other = nested(leaves(shape), rng)
    same(Morphism.reshape(shape, other), list(range(size_of(shape))), "reshape")
    modes = parts(shape)
    chosen = tuple(rng.sample(range(len(modes)), rng.randint(1, len(modes))))
    scale = like(shape, weights(shape, None))
    want = values(tuple(modes[k] for k in chosen), tuple(parts(scale)[k] for k in chosen))
    same(Morphism.inclusion(shape, chosen), want, f"inclusion({shape}, {chosen})")
