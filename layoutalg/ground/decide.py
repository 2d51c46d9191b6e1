"""Decide whether a condition follows from assumptions, by a ladder of sound engines.

The answer is True only if the condition holds at every assignment the assumptions allow, False only if it holds at
none. Otherwise it is None: either both kinds of assignment exist (``holds_at`` and ``fails_at``) or no engine decided
within its limit; ``reason`` says which.

Implementation notes: intervals and congruences first, then a short random search for both kinds of assignment, then z3
(non-linear integer arithmetic) on what is still open, all under one deadline. z3's assignments are checked by exact
arithmetic. If z3 claims that a kind does not exist, fresh random assignments are tried; a counterexample overrules z3.
Timeouts are not cached.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import gcd
from typing import Any, Final, TypeAlias

from layoutalg.ground import clock, solver
from layoutalg.ground.clock import WorkDoneError, metered
from layoutalg.ground.conditions import Condition, Known
from layoutalg.ground.errors import BudgetError, Diagnostic, MalformedError
from layoutalg.ground.facts import (
    DECISION_STEPS,
    Facts,
    completed,
    facts_of,
    is_integral,
    is_nonnegative,
    is_positive,
    never_integral,
)
from layoutalg.ground.polynomial import Polynomial, value_at

Sizes: TypeAlias = tuple[tuple[str, int], ...]

DECISION_MS: Final = 1_000
"""milliseconds: deciding one condition on symbolic sizes, by default"""

GLANCE = 1_000
"""Steps of interval and congruence arithmetic before the random search; enough for nearly all answers."""
DRAWS = 160
NEAR = (0, 1, 2, 3, 4, 5, 7, 11, 15, 63)
FAR = (0, 0, 1, 1, 2, 3, 6, 8, 9, 12, 31, 64, 100, 127, 1023, 4096, 99_991)


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a condition follows, and why.

    Args:
        status: True (always holds), False (never holds) or None (neither was shown).
        engine: What decided: ``"arithmetic"``, ``"interval x congruence"``, ``"examples"``, ``"z3"`` or ``"none"``.
        holds_at: Sizes that satisfy the assumptions and the condition, if known.
        fails_at: Sizes that satisfy the assumptions but not the condition, if known.
        reason: A short phrase.
    """

    status: bool | None
    engine: str
    holds_at: Sizes | None
    fails_at: Sizes | None
    reason: str


def decide(assumptions: Known, claim: Condition, timeout_ms: float = DECISION_MS) -> Decision:
    """Decide whether ``claim`` follows from ``assumptions``.

    Args:
        timeout_ms: Wall time for the whole decision; an earlier deadline of the caller also applies.

    Example:
        >>> from layoutalg.ground.assumptions import Assumptions, condition
        >>> decide(Assumptions(("M % K == 0",)), condition("M >= K")).status
        True
    """
    with clock.within(clock.checked_seconds(timeout_ms, "timeout_ms") / 1000):
        try:
            return _ask_engines(assumptions, claim)
        except _OpenError as error:
            found = error.decision
        except BudgetError:
            found = Decision(None, "none", None, None, "nothing was decided")
    clock.check("deciding a condition on symbolic sizes")  # raises if it was the caller's deadline
    return replace(found, reason=f"{found.reason} after {timeout_ms:g} ms")


class _OpenError(Exception):
    """No engine decided within its limit; raised, not returned, because exceptions are not cached."""

    def __init__(self, decision: Decision) -> None:
        self.decision = decision


@lru_cache(maxsize=1024)
def _ask_engines(assumptions: Known, claim: Condition) -> Decision:
    """Return the first engine's decision."""
    quick = decide_quickly(assumptions, claim, GLANCE)
    if quick is None:
        holds, fails = _examples(assumptions, claim)
        if holds is not None and fails is not None:
            return Decision(None, "examples", holds, fails, "both are possible")
        quick = decide_quickly(assumptions, claim)
    if quick is None:
        return _by_solver(assumptions, claim, holds, fails)
    status, engine = quick
    if status:
        return Decision(True, engine, None, None, f"follows by {engine}")
    broken = find_sizes(assumptions, claim, wanted=False)
    return Decision(False, engine, None, broken, f"never holds, by {engine}")


@lru_cache(maxsize=1024)
def decide_quickly(assumptions: Known, claim: Condition, steps: int = DECISION_STEPS) -> tuple[bool, str] | None:
    """Return (status, engine) if interval and congruence arithmetic decides within ``steps``, else None."""
    try:
        with metered(steps):
            return _decide_quickly(assumptions, claim)
    except (WorkDoneError, MalformedError):  # too much work, or an intermediate polynomial exceeds its limits
        return None


def _decide_quickly(assumptions: Known, claim: Condition) -> tuple[bool, str] | None:
    if claim in assumptions.conditions:
        return True, "arithmetic"
    facts = facts_of(assumptions, claim.names)
    if any(facts.low.get(name, 0) < 1 for name in claim.value.split()[1].names):
        return None  # may divide by 0
    value = facts.reduce(claim.value)
    if value.constant is not None:
        return Condition(claim.kind, value).true_at({}), "arithmetic"
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


