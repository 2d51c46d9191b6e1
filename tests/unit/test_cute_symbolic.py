"""Symbolic layouts: exact answers, carried conditions, refusals with their messages, and light imports."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from layoutalg.cute import CuteLayout
from layoutalg.cute import symbolic as sym
from layoutalg.cute.symbolic import (
    Assumptions,
    Condition,
    Decision,
    SideCondition,
    SymbolicLayout,
    condition,
    polynomial,
)
from layoutalg.ground.errors import AdmissibilityError, MalformedError, RepresentabilityError

ROOT = Path(__file__).parents[2]
NAMESPACE = vars(sym)


def layout(shape, stride=None, *known, integers=()):
    return SymbolicLayout(shape, stride, Assumptions(known, integers))


def stated(result):
    return [str(entry) for entry in result.open_conditions]


class TestTerms:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("M*N/64", "M*N/64"),
            ("(M + 1)*(M - 1)", "M**2 - 1"),
            ("M/(2*K) - 3", "M/(2*K) - 3"),
            ("-M + 2*M", "M"),
            ("M - M", "0"),
            ("4*M/6", "2*M/3"),
            ("M/K*K", "M"),
        ],
    )
    def test_normal_form(self, text, shown):
        assert polynomial(shown) == polynomial(text)
        assert polynomial(str(polynomial(text))) == polynomial(text)
        assert eval(repr(polynomial(text)), {"polynomial": polynomial}) == polynomial(text)

    def test_value_is_exact(self):
        assert polynomial("M*N/K - 1").value({"M": 3, "N": 5, "K": 2}) == Fraction(13, 2)

    def test_quotients(self):
        assert polynomial("M**2 - 1").quotient(polynomial("M + 1")) == polynomial("M - 1")
        assert polynomial("M").quotient(polynomial("M + 1")) is None
        assert polynomial("M").quotient(polynomial(0)) is None
        assert polynomial("M*N + M").quotient(polynomial("2*M")) == polynomial("N/2 + 1/2")

    def test_numpy_and_sympy_are_read(self):
        import sympy

        m, n = sympy.symbols("M N")
        assert polynomial(np.int32(4)) == polynomial(4)
        assert polynomial(m * n / 64 + 1) == polynomial("M*N/64 + 1")
        assert polynomial((m + 1) ** 2) == polynomial("M**2 + 2*M + 1")
        assert polynomial("M/64").to_sympy({"M": m}) == m / 64

    @pytest.mark.parametrize(
        "bad",
        [1.5, True, None, "M +", "M // 2", "M**-1", "M**N", "f(M)", "1/(M + 1)", "M**99", "1.5*M", "__import__('os')"],
    )
    def test_other_values_are_refused(self, bad):
        with pytest.raises(MalformedError) as caught:
            polynomial(bad)
        assert caught.value.diagnostic.code == "LA620"

    def test_sympy_functions_are_refused(self):
        import sympy

        with pytest.raises(MalformedError, match="sum of products"):
            polynomial(sympy.sin(sympy.Symbol("M")))


class TestConditions:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("M % 16 == 0", "M % 16 == 0"),
            ("M % 16 == 3", "(M + 13) % 16 == 0"),
            ("M*N % K == 0", "(M*N) % K == 0"),
            ("2*M >= 8", "M >= 4"),
            ("M < 9", "8 >= M"),
            ("K == M", "M == K"),
            ("M != 2*K", "M != 2*K"),
        ],
    )
    def test_lowest_terms(self, text, shown):
        assert str(condition(text)) == shown
        assert condition(shown) == condition(text)
        assert eval(repr(condition(text)), {"condition": condition}) == condition(text)

    def test_sympy_relations_are_read(self):
        import sympy

        m, n = sympy.symbols("M N", integer=True, positive=True)
        assert condition(m >= n + 1) == condition("M > N")
        assert condition(sympy.Eq(m, 2 * n)) == condition("M == 2*N")

    @pytest.mark.parametrize(
        "bad", ["M", "M + 1", 3, "M % 4 >= 1", "1 <= M <= 4", "M in N", "M % (N + 1) == 0", "M/K < N"]
    )
    def test_other_texts_are_refused(self, bad):
        with pytest.raises(MalformedError):
            condition(bad)

    def test_dividing_by_zero_is_false(self):
        assert not condition("M % K == 0").holds({"M": 4, "K": 0})


class TestEntailment:
    @pytest.mark.parametrize(
        ("known", "claim", "status"),
        [
            ((), "M >= 1", True),
            ((), "M >= 2", None),
            ((), "M <= 0", False),
            (("M % 16 == 0",), "M % 8 == 0", True),
            (("M % 16 == 0",), "M >= 16", True),
            (("M % 16 == 0",), "M % 16 == 8", False),
            (("M % 16 == 0",), "M % 64 == 0", None),
            (("M % 4 == 0", "M % 6 == 0"), "M % 12 == 0", True),
            (("M % 4 == 1", "M <= 4"), "M == 1", True),
            (("K == M",), "K*N == N*M", True),
            (("K == 2*N", "K >= 7"), "N >= 4", True),
            (("M % K == 0",), "M >= K", True),
            (("M % K == 0", "K % N == 0"), "M % N == 0", True),
            (("P >= M",), "P*N >= M*N", True),
            ((), "M*N + 1 >= M + N", True),
            (("M == 100",), "M % 64 == 0", False),
            (("M < 64",), "M % 64 == 0", False),
            ((), "2*M != 2*N + 1", True),
            ((), "M**2 + N**2 >= 2*M*N", True),
        ],
    )
    def test_table(self, known, claim, status):
        assert Assumptions(known).entails(claim) is status

    def test_names_listed_as_integers_have_no_sign(self):
        assert Assumptions((), ("J",)).entails("J >= 1") is None
        assert Assumptions(("J != 0",), ("J",)).entails("J**2 >= 1") is True
        assert Assumptions((), ("J",)).entails("J/J == 1") is True
        assert Assumptions((), ("J",)).entails("M*J/J**2 >= 0") is None

    def test_a_timeout_is_recorded_and_is_no_yes(self):
        decision = Assumptions().decide("M**3 + N**3 != K**3", timeout_ms=600)
        assert decision.status is None
        assert decision.engine == "none"
        assert decision.reason == "z3 gave up on 'always holds' after 600 ms"
        assert decision.fails_at is None
        outer = layout(("M**3 + N**3", 2), (1, "P"))
        result = sym.coalesce(outer)
        assert result.shape == outer.shape

    def test_both_kinds_of_sizes_are_shown(self):
        decision = Assumptions(("M % 16 == 0",)).decide("M % 64 == 0")
        assert decision == Decision(None, "examples", decision.holds_at, (("M", 16),), "both are possible")
        assert dict(decision.holds_at)["M"] % 64 == 0

    def test_contradictions_are_refused(self):
        with pytest.raises(MalformedError, match="LA621 the assumptions contradict each other"):
            Assumptions(("M % 4 == 0", "M % 6 == 3"))
        with pytest.raises(MalformedError, match="LA621"):
            Assumptions(("M >= 5", "M <= 4"))


class TestLayout:
    def test_substitution(self):
        value = layout(("M/4", (4, "N")), (4, (1, "P")), "P >= M", "M % 4 == 0")
        assert value.subs({"M": 8, "N": 3, "P": 10}) == CuteLayout((2, (4, 3)), (4, (1, 10)))
        assert value.symbols == {"M", "N", "P"}
        assert str(value.size) == "M*N"

    def test_substitution_checks_everything(self):
        value = layout(("M/4", "N"), ("N", 1), "N >= 2")
        assert stated(value) == ["M % 4 == 0"]
        with pytest.raises(AdmissibilityError, match="LA624 an assumption fails") as caught:
            value.subs({"M": 4, "N": 1})
        assert caught.value.diagnostic.because == "N >= 2 is false"
        with pytest.raises(AdmissibilityError, match="LA625 a side condition fails") as caught:
            value.subs({"M": 6, "N": 2})
        assert caught.value.diagnostic.because == "M % 4 == 0 is false"
        assert caught.value.diagnostic.witness == {"M": 6, "N": 2}
        with pytest.raises(AdmissibilityError, match="LA624"):
            value.subs({"M": 0, "N": 2})

    @pytest.mark.parametrize(
        "sizes", [{}, {"M": 4}, {"M": 4, "N": 2, "Q": 1}, {"M": 4.0, "N": 2}, {"M": True, "N": 2}, 5]
    )
    def test_substitution_needs_the_right_sizes(self, sizes):
        with pytest.raises(MalformedError) as caught:
            layout(("M", "N"), ("N", 1)).subs(sizes)
        assert caught.value.diagnostic.code == "LA623"

    def test_sympy_symbols_are_read(self):
        import sympy

        m, n, i = sympy.symbols("M N i", integer=True, positive=True)
        value = layout((m, n), (n, 1))
        assert value == layout(("M", "N"), ("N", 1))
        assert value.subs({m: 2, n: 3}) == CuteLayout((2, 3), (3, 1))
        assert value.expression(i) == n * sympy.Mod(i, m) + sympy.floor(i / m)

    def test_values_round_trip(self):
        value = sym.logical_divide(layout(("M", "N"), ("N", 1), "M % 128 == 0", integers=("J",)), (64, 64))
        assert eval(repr(value), dict(NAMESPACE)) == value
        assert pickle.loads(pickle.dumps(value)) == value
        assert copy.deepcopy(value) == value
        assert hash(pickle.loads(pickle.dumps(value))) == hash(value)
        with pytest.raises(AttributeError):
            value.shape = ()

    def test_malformed(self):
        with pytest.raises(MalformedError, match="LA622 shape and stride nest differently"):
            layout(("M", "N"), 1)
        with pytest.raises(MalformedError, match="LA622"):
            layout("M", 1)[1]
        with pytest.raises(MalformedError, match="LA620"):
            layout((1.5,), (1,))
        with pytest.raises(MalformedError, match="LA620"):
            sym.symbolic(None)
        with pytest.raises(MalformedError, match="LA622"):
            SymbolicLayout(4, 1, (), ("M >= 1",))
        deep = 1
        for _ in range(80):
            deep = (deep,)
        with pytest.raises(MalformedError, match="nest at most 64 deep"):
            layout(deep, deep)

    def test_empty_layouts_are_refused(self):
        with pytest.raises(AdmissibilityError, match="LA626"):
            layout((0, 4), (1, 1))
        with pytest.raises(AdmissibilityError, match="LA626"):
            sym.symbolic(CuteLayout(0, 1))

    def test_a_claimed_status_is_decided_anew(self):
        claimed = SideCondition(condition("M % 64 == 0"), True, "trust me")
        value = SymbolicLayout("M", 1, (), (claimed,))
        assert stated(value) == ["M % 64 == 0"]


class TestEvaluation:
    def test_natural_coordinates(self):
        answer = layout(("M", "N"), ("N", 1))(2, "j")
        assert str(answer) == "2*N + j where M >= 3, j >= 0, N >= j + 1"
        assert answer.subs({"M": 4, "N": 5, "j": 3}) == 13
        with pytest.raises(AdmissibilityError, match="LA625"):
            answer.subs({"M": 2, "N": 5, "j": 3})

    def test_outside_is_refused(self):
        with pytest.raises(AdmissibilityError, match="LA626") as caught:
            layout(("M", "N"), ("N", 1), "M == 4")(4, 0)
        assert caught.value.diagnostic.witness["M"] == 4

    def test_one_dimensional_coordinates(self):
        value = layout(("M", "N"), ("N", 1))
        assert value("M*j + i", assumptions=("0 <= i < M", "0 <= j < N")).value == polynomial("N*i + j")
        with pytest.raises(RepresentabilityError, match="LA629 the offset has no form without floor"):
            value("i")

    def test_wrong_profile(self):
        with pytest.raises(MalformedError, match="LA628"):
            layout(("M", "N"), ("N", 1))(1, 2, 3)

    def test_expressions(self):
        import sympy

        value = layout(("M", "N"), ("N", 1), "M % 64 == 0")
        assert str(value.expression("i", "j")) == "N*i + j"
        tiled = sym.logical_divide(value, (64, None))
        assert str(tiled.expression(("r", "b"), "j")) == "64*N*b + N*r + j"
        assert str(tiled.expression("64*b + r", "j", assumptions=("0 <= r < 64",))) == "64*N*b + N*r + j"
        m = sympy.Symbol("m", integer=True)
        expression = tiled.expression(m, 0)
        assert m in expression.free_symbols
        names = {str(symbol): symbol for symbol in expression.free_symbols}
        assert expression.subs({m: 130, names["N"]: 10}) == 1300


class TestOperations:
    def test_coalesce(self):
        assert str(sym.coalesce(layout(("M", "N"), (1, "M")))) == "M*N:1"
        assert str(sym.coalesce(layout(("M", "N"), (1, "K")))) == "(M,N):(1,K)"
        assert str(sym.coalesce(layout(("M", "N"), (1, "K"), "K == M"))) == "M*N:1"
        assert str(sym.coalesce(layout(("M", 1, "N"), (0, 7, 0)))) == "M*N:0"
        assert str(sym.coalesce(layout(("M", "N"), (1, "K"), "M == 1"))) == "N:K"
        assert sym.coalesce(layout(("M", "N"), (1, "K"))).open_conditions == ()

    def test_composition_with_a_tile(self):
        outer = layout(("M", "N"), ("N", 1))
        result = sym.composition(outer, (64, 64))
        assert str(result) == "(64,64):(N,1) where M >= 64, N >= 64"
        assert stated(sym.composition(layout(("M", "N"), ("N", 1), "M % 64 == 0", "N % 64 == 0"), (64, 64))) == []
        assert str(sym.composition(outer, (None, 8))) == "(M,8):(N,1) where N >= 8"
        assert outer @ sym.symbolic("M") == sym.composition(outer, "M")
        assert sym.symbolic("M").then(outer) == sym.composition(outer, "M")

    def test_composition_across_modes(self):
        outer = layout(("M", "N"), ("N", 1))
        assert str(sym.composition(outer, "M*N")) == "(M,N):(N,1)"
        assert str(sym.composition(outer, layout(("N", "M"), ("M", 1)))) == "(N,M):(1,N)"
        split = sym.composition(outer, layout((4, "N"), ("M/4", "M")))
        assert str(split) == "(4,N):(M*N/4,1) where M % 4 == 0"

    def test_composition_of_plain_integers_is_the_concrete_one(self):
        outer, inner = CuteLayout((2, 8), (1, 10)), CuteLayout((4, (2,)), (3, (0,)))
        assert sym.composition(outer, inner).subs({}) == CuteLayout(((2, 2), (2,)), ((11, 30), (0,)))
        with pytest.raises(AdmissibilityError, match="LA120"):
            sym.composition(CuteLayout(4, 1), CuteLayout(8, 1))

    def test_a_violated_condition_is_refused_with_sizes(self):
        with pytest.raises(AdmissibilityError) as caught:
            sym.composition(layout(("M", "N"), ("N", 1), "M == 48"), (64, 64))
        assert str(caught.value) == (
            "LA626 a condition the operation needs is violated\n"
            "  in     composition((M,N):(N,1), (64,64))\n"
            "  since  M >= 64 holds for no sizes with M == 48; composition(48:1, 64:1) is refused: the right "
            "operand has the value 48 at coordinate 48, the left operand is defined on [0, 48)\n"
            "  at     M=48, N=1"
        )
        assert caught.value.diagnostic.witness["M"] == 48
        with pytest.raises(AdmissibilityError, match="M % 64 == 0 holds for no sizes"):
            sym.logical_divide(layout(("M", "N"), ("N", 1), "M % 64 == 32"), (64, 64))

    def test_complement(self):
        assert str(sym.complement(layout("M", "N"), "M*N*K")) == "(N,K):(1,M*N)"
        assert str(sym.complement(layout(64, 1), "M")) == "M/64:64 where M % 64 == 0"
        assert str(sym.complement(layout(("M", "N"), ("N", 1)))) == "1:0"
        assert stated(sym.complement(layout(("M", "N"), (1, "P")))) == ["P % M == 0", "N >= 2"]
        with pytest.raises(AdmissibilityError, match="LA626"):
            sym.complement(layout("M", -1))
        with pytest.raises(AdmissibilityError, match="LA626"):
            sym.complement(layout(4, 1), 0)

    def test_inverses(self):
        row_major = layout(("M", "N"), ("N", 1))
        assert str(sym.right_inverse(row_major)) == "(N,M):(M,1)"
        assert str(sym.left_inverse(row_major)) == "(N,M):(M,1)"
        assert str(sym.right_inverse(layout("M", 2))) == "1:0"
        assert str(sym.left_inverse(layout(("M", "N"), (1, "P")))) == "(P,N):(1,M) where P >= M"
        assert str(sym.left_inverse(layout(("M", "N"), ("P", 1), "P >= N"))) == "(P,M):(M,1)"

    def test_divide(self):
        divided = sym.logical_divide(layout(("M", "N"), ("N", 1)), (64, 64))
        assert str(divided) == "((64,M/64),(64,N/64)):((N,64*N),(1,64)) where M % 64 == 0, N % 64 == 0"
        assert divided.subs({"M": 128, "N": 192}) == CuteLayout(((64, 2), (64, 3)), ((192, 64 * 192), (1, 64)))
        by_size = sym.logical_divide(layout("M", 2), "K")
        assert str(by_size) == "(K,M/K):(2,2*K) where M % K == 0"

    def test_product(self):
        repeated = sym.logical_product(layout((8, 8), (8, 1)), layout(("M", "N"), ("N", 1)))
        assert str(repeated) == "((8,8),(M,N)):((8,1),(64*N,64))"
        assert repeated.open_conditions == ()
        with pytest.raises(MalformedError, match="LA630"):
            sym.logical_product(layout(4, 1), None)

    def test_cosize(self):
        assert str(sym.cosize(layout(("M", "N"), ("P", 1)))) == "M*P + N - P"

    def test_tilers_must_fit(self):
        with pytest.raises(MalformedError, match="LA630 the tiler is malformed"):
            sym.composition(layout(("M", "N"), ("N", 1)), (64, 64, 64))
        with pytest.raises(MalformedError, match="LA620"):
            sym.composition(layout("M", 1), 1.5)

    def test_no_form_says_what_helps(self):
        with pytest.raises(RepresentabilityError, match="LA627") as caught:
            sym.logical_divide(layout("M", 1), "N + 1")
        assert "naming the quotient" in caught.value.diagnostic.source
        named = sym.logical_divide(layout("T*N + T", 1), "N + 1")
        assert str(named) == "(N + 1,T):(1,N + 1)"

    def test_assumptions_of_both_operands_count(self):
        left = layout(("M", "N"), ("N", 1), "M >= 64")
        right = SymbolicLayout("K", 1, ("K <= 64",))
        assert stated(sym.composition(left, right)) == []

    def test_an_open_condition_is_proved_once_more_is_known(self):
        tile = layout((4, "N"), ("M/4", "M"))
        assert stated(tile) == ["M % 4 == 0"]
        result = sym.composition(layout(("M", "N"), ("N", 1), "M % 8 == 0"), tile)
        assert stated(result) == []
        assert condition("M % 4 == 0") in [entry.condition for entry in result.conditions]


def test_a_condition_prints_with_its_status():
    assert str(SideCondition(Condition("integral", "M/64"), None, "both are possible")) == (
        "M % 64 == 0 [open: both are possible]"
    )


@pytest.mark.parametrize(
    ("statement", "loaded"),
    [
        ("import layoutalg", set()),
        ("import layoutalg.cute", set()),
        ("import layoutalg.cute.symbolic as s; s.coalesce(s.SymbolicLayout(('M', 'N')))", set()),
        ("import layoutalg.cute.symbolic as s; s.polynomial('M').to_sympy()", {"sympy"}),
    ],
)
def test_sympy_is_loaded_on_use_only(statement, loaded):
    names = "{name.partition('.')[0] for name in sys.modules}"
    code = f"import sys\n{statement}\nprint(sorted({{'sympy', 'z3'}} & {names}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert set(eval(done.stdout)) == loaded


def test_a_coordinate_of_an_extent_of_one_is_zero() -> None:
    """Names that may be any integer stay so when conditions on them are added."""
    known = Assumptions((), ("x",)).extended(("x <= 0",))
    assert known.integers == ("x",)
    assert known.entails("x < 1")
    assert SymbolicLayout(("M", 4, 1), (8, 1, 1)).expression("i", "j", "k") is not None
    assert str(SymbolicLayout((1,), (1,)).expression("i")) == "0"
