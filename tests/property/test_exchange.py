"""Plans of exchanges against the permutations they were asked for, and their costs against what bounds them."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from layoutalg.f2 import matrix
from layoutalg.ground.errors import MalformedError
from layoutalg.proofs.exchange import Choose, Cost, Exchange, ExchangePlan, Move, Rename, Repack
from layoutalg.proofs.shuffle import moved
from layoutalg.synth.exchange import exchanges

KINDS = ("swap", "bits", "dense")


def residual(rng: random.Random, kind: str, registers: int, lanes: int, warps: int, swaps: int = 9) -> np.ndarray:
    """A source map of a kind, by warp, lane and register."""
    inner = registers + lanes
    local = [1 << bit for bit in range(inner)]
    if kind == "swap":
        count = rng.randint(0, min(registers, lanes, swaps))
        pairs = zip(rng.sample(range(registers), count), rng.sample(range(registers, inner), count), strict=True)
        for one, other in pairs:
            local[one], local[other] = local[other], local[one]
    elif kind == "bits":
        rng.shuffle(local)
    else:
        while matrix.rank(local := [rng.randrange(1, 1 << inner) for _ in range(inner)]) < inner:
            pass
    mixed = rng.random() < 0.3
    upper = [(rng.randrange(1 << inner) if mixed else 0) | 1 << inner + bit for bit in range(warps)]
    constant = rng.randrange(1 << inner) if rng.random() < 0.3 else 0
    return matrix.table([*local, *upper], constant).reshape(1 << warps, 1 << lanes, 1 << registers)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("element_bits", [8, 16, 32])
def test_every_plan_is_the_permutation(kind: str, element_bits: int) -> None:
    rng = random.Random(f"{kind}{element_bits}")
    packed = 0
    for _ in range(60):
        source = residual(rng, kind, rng.randint(0, 5), rng.randint(1, 5), rng.randint(0, 2))
        plan = exchanges(source, element_bits)
        assert plan is not None
        assert np.array_equal(plan.source(), source)
        assert plan.packed * element_bits <= 32
        packed += plan.packed > 1
        assert plan.cost.shuffles <= plan.words * max(1, len([s for s in plan.steps if not isinstance(s, Rename)]))
        assert plan.packed > 1 or plan.cost.shuffles >= moved(source) or plan.words == 0
    assert bool(packed) == (element_bits < 32)


@pytest.mark.parametrize("swaps", [1, 2, 3])
def test_exchanged_bits_cost_what_the_two_forms_cost(swaps: int) -> None:
    rng = random.Random(swaps)
    for registers in (3, 4, 5):
        local = [1 << bit for bit in range(registers + 5)]
        for one, other in zip(
            rng.sample(range(registers), swaps), rng.sample(range(registers, registers + 5), swaps), strict=True
        ):
            local[one], local[other] = local[other], local[one]
        plan = exchanges(matrix.table(local).reshape(1, 32, 1 << registers))
        words = 1 << registers
        one_by_one = Cost(shuffles=swaps * words // 2, selects=3 * swaps * words // 2)
        layers = Cost(shuffles=words - (words >> swaps), selects=2 * swaps * words)
        assert plan.cost.cycles == min(one_by_one.cycles, layers.cycles)
        assert plan.shared_cost == Cost(turns=2 * words)


def test_shuffles_are_least_where_words_move_in_one_layer() -> None:
    """All affine maps of two words and four lanes: as many shuffles as words that the busiest lane receives."""
    seen = 0
    for columns in itertools.product(range(1, 8), repeat=3):
        if matrix.rank(columns) < 3:
            continue
        source = matrix.table(columns).reshape(1, 4, 2)
        plan = exchanges(source)
        assert np.array_equal(plan.source(), source)
        assert moved(source) <= plan.cost.shuffles <= 2
        seen += 1
    assert seen == 168


def test_plans_that_are_none_are_refused() -> None:
    plain = Repack((1,), 0, 1)
    with pytest.raises(MalformedError, match="LA884"):
        Exchange(1, 1, 2, 1)
    with pytest.raises(MalformedError, match="LA884"):
        ExchangePlan(2, 2, 1, plain, (Rename((0,), 0),), plain)
    with pytest.raises(MalformedError, match="LA884"):
        ExchangePlan(3, 2, 1, plain, (), plain)
    for sizes in ((1 << 18, 8, 1), (1 << 10, 1 << 6, 1 << 5), (2, 1 << 19, 2)):  # each number alone is allowed
        same = Repack(tuple(1 << bit for bit in range(sizes[0].bit_length() - 1)), 0, 1)
        with pytest.raises(MalformedError, match="at most 1048576 places"):
            ExchangePlan(*sizes, same, (), same)
    assert exchanges(np.array([[[0, 1, 2], [5, 4, 3]]])) is None


def test_each_step_says_what_it_costs() -> None:
    assert Choose(1, 1).cost(8) == Cost(selects=8)
    assert Exchange(2, 1, 2, 1).cost(8) == Cost(shuffles=4, selects=12)
    assert Move((1, 2), (2, 0, 0), 0).cost(8) == Cost(shuffles=4)
    assert Move((2, 1), (0, 0, 0), 0).cost(8) == Cost(shuffles=8)
    assert Repack((2, 1), 0, 2).cost == Cost(permutes=2)
