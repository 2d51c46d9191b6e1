"""The table of universal swizzles: rows of 32 bytes to 1 KiB, by class of accesses and set of targets.

Run: ``python benchmarks/swizzle_table.py``; it writes ``tests/data/swizzle_table.json`` and ``docs/swizzle_table.md``.
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
    sections = []
    for said, classes in CLASSES.items():
        lines = [f"### {said[0].upper()}{said[1:]}", "", f"`{json.dumps(classes)}`", ""]
        lines += ["| row | targets | swizzle | turns | least without conflicts | proved |", "|---|---|---|---|---|---|"]
        for width in WIDTHS:
            for name, targets in SETS.items():
                found = universal_swizzle(ROWS, width, classes, targets, budget_seconds=3.0).check()
                stored.append(entry(found, classes, targets, width))
                proved = "least" if found.optimal else f">= {found.plan.bound}"
                lines.append(
                    f"| {width} | {name} | `{found.formula}` | {found.turns} | {found.plan.ideal} | {proved} |"
                )
        sections.append("\n".join(lines))
    document = {"rows": ROWS, "chunk_bytes": 16, "swizzles": stored}
    text = ",\n".join(json.dumps(each) for each in stored)
    head = json.dumps({name: value for name, value in document.items() if name != "swizzles"})[:-1]
    (ROOT / "tests/data/swizzle_table.json").write_text(f'{head}, "swizzles": [\n{text}\n]}}\n', encoding="utf-8")
    (ROOT / "docs/swizzle_table.md").write_text("\n\n".join([HEAD, *sections]) + "\n", encoding="utf-8")


def entry(found: ClassPlan, classes: list[str], targets: list[str], width: int) -> dict[str, object]:
    """What is stored of a swizzle."""
    return {
        "row_bytes": width, "classes": classes, "targets": targets, "columns": list(found.columns),
        "low_bits": found.low_bits, "turns": found.turns, "ideal": found.plan.ideal, "bound": found.plan.bound,
        "optimal": found.optimal, "clash": [found.members[place].name for place in found.clash],
    }  # fmt: skip


HEAD = """\
# Universal swizzles

One XOR for a whole class of accesses: is there one without conflicts, which is best, and which accesses cannot be
served together?

```python
>>> from layoutalg.synth import universal_swizzle
>>> three = ["sm_90a", "gfx942", "gfx950"]
>>> found = universal_swizzle(32, 128, ["operand:32", "operand:16"], three).check()
>>> found.formula, found.conflict_free
('chunk ^ (row & 7) ^ ((row >> 3) & 1) * 2 ^ ((row >> 4) & 1)', True)
>>> found = universal_swizzle(8, 128, "phases")
>>> found.optimal, found.turns, found.plan.ideal
(True, 64, 56)
>>> [found.members[place].name for place in found.clash][:4]
['4 x 2 by 1 x 1', '4 x 2 by 1 x 2', '4 x 2 by 1 x 4', '4 x 2 by 2 x 1']

```

| class | lane i is at |
|---|---|
| `rows`, `columns` | chunks of a row first, or rows first |
| `diagonals` | row i, chunk i ^ k, for any k |
| `strides`, `strides:S` | chunk i s of the tile, for every power of two s (up to S) for which a group fits |
| `subtiles` | 2^i rows by 2^j chunks, for all i + j that form a group of lanes |
| `phases` | the same with rows and chunks 2^k apart, for all k |
| `operand:N` | row i mod N, chunk i / N |
| `ldmatrix` | 8 rows at any chunk |

A chunk is the 16 (8, 4) bytes that a lane loads. Every member represents all of its translates, which take the same
number of turns. `check()` recounts each member from its addresses; `certificates()` are of kind `bank-turns`.

## What is proved

Let K map a cell to its banks, in units of a chunk: a linear map whose columns for the low bits of the chunk number
are unit vectors; the XOR is free to choose the others.

- *Existence.* A swizzle is free of conflicts for a class iff K is injective on the space that each group of lanes
  spans, that is, the code ker K meets each of them only in zero. The columns are fixed one by one and every choice is
  tried, so the answer is exact; if it is no, `clash` is a minimal set of members that cannot be served together, and
  `largest` a maximal set that can.
- *Strides.* The spaces are runs of bits: every b consecutive columns must be independent. Columns with period b are,
  so a row as long as all banks always has a swizzle for all strides, `cell ^ (cell >> b) ^ (cell >> 2b) ...`.
- *Sub-tiles.* With chunk bits J and row bits I in the sub-tile, K is injective iff the submatrix of f with rows
  outside J and columns I is regular. Sub-tiles from bit 0 need nonzero corner minors, which bit reversal has. Sub-
  tiles of every phase need every contiguous minor to be nonzero, a superregular matrix: over F2 its entries are then
  all 1 and its 2 x 2 minors 0. So two row bits next to two chunk bits already have no such XOR.

## Table

One XOR for a tile of 64 rows, loaded by 16 bytes a lane, for rows of 32 bytes to 1 KiB and for one target or three at
once. `turns` are those of all members of the class (one instruction each, on each target), next to the conflict-free
number; "least" if a complete search or the bound proves that no XOR of the form does better, otherwise the proved
bound. Computed by `benchmarks/swizzle_table.py`, stored in `tests/data/swizzle_table.json`.

`row` and `chunk` count rows and chunks of a row; the value is the chunk's position in its row. If a row is longer
than all banks, `cell` is `chunk + chunks of a row * row`, and the value is the chunk's position in the tile.

![The banks of a tile under one swizzle for three targets](_static/pictures/universal.svg)"""

if __name__ == "__main__":
    main()
