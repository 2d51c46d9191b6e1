"""Equality: budgets, unknowns, odd operands and the engine that is reported."""

from __future__ import annotations

from typing import Any

import pytest

from layoutalg import convert
from layoutalg.bridges.equal import Budget, equivalent
from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import MalformedError, RepresentabilityError
from layoutalg.ground.verdict import Proved, Refuted, Unknown
from layoutalg.piecewise import PiecewiseLayout


def test_huge_layouts_are_decided_by_normal_form() -> None:
    f, g = CuteLayout((1 << 30, 1 << 30), (1, 1 << 30)), CuteLayout(1 << 60, 1)
    assert isinstance(equivalent(f, g), Proved)
    wrong = CuteLayout((1 << 30, 1 << 30), (1, 1))
    assert equivalent(f, wrong) == Refuted("normal-form", {"coordinate": 1 << 30, "f": 1 << 30, "g": 1})


def test_swizzled_tile_equals_its_matrix() -> None:
    tile = ComposedLayout(Swizzle(3, 4, 3), 0, CuteLayout((1 << 20, 64), (64, 1)))
    answer = equivalent(tile, convert.to_linear(tile))
    assert isinstance(answer, Proved)
    assert answer.engine == "normal-form"
    other = LinearLayout((("i", 26),), (("o", 26),), convert.to_linear(tile).columns, 1)
    assert equivalent(tile, other) == Refuted("normal-form", {"coordinate": 0, "f": 0, "g": 1})


def test_a_strided_layout_with_a_carry_is_no_linear_layout() -> None:
    carry = CuteLayout((4, 4), (1, 2))
    columns = tuple(carry(1 << bit) for bit in range(4))
    linear = LinearLayout((("i", 4),), (("o", 4),), columns)
    assert equivalent(carry, linear) == Refuted("normal-form", {"coordinate": 6, "f": 4, "g": 0})
    assert equivalent(linear, carry) == Refuted("normal-form", {"coordinate": 6, "f": 0, "g": 4})


def test_different_sizes_are_refuted_with_both() -> None:
    assert equivalent(CuteLayout(4), CuteLayout(5)) == Refuted("size", {"size of f": 4, "size of g": 5})
    assert equivalent(CuteLayout(0), CuteLayout((3, 0))) == Proved("size", {"size": 0})


def test_piecewise_layouts_compare_by_table_isl_or_z3() -> None:
    f = PiecewiseLayout("{ [i] -> [i mod 3] : 0 <= i < 12 }")
    g = PiecewiseLayout("{ [a, b] -> [a] : 0 <= a < 3 and 0 <= b < 4 }")
    wrong = PiecewiseLayout("{ [i] -> [i mod 3] : 0 <= i < 11; [i] -> [7] : i = 11 }")
    for engine in ("table", "isl", "smt"):
        answer = equivalent(f, g, _engines=(engine,))
        assert isinstance(answer, Proved)
        assert answer.engine == engine
        assert equivalent(f, wrong, _engines=(engine,)) == Refuted(engine, {"coordinate": 11, "f": 2, "g": 7})
    assert isinstance(equivalent(f, wrong, _engines=("normal-form",)), Unknown)
    assert isinstance(equivalent(f, g, _engines=("normal-form",)), Proved)  # one piece each


def test_several_outputs() -> None:
    f = PiecewiseLayout("{ [i] -> [i mod 3, floor(i/3)] : 0 <= i < 12 }")
    g = PiecewiseLayout("{ [a, b] -> [a, b] : 0 <= a < 3 and 0 <= b < 4 }")
    swapped = PiecewiseLayout("{ [a, b] -> [b, a] : 0 <= a < 3 and 0 <= b < 4 }")
    for engine in ("table", "isl", "smt"):
        assert isinstance(equivalent(f, g, _engines=(engine,)), Proved)
        assert isinstance(equivalent(f, swapped, _engines=(engine,)), Refuted)
    assert equivalent(f, swapped).witness == {"coordinate": 1, "f": (1, 0), "g": (0, 1)}  # type: ignore[union-attr]
    assert equivalent(f, CuteLayout(12)) == Refuted("outputs", {"outputs of f": 2, "outputs of g": 1})


