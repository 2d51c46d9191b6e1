"""Check the fields of a frozen dataclass against their annotations.

For plain data (facts, descriptors, working values of a checker). Annotations are read once per class. Lists become
tuples and numpy scalars become Python numbers as the annotation requires, so values stay hashable and comparable.
"""

from __future__ import annotations

import dataclasses
import itertools
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeAlias

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
    for name, kind, plain, convert in _kinds(type(value)):  # type: ignore[arg-type]
        given = getattr(value, name)
        if type(given) is plain:
            continue
        found = convert(given)
        if found is _WRONG:
            because = f"{name} must be {_words_for(kind)}, not {shown(given)}"
            raise MalformedError(Diagnostic(code, "invalid field", (f"{type(value).__name__}.{name}",), because))
        if found is not given:
            object.__setattr__(value, name, found)


_WRONG = object()
_Convert: TypeAlias = Callable[[Any], object]
_PLAIN = (str, bool, bytes)
"""Kinds whose values need no conversion."""
_FROM: dict[Any, Any] = {bool: (bool, np.bool_), bytes: (bytes, bytearray)}
"""Kinds whose values are made from others too."""
_NOUNS = {
    int: ("a 64-bit integer", "64-bit integers"),
    str: ("a string", "strings"),
    bool: ("True or False", "booleans"),
    bytes: ("bytes", "byte strings"),
}


@cache
def _kinds(owner: type) -> tuple[tuple[str, Any, Any, _Convert], ...]:
    """Return the name and kind of each field, the kind again if its values need no conversion, and the converter."""
    hints = typing.get_type_hints(owner)
    kinds = [(field.name, hints[field.name]) for field in dataclasses.fields(owner)]
    return tuple([(name, kind, kind if kind in _PLAIN else None, _converter(kind)) for name, kind in kinds])


def _resolve(kind: Any) -> Any:
    """Resolve type aliases; ``numpy.typing.NDArray`` is one from numpy 2.5 on."""
    while hasattr(alias := typing.get_origin(kind) or kind, "__value__"):
        kind = alias.__value__
    return kind


@cache
def _converter(kind: Any) -> _Convert:
    """Return the function that converts a value to a kind, or returns ``_WRONG``."""
    kind = _resolve(kind)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return lambda value: value
    if kind is int:
        return _integer
    if origin is typing.Literal:
        return lambda value: value if isinstance(value, str) and value in arguments else _WRONG
    if origin in (typing.Union, types.UnionType):
        return _union(tuple(map(_converter, arguments)))
    if origin is tuple:
        return _tuple(arguments)
    if kind in _FROM:
        accepted = _FROM[kind]
        return lambda value: kind(value) if isinstance(value, accepted) else _WRONG
    wanted = Mapping if origin is dict else origin or kind
    return lambda value: value if isinstance(value, wanted) else _WRONG


def _integer(value: Any) -> object:
    if type(value) is not int:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            return _WRONG
        value = int(value)
    return value if -(2**63) <= value < 2**64 else _WRONG


def _union(converters: tuple[_Convert, ...]) -> _Convert:
    def convert(value: object) -> object:
        for each in converters:
            found = each(value)
            if found is not _WRONG:
                return found
        return _WRONG

    return convert


def _tuple(arguments: tuple[Any, ...]) -> _Convert:
    many = len(arguments) == 2 and arguments[1] is Ellipsis
    converters = [_converter(argument) for argument in arguments if argument is not Ellipsis]
    integers = set(converters) == {_integer}

    def convert(value: object) -> object:
        if isinstance(value, np.ndarray) and value.ndim:
            value = value.tolist()
        if not isinstance(value, (tuple, list)) or not (many or len(value) == len(converters)):
            return _WRONG
        if integers and type(value) is tuple and set(map(type, value)) == {int}:  # tables: no step for each entry
            return value if min(value) >= -(2**63) and max(value) < 2**64 else _WRONG
        same, entries = type(value) is tuple, []
        for each, entry in zip(itertools.cycle(converters) if many else converters, value, strict=False):
            found = each(entry)
            if found is _WRONG:
                return _WRONG
            same = same and found is entry
            entries.append(found)
        return value if same else tuple(entries)

    return convert


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
    return f"{name} values" if plural else f"{'an' if name[:1] in 'AEIOU' else 'a'} {name}"
