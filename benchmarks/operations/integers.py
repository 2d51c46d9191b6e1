"""Integer layouts x -> A x + b, over Z or modulo numbers: values, axes, inverses, questions."""

from __future__ import annotations

import math
import pickle
import random
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from layoutalg import integer
from layoutalg.ground.verdict import Refuted
from layoutalg.integer import IntegerLayout
from operations import tables
from operations.record import answer, attempt, draws, expect, failed, operation, refusal

Vector = tuple[int, ...]


def box(extents: list[int]) -> list[Vector]:
    """The points of a box, first axis fastest."""
    return [tuple(reversed(point)) for point in product(*[range(n) for n in reversed(extents)])]


@dataclass(frozen=True)
class Affine:
    """A layout as plain numbers."""

    extents: list[int]
    rows: list[list[int]]
    moduli: list[int]
    offsets: list[int]

    @cached_property
    def layout(self) -> IntegerLayout:
        return IntegerLayout(
            tuple((f"i{k}", n) for k, n in enumerate(self.extents)),
            tuple((f"o{k}", m) for k, m in enumerate(self.moduli)),
            tuple(map(tuple, self.rows)),
            tuple(self.offsets),
        )

    def value(self, point: Any) -> Vector:
        return evaluated(self.rows, self.offsets, self.moduli, point)

    @cached_property
    def points(self) -> list[Vector]:
        return box(self.extents)

    @cached_property
    def table(self) -> list[Vector]:
        return [self.value(point) for point in self.points]


def evaluated(rows: Any, offsets: Any, moduli: Any, point: Any) -> Vector:
    found = []
    for row, b, m in zip(rows, offsets, moduli, strict=True):
        total = b + sum(a * x for a, x in zip(row, point, strict=True))
        found.append(total % m if m else total)
    return tuple(found)


def read(layout: Any) -> list[Vector]:
    """The table of an answer, from its fields."""
    moduli = [m for _, m in layout.outputs]
    return [evaluated(layout.matrix, layout.offset, moduli, p) for p in box([n for _, n in layout.inputs])]


def drawn(rng: random.Random, size: int | None = None, width: int | None = None) -> Affine:
    extents = tables.factors(size or rng.choice((1, 2, 4, 6, 8, 9, 12, 12, 16, 18, 24, 30, 36)), rng)
    width = width or rng.choice((1, 1, 1, 2, 2, 3))
    moduli = [rng.choice((0, 0, 0, 2, 4, 5, 8, 12, 16)) for _ in range(width)]
    kind = rng.random()
    if kind < 0.45:
        rows = [[0] * len(extents) for _ in range(width)]
        weight = [1] * width
        for k in rng.sample(range(len(extents)), len(extents)):
            j = rng.randrange(width)
            rows[j][k] = weight[j] * rng.choice((1, 1, 1, -1))
            weight[j] = weight[j] * extents[k] + rng.choice((0, 0, 0, 1))
    else:
        spread = rng.choice((2, 5, 20))
        rows = [[rng.randint(-spread, spread) for _ in extents] for _ in range(width)]
    offsets = [rng.choice((0, 0, rng.randint(-9, 9))) for _ in range(width)]
    if rng.random() < 0.2:
        offsets = [sum((1 - n) * a for n, a in zip(extents, row, strict=True) if a < 0) for row in rows]
    return Affine(extents, rows, moduli, offsets)


@draws("integer")
def draw(rng: random.Random) -> Affine:
    return drawn(rng)


def agree(found: Any, want: list[Vector], what: object) -> None:
    got = read(found)
    expect(got == want, f"{what} gave {found}, values {got[:20]} for {want[:20]}")


def flat(value: Any) -> Vector:
    return tuple(value) if isinstance(value, tuple | list) else (int(value),)


def rows_of(array: Any) -> list[Vector]:
    return [flat(row) for row in np.asarray(array).tolist()]


# ------------------------------------------------------------------------------------------------------------- values


