"""What kernels that move arrays did on a device, as recorded; those that are timed next can be made."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import device_kernels

from layoutalg.codegen import copy_kernel, transpose_kernel
from layoutalg.codegen.kernels import gather_kernel, transpose_ring_kernel, transpose_windows_kernel

DATA = Path(__file__).parents[1] / "data" / "measured" / "kernels_dev.json.gz"
ROWS = [row for row in json.loads(gzip.decompress(DATA.read_bytes()))["rows"] if "gbps" in row]
MAKERS = {
    "copy": copy_kernel, "transpose": transpose_kernel, "ring": transpose_ring_kernel,
    "windows": transpose_windows_kernel,
}  # fmt: skip


def best(kind, shape, dtype):
    return max((row for row in ROWS if (row["kind"], tuple(row["shape"]), row["dtype"]) == (kind, shape, dtype)),
               key=lambda row: row["gbps"])  # fmt: skip


def test_every_kernel_was_right_and_had_no_local_memory():
    assert len(ROWS) >= 173
    assert all(row["equal"] and row["local_bytes"] == 0 and row["conflicts"] == 0 for row in ROWS)


def test_arrays_move_at_the_bandwidth_of_a_copy():
    even = (8192, 8192)
    assert best("copy", even, "f32")["of_memcpy"] >= 0.92
    for dtype in ("f16", "f32", "u8", "f64"):
        assert best("transpose", even, dtype)["of_memcpy"] >= 0.92
    for dtype in ("f16", "f32"):
        ragged = best("windows", (8191, 8193), dtype)
        assert ragged["of_memcpy"] >= 0.92
        assert max(best("transpose", even, dtype)["to_torch"], ragged["to_torch"]) <= 0.3


@pytest.mark.parametrize("kind", MAKERS)
def test_the_kernels_that_were_timed_can_be_made_again(kind):
    for row in [row for row in ROWS if row["kind"] == kind][::7]:
        options = {name: tuple(value) if isinstance(value, list) else value for name, value in row["options"].items()}
        made = MAKERS[kind](tuple(row["shape"]), row["dtype"], **options)
        assert made.kernel.dynamic_smem_bytes == row["smem"]


@pytest.mark.parametrize("kind", ["gathers", "staging"])
def test_the_kernels_that_are_to_be_timed_can_be_made(kind):
    jobs = device_kernels.JOBS[kind]()
    assert len(jobs) >= 16
    for maker, shape, dtype, options in jobs:
        made = device_kernels.MAKERS[maker](shape, dtype, **options)
        assert max(each.nbytes for each in made.arrays) <= 1 << 30
        assert all(each.turns == each.ideal for each in made.served)


def test_a_gather_goes_the_way_that_was_fastest():
    record = json.loads(gzip.decompress((DATA.parent / "kernels_gathers_dev.json.gz").read_bytes()))["rows"]
    timed = [row for row in record if "gbps" in row]
    assert len(timed) == 54
    assert all(row["equal"] and row["local_bytes"] == 0 for row in timed)
    fastest = {}
    for row in timed:
        if row["kind"] == "gather":
            key = (tuple(row["shape"]), row["dtype"], row["options"]["axis"], row["options"]["count"])
            fastest[key] = min(fastest.get(key, row), row, key=lambda each: each["ms"])
    assert len(fastest) == 9
    for (shape, dtype, axis, count), row in fastest.items():
        said = {"warp": "shuffles", "shared": "shared memory", "direct": "loads"}[row["options"]["way"]]
        assert gather_kernel(shape, axis, count, dtype).what.endswith(f"by {said}")
        assert row["to_torch"] < 1
