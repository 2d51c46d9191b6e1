"""Small random TensorMap problems through the planner, every answer and every refusal judged.

    python3 benchmarks/campaign_planner.py --cases 5000 [--seed 0] [--rank 3] [--jobs 2] [--out FILE]
    python3 benchmarks/campaign_planner.py --only 17      (one case again, with its numbers)

An admissible plan's bytes, coordinates and numbers are run on the tests' own copy engine for a window of tile origins:
its class must be true and the checker must prove it. A refusal is held against a search of all maps; a plan that the
search finds makes it needless. Exceptions that are no answer leak. Prints one table, then the smallest problem of every
class of trouble. The exit status is 1 where something was wrong or leaked (with ``--strict``: needless, too).
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from campaign import mapped, parser_of
from judges.planner_cases import Case, examine
from judges.planner_problems import FEATURES, features, random_problem, shrink

KINDS = ("right", "understated", "bettered", "refused", "needless", "budget", "wrong", "leaked")
TROUBLE = ("wrong", "leaked", "needless", "understated", "bettered", "budget")


def case(seed: int, number: int, rank: int | None, search: bool) -> tuple[int, Case, float]:
    """Draw and judge one problem; its processor time too."""
    began = time.process_time()
    document = random_problem(random.Random(f"{seed}:{number}" if seed else number), rank)
    return number, examine(document, search=search), time.process_time() - began


def chunk(task: tuple[int, int, int, int | None, bool]) -> list[tuple[int, Case, float]]:
    """A run of cases, for one process."""
    seed, first, last, rank, search = task
    return [case(seed, number, rank, search) for number in range(first, last)]


def wrong(seed: int) -> str:
    """A campaign: a drawn problem whose plan is wrong or whose error is no answer."""
    _, found, _ = case(seed, 0, None, True)
    return f"{found.kind} {found.label}: {json.dumps(found.document)}" if found.kind in ("wrong", "leaked") else ""


def results(arguments: argparse.Namespace) -> Iterator[tuple[int, Case, float]]:
    """All cases in order."""
    size = 50
    tasks = [
        (arguments.seed, first, min(first + size, arguments.cases), arguments.rank, not arguments.no_search)
        for first in range(0, arguments.cases, size)
    ]
    for answer in mapped(chunk, tasks, arguments.jobs, arguments.dask):
        yield from answer


def smallest(found: Case) -> Case:
    """Return the same trouble, with the same features, on a smaller problem."""
    names, verdict = features(dict(found.document)), found.detail.get("class")

    def same(document: dict[str, Any]) -> bool:
        if features(document) != names:
            return False
        again = examine(document)
        return (again.kind, again.label, again.detail.get("class")) == (found.kind, found.label, verdict)

    return examine(shrink(dict(found.document), same))


def show(name: str, found: Case) -> None:
    """Print one case: the problem on one line, what was found on the next."""
    print(f"{name}: {found.kind} {found.label}")
    print("  ", json.dumps({k: v for k, v in found.document.items() if k not in ("schema", "arch")}))
    print("  ", json.dumps(found.detail)[:2000])


def main() -> int:
    """Run the campaign."""
    parser = parser_of(__doc__, seed=0, cases=500, jobs=1, no_search=False, shrink=1, strict=False)
    parser.add_argument("--rank", type=int, help="draw problems of this rank only")
    parser.add_argument("--only", type=int, help="one case, with its numbers")
    parser.add_argument("--out", help="write every troublesome case as JSON lines")
    arguments = parser.parse_args()
    if arguments.only is not None:
        _, found, _ = case(arguments.seed, arguments.only, arguments.rank, not arguments.no_search)
        show(str(arguments.only), found)
        return int(found.kind in ("wrong", "leaked"))
    counts: Counter[tuple[str, str]] = Counter()
    kinds: Counter[str] = Counter()
    causes: Counter[object] = Counter()
    by_feature: dict[str, Counter[str]] = defaultdict(Counter)
    examples: dict[tuple[str, str, str], list[tuple[int, Case]]] = defaultdict(list)
    times = []
    cut = 0
    rows = []
    for number, found, seconds in results(arguments):
        counts[found.kind, found.label] += 1
        causes[found.detail.get("cause", "")] += 1
        kinds[found.kind] += 1
        times.append(seconds)
        cut += bool(found.detail.get("cut"))
        names = features(dict(found.document))
        for name in names:
            by_feature[name][found.kind] += 1
        if found.kind in TROUBLE:
            examples[found.kind, found.label, str(found.detail.get("class", ""))].append((number, found))
            row = {"case": number, "kind": found.kind, "label": found.label, "features": names}
            rows.append(json.dumps(row | {"problem": found.document, "detail": found.detail}) + "\n")
    if arguments.out:
        Path(arguments.out).write_text("".join(rows), encoding="utf-8")
    for (kind, label), count in sorted(counts.items()):
        print(f"{kind:12} {count:6}  {label}")
    print(
        "needless by cause:",
        ", ".join(f"{count} {name}" for name, count in causes.items() if name) or "none",
        end="\n\n",
    )
    for name in FEATURES:
        if by_feature[name]:
            print(f"{name:16}", ", ".join(f"{kind} {count}" for kind, count in sorted(by_feature[name].items())))
    print()
    for (kind, label, verdict), cases in sorted(examples.items()):
        cases.sort(key=lambda entry: len(json.dumps(entry[1].document)))
        print(f"--- {kind} {label} {verdict}: {len(cases)} cases: {', '.join(str(n) for n, _ in cases[:12])}")
        for number, found in cases[: arguments.shrink]:
            show(str(number), smallest(found))
    times.sort()
    print(
        f"\n{sum(kinds.values())} problems: "
        + ", ".join(
            f"{kinds[kind]} {kind}" for kind in ("right", "understated", "bettered", "refused", "needless", "budget")
        )
        + f", {kinds['wrong']} wrong, {kinds['leaked']} leaked; {cut} searches cut; "
        + f"{sum(times):.0f} s, median {1000 * times[len(times) // 2]:.0f} ms, longest {times[-1]:.1f} s"
    )
    return int(bool(kinds["wrong"] or kinds["leaked"] or (arguments.strict and kinds["needless"])))


if __name__ == "__main__":
    sys.exit(main())
