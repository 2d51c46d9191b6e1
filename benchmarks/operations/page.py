"""The page of the campaign of operations, made from the stored result of a run."""

from __future__ import annotations

from collections import Counter
from typing import Any

FAMILIES = {
    "cute": "Strided layouts `shape:stride`, their shapes and coordinates, tiles and thread-value partitions",
    "composed": "Swizzles, and strided layouts under one to three of them",
    "coordinate": "Layouts whose strides are sums of basis elements",
    "morphism": "Morphisms of nested tuples, padded or not",
    "linear": "Linear layouts over F2, subspaces, solution sets, register actions, banks",
    "integer": "Integer layouts over Z and modulo numbers",
    "matrix": "Integer matrices: normal forms, systems, lattices",
    "piecewise": "Piecewise layouts on boxes, and sets of points",
    "parametric": "The same with a parameter, judged at several values of it",
    "hierarchical": "Bijections between named boxes: digits, bits, tables, guards, levels",
    "symbolic": "Layouts with symbolic sizes, judged at drawn sizes",
    "tile": "Shared-memory layouts, padded ones, layouts that instructions fix, turns of banks, Triton's notation",
    "door": "Layouts of every family through the front door: conversions, equality, composition, inverses, notation",
    "large": "Tables of 2^16 points, extents beyond 2^31, matrices of up to 60 bits: judged at sampled points",
}

HEAD = """# A million random operations

Every public operation of the layout families and of the front door, on random layouts, compared with enumeration. The
page is made from `tests/data/measured/operations.json`, the result of one run.

```
python benchmarks/campaign_operations.py --operations {asked} --seed {seed} --jobs {jobs} --out result.json
python benchmarks/campaign_operations.py --only cute:17 --seed {seed}     # one subject again, with what went wrong
python benchmarks/campaign_operations.py --page tests/data/measured/operations.json   # this page
```

Which layouts and operations are drawn depends on the seed alone. This run: seed {seed}, {operations:,} operations
(whole subjects), {seconds:.0f} seconds of wall time with {jobs} process on a shared 2-core machine ({machine}).

| | operations |
|---|---|
| right values | {right} |
| refusals that the judge confirms: what was asked does not exist | {refused} |
| declined: documented as incomplete, or gave up (a `BudgetError`) | {declined} |
| **wrong answers** | **{wrong}** |
| **refusals of what exists** | **{needless}** |

An *operation* is one judged question: it may make several calls that belong together (`@` and `then`, a table and a
value). Where several answers are right, the judge checks the property that defines them and the documented choice: the
smallest right inverse over F2, the longest common layout, the least point of every value, the coalesced form. A refusal
counts as confirmed where the judge finds that no answer exists in the family: no box and strides have the table,
nothing tiles the range, no window is affine.

The judges (`benchmarks/operations`, and `benchmarks/bridge_judges.py` for conversions) compute the defining sentence of
each operation from tables of values; they read the fields of an answer and call nothing of the library to evaluate it.
Piecewise answers are read from their text by islpy. `tests/unit/test_operations_covered.py` measures that every public
callable is called by a judge, or listed with a reason; `tests/property/test_operations_campaign.py` plants {faults}
faults (a peer's unchecked composition, a window without carries, an inverse that drops its guards, ...), each of which
the judges catch within 1,200 operations, and runs a short part of the campaign.

What is not judged here: TensorMap and wgmma plans (`benchmarks/campaign_planner.py`), pictures, and the wording of
errors.
"""

TABLE = (
    "| operation | operations | right | refused | declined | wrong | needless | ms |\n|---|---|---|---|---|---|---|---|"
)


def counted(codes: dict[str, int]) -> str:
    """How often each code occurred."""
    return ", ".join(f"{code} {count:,}" for code, count in sorted(codes.items())) or "-"


def page(found: dict[str, Any], faults: int) -> str:
    """The page as Markdown."""
    rows = found["table"]
    total: Counter[str] = Counter()
    for row in rows:
        total["right"] += row["right"]
        total["wrong"] += row["wrong"]
        for kind in ("refused", "declined", "needless"):
            total[kind] += sum(row[kind].values())
    said = {kind: f"{total[kind]:,}" for kind in ("right", "refused", "declined", "wrong", "needless")}
    fields = {key: found[key] for key in ("seed", "asked", "operations", "seconds", "jobs", "machine")}
    parts = [HEAD.format(**fields, **said, faults=faults)]
    for family, title in FAMILIES.items():
        mine = [row for row in rows if row["family"] == family]
        count = sum(row["count"] for row in mine)
        parts.append(f"## {family}\n\n{title}. {count:,} operations.\n\n{TABLE}")
        for row in mine:
            cells = [f"`{row['operation']}`", f"{row['count']:,}", f"{row['right']:,}", counted(row["refused"])]
            cells += [counted(row["declined"]), str(row["wrong"]), counted(row["needless"]), f"{row['ms']:.2f}"]
            parts[-1] += "\n| " + " | ".join(cells) + " |"
        parts[-1] += "\n"
    return "\n".join(parts)
