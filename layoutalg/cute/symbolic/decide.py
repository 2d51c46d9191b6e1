"""Whether a condition follows from assumptions: a ladder of sound engines.

Main definitions: ``Decision``, ``decide``.

Main statements: the answer is True only where the condition holds at every assignment the assumptions allow, False only
where it holds at none of them. Otherwise it is None, either because one assignment of each kind is shown (``holds_at``
and ``fails_at``) or because no engine decided within its limit; ``reason`` tells which.

Implementation notes: intervals and congruences first, then a short search for assignments of both kinds, then the
solver for non-linear integer arithmetic on what is still open. Assignments found by the solver are checked by exact
arithmetic before they are shown.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from typing import TYPE_CHECKING, Any, TypeAlias

from layoutalg.cute.symbolic.facts import (
    Facts,
    completed,
    facts_of,
    is_integral,
    is_nonnegative,
    is_positive,
    never_integral,
)

if TYPE_CHECKING:
    from layoutalg.cute.symbolic.assumptions import Assumptions, Condition

Sizes: TypeAlias = tuple[tuple[str, int], ...]

DRAWS = 160
NEAR = (0, 1, 2, 3, 4, 5, 7, 11, 15, 63)


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer to whether a condition follows.

    Args:
        status: True (always holds), False (never holds) or None (neither was shown).
        engine: What decided: ``"arithmetic"``, ``"interval x congruence"``, ``"examples"``, ``"z3"`` or ``"none"``.
        holds_at: Sizes that meet the assumptions and the condition, where known.
        fails_at: Sizes that meet the assumptions and break the condition, where known.
        reason: One phrase.

    Example:
        >>> Decision(None, "examples", (("M", 64),), (("M", 1),), "both are possible").status is None
        True
    """

    status: bool | None
    engine: str
    holds_at: Sizes | None
    fails_at: Sizes | None
    reason: str


@lru_cache(maxsize=8192)
def decide(assumptions: Assumptions, claim: Condition, timeout_ms: int = 200) -> Decision:
    """Return whether ``claim`` follows from ``assumptions``; see ``Decision``.

    Example:
        >>> from layoutalg.cute.symbolic.assumptions import Assumptions, condition
        >>> decide(Assumptions(("M % K == 0",)), condition("M >= K")).status
        True
    """
    quick = decide_quickly(assumptions, claim)
    if quick is not None:
        status, engine = quick
        if status:
            return Decision(True, engine, None, None, f"follows by {engine}")
        broken = find_sizes(assumptions, claim, wanted=False)
        return Decision(False, engine, None, broken, f"never holds, by {engine}")
    holds, fails = _examples(assumptions, claim)
    if holds is not None and fails is not None:
        return Decision(None, "examples", holds, fails, "both are possible")
    return _by_solver(assumptions, claim, holds, fails, timeout_ms)


@lru_cache(maxsize=8192)
def decide_quickly(assumptions: Assumptions, claim: Condition) -> tuple[bool, str] | None:
    """Return (status, engine) where intervals and congruences decide, else None."""
    if claim in assumptions.conditions:
        return True, "arithmetic"
    facts = facts_of(assumptions, claim.names)
    if any(facts.low.get(name, 0) < 1 for name in claim.value.split()[1].names):
        return None  # may divide by 0
    value = facts.reduce(claim.value)
    if value.constant is not None:
        return claim.holds({}) if not claim.names else _constant_holds(claim, value), "arithmetic"
    if claim.kind in ("zero", "nonzero"):
        if is_positive(facts, value) or is_positive(facts, -value) or never_integral(facts, value):
            return claim.kind == "nonzero", "interval x congruence"
        if is_nonnegative(facts, value) and is_nonnegative(facts, -value):
            return claim.kind == "zero", "interval x congruence"
        if _never_zero_by_class(facts, value):
            return claim.kind == "nonzero", "interval x congruence"
    elif claim.kind == "nonnegative":
        if is_nonnegative(facts, value):
            return True, "interval x congruence"
        if is_positive(facts, -value):
            return False, "interval x congruence"
    else:
        if is_integral(facts, value):
            return True, "interval x congruence"
        if never_integral(facts, value):
            return False, "interval x congruence"
    return None


def _constant_holds(claim: Condition, value: Any) -> bool:
    from layoutalg.cute.symbolic.assumptions import Condition

    return Condition(claim.kind, value).holds({})


def _never_zero_by_class(facts: Facts, value: Any) -> bool:
    """Return whether the constant is no multiple of the common divisor of the other coefficients."""
    above, _ = facts.by_class(value).split()
    if not above.whole:
        return False
    constant = sum([coefficient for monomial, coefficient in above.monomials if not monomial])
    common = gcd(*[int(coefficient) for monomial, coefficient in above.monomials if monomial])
    return common > 0 and int(constant) % common != 0


def find_sizes(
    assumptions: Assumptions,
    claim: Condition | None,
    wanted: bool,
    timeout_ms: int = 200,
    names: frozenset[str] = frozenset(),
) -> Sizes | None:
    """Return sizes that meet the assumptions at which ``claim`` has the truth value ``wanted``; None where none found.

    ``names`` are further names to give sizes to.

    Example:
        >>> from layoutalg.cute.symbolic.assumptions import Assumptions, condition
        >>> find_sizes(Assumptions(("M % 16 == 0",)), condition("M >= 32"), True)
        (('M', 32),)
    """
    for sizes in _draws(assumptions, names | (claim.names if claim is not None else frozenset())):
        if claim is None or claim.holds(sizes) == wanted:
            return tuple(sorted(sizes.items()))
    _, found = _solve(assumptions, claim, wanted, timeout_ms, names)
    return found


