"""Views of strided and swizzled layouts: slices, tiles, partitions over threads, elements of another width.

Implementation notes: a subject has ``shape``, ``stride``, the ``base`` table of its modes and ``under``, which takes a
table of the modes through the swizzles over them, so that one judge serves both families.
"""

from __future__ import annotations

import random
from collections import Counter
from itertools import product
from typing import Any

from layoutalg import cute
from layoutalg.cute import CopyAtom, CuteLayout, TiledCopy
from operations import tables
from operations.algebra import divided, split_exists, sums
from operations.record import answer, attempt, expect, failed, operation, refusal
from operations.strided import Strided, congruent, same
from operations.tables import fits, leaves, like, parts, ravel, size_of, values

Modes = list[tuple[Any, Any]]


def blanks(shape: Any, stride: Any, rng: random.Random, top: bool = True) -> tuple[Any, Modes, Modes, int]:
    """A coordinate with blanks; the modes it keeps, those it fixes, the offset of these."""
    if isinstance(shape, tuple) and (top or rng.random() < 0.4):
        coord: list[Any] = []
        kept: Modes = []
        dropped: Modes = []
        offset = 0
        for part, step in zip(shape, stride, strict=True):
            one, more, less, fixed = blanks(part, step, rng, False)
            coord.append(one)
            kept += more
            dropped += less
            offset += fixed
        return tuple(coord), kept, dropped, offset
    if rng.random() < 0.5:
        return None, [(shape, stride)], [], 0
    index = rng.randrange(size_of(shape))
    return index, [], [(shape, stride)], values(shape, stride)[index]


def of_modes(modes: Modes) -> tuple[Any, Any]:
    return tuple(shape for shape, _ in modes), tuple(stride for _, stride in modes)


@operation("cute", "composed", weight=2)
def slice_(one: Strided, rng: random.Random) -> None:
    coord, kept, dropped, offset = blanks(one.shape, one.stride, rng)
    shape, stride = of_modes(kept)
    if coord is None:
        shape, stride = one.shape, one.stride
    table = [value + offset for value in values(shape, stride)]
    found = cute.slice(coord, one.layout)
    swizzled = type(one) is not Strided
    same(found, one.under(table if swizzled else values(shape, stride)), f"slice({coord}, {one.layout})")
    congruent(found, shape, f"slice({coord}, {one.layout})")
    both = cute.slice_and_offset(coord, one.layout)
    same(both, one.under(table), f"slice_and_offset({coord}, {one.layout})")
    left = cute.dice(coord, one.layout)
    shape, stride = of_modes(dropped)
    if isinstance(coord, int):
        shape, stride = one.shape, one.stride
    same(left, one.under(values(shape, stride)), f"dice({coord}, {one.layout})")
    congruent(left, shape, f"dice({coord}, {one.layout})")


@operation("cute", "composed")
def domain_offset(one: Strided, rng: random.Random) -> None:
    index = rng.randrange(len(one.base))
    coord = tables.any_coordinate(index, one.shape, rng)
    digits = leaves(tables.unravel(index, one.shape))
    shape = like(one.shape, [n - digit for n, digit in zip(leaves(one.shape), digits, strict=True)])
    offset = one.base[index]
    found = cute.domain_offset(coord, one.layout)
    congruent(found, shape, f"domain_offset({coord}, {one.layout})")
    table = [value + offset for value in values(shape, one.stride)]
    same(found, one.under(table), f"domain_offset({coord}, {one.layout})")


@operation("cute", "composed")
def shift(one: Strided, rng: random.Random) -> None:
    amount = rng.randint(-40, 40)
    same(cute.shift(one.layout, amount), [value + amount for value in one.table], f"shift({one.layout}, {amount})")


# --------------------------------------------------------------------------------------------------- tiles, partitions


