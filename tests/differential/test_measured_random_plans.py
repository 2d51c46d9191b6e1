"""Plans of small random problems that a device executed: the checker proves them, the tests' own engine agrees."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from judges.planner_cases import judge_plan

from layoutalg.ground.verdict import Proved
from layoutalg.proofs.tensormap import TensorMapPlan, check

DATA = Path(__file__).parents[1] / "data" / "measured" / "plans_random_dev.json.gz"
STRIDE = 23
"""Every so manieth plan is judged again here."""


@pytest.fixture(scope="module")
def rows():
    with gzip.open(DATA, "rt", encoding="utf-8") as file:
        return json.load(file)["rows"]


def test_the_device_agreed_with_every_plan_it_ran(rows):
    assert len(rows) == 3500
    assert all(row["agrees"] is not False for row in rows)
    assert sum(row["agrees"] is True for row in rows) >= 3300
    problems = [row["plan"]["problem"] for row in rows if row["agrees"]]
    assert {problem["direction"] for problem in problems} == {"load", "store"}
    assert sum(any(stride < 0 for stride in problem["global"]["stride"]) for problem in problems) >= 100
    assert {row["plan"]["oob"] for row in rows if row["agrees"]} == {"exact", "weak", "lost"}


def test_the_checker_and_the_engine_of_the_tests_agree_with_the_device(rows):
    for row in rows[::STRIDE]:
        plan = TensorMapPlan.from_json(row["plan"])
        assert isinstance(check(plan), Proved), row["plan"]["problem"]
        assert judge_plan(row["plan"]["problem"], plan).kind in ("right", "understated"), row["plan"]["problem"]
