"""Untrusted text: escape and truncate it for terminals, parse it as an expression, cut it into tokens."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Final, NoReturn

from layoutalg.ground.errors import Diagnostic, MalformedError, printable, shown
from layoutalg.ground.limits import NOTATION_CHARACTERS

NOTATION_DIGITS: Final = 4_000
"""digits: one number in a notation; Python refuses to print much longer ones"""

_NUMBER = r"0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|[0-9][0-9_]*"
_FRACTION = r"[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*"
_LOUD = re.compile(rf"\\|(?<![\w.])(?!(?:{_NUMBER})(?!\w))[0-9]|(?<!\w)(?:{_FRACTION})[^\W0-9_]")
"""What makes Python's parser warn: a backslash, or a number that runs into a name."""


def expression_tree(text: str) -> ast.expr | None:
    """Return the syntax tree of a Python expression, or None if the text is not one. Nothing is evaluated.

    Args:
        text: Any text; the caller bounds its length.

    Example:
        >>> type(expression_tree(" M*(N + 1) ")).__name__, expression_tree("M*"), expression_tree("1if")
        ('BinOp', None, None)
    """
    if _LOUD.search(text):
        return None
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, RecursionError, MemoryError, ValueError):
        return None


def escaped(text: str, width: int | None = None) -> str:
    r"""Return the text with control characters, line breaks and lone surrogates as Python escapes.

    Args:
        text: Any text.
        width: Maximum characters of the result; None for no limit.
    """
    cut = text if width is None else text[: width + 1]
    cut = printable(cut)
    return cut if width is None or len(cut) <= width else cut[: max(0, width - 3)] + "..."


def caret(text: str, at: int, width: int = 100) -> str:
    """Return the text around a position with a caret under it.

    Args:
        text: Any text.
        at: A position in it, or its end.
        width: Characters of the text to show.

    Example:
        >>> print(caret("(4,8:(1,4)", 4))
        (4,8:(1,4)
            ^
    """
    start = max(0, at - width // 2)
    stop = min(len(text), start + width)
    lead, trail = ("..." if start else ""), ("..." if stop < len(text) else "")
    line = "".join([char if char.isprintable() else " " for char in text[start:stop]])
    return f"{lead}{line}{trail}\n{' ' * (len(lead) + at - start)}^"


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")
_WORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class
    co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype default
    delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long
    mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct switch
    template this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile
    wchar_t while xor xor_eq
"""
_CPP_WORDS = frozenset(_WORDS.split())


def is_cpp_name(name: object) -> bool:
    """Return whether this is a valid name in C and C++: ASCII, at most 255 characters, no keyword."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None and name not in _CPP_WORDS


@dataclass(frozen=True, slots=True)
class Grammar:
    """The tokens of a notation, and the error of its reader."""

    marks: tuple[str, ...]  # the punctuation
    signed: bool  # whether numbers may have a minus sign
    code: str  # error code
    what: str  # headline of the error

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
