"""TensorMap plans as JSON, and what the checker says of them."""

from __future__ import annotations

import json
from functools import cache

from fuzz.drive import contract, json_of
from fuzz.tensormap_problem import FIRST

from layoutalg.ground.verdict import Proved, Refuted, Unknown
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProblem, check
from layoutalg.synth import synthesize_tensormap

JSON = True


@cache
def _plans() -> list[bytes]:
    small = FIRST | {"tile": [8, 16], "smem": {"modes": [[[8, 16]], [[16, 1]]], "swizzle": "32B"}}
    problems = [FIRST, small, small | {"direction": "store"}]
    plans = [synthesize_tensormap(TensorMapProblem.from_json(problem), seconds=60) for problem in problems]
    return [json.dumps(plan.to_json()).encode() for plan in plans]


def __getattr__(name: str) -> list[bytes]:
    if name == "SEEDS":
        return _plans()
    raise AttributeError(name)


def target(data: bytes) -> None:
    plan = contract(TensorMapPlan.from_json, TensorMapPlan.to_json, json_of(data))
    if plan is not None:
        assert isinstance(check(plan), Proved | Refuted | Unknown)
