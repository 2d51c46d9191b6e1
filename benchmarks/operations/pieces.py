"""Piecewise layouts, total and with a parameter, and sets of points: judged by plain functions of drawn texts.

Implementation notes: every text is drawn together with Python functions that mean the same; answers are read by islpy
from their text, not by the library's own reader.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from layoutalg import piecewise
from layoutalg.piecewise import PiecewiseLayout, PointSet
from operations.record import answer, attempt, draws, expect, failed, operation, refusal

Point = tuple[int, ...]
Table = dict[Point, Point]
Env = dict[str, int]
Form = tuple[str, Callable[[Env], int]]
Condition = tuple[str, Callable[[Env], bool]]
GREATEST = 5
"""Largest value of the parameter."""


def form(rng: random.Random, names: list[str]) -> Form:
    """An affine form, or one with a floor or a residue."""
    factors = [rng.choice((0, 1, 1, 2, 3, -1)) for _ in names]
    constant = rng.choice((0, 0, 1, 4, -2))
    text = " + ".join([*(f"{a}{n}" for a, n in zip(factors, names, strict=True)), str(constant)])

    def plain(env: Env) -> int:
        return sum(a * env[n] for a, n in zip(factors, names, strict=True)) + constant

    kind, d = rng.random(), rng.choice((2, 3, 4, 7))
    if kind < 0.6:
        return text, plain
    if kind < 0.8:
        return f"floor(({text})/{d})", lambda env: plain(env) // d
    return f"({text}) mod {d}", lambda env: plain(env) % d


def condition(rng: random.Random, names: list[str]) -> tuple[Condition, Condition]:
    """A condition and its negation."""
    name, k = rng.choice(names), rng.randint(0, 4)
    if rng.random() < 0.3:
        text, value = form(rng, names)
        return (f"{text} >= {k}", lambda env: value(env) >= k), (f"{text} < {k}", lambda env: value(env) < k)
    if rng.random() < 0.4:
        d = rng.choice((2, 3))
        return (f"{name} mod {d} = 0", lambda env: env[name] % d == 0), (
            f"{name} mod {d} != 0",
            lambda env: env[name] % d != 0,
        )
    return (f"{name} < {k}", lambda env: env[name] < k), (f"{name} >= {k}", lambda env: env[name] >= k)


@dataclass(frozen=True)
class Pieces:
    """A text, and what it means: inside which conditions which forms hold."""

    axes: list[str]
    extents: list[int | str]
    guards: list[Condition]
    values: list[tuple[Condition | None, list[Form]]]
    params: list[str]

    @cached_property
    def text(self) -> str:
        point = f"[{', '.join(self.axes)}]"
        box = [f"0 <= {n} < {e}" for n, e in zip(self.axes, self.extents, strict=True)]
        parts = []
        for where, forms in self.values:
            held = " and ".join([*box, *(g[0] for g in self.guards), *([where[0]] if where else [])])
            parts.append(f"{point} -> [{', '.join(f[0] for f in forms)}] : {held}")
        head = f"[{', '.join(self.params)}] -> " if self.params else ""
        return f"{head}{{ {'; '.join(parts)} }}"

    @cached_property
    def layout(self) -> PiecewiseLayout:
        return PiecewiseLayout(self.text)

    @property
    def width(self) -> int:
        return len(self.values[0][1])

    def table(self, n: int = 0) -> Table:
        sides = [range(n if isinstance(e, str) else e) for e in self.extents]
        found: Table = {}
        for point in product(*sides):
            env = {"N": n, **dict(zip(self.axes, point, strict=True))}
            if all(g[1](env) for g in self.guards):
                for where, forms in self.values:
                    if where is None or where[1](env):
                        found[point] = tuple(f[1](env) for f in forms)
        return found

    def given(self, n: int) -> dict[str, int]:
        return {"N": n} if self.params else {}


def drawn(rng: random.Random, width: int | None = None, partial: bool = False, extents: Any = None) -> Pieces:
    axes = ["i", "j"][: rng.choice((1, 2, 2))] if extents is None else ["i", "j"][: len(extents)]
    sizes: list[int | str] = list(extents or [rng.choice((1, 2, 3, 4, 5, 6)) for _ in axes])
    params = ["N"] if partial else []
    if partial:
        sizes[rng.randrange(len(sizes))] = "N"
    width = width or rng.choice((1, 1, 2))
    names = axes + params
    guards = [condition(rng, names)[0]] if partial and rng.random() < 0.5 else []

    def forms() -> list[Form]:
        return [form(rng, names) for _ in range(width)]

    if rng.random() < 0.5:
        return Pieces(axes, sizes, guards, [(None, forms())], params)
    here, there = condition(rng, names)
    return Pieces(axes, sizes, guards, [(here, forms()), (there, forms())], params)


@draws("piecewise")
def draw(rng: random.Random) -> Pieces:
    return drawn(rng)


@draws("parametric")
def draw_partial(rng: random.Random) -> Pieces:
    return drawn(rng, partial=True)


def graph(text: str, n: int | None) -> list[Point]:
    """All points of the graph of a map's text, read by islpy."""
    import islpy as isl

    function = isl.Map(text)
    return enumerated(fixed(function, n).wrap())


