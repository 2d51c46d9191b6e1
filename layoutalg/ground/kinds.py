"""Check the fields of a frozen dataclass against their annotations.

For plain data (facts, descriptors, working values of a checker). Annotations are read once per class. Lists become
tuples and numpy scalars become Python numbers as the annotation requires, so values stay hashable and comparable.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from layoutalg.ground.errors import Diagnostic, MalformedError, shown


def checked_kinds(value: Any, code: str) -> None:
    """Check and normalise the fields of a frozen dataclass; call this in ``__post_init__``.

    Raises: MalformedError: With ``code``; names the field, its annotation and the value.

    Example:
        >>> @dataclasses.dataclass(frozen=True)
        ... class Pair:
        ...     name: str
        ...     sizes: tuple[int, ...]
        ...     def __post_init__(self) -> None:
        ...         checked_kinds(self, "LA374")
        >>> Pair("box", [64, np.int64(8)])
        Pair(name='box', sizes=(64, 8))
        >>> Pair("box", "64")
        Traceback (most recent call last):
        layoutalg.ground.errors.MalformedError: LA374 invalid field
          in     Pair.sizes
          since  sizes must be a tuple of 64-bit integers, not '64'
    """
    for name, kind in _kinds(type(value)):  # type: ignore[arg-type]
        given = getattr(value, name)
        if type(given) is kind and kind in _PLAIN:
            continue
        found = _convert(kind, given)
        if found is _WRONG:
            because = f"{name} must be {_words_for(kind)}, not {shown(given)}"
            raise MalformedError(Diagnostic(code, "invalid field", (f"{type(value).__name__}.{name}",), because))
        if found is not given:
            object.__setattr__(value, name, found)


_WRONG = object()
_PLAIN = (str, bool, bytes)
"""Kinds whose values need no conversion."""
_NOUNS = {
    int: ("a 64-bit integer", "64-bit integers"),
    str: ("a string", "strings"),
    bool: ("True or False", "booleans"),
    bytes: ("bytes", "byte strings"),
}


@cache
def _kinds(owner: type) -> tuple[tuple[str, Any], ...]:
    hints = typing.get_type_hints(owner)
    return tuple((field.name, hints[field.name]) for field in dataclasses.fields(owner))


def _resolve(kind: Any) -> Any:
    """Resolve type aliases; ``numpy.typing.NDArray`` is one from numpy 2.5 on."""
    while hasattr(alias := typing.get_origin(kind) or kind, "__value__"):
        kind = alias.__value__
    return kind


@cache
def _parts(kind: Any) -> tuple[Any, Any, tuple[Any, ...]]:
    """Return an annotation resolved, with its origin and arguments."""
    kind = _resolve(kind)
    return kind, typing.get_origin(kind), typing.get_args(kind)


def _convert(kind: Any, value: object) -> object:
    """Return the value converted to that kind, or ``_WRONG``."""
    kind, origin, arguments = _parts(kind)
    if kind is Any:
        return value
    if kind is bool:
        return bool(value) if isinstance(value, (bool, np.bool_)) else _WRONG
    if kind is int:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not -(2**63) <= value < 2**64:
            return _WRONG
        return int(value)
    if origin is typing.Literal:
        return value if isinstance(value, str) and value in arguments else _WRONG
    if origin in (typing.Union, types.UnionType):
        for argument in arguments:
            found = _convert(argument, value)
            if found is not _WRONG:
                return found
        return _WRONG
    if origin is tuple:
        return _convert_tuple(arguments, value)
    if kind is type(None):
        return None if value is None else _WRONG
    if kind is bytes:
        return bytes(value) if isinstance(value, (bytes, bytearray)) else _WRONG
    if origin is dict or origin is Mapping:
        return value if isinstance(value, Mapping) else _WRONG
    return value if isinstance(value, origin or kind) else _WRONG


def _convert_tuple(arguments: tuple[Any, ...], value: object) -> object:
    if isinstance(value, np.ndarray) and value.ndim:
        value = value.tolist()
    if not isinstance(value, (tuple, list)):
        return _WRONG
    many = len(arguments) == 2 and arguments[1] is Ellipsis
    if many and arguments[0] is int and type(value) is tuple and set(map(type, value)) == {int}:
        return value if min(value) >= -(2**63) and max(value) < 2**64 else _WRONG  # tables: no step for each entry
    if not many and len(value) != len(arguments):
        return _WRONG
    entries = [_convert(arguments[0] if many else arguments[index], entry) for index, entry in enumerate(value)]
    if any(entry is _WRONG for entry in entries):
        return _WRONG
    same = type(value) is tuple and all(new is old for new, old in zip(entries, value, strict=True))
    return value if same else tuple(entries)


def _words_for(kind: Any, plural: bool = False) -> str:
    """Return the kind in words."""
    kind = _resolve(kind)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind in _NOUNS:
        return _NOUNS[kind][plural]
    if kind is type(None):
        return "None"
    if origin is typing.Literal:
        return "one of " + ", ".join(arguments)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_words_for(argument, plural) for argument in arguments)
    if origin is tuple:
        noun = "tuples" if plural else "a tuple"
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return f"{noun} of {_words_for(arguments[0], True)}"
        return f"{noun} of ({', '.join(_words_for(argument) for argument in arguments)})"
    name = getattr(origin or kind, "__name__", str(kind))
    return f"{name} values" if plural else f"a {name}"
