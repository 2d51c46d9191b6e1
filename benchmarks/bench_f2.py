"""Linear layouts against the Triton binding in one run: compose, invert, invert-then-compose, and the table of a map.

Run with an interpreter that has numpy and ``triton==3.9.0``, from the root of the repository:

    PYTHONPATH=. python benchmarks/bench_f2.py

Every figure is the best of several rounds, the two sides taking turns, in microseconds per call. *cold* clears the
cached elimination before each call, so that ours does all the work each time as the binding does; *warm* is repeated
use of one layout. Without Triton only our own column is filled.
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
from layoutalg.f2 import layout as layout_module

ROUNDS, CALLS = 15, 400


def register_layouts(bits: int) -> tuple[LinearLayout, LinearLayout, LinearLayout]:
    """A blocked layout, a tensor-core accumulator layout and a swizzled offset layout of one square tensor."""
    half = bits // 2
    dims = {"dim0": 1 << half, "dim1": 1 << half}
    spare = half - 3
    blocked = {
        "register": [(0, 1), (0, 2)] + [(1 << spare + 2 - i, 0) for i in range(max(0, bits - 9))],
        "lane": [(0, 4 << i) for i in range(half - 2)],
        "warp": [],
    }
    used = sum(len(v) for v in blocked.values())
    rest = [(1 << i, 0) for i in range(half)]
    taken = {image for images in blocked.values() for image in images}
    left = [image for image in rest if image not in taken]
    blocked["warp"] = left[: bits - used]
    order = [(0, 1), (8, 0), *((0, 8 << i) for i in range(half - 3)), *((64 << i, 0) for i in range(max(0, half - 6)))]
    lane = [(0, 2), (0, 4), (1, 0), (2, 0), (4, 0)]
    warp = [image for i in range(half) if (image := (1 << i, 0)) not in [*order, *lane]]
    mma = {"register": order, "lane": lane, "warp": warp}
    offset = [(0, 1 << i) for i in range(half)]
    offset += [(1 << i, 8 << i if 8 << i < 1 << half and i < 3 else 0) for i in range(half)]
    shared = {"offset": offset}
    made = tuple(LinearLayout.from_bases(bases, dims) for bases in (blocked, mma, shared))
    return made[0], made[1], made[2]


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


def main() -> None:
    """Print one JSON line per figure."""
    peer: Any = None
    if importlib.util.find_spec("triton"):
        from triton._C.libtriton.linear_layout import LinearLayout as TritonLayout

        peer = TritonLayout

    def give(layout: LinearLayout) -> Any:
        bases = [(name, [list(image) for image in images]) for name, images in layout.bases.items()]
        return peer.from_bases(bases, list(layout.out_dims), list(layout.out_dims.values()), False)

    def cold(call: Callable[[], object]) -> Callable[[], object]:
        clear = layout_module._elimination.cache_clear

        def run() -> object:
            clear()
            return call()

        return run

    def report(name: str, ours: Callable[[], object], theirs: Callable[[], object] | None) -> None:
        times = best(*([cold(ours), ours] if theirs is None or peer is None else [cold(ours), ours, theirs]))
        line: dict[str, object] = {"what": name, "cold_us": round(times[0], 2), "warm_us": round(times[1], 2)}
        if len(times) > 2:
            line |= {
                "triton_us": round(times[2], 2),
                "cold_ratio": round(times[0] / times[2], 3),
                "warm_ratio": round(times[1] / times[2], 3),
            }
        print(json.dumps(line), flush=True)

    for bits in (12, 20):
        blocked, mma, shared = register_layouts(bits)
        back = mma.inverse()
        if peer is not None:
            t_blocked, t_mma, t_shared = map(give, (blocked, mma, shared))
            t_back = t_mma.invert()
            report(f"compose, {bits} bits", lambda: back @ blocked, lambda: t_blocked.compose(t_back))
            report(f"invert, {bits} bits", mma.inverse, t_mma.invert)
            report(
                f"invert and compose, blocked with mma, {bits} bits",
                lambda: f2.invert_and_compose(blocked, mma),
                lambda: t_blocked.invert_and_compose(t_mma),
            )
            report(
                f"invert and compose, blocked with swizzled shared, {bits} bits",
                lambda: f2.invert_and_compose(blocked, shared),
                lambda: t_blocked.invert_and_compose(t_shared),
            )
        else:
            report(f"compose, {bits} bits", lambda: back @ blocked, None)
            report(f"invert, {bits} bits", mma.inverse, None)
            report(
                f"invert and compose, blocked with mma, {bits} bits", lambda: f2.invert_and_compose(blocked, mma), None
            )
            report(
                f"invert and compose, blocked with swizzled shared, {bits} bits",
                lambda: f2.invert_and_compose(blocked, shared),
                None,
            )
        one, two = dense(bits, 1), dense(bits, 2)
        turned = f2.rename_outs(two, {"y": "x"})
        t_one, t_two, t_turned = map(give, (one, two, turned)) if peer is not None else (None, None, None)
        report(f"compose, dense, {bits} bits", lambda: one @ turned, lambda: t_turned.compose(t_one))
        report(f"invert, dense, {bits} bits", one.inverse, lambda: t_one.invert())
        report(
            f"invert and compose, dense, {bits} bits",
            lambda: f2.invert_and_compose(two, one),
            lambda: t_two.invert_and_compose(t_one),
        )
    report("table of 2^14 points", dense(14, 3).table, None)
    report("invert, dense, 24 bits", dense(24, 4).inverse, None)


if __name__ == "__main__":
    main()