@operation("integer", weight=2)
def evaluate(one: Affine, rng: random.Random) -> None:
    layout, table = one.layout, one.table
    index = rng.randrange(len(table))
    point = one.points[index]
    named = {f"i{k}": x for k, x in enumerate(point)}
    expect(flat(layout.at(index)) == table[index] == layout.value(point), f"{layout} at {index}")
    expect(layout.coordinate(index) == point, f"{layout}.coordinate({index})")
    got = layout(**named)
    expect(flat(tuple(got.values()) if isinstance(got, dict) else got) == table[index], f"{layout} at {named}")
    expect(rows_of(layout.table()) == table, f"table of {layout}")
    picked = [rng.randrange(len(table)) for _ in range(4)]
    expect(rows_of(layout.apply(np.array(picked))) == [table[i] for i in picked], f"apply of {layout}")
    arrays = {f"i{k}": np.array([one.points[i][k] for i in picked]) for k in range(len(point))}
    found = layout.apply(arrays)
    columns = [np.broadcast_to(v, 4).tolist() for v in found.values()]
    expect(list(zip(*columns, strict=True)) == [table[i] for i in picked], f"apply of {layout}")


@operation("integer", weight=0.7)
def measures(one: Affine, rng: random.Random) -> None:
    layout = one.layout
    expect(layout.size == len(one.table) and list(layout.extents) == one.extents, "size")
    expect(list(layout.moduli) == one.moduli and list(layout.in_dims.values()) == one.extents, "moduli")
    expect(list(layout.out_dims.values()) == [m or None for m in one.moduli], "out_dims")
    expect(layout.columns == tuple(zip(*layout.matrix, strict=True)), "columns")
    for row, m, b, (least, most) in zip(layout.matrix, one.moduli, layout.offset, layout.spans(), strict=True):
        sums = [b + sum(a * x for a, x in zip(row, p, strict=True)) for p in one.points]
        expect((min(sums), max(sums)) == (least, most), f"spans of {layout}, modulus {m}")
    for place, (row, b, m) in enumerate(layout.forms):
        values = [evaluated([row], [b], [m], p)[0] for p in one.points]
        expect(values == [v[place] for v in one.table], f"forms of {layout}")
    expect(layout.bytes_per_point > 0 and layout.table_limit >= len(one.table), "table_limit")
    same = integer.normal_form(layout)
    agree(same, one.table, "normal_form")
    expect(all(a == 0 for row in same.matrix for a, n in zip(row, one.extents, strict=True) if n < 2), f"{same}")


@operation("integer", weight=0.5)
def copies(one: Affine, rng: random.Random) -> None:
    layout = one.layout
    for other in (pickle.loads(pickle.dumps(layout)), eval(repr(layout), {"IntegerLayout": IntegerLayout})):
        expect(other == layout and hash(other) == hash(layout), f"copy of {layout}")
    expect(integer.parse_integer(str(layout)) == layout, f"parse_integer of {layout}")


@operation("integer", weight=0.5)
def constructors(one: Affine, rng: random.Random) -> None:
    dims = {f"k{k}": n for k, n in enumerate(one.extents)}
    made = IntegerLayout.from_strides(dims, one.rows[0], one.offsets[0], "y", one.moduli[0])
    agree(made, [v[:1] for v in one.table], "from_strides")
    agree(IntegerLayout.identity(dims), one.points, "identity")
    pitches = [n + rng.randrange(3) for n in one.extents]
    steps = [math.prod(pitches[:k]) for k in range(len(pitches))]
    want = [(sum(a * x for a, x in zip(steps, p, strict=True)),) for p in one.points]
    agree(IntegerLayout.pitched(dims, pitches), want, f"pitched({dims}, {pitches})")


# --------------------------------------------------------------------------------------------------------------- axes


@operation("integer", weight=2)
def axes(one: Affine, rng: random.Random) -> None:
    """fix, flip, shift, permute, rename, select_outputs."""
    layout, k = one.layout, rng.randrange(len(one.extents))
    name, extent = f"i{k}", one.extents[k]
    at = rng.randrange(extent)
    rest = box(one.extents[:k] + one.extents[k + 1 :])
    agree(
        integer.fix(layout, name, at), [one.value((*p[:k], at, *p[k:])) for p in rest], f"fix({layout}, {name}, {at})"
    )
    want = [one.value((*p[:k], extent - 1 - p[k], *p[k + 1 :])) for p in one.points]
    agree(integer.flip(layout, name), want, f"flip({layout}, {name})")
    amounts = [rng.randint(-9, 9) for _ in one.rows]
    moved = Affine(one.extents, one.rows, one.moduli, [b + s for b, s in zip(one.offsets, amounts, strict=True)])
    agree(integer.shift(layout, amounts), moved.table, f"shift({layout}, {amounts})")
    order = rng.sample(range(len(one.extents)), len(one.extents))
    want = [one.value([p[order.index(j)] for j in range(len(order))]) for p in box([one.extents[j] for j in order])]
    agree(integer.permute(layout, [f"i{j}" for j in order]), want, f"permute({layout}, {order})")
    renamed = integer.rename(layout, {name: "x", "o0": "y"})
    expect([n for n, _ in renamed.inputs][k] == "x" and renamed.outputs[0][0] == "y", "rename")
    agree(renamed, one.table, "rename")
    chosen = rng.sample(range(len(one.rows)), rng.randint(1, len(one.rows)))
    want = [tuple(v[j] for j in chosen) for v in one.table]
    agree(integer.select_outputs(layout, [f"o{j}" for j in chosen]), want, f"select_outputs({layout}, {chosen})")


