"""Facts: intervals and classes learned from assumptions, and what they decide, hold at all sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

from layoutalg.ground.assumptions import Assumptions
from layoutalg.ground.conditions import Condition, condition
from layoutalg.ground.decide import Decision, decide, decide_quickly
from layoutalg.ground.facts import Facts, _learn, _learn_class
from layoutalg.ground.polynomial import Polynomial, named, number
from layoutalg.proofs.laws.engines import enumerated, integers
from layoutalg.proofs.laws.law import Law
from layoutalg.proofs.laws.sizes import WHY, listed, sizes_of, truth_of
from layoutalg.proofs.laws.term import denied, every
from layoutalg.proofs.laws.trial import Trial

_KNOWN = (
    (),
    ("M % 4 == 0",),
    ("M >= 3", "N <= 5"),
    ("M % 6 == 4", "M >= 5", "N % 4 == 2"),
    ("M >= 2*N", "N >= 2"),
    ("M == 3*N + 1",),
    ("2*M <= 3*N", "N <= 4"),
    ("M % 4 == 1", "M % 6 == 3"),
    ("M % K == 0",),
    ("M*N >= 12", "N <= 3"),
    ("M + N == 9",),
)
_CLAIMS = (
    *[f"{a}*M >= {b}*N + {c}" for a, b, c in product((1, 2), (0, 1, 2), (-3, 0, 1, 4))],
    *[f"{a}*N <= {b}" for a, b in product((1, 3), (0, 4, 5, 11, 12))],
    *[f"(M + {c}) % {m} == 0" for c, m in product((0, 1, 3), (2, 3, 4, 12))],
    *[f"{a}*M != {b}*N + {c}" for a, b, c in product((1, 2), (0, 1, 2), (0, 1, 3))],
    *["M*N >= M", "M*N >= 12", "M*N >= M + N - 1", "M*M >= 3*M", "M*N % 8 == 0", "M*N % 2 == 0", "M >= K", "M == 3"],
    *["M*N >= K", "M/K >= 1", "2*M % K == 0", "(M + 1) % K == 0", "M*M == M", "M*N == 0"],
)
_TOGETHER = 12
"""Claims in one question to a solver."""
Quickly = Callable[[Assumptions, Condition], "tuple[bool, str] | None"]


def _off_by_one(known: Assumptions, claim: Condition) -> tuple[bool, str] | None:
    """Prove an inequality that is weaker by one."""
    return decide_quickly(known, Condition(claim.kind, claim.value + 1) if claim.kind == "nonnegative" else claim)


def _decided(trial: Trial, place: int, quickly: Quickly = decide_quickly) -> None:
    known, sizes = Assumptions(_KNOWN[place]), sizes_of(trial)
    trial.assume(*[truth_of(entry.kind, entry.value, sizes) for entry in known.conditions])
    held = []
    for text in _CLAIMS:
        claim = condition(text)
        answer = quickly(known, claim)
        if answer is not None:
            truth = truth_of(claim.kind, claim.value, sizes)
            held.append(truth if answer[0] else denied(truth))
    for start in range(0, len(held), _TOGETHER):
        trial.claim(every(*held[start : start + _TOGETHER]), f"what follows from {known}")


def _all_decided(trial: Trial, quickly: Quickly = decide_quickly) -> None:
    place = trial.digit("place", len(_KNOWN))
    _decided(trial, next(k for k in range(len(_KNOWN)) if place == k), quickly)


Question = tuple[tuple[str, ...], str]


def _questions() -> Iterator[Question]:
    return product(_KNOWN[:8], _CLAIMS[::4])


def _wrong_decide(known: Assumptions, claim: Condition) -> Decision:
    """Show sizes without looking at the assumptions."""
    found = decide(Assumptions(), claim)
    return replace(decide(known, claim), fails_at=found.fails_at)


def _shown(case: Question, decide: Callable[[Assumptions, Condition], Decision] = decide) -> str | None:
    known, claim = Assumptions(case[0]), condition(case[1])
    found = decide(known, claim)
    for sizes, wanted in ((found.holds_at, True), (found.fails_at, False)):
        if sizes is not None and (known.broken_at(dict(sizes)) or claim.true_at(dict(sizes)) != wanted):
            return "the sizes shown do not show it"
    if known.entails(claim) is not found.status:
        return "entails says otherwise"
    if found.status is None and found.engine != "none" and None in (found.holds_at, found.fails_at):
        return "open, and sizes of one kind are not shown"
    for m, n in product(range(1, 14), repeat=2):
        at = {"K": 2, "M": m, "N": n}
        if known.broken_at(at) is None and found.status not in (None, claim.true_at(at)):
            return f"decided otherwise than at {at}"
    return None


def _classes() -> Iterator[tuple[Fraction, Fraction, tuple[int, int]]]:
    for a, b, scale in product(range(1, 9), range(-3, 6), (2, 3, 4, 12)):
        for known in ((1, 0), (4, 3), (6, 2)):
            yield Fraction(a, scale), Fraction(b, scale), known


def _wrong_class(facts: Facts, name: str, slope: Fraction, shift: Fraction) -> None:
    """Keep the sign of the shift."""
    _learn_class(facts, name, slope, -shift)


def _class_kept(case: Any, learn: Callable[..., None] = _learn_class) -> str | None:
    slope, shift, known = case
    facts = Facts(residue={"x": known})
    learn(facts, "x", slope, shift)
    modulus, rest = facts.residue["x"]
    period = range(4 * 12)
    members = {x for x in period if (slope * x + shift).denominator == 1 and x % known[0] == known[1]}
    if facts.contradiction:
        return "a contradiction where there is none" if members else None
    return None if members == {x for x in period if x % modulus == rest} else "another class"


def _ends() -> Iterator[tuple[Fraction, Fraction]]:
    slopes = [Fraction(a, b) for a in range(-7, 8) if a for b in (1, 2, 3)]
    return product(slopes, [Fraction(c, 2) for c in range(-9, 9)])


def _wrong_end(facts: Facts, kind: str, value: Polynomial) -> None:
    """Round the lower end down."""
    _learn(facts, kind, value)
    facts.low = {name: low - 1 for name, low in facts.low.items()}


def _end_kept(case: tuple[Fraction, Fraction], learn: Callable[..., None] = _learn) -> str | None:
    slope, shift = case
    facts = Facts()
    learn(facts, "nonnegative", named("x") * slope + number(shift))
    low, high = facts.low.get("x", -50), facts.high.get("x", 50)
    same = {x for x in range(-50, 51) if slope * x + shift >= 0} == set(range(low, high + 1))
    return None if same else "the interval is not the set of solutions"


LAWS = (
    Law(
        "facts.decided",
        "what intervals and congruences decide from assumptions is so at all sizes that satisfy these.",
        (
            "layoutalg.ground.decide.decide_quickly",
            "layoutalg.ground.facts.facts_of",
            "layoutalg.ground.facts.is_nonnegative",
            "layoutalg.ground.facts.is_positive",
            "layoutalg.ground.facts.is_integral",
            "layoutalg.ground.facts.never_integral",
            "layoutalg.ground.facts.Facts.reduce",
            "layoutalg.ground.facts.Facts.by_class",
        ),
        listed(
            integers(
                _all_decided,
                partial(_all_decided, quickly=_off_by_one),
                f"all sizes >= 1; {len(_KNOWN)} assumptions and {len(_CLAIMS)} claims",
            )
        ),
        WHY,
    ),
    Law(
        "facts.shown",
        "decide shows sizes of the kind that it says, agrees with all small sizes, and is open only with both kinds.",
        (
            "layoutalg.ground.decide.decide",
            "layoutalg.ground.assumptions.Assumptions.entails",
            "layoutalg.ground.facts.completed",
        ),
        enumerated(
            _questions,
            _shown,
            partial(_shown, decide=_wrong_decide),
            "8 assumptions and every fourth claim, sizes up to 13",
            160,
        ),
        WHY,
    ),
    Law(
        "facts.class",
        "the class learned from a x + b being an integer is exactly the set of such x of the class known before.",
        ("layoutalg.ground.facts._learn_class",),
        enumerated(
            _classes,
            _class_kept,
            partial(_class_kept, learn=_wrong_class),
            "a = 1/12..8/2, b = -3/2..5/2, three classes known, x over a whole period",
            864,
        ),
        "a greatest common divisor and an inverse modulo a number, which no engine here has as symbols",
    ),
    Law(
        "facts.end",
        "the interval learned from a x + b >= 0 is exactly the set of its solutions.",
        ("layoutalg.ground.facts._learn", "layoutalg.ground.facts._linear"),
        enumerated(_ends, _end_kept, partial(_end_kept, learn=_wrong_end), "a = -7..7 over 1..3, b = -9/2..4", 756),
        WHY,
    ),
)
