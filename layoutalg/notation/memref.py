"""Read and write MLIR's ``memref`` types, ``strided`` and ``affine_map`` attributes: from indices to element offsets.

Notation: ``affine_map<(i, j) -> (72 * i + j)>`` with ``+``, ``-``, ``*`` by constants, ``floordiv``, ``ceildiv`` and
``mod`` by positive constants; ``memref<64x64xf16, LAYOUT, SPACE>``, where LAYOUT is ``strided<[72, 1], offset: 8>``,
an affine map, or absent (row-major). Dimension k is that of the type, outermost first. The results of a map are the
indices of a dense row-major buffer of the least extents that hold all of them, as MLIR normalizes such types.

References: the MLIR language reference, builtin dialect: MemRefType, StridedLayoutAttr, AffineMapAttr.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NoReturn

import numpy as np

from layoutalg.bridges.cute import recognize
from layoutalg.bridges.normal import of_axes
from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import Diagnostic, LayoutError, MalformedError, shown
from layoutalg.ground.limits import POINTS
from layoutalg.ground.recognize import Departure, linear
from layoutalg.integer import IntegerLayout
from layoutalg.piecewise import PiecewiseLayout
from layoutalg.piecewise.pieces import Form

DEEPEST = 64
"""Parentheses inside each other."""
_TOKEN = re.compile(r"\s*(?:([A-Za-z_$][\w$.]*)|(\d{1,19})|(.))", re.DOTALL)
_TYPE = re.compile(r"((?:(?:\d{1,18}|\?|\*)\s*x\s*)*)([A-Za-z_]\w*)")
_STRIDED = re.compile(r"strided\s*<\s*\[([^\]]*)\]\s*(?:,\s*offset\s*:\s*(\?|-?\d{1,18})\s*)?>")
_OPERATORS = ("floordiv", "ceildiv", "mod")


def fail(text: str, because: str) -> NoReturn:
    """Raise LA993."""
    raise MalformedError(Diagnostic("LA993", "this MLIR text has no layout", (shown(text, 100),), because))


@dataclass(frozen=True, slots=True)
class Term:
    """An affine or quasi-affine expression: the factor of each dimension and the constant, or only its text for ISL."""

    text: str
    factors: tuple[int, ...] | None
    constant: int = 0

    @property
    def number(self) -> int | None:
        """The value of a constant expression."""
        return self.constant if self.factors is not None and not any(self.factors) else None


def affine(factors: Sequence[int], constant: int) -> Term:
    """Return an affine expression."""
    parts = [f"{factor}*c{place}" for place, factor in enumerate(factors) if factor]
    return Term(f"({' + '.join([*parts, str(constant)])})", tuple(factors), constant)


def plus(one: Term, other: Term) -> Term:
    """Return a sum."""
    if one.factors is None or other.factors is None:
        return Term(f"({one.text} + {other.text})", None)
    return affine([a + b for a, b in zip(one.factors, other.factors, strict=True)], one.constant + other.constant)


def times(one: Term, by: int) -> Term:
    """Return a multiple."""
    if one.factors is None:
        return Term(f"({by}*{one.text})", None)  # mod binds tighter than * for ISL
    return affine([by * factor for factor in one.factors], by * one.constant)


@dataclass(frozen=True, slots=True)
class Map:
    """An affine map: its dimensions and results."""

    names: tuple[str, ...]
    results: tuple[Term, ...]
    text: str

    def dense(self, extents: Sequence[int]) -> Map:
        """Return the map to the row-major offset of its results."""
        if len(self.results) == 1 or len(extents) != len(self.names):  # a wrong number is refused by ``layout``
            return self
        total = Term("0", (0,) * len(self.names))
        for place, result in enumerate(self.results):
            least, most = self.range(result, extents)
            if least < 0:
                fail(self.text, f"its result {place} is {least} somewhere: an index must not be negative")
            total = plus(times(total, most + 1), result)
        return Map(self.names, (total,), self.text)

    def range(self, result: Term, extents: Sequence[int]) -> tuple[int, int]:
        """Return the least and the greatest value of an expression on a box; 0 and 0 on an empty one."""
        if 0 in extents:
            return 0, 0
        if result.factors is not None:
            ends = [factor * (extent - 1) for factor, extent in zip(result.factors, extents, strict=True)]
            low, high = sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends)
            return result.constant + low, result.constant + high
        if prod(extents) > POINTS:
            fail(self.text, f"several results that are not linear need a shape of at most {POINTS} elements")
        values = np.asarray(Map(self.names, (result,), self.text).layout(extents).table())
        return int(values.min()), int(values.max())

    def layout(self, extents: Sequence[int]) -> Any:
        """Return the map on a box: strides if it is linear, otherwise the narrowest family that has it."""
        if len(extents) != len(self.names):
            fail(
                self.text, f"the shape must have {len(self.names)} dimensions like the map, not {shown(tuple(extents))}"
            )
        if len(self.results) == 1 and (term := self.results[0]).factors is not None:
            return of_axes([(pair,) for pair in zip(extents, term.factors, strict=True)], term.constant)
        axes = [f"c{place}" for place in range(len(extents))]
        box = " and ".join(f"0 <= {axis} < {extent}" for axis, extent in zip(axes, extents, strict=True))
        values = ", ".join(term.text for term in self.results)
        outputs = tuple(f"dim{place}" for place in range(len(self.results))) if len(self.results) > 1 else ("offset",)
        found = PiecewiseLayout(f"{{ [{', '.join(axes)}] -> [{values}] : {box} }}", outputs)
        if len(self.results) > 1 or found.size > POINTS:
            return found
        return recognized(np.asarray(found.table(), dtype=np.int64).reshape(-1), extents) or found


def recognized(values: Any, extents: Sequence[int]) -> Any:
    """Return the layout with one mode or axis per extent that has these values, first extent fastest; or None.

    A map over F2 is preferred to strides modulo some m: more is known of it.

    Example:
        >>> print(recognized(np.arange(6), (2, 3)), recognized(np.array([0, 3, 3, 0]), (2, 2)))
        (2,3):(1,2) F2[dim0=(3), dim1=(3) -> offset:4]
        >>> recognized(np.array([0, 1, 5]), (3,)) is None
        True
    """
    try:
        plain: Any = recognize(values, tuple(extents))
    except LayoutError:  # neither strides under one swizzle, nor modulo some m
        plain = None
    narrow = plain is not None and not isinstance(plain, IntegerLayout)
    if narrow or len(values) & (len(values) - 1) or int(values.min()) < 0:
        return plain
    found = linear(values)
    if isinstance(found, Departure):
        return plain
    axes = tuple((f"dim{place}", extent.bit_length() - 1) for place, extent in enumerate(extents))
    return LinearLayout(axes, (("offset", int(values.max()).bit_length()),), *found)


def parse_memref(text: str, shape: Any = None) -> Any:
    """Return the layout of a memref type, or of strides or an affine map on the box ``shape``.

    Args:
        text: As in the module's notation.
        shape: Extents of strides or an affine map, outermost first.

    Raises: MalformedError: LA993: a dynamic size or stride, a symbol, or text that is neither.

    Example:
        >>> print(parse_memref("memref<64x32xf16, strided<[40, 1], offset: 8>>"))
        8 + (64,32):(40,1)
        >>> print(parse_memref("affine_map<(i, j) -> (i * 8 + (j + i) mod 8)>", (4, 8)))
        { [c0, c1] -> [(8c0 + (c0 + c1) mod 8)] : 0 <= c0 <= 3 and 0 <= c1 <= 7 } as offset
        >>> parse_memref("memref<?x8xf32>")
        Traceback (most recent call last):
        layoutalg.ground.errors.MalformedError: LA993 this MLIR text has no layout
          in     'memref<?x8xf32>'
          since  the extent of dimension 0 is dynamic: give a number
    """
    inside = text.strip()
    if inside.startswith(("affine_map", "strided")):
        if shape is None:
            what = "an affine map has" if inside.startswith("affine_map") else "strides have"
            fail(text, f"{what} no extents: give shape=, such as shape=(64, 64)")
        box = tuple(int(extent) for extent in shape)
        return _map(inside).layout(box) if inside.startswith("affine_map") else _strided(text, inside, box)
    extents, _, more = read_type(inside)
    if shape is not None and tuple(shape) != extents:
        fail(text, f"its shape is {extents}, not {shown(tuple(shape))}")
    layout = next((part for part in more if part.startswith(("strided", "affine_map"))), None)
    if layout is None:
        steps = [1]
        for extent in extents[:0:-1]:
            steps.append(steps[-1] * extent)
        return of_axes([(pair,) for pair in zip(extents, reversed(steps), strict=True)] if extents else [])
    if layout.startswith("affine_map"):
        return _map(layout).dense(extents).layout(extents)
    return _strided(text, layout, extents)


def _strided(text: str, layout: str, extents: tuple[int, ...]) -> Any:
    parts = _STRIDED.fullmatch(layout)
    strides = [part.strip() for part in parts[1].split(",")] if parts and parts[1].strip() else []
    if parts is None or not all(re.fullmatch(r"\?|-?\d{1,18}", part) for part in strides):
        fail(text, "a strided layout is strided<[72, 1]> or strided<[72, 1], offset: 8>")
    if "?" in (*strides, parts[2]):
        what = f"the stride of dimension {strides.index('?')}" if "?" in strides else "the offset"
        fail(text, f"{what} is dynamic: give a number")
    if len(strides) != len(extents):
        fail(text, f"it has {len(extents)} dimensions and {len(strides)} strides")
    axes = [((extent, int(step)),) for extent, step in zip(extents, strides, strict=True)]
    return of_axes(axes, int(parts[2] or 0))


def read_type(text: str) -> tuple[tuple[int, ...], str, tuple[str, ...]]:
    """Return the extents, the element type and the other parts of a memref type.

    Example:
        >>> read_type("memref<4x8xf16, #gpu.address_space<workgroup>>")
        ((4, 8), 'f16', ('#gpu.address_space<workgroup>',))
    """
    found = re.fullmatch(r"memref\s*<(.*)>", text.strip(), re.DOTALL)
    first, *more = _parts(found[1]) if found else [""]
    parts = _TYPE.fullmatch(first)
    if parts is None:
        fail(text, "a memref is memref<64x64xf16>, memref<64x64xf16, strided<[72, 1]>> or one with an affine_map")
    # the x of an extent and the element type share no letter: 4xf16, not 4xx
    extents = [part.strip() for part in parts[1].split("x") if part.strip()]
    for place, extent in enumerate(extents):
        if not extent.isdecimal():
            fail(text, f"the extent of dimension {place} is dynamic: give a number")
    return tuple(map(int, extents)), parts[2], tuple(more)


def _parts(text: str) -> list[str]:
    """Split at commas outside of brackets; the arrow of a map closes nothing."""
    found, depth, start = [], 0, 0
    plain = text.replace("->", "--")
    for at, letter in enumerate(plain):
        depth += (letter in "<([{") - (letter in ">)]}")
        if letter == "," and depth == 0:
            found.append(text[start:at].strip())
            start = at + 1
    return [*found, text[start:].strip()]


def _map(text: str) -> Map:
    found = re.fullmatch(r"affine_map\s*<\s*\(([^()]*)\)\s*(\[[^\]]*\])?\s*->\s*\((.*)\)\s*>", text.strip(), re.DOTALL)
    if found is None:
        fail(text, "an affine map is affine_map<(i, j) -> (72 * i + j)>")
    names = tuple(part.strip() for part in found[1].split(",")) if found[1].strip() else ()
    if not all(re.fullmatch(r"[A-Za-z_$][\w$.]*", name) for name in names) or len(set(names)) < len(names):
        fail(text, "its dimensions must be distinct names")
    symbols = [part.strip() for part in (found[2] or "[]")[1:-1].split(",") if part.strip()]
    if symbols:
        fail(text, f"it has the symbols {', '.join(symbols)}: put numbers in their place")
    return Map(names, tuple(_Reader(text, part, names).whole() for part in _parts(found[3])), text)


class _Reader:
    """Reads one expression by recursive descent; floordiv, ceildiv, mod and * bind alike, left to right."""

    def __init__(self, whole: str, text: str, names: tuple[str, ...]) -> None:
        self.text, self.names, self.at, self.depth = whole, names, 0, 0
        found = [token for token in _TOKEN.findall(text.strip()) if any(token)]
        self.tokens: list[str] = [
            word or number or sign for word, number, sign in found if (word or number or sign.strip())
        ]

    def whole(self) -> Term:
        found = self.sum()
        if self.at < len(self.tokens):
            fail(self.text, f"{shown(self.tokens[self.at])} does not continue an affine expression")
        return found

    def next(self, *wanted: str) -> str | None:
        if self.at < len(self.tokens) and (not wanted or self.tokens[self.at] in wanted):
            self.at += 1
            return self.tokens[self.at - 1]
        return None

    def sum(self) -> Term:
        found = self.product()
        while sign := self.next("+", "-"):
            other = self.product()
            found = plus(found, other if sign == "+" else times(other, -1))
        return found

    def product(self) -> Term:
        found = self.atom()
        while sign := self.next("*", *_OPERATORS):
            other = self.atom()
            if sign == "*":
                found = self.times(found, other)
                continue
            by = other.number
            if by is None or by < 1:
                fail(self.text, f"{sign} needs a positive constant on its right, not {shown(other.text)}")
            if found.number is not None:
                value = found.number
                answer = {"floordiv": value // by, "ceildiv": -(-value // by), "mod": value % by}[sign]
                found = affine([0] * len(self.names), answer)
            elif sign == "mod":
                found = Term(f"({found.text} mod {by})", None)
            else:
                found = Term(f"floor(({found.text} + {by - 1 if sign == 'ceildiv' else 0})/{by})", None)
        return found

    def times(self, one: Term, other: Term) -> Term:
        one, by = (one, other.number) if other.number is not None else (other, one.number)
        if by is None:
            fail(self.text, f"{shown(one.text)} * {shown(other.text)} is not affine: one side must be a constant")
        return times(one, by)

    def atom(self) -> Term:
        self.depth += 1
        if self.depth > DEEPEST:
            fail(self.text, f"it may be nested {DEEPEST} deep")
        found = self._atom()
        self.depth -= 1
        return found

    def _atom(self) -> Term:
        token, none = self.next(), [0] * len(self.names)
        if token == "(":
            found = self.sum()
            if not self.next(")"):
                fail(self.text, "a parenthesis is not closed")
            return found
        if token == "-":
            return times(self.atom(), -1)
        if token is not None and token.isdecimal():
            return affine(none, int(token))
        if token in self.names and token is not None:
            place = self.names.index(token)
            return affine([int(k == place) for k in range(len(none))], 0)
        fail(self.text, f"{shown(token)} is none of its dimensions {', '.join(self.names) or '(it has none)'}")


def attribute(layout: PiecewiseLayout, extents: Sequence[int]) -> str:
    """Return a total layout of one piece as a function of a box of dimensions with the same flat index.

    Args:
        layout: The layout on its digits.
        extents: Extents of the dimensions; the first varies fastest in the flat index.

    Example:
        >>> digits = PiecewiseLayout("{ [a, b, c] -> [3 + a + 16b + 2c] : 0 <= a < 2 and 0 <= b < 4 and 0 <= c < 8 }")
        >>> print(attribute(digits, (2, 4, 8)), attribute(digits, (8, 8)))
        strided<[1, 16, 2], offset: 3> affine_map<(d0, d1) -> (d0 mod 2 + (d0 floordiv 2) * 16 + d1 * 2 + 3)>
    """
    (piece,) = layout.value.pieces
    box = _Box(tuple(extents), tuple(layout.in_dims.values()))
    if len(piece.outputs) == 1 and (strides := box.strides(value := piece.outputs[0][1])) is not None:
        offset = f", offset: {value.constant}" if value.constant else ""
        return f"strided<[{', '.join(map(str, strides))}]{offset}>"
    names = ", ".join(f"d{place}" for place in range(len(extents)))
    return f"affine_map<({names}) -> ({', '.join([box.text(value, floors) for floors, value in piece.outputs])})>"


@dataclass(frozen=True, slots=True)
class _Box:
    """Writes forms in the digits of a flat index as expressions in the dimensions of a box with the same flat index."""

    extents: tuple[int, ...]
    digits: tuple[int, ...]  # their extents

    def steps(self) -> list[int]:
        """Return the steps of the dimensions in the flat index."""
        return [prod(self.extents[:place]) for place in range(len(self.extents))]

    def runs(self, factors: Sequence[int]) -> list[tuple[int, int, int]]:
        """Return the nonzero (factor, step, extent) of digits with factors: cut at dimensions, joined inside them."""
        found: list[tuple[int, int, int]] = []
        starts, end = {*self.steps()}, 1
        for factor, extent in zip(factors, self.digits, strict=True):
            step, end = end, end * extent
            inside = sorted(start for start in starts if step < start < end and start % step == 0 == end % start)
            for low, high in itertools.pairwise([step, *inside, end] if extent > 1 else []):
                scale = factor * (low // step)
                if found and low not in starts and found[-1][0] * found[-1][2] == scale:
                    scale, low, _ = found.pop()
                found.append((scale, low, high // low))
        return [run for run in found if run[0]]

    def strides(self, value: Form) -> tuple[int, ...] | None:
        """Return the stride of every dimension, 0 for extent 1; None if the form has not one for each."""
        runs = {(step, extent): factor for factor, step, extent in self.runs(value.dims)}
        found = tuple(runs.pop(dimension, 0) for dimension in zip(self.steps(), self.extents, strict=True))
        return None if runs or any(value.floors) or value.denominator != 1 else found

    def digit(self, step: int, extent: int) -> str:
        """Return a digit of the flat index: of one dimension if it lies in one."""
        name, whole = " + ".join(scaled(at, f"d{place}") for place, at in enumerate(self.steps())), prod(self.extents)
        for place, (start, size) in enumerate(zip(self.steps(), self.extents, strict=True)):
            if step % start == 0 and start * size % (step * extent) == 0:
                name, whole, step = f"d{place}", size, step // start
                break
        if step > 1:
            name = f"{enclosed(name)} floordiv {step}"
        return name if step * extent == whole else f"{enclosed(name)} mod {extent}"

    def text(self, form: Form, floors: Sequence[Form]) -> str:
        """Return a form as an expression; ``x - n * (x floordiv n)`` becomes ``x mod n``."""
        factors, quotients, constant = [*form.dims], [*form.floors], form.constant
        terms: list[str] = []
        for place in reversed(range(len(quotients))):
            inner, divisor = floors[place], floors[place].denominator
            factor, rest = divmod(-quotients[place], divisor)
            if not quotients[place]:
                continue
            whole = enclosed(self.text(replace(inner, denominator=1), floors))
            if factor < 0 or rest:
                terms.insert(0, scaled(quotients[place], f"{whole} floordiv {divisor}"))
                continue
            terms.insert(0, scaled(factor, f"{whole} mod {divisor}"))
            factors = [one - factor * other for one, other in zip(factors, inner.dims, strict=True)]
            for at, other in enumerate(inner.floors):
                quotients[at] -= factor * other
            constant -= factor * inner.constant
        terms = [scaled(factor, self.digit(*run)) for factor, *run in self.runs(factors)] + terms
        terms += [str(constant)] if constant or not terms else []
        found = " + ".join(terms).replace("+ -", "- ")
        return found if form.denominator == 1 else f"{enclosed(found)} floordiv {form.denominator}"


def enclosed(text: str) -> str:
    """Return an operand of ``*``, ``floordiv`` or ``mod``."""
    return f"({text})" if " " in text or text.startswith("-") else text


def scaled(factor: int, text: str) -> str:
    """Return a multiple as text; a negative one begins with its sign."""
    if factor in (1, -1):
        return text if factor == 1 else f"-{enclosed(text)}"
    return f"{'-' if factor < 0 else ''}{enclosed(text)} * {abs(factor)}"
