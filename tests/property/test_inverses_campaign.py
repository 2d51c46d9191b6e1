"""A short, fixed part of the campaign of inverses, against enumeration."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import campaign_inverses as campaign

INTEGER = ("integer_right", "integer_image", "integer_injective", "strided_right", "strided_left")


@pytest.mark.parametrize("seed", range(4))
def test_integer_forms_are_inverted_without_a_refusal(seed: int) -> None:
    totals = campaign.campaign(40, seed, INTEGER)
    assert (totals["wrong"], totals["needless"]) == (0, 0), totals["said"]


def test_texts_are_inverted_without_a_refusal() -> None:
    totals = campaign.campaign(25, 5, ("text", "parametric"))
    assert (totals["wrong"], totals["needless"]) == (0, 0), totals["said"]
