"""Track the side conditions of an operation while it runs.

A condition that follows is recorded as proved, one that never holds raises with sizes that show it, any other is
recorded as open. Later questions may use the open ones, since the result is only claimed where they hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from layoutalg.cute.inttuple import malformed
from layoutalg.ground.assumptions import Assumptions, SideCondition, contradiction
from layoutalg.ground.check import refuse
from layoutalg.ground.conditions import Condition
from layoutalg.ground.decide import decide, decide_quickly, find_sizes
from layoutalg.ground.errors import AdmissibilityError, MalformedError
from layoutalg.ground.limits import TUPLE_DEPTH, TUPLE_MODES
from layoutalg.ground.polynomial import ONE, Polynomial
from layoutalg.ground.polynomial_text import polynomial

MERGE_MS = 250
"""Time limit in ms for questions that only shorten a result."""

Nested: TypeAlias = "Polynomial | tuple[Nested, ...]"


class Ledger:
    """Side conditions of one result under construction.

    Args:
        assumptions: What is known.
        conditions: Side conditions of the operands.
        where: The call, for messages.
    """

    def __init__(self, assumptions: Assumptions, conditions: Iterable[SideCondition], where: str) -> None:
        self.assumptions = assumptions
        self.where = where
        self.entries: dict[Condition, SideCondition] = {}
        self.known = assumptions
        self.integers = frozenset(assumptions.integers)
        for entry in conditions:
            self.require(entry.condition)  # decided again: more may be known now

    @property
    def conditions(self) -> tuple[SideCondition, ...]:
        """The side conditions so far."""
        return tuple(self.entries.values())

    def holds(self, claim: Condition) -> bool:
        """Return whether the claim follows from everything recorded so far."""
        return decide(self.known, claim, MERGE_MS).status is True

    def require(self, claim: Condition) -> None:
        """Record a condition that the result needs, or raise.

        Raises: AdmissibilityError: LA626.
        """
        if claim in self.entries:
            return
        by_form = decide_quickly(Assumptions((), claim.names & self.integers), claim)
        if by_form is not None and by_form[0]:  # holds for all sizes: not a side condition
            return
        decision = decide(self.known, claim)
        if decision.status is True:
            self.entries[claim] = SideCondition(claim, True, decision.reason)
            return
        if decision.status is False:
            raise self.refusal(claim)
        try:
            self.known = self.known.extended((claim,))
        except MalformedError as error:
            raise self.refusal(claim) from error
        self.entries[claim] = SideCondition(claim, None, decision.reason)

    def refusal(self, claim: Condition) -> AdmissibilityError | MalformedError:
        """Return the error for a condition that holds for no sizes."""
        sizes = find_sizes(self.known, claim, wanted=False)
        if sizes is None and decide(self.known, Condition("zero", ONE)).status is True:
            return contradiction(self.known)
        because = f"{claim} holds for no sizes with {self.known}"
        witness = None if sizes is None else dict(sizes)
        return refuse("LA626", "a condition the operation needs is violated", because, witness, self.where)


def leaves(value: Nested) -> tuple[Polynomial, ...]:
    """Return the leaves from left to right."""
    if isinstance(value, Polynomial):
        return (value,)
    return tuple([leaf for entry in value for leaf in leaves(entry)])


def graft(profile: Nested, parts: Iterable[Nested]) -> Nested:
    """Return ``profile`` with its leaves replaced from left to right."""
    source = iter(parts)

    def walk(value: Nested) -> Nested:
        return next(source) if isinstance(value, Polynomial) else tuple([walk(entry) for entry in value])

    return walk(profile)


def nest_of(value: object, argument: str) -> Nested:
    """Return ``value`` with every leaf parsed as a polynomial.

    Raises: MalformedError: LA620, LA622.
    """
    seen = [0]

    def walk(entry: object, level: int) -> Nested:
        if not isinstance(entry, tuple):
            seen[0] += 1
            if seen[0] > TUPLE_MODES:
                raise malformed(argument, f"must have at most {TUPLE_MODES} modes", "more", "LA622")
            return polynomial(entry)
        if level >= TUPLE_DEPTH:
            raise malformed(argument, f"must nest at most {TUPLE_DEPTH} deep", "deeper", "LA622")
        return tuple([walk(part, level + 1) for part in entry])

    return walk(value, 0)


def alike(a: Nested, b: Nested) -> bool:
    """Return whether both values have the same nesting."""
    if isinstance(a, Polynomial) or isinstance(b, Polynomial):
        return isinstance(a, Polynomial) and isinstance(b, Polynomial)
    return len(a) == len(b) and all(alike(x, y) for x, y in zip(a, b, strict=True))


def text_of(value: Nested, show: Callable[[Polynomial], str] = str) -> str:
    """Return the value in CuTe notation."""
    if isinstance(value, Polynomial):
        return show(value)
    return "(" + ",".join([text_of(entry, show) for entry in value]) + ")"
