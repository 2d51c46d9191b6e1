"""The laws that are judged case by case: each row is a sentence, a judge and all cases up to a bound.

What tests/property judges by enumeration is not repeated here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

Judge = Callable[[Any], "str | None"]


@dataclass(frozen=True, slots=True)
class Row:
    """One law.

    Args:
        name: Subject and property; a law of ``layoutalg.proofs.laws`` may have the same name.
        says: The sentence; empty where that law says it.
        judge: What is wrong in a case; None where the law holds. A refusal counts as a fault.
        cases: Makes all cases.
        count: How many there are.
        scope: The cases in words.
    """

    name: str
    says: str
    judge: Judge
    cases: Callable[[], Iterable[Any]]
    count: int | None
    scope: str


def tabled(
    rows: list[Row], name: str, cases: Callable[[], Iterable[Any]], count: int | None, scope: str, says: str = ""
) -> Callable[[Judge], Judge]:
    """Return a decorator that adds a row to a table; without ``says`` the judge's docstring is the sentence."""

    def add(judge: Judge) -> Judge:
        stated = says or ("" if not hasattr(judge, "__name__") else " ".join((judge.__doc__ or "").split()))
        rows.append(Row(name, stated, judge, cases, count, scope))
        return judge

    return add


def tables() -> tuple[ModuleType, ...]:
    """Return the modules with a table ``LAWS``."""
    from laws import integers, pieces, sizes, strided, symbols

    return strided, integers, sizes, symbols, pieces
