"""Random ragged plans against enumeration, and random groups moved on the CPU simulator.

    python benchmarks/campaign_ragged.py --plans 10000 --kernels 1000

A plan is a strategy, a tile height and sizes: its copies are counted row by row (``layoutalg campaign ragged``).
Kernels are schedule and copy, every byte of the result.
"""

from __future__ import annotations

import functools
import random
import sys

import numpy as np
from campaign import ROOT, options_of, reported

sys.path.insert(0, str(ROOT / "tests" / "property"))

from test_ragged_kernels import aligned, moved

from layoutalg.codegen.kernels import RaggedKernel
from layoutalg.testing.campaigns import COLUMNS, GROUPS, ROWS, STRATEGIES, TILES, family_of, ragged, sizes_of

VALUES = aligned(np.random.default_rng(0).integers(8, 60000, (ROWS, COLUMNS)).astype(np.uint16))


@functools.cache
def kernel_of(strategy: str, tile: int, multiple: int, given: str) -> RaggedKernel:
    made: RaggedKernel = family_of(strategy, tile, multiple).kernel(groups=GROUPS, given=given)
    return made


def kernel(seed: int) -> str:
    """Schedule and copy of drawn groups."""
    source = random.Random(seed)
    case = source.choice(STRATEGIES[:4]), *source.choice(TILES)
    sizes = sizes_of(source, family_of(*case))
    made = kernel_of(*case, source.choice(("offsets", "sizes")))
    result, _ = moved(made, VALUES, sizes, blocks=source.randrange(1, 9), seed=source.randrange(4))
    total = sum(sizes)
    right = (result[:total] == VALUES[:total]).all() and (result[total:] == 7).all()
    return "" if right else f"{case}, sizes {sizes}: the kernel moves other bytes"


def main() -> int:
    options = options_of(__doc__, plans=10000, kernels=1000, jobs=1)
    return reported([("ragged", ragged, options.plans), ("kernels", kernel, options.kernels)], options)


if __name__ == "__main__":
    sys.exit(main())
