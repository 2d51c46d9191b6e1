"""Linear layouts over F2: drawing them, and what renames, cuts, joins, mirrors and moves their axes.

Notation: a point is a dictionary from axis names to coordinates; a map is (input axes, output axes, table), where the
table lists packed outputs over flat inputs, first axis in the low bits.
"""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from layoutalg import f2
from layoutalg.f2 import LinearLayout
from operations.record import answer, attempt, draws, expect, failed, operation

Axes = list[tuple[str, int]]
Point = dict[str, int]
Map = tuple[Axes, Axes, list[int]]


def span(columns: list[int], constant: int = 0) -> list[int]:
    """The table of an affine map."""
    table = [constant]
    for column in columns:
        table += [value ^ column for value in table]
    return table


def unpack(axes: Axes, flat: int) -> Point:
    point = {}
    for name, bits in axes:
        point[name] = flat & (1 << bits) - 1
        flat >>= bits
    return point


def pack(axes: Axes, point: Point) -> int:
    flat, shift = 0, 0
    for name, bits in axes:
        flat |= point[name] << shift
        shift += bits
    return flat


def bits_of(axes: Axes) -> int:
    return sum(bits for _, bits in axes)


@dataclass(frozen=True)
class Linear:
    """A layout with the map that it is."""

    ins: Axes
    outs: Axes
    columns: list[int]
    constant: int

    @cached_property
    def layout(self) -> LinearLayout:
        return LinearLayout(tuple(self.ins), tuple(self.outs), tuple(self.columns), self.constant)

    @cached_property
    def table(self) -> list[int]:
        return span(self.columns, self.constant)

    def value(self, point: Point) -> Point:
        return unpack(self.outs, self.table[pack(self.ins, point)])


def read(layout: Any) -> Map:
    """The map of an answer, from its fields."""
    expect(len(layout.columns) == bits_of(layout.in_axes), f"{layout} has {len(layout.columns)} columns")
    width = bits_of(layout.out_axes)
    inside = all(0 <= value < 1 << width for value in (*layout.columns, layout.constant))
    expect(inside, f"{layout} leaves its outputs")
    return list(layout.in_axes), list(layout.out_axes), span(list(layout.columns), layout.constant)


def points(axes: Axes) -> list[Point]:
    return [unpack(axes, flat) for flat in range(1 << bits_of(axes))]


def built(ins: Axes, outs: Axes, function: Callable[[Point], Point]) -> Map:
    """The map of a function of points."""
    return ins, outs, [pack(outs, function(point)) for point in points(ins)]


def agree(found: Any, want: Map, what: object) -> None:
    got = read(found)
    expect(got == want, f"{what} gave {found}, {got} for {want}")


def affine(table: list[int]) -> bool:
    """Whether a table of a power of two of entries is that of an affine map over F2."""
    bits = len(table).bit_length() - 1
    return span([table[1 << k] ^ table[0] for k in range(bits)], table[0]) == table


def drawn(rng: random.Random, outs: Axes | None = None, ins: Axes | None = None, most: int = 6) -> Linear:
    """A layout; generic, a permutation of bits, with repeated or zero columns, or invertible."""
    if ins is None:
        names = rng.choice((["register"], ["register", "lane"], ["register", "lane"], ["register", "lane", "warp"]))
        left = rng.randint(0, most)
        ins = []
        for name in names:
            ins.append((name, rng.randint(0, left)))
            left -= ins[-1][1]
        rng.shuffle(ins)
    count = bits_of(ins)
    kind = rng.random()
    if outs is None:
        width = count if kind < 0.5 else rng.randint(max(count - 2, 0), count + 1)
        first = rng.randint(0, width)
        outs = [("dim0", first), ("dim1", width - first)] if rng.random() < 0.7 else [("offset", width)]
    width = bits_of(outs)
    if kind < 0.3 and width >= count:
        columns = [1 << k for k in rng.sample(range(width), count)]
    elif kind < 0.5 and width >= count:
        columns = [1 << k for k in rng.sample(range(width), count)]
        for _ in range(count):
            a, b = rng.randrange(count), rng.randrange(count)
            if a != b:
                columns[a] ^= columns[b]
    elif kind < 0.75:
        columns = [rng.choice((0, 1 << rng.randrange(width))) if width else 0 for _ in range(count)]
    else:
        columns = [rng.randrange(1 << width) for _ in range(count)]
    return Linear(ins, outs, columns, rng.choice((0, 0, rng.randrange(1 << width))))


