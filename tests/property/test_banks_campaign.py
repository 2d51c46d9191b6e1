"""A slice of the campaign of ``benchmarks/campaign_banks.py``."""

from __future__ import annotations

import random
import sys
from collections import Counter
from pathlib import Path

import layoutalg as la
from tests.judges.bank_words import judged

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import campaign_banks as campaign


def test_a_slice_of_the_campaign() -> None:
    found = campaign.run(700, 20)
    total = sum(found.values(), Counter())
    assert total["wrong"] == 0
    assert total["cases"] == 700
    assert total["conflicts"] > 50
    assert total["unknown"] < 120


def test_two_addresses_a_lane() -> None:
    rng = random.Random(5)
    for _ in range(30):
        lanes = [8 * rng.randrange(200) for _ in range(128)]
        halves = (lanes[:64], lanes[64:])
        both = sum(judged("gfx942", "ds_read_b64", half)[0] for half in halves)
        assert la.targets.banks.turns("gfx942", "ds_read2_b64", lanes) == both
        made = la.certify.bank_turns("gfx942", "ds_read2_b64", lanes)
        assert made.statement["turns"] == both
