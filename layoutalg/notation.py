"""Reading the field's notation: the inverse of ``str`` for layouts and swizzles.

Main definitions: ``parse``, ``parse_cute``.

Notation:

    layout    ::= tuple ":" tuple                      (4,8):(1,4)    4:1    ((2,2),8):((1,16),2)
    tuple     ::= integer | "(" [tuple {"," tuple}] ")"
    swizzle   ::= "Sw<" bits "," base "," shift ["," unit] ">"          unit: element (the default) or byte
    composed  ::= swizzle "o" integer "o" operand      Sw<3,4,3> o 0 o (64,64):(64,1)
    operand   ::= layout | composed | "(" operand ")"

Blanks are free. ``(4)`` is a tuple of one mode, ``4`` is an int shape. ``Sw<3,4,3>`` acts on element offsets,
``Sw<3,4,3,byte>`` on byte addresses; only the former can stand in a composed layout.

A text that begins with ``F2`` is a linear layout, read by ``layoutalg.f2.notation``; one with ``Z`` an integer layout,
read by ``layoutalg.zmod.notation``; one with ``{`` a piecewise layout and one with ``[`` (parameters) or
``given`` (a context) a parametric one, read by ISL. A hierarchical layout begins with an axis and its digits,
``lane 8:2``, or with a box of named axes, ``[lane:8]``, and is read by ``layoutalg.hierarchy.notation``.

Implementation notes: a hand-written reader over characters; nothing is evaluated. Every refusal shows the text with a
caret under the place.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias, TypeVar

from layoutalg.cute.composed import MAX_STACK, ComposedLayout
from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.swizzle import Swizzle, Unit
from layoutalg.errors import Diagnostic, LayoutError, MalformedError
from layoutalg.inttuple import INT_LIMIT, MAX_DEPTH, MAX_MODES, IntTuple

Value = TypeVar("Value")
CuteValue: TypeAlias = CuteLayout | Swizzle | ComposedLayout

MAX_TEXT = 100_000
WINDOW = 100
STACK_AHEAD = re.compile(r"[(\s]*S")
NAME_AHEAD = r"[^\s\d!-/:-@\[-^`{-\x7f][^\s!-/:-@\[-^`{-\x7f]*"
HIERARCHY_AHEAD = re.compile(rf"\s*(?:{NAME_AHEAD}\s+[-(\d]|\[[^\]]*:|\[\s*\]\s*[^\s-])")
"""An axis with its digits, a box of axes with extents, or an empty box that no arrow follows."""


def parse(text: str) -> Any:
    """Return the value written as ``text``.

    Args:
        text: What ``str`` prints for a ``CuteLayout``, ``Swizzle``, ``ComposedLayout``, ``LinearLayout``,
            ``IntegerLayout``, ``HierarchicalLayout``, ``PiecewiseLayout`` or ``ParametricLayout`` (the output names of
            the last two are no part of their text). At most 100,000 characters. ``Sw<b,m,s>`` acts on elements,
            ``Sw<b,m,s,byte>`` on bytes.

    Returns:
        The value; ``str`` of it is ``text`` up to blanks and the optional spellings.

    Raises:
        MalformedError: LA190, not the notation, with a caret under the place; LA191, too long, too deep or too many
            modes; or the code of the value's own rule.
        AdmissibilityError: LA112, a byte swizzle in a composed layout. RepresentabilityError: LA762, the text of a
            hierarchical layout abbreviates its table.

    Example:
        >>> parse("((2,2),8):((1,16),2)")
        CuteLayout(((2, 2), 8), ((1, 16), 2))
        >>> parse("Sw<3,4,3> o 0 o (64,64):(64,1)").cosize
        4096
        >>> parse("register 2:1, lane 8:2 -> x:16")(register=1, lane=3)
        {'x': 7}
    """
    if isinstance(text, str) and len(text) <= MAX_TEXT:
        if HIERARCHY_AHEAD.match(text):
            return importlib.import_module("layoutalg.hierarchy.notation").parse_hierarchical(text)
        start = text.lstrip()
        if start.startswith("F2"):
            return importlib.import_module("layoutalg.f2.notation").parse_linear(text)
        if start.startswith("Z"):
            return importlib.import_module("layoutalg.zmod.notation").parse_integer(text)
        if start.startswith("[") or (start.startswith("{") and " given " in start):
            return importlib.import_module("layoutalg.affine").ParametricLayout.parse(text)
        if start.startswith("{"):
            return importlib.import_module("layoutalg.affine").PiecewiseLayout(text)
    return parse_cute(text)


def parse_cute(text: str) -> CuteValue:
    """Return the CuTe value written as ``text``; as ``parse``, without linear layouts.

    Example:
        >>> parse_cute("Sw<3,4,3,byte>")
        Swizzle(3, 4, 3, 'byte')
    """
    if not isinstance(text, str):
        raise MalformedError(
            Diagnostic(
                code="LA190", what="the notation is malformed", because=f"text must be a str, not {type(text).__name__}"
            )
        )
    if len(text) > MAX_TEXT:
        raise MalformedError(
            Diagnostic(
                code="LA191",
                what="the notation is too long",
                because=f"{len(text)} characters, the limit is {MAX_TEXT}",
            )
        )
    reader = _Reader(text)
    value = reader.value()
    reader.end()
    return value


class _Reader:
    """A cursor over the text. Every method reads one construct and leaves the cursor behind it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.modes = 0

    def fail(self, because: str, at: int | None = None, code: str = "LA190") -> NoReturn:
        """Raise the error at a place, the cursor by default."""
        raise MalformedError(
            Diagnostic(
                code=code,
                what="the notation is malformed" if code == "LA190" else "the notation exceeds a limit",
                where=(self.caret(self.at if at is None else at),),
                because=because,
            )
        )

    def caret(self, at: int) -> str:
        """Return the text around a place and a caret under it."""
        start = max(0, at - WINDOW // 2)
        stop = min(len(self.text), start + WINDOW)
        lead, trail = ("..." if start else ""), ("..." if stop < len(self.text) else "")
        shown = "".join([char if char.isprintable() else " " for char in self.text[start:stop]])
        return f"{lead}{shown}{trail}\n{' ' * (len(lead) + at - start)}^"

    def blanks(self) -> None:
        """Skip blanks."""
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def peek(self) -> str:
        """Return the next character that is no blank, or the empty string at the end."""
        self.blanks()
        return self.text[self.at : self.at + 1]

    def found(self) -> str:
        """Return what stands at the cursor, for messages."""
        char = self.peek()
        return repr(char) if char else "the end of the text"

    def expect(self, char: str, context: str) -> None:
        """Read one character."""
        if self.peek() != char:
            self.fail(f"expected {char!r} {context}, found {self.found()}")
        self.at += 1

    def end(self) -> None:
        """Refuse anything after the value."""
        if self.peek():
            self.fail(f"expected the end of the text, found {self.found()}")

    def value(self) -> CuteValue:
        """Read a swizzle, a composed layout or a layout."""
        if self.peek() != "S":
            return self.operand(0)
        swizzle = self.swizzle()
        return self.composed(swizzle, 0) if self.peek() == "o" else swizzle

    def operand(self, level: int) -> CuteLayout | ComposedLayout:
        """Read what may stand to the right of an ``o``."""
        if level > 2 * MAX_STACK:
            self.fail(f"the stack nests more than {2 * MAX_STACK} deep", code="LA191")
        if self.peek() == "S":
            return self.composed(self.swizzle(), level)
        if self.peek() == "(" and STACK_AHEAD.match(self.text, self.at):
            self.at += 1
            inner = self.operand(level + 1)
            self.expect(")", "to close the parenthesis")
            return inner
        return self.layout()

    def composed(self, swizzle: Swizzle, level: int) -> ComposedLayout:
        """Read the rest of a composed layout, the cursor standing at the first ``o``."""
        start = self.at
        self.expect("o", "after the swizzle")
        self.blanks()
        offset = self.integer("an offset")
        self.expect("o", "after the offset")
        inner = self.operand(level + 1)
        return self.build(lambda: ComposedLayout(swizzle, offset, inner), start)

    def swizzle(self) -> Swizzle:
        """Read ``Sw<bits,base,shift>`` with an optional unit."""
        self.blanks()
        start = self.at
        if not self.text.startswith("Sw", self.at):
            self.fail("expected 'Sw<bits,base,shift>'")
        self.at += 2
        self.expect("<", "after 'Sw'")
        numbers: list[int] = []
        for name in ("bits", "base", "shift"):
            if numbers:
                self.expect(",", f"before {name}")
            self.blanks()
            numbers.append(self.integer(name))
        bits, base, shift = numbers
        if self.peek() != ",":
            self.expect(">", "after the shift")
            return self.build(lambda: Swizzle(bits, base, shift), start)
        self.at += 1
        unit = self.unit()
        self.expect(">", "after the unit")
        return self.build(lambda: Swizzle(bits, base, shift, unit), start)

    def unit(self) -> Unit:
        """Read ``element`` or ``byte``."""
        self.blanks()
        if self.text.startswith("byte", self.at):
            self.at += len("byte")
            return "byte"
        if not self.text.startswith("element", self.at):
            self.fail(f"expected the unit 'element' or 'byte', found {self.found()}")
        self.at += len("element")
        return "element"

    def layout(self) -> CuteLayout:
        """Read ``shape:stride``."""
        self.blanks()
        start = self.at
        shape = self.tuple("a shape", 0)
        self.expect(":", "between shape and stride")
        stride = self.tuple("a stride", 0)
        return self.build(lambda: CuteLayout(shape, stride), start)

    def tuple(self, name: str, level: int) -> IntTuple:
        """Read an integer or a parenthesised list."""
        if self.peek() != "(":
            self.count()
            return self.integer(name)
        if level >= MAX_DEPTH:
            self.fail(f"the tuple nests more than {MAX_DEPTH} deep", code="LA191")
        self.at += 1
        entries: list[IntTuple] = []
        if self.peek() == ")":
            self.count()
            self.at += 1
            return ()
        while True:
            entries.append(self.tuple(name, level + 1))
            if self.peek() != ",":
                break
            self.at += 1
        self.expect(")", f"or ',' in {name}")
        return tuple(entries)

    def count(self) -> None:
        """Count one leaf against the limit."""
        self.modes += 1
        if self.modes > 2 * MAX_MODES:
            self.fail(f"more than {MAX_MODES} modes", code="LA191")

    def integer(self, name: str) -> int:
        """Read a decimal integer."""
        start = self.at
        stop = start + (self.text[start : start + 1] == "-")
        first = stop
        while stop < len(self.text) and self.text[stop] in "0123456789":
            stop += 1
        if stop == first:
            self.fail(f"expected {name}, found {self.found()}")
        if stop - first > 20 or not -INT_LIMIT <= int(self.text[start:stop]) < INT_LIMIT:
            self.fail("the integer does not fit 64 bits", start)
        self.at = stop
        return int(self.text[start:stop])

    def build(self, make: Callable[[], Value], start: int) -> Value:
        """Return the value, or its refusal with the place where it was written."""
        try:
            return make()
        except LayoutError as error:
            inner = error.diagnostic
            raise type(error)(
                Diagnostic(
                    code=inner.code,
                    what=inner.what,
                    where=(self.caret(start),),
                    because=inner.because,
                    witness=inner.witness,
                    repairs=inner.repairs,
                    source=inner.source,
                )
            ) from error
