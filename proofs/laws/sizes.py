"""Symbolic sizes: polynomials compute values, conditions keep their truth, and what is decided holds at all sizes.

Main definitions: ``LAWS``, ``value_of``, ``truth_of``.

Notation: names stand for integers; a value is a pair of a numerator and a denominator, computed here monomial by
monomial, apart from the functions of the library that the laws are about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import combinations_with_replacement, product
from typing import Any

from layoutalg.ground.assumptions import Assumptions
from layoutalg.ground.conditions import Condition, condition
from layoutalg.ground.decide import Decision, decide, decide_quickly
from layoutalg.ground.facts import Facts, _learn, _learn_class
from layoutalg.ground.polynomial import ONE, Polynomial, named, number, power_of, product_of, total, value_at
from layoutalg.ground.polynomial_text import polynomial
from layoutalg.proofs.laws.engines import enumerated, integers
from layoutalg.proofs.laws.law import Law, Obligation
from layoutalg.proofs.laws.term import Condition as Holds
from layoutalg.proofs.laws.term import denied, every, implies
from layoutalg.proofs.laws.trial import Trial

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


def _sizes(trial: Trial) -> dict[str, Any]:
    return {name: trial.extent(name) for name in _NAMES}


def _same(left: Value, right: Value) -> Holds:
    equal: Holds = left[0] * right[1] == right[0] * left[1]
    return equal


def _wrong_product(p: Polynomial, q: Polynomial) -> Polynomial:
    """Drop what cancels to the constant."""
    answer = p * q
    return Polynomial(tuple([entry for entry in answer.monomials if entry[0]]))


def _ring(trial: Trial, times: Callable[[Polynomial, Polynomial], Polynomial] = Polynomial.__mul__) -> None:
    sizes = _sizes(trial)
    values = [value_of(p, sizes) for p in _FACTORS]
    same = []
    for (p, (a, b)), (q, (c, d)) in combinations_with_replacement(zip(_FACTORS, values, strict=True), 2):
        results = [
            (-p, (-a, b)),
            (1 - p, (b - a, b)),
            (times(p, q), (a * c, b * d)),
            (p + q, (a * d + c * b, b * d)),
            (p - q, (a * d - c * b, b * d)),
        ]
        if len(q.monomials) == 1:
            results.append((p / q, (a * d, b * c)))
        quotient = times(p, q).quotient(q) if q.monomials else None
        if quotient is not None:
            results.append((quotient, (a, b)))
        same += [_same(value_of(found, sizes), wanted) for found, wanted in results]
    trial.claim(every(*same), "the value of a sum, a product or a quotient")


def _wrong_replace(p: Polynomial, values: Mapping[str, Polynomial]) -> Polynomial:
    """Replace one name after another, so that names put in are replaced as well."""
    for name, value in sorted(values.items()):
        p = p.replace({name: value})
    return p


def _substitution(trial: Trial, replaced: Callable[..., Polynomial] = Polynomial.replace) -> None:
    sizes = _sizes(trial)
    swaps = ({"M": named("N"), "N": named("M")}, {"M": named("N") * 2 + 3}, {"K": named("M") * 6, "M": named("K")})
    for p, values in product(_POLYNOMIALS, swaps):
        inner = {**sizes, **{name: value_of(value, sizes)[0] for name, value in values.items()}}
        trial.claim(_same(value_of(replaced(p, values), sizes), value_of(p, inner)), "the value after substitution")
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


def _small() -> Iterator[Polynomial]:
    """All polynomials in M, N, M N and M / N with coefficients -1, 0, 1/2 and 1."""
    parts = (ONE, named("M"), named("N"), named("M") * named("N"), named("M") / named("N"))
    for factors in product((Fraction(-1), Fraction(0), Fraction(1, 2), Fraction(1)), repeat=len(parts)):
        yield total([part * factor for part, factor in zip(parts, factors, strict=True)])


_POINTS = tuple({"M": m, "N": n} for m, n in product((1, 2, 3), repeat=2))


def _one_form(cases: tuple[Polynomial, ...], form: Callable[[Polynomial], object] = lambda p: p) -> str | None:
    values = {p: tuple([value_at(p, sizes) for sizes in _POINTS]) for p in cases}
    if any(table != tuple([Fraction(*value_of(p, sizes)) for sizes in _POINTS]) for p, table in values.items()):
        return "value_at is another value"
    pairs = {(form(p), table) for p, table in values.items()}
    same = len(pairs) == len({first for first, _ in pairs}) == len(set(values.values()))
    return None if same else "equal values in unequal forms, or unequal values in equal forms"


def _wrong_lowest(kind: str, value: Polynomial) -> Condition:
    """Divide by the content also where that decides whether the value is an integer."""
    return Condition(kind, value / value.content() if value.monomials else value)  # type: ignore[arg-type]


def _kept_truth(trial: Trial, lowest: Callable[..., Condition] = Condition) -> None:
    sizes = _sizes(trial)
    kinds = ("zero", "nonzero", "nonnegative")
    for kind, p in [*product(kinds, _FACTORS), *[("integral", p) for p in _FRACTIONS]]:
        for factor in (1, Fraction(3, 2)):
            form = lowest(kind, p * factor)
            before, after = truth_of(kind, p * factor, sizes), truth_of(kind, form.value, sizes)
            trial.claim(every(implies(before, after), implies(after, before)), "the normal form has the same truth")
        if kind != "integral":
            trial.claim(lowest(kind, p * 2) == lowest(kind, p), "multiples have one normal form")
        trial.claim(lowest(kind, form.value) == form, "a normal form stays")


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
    known, sizes = Assumptions(_KNOWN[place]), _sizes(trial)
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
        sizes_of = {"K": 2, "M": m, "N": n}
        if known.broken_at(sizes_of) is None and found.status not in (None, claim.true_at(sizes_of)):
            return f"decided otherwise than at {sizes_of}"
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


def _stated(obligations: tuple[Obligation, ...]) -> tuple[Obligation, ...]:
    """All sizes, of a stated list of polynomials: a bound on what is asked."""
    return tuple([replace(each, for_all=False) for each in obligations])


_LISTED = f"all sizes >= 1; {len(_POLYNOMIALS)} polynomials in K, M and N"
_WHY = "coefficients and exponents of a polynomial are numbers of the library, not symbols; the sizes are symbols"

LAWS = (
    Law(
        "sizes.ring",
        "the value of p + q, p - q, p q, p / m and p quotient q at any sizes is that of the values.",
        (
            "layoutalg.ground.polynomial.Polynomial.__add__",
            "layoutalg.ground.polynomial.Polynomial.__sub__",
            "layoutalg.ground.polynomial.Polynomial.__neg__",
            "layoutalg.ground.polynomial.Polynomial.__rsub__",
            "layoutalg.ground.monomials.times",
            "layoutalg.ground.polynomial.Polynomial.__mul__",
            "layoutalg.ground.polynomial.Polynomial.__truediv__",
            "layoutalg.ground.polynomial.Polynomial.quotient",
        ),
        _stated(
            integers(
                _ring, partial(_ring, times=_wrong_product), "all sizes >= 1; pairs of 5 polynomials in K, M and N"
            )
        ),
        _WHY,
    ),
    Law(
        "sizes.substitution",
        "the value after substitution is the value at the substituted sizes; split gives numerator and denominator.",
        (
            "layoutalg.ground.polynomial.Polynomial.replace",
            "layoutalg.ground.polynomial.Polynomial.split",
            "layoutalg.ground.polynomial.Polynomial.content",
            "layoutalg.ground.monomials.common_multiple",
            "layoutalg.ground.polynomial.power_of",
            "layoutalg.ground.polynomial.product_of",
            "layoutalg.ground.polynomial.total",
        ),
        _stated(integers(_substitution, partial(_substitution, replaced=_wrong_replace), _LISTED)),
        _WHY,
    ),
    Law(
        "sizes.normal_form",
        "two polynomials are equal exactly where they have equal values at all sizes.",
        ("layoutalg.ground.polynomial.Polynomial", "layoutalg.ground.polynomial.value_at"),
        enumerated(
            lambda: iter([tuple(_small())]),
            _one_form,
            partial(_one_form, form=lambda p: frozenset([monomial for monomial, _ in p.monomials])),
            "all pairs of 1,024 polynomials in M, N, M N and M / N, values at 9 sizes",
            1,
        ),
        _WHY,
    ),
    Law(
        "sizes.lowest_terms",
        "the normal form of a condition holds at the same sizes, stays as it is, and is that of its multiples.",
        ("layoutalg.ground.conditions.Condition", "layoutalg.ground.conditions._lowest"),
        _stated(
            integers(
                _kept_truth,
                partial(_kept_truth, lowest=_wrong_lowest),
                "all sizes >= 1; 9 polynomials in K, M and N, all four kinds",
            )
        ),
        _WHY,
    ),
    Law(
        "sizes.decided",
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
        _stated(
            integers(
                _all_decided,
                partial(_all_decided, quickly=_off_by_one),
                f"all sizes >= 1; {len(_KNOWN)} assumptions and {len(_CLAIMS)} claims",
            )
        ),
        _WHY,
    ),
    Law(
        "sizes.shown",
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
        _WHY,
    ),
    Law(
        "sizes.class",
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
        "sizes.end",
        "the interval learned from a x + b >= 0 is exactly the set of its solutions.",
        ("layoutalg.ground.facts._learn", "layoutalg.ground.facts._linear"),
        enumerated(_ends, _end_kept, partial(_end_kept, learn=_wrong_end), "a = -7..7 over 1..3, b = -9/2..4", 756),
        _WHY,
    ),
)
