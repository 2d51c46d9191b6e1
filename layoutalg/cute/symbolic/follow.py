"""Follow a symbolic layout through the extents of another, and order modes into a divisible chain, with conditions.

Main statements: i -> A(d i) on [0, n) is one digit if d (n - 1) stays inside the current extent, skips the extent if it
divides d, and fills it if d divides it and the filled part divides n. Digits in the same mode of A add without carry if
the sum of their greatest values stays inside its extent.

Implementation notes: each way through is a list of conditions. Ways with a condition that never holds are dropped; of
the others the one with the least demanding open conditions is chosen.
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
"""Time limit in ms while exploring; the chosen way is decided with the full limit."""


def merged(flat: Flat, ledger: Ledger) -> Flat:
    """Drop modes known to have extent 1; fuse neighbours where the stride is known to continue."""
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
    """Return value / divisor and require that it is an integer."""
    answer = value.quotient(divisor)
    if answer is None:
        raise no_form(ledger.where, f"{value} divided by {divisor} is not a sum of products")
    if not answer.whole:
        ledger.require(Condition("integral", answer))
    return answer


def no_form(where: str, because: str) -> RepresentabilityError:
    """Return the error for an answer that is not a polynomial."""
    return RepresentabilityError(
        Diagnostic(
            code="LA627",
            what="no answer with symbolic extents and strides was found",
            where=(where,),
            because=because,
            source="naming the quotient with an assumption such as 'M == 64*T' often helps",
        )
    )


def follow(outer: Flat, inner: Flat, ledger: Ledger, endless: bool = False) -> tuple[list[Flat], Ledger]:
    """Return the digits (extent, stride) of ``outer`` along each mode of ``inner``, and the ledger with its conditions.

    Args:
        outer: Merged modes.
        inner: Modes whose offsets are 1-D coordinates of ``outer``.
        ledger: Conditions so far; not changed.
        endless: Whether the last mode of ``outer`` is unbounded.
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
            raise no_form(base.where, f"no way to follow {extent}:{step} is known")
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
    """Return the way with the least demanding open conditions (first on a tie) and its ledger."""
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
    """Rank an open condition: inequalities cost less than divisibility, high-degree bounds and divisors far more."""
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
    """Yield the ways of i -> step i through the modes from ``mode`` on; one known to work ends the search."""
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
    """Return the conditions that all digits in a mode of ``outer`` together stay inside its extent."""
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
    """A mode in a chain; ``whole`` if its stride is a multiple of the end of the mode before it."""

    extent: Polynomial
    stride: Polynomial
    weight: Polynomial
    whole: bool


def chain(flat: Flat, ledger: Ledger, padded: bool = False) -> tuple[list[Link], Ledger]:
    """Order the modes of nonzero stride so that each starts after the end of the one before; also return the ledger.

    Args:
        flat: Merged modes; strides of at least 0.
        ledger: Conditions so far; not changed.
        padded: Whether a stride may instead be a multiple of the stride before it, past the end of that mode.
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
    """Return the step with its rank: the number of open conditions, or 9 if one never holds."""
    answers = [decide(known, entry, EXPLORE_MS).status for entry in needed]
    return (9 if False in answers else answers.count(None)), needed, link
