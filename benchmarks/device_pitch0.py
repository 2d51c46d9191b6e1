"""Ask a device about tensor maps with pitches of 0: every choice of the dimensions that stand still.

    python3 benchmarks/device_pitch0.py --out DIR [--each 6]

Needs a GPU of compute capability 9.0 and its driver. For every rank of 2 to 5, every non-empty set of dimensions whose
stride is 0, every swizzle and every interleave it writes ``pitch0.npz``: ``params`` (the 26 columns of
``device_copies``), ``still`` (the set, as bits), ``status`` (the driver's verdict) and ``same`` (its 128 bytes are the
library's); for maps without interleave also one load each into poisoned shared memory: ``ran`` and ``agrees`` (every
byte of the image is the one predicted: the elements along such a dimension are one another's copies).

Loads run in a child process, one for each rank, so that a fault is recorded and the others are not lost.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import device_copies  # noqa: E402
from device_backends import Cuda, Host, child_error, compile_kernel, device_text  # noqa: E402
from instruments.runner import runner_kernel  # noqa: E402

from layoutalg.targets.nvidia import tensormap  # noqa: E402

MOST_STEPS = 2


def cases(rank: int, each: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return parameters, start coordinates and the set of dimensions whose stride is 0."""
    rng = np.random.default_rng(seed)
    rows, coords, sets = [], [], []
    for still in range(1, 1 << rank - 1):
        for swizzle in range(4):
            for interleave in (0, 0, 1, 2) if rank >= 3 else (0,):
                made = 0
                while made < each:
                    p = device_copies.random_map(
                        rng, rank=rank, swizzle=swizzle, steps=bool(rng.integers(0, MOST_STEPS))
                    )
                    if p is None:
                        continue
                    for mode in range(rank - 1):
                        if still >> mode & 1:
                            p[8 + mode] = 0
                        elif interleave == 2:
                            p[8 + mode] = -(-int(p[8 + mode]) // 32) * 32
                    p[22] = interleave
                    p[2] = p[2] // 32 * 32
                    rows.append(p)
                    coords.append(device_copies.random_coords(rng, p, ("in", "over", "neg")[int(rng.integers(0, 3))]))
                    sets.append(still)
                    made += 1
    return np.array(rows), np.array(coords, dtype=np.int32), np.array(sets, dtype=np.int32)


def verdicts(device: Cuda | Host, params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the driver's verdict on every map, and whether the library has the same verdict and bytes."""
    mine = tensormap.batch.verdicts(params)
    words = iter(tensormap.batch.encode_many(params[mine]))
    status, same = np.zeros(len(params), dtype=np.int32), np.zeros(len(params), dtype=bool)
    for place, (row, accepted) in enumerate(zip(params, mine.tolist(), strict=True)):
        status[place], raw = device.encode(row, int(row[2]))
        same[place] = (status[place] == 0) == accepted
        if accepted:
            same[place] &= next(words).astype("<u8").tobytes() == raw
    return status, same


def load(device: Cuda | Host, job: dict[str, np.ndarray], cubins: Path) -> tuple[np.ndarray, np.ndarray]:
    """Run the loads of one rank; return whether each ran and whether its image is the one predicted."""
    answer = device_copies.run_copies(device, job, cubins)
    ran = (answer["status"] == 0) & (answer["done"] == 1)
    agrees = np.zeros(len(ran), dtype=bool)
    for place in np.flatnonzero(ran).tolist():
        given = (job["params"][place], job["coords"][place], int(job["offset"][place]), int(job["pattern"][place]))
        agrees[place] = bool(np.array_equal(answer["answer"][place], device_copies.predict("load", *given)))
    return ran, agrees


def main() -> int:
    """Ask, run and store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True)
    parser.add_argument("--each", type=int, default=6)
    parser.add_argument("--backend", default="cuda", choices=("cuda", "host"))
    parser.add_argument("--job", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    out = Path(given.out)
    if given.job:
        with np.load(given.job) as stored:
            job = dict(stored)
        device = Cuda() if given.backend == "cuda" else Host()
        ran, agrees = load(device, job, Path(given.job).parent)
        np.savez(given.job + ".answer.npz", ran=ran, agrees=agrees)
        return 0
    out.mkdir(parents=True, exist_ok=True)
    device = Cuda() if given.backend == "cuda" else Host()
    kept: dict[str, list[np.ndarray]] = {name: [] for name in ("params", "still", "status", "same", "ran", "agrees")}
    said: dict[str, object] = {"device": device_text("name,driver_version,compute_cap")}
    print(said["device"], flush=True)
    for rank in range(2, 6):
        params, coords, still = cases(rank, given.each, 500 + rank)
        status, same = verdicts(device, params)
        ran, agrees = np.zeros(len(params), dtype=bool), np.zeros(len(params), dtype=bool)
        some = np.flatnonzero((status == 0) & (params[:, 22] == 0))
        with tempfile.TemporaryDirectory() as folder:
            compile_kernel(runner_kernel(rank, "load"), Path(folder))
            job = str(Path(folder) / "job.npz")
            nothing = np.zeros(len(some), dtype=np.int32)
            np.savez(job, kind="load", params=params[some], coords=coords[some], offset=nothing, pattern=nothing)
            command = [sys.executable, __file__, "--out", str(out), "--job", job, "--backend", given.backend]
            fault = child_error(command, 120)
            if not fault:
                with np.load(job + ".answer.npz") as answer:
                    ran[some], agrees[some] = answer["ran"], answer["agrees"]
        for name, value in zip(kept, (params, still, status, same, ran, agrees), strict=True):
            kept[name].append(value)
        row = {
            "asked": len(params), "accepted": int((status == 0).sum()), "same": int(same.sum()), "loads": len(some),
            "ran": int(ran.sum()), "agree": int(agrees.sum()), "fault": fault,
        }  # fmt: skip
        said[str(rank)] = row
        print(rank, json.dumps(row), flush=True)
    np.savez_compressed(out / "pitch0.npz", **{name: np.concatenate(value) for name, value in kept.items()})
    (out / "pitch0.json").write_text(json.dumps(said, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
