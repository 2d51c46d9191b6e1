"""z3 sessions: thread-safe, bounded in time, with checked models.

Implementation notes: every session has its own context, so sessions share nothing. z3 does not reliably honour its
timeout, so a watchdog thread interrupts it. A model is accepted only after evaluating every assertion under it. z3 is
imported on use.

A fork copies z3's internal locks in their current state, so a child forked while another thread is inside z3 hangs at
its first use of z3. ``os.fork`` therefore waits a few seconds for other threads to leave z3.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

from layoutalg.ground import clock, limits
from layoutalg.ground.errors import BudgetError, Diagnostic
from layoutalg.ground.lazy import later

z3 = later("z3")

_OVERRUN = 0.1
"""Seconds after z3's own timeout at which it is interrupted."""
_FORK_SECONDS = limits.SMT_SECONDS + 1
"""Seconds that a fork waits at most for other threads to leave z3; questions with the default limit take less."""

Asking = TypeVar("Asking", bound=Callable[..., Any])
_door = threading.RLock()
"""Held by a thread that forks: no other thread enters z3 meanwhile."""
_inside: set[int] = set()
"""The threads inside z3."""


def whole(asks: Asking) -> Asking:
    """Decorate a function that uses z3: the process does not fork during a call."""

    @wraps(asks)
    def guarded(*arguments: Any, **options: Any) -> Any:
        thread = threading.get_ident()
        if thread in _inside:
            return asks(*arguments, **options)
        with _door:
            _inside.add(thread)
        try:
            return asks(*arguments, **options)
        finally:
            _inside.discard(thread)

    return guarded  # type: ignore[return-value]


def _before_fork() -> None:
    _door.acquire()
    end = time.monotonic() + _FORK_SECONDS
    while _inside - {threading.get_ident()} and time.monotonic() < end:
        time.sleep(0.001)


def _after_fork_in_child() -> None:
    global _door
    _door = threading.RLock()
    _inside.intersection_update({threading.get_ident()})  # the other threads do not exist here


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=lambda: _door.release(), after_in_child=_after_fork_in_child
    )


@dataclass(frozen=True, slots=True)
class Session:
    """A z3 context and solver for one query."""

    z3: Any  # the module
    context: Any  # the context of all terms of this query
    solver: Any  # the solver; add assertions to it


@whole
def session(logic: str | None = None) -> Session:
    """Return a fresh session.

    Args:
        logic: SMT-LIB logic name, if one fits.
    """
    context = z3.Context()
    return Session(z3, context, z3.SolverFor(logic, ctx=context) if logic else z3.Solver(ctx=context))


@whole
def solve(asked: Session, what: str, names: Sequence[Any], seconds: float = limits.SMT_SECONDS) -> list[int] | None:
    """Return values of integer variables that satisfy all assertions, or None if unsatisfiable.

    Args:
        asked: The session with its assertions.
        what: The question, for messages.
        names: The variables to return.
        seconds: Wall time; an earlier deadline of the caller also applies.

    Example:
        >>> asked = session()
        >>> x = asked.z3.Int("x", asked.context)
        >>> asked.solver.add(3 * x == 12)
        >>> solve(asked, "a quotient", [x])
        [4]
    """
    given = clock.left(seconds)
    if given <= 0:
        clock.out_of_time(what)
    asked.solver.set("timeout", max(1, min(int(given * 1000), 2**31 - 1)))
    try:
        with _interrupted_after(asked.context, given + _OVERRUN):
            answer = asked.solver.check()
    except z3.Z3Exception:  # an interrupt may also end a call with an error
        answer = z3.unknown
    if answer == z3.unsat:
        return None
    if answer != z3.sat:
        clock.out_of_time(what, given)
    try:
        model = asked.solver.model()
        for assertion in asked.solver.assertions():
            if not z3.is_true(model.eval(assertion, model_completion=True)):
                raise wrong_answer(what, f"its model does not satisfy {str(assertion)[:200]}")
        return [model.eval(name, model_completion=True).as_long() for name in names]
    except (z3.Z3Exception, ValueError) as error:  # such as a number of more than 4300 digits
        if isinstance(error, BudgetError):
            raise
        raise wrong_answer(what, f"its model cannot be read: {str(error)[:200]}") from error


@contextmanager
def _interrupted_after(context: Any, seconds: float) -> Iterator[None]:
    """Interrupt the context after ``seconds``, but never once the block has ended."""
    turn, inside = threading.Lock(), [True]

    def interrupt() -> None:
        with turn:
            if inside:
                context.interrupt()

    timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        with turn:
            inside.clear()


def wrong_answer(what: str, because: str) -> BudgetError:
    """Return the error for a z3 answer that failed verification."""
    return BudgetError(Diagnostic("LA005", "z3 gave a wrong answer, which was discarded", (what,), because))