def fixed(thing: Any, n: int | None) -> Any:
    import islpy as isl

    for place in range(thing.dim(isl.dim_type.param)):
        assert n is not None
        thing = thing.fix_val(isl.dim_type.param, place, isl.Val(n))
    return thing


def enumerated(points: Any) -> list[Point]:
    import islpy as isl

    found: list[Point] = []
    width = points.dim(isl.dim_type.set)

    def add(point: Any) -> None:
        found.append(tuple(point.get_coordinate_val(isl.dim_type.set, k).to_python() for k in range(width)))

    points.foreach_point(add)
    return sorted(found)


def read(found: Any, n: int | None = None) -> Table:
    """The table of an answer at a value of the parameter."""
    width = len(found.axes)
    rows = graph(found.text, n)
    table = {row[:width]: row[width:] for row in rows}
    expect(len(table) == len(rows), f"{found} has two values at a point")
    return table


def members(found: Any, n: int | None = None) -> set[Point]:
    import islpy as isl

    return set(enumerated(fixed(isl.Set(found.text), n)))


def agree(found: Any, want: Table, what: object, n: int | None = None) -> None:
    got = read(found, n)
    expect(got == want, f"{what} gave {found}: {sorted(got.items() ^ want.items())[:3]} differ (N={n})")


def size(rng: random.Random) -> int:
    return rng.randint(0, GREATEST)


# ------------------------------------------------------------------------------------------------------------- values


@operation("piecewise", weight=3)
def evaluate(one: Pieces, rng: random.Random) -> None:
    layout, table = one.layout, one.table()
    flat = [table[tuple(reversed(p))] for p in product(*[range(e) for e in reversed(one.extents)])]  # type: ignore[arg-type]
    expect(layout.is_total and layout.size == len(flat), f"{layout} is total")
    expect(list(layout.in_dims.values()) == one.extents and [n for _, n in layout.inputs] == one.extents, "in_dims")
    expect(len(layout.out_dims) == one.width == len(layout.outputs), "out_dims")
    got = layout.table().tolist()
    expect([v if isinstance(v, list) else [v] for v in got] == [list(v) for v in flat], f"table of {layout}")
    index = rng.randrange(len(flat))
    value = layout.at(index)
    expect((value if isinstance(value, tuple) else (value,)) == flat[index], f"{layout}.at({index})")
    picked = np.array([rng.randrange(len(flat)) for _ in range(3)])
    got = layout.apply(picked).reshape(3, -1).tolist()
    expect(got == [list(flat[i]) for i in picked], f"apply of {layout}")
    point = rng.choice(sorted(table))
    found = layout(**dict(zip(one.axes, point, strict=True)))
    expect(tuple(found.values()) == table[point], f"{layout} at {point}")


