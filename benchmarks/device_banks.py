"""Count the wavefronts of single shared-memory accesses with hardware counters.

Run on a machine with an sm_90a GPU whose counters ``ncu`` may read, from the root of the repository:

    C=l1tex__data_pipe_lsu_wavefronts_mem_shared
    PYTHONPATH=.:tests ncu --clock-control none --cache-control none --csv --page raw --log-file counts.csv \\
        --metrics ${C}_op_ld.sum,${C}_op_st.sum,$C.sum python benchmarks/device_banks.py launch 300
    PYTHONPATH=.:tests python benchmarks/device_banks.py collect 300 counts.csv DIRECTORY

``launch N`` runs N cases of each access in a fixed order; ``collect`` joins them with the counters and writes
``DIRECTORY/banks_dev.npz``: ``offsets int32[cases, 32]`` (bytes), ``bits``, ``kind`` (index into ``KINDS``), ``linear``
(1: the offsets are linear over F2 in the lane, 0: random), ``wavefronts`` (loads, stores, all). One launch, one warp.
"""

from __future__ import annotations

import csv
import datetime
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
from instruments.bank_probe import KINDS, PROBE_BYTES, bank_probe_kernel

from layoutalg.codegen import launch

COUNTER = "l1tex__data_pipe_lsu_wavefronts_mem_shared"
Case = tuple[str, int, int, npt.NDArray[np.int32]]


def cases(number: int) -> Iterator[Case]:
    """Yield (kind, bits, linear, byte offset of each lane), the same ones every time."""
    rng = np.random.default_rng(90)
    for kind, widths in KINDS.items():
        for bits in widths:
            size = bits // 8
            room = PROBE_BYTES // size
            for index in range(number):
                linear = index % 2 == 0
                elements = linear_lanes(rng, room) if linear else free_lanes(rng, room, index // 2 % 5)
                yield kind, bits, int(linear), (elements * size).astype(np.int32)


def free_lanes(rng: np.random.Generator, room: int, how: int) -> npt.NDArray[np.int64]:
    """Return random element offsets; lanes t and t ^ 1, or t and t ^ 2, share all (1), some (2, 3) or changing (4)."""
    elements = rng.integers(0, int(rng.choice([32, 64, 256, room])), 32)
    lanes = np.arange(32)
    if how == 1:
        return elements[lanes & ~int(rng.choice([1, 2, 3]))]
    if how == 2:
        half = int(rng.choice([4, 8, 16]))
        return np.where(lanes & half, elements[lanes & ~int(rng.choice([1, 2]))], elements)
    if how == 3:
        kept = elements[lanes & ~int(rng.choice([1, 2]))]
        kept[int(rng.integers(0, 32))] = int(rng.integers(0, room))
        return kept
    return np.where(lanes & 16, elements[lanes & ~1], elements[lanes & ~2]) if how == 4 else elements


def linear_lanes(rng: np.random.Generator, room: int) -> npt.NDArray[np.int64]:
    """Return element offsets that are linear over F2 in the lane: bits moved, strided, xored, doubled or dense."""
    width = int(room).bit_length() - 1
    low = int(rng.integers(0, 7))
    columns = []
    for bit in range(5):
        one = 1 << min(low + bit, width - 1) if rng.random() < 0.5 else 1 << int(rng.integers(0, width))
        other = int(rng.integers(0, room)) if rng.random() < 0.3 else 0
        columns.append(0 if rng.random() < 0.2 else one ^ other)
    values = np.zeros(32, dtype=np.int64)
    for bit, column in enumerate(columns):
        values ^= np.where(np.arange(32) >> bit & 1, column, 0)
    return values


def launch_all(number: int) -> None:
    """Launch every case once."""
    for kind, bits, _, offsets in cases(number):
        words = np.zeros((32, max(1, bits // 32)), dtype=np.uint32)
        launch.run(bank_probe_kernel(kind, bits), [offsets, words])


def collect(number: int, log: Path, out: Path) -> None:
    """Join the counters with the cases."""
    rows = [line for line in log.read_text().splitlines() if line.startswith('"')]
    table = list(csv.DictReader(rows))[1:]  # the first row holds units
    made = list(cases(number))
    if len(table) != len(made):
        raise SystemExit(f"{len(table)} launches in the log, {len(made)} cases")
    counts = []
    for row, (kind, bits, _, _) in zip(table, made, strict=True):
        if f"la_shared_{kind}_{bits}" not in row["Kernel Name"]:
            raise SystemExit(f"launch {row['ID']} is {row['Kernel Name']}")
        counts.append([int(float(row[f"{COUNTER}{end}.sum"].replace(",", ""))) for end in ("_op_ld", "_op_st", "")])
    facts = {"date": datetime.date.today().isoformat(), "device": str(launch.device())}
    np.savez_compressed(
        out / "banks_dev.npz",
        facts=json.dumps(facts),
        offsets=np.array([offsets for *_, offsets in made], dtype=np.int32),
        bits=np.array([bits for _, bits, _, _ in made], dtype=np.uint8),
        kind=np.array([list(KINDS).index(kind) for kind, *_ in made], dtype=np.uint8),
        linear=np.array([linear for _, _, linear, _ in made], dtype=np.uint8),
        wavefronts=np.array(counts, dtype=np.int16),
    )


if __name__ == "__main__":
    if sys.argv[1] == "launch":
        launch_all(int(sys.argv[2]))
    else:
        collect(int(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4]))
