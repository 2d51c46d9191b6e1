"""The bank model against 2,880 accesses that devices counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from instruments.bank_probe import KINDS as PROBED

from layoutalg.targets.banks import bank_model, nvidia_access

DATA = Path(__file__).parents[1] / "data/measured"
VECTORS = {8: "b8", 16: "b16", 32: "b32", 64: "v2.b32", 128: "v4.b32"}
Row = tuple[str, list[int | None], int]


def first_run() -> list[Row]:
    with np.load(DATA / "banks_dev.npz") as stored:
        record = dict(stored)
    found: list[Row] = []
    for row, (kind, bits) in enumerate(zip(record["kind"], record["bits"], strict=True)):
        name = list(PROBED)[kind]
        column = 0 if name in ("load", "ldmatrix") else 1
        plain = {"load": "ld", "store": "st"}.get(name)
        instruction = f"{plain}.shared.{VECTORS[int(bits)]}" if plain else f"{name}.x4"
        found.append((instruction, record["offsets"][row].tolist(), int(record["wavefronts"][row, column])))
    return found


def second_run() -> list[Row]:
    with np.load(DATA / "matrix_banks_dev.npz") as stored:
        record = dict(stored)
    found: list[Row] = []
    for number, lanes, turns in zip(record["name"], record["lanes"], record["wavefronts"], strict=True):
        name = record["names"].tolist()[number]
        given = [int(lane) if lane >= 0 else None for lane in lanes][: nvidia_access(name).addresses]
        found.append((name, given, int(turns)))
    return found


ROWS = [*first_run(), *second_run()]


def test_the_model_takes_the_turns_that_were_counted() -> None:
    for name, lanes, turns in ROWS:
        assert bank_model("sm_90a", name).turns(lanes) == turns, (name, lanes)
    assert len(ROWS) == 2880


def shares(name: str, lanes: list[int | None]) -> bool:
    """Whether some lanes of a wide load or store share an address and others do not: a broadcast of a part."""
    active = [lane for lane in lanes if lane is not None]
    return 1 < len(set(active)) < len(active) and bank_model("sm_90a", name).access_bytes >= 8


@pytest.mark.parametrize(
    ("what", "chosen", "least"),
    [
        ("all", lambda *_: True, 1500),
        ("64 bits shared in part", lambda name, lanes: "v2.b32" in name and shares(name, lanes), 60),
        ("128 bits shared in part", lambda name, lanes: "v4.b32" in name and shares(name, lanes), 60),
        ("ldmatrix", lambda name, _: name.startswith("ldmatrix"), 300),
        ("stmatrix", lambda name, _: name.startswith("stmatrix"), 300),
    ],
)
def test_there_are_patterns_enough(what: str, chosen, least: int) -> None:
    patterns = {(name, tuple(lanes)) for name, lanes, _ in ROWS if chosen(name, lanes)}
    assert len(patterns) >= least, (what, len(patterns))