@operation("piecewise", "parametric", weight=3)
def evaluate_points(one: Pieces, rng: random.Random) -> None:
    """graph, contains, apply, subs at a value of the parameter."""
    n = size(rng)
    layout, table, given = one.layout, one.table(n), one.given(n)
    points, values = layout.graph(**given)
    got = list(zip(map(tuple, points.tolist()), map(tuple, values.tolist()), strict=True))
    expect(got == sorted(table.items()), f"graph of {layout} at N={n}")
    asked = [tuple(rng.randint(-1, 6) for _ in one.axes) for _ in range(6)] + list(table)[:2]
    coords = {axis: np.array([p[k] for p in asked]) for k, axis in enumerate(one.axes)}
    inside = np.broadcast_to(layout.contains(coords, **given), (len(asked),)).tolist()
    expect(inside == [p in table for p in asked], f"contains of {layout} at {asked}")
    expect(layout.domain.contains(coords, **given).tolist() == inside, "contains of the domain")
    if table:
        kept = {axis: np.array([p[k] for p in table]) for k, axis in enumerate(one.axes)}
        found = [np.broadcast_to(v, len(table)).tolist() for v in layout.apply(kept, **given).values()]
        expect(list(zip(*found, strict=True)) == list(table.values()), f"apply of {layout}")
    if one.params:
        agree(layout.subs(N=n), table, f"{layout}.subs(N={n})")


@operation("piecewise", "parametric", weight=0.7)
def copies(one: Pieces, rng: random.Random) -> None:
    layout = one.layout
    for other in (pickle.loads(pickle.dumps(layout)), eval(repr(layout), {"PiecewiseLayout": PiecewiseLayout})):
        expect(other == layout and hash(other) == hash(layout), f"copy of {layout}")
    back = PiecewiseLayout.parse(str(layout))
    expect(back.is_equal(layout), f"parse of {layout}")
    n = size(rng)
    made = answer(
        piecewise.from_pieces,
        one.axes,
        [
            (
                " and ".join(
                    [f"0 <= {a} < {e}" for a, e in zip(one.axes, one.extents, strict=True)]
                    + [g[0] for g in one.guards]
                    + ([where[0]] if where else [])
                ),
                [f[0] for f in forms],
            )
            for where, forms in one.values
        ],
        params=one.params,
        exists=lambda: all(piece_holds(one, where) for where, _ in one.values),
    )
    agree(made, one.table(n), "from_pieces", n)


def piece_holds(one: Pieces, where: Condition | None) -> bool:
    """Whether some point of some size satisfies the guard of a piece."""
    alone = Pieces(one.axes, one.extents, one.guards, [(where, one.values[0][1])], one.params)
    return any(alone.table(n) for n in range(12 if one.params else 1))


@operation("piecewise", weight=0.3)
def to_sympy(one: Pieces, rng: random.Random) -> None:
    found = answer(one.layout.to_sympy, declined="LA795")
    point, value = rng.choice(sorted(one.table().items()))
    for name, want in zip(one.layout.outputs, value, strict=True):
        expression = found[name]
        symbols = {symbol.name: symbol for symbol in expression.free_symbols}
        got = expression.subs({symbols[a]: x for a, x in zip(one.axes, point, strict=True) if a in symbols})
        expect(int(got) == want, f"to_sympy of {one.layout} at {point} is {got}, not {want}")


# --------------------------------------------------------------------------------------------------------- combining


