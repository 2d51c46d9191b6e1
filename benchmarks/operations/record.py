"""The registry of judged operations, and what may come out of one.

Notation: an operation is a function of a drawn subject and a generator of random numbers. It ends where every answer
was right; it raises ``Refusal`` for a refusal that is right, ``WrongError`` for a wrong answer and ``NeedlessError``
for a refusal of what exists. An error of the library that it lets through counts as needless, any other as wrong.
"""

from __future__ import annotations

import random
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from layoutalg.ground.errors import BudgetError, LayoutError

Judge = Callable[[Any, random.Random], None]


class WrongError(Exception):
    """The library said something that is not so."""


class NeedlessError(Exception):
    """The library refused what exists."""


class Refusal(Exception):  # noqa: N818 (an outcome, not an error)
    """A refusal that is right: ``refused CODE`` where nothing exists, ``declined CODE`` where the library gave up."""


@dataclass(frozen=True)
class Operation:
    """One judged operation of a family."""

    family: str
    name: str
    judge: Judge
    weight: float


@dataclass
class Row:
    """What became of one operation."""

    right: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    declined: Counter[str] = field(default_factory=Counter)
    needless: Counter[str] = field(default_factory=Counter)
    wrong: int = 0
    seconds: float = 0.0

    @property
    def count(self) -> int:
        counted = self.refused.total() + self.declined.total() + self.needless.total()
        return self.right + self.wrong + counted

    def add(self, other: Row) -> None:
        self.right += other.right
        self.wrong += other.wrong
        self.seconds += other.seconds
        for mine, theirs in (
            (self.refused, other.refused),
            (self.declined, other.declined),
            (self.needless, other.needless),
        ):
            mine.update(theirs)

    def to_json(self) -> dict[str, Any]:
        codes = {kind: dict(sorted(getattr(self, kind).items())) for kind in ("refused", "declined", "needless")}
        ms = round(1000 * self.seconds / max(self.count, 1), 3)
        return {"count": self.count, "right": self.right, **codes, "wrong": self.wrong, "ms": ms}


Rows = dict[tuple[str, str], Row]
OPERATIONS: dict[str, list[Operation]] = {}
DRAWS: dict[str, Callable[[random.Random], Any]] = {}


def draws(family: str) -> Callable[[Callable[[random.Random], Any]], Callable[[random.Random], Any]]:
    """Register the function that draws a subject of a family."""

    def register(function: Callable[[random.Random], Any]) -> Callable[[random.Random], Any]:
        DRAWS[family] = function
        return function

    return register


def operation(*families: str, weight: float = 1.0) -> Callable[[Judge], Judge]:
    """Register a judged operation under its own name."""

    def register(function: Judge) -> Judge:
        for family in families:
            known = OPERATIONS.setdefault(family, [])
            name = function.__name__.rstrip("_")  # type: ignore[attr-defined]
            assert all(other.name != name for other in known), f"{family} {name} twice"
            known.append(Operation(family, name, function, weight))
        return function

    return register


def expect(holds: object, what: object) -> None:
    """Raise ``WrongError`` unless something holds."""
    if not holds:
        raise WrongError(str(what)[:400])


def refusal(error: LayoutError, exists: bool, what: object, declined: str = "") -> Exception:
    """What a refusal comes to.

    Args:
        error: The refusal.
        exists: Whether the judge found an answer.
        what: The call, for the report.
        declined: Codes with which the documentation declares the operation incomplete; ``BudgetError``, which says
            that it gave up, always counts as such.
    """
    code = error.diagnostic.code
    if not exists:
        return Refusal(f"refused {code}")
    if code in declined.split() or isinstance(error, BudgetError):
        return Refusal(f"declined {code}")
    return NeedlessError(f"{code} {what}: {error.diagnostic.because}"[:400])


def answer(
    call: Callable[..., Any],
    *args: Any,
    exists: bool | Callable[[], object] = True,
    strict: bool = False,
    declined: str = "",
    what: str = "",
    **options: Any,
) -> Any:
    """The answer of a call that is refused only where none exists.

    Args:
        call: The call.
        args: Its arguments.
        exists: Whether there is an answer; a function is asked where the call was refused.
        strict: Whether an answer is wrong where the judge says that there is none.
        declined: As of ``refusal``.
        what: The call as text; made of its name otherwise.
        options: Further arguments.
    """
    found = attempt(call, *args, **options)
    what = what or f"{getattr(call, '__name__', call)}({', '.join(map(str, [*args, *options.values()]))})"
    if isinstance(found, LayoutError):
        raise refusal(found, bool(exists() if callable(exists) else exists), what, declined)
    expect(exists or not strict, f"{what} gave {found}")
    return found


def attempt(call: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """The answer of a call, or its refusal as a value."""
    try:
        return call(*args, **options)
    except LayoutError as error:
        return error


def failed(answer: object) -> bool:
    return isinstance(answer, LayoutError)


def judged(one: Operation, subject: Any, rng: random.Random, rows: Rows) -> str:
    """Run one operation; the text of what is wrong, or nothing."""
    row = rows.setdefault((one.family, one.name), Row())
    began = time.perf_counter()
    said = ""
    try:
        one.judge(subject, rng)
        row.right += 1
    except Refusal as end:
        kind, code = str(end).split()
        getattr(row, kind)[code] += 1
    except NeedlessError as error:
        row.needless[str(error).split()[0]] += 1
        said = f"needless {error}"
    except BudgetError as error:
        row.declined[error.diagnostic.code] += 1
    except LayoutError as error:
        row.needless[error.diagnostic.code] += 1
        said = f"needless {error.diagnostic.code} {' '.join(error.diagnostic.where)} {error.diagnostic.because}"[:400]
    except WrongError as error:
        row.wrong += 1
        said = f"wrong {error}"
    except Exception as error:
        row.wrong += 1
        place = traceback.extract_tb(error.__traceback__)[-1]
        said = f"wrong {type(error).__name__} {error!s:.200} ({place.filename.rsplit('/', 1)[-1]}:{place.lineno})"
    row.seconds += time.perf_counter() - began
    return said and f"{one.family} {one.name} {said}"


def run_subject(family: str, index: int, seed: int, count: int, rows: Rows) -> list[str]:
    """Draw subject number ``index`` of a family and run ``count`` operations on it; what went wrong."""
    rng = random.Random(f"{seed}:{family}:{index}")
    subject = DRAWS[family](rng)
    known = OPERATIONS[family]
    chosen = rng.choices(known, [one.weight for one in known], k=count)
    said = [judged(one, subject, random.Random(rng.random()), rows) for one in chosen]
    return [f"[{family}:{index}] {text} on {shown(subject)}" for text in said if text]


def shown(subject: Any) -> str:
    return str(getattr(subject, "layout", subject))[:200]
