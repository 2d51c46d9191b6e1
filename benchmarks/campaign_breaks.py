"""Every known way to break a pipeline, tried on the pipelines of all generated kernels and on small kernels themselves.

    python3 benchmarks/campaign_breaks.py documents [--share 1] [--jobs 1] [--out FILE]
    python3 benchmarks/campaign_breaks.py kernels [--cases copy transpose ...] [--share 1] [--out FILE]
    python3 benchmarks/campaign_breaks.py texts [--cases ...] [--share 1] [--out FILE]

*documents*: what ``verify`` says of a pipeline with one mistake, beside the judge, which tries every order of events
for small N. *kernels*: what the CPU shows of the kernel of such a pipeline in several schedules. *texts*: what the
reading of its PTX says beside the right pipeline. The exit status is 1 where something wrong is not found.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from campaign import mapped, parser_of, report
from judges.broken_kernels import (
    CASES,
    NO_TEXT,
    PIPELINES,
    Broken,
    broken_pipelines,
    broken_texts,
    shown,
    unlike,
)  # fmt: skip
from judges.pipeline_breaks import breaks, compared, family

WRONG = ("missed", "needless", "wrong kind", "impossible kind", "silent", "wrong though proved", "equal text")


def documents(task: tuple[str, int]) -> list[tuple[str, str, str, str]]:
    """(class, mistake, outcome, more) of one pipeline."""
    name, share = task
    pipeline = PIPELINES[name]
    every, states = (share, 20_000) if name in small() else (24 * share, 2_000)
    every_break = list(breaks(pipeline.to_json()))[::every]
    return [(one.bug, one.what, *compared(one, states)) for one in every_break]


def missed(seed: int) -> str:
    """A campaign: a drawn mistake in the pipeline of a drawn kernel."""
    source = random.Random(seed)
    name = source.choice(list(PIPELINES))
    one = source.choice(list(breaks(PIPELINES[name].to_json())))
    outcome, more = compared(one, 20_000)
    return f"{name}: {one.bug} {one.what}: {outcome} {more}" if outcome in WRONG else ""


def small() -> set[str]:
    """The first pipeline of each family: all of its mistakes are judged."""
    return {next(name for name in PIPELINES if family(name) == each) for each in map(family, PIPELINES)}


def as_in_smaller(rows: list[dict[str, Any]]) -> None:
    """Where a ring has too many orders of events, the same mistake in the smallest of its family stands for it."""
    known = {(family(row["of"]), row["what"]): row["outcome"] for row in rows if row["outcome"] in ("safe", "refuted")}
    for row in rows:
        outcome, _, rest = row["outcome"].partition(", ")
        if rest == "not judged" and known.get((family(row["of"]), row["what"])) == outcome:
            row["outcome"] = f"{outcome}, judged in a smaller ring"


def kernels(name: str, share: int) -> Iterator[tuple[str, str, str, str]]:
    """(class, mistake, outcome, more) of the kernels of one case."""
    for one, made in broken_pipelines(name, share):
        if isinstance(made, str):
            yield one.bug, one.what, "no kernel", made
        else:
            yield one.bug, one.what, *ended(shown(made), made)
    for made in list(broken_texts(name))[::share]:
        yield made.bug, made.what, *ended(shown(made), made)


def ended(found: str, made: Broken) -> tuple[str, str]:
    """The outcome of a run on the CPU."""
    safe = made.emitted.proof is not None and not made.text
    if not found:
        return ("safe", "") if safe else (("hidden", made.hidden) if made.hidden else ("silent", ""))
    if safe:  # the op went with its text, or its text reads what another iteration left; registers are in no document
        other = "other data" if found == "numbers" else "registers" if "accumulator" in found else "wrong though proved"
        return other, found
    return (found if found == NO_TEXT else found.split(":")[0]), found


def texts(name: str, share: int) -> Iterator[tuple[str, str, str, str]]:
    """(class, mistake, outcome, more) of the reading of one case's kernels."""
    mutants = [made for _, made in broken_pipelines(name, share) if isinstance(made, Broken)]
    for made in [*mutants, *list(broken_texts(name))[::share]]:
        found = unlike(made)
        yield made.bug, made.what, (found.split(":")[0] or ("same" if made.unread else "equal text")), found


def main() -> int:
    parser = parser_of(__doc__, share=1, jobs=1, cases=list(CASES), pipelines=list(PIPELINES))
    parser.add_argument("part", choices=("documents", "kernels", "texts"))
    parser.add_argument("--out")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    if given.part == "documents":
        names = given.pipelines or list(PIPELINES)
        answers: Any = zip(
            names, mapped(documents, [(name, given.share) for name in names], given.jobs, given.dask), strict=True
        )
    else:
        run = kernels if given.part == "kernels" else texts
        answers = ((name, run(name, given.share)) for name in given.cases or list(CASES))
    for name, found in answers:
        some = []
        for bug, what, outcome, more in found:
            some.append({"of": name, "class": bug, "what": what, "outcome": outcome, "more": more})
            if outcome in WRONG:
                print(f"{name}: {bug} {what}: {outcome} {more}", flush=True)
        rows += some
        print(name, len(some), dict(Counter(row["outcome"] for row in some)), flush=True)
    as_in_smaller(rows)
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        counts.setdefault(row["class"], Counter())[row["outcome"]] += 1
    order = sorted(counts, key=lambda bug: int(bug[1:]))
    total = Counter(row["outcome"] for row in rows)
    report({"mutants": len(rows), "total": total, "classes": {bug: counts[bug] for bug in order}}, indent=1)
    if given.out:
        Path(given.out).write_text(json.dumps(rows, indent=0), encoding="utf-8")
    return int(any(total[outcome] for outcome in WRONG))


if __name__ == "__main__":
    sys.exit(main())
