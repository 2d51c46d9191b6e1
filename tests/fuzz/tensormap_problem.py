"""TensorMap problems as JSON."""

from __future__ import annotations

import json
from pathlib import Path

from fuzz.drive import contract, json_of

from layoutalg.proofs.tensormap import TensorMapProblem

JSON = True
FIRST = json.loads((Path(__file__).parents[1] / "data/examples/problem.json").read_text())
SEEDS = [
    json.dumps(document).encode()
    for document in (
        FIRST,
        FIRST | {"direction": "store"},
        FIRST | {"bounds": [1000, [4, 512]], "element_strides": [1, 2], "oob_fill": "NAN", "base_elem_offset": 64},
        {
            "schema": FIRST["schema"],
            "arch": "sm_90a",
            "global": {"shape": [60], "stride": [1], "dtype": "u16", "base_align_bytes": 16},
            "tile": [16],
            "smem": {"modes": [[[8, 1], [2, 16]]], "swizzle": "32B"},
            "origin_multiple": [4],
        },
    )
]


def target(data: bytes) -> None:
    contract(TensorMapProblem.from_json, TensorMapProblem.to_json, json_of(data))
