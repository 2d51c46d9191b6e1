"""Piecewise layouts: reading, refusing, evaluating."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from layoutalg.convert import to_piecewise
from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import AdmissibilityError, BudgetError, MalformedError
from layoutalg.piecewise import PiecewiseLayout, PointSet, budget, questions, reading


def test_pieces_with_floors_are_evaluated_as_isl_means_them() -> None:
    layout = PiecewiseLayout("{ [x] -> [x] : 0 <= x < 4; [x] -> [2x + floor((x - 9)/3)] : 4 <= x < 10 }")
    assert layout.table().tolist() == [x if x < 4 else 2 * x + (x - 9) // 3 for x in range(10)]
    assert layout(x=7) == {"y0": 13}
    assert layout.at(7) == 13
    assert layout.in_dims == {"x": 10}


def test_nested_floors_and_negative_values() -> None:
    layout = PiecewiseLayout("{ [x, y] -> [floor((x + 3*floor((y - 5)/2))/4) - x] : 0 <= x < 6 and 0 <= y < 7 }")
    wanted = [(x + 3 * ((y - 5) // 2)) // 4 - x for y in range(7) for x in range(6)]
    assert layout.table().tolist() == wanted


def test_relations_that_are_functions_are_accepted() -> None:
    layout = PiecewiseLayout("{ [x] -> [y] : 3y <= x < 3y + 3 and 0 <= x < 20 }")
    assert layout.table().tolist() == [x // 3 for x in range(20)]


@pytest.mark.parametrize(
    ("text", "code", "part"),
    [
        ("{ [x] -> [y", "LA780", "nothing else"),
        ("{ [x] -> [y }", "LA780", "ISL says"),
        ("{ [x] : 0 <= x < 3 }", "LA780", "no arrow"),
        ("{ [x] -> [" + "[" * 99_000 + "x" + "]" * 99_000 + "] }", "LA780", "nests"),
        ("{ [x] -> [" + "2*" * 50_000 + "x] : 0 <= x < 3 }", "LA780", "nests"),
        ("[n] -> { [x] -> [n] : 0 <= x < 3 }", "LA221", "it has the parameter n"),
        ("{ [x] -> [x] }", "LA221", "empty or unbounded"),
        ("{ [x] -> [x] : 0 <= x < 0 }", "LA221", "empty or unbounded"),
        ("{ [x] -> [x] : 1 <= x < 3 }", "LA221", "input 0 does not start at 0"),
        ("{ [x, y] -> [x] : 0 <= x < 3 and 0 <= y <= x }", "LA221", "domain has holes in the box (3, 3)"),
        ("{ [x] -> [y] : 0 <= x < 3 and 0 <= y < 2 }", "LA783", "two values at one point"),
        ("{ [x] -> [x] : 0 <= x < 4; [x] -> [2x] : 0 <= x < 2 }", "LA783", "at={'x': 1}"),
    ],
)
def test_what_is_not_a_function_on_a_box_is_refused(text: str, code: str, part: str) -> None:
    with pytest.raises(MalformedError) as caught:
        PiecewiseLayout(text).size  # noqa: B018
    assert caught.value.diagnostic.code == code
    assert part in str(caught.value)


@pytest.mark.parametrize("outputs", [("a",), ("a", "a"), ("a", "b c"), ["a", "b"], ("a", 3)])
def test_output_names_are_checked(outputs: Any) -> None:
    text = "{ [x] -> [x, 2x] : 0 <= x < 3 }"
    with pytest.raises(MalformedError):
        PiecewiseLayout(text, outputs)
    assert PiecewiseLayout(text, ("a", "b")).out_dims == {"a": None, "b": None}
    assert PiecewiseLayout("{ [x] -> [u = x, v = 2x] : 0 <= x < 3 }").outputs == ("u", "v")
    with pytest.raises(MalformedError):
        PiecewiseLayout(3)  # type: ignore[arg-type]


def test_values_survive_text_repr_and_pickle() -> None:
    layout = PiecewiseLayout("{ [i, j] -> [off = 10i + floor(j/2)] : 0 <= i < 2 and 0 <= j < 3 }")
    assert eval(repr(layout), {"PiecewiseLayout": PiecewiseLayout}) == layout
    assert pickle.loads(pickle.dumps(layout)) == layout
    assert pickle.loads(pickle.dumps(layout)).inputs == layout.inputs
    assert PiecewiseLayout.parse(str(layout)) == layout
    assert len({layout, PiecewiseLayout(layout.text, layout.outputs)}) == 1


def test_arrays_broadcast_and_stay_exact_beyond_64_bits() -> None:
    layout = PiecewiseLayout("{ [i, j] -> [10i + j] : 0 <= i < 4 and 0 <= j < 8 }")
    found = layout.apply({"i": np.arange(4)[:, None], "j": np.arange(8)})["y0"]
    assert np.array_equal(found, 10 * np.arange(4)[:, None] + np.arange(8))
    big = PiecewiseLayout(f"{{ [i] -> [{2**70} * i] : 0 <= i < 3 }}")
    assert big.table().tolist() == [0, 2**70, 2**71]
    assert big(i=2) == {"y0": 2**71}
    wide = PiecewiseLayout(f"{{ [i] -> [floor(i/{2**40})] : 0 <= i < {2**62} }}")
    assert wide(i=2**61 + 5) == {"y0": 2**21}
    with pytest.raises(BudgetError):
        wide.table()


@pytest.mark.parametrize("bad", [4, -1, 1.5, True, "1", np.array([4]), None])
def test_coordinates_are_checked(bad: Any) -> None:
    layout = PiecewiseLayout("{ [i] -> [i] : 0 <= i < 4 }")
    with pytest.raises(MalformedError):
        layout.apply({"i": bad})
    with pytest.raises(MalformedError):
        layout.apply({"j": 0})


@pytest.mark.parametrize("bad", [12, -1, 1.0, True, None])
def test_flat_indices_are_checked(bad: Any) -> None:
    layout = PiecewiseLayout("{ [i, j] -> [10i + j] : 0 <= i < 3 and 0 <= j < 4 }")
    assert layout.at(np.int64(4)) == 11
    with pytest.raises(MalformedError):
        layout.at(bad)


def test_a_point_without_axes() -> None:
    layout = PiecewiseLayout("{ [] -> [3] }")
    assert layout.size == 1
    assert layout.table().tolist() == [3]
    assert layout() == {"y0": 3}


def test_equality_ignores_names_but_not_boxes() -> None:
    f = PiecewiseLayout("{ [i] -> [i mod 2] : 0 <= i < 8 }")
    assert f.is_equal(PiecewiseLayout("{ [x] -> [z = x - 2*floor(x/2)] : 0 <= x < 8 }"))
    assert not f.is_equal(PiecewiseLayout("{ [i] -> [i mod 2] : 0 <= i < 6 }"))
    assert not f.is_equal(PiecewiseLayout("{ [i] -> [i mod 2, i] : 0 <= i < 8 }"))
    assert not f.is_equal(PiecewiseLayout("{ [i] -> [(i + 1) mod 2] : 0 <= i < 8 }"))


def test_a_quota_that_runs_out_is_not_a_syntax_error() -> None:
    for operations in (1, 3, 20, 100):
        with pytest.raises(BudgetError) as caught:
            reading.read_function("{ [x] -> [x + floor(x/3)] : 0 <= x <= 3 }", "", operations)
        assert caught.value.diagnostic.code == "LA222"
    stages = ("{ [x] -> [x + floor(x/3)] }",) * 2
    with pytest.raises(BudgetError):
        budget.solve("a chain", questions.chain, 10, "{ [x] : 0 <= x <= 3 }", *stages)


@pytest.mark.parametrize("bits", [16, 20, 24])
def test_dense_maps_over_f2_are_functions_of_their_bits(bits: int) -> None:
    columns = [(0x9E3779B97F4A7C15 * (3 * k + 1) >> 7) % (1 << bits) for k in range(bits)]
    layout = LinearLayout((("x", bits),), (("y", bits),), tuple(columns), 5)
    found = to_piecewise(layout)
    assert found.inputs == tuple((f"c{k}", 2) for k in range(bits))
    rng = np.random.default_rng(0)
    points = rng.integers(0, 2, (bits, 500))
    wanted = np.full(500, 5)
    for column, bit in zip(columns, points, strict=True):
        wanted ^= column * bit
    values = found.apply({f"c{k}": row for k, row in enumerate(points)})["offset"]
    assert np.array_equal(values, wanted)  # type: ignore[arg-type]


def test_too_many_dense_parities_are_refused_at_once() -> None:
    bits = 40
    columns = tuple((0x9E3779B97F4A7C15 * (3 * k + 1) >> 7) % (1 << bits) for k in range(bits))
    with pytest.raises(BudgetError) as caught:
        to_piecewise(LinearLayout((("x", bits),), (("y", bits),), columns))
    assert caught.value.diagnostic.witness == {"quotients": 40}


def test_two_stacked_swizzles_become_a_function() -> None:
    stack = ComposedLayout(Swizzle(2, 3, 3), 0, ComposedLayout(Swizzle(3, 4, 3), 8, CuteLayout((64, 60), (64, 1))))
    flat = np.arange(64 * 60)
    value = 64 * (flat % 64) + flat // 64 + 8
    value ^= (value >> 7 & 7) << 4
    value ^= (value >> 6 & 3) << 3
    assert np.array_equal(to_piecewise(stack).table(), value)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("0 50000000", "nothing else; see column 0"),
        ("1 400000000\n1", "nothing else"),
        ("{ [i] -> [i] : 0 <= i < 4 } + { [i] -> [10] : 0 <= i < 4 }", "nothing else; see column 27"),
        ("{ [i] -> [i] : 0 <= i < 4 }; { [i] -> [i + 9] : 4 <= i < 8 }", "nothing else"),
        ("{ [i] -> [i] : 0 <= i < 4 } \ud800", "cannot be encoded"),
        ("{ rat: [i] -> [i] : 2i = 1 }", "not allowed over the integers"),
        ("{ [i] -> [NaN] : 0 <= i < 4 }", "not allowed over the integers"),
        ("{ [i] -> [i] : 0 <= i < infty }", "not allowed over the integers"),
        ("{ [i] -> [i] : " + "a" * 50000 + " }", "at most 200 characters"),
        ("{ [i] -> [i] : " + "not exists (a : 2a = i) and " * 300 + "i = 0 }", "'not exists'"),
    ],
    ids=range(10),
)
def test_text_that_isl_would_misread_or_choke_on_is_refused_first(text: str, rule: str) -> None:
    for make in (PiecewiseLayout, PiecewiseLayout.parse, PointSet):
        with pytest.raises(MalformedError) as caught:
            make(text)
        assert rule in str(caught.value)
    with pytest.raises(MalformedError, match="nothing else"):
        PiecewiseLayout("[N] -> { [i] -> [i] : 0 <= i <= N }", given="N >= 4 } garbage")


@pytest.mark.parametrize("text", ["{ [i] : i = 5 }", "{ [7] }", "{ : }"])
def test_a_set_is_not_a_layout(text: str) -> None:
    with pytest.raises(MalformedError, match="no arrow"):
        PiecewiseLayout(text)


def test_a_flat_index_meets_the_axes_of_a_total_layout() -> None:
    point = PiecewiseLayout("{ [] -> [3] }")
    assert (point @ PiecewiseLayout("{ [i] -> [0] : 0 <= i < 4 }")).table().tolist() == [3] * 4
    with pytest.raises(AdmissibilityError, match="LA651"):
        point @ PiecewiseLayout("{ [i] -> [i] : 0 <= i < 4 }")
    grid = PiecewiseLayout("{ [r, c] -> [8r + c] : 0 <= r < 4 and 0 <= c < 8 }")
    ragged = PiecewiseLayout("[N] -> { [i] -> [i] : 0 <= i < N and N <= 32 }")
    assert (grid @ ragged).subs(N=32).table().tolist() == grid.table().tolist()
    with pytest.raises(AdmissibilityError) as caught:
        grid @ PiecewiseLayout("[N] -> { [i] -> [i] : 0 <= i < N }")
    at = (caught.value.diagnostic.witness or {})["at"]
    assert 32 <= at["i"] < at["N"]  # type: ignore[index]


@pytest.mark.parametrize("names", ["as", "as a b", "as a, b", "given", "as 3", "as a given [N] -> { : N < N }"])
def test_what_follows_the_text_is_read_or_refused(names: str) -> None:
    with pytest.raises(MalformedError):
        PiecewiseLayout.parse(f"{{ [i] -> [i] : 0 <= i < 4 }} {names}")


def test_values_beyond_64_bits_at_one_index() -> None:
    """A product beyond 64 bits is a plain integer, not an array."""
    layout = PiecewiseLayout(f"{{ [i, j] -> [{2**62}i + {2**61}j] : 0 <= i < 5000 and 0 <= j < 3 }}")
    assert layout.at(4999 + 5000) == 2**62 * 4999 + 2**61


def test_a_refused_union_shows_the_layouts_as_they_were_written() -> None:
    low, high = "{ [low] -> [low] : 0 <= low < 41 }", "{ [low] -> [2low] : 23 <= low < 67 }"
    with pytest.raises(MalformedError) as caught:
        PiecewiseLayout(low).union(PiecewiseLayout(high))
    assert caught.value.diagnostic.where == (f"{low} union {high}",)
