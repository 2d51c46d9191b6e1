"""How many answers about random layouts carry a certificate that the stand-alone checker accepts, by consumer.

    python3 benchmarks/campaign_certified.py [--cases 300] [--seed 1] [--consumer NAME] [--write]

The layouts are those of ``campaign_admission``. Every certificate of an answer is written to a file, and a copy of the
checker, alone in a folder, judges all files of a consumer in a process of its own. Prints one line for
each consumer: answers, those with an accepted certificate, the kinds, and the rules of refusals that have none;
``--write`` puts the table into docs/benchmarks.md. The exit status is 1 where a certificate is not accepted.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from campaign import ROOT, parser_of, report
from campaign_admission import ACCESSES, DTYPES, FRAGMENTS, JUDGES, TILES, Draw, asked, drawn

import layoutalg as la
from layoutalg.ground.errors import LayoutError
from layoutalg.proofs import checker

PAGE = ROOT / "docs" / "benchmarks.md"
TABLE = re.compile(r"(<!-- certified -->\n).*?(<!-- end of certified -->)", re.S)
MORE = (
    "tma.reduce.add", "bulk", "cp.async.cg.16", "cp.async.ca.4", "tcgen05.A", "tcgen05.B", "ds_read_b128",
    "ds_read_b64", "ds_write_b64",
)  # fmt: skip
CONSUMERS = (*JUDGES, *MORE)
PLAIN = ("cute", "composed", "text", "table", "linear", "integer", "piecewise")
COLUMNS = ("admitted", "admitted certified", "refused", "refused certified", "unknown")


def target_of(consumer: str) -> str:
    """The target that is asked."""
    if consumer.startswith(("mfma", "ds_")):
        return "gfx942"
    return "sm_100a" if consumer.startswith("tcgen05") else "sm_90a"


def case_of(consumer: str, rng: Draw) -> Any:
    """A random case for a consumer, drawn as for the ones that it resembles."""
    if consumer.startswith("tcgen05"):
        rng.tiles = TILES["wgmma"]
        return drawn(rng, PLAIN)
    if consumer in JUDGES:
        return asked(consumer, rng)
    return asked("tma" if consumer.startswith(("tma", "bulk")) else ACCESSES[0], rng)


def campaign(consumer: str, cases: int, seed: int, folder: Path) -> dict[str, Any]:
    """Ask, write the certificates, and let the checker judge them elsewhere."""
    rng = Draw(seed)
    counts: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    bare: Counter[str] = Counter()
    answered: dict[str, str] = {}
    place = folder / consumer
    place.mkdir()
    for number in range(cases):
        case = case_of(consumer, rng)
        if consumer == "tma.reduce.add":
            case = type(case)(case.family, case.layout, case.table, "bf16" if DTYPES[case.dtype] == 2 else "f32")
        tile = None if consumer in FRAGMENTS else case.table.shape
        try:
            answer = la.admissible(case.layout, consumer, target_of(consumer), case.dtype, tile=tile)
        except LayoutError as error:
            counts["not asked"] += 1
            bare[f"not asked: {error.diagnostic.code}"] += 1
            continue
        kind = type(answer).__name__.lower()
        counts[kind] += 1
        made = getattr(answer, "certificate", None)
        if made is None:
            bare[answer.rules[0] if isinstance(answer, la.Refused) else f"unknown: {answer.reason[:50]}"] += 1
            continue
        name = f"{number:05d}.json"
        (place / name).write_text(made.to_text(), encoding="utf-8")
        answered[name] = kind
        kinds[made.kind] += 1
    shutil.copytree(Path(checker.__file__).parent, folder / "checker")
    command = [sys.executable, "-I", "checker", str(place)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=3600, check=False, env={})
    refused = []
    for line in done.stdout.splitlines():
        verdict, path, *_ = line.split(maxsplit=2)
        kind = answered.pop(Path(path.rstrip(":")).name)
        if verdict == "proved":
            counts[f"{kind} certified"] += 1
        else:
            refused.append(line)
    return {
        "consumer": consumer, "cases": cases, "seed": seed, **dict(sorted(counts.items())),
        "kinds": dict(kinds.most_common()), "without": dict(bare.most_common()),
        "not accepted": [*refused, *answered, *done.stderr.splitlines()[-3:]],
    }  # fmt: skip


def table(rows: list[dict[str, Any]]) -> str:
    """The results as a table of Markdown."""
    head = "consumer | admitted | certified | refused | certified | unknown | kinds of certificates | refusals without"
    lines = [f"| {head} |", "|---|---:|---:|---:|---:|---:|---|---|"]
    for row in rows:
        counts = [
            row.get(name, 0) for name in ("admitted", "admitted certified", "refused", "refused certified", "unknown")
        ]
        kinds = ", ".join(f"`{name}` {count}" for name, count in row["kinds"].items())
        bare = ", ".join(f"{name} {count}" for name, count in row["without"].items() if name.isupper())
        lines.append(f"| `{row['consumer']}` | {' | '.join(map(str, counts))} | {kinds} | {bare} |")
    total = [sum(row.get(name, 0) for row in rows) for name in COLUMNS]
    lines.append(f"| all | {' | '.join(map(str, total))} | | |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = parser_of(__doc__, cases=300, write=False)
    parser.add_argument("--consumer", default="all", choices=(*CONSUMERS, "all"))
    given = parser.parse_args()
    rows = []
    for consumer in CONSUMERS if given.consumer == "all" else (given.consumer,):
        with tempfile.TemporaryDirectory() as folder:
            rows.append(campaign(consumer, given.cases, given.seed, Path(folder)))
        report(rows[-1])
    if given.write:
        command = f"`python3 benchmarks/campaign_certified.py --cases {given.cases} --seed {given.seed} --write`"
        page = PAGE.read_text(encoding="utf-8")
        page = TABLE.sub(lambda found: f"{found[1]}{command}\n\n{table(rows)}{found[2]}", page)
        PAGE.write_text(page, encoding="utf-8")
    return 1 if any(row["not accepted"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
