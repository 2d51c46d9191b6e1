"""A session with z3 that threads can have at the same time, ends in time and whose models are checked.

Implementation notes: every session has a context of its own, so sessions share nothing. z3's own time limit is a wish:
an interrupt from a second thread follows where z3 overruns it. A model is believed only after every assertion has been
evaluated under it. z3 is imported on use.

z3 keeps locks of its own that a fork copies as they are: a child forked while another thread is inside z3 hangs.
So ``os.fork`` waits until no other thread is, and threads that want to enter wait until it is done.
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
"""Seconds after z3's own limit at which it is interrupted."""


_FORK_SECONDS = 30.0
"""Seconds that a fork waits for other threads to leave z3; a question ends in less."""
Asking = TypeVar("Asking", bound=Callable[..., Any])


class _Gate:
    """Counts the threads inside z3 and keeps them out while the process forks."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.inside: dict[int, int] = {}
        self.forking = False

    def enter(self) -> None:
        """Wait for a fork to end, unless this thread is inside already."""
        thread = threading.get_ident()
        with self.changed:
            self.changed.wait_for(lambda: not self.forking or thread in self.inside)
            self.inside[thread] = self.inside.get(thread, 0) + 1

    def leave(self) -> None:
        """Leave what ``enter`` entered."""
        thread = threading.get_ident()
        with self.changed:
            self.inside[thread] -= 1
            if not self.inside[thread]:
                del self.inside[thread]
                self.changed.notify_all()

    def before_fork(self) -> None:
        """Wait until no other thread is inside, and let none enter."""
        thread = threading.get_ident()
        self.changed.acquire()
        self.changed.wait_for(lambda: not self.forking)
        self.forking = True
        self.changed.wait_for(lambda: not self.inside.keys() - {thread}, _FORK_SECONDS)

    def after_fork(self) -> None:
        """Open the gate again, in the parent."""
        self.forking = False
        self.changed.notify_all()
        self.changed.release()

    def in_child(self) -> None:
        """Begin anew, in the child, where no other thread is left."""
        thread = threading.get_ident()
        depth = self.inside.get(thread, 0)
        self.changed, self.forking = threading.Condition(), False
        self.inside = {thread: depth} if depth else {}


_GATE = _Gate()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_GATE.before_fork, after_in_parent=_GATE.after_fork, after_in_child=_GATE.in_child)


def whole(asks: Asking) -> Asking:
    """Decorate a function that builds terms of z3 or asks it: the process does not fork in the middle of a call."""

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
    """A context and a solver of z3, for one question.

    Args:
        z3: The module.
        context: The context that every term of this question belongs to.
        solver: The solver; add assertions to it.
    """

    z3: Any
    context: Any
    solver: Any


@whole
def session(logic: str | None = None) -> Session:
    """Return a fresh session.

    Args:
        logic: SMT-LIB name of a logic, where one fits.
    """
    import z3

    context = z3.Context()
    return Session(z3, context, z3.SolverFor(logic, ctx=context) if logic else z3.Solver(ctx=context))


@whole
def solve(asked: Session, what: str, names: Sequence[Any], seconds: float = limits.SMT_SECONDS) -> list[int] | None:
    """Return values of integer variables under which all assertions hold, or None where there are none.

    Args:
        asked: The session, its assertions added.
        what: The question, for messages.
        names: The variables wanted.
        seconds: Wall time; the deadline that holds here counts too where it is sooner.

    Raises: BudgetError: LA001.

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
    except (z3.Z3Exception, ValueError) as error:  # the interrupt came late; a number of more than 4300 digits
        if isinstance(error, BudgetError):
            raise
        raise wrong_answer(what, f"its model cannot be read: {str(error)[:200]}") from error


def wrong_answer(what: str, because: str) -> BudgetError:
    """Return the error for an answer of z3 that is not believed.

    Args:
        what: The question, for messages.
        because: What is wrong with the answer.
    """
    return BudgetError(Diagnostic("LA005", "z3 gave an answer that does not hold", (what,), because))
