"""Reading the text form of integer layouts.

Main definitions: ``parse_integer``.

Notation: ``Z[i:4=(6,1), j:6=(1,0) -> offset, bank%32] + (3,0)``; blanks are free, strides and constants may be
negative.
"""

from __future__ import annotations

import re
from typing import NoReturn

from layoutalg.errors import Diagnostic, MalformedError
from layoutalg.zmod.layout import IntegerLayout
from layoutalg.zmod.matrix import transpose

MAX_DIGITS = 4000
"""Longest number that is read; Python itself refuses to print much longer ones."""

_TOKEN = re.compile(r"\s*(?:(?P<number>-?[0-9]+)|(?P<name>[^\W\d]\w*)|(?P<mark>->|[\[\](),:=+%]))")


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
                self.fail("a name, a number or one of [ ] ( ) , : = + % ->", position)
            kind = match.lastgroup or "mark"
            self.items.append((kind, match.group(kind), match.start(kind)))
            position = match.end()

    def fail(self, expected: str, position: int) -> NoReturn:
        shown = self.text[position : position + 20] or "the end"
        raise MalformedError(
            Diagnostic(
                code="LA725",
                what="this is not the text of an integer layout",
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
        """Read ``(1,-2)``, possibly empty."""
        self.take("(", "(")
        values: list[int] = []
        while not self.accept(")"):
            if values:
                self.take(",", ", or )")
            values.append(int(self.take("number", "a number")))
        return tuple(values)


def parse_integer(text: str) -> IntegerLayout:
    """Read an integer layout from its text form; ``parse_integer(str(L)) == L``.

    Args:
        text: As in the module notation.

    Raises:
        MalformedError: LA725 with the character position, or LA724 for a layout that breaks a rule.

    Example:
        >>> parse_integer("Z[i:4=(6), j:3=(-1) -> offset%7] + (2)").table().tolist()
        [2, 1, 0, 6, 1, 0, 6, 5, 0, 6, 5, 4]
    """
    if not isinstance(text, str):
        raise MalformedError(
            Diagnostic(
                code="LA725", what="this is not the text of an integer layout", because=f"must be text, not {text!r}"
            )
        )
    tokens = _Tokens(text)
    if tokens.take("name", "Z") != "Z":
        tokens.fail("Z", tokens.items[0][2])
    tokens.take("[", "[")
    inputs: list[tuple[str, int]] = []
    columns: list[tuple[int, ...]] = []
    while not tokens.accept("->"):
        if inputs:
            tokens.take(",", ", or ->")
        name = tokens.take("name", "an input axis or ->")
        tokens.take(":", ":")
        extent = int(tokens.take("number", "an extent"))
        tokens.take("=", "=")
        inputs.append((name, extent))
        columns.append(tokens.point())
    outputs: list[tuple[str, int]] = []
    while not tokens.accept("]"):
        if outputs:
            tokens.take(",", ", or ]")
        name = tokens.take("name", "an output or ]")
        outputs.append((name, int(tokens.take("number", "a modulus")) if tokens.accept("%") else 0))
    offset = tokens.point() if tokens.accept("+") else (0,) * len(outputs)
    if tokens.next < len(tokens.items):
        tokens.fail("the end", tokens.items[tokens.next][2])
    for (name, _), column in zip(inputs, columns, strict=True):
        if len(column) != len(outputs):
            tokens.fail(f"{len(outputs)} strides for the axis {name}, one per output", 0)
    return IntegerLayout(tuple(inputs), tuple(outputs), transpose(tuple(columns), len(outputs)), offset)
