"""Plans that a device executed: the checker proves every one, and the model of the engine agrees with what it did."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from instruments.simulation import first_difference, random_origins

from layoutalg.ground.verdict import Proved
from layoutalg.proofs.tensormap import TensorMapPlan, check

DATA = Path(__file__).parents[1] / "data" / "measured" / "plans_dev.json"


@pytest.fixture(scope="module")
def rows():
    return json.loads(DATA.read_text(encoding="utf-8"))["rows"]


def test_the_device_agreed_with_every_plan_it_ran(rows):
    assert len(rows) >= 900
    assert all(row["agrees"] is not False for row in rows)
    assert sum(row["agrees"] is True for row in rows) >= 990
    plans = [row["plan"] for row in rows]
    assert {len(plan["tensormap"]["dims"]) for plan in plans} == {1, 2, 3, 4, 5}
    assert {plan["problem"]["direction"] for plan in plans} == {"load", "store"}
    assert {plan["tensormap"]["swizzle"] for plan in plans} == {"NONE", "32B", "64B", "128B"}
    assert len({plan["tensormap"]["dtype"] for plan in plans}) >= 10


def test_the_checker_proves_every_plan_that_ran(rows):
    for row in rows:
        assert isinstance(check(TensorMapPlan.from_json(row["plan"])), Proved), row["plan"]["problem"]


def test_the_model_agrees_with_the_device(rows):
    rng = random.Random(5)
    for row in rows[::6]:
        plan = TensorMapPlan.from_json(row["plan"])
        if (
            row["agrees"] is None
            or plan.problem.byte_span()[1] > 1 << 24
            or not plan.problem.dtype.startswith(("u", "s", "b", "f"))
        ):
            continue
        for origin in random_origins(plan, rng, 1):
            assert first_difference(plan, origin) is None