@draws("linear")
def draw(rng: random.Random) -> Linear:
    return drawn(rng)


# ------------------------------------------------------------------------------------------------------------- values


@operation("linear", weight=2)
def evaluate(one: Linear, rng: random.Random) -> None:
    layout, table = one.layout, one.table
    flat = rng.randrange(len(table))
    point, want = unpack(one.ins, flat), unpack(one.outs, table[flat])
    expect(layout(**point) == want == layout.apply(point), f"{layout} at {point}")
    expect(layout.at(flat) == table[flat] and layout.table().tolist() == table, f"table of {layout}")
    picked = [rng.randrange(len(table)) for _ in range(4)]
    expect(layout.apply(np.array(picked)).tolist() == [table[i] for i in picked], f"apply of {layout}")
    if one.ins:
        arrays = {name: np.array([unpack(one.ins, i)[name] for i in picked]) for name, _ in one.ins}
        found = layout.apply(arrays)
        wanted = {name: [unpack(one.outs, table[i])[name] for i in picked] for name, _ in one.outs}
        expect({name: np.broadcast_to(v, 4).tolist() for name, v in found.items()} == wanted, f"apply of {layout}")


@operation("linear", weight=0.7)
def measures(one: Linear, rng: random.Random) -> None:
    layout, table = one.layout, one.table
    distinct = set(table)
    expect(layout.size == len(table) and 1 << layout.rank == len(distinct), f"rank of {layout}")
    expect(layout.is_injective == (len(distinct) == len(table)), f"is_injective of {layout}")
    onto = len(distinct) == 1 << bits_of(one.outs)
    expect(layout.is_surjective == onto and layout.is_invertible == (onto and len(distinct) == len(table)), f"{layout}")
    missed = layout.missed()
    expect((missed is None) == onto and (onto or pack(one.outs, missed) not in distinct), f"missed of {layout}")
    expect(layout.in_dims == {n: 1 << b for n, b in one.ins} and layout.in_bits == bits_of(one.ins), "in_dims")
    expect(layout.out_dims == {n: 1 << b for n, b in one.outs} and layout.out_bits == bits_of(one.outs), "out_dims")
    expect(layout.offset == unpack(one.outs, one.constant), f"offset of {layout}")
    images = [list(unpack(one.outs, column).values()) for column in one.columns]
    expect([list(image) for axis in layout.bases.values() for image in axis] == images, f"bases of {layout}")
    masks, seen = f2.free_variable_masks(layout), {0}
    want, place = dict.fromkeys(layout.in_dims, 0), 0
    for name, bits in one.ins:
        for bit in range(bits):
            column = one.columns[place]
            if column in seen:
                want[name] |= 1 << bit
            else:
                seen |= {value ^ column for value in seen}
            place += 1
    expect(masks == want, f"free_variable_masks of {layout}")


@operation("linear", weight=0.7)
def copies(one: Linear, rng: random.Random) -> None:
    layout = one.layout
    for other in (
        pickle.loads(pickle.dumps(layout)),
        copy.copy(layout),
        eval(repr(layout), {"LinearLayout": LinearLayout}),
    ):
        expect(other == layout and hash(other) == hash(layout), f"copy of {layout}")
    expect(f2.parse_linear(str(layout)) == layout, f"parse_linear of {layout}")
    rebuilt = LinearLayout.from_bases(layout.bases, layout.out_dims, layout.offset)
    expect(rebuilt == layout, f"from_bases of {layout}")


