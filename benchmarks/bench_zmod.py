"""Smith forms of 16 x 16 matrices with both transforms, against python-flint's Smith form, which has no transforms.

Run with an interpreter that has python-flint to see the ratio; without it only the own time is shown.
``python benchmarks/bench_zmod.py [--json]``
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from layoutalg.zmod.matrix import is_unimodular, multiply, snf

SIZE = 16
BAR = 20.0
Rows = tuple[tuple[int, ...], ...]


def seconds(call: Callable[[], object], number: int, repeats: int = 7) -> float:
    """Median wall-clock seconds of one call."""
    call()
    samples = []
    for _ in range(repeats):
        began = time.perf_counter()
        for _ in range(number):
            call()
        samples.append((time.perf_counter() - began) / number)
    return statistics.median(samples)


def matrices() -> dict[str, Rows]:
    """The inputs: dense, sparse, and the strides of layouts (one digit each, mixed radix weights)."""
    rng = random.Random(1)
    dense = tuple(tuple(rng.randint(-9, 9) for _ in range(SIZE)) for _ in range(SIZE))
    sparse = tuple(
        tuple(rng.choice((0, 1, 2, 3, 4, 6, 8, 12)) if rng.random() < 0.2 else 0 for _ in range(SIZE))
        for _ in range(SIZE)
    )
    weights = [1]
    for _ in range(SIZE - 1):
        weights.append(weights[-1] * rng.choice((2, 3, 4)) % 4096 or 1)
    order = rng.sample(range(SIZE), SIZE)
    strides = tuple(
        tuple(weights[i % 4] if order[i] == j else (1 if order[(i + 1) % SIZE] == j else 0) for j in range(SIZE))
        for i in range(SIZE)
    )
    return {"layout-like": strides, "sparse": sparse, "dense": dense}


def run() -> list[dict[str, object]]:
    """Measure every input; check the certificate first."""
    try:
        flint = importlib.import_module("flint")
    except ImportError:
        flint = None
    lines: list[dict[str, object]] = []
    for name, rows in matrices().items():
        D, U, V = snf(rows)
        assert multiply(multiply(U, rows), V) == D
        assert is_unimodular(U)
        assert is_unimodular(V)
        own = seconds(lambda rows=rows: snf(rows), 20)
        line: dict[str, object] = {"matrix": f"{SIZE}x{SIZE} {name}", "own_ms": own * 1e3}
        if flint is not None:
            peer = flint.fmpz_mat([list(row) for row in rows])
            theirs = seconds(peer.snf, 500)
            line |= {"flint_ms": theirs * 1e3, "ratio": own / theirs, "bar": BAR}
        lines.append(line)
    return lines


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON document")
    lines = run()
    if parser.parse_args().json:
        print(json.dumps(lines, indent=2))
    else:
        for line in lines:
            print("  ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in line.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
