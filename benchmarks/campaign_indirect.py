"""Random routed tokens and paged sequences against enumeration, certificates included; kernels on the CPU.

    python benchmarks/campaign_indirect.py --plans 10000 --kernels 100 --seed 1

Half of the plans are routings, half paged sequences (``layoutalg campaign indirect``). Kernels are the inspector,
permutations, weighted sums and copies of pages, run by ``hostsim`` with races watched.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from campaign import options_of, reported
from judges import indirect_kernels as ran

from layoutalg.codegen import hostsim
from layoutalg.proofs.indirect import Paged
from layoutalg.testing.campaigns import cached, indirect


def on_the_cpu(kernel: Any, arguments: list[Any], blocks: int, regions: Any = ()) -> None:
    traced = hostsim.trace(kernel, arguments, blocks=blocks, races=True, capacity=2**22, regions=regions)
    assert traced.fault == 0, traced.why


def kernel(seed: int) -> str:
    """A drawn kernel; an assertion says what is wrong."""
    rng = random.Random(seed)
    arch, drawn = rng.choice(("sm_90a", "gfx942")), rng.randrange(1 << 31)
    which = rng.randrange(4)
    if which == 0:
        experts = rng.choice((1, 8, 64))
        ids = np.random.default_rng(drawn).integers(0, experts, (rng.choice((1, 60, 700)), 2))
        ran.routed(on_the_cpu, arch, ids, experts, rng.choice((1, 16)), None, rng.choice(("s32", "s64")))
    elif which == 1:
        way = rng.choice(("push", "pull"))
        ran.permuted(on_the_cpu, arch, way, rng.randint(0, 30), rng.randint(1, 9), 16 * rng.randint(1, 90), drawn)
    elif which == 2:
        dtype = rng.choice(("bf16", "f16", "f32"))
        ran.unpermuted(on_the_cpu, arch, dtype, rng.randint(0, 20), rng.randint(1, 9), 8 * rng.randint(1, 40), drawn)
    else:
        cache = Paged(*cached(rng, 16))
        way = rng.choice(("vector", "bulk", "tma")) if arch == "sm_90a" and cache.tokens else "vector"
        ran.paged(on_the_cpu, arch, cache, "gather", way, drawn)
    return ""


def main() -> int:
    options = options_of(__doc__, plans=10000, kernels=100, jobs=1)
    return reported([("indirect", indirect, options.plans), ("kernels", kernel, options.kernels)], options)


if __name__ == "__main__":
    raise SystemExit(main())
