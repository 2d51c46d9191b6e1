"""Abstract values and tiles against plain numbers: sound at every step, no false prune, views as numpy makes them."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutalg.ground.errors import MalformedError
from layoutalg.ground.values import Values, constant, values_of
from layoutalg.proofs.tensormap import TensorMapProblem
from layoutalg.synth.abstract import AbstractTile, never_copied, never_operand, surviving

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import campaign_abstract as campaign

NUMBERS = st.lists(st.integers(-60, 60), min_size=1, max_size=5)


@given(NUMBERS, NUMBERS, st.integers(1, 9), st.randoms(use_true_random=False))
def test_operations_hold_what_numbers_do(xs, ys, n, rng):
    a, b = values_of(xs), values_of(ys)
    x, y = rng.choice(xs), rng.choice(ys)
    for value, found in (
        (x + y, a + b),
        (x - y, a - b),
        (x * y, a * b),
        (x // n, a.quotient(n)),
        (x % n, a.remainder(n)),
        (min(x, y), a.minimum(b)),
        (max(x, y), a.maximum(b)),
        (x, a.join(b)),
        (y, a.join(b)),
    ):
        assert value in found
    assert {v for v in range(-60, 61) if v in a and v in b} == {
        v for v in range(-60, 61) if (meet := a.meet(b)) is not None and v in meet
    }
    assert a.ever_multiple(n) == any(v % n == 0 for v in range(-60, 61) if v in a)
    assert a.always_multiple(n) == all(v % n == 0 for v in range(-60, 61) if v in a)


@given(NUMBERS)
def test_values_of_numbers_are_the_least(xs):
    found = values_of(xs)
    assert (found.low, found.high) == (min(xs), max(xs))
    step = int(np.gcd.reduce([x - xs[0] for x in xs]))
    assert found.modulus == step


@pytest.mark.parametrize("wrong", [(3, 2, 1, 0), (0, 3, 8, 5), (0, 1, -1, 0), ("0", 1, 1, 0), (0, 1, 0, 2)])
def test_an_empty_or_malformed_set_is_refused(wrong):
    with pytest.raises(MalformedError, match="LA890"):
        Values(*wrong)


@given(st.integers(0, 2**32 - 1))
def test_a_chain_holds_every_view_that_numpy_makes(seed):
    rng = random.Random(seed)
    shape = (rng.randrange(8, 20), rng.randrange(8, 20))
    array = np.zeros(shape, dtype=np.uint16)
    view, tile = array, AbstractTile.dense(2, shape)
    for _ in range(rng.randrange(1, 5)):
        dim = rng.randrange(2)
        kind = rng.randrange(3)
        if kind == 0 and view.shape[dim] > 3:
            start, extent = rng.randrange(3), rng.randrange(1, view.shape[dim] - 2)
            view = view[start : start + extent] if dim == 0 else view[:, start : start + extent]
            tile = tile.sliced(dim, Values(0, 2), Values(1, max(extent, 2)))
        elif kind == 1:
            step = rng.randrange(1, 4)
            view = view[::step] if dim == 0 else view[:, ::step]
            tile = tile.stepped(dim, step)
        else:
            view, tile = view.T, tile.permuted((1, 0))
        tile = tile.join(AbstractTile.dense(2, shape)) if rng.random() < 0.3 else tile
    strides = [stride // 2 for stride in view.strides]
    assert all(stride in values for stride, values in zip(strides, tile.strides, strict=True))
    assert all(extent in values for extent, values in zip(view.shape, tile.extents, strict=True))
    first = (view.__array_interface__["data"][0] - array.__array_interface__["data"][0]) // 2
    assert first in tile.offset


def test_no_prune_is_false_and_some_are_made():
    problems = campaign.problems(random.Random(7), 300)
    chains = campaign.chains(random.Random(8), 12)
    searches = campaign.searches(random.Random(9), 4)
    for told in (problems, chains, searches):
        assert " 0 false prunes" in told
    assert " 0 pruned" not in problems + chains


def test_a_campaign_sees_a_false_prune(monkeypatch):
    monkeypatch.setattr(campaign, "never_copied", lambda _: ("always",))
    assert " 0 false prunes" not in campaign.problems(random.Random(7), 60)


def test_operands_are_pruned_only_where_the_finder_refuses():
    from layoutalg.synth.admission import admissible

    rng, pruned, admitted = random.Random(3), 0, 0
    for _ in range(60):
        pitch = rng.choice((64, 64, 72, 80, 68, 65, 128))
        major = rng.choice((0, 1))
        text = f"(64,64):({pitch},1)" if major else f"(64,64):(1,{pitch})"
        swizzle = rng.choice(("", "Sw<3,3,3> o 0 o ", "Sw<1,3,3> o 0 o "))
        answer = admissible(swizzle + text, "wgmma.A", dtype="f16")
        stride = ((64, pitch),), ((64, 1),)
        digits = stride if major else stride[::-1]
        tile = AbstractTile.dense(2, (64, 64)).stored(0, digits[0]).stored(1, digits[1])
        broken = never_operand(tile)
        pruned, admitted = pruned + bool(broken), admitted + bool(answer)
        assert not (broken and answer)
    assert pruned
    assert admitted


def test_what_is_known_of_a_problem():
    problem = TensorMapProblem.of(((64, 64), None, "f16"), (8, 64), "(8,64):(64,1)")
    tile = AbstractTile.of(problem)
    assert tile is not None
    assert tile.holds(tile)
    assert tile.join(tile.padded(0, 8)).holds(tile.padded(0, 8))
    assert not tile.holds(tile.padded(0, 8))
    assert AbstractTile.of(problem.with_changes(element_strides=(2, 1))) is None
    assert never_copied(tile.shifted(1))[0].rule == "BASE_ALIGN"
    assert never_copied(tile.stored(0, [(8, 0)]))[0].rule == "SMEM_INJECTIVE"


def test_a_search_leaves_out_what_no_map_carries():
    rows = AbstractTile.dense("bf16", (64, 64))
    assert sorted(surviving(lambda pad: rows.padded(0, pad), Values(0, 24))) == [0, 8, 16, 24]
    assert sorted(surviving(lambda pad: rows.padded(0, pad), constant(7))) == []
    with pytest.raises(MalformedError, match="LA892"):
        list(surviving(lambda pad: rows.padded(0, pad), Values(0, None)))


@pytest.mark.parametrize(
    "ask",
    [
        lambda tile: tile.join(AbstractTile.dense(4, (8, 8))),
        lambda tile: tile.permuted((0, 0)),
        lambda tile: tile.padded(2, 1),
        lambda tile: tile.stepped(0, 0),
        lambda tile: tile.spread(0, 3, 1),
    ],
)
def test_what_cannot_be_said_is_refused(ask):
    with pytest.raises(MalformedError, match="LA891"):
        ask(AbstractTile.dense(2, (8, 8)))
