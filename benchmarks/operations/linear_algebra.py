"""Linear layouts over F2: products, quotients, inverses, solutions, subspaces, register actions, banks."""

from __future__ import annotations

import random
from typing import Any

from layoutalg import f2
from layoutalg.f2 import LinearLayout
from operations.linear import (
    Axes,
    Linear,
    agree,
    bits_of,
    built,
    drawn,
    pack,
    points,
    read,
    span,
    unpack,
)
from operations.record import answer, attempt, expect, failed, operation, refusal


def after(outer: list[int], inner: list[int]) -> list[int]:
    return [outer[value] for value in inner]


# ---------------------------------------------------------------------------------------------------------- composing


@operation("linear", weight=2)
def composition(one: Linear, rng: random.Random) -> None:
    """The outputs of the inner layout are the inputs of the outer one, by name in any order."""
    outs = rng.sample(one.ins, len(one.ins))
    inner = drawn(rng, outs=outs, ins=[("p", rng.randrange(3)), ("q", rng.randrange(3))])
    want = built(inner.ins, one.outs, lambda p: one.value(inner.value(p)))
    agree(one.layout @ inner.layout, want, f"{one.layout} @ {inner.layout}")
    agree(inner.layout.then(one.layout), want, "then")
    other = drawn(rng, outs=[("elsewhere", 2)])
    clash = attempt(lambda: one.layout @ other.layout)
    expect(failed(clash), f"{one.layout} @ {other.layout} gave {clash}")


def summed(inner: Linear, outer: Linear, ins: Axes, outs: Axes) -> list[int]:
    """(inner * outer)(x + size_in y) = inner(x) + size_out outer(y), axis by axis, over given axes."""
    low, high = dict(inner.ins), dict(inner.outs)

    def value(point: dict[str, int]) -> dict[str, int]:
        x = inner.value({n: point[n] & (1 << b) - 1 for n, b in inner.ins})
        y = outer.value({n: point[n] >> low.get(n, 0) for n, _ in outer.ins})
        return {n: x.get(n, 0) + (y.get(n, 0) << high.get(n, 0)) for n, _ in outs}

    return built(ins, outs, value)[2]


@operation("linear", weight=2)
def direct_sum(one: Linear, rng: random.Random) -> None:
    other = drawn(rng, most=3)
    found = attempt(f2.direct_sum, one.layout, other.layout)
    if failed(found):
        sides = ((one.ins, other.ins), (one.outs, other.outs))
        clash = False
        for mine, theirs in sides:
            shared = [n for n, _ in mine if n in dict(theirs)]
            clash = clash or shared != [n for n, _ in theirs if n in dict(mine)]
        raise refusal(found, not clash, f"{one.layout} * {other.layout}")
    expect(found == one.layout * other.layout, "*")
    ins, outs, table = read(found)
    for axes, mine, theirs in ((ins, one.ins, other.ins), (outs, one.outs, other.outs)):
        want = {n: dict(mine).get(n, 0) + dict(theirs).get(n, 0) for n, _ in mine + theirs}
        expect(dict(axes) == want, f"axes of {found}")
        for order in (mine, theirs):
            expect([n for n, _ in axes if n in dict(order)] == [n for n, _ in order], f"order of the axes of {found}")
    expect(table == summed(one, other, ins, outs), f"{one.layout} * {other.layout} gave {found}")


def quotient_of(whole: Any, tile: Linear, left: bool, result: LinearLayout) -> None:
    """tile * C, or C * tile, is the layout again."""
    ins, outs, _table = read(result)
    ground = Linear(ins, outs, list(result.columns), result.constant)
    pair = (tile, ground) if left else (ground, tile)
    got = summed(*pair, list(whole.in_axes), list(whole.out_axes))
    expect(got == read(whole)[2], f"{whole} / {tile.layout} gave {result}")


@operation("linear", weight=2)
def division(one: Linear, rng: random.Random) -> None:
    """divide_left and divide_right of products, and of others."""
    left = rng.random() < 0.5
    tile = drawn(
        rng, ins=[(n, min(b, rng.randrange(3))) for n, b in one.ins], outs=[(n, min(b, 2)) for n, b in one.outs]
    )
    if rng.random() < 0.6:
        pair = (tile, one) if left else (one, tile)
        whole = answer(f2.direct_sum, *[each.layout for each in pair], exists=False)
    else:
        whole = one.layout
    what = f"divide of {whole} by {tile.layout}"
    found = answer(
        f2.divide_left if left else f2.divide_right,
        whole,
        tile.layout,
        exists=lambda: division_exists(whole, tile, left),
    )
    expect(list(found.in_dims) == list(whole.in_dims) and list(found.out_dims) == list(whole.out_dims), what)
    quotient_of(whole, tile, left, found)


