"""Whether a condition follows from assumptions: a ladder of sound engines.

Main statements: the answer is True only where the condition holds at every assignment the assumptions allow, False only
where it holds at none of them. Otherwise it is None, either because one assignment of each kind is shown (``holds_at``
and ``fails_at``) or because no engine decided within its limit; ``reason`` tells which.

Implementation notes: intervals and congruences first, then a short search for assignments of both kinds, then the
solver for non-linear integer arithmetic on what is still open, all under one clock. Assignments found by the solver are
checked by exact arithmetic before they are shown. Where it finds none, fresh assignments that meet the assumptions are
drawn and evaluated; one of the kind it denies wins over it. What ran out of time is never kept for the next time.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import gcd
from typing import Any, TypeAlias

from layoutalg.ground import clock, limits, solver
from layoutalg.ground.cache import kept
from layoutalg.ground.conditions import Condition, Known
from layoutalg.ground.errors import BudgetError, Diagnostic, MalformedError
from layoutalg.ground.facts import Facts, completed, facts_of, is_integral, is_nonnegative, is_positive, never_integral
from layoutalg.ground.meter import WorkDoneError, metered
from layoutalg.ground.polynomial import Polynomial, value_at

Sizes: TypeAlias = tuple[tuple[str, int], ...]

GLANCE = 1_000
"""Steps of intervals and congruences before assignments are drawn; nearly all answers come within."""
DRAWS = 160
NEAR = (0, 1, 2, 3, 4, 5, 7, 11, 15, 63)
FAR = (0, 0, 1, 1, 2, 3, 6, 8, 9, 12, 31, 64, 100, 127, 1023, 4096, 99_991)


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


def decide(assumptions: Known, claim: Condition, timeout_ms: float = limits.DECISION_MS) -> Decision:
    """Return whether ``claim`` follows from ``assumptions``; see ``Decision``.

    Args:
        assumptions: What is known.
        claim: The condition.
        timeout_ms: Milliseconds of wall time for the whole decision; the deadline that holds here counts too where it
            is sooner.

    Raises: MalformedError: LA004. BudgetError: LA001.

    Example:
        >>> from layoutalg.ground.assumptions import Assumptions, condition
        >>> decide(Assumptions(("M % K == 0",)), condition("M >= K")).status
        True
    """
    with clock.within(clock.checked_seconds(timeout_ms, "timeout_ms") / 1000):
        try:
            found = _decided(assumptions, claim)
        except BudgetError:
            found = Decision(None, "none", None, None, "nothing was decided")
    if found.engine != "none":
        return found
    clock.check("deciding a condition on symbolic sizes")  # the deadline of the caller, if that is the one
    return replace(found, reason=f"{found.reason} after {timeout_ms:g} ms")


@kept(worth=lambda decision: decision.engine != "none")
def _decided(assumptions: Known, claim: Condition) -> Decision:
    """Return the decision of the first engine that has one.

    Raises: BudgetError: LA001.
    """
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


@kept()
def decide_quickly(assumptions: Known, claim: Condition, steps: int = limits.DECISION_STEPS) -> tuple[bool, str] | None:
    """Return (status, engine) where intervals and congruences decide within so many steps, else None."""
    try:
        with metered(steps):
            return _decide_quickly(assumptions, claim)
    except (WorkDoneError, MalformedError):  # too much work, or a polynomial on the way beyond its limits
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
    """Return whether the constant is not a multiple of the common divisor of the other coefficients."""
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
    timeout_ms: float = limits.DECISION_MS,
    names: frozenset[str] = frozenset(),
) -> Sizes | None:
    """Return sizes that meet the assumptions at which ``claim`` has the truth value ``wanted``; None where none found.

    ``names`` are further names to give sizes to. Where the time is up before any are found, that counts as none; a
    deadline of the caller that has passed is raised as BudgetError LA001.

    Example:
        >>> from layoutalg.ground.assumptions import Assumptions, condition
        >>> find_sizes(Assumptions(("M % 16 == 0",)), condition("M >= 32"), True)
        (('M', 32),)
    """
    everything = names | (claim.names if claim is not None else frozenset())
    with clock.within(timeout_ms / 1000):
        try:
            for sizes in _draws(assumptions, everything):
                if claim is None or claim.true_at(sizes) == wanted:
                    return tuple(sorted(sizes.items()))
            return _Question(assumptions, claim, everything).sizes(wanted)
        except BudgetError:
            pass
    clock.check("looking for symbolic sizes")
    return None


def _examples(assumptions: Known, claim: Condition) -> tuple[Sizes | None, Sizes | None]:
    found: dict[bool, Sizes] = {}
    for sizes in _draws(assumptions, claim.names):
        found.setdefault(claim.true_at(sizes), tuple(sorted(sizes.items())))
        if len(found) == 2:
            break
    return found.get(True), found.get(False)


def _draws(
    assumptions: Known, names: frozenset[str], steps: tuple[int, ...] = NEAR, seed: int = 0
) -> Iterable[dict[str, int]]:
    """Yield assignments that meet the assumptions: small ones first, then spread ones; always the same for a seed."""
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
    """Make x a multiple of y where x / y is known to be an integer."""
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
    """Ask the solver for the kind of assignment the examples did not show."""
    gave_up: list[str] = []
    found: dict[bool, Sizes | None] = {True: holds, False: fails}
    try:
        question = _Question(assumptions, claim, claim.names)
        for wanted, words in ((False, "that it always holds"), (True, "that it never holds")):
            if found[wanted] is not None:
                continue
            try:
                found[wanted] = question.sizes(wanted)
            except BudgetError:
                gave_up.append(words)
                continue
            if found[wanted] is not None:
                continue
            found[wanted], agreed = _contradicted(assumptions, claim, wanted)
            if found[wanted] is None:
                what = "never holds, by z3" if wanted else "follows by z3"
                reason = f"{what}, and at all {agreed} sizes that were tried"
                return Decision(not wanted, "z3", found[True], found[False], reason)
    except BudgetError:  # while the question was being written
        gave_up.append("the question")
    if gave_up:
        return Decision(None, "none", found[True], found[False], f"z3 gave up on {' and '.join(gave_up)}")
    return Decision(None, "z3", found[True], found[False], "both are possible")


def _contradicted(assumptions: Known, claim: Condition, wanted: bool) -> tuple[Sizes | None, int]:
    """Return sizes of a kind that the solver says do not exist, or None, and how many sizes were tried."""
    tried = 0
    for sizes in _draws(assumptions, claim.names, FAR, seed=1):
        tried += 1
        if claim.true_at(sizes) == wanted:
            return tuple(sorted(sizes.items())), tried
    return None, tried


class _Question:
    """Assumptions and a claim as formulas of one session with z3.

    Args:
        assumptions: What is known.
        claim: A condition, or None to ask for sizes that meet the assumptions alone.
        names: Further names to give sizes to.

    Raises: BudgetError: LA001, LA664.
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
        """Return sizes at which the assumptions hold and the claim is ``wanted``; None where there are none.

        Raises: BudgetError: LA001, LA005.
        """
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
        """Return a sum of products of variables."""
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
