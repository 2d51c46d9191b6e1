"""Inverses of integer layouts: found by several engines, each answer evaluated before it is returned."""

from __future__ import annotations

import time

import pytest

from layoutalg import integer
from layoutalg.ground import clock
from layoutalg.ground.errors import AdmissibilityError, BudgetError, Diagnostic
from layoutalg.integer import IntegerLayout, parse_integer
from layoutalg.integer.inverse import POINTS, confirmed, one_piece
from layoutalg.piecewise import PiecewiseLayout


def least(layout):
    """Each value with its least point, the first axis compared first."""
    answer = {}
    for index in range(layout.size):
        point = layout.coordinate(index)
        value = layout.value(point)
        answer[value] = min(point, answer.get(value, point))
    return answer


def listed(inverse):
    points, found = inverse.graph()
    return {tuple(p): tuple(x) for p, x in zip(points.tolist(), found.tolist(), strict=True)}


@pytest.mark.parametrize(
    "text",
    [
        # 48 values, of which ISL once named 45
        "Z[a:4=(6,2), b:3=(1,8), c:4=(2,2) -> v, w%12]",
        # injective on 112 points, where ISL stops with an error of its own
        "Z[i:7=(1,2,2), j:2=(0,2,8), k:4=(7,1,16), l:2=(4,1,1) -> p%8, q%3, r] + (1,1,0)",
        "Z[i:2=(1,11,3), j:3=(1,10,4), k:3=(3,1,3), l:4=(3,9,1) -> p%4, q%12, r%6] + (1,0,5)",
    ],
)
def test_small_layouts_are_inverted_on_their_whole_image(text):
    layout = parse_integer(text)
    start = time.process_time()
    found = integer.right_inverse(layout)
    assert time.process_time() - start < 5
    assert isinstance(found, integer.ImageInverse)
    assert listed(found.layout) == least(layout)
    assert found.confirmed == f"all {layout.size} points"


def test_one_piece_of_any_size():
    layout = parse_integer("Z[i:1099511627776=(3,1), j:1000=(1,2) -> v, w] + (7,-1)")
    found = integer.image_inverse(layout)
    assert found.layout.text.count("->") == 1
    assert tuple(found.layout(v=3 * 5 + 11 + 7, w=5 + 22 - 1).values()) == (5, 11)
    assert "of 1099511627776000 points" in found.confirmed
    # three outputs of two axes: the third must agree
    tall = parse_integer("Z[i:3=(1,0,2), j:4=(0,1,-1) -> u, v, w] + (0,0,5)")
    assert listed(integer.image_inverse(tall).layout) == least(tall)
    assert one_piece(parse_integer("Z[i:3=(2), j:4=(1) -> u]"), ("u",)) is None
    assert listed(integer.image_inverse(parse_integer("Z[i:1=(5,1) -> u, v] + (2,3)")).layout) == {(2, 3): (0,)}


@pytest.mark.parametrize(
    "text",
    [
        "{ [y] -> [floor(y/3)] : 0 <= y <= 9 and y mod 3 = 0 }",  # a value is missing
        "{ [y] -> [floor(y/3)] : 0 <= y <= 12 }",  # places between the values
        "{ [y] -> [floor(y/3)] : 0 <= y <= 15 and y mod 3 = 0 }",  # a place beyond the last value
        "{ [y] -> [4 - floor(y/3)] : 0 <= y <= 12 and y mod 3 = 0 }",  # another point
    ],
)
def test_wrong_inverses_are_not_believed(text):
    layout = IntegerLayout.from_strides({"i": 5}, (3,))
    with pytest.raises(BudgetError, match="LA742"):
        confirmed(layout, PiecewiseLayout(text))


def test_a_greater_point_is_not_the_least():
    layout = IntegerLayout.from_strides({"i": 6}, (1,), modulus=3)
    assert confirmed(layout, PiecewiseLayout("{ [y] -> [y] : 0 <= y < 3 }")) == "all 6 points"
    with pytest.raises(BudgetError, match="LA742"):
        confirmed(layout, PiecewiseLayout("{ [y] -> [y + 3] : 0 <= y < 3 }"))


def test_what_isl_drops_is_noticed_beyond_tables(monkeypatch):
    """An inverse that lacks values of a layout of many points is refused, not returned."""
    layout = IntegerLayout.from_strides({"i": 2**9, "j": 2**9}, (2, 3))
    assert layout.size > POINTS
    found = PiecewiseLayout("{ [v] -> [floor(v/2), 0] : 0 <= v <= 1022 and v mod 2 = 0 }")
    monkeypatch.setattr(PiecewiseLayout, "right_inverse", lambda _: found)
    with pytest.raises(BudgetError, match=r"LA741[^|]*LA742"):
        integer.image_inverse(layout)


def test_errors_of_isl_do_not_pass_for_undefined(monkeypatch):
    def refuse(self):
        raise AdmissibilityError(Diagnostic("LA791", "ISL refuses this operation", because="isl_map.c:1234: assertion"))

    monkeypatch.setattr(PiecewiseLayout, "right_inverse", refuse)
    with pytest.raises(BudgetError, match="LA741") as caught:
        integer.image_inverse(IntegerLayout.from_strides({"i": 2**9, "j": 2**9}, (2, 3)))
    assert "isl_map.c" not in str(caught.value)


def test_inverses_ask_the_clock():
    with clock.within(0), pytest.raises(BudgetError):
        integer.image_inverse(parse_integer("Z[i:7=(2,1), j:9=(3,5), k:5=(7,3) -> v%11, w]"))


def test_digits_are_confirmed():
    assert integer.right_inverse(IntegerLayout.from_strides({"i": 4, "j": 6}, (6, -1), 5)).confirmed == "all 24 points"
    turn = parse_integer("Z[c:8=(1,0), r:8=(3,1) -> c%8, r] + (5,0)")
    assert integer.right_inverse(turn).confirmed == "all 64 points"
    wide = integer.right_inverse(IntegerLayout.from_strides({"i": 2**40, "j": 6}, (6, 1)))
    assert wide.box == (("offset", (0, 6 * 2**40)),)
    assert wide.confirmed.endswith(f"of {6 * 2**40} points")


def test_wide_values_are_confirmed_as_well():
    layout = IntegerLayout((("i", 3), ("j", 1)), (("x", 0), ("y", 2**70)), ((2**80, 2**90), (2**69, 1)), (0, 5))
    found = integer.image_inverse(layout)
    assert found.confirmed == "all 3 points"
    assert [tuple(found.layout(x=x * 2**80, y=(x * 2**69 + 5) % 2**70).values()) for x in range(3)] == [
        (0, 0),
        (1, 0),
        (2, 0),
    ]
