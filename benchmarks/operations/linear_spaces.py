"""Linear layouts over F2: subspaces, what permutes registers, vector widths and banks."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

from layoutalg import f2
from layoutalg.f2 import LinearLayout, Subspace
from operations.linear import Linear, agree, bits_of, built, pack, points, read, span, unpack
from operations.record import answer, attempt, expect, failed, operation, refusal

# ---------------------------------------------------------------------------------------------------------- subspaces


@operation("linear", weight=2)
def subspaces(one: Linear, rng: random.Random) -> None:
    axes = tuple(one.outs)
    width = bits_of(one.outs)
    space, other = f2.image_of(one.layout), Subspace.spanned(axes, [rng.randrange(1 << width) for _ in range(2)])
    mine = {v ^ one.constant for v in one.table}
    theirs = set(span(list(other.basis)))
    expect(set(span(list(space.basis))) == mine and 1 << space.dimension == len(mine), f"image_of({one.layout})")
    kernel = f2.kernel_of(one.layout)
    expect(set(span(list(kernel.basis))) == {x for x, y in enumerate(one.table) if y == one.constant}, "kernel_of")
    members = {
        "sum": {a ^ b for a in mine for b in theirs},
        "intersection": mine & theirs,
        "annihilator": {y for y in range(1 << width) if all(not (x & y).bit_count() & 1 for x in space.basis)},
    }
    expect(set(span(list(space.sum(other).basis))) == members["sum"], "sum")
    expect(set(span(list(space.intersection(other).basis))) == members["intersection"], "intersection")
    expect(set(span(list(space.annihilator().basis))) == members["annihilator"], "annihilator")
    rest = space.complement()
    expect(rest.dimension + space.dimension == width, f"complement of {space}")
    expect(len({a ^ b for a in mine for b in span(list(rest.basis))}) == 1 << width, f"complement of {space}")
    expect(all(vector.bit_count() == 1 for vector in rest.basis), f"complement of {space} in units")
    both = set(span(list(space.common_complement(other).basis)))
    expect(both & mine == {0} == both & theirs, "common_complement meets them")
    expect(len(both) * max(len(mine), len(theirs)) == 1 << width, "common_complement is not the largest")
    point = rng.randrange(1 << width)
    expect(space.contains(point) == (point in mine) == space.contains(unpack(one.outs, point)), "contains")
    expect(space.includes(other) == (theirs <= mine), "includes")
    expect(list(space.basis) == sorted(space.basis) and space.bits == width, "basis, bits")
    expect([pack(one.outs, p) for p in space.points] == list(space.basis), "points")
    agree(space.as_layout("z"), ([("z", space.dimension)], one.outs, span(list(space.basis))), "as_layout")
    found = answer(space.coordinates, point, exists=point in mine)
    total = 0
    for index in found:
        total ^= space.basis[index]
    expect(point in mine and total == point, f"coordinates({point}) = {found}")


@operation("linear")
def images(one: Linear, rng: random.Random) -> None:
    """Image and preimage of a subspace under the linear part."""
    linear = [v ^ one.constant for v in one.table]
    source = Subspace.spanned(tuple(one.ins), [rng.randrange(len(linear)) for _ in range(2)])
    want = {linear[x] for x in span(list(source.basis))}
    expect(set(span(list(source.image(one.layout).basis))) == want, f"image under {one.layout}")
    target = Subspace.spanned(tuple(one.outs), [rng.randrange(1 << bits_of(one.outs)) for _ in range(2)])
    inside = set(span(list(target.basis)))
    want = {x for x, y in enumerate(linear) if y in inside}
    expect(set(span(list(target.preimage(one.layout).basis))) == want, f"preimage under {one.layout}")


# ---------------------------------------------------------------------------------------------------------- registers


@operation("linear", weight=2)
def actions(one: Linear, rng: random.Random) -> None:
    name, bits = rng.choice(one.ins)
    chosen = tuple(rng.sample(range(bits), rng.randint(0, bits)))
    action = selection(name, bits, chosen)

    def old(new: int) -> int:
        return sum((new >> k & 1) << source for k, source in enumerate(chosen))

    small = [(n, len(chosen) if n == name else b) for n, b in one.ins]
    want = built(small, one.outs, lambda p: one.value({**p, name: old(p[name])}))
    agree(f2.map_in(one.layout, action), want, f"{action} on {one.layout}")
    values = [rng.randrange(99) for _ in range(1 << bits)]
    moved = [values[i] for i in action.table()]
    back = [moved[i] for i in f2.left_inverse(action).table()]
    kept = sum(1 << source for source in chosen)
    expect(back == [values[x & kept] for x in range(1 << bits)], f"left_inverse({action})")
    inverse = answer(action.inverse, exists=lambda: len(chosen) == bits)
    again = f2.map_in(f2.map_in(one.layout, action), inverse)
    expect(len(chosen) == bits and again == one.layout, f"{action}.inverse() = {inverse}")


def selection(name: str, bits: int, sources: Sequence[int]) -> LinearLayout:
    """The map to an axis that sends bit i to bit ``sources[i]``."""
    return LinearLayout(((name, len(sources)),), ((name, bits),), tuple(1 << source for source in sources))


def sources_of(action: LinearLayout) -> list[int]:
    return [column.bit_length() - 1 for column in action.columns]


def register_bits(one: Linear) -> tuple[int, list[int]]:
    """Where the register axis starts, and its columns."""
    start = 0
    for name, bits in one.ins:
        if name == "register":
            return start, one.columns[start : start + bits]
        start += bits
    return 0, []


@operation("linear")
def drop_broadcast(one: Linear, rng: random.Random) -> None:
    """After the action every register value occurs once less for each bit that depends on the lower bits."""
    _, columns = register_bits(one)
    action = f2.drop_broadcast(one.layout)
    kept = [columns[source] for source in sources_of(action)]
    expect(all(kept), f"drop_broadcast({one.layout}) keeps a zero column")
    dropped = [c for k, c in enumerate(columns) if k not in sources_of(action)]
    expect(not any(dropped), f"drop_broadcast({one.layout}) = {action} drops bits that change the value")


@operation("linear")
def additive_strides(one: Linear, rng: random.Random) -> None:
    """The largest set of register bits whose output bits nothing else uses."""
    start, columns = register_bits(one)
    count, action = f2.additive_strides(one.layout)
    inside = set(range(len(columns)))
    while True:  # the greatest fixed point: a column that meets one outside leaves too
        others = one.constant
        for k, column in enumerate(one.columns):
            if k - start not in inside or not start <= k < start + len(columns):
                others |= column
        keep = {k for k in inside if not columns[k] & others}
        if keep == inside:
            break
        inside = keep
    expect(count == 1 << len(inside), f"additive_strides({one.layout}) = {count}, {1 << len(inside)} exist")
    expect(action.is_invertible and set(sources_of(action)[: len(inside)]) == inside, f"the action {action}")


@operation("linear")
def largest_vectorisation(one: Linear, rng: random.Random) -> None:
    """The widest run of offsets that register bits can be permuted to."""
    two = Linear(one.ins, [("offset", bits_of(one.outs))], one.columns, one.constant)
    element = rng.choice((8, 16, 32, 64))
    start, columns = register_bits(two)
    count, action = f2.largest_vectorisation(two.layout, element)
    best, bits = 1, 0
    while (2 << bits) * element <= 128 and 1 << bits in columns:
        bits += 1
        low = (1 << bits) - 1
        taken = [columns.index(1 << k) for k in range(bits)]
        free = [c for k, c in enumerate(two.columns) if k - start not in taken or not start <= k < start + len(columns)]
        if not any(c & low for c in free) and not two.constant & low:
            best = 1 << bits
    expect(count == best, f"largest_vectorisation({two.layout}, {element}) = {count}, {best} exists")
    moved = read(f2.map_in(two.layout, action))
    shift = 0
    for name, width in moved[0]:
        if name == "register":
            break
        shift += width
    run = [moved[2][k << shift] - moved[2][0] for k in range(count)]
    expect(run == list(range(count)) and moved[2][0] % count == 0, f"the action {action} on {two.layout}")


@operation("linear")
def num_consecutive(one: Linear, rng: random.Random) -> None:
    found = f2.num_consecutive(one.layout)
    (name, bits), (out, width) = one.ins[0], one.outs[0]
    best = 1
    for k in range(1, min(bits, width) + 1):
        size = 1 << k
        fine = True
        for point in points(one.ins):
            low = point[name] % size
            first, value = one.value({**point, name: point[name] - low}), one.value(point)
            fine = fine and first[out] % size == 0 and value == {**first, out: first[out] + low}
        if fine:
            best = size
    expect(found == best, f"num_consecutive({one.layout}) = {found}, {best} exists")


@operation("linear")
def permutation_for_divide(one: Linear, rng: random.Random) -> None:
    """After the permutation of register bits the tile divides; found whenever one exists."""
    left = rng.random() < 0.7
    axis = rng.choice(one.outs)[0]
    bits = rng.randint(0, min(dict(one.outs)[axis], dict(one.ins).get("register", 0), 2))
    tile = Linear([("register", bits)], [(axis, bits)], [1 << k for k in range(bits)], 0)
    what = f"permutation_for_divide({one.layout}, {tile.layout}, left={left})"
    found = attempt(f2.permutation_for_divide, one.layout, tile.layout, left=left)
    _start, columns = register_bits(one)
    place = 0
    for name, count in one.outs:
        if name == axis:
            place += 0 if left else count - bits
            break
        place += count
    wanted = [1 << place + k for k in range(bits)]
    counted = Counter(columns)
    mask = sum(wanted)
    others = Counter(one.columns) - Counter(wanted)
    exists = all(counted[w] for w in wanted) and not any(c & mask for c in others) and not one.constant & mask
    if failed(found):
        raise refusal(found, exists, what)
    expect(exists and found.is_invertible, f"{what} gave {found}")
    moved = f2.map_in(one.layout, found)
    divided = attempt(f2.divide_left if left else f2.divide_right, moved, tile.layout)
    expect(not failed(divided), f"{what} gave {found}, after which the tile does not divide")


@operation("linear")
def bank_conflicts(one: Linear, rng: random.Random) -> None:
    """conflict_degree and bank_conflict, by counting words of each bank."""
    element, banks, width = rng.choice((8, 16, 32, 64)), rng.choice((2, 4, 32)), rng.choice((16, 32))
    words: dict[int, set[int]] = {}
    for offset in one.table:
        first = offset * element // width
        for word in range(first, first + max(element // width, 1)):
            words.setdefault(word % banks, set()).add(word)
    worst = max(len(found) for found in words.values())
    what = f"({one.layout}, {element}, banks={banks}, bank_bits={width})"
    found = f2.conflict_degree(one.layout, element, banks=banks, bank_bits=width)
    expect(found == worst, f"conflict_degree{what} = {found}, not {worst}")
    step = f2.bank_conflict(one.layout, element, banks=banks, bank_bits=width)
    expect((step is None) == (worst == 1), f"bank_conflict{what} = {step}")
    if step is not None and any(step.values()):
        a = one.table[0] * element // width
        b = one.table[pack(one.ins, step)] * element // width
        share = {(a + k) % banks for k in range(max(element // width, 1))}
        other = {(b + k) % banks for k in range(max(element // width, 1))}
        expect(a != b and share & other, f"bank_conflict{what} = {step} is no conflict")
