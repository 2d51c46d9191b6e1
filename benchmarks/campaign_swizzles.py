"""Random accesses, their swizzles counted again and, for one XOR, compared with every member of the form.

    python benchmarks/campaign_swizzles.py --pairs 2000 --forms 200 --seed 1

``pairs``: two random dense accesses of a tile of 2^12 to 2^14 elements of 8 to 64 bits, ``la.swizzle`` without a form.
Every plan is counted again from the addresses of its instructions; its certificates go through the checker for the
first ``--certified`` plans. ``forms``: one to three accesses, the form ``xor`` on every shape of row bits x chunk bits
with at most 2^16 maps, against all maps, word by word (``tests/judges/swizzle_forms.py``).

Prints one JSON line a part: how many plans are free of conflicts, proved to be the best and certified, and the
processor time of an answer. The run fails where a plan is wrong or a map is better.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from judges.swizzle_forms import least_xor  # noqa: E402

from layoutalg.f2 import LinearLayout, matrix  # noqa: E402
from layoutalg.proofs import checker  # noqa: E402
from layoutalg.proofs.swizzling import TileAccess  # noqa: E402
from layoutalg.synth.swizzles import swizzle  # noqa: E402

TARGET = "sm_90a"


def dense(rng: np.random.Generator, bits: int) -> tuple[int, ...]:
    """A random invertible map."""
    while True:
        columns = tuple(int(column) for column in rng.integers(0, 1 << bits, bits))
        if matrix.rank(columns) == bits:
            return columns


def timed(times: list[float], *arguments: Any, **options: Any) -> Any:
    """A plan, and its processor time."""
    start = time.process_time()
    plan = swizzle(*arguments, **options)
    times.append(time.process_time() - start)
    return plan


def pairs(rng: np.random.Generator, cases: int, certified: int) -> dict[str, Any]:
    """Two random dense accesses."""
    times: list[float] = []
    free = optimal = accepted = 0
    unproved: dict[int, int] = {}
    for case in range(cases):
        bits, element = int(rng.integers(12, 15)), (8, 16, 32, 64)[case % 4]
        accesses = []
        for _ in range(2):
            registers = int(rng.integers(2, 8))
            axes = (("register", registers), ("lane", 5), ("warp", bits - registers - 5))
            accesses.append(LinearLayout(axes, (("tile", bits),), dense(rng, bits)))
        plan = timed(times, accesses, TARGET, element).check()
        free += plan.conflict_free
        optimal += plan.optimal
        if not plan.optimal:
            unproved[element] = unproved.get(element, 0) + 1
        if case < certified:
            accepted += all(checker.check(each.to_json())[0] == 0 for each in plan.certificates())
    return {
        "part": "pairs", "cases": cases, "free": free, "optimal": optimal, "unproved_by_bits": unproved,
        "certified": [accepted, min(certified, cases)], **figures(times),
    }  # fmt: skip


def forms(rng: np.random.Generator, cases: int) -> dict[str, Any]:
    """One XOR, on every shape in turn."""
    shapes = [(rows, chunks) for rows in range(1, 9) for chunks in range(1, 6) if rows * chunks <= 16]
    times: list[float] = []
    free = optimal = largest = 0
    for case in range(cases):
        rows, chunks = shapes[case % len(shapes)]
        element = (16, 32, 64, 128)[int(rng.integers(4))]
        columns = chunks + (128 // element).bit_length() - 1
        bits = rows + columns
        accesses = []
        for _ in range(int(rng.integers(1, 4))):
            images = dense(rng, bits) if rng.random() < 0.5 else tuple(1 << int(at) for at in rng.permutation(bits))
            images = (*images, *[0] * max(0, 6 - bits))
            axes = (("register", len(images) - 5), ("lane", 5))
            accesses.append(TileAccess(LinearLayout(axes, (("row", rows), ("col", columns)), images), "load"))
        plan = timed(times, accesses, TARGET, element, "xor", budget_seconds=60).check()
        least = least_xor(accesses, (1 << rows, 1 << columns), element, [TARGET], 16, first=True)
        if plan.turns != least or not plan.optimal:
            raise SystemExit(f"{plan.turns} turns, bound {plan.bound}, all maps {least}: {accesses}")
        free += plan.conflict_free
        optimal += plan.optimal
        largest = max(largest, 1 << rows * chunks)
    return {
        "part": "forms", "cases": cases, "shapes": len(shapes), "largest": largest, "free": free, "optimal": optimal,
        **figures(times),
    }  # fmt: skip


def figures(times: list[float]) -> dict[str, float]:
    """Milliseconds."""
    ordered = sorted(times)
    at = {"p50_ms": 0.5, "p95_ms": 0.95, "slowest_ms": 1.0}
    return {name: round(1e3 * ordered[min(len(ordered) - 1, int(part * len(ordered)))], 2) for name, part in at.items()}


def main() -> None:
    """Run both parts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--certified", type=int, default=200)
    parser.add_argument("--forms", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    print(json.dumps(pairs(rng, given.pairs, given.certified)), flush=True)
    print(json.dumps(forms(rng, given.forms)), flush=True)


if __name__ == "__main__":
    main()
