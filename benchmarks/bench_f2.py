"""Linear layouts against the Triton binding in one run: compose, invert, invert-then-compose, and the table of a map.

Run with an interpreter that has numpy and ``triton==3.9.0``, from the root of the repository:

    PYTHONPATH=. python benchmarks/bench_f2.py

Every figure is the best of several rounds, the two sides taking turns, in microseconds per call. *cold* clears the
cached elimination before each call, so that ours does all the work each time as the binding does; *warm* is repeated
use of one layout. Without Triton only our own figures are given.
"""

from __future__ import annotations

import importlib.util
import json
import random
import time
from collections.abc import Callable
from typing import Any

from layoutalg import f2
from layoutalg.f2 import LinearLayout, matrix

ROUNDS, CALLS = 15, 400


def register_layouts(bits: int) -> tuple[LinearLayout, LinearLayout, LinearLayout]:
    """A blocked layout, a tensor-core accumulator layout and a swizzled offset layout of one square tensor."""
    half = bits // 2
    dims = {"dim0": 1 << half, "dim1": 1 << half}
    row, col = [(1 << i, 0) for i in range(half)], [(0, 1 << i) for i in range(half)]
    blocked = {"register": col[:2] + col[5:] + row[4:], "lane": col[2:5] + row[:2], "warp": row[2:4]}
    mma = {"register": [col[0], row[3], *col[3:], *row[6:]], "lane": col[1:3] + row[:3], "warp": row[4:6]}
    shared = {"offset": col + [(1 << i, 8 << i if i < 3 else 0) for i in range(half)]}
    return (
        LinearLayout.from_bases(blocked, dims),
        LinearLayout.from_bases(mma, dims),
        LinearLayout.from_bases(shared, dims),
    )


def dense(bits: int, seed: int) -> LinearLayout:
    """A random invertible map over one axis."""
    rng = random.Random(seed)
    while True:
        columns = tuple(rng.randrange(1 << bits) for _ in range(bits))
        if matrix.rank(columns) == bits:
            return LinearLayout((("x", bits),), (("y", bits),), columns)


def best(*calls: Callable[[], object]) -> list[float]:
    """Microseconds per call, best of the rounds, the calls taking turns."""
    least = [float("inf")] * len(calls)
    for _ in range(ROUNDS):
        for index, call in enumerate(calls):
            start = time.perf_counter()
            for _ in range(CALLS):
                call()
            least[index] = min(least[index], (time.perf_counter() - start) / CALLS * 1e6)
    return least


def report(name: str, ours: Callable[[], object], theirs: Callable[[], object] | None) -> None:
    """Time and print one line."""

    def cold() -> object:
        matrix._small.cache_clear()
        return ours()

    times = best(cold, ours) if theirs is None else best(cold, ours, theirs)
    line: dict[str, object] = {"what": name, "cold_us": round(times[0], 2), "warm_us": round(times[1], 2)}
    if len(times) > 2:
        line |= {"triton_us": round(times[2], 2), "cold_ratio": round(times[0] / times[2], 3)}
        line |= {"warm_ratio": round(times[1] / times[2], 3)}
    print(json.dumps(line), flush=True)


def pair(name: str, target: LinearLayout, outer: LinearLayout, peer: Any) -> None:
    """Time the three operations on one pair of layouts; ``outer`` is invertible."""
    back = outer.inverse()
    calls: list[Callable[[], object] | None] = [None, None, None]
    if peer is not None:

        def give(layout: LinearLayout) -> Any:
            bases = [(axis, [list(image) for image in images]) for axis, images in layout.bases.items()]
            return peer.from_bases(bases, list(layout.out_dims), list(layout.out_dims.values()), False)

        p_target, p_outer, p_back = give(target), give(outer), give(back)
        calls = [
            lambda: p_target.compose(p_back),
            lambda: p_outer.invert(),
            lambda: p_target.invert_and_compose(p_outer),
        ]
    report(f"compose, {name}", lambda: back @ target, calls[0])
    report(f"invert, {name}", lambda: outer.inverse(), calls[1])
    report(f"invert and compose, {name}", lambda: f2.invert_and_compose(target, outer), calls[2])


def main() -> None:
    """Print one JSON line per figure."""
    peer: Any = None
    if importlib.util.find_spec("triton"):
        from triton._C.libtriton.linear_layout import LinearLayout as TritonLayout

        peer = TritonLayout
    for bits in (12, 20):
        blocked, mma, shared = register_layouts(bits)
        pair(f"blocked and mma, {bits} bits", blocked, mma, peer)
        pair(f"blocked and swizzled shared, {bits} bits", blocked, shared, peer)
        pair(f"random dense, {bits} bits", dense(bits, 2), dense(bits, 1), peer)
    report("table of 2^14 points", dense(14, 3).table, None)
    report("invert, random dense, 24 bits", dense(24, 4).inverse, None)


if __name__ == "__main__":
    main()
