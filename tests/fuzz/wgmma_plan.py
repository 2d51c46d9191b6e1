"""wgmma operand plans as JSON, and what the checker says of them."""

from __future__ import annotations

import json

from fuzz.drive import contract, json_of
from fuzz.wgmma_problem import PROBLEMS

from layoutalg.ground.errors import LayoutError
from layoutalg.ground.verdict import Proved, Refuted, Unknown
from layoutalg.proofs.wgmma import OperandPlan, check
from layoutalg.synth.wgmma import synthesize_wgmma

JSON = True
SEEDS = []
for _problem in PROBLEMS:
    try:
        SEEDS.append(json.dumps(synthesize_wgmma(_problem).to_json()).encode())
    except LayoutError:
        continue


def target(data: bytes) -> None:
    plan = contract(OperandPlan.from_json, OperandPlan.to_json, json_of(data))
    if plan is not None:
        assert isinstance(check(plan), Proved | Refuted | Unknown)
