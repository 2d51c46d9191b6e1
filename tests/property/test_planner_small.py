"""Small problems of every kind: each plan proved again and run on real bytes, nothing leaks, budgets hold."""

from __future__ import annotations

import contextlib
import random
import time
from typing import Any

import pytest
from instruments.simulation import first_difference
from judges.planner_problems import random_problem

from layoutalg.ground.errors import BudgetError, MalformedError
from layoutalg.ground.verdict import Proved
from layoutalg.proofs.tensormap import check
from layoutalg.synth import InadmissibleError, TensorMapPlan, synthesize_tensormap

MAX_TENSOR_BYTES = 1 << 22


def answer(document: dict[str, Any], **options: Any) -> TensorMapPlan | None:
    """The plan, None for a refusal; anything else fails the test."""
    try:
        return synthesize_tensormap(document, **options)
    except InadmissibleError as error:
        assert error.violations
        return None


def origins(plan: TensorMapPlan, rng: random.Random, count: int) -> list[tuple[int, ...]]:
    """Origins that the plan speaks of: in bounds, and for class exact beyond them too."""
    found = []
    beyond = 2 if plan.oob == "exact" else 0
    for _ in range(count):
        origin = []
        for multiple, (low, high) in zip(plan.problem.origin_multiple, plan.problem.bounds, strict=True):
            first, last = (-(-low // multiple) - beyond, (high - 1) // multiple + beyond) if multiple else (0, 0)
            if first > last:
                return found  # no origin is in bounds
            origin.append(multiple * rng.choice((first, last, rng.randint(first, last))))
        with contextlib.suppress(MalformedError):  # copies cannot start there
            plan.coordinates(origin)
            found.append(tuple(origin))
    return found


def kinds(document: dict[str, Any]) -> set[str]:
    """What the problem has beyond rows on a grid."""
    strides = document["global"]["stride"]
    found = {document["direction"]}
    found |= {"falling"} if min(strides) < 0 else set()
    found |= {"broadcast"} if 0 in strides else set()
    found |= {"units"} if strides.count(1) > 1 else set()
    found |= {"steps"} if max(document.get("element_strides", [1])) > 1 else set()
    found |= {"fixed"} if 0 in document.get("origin_multiple", []) else set()
    return found | ({"bounds"} if "bounds" in document else set())


@pytest.mark.parametrize("seed", range(4))
def test_every_small_plan_moves_the_right_bytes(seed):
    rng = random.Random(seed)
    seen: set[str] = set()
    for number in range(150):
        document = random_problem(random.Random(f"small {seed} {number}"))
        if document["global"]["dtype"] == "tf32":  # random bytes hold values whose rounding was not measured
            document["global"]["dtype"] = "f32"
        plan = answer(document, repair=False)
        if plan is None:
            continue
        assert isinstance(check(plan), Proved), document
        seen |= kinds(document)
        if plan.problem.byte_span()[1] > MAX_TENSOR_BYTES:
            continue
        for origin in origins(plan, rng, 8):
            assert first_difference(plan, origin, rng.randrange(1000)) is None, (document, origin)
    assert {"load", "store", "falling", "steps", "fixed", "bounds"} <= seen


def test_the_class_required_is_kept_or_refused():
    order = ("exact", "weak", "lost")
    for number in range(60):
        document = random_problem(random.Random(f"required {number}"))
        document.pop("oob_required", None)
        free = answer(document, repair=False)
        for required in order:
            plan = answer(document | {"oob_required": required}, repair=False)
            if plan is not None:
                assert order.index(plan.oob) <= order.index(required)
            assert free is None or order.index(free.oob) > order.index(required) or plan is not None, (
                document,
                required,
            )
            assert free is not None or plan is None, (document, required)


def test_a_budget_ends_in_time_and_is_no_refusal():
    for number in range(40):
        document = random_problem(random.Random(f"budget {number}"), rank=7)
        began = time.process_time()
        try:
            answer(document, seconds=0.05)
        except BudgetError as error:
            assert error.diagnostic.code in ("LA410", "LA411")
        assert time.process_time() - began < 1.5 * 0.05 + 1.0
