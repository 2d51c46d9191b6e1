"""Tokenizer for short notations; errors point at the position."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from layoutalg.ground.errors import Diagnostic, MalformedError, shown
from layoutalg.ground.limits import NOTATION_CHARACTERS, NOTATION_DIGITS
from layoutalg.ground.text import caret


@dataclass(frozen=True, slots=True)
class Grammar:
    """The tokens of a notation, and the error of its reader.

    Args:
        marks: The punctuation.
        signed: Whether numbers may have a minus sign.
        code: Error code.
        what: Headline of the error.
    """

    marks: tuple[str, ...]
    signed: bool
    code: str
    what: str

    def pattern(self) -> re.Pattern[str]:
        """Return the regular expression of one token with leading blanks."""
        marks = "|".join(re.escape(mark) for mark in sorted(self.marks, key=len, reverse=True))
        number = "-?[0-9]+" if self.signed else "[0-9]+"
        # a superset of the identifiers, some of whose letters \w does not match; the reader checks each name
        name = r"[^\s!-/:-@\[-^`{-\x7f][^\s!-/:-@\[-^`{-\x7f]*"
        return re.compile(rf"\s*(?:(?P<number>{number})|(?P<mark>{marks})|(?P<name>{name}))")

    def error(self, text: object, because: str, position: int | None = None) -> MalformedError:
        """Return the error of this notation."""
        where: tuple[str, ...] = ()
        if isinstance(text, str):
            where = (text[:200] if position is None else caret(text, position),)
        witness = None if position is None else {"position": position}
        return MalformedError(Diagnostic(self.code, self.what, where, because, witness))


class Tokens:
    """The tokens of a text with a reading position.

    Args:
        text: The text.
        grammar: Its marks and its error.
        start: Where the tokens begin.
        stop: Where they end; None for the end of the text.
    """

    def __init__(self, text: object, grammar: Grammar, start: int = 0, stop: int | None = None) -> None:
        self.grammar = grammar
        if not isinstance(text, str):
            raise grammar.error(text, f"must be text, not {shown(text)}")
        self.stop = len(text) if stop is None else stop
        if self.stop - start > NOTATION_CHARACTERS:
            raise grammar.error(text, f"{self.stop - start} characters, the limit is {NOTATION_CHARACTERS}")
        self.text = text
        self.items: list[tuple[str, str, int]] = []
        self.next = 0
        pattern = grammar.pattern()
        position, end = start, self.stop
        while end > start and text[end - 1].isspace():
            end -= 1
        while position < end:
            match = pattern.match(text, position, end)
            if match is None or (match.lastgroup == "name" and not match.group("name").isidentifier()):
                self.fail(f"a name, a number or one of {' '.join(grammar.marks)}", position)
            kind = match.lastgroup or "mark"
            self.items.append((kind, match.group(kind), match.start(kind)))
            position = match.end()

    def fail(self, expected: str, position: int) -> NoReturn:
        """Raise the error at a character position."""
        shown = self.text[position : min(self.stop, position + 20)] or "the end"
        raise self.grammar.error(self.text, f"at character {position} expected {expected}, found {shown!r}", position)

    def position(self) -> int:
        """Position of the next token, or of the end."""
        return self.items[self.next][2] if self.next < len(self.items) else self.stop

    def peek(self, mark: str, ahead: int = 0) -> bool:
        """Whether the next token (or the one ``ahead`` places later) is this one."""
        place = self.next + ahead
        return place < len(self.items) and self.items[place][1] == mark

    def take(self, kind: str, expected: str) -> str:
        """Consume one token of this kind, or exactly this token if ``kind`` is a mark."""
        found, spelling, position = self.items[self.next] if self.next < len(self.items) else ("", "", self.stop)
        if kind not in (found, spelling) or (found == "number" and len(spelling) > NOTATION_DIGITS):
            self.fail(expected, position)
        self.next += 1
        return spelling

    def accept(self, mark: str) -> bool:
        """Consume the next token if it is this one."""
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
