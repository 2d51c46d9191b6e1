"""A slice of the campaign of real tiles with names."""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from campaign_symbolic import TILES, rows


def test_every_eighth_tile_at_random_sizes() -> None:
    tiles = json.loads(TILES.read_text(encoding="utf-8"))["tiles"][1:96:8]
    found = list(rows(tiles, 25))
    assert sum(row.plan is not None for row in found) >= len(tiles) - 1, [row.why for row in found]
    assert sum(row.held for row in found) > 10 * len(tiles)
    assert [row.name for row in found if row.wrong] == []
