"""A short, fixed part of the campaign of admissions."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import campaign_admission as campaign


@pytest.mark.parametrize("consumer", ["tma", "tma.store"])
def test_every_answer_about_a_random_layout_is_confirmed(consumer: str) -> None:
    totals = campaign.campaign(60, 7, consumer)
    assert totals["wrong"] == 0, totals["said"]
    assert totals["unknown"] <= 2, totals["reasons"]
    assert min(totals["admitted"], totals["refused"]) >= 10


@pytest.mark.nightly(one_of=3)
@pytest.mark.parametrize("consumer", [name for name in campaign.JUDGES if not name.startswith("tma")])
def test_every_answer_of_other_consumers_is_that_of_trying_everything(consumer: str) -> None:
    totals = campaign.campaign(24, 11, consumer)
    assert totals["wrong"] == 0, totals["said"]
    assert totals["admitted"] >= 1
    assert totals["refused"] >= 3