@operation("piecewise", "parametric")
def restricted(one: Pieces, rng: random.Random) -> None:
    """restrict, without."""
    where, _ = condition(rng, one.axes)
    head = f"[{', '.join(one.params)}] -> " if one.params else ""
    text = f"{head}{{ [{', '.join(one.axes)}] : {where[0]} }}"
    n = size(rng)
    table = one.table(n)
    inside = {p: v for p, v in table.items() if where[1]({"N": n, **dict(zip(one.axes, p, strict=True))})}
    agree(one.layout.restrict(text), inside, f"{one.layout}.restrict({text})", n)
    outside = {p: v for p, v in table.items() if p not in inside}
    agree(one.layout.without(text), outside, f"{one.layout}.without({text})", n)


@operation("piecewise", "parametric", weight=2)
def combined(one: Pieces, rng: random.Random) -> None:
    """union, intersect, is_equal, difference."""
    sizes: Any = [e for e in one.extents if isinstance(e, int)] if one.params else one.extents
    other = drawn(rng, one.width, bool(one.params), None if one.params else sizes)
    if len(other.axes) != len(one.axes):
        return
    if rng.random() < 0.3:
        other = one
    f, g = one.layout, other.layout
    n = size(rng)
    a, b = one.table(n), other.table(n)
    agree(f.intersect(g), {p: v for p, v in a.items() if b.get(p) == v}, f"{f}.intersect({g})", n)
    sides = [(one.table(k), other.table(k)) for k in range(GREATEST + 1 if one.params else 1)]
    differ = any(x != y for x, y in sides)
    equal = f.is_equal(g)
    expect(not (equal and differ), f"{f}.is_equal({g})")
    seen = f.difference(g)
    expect((seen is None) == equal, f"{f}.difference({g}) = {seen}")
    if not one.params:
        expect(equal != differ, f"{f}.is_equal({g})")
    found = attempt(f.union, g)
    sides += [(one.table(k), other.table(k)) for k in range(GREATEST + 1, 24) if one.params and failed(found)]
    clash = any(p in y and y[p] != v for x, y in sides for p, v in x.items())
    if failed(found):
        raise refusal(found, not clash, f"{f}.union({g})")
    expect(not clash, f"{f}.union({g}) gave {found}")
    agree(found, {**a, **b}, f"{f}.union({g})", n)


@operation("piecewise", weight=2)
def composition(one: Pieces, rng: random.Random) -> None:
    """after, which drops the points that leave the domain, and @, which refuses them."""
    inner = drawn(rng, len(one.axes))
    f, g = one.layout, inner.layout
    outer, points = one.table(), inner.table()
    want = {p: outer[v] for p, v in points.items() if v in outer}
    agree(f.after(g), want, f"{f}.after({g})")
    found = answer(lambda: f @ g, exists=len(want) == len(points), strict=True, what=f"{f} @ {g}")
    agree(found, want, f"{f} @ {g}")
    expect(g.then(f).is_equal(found), "then")


# ----------------------------------------------------------------------------------------------- images and inverses


@operation("piecewise", weight=2)
def inverses(one: Pieces, rng: random.Random) -> None:
    """injective, collision, image, holes, right_inverse, image_inverse, inverse."""
    layout, table = one.layout, one.table()
    image = set(table.values())
    injective = len(image) == len(table)
    expect(layout.injective() == injective, f"injective of {layout}")
    seen: Any = layout.collision()
    expect((seen is None) == injective, f"collision of {layout} is {seen}")
    if seen is not None:
        first, second = (tuple(p.values()) for p in seen["points"])
        expect(first != second and table[first] == table[second], f"collision of {layout} is {seen}")
    expect(members(layout.image) == image and members(layout.domain) == set(table), f"image of {layout}")
    check_inverses(layout, table)
    flat = [table[tuple(reversed(p))] for p in product(*[range(e) for e in reversed(one.extents)])]  # type: ignore[arg-type]
    bijective = one.width == 1 and sorted(flat) == [(k,) for k in range(len(flat))]
    found = answer(layout.inverse, exists=bijective, strict=True)
    agree(found, {v: (k,) for k, v in enumerate(flat)}, f"inverse of {layout}")


