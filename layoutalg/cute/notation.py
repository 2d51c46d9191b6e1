"""Reading CuTe's notation: the inverse of ``str`` for layouts, swizzles and coordinate layouts.

Main definitions: ``parse_cute``.

Notation:

    layout    ::= tuple ":" tuple                      (4,8):(1,4)    4:1    ((2,2),8):((1,16),2)
    tuple     ::= integer | "(" [tuple {"," tuple}] ")"
    swizzle   ::= "Sw<" bits "," base "," shift ["," unit] ">"          unit: element (the default) or byte
    composed  ::= swizzle "o" [integer "o"] operand    Sw<3,4,3> o 0 o (64,64):(64,1), where 0 may be left out
    offset    ::= integer ("+" | "o") operand          16 + (4,8):(1,4)    5 o 6:-1
    operand   ::= layout | composed | offset | "(" operand ")"
    coordinates ::= tuple ":" strides ["->" profile]   (4,8):(E0,E1)    strides of 0 and 2E0+E(1,0); profile: (_,(_,_))

Blanks are free. ``(4)`` is a tuple of one mode, ``4`` is an int shape. ``Sw<3,4,3>`` acts on element offsets,
``Sw<3,4,3,byte>`` on byte addresses; only the former can stand in a composed layout. ``E0`` and ``E(1,0)`` are basis
elements: the values of such a layout are coordinates, nested like the profile where one is written.

Implementation notes: a hand-written reader over characters; nothing is evaluated. Every refusal shows the text with a
caret under the place.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NoReturn, TypeAlias, TypeVar, cast

from layoutalg.cute.basis import Basis, BasisLike, Path
from layoutalg.cute.composed import IDENTITY, ComposedLayout
from layoutalg.cute.coordinates import CoordinateLayout
from layoutalg.cute.inttuple import INT_LIMIT, IntTuple
from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.swizzle import Swizzle, Unit
from layoutalg.ground.errors import Diagnostic, LayoutError, MalformedError
from layoutalg.ground.limits import NOTATION_CHARACTERS, SWIZZLE_STACK, TUPLE_DEPTH, TUPLE_MODES

Value = TypeVar("Value")
Operand: TypeAlias = CuteLayout | ComposedLayout | CoordinateLayout
CuteValue: TypeAlias = Operand | Swizzle

WINDOW = 100
STACK_AHEAD = re.compile(r"[(\s]*(?:S|-?[0-9]+\s*[+o])")
TERM_AHEAD = re.compile(r"(-?)\s*([0-9]{0,20})\s*E")
OFFSET_AHEAD = re.compile(r"-?[0-9]+\s*([+o])")
SIGN_AHEAD = re.compile(r"\s*([+-])")


def parse_cute(text: str) -> CuteValue:
    """Return the CuTe value written as ``text``.

    Raises: MalformedError: LA190, LA191. AdmissibilityError: LA112.

    Example:
        >>> parse_cute("Sw<3,4,3,byte>")
        Swizzle(3, 4, 3, 'byte')
    """
    if not isinstance(text, str):
        because = f"text must be a str, not {type(text).__name__}"
        raise MalformedError(Diagnostic("LA190", "the notation is malformed", because=because))
    if len(text) > NOTATION_CHARACTERS:
        because = f"{len(text)} characters, the limit is {NOTATION_CHARACTERS}"
        raise MalformedError(Diagnostic("LA191", "the notation is too long", because=because))
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
                code,
                "the notation is malformed" if code == "LA190" else "the notation exceeds a limit",
                (self.caret(self.at if at is None else at),),
                because,
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
        """Read a swizzle or a layout of any kind."""
        if self.peek() != "S":
            return self.operand(0)
        swizzle = self.swizzle()
        return self.composed(swizzle, 0) if self.peek() == "o" else swizzle

    def operand(self, level: int) -> Operand:
        """Read what may stand to the right of an ``o``."""
        if level > 2 * SWIZZLE_STACK:
            self.fail(f"the stack nests more than {2 * SWIZZLE_STACK} deep", code="LA191")
        if self.peek() == "S":
            return self.composed(self.swizzle(), level)
        if self.peek() == "(" and STACK_AHEAD.match(self.text, self.at):
            self.at += 1
            inner = self.operand(level + 1)
            self.expect(")", "to close the parenthesis")
            return inner
        start = self.at
        offset = self.offset("+o")
        if offset is None:
            return self.layout()
        inner = self.operand(level + 1)
        return self.build(lambda: ComposedLayout(IDENTITY, offset, self.numbers(inner)), start)

    def offset(self, marks: str) -> int | None:
        """Read an integer and the mark behind it; None, and nothing read, where there is no such pair."""
        start = self.at
        if self.peek() and self.peek() in "-0123456789":
            stop = OFFSET_AHEAD.match(self.text, self.at)
            if stop is not None and stop[1] in marks:
                value = self.integer("an offset")
                self.at = stop.end()
                return value
        self.at = start
        return None

    def numbers(self, inner: Operand) -> CuteLayout | ComposedLayout:
        """Refuse coordinates where numbers are needed."""
        if isinstance(inner, CoordinateLayout):
            self.fail("nothing can follow a layout whose values are coordinates")
        return inner

    def composed(self, swizzle: Swizzle, level: int) -> ComposedLayout:
        """Read the rest of a composed layout, the cursor standing at the first ``o``."""
        start = self.at
        self.expect("o", "after the swizzle")
        self.blanks()
        offset = self.offset("o") or 0
        inner = self.operand(level + 1)
        return self.build(lambda: ComposedLayout(swizzle, offset, self.numbers(inner)), start)

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

    def layout(self) -> CuteLayout | CoordinateLayout:
        """Read ``shape:stride``."""
        self.blanks()
        start = self.at
        shape = self.tuple("a shape", 0)
        self.expect(":", "between shape and stride")
        stride, basis = self.strides(0)
        profile: IntTuple | None = None
        if self.peek() == "-" and self.text.startswith("->", self.at):
            self.at += 2
            profile, basis = self.profile(0), True
        if basis:
            return self.build(lambda: CoordinateLayout(shape, stride, profile), start)
        return self.build(lambda: CuteLayout(shape, cast(IntTuple, stride)), start)

    def strides(self, level: int) -> tuple[BasisLike, bool]:
        """Read nested strides, and whether a basis element is among them."""
        if self.peek() != "(":
            self.count()
            term = TERM_AHEAD.match(self.text, self.at)
            return (self.integer("a stride"), False) if term is None else (self.basis(), True)
        entries, basis = [], False
        for entry, found in self.entries("a stride", level, self.strides):
            entries.append(entry)
            basis = basis or found
        return tuple(entries), basis

    def basis(self) -> Basis:
        """Read a sum of multiples of basis elements."""
        start = self.at
        terms: list[tuple[Path, int]] = []
        sign = 1
        while True:
            self.blanks()
            term = TERM_AHEAD.match(self.text, self.at)
            if term is None:
                self.fail(f"expected a basis element, found {self.found()}")
            if term[2]:
                self.at = term.start(2)
            scale = sign * (self.integer("a multiple") if term[2] else 1) * (-1 if term[1] else 1)
            self.at = term.end()
            path = self.tuple("a path", 0)
            terms.append((cast(Path, path if isinstance(path, tuple) else (path,)), scale))
            following = SIGN_AHEAD.match(self.text, self.at)
            if following is None or self.text.startswith("->", following.start(1)):
                return self.build(lambda: Basis(tuple(terms)), start)
            sign = -1 if following[1] == "-" else 1
            self.at = following.end()

    def profile(self, level: int) -> IntTuple:
        """Read how coordinates nest: ``_`` at each leaf."""
        if self.peek() == "(":
            return tuple(self.entries("a profile", level, self.profile))
        self.count()
        self.expect("_", "in the profile")
        return 0

    def entries(self, name: str, level: int, read: Callable[[int], Value]) -> list[Value]:
        """Read a parenthesised list, the cursor standing at its parenthesis."""
        if level >= TUPLE_DEPTH:
            self.fail(f"the tuple nests more than {TUPLE_DEPTH} deep", code="LA191")
        self.at += 1
        if self.peek() == ")":
            self.count()
            self.at += 1
            return []
        found: list[Value] = []
        while True:
            found.append(read(level + 1))
            if self.peek() != ",":
                break
            self.at += 1
        self.expect(")", f"or ',' in {name}")
        return found

    def tuple(self, name: str, level: int) -> IntTuple:
        """Read an integer or a parenthesised list."""
        if self.peek() != "(":
            self.count()
            return self.integer(name)
        return tuple(self.entries(name, level, lambda below: self.tuple(name, below)))

    def count(self) -> None:
        """Count one leaf against the limit."""
        self.modes += 1
        if self.modes > 2 * TUPLE_MODES:
            self.fail(f"more than {TUPLE_MODES} modes", code="LA191")

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
