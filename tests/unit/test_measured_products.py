"""What products, attention and asynchronous copies did on a device, as recorded."""

from __future__ import annotations

import gzip
import json
import math
import statistics
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import device_products

DATA = Path(__file__).parents[1] / "data" / "measured"


def record(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress((DATA / f"{name}.json.gz").read_bytes()))
    return found


ROWS = record("products_dev")["rows"]


def rows(which: str) -> list[dict[str, Any]]:
    return [row for row in ROWS if row["which"] == which]


def test_every_kernel_was_right_and_had_no_local_memory() -> None:
    assert len(ROWS) >= 300
    assert all(row["right"] and row["local_bytes"] == 0 for row in ROWS)
    assert len(rows("odd")) == len(device_products.ODD) == 20


def test_products_keep_up_with_cublas() -> None:
    """One process, random data, medians in turns."""
    bars = {"bf16": 0.95, "f16": 0.95, "e4m3": 0.9}
    assert {row["dtype"] for row in rows("square")} == set(bars)
    assert all(row["ratio"] >= bars[row["dtype"]] for row in rows("square"))
    assert all(row["equal"] for row in rows("square") if row["dtype"] != "f16")
    assert math.exp(statistics.fmean(math.log(row["ratio"]) for row in rows("odd"))) >= 0.85


def test_the_chosen_form_is_near_the_best() -> None:
    """The mean over all shapes of its time over that of the fastest form."""
    assert device_products.regret(rows("forms")) <= 1.08


def test_attention_is_as_exact_as_the_peers() -> None:
    assert len(rows("attention")) == len(device_products.HEADS)
    assert all(row["error"] <= 1.5 * row["peer_error"] + 1e-4 for row in rows("attention"))


def test_what_the_manuals_leave_open() -> None:
    """Copies report their bytes in pieces; a warpgroup meets at a multiply; missing fences were never seen."""
    found = {row["probe"]: row["counts"] for row in record("asynchrony_dev")["rows"]}
    assert sum(found["pieces"]) > 1000
    for fence in ("store_writers", "store_issuer", "store_none", "refill_writers", "refill_none"):
        assert sum(found[fence]) == 0
    for delay in (20000, 200000):
        assert min(found[f"rendezvous {delay}"]) >= delay
    assert all(row["equal"] and row["of_memcpy"] >= 0.9 for row in record("asynchrony_dev")["ranks"])
