"""The bank model against a judge that counts sets of words, on random addresses."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutalg.ground.errors import MalformedError, RepresentabilityError
from layoutalg.targets import banks
from layoutalg.targets.banks import bank_model
from tests.judges.bank_words import judged

NVIDIA = [f"{side}.shared.{vector}" for side in ("ld", "st") for vector in ("b8", "b16", "b32", "v2.b32", "v4.b32")]
MATRICES = [f"{side}matrix.x{many}" for side in ("ld", "st") for many in (1, 2, 4)]
CASES = [("sm_90a", name) for name in (*NVIDIA, *MATRICES)] + sorted(banks.AMD_RULES)


@pytest.mark.parametrize(("target", "operation"), CASES)
def test_groups_are_cosets_of_one_space(target, operation):
    model = bank_model(target, operation)
    space = {0}
    for step in model.space:
        space |= {step ^ other for other in space}
    assert sorted(lane for group in model.groups for lane in group) == list(range(model.lanes))
    assert all({lane ^ group[0] for lane in group} == space for group in model.groups)


@pytest.mark.parametrize(("target", "operation"), CASES)
@settings(max_examples=25)
@given(st.data())
def test_random_addresses(target, operation, data):
    model = bank_model(target, operation)
    seed = data.draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    grain = 4 if model.access_bytes == 12 else model.access_bytes
    reach = int(rng.choice([8, 64, 4096]))
    offsets = (rng.integers(0, reach, model.lanes) * grain).tolist()
    shape = data.draw(st.sampled_from(["free", "pairs", "fours", "holes"]))
    if shape == "pairs":
        offsets = [offsets[lane & ~1] for lane in range(model.lanes)]
    if shape == "fours":
        offsets = [offsets[lane & ~2] for lane in range(model.lanes)]
    if shape == "holes":
        offsets = [offset if rng.random() < 0.6 else None for offset in offsets]
    assert (model.turns(offsets), model.ideal(offsets)) == judged(target, operation, offsets)
    assert banks.turns(target, operation, offsets) == model.turns(offsets)
    for phase in model.phases(offsets):
        assert {word % model.banks for _, word in phase.busy} == {phase.bank}
        assert phase.turns <= sum(len(range(model.access_bytes)) for _ in phase.busy)


def test_what_nobody_published_is_refused():
    for target, operation in itertools.product(["gfx90a", "gfx950"], ["ds_read_b32", "ds_write_b32"]):
        with pytest.raises(RepresentabilityError, match="published"):
            bank_model(target, operation)
    with pytest.raises(MalformedError, match="must be a shared-memory instruction"):
        bank_model("sm_90a", "ds_read_b32")


@pytest.mark.parametrize(("target", "operation"), CASES)
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1))
def test_many_instructions_at_once(target, operation, seed):
    """Rows that are shifts, exclusive ors and near copies of each other, some lanes inactive, one by one."""
    model = bank_model(target, operation)
    rng = np.random.default_rng(seed)
    grain = model.grain_bytes
    first = grain * rng.integers(0, int(rng.choice([4, 40, 2000])), (3, model.lanes))
    moved = [first + grain * step for step in range(5)] + [first ^ grain * step for step in (1, 2, 3, 5, 32)]
    rows = rng.permutation(np.concatenate(moved))
    active = rng.random(rows.shape) < rng.choice([0.5, 0.9]) if rng.random() < 0.5 else None
    lanes = [row.tolist() for row in rows]
    if active is not None:
        lanes = [
            [x if here else None for x, here in zip(*both, strict=True)] for both in zip(lanes, active, strict=True)
        ]
    counted = [judged(target, operation, row) for row in lanes]
    assert model.totals(rows, active) == tuple(map(sum, zip(*counted, strict=True)))
    turns, least = (part.sum(axis=1).tolist() for part in model.group_turns(rows, active))
    assert list(zip(turns, least, strict=True)) == counted


def test_rows_of_bytes_that_begin_within_a_word_are_not_the_same():
    model = bank_model("sm_90a", "ld.shared.b8")
    near = np.array([0, 1, 2, 128] * 8)
    assert model.totals(np.array([near])) == (2, 1)
    spread = np.array([0, 3, 129, 130] * 8)
    assert model.totals(np.array([spread, spread + 1])) == (4, 2)


def test_addresses_out_of_range_are_refused_wherever_they_are():
    model = bank_model("sm_90a", "ld.shared.b32")
    rows = np.array([4 * np.arange(32), 4 * np.arange(32) - 4])
    with pytest.raises(MalformedError, match="LA709"):
        model.totals(rows)
    rows[1] += 5
    with pytest.raises(MalformedError, match="LA709"):
        model.totals(rows)
    wide = bank_model("sm_90a", "ld.shared.v4.b32")
    for first, second in ((0, 4), (4, 0), (0, 8)):  # what is a whole number of words away is counted once
        with pytest.raises(MalformedError, match="LA709"):
            wide.totals(np.array([16 * np.arange(32) + first, 16 * np.arange(32) + second]))
    assert model.totals(np.zeros((0, 32), dtype=np.int64)) == (0, 0)