@operation("integer", weight=2)
def cuts(one: Affine, rng: random.Random) -> None:
    """slice, split."""
    layout, k = one.layout, rng.randrange(len(one.extents))
    name, extent = f"i{k}", one.extents[k]
    start, count, step = rng.randrange(extent), rng.randint(1, 3), rng.choice((1, 1, 2, -1, 0))
    inside = 0 <= start + (count - 1) * step < extent
    what = f"slice({layout}, {name}, {start}, {count}, {step})"
    found = answer(integer.slice, layout, name, start, count, step, exists=inside, strict=True)
    window = box([*one.extents[:k], count, *one.extents[k + 1 :]])
    agree(found, [one.value((*p[:k], start + step * p[k], *p[k + 1 :])) for p in window], what)
    digits = tables.factors(extent, rng)
    names = {f"d{j}": n for j, n in enumerate(digits)}
    agree(integer.split(layout, name, names), one.table, f"split({layout}, {name}, {names})")


def is_affine(one: Affine, extents: list[int]) -> bool:
    """Whether the function of the flat index is affine modulo the moduli on another box."""
    weights = [math.prod(extents[:k]) for k in range(len(extents))]
    zero = one.table[0]
    for j, m in enumerate(one.moduli):
        steps = [one.table[w][j] - zero[j] if n > 1 else 0 for w, n in zip(weights, extents, strict=True)]
        for p, v in zip(box(extents), one.table, strict=True):
            total = zero[j] + sum(a * x for a, x in zip(steps, p, strict=True)) - v[j]
            if total % m if m else total:
                return False
    return True


@operation("integer", weight=2)
def reshape(one: Affine, rng: random.Random) -> None:
    """reshape to another box, and merge of some axes: they exist where the function is affine there."""
    extents = tables.factors(len(one.table), rng)
    found = answer(
        integer.reshape, one.layout, {f"k{k}": n for k, n in enumerate(extents)}, exists=lambda: is_affine(one, extents)
    )
    agree(found, one.table, f"reshape({one.layout}, {extents})")
    chosen = rng.sample(range(len(one.extents)), rng.randint(1, len(one.extents)))
    names = [f"i{k}" for k in chosen]
    rest = [k for k in range(len(one.extents)) if k not in chosen]
    order = [k for k in range(len(one.extents)) if k == min(chosen) or k not in chosen]
    what = f"merge({one.layout}, {names})"
    found = attempt(integer.merge, one.layout, names, "m")
    if failed(found):
        moved = [chosen, rest]
        swapped = Affine(
            [one.extents[k] for group in moved for k in group],
            [[row[k] for group in moved for k in group] for row in one.rows],
            one.moduli,
            one.offsets,
        )
        whole = [math.prod(one.extents[k] for k in chosen), *[one.extents[k] for k in rest]]
        raise refusal(found, is_affine(swapped, whole), what)
    first = [n for n, _ in found.inputs].index("m")
    extents = [n for _, n in found.inputs]
    want = []
    for p in box(extents):
        point, left = [0] * len(one.extents), p[first]
        for k in chosen:
            left, point[k] = divmod(left, one.extents[k])
        others = [x for j, x in enumerate(p) if j != first]
        for k, x in zip(rest, others, strict=True):
            point[k] = x
        want.append(one.value(point))
    agree(found, want, what)
    expect(len(extents) == len(order), what)