@operation("linear", weight=0.5)
def constructors(one: Linear, rng: random.Random) -> None:
    sizes = {"x": 1 << rng.randrange(3), "y": 1 << rng.randrange(3)}
    axes = [(name, size.bit_length() - 1) for name, size in sizes.items()]
    agree(LinearLayout.identity(sizes), (axes, axes, list(range(1 << bits_of(axes)))), "identity")
    a, b = rng.randrange(4), rng.randrange(3)
    agree(f2.identity_1d(1 << a, "x", "y"), ([("x", a)], [("y", a)], list(range(1 << a))), "identity_1d")
    want = [i << b for i in range(1 << a)]
    agree(f2.strided_1d(1 << a, 1 << b, "x", "y"), ([("x", a)], [("y", a + b)], want), "strided_1d")
    agree(f2.zeros_1d(1 << a, "x", "y", 1 << b), ([("x", a)], [("y", b)], [0] * (1 << a)), "zeros_1d")
    agree(f2.empty(), ([], [], [0]), "empty")
    names = [name for name, _ in one.outs]
    strict = rng.random() < 0.5
    width = [max(unpack(one.outs, v)[n] for v in [*one.columns, one.constant]).bit_length() for n in names]
    small = list(zip(names, width, strict=True))
    table = [pack(small, unpack(one.outs, v)) for v in one.table]
    onto = len(set(table)) == 1 << bits_of(small)
    found = answer(
        f2.from_bases_minimal,
        one.layout.bases,
        names,
        one.layout.offset,
        require_surjective=strict,
        exists=onto or not strict,
        strict=True,
    )
    agree(found, (one.ins, small, table), "from_bases_minimal")


# --------------------------------------------------------------------------------------------------------------- axes


@operation("linear", weight=2)
def reorder(one: Linear, rng: random.Random) -> None:
    """transpose, rename, of inputs and of outputs."""
    ins, outs = rng.sample(one.ins, len(one.ins)), rng.sample(one.outs, len(one.outs))
    names = [name for name, _ in ins]
    agree(f2.transpose_ins(one.layout, names), built(ins, one.outs, one.value), f"transpose_ins({one.layout}, {names})")
    names = [name for name, _ in outs]
    agree(f2.transpose_outs(one.layout, names), built(one.ins, outs, one.value), f"transpose_outs to {names}")
    old = rng.choice(one.ins)[0]
    renamed = [("z" if name == old else name, bits) for name, bits in one.ins]
    agree(f2.rename_ins(one.layout, {old: "z"}), (renamed, one.outs, one.table), "rename_ins")
    old = rng.choice(one.outs)[0]
    renamed = [("z" if name == old else name, bits) for name, bits in one.outs]
    agree(f2.rename_outs(one.layout, {old: "z"}), (one.ins, renamed, one.table), "rename_outs")


@operation("linear", weight=2)
def reshape(one: Linear, rng: random.Random) -> None:
    """flatten and reshape, of inputs and of outputs."""
    count, width = bits_of(one.ins), bits_of(one.outs)
    agree(f2.flatten_ins(one.layout), ([(one.ins[0][0], count)], one.outs, one.table), "flatten_ins")
    agree(f2.flatten_outs(one.layout, "o"), (one.ins, [("o", width)], one.table), "flatten_outs")
    for total, call in ((count, f2.reshape_ins), (width, f2.reshape_outs)):
        cut = rng.randint(0, total)
        rest = total - cut + rng.choice((0, 0, 0, 0, 1))
        axes = [("p", cut), ("q", rest)]
        found = answer(call, one.layout, {name: 1 << bits for name, bits in axes}, exists=rest == total - cut)
        want = (axes, one.outs, one.table) if call is f2.reshape_ins else (one.ins, axes, one.table)
        agree(found, want, call.__name__)


@operation("linear")
def squeeze(one: Linear, rng: random.Random) -> None:
    agree(f2.squeeze_ins(one.layout), ([a for a in one.ins if a[1]], one.outs, one.table), "squeeze_ins")
    agree(f2.squeeze_outs(one.layout), (one.ins, [a for a in one.outs if a[1]], one.table), "squeeze_outs")
    name, bits = rng.choice(one.ins)
    found = answer(f2.squeeze_ins, one.layout, [name], exists=not bits)
    agree(found, ([a for a in one.ins if a[0] != name], one.outs, one.table), "squeeze_ins by name")


