"""Steps of work that a search may take, beside the clock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from layoutalg.ground import clock


class WorkDoneError(Exception):
    """The steps of a meter are used up."""


class _Meter:
    def __init__(self, steps: int) -> None:
        self.left = steps


_meter: ContextVar[_Meter | None] = ContextVar("layoutalg_meter", default=None)


@contextmanager
def metered(steps: int) -> Iterator[None]:
    """Run a block that may take so many steps; a product of polynomials takes one per pair of monomials, or more.

    Raises: WorkDoneError: the block needs more.
    """
    token = _meter.set(_Meter(steps))
    try:
        yield
    finally:
        _meter.reset(token)


def take(steps: int = 1) -> None:
    """Take steps from the meter that holds here, if any, and check the clock.

    Raises: WorkDoneError: The meter has no more. BudgetError: LA001.
    """
    clock.check("arithmetic on symbolic sizes")
    meter = _meter.get()
    if meter is not None:
        meter.left -= steps
        if meter.left < 0:
            raise WorkDoneError
