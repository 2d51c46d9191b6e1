"""Symbolic sizes: polynomials compute values, and conditions keep their truth.

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

from layoutalg.ground.conditions import Condition, conditions, divisible
from layoutalg.ground.polynomial import ONE, Polynomial, named, power_of, product_of, total, value_at
from layoutalg.ground.polynomial_text import polynomial
from layoutalg.proofs.laws.engines import enumerated, integers
from layoutalg.proofs.laws.law import Law, Obligation
from layoutalg.proofs.laws.term import Condition as Holds
from layoutalg.proofs.laws.term import every, implies
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


def sizes_of(trial: Trial) -> dict[str, Any]:
    return {name: trial.extent(name) for name in _NAMES}


def _same(left: Value, right: Value) -> Holds:
    equal: Holds = left[0] * right[1] == right[0] * left[1]
    return equal


def _wrong_product(p: Polynomial, q: Polynomial) -> Polynomial:
    """Drop what cancels to the constant."""
    answer = p * q
    return Polynomial(tuple([entry for entry in answer.monomials if entry[0]]))


def _ring(trial: Trial, times: Callable[[Polynomial, Polynomial], Polynomial] = Polynomial.__mul__) -> None:
    sizes = sizes_of(trial)
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
    sizes = sizes_of(trial)
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
    sizes = sizes_of(trial)
    kinds = ("zero", "nonzero", "nonnegative")
    for kind, p in [*product(kinds, _FACTORS), *[("integral", p) for p in _FRACTIONS]]:
        for factor in (1, Fraction(3, 2)):
            form = lowest(kind, p * factor)
            before, after = truth_of(kind, p * factor, sizes), truth_of(kind, form.value, sizes)
            trial.claim(every(implies(before, after), implies(after, before)), "the normal form has the same truth")
        if kind != "integral":
            trial.claim(lowest(kind, p * 2) == lowest(kind, p), "multiples have one normal form")
        trial.claim(lowest(kind, form.value) == form, "a normal form stays")


_TEXTS = (
    *("M % 16 == 0", "(M + 3) % 4 == 1", "M*N % K == 0", "64 <= M < 128", "M != N", "M > N", "2*M <= 3*N + 1"),
    *("1 < M <= N < 9", "M*M == 4*N", "M - N >= -2", "M == N == 4", "N - M > 0"),
)


def _wrong_reading(text: str) -> tuple[Condition, ...]:
    """Read strict comparisons as the others."""
    return conditions(text.replace(" < ", " <= ").replace(" > ", " >= "))


def _meant(text: str, read: Callable[[str], tuple[Condition, ...]] = conditions) -> str | None:
    for k, m, n in product((1, 2, 3), (1, 2, 4, 8, 16, 64, 127, 128), range(1, 10)):
        sizes = {"K": k, "M": m, "N": n}
        if all(each.true_at(sizes) for each in read(text)) != bool(eval(text, {}, sizes)):
            return f"read otherwise than Python does at {sizes}"
    factor = divisible("M*N", "K")
    held = all(
        factor.true_at({"K": k, "M": m, "N": n}) == (m * n % k == 0) for k, m, n in product(range(1, 5), repeat=3)
    )
    return None if held else "divisible is another condition"


def listed(obligations: tuple[Obligation, ...]) -> tuple[Obligation, ...]:
    """All sizes, of a stated list of polynomials: a bound on what is asked."""
    return tuple([replace(each, for_all=False) for each in obligations])


_LISTED = f"all sizes >= 1; {len(_POLYNOMIALS)} polynomials in K, M and N"
WHY = "coefficients and exponents of a polynomial are numbers of the library, not symbols; the sizes are symbols"

LAWS = (
    Law(
        "sizes.ring",
        "the value of p + q, p - q, p q, p / m and p quotient q at any sizes is that of the values.",
        (
            "layoutalg.ground.polynomial.Polynomial.__add__",
            "layoutalg.ground.polynomial.Polynomial.__sub__",
            "layoutalg.ground.polynomial.Polynomial.__neg__",
            "layoutalg.ground.polynomial.Polynomial.__rsub__",
            "layoutalg.ground.polynomial.times",
            "layoutalg.ground.polynomial.Polynomial.__mul__",
            "layoutalg.ground.polynomial.Polynomial.__truediv__",
            "layoutalg.ground.polynomial.Polynomial.quotient",
        ),
        listed(
            integers(
                _ring, partial(_ring, times=_wrong_product), "all sizes >= 1; pairs of 5 polynomials in K, M and N"
            )
        ),
        WHY,
    ),
    Law(
        "sizes.substitution",
        "the value after substitution is the value at the substituted sizes; split gives numerator and denominator.",
        (
            "layoutalg.ground.polynomial.Polynomial.replace",
            "layoutalg.ground.polynomial.Polynomial.split",
            "layoutalg.ground.polynomial.Polynomial.content",
            "layoutalg.ground.polynomial.common_multiple",
            "layoutalg.ground.polynomial.power_of",
            "layoutalg.ground.polynomial.product_of",
            "layoutalg.ground.polynomial.total",
        ),
        listed(integers(_substitution, partial(_substitution, replaced=_wrong_replace), _LISTED)),
        WHY,
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
        WHY,
    ),
    Law(
        "sizes.lowest_terms",
        "the normal form of a condition holds at the same sizes, stays as it is, and is that of its multiples.",
        ("layoutalg.ground.conditions.Condition", "layoutalg.ground.conditions._lowest"),
        listed(
            integers(
                _kept_truth,
                partial(_kept_truth, lowest=_wrong_lowest),
                "all sizes >= 1; 9 polynomials in K, M and N, all four kinds",
            )
        ),
        WHY,
    ),
    Law(
        "sizes.read",
        "the conditions of a text hold at the sizes at which Python says that the text is true.",
        tuple(f"layoutalg.ground.conditions.{name}" for name in ("conditions", "divisible", "Condition.true_at")),
        enumerated(
            lambda: iter(_TEXTS), _meant, partial(_meant, read=_wrong_reading), f"{len(_TEXTS)} texts, 216 sizes", 12
        ),
        WHY,
    ),
)
