"""Recorded counters of accesses to global memory against the library's sectors; no GPU needed.

The record is that of ``benchmarks/device.py transactions``; its summary names the chip.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import layoutalg as la
from layoutalg.proofs import checker
from layoutalg.targets.global_memory import instruction, touched

RECORD = Path(__file__).parents[1] / "data/measured/transactions_dev.json.gz"
if not RECORD.exists():
    pytest.skip(f"{RECORD.name} is not recorded yet: benchmarks/device.py transactions", allow_module_level=True)
ROWS: list[dict[str, Any]] = json.loads(gzip.decompress(RECORD.read_bytes()))["rows"]


def test_the_record_has_every_width_and_both_directions() -> None:
    assert len(ROWS) >= 500
    assert len({row["instruction"] for row in ROWS}) == 10
    assert all(row["requests"] == 1 for row in ROWS)
    assert any(-1 in row["starts"] for row in ROWS)


def test_the_library_counts_the_sectors_that_the_device_counted() -> None:
    for row in ROWS:
        access = instruction(row["instruction"], "sm_90a")
        found = int(touched(np.array([row["starts"]]), access.bytes, access.sector_bytes)[0])
        assert found == row["sectors"], row


def test_certificates_state_what_the_device_counted() -> None:
    for row in ROWS[::12]:
        at = [start if start >= 0 else max(row["starts"]) for start in row["starts"]]
        made = la.certify.sectors_of("sm_90a", row["instruction"], at)
        assert made.statement["turns"] == row["sectors"]
        assert checker.check(made.to_json())[0] == 0
