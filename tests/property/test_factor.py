"""Factorisations against an enumeration of all descriptor maps and all residuals' shuffles."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import layoutalg as la
from layoutalg.f2 import LinearLayout, matrix
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.admission import Refused
from layoutalg.synth import factorise

ELEMENT_BYTES = {"f64": 8, "f32": 4, "bf16": 2, "u8": 1}
XORS = {16: (), 32: ((4, 7),), 64: ((4, 7), (5, 8)), 128: ((4, 7), (5, 8), (6, 9))}


def every_map(n: int, element_bytes: int) -> dict[tuple[int, ...], None]:
    """Tables of all descriptor maps of 2^n elements in a row: a run kept, digits moved, address bits flipped."""
    found: dict[tuple[int, ...], None] = {}
    for span, flips in XORS.items():
        run = (span // element_bytes).bit_length() - 1
        if run > n:
            continue
        for order in itertools.permutations(range(run, n)):
            moves = (*range(run), *order)
            at = [sum((x >> i & 1) << b for i, b in enumerate(moves)) * element_bytes for x in range(1 << n)]
            flipped = [a ^ sum((a >> s & 1) << t for t, s in flips) for a in at]
            found[tuple(a // element_bytes for a in flipped)] = None
    return found


def least_rounds(table: list[int], shape: tuple[int, int, int], maps: dict[tuple[int, ...], None]) -> int | None:
    """Fewest words that the busiest lane receives, over all maps; None where none keeps every warp."""
    registers, lanes, _ = shape
    best = None
    for each in maps:
        back = {offset: place for place, offset in enumerate(each)}
        source = [back[offset] for offset in table]
        group = registers * lanes
        if any(y // group != x // group for x, y in enumerate(source)):
            continue
        busy = dict.fromkeys(range(len(table) // registers), 0)
        for x, y in enumerate(source):
            busy[x // registers] += y // registers != x // registers
        best = min(max(busy.values()), len(table) if best is None else best)
    return best


def drawn(rng: random.Random, n: int, shape: tuple[int, int, int], element_bytes: int) -> LinearLayout:
    """A layout of n bits: any, a permutation of bits, or a descriptor's map after a residual, sometimes shifted."""
    while True:
        columns = [rng.randrange(1, 1 << n) for _ in range(n)]
        if rng.random() < 0.3:
            columns = [1 << bit for bit in rng.sample(range(n), n)]
        if matrix.rank(columns) == n:
            break
    inner = shape[0] + shape[1]
    if rng.random() < 0.6:
        local = [c & (1 << inner) - 1 for c in columns[:inner]]
        while matrix.rank(local) < inner:
            local = [rng.randrange(1, 1 << inner) for _ in range(inner)]
        residual = local + [columns[i] & (1 << inner) - 1 | 1 << i for i in range(inner, n)]
        table = rng.choice(list(every_map(n, element_bytes)))
        columns = [table[c] for c in residual]
    constant = rng.choice((0, 0, rng.randrange(1 << n)))
    axes = tuple(zip(("register", "lane", "warp"), shape, strict=True))
    return LinearLayout(axes, (("offset", n),), tuple(columns), constant)


