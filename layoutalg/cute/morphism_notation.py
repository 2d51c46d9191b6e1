"""Parse a morphism: the inverse of its ``str``.

Notation: ``domain --(images)--> codomain``, followed by ``:pitch`` if padded; an image is a position or None.
"""

from __future__ import annotations

from layoutalg.cute.inttuple import IntTuple
from layoutalg.cute.morphism import Morphism
from layoutalg.ground.limits import TUPLE_DEPTH
from layoutalg.ground.text import Grammar, Tokens

GRAMMAR = Grammar(("(", ")", ",", ":", "--", "-->"), False, "LA190", "the notation is malformed")


def parse_morphism(text: str) -> Morphism:
    """Return the morphism written as ``text``.

    Raises: MalformedError: LA190, LA100, LA180 to LA183, LA610.

    Example:
        >>> parse_morphism("(6,2) --(0,None)--> (6,2):(1,10)")
        Morphism(domain=(6, 2), codomain=(6, 2), map=(0, None), pitch=(1, 10))
    """
    tokens = Tokens(text, GRAMMAR)
    domain = _nested(tokens, 0)
    tokens.take("--", "--")
    tokens.take("(", "(")
    images: list[int | None] = []
    while not tokens.accept(")"):
        if images:
            tokens.take(",", ", or )")
        images.append(None if tokens.accept("None") else int(tokens.take("number", "a position or None")))
    tokens.take("-->", "-->")
    codomain = _nested(tokens, 0)
    pitch = _nested(tokens, 0) if tokens.accept(":") else None
    if tokens.next < len(tokens.items):
        tokens.fail("the end", tokens.position())
    return Morphism(domain, codomain, tuple(images), pitch)


def _nested(tokens: Tokens, level: int) -> IntTuple:
    if not tokens.accept("("):
        return int(tokens.take("number", "a number or ("))
    if level >= TUPLE_DEPTH:
        tokens.fail(f"at most {TUPLE_DEPTH} levels", tokens.position())
    entries: list[IntTuple] = []
    while not tokens.accept(")"):
        if entries:
            tokens.take(",", ", or )")
        entries.append(_nested(tokens, level + 1))
    return tuple(entries)
