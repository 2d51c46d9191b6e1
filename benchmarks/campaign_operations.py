"""Random operations of every family, each judged by enumeration: the defining sentence, computed from tables.

    python benchmarks/campaign_operations.py --operations 1000000 --seed 1 --jobs 2 --out result.json
    python benchmarks/campaign_operations.py --only cute:17 --seed 1     (one subject again, with what went wrong)
    python benchmarks/campaign_operations.py --page tests/data/measured/operations.json

A subject is a layout drawn with the numbers that define it; ``PER`` operations are drawn for each. Which subject gets
which operations depends on the seed, the family and the number of the subject alone, not on the machine or the jobs.

Prints what went wrong, then one JSON document: per family and operation the ``right`` values, the refusals that the
judge confirms (``refused``), those that the documentation declares as incomplete or that gave up (``declined``, by
code), refusals of what exists (``needless``) and ``wrong`` answers. The run fails where there is one of the last two.
"""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import sys
import time
from pathlib import Path
from typing import Any

from campaign import mapped, parser_of
from operations.page import page
from operations.record import OPERATIONS, Row, Rows, run_subject

MODULES = (
    "strided algebra views swizzled coordinates morphisms linear linear_algebra linear_spaces integers matrices pieces"
)
MODULES += " hierarchies symbols shared_tiles door large"
for name in MODULES.split():
    importlib.import_module(f"operations.{name}")

PER = 24
"""Operations on one subject."""
BATCH = 40
"""Subjects of one piece of work."""
SHARES = {
    "cute": 230,
    "composed": 130,
    "coordinate": 60,
    "morphism": 90,
    "linear": 170,
    "integer": 80,
    "matrix": 70,
    "hierarchical": 50,
    "symbolic": 25,
    "tile": 15,
    "door": 55,
    "large": 20,
    "piecewise": 3,
    "parametric": 2,
}
"""Operations of each family in a thousand."""
assert SHARES.keys() == OPERATIONS.keys()
assert sum(SHARES.values()) == 1000

FAULTS = 26
"""Faults that the tests plant."""

Work = tuple[str, int, int, int]


def pieces(operations: int, seed: int, families: list[str]) -> list[Work]:
    """The work of a run, (family, seed, first subject, one past the last), the families taking turns."""
    total = sum(SHARES[family] for family in families)
    queues: list[list[Work]] = []
    for family in families:
        subjects = -(-operations * SHARES[family] // (total * PER))
        queues.append([(family, seed, at, min(at + BATCH, subjects)) for at in range(0, subjects, BATCH)])
    placed = [((k + 0.5) / len(queue), piece) for queue in queues for k, piece in enumerate(queue)]
    return [piece for _, piece in sorted(placed)]


def batch(piece: Work) -> tuple[Rows, list[str]]:
    """Run the operations of some subjects."""
    family, seed, start, stop = piece
    rows: Rows = {}
    said = [text for index in range(start, stop) for text in run_subject(family, index, seed, PER, rows)]
    return rows, said


def document(rows: Rows, said: list[str], options: argparse.Namespace, seconds: float) -> dict[str, Any]:
    """The result as JSON."""
    table = []
    for family in OPERATIONS:
        for one in OPERATIONS[family]:
            row = rows.get((family, one.name), Row())
            table.append({"family": family, "operation": one.name, **row.to_json()})
    return {
        "schema": "layoutalg/operations-campaign/1",
        "seed": options.seed,
        "asked": options.operations,
        "operations": sum(row.count for row in rows.values()),
        "wrong": sum(row.wrong for row in rows.values()),
        "needless": sum(row.needless.total() for row in rows.values()),
        "seconds": round(seconds, 1),
        "jobs": options.jobs,
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "said": sorted(said)[:200],
        "table": table,
    }


def campaign(options: argparse.Namespace) -> dict[str, Any]:
    """Run a campaign; the result is written as it grows, where there is a file for it."""
    began = saved = time.perf_counter()
    rows: Rows = {}
    said: list[str] = []
    for more, texts in mapped(
        batch, pieces(options.operations, options.seed, options.families), options.jobs, options.dask
    ):
        for key, row in more.items():
            rows.setdefault(key, Row()).add(row)
        said += texts
        for text in texts:
            print(text, file=sys.stderr, flush=True)
        if options.out and time.perf_counter() - saved > 30:
            saved = time.perf_counter()
            options.out.write_text(json.dumps(document(rows, said, options, saved - began), indent=1), "utf-8")
    return document(rows, said, options, time.perf_counter() - began)


def main(arguments: list[str] | None = None) -> int:
    parser = parser_of(__doc__, seed=0, operations=10_000, jobs=1, out=Path)
    parser.add_argument("--families", nargs="+", default=list(SHARES), choices=list(SHARES))
    parser.add_argument("--only", help="one subject, family:number")
    parser.add_argument("--page", type=Path, help="print the page of a stored result")
    options = parser.parse_args(arguments)
    if options.page:
        print(page(json.loads(options.page.read_text("utf-8")), FAULTS), end="")
        return 0
    if options.only:
        family, number = options.only.split(":")
        found = run_subject(family, int(number), options.seed, PER, {})
        print("\n".join(found) or "nothing went wrong")
        return 1 if found else 0
    found = campaign(options)
    text = json.dumps(found, indent=1)
    if options.out:
        options.out.write_text(text + "\n", "utf-8")
    print(json.dumps({key: found[key] for key in ("seed", "operations", "wrong", "needless", "seconds")}))
    return 1 if found["wrong"] or found["needless"] else 0


if __name__ == "__main__":
    sys.exit(main())
