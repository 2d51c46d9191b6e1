"""Ask the driver about fresh random TensorMap parameters and compare verdicts and bytes with the library's.

    python3 benchmarks/device_driver.py OUT.json [--count 20000] [--seed 1]

Needs a GPU and its driver. Prints agreement, and the time of one encoding by the driver and by the library in this run.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from layoutalg.targets.nvidia import tensormap  # noqa: E402

COLUMNS = 26


def random_parameters(count: int, seed: int) -> np.ndarray:
    """Return int64[count, 26] parameter rows around the legal boundaries (columns as in tests/data/measured)."""
    rng = np.random.default_rng(seed)
    rows = np.full((count, COLUMNS), -1, dtype=np.int64)
    rank = rng.choice([1, 2, 3, 4, 5], count, p=[0.1, 0.25, 0.25, 0.2, 0.2])
    dtype = rng.integers(0, 13, count)
    size = np.array([1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4])[dtype]
    rows[:, 0], rows[:, 1] = dtype, rank
    rows[:, 2] = rng.choice([0, 16, 32, 48, 4096, 8, 1 << 40], count, p=[0.3, 0.2, 0.2, 0.1, 0.1, 0.05, 0.05])
    for mode in range(5):
        used = rank > mode
        dims = rng.choice(
            [1, 2, 7, 64, 512, 4096, 1 << 20, (1 << 32) - 1, 1 << 32, (1 << 32) + 1, 0],
            count,
            p=[0.08, 0.08, 0.1, 0.2, 0.2, 0.2, 0.1, 0.01, 0.01, 0.01, 0.01],
        )
        box = rng.choice(
            [1, 2, 4, 8, 16, 32, 64, 128, 255, 256, 257, 0],
            count,
            p=[0.12, 0.12, 0.12, 0.15, 0.13, 0.12, 0.1, 0.06, 0.03, 0.03, 0.01, 0.01],
        )
        if mode == 0:
            span = rng.choice([16, 32, 64, 128, 256], count)
            box = np.where(rng.random(count) < 0.6, np.maximum(span // size, 1), box)
        steps = rng.choice([1, 1, 1, 1, 2, 3, 8, 9, 0], count, p=[0.3, 0.2, 0.2, 0.15, 0.05, 0.04, 0.04, 0.01, 0.01])
        rows[used, 3 + mode] = dims[used]
        rows[used, 12 + mode] = box[used]
        rows[used, 17 + mode] = steps[used]
        if mode:
            stride = 16 * rng.choice(
                [0, 1, 3, 64, 1000, 1 << 20, (1 << 36) - 1, 1 << 36],
                count,
                p=[0.03, 0.12, 0.15, 0.3, 0.2, 0.16, 0.02, 0.02],
            )
            stride = stride + np.where(rng.random(count) < 0.03, 8, 0)
            rows[used, 7 + mode] = stride[used]
    rows[:, 22] = rng.choice([0, 0, 0, 0, 0, 0, 0, 1, 2], count)
    rows[:, 23] = rng.integers(0, 4, count)
    rows[:, 24] = rng.integers(0, 4, count)
    rows[:, 25] = rng.choice([0, 0, 0, 1], count)
    return rows


class Driver:
    """``cuTensorMapEncodeTiled`` through ctypes."""

    def __init__(self) -> None:
        self.lib = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        for status in (
            self.lib.cuInit(0),
            self.lib.cuDeviceGet(ctypes.byref(device), 0),
            self.lib.cuDevicePrimaryCtxRetain(ctypes.byref(context), device),
            self.lib.cuCtxSetCurrent(context),
        ):
            if status:
                raise RuntimeError(f"the driver answered {status}")
        self.room = (ctypes.c_uint8 * 256)()
        self.map = (ctypes.addressof(self.room) + 127) // 128 * 128

    def encode(self, row: list[int]) -> tuple[int, bytes]:
        """Return (status, 128 bytes)."""
        rank = row[1]
        dims = (ctypes.c_uint64 * 5)(*row[3 : 3 + rank])
        strides = (ctypes.c_uint64 * 5)(*row[8 : 8 + rank - 1])
        box = (ctypes.c_uint32 * 5)(*row[12 : 12 + rank])
        steps = (ctypes.c_uint32 * 5)(*row[17 : 17 + rank])
        ctypes.memset(self.map, 0, 128)
        status = self.lib.cuTensorMapEncodeTiled(
            ctypes.c_void_p(self.map),
            row[0],
            ctypes.c_uint32(rank),
            ctypes.c_void_p(row[2]),
            dims,
            strides,
            box,
            steps,
            *row[22:26],
        )
        return status, ctypes.string_at(self.map, 128)


def main() -> None:
    """Compare and time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out")
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rows = random_parameters(arguments.count, arguments.seed)
    driver = Driver()
    mine = tensormap.batch.verdicts(rows)
    words = tensormap.batch.encode_many(rows[mine])
    bytes_of = iter(words)
    verdicts = differing = refused = 0
    first = None
    for row, accepted in zip(rows.tolist(), mine.tolist(), strict=True):
        status, raw = driver.encode(row)
        refused += status != 0
        encoded = next(bytes_of).tobytes() if accepted else None
        if (status == 0) != accepted:
            verdicts += 1
            first = first or {"row": row, "status": status, "library": accepted}
        elif accepted and encoded != raw:
            differing += 1
            first = first or {"row": row, "driver": raw.hex(), "library": encoded.hex()}
    good = next(row for row, accepted in zip(rows.tolist(), mine.tolist(), strict=True) if accepted and row[1] == 3)
    tm = tensormap.batch.from_row(good)
    times = {}
    for name, call in (
        ("driver through ctypes", lambda: driver.encode(good)),
        ("library", lambda: tensormap.encode(tm)),
    ):
        samples = []
        for _ in range(25):
            began = time.perf_counter()
            for _ in range(400):
                call()
            samples.append((time.perf_counter() - began) / 400)
        times[name] = round(1e6 * sorted(samples)[12], 3)
    result = {
        "parameter_sets": len(rows), "refused_by_driver": refused, "verdicts_that_differ": verdicts,
        "encodings_that_differ": differing, "first": first, "microseconds_per_encoding": times,
    }  # fmt: skip
    Path(arguments.out).write_text(json.dumps(result, indent=1))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