@operation("integer", weight=2)
def composition(one: Affine, rng: random.Random) -> None:
    """The outputs of the inner layout are the axes of the outer one."""
    extents = tables.factors(rng.choice((1, 2, 3, 4, 6, 8)), rng)
    rows, moduli, offsets = [], [], []
    for n in one.extents:
        m = rng.choice((0, 0, n, n))
        rows.append([rng.randint(-2, 3) if m else rng.choice((0, 0, 1)) for _ in extents])
        moduli.append(m)
        offsets.append(0)
    inner = Affine(extents, rows, moduli, offsets)
    layout = integer.rename(
        inner.layout, {f"o{k}": f"i{k}" for k in range(len(rows))} | {f"i{k}": f"x{k}" for k in range(len(extents))}
    )
    inside = all(all(0 <= x < n for x, n in zip(v, one.extents, strict=True)) for v in inner.table)
    what = f"{one.layout} @ {layout}"
    found = attempt(lambda: one.layout @ layout)
    if failed(found):
        if not inside:
            raise refusal(found, False, what)
        joint = [one.value(v) for v in inner.table]
        exists = is_affine_table(joint, extents, one.moduli)
        raise refusal(found, exists, what)
    expect(inside, f"{what} gave {found}")
    agree(found, [one.value(v) for v in inner.table], what)
    expect(layout.then(one.layout) == found, "then")


def is_affine_table(values: list[Vector], extents: list[int], moduli: list[int]) -> bool:
    weights = [math.prod(extents[:k]) for k in range(len(extents))]
    for j, m in enumerate(moduli):
        steps = [values[w][j] - values[0][j] if n > 1 else 0 for w, n in zip(weights, extents, strict=True)]
        for p, v in zip(box(extents), values, strict=True):
            total = values[0][j] + sum(a * x for a, x in zip(steps, p, strict=True)) - v[j]
            if total % m if m else total:
                return False
    return True


# ---------------------------------------------------------------------------------------------------------- questions


@operation("integer", weight=2)
def questions(one: Affine, rng: random.Random) -> None:
    """injective, covers, same_function."""
    layout, values = one.layout, set(one.table)
    verdict = integer.injective(layout)
    expect(bool(verdict) == (len(values) == len(one.table)), f"injective({layout}) = {verdict}")
    if isinstance(verdict, Refuted):
        first, second = (tuple(verdict.witness[side].values()) for side in ("first", "second"))  # type: ignore[attr-defined]
        expect(first != second and one.value(first) == one.value(second), f"the witness {verdict.witness}")
    lows = [min(v[j] for v in values) for j in range(len(one.rows))]
    sides = [(a, min(a + rng.randint(0, 3), m or a + 3)) for a, m in zip(lows, one.moduli, strict=True)]
    covered = set(product(*[range(low, high) for low, high in sides])) <= values
    verdict = integer.covers(layout, {f"o{j}": side for j, side in enumerate(sides)})
    expect(bool(verdict) == covered, f"covers({layout}, {sides}) = {verdict}")
    other = Affine(
        one.extents, [[a + rng.choice((0, 0, 0, 1)) for a in row] for row in one.rows], one.moduli, one.offsets
    )
    if rng.random() < 0.5:
        other = drawn(rng, width=len(one.rows))
        other = Affine(other.extents, other.rows, one.moduli, other.offsets)
    if other.extents == one.extents:
        expect(integer.same_function(layout, other.layout) == (one.table == other.table), "same_function")


@operation("integer", weight=0.2)
def image_inverse(one: Affine, rng: random.Random) -> None:
    """On exactly the image, the least point of every value."""
    found = integer.image_inverse(one.layout).layout
    check_guarded(found, one, f"image_inverse({one.layout})")


def check_guarded(found: Any, one: Affine, what: str) -> None:
    least: dict[Vector, Vector] = {}
    for point in sorted(one.points):
        least.setdefault(one.value(point), point)
    wanted = sorted(least)
    near = {
        tuple(x + (step if k == j else 0) for k, x in enumerate(v))
        for v in wanted
        for j in range(len(v))
        for step in (-1, 1)
    }
    asked = [*wanted, *sorted(near - least.keys())[:40]]
    coords = {axis: np.array([p[k] for p in asked]) for k, axis in enumerate(found.axes)}
    inside = np.broadcast_to(found.contains(coords), (len(asked),)).tolist()
    expect(inside == [p in least for p in asked], f"{what} is {found}, defined elsewhere")
    values = found.apply({axis: column[: len(wanted)] for axis, column in coords.items()})
    got = list(zip(*[np.broadcast_to(v, len(wanted)).tolist() for v in values.values()], strict=True))
    expect(got == [least[v] for v in wanted], f"{what} is {found}, {got} for {[least[v] for v in wanted]}")