def _examples(assumptions: Assumptions, claim: Condition) -> tuple[Sizes | None, Sizes | None]:
    found: dict[bool, Sizes] = {}
    for sizes in _draws(assumptions, claim.names):
        found.setdefault(claim.holds(sizes), tuple(sorted(sizes.items())))
        if len(found) == 2:
            break
    return found.get(True), found.get(False)


def _draws(assumptions: Assumptions, names: frozenset[str]) -> Iterable[dict[str, int]]:
    """Yield assignments that meet the assumptions: small ones first, then spread ones; always the same."""
    facts = facts_of(assumptions, names)
    free = sorted((assumptions.names | names) - facts.solved.keys())
    source = random.Random(0)
    for attempt in range(DRAWS):
        sizes: dict[str, int] = {}
        for name in free:
            modulus, rest = facts.residue.get(name, (1, 0))
            low, high = facts.low.get(name), facts.high.get(name)
            step = min(attempt, 1) if attempt < 2 else source.choice(NEAR)
            if low is not None:
                sizes[name] = low + modulus * step
            elif high is not None:
                sizes[name] = high - modulus * step
            else:
                sizes[name] = rest + modulus * (step if attempt < 2 else step * source.choice((1, -1)))
        if attempt % 2:
            _multiples(facts, sizes, source)
        whole = completed(facts, sizes)
        if whole is not None and assumptions.violated_by(whole) is None:
            yield whole


def _multiples(facts: Facts, sizes: dict[str, int], source: random.Random) -> None:
    """Make x a multiple of y where x / y is known to be an integer."""
    for known in facts.integral:
        above, below = known.split()
        if len(above.monomials) != 1 or len(above.monomials[0][0]) != 1:
            continue
        ((name, power),) = above.monomials[0][0]
        if power == 1 and name in sizes and below.names <= sizes.keys():
            unit = int(below.value(sizes))
            if unit > 0:
                sizes[name] = max(1, sizes[name] // unit) * unit if sizes[name] > 0 else unit * source.choice((1, 2))


def _by_solver(
    assumptions: Assumptions, claim: Condition, holds: Sizes | None, fails: Sizes | None, timeout_ms: int
) -> Decision:
    """Ask the solver for the kind of assignment the examples did not show."""
    limits: list[str] = []
    if fails is None:
        answer, fails = _solve(assumptions, claim, False, timeout_ms)
        if answer == "unsat":
            return Decision(True, "z3", holds, None, "follows by z3")
        if answer != "sat":
            limits.append("that it always holds")
    if holds is None:
        answer, holds = _solve(assumptions, claim, True, timeout_ms)
        if answer == "unsat":
            return Decision(False, "z3", None, fails, "never holds, by z3")
        if answer != "sat":
            limits.append("that it never holds")
    if limits:
        return Decision(None, "none", holds, fails, f"z3 gave up on {' and '.join(limits)} after {timeout_ms} ms")
    return Decision(None, "z3", holds, fails, "both are possible")


def _solve(
    assumptions: Assumptions,
    claim: Condition | None,
    wanted: bool,
    limit: int,
    more: frozenset[str] = frozenset(),
) -> tuple[str, Sizes | None]:
    """Return ("sat", sizes), ("unsat", None) or ("unknown", None) for assumptions and claim (or its negation)."""
    import z3

    names = sorted(assumptions.names | more | (claim.names if claim is not None else frozenset()))
    variables = {name: z3.Int(name) for name in names}
    solver = z3.Solver()
    solver.set("timeout", limit)
    helper = [0]
    for name in names:
        if name not in assumptions.integers:
            solver.add(variables[name] >= 1)
    for entry in assumptions.conditions:
        solver.add(_encode(entry, variables, True, helper))
    if claim is not None:
        solver.add(_encode(claim, variables, wanted, helper))
    answer = solver.check()
    if answer == z3.unsat:
        return "unsat", None
    if answer != z3.sat:
        return "unknown", None
    model = solver.model()
    sizes = {name: model.eval(variable, model_completion=True).as_long() for name, variable in variables.items()}
    if assumptions.violated_by(sizes) is not None or (claim is not None and claim.holds(sizes) != wanted):
        return "unknown", None
    return "sat", tuple(sorted(sizes.items()))


def _encode(entry: Condition, variables: Mapping[str, Any], wanted: bool, helper: list[int]) -> Any:
    """Return the condition, or its negation, without division."""
    import z3

    above, below = entry.value.split()
    top, bottom = _polynomial(above, variables), _polynomial(below, variables)
    defined = bottom != 0
    if entry.kind == "integral":
        helper[0] += 1
        quotient = z3.Int(f"quotient!{helper[0]}")
        if wanted:
            return z3.And(defined, top == quotient * bottom)
        rest = z3.Int(f"rest!{helper[0]}")
        size = z3.If(bottom > 0, bottom, -bottom)
        return z3.Or(z3.Not(defined), z3.And(top == quotient * bottom + rest, rest > 0, rest < size))
    claim = {"zero": top == 0, "nonzero": top != 0, "nonnegative": top * bottom >= 0}[entry.kind]
    stated = z3.And(defined, claim)
    return stated if wanted else z3.Not(stated)


def _polynomial(value: Any, variables: Mapping[str, Any]) -> Any:
    import z3

    total = z3.IntVal(0)
    for monomial, coefficient in value.monomials:
        part = z3.IntVal(int(coefficient))
        for name, power in monomial:
            for _ in range(power):
                part = part * variables[name]
        total = total + part
    return total
