"""Recorded verdicts and loads of tensor maps with pitches of 0 against the library's rules, bytes and model; no GPU.

The record is that of ``benchmarks/device.py pitch0``, whose cases are drawn again here.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import device_copies  # noqa: E402

from layoutalg.targets.nvidia import tensormap  # noqa: E402

with np.load(ROOT / "tests/data/measured/pitch0_dev.npz") as stored:
    RECORD = dict(stored)


def test_every_choice_of_dimensions_that_stand_still_was_accepted_and_encoded_alike() -> None:
    params = RECORD["params"]
    assert len(params) == 2424
    assert not RECORD["status"].any()
    assert RECORD["same"].all()
    assert tensormap.batch.verdicts(params).all()
    choices = {(int(row[1]), int(still)) for row, still in zip(params, RECORD["still"], strict=True)}
    assert choices == {(rank, still) for rank in range(2, 6) for still in range(1, 1 << rank - 1)}
    for rank, still in choices:
        mine = params[(params[:, 1] == rank) & (RECORD["still"] == still)]
        zero = mine[:, 8 : 7 + rank] == 0
        assert (zero == [bool(still >> mode & 1) for mode in range(rank - 1)]).all()
        assert set(mine[:, 23].tolist()) == {0, 1, 2, 3}


def test_every_load_ran_and_brought_the_bytes_of_the_model() -> None:
    plain = RECORD["params"][:, 22] == 0
    assert (RECORD["ran"] == plain).all()
    assert (RECORD["agrees"] == plain).all()
    assert plain.sum() == 1224


@pytest.mark.parametrize("rank", [2, 3, 4, 5])
def test_what_was_predicted_is_what_the_model_of_the_engine_loads(rank: int) -> None:
    """The device agreed with the tests' own copy engine, and that agrees with ``tile_load``, which shares no code."""
    params, coords, _ = device_copies.still_cases(rank, 6, 500 + rank)
    assert np.array_equal(params, RECORD["params"][RECORD["params"][:, 1] == rank])
    memory = device_copies.source_words(0, device_copies.BUFFER_WORDS)
    chosen = np.flatnonzero(params[:, 22] == 0)
    for at in chosen[:: max(1, len(chosen) // 12)].tolist():
        image = np.full(device_copies.IMAGE_BYTES, 0xEE, dtype=np.uint8)
        tensor_map = tensormap.batch.from_row(params[at])
        tensormap.tile_load(tensor_map, coords[at, :rank], memory, image)
        assert np.array_equal(image, device_copies.predict("load", params[at], coords[at], 0, 0)), params[at]
