"""The notation of hierarchical layouts and its parser; ``text`` writes it.

Notation:

    layout ::= source "->" box {"|" guard}
    source ::= axis {"," axis} [flips]              register 2:1, lane (4,2):(8,2) -> row:4, col:4
             | "[" box "]" map                      [a:2, b:3] (3,2):(2,1) -> x:6
    axis   ::= name digits
    map    ::= digits [flips] | "table" values      [x:3] table 1,2,0 -> x:3
    digits ::= extents ":" strides                  both one number or a parenthesised list, fastest digit first
    stride ::= integer | weight {"^" weight}        col 8:1, row (2,6):(8^1,16): row bit 0 flips column bit 0 too
    flips  ::= "^" "(" weight {"," weight} ")"      shared target bits that start as 1
    box    ::= name ":" extent {"," ...} | "[]"
    guard  ::= bound {"and" bound} ["where" map "->" box]
    bound  ::= name "<" number

Every source axis is followed by its digits, with strides into the flat index of the target; a negative stride reverses
the digit. A guard without ``where`` bounds axes of the source if it has all of them, else axes of the target; one with
``where`` bounds the coordinates of the box that its map maps to. A table of more than ``TABLE_TEXT`` values is
abbreviated and cannot be parsed back; use ``repr`` or pickle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from layoutalg.ground.digits import Digits, Stride
from layoutalg.ground.errors import Diagnostic, LayoutError, RepresentabilityError
from layoutalg.ground.text import Grammar, Tokens
from layoutalg.hierarchy.bijection import Bijection, DigitMap, TableMap
from layoutalg.hierarchy.layout import Guard, HierarchicalLayout, bounded_side
from layoutalg.hierarchy.levels import Box

Value = TypeVar("Value")

_GRAMMAR = Grammar(
    ("[", "]", "(", ")", ",", ":", "^", "->", "|", "<", "..."),
    True,
    "LA761",
    "cannot parse hierarchical layout",
)


def parse_hierarchical(text: str) -> HierarchicalLayout:
    """Parse a hierarchical layout; ``parse_hierarchical(str(x)) == x`` unless a table is abbreviated.

    Args:
        text: See the module; whitespace is free, but ``layoutalg.parse`` needs a blank after the first axis.

    Example:
        >>> layout = parse_hierarchical("x 8:1 -> x_in:4, x_out:2 | x<5")
        >>> layout.table().tolist()
        [0, 1, 2, 3, 4, -1, -1, -1]
        >>> parse_hierarchical("[a:2, b:3] (3,2):(2,1) -> x:6").at(1)
        2
    """
    reader = _Reader(Tokens(text, _GRAMMAR))
    answer = reader.layout()
    reader.end()
    return answer


class _Reader:
    """One method per construct of the notation."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens

    def build(self, make: Callable[[], Value], at: int) -> Value:
        """Return the value; errors get the position in the text."""
        try:
            return make()
        except LayoutError as error:
            inner = error.diagnostic
            because = f"{inner.because}; written at character {at}"
            witness = {**(inner.witness or {}), "position": at}
            where = (self.tokens.text[:200],)
            raise type(error)(Diagnostic(inner.code, inner.what, where, because, witness)) from error

    def end(self) -> None:
        """Check that nothing follows the layout."""
        if self.tokens.next < len(self.tokens.items):
            self.tokens.fail("| or the end", self.tokens.position())

    def layout(self) -> HierarchicalLayout:
        """Read a whole layout."""
        tokens, at = self.tokens, self.tokens.position()
        mapping: Bijection
        if tokens.accept("["):
            source = self.box(closed=True)
            mapping = self.map()
        else:
            axes, modes = self.by_axis()
            flips = self.flips()
            source = self.build(lambda: Box(axes), at)
            mapping = self.build(lambda: DigitMap(modes, flips), at)
        tokens.take("->", "->")
        target = self.box()
        guards = []
        while tokens.accept("|"):
            guards.append(self.guard(source, target, mapping))
        return self.build(lambda: HierarchicalLayout(source, target, mapping, tuple(guards)), at)

    def by_axis(self) -> tuple[tuple[tuple[str, int], ...], Digits]:
        """Read the axes of the source with their digits."""
        axes: list[tuple[str, int]] = []
        modes: list[tuple[int, Stride]] = []
        while not axes or self.tokens.accept(","):
            name = self.tokens.take("name", "an axis")
            digits = self.digits()
            extent = 1
            for width, _ in digits:
                extent *= width
            axes.append((name, extent))
            modes += digits
        return tuple(axes), tuple(modes)

    def digits(self) -> Digits:
        """Read ``extents:strides``."""
        tokens, at = self.tokens, self.tokens.position()
        extents = [self.number("an extent")] if not tokens.peek("(") else list(tokens.point())
        tokens.take(":", ":")
        strides: list[Stride] = []
        if tokens.accept("("):
            while not tokens.accept(")"):
                if strides:
                    tokens.take(",", ", or )")
                strides.append(self.stride())
        else:
            strides.append(self.stride())
        if len(extents) != len(strides) or not extents:
            tokens.fail(f"as many extents as strides, not {len(extents)} and {len(strides)}", at)
        return tuple(zip(extents, strides, strict=True))

    def stride(self) -> Stride:
        """Read an integer or the weights of bits."""
        values = [self.number("a stride")]
        while self.tokens.peek("^") and not self.tokens.peek("(", 1):
            self.tokens.take("^", "^")
            values.append(self.number("a weight"))
        return values[0] if len(values) == 1 else tuple(values)

    def number(self, expected: str) -> int:
        """Read an integer."""
        return int(self.tokens.take("number", expected))

    def flips(self) -> tuple[int, ...]:
        """Read the optional flips."""
        return self.tokens.point() if self.tokens.accept("^") else ()

    def map(self) -> Bijection:
        """Read digits with flips, or a table."""
        at = self.tokens.position()
        if not self.tokens.accept("table"):
            digits, flips = self.digits(), self.flips()
            return self.build(lambda: DigitMap(digits, flips), at)
        values: list[int] = []
        while not values or self.tokens.accept(","):
            if self.tokens.peek("..."):
                raise RepresentabilityError(
                    Diagnostic(
                        code="LA762",
                        what="the text abbreviates a table",
                        where=(self.tokens.text[:200],),
                        because=f"it has only the first {len(values)} values; use repr or pickle",
                        witness={"position": self.tokens.position()},
                    )
                )
            values.append(self.number("a value of the table"))
        return self.build(lambda: TableMap(tuple(values)), at)

    def box(self, closed: bool = False) -> Box:
        """Read the axes of a box; ``closed`` if its bracket has been read already."""
        tokens, at = self.tokens, self.tokens.position()
        closed = closed or tokens.accept("[")
        axes: list[tuple[str, int]] = []
        while not (closed and tokens.accept("]")):
            if axes and not tokens.accept(","):
                if not closed:
                    break
                tokens.take(",", ", or ]")
            name = tokens.take("name", "an axis")
            tokens.take(":", ":")
            axes.append((name, self.number("an extent")))
        return self.build(lambda: Box(tuple(axes)), at)

    def guard(self, source: Box, target: Box, mapping: Bijection) -> Guard:
        """Read the bounds of a guard and the box they refer to."""
        at = self.tokens.position()
        bounds: dict[str, int] = {}
        while not bounds or self.tokens.accept("and"):
            name_at = self.tokens.position()
            name = self.tokens.take("name", "an axis")
            if name in bounds:
                self.tokens.fail(f"one bound of {name}", name_at)
            self.tokens.take("<", "<")
            bounds[name] = self.number("a bound")
        if self.tokens.accept("where"):
            acting = self.map()
            self.tokens.take("->", "->")
            box = self.box()
            if not bounds.keys() <= box.dims.keys():
                self.tokens.fail(f"axes among {list(box.names)}", at)
        else:
            side = bounded_side(bounds.keys(), source, target, mapping)
            if side is None:
                self.tokens.fail(f"axes of the source ({source}) or of the target ({target})", at)
            acting, box = side
        limits = tuple(bounds.get(name, extent) for name, extent in box.axes)
        return self.build(lambda: Guard(acting, box, limits), at)
