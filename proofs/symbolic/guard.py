"""Guards of symbolic plans: the sizes for which a plan holds.

A guard is a conjunction of clauses, each a disjunction of conditions on polynomials, written ``K % 8 == 0, 1 <= K <=
2**31, 1 <= M <= 2**31`` with commas between clauses and ``or`` inside them. Every name is implicitly at least 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias

from layoutalg.ground.assumptions import Assumptions
from layoutalg.ground.check import Checker
from layoutalg.ground.conditions import Condition, condition
from layoutalg.ground.decide import decide_quickly
from layoutalg.ground.errors import MalformedError
from layoutalg.ground.polynomial import Polynomial, named, number, require_names, sizes_of

if TYPE_CHECKING:
    from layoutalg.ground.conditions import Known

CHECK = Checker("LA860", "invalid guard")
Clause: TypeAlias = tuple[Condition, ...]
_SHORT = 2**16
"""Numbers from here on are printed as powers of two if close to one."""
_WIDE_DEGREE = 2
MOST_COMPILED = 200
"""Terms of a guard that becomes one expression; Python nests longer sums too deeply."""


class Compiled:
    """What a value computes once from its fields: no fields itself, so neither compared, copied nor pickled."""

    __slots__ = ("_test", "_text")
    _test: Callable[[Mapping[str, int]], Any]
    _text: str


@dataclass(frozen=True, slots=True)
class Guard(Compiled):
    """The sizes for which a plan holds: integers >= 1 for ``names`` at which every clause has a true condition.

    Args:
        clauses: Tuples of conditions, one of which must hold; a lone condition or its text is also a clause.
        names: All names that need a size.

    Example:
        >>> guard = Guard(("K % 8 == 0", "2**31 >= M"), ("K", "M"))
        >>> print(guard)
        K % 8 == 0, 1 <= M <= 2**31
        >>> guard.holds(M=5, K=64), guard.violated_by({"M": 5, "K": 12})
        (True, 'K % 8 == 0')
    """

    clauses: tuple[Clause, ...]
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.clauses, (tuple, list)):
            raise CHECK.malformed("clauses", "must be a sequence of conditions", self.clauses)
        clauses = []
        for entry in self.clauses:
            parts = entry if isinstance(entry, (tuple, list)) else (entry,)
            clauses.append(tuple(condition(part) for part in parts))
            if not parts:
                raise CHECK.malformed("clauses", "must have a condition in every clause", entry)
        if not isinstance(self.names, (tuple, list)) or not all(isinstance(name, str) for name in self.names):
            raise CHECK.malformed("names", "must be names", self.names)
        used = {name for clause in clauses for entry in clause for name in entry.names}
        object.__setattr__(self, "clauses", tuple(clauses))
        object.__setattr__(self, "names", tuple(sorted(used | set(self.names))))

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions of single-condition clauses."""
        return tuple(clause[0] for clause in self.clauses if len(clause) == 1)

    def admits(self, sizes: Mapping[str, int]) -> bool:
        """Like ``holds`` for sizes that are known to be integers, one per name; about a microsecond.

        Example:
            >>> Guard(("K % 8 == 0", "2**31 >= M"), ("K", "M")).admits({"M": 5, "K": 64})
            True
        """
        try:
            return bool(self._test(sizes))
        except AttributeError:
            if sum(len(entry.value.monomials) for clause in self for entry in clause) > MOST_COMPILED:
                return self.broken_at(sizes) is None
            parts = [f"sizes[{name!r}] >= 1" for name in self.names] + [python_text(clause) for clause in self]
            object.__setattr__(self, "_test", predicate(" and ".join(parts)))
        return bool(self._test(sizes))

    def broken_at(self, sizes: Mapping[str, int]) -> str | None:
        """Return the first clause that fails, or None; sizes must be integers, one per name."""
        for name in self.names:
            if sizes[name] < 1:
                return f"{name} >= 1"
        for clause in self.clauses:
            if not any(entry.true_at(sizes) for entry in clause):
                return _clause_text(clause)
        return None

    def violated_by(self, sizes: Mapping[str, int] | None = None, **more: int) -> str | None:
        """Return the first clause that fails at these sizes as text, or None."""
        values = sizes_of({**(sizes or {}), **more})
        require_names(self.names, values, str(self))
        return self.broken_at(values)

    def holds(self, sizes: Mapping[str, int] | None = None, **more: int) -> bool:
        """Return whether a plan with this guard holds at these sizes."""
        return self.violated_by(sizes, **more) is None

    __call__ = holds

    def open_under(self, known: Known) -> tuple[Clause, ...]:
        """Return the clauses not implied by assumptions: those still to be tested.

        Example:
            >>> Guard(("K % 8 == 0", "2**31 >= M")).open_under(Assumptions(("K % 64 == 0",)))
            ((condition('2147483648 >= M'),),)
        """
        return tuple(clause for clause in self.clauses if not any(_follows(known, entry) for entry in clause))

    def to_c(self) -> str:
        """Return the guard as a C or C++ expression over 64-bit integers with these names.

        Products are computed in 128 bits, after the bounds of their factors are tested.

        Example:
            >>> Guard(("K % 8 == 0", "2**31 >= M"), ("K", "M")).to_c()
            'K >= 1 && M >= 1 && M <= 2147483648LL && K % 8 == 0'
        """
        parts = [f"{name} >= 1" for name in self.names]
        ordered = sorted(self.clauses, key=lambda clause: (_degree(clause), clause[0].kind == "integral"))
        for clause in ordered:
            words = [_c_condition(entry) for entry in clause]
            parts.append(words[0] if len(words) == 1 else f"({' || '.join(words)})")
        return " && ".join(parts) or "1"

    def to_sympy(self, symbols: Mapping[str, Any] | None = None) -> Any:
        """Return the guard as a sympy formula; its symbols are positive."""
        clauses = [reduce(lambda a, b: a | b, [entry.to_sympy(symbols) for entry in clause]) for clause in self.clauses]
        if not clauses:
            return condition("1 == 1").to_sympy(symbols)
        return reduce(lambda a, b: a & b, clauses)

    _sympy_ = to_sympy

    def to_json(self) -> list[object]:
        """Return the clauses as texts; a clause of several conditions as a list."""
        return [str(clause[0]) if len(clause) == 1 else [str(entry) for entry in clause] for clause in self.clauses]

    def __iter__(self) -> Iterator[Clause]:
        return iter(self.clauses)

    def __len__(self) -> int:
        return len(self.clauses)

    def __str__(self) -> str:
        try:
            return self._text
        except AttributeError:
            object.__setattr__(self, "_text", ", ".join(_lines(self)) or "only sizes >= 1")
            return self._text


