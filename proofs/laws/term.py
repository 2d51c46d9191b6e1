"""Integers without a value yet: Python's operators write SMT-LIB 2, and a condition asks which way to go.

Notation: a term has a width: 0 for an integer, w for a bit-vector of w bits read as two's complement. Bit-vectors grow
with every sum and shift, so that a term always has the value Python's integers would have.

Main statements: the library's own functions run on terms. ``bool`` of a condition is decided by the path, so a function
with branches runs once per feasible path; ``//`` and ``%`` round as Python's do and refuse a divisor of 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

Step = tuple[bool, bool]
"""A decision, and whether the other one is still to be tried."""


@dataclass(slots=True)
class Path:
    """One way through a function: what it declared, defined and decided."""

    feasible: Callable[[str], bool]  # asks whether some values satisfy a text; True where that was not decided
    ahead: tuple[Step, ...] = ()  # the decisions to take first, those of an earlier run
    names: dict[str, int] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    known: dict[str, str] = field(default_factory=dict)
    decided: dict[str, bool] = field(default_factory=dict)
    taken: list[Step] = field(default_factory=list)
    quotients: dict[str, tuple[Any, Any]] = field(default_factory=dict)

    def declare(self, name: str, width: int) -> Term:
        """Return a new integer or bit-vector."""
        self.names[name] = width
        self.lines.append(f"(declare-const {name} {_sort(width)})")
        return Term(self, name, width)

    def define(self, text: str, sort: str) -> str:
        """Return the name of an expression, so that a text that is used twice is written once."""
        if text not in self.known:
            self.known[text] = f"t!{len(self.known)}"
            self.lines.append(f"(define-fun {self.known[text]} () {sort} {text})")
        return self.known[text]

    def require(self, text: str) -> None:
        """From here on only where this holds."""
        self.lines.append(f"(assert {text})")
        self.decided[text] = True

    def asked(self, *texts: str) -> str:
        """Return the question whether this path and these conditions can hold together."""
        return "\n".join([*self.lines, *[f"(assert {text})" for text in texts]])

    def divided(self, value: Any, by: Any, quotient: Any, rest: Any) -> None:
        """From here on this division gives these terms."""
        self.quotients[_division(value, by)] = quotient, rest

    def decide(self, text: str) -> bool:
        """Return which way this run goes at a condition."""
        if text in self.decided:
            return self.decided[text]
        opposite = self.known.get(f"(not {text})")
        if opposite in self.decided:
            return not self.decided[opposite]
        place = len(self.taken)
        if place < len(self.ahead):
            answer, free = self.ahead[place]
        else:
            answer = self.feasible(self.asked(text))
            free = answer and self.feasible(self.asked(f"(not {text})"))
        self.taken.append((answer, free))
        self.decided[text] = answer
        self.require(text if answer else f"(not {text})")
        return answer


def _sort(width: int) -> str:
    return f"(_ BitVec {width})" if width else "Int"


class Truth:
    """A condition on terms."""

    __slots__ = ("path", "text")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.text = path, text

    def __bool__(self) -> bool:
        return self.path.decide(self.text)

    def __and__(self, other: Truth | bool) -> Truth | bool:
        return every(self, other)

    __rand__ = __and__

    def __or__(self, other: Truth | bool) -> Truth | bool:
        return some(self, other)

    __ror__ = __or__


Condition = Truth | bool


def every(*conditions: Condition) -> Condition:
    """Return that all conditions hold, without going two ways."""
    return _joined("and", conditions)


def some(*conditions: Condition) -> Condition:
    """Return that a condition holds, without going two ways."""
    return _joined("or", conditions)


def denied(condition: Condition) -> Condition:
    """Return that a condition does not hold."""
    if isinstance(condition, bool):
        return not condition
    return Truth(condition.path, condition.path.define(f"(not {condition.text})", "Bool"))


def implies(given: Condition, then: Condition) -> Condition:
    """Return that one condition follows from another."""
    return some(denied(given), then)


def _joined(word: str, conditions: Iterable[Condition]) -> Condition:
    absorbing = word == "or"
    parts = list(conditions)
    if any(part is absorbing for part in parts):
        return absorbing
    truths = [part for part in parts if isinstance(part, Truth)]
    if not truths:
        return not absorbing
    if len(truths) == 1:
        return truths[0]
    path = truths[0].path
    return Truth(path, path.define(f"({word} {' '.join([part.text for part in truths])})", "Bool"))


class Term:
    """An integer without a value yet."""

    __slots__ = ("path", "text", "width")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, path: Path, text: str, width: int) -> None:
        self.path, self.text, self.width = path, text, width

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __add__(self, other: Any) -> Any:
        return self if _is(other, 0) else self._apply("+", "bvadd", self, other, 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self if _is(other, 0) else self._apply("-", "bvsub", self, other, 1)

    def __rsub__(self, other: Any) -> Any:
        return self._apply("-", "bvsub", other, self, 1)

    def __neg__(self) -> Any:
        return 0 - self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __mul__(self, other: Any) -> Any:
        if _is(other, 0):
            return 0
        if _is(other, 1):
            return self
        return self._apply("*", "bvmul", self, other, _width_of(other) + self.width)

    __rmul__ = __mul__

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return _divided(self, other)

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return _divided(other, self)

    def __floordiv__(self, other: Any) -> Any:
        return _divided(self, other)[0]

    def __rfloordiv__(self, other: Any) -> Any:
        return _divided(other, self)[0]

    def __mod__(self, other: Any) -> Any:
        return _divided(self, other)[1]

    def __rmod__(self, other: Any) -> Any:
        return _divided(other, self)[1]

    def __and__(self, other: Any) -> Any:
        return self._apply("", "bvand", self, other, 0)

    __rand__ = __and__

    def __or__(self, other: Any) -> Any:
        return self._apply("", "bvor", self, other, 0)

    __ror__ = __or__

    def __xor__(self, other: Any) -> Any:
        return self._apply("", "bvxor", self, other, 0)

    __rxor__ = __xor__

    def __invert__(self) -> Any:
        return self ^ -1

    def __lshift__(self, other: Any) -> Any:
        return _shifted(self, other)

    def __rlshift__(self, other: Any) -> Any:
        return _shifted(other, self)

    def __rshift__(self, other: Any) -> Any:
        _amount(other)
        return self._apply("", "bvashr", self, other, 0)

    def bit_length(self) -> int:
        """Return how many bits the magnitude has; each number of bits is a way of its own."""
        size = abs(self)
        return next(count for count in range(self.width + 1) if size < 1 << count)

    def __eq__(self, other: object) -> Any:
        return self._compare("=", "=", other)

    def __ne__(self, other: object) -> Any:
        return denied(self == other)

    def __lt__(self, other: Any) -> Any:
        return self._compare("<", "bvslt", other)

    def __le__(self, other: Any) -> Any:
        return self._compare("<=", "bvsle", other)

    def __gt__(self, other: Any) -> Any:
        return self._compare(">", "bvsgt", other)

    def __ge__(self, other: Any) -> Any:
        return self._compare(">=", "bvsge", other)

    def _as(self, width: int) -> str:
        """The text of this term in at least its own width."""
        if width == self.width:
            return self.text
        return self.path.define(f"((_ sign_extend {width - self.width}) {self.text})", _sort(width))

    def _both(self, left: Any, right: Any, more: int) -> tuple[str, str, int]:
        width = max(_width_of(left), _width_of(right)) + more if self.width else 0
        return _text(left, width), _text(right, width), width

    def _apply(self, integer: str, vector: str, left: Any, right: Any, more: int) -> Any:
        if not (_number(left) and _number(right)):
            return NotImplemented
        if vector == "bvmul":
            more -= max(_width_of(left), _width_of(right)) if self.width else 0
        word = vector if self.width else integer
        if not word:
            raise TypeError(f"{vector} is for bit-vectors")
        first, second, width = self._both(left, right, more)
        return Term(self.path, self.path.define(f"({word} {first} {second})", _sort(width)), width)

    def _compare(self, integer: str, vector: str, other: object) -> Any:
        if not _number(other):
            return NotImplemented
        first, second, width = self._both(self, other, 0)
        if first == second:
            return integer in {"=", "<=", ">="}
        return Truth(self.path, self.path.define(f"({vector if width else integer} {first} {second})", "Bool"))


def _divided(left: Any, right: Any) -> tuple[Any, Any]:
    """Return quotient and remainder as Python rounds: the remainder has the sign of the divisor."""
    if not (_number(left) and _number(right)):
        return NotImplemented, NotImplemented
    term = left if isinstance(left, Term) else right
    if term.width:
        raise TypeError("bit-vectors are not divided; use shifts")
    if right == 0:
        raise ZeroDivisionError("integer division or modulo by zero")
    if _is(right, 1):
        return left, 0
    path = term.path
    key = _division(left, right)
    if key in path.quotients:
        return path.quotients[key]
    positive = bool(right > 0)
    place = len(path.quotients)
    quotient, rest = [Term(path, f"{letter}!{place}", 0) for letter in "qr"]
    path.lines += [f"(declare-const {term.text} Int)" for term in (quotient, rest)]
    sign = (rest >= 0, rest < right) if positive else (rest <= 0, rest > right)
    for condition in (right * quotient + rest == left, *sign):
        path.require(condition.text)
    path.quotients[key] = quotient, rest
    return quotient, rest


def _division(left: Any, right: Any) -> str:
    return f"{_text(left, 0)} / {_text(right, 0)}"


def _shifted(left: Any, by: Any) -> Any:
    """Return ``left << by`` in a width that holds it."""
    if not (_number(left) and _number(by)):
        return NotImplemented
    _amount(by)
    term = left if isinstance(left, Term) else by
    if not term.width:
        raise TypeError("bvshl is for bit-vectors")
    width = _width_of(left) + ((1 << by.width - 1) - 1 if isinstance(by, Term) else by)
    width = max(width, _width_of(by))
    text = f"(bvshl {_text(left, width)} {_text(by, width)})"
    return Term(term.path, term.path.define(text, _sort(width)), width)


def _amount(by: Any) -> None:
    """Refuse to shift by a negative number, as Python does."""
    if by < 0:
        raise ValueError("negative shift count")


def _is(value: object, number: int) -> bool:
    return type(value) is int and value == number


def _number(value: object) -> bool:
    return isinstance(value, Term) or type(value) is int


def _width_of(value: Any) -> int:
    return value.width if isinstance(value, Term) else int(value).bit_length() + 1


def _text(value: Any, width: int) -> str:
    return value._as(width) if isinstance(value, Term) else _literal(value, width)


def _literal(value: int, width: int) -> str:
    if width:
        return f"(_ bv{value % (1 << width)} {width})"
    return str(value) if value >= 0 else f"(- {-value})"
