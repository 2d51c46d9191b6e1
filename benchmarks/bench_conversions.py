"""How long a conversion of registers takes to plan: layouts of unit vectors, dense ones, ones that keep their warps.

Run from the root of the repository: ``PYTHONPATH=. python benchmarks/bench_conversions.py``. Milliseconds of the
processor per call, each layout asked once; the plan is checked after it, outside the time. Beside it the swizzle for
the two layouts as a store and a load; the last row is of all pairs.
"""

from __future__ import annotations

import collections
import json
import random
import time

from layoutalg import LinearLayout, Unknown
from layoutalg.f2 import matrix
from layoutalg.synth import conversion, swizzle

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


def quantiles(times: list[float]) -> dict[str, float]:
    """The median and the ninth decile."""
    times = sorted(times)
    return {"p50_ms": round(times[len(times) // 2], 2), "p90_ms": round(times[len(times) * 9 // 10], 2)}


def main() -> None:
    """Print a row per kind and size."""
    every: list[float] = []
    for bits in (12, 13, 14):
        for kind in ("units", "dense", "warps"):
            rng = random.Random(bits)
            times, swizzles, found = list[float](), list[float](), collections.Counter[str]()
            for _ in range(CALLS):
                source, wanted = pair(rng, kind, bits)
                start = time.process_time()
                plan = conversion(source, wanted, 16)
                planned = time.process_time()
                swizzle([(source, "store"), (wanted, "load")])
                times.append(1e3 * (planned - start))
                swizzles.append(1e3 * (time.process_time() - planned))
                if isinstance(plan, Unknown):
                    found["unknown"] += 1
                else:
                    found[plan.check().mechanism] += 1
            every += times
            row = {"bits": bits, "kind": kind} | quantiles(times) | {"swizzle": quantiles(swizzles)}
            print(json.dumps(row | {"mechanisms": dict(found)}))
    print(json.dumps({"pairs": len(every)} | quantiles(every)))


if __name__ == "__main__":
    main()