@operation("integer", weight=0.3)
def right_inverse(one: Affine, rng: random.Random) -> None:
    found = integer.right_inverse(one.layout)
    what = f"right_inverse({one.layout})"
    if isinstance(found, integer.ImageInverse):
        check_guarded(found.layout, one, what)
        return
    back, values = read(found.layout), read(found.values)
    for place, value in zip(back, values, strict=True):
        inside = all(0 <= x < n for x, n in zip(place, one.extents, strict=True))
        expect(inside and one.value(place) == value, f"{what} gave {found}")
    expect(sorted(values) == sorted(product(*[range(*side) for _, side in found.box])), f"{what}: the box {found.box}")


@operation("integer")
def inverse(one: Affine, rng: random.Random) -> None:
    bijective = len(one.rows) == 1 and sorted(one.table) == [(i,) for i in range(len(one.table))]
    what = f"{one.layout}.inverse()"
    found = answer(one.layout.inverse, exists=bijective, strict=True, declined="LA747")
    agree(found, [(one.table.index((v,)),) for v in range(len(one.table))], what)


@operation("integer")
def along(one: Affine, rng: random.Random) -> None:
    """Along the flat index: coalesced, access."""
    modes = integer.coalesced(one.layout)
    table = [tuple(one.layout.offset)]
    for extent, steps in modes:
        table = [tuple(v + s * d for v, s in zip(value, steps, strict=True)) for d in range(extent) for value in table]
    got = [tuple(v % m if m else v for v, m in zip(value, one.moduli, strict=True)) for value in table]
    expect(got == one.table, f"coalesced({one.layout}) = {modes}")
    j = rng.randrange(len(one.rows))
    single = Affine(one.extents, [one.rows[j]], [0], [one.offsets[j]])
    values = [v[0] for v in single.table]
    found = integer.access(single.layout)
    widths = []
    for width in range(1, len(values) + 1):
        if len(values) % width:
            continue
        starts = range(0, len(values), width)
        fine = all(values[s + r] == values[s] + r for s in starts for r in range(width))
        if fine and all(values[s] % width == 0 for s in starts):
            widths.append(width)
    expect(found.width == max(widths), f"access({single.layout}) = {found}, {max(widths)} is possible")
    run = 1
    while run < len(values) and values[run] == values[0] + run:
        run += 1
    even = len(values) % found.run == 0
    fine = all(values[s + r] == values[s] + r for s in range(0, len(values), found.run) for r in range(found.run))
    expect(even and fine and found.run <= run, f"access({single.layout}) = {found}")
    expect(found.alignment == math.gcd(*values[:: found.run]), f"access({single.layout}) = {found}")
    expect(found.power_of_two == found.width & -found.width, "power_of_two")
    size = rng.choice((1, 2, 4, 8))
    want_bytes = max(
        (k for k in (1, 2, 4, 8, 16) if k <= 16 and k % size == 0 and found.width % (k // size) == 0), default=0
    )
    expect(found.vector_bytes(size) == want_bytes, f"vector_bytes of {found}")


@operation("integer")
def index_expression(one: Affine, rng: random.Random) -> None:
    j = rng.randrange(len(one.rows))
    name = rng.choice((None, "t"))
    found = answer(integer.index_expression, one.layout, name, f"o{j}")
    expect(bool(found.check()), f"check of {found}")
    index = rng.randrange(len(one.table))
    point = {"t": index} if name else {f"i{k}": x for k, x in enumerate(one.points[index])}
    given = {n: point[n] for n, _ in found.variables}
    expect(found.evaluate(given) == one.table[index][j], f"{found.text} at {given}")
    c_text = found.text.replace("/", "//")
    expect(eval(c_text, {}, dict(point)) == one.table[index][j] or "//" in c_text or "%" in c_text, f"{found.text}")


@operation("integer", weight=0.7)
def lattices(one: Affine, rng: random.Random) -> None:
    """kernel_lattice of a layout."""
    kernel = integer.kernel_lattice(one.layout)
    for row in kernel.basis:
        image = [sum(a * x for a, x in zip(line, row, strict=True)) for line in one.rows]
        expect(
            not any(v % m if m else v for v, m in zip(image, one.moduli, strict=True)), f"kernel_lattice({one.layout})"
        )
    vector = [rng.randint(-3, 3) for _ in one.extents]
    image = [sum(a * x for a, x in zip(line, vector, strict=True)) for line in one.rows]
    zero = not any(v % m if m else v for v, m in zip(image, one.moduli, strict=True))
    expect((tuple(vector) in kernel) == zero, f"{vector} in kernel_lattice({one.layout})")
