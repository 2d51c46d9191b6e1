"""Reading the text form of linear layouts.

Main definitions: ``parse_linear``.

Notation: ``F2[lane=(1,0)(0,1), warp= -> row:2, col:2] ^ (1,0)``; blanks are free. ``warp=`` is an axis of size 1.
"""

from __future__ import annotations

import re
from typing import NoReturn

from layoutalg.errors import Diagnostic, MalformedError
from layoutalg.f2.layout import LinearLayout

MAX_DIGITS = 4000
"""Longest number that is read; Python itself refuses to print much longer ones."""

_TOKEN = re.compile(r"\s*(?:(?P<number>[0-9]+)|(?P<name>[^\W\d]\w*)|(?P<mark>->|[\[\](),:=^]))")


class _Tokens:
    """The tokens of a text with a reading position."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.items: list[tuple[str, str, int]] = []
        self.next = 0
        position, end = 0, len(text.rstrip())
        while position < end:
            match = _TOKEN.match(text, position)
            if match is None:
                self.fail("a name, a number or one of [ ] ( ) , : = ^ ->", position)
            kind = match.lastgroup or "mark"
            self.items.append((kind, match.group(kind), match.start(kind)))
            position = match.end()

    def fail(self, expected: str, position: int) -> NoReturn:
        shown = self.text[position : position + 20] or "the end"
        raise MalformedError(
            Diagnostic(
                code="LA201",
                what="this is not the text of a linear layout",
                where=(self.text[:200],),
                because=f"at character {position} expected {expected}, found {shown!r}",
                witness={"position": position},
            )
        )

    def peek(self, mark: str) -> bool:
        return self.next < len(self.items) and self.items[self.next][1] == mark

    def take(self, kind: str, expected: str) -> str:
        """Consume one token of this kind, or of this exact spelling when ``kind`` is a mark."""
        found, spelling, position = self.items[self.next] if self.next < len(self.items) else ("", "", len(self.text))
        if kind not in (found, spelling) or (found == "number" and len(spelling) > MAX_DIGITS):
            self.fail(expected, position)
        self.next += 1
        return spelling

    def accept(self, mark: str) -> bool:
        if self.peek(mark):
            self.next += 1
            return True
        return False

    def point(self) -> tuple[int, ...]:
        """Read ``(1,2)``, possibly empty."""
        self.take("(", "(")
        values: list[int] = []
        while not self.accept(")"):
            if values:
                self.take(",", ", or )")
            values.append(int(self.take("number", "a number")))
        return tuple(values)


def parse_linear(text: str) -> LinearLayout:
    """Read a linear layout from its text form; ``parse_linear(str(L)) == L``.

    Args:
        text: As in the module notation.

    Raises:
        MalformedError: LA201 with the character position, or LA200 for a layout that breaks a rule.

    Example:
        >>> parse_linear("F2[i=(2)(1) -> offset:4] ^ (1)").table().tolist()
        [1, 3, 0, 2]
    """
    if not isinstance(text, str):
        raise MalformedError(
            Diagnostic(
                code="LA201", what="this is not the text of a linear layout", because=f"must be text, not {text!r}"
            )
        )
    tokens = _Tokens(text)
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
