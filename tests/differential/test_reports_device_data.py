"""Counters of whole Triton kernels against the reports on their TTGIR; no GPU needed.

The record is that of ``benchmarks/device.py reports``; its summary names the chip.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import layoutalg as la

RECORD = Path(__file__).parents[1] / "data/measured/reports_dev.json.gz"
ROWS: list[dict[str, Any]] = json.loads(gzip.decompress(RECORD.read_bytes()))["rows"]
INSIDE = ("tt.reduce", "tt.scan")
"""Operations that use shared memory in ways that no line counts."""


def totals(row: dict[str, Any]) -> tuple[dict[str, int], int]:
    """The sectors of a whole launch by kind of access, and the turns of shared memory by loads and stores."""
    sectors, turns = {"load": 0, "store": 0}, 0
    blocks = 1
    for extent in row["grid"]:
        blocks *= extent
    for line in la.explain(row["ttgir"]).to_json()["lines"]:
        copied = line["op"] == "ttg.async_copy_global_to_local"
        # copies ahead of a pipelined loop take the place of those that its last trips leave out
        times = row["trips"] * blocks if line["loops"] else 0 if copied else blocks
        for answer in line["answers"]:
            if "sectors" in answer and "atomic" not in line["op"]:
                sectors["store" if line["op"] == "tt.store" else "load"] += times * answer["sectors"]
            elif "turns" in answer and not copied:
                turns += times * answer["turns"]
            elif "cost" in answer:
                turns += times * answer["cost"]["turns"]
    return sectors, turns


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"].replace(" ", "_"))
def test_reports_count_what_the_device_counted(row):
    sectors, turns = totals(row)
    assert sectors == {"load": row["loaded"], "store": row["stored"]}
    if not any(name in row["ttgir"] for name in INSIDE):
        assert turns == row["shared_read"] + row["shared_written"]


def test_the_record_has_every_kind_of_access():
    texts = [row["ttgir"] for row in ROWS]
    for word in ("async_copy", "local_load", "local_alloc", "convert_layout", "warp_group_dot", "tt.dot", "atomic_rmw"):
        assert any(word in text for text in texts), word
    assert sum(row["shared_read"] > 0 for row in ROWS) > 8
