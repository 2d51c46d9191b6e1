"""Composition operators ``f @ g`` and ``g.then(f)``, for every pair of types that can be composed.

Each family registers its compositions when it is imported; subclasses inherit them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from layoutalg.ground.errors import Diagnostic, MalformedError, shown

Rule: TypeAlias = Callable[[Any, Any], Any]
Registered = TypeVar("Registered", bound=Rule)

_RULES: dict[tuple[type, type], Rule] = {}


def composes(outer: type, inner: type) -> Callable[[Registered], Registered]:
    """Register the decorated function ``(outer, inner)`` as the composition of these types.

    Args:
        outer: Type of the value applied last.
        inner: Type of the value applied first.

    Example:
        >>> class Shift(int): pass
        >>> @composes(Shift, Shift)
        ... def added(outer, inner): return Shift(outer + inner)
        >>> after(Shift(2), Shift(3))
        5
    """

    def register(rule: Registered) -> Registered:
        _RULES[outer, inner] = rule
        return rule

    return register


def rule_for(outer: type, inner: type) -> Rule | None:
    """Return the function that composes values of these types, or None."""
    rule = _RULES.get((outer, inner))
    if rule is not None:
        return rule
    pairs = ((above, below) for above in outer.__mro__ for below in inner.__mro__)
    return next((_RULES[pair] for pair in pairs if pair in _RULES), None)


def after(outer: object, inner: object) -> Any:
    """Return the composition ``outer @ inner``, which applies ``inner`` first.

    Example:
        >>> from layoutalg.cute import CuteLayout
        >>> after("4:1", CuteLayout(4))
        Traceback (most recent call last):
        layoutalg.ground.errors.MalformedError: LA192 these values do not compose
          since  cannot compose '4:1' after a CuteLayout; use layoutalg.parse for text
    """
    rule = rule_for(type(outer), type(inner))
    if rule is not None:
        return rule(outer, inner)
    ours = [any(base.__module__.startswith("layoutalg.") for base in type(value).__mro__) for value in (outer, inner)]
    hint = ""
    if isinstance(outer, str) or isinstance(inner, str):
        hint = "; use layoutalg.parse for text"
    elif all(ours):
        hint = "; layoutalg.compose(outer, inner, widen=True) may find a common family"
    names = [
        f"a {type(value).__name__}" if mine else shown(value) for value, mine in zip((outer, inner), ours, strict=True)
    ]
    because = f"cannot compose {names[0]} after {names[1]}{hint}"
    raise MalformedError(Diagnostic("LA192", "these values do not compose", because=because))


def then(inner: object, outer: object) -> Any:
    """Return ``outer @ inner``, or raise if they do not compose.

    Args:
        inner: The value whose method this is, applied first.
        outer: Applied last.
    """
    if any(base.__module__.partition(".")[0] == "layoutalg" for base in type(outer).__mro__):
        for first, name, second in ((outer, "__matmul__", inner), (inner, "__rmatmul__", outer)):
            method = getattr(type(first), name, None)
            answer = NotImplemented if method is None else method(first, second)
            if answer is not NotImplemented:
                return answer
    hint = "; use layoutalg.parse for text" if isinstance(outer, str) else ""
    because = f"cannot compose a {type(inner).__name__} with {shown(outer)}{hint}"
    raise MalformedError(Diagnostic("LA192", "these values do not compose", ("then",), because))
