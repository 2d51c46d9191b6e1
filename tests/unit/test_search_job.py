"""The device job that compares the first of the ranking with all: what it picks, and what it says of its rows."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import device_search as job
from device_search import PROBLEMS, TOP, fitted, picked, space_of, spearman, summaries

from layoutalg.codegen.kernels import spaces
from layoutalg.synth.search import cycles
from layoutalg.targets.roofs import roofs


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_first_are_all_picked_and_the_others_evenly(name: str) -> None:
    ranked = space_of(name).ranked()[0]
    assert 60 <= len(ranked) <= 124
    for most in (len(ranked) + 5, 40):
        places = [place for place, _ in picked(name, most)]
        assert places[:TOP] == list(range(TOP))
        assert len(places) == len(set(places)) == min(most, len(ranked))
        assert places[-1] >= len(ranked) - math.ceil(len(ranked) / 20)


def rows(names: list[str], chip: Any, monkeypatch: Any) -> list[dict[str, Any]]:
    """Rows as if estimates with these rates were the times."""
    monkeypatch.setattr(spaces, "roofs", lambda _: chip)
    found = []
    for name in names:
        space = space_of(name)
        for place, each in picked(name, 40):
            found.append({"problem": name, "place": place, "choice": dict(each.choice), "cycles": each.cycles,
                          "bound": each.bound, "error": 0.0, "ms": cycles(space.work(each.choice))[0]})  # fmt: skip
    monkeypatch.undo()
    return found


def test_a_record_has_its_summaries(monkeypatch: Any) -> None:
    found = rows(list(PROBLEMS[:2]), roofs("sm_90a"), monkeypatch)
    first, second = summaries(found).values()
    assert (first["top16_of_best"], first["place_of_best"]) == (1.0, 0)
    assert (first["measured"], first["wrong"]) == (40, 0)
    assert first["spearman"] > 0.95
    found[30] |= {"ms": found[0]["ms"] / 2}
    found[0] |= {"fault": "refused"}
    del found[0]["ms"]
    first = summaries(found)[PROBLEMS[0]]
    assert first["top16_of_best"] >= 2.0
    assert (first["faults"], first["measured"], first["place_of_best"]) == (1, 39, found[30]["place"])
    assert second["faults"] == 0
    assert spearman([1, 2, 3, 4], [8, 6, 4, 2]) == pytest.approx(-1)


def test_rates_are_found_again(monkeypatch: Any) -> None:
    chip = replace(roofs("sm_90a"), copied_bytes=52.0, step=160.0)
    found = fitted(rows([PROBLEMS[0], PROBLEMS[3]], chip, monkeypatch))
    assert (found["copied_bytes"], found["step"]) == (52.0, 160.0)
    assert found["error"] < 1e-9
    assert spaces.roofs is roofs
    assert job.line(summaries(rows([PROBLEMS[0]], chip, monkeypatch))[PROBLEMS[0]])
