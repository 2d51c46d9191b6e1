"""Certificates of all kinds, mutated: the stand-alone checker accepts those that hold, and nothing that does not.

    python3 benchmarks/campaign_certificates.py [--count 5000] [--seed 0] [--most 60] [--jobs 2] [--write]

Every certificate of the sample must prove, and what it states must be so by ``certificate_judges``. Then it is mutated:
every integer (off by one, doubled, negated, 0, huge), texts, entries (removed, added, twice, swapped, in reverse),
types, the kind, and its statement or evidence put in the place of another certificate's; up to ``--most`` of each
certificate. With its old seal each mutation must be rejected. With a new seal, as an attacker would write it, each must
be rejected by what it says, unless what it says is still so: that is judged, and not by the checker. Prints a table;
``--write`` stores it in tests/data/measured/certificates.json and in docs/certificates.md. The exit status is 1 where
something wrong was accepted or something right was not.
"""

from __future__ import annotations

import copy
import itertools
import json
import random
import re
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from campaign import ROOT, mapped, options_of, report
from certificate_judges import JUDGES
from certificate_plans import holds_handoff, holds_no_plan, holds_plan
from certificate_sources import sample

from layoutalg.proofs import checker

STORED = ROOT / "tests" / "data" / "measured" / "certificates.json"
PAGE = ROOT / "docs" / "certificates.md"
TABLE = re.compile(r"(<!-- campaign -->\n).*?(<!-- end of the campaign -->)", re.S)
HUGE = 2**70
JUDGED = {**JUDGES, "tensormap-plan": holds_plan, "no-tensormap": holds_no_plan, "handoff": holds_handoff}
COUNTS = ("certificates", "mutations", "content", "seal", "true", "sampled", "undecided", "wrong")
Document = dict[str, Any]
Path_ = tuple[Any, ...]