def predicate(expression: str) -> Callable[[Mapping[str, int]], Any]:
    """Return a function of ``sizes`` from an expression written by ``python_text``."""
    function: Callable[[Mapping[str, int]], Any] = eval(f"lambda sizes: {expression or 'True'}", {"__builtins__": {}})
    return function


def python_text(clause: Clause) -> str:
    """Return a clause as a Python expression of ``sizes``, which must all be at least 1.

    Example:
        >>> python_text((condition("M % 16 == 0"), condition("2*M >= 7")))
        "((1*sizes['M']) % (16) == 0 or -7 + 2*sizes['M'] >= 0)"
    """
    parts = []
    for entry in clause:
        above, below = (_python_polynomial(value) for value in entry.value.split())
        sign = {"zero": "== 0", "nonzero": "!= 0", "nonnegative": ">= 0"}
        parts.append(f"({above}) % ({below}) == 0" if entry.kind == "integral" else f"{above} {sign[entry.kind]}")
    return f"({' or '.join(parts)})"


def _python_polynomial(value: Polynomial) -> str:
    terms = [
        "*".join([str(int(factor)), *[f"sizes[{name!r}]{f'**{power}' if power > 1 else ''}" for name, power in key]])
        for key, factor in value.monomials
    ]
    return " + ".join(terms) or "0"


def minimal(clauses: Iterable[Clause], names: Iterable[str]) -> Guard:
    """Return the guard of these clauses without implied ones, upper bounds tightened to integers.

    Example:
        >>> found = [condition(text) for text in ("8*K % 16 == 0", "K % 8 == 0", "4*K <= 101", "K <= 100", "3 >= 2")]
        >>> print(minimal([(entry,) for entry in found], ("K",)))
        K % 8 == 0, 1 <= K <= 25
    """
    kept: list[Clause] = []
    for clause in clauses:
        tight = tuple(dict.fromkeys(_tightened(entry) for entry in clause))
        if not any(entry.value.constant is not None and entry.true_at({}) for entry in tight):
            kept.append(tight)
    kept = list(dict.fromkeys(kept))
    order = sorted(kept, key=lambda clause: (-len(clause), -_degree(clause), -_loose(clause)))
    for clause in order:  # drop the weakest first, so that the strongest stay
        others = [entry for entry in kept if entry is not clause]
        if _implied(others, clause):
            kept = others
    kept.sort(key=lambda clause: (len(clause), clause[0].kind != "integral", _degree(clause), str(clause[0])))
    return Guard(tuple(kept), tuple(names))


