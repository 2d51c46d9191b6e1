"""Read what CuTe C++ and the CuTe DSL print for tensors and pointers: a pointer composed with a layout.

Notation: ``NAME:`` may come first; ``L`` is a layout as ``layoutalg.cute.notation`` reads it, or a symbolic one.

    smem_ptr[16b](0x7f0000000400) o L       C++; also gmem_ptr, rmem_ptr, tmem_ptr, ptr, and (unset) or (nil)
    Sw<3,4,3>_smem_ptr[16b](0x400) o L      C++, a swizzled pointer: the swizzle acts on the bytes of the address
    Sw<3,4,3> o smem_ptr[16b](unset) o L    C++, a layout for shared memory: also on bytes
    ArithTuple(0,0) o L                     C++, a coordinate tensor
    ptr<f16, smem, align<1024>, S<3,4,3>> o L          DSL, a pointer with a swizzle on bytes
    raw_ptr(0x400: f16, smem, align<1024>) o L         DSL, as print_tensor writes it
    tensor<...>, tensor(..., data=...)      DSL, wrapping one of these
    !cute.layout<"L">, !cute.memref<f16, smem, align<16>, "L">, !cute.coord_tensor<"(0,0)", "L">

Main statements: offsets count elements. With a swizzled pointer they count from its address rounded down to the
swizzle's period, so nothing is assumed about alignment; without an address the base is assumed aligned to the period.

References: CuTe ``print`` (``pointer.hpp``, ``pointer_flagged.hpp``, ``pointer_swizzle.hpp``); CuTe DSL
``print_tensor`` and its dialect.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from layoutalg.cute.notation import Cursor, element_swizzle, flagged, parse_cute
from layoutalg.cute.swizzle import ComposedLayout, Swizzle

LABEL = re.compile(
    r"[A-Za-z_]\w{0,80}\s*:(?=\s*(?:\(|S(?:w|wizzle)?\s*<|(?:[a-z]+_)?ptr\b|raw_ptr|tensor\b|ArithTuple))"
)
SWIZZLE = re.compile(
    r"S(?:w|wizzle)?\s*<\s*(\d{1,2})\s*,\s*(\d{1,2})\s*,\s*(-?\d{1,2})\s*>\s*(_|o)?\s*(?=[a-z]+_ptr|ptr)"
)
POINTER = re.compile(r"(?:(smem|gmem|rmem|tmem)_)?ptr(?=\s*\[)")
WIDTH = re.compile(r"\[\s*(\d{1,4})b\s*\]")
ADDRESS = re.compile(r"\(\s*(?:(0x[0-9a-fA-F]{1,16})|unset|nil|\(nil\))\s*\)")
ORIGIN = re.compile(r"ArithTuple\s*\(([0-9_,\s()]*)\)\s*(?=o)")
TENSOR = re.compile(r"tensor\s*([<(])")
TYPED = re.compile(r"(?:!cute\s*\.\s*)?ptr\s*(?=<)|raw_ptr\s*(?=\()")
RAW = re.compile(r"(0x[0-9a-fA-F]{1,16})\s*:")
ELEMENT = re.compile(r"(?:bf|tf|ui|si|bfloat|float|uint|int|[bfius])([1-9][0-9]{0,3})\w*", re.IGNORECASE)
"""A type name whose first number is its width: f16, Float8E4M3FN; not e4m3."""
SPACE = re.compile(r"[a-z]+")
ALIGN = re.compile(r"align\s*<\s*\d{1,10}\s*>")
ON_POINTER = re.compile(r"S(?:w)?\s*<\s*(\d{1,2})\s*,\s*(\d{1,2})\s*,\s*(-?\d{1,2})\s*>")
DIALECT = re.compile(r"!cute\s*\.\s*(layout|memref|coord_tensor)\s*<")
QUOTED = re.compile(r'"([^"]*)"')
AFTER_O = "o and a layout after the pointer"
NAME = re.compile(r"(?<![\w@.])[A-Za-z_]\w*")
CHARACTERS = re.compile(r"[\w\s()*/+\-,:?{}=%<>!]*")
TYPES = frozenset(
    ["Sw", "S", "Swizzle", "Int", "C", "Layout", "ComposedLayout", "Shape", "Stride", "Coord", "Step", "tuple", "cute"]
)
"""CuTe's own words before ``<`` or ``::``; elsewhere they are names of sizes."""
TILED_AHEAD = re.compile(
    r"\s*(?://|\#)?[ \t]*(?:[A-Za-z_]\w*\s*[:=]\s*)?"
    r"(?:Tiled\s?(?:Copy|MMA|Mma)|Thr(?:Copy|MMA|Mma)|Copy[_ ]Atom|MMA[_ ]Atom)[ \t]*(?:\r?\n|$)"
)
"""A tiled copy or matrix instruction, which ``layoutalg.notation.tiled`` reads."""
WORDS = {"o", "byte", "element"}
"""CuTe's own words that are never names of sizes."""


