"""All benchmarks before and after a change, in one run: ``python benchmarks/compare.py OTHER-CHECKOUT``.

Every program runs in this checkout and in the other by turns, so that both see the same machine; of each figure the
least is kept. Figures are matched by what they say they measure. Printed are per program the geometric mean of the
ratios (this / other), every ratio above the bar, and the figures that only one of the two has.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = (
    ("bench.py", "--json"),
    ("bench_cute.py", "--json"),
    ("bench_f2.py",),
    ("bench_integer.py", "--json"),
    ("bench_piecewise.py",),
)
OLD_NAMES = {"bench_integer.py": "bench_zmod.py", "bench_piecewise.py": "bench_affine.py"}
UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}


def entries(value: object) -> Iterator[dict[str, object]]:
    """Every object of a JSON document that holds no other."""
    if isinstance(value, list):
        for part in value:
            yield from entries(part)
    elif isinstance(value, dict):
        parts = [part for part in value.values() if isinstance(part, (list, dict))]
        if parts:
            yield from entries(parts)
        else:
            yield value


def figures(checkout: Path, program: str, options: tuple[str, ...]) -> dict[str, float]:
    """What a program measures, in microseconds."""
    path = checkout / "benchmarks" / program
    if not path.exists():
        path = path.with_name(OLD_NAMES[program])
    run = subprocess.run(
        [sys.executable, str(path), *options],
        cwd=checkout,
        env=os.environ | {"PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        check=True,
    )
    text = run.stdout
    document = json.loads(text) if options else [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    found = {}
    for entry in entries(document):
        label = ", ".join(
            str(entry[key]) for key in entry if isinstance(entry[key], str) and key not in ("value", "bar", "verdict")
        )
        for key, value in entry.items():
            unit = key.rpartition("_")[2]
            if unit in UNITS and isinstance(value, (int, float)) and not key.startswith(("pycute", "flint", "peer")):
                found[f"{label} ({key})"] = value * UNITS[unit]
            elif key == "value" and isinstance(value, str) and value.split()[1] in UNITS:
                found[label] = float(value.split()[0]) * UNITS[value.split()[1]]
    return found


def least(runs: list[dict[str, float]]) -> dict[str, float]:
    """The least of each figure."""
    return {key: min(run[key] for run in runs if key in run) for key in {key for run in runs for key in run}}


def main() -> None:
    """Compare two checkouts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, help="a checkout of the state before")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help="one program, such as bench_f2.py")
    parser.add_argument("--slower-than", type=float, default=1.1, help="figures above this ratio are listed one by one")
    arguments = parser.parse_args()
    for program, *options in PROGRAMS:
        if arguments.only not in (None, program):
            continue
        runs: tuple[list[dict[str, float]], list[dict[str, float]]] = ([], [])
        for _ in range(arguments.rounds):
            for checkout, found in zip((ROOT, arguments.other.resolve()), runs, strict=True):
                found.append(figures(checkout, program, tuple(options)))
        here, there = least(runs[0]), least(runs[1])
        both = sorted(here.keys() & there.keys())
        ratios = {key: here[key] / there[key] for key in both if there[key] > 0}
        mean = math.exp(sum(map(math.log, ratios.values())) / max(1, len(ratios)))
        slower = {key: ratio for key, ratio in ratios.items() if ratio > arguments.slower_than}
        print(f"## {program}: {len(ratios)} figures, geometric mean {mean:.2f}, {len(slower)} above the bar")
        for key, ratio in sorted(slower.items(), key=lambda item: -item[1]):
            print(f"  {ratio:5.2f}  {there[key]:10.2f} -> {here[key]:10.2f} us  {key}")
        for key in sorted(here.keys() ^ there.keys()):
            print(f"  only {'here' if key in here else 'there'}: {key}")


if __name__ == "__main__":
    main()
