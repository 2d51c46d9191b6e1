"""Checks of what strategies are given, and the error they raise: at the call, so that it points at the user's line."""

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
    """A strategy was asked for what it cannot draw; both a ``LayoutError`` and Hypothesis's ``InvalidArgument``."""


def refused(because: str) -> InvalidStrategyError:
    """Return the error of a strategy that cannot be made."""
    return InvalidStrategyError(Diagnostic("LA455", "Invalid argument of a strategy", because=because))


def whole(value: object, name: str, low: int = 1, high: int | None = None) -> int:
    """Return an integer of [low, high], or refuse it."""
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
    """Refuse what is no strategy."""
    if not isinstance(value, st.SearchStrategy):
        raise refused(f"{name}={shown(value)} must be a Hypothesis strategy")


def one_of(value: Choice, name: str, known: Collection[Choice]) -> Choice:
    """Return one of the known values, or refuse it."""
    if not isinstance(value, str) or value not in known:
        raise refused(f"{name}={shown(value)} must be one of {', '.join(map(repr, known))}")
    return value


def several(value: object, name: str, known: Collection[str]) -> tuple[str, ...]:
    """Return some of the known names, at least one; a single name stands for itself."""
    chosen = (value,) if isinstance(value, str) else value
    if not isinstance(chosen, (tuple, list, set, frozenset)) or not chosen:
        raise refused(f"{name}={shown(value)} must hold at least one of {', '.join(map(repr, known))}")
    for entry in chosen:
        one_of(entry, f"{name}: ", known)
    return tuple(entry for entry in known if entry in chosen)
