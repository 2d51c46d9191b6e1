"""Random ragged plans against enumeration, and random groups moved on the CPU simulator.

    python benchmarks/campaign_ragged.py --count 10000

A plan is a strategy, a tile height and sizes: its copies are counted row by row. One in ten is also run: schedule and
copy, every byte of the result.
"""

from __future__ import annotations

import functools
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "property")]

from campaign import parser_of  # noqa: E402
from test_ragged_kernels import aligned, moved  # noqa: E402

import layoutalg as la  # noqa: E402
from layoutalg.proofs.ragged import RaggedFamily  # noqa: E402
from layoutalg.synth import synthesize_ragged  # noqa: E402

ROWS, COLUMNS, GROUPS = 256, 128, 6
STRATEGIES = ("auto", "exact_pool", "overlap_pool", "shift_back", "descriptors", "overfetch")
TILES = ((16, 1), (32, 1), (32, 8), (24, 1), (64, 4))
"""(rows, multiple) of tiles."""


@functools.cache
def family_of(strategy: str, tile: int, multiple: int) -> RaggedFamily:
    tensor = la.Tensor((ROWS, COLUMNS), dtype="u16")
    return synthesize_ragged(tensor, (tile, 64), f"({tile},64):(64,1)", strategy=strategy, multiple=multiple)


@functools.cache
def kernel_of(strategy: str, tile: int, multiple: int, given: str) -> Any:
    return family_of(strategy, tile, multiple).kernel(groups=GROUPS, given=given)


def sizes_of(source: random.Random, family: RaggedFamily) -> list[int]:
    found: list[int] = []
    for _ in range(GROUPS):
        size = min(source.choice((0, source.randrange(8), source.randrange(80), source.randrange(ROWS))),
                   ROWS - sum(found)) // family.multiple * family.multiple  # fmt: skip
        found.append(size if size >= family.least_rows else 0)
    return found


def wrong(family: RaggedFamily, sizes: list[int]) -> str:
    """What the copies of groups get wrong, counted row by row; empty if nothing."""
    ends = np.cumsum([0, *sizes])
    count = np.zeros(ROWS + family.tile_rows, dtype=int)
    for copy in family.copies(sizes):
        first = copy.row + (int(ends[copy.group]) if family.strategy == "descriptors" else 0)
        if not ends[copy.group] <= first <= first + copy.rows <= ends[copy.group + 1]:
            return f"{copy} leaves its group"
        count[first : first + copy.rows] += 1
    once = count[: ends[-1]] == 1 if not family.stated or family.strategy == "overfetch" else count[: ends[-1]] >= 1
    return "" if once.all() and not count[ends[-1] :].any() else "rows are missed or repeated"


def main() -> int:
    options = parser_of(__doc__ or "", count=10000, seconds=900.0).parse_args()
    source, begun, found = random.Random(options.seed), time.monotonic(), Counter[str]()
    values = aligned(np.random.default_rng(0).integers(8, 60000, (ROWS, COLUMNS)).astype(np.uint16))
    for number in range(options.count):
        if time.monotonic() - begun > options.seconds:
            break
        strategy, (tile, multiple) = source.choice(STRATEGIES), source.choice(TILES)
        family = family_of(strategy, tile, multiple)
        sizes = sizes_of(source, family)
        said = wrong(family, sizes)
        found["plans"] += 1
        if number % 10 == 0 and strategy not in ("descriptors", "overfetch"):
            made = kernel_of(strategy, tile, multiple, source.choice(("offsets", "sizes")))
            result, _ = moved(made, values, sizes, blocks=source.randrange(1, 9), seed=source.randrange(4))
            total = sum(sizes)
            found["runs"] += 1
            if not ((result[:total] == values[:total]).all() and (result[total:] == 7).all()):
                said = said or "the kernel moves other bytes"
        if said:
            found["wrong"] += 1
            print(strategy, tile, multiple, sizes, said)
    print(dict(found), f"{time.monotonic() - begun:.0f} s")
    return int(found["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
