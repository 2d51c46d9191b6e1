"""Limits on every call of ISL: a short attempt in this process, then a worker process that is killed on timeout.

Implementation notes: ISL counts operations, but the cost of one grows by three orders of magnitude with the size of its
numbers, and Python cannot interrupt ISL. So a question is first asked in this process with a small quota, again with
more if its operations were cheap, and then in a worker. One context per thread serves all questions, because a dropped
context leaks some kilobytes. ISL objects never leave their thread: it keeps them under the numbers of their values.
"""

from __future__ import annotations

import re
import threading
import time
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
"""ISL objects that a thread keeps."""
FIRST_TEXT = 16_000
FIRST_QUOTIENTS = 24
FIRST_OPERATIONS, LONG_OPERATIONS = (6_000, 24_000), (2_000, 6_000, 24_000)
"""Operation quotas of the attempts in this process, and those for numbers of more digits than ``DIGITS``."""
DIGITS = 4
CHEAP = 6e-7
"""Seconds per operation up to which another attempt follows; usual are 1e-7."""
RENEWED, SOON = 0.05, 0.003
"""Seconds of a question during which its parts have a quota each, if the part before took no longer than ``SOON``."""
_QUOTIENT = re.compile(r"\bfloor\b|\bmod\b|\bexists\b|%")
_NUMBER = re.compile(r"\d+")
_SOURCE = re.compile(r"\s+in /?\S+\.[ch]:\d+")
_own = threading.local()


class _ExhaustedError(Exception):
    """The quota of operations ran out."""


def solve(
    question: str | Callable[[], str],
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
        args: Further arguments of the question: values, texts and plain data.

    Example:
        >>> solve("parity", lambda context: __import__("islpy").Val.read_from_str(context, "7").to_python())
        7
    """
    if worker.inside():
        return _asked(question, operations, ask, *args, **kwargs)
    clock.check("a question to ISL")
    try:
        return _short_attempts(question, operations, ask, *args, **kwargs)
    except _ExhaustedError:
        asked: Callable[..., T] = _asked
    told = _told(question)
    try:
        return worker.run(told, limits.ISL_SECONDS, asked, told, operations, ask, *args, **kwargs)
    except BudgetError as error:
        if error.diagnostic.code not in {"LA001", "LA003"} or clock.left() <= 0:
            raise
        gave_up(told, error.diagnostic.because, seconds=limits.ISL_SECONDS)


def solve_here(
    question: str, ask: Callable[Concatenate[islpy.Context, P], T], /, *args: P.args, **kwargs: P.kwargs
) -> T | None:
    """Return ISL's answer, or None if the short attempts in this process are not enough; see ``solve``."""
    clock.check("a question to ISL")
    try:
        return _short_attempts(question, None, ask, *args, **kwargs)
    except _ExhaustedError:
        return None


def _short_attempts(
    question: str | Callable[[], str], operations: int | None, ask: Callable[..., T], *args: Any, **kwargs: Any
) -> T:
    """Return ISL's answer within the quotas of this process; raise ``_ExhaustedError`` if they are not enough."""
    characters, quotients, digits = size_of(args)
    quotas: tuple[int, ...] = FIRST_OPERATIONS if digits <= DIGITS else LONG_OPERATIONS
    if not worker.available():
        quotas = (limits.ISL_OPERATIONS,) if operations is None else (operations,)
    elif operations is None and (characters > FIRST_TEXT or quotients > FIRST_QUOTIENTS):
        raise _ExhaustedError
    for quota in quotas:
        started, asked = time.perf_counter(), quota if operations is None else min(quota, operations)
        try:
            return _attempt(question, asked, ask, *args, **kwargs)
        except _ExhaustedError:
            if asked == operations or not worker.available():
                gave_up(question, f"the quota of {asked} operations ran out", operations=asked)
            if time.perf_counter() - started > CHEAP * asked:
                break
    raise _ExhaustedError


def size_of(operand: object) -> tuple[int, int, int]:
    """Return the characters, quotients and most digits of a number in the texts of operands; for values an estimate."""
    if isinstance(operand, str):
        return len(operand), len(_QUOTIENT.findall(operand)), max(map(len, _NUMBER.findall(operand)), default=0)
    if isinstance(operand, (tuple, list)):
        sizes = [size_of(entry) for entry in operand]
        return sum(size[0] for size in sizes), sum(size[1] for size in sizes), max([0, *(size[2] for size in sizes)])
    found: tuple[int, int, int] = getattr(operand, "size", (0, 0, 0))
    return found


def _told(question: str | Callable[[], str]) -> str:
    return (question if isinstance(question, str) else question())[:200]


def gave_up(question: str | Callable[[], str], because: str, **witness: object) -> NoReturn:
    """Raise: ISL did not answer."""
    where = (_told(question),)
    raise BudgetError(Diagnostic(code="LA222", what="ISL gave up", where=where, because=because, witness=witness))


def _asked(
    question: str | Callable[[], str], operations: int | None, ask: Callable[..., T], *args: Any, **kwargs: Any
) -> T:
    """Return ISL's answer within a quota; raise errors that can be sent between processes."""
    try:
        return _attempt(question, operations or 0, ask, *args, **kwargs)
    except _ExhaustedError:
        gave_up(question, f"the quota of {operations} operations ran out", operations=operations)


def _attempt(question: str | Callable[[], str], quota: int, ask: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Return ISL's answer within a quota, 0 for none."""
    context = _context()
    _own.started = _own.renewed = time.perf_counter()
    context.reset_operations()
    context.set_max_operations(quota)
    try:
        answer = ask(context, *args, **kwargs)
    except LayoutError as error:
        if quota and exhausted(context):
            raise _exhaustion() from None
        # drop the traceback: its frames keep ISL objects of this thread's context alive
        raise error.with_traceback(None) from None
    except Exception as error:
        # beyond its quota ISL may also return null instead of text
        if quota and exhausted(context):
            raise _exhaustion() from None
        if not isinstance(error, islpy.Error):
            raise
        if _own.is_suspect:
            _own.is_suspect = False
            _own.objects.clear()
            return _attempt(question, quota, ask, *args, **kwargs)
        because, where = f"ISL says: {says(error)}", (_told(question),)
        raise AdmissibilityError(
            Diagnostic(code="LA791", what="ISL refuses this operation", where=where, because=because)
        ) from None
    else:
        if quota and exhausted(context):
            raise _exhaustion()
        return answer
    finally:
        context.set_max_operations(0)


def _exhaustion() -> _ExhaustedError:
    """Return the error; ISL simplifies shared objects in place, so one that it was working on may be broken now."""
    _own.is_suspect = True
    return _ExhaustedError()


def _context() -> islpy.Context:
    """Return the context of this thread."""
    if not hasattr(_own, "context"):
        _own.context, _own.objects, _own.is_suspect = islpy.Context(), OrderedDict(), False
    return _own.context  # type: ignore[no-any-return]


def kept(key: int, make: Callable[[], T]) -> T:
    """Return this thread's ISL object of a value, made again if it is no longer kept."""
    objects: OrderedDict[int, Any] = _own.objects
    if key not in objects:
        objects[key] = make()
        if len(objects) > OBJECTS:
            objects.popitem(last=False)
    objects.move_to_end(key)
    return objects[key]  # type: ignore[no-any-return]


def renew(context: islpy.Context) -> None:
    """Start the quota again for the next part of a question, unless the parts before have taken long."""
    now = time.perf_counter()
    if now - _own.renewed < SOON and now - _own.started < RENEWED and not exhausted(context):
        context.reset_operations()
        _own.renewed = now


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
