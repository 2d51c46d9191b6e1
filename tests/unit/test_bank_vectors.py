"""Counts of banks that others recorded: 21 counters of an MI300X; 44 statements on swizzles, emulated code and rows."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

import layoutalg as la
from layoutalg.targets.banks import bank_model

RECORDED = json.loads((Path(__file__).parents[1] / "data/bank_vectors.json").read_text(encoding="utf-8"))
F = {
    "row&7": lambda row: row & 7,
    "row>>1": lambda row: row >> 1 & 7,
    "(row&7)^(row>>4)": lambda row: (row & 7) ^ (row >> 4),
}
PICK = {"A": (lambda lane: lane % 32, lambda lane: lane // 32), "B": (lambda lane: lane % 16, lambda lane: lane // 16)}
FREE = {"gfx942": 8, "gfx950": 4, "sm_90a": 8}
"""Turns of 64 lanes of 16 bytes where no bank is busier than it must be."""


def cases(name: str) -> list[dict[str, object]]:
    return RECORDED[name]["cases"]


def test_there_are_as_many_as_were_recorded() -> None:
    assert len(cases("counters")) == 21
    assert sum(len(part["cases"]) for part in RECORDED.values()) == 21 + 44


@pytest.mark.parametrize("case", cases("counters"), ids=lambda case: f"{case['operation']}-{case['stride_bytes']}")
def test_counters_of_an_mi300x(case: dict) -> None:
    words = int(case["operation"][9:]) // 32
    stride = case["stride_bytes"] // 4
    report = la.banks(f"(64,{words}):({stride},1)", None, 32, case["operation"], target=case["target"])
    assert case["reads"] * report.conflicts == case["counter"]
    assert report.evidence == "measured"
    assert report.certificate.statement["turns"] == report.turns


def reads(f: str, operand: str, step: int) -> list[int]:
    """Addresses of 64 lanes: the chunks of one read."""
    row, chunk = PICK[operand]
    several = 64 // (32 if operand == "A" else 16)
    return [128 * row(lane) + 16 * ((several * step + chunk(lane)) ^ F[f](row(lane))) for lane in range(64)]


def turns(target: str, addresses: list[int]) -> int:
    if target.startswith("gfx"):
        return bank_model(target, "ds_read_b128").turns(addresses)
    model = bank_model(target, "ld.shared.v4.b32")
    return model.turns(addresses[:32]) + model.turns(addresses[32:])


@pytest.mark.parametrize(
    "case", cases("statements"), ids=lambda case: f"{case['f']}-{case['target']}-{case['operand']}"
)
def test_swizzles_that_are_free_and_that_are_not(case: dict) -> None:
    several = 4 if case["operand"] == "A" else 2
    taken = [turns(case["target"], reads(case["f"], case["operand"], step)) for step in range(several)]
    assert (taken == [FREE[case["target"]]] * several) == case["free"]


@pytest.mark.parametrize("case", cases("emulated"), ids=lambda case: f"{case['f']}-{case['target']}")
def test_extra_turns_of_emulated_code(case: dict) -> None:
    taken = sum(turns(case["target"], reads(case["f"], "A", step)) for step in range(case["reads"]))
    assert taken - case["reads"] * FREE[case["target"]] == case["extra"]


@pytest.mark.parametrize("case", cases("rows"), ids=lambda case: f"{case['pitch_bytes']}-{case['xor']}")
def test_rows_of_a_matrix(case: dict) -> None:
    rows = [case["pitch_bytes"] * row + (16 * row if case["xor"] else 0) for row in range(8)]
    assert la.targets.banks.turns("sm_90a", "ldmatrix.x1", rows) == case["turns"]


def free_of_conflicts(target: str, operand: str) -> np.ndarray:
    """For every linear f from 5 row bits to 3 chunk bits: whether one read is free, by the groups of the bank model."""
    bits = np.array(list(itertools.product(range(8), repeat=5)))
    rows = np.arange(32)
    f = np.zeros((len(bits), 32), dtype=np.int64)
    for bit in range(5):
        f ^= np.where(rows >> bit & 1, bits[:, bit : bit + 1], 0)
    row, chunk = PICK[operand]
    lanes = np.arange(64)
    slots = chunk(lanes) ^ f[:, row(lanes)] | 8 * (row(lanes) % 2 if target == "gfx950" else np.zeros(64, dtype=int))
    name = "ds_read_b128" if target.startswith("gfx") else "ld.shared.v4.b32"
    model = bank_model(target, name)
    groups = [*model.groups, *([lane + 32 for lane in group] for group in model.groups if model.lanes == 32)]
    free = np.ones(len(bits), dtype=bool)
    for group in groups:
        here = np.sort(slots[:, list(group)], axis=1)
        free &= (np.diff(here, axis=1) > 0).all(axis=1)
    for number in range(0, len(bits), 1009):
        at = [int(128 * row(lane) + 16 * (chunk(lane) ^ f[number, row(lane)])) for lane in range(64)]
        assert (turns(target, at) == FREE[target]) == free[number]
    return free


def test_how_many_swizzles_are_free() -> None:
    found = {(target, operand): free_of_conflicts(target, operand) for target in FREE for operand in "AB"}
    for case in cases("universal"):
        both = [found[target, operand] for target in case["targets"] for operand in case["operands"]]
        assert int(np.logical_and.reduce(both).sum()) == case["count"]
