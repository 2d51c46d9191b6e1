"""Recursive-descent parser for the ISL texts that ISL prints and people write for layouts, independent of ISL.

Implementation notes: ``mod`` binds tighter than the coefficient before it. Lexicographic comparisons and conditional
values are not supported.
"""

from __future__ import annotations

import re
from typing import NoReturn

from layoutalg.ground import clock
from layoutalg.piecewise.clauses import Atom, Clause, Condition, Linear, UnreadError
from layoutalg.piecewise.notation import WORDS

_TOKEN = re.compile(r"\s*(?:(\d+)|([A-Za-z_][A-Za-z0-9_']*)|(->|<=|>=|!=|&&|\|\||[-+*/%<>=!:;,(){}\[\]]))")
_COMPARED = {"<", "<=", ">", ">=", "=", "!="}
_LOGIC = {*_COMPARED, "and", "or", "not", "!", "&&", "||", "exists", "true", "false", "implies"}


class Reader:
    """Parser state over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self.tokens: list[str] = []
        place, end = 0, len(text.rstrip())
        while place < end:
            found = _TOKEN.match(text, place)
            if found is None:
                raise UnreadError(f"column {place}")
            self.tokens.append(found[0].strip())
            place = found.end()
        self.place = 0
        self.clause = Clause()
        self.logical = self._logical()

    def _logical(self) -> dict[int, bool]:
        """Return for each opening parenthesis whether it encloses a condition."""
        answer: dict[int, bool] = {}
        opened: list[int] = []
        for place, token in enumerate(self.tokens):
            if token == "(":
                opened.append(place)
                answer[place] = False
            elif token == ")" and opened:
                closed = opened.pop()
                if opened and answer[closed]:
                    answer[opened[-1]] = True
            elif token in _LOGIC and opened:
                answer[opened[-1]] = True
        return answer

    def peek(self) -> str:
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def take(self, *wanted: str) -> str:
        token = self.peek()
        if wanted and token not in wanted:
            self.fail()
        self.place += 1
        return token

    def taken(self, *wanted: str) -> bool:
        if self.peek() in wanted:
            self.place += 1
            return True
        return False

    def fail(self) -> NoReturn:
        raise UnreadError(f"{self.peek()!r} at token {self.place}")

    def pieces(self) -> tuple[tuple[str, ...], tuple[bool, int, int], tuple[Clause, ...]]:
        """Return the parameters, (is_map, places before and after the arrow), and the clauses of a whole text."""
        params: tuple[str, ...] = ()
        if self.peek() == "[":
            self.take()
            names = []
            while not self.taken("]"):
                names.append(self.name())
                if self.peek() != "]":
                    self.take(",")
            params = tuple(names)
            self.take("->")
        self.take("{")
        clauses: list[Clause] = []
        shapes = set()
        while self.peek() != "}":
            clock.check("reading a text")
            shapes.add(self.piece(params))
            clauses.append(self.clause)
            if self.peek() != "}":
                self.take(";")
        self.take("}")
        if self.place != len(self.tokens) or len(shapes) > 1:
            self.fail()
        return params, shapes.pop() if shapes else (False, 0, 0), tuple(clauses)

    def name(self) -> str:
        token = self.take()
        if not (token[:1].isalpha() or token[:1] == "_") or token in WORDS:
            self.fail()
        return token

    def piece(self, params: tuple[str, ...]) -> tuple[bool, int, int]:
        clause = self.clause = Clause()
        for name in params:
            clause.names[name] = clause.atom(Atom("variable", name))
        is_map = False
        if self.peek() not in {":", "}", ";"}:
            self.tuple()
            if self.taken("->"):
                is_map, clause.inputs = True, len(clause.places)
                self.tuple()
        if self.taken(":") and self.peek() not in {"}", ";"}:
            clause.condition = self.any()
        return is_map, clause.inputs, len(clause.places) - clause.inputs

    def tuple(self) -> None:
        clause = self.clause
        if self.peek() != "[":
            self.name()  # the name of the tuple
        self.take("[")
        while not self.taken("]"):
            token, following = self.peek(), self.tokens[self.place + 1 : self.place + 2]
            fresh = (token[:1].isalpha() or token[:1] == "_") and token not in clause.names and token not in WORDS
            if fresh and following == ["="]:
                self.take(), self.take()
                clause.names[token] = self.sum()
                clause.places.append(clause.names[token])
            elif fresh and following and following[0] in {",", "]"}:
                self.take()
                variable = clause.atom(Atom("variable", f"#{len(clause.places)}"))
                clause.names[token] = variable
                clause.places.append(variable)
            else:
                if following == ["="]:
                    self.fail()
                clause.places.append(self.sum())
            if self.peek() != "]":
                self.take(",")

    def any(self) -> Condition:
        parts = [self.all()]
        while self.taken("or", "||"):
            parts.append(self.all())
        found: Condition = ("any", tuple(parts)) if len(parts) > 1 else parts[0]
        if self.taken("implies"):
            return ("any", (("not", found), self.any()))
        return found

    def all(self) -> Condition:
        parts = [self.one()]
        while self.taken("and", "&&"):
            parts.append(self.one())
        return ("all", tuple(parts)) if len(parts) > 1 else parts[0]

    def one(self) -> Condition:
        if self.taken("not", "!"):
            return ("not", self.one())
        if self.taken("true"):
            return ("all", ())
        if self.taken("false"):
            return ("any", ())
        if self.taken("exists"):
            return self.some()
        if self.peek() == "(" and self.logical.get(self.place):
            self.take()
            inner = self.any()
            self.take(")")
            return inner
        return self.chain()

    def some(self) -> Condition:
        clause = self.clause
        bracket = self.taken("(")
        shadowed = dict(clause.names)
        free: list[str] = []
        while True:
            name = self.name()
            if self.taken("="):
                clause.names[name] = self.sum()
                if clause.names[name].denominator != 1:
                    self.fail()
            else:
                own = f"{name}@{len(clause.bound)}"
                clause.bound.add(own)
                clause.names[name] = clause.atom(Atom("variable", own))
                free.append(own)
            if not self.taken(","):
                break
        self.take(":")
        inner = self.any()
        if bracket:
            self.take(")")
        clause.names = shadowed
        return ("some", tuple(free), inner) if free else inner

    def chain(self) -> Condition:
        left = self.listed()
        parts: list[Condition] = []
        while self.peek() in _COMPARED:
            sign = self.take()
            right = self.listed()
            parts += [self.compared(a, sign, b) for a in left for b in right]
            left = right
        if not parts:
            self.fail()
        return ("all", tuple(parts)) if len(parts) > 1 else parts[0]

    def listed(self) -> list[Linear]:
        found = [self.sum()]
        while self.taken(","):
            found.append(self.sum())
        return found

    def compared(self, left: Linear, sign: str, right: Linear) -> Condition:
        if sign in {"<", "<="}:
            left, right = right, left
        apart = left.plus(right.scaled(-1))
        apart = Linear(apart.terms, apart.constant)  # the denominator is positive, so the sign stays
        if sign in {"=", "!="}:
            return ("zero", apart) if sign == "=" else ("not", ("zero", apart))
        return ("least", Linear(apart.terms, apart.constant - (sign in {"<", ">"})))

    def sum(self) -> Linear:
        total = self.factor()
        while self.peek() in {"+", "-"}:
            negative = self.take() == "-"
            part = self.factor()
            total = total.plus(part.scaled(-1) if negative else part)
        return total

    def factor(self) -> Linear:
        """Return one term; ``mod`` binds tighter than the coefficient before it."""
        token = self.peek()
        if self.taken("-"):
            return self.factor().scaled(-1)
        if token.isdigit():
            self.take()
            if self.taken("*") or (self.peek()[:1].isalpha() or self.peek()[:1] == "_"):
                if self.tokens[self.place - 1] == "*" or self.peek() not in WORDS:
                    return self.factor().scaled(int(token))
                if self.peek() in {"floor", "ceil", "floord", "ceild", "min", "max"}:
                    self.fail()
            base = Linear((), int(token))
        elif self.taken("("):
            base = self.sum()
            self.take(")")
        elif token in {"floor", "ceil"}:
            self.take(), self.take("(")
            base = self.rounded(self.sum(), token == "ceil")
            self.take(")")
        elif token in {"floord", "ceild"}:
            self.take(), self.take("(")
            inner = self.sum()
            self.take(",")
            base = self.rounded(self.divided(inner), token == "ceild")
            self.take(")")
        elif token in {"min", "max"}:
            self.take(), self.take("(")
            sums = self.listed()
            self.take(")")
            if any(part.denominator != 1 for part in sums):
                self.fail()
            base = self.clause.atom(Atom(token, sums=tuple(sums)))
        else:
            name = self.name()
            if name not in self.clause.names:
                self.fail()
            base = self.clause.names[name]
        return self.after(base)

    def after(self, base: Linear) -> Linear:
        """Apply the operators that follow a base: remainder, quotient, factor."""
        while self.peek() in {"mod", "%", "/", "*"}:
            sign = self.take()
            if sign == "/":
                base = self.divided(base)
            elif sign == "*":
                other = self.factor()
                if other.terms and base.terms:
                    self.fail()
                base, other = (base, other) if other.terms == () else (other, base)
                if other.denominator != 1:
                    self.fail()
                base = base.scaled(other.constant)
            else:
                if not self.peek().isdigit() or not int(self.peek()) or base.denominator != 1:
                    self.fail()
                base = self.clause.atom(Atom("mod", sums=(base,), modulus=int(self.take())))
        return base

    def divided(self, base: Linear) -> Linear:
        if not self.peek().isdigit() or not int(self.peek()):
            self.fail()
        return Linear(base.terms, base.constant, base.denominator * int(self.take()))

    def rounded(self, inner: Linear, up: bool) -> Linear:
        if inner.denominator == 1:
            return inner
        if up:
            return self.clause.atom(Atom("floor", sums=(inner.scaled(-1),))).scaled(-1)
        return self.clause.atom(Atom("floor", sums=(inner,)))
