"""Answers that are kept for the next time, bounded by the bytes they take.

Main definitions: ``kept`` (a decorator), ``bytes_of``.

Implementation notes: an entry weighs what its arguments and its answer hold, found by walking through them once. The
entry that was not used for the longest time goes first. A refusal, and an answer that ``worth`` turns down (one that
ran out of time, say), is never kept. Threads may call at the same time; two that ask the same may both compute. After
``fork`` the child starts with an empty cache, because another thread may have been in the middle of changing it.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Generic, ParamSpec, TypeVar

from layoutalg.ground import limits

P = ParamSpec("P")
T = TypeVar("T")


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