def check_inverses(layout: PiecewiseLayout, table: Table) -> None:
    """The least point of every value; the same by ``image_inverse`` where no two points meet."""
    least: Table = {}
    for point in sorted(table):
        least.setdefault(table[point], point)
    agree(layout.right_inverse(), least, f"right_inverse of {layout}")
    found = attempt(layout.image_inverse)
    expect(failed(found) or len(least) == len(table), f"image_inverse of {layout} gave {found}")
    if not failed(found):
        agree(found, least, f"image_inverse of {layout}")
    elif len(least) == len(table):
        raise refusal(found, True, f"image_inverse of {layout}")


@operation("parametric")
def partial_inverses(one: Pieces, rng: random.Random) -> None:
    n = size(rng)
    layout, table = one.layout, one.table(n)
    injective = all(len(set(t.values())) == len(t) for t in (one.table(k) for k in range(GREATEST + 3)))
    claimed = layout.injective()
    expect(not claimed or injective, f"injective of {layout}")
    if not claimed:  # the collision is one
        seen: Any = layout.collision()
        there = one.table(seen["params"]["N"])
        first, second = (tuple(p.values()) for p in seen["points"])
        expect(first != second and there[first] == there[second], f"collision of {layout} is {seen}")
    found = answer(layout.image_inverse, exists=claimed)
    agree(found, {v: p for p, v in table.items()}, f"image_inverse of {layout}", n)


@operation("piecewise")
def holes(one: Pieces, rng: random.Random) -> None:
    image = set(one.table().values())
    sides = [range(0, max(1, max(v[k] for v in image) + rng.randint(0, 2))) for k in range(one.width)]
    names = ["a", "b"][: one.width]
    box = " and ".join(f"0 <= {x} < {side.stop}" for x, side in zip(names, sides, strict=True))
    found = one.layout.holes(f"{{ [{', '.join(names)}] : {box} }}")
    expect(members(found) == set(product(*sides)) - image, f"holes of {one.layout} in {box}")


