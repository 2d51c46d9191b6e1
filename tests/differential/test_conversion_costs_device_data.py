"""The costs of instructions of sm_90a are those that a device was measured to have.

The record is ``tests/data/measured/conversion_costs_dev.json.gz``, by ``benchmarks/device.py costs``.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from layoutalg.targets.banks import bank_model
from layoutalg.targets.instruction_costs import instruction_costs

RECORD = json.loads(
    gzip.decompress((Path(__file__).parents[1] / "data/measured/conversion_costs_dev.json.gz").read_bytes()).decode()
)
CYCLES = {row["name"]: {int(warps): value for warps, value in row["cycles"].items()} for row in RECORD["rows"]}
COSTS = instruction_costs("sm_90a")


def test_throughputs_of_a_full_multiprocessor() -> None:
    for name, cost in (("shfl_idx", COSTS.shuffle), ("shfl_bfly", COSTS.shuffle), ("select", COSTS.select),
                       ("permute", COSTS.permute)):  # fmt: skip
        assert CYCLES[f"{name}_s8"][8] / 8 == pytest.approx(cost, rel=0.05)


def test_a_warp_alone_is_bound_by_its_issue() -> None:
    """Selects, permutations and turns of the banks."""
    for name in ("select", "permute"):
        assert CYCLES[f"{name}_s8"][1] == pytest.approx(COSTS.taken(0, 1, 0, 0, 1), rel=0.1)
        assert CYCLES[f"{name}_s8"][4] == pytest.approx(COSTS.taken(0, 1, 0, 0, 4), rel=0.1)
    for ways, turns in ((2, 8), (4, 16)):
        assert CYCLES[f"store_b128_w{ways}_s8"][1] == pytest.approx(COSTS.taken(0, 0, 0, turns, 1), rel=0.05)


@pytest.mark.parametrize("kind", ["load", "store"])
@pytest.mark.parametrize("bits", [32, 64, 128])
@pytest.mark.parametrize("ways", [1, 2, 4])
def test_a_turn_of_the_banks_is_a_cycle(kind: str, bits: int, ways: int) -> None:
    name = {32: "b32", 64: "v2.b32", 128: "v4.b32"}[bits]
    operation = f"{'ld' if kind == 'load' else 'st'}.shared.{name}"
    turns = bank_model("sm_90a", operation).turns([lane * bits // 8 * ways for lane in range(32)])
    assert CYCLES[f"{kind}_b{bits}_w{ways}_s8"][8] / 8 == pytest.approx(turns * COSTS.turn, rel=0.05)


@pytest.mark.parametrize("many", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", "_trans"])
@pytest.mark.parametrize("kind", ["ldmatrix", "stmatrix"])
def test_a_matrix_is_a_cycle(kind: str, trans: str, many: int) -> None:
    for ways in (1, 2):
        cycles = CYCLES[f"{kind}_x{many}{trans}_w{ways}_s8"][8] / 8
        assert cycles == pytest.approx(many * ways * COSTS.turn, rel=0.07)


def test_latencies() -> None:
    assert CYCLES["shfl_bfly_s1"][4] == pytest.approx(COSTS.shuffle_latency, rel=0.05)
    assert CYCLES["load_b32_w1_s1"][4] == pytest.approx(COSTS.shared_latency, rel=0.1)
    assert CYCLES["barrier_s1"][4] == pytest.approx(COSTS.block_barrier, rel=0.05)
    assert CYCLES["warp_barrier_s1"][4] == pytest.approx(COSTS.warp_barrier, rel=0.2)
