"""Conversions that a GPU ran beside Triton's: every word right, and the figures that are told of them.

The record is ``tests/data/measured/conversions_dev.json.gz``, written by ``benchmarks/device_conversions.py``.
"""

from __future__ import annotations

import gzip
import json
import math
import statistics
from pathlib import Path

import pytest

RECORD = json.loads(
    gzip.decompress((Path(__file__).parents[1] / "data/measured/conversions_dev.json.gz").read_bytes()).decode()
)
ROWS = RECORD["rows"]
RATIOS = [row["cycles"]["plan"] / row["cycles"]["triton"] for row in ROWS if "triton" in row.get("cycles", {})]


def test_every_word_was_right() -> None:
    assert len(ROWS) == 63
    assert all(row["equal"] for row in ROWS)


def test_ratios_to_triton() -> None:
    assert len(RATIOS) == sum(row.get("triton_equal", False) for row in ROWS) == 58
    assert math.exp(statistics.fmean(map(math.log, RATIOS))) == pytest.approx(0.789, abs=0.001)
    assert sum(ratio > 1.05 for ratio in RATIOS) == 6
    assert max(RATIOS) < 1.47


def test_a_turn_of_the_banks_takes_about_a_cycle() -> None:
    for row in ROWS:
        if row["bits"] == 32 and row["name"].startswith(("mma v2", "wgmma accumulator", "lanes")):
            turns = 2 * row["size"] // 32
            assert 0.85 * turns < row["cycles"]["plan"] < 1.15 * turns
