"""A fact of an explanation: name, lines, and the same as data."""

from __future__ import annotations

from typing import NamedTuple


class Fact(NamedTuple):
    """A named fact: its lines, and the same as JSON-ready data."""

    name: str
    lines: tuple[str, ...]
    value: object


def said(name: str, text: str | list[str], value: object = None) -> Fact:
    """Return a fact; without ``value``, its data are its lines.

    Example:
        >>> said("size", "32 elements").value
        '32 elements'
    """
    lines = tuple(text.split("\n")) if isinstance(text, str) else tuple(text)
    given = (lines[0] if len(lines) == 1 else list(lines)) if value is None else value
    return Fact(name, lines, given)
