"""Hermite and Smith forms with their transforms, and F2 inverses of 24 bits, against python-flint without transforms.

Run with an interpreter that has python-flint to see the ratios; without it only the own time is shown. Both sides are
timed in turns, so that other load on the machine falls on both.
``python benchmarks/bench_integer.py [--json]``
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from layoutalg.f2 import matrix as f2
from layoutalg.integer.matrix import hnf, is_unimodular, multiply, snf

SIZE = 16
BITS = 24
BAR = 100.0
ROUNDS = 40
Rows = tuple[tuple[int, ...], ...]


def in_turns(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Least wall-clock seconds of one call of each, measured in turns of about two milliseconds."""
    counts = {}
    for name, call in calls.items():
        call()
        began = time.perf_counter()
        call()
        counts[name] = max(1, int(0.002 / max(time.perf_counter() - began, 1e-7)))
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            began = time.perf_counter()
            for _ in range(counts[name]):
                call()
            samples[name].append((time.perf_counter() - began) / counts[name])
    return {name: min(times) for name, times in samples.items()}


def dense(rng: random.Random, height: int, width: int) -> Rows:
    """Entries from -9 to 9."""
    return tuple(tuple(rng.randint(-9, 9) for _ in range(width)) for _ in range(height))


def strides(rng: random.Random, size: int) -> Rows:
    """The strides of layouts: one digit each, mixed radix weights."""
    weights = [1]
    for _ in range(size - 1):
        weights.append(weights[-1] * rng.choice((2, 3, 4)) % 4096 or 1)
    order = rng.sample(range(size), size)
    return tuple(
        tuple(weights[i % 4] if order[i] == j else (1 if order[(i + 1) % size] == j else 0) for j in range(size))
        for i in range(size)
    )


def matrices() -> dict[str, Rows]:
    """One matrix per class."""
    rng = random.Random(1)
    found = {f"{SIZE}x{SIZE} dense": dense(rng, SIZE, SIZE)}
    found[f"{SIZE}x{SIZE} sparse"] = tuple(
        tuple(rng.choice((0, 1, 2, 3, 4, 6, 8, 12)) if rng.random() < 0.2 else 0 for _ in range(SIZE))
        for _ in range(SIZE)
    )
    found[f"{SIZE}x{SIZE} layout-like"] = strides(rng, SIZE)
    found[f"{SIZE}x{SIZE} digit permutation"] = tuple(
        tuple(rng.choice((1, 2, 3, 4, 8)) if j == (5 * i + 3) % SIZE else 0 for j in range(SIZE)) for i in range(SIZE)
    )
    found[f"{SIZE}x{SIZE} zeros and ones"] = tuple(tuple(rng.choice((0, 1)) for _ in range(SIZE)) for _ in range(SIZE))
    found[f"{SIZE}x{SIZE} multiples of 3 and 4"] = tuple(
        tuple(rng.choice((0, 6, 12, -12, 18, 4, 3, -9)) for _ in range(SIZE)) for _ in range(SIZE)
    )
    few = dense(rng, 12, SIZE)
    differences = [tuple(a - b for a, b in zip(few[i], few[i + 4], strict=True)) for i in range(4)]
    found[f"{SIZE}x{SIZE} rank 12"] = (*few, *differences)
    found["8x16 dense"] = dense(rng, 8, SIZE)
    for size in (4, 8, 32):
        found[f"{size}x{size} dense"] = dense(rng, size, size)
    found["8x8 layout-like"] = strides(rng, 8)
    return found


def form_lines(flint: Any) -> list[dict[str, object]]:
    """Measure every class; check the certificate first."""
    lines: list[dict[str, object]] = []
    for name, rows in matrices().items():
        D, U, V = snf(rows)
        assert multiply(multiply(U, rows), V) == D
        assert is_unimodular(U)
        assert is_unimodular(V)
        H, T = hnf(rows)
        assert multiply(T, rows) == H
        for form, function in (("smith", snf), ("hermite", hnf)):
            calls: dict[str, Callable[[], object]] = {"own": lambda rows=rows, function=function: function(rows)}
            if flint is not None:
                matrix = flint.fmpz_mat([list(row) for row in rows])
                calls["flint"] = matrix.snf if form == "smith" else matrix.hnf
            times = in_turns(calls)
            line: dict[str, object] = {f"{form} form": name, "own_ms": times["own"] * 1e3}
            if flint is not None:
                line |= {"flint_ms": times["flint"] * 1e3, "ratio": times["own"] / times["flint"]}
                if name.startswith(f"{SIZE}x{SIZE}"):
                    line["bar"] = BAR
            lines.append(line)
    return lines


def invertible(rng: random.Random, bits: int) -> tuple[int, ...]:
    """Columns of a random dense invertible matrix over F2."""
    while True:
        columns = tuple(rng.getrandbits(bits) for _ in range(bits))
        if f2.rank(columns) == bits:
            return columns


def f2_lines(flint: Any) -> list[dict[str, object]]:
    """Measure the inverse over F2, for flint with and without turning columns into its matrix and back."""
    rng = random.Random(2)
    inputs = [invertible(rng, BITS) for _ in range(20)]

    def own() -> None:
        for columns in inputs:
            f2.inverse(columns)

    calls: dict[str, Callable[[], object]] = {"own": own}
    if flint is not None:

        def turned(columns: tuple[int, ...]) -> Any:
            return flint.nmod_mat([[column >> i & 1 for i in range(BITS)] for column in columns], 2)

        def back(matrix: Any) -> tuple[int, ...]:
            return tuple(sum(int(entry) << i for i, entry in enumerate(row)) for row in matrix.table())

        ready = [turned(columns) for columns in inputs]
        assert all(back(m.inv()) == f2.inverse(c) for m, c in zip(ready, inputs, strict=True))
        calls["flint"] = lambda: [m.inv() for m in ready]
        calls["converted"] = lambda: [back(turned(columns).inv()) for columns in inputs]
    times = in_turns(calls)
    line: dict[str, object] = {"F2 inverse": f"{BITS}x{BITS} dense", "own_us": times["own"] / len(inputs) * 1e6}
    if flint is not None:
        line |= {
            "flint_us": times["flint"] / len(inputs) * 1e6,
            "ratio": times["own"] / times["flint"],
            "flint_with_conversion_us": times["converted"] / len(inputs) * 1e6,
            "ratio_with_conversion": times["own"] / times["converted"],
        }
    return [line]


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON document")
    as_json = parser.parse_args().json
    try:
        flint = importlib.import_module("flint")
    except ImportError:
        flint = None
    lines = form_lines(flint) + f2_lines(flint)
    if as_json:
        print(json.dumps(lines, indent=2))
    else:
        for line in lines:
            print("  ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in line.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
