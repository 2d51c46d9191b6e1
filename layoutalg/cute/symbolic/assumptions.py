"""What is known about symbolic sizes, and conditions on them.

Main definitions: ``Condition``, ``condition``, ``conditions``, ``Assumptions``, ``SideCondition``.

Notation: ``M % 16 == 0``, ``N >= 64``, ``64 <= M <= 128``, ``K == M``, ``K != 0``. A name is a size, an integer of at
least 1, unless it is listed in ``integers``; then it is any integer.

Main statements: a condition has a truth value at every assignment of integers to its names; where it divides by a name
that is 0 there, it is false. ``Assumptions.entails`` answers True only where the condition holds at every assignment
the assumptions allow, False only where it fails at every one of them, else None.

References: ``layoutalg.cute.symbolic.decide`` holds the decision procedure.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import gcd
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from layoutalg.cute.inttuple import malformed
from layoutalg.cute.symbolic.terms import (
    ONE,
    Reader,
    Term,
    TermLike,
    common_multiple,
    name_of,
    names_of,
    parsed,
    require_names,
    sizes_of,
    term,
    trusted,
    value_at,
)
from layoutalg.ground import limits
from layoutalg.ground.errors import Diagnostic, MalformedError

if TYPE_CHECKING:
    from layoutalg.cute.symbolic.decide import Decision

Kind: TypeAlias = Literal["zero", "nonzero", "nonnegative", "integral"]
KINDS = ("zero", "nonzero", "nonnegative", "integral")


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Condition:
    """One condition on a term: that it is 0, is not 0, is at least 0, or is an integer.

    Args:
        kind: ``"zero"``, ``"nonzero"``, ``"nonnegative"`` or ``"integral"``.
        value: The term. It is brought to lowest terms, so that equal conditions usually compare equal.

    Raises: MalformedError: LA620.

    Example:
        >>> Condition("integral", term("M/64")), Condition("nonnegative", term("M/2 - 4"))
        (condition('M % 64 == 0'), condition('M >= 8'))
    """

    kind: Kind
    value: Term

    def __init__(self, kind: Kind, value: TermLike) -> None:
        if not isinstance(kind, str) or kind not in KINDS:
            raise malformed("kind", f"must be one of {', '.join(KINDS)}", kind, "LA620")
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "value", _lowest(kind, term(value)))

    @property
    def names(self) -> frozenset[str]:
        """The names that occur."""
        return self.value.names

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Return whether the condition holds at ``sizes``; dividing by 0 makes it false.

        Raises: MalformedError: LA623.

        Example:
            >>> condition("M % 64 == 0").holds({"M": 128})
            True
        """
        values = sizes_of(sizes)
        require_names(self.names, values, str(self))
        return self.true_at(values)

    def true_at(self, sizes: Mapping[str, int]) -> bool:
        """Return what ``holds`` returns; the sizes are known to be integers, one per name."""
        try:
            value = value_at(self.value, sizes)
        except ZeroDivisionError:
            return False
        match self.kind:
            case "zero":
                return value == 0
            case "nonzero":
                return value != 0
            case "nonnegative":
                return value >= 0
            case "integral":
                return value.denominator == 1

    def __str__(self) -> str:
        if self.kind == "integral":
            above, below = self.value.split()
            return f"{_factor(above)} % {_factor(below)} == 0"
        sign = {"zero": "==", "nonzero": "!=", "nonnegative": ">="}[self.kind]
        left = trusted(tuple([(monomial, value) for monomial, value in self.value.monomials if value > 0]))
        return f"{left} {sign} {left - self.value}"

    def __repr__(self) -> str:
        return f"condition({str(self)!r})"


def _factor(value: Term) -> str:
    text = str(value)
    return text if text.isidentifier() or text.isdigit() else f"({text})"


def _lowest(kind: Kind, value: Term) -> Term:
    """Return an equivalent term in lowest terms: coprime integer coefficients, or coefficients in [0, 1)."""
    if kind == "integral":
        kept = [
            (monomial, coefficient % 1 if all(power > 0 for _, power in monomial) else coefficient)
            for monomial, coefficient in value.monomials
        ]
        return trusted(tuple([(monomial, coefficient) for monomial, coefficient in kept if coefficient]))
    if not value.monomials:
        return value
    scale = 1
    for _, coefficient in value.monomials:
        scale = common_multiple(scale, coefficient.denominator)
    common = gcd(*[int(coefficient * scale) for _, coefficient in value.monomials])
    factor = Fraction(scale, common)
    if kind != "nonnegative" and value.monomials[-1][1] < 0:
        factor = -factor
    return Term(tuple([(monomial, coefficient * factor) for monomial, coefficient in value.monomials]))


