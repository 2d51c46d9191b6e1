"""wgmma operand problems as JSON."""

from __future__ import annotations

import json

from fuzz.drive import contract, json_of

from layoutalg.proofs.wgmma import OperandProblem

JSON = True
PROBLEMS = [
    OperandProblem("A", (128, 64), (((128, 64),), ((64, 1),)), "128B"),
    OperandProblem("B", (64, 32), (((64, 1),), ((32, 64),)), "128B", dtype="bf16"),
    OperandProblem("A", (64, 16), (((8, 8), (8, 64)), ((8, 1), (2, 512))), "NONE", smem_base_bytes=1024),
]
SEEDS = [json.dumps(problem.to_json()).encode() for problem in PROBLEMS]


def target(data: bytes) -> None:
    contract(OperandProblem.from_json, OperandProblem.to_json, json_of(data))
