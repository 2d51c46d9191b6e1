"""The page of the laws in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from layoutalg.proofs.laws.law import Law

_OPENING = """\
# Laws

What the operations promise for all values, and who says so. A law is a sentence about the library's own functions: the
solvers run these functions on symbols, way by way through their branches, and enumeration runs the public operations on
every case up to the bound given. Each obligation is complete within its scope, and each is also asked of the law with
a fault planted, which it must refute with a witness that fails when computed with plain numbers.

`python -m layoutalg.proofs.laws` prints this page, `python -m layoutalg.proofs.laws --prove [NAME ...]` proves the laws
again (`pip install cvc5 bitwuzla` for the second solvers; without them their part is reported as not installed).

To add a law: write a claim, a function of a `Trial` that asks for integers, calls the library and claims what must
hold; give it and a copy with a fault planted to an engine of `layoutalg.proofs.laws.engines`; append the `Law` to the
`LAWS` of its subject. `pytest tests/unit/test_laws.py --update-golden` writes this page.

`tests/unit/test_law_inventory.py` looks for all functions that reason with abstractions or rewrite values, by module,
by docstring and by type, and fails where one is in no law and has no reason in `tests/law_inventory.toml`.
"""


def written(subjects: Mapping[str, tuple[Law, ...]]) -> str:
    """Return the page.

    Args:
        subjects: The docstring of each subject, whose first line is its title, and its laws.
    """
    laws = [law for group in subjects.values() for law in group]
    return "\n".join(
        [_OPENING, *_counts(laws), *[line for title in subjects for line in _part(title, subjects[title])]]
    )


def _counts(laws: list[Law]) -> list[str]:
    """How many laws are proved how far and by whom."""
    everywhere = [law for law in laws if law.for_all]
    engines = [{each.engine for each in law.obligations} for law in laws]
    several = sum(len(names) > 1 for names in engines)
    counts = Counter(name for names in engines for name in names)
    lines = [
        "| | laws |",
        "|---|---|",
        f"| all | {len(laws)} |",
        f"| proved for all values | {len(everywhere)} |",
        f"| proved up to a bound alone | {len(laws) - len(everywhere)} |",
        f"| decided by two engines or more | {several} |",
    ]
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    lines += [f"| decided by {name} | {count} |" for name, count in ranked]
    return [*lines, f"| open | {sum(not law.obligations for law in laws)} |"]


def _part(title: str, laws: tuple[Law, ...]) -> list[str]:
    """One subject."""
    lines = ["", f"## {title.partition('.')[0].strip()}", "", "| law | says | for all values | case by case |"]
    lines.append("|---|---|---|---|")
    for law in laws:
        parts = [_obligations(law, for_all=True) or law.why_bounded, _obligations(law, for_all=False)]
        lines.append(
            " | ".join([f"| `{law.name}`", *[text.replace("|", "\\|") or "-" for text in (law.statement, *parts)]])
            + " |"
        )
    return lines


def _obligations(law: Law, *, for_all: bool) -> str:
    """The engines of each scope."""
    scopes: dict[str, list[str]] = {}
    for each in law.obligations:
        if each.for_all == for_all:
            scopes.setdefault(each.scope, []).append(each.engine)
    return "; ".join(f"{', '.join(engines)}: {scope}" for scope, engines in scopes.items())
