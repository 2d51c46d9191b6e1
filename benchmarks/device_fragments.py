"""Measure the register fragments of mma.sync, ldmatrix, stmatrix and wgmma on a GPU and record the registers.

Run on a machine with an sm_90a GPU, from the root of the repository:

    PYTHONPATH=.:tests python benchmarks/device_fragments.py DIRECTORY

Every line printed is one instruction with what disagreed. ``DIRECTORY/fragments_dev.npz`` is what
``tests/data/measured`` keeps: the arrays of one run per instruction, named ``kind/instruction/array``.
"""

from __future__ import annotations

import datetime
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from instruments import fragment_checks as checks

from layoutalg.codegen import launch
from layoutalg.targets.layouts.nvidia_instructions import MMA

ROUNDS = 20
RECORDED_N = (8, 24, 64)


def main() -> None:
    """Run every instruction ``ROUNDS`` times; record the first run."""
    out = Path(sys.argv[1])
    info = launch.device()
    facts = {"date": datetime.date.today().isoformat(), "device": str(info), "rounds": ROUNDS}
    kept: dict[str, Any] = {}
    wrong = total = 0

    def report(label: str, runs: list[tuple[dict[str, Any], object]], keep: bool = True) -> None:
        nonlocal wrong, total
        bad = [str(difference) for _, difference in runs if difference is not None]
        wrong, total = wrong + len(bad), total + len(runs)
        print(json.dumps({"what": label, "runs": len(runs), "wrong": len(bad), "first": bad[:1]}), flush=True)
        if keep:
            kept.update({f"{label}/{key}": array for key, array in runs[0][0].items()})

    for name in MMA:
        made = [checks.run_mma(name, seed) for seed in range(ROUNDS)]
        report(f"mma/{name}", [(arrays, checks.mma_difference(name, arrays)) for arrays in made])
    for kind, run in (("ldmatrix", checks.run_ldmatrix), ("stmatrix", checks.run_stmatrix)):
        for matrices in (1, 2, 4):
            for transposed in (False, True):
                made = [run(matrices, transposed, seed) for seed in range(ROUNDS)]
                for bits in (16,) if transposed else (8, 16, 32):
                    label = f"{kind}/x{matrices}{'.trans' if transposed else ''}/b{bits}"
                    runs = [(a, checks.matrix_move_difference(matrices, transposed, bits, a)) for a in made]
                    report(label, runs, bits == 16)
    for dtype in ("f16", "bf16"):
        for n in range(8, 257, 8):
            made = [checks.run_wgmma(dtype, n, seed) for seed in range(2)]
            runs = [(arrays, checks.wgmma_difference(dtype, n, arrays)) for arrays in made]
            report(f"wgmma/{dtype}/n{n}", runs, n in RECORDED_N)
    np.savez_compressed(out / "fragments_dev.npz", facts=json.dumps(facts), **kept)
    print(json.dumps({"total": total, "wrong": wrong} | facts))


if __name__ == "__main__":
    main()
