"""Recorded registers of matrix instructions against the fragment layouts; no GPU needed.

The record is ``tests/data/measured/fragments_dev.npz``, written by ``benchmarks/device.py fragments`` on the chip that
its ``facts`` name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from instruments import fragment_checks as checks

RECORD = np.load(Path(__file__).parents[1] / "data/measured/fragments_dev.npz")


def arrays(label: str) -> dict[str, npt.NDArray[Any]]:
    found = {key.rsplit("/", 1)[1]: RECORD[key] for key in RECORD.files if key.startswith(label + "/")}
    assert found, label
    return found


RECORDED = sorted({key.split("/")[1] for key in RECORD.files if key.startswith("mma/")})


@pytest.mark.parametrize("name", RECORDED)
def test_mma_fragments(name: str) -> None:
    record = arrays(f"mma/{name}")
    assert checks.mma_difference(name, record) is None
    # two registers of a lane exchanged are noticed
    swapped = record["d"].copy()
    swapped[:, [0, -1]] = swapped[:, [-1, 0]]
    assert checks.mma_difference(name, {**record, "d": swapped}) is not None


@pytest.mark.parametrize("kind", ["ldmatrix", "stmatrix"])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("matrices", [1, 2, 4])
def test_matrix_loads_and_stores(matrices: int, transposed: bool, kind: str) -> None:
    record = arrays(f"{kind}/x{matrices}{'.trans' if transposed else ''}/b16")
    for bits in (16,) if transposed else (8, 16, 32):
        assert checks.matrix_move_difference(matrices, transposed, bits, record) is None
    assert checks.matrix_move_difference(matrices, not transposed, 16, record) is not None


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("n", [8, 24, 64])
def test_warpgroup_multiply_from_registers(n: int, dtype: str) -> None:
    record = arrays(f"wgmma/{dtype}/n{n}")
    assert checks.wgmma_difference(dtype, n, record) is None
    assert checks.wgmma_difference(dtype, n, {**record, "a": record["a"][::-1]}) is not None
