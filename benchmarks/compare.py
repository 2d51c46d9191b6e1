"""All timings before and after a change, in one run: ``python benchmarks/compare.py OTHER-CHECKOUT``.

The rows of this checkout's ``bench.py`` are timed over the library of this checkout and of the other by turns, a
process each, so that both see the same machine and the same program; of each figure the least is kept. Printed are per
part the geometric mean of the ratios (this / other), every ratio above the bar, and the rows that only one of the two
has.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from pathlib import Path

from bench import PARTS

BENCH = Path(__file__).with_name("bench.py")


def figures(checkout: Path, part: str) -> dict[str, float]:
    """What a part measures over the library of a checkout, in microseconds."""
    environment = os.environ | {"PYTHONPATH": str(checkout)}
    command = [sys.executable, str(BENCH), "--json", "--only", part, "--rounds", "5"]
    run = subprocess.run(command, cwd=checkout, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    rows = map(json.loads, run.stdout.splitlines())
    return {row["what"]: row["least_us"] for row in rows}


def main() -> None:
    """Compare two checkouts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("other", type=Path, help="a checkout of the state before")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--slower-than", type=float, default=1.1, help="figures above this ratio are listed one by one")
    given = parser.parse_args()
    for part in given.only:
        least: tuple[dict[str, float], dict[str, float]] = ({}, {})
        for _ in range(given.rounds):
            for checkout, known in zip((BENCH.parents[1], given.other.resolve()), least, strict=True):
                for what, taken in figures(checkout, part).items():
                    known[what] = min(taken, known.get(what, taken))
        here, there = least
        ratios = {what: here[what] / there[what] for what in here if there.get(what)}
        mean = math.exp(sum(map(math.log, ratios.values())) / max(1, len(ratios)))
        slower = sorted(((ratio, what) for what, ratio in ratios.items() if ratio > given.slower_than), reverse=True)
        print(f"## {part}: {len(ratios)} figures, geometric mean {mean:.2f}, {len(slower)} above the bar", flush=True)
        for ratio, what in slower:
            print(f"  {ratio:5.2f}  {there[what]:10.2f} -> {here[what]:10.2f} us  {what}")
        for what in sorted(here.keys() ^ there.keys()):
            print(f"  only {'here' if what in here else 'there'}: {what}")


if __name__ == "__main__":
    main()
