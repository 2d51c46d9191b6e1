"""Parse the text form of linear layouts.

Notation: ``F2[lane=(1,0)(0,1), warp= -> row:2, col:2] ^ (1,0)``; whitespace is free. ``warp=`` is an axis of size 1.
"""

from __future__ import annotations

from layoutalg.f2.layout import LinearLayout
from layoutalg.ground.errors import shown
from layoutalg.ground.text import Grammar, Tokens

_GRAMMAR = Grammar(("[", "]", "(", ")", ",", ":", "=", "^", "->"), False, "LA201", "cannot parse linear layout")


def parse_linear(text: str) -> LinearLayout:
    """Parse a linear layout; ``parse_linear(str(L)) == L``.

    Example:
        >>> parse_linear("F2[i=(2)(1) -> offset:4] ^ (1)").table().tolist()
        [1, 3, 0, 2]
    """
    if not isinstance(text, str):
        raise _GRAMMAR.error(text, f"must be text, not {shown(text)}")
    tokens = Tokens(text, _GRAMMAR)
    if tokens.take("name", "F2") != "F2":
        tokens.fail("F2", tokens.items[0][2])
    tokens.take("[", "[")
    bases: list[tuple[str, list[tuple[int, ...]]]] = []
    while not tokens.accept("->"):
        if bases:
            tokens.take(",", ", or ->")
        name = tokens.take("name", "an input axis or ->")
        tokens.take("=", "=")
        images: list[tuple[int, ...]] = []
        while tokens.peek("("):
            images.append(tokens.point())
        bases.append((name, images))
    out_dims: list[tuple[str, int]] = []
    while not tokens.accept("]"):
        if out_dims:
            tokens.take(",", ", or ]")
        name = tokens.take("name", "an output axis or ]")
        tokens.take(":", ":")
        out_dims.append((name, int(tokens.take("number", "a size"))))
    offset = tokens.point() if tokens.accept("^") else None
    if tokens.next < len(tokens.items):
        tokens.fail("the end", tokens.items[tokens.next][2])
    return LinearLayout.from_bases(bases, out_dims, offset)