def _never_zero_by_class(facts: Facts, value: Polynomial) -> bool:
    """Return whether the constant is not a multiple of the gcd of the other coefficients."""
    above, _ = facts.by_class(value).split()
    if not above.whole:
        return False
    constant = sum([coefficient for monomial, coefficient in above.monomials if not monomial])
    common = gcd(*[int(coefficient) for monomial, coefficient in above.monomials if monomial])
    return common > 0 and int(constant) % common != 0


def find_sizes(
    assumptions: Known,
    claim: Condition | None,
    wanted: bool,
    timeout_ms: float = DECISION_MS,
    names: frozenset[str] = frozenset(),
) -> Sizes | None:
    """Return sizes that satisfy the assumptions and make ``claim`` equal ``wanted``; None if none were found.

    ``names`` are further names that need sizes. Its own timeout counts as not found; if the caller's deadline passes,
    BudgetError LA001 is raised.
    """
    everything = names | (claim.names if claim is not None else frozenset())
    with clock.within(timeout_ms / 1000):
        try:
            for sizes in draws(assumptions, everything):
                if claim is None or claim.true_at(sizes) == wanted:
                    return tuple(sorted(sizes.items()))
            return _Question(assumptions, claim, everything).sizes(wanted)
        except BudgetError:
            pass
    clock.check("looking for symbolic sizes")
    return None


@solver.whole
def sizes_with(
    assumptions: Known,
    answers: Sequence[tuple[Sequence[Condition], bool]],
    names: frozenset[str] = frozenset(),
    timeout_ms: float = DECISION_MS,
) -> Sizes | None:
    """Return sizes that satisfy the assumptions and give each disjunction its answer; None if there are none, by z3.

    Raises: BudgetError: undecided.

    Example:
        >>> from layoutalg.ground.assumptions import Assumptions, condition
        >>> small, whole = (condition("n <= 64"),), (condition("n % 128 == 0"),)
        >>> sizes_with(Assumptions(("n % 8 == 0",)), [(small, True), (whole, True)])
    """
    used = names | {name for clause, _ in answers for entry in clause for name in entry.names}
    with clock.within(timeout_ms / 1000):
        for drawn in draws(assumptions, used):
            if all(any(entry.true_at(drawn) for entry in clause) == wanted for clause, wanted in answers):
                return tuple(sorted(drawn.items()))
        question = _Question(assumptions, None, used)
        z3 = question.session.z3
        for clause, wanted in answers:
            parts = [question.encode(entry, wanted) for entry in clause]
            question.session.solver.add(z3.Or(*parts) if wanted else z3.And(*parts))
        return question.sizes(True)


def _examples(assumptions: Known, claim: Condition) -> tuple[Sizes | None, Sizes | None]:
    found: dict[bool, Sizes] = {}
    for sizes in draws(assumptions, claim.names):
        found.setdefault(claim.true_at(sizes), tuple(sorted(sizes.items())))
        if len(found) == 2:
            break
    return found.get(True), found.get(False)


def draws(
    assumptions: Known, names: frozenset[str], steps: tuple[int, ...] = NEAR, seed: int = 0
) -> Iterable[dict[str, int]]:
    """Yield random assignments that satisfy the assumptions, small ones first; deterministic for a seed."""
    facts = facts_of(assumptions, names)
    free = sorted((assumptions.names | names) - facts.solved.keys())
    source = random.Random(seed)
    for attempt in range(DRAWS):
        clock.check("drawing symbolic sizes")
        sizes: dict[str, int] = {}
        for name in free:
            modulus, rest = facts.residue.get(name, (1, 0))
            low, high = facts.low.get(name), facts.high.get(name)
            step = min(attempt, 1) if attempt < 2 else source.choice(steps)
            if low is not None:
                sizes[name] = low + modulus * step
            elif high is not None:
                sizes[name] = high - modulus * step
            else:
                sizes[name] = rest + modulus * (step if attempt < 2 else step * source.choice((1, -1)))
        if attempt % 2:
            _multiples(facts, sizes, source)
        whole = completed(facts, sizes)
        if whole is not None and assumptions.broken_at(whole) is None:
            yield whole