def conditions(value: Any) -> tuple[Condition, ...]:
    """Return the conditions of a text, which may be a chain such as ``64 <= M <= 128``; a ``Condition`` is kept.

    Raises: MalformedError: LA620.

    Example:
        >>> conditions("64 <= M < 128")
        (condition('M >= 64'), condition('127 >= M'))
    """
    if isinstance(value, Condition):
        return (value,)
    if hasattr(value, "free_symbols") and hasattr(value, "rel_op"):
        return (_compare(term(value.lhs), str(value.rel_op), term(value.rhs), str(value)),)
    if not isinstance(value, str):
        raise malformed("condition", "must be a Condition or text such as 'M % 16 == 0'", value, "LA620")
    tree = parsed(value, "condition", "a comparison")
    reader = Reader(value, "condition")
    if not isinstance(tree, ast.Compare):
        raise malformed("condition", "must be a comparison", value, "LA620")
    sides = [tree.left, *tree.comparators]
    found: list[Condition] = []
    for left, operator, right in zip(sides, tree.ops, sides[1:], strict=False):
        sign = _SIGNS.get(type(operator))
        if sign is None:
            raise malformed("condition", "may compare with == != >= <= > < only", value, "LA620")
        if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod):
            if sign != "==":
                raise malformed("condition", "may compare a remainder with == only", value, "LA620")
            remainder = reader.read(left.left) - reader.read(right)
            found.append(divisible(remainder, reader.read(left.right)))
        else:
            found.append(_compare(reader.read(left), sign, reader.read(right), value))
        if len(str(found[-1])) > limits.TERM_CHARACTERS:
            rule = f"must have at most {limits.TERM_CHARACTERS} characters once multiplied out"
            raise malformed("condition", rule, f"{len(str(found[-1]))} characters", "LA620")
    return tuple(found)


_read_all = conditions  # under a name that the argument of ``Assumptions`` does not hide

_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.GtE: ">=",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.Lt: "<",
}


def _compare(left: Term, sign: str, right: Term, text: str) -> Condition:
    match sign:
        case "==":
            return Condition("zero", left - right)
        case "!=":
            return Condition("nonzero", left - right)
        case ">=":
            return Condition("nonnegative", left - right)
        case "<=":
            return Condition("nonnegative", right - left)
        case ">" | "<":
            gap = Condition("nonnegative", left - right if sign == ">" else right - left).value
            if not gap.whole:
                raise malformed("condition", "may be strict only between integers; use >= or <=", text, "LA620")
            return Condition("nonnegative", gap - 1)
    raise malformed("condition", "may compare with == != >= <= > < only", text, "LA620")


def condition(value: object) -> Condition:
    """Return the one condition of a text.

    Raises: MalformedError: LA620.

    Example:
        >>> print(condition("N > 63"))
        N >= 64
    """
    found = conditions(value)
    if len(found) != 1:
        raise malformed("condition", "must be one comparison, not a chain", value, "LA620")
    return found[0]


