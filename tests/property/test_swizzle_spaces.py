"""A slice of the campaign of ``benchmarks/campaign_swizzles.py``, its stored figures, and what the judge enumerates."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from layoutalg.f2 import LinearLayout
from layoutalg.proofs.swizzling import TileAccess
from layoutalg.synth import swizzles
from tests.judges import swizzle_spaces as judge

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import campaign_banks
import campaign_swizzles as campaign


def members(parts):
    return [tuple(row) for part in parts for row in part.tolist()]


def test_the_judge_has_every_member_once() -> None:
    whole = members(judge.bijections(3))
    assert len(set(whole)) == len(whole) == 7 * 6 * 4
    assert len(members(judge.bank_maps(7, 0, 5))) == 127 * 63 // 3  # kernels of two dimensions
    assert len(members(judge.bank_maps(7, 1, 5))) == 127 * 63  # and a line in each
    every = members(judge.xors(3, 4, 1))
    assert len(set(every)) == len(every) == 8**3
    for row in (*whole[::20], *every[::100], *members(judge.cutes(3, 3))[::30], *members(judge.hardware(3, 6, 16))):
        assert sorted(row) == list(range(len(row)))


@pytest.mark.parametrize("form", campaign.FORMS)
def test_a_slice_of_the_campaign(form: str) -> None:
    (line,) = campaign.spaces(np.random.default_rng(3), 3 if form in ("xor", "reordered") else 6, [form])
    assert line["proved"] + line.get("refused", 0) == line["cases"]
    assert line["members"] > line["cases"]


def test_pairs_are_free_of_conflicts_and_certified() -> None:
    line = campaign.pairs(np.random.default_rng(4), 12, 4)
    assert line["free"] == 12
    assert line["certified"] == [4, 4]


def test_the_campaign_sees_a_bound_that_is_too_high(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swizzles, "floor_of", lambda _: 10**6)
    monkeypatch.setattr(swizzles, "chains", lambda _: iter([()]))
    with pytest.raises(SystemExit, match="bound"):
        list(campaign.spaces(np.random.default_rng(0), 12, ["any"]))


def test_what_is_stored_is_what_the_page_says() -> None:
    stored = json.loads(campaign.STORED.read_text())["parts"]
    pairs, spaces = stored[0], stored[1:]
    assert (pairs["free"], pairs["certified"]) == (pairs["cases"], [2000, 2000])
    assert [part["form"] for part in spaces] == list(campaign.FORMS)
    counted = json.loads(campaign_banks.STORED.read_text())["all"]
    assert (counted["cases"], counted["wrong"]) == (20_000, 0)
    page = (Path(__file__).parents[2] / "docs/benchmarks.md").read_text()
    for part in spaces:
        assert part.get("missed", 0) == part.get("loose", 0) == 0
        assert f"{part['members']:,}" in page


def accesses(*given):
    """Loads of (register, lane) bases of a tile."""
    found = []
    for bits, registers, lanes, constant in given:
        axes = (("register", len(registers)), ("lane", 5))
        lanes = (*lanes, *[0] * (5 - len(lanes)))
        found.append(TileAccess(LinearLayout(axes, (("tile", bits),), (*registers, *lanes), constant), "load"))
    return found


@pytest.mark.parametrize(
    ("bits", "given", "turns"),
    [
        (8, [(2, (2, 1), (), 0), (2, (3,), (1,), 0)], 2),  # the second byte of a word is lane 1's own
        (32, [(2, (2,), (1,), 0), (2, (1, 2), (0, 3, 0, 0, 2), 0)], 5),  # no vector of the second access lets lanes be
        (8, [(2, (3,), (1, 0, 3, 0, 3), 0), (2, (1,), (2,), 0), (2, (3, 2), (), 0)], 4),  # a vector of two accesses
    ],
)
def test_vectors_that_accesses_share_in_part(bits, given, turns) -> None:
    """Each has a layout with fewer turns than chains of one access's registers, taken as they stand, allow."""
    plan = swizzles.swizzle(accesses(*given), "sm_90a", bits).check()
    best = min(
        int(total)
        for part in judge.bijections(2)
        for total in sum(
            judge.turns_of(part, judge.table(each.registers, each.lanes, ()), "load", bits, "sm_90a")
            for each in plan.accesses
        )
    )
    assert (plan.turns, plan.optimal, best) == (turns, True, turns)