def _multiples(facts: Facts, sizes: dict[str, int], source: random.Random) -> None:
    """Make x a multiple of y if x / y is known to be an integer."""
    for known in facts.integral:
        above, below = known.split()
        if len(above.monomials) != 1 or len(above.monomials[0][0]) != 1:
            continue
        ((name, power),) = above.monomials[0][0]
        if power == 1 and name in sizes and below.names <= sizes.keys():
            unit = int(value_at(below, sizes))
            if unit > 0:
                sizes[name] = max(1, sizes[name] // unit) * unit if sizes[name] > 0 else unit * source.choice((1, 2))


def _by_solver(assumptions: Known, claim: Condition, holds: Sizes | None, fails: Sizes | None) -> Decision:
    """Ask z3 for the kind of assignment that the random search did not find."""
    gave_up: list[str] = []
    found: dict[bool, Sizes | None] = {True: holds, False: fails}
    try:
        question = _Question(assumptions, claim, claim.names)
        for wanted, words in ((False, "'always holds'"), (True, "'never holds'")):
            if found[wanted] is not None:
                continue
            try:
                found[wanted] = question.sizes(wanted)
            except BudgetError:
                gave_up.append(words)
                continue
            if found[wanted] is not None:
                continue
            found[wanted], agreed = _search_counterexample(assumptions, claim, wanted)
            if found[wanted] is None:
                what = "never holds, by z3" if wanted else "follows by z3"
                reason = f"{what}; {agreed} random sizes agree"
                return Decision(not wanted, "z3", found[True], found[False], reason)
    except BudgetError:  # while building the formula
        gave_up.append("building the formula")
    if gave_up:
        raise _OpenError(Decision(None, "none", found[True], found[False], f"z3 gave up on {' and '.join(gave_up)}"))
    return Decision(None, "z3", found[True], found[False], "both are possible")


def _search_counterexample(assumptions: Known, claim: Condition, wanted: bool) -> tuple[Sizes | None, int]:
    """Return sizes that z3 says do not exist (None if none found), and how many were tried."""
    tried = 0
    for sizes in draws(assumptions, claim.names, FAR, seed=1):
        tried += 1
        if claim.true_at(sizes) == wanted:
            return tuple(sorted(sizes.items())), tried
    return None, tried


class _Question:
    """Assumptions and a claim as formulas in one z3 session.

    Args:
        claim: A condition, or None to ask for sizes that satisfy the assumptions alone.
        names: Further names that need sizes.
    """

    @solver.whole
    def __init__(self, assumptions: Known, claim: Condition | None, names: frozenset[str]) -> None:
        self.assumptions, self.claim = assumptions, claim
        self.session = solver.session()
        self.names = sorted(assumptions.names | names)
        self.variables = {name: self.session.z3.Int(name, self.session.context) for name in self.names}
        self.helpers = 0
        for name in self.names:
            if name not in assumptions.integers:
                self.session.solver.add(self.variables[name] >= 1)
        for entry in assumptions.conditions:
            self.session.solver.add(self.encode(entry, True))

    @solver.whole
    def sizes(self, wanted: bool) -> Sizes | None:
        """Return sizes at which the assumptions hold and the claim is ``wanted``; None if there are none."""
        self.session.solver.push()
        try:
            if self.claim is not None:
                self.session.solver.add(self.encode(self.claim, wanted))
            values = solver.solve(self.session, "a condition on symbolic sizes", list(self.variables.values()))
        finally:
            self.session.solver.pop()
        if values is None:
            return None
        sizes = dict(zip(self.names, values, strict=True))
        if self.assumptions.broken_at(sizes) is not None or (
            self.claim is not None and self.claim.true_at(sizes) != wanted
        ):
            raise solver.wrong_answer("a condition on symbolic sizes", f"exact arithmetic refutes its model {sizes}")
        return tuple(sorted(sizes.items()))

    def encode(self, entry: Condition, wanted: bool) -> Any:
        """Return the condition, or its negation, without division."""
        z3, context = self.session.z3, self.session.context
        try:
            above, below = entry.value.split()
        except MalformedError as error:
            what = "this condition on symbolic sizes is too large for a solver"
            raise BudgetError(Diagnostic("LA664", what, (str(entry),), error.diagnostic.because)) from error
        top, bottom = self.polynomial(above), self.polynomial(below)
        defined = bottom != 0
        if entry.kind == "integral":
            self.helpers += 1
            quotient = z3.Int(f"quotient!{self.helpers}", context)
            if wanted:
                return z3.And(defined, top == quotient * bottom)
            rest = z3.Int(f"rest!{self.helpers}", context)
            size = z3.If(bottom > 0, bottom, -bottom)
            return z3.Or(z3.Not(defined), z3.And(top == quotient * bottom + rest, rest > 0, rest < size))
        claim = {"zero": top == 0, "nonzero": top != 0, "nonnegative": top * bottom >= 0}[entry.kind]
        stated = z3.And(defined, claim)
        return stated if wanted else z3.Not(stated)

    def polynomial(self, value: Polynomial) -> Any:
        """Return the polynomial as a z3 term."""
        z3, context = self.session.z3, self.session.context
        total = z3.IntVal(0, context)
        for monomial, coefficient in value.monomials:
            clock.check("writing a condition for z3")
            part = z3.IntVal(int(coefficient), context)
            for name, power in monomial:
                for _ in range(power):
                    part = part * self.variables[name]
            total = total + part
        return total