@operation("linear", weight=2)
def mirror(one: Linear, rng: random.Random) -> None:
    """flip and xor, of inputs and of outputs."""
    ins = [name for name, _ in one.ins if rng.random() < 0.6]
    outs = [name for name, _ in one.outs if rng.random() < 0.6]
    top, peak = {n: (1 << b) - 1 for n, b in one.ins}, {n: (1 << b) - 1 for n, b in one.outs}

    def flipped(point: Point, names: list[str], most: Point) -> Point:
        return {n: most[n] - x if n in names else x for n, x in point.items()}

    want = built(one.ins, one.outs, lambda p: one.value(flipped(p, ins, top)))
    agree(f2.flip_in(one.layout, ins), want, f"flip_in({one.layout}, {ins})")
    want = built(one.ins, one.outs, lambda p: flipped(one.value(p), outs, peak))
    agree(f2.flip_out(one.layout, outs), want, f"flip_out({one.layout}, {outs})")
    amount = {n: rng.randint(0, top[n]) for n in ins}
    want = built(one.ins, one.outs, lambda p: one.value({n: x ^ amount.get(n, 0) for n, x in p.items()}))
    agree(f2.xor_in(one.layout, amount), want, f"xor_in({one.layout}, {amount})")
    shift = {n: rng.randint(0, peak[n]) for n in outs}
    want = built(one.ins, one.outs, lambda p: {n: y ^ shift.get(n, 0) for n, y in one.value(p).items()})
    agree(f2.xor_out(one.layout, shift), want, f"xor_out({one.layout}, {shift})")


@operation("linear", weight=2)
def cut(one: Linear, rng: random.Random) -> None:
    """fix, resize and slice an input axis."""
    name, bits = rng.choice(one.ins)
    at = rng.randrange(1 << bits)
    rest = [axis for axis in one.ins if axis[0] != name]
    want = built(rest, one.outs, lambda p: one.value({**p, name: at}))
    agree(f2.fix_in(one.layout, {name: at}), want, f"fix_in({one.layout}, {name}={at})")
    less = rng.randint(0, bits + (rng.random() < 0.1))
    small = [(n, less if n == name else b) for n, b in one.ins]
    found = answer(f2.resize_in, one.layout, name, 1 << less, exists=less <= bits)
    agree(found, built(small, one.outs, one.value), f"resize_in({one.layout}, {name}, {1 << less})")
    start = rng.randint(0, (1 << bits) - (1 << less))
    what = f"slice_in({one.layout}, {name}, {start}, {1 << less})"
    window = built(small, one.outs, lambda p: one.value({**p, name: start + p[name]}))
    found = answer(f2.slice_in, one.layout, name, start, 1 << less, exists=lambda: affine(window[2]))
    agree(found, window, what)


@operation("linear", weight=2)
def widths(one: Linear, rng: random.Random) -> None:
    """broadcast_in, mask_out, zero_out, resize_out."""
    name, bits = rng.choice(one.ins)
    more = bits + rng.randrange(3)
    wide = [(n, more if n == name else b) for n, b in one.ins]
    want = built(wide, one.outs, lambda p: one.value({**p, name: p[name] % (1 << bits)}))
    agree(f2.broadcast_in(one.layout, name, 1 << more), want, f"broadcast_in({one.layout}, {name}, {1 << more})")
    name, bits = rng.choice(one.outs)
    less = rng.randint(0, bits)
    small = [(n, less if n == name else b) for n, b in one.outs]

    def masked(flat: int) -> int:
        point = unpack(one.outs, flat)
        return pack(small, {**point, name: point[name] % (1 << less)})

    agree(f2.mask_out(one.layout, name, 1 << less), (one.ins, small, [masked(v) for v in one.table]), "mask_out")

    def cleared(flat: int) -> int:
        point = unpack(one.outs, flat)
        return pack(small, {**point, name: point[name] if point[name] < 1 << less else 0})

    zeroed = span([cleared(column) for column in one.columns], masked(one.constant))
    agree(f2.zero_out(one.layout, name, 1 << less), (one.ins, small, zeroed), f"zero_out({one.layout}, {name}, {less})")
    to = rng.randint(0, bits + 1)
    resized = [(n, to if n == name else b) for n, b in one.outs]
    inside = all(unpack(one.outs, v)[name] < 1 << to for v in one.table)
    found = answer(f2.resize_out, one.layout, name, 1 << to, exists=inside, strict=True)
    agree(found, built(one.ins, resized, one.value), f"resize_out({one.layout}, {name}, {1 << to})")


