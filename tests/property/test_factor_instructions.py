"""Factors for instructions that move registers: against all maps of their class, and through their finders."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import layoutalg as la
from layoutalg.f2 import LinearLayout, matrix
from layoutalg.ground.refusal import Broken
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.admission import Refused
from layoutalg.proofs.factorisation import Factorisation
from layoutalg.proofs.shuffle import moved
from layoutalg.synth import factorise
from layoutalg.synth.factor.bits import Bits
from layoutalg.synth.factor.instructions import Template, carrier_of, template_of

ASKED = (
    ("ldmatrix.x4", "sm_90a", "bf16"), ("ldmatrix.x2.trans", "sm_90a", "f16"), ("stmatrix.x4", "sm_90a", "bf16"),
    ("ld.shared.v4.b32", "sm_90a", "bf16"), ("st.shared.v4.b32", "sm_80", "u8"), ("ds_read_b128", "gfx942", "bf16"),
    ("ds_write_b64", "gfx90a", "f32"), ("ds_read_b64_tr_b16", "gfx950", "bf16"),
)  # fmt: skip


def rounds(columns: list[int], constant: int, wanted: list[int], start: int, shape: tuple[int, int]) -> int:
    """Words that the busiest lane receives."""
    table = matrix.table(columns, constant)
    back = np.empty(len(table), dtype=np.int64)
    back[table] = np.arange(len(table))
    return moved(back[matrix.table(wanted, start)].reshape(1, 1 << shape[1], 1 << shape[0]))


def fewest(fixed: dict[int, int], row: int, wanted: list[int], start: int, shape: tuple[int, int]) -> int:
    """The least over every affine map with these columns and all others any multiples of the row."""
    n = sum(shape)
    free = [place for place in range(n) if place not in fixed]
    best = 1 << shape[0]
    multiples = [x << row for x in range(1 << n - row)]
    for chosen in itertools.permutations(multiples[1:], len(free)):
        if matrix.rank(chosen) < len(free):
            continue
        columns = [fixed.get(place, 0) for place in range(n)]
        for place, column in zip(free, chosen, strict=True):
            columns[place] = column
        best = min(best, *(rounds(columns, each, wanted, start, shape) for each in (multiples if start else (0,))))
    return best


@pytest.mark.parametrize("seed", range(6))
def test_the_words_moved_are_those_of_the_best_map_of_the_class(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(8):
        registers, lanes = rng.choice(((2, 2), (2, 3), (3, 2)))
        n = registers + lanes
        inside, of_lanes = rng.randint(1, min(registers, 2)), rng.randint(0, 2)
        order = rng.sample(range(inside + of_lanes), inside + of_lanes)
        row = len(order)
        if n - row > 3:
            continue
        fixed_lanes = dict(zip(rng.sample(range(lanes), of_lanes), order[inside:], strict=True))
        template = Template(tuple(order[:inside]), fixed_lanes, row, inside, lanes)
        wanted = [1 << bit for bit in rng.sample(range(n), n)]
        while rng.random() < 0.7 and matrix.rank(wanted := [rng.randrange(1, 1 << n) for _ in range(n)]) < n:
            pass
        if matrix.rank(wanted) < n:
            continue
        start = rng.choice((0, 0, rng.randrange(1 << n)))
        bits = Bits(tuple(wanted), start, (0,) * registers + (1,) * lanes, (tuple(range(n)),), 0)
        found = carrier_of(bits, template)
        assert not isinstance(found, Broken)
        columns, constant, least = found
        fixed = {place: 1 << bit for place, bit in enumerate(template.registers)}
        fixed |= {registers + place: 1 << bit for place, bit in template.lanes.items()}
        assert all(columns[place] == column for place, column in fixed.items())
        assert all(not column & (1 << row) - 1 for place, column in enumerate(columns) if place not in fixed)
        got = rounds(list(columns), constant, wanted, start, (registers, lanes))
        assert got == fewest(fixed, row, wanted, start, (registers, lanes))
        assert least == got or least < 0 or start


def drawn(rng: random.Random, lanes: int) -> LinearLayout:
    """Any layout of registers, lanes and warps whose warps keep the low offset bits, or an order of bits."""
    registers, warps = rng.randint(3, 4), rng.randint(0, 1)
    inner, n = registers + lanes, registers + lanes + warps
    columns = [1 << bit for bit in rng.sample(range(n), n)]
    if rng.random() < 0.5:
        while matrix.rank(columns := [rng.randrange(1, 1 << inner) for _ in range(inner)]) < inner:
            pass
        columns += [1 << bit | rng.randrange(1 << inner) for bit in range(inner, n)]
    axes = (("register", registers), ("lane", lanes), ("warp", warps))
    return LinearLayout(axes, (("offset", n),), tuple(columns), rng.choice((0, 1, rng.randrange(1 << n))))


@pytest.mark.parametrize(("consumer", "target", "dtype"), ASKED)
def test_factors_compose_and_the_instruction_carries_its_part(consumer: str, target: str, dtype: str) -> None:
    rng = random.Random(consumer)
    seen = {True: 0, False: 0}
    for _ in range(8):
        layout = drawn(rng, 6 if target.startswith("gfx") else 5)
        found = factorise(layout, consumer, target, dtype)
        seen[bool(found)] += 1
        if isinstance(found, Refused):
            row = template_of(consumer, {"f32": 32, "u8": 8}.get(dtype, 16)).row
            assert found.witness["output_bit"] < row + (found.rules == ("FACTOR_SIZE",))
            continue
        assert isinstance(found, Factorisation)
        assert la.equivalent(found.carried @ found.residual, layout)
        assert found.certificate.check()
        assert np.array_equal(found.exchange.source(), found.shuffles.source())
    assert seen[True]


def test_what_an_instruction_carries_needs_no_shuffle() -> None:
    bases = {"register": [(1,), (64,), (128,)], "lane": [(2,), (4,), (8,), (16,), (32,)]}
    layout = la.LinearLayout.from_bases(bases, {"offset": 256})
    assert factorise(layout, "ldmatrix.x4").rounds == 0
    assert factorise(layout, "ld.shared.v4.b32").rounds == 6
    turned = la.LinearLayout.from_bases(
        {"register": [(8,), (64,), (128,)], "lane": [(16,), (32,), (1,), (2,), (4,)]}, {"offset": 256}
    )
    assert factorise(turned, "ldmatrix.x4.trans").rounds == 0
    assert factorise(turned, "ldmatrix.x4").rounds > 0


def test_refusals_name_the_bit_and_the_rest_is_unknown() -> None:
    bases = {"register": [(1,), (2,), (8,)], "lane": [(16,), (32,), (64,), (128,), (256,)], "warp": [(4,)]}
    apart = factorise(la.LinearLayout.from_bases(bases, {"offset": 512}), "ldmatrix.x4")
    assert (apart.rules, apart.witness) == (("FACTOR_ROW",), {"output_bit": 2})
    few = la.LinearLayout.from_bases({"register": [(1,)], "lane": [(2 << bit,) for bit in range(5)]}, {"offset": 64})
    assert factorise(few, "ldmatrix.x4").rules == ("FACTOR_SIZE",)
    assert isinstance(factorise(few, "ld.shared.b64", dtype="f64"), Unknown | Refused | Factorisation)
    assert isinstance(factorise(few, "mma.m16n8k16.A"), Unknown)