def division_exists(whole: Any, tile: Linear, left: bool) -> bool:
    """The bits of the tile do what the tile does, and the others leave its output bits alone."""
    ins, outs, _ = read(whole)
    if any(b > dict(ins).get(n, -1) for n, b in tile.ins) or any(b > dict(outs).get(n, -1) for n, b in tile.outs):
        return False
    small_in, small_out = dict(tile.ins), dict(tile.outs)

    def places(axes: Axes, small: dict[str, int]) -> list[int]:
        found, start = [], 0
        for name, bits in axes:
            count = small.get(name, 0)
            first = start if left else start + bits - count
            found += list(range(first, first + count))
            start += bits
        return found

    bits_in, bits_out = places(ins, small_in), places(outs, small_out)
    order_in = [pack_place(tile.ins, ins, small_in, k) for k in range(len(bits_in))]
    mask = sum(1 << place for place in bits_out)
    gather = {place: pack_place(tile.outs, outs, small_out, k) for k, place in enumerate(bits_out)}

    def tile_part(value: int) -> int:
        return sum((value >> place & 1) << gather[place] for place in bits_out)

    for place, column in enumerate(whole.columns):
        if place in bits_in:
            if column & ~mask or tile_part(column) != tile.columns[order_in[bits_in.index(place)]]:
                return False
        elif column & mask:
            return False
    return tile_part(whole.constant) == tile.constant


def pack_place(tile: Axes, whole: Axes, small: dict[str, int], index: int) -> int:
    """The place in the tile's order of the index-th of its bits, counted in the order of the whole's axes."""
    names = [(n, small.get(n, 0)) for n, _ in whole]
    for name, bits in names:
        if index < bits:
            start = 0
            for other, width in tile:
                if other == name:
                    return start + index
                start += width
        index -= bits
    return 0


@operation("linear")
def repetitions(one: Linear, rng: random.Random) -> None:
    """layout(x) = R(x) xor tile(x mod tile); R ignores the bits of the tile and never sets one that the tile uses."""
    tile = drawn(rng, ins=[(n, min(b, rng.randrange(3))) for n, b in one.ins], outs=one.outs)
    low = dict(tile.ins)
    if rng.random() < 0.6:  # the tile of the layout itself
        zero = dict.fromkeys((n for n, _ in one.ins), 0)
        columns = [one.table[pack(one.ins, {**zero, n: 1 << k})] ^ one.constant for n, b in tile.ins for k in range(b)]
        tile = Linear(tile.ins, one.outs, columns, 0)
    found = attempt(f2.repetitions, one.layout, tile.layout)
    used = tile.constant
    for column in tile.columns:
        used |= column
    rest = [
        v ^ tile.table[pack(tile.ins, {n: p[n] & (1 << b) - 1 for n, b in tile.ins})]
        for p, v in zip(points(one.ins), one.table, strict=True)
    ]
    ignores = all(
        rest[pack(one.ins, {n: x >> low.get(n, 0) << low.get(n, 0) for n, x in p.items()})] == r
        for p, r in zip(points(one.ins), rest, strict=True)
    )
    exists = ignores and not any(r & used for r in rest)
    what = f"repetitions({one.layout}, {tile.layout})"
    if failed(found):
        raise refusal(found, exists, what)
    expect(exists, f"{what} gave {found}")
    agree(found, (one.ins, one.outs, rest), what)


