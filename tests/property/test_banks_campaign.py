"""A slice of the campaign of ``benchmarks/campaign_banks.py``, and residues for every stride."""

from __future__ import annotations

import random
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import layoutalg as la
from layoutalg.targets.banks import bank_model, residues
from tests.judges.bank_words import instructions, judged

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import campaign_banks as campaign


def test_a_slice_of_the_campaign() -> None:
    found = campaign.run(700, 20)
    total = sum(found.values(), Counter())
    assert total["wrong"] == 0
    assert total["cases"] == 700
    assert min(total["ranks"], total["residues"], total["enumeration"], total["conflicts"]) > 50
    assert total["unknown"] < 120


@settings(max_examples=60)
@given(st.sampled_from(instructions()), st.integers(-300, 300), st.integers(0, 300))
def test_residues_are_what_enumeration_counts(instruction: tuple[str, str], stride: int, base: int) -> None:
    model = bank_model(*instruction)
    stride, base = stride * model.grain_bytes, base * model.grain_bytes
    base += max(0, -stride * (model.lanes - 1))
    found = residues(model, stride, base)
    lanes = [base + stride * lane for lane in range(model.lanes)]
    if found is None:
        assert model.access_bytes == 12 or (stride % 4 and abs(stride) > 4)
        return
    assert found.turns == judged(*instruction, lanes)[0] == model.turns(lanes)
    assert found.ideal == model.ideal(lanes)


def test_two_addresses_a_lane() -> None:
    rng = random.Random(5)
    for _ in range(30):
        lanes = [8 * rng.randrange(200) for _ in range(128)]
        halves = (lanes[:64], lanes[64:])
        both = sum(judged("gfx942", "ds_read_b64", half)[0] for half in halves)
        assert la.targets.banks.turns("gfx942", "ds_read2_b64", lanes) == both
        made = la.certify.bank_turns("gfx942", "ds_read2_b64", lanes)
        assert made.statement["turns"] == both


@pytest.mark.parametrize(
    ("stride", "base", "argument"), [(2, 0, "stride_bytes"), (4, 2, "base_bytes"), (-4, 4, "base")]
)
def test_misuse_of_residues_is_named(stride: int, base: int, argument: str) -> None:
    with pytest.raises(la.MalformedError, match=argument):
        residues(bank_model("gfx942", "ds_read_b32"), stride, base)
