"""Against one NVIDIA H200 with driver 580.159.04: 40,000 verdicts and encodings, 400 executed tile loads."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from layoutalg.ground.errors import LayoutError
from layoutalg.proofs.tensormap import driver as second
from layoutalg.targets.nvidia import tensormap
from layoutalg.targets.nvidia.tensormap import batch

DATA = Path(__file__).parents[1] / "data" / "measured"
Arrays = dict[str, npt.NDArray[np.generic]]


def arrays(name: str) -> Arrays:
    with np.load(DATA / name) as archive:
        return {key: archive[key] for key in archive.files}


@pytest.fixture(scope="module")
def driver() -> Arrays:
    return arrays("tensormap_dev.npz")


@pytest.fixture(scope="module")
def memory() -> npt.NDArray[np.uint8]:
    return (0x40000000 + np.arange(1 << 21)).astype("<u4").view(np.uint8)


def test_all_verdicts_and_bytes(driver: Arrays) -> None:
    accepted = driver["status"] == 0
    assert accepted.sum() == 11_743
    assert np.array_equal(batch.verdicts(driver["params"]), accepted)
    assert np.array_equal(batch.encode_many(driver["params"]), driver["words"])


def test_scalar_path_agrees(driver: Arrays) -> None:
    nameless = 0
    for row, status, words in zip(
        driver["params"][::5].tolist(), driver["status"][::5], driver["words"][::5], strict=True
    ):
        try:
            tm = batch.from_row(row)
        except LayoutError:  # an enumerator that no name stands for
            assert status != 0
            nameless += 1
            continue
        assert (tensormap.violations(tm) == ()) == second.accepted(tm) == (status == 0)
        if status == 0:
            raw = words.astype("<u8").tobytes()
            assert second.encoded(tm) == raw
            assert tensormap.encode(tm) == raw
            assert tensormap.decode(raw) == tm
        else:
            with pytest.raises(tensormap.RefusedMapError):
                tensormap.encode(tm)
    assert 0 < nameless < 800


def test_a_wrong_rule_would_be_noticed(driver: Arrays) -> None:
    """Each enforced rule decides some recorded row alone, so that dropping it could not pass."""
    alone = set()
    for row in driver["params"].tolist():
        try:
            found = {entry.rule for entry in tensormap.violations(batch.from_row(row))}
        except LayoutError:
            continue
        if len(found) == 1:
            alone |= found
    assert alone == set(tensormap.RULE_IDS_ENFORCED) - {"BASE_RANGE"}


@pytest.mark.parametrize("name", ["tma_exec_plain_dev.npz", "tma_exec_estride_dev.npz"])
def test_executed_loads(name: str, memory: npt.NDArray[np.uint8]) -> None:
    recorded = arrays(name)
    size = recorded["image"].shape[1]
    for row, coords, expect, done, image in zip(
        *(recorded[key] for key in ("params", "coords", "expect", "done", "image")), strict=True
    ):
        tm = batch.from_row(row)
        mine = np.full(max(size, tensormap.footprint_bytes(tm)), 0xEE, np.uint8)
        returned = tensormap.tile_load(tm, coords[: tm.rank], memory, mine)
        assert returned == tensormap.transaction_bytes(tm)
        assert np.array_equal(mine[:size], image)
        if name == "tma_exec_plain_dev.npz":
            assert done == 1
            assert returned == expect
        elif not done:
            assert expect < returned