@pytest.mark.parametrize("dtype", ELEMENT_BYTES)
def test_every_answer_is_that_of_an_enumeration(dtype: str) -> None:
    rng = random.Random(dtype)
    size = ELEMENT_BYTES[dtype]
    seen = {True: 0, False: 0}
    for n in (5, 6, 7, 8):
        most = n - (16 // size).bit_length() + 1
        if not 1 <= most <= 5:
            continue
        maps = every_map(n, size)
        for _ in range(15):
            warp = rng.randint(0, 2)
            lane = rng.randint(1, min(5, n - warp))
            shape = (n - warp - lane, lane, warp)
            layout = drawn(rng, n, shape, size)
            wanted = least_rounds(layout.table().tolist(), (1 << shape[0], 1 << shape[1], 1 << shape[2]), maps)
            found = factorise(layout, dtype=dtype)
            seen[bool(found)] += 1
            assert bool(found) == (wanted is not None), (layout, found)
            if found:
                assert found.rounds == wanted
                assert found.least
            else:
                assert isinstance(found, Refused)
                assert 0 <= found.witness["output_bit"] < n
    assert min(seen.values()) > 2


def test_factors_compose_and_are_carried() -> None:
    rng = random.Random(3)
    for _ in range(25):
        shape = (rng.randint(3, 6), 5, rng.randint(0, 2))
        layout = drawn_large(rng, shape)
        found = factorise(layout)
        if not found:
            continue
        assert la.equivalent(found.carried @ found.residual, layout)
        assert la.admissible(found.carried, "tma")
        assert found.certificate.kind == "composition"
        assert found.certificate.check()
        assert_executes(found)


def drawn_large(rng: random.Random, shape: tuple[int, int, int]) -> LinearLayout:
    n = sum(shape)
    inner = shape[0] + shape[1]
    while True:
        local = [rng.randrange(1, 1 << inner) for _ in range(inner)]
        if rng.random() < 0.5:
            local = [1 << bit for bit in rng.sample(range(inner), inner)]
        if matrix.rank(local) == inner:
            break
    span = rng.choice(tuple(XORS))
    run = (span // 2).bit_length() - 1
    order = [*range(run), *rng.sample(range(run, n), n - run)]
    flips = [(t - 1, s - 1) for t, s in XORS[span]]
    units = [1 << bit for bit in order]
    carried = [u ^ sum((u >> s & 1) << t for t, s in flips) for u in units]
    residual = local + [rng.randrange(1 << inner) | 1 << bit for bit in range(inner, n)]
    columns = tuple(matrix.apply(carried, column) for column in residual)
    axes = tuple(zip(("register", "lane", "warp"), shape, strict=True))
    return LinearLayout(axes, (("offset", n),), columns, rng.choice((0, columns[0])))


def assert_executes(found: object) -> None:
    """Running the rounds on random words is the residual."""
    plan, residual = found.shuffles, found.residual.table()  # type: ignore[attr-defined]
    words = np.random.default_rng(0).integers(0, 2**32, (plan.warps, plan.lanes, plan.registers))
    flat = words.reshape(-1)  # place x of a thread layout: register fastest, then lane, then warp
    assert np.array_equal(plan.run(words).reshape(-1), flat[residual])


def every_strided(size: int, run: int) -> set[tuple[int, ...]]:
    """Bijections onto an interval with any ordered extents and strides that keep every ``run`` elements in a row."""

    def splits(number: int) -> list[tuple[int, ...]]:
        return [()] if number == 1 else [
            (d, *rest) for d in range(2, number + 1) if number % d == 0 for rest in splits(number // d)
        ]  # fmt: skip

    divisors = [d for d in range(1, size) if size % d == 0]
    found = set()
    for shape in splits(size):
        for stride in itertools.product(divisors, repeat=len(shape)):
            table = tuple(la.CuteLayout(shape, stride).table().tolist())
            rows = all(table[t] == table[t - t % run] + t % run and table[t - t % run] % run == 0 for t in range(size))
            if sorted(table) == list(range(size)) and rows:
                found.add(table)
    return found


def strided_threads(rng: random.Random, extents: tuple[int, ...]) -> la.CuteLayout:
    """Each axis split into primes in some order, and all of them laid in one chain."""
    primes = {1: [1], 2: [2], 3: [3], 4: [2, 2], 6: [2, 3]}
    splits = [rng.sample(primes[extent], len(primes[extent])) for extent in extents]
    chain = [(axis, place) for axis, split in enumerate(splits) for place in range(len(split))]
    rng.shuffle(chain)
    strides, weight = [[0] * len(split) for split in splits], 1
    for axis, place in chain:
        strides[axis][place] = weight
        weight *= splits[axis][place]
    return la.CuteLayout(tuple(map(tuple, splits)), tuple(map(tuple, strides)))


@pytest.mark.parametrize(
    ("extents", "dtype"), [((4, 3, 1), "f64"), ((2, 3, 2), "f64"), ((4, 2, 3), "f32"), ((6, 2, 2), "f64")]
)
def test_other_extents_against_every_strided_map(extents: tuple[int, int, int], dtype: str) -> None:
    rng = random.Random(str(extents))
    size, run = int(np.prod(extents)), 16 // ELEMENT_BYTES[dtype]
    maps = dict.fromkeys(sorted(every_strided(size, run)))
    seen = {True: 0, False: 0}
    for _ in range(12):
        layout = strided_threads(rng, extents)
        table = list(layout.table().tolist())
        wanted = least_rounds(table, extents, maps)
        found = factorise(layout, dtype=dtype, roles=("register", "lane", "warp"))
        if isinstance(found, Unknown):
            continue
        assert bool(found) == (wanted is not None), (str(layout), str(found))
        seen[bool(found)] += 1
        if found:
            assert found.rounds == wanted or not found.least
            assert la.equivalent(found.carried @ found.residual, layout)
            assert found.certificate.check()
            assert_executes(found)
        else:
            assert size % found.witness["output_digit"] == 0
    assert seen[True]


def test_tiles_and_texts() -> None:
    whole = factorise("Sw<3,3,3> o 0 o (64,64):(64,1)")
    assert (whole.rounds, whole.least) == (0, True)
    for text in ("(48,64):(64,1)", "(40,64):(64,1)", "Sw<2,3,3> o 0 o (24,32):(32,1)"):
        carried = factorise(text)
        assert carried.rounds == 0
        assert la.equivalent(carried.carried @ carried.residual, la.parse(text))
    transposed = factorise("((8,8),(8,8)):((1,512),(8,64))")
    rows = factorise([[8 * j + i for j in range(8)] for i in range(8)], dtype="f32")
    for found in (transposed, rows):
        assert found.certificate.check()
        assert la.admissible(found.carried, "tma", dtype=found.plan.dtype)
    assert la.equivalent(transposed.carried @ transposed.residual, la.parse("((8,8),(8,8)):((1,512),(8,64))"))


def test_what_cannot_be_asked_is_refused_and_what_is_not_known_is_said() -> None:
    twice = factorise(LinearLayout.from_bases({"register": [(1,), (0,)], "lane": [(2,), (4,)]}, {"offset": 8}))
    assert isinstance(twice, Refused)
    assert twice.rules == ("FACTOR_INJECTIVE",)
    assert "output_bit" in twice.witness
    assert isinstance(factorise("(64,8):(1,64)", "wgmma.B", roles=("thread", "register")), Unknown)
    for wrong in ({"roles": ("lane",)}, {"dtype": "u4"}, {"warps": 0}):
        with pytest.raises(la.LayoutError, match=r"LA880|LA340"):
            factorise("(64,8):(1,64)", **wrong)


@pytest.mark.parametrize("consumer", ["tma", "ldmatrix.x4", "bulk"])
def test_a_target_without_the_instruction_refuses_every_layout(consumer: str) -> None:
    for text in ("F2[register=(4), lane=(0), warp=(7) -> offset:8]", "(64,64):(64,1)", "(3,32):(32,1)"):
        found = factorise(text, consumer, "gfx942")
        assert isinstance(found, Refused)
        assert found.rules == (f"NO_{consumer.split('.')[0].upper()}",)


def test_registers_of_a_tile_are_those_of_its_row_major_offsets() -> None:
    held = "F2[register=(0,1)(8,0)(0,8), lane=(0,2)(0,4)(1,0)(2,0)(4,0) -> dim0:16, dim1:16]"
    flat = "F2[register=(1)(128)(8), lane=(2)(4)(16)(32)(64) -> offset:256]"
    for consumer in ("tma", "ldmatrix.x4"):
        found, wanted = factorise(held, consumer), factorise(flat, consumer)
        assert found.carried == wanted.carried
        assert found.residual == wanted.residual
        assert la.equivalent(found.carried @ found.residual, la.parse(flat))


@pytest.mark.parametrize("names", [("row", "col"), ("dim0", "dim1")])
def test_the_order_in_which_outputs_are_listed_is_not_part_of_the_question(names):
    images = [(0, 1 << bit) for bit in range(6)] + [(1 << bit, 0) for bit in range(4)]

    def listed(order):
        placed = [tuple(dict(zip(names, image, strict=True))[name] for name in order) for image in images]
        bases = {"register": placed[:4], "lane": placed[4:9], "warp": placed[9:]}
        return LinearLayout.from_bases(bases, [(name, dict(zip(names, (16, 64), strict=True))[name]) for name in order])

    found = [factorise(listed(order), dtype="bf16") for order in (names, names[::-1])]
    assert str(found[0]) == str(found[1])
