"""z3 sessions: thread-safe, bounded in time, with checked models.

Implementation notes: every session has its own context, so sessions share nothing. z3 does not reliably honour its
timeout, so a watchdog thread interrupts it. A model is accepted only after evaluating every assertion under it. z3 is
imported on use.

A fork copies z3's internal locks in their current state, so a child forked while another thread is inside z3 would
hang. ``os.fork`` therefore waits until no other thread is inside, and threads entering z3 wait for the fork.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

from layoutalg.ground import clock, limits
from layoutalg.ground.errors import BudgetError, Diagnostic

_OVERRUN = 0.1
"""Seconds after z3's own timeout at which it is interrupted."""


_FORK_SECONDS = 30.0
"""Seconds that a fork waits for other threads to leave z3; queries take less."""
Asking = TypeVar("Asking", bound=Callable[..., Any])


class _Gate:
    """Counts the threads inside z3 and keeps new ones out during a fork."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.inside: dict[int, int] = {}
        self.forking = False

    def enter(self) -> None:
        """Enter z3; waits for a running fork unless this thread is already inside."""
        thread = threading.get_ident()
        with self.changed:
            self.changed.wait_for(lambda: not self.forking or thread in self.inside)
            self.inside[thread] = self.inside.get(thread, 0) + 1

    def leave(self) -> None:
        """Undo one ``enter``."""
        thread = threading.get_ident()
        with self.changed:
            self.inside[thread] -= 1
            if not self.inside[thread]:
                del self.inside[thread]
                self.changed.notify_all()

    def before_fork(self) -> None:
        """Close the gate and wait until no other thread is inside."""
        thread = threading.get_ident()
        self.changed.acquire()
        self.changed.wait_for(lambda: not self.forking)
        self.forking = True
        self.changed.wait_for(lambda: not self.inside.keys() - {thread}, _FORK_SECONDS)

    def after_fork(self) -> None:
        """Reopen the gate in the parent."""
        self.forking = False
        self.changed.notify_all()
        self.changed.release()

    def in_child(self) -> None:
        """Reset the gate in the child, where no other thread exists."""
        thread = threading.get_ident()
        depth = self.inside.get(thread, 0)
        self.changed, self.forking = threading.Condition(), False
        self.inside = {thread: depth} if depth else {}


_GATE = _Gate()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_GATE.before_fork, after_in_parent=_GATE.after_fork, after_in_child=_GATE.in_child)


def whole(asks: Asking) -> Asking:
    """Decorate a function that uses z3: the process does not fork during a call."""

    @wraps(asks)
    def guarded(*arguments: Any, **options: Any) -> Any:
        _GATE.enter()
        try:
            return asks(*arguments, **options)
        finally:
            _GATE.leave()

    return guarded  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class Session:
    """A z3 context and solver for one query.

    Args:
        z3: The module.
        context: The context of all terms of this query.
        solver: The solver; add assertions to it.
    """

    z3: Any
    context: Any
    solver: Any


@whole
def session(logic: str | None = None) -> Session:
    """Return a fresh session.

    Args:
        logic: SMT-LIB logic name, if one fits.
    """
    import z3

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
    z3 = asked.z3
    given = clock.left(seconds)
    if given <= 0:
        clock.out_of_time(what)
    asked.solver.set("timeout", max(1, min(int(given * 1000), 2**31 - 1)))
    timer = threading.Timer(min(given + _OVERRUN, threading.TIMEOUT_MAX), asked.context.interrupt)
    timer.daemon = True
    timer.start()
    try:
        answer = asked.solver.check()
    except z3.Z3Exception:  # an interrupt may also end a call with an error
        answer = z3.unknown
    finally:
        timer.cancel()
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
    except (z3.Z3Exception, ValueError) as error:  # a late interrupt, or a number of more than 4300 digits
        if isinstance(error, BudgetError):
            raise
        raise wrong_answer(what, f"its model cannot be read: {str(error)[:200]}") from error


def wrong_answer(what: str, because: str) -> BudgetError:
    """Return the error for a z3 answer that failed verification."""
    return BudgetError(Diagnostic("LA005", "z3 gave a wrong answer, which was discarded", (what,), because))
