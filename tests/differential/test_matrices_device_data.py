"""Recorded accesses, products and counters of a device against plans, fragments and banks; no GPU needed.

The records are those of ``benchmarks/device.py matrices``; their ``facts`` name the chip.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from instruments import fragment_checks as checks

import layoutalg as la
from layoutalg.proofs import checker
from layoutalg.targets.banks import nvidia_access, turns
from layoutalg.targets.layouts.nvidia_instructions import MMA

MEASURED = Path(__file__).parents[1] / "data/measured"
PRODUCTS = np.load(MEASURED / "mma_dev.npz")
with np.load(MEASURED / "matrix_banks_dev.npz") as stored:
    BANKS = dict(stored)
MOVES = json.loads(gzip.decompress((MEASURED / "matrices_dev.json.gz").read_bytes()))["rows"]


@pytest.mark.parametrize("name", sorted(MMA))
def test_every_dense_product_is_exact_through_the_fragments(name: str) -> None:
    record = {part: PRODUCTS[f"mma/{name}/{part}"] for part in "abd"}
    assert checks.mma_difference(name, record) is None
    swapped = record["d"].copy()
    swapped[:, [0, -1]] = swapped[:, [-1, 0]]
    lanes = record["a"][[1, 0, *range(2, 32)]]
    assert checks.mma_difference(name, {**record, "d": swapped}) is not None or (swapped == record["d"]).all()
    assert checks.mma_difference(name, {**record, "a": lanes}) is not None


def test_every_byte_that_an_admitted_plan_moved_was_the_one_asked_for() -> None:
    assert len(MOVES) == 960
    assert all(row["wrong"] == 0 and row["compared"] > 0 for row in MOVES)
    assert len({row["instruction"] for row in MOVES}) == 24
    replanned = 0
    for row in MOVES[::5]:
        if not row["layout"].startswith("("):
            continue
        answer = la.admissible(row["layout"], row["instruction"], dtype=row["dtype"], tile=row["extents"])
        assert answer.evidence == "measured"
        replanned += 1
    assert replanned > 50


def rows() -> list[tuple[str, list[int | None], int]]:
    names = BANKS["names"].tolist()
    found = []
    for number, lanes, counted in zip(BANKS["name"], BANKS["lanes"], BANKS["wavefronts"], strict=True):
        name = names[number]
        given = [int(lane) if lane >= 0 else None for lane in lanes][: nvidia_access(name).addresses]
        found.append((name, given, int(counted)))
    return found


def test_narrow_matrices_and_inactive_lanes_take_the_turns_that_were_counted() -> None:
    seen = set()
    for name, lanes, counted in rows():
        assert turns("sm_90a", name, lanes) == counted, (name, lanes)
        seen.add((name, counted))
    assert len(BANKS["name"]) == 1080
    assert len(seen) > 100


def test_the_checker_counts_narrow_matrices_as_the_device() -> None:
    proved = 0
    for name, lanes, counted in rows():
        if "matrix" not in name:
            continue
        made = la.certify.bank_turns("sm_90a", name, lanes)
        assert made.statement["turns"] == counted
        document = made.to_json()
        document["statement"] = {**made.statement, "turns": counted + 1}
        assert checker.check({**document, "seal": "-"})[0] == 1
        proved += 1
    assert proved == 720


def test_cycles_grow_with_the_turns() -> None:
    for name in ("stmatrix.x1", "stmatrix.x2", "stmatrix.x4"):
        number = BANKS["names"].tolist().index(name)
        chosen = BANKS["name"] == number
        counted, cycles = BANKS["wavefronts"][chosen], BANKS["cycles"][chosen]
        order = np.argsort(counted, kind="stable")
        assert (np.diff(cycles[order]) >= -8).all(), name