@operation("piecewise")
def addressed(one: Pieces, rng: random.Random) -> None:
    """addresses, banks, padded, of a layout of one output."""
    two = Pieces(one.axes, one.extents, one.guards, [(w, fs[:1]) for w, fs in one.values], one.params)
    layout, table = two.layout, two.table()
    width, base = rng.choice((1, 2, 4, 8)), rng.choice((0, 16, 100))
    address = piecewise.addresses(layout, width, base)
    agree(address, {p: (v[0] * width + base,) for p, v in table.items()}, f"addresses({layout}, {width}, {base})")
    count, word = rng.choice((8, 32)), rng.choice((2, 4))
    want = {p: ((v[0] * width + base) // word % count,) for p, v in table.items()}
    agree(piecewise.banks(address, count, word), want, f"banks({address}, {count}, {word})")
    interval, padding = rng.randint(1, 8), rng.randint(0, 4)
    want = {p: (v[0] + padding * (v[0] // interval),) for p, v in table.items()}
    agree(piecewise.padded(layout, interval, padding), want, f"padded({layout}, {interval}, {padding})")


@operation("piecewise", "parametric")
def tiled(one: Pieces, rng: random.Random) -> None:
    """split into digits, and the full and the partial tiles."""
    axis, tile, n = rng.randrange(len(one.axes)), rng.randint(1, 4), size(rng)
    table = one.table(n)
    found = piecewise.split(one.layout, one.axes[axis], tile)

    def cut(point: Point) -> Point:
        pair = divmod(point[axis], tile)
        return (*point[:axis], *pair, *point[axis + 1 :])

    digits = {cut(p): v for p, v in table.items()}
    order = [found.axes.index(f"{one.axes[axis]}{end}") for end in ("_tile", "_in")]
    swapped = order[0] > order[1]

    def placed(point: Point) -> Point:
        if not swapped:
            return point
        return (*point[:axis], point[axis + 1], point[axis], *point[axis + 2 :])

    want = {placed(p): v for p, v in digits.items()}
    agree(found, want, f"split({one.layout}, {one.axes[axis]}, {tile})", n)
    tiles = piecewise.full_and_partial_tiles(one.layout, one.axes[axis], tile)
    whole = {p for p in digits if all((*p[: axis + 1], r, *p[axis + 2 :]) in digits for r in range(tile))}
    agree(tiles.full, {placed(p): digits[p] for p in whole}, "full tiles", n)
    agree(tiles.partial, {placed(p): digits[p] for p in digits if p not in whole}, "partial tiles", n)
    inside = {p for p in table if cut(p) in whole}
    expect(members(tiles.full_domain, n) == inside, "full_domain")
    expect(members(tiles.partial_domain, n) == set(table) - inside, "partial_domain")


# --------------------------------------------------------------------------------------------------------------- sets


@operation("piecewise", "parametric", weight=2)
def sets(one: Pieces, rng: random.Random) -> None:
    """PointSet: count, points, sample, sums and differences, optima."""
    n = size(rng)
    first, given = one.layout.domain, one.given(n)
    here = set(one.table(n))
    where, _ = condition(rng, one.axes)
    head = f"[{', '.join(one.params)}] -> " if one.params else ""
    second = PointSet(
        f"{head}{{ [{', '.join(one.axes)}] : 0 <= {one.axes[0]} < 4 and {where[0]}"
        + (f" and 0 <= {one.axes[1]} < 3 }}" if len(one.axes) > 1 else " }")
    )
    there = {p for p in product(range(4), range(3)) if where[1](dict(zip(one.axes, p, strict=False)))}
    there_points = {p[: len(one.axes)] for p in there}
    expect(members(second, n) == there_points, f"{second}")
    expect(first.count(**given) == len(here), f"count of {first} at {given}")
    expect(list(map(tuple, first.points(**given).tolist())) == sorted(here), f"points of {first}")
    expect(members(first.union(second), n) == here | there_points, "union")
    expect(members(first.intersect(second), n) == here & there_points, "intersect")
    expect(members(first.subtract(second), n) == here - there_points, "subtract")
    expect(PointSet.of(first) == first and PointSet.of(first.text).is_equal(first), "of")
    if one.params:
        expect(members(first.subs(N=n)) == here, "subs")
        sample = first.sample()
        expect(sample is not None or not here, "sample")
    else:
        expect(first.is_empty() == (not here) and second.is_empty() == (not there_points), "is_empty")
        expect(first.is_equal(second) == (here == there_points), "is_equal")
        seen = first.difference(second)
        expect((seen is None) == (here == there_points), f"difference {seen}")
        point = tuple(rng.randint(0, 5) for _ in one.axes)
        expect((point in first) == (point in here), "in")
    for call, best in ((piecewise.lexmin, min), (piecewise.lexmax, max)):
        want = {(): best(here)} if here else {}
        agree(call(first), want, call.__name__, n)


@operation("parametric")
def count_formula(one: Pieces, rng: random.Random) -> None:
    found = answer(one.layout.domain.count_formula, declined="LA790")
    for n in range(GREATEST + 3):
        expect(found(N=n) == len(one.table(n)), f"count_formula of {one.layout.domain} at N={n} is {found(N=n)}")


@operation("parametric", weight=0.2)
def count_in_sympy(one: Pieces, rng: random.Random) -> None:
    count = answer(one.layout.domain.count_formula, declined="LA790")
    found = answer(count.to_sympy, declined="LA795")
    for n in (0, 1, 3, 6):
        got = found.subs(dict.fromkeys(found.free_symbols, n))
        expect(int(got) == len(one.table(n)), f"to_sympy of the count of {one.layout.domain}: {got} at N={n}")