def cuts(one: Strided, rng: random.Random) -> tuple[tuple[int, ...], list[tuple[list[int], list[int]]], bool]:
    """Tile extents that divide the modes, the tables inside the tile and across tiles, and whether these exist."""
    extents, pairs, exists = [], [], True
    for shape, stride in zip(parts(one.shape), parts(one.stride), strict=True):
        table = values(shape, stride)
        extent = rng.choice([n for n in range(1, len(table) + 1) if len(table) % n == 0])
        tile = Strided(None, extent, 1, list(range(extent)))
        cut = divided(table, tile)
        exists = exists and cut is not None and split_exists(table, tile, cut[1])
        extents.append(extent)
        pairs.append((table[:extent], table[::extent]))
    return tuple(extents), pairs, exists


@operation("cute", "composed", weight=2)
def local_tile(one: Strided, rng: random.Random) -> None:
    if not isinstance(one.shape, tuple):
        return
    extents, pairs, exists = cuts(one, rng)
    coord: Any = tuple(rng.choice((None, rng.randrange(len(rest)))) for _, rest in pairs)
    free = [rest for part, (_, rest) in zip(coord, pairs, strict=True) if part is None]
    start = sum(rest[part] for part, (_, rest) in zip(coord, pairs, strict=True) if part is not None)
    if rng.random() < 0.2:  # the flat number of a tile
        across = sums([rest for _, rest in pairs])
        coord = rng.randrange(len(across))
        free, start = [], across[coord]
    elif rng.random() < 0.3:  # entries left out at the end stay open
        while coord and coord[-1] is None:
            coord = coord[:-1]
    what = f"local_tile({one.layout}, {extents}, {coord})"
    found = answer(cute.local_tile, one.layout, extents, coord, exists=exists)
    table = sums([inside for inside, _ in pairs] + free)
    same(found, one.under([value + start for value in table]), what)
    if isinstance(coord, tuple) and len(coord) == len(extents) > 1:
        hidden = rng.randrange(len(extents))
        keep = tuple(None if place == hidden else 1 for place in range(len(extents)))
        wide = attempt(
            cute.local_tile,
            one.layout,
            (*extents[: hidden + 1], rng.choice((1, 2, 5)), *extents[hidden + 1 :]),
            (*coord[: hidden + 1], 0, *coord[hidden + 1 :]),
            (*keep[:hidden], 1, None, *keep[hidden + 1 :]),
        )
        expect(wide == found, f"local_tile with keep of {one.layout} gave {wide}")


@operation("cute", "composed", weight=2)
def local_partition(one: Strided, rng: random.Random) -> None:
    if not isinstance(one.shape, tuple):
        return
    extents, pairs, exists = cuts(one, rng)
    order = rng.sample(range(len(extents)), len(extents))
    stride, weight = [0] * len(extents), 1
    for place in order:
        stride[place] = weight
        weight *= extents[place]
    threads = CuteLayout(extents, tuple(stride))
    numbers = values(extents, tuple(stride))
    index = rng.randrange(weight) if rng.random() < 0.9 else weight + rng.randrange(3)
    what = f"local_partition({one.layout}, {threads}, {index})"
    found = answer(cute.local_partition, one.layout, threads, index, exists=exists and index in numbers)
    expect(index in numbers, f"{what} gave {found}")
    start = sums([inside for inside, _ in pairs])[numbers.index(index)]
    table = [value + start for value in sums([rest for _, rest in pairs])]
    same(found, one.under(table), what)


@operation("cute", "composed")
def thread_value_partition(one: Strided, rng: random.Random) -> None:
    size = len(one.base)
    extents = tables.factors(size, rng)
    strides, weight = [], 1
    for extent in extents:
        strides.append(weight)
        weight *= extent
    order = rng.sample(range(len(extents)), len(extents))
    cut = rng.randint(0, len(order))
    groups = [order[:cut], order[cut:]]
    shape = tuple(tuple(extents[k] for k in group) or 1 for group in groups)
    stride = tuple(tuple(strides[k] for k in group) or 0 for group in groups)
    owned = CuteLayout(shape, stride)
    numbers = values(shape, stride)
    count = size_of(shape[0])
    thread = rng.randrange(count)
    what = f"thread_value_partition({one.layout}, {owned}, {thread})"
    table = [one.base[i] for i in numbers]
    found = answer(cute.thread_value_partition, one.layout, owned, thread, exists=lambda: fits(shape, table))
    same(found, one.under(table[thread::count]), what)