def _implied(others: list[Clause], clause: Clause) -> bool:
    singles = [entry[0] for entry in others if len(entry) == 1]
    if any(_bounded_by(other, entry) for other in singles for entry in clause):
        return True
    try:
        known = Assumptions(singles)
    except MalformedError:  # a contradiction: keep it, the guard shows it
        return False
    return any(_follows(known, entry) for entry in clause)


def _follows(known: Known, claim: Condition) -> bool:
    if any(_bounded_by(other, claim) for other in known.conditions):
        return True
    found = decide_quickly(known, claim)
    return found is not None and found[0]


def upper_bound(entry: Condition) -> tuple[Polynomial, int] | None:
    """Return (p, B) if a condition is p <= B for a product p of names, otherwise None.

    Example:
        >>> upper_bound(condition("2*M*K <= 101"))
        (polynomial('2*K*M'), 101)
    """
    monomials = entry.value.monomials
    if entry.kind != "nonnegative" or len(monomials) != 2 or monomials[0][0] or not monomials[1][0]:
        return None
    (_, bound), (monomial, factor) = monomials
    if factor >= 0 or bound.denominator != 1 or any(power < 0 for _, power in monomial):
        return None
    return Polynomial(((monomial, -factor),)), int(bound)


def _bounded_by(known: Condition, claim: Condition) -> bool:
    """Whether a bound on a product of names >= 1 implies the claimed bound on a partial product."""
    one, two = upper_bound(known), upper_bound(claim)
    if one is None or two is None:
        return False
    ((large, weight),), ((small, factor),) = one[0].monomials, two[0].monomials
    powers = dict(large)
    return all(powers.get(name, 0) >= power for name, power in small) and one[1] / weight <= two[1] / factor


def _tightened(entry: Condition) -> Condition:
    """Return an upper bound c p <= B as p <= floor(B / c)."""
    found = upper_bound(entry)
    if found is None:
        return entry
    ((monomial, factor),) = found[0].monomials
    return Condition("nonnegative", number(found[1] // factor) - Polynomial(((monomial, Fraction(1)),)))


def _degree(clause: Clause) -> int:
    return max([sum(abs(power) for _, power in key) for entry in clause for key, _ in entry.value.monomials], default=0)


def _loose(clause: Clause) -> int:
    """Return how weak an upper bound is."""
    found = upper_bound(clause[0])
    return found[1] if found is not None else 0


def _number_text(value: int) -> str:
    if value < _SHORT:
        return str(value)
    power = (value - 1).bit_length()
    short = 2**power - value
    return f"2**{power}" + (f" - {short}" if short else "") if short < _SHORT else str(value)


def _condition_text(entry: Condition) -> str:
    found = upper_bound(entry)
    if found is None:
        return str(entry)
    product, bound = found
    return f"{'1 <= ' if len(product.names) == 1 and product == _of(product) else ''}{product} <= {_number_text(bound)}"


def _of(product: Polynomial) -> Polynomial:
    return named(next(iter(product.names)))


def _clause_text(clause: Clause) -> str:
    return " or ".join(map(_condition_text, clause))


def _lines(guard: Guard) -> Iterator[str]:
    for clause in guard.clauses:
        yield _clause_text(clause)


def c_polynomial(value: Polynomial) -> str:
    """Return a polynomial with integer coefficients in C."""
    if not value.monomials:
        return "0"
    parts = []
    for monomial, coefficient in value.monomials:
        factors = [name for name, power in monomial for _ in range(power)]
        whole = int(coefficient)
        wide = "(__int128)" if len(factors) + (abs(whole) != 1) >= _WIDE_DEGREE else ""
        if not factors:
            parts.append(f"{whole}LL" if abs(whole) >= 2**31 else str(whole))
            continue
        head = {1: "", -1: "-"}.get(whole, f"{whole} * ")
        parts.append(
            f"{wide}{head}{' * '.join(factors)}" if not wide or not head else f"{head}{wide}" + " * ".join(factors)
        )
    return " + ".join(parts).replace("+ -", "- ")


def _c_condition(entry: Condition) -> str:
    above, below = entry.value.split()
    if entry.kind == "integral":
        return f"{_braced(above)} % {_braced(below)} == 0"
    sign = {"zero": "==", "nonzero": "!=", "nonnegative": ">="}[entry.kind]
    found = upper_bound(entry)
    if found is not None:
        return f"{c_polynomial(found[0])} <= {c_polynomial(number(found[1]))}"
    return f"{c_polynomial(above)} {sign} 0"


def _braced(value: Polynomial) -> str:
    text = c_polynomial(value)
    return text if text.isidentifier() or text.isdigit() else f"({text})"
