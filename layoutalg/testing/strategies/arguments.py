"""Check the arguments of strategies at the call, so that the error points at the user's line."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.errors import InvalidArgument

from layoutalg.ground.check import Checker
from layoutalg.ground.errors import Diagnostic, MalformedError, shown

Choice = TypeVar("Choice")
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


def strategy(value: object, name: str) -> None:
    """Refuse a value that is not a strategy."""
    if not isinstance(value, st.SearchStrategy):
        raise refused(f"{name}={shown(value)} must be a Hypothesis strategy")


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
