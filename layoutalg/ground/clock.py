"""Wall-clock deadlines, checked by every search and solver, and a step budget for searches on symbolic sizes.

A deadline belongs to the context (``contextvars``) that set it: each thread and task has its own, and a thread started
inside the block has none. Deadlines nest; the earliest one applies.
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
    """A moment on the monotonic clock, and the time limit it came from."""

    seconds: float
    at: float

    def left(self) -> float:
        """Return the remaining seconds, at least 0."""
        return max(0.0, self.at - time.monotonic())


_NEVER = Deadline(math.inf, math.inf)
_deadline: ContextVar[Deadline] = ContextVar("layoutalg_deadline", default=_NEVER)


@contextmanager
def within(seconds: float) -> Iterator[Deadline]:
    """Run a block under a deadline; an earlier surrounding deadline stays in force.

    Args:
        seconds: Seconds of wall time, at least 0; infinity sets no deadline.

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
    """Return the seconds until the current deadline, capped at ``at_most``; infinity without a deadline."""
    return min(at_most, _deadline.get().left())


def check(what: str) -> None:
    """Raise if the deadline has passed; loops call this once per step. ``what`` is for the message."""
    if _deadline.get().left() <= 0:
        out_of_time(what)


def out_of_time(what: str, seconds: float | None = None) -> NoReturn:
    """Raise a time-out: after ``seconds``, or after the current deadline."""
    given = _deadline.get().seconds if seconds is None else seconds
    because = f"the time limit of {given:g} s has passed"
    raise BudgetError(Diagnostic("LA001", "the time is up", (what,), because, witness={"seconds": given}))


def checked_seconds(value: object, argument: str = "seconds") -> float:
    """Return a number of seconds as a float; NaN is refused, since it would never expire."""
    if type(value).__name__.rstrip("_") != "bool" and hasattr(type(value), "__float__"):  # NumPy's, too
        try:
            number = float(value)  # type: ignore[arg-type]
        except (OverflowError, TypeError, ValueError):  # too large for a float, or an array of several numbers
            number = math.nan
        if number >= 0:
            return number
    because = f"{argument} must be a number of at least 0, not {shown(value, 40)}"
    raise MalformedError(Diagnostic("LA004", "invalid time limit", (argument,), because))


class WorkDoneError(Exception):
    """The step budget is used up."""


class _Meter:
    def __init__(self, steps: int) -> None:
        self.left = steps


_meter: ContextVar[_Meter | None] = ContextVar("layoutalg_meter", default=None)


@contextmanager
def metered(steps: int) -> Iterator[None]:
    """Run a block with a budget of ``steps``; a polynomial product costs at least one per pair of monomials.

    Raises: WorkDoneError: The budget is used up.
    """
    token = _meter.set(_Meter(steps))
    try:
        yield
    finally:
        _meter.reset(token)


def charge(steps: int = 1) -> None:
    """Charge steps to the current budget, if any, and check the deadline.

    Raises: WorkDoneError: The budget is used up. BudgetError: LA001.
    """
    check("arithmetic on symbolic sizes")
    meter = _meter.get()
    if meter is not None:
        meter.left -= steps
        if meter.left < 0:
            raise WorkDoneError