@dataclass(frozen=True, slots=True)
class Printout:
    """The contents of a printed layout or tensor."""

    layout: Any  # the layout; offsets count elements
    element_bits: int | None = None  # element width, if the text has it
    dtype: str | None = None  # element type, if the text has it
    space: str | None = None  # ``smem``, ``gmem``, ``rmem``, ``tmem`` or the DSL's name
    address: int | None = None  # the pointer's address
    swizzle: Swizzle | None = None  # the pointer's swizzle as printed, on byte addresses


def read_printout(text: str) -> Printout:
    """Return the layout of a printed text, and the properties of its pointer.

    Example:
        >>> found = read_printout("sA: Sw<3,4,3>_smem_ptr[16b](0x7f0000000400) o (_8,_64):(_64,_1)")
        >>> print(found.layout, found.element_bits, found.swizzle)
        Sw<3,3,3> o 0 o (8,64):(64,1) 16 Sw<3,4,3,byte>
        >>> print(read_printout("raw_ptr(0x10: f16, gmem, align<16>) o (128,?{div=16}):(1,128)").layout)
        (128,n0):(1,128)
    """
    return _Reader(text).printout()


class _Reader(Cursor):
    """A reader of pointers; other readers parse the layouts."""

    def printout(self) -> Printout:
        """Read the whole text."""
        self.match(LABEL)
        self.blanks()
        while self.stop > self.at and self.text[self.stop - 1].isspace():
            self.stop -= 1
        if wrapped := self.match(TENSOR):
            self.unwrap(">" if wrapped[1] == "<" else ")")
        if kind := self.match(DIALECT):
            return self.dialect(kind[1])
        if found := self.match(TYPED):
            return self.typed(found[0].startswith("raw"))
        if found := self.match(ORIGIN):
            if any(digit in "123456789" for digit in found[1]):
                self.fail("only coordinate tensors at the origin can be read: subtract the offset", found.start(1))
            self.expect("o", "after ArithTuple(...)")
            return Printout(self.layout())
        start = self.at
        swizzle = self.match(SWIZZLE)
        if pointer := self.match(POINTER):
            return self.pointer(pointer, swizzle)
        self.at = start
        return self.plain()

    def plain(self) -> Printout:
        """Read a layout without a pointer, or with a pointer flag inside."""
        if is_symbolic(self.text, self.at, self.stop):
            return Printout(self.layout())
        layout, bits = flagged(self.text, self.at, self.stop)
        if bits is None:
            return Printout(layout)
        unit = re.search(r"S(?:w|wizzle)?\s*<\s*(\d+)\s*,\s*(\d+)\s*,\s*(-?\d+)", self.text[self.at : self.stop])
        swizzle = None if unit is None else Swizzle(int(unit[1]), int(unit[2]), int(unit[3]), "byte")
        return Printout(layout, bits, None, "smem", None, swizzle)

    def layout(self) -> Any:
        """Read the layout after the pointer, to the end."""
        if not self.peek():
            self.fail(f"expected {AFTER_O}, found the end of the text")
        if is_symbolic(self.text, self.at, self.stop):
            from layoutalg.notation.symbolic import parse_symbolic

            return parse_symbolic(self.text, self.at, self.stop)
        return parse_cute(self.text, self.at, self.stop)

    def unwrap(self, closing: str) -> None:
        """Skip the closing bracket at the end of the text, and the data before it."""
        self.blanks()
        data = re.search(r",\s*data\b", self.text[self.at : self.stop])
        if data is not None:
            self.stop = self.at + data.start()
        elif self.text[self.stop - 1] == closing:
            self.stop -= 1
        else:
            self.fail(f"expected {closing!r} to close tensor, found the end of the text", self.stop)

    def pointer(self, found: re.Match[str], swizzle: re.Match[str] | None) -> Printout:
        """Read ``[16b](address) o layout``."""
        width = self.match(WIDTH)
        if width is None:
            self.fail(f"expected the element width, as in [16b], found {self.found()}")
        address = self.match(ADDRESS)
        if address is None:
            self.fail(f"expected an address, (0x...) or (unset), found {self.found()}")
        self.expect("o", "after the pointer")
        bits, at = int(width[1]), None if address[1] is None else int(address[1], 16)
        if bits < 1:
            self.fail("an element has at least one bit", width.start())
        return self.placed(bits, None, found[1], at, swizzle)

    def typed(self, raw: bool) -> Printout:
        """Read ``<f16, smem, align<16>, S<3,4,3>> o layout``, or the same in parentheses after an address."""
        self.expect("(" if raw else "<", "after the pointer's name")
        address = self.match(RAW) if raw else None
        if raw and address is None:
            self.fail(f"expected an address, as in 0x400:, found {self.found()}")
        bits, dtype, space, swizzle = self.fields()
        self.expect(")" if raw else ">", "to close the pointer")
        self.expect("o", "after the pointer")
        return self.placed(bits, dtype, space, None if address is None else int(address[1], 16), swizzle)

    def fields(self) -> tuple[int, str, str | None, re.Match[str] | None]:
        """Read ``f16, smem, align<16>, S<3,4,3>``; everything after the element type is optional."""
        element = self.match(ELEMENT)
        if element is None:
            self.fail(f"expected an element type, found {self.found()}")
        space = swizzle = None
        while self.peek() == ",":
            here = self.at
            self.at += 1
            if self.match(ALIGN):
                continue
            if found := self.match(ON_POINTER):
                swizzle = found
            elif found := self.match(SPACE):
                space = found[0]
            else:
                self.at = here
                break
        return int(element[1]), element[0], space, swizzle

    def dialect(self, kind: str) -> Printout:
        """Read a type of the DSL's dialect, whose layout is quoted."""
        bits: int | None = None
        dtype = space = swizzle = None
        if kind == "memref":
            bits, dtype, space, swizzle = self.fields()
            self.expect(",", "before the layout")
        if kind == "coord_tensor":
            origin = self.match(QUOTED)
            if origin is None or any(digit in "123456789?" for digit in origin[1]):
                self.fail('expected the origin, as in "(0,0)"')
            self.expect(",", "before the layout")
        quoted = self.match(QUOTED)
        if quoted is None:
            self.fail(f"expected a layout in quotes, found {self.found()}")
        self.expect(">", f"to close !cute.{kind}<")
        self.end()
        self.at, self.stop = quoted.start(1), quoted.end(1)
        return Printout(self.layout()) if bits is None else self.placed(bits, dtype, space, None, swizzle)

    def placed(
        self, bits: int, dtype: str | None, space: str | None, address: int | None, swizzle: re.Match[str] | None
    ) -> Printout:
        """Read the layout and compose it with the pointer's swizzle."""
        layout = self.layout()
        if swizzle is None:
            return Printout(layout, bits, dtype, space, address)
        printed = self.build(
            lambda: Swizzle(int(swizzle[1]), int(swizzle[2]), int(swizzle[3]), "byte"), swizzle.start()
        )
        ahead = (address or 0) % printed.period * 8
        if ahead % bits:
            self.fail(f"the address is not a multiple of {bits} bits, so it splits elements", swizzle.start())
        on_elements = self.build(lambda: element_swizzle(printed, bits), swizzle.start())
        whole = self.build(lambda: ComposedLayout(on_elements, ahead // bits, layout), swizzle.start())
        return Printout(whole, bits, dtype, space, address, printed)


def is_symbolic(text: str, at: int = 0, stop: int | None = None) -> bool:
    """Whether a CuTe text contains unknown numbers or names of sizes.

    Example:
        >>> is_symbolic("(M,64):(64,1)"), is_symbolic("(128,?):(1,128)"), is_symbolic("(4,8):(E0,E1)")
        (True, True, False)
    """
    part = text[at:stop]
    if "?" in part:
        return True
    if not CHARACTERS.fullmatch(part) or not re.match(r"\s*[(A-Za-z]", part):
        return False
    shape = part.partition("where")[0]
    if ":" not in shape and not shape.lstrip().startswith("("):
        return False
    return any(_is_size(found[0], shape[found.end() :]) for found in NAME.finditer(shape))


def _is_size(word: str, following: str) -> bool:
    """Whether a word names a size, rather than being part of the notation or a basis element."""
    if word in WORDS or re.fullmatch(r"E\d*|_\w*|smem_ptr\w*", word):
        return False
    return word not in TYPES or not re.match(r"\s*(?:<|::)", following)
