"""Factored layouts that a GPU ran both ways: every word equal, and the same rounds as are found today.

The record is ``tests/data/measured/factor_dev.json.gz``, written by ``benchmarks/device.py factor``.
"""

from __future__ import annotations

import gzip
import json
import statistics
from pathlib import Path

import layoutalg as la
from layoutalg.synth import factorise

RECORD = json.loads(
    gzip.decompress((Path(__file__).parents[1] / "data/measured/factor_dev.json.gz").read_bytes()).decode()
)


def test_every_kernel_brought_every_word() -> None:
    ways = [row[way] for row in RECORD["rows"] for way in ("shuffles", "shared")]
    assert len(ways) == 128
    assert all(way["equal"] and way["status"] == 1 for way in ways)


def test_the_rounds_are_those_found_today() -> None:
    for row in RECORD["rows"][:32]:
        found = factorise(la.parse(row["layout"]))
        assert (found.rounds, found.shuffles.registers, found.shuffles.warps) == (
            row["rounds"], row["registers"], row["warps"],
        )  # fmt: skip


def test_one_exchanged_bit_is_cheaper_by_shuffles() -> None:
    ratios = [row["ratio"] for row in RECORD["rows"] if row["kind"] == "swap1"]
    assert len(ratios) > 10
    assert statistics.median(ratios) < 0.7
