"""What goes out to sympy has the same values: polynomials, conditions, piecewise functions, numbers of points."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

import layoutalg as la
from layoutalg.cute.symbolic import Assumptions, condition, polynomial
from layoutalg.ground.polynomial import Polynomial, named, number, power_of, total
from layoutalg.piecewise import PointSet

QUICK = settings(max_examples=60, deadline=None)
NAMES = ("K", "M", "N")


@st.composite
def polynomials(draw: st.DrawFn) -> Polynomial:
    parts = []
    for _ in range(draw(st.integers(0, 4))):
        part = number(draw(st.fractions(-5, 5, max_denominator=6)))
        for name in draw(st.lists(st.sampled_from(NAMES), max_size=3)):
            part = part * named(name) if draw(st.integers(0, 3)) else part / named(name)
        parts.append(part)
    return total(parts)


SIZES = st.fixed_dictionaries({name: st.integers(1, 9) for name in NAMES})


def by_hand(value: Polynomial, sizes: dict[str, int]) -> Fraction:
    answer = Fraction(0)
    for monomial, coefficient in value.monomials:
        for name, power in monomial:
            coefficient *= Fraction(sizes[name]) ** power
        answer += coefficient
    return answer


@given(polynomials(), polynomials(), SIZES)
@QUICK
def test_arithmetic_and_text_of_polynomials(f: Polynomial, g: Polynomial, sizes: dict[str, int]) -> None:
    a, b = by_hand(f, sizes), by_hand(g, sizes)
    assert f.value(sizes) == a
    for found, wanted in ((f + g, a + b), (f - g, a - b), (f * g, a * b), (2 - f, 2 - a), (power_of(f, 3), a**3)):
        assert by_hand(found, sizes) == wanted
    assert polynomial(str(f)) == f == eval(repr(f), {"polynomial": polynomial})
    if f.monomials:
        scaled = [coefficient / f.content() for _, coefficient in f.monomials]
        assert all(entry.denominator == 1 for entry in scaled)
        assert math.gcd(*[int(entry) for entry in scaled]) == 1
    quotient = (f * g).quotient(g) if g.monomials else None
    assert quotient is None or by_hand(quotient, sizes) * b == a * b
    assert by_hand(f.replace({"M": named("K") * 2}), sizes) == by_hand(f, sizes | {"M": 2 * sizes["K"]})


@given(polynomials(), SIZES)
@QUICK
def test_polynomials_through_sympy(f: Polynomial, sizes: dict[str, int]) -> None:
    shown = f.to_sympy()
    assert polynomial(shown) == f
    value = shown.subs({symbol: sizes[symbol.name] for symbol in shown.free_symbols})
    assert (value.p, value.q) == (by_hand(f, sizes).numerator, by_hand(f, sizes).denominator)
    assert f._repr_latex_().startswith("$")
    assert sympy.Symbol("x") + f == sympy.Symbol("x") + shown


@pytest.mark.parametrize(
    "text", ["M % 8 == 0", "M*N % K == 0", "M >= N + 1", "M*N != 6", "K == M", "M < 2*N", "(M + 1) % 3 == 0"]
)
def test_conditions_through_sympy(text: str) -> None:
    claim = condition(text)
    shown = claim.to_sympy()
    symbols = {name: sympy.Symbol(name, integer=True, positive=True) for name in NAMES}
    for point in range(6**3):
        sizes = {"K": point % 6 + 1, "M": point // 6 % 6 + 1, "N": point // 36 + 1}
        found = shown.subs({symbols[name]: value for name, value in sizes.items()})
        assert bool(found) == claim.holds({name: sizes[name] for name in claim.names})
    known = Assumptions((text,))
    assert known.to_sympy() == sympy.And(shown)


@pytest.mark.parametrize(
    "text",
    [
        "{ [i, j] -> [10i + j, i - j] : 0 <= i < 3 and 0 <= j < 4 }",
        "{ [i] -> [floor(i/3) + 2*(i mod 3)] : 0 <= i < 12 }",
        "[N] -> { [i] -> [N - i] : 0 <= i < N; [i] -> [i] : N <= i < 2N }",
    ],
)
def test_piecewise_functions_through_sympy(text: str) -> None:
    layout = la.PiecewiseLayout(text)
    shown = layout.to_sympy()
    assert list(shown) == list(layout.outputs)
    for n in range(1, 5):
        params = {"N": n} if layout.params else {}
        points = layout.domain.points(**params)
        for row in points.tolist() if hasattr(points, "tolist") else points:
            at = dict(zip(layout.axes, [int(value) for value in row], strict=True))
            wanted = layout(**at, **params)
            for name, entry in shown.items():
                values = {symbol: (at | params)[symbol.name] for symbol in entry.free_symbols}
                assert int(entry.subs(values)) == wanted[name]
    outside = {sympy.Symbol(name, integer=True): 1000 for name in (*layout.axes, *layout.params)}
    outside |= {sympy.Symbol(name, integer=True): 1 for name in layout.params}
    assert all(entry.subs(outside) is sympy.nan for entry in shown.values())


@pytest.mark.parametrize(
    "text",
    [
        "[N] -> { [i, j] : 0 <= j <= i < N }",
        "[N, M] -> { [i, j] : 0 <= i < N and 0 <= 2j < M }",
        "[N] -> { [i, j] : 0 <= 2i <= j < N }",
        "[N] -> { [t, r] : 0 <= 12t + r < N and 0 <= r < 12 }",
        "{ [i] : 0 <= i < 7 }",
    ],
)
def test_counts_through_sympy(text: str) -> None:
    points = PointSet(text)
    shown = points.count_formula().to_sympy()
    for n in range(-2, 9):
        for m in range(-1, 6) if "M" in points.params else (0,):
            values = {name: {"N": n, "M": m}[name] for name in points.params}
            found = shown.subs({sympy.Symbol(name, integer=True): value for name, value in values.items()})
            assert int(found) == points.count(**values) == points.count_formula()(**values)


def test_a_quantified_integer_is_a_floor() -> None:
    strided = la.PiecewiseLayout("{ [i] -> [i] : exists a : i = 3a and 0 <= i < 9 }")
    shown = strided.to_sympy()["y0"]
    assert [shown.subs({sympy.Symbol("i", integer=True): value}) for value in (3, 4)] == [3, sympy.nan]