def divisible(value: TermLike, divisor: TermLike) -> Condition:
    """Return the condition that ``divisor`` divides ``value``.

    Raises: MalformedError: LA620.

    Example:
        >>> divisible("M*N", "K")
        condition('(M*N) % K == 0')
    """
    quotient = term(value).quotient(term(divisor))
    if quotient is None:
        raise malformed("divisor", f"must be one product, or divide {term(value)} exactly", str(term(divisor)), "LA620")
    return Condition("integral", quotient)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Assumptions:
    """What is known about the sizes.

    Mathematically: the set of assignments of integers to names at which all conditions hold and every name outside
    ``integers`` is at least 1.

    Args:
        conditions: Conditions, or texts of them.
        integers: Names that may be any integer; all other names are at least 1.

    Raises: MalformedError: LA620, LA621.

    Example:
        >>> known = Assumptions(("M % 16 == 0", "N >= 64"))
        >>> print(known)
        M % 16 == 0, N >= 64
        >>> known.entails("M >= 16"), known.entails("N <= 32"), known.entails("M % 64 == 0")
        (True, False, None)
    """

    conditions: tuple[Condition, ...]
    integers: tuple[str, ...]

    def __init__(self, conditions: Iterable[object] | str = (), integers: Iterable[object] = ()) -> None:
        texts: Iterable[object] = (conditions,) if isinstance(conditions, str) else conditions
        found: dict[Condition, None] = {}
        try:
            for entry in texts:
                found.update(dict.fromkeys(_read_all(entry)))
            names = sorted({name_of(name) for name in integers})
        except TypeError as error:
            raise malformed("assumptions", "must be a sequence of conditions", conditions, "LA620") from error
        if len(found) > limits.CONDITIONS:
            raise malformed("assumptions", f"must be at most {limits.CONDITIONS} conditions", f"{len(found)}", "LA620")
        object.__setattr__(self, "conditions", tuple(found))
        object.__setattr__(self, "integers", tuple(names))
        from layoutalg.cute.symbolic.facts import facts_of

        if facts_of(self).contradiction:
            raise contradiction(self)

    @property
    def names(self) -> frozenset[str]:
        """The names the conditions speak about."""
        return names_of([entry.value for entry in self.conditions])

    def extended(self, extra: Iterable[object] = (), integers: Iterable[str] = ()) -> Assumptions:
        """Return the assumptions with more conditions and more unrestricted names.

        Raises: MalformedError: LA620, LA621.
        """
        more = Assumptions(extra, integers)
        return Assumptions((*self.conditions, *more.conditions), (*self.integers, *more.integers))

    def violated_by(self, sizes: Mapping[str, int]) -> Condition | None:
        """Return the first condition that fails at ``sizes``, including that sizes are at least 1; None where all hold.

        Raises: MalformedError: LA623.

        Example:
            >>> Assumptions(("M % 16 == 0",)).violated_by({"M": 24})
            condition('M % 16 == 0')
        """
        values = sizes_of(sizes)
        require_names(self.names, values, str(self))
        return self.broken_at(values)

    def broken_at(self, sizes: Mapping[str, int]) -> Condition | None:
        """Return what ``violated_by`` returns; the sizes are known to be integers, one per name."""
        for name in sorted(sizes):
            if name not in self.integers and sizes[name] < 1:
                return Condition("nonnegative", term(name) - ONE)
        for entry in self.conditions:
            if not entry.true_at(sizes):
                return entry
        return None

    def decide(self, claim: object, timeout_ms: float = limits.DECISION_MS) -> Decision:
        """Return whether a condition follows, with the engine that decided and the sizes that show it.

        Args:
            claim: A condition or its text.
            timeout_ms: Milliseconds of wall time for the whole decision; the deadline that holds here counts too where
                it is sooner.

        Raises: MalformedError: LA620, LA004. BudgetError: LA001.

        Example:
            >>> Assumptions(("M % 16 == 0",)).decide("M % 64 == 0").fails_at
            (('M', 16),)
        """
        from layoutalg.cute.symbolic.decide import decide

        return decide(self, condition(claim), timeout_ms)

    def entails(self, claim: object, timeout_ms: float = limits.DECISION_MS) -> bool | None:
        """Return True where the claim always holds, False where it never holds, None where neither was shown.

        Example:
            >>> Assumptions(("K == M",)).entails("K*N == M*N")
            True
        """
        return self.decide(claim, timeout_ms).status

    def __str__(self) -> str:
        parts = [str(entry) for entry in self.conditions] + [f"{name} any integer" for name in self.integers]
        return ", ".join(parts) if parts else "nothing but sizes >= 1"

    def __repr__(self) -> str:
        texts = tuple([str(entry) for entry in self.conditions])
        return f"Assumptions({texts!r}, {self.integers!r})" if self.integers else f"Assumptions({texts!r})"


def contradiction(assumptions: Assumptions) -> MalformedError:
    """Return the error for assumptions that no assignment meets."""
    return MalformedError(
        Diagnostic(code="LA621", what="the assumptions contradict each other", because=f"no sizes meet {assumptions}")
    )


@dataclass(frozen=True, slots=True)
class SideCondition:
    """A condition a result needs, and what is known about it.

    Args:
        condition: The condition.
        status: True where the assumptions and the conditions before it entail it, None where that is open. A condition
            that never holds has no place here: the operation refuses.
        reason: The engine that decided, or why it is open.

    Example:
        >>> print(SideCondition(condition("M % 64 == 0"), None, "both possible"))
        M % 64 == 0 [open: both possible]
    """

    condition: Condition
    status: bool | None
    reason: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.condition, Condition):
            raise malformed("condition", "must be a Condition", self.condition, "LA622")
        if self.status is not None and self.status is not True:
            raise malformed("status", "must be True or None", self.status, "LA622")
        if not isinstance(self.reason, str):
            raise malformed("reason", "must be text", self.reason, "LA622")

    def __str__(self) -> str:
        return f"{self.condition} [{'proved' if self.status else 'open'}: {self.reason}]"
