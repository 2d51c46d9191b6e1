"""Frozen dataclasses whose checks and documents follow from their declaration.

A field is stated once: its annotation is what the constructor checks, and the class header names the entries of the
document. ``json`` lists them in order: a field or property; ``key=path`` for another name or an attribute of a field;
``name?`` is left out at its default. Without ``json`` the document has all fields. Further keywords of the header, such
as ``schema``, are constant entries in front.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from operator import attrgetter
from typing import Any, ClassVar

from layoutalg.ground.errors import plain
from layoutalg.ground.kinds import checked_kinds


class Checked:
    """Base of dataclasses whose fields are checked against their annotations; ``code`` is that of the error.

    Example:
        >>> @dataclasses.dataclass(frozen=True)
        ... class Box(Checked, code="LA374"):
        ...     extents: tuple[int, ...]
        >>> Box([64, 8])
        Box(extents=(64, 8))
    """

    __slots__ = ()
    _code: ClassVar[str] = "LA374"

    def __init_subclass__(cls, code: str = "") -> None:
        """Keep the code. Runs twice for slotted dataclasses, which are recreated without the keywords."""
        super().__init_subclass__()
        if code:
            cls._code = code

    def __post_init__(self) -> None:
        checked_kinds(self, self._code)
        self._validate()

    def _validate(self) -> None:
        """Check what the annotations do not say."""


class Record(Checked):
    """Base of dataclasses with a document.

    Example:
        >>> @dataclasses.dataclass(frozen=True)
        ... class Step(Record, step="move", json="constant columns=words"):
        ...     words: tuple[int, ...]
        ...     constant: int
        >>> Step((2, 1), 3).to_json()
        {'step': 'move', 'constant': 3, 'columns': [2, 1]}
    """

    __slots__ = ()
    _entries: ClassVar[tuple[str, ...]] = ()
    _constants: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls, code: str = "", json: str = "", **constants: str) -> None:
        """Keep the header's declaration of the document."""
        super().__init_subclass__(code)
        if json:
            cls._entries = tuple(json.split())
        if constants:
            cls._constants = constants

    def to_json(self) -> dict[str, object]:
        """Return the value as JSON-ready data."""
        fields = {entry.name: entry.default for entry in dataclasses.fields(self)}  # type: ignore[arg-type]
        document: dict[str, object] = dict(self._constants)
        for entry in self._entries or fields:
            key, _, path = entry.rstrip("?").partition("=")
            value = attrgetter(path or key)(self)
            if not entry.endswith("?") or value != fields[key]:
                document[key] = json_of(value)
        return document


def json_of(value: Any) -> Any:
    """Return a field's value in a document: documents of records, lists of tuples, texts of layouts.

    Example:
        >>> json_of((1, (2, None), b"ab"))
        [1, [2, None], '6162']
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, (tuple, list)):
        return [entry if type(entry) is int else json_of(entry) for entry in value]
    if isinstance(value, Mapping):
        nested = any(hasattr(entry, "to_json") for entry in value.values())
        return {key: json_of(entry) for key, entry in value.items()} if nested else plain(value)
    return value.hex() if isinstance(value, bytes) else str(value)
