"""Speed of the CuTe algebra as ratio to pycute in one run: ``python benchmarks/bench_cute.py --peers DIRECTORY``.

The directory holds ``pycute`` (the site-packages where ``nvidia-cutlass==4.2.0.0`` is installed); without it only our
own times are shown. Per operation and layout: the median time of one call with the contract check on and no cached
answer, the same for pycute, and their ratio; then the time of a repeated operation, and of whole tables.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from layoutalg import cute
from layoutalg.cute import CuteLayout
from layoutalg.ground.errors import LayoutError

LAYOUTS: dict[str, tuple[Any, Any]] = {
    "row tile (128,64)": ((128, 64), (64, 1)),
    "TV m16n8k16 A": (((4, 8), (2, 2, 2)), ((32, 1), (16, 8, 128))),
    "smem ((8,16),(8,8))": (((8, 16), (8, 8)), ((8, 512), (1, 64))),
    "3-level nested": (((2, (2, 4)), ((2, 2), (4, 2))), ((1, (64, 8)), ((2, 128), (256, 4)))),
}
REPEATS = 9


def micro(call: Callable[[], object], before: Callable[[], object] | None = None, number: int = 40) -> float:
    """Median microseconds of one call; ``before`` runs ahead of every call and is not timed."""
    call()
    samples = []
    for _ in range(REPEATS):
        spent = 0.0
        for _ in range(number):
            if before is not None:
                before()
            began = time.perf_counter()
            call()
            spent += time.perf_counter() - began
        samples.append(spent / number)
    return statistics.median(samples) * 1e6


def clearers() -> list[Callable[[], object]]:
    """The cache_clear functions, found once."""
    found = {}
    for name in [name for name in sys.modules if name.startswith("layoutalg.")]:
        for value in list(vars(sys.modules[name]).values()):
            clear = getattr(value, "cache_clear", None)
            if clear is not None and not isinstance(value, type):
                found[id(value)] = clear
    return list(found.values())


def operations(library: Any, layout: Any, tile: Any, point: Any) -> dict[str, Callable[[], object]]:
    """The operations that are timed, over one library's values."""
    return {
        "coalesce": lambda: library.coalesce(layout),
        "composition": lambda: library.composition(layout, tile),
        "complement": lambda: library.complement(tile, 8192),
        "right_inverse": lambda: library.right_inverse(layout),
        "left_inverse": lambda: library.left_inverse(layout),
        "logical_divide": lambda: library.logical_divide(layout, tile),
        "zipped_divide": lambda: library.zipped_divide(layout, tile),
        "logical_product": lambda: library.logical_product(tile, tile),
        "value at a coordinate": lambda: layout(*point),
        "value at an index": lambda: layout(37),
    }


def attempt(call: Callable[[], object], before: Callable[[], object] | None = None) -> float | None:
    """The time of a call, or None where the library refuses it or has no such operation."""
    try:
        return micro(call, before)
    except (LayoutError, AssertionError, AttributeError, TypeError, ZeroDivisionError):
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", help="directory that holds pycute")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    peer: Any = None
    if options.peers:
        sys.path.append(options.peers)
        import pycute as peer
    rows: list[dict[str, object]] = []
    for title, (shape, stride) in LAYOUTS.items():
        layout, tile = CuteLayout(shape, stride), CuteLayout(4, 2)
        point = tuple(1 if isinstance(extent, int) else _ones(extent) for extent in shape)
        ours = operations(cute, layout, tile, point)
        theirs = operations(peer, peer.Layout(shape, stride), peer.Layout(4, 2), point) if peer else {}
        for call in ours.values():
            attempt(call)  # load everything before the caches are listed
        clear = clearers()

        def before(clear: list[Callable[[], object]] = clear) -> None:
            for empty in clear:
                empty()

        for name, call in ours.items():
            cold, again = attempt(call, before), attempt(call)
            other = attempt(theirs[name]) if name in theirs else None
            rows.append({"layout": title, "operation": name, "us": cold, "repeated_us": again, "pycute_us": other})
    side = CuteLayout(((8, 16), (8, 16)), ((8, 1024), (1, 64)))
    table = micro(lambda: side.table(), number=20)
    slow = None
    if peer:
        pairs = peer.Layout(side.shape, side.stride)
        slow = micro(lambda: [pairs(index) for index in range(128 * 128)], number=1)
    rows.append({"layout": "128x128 blocked", "operation": "table", "us": table, "pycute_us": slow})
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    print("| layout | operation | us | repeated us | pycute us | ratio |\n|---|---|---|---|---|---|")
    ratios: dict[str, list[float]] = {}
    for row in rows:
        us, other = row["us"], row["pycute_us"]
        ratio = us / other if isinstance(us, float) and isinstance(other, float) else None
        if ratio is not None:
            ratios.setdefault(str(row["operation"]), []).append(ratio)
        cells = [us, row.get("repeated_us"), other, ratio]
        shown = ["-" if not isinstance(cell, float) else f"{cell:.2f}" for cell in cells]
        print(f"| {row['layout']} | {row['operation']} | {' | '.join(shown)} |")
    print("\n| operation | median ratio |\n|---|---|")
    for name, found in ratios.items():
        print(f"| {name} | {statistics.median(found):.2f} |")


def _ones(shape: Any) -> Any:
    return 1 if isinstance(shape, int) else tuple(_ones(entry) for entry in shape)


if __name__ == "__main__":
    main()
