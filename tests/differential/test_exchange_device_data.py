"""Residuals that a GPU ran by exchanges, by shuffles and through shared memory: every element, and the plans of today.

The record is ``tests/data/measured/factor_exchanges_dev.json.gz``, written by ``benchmarks/device.py factor``.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import layoutalg as la
from layoutalg.synth import factorise

RECORD = json.loads(
    gzip.decompress((Path(__file__).parents[1] / "data/measured/factor_exchanges_dev.json.gz").read_bytes()).decode()
)
WAYS = ("exchanges", "shuffles", "shared")


def test_every_kernel_brought_every_element() -> None:
    ways = [row[way] for row in RECORD["rows"] for way in WAYS if way in row]
    assert len(ways) == RECORD["summary"]["kernels"] > 100
    assert all(way["equal"] and way["status"] == 1 for way in ways)


def test_the_costs_are_those_found_today() -> None:
    for row in RECORD["rows"][::3]:
        found = factorise(la.parse(row["layout"]), dtype=row["dtype"])
        assert {way: cost.to_json() for way, cost in found.costs.items()} == row["costs"]
        assert found.exchange.packed == row["packed"]
