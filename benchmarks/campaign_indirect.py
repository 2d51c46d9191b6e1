"""Random routed tokens and paged sequences against enumeration, certificates included; kernels on the CPU.

    python benchmarks/campaign_indirect.py --cases 10000 --kernels 100 --seed 1

Half of the cases are routings, half paged sequences: every list, address and run is compared with the judge
(``tests/judges/indirect.py``), every certificate goes through the checker. Kernels are the inspector, permutations,
weighted sums and copies of pages, run by ``hostsim`` with races watched. Prints one JSON line; fails if one is wrong.
"""

from __future__ import annotations

import json
import random
import time
from typing import Any

import numpy as np
from campaign import options_of
from judges import indirect as judge
from judges import indirect_kernels as ran

import layoutalg as la
from layoutalg.codegen import hostsim
from layoutalg.proofs.indirect import Paged


def routed(rng: random.Random) -> bool:
    """Whether a random routing has the judge's lists."""
    experts, k, tokens = rng.choice((1, 2, 7, 60)), rng.randint(1, 4), rng.choice((0, 1, 5, 40))
    crowd = [rng.randrange(experts) for _ in range(rng.choice((1, 3, 100)))]
    ids = np.array([[rng.choice(crowd) for _ in range(k)] for _ in range(tokens)], dtype=np.int64).reshape(tokens, k)
    ends = sorted((rng.randrange(experts), rng.randrange(experts)))
    local = None if rng.random() < 0.5 else (ends[0], ends[1])
    block = rng.choice((1, 2, 16, 64))
    found = la.routing(ids, experts, block, local)
    right = len(found.tiles) <= found.tile_bound and bool(found.certificate.check())
    for name, value in judge.routing(ids, experts, block, local).items():
        given: Any = getattr(found, name)
        right &= (given.tolist() if isinstance(given, np.ndarray) else given) == value
    return right


def cached(rng: random.Random, rows: int = 1) -> tuple[Any, ...]:
    """A random paged sequence, its rows multiples of so many bytes."""
    size, heads, element = rng.choice((1, 2, 3, 16)), rng.randint(1, 4), rng.choice((1, 2, 4, 8))
    dim, pages = max(1, rows // element) * rng.randint(1, 3), rng.randint(1, 9)
    table = [rng.randrange(pages) for _ in range(rng.randint(0, 6))]
    page = size * heads * dim * element
    stride = page + rng.choice((0, max(rows, element), 3 * max(rows, element)))
    layout, tokens = rng.choice(("NHD", "HND")), rng.randint(0, len(table) * size)
    return table, size, heads, dim, element, layout, tokens, pages, stride


def paged(rng: random.Random) -> bool:
    """Whether a random paged sequence has the judge's bytes and runs."""
    case = cached(rng)
    cache, places = la.paged(*case), judge.addresses(*case)
    at = np.indices(places.shape)
    right = bool(cache.certificate.check()) and bool((cache.address(*at) == places).all() if places.size else True)
    right &= cache.runs() == judge.runs(judge.in_page_order(places, case[1], case[5]), case[4])
    head = rng.randrange(case[2])
    return right and cache.runs(head) == judge.runs(places[:, head].reshape(-1), case[4])


def on_the_cpu(kernel: Any, arguments: list[Any], blocks: int, regions: Any = ()) -> None:
    traced = hostsim.trace(kernel, arguments, blocks=blocks, races=True, capacity=2**22, regions=regions)
    assert traced.fault == 0, traced.why


def kernel(rng: random.Random) -> bool:
    """Whether a random kernel moves what it must; an assertion says what is wrong."""
    arch, seed = rng.choice(("sm_90a", "gfx942")), rng.randrange(1 << 31)
    which = rng.randrange(4)
    if which == 0:
        experts = rng.choice((1, 8, 64))
        ids = np.random.default_rng(seed).integers(0, experts, (rng.choice((1, 60, 700)), 2))
        ran.routed(on_the_cpu, arch, ids, experts, rng.choice((1, 16)), None, rng.choice(("s32", "s64")))
    elif which == 1:
        way = rng.choice(("push", "pull"))
        ran.permuted(on_the_cpu, arch, way, rng.randint(0, 30), rng.randint(1, 9), 16 * rng.randint(1, 90), seed)
    elif which == 2:
        dtype = rng.choice(("bf16", "f16", "f32"))
        ran.unpermuted(on_the_cpu, arch, dtype, rng.randint(0, 20), rng.randint(1, 9), 8 * rng.randint(1, 40), seed)
    else:
        cache = Paged(*cached(rng, 16))
        way = rng.choice(("vector", "bulk", "tma")) if arch == "sm_90a" and cache.tokens else "vector"
        ran.paged(on_the_cpu, arch, cache, "gather", way, seed)
    return True


def main() -> int:
    options = options_of(__doc__, cases=10000, kernels=100)
    rng, begun = random.Random(options.seed), time.monotonic()
    wrong = [case for case in range(options.cases) if not (routed if case % 2 else paged)(rng)]
    for _ in range(options.kernels):
        kernel(rng)
    seconds = round(time.monotonic() - begun, 1)
    print(json.dumps({"cases": options.cases, "kernels": options.kernels, "wrong": wrong[:5], "seconds": seconds}))
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main())