def compact(extents: tuple[int, ...], rng: random.Random) -> tuple[CuteLayout, list[int]]:
    stride, weight = [0] * len(extents), 1
    for place in rng.sample(range(len(extents)), len(extents)):
        stride[place] = weight
        weight *= extents[place]
    return CuteLayout(extents, tuple(stride)), values(extents, tuple(stride))


@operation("cute", "composed", weight=0.7)
def tiled_copy(one: Strided, rng: random.Random) -> None:
    """make_layout_tv, make_tiled_copy and its partitions of a tensor that the tile divides."""
    rank = rng.choice((1, 2, 2))
    extents = [tuple(rng.choice((1, 2, 2, 3, 4)) for _ in range(rank)) for _ in range(2)]
    (threads, number), (held, place) = compact(extents[0], rng), compact(extents[1], rng)
    if rank == 1:
        threads, held = CuteLayout(extents[0][0]), CuteLayout(extents[1][0])
    tile = tuple(t * v for t, v in zip(*extents, strict=True))
    wanted = [0] * (len(number) * len(place))
    for t, v in product(range(len(number)), range(len(place))):
        at, of = tables.unravel(t, extents[0]), tables.unravel(v, extents[1])
        coord = tuple(b + n * a for a, b, n in zip(at, of, extents[1], strict=True))
        wanted[number[t] + len(number) * place[v]] = ravel(coord, tile)
    what = f"make_layout_tv({threads}, {held})"
    made = answer(cute.make_layout_tv, threads, held, exists=lambda: fits((len(number), len(place)), wanted))
    expect(made[0] == tile, f"{what} gave the tile {made[0]}")
    same(made[1], wanted, what)
    copy = cute.make_tiled_copy(threads, held, CopyAtom.vector() if rng.random() < 0.5 else None)
    expect(copy.threads == len(number), "threads")
    expect(copy == TiledCopy(made[1], made[0], CopyAtom.vector()), "TiledCopy")
    counts = [rng.choice((1, 2)) for _ in tile]
    base = compact(tuple(n * m for n, m in zip(tile, counts, strict=True)), rng)[0]
    layout = tables_over(one, base)
    steps = [values(n, d) for n, d in zip(base.shape, base.stride, strict=True)]
    inside = sums([step[:n] for step, n in zip(steps, tile, strict=True)])
    across = sums([step[::n] for step, n in zip(steps, tile, strict=True)])
    thread = rng.randrange(len(number))
    mine = wanted[thread :: len(number)]
    table = one.under([inside[i] + b for b in across for i in mine])
    same(copy.partition_S(layout, thread), table, f"partition_S of {layout}, {thread}, {what}")
    same(copy.partition_D(layout, thread), table, "partition_D")
    full = one.under([inside[i] + b for b in across for i in wanted])
    same(copy.tidfrg_S(layout), full, "tidfrg_S")
    same(copy.tidfrg_D(layout), full, "tidfrg_D")


def tables_over(one: Strided, base: CuteLayout) -> Any:
    """A layout under what lies over the modes of a subject."""
    return base if type(one) is Strided else one.layout.rebase(base)


