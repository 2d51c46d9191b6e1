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
from typing import TypeAlias, TypeVar, cast

from layoutalg.cute.basis import Basis, BasisLike, Path
from layoutalg.cute.composed import IDENTITY, ComposedLayout
from layoutalg.cute.coordinates import CoordinateLayout
from layoutalg.cute.cursor import INTEGER_AHEAD, Cursor
from layoutalg.cute.inttuple import IntTuple
from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.swizzle import Swizzle, Unit
from layoutalg.ground.errors import AdmissibilityError, Diagnostic
from layoutalg.ground.limits import SWIZZLE_STACK, TUPLE_DEPTH

Value = TypeVar("Value")
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
SIGN_AHEAD = re.compile(r"\s*([+-])")


def parse_cute(text: str, at: int = 0, stop: int | None = None) -> CuteValue:
    """Return the CuTe value written as ``text``.

    Args:
        text: The notation, or a text that contains it.
        at: Where it begins.
        stop: Where it ends; None for the end of the text.

    Raises: MalformedError: LA190, LA191. AdmissibilityError: LA111, LA112.

    Example:
        >>> parse_cute("Sw<3,4,3,byte>")
        Swizzle(3, 4, 3, 'byte')
    """
    return flagged(text, at, stop)[0]


def flagged(text: str, at: int = 0, stop: int | None = None) -> tuple[CuteValue, int | None]:
    """Return the value and the element bits of the flag in the text, None without a flag.

    Raises: MalformedError: LA190, LA191. AdmissibilityError: LA111, LA112.

    Example:
        >>> value, bits = flagged("Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)")
        >>> print(value, bits)
        Sw<3,3,3> o 0 o (8,64):(64,1) 16
    """
    reader = _Reader(text, at, stop)
    value = reader.value()
    reader.end()
    return value, reader.bits


def element_swizzle(swizzle: Swizzle, bits: int) -> Swizzle:
    """Convert a swizzle of byte addresses to offsets of elements of ``bits`` bits.

    Raises: AdmissibilityError: LA111.

    Example:
        >>> print(element_swizzle(Swizzle(3, 4, 3), 16), element_swizzle(Swizzle(3, 4, 3), 4))
        Sw<3,3,3> Sw<3,5,3>
    """
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
