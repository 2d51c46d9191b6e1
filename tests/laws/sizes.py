"""Sizes of a list of polynomials and conditions, decided by solvers for all values of the sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from itertools import combinations_with_replacement, product
from typing import Any

from laws import Row, tabled
from layoutalg.ground.assumptions import Assumptions
from layoutalg.ground.conditions import Condition, Kind, condition
from layoutalg.ground.decide import decide_quickly
from layoutalg.ground.polynomial import Polynomial, named, power_of, product_of, total
from layoutalg.ground.polynomial_text import polynomial
from layoutalg.ground.verdict import Proved
from layoutalg.proofs.laws.law import INTEGERS
from layoutalg.proofs.laws.solvers import Answerer, installed
from layoutalg.proofs.laws.term import Condition as Holds
from layoutalg.proofs.laws.term import denied, every, implies
from layoutalg.proofs.laws.trial import Claim, Trial, explored

LAWS: list[Row] = []
law = partial(tabled, LAWS)


def solved(name: str, scope: str) -> Callable[[Claim], Claim]:
    """Return a decorator that makes a claim a law of the table: its cases are the solvers."""

    def add(claim: Claim) -> Claim:
        def judge(solver: Answerer) -> str | None:
            verdict = explored(claim, solver)
            return None if isinstance(verdict, Proved) else str(verdict)

        says = " ".join((claim.__doc__ or "").split())
        law(name, lambda: [each for each in INTEGERS if installed(each)], None, scope, says)(judge)
        return claim

    return add


Value = tuple[Any, Any]


_NAMES = ("K", "M", "N")
_POLYNOMIALS = tuple(
    polynomial(text)
    for text in ("0", "3", "M", "-M/2", "M - N", "M*N + 1", "2*M*M - 3*N/4", "M/K", "N/(6*K) + K", "K*M*N - M/2 + 5/3")
)


_FACTORS = tuple([_POLYNOMIALS[k] for k in (0, 3, 4, 5, 7)])
_FRACTIONS = tuple(polynomial(text) for text in ("7/2", "M/4 + N/2 - 3", "5*M/6 + 7/3", "M*N/2 + 7*M/6"))


def value_of(value: Polynomial, sizes: Mapping[str, Any]) -> Value:
    """Return numerator and denominator at sizes."""
    above: Any = 0
    below: Any = 1
    for monomial, coefficient in value.monomials:
        top: Any = coefficient.numerator
        bottom: Any = coefficient.denominator
        for name, power in monomial:
            for _ in range(abs(power)):
                top, bottom = (top * sizes[name], bottom) if power > 0 else (top, bottom * sizes[name])
        above, below = above * bottom + top * below, below * bottom
    return above, below


def truth_of(kind: str, value: Polynomial, sizes: Mapping[str, Any]) -> Holds:
    """Return whether a condition holds at sizes of at least 1."""
    above, below = value_of(value, sizes)
    if kind == "integral":
        kind, above = "zero", above % below
    truths: dict[str, Holds] = {"zero": above == 0, "nonzero": above != 0, "nonnegative": above >= 0}
    return truths[kind]


def sizes_of(trial: Trial) -> dict[str, Any]:
    return {name: trial.extent(name) for name in _NAMES}


def _same(left: Value, right: Value) -> Holds:
    equal: Holds = left[0] * right[1] == right[0] * left[1]
    return equal


@solved("sizes.ring", "all sizes >= 1; pairs of 5 polynomials in K, M and N")
def _same_sums(trial: Trial) -> None:
    """The value of p + q, p - q, p q, p / m and p quotient q at any sizes is that of the values."""
    sizes = sizes_of(trial)
    values = [value_of(p, sizes) for p in _FACTORS]
    same = []
    for (p, (a, b)), (q, (c, d)) in combinations_with_replacement(zip(_FACTORS, values, strict=True), 2):
        results = [
            (-p, (-a, b)),
            (1 - p, (b - a, b)),
            (Polynomial.__mul__(p, q), (a * c, b * d)),
            (p + q, (a * d + c * b, b * d)),
            (p - q, (a * d - c * b, b * d)),
        ]
        if len(q.monomials) == 1:
            results.append((p / q, (a * d, b * c)))
        quotient = Polynomial.__mul__(p, q).quotient(q) if q.monomials else None
        if quotient is not None:
            results.append((quotient, (a, b)))
        same += [_same(value_of(found, sizes), wanted) for found, wanted in results]
    trial.claim(every(*same), "the value of a sum, a product or a quotient")


_LISTED = f"all sizes >= 1; {len(_POLYNOMIALS)} polynomials in K, M and N"


@solved("sizes.substitution", _LISTED)
def _substitution(trial: Trial) -> None:
    """The value after substitution is the value at the substituted sizes; split gives numerator and denominator."""
    sizes = sizes_of(trial)
    swaps = ({"M": named("N"), "N": named("M")}, {"M": named("N") * 2 + 3}, {"K": named("M") * 6, "M": named("K")})
    for p, values in product(_POLYNOMIALS, swaps):
        inner = {**sizes, **{name: value_of(value, sizes)[0] for name, value in values.items()}}
        trial.claim(
            _same(value_of(Polynomial.replace(p, values), sizes), value_of(p, inner)), "the value after substitution"
        )
        above, below = p.split()
        trial.claim(_same((value_of(above, sizes)[0], value_of(below, sizes)[0]), value_of(p, sizes)), "a fraction")
        scale = p.content()
        if p.monomials:
            trial.claim(_same(value_of(p / scale * scale, sizes), value_of(p, sizes)), "content times the rest")
            whole = all(coefficient.denominator == 1 for _, coefficient in (p / scale).monomials)
            trial.claim(whole, "coefficients over the content are integers")
    square, both = power_of(_POLYNOMIALS[5], 2), product_of([_POLYNOMIALS[5], _POLYNOMIALS[5]])
    trial.claim(square == both, "a power is a product")
    trial.claim(total([square, both]) == square * 2, "a total is a sum")


@solved("sizes.lowest_terms", "all sizes >= 1; 9 polynomials in K, M and N, all four kinds")
def _kept_truth(trial: Trial) -> None:
    """The normal form of a condition holds at the same sizes, stays as it is, and is that of its multiples."""
    sizes = sizes_of(trial)
    kinds: tuple[Kind, ...] = ("zero", "nonzero", "nonnegative")
    whole: Kind = "integral"
    for kind, p in [*product(kinds, _FACTORS), *[(whole, p) for p in _FRACTIONS]]:
        for factor in (1, Fraction(3, 2)):
            form = Condition(kind, p * factor)
            before, after = truth_of(kind, p * factor, sizes), truth_of(kind, form.value, sizes)
            trial.claim(every(implies(before, after), implies(after, before)), "the normal form has the same truth")
        if kind != "integral":
            trial.claim(Condition(kind, p * 2) == Condition(kind, p), "multiples have one normal form")
        trial.claim(Condition(kind, form.value) == form, "a normal form stays")


KNOWN = (
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


CLAIMS = (
    *[f"{a}*M >= {b}*N + {c}" for a, b, c in product((1, 2), (0, 1, 2), (-3, 0, 1, 4))],
    *[f"{a}*N <= {b}" for a, b in product((1, 3), (0, 4, 5, 11, 12))],
    *[f"(M + {c}) % {m} == 0" for c, m in product((0, 1, 3), (2, 3, 4, 12))],
    *[f"{a}*M != {b}*N + {c}" for a, b, c in product((1, 2), (0, 1, 2), (0, 1, 3))],
    *["M*N >= M", "M*N >= 12", "M*N >= M + N - 1", "M*M >= 3*M", "M*N % 8 == 0", "M*N % 2 == 0", "M >= K", "M == 3"],
    *["M*N >= K", "M/K >= 1", "2*M % K == 0", "(M + 1) % K == 0", "M*M == M", "M*N == 0"],
)


_TOGETHER = 12
"""Claims in one question to a solver."""


def _decided(trial: Trial, place: int) -> None:
    known, sizes = Assumptions(KNOWN[place]), sizes_of(trial)
    trial.assume(*[truth_of(entry.kind, entry.value, sizes) for entry in known.conditions])
    held = []
    for text in CLAIMS:
        claim = condition(text)
        answer = decide_quickly(known, claim)
        if answer is not None:
            truth = truth_of(claim.kind, claim.value, sizes)
            held.append(truth if answer[0] else denied(truth))
    for start in range(0, len(held), _TOGETHER):
        trial.claim(every(*held[start : start + _TOGETHER]), f"what follows from {known}")


@solved("facts.decided", f"all sizes >= 1; {len(KNOWN)} assumptions and {len(CLAIMS)} claims")
def _all_decided(trial: Trial) -> None:
    """What intervals and congruences decide from assumptions is so at all sizes that satisfy these."""
    place = trial.digit("place", len(KNOWN))
    _decided(trial, next(k for k in range(len(KNOWN)) if place == k))