def test_giving_up_says_what_every_engine_ran_into() -> None:
    g = CuteLayout((3, 1 << 20), (64, 192))  # no value has a bit that the swizzle reads
    f = ComposedLayout(Swizzle(2, 1, 3), 0, g)
    answer = equivalent(f, g, Budget(isl_operations=1, smt_milliseconds=1), _engines=("normal-form", "table", "isl"))
    assert isinstance(answer, Unknown)
    assert answer.tried == ("normal-form", "table", "isl")
    assert "normal-form: swizzles differ and the size is not a power of two" in answer.reason
    assert "table: 3145728 points exceed the limit of 1048576" in answer.reason
    assert "isl: the quota of 1 operations ran out" in answer.reason
    with pytest.raises(ValueError, match="unknown"):
        bool(answer)


def test_the_full_ladder_finds_the_difference_of_a_large_pair() -> None:
    f = ComposedLayout(Swizzle(2, 1, 3), 5, CuteLayout((3, 1 << 20), (7, 11)))
    g = ComposedLayout(Swizzle(2, 1, -3), 5, CuteLayout((3, 1 << 20), (7, 11)))
    answer = equivalent(f, g)
    assert isinstance(answer, Refuted)
    assert answer.engine == "table"  # a sample of it
    assert f(answer.witness["coordinate"]) == answer.witness["f"] != answer.witness["g"]  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [None, 3, object(), (4, 1)])
def test_operands_must_be_layouts(bad: Any) -> None:
    with pytest.raises(MalformedError) as caught:
        equivalent(CuteLayout(4), bad)
    assert caught.value.diagnostic.code == "LA240"
    assert "g" in caught.value.diagnostic.where


@pytest.mark.parametrize("fields", [{"table_points": -1}, {"isl_operations": 0}, {"smt_milliseconds": True}])
def test_budgets_are_checked(fields: Any) -> None:
    with pytest.raises(MalformedError):
        Budget(**fields)
    with pytest.raises(MalformedError):
        equivalent(CuteLayout(4), CuteLayout(4), 3)  # type: ignore[arg-type]


WHOLE = ComposedLayout(Swizzle(2, 1, 3), 5, CuteLayout((3, 1 << 20), (7, 11)))
PARTS = ComposedLayout(Swizzle(1, 1, 3), 0, ComposedLayout(Swizzle(1, 2, 3), 5, CuteLayout((3, 1 << 20), (7, 11))))


def test_z3_running_out_of_time_is_unknown() -> None:
    answer = equivalent(WHOLE, PARTS, Budget(smt_milliseconds=1), _engines=("table", "smt"))
    assert isinstance(answer, Unknown)
    assert "smt: no answer within 1 ms" in answer.reason


def test_one_period_decides_a_swizzle_taken_apart_on_a_large_ragged_tile() -> None:
    answer = equivalent(WHOLE, PARTS)
    assert isinstance(answer, Proved)
    assert (answer.engine, answer.certificate["period"]) == ("normal-form", 64)
    other = ComposedLayout(Swizzle(1, 1, 3), 0, ComposedLayout(Swizzle(1, 2, 3), 4, CuteLayout((3, 1 << 20), (7, 11))))
    assert isinstance(equivalent(WHOLE, other), Refuted)


def test_partial_layouts_are_compared_at_all_points_and_parameters() -> None:
    ragged = PiecewiseLayout("[N] -> { [i] -> [i mod 4, floor(i/4)] : 0 <= i < N }")
    assert isinstance(equivalent(ragged, ragged), Proved)
    same = PiecewiseLayout("[N] -> { [x] -> [x - 4*floor(x/4), floor(x/4)] : 0 <= x <= N - 1 }")
    assert isinstance(equivalent(ragged, same), Proved)
    longer = PiecewiseLayout("[N] -> { [i] -> [i mod 4, floor(i/4)] : 0 <= i <= N }")
    answer = equivalent(ragged, longer)
    assert isinstance(answer, Refuted)
    at: dict[str, int] = answer.witness["at"]  # type: ignore[assignment]
    assert at["i"] == at["N"]
    assert isinstance(equivalent(ragged, PiecewiseLayout("{ [i] -> [i] : 0 <= i < 4 }")), Refuted)
    assert isinstance(equivalent(ragged, CuteLayout(4)), Unknown)
    with pytest.raises(RepresentabilityError, match="LA661"):
        convert.to_cute(ragged)


def test_swizzles_near_the_end_of_64_bits_are_compared_where_the_layouts_are():
    far = 2**63 - 1000
    first, second = (ComposedLayout(Swizzle(1, base, 1), far, CuteLayout(3, 1)) for base in (9, 8))
    assert isinstance(equivalent(first, second), Refuted)
    assert isinstance(equivalent(first, first), Proved)
