"""Read symbolic CuTe layouts: names, polynomials and unknown numbers in shapes and strides.

Notation: ``(M,64):(64,1)``, ``(M/4,4):(4,1) where M % 4 == 0``, and what the DSL prints for dynamic sizes: ``?``,
``?{i64}``, ``?{div=16}``, ``?{i64 div=16}``. Each ``?`` is a separate number: ``n0``, ``n1``, ... in a shape, at least
1; ``d0``, ``d1``, ... in a stride, any integer, because its sign is unknown. ``div=16`` becomes the assumption
``n0 % 16 == 0``. Conditions after ``where`` are assumptions. Named sizes are at least 1.
"""

from __future__ import annotations

import re
from typing import Any

from layoutalg.cute.notation import Cursor
from layoutalg.cute.symbolic import SymbolicLayout
from layoutalg.ground.assumptions import Assumptions
from layoutalg.ground.limits import TUPLE_DEPTH
from layoutalg.ground.polynomial_text import polynomial

UNKNOWN = re.compile(r"\?(?:\s*\{\s*(?:i\d{1,3}\b)?\s*(?:div(?:by)?\s*=?\s*(\d{1,18}))?\s*\})?")
NUMBERS_ONLY = re.compile(r"(?<!\w)S(?:w|wizzle)?\s*<|@|(?<!\w)o(?!\w)")
WHERE = re.compile(r"\bwhere\b")
AFTER_LIST = re.compile(r"\s*(?:$|[,):]|where\b)")
STATIC = re.compile(r"(?<!\w)_(?=\d)|(?<!\w)(?:Int|C)\s*<\s*(-?\d+)\s*>")


def parse_symbolic(text: str, at: int = 0, stop: int | None = None) -> SymbolicLayout:
    """Parse a symbolic layout.

    Example:
        >>> layout = parse_symbolic("(128,?{div=16}):(1,?{i64})")
        >>> print(layout, "given", layout.assumptions)
        (128,n0):(1,d0) given n0 % 16 == 0, d0 any integer
        >>> print(parse_symbolic("(M,64):(64,1)").subs({"M": 8}))
        (8,64):(64,1)
    """
    return _Reader(text, at, stop).layout()


class _Reader(Cursor):
    """A reader of shape:stride whose leaves are expressions."""

    def layout(self) -> SymbolicLayout:
        """Read the whole text."""
        self.assumed: list[str] = []
        self.integers: list[str] = []
        self.unknown = {"n": 0, "d": 0}
        self.taken = frozenset(re.findall(r"\w+", self.text))
        self.blanks()
        start = self.at
        for found in NUMBERS_ONLY.finditer(self.text, start, self.stop):
            self.fail("swizzles, basis strides and offsets work only with numbers, not with names or ?", found.start())
        shape = self.nested("n", 0)
        stride = None
        if self.peek() == ":":
            self.at += 1
            stride = self.nested("d", 0)
        if self.match(WHERE):
            self.assumed += [part for part in self.text[self.at : self.stop].split(",") if part.strip()]
            self.at = self.stop
        if self.peek():
            self.fail(f"expected the end of the text, found {self.found()}")
        known = tuple(self.assumed)
        return self.build(lambda: SymbolicLayout(shape, stride, Assumptions(known, self.integers)), start)

    def nested(self, prefix: str, level: int) -> Any:
        """Read a list or an expression."""
        if self.peek() != "(" or not self.is_list():
            return self.leaf(prefix)
        if level >= TUPLE_DEPTH:
            self.fail(f"the tuple nests more than {TUPLE_DEPTH} deep", code="LA191")
        self.at += 1
        entries: list[Any] = []
        while self.peek() != ")":
            if entries:
                self.expect(",", "or ')' between the entries")
            entries.append(self.nested(prefix, level + 1))
        self.at += 1
        return tuple(entries)

    def is_list(self) -> bool:
        """Whether the parenthesis at the cursor opens a list rather than an expression such as (M + 1)*N."""
        depth = 0
        for place in range(self.at, self.stop):
            depth += {"(": 1, ")": -1}.get(self.text[place], 0)
            if depth == 0:
                return AFTER_LIST.match(self.text, place + 1, self.stop) is not None
        return True

    def leaf(self, prefix: str) -> Any:
        """Read one extent or stride."""
        self.count()
        start = self.at
        if found := self.match(UNKNOWN):
            name = f"{prefix}{self.unknown[prefix]}"
            while name in self.taken:
                self.unknown[prefix] += 1
                name = f"{prefix}{self.unknown[prefix]}"
            self.unknown[prefix] += 1
            if found[1]:
                self.assumed.append(f"{name} % {int(found[1])} == 0")
            if prefix == "d":
                self.integers.append(name)
            return name
        depth = 0
        while self.at < self.stop:
            char = self.text[self.at]
            if depth == 0 and (char in ",):@?{" or WHERE.match(self.text, self.at, self.stop)):
                break
            depth += {"(": 1, ")": -1}.get(char, 0)
            self.at += 1
        written = STATIC.sub(lambda static: static[1] or "", self.text[start : self.at]).strip()
        if not written:
            self.fail(f"expected {'an extent' if prefix == 'n' else 'a stride'}, found {self.found()}", start)
        return self.build(lambda: polynomial(written), start)
