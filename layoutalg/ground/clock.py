"""The clock that every search and every solver asks.

Implementation notes: the deadline belongs to the context (``contextvars``) in which it was set: every thread and task
has its own, a thread started inside the block has none. Deadlines nest, and the sooner one holds. Wall time counts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NoReturn

from layoutalg.ground.errors import BudgetError, Diagnostic, MalformedError, shown


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment on the monotonic clock, and the seconds that were given until then."""

    seconds: float
    at: float

    def left(self) -> float:
        """Return the seconds that remain, 0 where none do."""
        return max(0.0, self.at - time.monotonic())


_NEVER = Deadline(math.inf, math.inf)
_deadline: ContextVar[Deadline] = ContextVar("layoutalg_deadline", default=_NEVER)


@contextmanager
def within(seconds: float) -> Iterator[Deadline]:
    """Run a block under a deadline; a surrounding deadline that is sooner keeps holding.

    Args:
        seconds: Seconds of wall time, at least 0; infinity sets no deadline.

    Raises: MalformedError: LA004.

    Example:
        >>> with within(60), within(5) as deadline:
        ...     deadline.seconds, 4 < left() <= 5
        (5.0, True)
    """
    given = checked_seconds(seconds)
    mine = Deadline(given, time.monotonic() + given)
    token = _deadline.set(min(mine, _deadline.get(), key=lambda deadline: deadline.at))
    try:
        yield _deadline.get()
    finally:
        _deadline.reset(token)


def left(at_most: float = math.inf) -> float:
    """Return the seconds until the deadline that holds here, no more than ``at_most``; infinity where there is none."""
    return min(at_most, _deadline.get().left())


def check(what: str) -> None:
    """Raise where the deadline has passed; loops call this once per step.

    Args:
        what: What is being done, for the message.

    Raises: BudgetError: LA001.

    Example:
        >>> with within(0):
        ...     check("a search")
        Traceback (most recent call last):
        layoutalg.ground.errors.BudgetError: LA001 the time is up
          in     a search
          since  the 0 s given are spent
          at     seconds=0.0
    """
    if _deadline.get().left() <= 0:
        out_of_time(what)


def out_of_time(what: str, seconds: float | None = None) -> NoReturn:
    """Raise that the time for something is up: ``seconds`` of its own, or those of the deadline that holds here."""
    given = _deadline.get().seconds if seconds is None else seconds
    because = f"the {given:g} s given are spent"
    raise BudgetError(Diagnostic("LA001", "the time is up", (what,), because, witness={"seconds": given}))


def checked_seconds(value: object, argument: str = "seconds") -> float:
    """Return a number of seconds as a float; refuse what is not one (also NaN, which would never end).

    Raises: MalformedError: LA004.

    Example:
        >>> checked_seconds(2)
        2.0
    """
    if not isinstance(value, bool) and hasattr(type(value), "__float__"):
        try:
            number = float(value)  # type: ignore[arg-type]
        except (OverflowError, TypeError, ValueError):  # beyond floats, or an array of several numbers
            number = math.nan
        if number >= 0:
            return number
    because = f"{argument} must be a number that is at least 0, not {shown(value, 40)}"
    raise MalformedError(Diagnostic("LA004", "this is not a number of seconds", (argument,), because))
