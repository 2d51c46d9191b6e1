"""Cursor for parsing CuTe text: characters, integers, and errors with a caret under the position.

Nothing is evaluated. Integers are accepted in every spelling that CuTe prints: ``128``, ``_128``,
``Int<128>``, ``C<128>``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NoReturn, TypeVar

from layoutalg.cute.inttuple import INT_LIMIT
from layoutalg.ground.errors import Diagnostic, LayoutError, MalformedError
from layoutalg.ground.limits import NOTATION_CHARACTERS, TUPLE_MODES
from layoutalg.ground.text import caret

Value = TypeVar("Value")

STATIC_AHEAD = re.compile(r"_(?=-?[0-9])|(?:cute\s*::\s*)?(?:Int|C|constant)\s*<\s*")
INTEGER_AHEAD = r"(?:_|(?:cute\s*::\s*)?(?:Int|C|constant)\s*<\s*)?-?[0-9]+(?:\s*>)?"


class Cursor:
    """A position in a text. Every method reads one construct and moves past it.

    Args:
        text: The text, quoted in errors.
        at: Where to begin.
        stop: Where to end; None for the end of the text.
    """

    def __init__(self, text: str, at: int = 0, stop: int | None = None) -> None:
        if not isinstance(text, str):
            because = f"text must be a str, not {type(text).__name__}"
            raise MalformedError(Diagnostic("LA190", "the notation is malformed", because=because))
        if len(text) > NOTATION_CHARACTERS:
            because = f"{len(text)} characters, the limit is {NOTATION_CHARACTERS}"
            raise MalformedError(Diagnostic("LA191", "the notation is too long", because=because))
        self.text = text
        self.at = at
        self.stop = len(text) if stop is None else stop
        self.modes = 0

    def fail(self, because: str, at: int | None = None, code: str = "LA190") -> NoReturn:
        """Raise an error at a position, by default the cursor."""
        raise MalformedError(
            Diagnostic(
                code,
                "the notation is malformed" if code == "LA190" else "the notation exceeds a limit",
                (caret(self.text, self.at if at is None else at),),
                because,
            )
        )

    def blanks(self) -> None:
        """Skip blanks."""
        while self.at < self.stop and self.text[self.at].isspace():
            self.at += 1

    def peek(self) -> str:
        """Return the next non-blank character, or the empty string at the end."""
        self.blanks()
        return self.text[self.at : min(self.at + 1, self.stop)]

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Match at the cursor and move past the match; None, without moving, if it does not match."""
        self.blanks()
        found = pattern.match(self.text, self.at, self.stop)
        if found is not None:
            self.at = found.end()
        return found

    def found(self) -> str:
        """Describe the text at the cursor, for messages."""
        char = self.peek()
        return repr(char) if char else "the end of the text"

    def expect(self, char: str, context: str) -> None:
        """Read one character."""
        if self.peek() != char:
            self.fail(f"expected {char!r} {context}, found {self.found()}")
        self.at += 1

    def end(self) -> None:
        """Raise if anything follows the value."""
        if self.peek():
            self.fail(f"expected the end of the text, found {self.found()}")

    def count(self) -> None:
        """Count one leaf against the limit."""
        self.modes += 1
        if self.modes > 2 * TUPLE_MODES:
            self.fail(f"more than {TUPLE_MODES} modes", code="LA191")

    def integer(self, name: str) -> int:
        """Read an integer: decimal, ``_128``, ``Int<128>`` or ``C<128>``."""
        static = STATIC_AHEAD.match(self.text, self.at, self.stop)
        if static is None:
            return self.decimal(name)
        self.at = static.end()
        value = self.decimal(name)
        if static[0][0] != "_":
            self.expect(">", "after the integer")
        return value

    def decimal(self, name: str) -> int:
        """Read a decimal integer."""
        start = self.at
        stop = start + (self.text[start : start + 1] == "-")
        first = stop
        while stop < self.stop and self.text[stop] in "0123456789":
            stop += 1
        if stop == first:
            self.fail(f"expected {name}, found {self.found()}")
        if stop - first > 20 or not -INT_LIMIT <= int(self.text[start:stop]) < INT_LIMIT:
            self.fail("the integer does not fit 64 bits", start)
        self.at = stop
        return int(self.text[start:stop])

    def build(self, make: Callable[[], Value], start: int) -> Value:
        """Build the value; an error points at the place where it was written."""
        try:
            return make()
        except LayoutError as error:
            inner = error.diagnostic
            raise type(error)(
                Diagnostic(
                    code=inner.code,
                    what=inner.what,
                    where=(caret(self.text, start),),
                    because=inner.because,
                    witness=inner.witness,
                    repairs=inner.repairs,
                    source=inner.source,
                )
            ) from error