def nodes(value: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Every node of a document below its head."""
    yield path, value
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, entry in entries:
        yield from nodes(entry, (*path, name))


def changed(document: Document, path: Path_, value: Any) -> Document:
    """A document with another node in a place."""
    answer = copy.deepcopy(document)
    place: Any = answer
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    return answer


def other_values(value: Any, rng: random.Random) -> Iterator[tuple[str, Any]]:
    """What may stand in the place of a node, with the sort of the mutation."""
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int):
        for new in (value + 1, value - 1, 2 * value, -value, 0, HUGE):
            yield "integer", new
        for odd in (str(value), bool(value), None, [value]):
            yield "type", odd
    elif isinstance(value, str):
        places = [place for place, char in enumerate(value) if char.isdigit()]
        for place in rng.sample(places, min(3, len(places))):
            digit = rng.choice("0123456789")
            yield "text", value[:place] + digit + value[place + 1 :]
            yield "text", value[:place] + value[place + 1 :]
        yield from (("text", text) for text in (value + "0", value[:-1], value[::-1], "", value.upper()))
        yield from (("type", odd) for odd in (len(value), None, [value]))
    elif isinstance(value, list):
        yield from (("type", odd) for odd in (None, {}, len(value)))
        if value:
            place = rng.randrange(len(value))
            yield "entry removed", value[:place] + value[place + 1 :]
            yield "entry twice", [*value[:place], value[place], *value[place:]]
            yield "entry added", [*value, copy.deepcopy(rng.choice(value))]
            yield "reordered", value[::-1]
        if len(value) > 1:
            place = rng.randrange(len(value) - 1)
            yield "swapped", [*value[:place], value[place + 1], value[place], *value[place + 2 :]]
    else:
        for name in value:
            yield "entry removed", {key: entry for key, entry in value.items() if key != name}
        yield "entry added", {**value, "more": 0}
        yield from (("type", odd) for odd in (None, [], list(value.values())))


def mutations(document: Document, others: dict[str, list[Document]], rng: random.Random) -> list[tuple[str, Document]]:
    """All mutations of a certificate but for its seal."""
    found = []
    for head in ("schema", "kind", "statement", "evidence"):
        for path, value in nodes(document[head], (head,)):
            found += [(sort, changed(document, path, new)) for sort, new in other_values(value, rng) if new != value]
    kind = document["kind"]
    for name, same in others.items():
        found.append(("kind", {**document, "kind": name}))
        other = rng.choice(same)
        sort = "of its kind" if name == kind else "of another kind"
        for part in ("statement", "evidence"):
            found.append((f"{part} {sort}", {**document, part: other[part]}))
    for head in ("schema", "kind", "statement", "evidence"):
        found.append(("entry removed", {name: entry for name, entry in document.items() if name != head}))
    found.append(("entry added", {**document, "more": 0}))
    canonical = json.dumps({**document, "seal": ""}, sort_keys=True)
    return [(sort, new) for sort, new in found if json.dumps({**new, "seal": ""}, sort_keys=True) != canonical]


def text_of(document: Document) -> str:
    return json.dumps(document, separators=(",", ":"))


def judged(document: Document) -> tuple[bool, bool]:
    """Whether what an accepted document states is so, and whether that is by full enumeration."""
    try:
        return JUDGED[document["kind"]](document["statement"])
    except Exception:
        return False, True


def tried(document: Document, others: dict[str, list[Document]], most: int, seed: int) -> Counter[str]:
    """Check a certificate and its mutations; return what was counted, the wrong ones as texts."""
    rng = random.Random(seed)
    tally = Counter(certificates=1)
    begun = time.perf_counter()
    code, told = checker.check(checker.parsed(text_of(document)))
    tally["microseconds"] = round(1e6 * (time.perf_counter() - begun))
    so, whole = judged(document)
    tally["sampled"] += not whole
    if code or not so:
        tally["wrong"] += 1
        tally[f"WRONG not proved: {told}: {text_of(document)[:600]}"] += 1
    found = mutations(document, others, rng)
    for sort, mutant in rng.sample(found, min(most, len(found))):
        tally["mutations"] += 1
        tally[f"sort {sort}"] += 1
        code, told = checker.check(checker.parsed(text_of(mutant)))
        if code == 0 or not told:
            tally["wrong"] += 1
            tally[f"WRONG accepted with its old seal: {text_of(mutant)[:600]}"] += 1
        mutant["seal"] = checker.seal(mutant)
        code, told = checker.check(checker.parsed(text_of(mutant)))
        if code:
            tally["undecided" if code == 2 else "content"] += 1
            continue
        tally["seal"] += 1  # rejected above by the seal alone
        so, whole = judged(mutant)
        tally["true"] += so
        tally["sampled"] += not whole
        if not so:
            tally["wrong"] += 1
            tally[f"WRONG accepted: {sort}: {text_of(mutant)[:600]}"] += 1
    broken = {**document, "seal": document["seal"][::-1]}
    tally["mutations"] += 1
    tally["seal"] += 1
    tally["true"] += 1
    if checker.check(broken)[0] == 0:
        tally["wrong"] += 1
    return tally


def campaign(count: int, seed: int, most: int, jobs: int = 1, dask: str | None = None) -> dict[str, Any]:
    """Return what was found, for each kind and in all."""
    shares = [(count * (job + 1) // jobs - count * job // jobs, 1000 * seed + job, most) for job in range(jobs)]
    found = list(itertools.chain.from_iterable(mapped(share, shares, jobs, dask)))
    documents, tallies = [document for document, _ in found], [tally for _, tally in found]
    kinds: dict[str, list[Document]] = defaultdict(list)
    for document in documents:
        kinds[document["kind"]].append(document)
    rows = {}
    for kind in [kind for kind in checker.KINDS if kind in kinds]:
        mine = [tally for document, tally in zip(documents, tallies, strict=True) if document["kind"] == kind]
        sizes = [len(text_of(document)) for document in kinds[kind]]
        times = [tally["microseconds"] / 1000 for tally in mine]
        total: Counter[str] = sum(mine, Counter())
        rows[kind] = {
            **{name: total[name] for name in COUNTS},
            "bytes": [round(statistics.median(sizes)), max(sizes)],
            "milliseconds": [round(statistics.median(times), 2), round(max(times), 1)],
        }
    everything: Counter[str] = sum(tallies, Counter())
    return {
        "count": count,
        "seed": seed,
        "most": most,
        "jobs": jobs,
        "checker_lines": sum(
            len(path.read_text(encoding="utf-8").splitlines()) for path in Path(checker.__file__).parent.glob("*.py")
        ),
        "kinds": rows,
        "sorts": {name[5:]: number for name, number in sorted(everything.items()) if name.startswith("sort ")},
        "wrong": [name for name in everything if name.startswith("WRONG")],
    }


def share(given: tuple[int, int, int]) -> list[tuple[Document, Counter[str]]]:
    """The certificates of one process, each with what was counted."""
    count, seed, most = given
    kinds: dict[str, list[Document]] = defaultdict(list)
    documents = [made.to_json() for made in sample(count, seed)]
    for document in documents:
        kinds[document["kind"]].append(document)
    return [(one, tried(one, kinds, most, seed + place)) for place, one in enumerate(documents)]


def table(found: dict[str, Any]) -> str:
    """The results as a table of Markdown."""
    heads = "kind | certificates | bytes, median and most | ms, median and most | mutations | rejected by content"
    heads += " | not decided | rejected by the seal alone: still so, judged | of these by points | accepted wrong"
    command = f"--count {found['count']} --seed {found['seed']} --most {found['most']} --jobs {found['jobs']} --write"
    lines = [f"`python3 benchmarks/campaign_certificates.py {command}`", "", f"| {heads} |", "|---|" + "---:|" * 9]
    total: Counter[str] = Counter()
    for kind, row in found["kinds"].items():
        total.update({name: row[name] for name in COUNTS})
        lines.append(
            _row(f"`{kind}`", row, " / ".join(map(str, row["bytes"])), " / ".join(map(str, row["milliseconds"])))
        )
    return "\n".join([*lines, _row("all", total, "", "")]) + "\n"


def _row(name: str, row: dict[str, int] | Counter[str], sizes: str, times: str) -> str:
    counts = [f"{row[each]:,}" for each in ("mutations", "content", "undecided", "true", "sampled", "wrong")]
    return f"| {' | '.join([name, format(row['certificates'], ','), sizes, times, *counts])} |"


def main() -> int:
    given = options_of(__doc__, seed=0, count=5000, most=60, jobs=1, write=False)
    found = campaign(given.count, given.seed, given.most, given.jobs, given.dask)
    print(table(found))
    report(found["sorts"])
    for wrong in found["wrong"]:
        print(wrong)
    if given.write:
        STORED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")
    return 1 if found["wrong"] else 0


def written(page: str, found: dict[str, Any]) -> str:
    """The page with the table in its place."""
    return TABLE.sub(lambda match: f"{match[1]}{table(found)}{match[2]}", page)


if __name__ == "__main__":
    sys.exit(main())