@operation("linear")
def fitting(one: Linear, rng: random.Random) -> None:
    """ensure_not_larger, ensure_not_smaller and combine_cta_cga."""
    shape = {n: 1 << rng.randint(0, b + 1) for n, b in one.outs}
    found = f2.ensure_not_larger(one.layout, shape)
    small = [(n, min(b, shape[n].bit_length() - 1)) for n, b in one.outs]
    want = built(one.ins, small, lambda p: {n: y % shape[n] for n, y in one.value(p).items()})
    agree(found, want, f"ensure_not_larger({one.layout}, {shape})")
    if any(n == "register" for n, _ in one.ins):
        kept = f2.ensure_not_larger(one.layout, shape, broadcast=False)
        expect(set(read(kept)[2]) == set(want[2]), f"ensure_not_larger({one.layout}, {shape}, broadcast=False): {kept}")
    name = rng.choice(one.ins)[0]
    larger = f2.ensure_not_smaller(one.layout, shape, name)
    grown = [(n, max(b, shape[n].bit_length() - 1)) for n, b in one.outs]
    extra = sum(g - b for (_, g), (_, b) in zip(grown, one.outs, strict=True))
    ins = [(n, b + extra if n == name else b) for n, b in one.ins]
    low = dict(one.ins)[name]

    def copied(point: dict[str, int]) -> dict[str, int]:
        copy, value = point[name] >> low, one.value({**point, name: point[name] & (1 << low) - 1})
        for axis, bits in one.outs:
            more = dict(grown)[axis] - bits
            value[axis] |= (copy & (1 << more) - 1) << bits
            copy >>= more
        return value

    agree(larger, built(ins, grown, copied), f"ensure_not_smaller({one.layout}, {shape}, {name})")
    blocks = {n: 1 << rng.randint(0, 1) for n, _ in one.outs}
    whole = {n: size * blocks[n] for n, size in shape.items()}
    columns, width = [], 0
    for size in blocks.values():
        columns += [1 << width + k for k in range(size.bit_length() - 1)]
        width += size.bit_length() - 1
    axes = [(n, size.bit_length() - 1) for n, size in blocks.items()]
    cga = Linear([("block", width)], axes, columns, 0)
    found = answer(f2.combine_cta_cga, one.layout, cga.layout, whole)
    fitted = f2.ensure_not_larger(f2.ensure_not_smaller(one.layout, shape), shape)
    ground = Linear(list(fitted.in_axes), list(fitted.out_axes), list(fitted.columns), fitted.constant)
    ins, outs, table = read(found)
    expect(dict(outs) == {n: size.bit_length() - 1 for n, size in whole.items()}, f"outputs of {found}")
    expect(table == summed(ground, cga, ins, outs), f"combine_cta_cga gave {found}")


# ----------------------------------------------------------------------------------------------------------- inverses


@operation("linear", weight=2)
def inverses(one: Linear, rng: random.Random) -> None:
    """left, right and two-sided inverses; right ones with the smallest packed values."""
    injective = len(set(one.table)) == len(one.table)
    onto = len(set(one.table)) == 1 << bits_of(one.outs)
    name = rng.choice(("left", "right", "both"))
    what = f"{name} inverse of {one.layout}"
    if name == "left":
        found = answer(f2.left_inverse, one.layout, exists=injective)
        ins, outs, table = read(found)
        expect(injective and (ins, outs) == (one.outs, one.ins), f"{what} gave {found}")
        expect(after(table, one.table) == list(range(len(one.table))), f"{what} gave {found}")
        return
    if name == "right":
        found = answer(f2.right_inverse, one.layout, exists=onto)
        ins, outs, table = read(found)
        expect(onto and (ins, outs) == (one.outs, one.ins), f"{what} gave {found}")
        expect(after(one.table, table) == list(range(len(table))), f"{what} gave {found}")
        if not one.constant:
            least: dict[int, int] = {}
            for x, y in enumerate(one.table):
                least.setdefault(y, x)
            units = [1 << k for k in range(bits_of(one.outs))]
            expect([table[u] for u in units] == [least[u] for u in units], f"{what} is not the smallest: {found}")
        return
    found = answer(one.layout.inverse, exists=injective and onto)
    ins, outs, table = read(found)
    expect(injective and onto and (ins, outs) == (one.outs, one.ins), f"{what} gave {found}")
    expect(after(table, one.table) == list(range(len(one.table))), f"{what} gave {found}")
    expect(~one.layout == found, "~")


