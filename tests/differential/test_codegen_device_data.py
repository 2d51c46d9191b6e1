"""The CPU models of the hardware against what one H200 did: every recorded copy, and recorded matrix descriptors.

The kernels run here are the ones the recording program launched, so that kernel text, tables and models are judged
at once.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from instruments.runner import runner_kernel, runner_smem_bytes, runner_tables

from layoutalg.codegen import hostsim
from layoutalg.codegen.launch import place_map
from layoutalg.targets.nvidia.tensormap import batch

ROOT = Path(__file__).parents[2]
MEASURED = ROOT / "tests/data/measured"
IMAGE = 32768

pytestmark = pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")


def program(name: str) -> ModuleType:
    """Return one of the programs that recorded the data."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


def groups(name: str) -> dict[str, dict[str, np.ndarray]]:
    found: dict[str, dict[str, np.ndarray]] = {}
    with np.load(MEASURED / name) as stored:
        for key in stored.files:
            group, field = key.split("/")
            found.setdefault(group, {})[field] = stored[key]
    return found


def replay(
    direction: str, maps: np.ndarray, params: np.ndarray, coords: np.ndarray, offset: np.ndarray, pattern: int,
    expect: np.ndarray | None = None, width: int = IMAGE,
) -> tuple[list[int], np.ndarray]:  # fmt: skip
    """Run recorded copies of one rank in one launch; return the statuses and the images or windows."""
    copies = program("device_copies")
    rank = int(params[0, 1])
    n = len(params)
    memory = np.array(copies.source_words(pattern, copies.BUFFER_WORDS))
    windows = np.full((n, copies.WINDOW_BYTES), 0xA5, dtype=np.uint8)
    home = [windows[i].ctypes.data if direction == "store" else memory.ctypes.data for i in range(n)]
    table = runner_tables(
        [
            (
                place_map(bytes(8) + maps[i].tobytes()[8:], home[i] + int(params[i, 2])),
                [(0, coords[i, :rank].tolist())],
                copies.expect_bytes(params[i]) if expect is None else int(expect[i]),
                int(offset[i]),
            )
            for i in range(n)
        ]
    )
    images = np.zeros((n, width), dtype=np.uint8)
    images[:, :IMAGE] = copies.source_words(pattern, IMAGE // 4)
    status = np.zeros(n, dtype=np.int32)
    regions = [(memory.ctypes.data, memory.nbytes), (windows.ctypes.data, windows.nbytes)]
    store = np.zeros(table.maps.size + 64, dtype=np.uint8)
    aligned = store[-store.ctypes.data % 64 :][: table.maps.size]
    aligned[:] = table.maps.reshape(-1)
    fault = hostsim.run(
        runner_kernel(rank, direction),
        [aligned, table.heads, table.issues, images, width, status],
        blocks=n, dynamic_smem_bytes=runner_smem_bytes(width), regions=regions,
    )  # fmt: skip
    return [fault or 100 + int(flag) for flag in status], windows if direction == "store" else images[:, :IMAGE]


@pytest.mark.nightly(one_of=2)
@pytest.mark.parametrize("name", ["tma_exec_plain_dev.npz", "tma_exec_estride_dev.npz"])
def test_recorded_loads(name: str) -> None:
    with np.load(MEASURED / name) as stored:
        data = dict(stored)
    maps = batch.encode_many(data["params"]).view(np.uint8).reshape(-1, 128)
    for rank in range(1, 6):
        chosen = np.flatnonzero(data["params"][:, 1] == rank)
        status, images = replay(
            "load", maps[chosen], data["params"][chosen], data["coords"][chosen], np.zeros(len(chosen)), 0,
            data["expect"][chosen], 36864,
        )  # fmt: skip
        # A count that is too small never completes here; on the device it can complete early, where the bytes arrive in
        # portions and the count passes through zero.
        right = [
            program("device_copies").expect_bytes(p) == e
            for p, e in zip(data["params"][chosen], data["expect"][chosen], strict=True)
        ]
        assert status == [101 if full else 102 for full in right]
        assert all(data["done"][chosen][right])
        assert np.array_equal(images, data["image"][chosen])


@pytest.mark.nightly(one_of=2)
@pytest.mark.parametrize(("name", "direction"), [("tma_load_probe_dev.npz", "load"), ("tma_store_dev.npz", "store")])
def test_recorded_probes(name: str, direction: str) -> None:
    compared = 0
    for group, data in groups(name).items():
        if "answer" not in data:
            continue
        good = (data["fault"] == "") & (data["status"] == 0)
        for rank in range(1, 6):
            for pattern in np.unique(data["pattern"]):
                chosen = np.flatnonzero(good & (data["params"][:, 1] == rank) & (data["pattern"] == pattern))
                if not chosen.size:
                    continue
                part = [data[field][chosen] for field in ("maps", "params", "coords", "offset")]
                status, answers = replay(direction, *part, int(pattern))
                assert status == [101] * len(chosen), group
                wrong = np.flatnonzero((answers != data["answer"][chosen]).any(axis=1))
                assert not wrong.size, (group, data["params"][chosen[wrong[0]]].tolist())
                compared += len(chosen)
    assert compared == {"load": 947, "store": 1236}[direction]


@pytest.mark.parametrize(("name", "direction"), [("tma_load_probe_dev.npz", "load"), ("tma_store_dev.npz", "store")])
def test_recorded_faults(name: str, direction: str) -> None:
    """What the device punished (715 illegal instruction, 716 misaligned address) is a fault of the models too."""
    meaning = {
        "716": {2},
        "715": {4, hostsim.FAULTS.index("store with a negative start coordinate"),
                hostsim.FAULTS.index("bulk copy through a dimension above 2^31")},
    }  # fmt: skip
    seen = 0
    for data in groups(name).values():
        for i in np.flatnonzero([text.startswith("RuntimeError") for text in data["fault"]]):
            params = data["params"][i : i + 1]
            placed = params.copy()
            placed[:, 2] = 0
            maps = batch.encode_many(placed).view(np.uint8).reshape(-1, 128)
            status, _ = replay(
                direction, maps, params, data["coords"][i : i + 1], data["offset"][i : i + 1], int(data["pattern"][i])
            )
            assert status[0] in meaning[str(data["fault"][i])[-3:]], params.tolist()
            seen += 1
    assert seen > 40


@pytest.mark.parametrize("n", [8, 64, 128, 256])
def test_recorded_operand_b(n: int) -> None:
    data = groups("wgmma_b_dev.npz")[str(n)]
    chosen = np.arange(0, len(data["fields"]), 8 if n == 256 else 4)
    fields = data["fields"][chosen].astype(np.uint64)
    words = fields[:, 0] >> np.uint64(4) | fields[:, 1] << np.uint64(16) | fields[:, 2] << np.uint64(32)
    words |= fields[:, 3] << np.uint64(49) | fields[:, 4] << np.uint64(62)
    found = np.zeros((len(chosen), 16, n), dtype=np.uint16)
    kernel = program("device_wgmma_probes").probe_b_kernel(n)
    assert hostsim.run(kernel, [words, fields[:, 5].astype(np.int32), found], blocks=len(chosen)) == 0
    assert np.array_equal(found, data["index"][chosen])
