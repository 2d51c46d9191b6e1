"""Replay a trace of a server: lengths, page tables and routed experts of each step, planned as they come.

    python benchmarks/replay.py                  (the stored trace)
    python benchmarks/replay.py --trace FILE     (another one: the same JSON, also .gz)
    python benchmarks/replay.py --record FILE    (simulate a server again)

The stored trace is simulated: no public trace states page tables. Requests arrive at random, prompts have log-normal
lengths, every running sequence decodes one token a step, pages come from a free list on which those of a finished
sequence are put first, so tables fragment as they do in servers. Experts of tokens are drawn by Zipf's law.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import layoutalg as la  # noqa: E402

STORED = ROOT / "tests/data/traces/serving.json.gz"
HEADS, COLUMNS, ELEMENT_BYTES = 8, 128, 2
EXPERTS, TOP = 16, 2
TILE = (64, 64)
SWIZZLED = "Sw<3,3,3> o 0 o (64,64):(64,1)"


def simulated(seed: int, steps: int, keep: int, page_size: int = 16, pages: int = 1024) -> dict[str, Any]:
    """Return a trace: each of every ``keep`` steps has lengths, page tables, new rows of each sequence, and experts."""
    rng = random.Random(seed)
    free, running, kept = list(range(pages)), list[dict[str, Any]](), list[dict[str, Any]]()
    weights = [1 / (rank + 1) for rank in range(EXPERTS)]
    for step in range(steps):
        new = []
        for sequence in running:
            sequence["length"] += 1
            new.append(1)
        if rng.random() < 0.4:
            prompt, left = min(1500, max(1, round(rng.lognormvariate(5, 1)))), rng.randrange(20, 500)
            promised = sum([one["length"] + one["left"] + page_size for one in running])
            if promised + prompt + left + page_size < page_size * pages:
                running.append({"length": prompt, "table": [], "left": left})
                new.append(prompt)
        for sequence in running:
            while len(sequence["table"]) * page_size < sequence["length"]:
                sequence["table"].append(free.pop())
        if step % keep == keep - 1:
            kept.append({
                "lengths": [sequence["length"] for sequence in running],
                "tables": [list(sequence["table"]) for sequence in running],
                "new": new,
                "experts": [_distinct(rng, weights) for _ in range(min(sum(new), 512))],
            })  # fmt: skip
        for sequence in running:
            sequence["left"] -= 1
        for sequence in [one for one in running if one["left"] < 0]:
            free += reversed(sequence["table"])
            running.remove(sequence)
    return {"page_size": page_size, "pages": pages, "steps": kept}


def _distinct(rng: random.Random, weights: list[float]) -> list[int]:
    """Different experts of one token."""
    found: list[int] = []
    while len(found) < TOP:
        found += [expert for expert in rng.choices(range(EXPERTS), weights) if expert not in found]
    return found


def read(path: Path) -> dict[str, Any]:
    """Return a trace."""
    raw = path.read_bytes()
    found: dict[str, Any] = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    return found


def replayed(trace: dict[str, Any]) -> Iterator[dict[str, float]]:
    """Yield for each step what is moved and what it took to plan it.

    ``bytes``: of keys and values that attention reads; ``runs``: of consecutive pages; ``empty``: tokens of last pages
    that hold nothing; ``copies`` of the new rows, in tiles of 64; ``padded``: rows that blocks of 64 add to experts.
    """
    size, pages = trace["page_size"], trace["pages"]
    family = la.ragged(la.Tensor((pages * size, 512)), None, TILE, SWIZZLED)
    la.paged([0], size, HEADS, COLUMNS, ELEMENT_BYTES, "NHD", 1, pages=pages)  # what is loaded on first use
    la.routing([[0]], EXPERTS, block=64)
    family.copies([1])
    for step in trace["steps"]:
        begun = time.perf_counter()
        caches = [la.paged(table, size, HEADS, COLUMNS, ELEMENT_BYTES, "NHD", length, pages=pages)
                  for table, length in zip(step["tables"], step["lengths"], strict=True)]  # fmt: skip
        runs = sum([len(cache.page_runs) for cache in caches])
        copies = family.copies(step["new"])
        routed = la.routing(step["experts"], EXPERTS, block=64)
        padded = len(routed.padded_order) - len(routed.order)
        took = time.perf_counter() - begun
        held = size * sum(map(len, step["tables"]))
        yield {
            "ms": 1e3 * took, "sequences": len(caches), "runs": runs, "copies": len(copies), "padded": padded,
            "bytes": 2 * HEADS * COLUMNS * ELEMENT_BYTES * sum(step["lengths"]), "empty": held - sum(step["lengths"]),
            "held": held,
        }  # fmt: skip


def summary(rows: list[dict[str, float]]) -> str:
    """The figures of a replay in a few lines."""
    total = {key: sum([row[key] for row in rows]) for key in rows[0]}
    times = sorted([row["ms"] for row in rows])
    middle, late = statistics.median(times), times[min(len(times) - 1, round(0.99 * len(times)))]
    return "\n".join([
        f"steps       {len(rows)}, {total['sequences'] / len(rows):.1f} sequences on average",
        f"bytes       {total['bytes'] / len(rows) / 1e6:.1f} MB of keys and values a step",
        f"pages       {100 * total['empty'] / total['held']:.1f} % of their tokens empty, "
        f"{total['runs'] / total['sequences']:.1f} runs a sequence",
        f"rows        {total['copies']:.0f} copies of new rows; "
        f"{total['padded'] / len(rows):.0f} padded rows of experts a step",
        f"planning    p50 {middle:.2f} ms, p99 {late:.2f} ms a step, "
        f"{1e3 * sum(times) / total['sequences']:.0f} us a sequence",
    ])  # fmt: skip


def main() -> None:
    """Replay or record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trace", type=Path, default=STORED)
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    if options.record:
        raw = json.dumps(simulated(1, 1600, 16), separators=(",", ":")).encode()
        options.record.write_bytes(gzip.compress(raw, 9, mtime=0) if options.record.suffix == ".gz" else raw)
        return
    print(summary(list(replayed(read(options.trace)))))


if __name__ == "__main__":
    main()