@operation("linear", weight=2)
def parts(one: Linear, rng: random.Random) -> None:
    """sublayout, its zero test, remove_zero_bases, is_identity_on, is_trivial_over, quotient."""
    ins = [name for name, _ in one.ins if rng.random() < 0.7]
    outs = [name for name, _ in one.outs if rng.random() < 0.7]
    kept, seen = [a for a in one.ins if a[0] in ins], [a for a in one.outs if a[0] in outs]
    zero = dict.fromkeys((n for n, _ in one.ins), 0)
    want = built(kept, seen, lambda p: one.value({**zero, **p}))
    agree(f2.sublayout(one.layout, ins, outs), want, f"sublayout({one.layout}, {ins}, {outs})")
    expect(f2.sublayout_is_zero(one.layout, ins, outs) == (not any(want[2])), "sublayout_is_zero")
    name, bits = rng.choice(one.ins)
    start = sum(b for n, b in one.ins[: [n for n, _ in one.ins].index(name)])
    mine = [k for k in range(start, start + bits) if one.columns[k]]
    columns = [c for k, c in enumerate(one.columns) if not start <= k < start + bits or k in mine]
    small = [(n, len(mine) if n == name else b) for n, b in one.ins]
    agree(f2.remove_zero_bases(one.layout, name), (small, one.outs, span(columns, one.constant)), "remove_zero_bases")


@operation("linear")
def staying(one: Linear, rng: random.Random) -> None:
    """Axes of one name on both sides: is_identity_on, is_trivial_over, quotient."""
    bits = rng.randrange(3)
    moved = drawn(rng, most=4)
    ins, outs = [("stay", bits), *moved.ins], [("stay", bits), *moved.outs]
    columns = [1 << k for k in range(bits)] + [c << bits for c in moved.columns]
    constant = moved.constant << bits
    if rng.random() < 0.5 and columns:
        columns[rng.randrange(len(columns))] ^= rng.randrange(1 << bits_of(outs))
    if rng.random() < 0.1:
        constant ^= rng.randrange(1 << bits)
    two = Linear(ins, outs, columns, constant)
    same = all(two.value(p)["stay"] == p["stay"] for p in points(ins))
    expect(f2.is_identity_on(two.layout, "stay") == same, f"is_identity_on({two.layout})")
    rest = [axis for axis in ins if axis[0] != "stay"]

    def others(point: Point) -> Point:
        return {n: y for n, y in two.value(point).items() if n != "stay"}

    alone = all(others({**p, "stay": s}) == others({**p, "stay": 0}) for p in points(rest) for s in range(1 << bits))
    trivial = same and alone
    expect(f2.is_trivial_over(two.layout, "stay") == trivial, f"is_trivial_over({two.layout})")
    found = answer(f2.quotient, two.layout, ["stay"], exists=trivial, strict=True)
    agree(found, built(rest, moved.outs, lambda p: others({**p, "stay": 0})), f"quotient({two.layout})")


@operation("linear", weight=2)
def joined(one: Linear, rng: random.Random) -> None:
    """concat_ins and concat_outs."""
    other = drawn(rng, outs=one.outs, ins=[("p", rng.randrange(3)), ("q", rng.randrange(2))])
    want = [a ^ b for b in other.table for a in one.table]
    found = f2.concat_ins(one.layout, other.layout)
    agree(found, (one.ins + other.ins, one.outs, want), f"concat_ins({one.layout}, {other.layout})")
    other = drawn(rng, outs=[("r", rng.randrange(3))], ins=one.ins)
    width = bits_of(one.outs)
    want = [a | b << width for a, b in zip(one.table, other.table, strict=True)]
    agree(f2.concat_outs(one.layout, other.layout), (one.ins, one.outs + other.outs, want), "concat_outs")
    clash = attempt(f2.concat_outs, one.layout, one.layout)
    expect(failed(clash), f"concat_outs of {one.layout} with itself gave {clash}")
