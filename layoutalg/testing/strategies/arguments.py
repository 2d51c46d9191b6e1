"""Check the arguments of strategies at the call, so that the error points at the user's line."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from hypothesis import strategies as st
from hypothesis.errors import InvalidArgument

from layoutalg.ground.check import Checker
from layoutalg.ground.errors import Diagnostic, MalformedError, shown

Choice = TypeVar("Choice")
P = ParamSpec("P")
Drawn = TypeVar("Drawn")
_CHECK = Checker("LA455")


class InvalidStrategyError(MalformedError, InvalidArgument):
    """An invalid strategy argument; both a ``LayoutError`` and Hypothesis's ``InvalidArgument``."""


def refused(because: str) -> InvalidStrategyError:
    """Return the error for an invalid argument."""
    return InvalidStrategyError(Diagnostic("LA455", "invalid argument of a strategy", because=because))


def whole(value: object, name: str, low: int = 1, high: int | None = None) -> int:
    """Return an integer in [low, high], or refuse it."""
    try:
        return _CHECK.integer(value, name, low, None if high is None else high + 1)
    except MalformedError:
        bounds = f"at least {low}" if high is None else f"in [{low}, {high}]"
        raise refused(f"{name}={shown(value)} must be an integer {bounds}") from None


def flag(value: object, name: str) -> bool:
    """Return True or False, or refuse the value."""
    if not isinstance(value, bool):
        raise refused(f"{name}={shown(value)} must be True or False")
    return value


def one_of(value: Choice, name: str, known: Collection[Choice]) -> Choice:
    """Return one of the known values, or refuse it."""
    if not isinstance(value, str) or value not in known:
        raise refused(f"{name}={shown(value)} must be one of {', '.join(map(repr, known))}")
    return value


def several(value: object, name: str, known: Collection[str]) -> tuple[str, ...]:
    """Return one or more of the known names; a bare name counts as a list of one."""
    chosen = (value,) if isinstance(value, str) else value
    if not isinstance(chosen, (tuple, list, set, frozenset)) or not chosen:
        raise refused(f"{name}={shown(value)} must be one or more of {', '.join(map(repr, known))}")
    for entry in chosen:
        one_of(entry, f"{name}: ", known)
    return tuple(entry for entry in known if entry in chosen)


def checked(**known: Any) -> Callable[[Callable[P, Drawn]], Callable[P, Drawn]]:
    """Check the arguments of a strategy at the call by their annotations: integers, flags, strategies and names.

    Args:
        known: Argument -> its (least, greatest) integer, by default at least 1; or the names it may be.
    """

    def wrap(strategy: Callable[P, Drawn]) -> Callable[P, Drawn]:
        signature = inspect.signature(strategy)

        @wraps(strategy)
        def call(*args: P.args, **kwargs: P.kwargs) -> Drawn:
            for name, value in signature.bind(*args, **kwargs).arguments.items():
                kind, _, optional = str(signature.parameters[name].annotation).partition(" | ")
                if value is None and optional:
                    continue
                if kind == "int":
                    whole(value, name, *known.get(name, ()))
                elif kind == "bool":
                    flag(value, name)
                elif kind.startswith("st.") and not isinstance(value, st.SearchStrategy):
                    raise refused(f"{name}={shown(value)} must be a Hypothesis strategy")
                elif name in known:
                    one_of(value, name, known[name])
            return strategy(*args, **kwargs)

        return call

    return wrap
