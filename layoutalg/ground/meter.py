"""A step budget for searches, in addition to the deadline."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from layoutalg.ground import clock


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


def take(steps: int = 1) -> None:
    """Charge steps to the current budget, if any, and check the deadline.

    Raises: WorkDoneError: The budget is used up. BudgetError: LA001.
    """
    clock.check("arithmetic on symbolic sizes")
    meter = _meter.get()
    if meter is not None:
        meter.left -= steps
        if meter.left < 0:
            raise WorkDoneError