@operation("cute", weight=0.1)
def ldmatrix_atom(one: Strided, rng: random.Random) -> None:
    """Lane l gives the address of row l of the matrices, and gets words: element pairs of row l / 4, or column."""
    matrices, transposed = rng.choice([(m, t) for m in (1, 2, 4) for t in (False, True)])
    atom = CopyAtom.ldmatrix(matrices, transposed)
    want = []
    for register in range(2 * matrices):
        for lane in range(32):
            row, column = lane // 4, 2 * (lane % 4) + register % 2
            want.append(64 * (register // 2) + (8 * column + row if transposed else 8 * row + column))
    same(atom.destination, want, "ldmatrix destination")
    rows = [8 * (lane % (8 * matrices)) + element for element in range(8) for lane in range(32)]
    same(atom.source, rows, "ldmatrix source")
    expect(atom.order == atom.destination, "order")


# ------------------------------------------------------------------------------------------------------------- recast


def widened(shape: Any, stride: Any, factor: int) -> bool:
    """Whether strides over a shape, each extent divided, run over the same memory in elements ``factor`` as wide."""
    modes = list(zip(leaves(shape), leaves(stride), strict=True))
    memory = Counter(values(shape, stride))
    choices = [[q for q in range(1, n + 1) if n % q == 0 and factor % q == 0] for n, _ in modes]
    for taken in product(*choices):
        if tables.math.prod(taken) != factor:
            continue
        rest = [(n // q, d * q) for (n, d), q in zip(modes, taken, strict=True)]
        if any(n > 1 and d % factor for n, d in rest):
            continue
        units = values(tuple(n for n, _ in rest), tuple(d // factor if n > 1 else 0 for n, d in rest))
        low = min(memory)
        if low % factor and min(units) * factor > low:
            start = low // factor
            units = [unit + start for unit in units]
        if Counter(factor * unit + r for unit in units for r in range(factor)) == memory:
            return True
    return False


@operation("cute", "composed", weight=2)
def upcast(one: Strided, rng: random.Random) -> None:
    factor = rng.choice((1, 2, 2, 3, 4, 4, 6, 8))
    what = f"upcast({one.layout}, {factor})"
    found = attempt(cute.upcast, one.layout, factor)
    memory = Counter(one.table)
    if failed(found):
        if type(one) is Strided:
            raise refusal(found, widened(one.shape, one.stride, factor), what)
        whole = all(
            memory[value - value % factor + r] == count for value, count in memory.items() for r in range(factor)
        )
        raise refusal(found, whole, what, "LA647 LA161")
    units = tables.read(found)
    expect(Counter(factor * unit + r for unit in units for r in range(factor)) == memory, f"{what} gave {found}")


@operation("cute", "composed", weight=2)
def downcast(one: Strided, rng: random.Random) -> None:
    factor = rng.choice((1, 2, 2, 3, 4, 8))
    what = f"downcast({one.layout}, {factor})"
    found = attempt(cute.downcast, one.layout, factor)
    modes = list(zip(leaves(one.shape), leaves(one.stride), strict=True))
    ones = [k for k, (n, d) in enumerate(modes) if d == 1 and n > 1]
    ones = ones or sorted([k for k, (n, _) in enumerate(modes) if n == 1], key=lambda k: modes[k][1] != 1)
    if type(one) is Strided:
        exists = bool(ones) or factor == 1
        if failed(found):
            raise refusal(found, exists, what)
        extents = [n for n, _ in modes]
        steps = [d * factor for _, d in modes]
        if factor > 1:
            expect(ones, f"{what} gave {found}")
            extents[ones[0]] *= factor
            steps[ones[0]] = 1
        same(found, values(like(one.shape, extents), like(one.shape, steps)), what)
        congruent(found, like(one.shape, extents), what)
        return
    if failed(found):
        raise refusal(found, bool(ones), what, "LA647 LA162")
    memory = Counter(factor * value + r for value in one.table for r in range(factor))
    expect(Counter(tables.read(found)) == memory, f"{what} gave {found}")


@operation("cute", "composed")
def recast(one: Strided, rng: random.Random) -> None:
    old, new = rng.choice(((16, 8), (8, 16), (32, 8), (8, 32), (12, 8), (16, 16), (4, 8), (16, 24)))
    what = f"recast({one.layout}, {old}, {new})"
    found = attempt(cute.recast, one.layout, old, new)
    step = tables.math.gcd(old, new)
    memory = Counter(old // step * value + r for value in one.table for r in range(old // step))
    if failed(found):
        wide = new // step
        whole = all(memory[v - v % wide + r] == count for v, count in memory.items() for r in range(wide))
        raise refusal(found, whole, what, "LA647 LA161 LA162")
    got = Counter(new // step * value + r for value in tables.read(found) for r in range(new // step))
    expect(got == memory, f"{what} gave {found}")


@operation("cute", weight=0.5)
def max_alignment(one: Strided, rng: random.Random) -> None:
    found = cute.max_alignment(one.layout)
    most = max(n for n in range(1, one.size + 1) if one.size % n == 0 and widened(one.shape, one.stride, n))
    expect(found == most, f"max_alignment({one.layout}) = {found}, upcast exists by {most}")