@operation("linear", weight=2)
def solutions(one: Linear, rng: random.Random) -> None:
    """All C with outer @ C = target: there is one exactly where every value of the target is one of the outer's."""
    ins = [("p", rng.randrange(3)), ("q", rng.randrange(2))]
    target = drawn(rng, outs=one.outs, ins=ins)
    if rng.random() < 0.6:
        inner = drawn(rng, outs=one.ins, ins=ins)
        table = built(ins, one.outs, lambda p: one.value(inner.value(p)))[2]
        target = Linear(ins, one.outs, [table[1 << k] ^ table[0] for k in range(bits_of(ins))], table[0])
    exists = set(target.table) <= set(one.table)
    what = f"solve({one.layout}, {target.layout})"
    found = attempt(f2.solve, one.layout, target.layout)
    if failed(found):
        again = attempt(f2.invert_and_compose, target.layout, one.layout)
        expect(failed(again), f"invert_and_compose gave {again} where solve refuses")
        raise refusal(found, exists, what)
    expect(exists, f"{what} gave {found}")
    kernel = {x for x, y in enumerate(one.table) if y == one.constant}
    free = (len(kernel).bit_length() - 1) * (1 + bits_of(ins))  # the columns and the constant
    expect(found.freedom == free and found.is_unique == (free == 0), f"freedom of {what} is {found.freedom}")
    expect(set(span(list(found.kernel))) == kernel, f"kernel of {what}")
    expect([pack(one.ins, point) for point in found.directions] == list(found.kernel), "directions")
    chosen = [found.particular, found.choose(), f2.invert_and_compose(target.layout, one.layout)]
    if rng.random() < 0.4:
        chosen.append(found.choose(rng.choice(("local", [one.ins[0][0]]))))
    for layout in chosen:
        got = read(layout)
        expect(got[:2] == (ins, one.ins) and after(one.table, got[2]) == target.table, f"{what} gave {layout}")
        expect(found.contains(layout), f"{what} does not contain {layout}")
    wrong = drawn(rng, outs=one.ins, ins=ins)
    expect(found.contains(wrong.layout) == (after(one.table, wrong.table) == target.table), f"contains({wrong.layout})")
    least = {}
    for x in range(len(one.table)):
        least.setdefault(one.table[x], x)
    expect(found.particular.constant == least[target.constant], f"{what}: the smallest constant")


@operation("linear")
def solve_outer(one: Linear, rng: random.Random) -> None:
    """X with X @ inner = target exists exactly where equal inputs of the target are equal in the inner layout."""
    target = drawn(rng, ins=one.ins, outs=[("y", rng.randrange(3))])
    if rng.random() < 0.6:
        outer = drawn(rng, ins=one.outs, outs=[("y", rng.randrange(4))])
        table = after(outer.table, one.table)
        columns = [table[1 << k] ^ table[0] for k in range(len(one.columns))]
        target = Linear(one.ins, outer.outs, columns, table[0])
    seen: dict[int, int] = {}
    exists = all(seen.setdefault(a, b) == b for a, b in zip(one.table, target.table, strict=True))
    what = f"solve_outer({one.layout}, {target.layout})"
    found = answer(f2.solve_outer, one.layout, target.layout, exists=exists)
    ins, outs, table = read(found)
    expect(exists and (ins, outs) == (one.outs, target.outs), f"{what} gave {found}")
    expect(after(table, one.table) == target.table, f"{what} gave {found}")


@operation("linear")
def preimages(one: Linear, rng: random.Random) -> None:
    value = rng.choice((rng.choice(one.table), rng.randrange(1 << bits_of(one.outs))))
    given: Any = value if rng.random() < 0.5 else unpack(one.outs, value)
    want = [x for x, y in enumerate(one.table) if y == value]
    found = answer(f2.preimages, one.layout, given, exists=lambda: bool(want))
    first, basis = found
    got = span([pack(one.ins, point) for point in basis], pack(one.ins, first))
    expect(sorted(got) == want and pack(one.ins, first) == want[0], f"preimages({one.layout}, {value}) = {found}")


@operation("linear")
def minimal_conversion(one: Linear, rng: random.Random) -> None:
    """Up to axes that stay in place, a C with source @ C = destination."""
    other = drawn(rng, outs=one.outs, ins=rng.choice((one.ins, [("register", 2), ("lane", 2)])))
    exists = set(other.table) <= set(one.table)
    what = f"minimal_conversion({one.layout}, {other.layout})"
    found = answer(f2.minimal_conversion, one.layout, other.layout, exists=exists, strict=True)
    ins, outs, table = read(found)
    dropped = [n for n, _ in other.ins if n not in dict(ins)]
    for point in points(other.ins):
        place = {**point, **unpack(outs, table[pack(ins, point)])}
        fine = all(place.get(n, 0) == point[n] for n in dropped if n in dict(one.ins))
        place = {n: place.get(n, 0) for n, _ in one.ins}
        expect(fine and one.value(place) == other.value(point), f"{what} gave {found}, wrong at {point}")
