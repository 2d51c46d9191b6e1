"""Result caches bounded in bytes.

Implementation notes: the weight of an entry is the size of its arguments and answer, measured by one walk through them.
Eviction is least recently used. Exceptions, and answers that ``worth`` rejects (such as timeouts), are not cached.
Threads may call concurrently; two asking the same question may both compute it. A forked child starts with an empty
cache, since another thread may have been modifying it.
``remembered`` has no lock and no LRU order but two generations: new answers, and hits in the old generation, go into
the young one, which becomes the old one at half the limit. Races cost a recomputation or an early generation change.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final, Generic, ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])

CACHE_BYTES: Final = 16 * 2**20
"""bytes: cached arguments and answers of one function"""


def bytes_of(*values: object) -> int:
    """Return the approximate size of values in bytes; shared parts count once."""
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
    """A function and its cached answers."""

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
            return  # one answer must not evict all others
        with self.lock:
            before = self.entries.pop(key, None)
            self.entries[key] = (answer, weight)
            self.bytes += weight - (before[1] if before else 0)
            while self.bytes > self.limit:
                _, (_, weight) = self.entries.popitem(last=False)
                self.bytes -= weight


def kept(
    limit_bytes: int = CACHE_BYTES, worth: Callable[[Any], bool] | None = None
) -> Callable[[Callable[P, T]], _Kept[P, T]]:
    """Return a decorator that caches the answers of a function with hashable arguments.

    Args:
        limit_bytes: Total size of arguments and answers; an answer above an eighth of it is not cached.
        worth: Whether to cache an answer; None caches all.
    """
    return lambda function: _Kept(function, limit_bytes, worth)


def remembered(weigh: Callable[..., int], limit_bytes: int = CACHE_BYTES) -> Callable[[Function], Function]:
    """Return a decorator like ``kept`` for microsecond functions: a repeated call is one dict look-up.

    Args:
        weigh: Size of an entry in bytes, from the answer and the arguments; a cheap upper bound will do.
        limit_bytes: As for ``kept``; an answer above a quarter of it is not cached.
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
