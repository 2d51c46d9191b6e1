"""Following a layout through the extents of another, and putting modes into a divisible chain, with conditions.

Main statements: i -> A(d i) on [0, n) is one digit where d (n - 1) stays inside the current extent, passes on where the
extent divides d, and fills the extent where d divides it and the filled part divides n. Digits in the same mode of A
add up without carry where the sum of their greatest values stays inside its extent.

Implementation notes: each way through is a list of conditions. Ways with a condition that never holds are dropped; of
the others the one with the least demanding open conditions is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, product
from typing import TypeAlias

from layoutalg.cute.symbolic.ledger import Ledger
from layoutalg.ground.assumptions import Assumptions
from layoutalg.ground.conditions import Condition, at_least, equal
from layoutalg.ground.decide import decide
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, RepresentabilityError
from layoutalg.ground.polynomial import ONE, ZERO, Polynomial, trusted

Flat: TypeAlias = tuple[tuple[Polynomial, Polynomial], ...]
Digit: TypeAlias = tuple[int, Polynomial, Polynomial]
"""Mode of the outer layout, step inside that mode, extent."""

Way: TypeAlias = tuple[tuple[Condition, ...], tuple[Digit, ...]]

MAX_WAYS = 24
EXPLORE_MS = 100
"""Limit while ways are explored; the chosen way is decided with the full limit."""


def merged(flat: Flat, ledger: Ledger) -> Flat:
    """Return the modes without known extents 1, neighbours fused where the stride is known to continue."""
    answer: list[tuple[Polynomial, Polynomial]] = []
    for extent, stride in flat:
        if ledger.holds(equal(extent, ONE)):
            continue
        if answer and ledger.holds(equal(answer[-1][0] * answer[-1][1], stride)):
            answer[-1] = (answer[-1][0] * extent, answer[-1][1])
        else:
            answer.append((extent, stride))
    return tuple(answer)


def quotient(value: Polynomial, divisor: Polynomial, ledger: Ledger) -> Polynomial:
    """Return value / divisor and note that it is an integer.

    Raises: AdmissibilityError: LA626. RepresentabilityError: LA627.
    """
    answer = value.quotient(divisor)
    if answer is None:
        raise no_form(ledger.where, f"{value} divided by {divisor} is not a sum of products")
    if not answer.whole:
        ledger.require(Condition("integral", answer))
    return answer


def no_form(where: str, because: str) -> RepresentabilityError:
    """Return the error for an answer that polynomials cannot hold."""
    return RepresentabilityError(
        Diagnostic(
            code="LA627",
            what="no answer with symbolic extents and strides was found",
            where=(where,),
            because=because,
            source="a new name for the quotient, tied by an assumption such as 'M == 64*T', often helps",
        )
    )


def follow(outer: Flat, inner: Flat, ledger: Ledger, endless: bool = False) -> tuple[list[Flat], Ledger]:
    """Return the digits (extent, stride) of each mode of ``inner`` after ``outer``, and the ledger with its conditions.

    Args:
        outer: Merged modes.
        inner: Modes whose offsets are 1-D coordinates of ``outer``.
        ledger: Conditions so far; not changed.
        endless: Whether the last mode of ``outer`` has no end.

    Raises: AdmissibilityError: LA626. RepresentabilityError: LA627.
    """
    outer = outer or ((ONE, ZERO),)
    base = _copy(ledger)
    choices: list[list[Way]] = []
    for extent, step in inner:
        if base.holds(equal(extent, ONE)) or base.holds(equal(step, ZERO)):
            choices.append([((), ())])
            continue
        base.require(at_least(step, 1))
        ways = list(islice(_ways(outer, extent, step, 0, base.known), MAX_WAYS))
        if not ways:
            raise no_form(base.where, f"no way to follow {extent}:{step} is known to be possible")
        choices.append(sorted(ways, key=lambda way: len(way[0])))
    combined = [
        ((*[entry for way in ways for entry in way[0]], *_no_carry(outer, ways, endless)), ways)
        for ways in islice(product(*choices), MAX_WAYS)
    ]
    chosen, best = cheapest(base, combined)
    runs: list[Flat] = []
    for (extent, _), (_, digits) in zip(inner, chosen, strict=True):
        flat = merged(tuple([(count, outer[mode][1] * step) for mode, step, count in digits]), best)
        runs.append(flat or ((extent, ZERO),))
    return runs, best


def cheapest(ledger: Ledger, ways: Iterable[tuple[tuple[Condition, ...], object]]) -> tuple[Iterable[Way], Ledger]:
    """Return the way with the least demanding open conditions and the ledger with them; the first one on a tie.

    Raises: AdmissibilityError: LA626.
    """
    refused: AdmissibilityError | None = None
    best: tuple[int, object, Ledger] | None = None
    for needed, way in ways:
        trial = _copy(ledger)
        try:
            for entry in needed:
                trial.require(entry)
        except AdmissibilityError as error:
            refused = refused or error
            continue
        count = sum([_burden(entry.condition) for entry in trial.conditions if entry.status is not True])
        if best is None or count < best[0]:
            best = (count, way, trial)
        if len(trial.conditions) == len(ledger.conditions) or all(
            entry.status for entry in trial.conditions if entry.condition not in ledger.entries
        ):
            break
    if best is None:
        if refused is None:
            raise no_form(ledger.where, "no order of the modes can be written with polynomials")
        raise refused
    return best[1], best[2]  # type: ignore[return-value]


def _burden(entry: Condition) -> int:
    """Return how demanding an open condition is: inequalities less than divisibility, tight corners much more."""
    if entry.kind == "integral":
        above, below = entry.value.split()
        return 3 + 4 * max(0, _degree(below) - _degree(above))
    gains = trusted(tuple([part for part in entry.value.monomials if part[1] > 0]))
    return 2 + 4 * max(0, _degree(gains - entry.value) - _degree(gains))


def _degree(value: Polynomial) -> int:
    return max([sum([power for _, power in monomial]) for monomial, _ in value.monomials], default=0)


def _copy(ledger: Ledger) -> Ledger:
    return Ledger(ledger.assumptions, ledger.conditions, ledger.where)


def _ways(outer: Flat, extent: Polynomial, step: Polynomial, mode: int, known: Assumptions) -> Iterator[Way]:
    """Yield the ways of i -> step i through the modes from ``mode`` on; a way that surely works ends the search."""
    if mode == len(outer) - 1:
        yield (), ((mode, step, extent),)
        return
    room = outer[mode][0]
    fits = at_least(room - 1, step * (extent - 1))
    status = decide(known, fits, EXPLORE_MS).status
    if status is not False:
        yield (fits,), ((mode, step, extent),)
    if status:
        return
    filled = room.quotient(step)
    left = None if filled is None else extent.quotient(filled)
    if filled is not None and left is not None:
        needed = (Condition("integral", filled), Condition("integral", left))
        answers = [decide(known, entry, EXPLORE_MS).status for entry in needed]
        if False not in answers:
            for more, digits in _ways(outer, left, ONE, mode + 1, known):
                yield (*needed, *more), ((mode, step, filled), *digits)
            if all(answers):
                return
    passed = step.quotient(room)
    if passed is not None:
        divides = Condition("integral", passed)
        if decide(known, divides, EXPLORE_MS).status is not False:
            for more, digits in _ways(outer, extent, passed, mode + 1, known):
                yield (divides, *more), digits


def _no_carry(outer: Flat, ways: Iterable[Way], endless: bool) -> list[Condition]:
    """Return the conditions that the digits in each mode of ``outer`` together stay inside its extent."""
    totals: dict[int, Polynomial] = {}
    for _, digits in ways:
        for mode, step, count in digits:
            totals[mode] = totals.get(mode, ZERO) + step * (count - 1)
    return [
        at_least(outer[mode][0] - 1, total)
        for mode, total in sorted(totals.items())
        if not (endless and mode == len(outer) - 1)
    ]


@dataclass(frozen=True, slots=True)
class Link:
    """A mode in a chain: ``whole`` where its stride is a multiple of the end of the mode before it."""

    extent: Polynomial
    stride: Polynomial
    weight: Polynomial
    whole: bool


def chain(flat: Flat, ledger: Ledger, padded: bool = False) -> tuple[list[Link], Ledger]:
    """Return the modes other than stride 0 in an order in which each starts after the one before it, and the ledger.

    Args:
        flat: Merged modes; strides of at least 0.
        ledger: Conditions so far; not changed.
        padded: Whether a stride may also be a multiple of the stride before it that reaches past its end.

    Raises: AdmissibilityError: LA626. RepresentabilityError: LA627.
    """
    base = _copy(ledger)
    modes: list[tuple[Polynomial, Polynomial, Polynomial]] = []
    weight = ONE
    for extent, stride in flat:
        if not base.holds(equal(stride, ZERO)):
            base.require(at_least(stride, 1))
            modes.append((extent, stride, weight))
        weight = weight * extent
    orders = list(islice(_orders(tuple(modes), None, base.known, padded), MAX_WAYS))
    chosen, best = cheapest(base, sorted(orders, key=lambda order: len(order[0])))
    return list(chosen), best  # type: ignore[arg-type]


def _orders(
    modes: tuple[tuple[Polynomial, Polynomial, Polynomial], ...], last: Link | None, known: Assumptions, padded: bool
) -> Iterator[tuple[tuple[Condition, ...], tuple[Link, ...]]]:
    if not modes:
        yield (), ()
        return
    end = ONE if last is None else last.extent * last.stride
    found: list[tuple[int, tuple[Condition, ...], Link]] = []
    for extent, stride, weight in modes:
        gap = stride.quotient(end)
        if gap is not None:
            found.append(_step((Condition("integral", gap),), Link(extent, stride, weight, True), known))
        if padded and last is not None:
            unit = stride.quotient(last.stride)
            if unit is not None:
                both = (Condition("integral", unit), at_least(stride, end))
                found.append(_step(both, Link(extent, stride, weight, False), known))
    for rank, needed, link in sorted(found, key=lambda entry: entry[0]):
        if rank < 9:
            rest = tuple([mode for mode in modes if mode != (link.extent, link.stride, link.weight)])
            for more, links in _orders(rest, link, known, padded):
                yield (*needed, *more), (link, *links)


def _step(needed: tuple[Condition, ...], link: Link, known: Assumptions) -> tuple[int, tuple[Condition, ...], Link]:
    """Return the step with its rank: the number of conditions that are open, 9 where one never holds."""
    answers = [decide(known, entry, EXPLORE_MS).status for entry in needed]
    return (9 if False in answers else answers.count(None)), needed, link
