"""How long a conversion of registers takes to plan: layouts of unit vectors, dense ones, ones that keep their warps.

Run from the root of the repository: ``PYTHONPATH=. python benchmarks/bench_conversions.py``. Milliseconds of the
processor per call, each layout asked once; the plan is checked after it, outside the time.
"""

from __future__ import annotations

import collections
import json
import random
import time

from layoutalg import LinearLayout, Unknown
from layoutalg.f2 import matrix
from layoutalg.synth import conversion

CALLS, LANES = 50, 5


def columns(rng: random.Random, kind: str, bits: int) -> list[int]:
    """An invertible matrix: a permutation, or a random one."""
    if kind == "units":
        return rng.sample([1 << bit for bit in range(bits)], bits)
    while True:
        found = [rng.getrandbits(bits) for _ in range(bits)]
        if matrix.rank(found) == bits:
            return found


def pair(rng: random.Random, kind: str, bits: int) -> tuple[LinearLayout, LinearLayout]:
    """Two layouts of 4 warps."""
    registers = bits - LANES - 2
    axes = (("register", registers), ("lane", LANES), ("warp", 2))
    first, second = columns(rng, kind, bits), columns(rng, kind, bits)
    if kind == "warps":
        inner = columns(rng, kind, bits - 2)
        second = [*(matrix.apply(first, column) for column in inner), *first[bits - 2 :]]
    return tuple(LinearLayout(axes, (("x", bits),), tuple(each)) for each in (first, second))  # type: ignore[return-value]


def main() -> None:
    """Print a row per kind and size."""
    for bits in (12, 13, 14):
        for kind in ("units", "dense", "warps"):
            rng = random.Random(bits)
            times, found = [], collections.Counter[str]()
            for _ in range(CALLS):
                source, wanted = pair(rng, kind, bits)
                start = time.process_time()
                plan = conversion(source, wanted, 16)
                times.append(1e3 * (time.process_time() - start))
                if isinstance(plan, Unknown):
                    found["unknown"] += 1
                else:
                    found[plan.check().mechanism] += 1
            times.sort()
            row = {"bits": bits, "kind": kind, "p50_ms": times[CALLS // 2], "p90_ms": times[CALLS * 9 // 10]}
            print(json.dumps(row | {"mechanisms": dict(found)}))


if __name__ == "__main__":
    main()
