"""Answers that are kept for the next time, bounded by the bytes they take.

Implementation notes: an entry weighs what its arguments and its answer hold, found by walking through them once. The
entry that was not used for the longest time goes first. A refusal, and an answer that ``worth`` turns down (one that
ran out of time, say), is never kept. Threads may call at the same time; two that ask the same may both compute. After
``fork`` the child starts with an empty cache, because another thread may have been in the middle of changing it.
``remembered`` has neither lock nor order of use but two generations: new answers, and those found in the old one, join
the young one, which at half of the limit becomes the old one. Under threads an answer may be computed twice, or a
generation end early.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Generic, ParamSpec, TypeVar, cast

from layoutalg.ground import limits

P = ParamSpec("P")
T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])


def bytes_of(*values: object) -> int:
    """Return about how many bytes values hold; what they share counts once.

    Example:
        >>> bytes_of(()) < bytes_of((1, 2)) < bytes_of((1, (2, "three")))
        True
    """
    seen: set[int] = set()
    waiting, total = list(values), 0
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        total += sys.getsizeof(value)
        if isinstance(value, (str, bytes, int, float, type)):
            continue
        if isinstance(value, (tuple, list, set, frozenset)):
            waiting += value
        elif isinstance(value, Mapping):
            waiting += value.keys()
            waiting += value.values()
        else:
            for kind in type(value).__mro__:
                names = kind.__dict__.get("__slots__", ())
                waiting += [getattr(value, name, None) for name in ((names,) if isinstance(names, str) else names)]
            waiting += getattr(value, "__dict__", {}).values()
    return total


class _Kept(Generic[P, T]):
    """A function and the answers it gave."""

    def __init__(self, function: Callable[P, T], limit: int, worth: Callable[[T], bool] | None) -> None:
        functools.update_wrapper(self, function)
        self.function, self.limit, self.worth = function, limit, worth
        self.cache_clear()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.cache_clear)

    def cache_clear(self) -> None:
        """Forget every answer."""
        self.lock = threading.Lock()
        self.entries: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self.bytes = 0

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        key: Hashable = (args, tuple(kwargs.items())) if kwargs else args
        with self.lock:
            found = self.entries.get(key)
            if found is not None:
                self.entries.move_to_end(key)
                return found[0]
        answer = self.function(*args, **kwargs)
        if self.worth is None or self.worth(answer):
            self._keep(key, answer)
        return answer

    def _keep(self, key: Hashable, answer: T) -> None:
        weight = bytes_of(key, answer)
        if weight > self.limit // 8:
            return  # one answer must not drive out all others
        with self.lock:
            before = self.entries.pop(key, None)
            self.entries[key] = (answer, weight)
            self.bytes += weight - (before[1] if before else 0)
            while self.bytes > self.limit:
                _, (_, weight) = self.entries.popitem(last=False)
                self.bytes -= weight


def kept(
    limit_bytes: int = limits.CACHE_BYTES, worth: Callable[[Any], bool] | None = None
) -> Callable[[Callable[P, T]], _Kept[P, T]]:
    """Return a decorator that keeps the answers of a function of hashable arguments.

    Args:
        limit_bytes: Bytes that arguments and answers may hold together; an answer above an eighth of it is not kept.
        worth: Says of an answer whether it may be kept; None keeps every one.

    Example:
        >>> @kept(worth=lambda answer: answer is not None)
        ... def half(number):
        ...     print("computing")
        ...     return number // 2 if number % 2 == 0 else None
        >>> half(4), half(4)
        computing
        (2, 2)
        >>> half(5), half(5)
        computing
        computing
        (None, None)
    """
    return lambda function: _Kept(function, limit_bytes, worth)


def remembered(weigh: Callable[..., int], limit_bytes: int = limits.CACHE_BYTES) -> Callable[[Function], Function]:
    """Return a decorator like ``kept`` for functions that take microseconds: a repeated call is one look-up.

    Args:
        weigh: Bytes of an entry, from the answer and the arguments; bounds that are cheap to compute will do.
        limit_bytes: As for ``kept``; an answer above a quarter of it is not kept.

    Example:
        >>> @remembered(lambda answer, number: 100)
        ... def square(number):
        ...     print("computing")
        ...     return number * number
        >>> square(4), square(4)
        computing
        (16, 16)
    """

    def decorate(function: Function) -> Function:
        young: dict[Hashable, Any] = {}
        old: dict[Hashable, Any] = {}
        weight = 0

        def missed(key: Any) -> Any:
            nonlocal young, old, weight
            answer = old.get(key)
            if answer is None:
                answer = function(*key)
            heavy = weigh(answer, *key)
            if heavy <= limit_bytes // 4:
                if weight + heavy > limit_bytes // 2:
                    old, young, weight = young, {}, 0
                young[key] = answer
                weight += heavy
            return answer

        def call(*key: Any) -> Any:
            answer = young.get(key)
            return missed(key) if answer is None else answer

        def cache_clear() -> None:
            nonlocal young, old, weight
            old, young, weight = {}, {}, 0

        functools.update_wrapper(call, function)
        call.cache_clear = cache_clear  # type: ignore[attr-defined]
        call.entries = lambda: {**old, **young}  # type: ignore[attr-defined]
        return cast(Function, call)

    return decorate
