"""The replay of a served trace: what it sums up is what the lists themselves say."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))


import replay  # noqa: E402


def test_a_simulated_trace_shares_no_page() -> None:
    for step in replay.simulated(3, 200, 20)["steps"]:
        held = [page for table in step["tables"] for page in table]
        assert len(set(held)) == len(held)
        assert [-(-length // 16) for length in step["lengths"]] == [len(table) for table in step["tables"]]


def test_the_stored_trace_is_the_simulated_one() -> None:
    assert replay.read(replay.STORED) == replay.simulated(1, 1600, 16)


def test_a_replay_adds_up_what_the_lists_say() -> None:
    trace = replay.read(replay.STORED)
    trace["steps"] = trace["steps"][20:28]
    for step, row in zip(trace["steps"], replay.replayed(trace), strict=True):
        assert row["bytes"] == sum(2 * 8 * 128 * 2 * length for length in step["lengths"])
        assert row["empty"] == sum(-length % 16 for length in step["lengths"])
        breaks = sum(after != page + 1 for table in step["tables"] for page, after in itertools.pairwise(table))
        assert row["runs"] == len(step["tables"]) + breaks
        assert row["copies"] == sum(-(-rows // 64) if rows >= 64 else 1 if rows & (rows - 1) == 0 else 2
                                    for rows in step["new"])  # fmt: skip
        counts = [sum(expert in token for token in step["experts"]) for expert in range(replay.EXPERTS)]
        assert row["padded"] == sum(-count % 64 for count in counts)
    assert "p99" in replay.summary(list(replay.replayed(trace)))
