"""Limits on every call of ISL: a short attempt in this process, then a worker process that is killed on timeout.

Implementation notes: ISL counts operations, but the cost of one grows by three orders of magnitude with the size of its
numbers, and Python cannot interrupt ISL. So a question is first asked in this process with a quota that keeps similar
texts below a tenth of a second, and then in a worker. One context per thread serves all questions, because a dropped
context leaks some kilobytes. ISL objects never leave their thread: questions take texts, whose objects the thread
remembers, and return plain values.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, TypeVar

from layoutalg.ground import clock, limits, worker
from layoutalg.ground.errors import AdmissibilityError, BudgetError, Diagnostic, LayoutError
from layoutalg.ground.lazy import later

if TYPE_CHECKING:
    import islpy
else:
    islpy = later("islpy")

P = ParamSpec("P")
T = TypeVar("T")
OBJECTS = 256
"""ISL objects that a thread remembers by their texts."""
FIRST_TEXT = 4_000
FIRST_QUOTIENTS = 24
FIRST_OPERATIONS = ((4, 8_000), (8, 4_000), (10**6, 2_000))
"""Operation quota of the attempt in this process, by the digits of the longest number."""
_NUMBER = re.compile(r"\d+")
_QUOTIENT = re.compile(r"\bfloor\b|\bmod\b|\bexists\b|%")
_SOURCE = re.compile(r"\s+in /?\S+\.[ch]:\d+")
_own = threading.local()


class _ExhaustedError(Exception):
    """The quota of operations ran out."""


def solve(
    question: str,
    ask: Callable[Concatenate[islpy.Context, P], T],
    operations: int | None = None,
    /,
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Return ISL's answer, or raise a named error.

    Args:
        question: Description of the question, for messages.
        ask: The question, a module-level function; called again from the start if the first attempt ran out of quota.
        operations: ISL's operation quota; None for the time limit only.
        args: Further arguments of the question: texts and plain values.

    Example:
        >>> solve("parity", lambda context: __import__("islpy").Val.read_from_str(context, "7").to_python())
        7
    """
    if worker.inside():
        return _asked(question, operations, ask, *args, **kwargs)
    clock.check(question[:200])
    first = _first(operations, args)
    if first:
        try:
            return _attempt(question, first, ask, *args, **kwargs)
        except _ExhaustedError:
            if first == operations:
                gave_up(question, f"the quota of {operations} operations ran out", operations=first)
    asked: Callable[..., T] = _asked
    try:
        return worker.run(question[:200], limits.ISL_SECONDS, asked, question, operations, ask, *args, **kwargs)
    except BudgetError as error:
        if error.diagnostic.code not in {"LA001", "LA003"} or clock.left() <= 0:
            raise
        gave_up(question, error.diagnostic.because, seconds=limits.ISL_SECONDS)


def solve_here(
    question: str, ask: Callable[Concatenate[islpy.Context, P], T], /, *args: P.args, **kwargs: P.kwargs
) -> T | None:
    """Return ISL's answer, or None if the short attempt in this process is not enough; see ``solve``."""
    clock.check(question[:200])
    first = _first(None, args)
    if not first:
        return None
    try:
        return _attempt(question, first, ask, *args, **kwargs)
    except _ExhaustedError:
        return None


def gave_up(question: str, because: str, **witness: object) -> NoReturn:
    """Raise: ISL did not answer."""
    where = (question[:200],)
    raise BudgetError(Diagnostic(code="LA222", what="ISL gave up", where=where, because=because, witness=witness))


def _first(operations: int | None, args: tuple[object, ...]) -> int:
    """Return the quota of the attempt in this process, 0 to skip it."""
    if not worker.available():
        return operations or limits.ISL_OPERATIONS
    text = repr(args)
    if operations is None and (len(text) > FIRST_TEXT or len(_QUOTIENT.findall(text)) > FIRST_QUOTIENTS):
        return 0
    digits = max(map(len, _NUMBER.findall(text)), default=0)
    quota = next(quota for most, quota in FIRST_OPERATIONS if digits <= most)
    return quota if operations is None else min(quota, operations)


def _asked(question: str, operations: int | None, ask: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Return ISL's answer within a quota; raise errors that can be sent between processes."""
    try:
        return _attempt(question, operations or 0, ask, *args, **kwargs)
    except _ExhaustedError:
        gave_up(question, f"the quota of {operations} operations ran out", operations=operations)


def _attempt(question: str, quota: int, ask: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Return ISL's answer within a quota, 0 for none."""
    context = _context()
    context.reset_operations()
    context.set_max_operations(quota)
    try:
        answer = ask(context, *args, **kwargs)
    except LayoutError as error:
        if quota and exhausted(context):
            raise _ExhaustedError from None
        # drop the traceback: its frames keep ISL objects of this thread's context alive
        raise error.with_traceback(None) from None
    except Exception as error:
        # beyond its quota ISL may also return null instead of text
        if quota and exhausted(context):
            raise _ExhaustedError from None
        if not isinstance(error, islpy.Error):
            raise
        because, where = f"ISL says: {says(error)}", (question[:200],)
        raise AdmissibilityError(
            Diagnostic(code="LA791", what="ISL refuses this operation", where=where, because=because)
        ) from None
    else:
        if quota and exhausted(context):
            raise _ExhaustedError
        return answer
    finally:
        context.set_max_operations(0)


def _context() -> islpy.Context:
    """Return the context of this thread."""
    if not hasattr(_own, "context"):
        _own.context, _own.objects = islpy.Context(), OrderedDict()
    return _own.context  # type: ignore[no-any-return]


def known(text: str, read: Callable[[str], T]) -> T:
    """Return this thread's ISL object of a canonical text, reading the text if it is not remembered."""
    objects: OrderedDict[str, Any] = _own.objects
    if text not in objects:
        objects[text] = read(text)
        if len(objects) > OBJECTS:
            objects.popitem(last=False)
    objects.move_to_end(text)
    return objects[text]  # type: ignore[no-any-return]


def says(error: Exception) -> str:
    """Return ISL's error text without the source location."""
    return _SOURCE.sub("", str(error))


def written(value: Any) -> str:
    """Print an ISL object with the quota suspended.

    ISL's printer dereferences a null pointer and kills the process if the quota runs out inside it. Its operations
    still count: ``solve`` sees the quota exceeded afterwards.
    """
    context = value.get_ctx()
    quota = context.get_max_operations()
    context.set_max_operations(0)
    try:
        return str(value)
    finally:
        context.set_max_operations(quota)


def exhausted(context: islpy.Context) -> bool:
    """Return whether the quota ran out, by asking the simplest question.

    The error text is no evidence: a parser that runs out of operations reports a syntax error.
    """
    if not context.get_max_operations():
        return False
    try:
        islpy.Set.read_from_str(context, "{ [] }")
    except islpy.Error:
        return True
    return False
