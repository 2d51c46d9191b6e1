"""What ISL computes is compared with what the texts say: dropped values, forged answers, small tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

from layoutalg.ground.errors import BudgetError
from layoutalg.piecewise import PiecewiseLayout, PointSet, compare, functions, lexmin, questions
from layoutalg.piecewise.confirm import DisagreementError, function_of, inverse_of
from layoutalg.piecewise.inverse import digit_inverse
from layoutalg.piecewise.meaning import UnreadError, read

DROPPED = "{ [a,b,c] -> [6a+b+2c, (2a+8b+2c) mod 12] : 0<=a<4 and 0<=b<3 and 0<=c<4 }"
LOST = (
    "{ [y, z] -> [a, b, c] : y = 0 and a = 0 and b = 0 and c = 0; "
    "[y, z] -> [a, b, c] : 2c = y - b and z mod 3 = b - y + 2*floor(y/2) and -2 + y <= 3a <= -1 + y }"
)
"""A function of which ``isl_pw_multi_aff_from_map`` loses the points with z mod 3 above 0."""


def test_a_right_inverse_holds_every_value() -> None:
    least: dict[tuple[int, int], tuple[int, int, int]] = {}
    for a, b, c in product(range(4), range(3), range(4)):
        least.setdefault((6 * a + b + 2 * c, (2 * a + 8 * b + 2 * c) % 12), (a, b, c))
    inverse = PiecewiseLayout(DROPPED).right_inverse()
    points, values = inverse.graph()
    assert len(least) == 48
    assert {tuple(p): tuple(v) for p, v in zip(points.tolist(), values.tolist(), strict=True)} == least


def test_isl_still_loses_points_and_the_library_does_not() -> None:
    import islpy

    relation = islpy.Map(LOST)
    assert relation.is_single_valued()
    function = islpy.PwMultiAff.from_map(relation)
    if function.as_map().is_equal(relation):
        pytest.skip("this version of ISL does not lose them")
    layout = PiecewiseLayout(LOST)
    assert tuple(layout(y=1, z=2).values()) == (0, 3, -1)
    for y, z in product(range(-4, 5), repeat=2):
        wanted = None
        if y == 0:
            wanted = (0, 0, 0)
        elif y % 3 != 0:
            b = z % 3 + y % 2
            if (y - b) % 2 == 0:
                wanted = ((y - 1) // 3, b, (y - b) // 2)
        inside = bool(layout.contains({"y": y, "z": z}).item())
        assert inside == (wanted is not None)
        assert not inside or tuple(layout(y=y, z=z).values()) == wanted


FORGED: list[tuple[str, Any, Callable[[], object]]] = [
    ("domain", lambda *_: "{ [i] : 0 <= i <= 6 }", lambda: PiecewiseLayout("{ [i] -> [2i] : 0 <= i < 8 }").domain),
    ("image", lambda *_: "{ [i] : 0 <= i <= 15 }", lambda: PiecewiseLayout("{ [i] -> [2i] : 0 <= i < 8 }").image),
    ("collision", lambda *_: None, lambda: PiecewiseLayout("[N] -> { [i] -> [i mod 5] : 0 <= i < N }").collision()),
    ("sample", lambda *_: None, lambda: PointSet("[N] -> { [i] : 0 <= i < N }").is_empty()),
    ("sample", lambda *_: ({"N": 3}, (3,)), lambda: PointSet("[N] -> { [i] : 0 <= i < N }").sample()),
    (
        "set_difference",
        lambda *_: None,
        lambda: PointSet("[N] -> { [i] : 0 <= i < N }").is_equal(PointSet("[N] -> { [i] : 0 < i < N }")),
    ),
    (
        "substitute_in_set",
        lambda *_: "{ [i] : 0 <= i <= 3 }",
        lambda: PointSet("[N] -> { [i] : 0 <= i < N }").subs(N=9),
    ),
    ("extents", lambda *_: "[N] -> { [] -> [1 + N] : N >= 0 }", lambda: LINE.count_formula()),
    (
        "extreme",
        lambda *_: "[N] -> { [] -> [1] : N > 0 }",
        lambda: lexmin(PointSet("[N] -> { [i] : 0 <= i < N }")),
    ),
]
LINE = PointSet("[N] -> { [i] : 0 <= i < N }")


@pytest.mark.parametrize(("question", "answer", "action"), FORGED, ids=range(len(FORGED)))
def test_a_wrong_answer_of_isl_is_refused(
    question: str, answer: Any, action: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    action()
    monkeypatch.setattr(questions, question, answer)
    monkeypatch.setattr("layoutalg.piecewise.small.everywhere", lambda *_: None)
    with pytest.raises(BudgetError) as caught:
        action()
    assert caught.value.diagnostic.code == "LA793"


@pytest.mark.parametrize("operation", ["turned", "function"])
def test_wrong_functions_are_refused_with_a_point(operation: str) -> None:
    function = read("{ [a, b] -> [3a + b] : 0 <= a < 4 and 0 <= b < 3 }")
    if operation == "turned":
        judge = partial(inverse_of, "{ [v] -> [floor(v/3), v mod 3] : 0 <= v <= 10 }", function)
    else:
        judge = partial(function_of, "{ [a, b] -> [3a + b] : 0 <= a < 4 and 0 <= b < 2 }", function)
    with pytest.raises(DisagreementError, match="at"):
        judge()


def test_what_is_compared_everywhere_says_so() -> None:
    left, right = "{ [x] -> [2x] : 0 <= x < 4000 }", "{ [x] -> [x + x] : 0 <= x < 4000 }"
    assert compare.compared(left, right).confirmed == "all 4000 points"
    far = [text.replace("4000", str(10**9)) for text in (left, right)]
    assert compare.compared(*far).confirmed.startswith("some ")
    assert compare.compared(far[0], far[1].replace("x + x", "x + x + floor(x/999999999)")).point == (10**9 - 1,)


@pytest.mark.parametrize(
    "text",
    [
        "{ [x0, x1] : 0 <= x0 < 3 and 0 <= x1 < 3 and (3x0 + x1) mod 2 = 0 }",
        "{ [i, j] : 0 <= j <= i < 9 and (i + j) mod 3 = 1 }",
        "{ [i] : 0 <= i < 40 and (i mod 7 = 2 or i mod 5 < 2) }",
        "{ [i, j] : exists e : 2e = i + j and 0 <= i, j < 6 and 3 <= e }",
        "{ [i] : 0 <= i and 3i < 2 and i > 0 }",
        "{ [a, b] : a <= 5 and -2 <= b <= 5 and ((a >= 0 and b <= 4) or (3*floor((a)/2) > a)) }",
    ],
)
def test_small_sets_have_a_number_of_points(text: str) -> None:
    points = PointSet(text)
    assert points.count_formula()() == points.count() == len(points.points())


@pytest.mark.parametrize("modulus", [4, 5])
def test_small_layouts_with_a_modulus_have_right_inverses(modulus: int) -> None:
    rng = np.random.default_rng(modulus)
    for _ in range(12):
        a, b, c, d = rng.integers(1, 9, 4).tolist()
        text = f"{{ [i, j] -> [({a}i + {b}j) mod {modulus}, {c}i + {d}j] : 0 <= i < 5 and 0 <= j < 6 }}"
        points, values = PiecewiseLayout(text).right_inverse().graph()
        least: dict[tuple[int, int], tuple[int, int]] = {}
        for i, j in product(range(5), range(6)):
            least.setdefault(((a * i + b * j) % modulus, c * i + d * j), (i, j))
        assert {tuple(p): tuple(v) for p, v in zip(points.tolist(), values.tolist(), strict=True)} == least


@pytest.mark.parametrize("extents", [(3, 5, 7), (300, 500, 700)])
def test_a_flat_index_is_inverted_by_its_digits(extents: tuple[int, int, int]) -> None:
    n, m, k = extents
    text = f"{{ [x] -> [{m * k}*(x mod {n}) + {k}*(floor(x/{n}) mod {m}) + floor(x/{n * m})] : 0 <= x < {n * m * k} }}"
    layout = PiecewiseLayout(text)
    assert digit_inverse(layout.text, layout.axes, ("y0",)) is not None
    inverse = layout.image_inverse()
    x = np.unique(np.linspace(0, n * m * k - 1, 5000).astype(np.int64))
    back = inverse.apply({"y0": layout.apply({"x": x})["y0"]})["x"]
    assert np.array_equal(back, x)  # type: ignore[arg-type]
    assert inverse.domain.count() == n * m * k


def test_a_box_holds_all_points() -> None:
    text = "{ [i, j] : 0 <= 3i <= 20 and i <= 2j <= i + 7 and (i + j) mod 4 = 1 }"
    found = read(text).box({})
    assert found is not None
    points = PointSet(text).points()
    for (low, high), column in zip(found, points.T, strict=True):
        assert low is not None
        assert high is not None
        assert low <= column.min() <= column.max() <= high <= column.max() + 8


@pytest.mark.parametrize("text", ["{ [i, j] : [i] << [j] }", "{ [i] : i = (1 if i else 2) }", "", "{ [i] -> [i/2 }"])
def test_what_is_not_read_is_said(text: str) -> None:
    with pytest.raises(UnreadError):
        read(text)


def test_syntax_that_only_isl_reads_still_makes_layouts() -> None:
    layout = PiecewiseLayout("{ [a, b] -> [a > b ? a : b] : 0 <= a, b < 4 }")
    assert layout(a=1, b=3) == {"y0": 3}
    deep = "(" * 300 + "i" + ")" * 300
    assert PiecewiseLayout(f"{{ [i] -> [{deep}] : 0 <= i < 4 }}").table().tolist() == [0, 1, 2, 3]


def test_relations_that_only_conditions_give_are_confirmed_too() -> None:
    layout = PiecewiseLayout("{ [x] -> [y] : 3y <= x < 3y + 3 and 0 <= x < 20 }")
    assert layout.table().tolist() == [x // 3 for x in range(20)]
    assert functions.collision(layout.text, ("x",)) is not None
