"""The table of universal swizzles: rows of 32 bytes to 1 KiB, by class of accesses and set of targets.

Run: ``python benchmarks/swizzle_table.py``; it writes ``tests/data/swizzle_table.json``, from which docs/generate.py
makes the page.
"""

from __future__ import annotations

import json
from pathlib import Path

from layoutalg.proofs.universal import ClassPlan
from layoutalg.synth import universal_swizzle

ROOT = Path(__file__).parents[1]
ROWS = 64
WIDTHS = (32, 64, 128, 256, 512, 1024)
SETS = {
    "H100": ["sm_90a"], "MI300X": ["gfx942"], "MI350": ["gfx950"], "all three": ["sm_90a", "gfx942", "gfx950"],
}  # fmt: skip
CLASSES = {
    "rows, columns": ["rows", "columns"],
    "operands of 16 and 32 rows": ["operand:16", "operand:32"],
    "strides": ["strides"],
    "sub-tiles": ["subtiles"],
    "rows, columns, diagonals, strides": ["rows", "columns", "diagonals", "strides"],
    "sub-tiles of every phase": ["phases"],
}


def main() -> None:
    """Compute and write."""
    stored: list[dict[str, object]] = []
    for classes in CLASSES.values():
        for width in WIDTHS:
            for targets in SETS.values():
                found = universal_swizzle(ROWS, width, classes, targets, seconds=3.0).check()
                stored.append(entry(found, classes, targets, width))
    text = ",\n".join(json.dumps(each) for each in stored)
    head = json.dumps({"rows": ROWS, "chunk_bytes": 16})[:-1]
    (ROOT / "tests/data/swizzle_table.json").write_text(f'{head}, "swizzles": [\n{text}\n]}}\n', encoding="utf-8")


def entry(found: ClassPlan, classes: list[str], targets: list[str], width: int) -> dict[str, object]:
    """What is stored of a swizzle."""
    return {
        "row_bytes": width, "classes": classes, "targets": targets, "columns": list(found.columns),
        "low_bits": found.low_bits, "turns": found.turns, "ideal": found.plan.ideal, "bound": found.plan.bound,
        "optimal": found.optimal, "clash": [found.members[place].name for place in found.clash],
    }  # fmt: skip


if __name__ == "__main__":
    main()
