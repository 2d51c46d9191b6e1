"""The limits on every call of ISL: operations counted by ISL, and time.

Main definitions: ``solve`` (run a question of ISL within its budget), ``written``, ``exhausted``.

Implementation notes: every attempt has a context of its own, so calls share nothing. ISL counts operations, but the
cost of one grows with the numbers in it, by three orders of magnitude, and Python cannot interrupt ISL. So a question
is asked with a small quota first, and again with twice the quota only while four times the time just spent is at hand.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from layoutalg.errors import AdmissibilityError, BudgetError, Diagnostic, LayoutError

if TYPE_CHECKING:
    import islpy

T = TypeVar("T")
DEFAULT_OPERATIONS = 500_000
FIRST_OPERATIONS = 16_000
GROWTH = 2
HEADROOM = 4
SECONDS = 3.0
"""Processor time that the last attempt may be expected to take."""


def solve(question: str, ask: Callable[[islpy.Context], T], operations: int = DEFAULT_OPERATIONS) -> T:
    """Return the answer of ISL, or a named error.

    Args:
        question: What is asked, for messages.
        ask: The question; it is asked again, from the start, in a fresh context with a larger quota.
        operations: ISL's operation quota.

    Raises:
        BudgetError: LA222, the quota ran out, or the next larger one may take more than ``SECONDS``.
        AdmissibilityError: LA791, ISL refuses for another reason.

    Example:
        >>> solve("parity", lambda context: __import__("islpy").Val.read_from_str(context, "7").to_python())
        7
    """
    import islpy

    quota = min(operations, FIRST_OPERATIONS)
    while True:
        context = islpy.Context()
        context.set_max_operations(quota)
        start = time.thread_time()
        try:
            answer = ask(context)
        except LayoutError:
            if not exhausted(context):
                raise
        except Exception as error:
            # past its quota ISL also returns nothing where it should return text
            if not exhausted(context):
                if not isinstance(error, islpy.Error):
                    raise
                because, where = f"ISL says: {error}", (question[:200],)
                raise AdmissibilityError(
                    Diagnostic(code="LA791", what="ISL refuses this operation", where=where, because=because)
                ) from None
        else:
            if not exhausted(context):
                return answer
        spent = time.thread_time() - start
        if quota >= operations or spent * HEADROOM > SECONDS:
            because = f"the quota of {operations} operations ran out"
            if quota < operations:
                because = f"{quota} operations took {spent:.1f} s of processor time; {operations} would take too long"
            where = (question[:200],)
            witness: dict[str, object] = {"operations": quota}
            raise BudgetError(
                Diagnostic(code="LA222", what="ISL gave up", where=where, because=because, witness=witness)
            )
        quota = min(operations, quota * GROWTH)


def written(value: Any) -> str:
    """Return the text of an object of ISL, outside the quota.

    ISL's printer reads through a null pointer, and ends the process, where the quota runs out within it. What it spends
    still counts: ``solve`` sees the quota exceeded afterwards.
    """
    context = value.get_ctx()
    quota = context.get_max_operations()
    context.set_max_operations(0)
    try:
        return str(value)
    finally:
        context.set_max_operations(quota)


def exhausted(context: islpy.Context) -> bool:
    """Return whether the quota ran out: then even the simplest question fails.

    The text of an ISL error does not tell: a parser that runs out of operations reports a syntax error.
    """
    import islpy

    try:
        islpy.Set.read_from_str(context, "{ [x] : exists y : 2y <= x <= 2y + 1 and 0 <= x <= 3 }").is_empty()
    except islpy.Error:
        return True
    return False
