"""Read Triton's layout attributes.

Notation: ``#ttg.KIND<{key = value, ...}>``, optionally as a definition ``#name = #ttg.KIND<...>``. Values are integers,
``true``, ``false``, nested lists of integers, ``{key = value, ...}``, attributes and names of attributes defined
earlier. ``padded_shared<[interval:+padding, ...] {...}>`` has pairs before the braces,
``shared_linear<{...}, alignment = 16>`` an alignment after them, which is ignored;
``#ttng.tensor_memory_encoding<blockM = 128, ...>`` has no braces.

References: Triton 3.9.0 (``TritonGPUAttrDefs``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from layoutalg.ground.text import Grammar, Tokens
from layoutalg.notation.bases import CODE, WHAT

Value: TypeAlias = "bool | int | list[Any] | Attribute | dict[str, Any]"
MARKS = ("#", ".", "<", ">", "{", "}", "[", "]", "(", ")", ",", "=", ":", "+")
GRAMMAR = Grammar(MARKS, False, CODE, WHAT)
LIST_DEPTH = 3
PARENTS = 16
BARE = ("tensor_memory_encoding", "tensor_memory_scales_encoding")
"""Kinds whose entries have no braces."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute as written: its kind, its padding pairs, and the entries in its braces."""

    kind: str
    pairs: tuple[tuple[int, int], ...]
    entries: Mapping[str, Value]


def read_attribute(text: str) -> Attribute:
    """Parse an attribute, without checking its entries.

    Raises: MalformedError: LA710.

    Example:
        >>> read_attribute("#s = #ttg.padded_shared<[4:+1] {order = [0], shape = [8]}>")
        Attribute(kind='padded_shared', pairs=((4, 1),), entries={'order': [0], 'shape': [8]})
    """
    tokens = Tokens(text, GRAMMAR)
    if tokens.peek("#") and tokens.peek("=", 2):
        tokens.next = 3
    found = attribute(tokens, {})
    if tokens.next < len(tokens.items):
        tokens.fail("the end", tokens.position())
    return found


def attribute(tokens: Tokens, names: Mapping[str, Attribute], level: int = 0) -> Attribute:
    """Read one attribute, or the name of one defined earlier.

    Args:
        tokens: The text, with the cursor at the attribute.
        names: Attributes by name, without ``#``.
        level: Nesting depth of this attribute.

    Raises: MalformedError: LA710.
    """
    place = tokens.position()
    if level > PARENTS:
        tokens.fail(f"attributes at most {PARENTS} deep", place)
    marked = tokens.accept("#")
    kind = tokens.take("name", "a kind of layout")
    if kind in ("ttg", "ttng", "triton_gpu", "triton_nvidia_gpu") and tokens.accept("."):
        kind = tokens.take("name", "a kind of layout")
    elif marked and not tokens.peek("<"):
        if kind not in names:
            known = f", one of {', '.join('#' + name for name in names)}," if names else ""
            tokens.fail(f"an attribute, or the name of one{known} that the text defines earlier", place)
        return names[kind]
    tokens.take("<", "<")
    pairs = _pairs(tokens) if tokens.peek("[") else ()
    if kind in BARE and not tokens.peek("{"):
        return Attribute(kind, pairs, _entries(tokens, names, level, ">"))
    tokens.take("{", "{")
    entries = _entries(tokens, names, level, "}")
    if kind == "shared_linear" and tokens.accept(","):
        tokens.take("alignment", "alignment")
        tokens.take("=", "=")
        tokens.take("number", "a number")
    tokens.take(">", ">")
    return Attribute(kind, pairs, entries)


def _pairs(tokens: Tokens) -> tuple[tuple[int, int], ...]:
    """Read ``[interval:+padding, ...]``."""
    tokens.take("[", "[")
    pairs: list[tuple[int, int]] = []
    while not tokens.accept("]"):
        if pairs:
            tokens.take(",", ", or ]")
        interval = _number(tokens)
        tokens.take(":", ":+")
        tokens.take("+", ":+")
        pairs.append((interval, _number(tokens)))
    return tuple(pairs)


def _entries(tokens: Tokens, names: Mapping[str, Attribute], level: int, closing: str) -> dict[str, Value]:
    """Read ``key = value, ...`` and the closing mark."""
    entries: dict[str, Value] = {}
    while not tokens.accept(closing):
        if entries:
            tokens.take(",", f", or {closing}")
        place = tokens.position()
        key = tokens.take("name", f"the name of an entry or {closing}")
        if key in entries:
            tokens.fail("each name once", place)
        tokens.take("=", "=")
        entries[key] = _value(tokens, names, 0, level)
    return entries


def _value(tokens: Tokens, names: Mapping[str, Attribute], depth: int, level: int) -> Value:
    if tokens.peek("true") or tokens.peek("false"):
        return tokens.take("name", "a value") == "true"
    place = tokens.position()
    if tokens.peek("#"):
        return attribute(tokens, names, level + 1)
    if depth == 0 and tokens.accept("{"):
        return _entries(tokens, names, level, "}") if level < PARENTS else tokens.fail("less nesting", place)
    if not tokens.accept("["):
        return _number(tokens)
    if depth >= LIST_DEPTH:
        tokens.fail(f"lists at most {LIST_DEPTH} deep", place)
    values: list[Value] = []
    while not tokens.accept("]"):
        if values:
            tokens.take(",", ", or ]")
        values.append(_value(tokens, names, depth + 1, level))
    return values


def _number(tokens: Tokens) -> int:
    place = tokens.position()
    digits = tokens.take("number", "an integer, true, false or a list")
    if digits != "0" and digits.startswith("0"):
        tokens.fail("a number without leading zeros", place)
    return int(digits)
