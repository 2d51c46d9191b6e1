"""Parse CuTe notation: what ``str`` writes, what CuTe C++ and the DSL print, and C++ types.

Notation:

    layout    ::= tuple ":" tuple                      (4,8):(1,4)    4:1    ((2,2),8):((1,16),2)    (_4,_8):(_1,_4)
                | tuple                                (4,8) as the whole text: compact column-major, as make_layout
                | "Layout<" tuple ["," tuple] ">"      Layout<Shape<_4,_8>,Stride<_8,_1>>
    tuple     ::= integer | "(" [tuple {"," tuple}] ")" | ("Shape<" | "Stride<" | "tuple<") [tuple {"," tuple}] ">"
    integer   ::= 128 | _128 | Int<128> | C<128>
    swizzle   ::= ("Sw<" | "S<" | "Swizzle<") bits "," base "," shift ["," unit] ">"    unit: element (default) or byte
    composed  ::= swizzle "o" [(integer | flag) "o"] operand    Sw<3,4,3> o 0 o (64,64):(64,1), the 0 is optional
                | "ComposedLayout<" swizzle "," (integer | flag) "," operand ">"
    flag      ::= "smem_ptr[" bits "b](unset)" | "smem_ptr_flag_bits<" bits ">"
    offset    ::= integer ("+" | "o") operand          16 + (4,8):(1,4)    5 o 6:-1
    operand   ::= layout | composed | offset | "(" operand ")"
    coordinates ::= tuple ":" strides ["->" profile]   (4,8):(E0,E1)    (4,8):(1@0,1@1)
                    strides of 0, 2E0+E(1,0) and 2@0@1, top-level mode last; profile: (_,(_,_))
    morphism  ::= tuple "--(" [image {"," image}] ")-->" tuple [":" tuple]      (6,2) --(0,None)--> (6,2):(1,10)

Blanks are free. ``(4)`` is a tuple of one mode, ``4`` is an int shape. ``Sw<3,4,3>`` acts on element offsets,
``Sw<3,4,3,byte>`` on byte addresses; only the former is allowed in a composed layout. Before a flag the printed swizzle
acts on byte addresses of elements of that many bits; it is parsed to act on elements, so ``Sw<3,4,3>`` over
``smem_ptr[16b]`` becomes ``Sw<3,3,3>``. ``E0`` and ``E(1,0)`` are basis elements: the values of such a layout are
coordinates, nested like the profile if one is given.

Implementation notes: a hand-written parser; nothing is evaluated. Every error shows the text with a caret under the
position.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NoReturn, TypeAlias, TypeVar, cast

from layoutalg.cute.coordinates import Basis, BasisLike, CoordinateLayout, Path
from layoutalg.cute.inttuple import INT_LIMIT, IntTuple
from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.morphism import Morphism
from layoutalg.cute.swizzle import IDENTITY, ComposedLayout, Swizzle, Unit
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, LayoutError, MalformedError
from layoutalg.ground.limits import NOTATION_CHARACTERS, SWIZZLE_STACK, TUPLE_DEPTH, TUPLE_MODES
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


Operand: TypeAlias = CuteLayout | ComposedLayout | CoordinateLayout
CuteValue: TypeAlias = Operand | Swizzle

STACK_AHEAD = re.compile(rf"[(\s]*(?:S|{INTEGER_AHEAD}\s*[+o])")
TERM_AHEAD = re.compile(r"(-?)\s*([0-9]{0,20})\s*E")
AT_AHEAD = re.compile(rf"{INTEGER_AHEAD}\s*@")
OFFSET_AHEAD = re.compile(rf"{INTEGER_AHEAD}\s*([+o])")
TUPLE_AHEAD = re.compile(r"(?:cute\s*::\s*)?(?:Shape|Stride|Coord|Step|tuple)\s*<")
LAYOUT_AHEAD = re.compile(r"(?:cute\s*::\s*)?Layout\s*<")
COMPOSED_AHEAD = re.compile(r"(?:cute\s*::\s*)?ComposedLayout\s*<")
SWIZZLE_AHEAD = re.compile(r"(?:cute\s*::\s*)?S(?:w|wizzle)?(?=\s*<)")
FLAG_AHEAD = re.compile(
    r"(?:cute\s*::\s*)?(?:smem_ptr\s*\[\s*([0-9]{1,4})b\s*\]\s*\(\s*unset\s*\)|smem_ptr_flag(?:_bits\s*<\s*([0-9]{1,4})\s*>)?)"
)
NONE_AHEAD = re.compile(r"None\b")
SIGN_AHEAD = re.compile(r"\s*([+-])")


def parse_cute(text: str, at: int = 0, stop: int | None = None) -> CuteValue:
    """Return the CuTe value written as ``text``.

    Args:
        text: The notation, or a text that contains it.
        at: Where it begins.
        stop: Where it ends; None for the end of the text.

    Example:
        >>> parse_cute("Sw<3,4,3,byte>")
        Swizzle(3, 4, 3, 'byte')
    """
    return flagged(text, at, stop)[0]


def flagged(text: str, at: int = 0, stop: int | None = None) -> tuple[CuteValue, int | None]:
    """Return the value and the element bits of the flag in the text, None without a flag."""
    reader = _Reader(text, at, stop)
    value = reader.value()
    reader.end()
    return value, reader.bits


def element_swizzle(swizzle: Swizzle, bits: int) -> Swizzle:
    """Convert a swizzle of byte addresses to offsets of elements of ``bits`` bits."""
    low = bits.bit_length() - 4
    least = swizzle.base if swizzle.bits else low
    if bits & (bits - 1) or least < low:
        because = f"{swizzle} of byte addresses does not move whole elements of {bits} bits"
        raise AdmissibilityError(Diagnostic("LA111", "the swizzle has no exact form in this unit", because=because))
    return Swizzle(swizzle.bits, max(0, swizzle.base - low), swizzle.shift)


class _Reader(Cursor):
    """Parser of CuTe values."""

    bits: int | None = None

    def value(self) -> CuteValue:
        """Read a swizzle or a layout of any kind."""
        if not self.at_swizzle():
            return self.operand(0)
        swizzle = self.swizzle()
        return self.composed(swizzle, 0) if self.peek() == "o" else swizzle

    def operand(self, level: int) -> Operand:
        """Read the right operand of an ``o``."""
        if level > 2 * SWIZZLE_STACK:
            self.fail(f"the stack nests more than {2 * SWIZZLE_STACK} deep", code="LA191")
        if self.at_swizzle():
            return self.composed(self.swizzle(), level)
        if self.match(COMPOSED_AHEAD):
            return self.composed_type(level)
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
        """Read an integer and the mark after it; None, with nothing consumed, if they are not there."""
        start = self.at
        if self.peek():
            stop = OFFSET_AHEAD.match(self.text, self.at, self.stop)
            if stop is not None and stop[1] in marks:
                value = self.integer("an offset")
                self.at = stop.end()
                return value
        self.at = start
        return None

    def numbers(self, inner: Operand) -> CuteLayout | ComposedLayout:
        """Reject a coordinate layout where numbers are needed."""
        if isinstance(inner, CoordinateLayout):
            self.fail("a swizzle or an offset cannot be applied to a layout whose values are coordinates")
        return inner

    def composed(self, swizzle: Swizzle, level: int) -> ComposedLayout:
        """Read the rest of a composed layout from the first ``o``."""
        start = self.at
        self.expect("o", "after the swizzle")
        flag = self.flag()
        if flag:
            self.expect("o", "after the pointer")
        offset = 0 if flag else self.offset("o") or 0
        inner = self.operand(level + 1)
        return self.build(lambda: ComposedLayout(self.on_elements(swizzle, flag), offset, self.numbers(inner)), start)

    def composed_type(self, level: int) -> ComposedLayout:
        """Read the rest of ``ComposedLayout<swizzle, offset or flag, layout>`` after ``<``."""
        start = self.at
        swizzle = self.swizzle()
        self.expect(",", "before the offset or the pointer flag")
        flag = self.flag()
        self.blanks()
        offset = 0 if flag else self.integer("an offset")
        self.expect(",", "before the layout")
        inner = self.operand(level + 1)
        self.expect(">", "to close ComposedLayout<")
        return self.build(lambda: ComposedLayout(self.on_elements(swizzle, flag), offset, self.numbers(inner)), start)

    def flag(self) -> int:
        """Read a pointer flag and return its element bits; 0, with nothing consumed, if there is none."""
        found = self.match(FLAG_AHEAD)
        if found is None:
            return 0
        self.bits = int(found[1] or found[2] or 1)
        if self.bits < 1:
            self.fail("an element has at least one bit", found.start())
        return self.bits

    def on_elements(self, swizzle: Swizzle, bits: int) -> Swizzle:
        """Convert a printed swizzle of byte addresses to elements of ``bits`` bits; 0 bits means it already is."""
        return element_swizzle(swizzle, bits) if bits else swizzle

    def at_swizzle(self) -> bool:
        """Whether a swizzle, or something meant as one, is at the cursor."""
        self.blanks()
        known = SWIZZLE_AHEAD.match(self.text, self.at, self.stop)
        return bool(known) or (self.peek() == "S" and not TUPLE_AHEAD.match(self.text, self.at, self.stop))

    def swizzle(self) -> Swizzle:
        """Read ``Sw<bits,base,shift>`` with an optional unit."""
        self.blanks()
        start = self.at
        if not self.match(SWIZZLE_AHEAD):
            self.fail("expected 'Sw<bits,base,shift>'")
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
        if self.match(LAYOUT_AHEAD):
            return self.layout_type(start)
        whole = not self.text[:start].strip()
        shape = self.tuple("a shape", 0)
        if whole and isinstance(shape, tuple) and not self.peek():
            return self.build(lambda: CuteLayout(shape), start)
        self.expect(":", "between shape and stride")
        stride, basis = self.strides(0)
        profile: IntTuple | None = None
        if self.peek() == "-" and self.text.startswith("->", self.at):
            self.at += 2
            profile, basis = self.profile(0), True
        if basis:
            return self.build(lambda: CoordinateLayout(shape, stride, profile), start)
        return self.build(lambda: CuteLayout(shape, cast(IntTuple, stride)), start)

    def layout_type(self, start: int) -> CuteLayout:
        """Read the rest of ``Layout<shape, stride>``; without strides it is compact column-major, as in CuTe."""
        shape = self.tuple("a shape", 0)
        stride: IntTuple | None = None
        if self.peek() == ",":
            self.at += 1
            stride = self.tuple("a stride", 0)
        self.expect(">", "to close Layout<")
        return self.build(lambda: CuteLayout(shape, stride), start)

    def strides(self, level: int) -> tuple[BasisLike, bool]:
        """Read nested strides; also return whether any is a basis element."""
        self.blanks()
        if not self.opens():
            self.count()
            if AT_AHEAD.match(self.text, self.at, self.stop):
                return self.scaled(), True
            term = TERM_AHEAD.match(self.text, self.at, self.stop)
            return (self.integer("a stride"), False) if term is None else (self.basis(), True)
        entries, basis = [], False
        for entry, found in self.entries("a stride", level, self.strides):
            entries.append(entry)
            basis = basis or found
        return tuple(entries), basis

    def scaled(self) -> Basis:
        """Read ``2@0@1`` as CuTe prints it: the multiple, then the path from the leaf up to the top-level mode."""
        start = self.at
        scale = self.integer("a multiple")
        path: list[int] = []
        while self.peek() == "@":
            self.at += 1
            self.blanks()
            path.append(self.integer("a mode"))
        return self.build(lambda: Basis(((tuple(reversed(path)), scale),)), start)

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
        """Read the nesting of coordinates: ``_`` at each leaf."""
        if self.peek() == "(":
            return tuple(self.entries("a profile", level, self.profile))
        self.count()
        self.expect("_", "in the profile")
        return 0

    def opens(self) -> bool:
        """Whether a tuple begins at the cursor."""
        return self.peek() == "(" or TUPLE_AHEAD.match(self.text, self.at, self.stop) is not None

    def entries(self, name: str, level: int, read: Callable[[int], Value]) -> list[Value]:
        """Read a list that starts with a parenthesis or with ``Shape<`` and the like."""
        if level >= TUPLE_DEPTH:
            self.fail(f"the tuple nests more than {TUPLE_DEPTH} deep", code="LA191")
        word = self.match(TUPLE_AHEAD)
        closing = ">" if word else ")"
        self.at += not word
        if self.peek() == closing:
            self.count()
            self.at += 1
            return []
        found: list[Value] = []
        while True:
            found.append(read(level + 1))
            if self.peek() != ",":
                break
            self.at += 1
        self.expect(closing, f"or ',' in {name}")
        return found

    def tuple(self, name: str, level: int) -> IntTuple:
        """Read an integer or a list."""
        if not self.opens():
            self.count()
            return self.integer(name)
        return tuple(self.entries(name, level, lambda below: self.tuple(name, below)))

    def word(self, word: str) -> None:
        """Read a word of marks."""
        self.blanks()
        if not self.text.startswith(word, self.at, self.stop):
            self.fail(f"expected {word!r}, found {self.found()}")
        self.at += len(word)

    def image(self, level: int) -> int | None:  # noqa: ARG002 - a position has no levels
        """Read a position or ``None``."""
        self.blanks()
        return None if self.match(NONE_AHEAD) else self.integer("a position or None")

    def morphism(self) -> Morphism:
        """Read ``domain --(images)--> codomain:pitch``."""
        self.blanks()
        start = self.at
        domain = self.tuple("a domain", 0)
        self.word("--")
        if self.peek() != "(":
            self.fail(f"expected '(' before the images, found {self.found()}")
        images = tuple(self.entries("the images", 0, self.image))
        self.word("-->")
        codomain, pitch = self.tuple("a codomain", 0), None
        if self.peek() == ":":
            self.at += 1
            pitch = self.tuple("a pitch", 0)
        return self.build(lambda: Morphism(domain, codomain, images, pitch), start)


def parse_morphism(text: str) -> Morphism:
    """Return the morphism written as ``text``.

    Example:
        >>> parse_morphism("(6,2) --(0,None)--> (6,2):(1,10)")
        Morphism(domain=(6, 2), codomain=(6, 2), map=(0, None), pitch=(1, 10))
    """
    reader = _Reader(text)
    found = reader.morphism()
    reader.end()
    return found
