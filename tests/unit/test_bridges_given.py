"""What bridges between families are given: tiles behind an offset, wrong types, coordinates, too little time."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import layoutalg as la
from layoutalg import convert, cute
from layoutalg.bridges import equal, smt
from layoutalg.bridges.equal import Budget, equivalent
from layoutalg.bridges.normal import values_at
from layoutalg.cute import ComposedLayout, CuteLayout, shift
from layoutalg.ground.errors import LayoutError, MalformedError, RepresentabilityError
from layoutalg.ground.listed import listed
from layoutalg.ground.verdict import Proved, Refuted, Unknown
from layoutalg.hierarchy import Box, DigitMap, Guard, HierarchicalLayout
from layoutalg.piecewise import PiecewiseLayout, operations
from layoutalg.proofs.certify import equality
from layoutalg.proofs.checker import check

TILE = cute.local_tile(la.parse("(8,8):(1,8)"), (4, 4), (1, 1))


def test_a_tile_behind_an_offset_is_a_layout_everywhere() -> None:
    assert isinstance(TILE, ComposedLayout)
    wanted = TILE.table().tolist()
    for found in (convert.to_linear(TILE), convert.to_integer(TILE), convert.to_piecewise(TILE), convert.to_cute(TILE)):
        assert values_at(found, np.arange(16))[:, 0].tolist() == wanted
        assert isinstance(equivalent(TILE, found), Proved)
        assert isinstance(equivalent(found, TILE), Proved)
    assert convert.value_at(TILE, 5) == wanted[5]
    assert isinstance(equivalent(TILE, TILE.base), Refuted)
    assert isinstance(equivalent(shift(TILE.base, 0), TILE.base), Proved)
    assert isinstance(equivalent(shift(CuteLayout(3, 2), -3), convert.to_integer(shift(CuteLayout(3, 2), -3))), Proved)
    answer = la.compose(TILE, CuteLayout(4, 2), widen=True)
    assert answer.table().tolist() == [wanted[2 * k] for k in range(4)]
    divided = la.logical_divide(TILE, CuteLayout(4, 1), widen=True)
    assert sorted(divided.table().tolist()) == sorted(wanted)


def test_a_table_is_an_operand_wherever_a_layout_is() -> None:
    rows = listed(3 * np.arange(32).reshape(4, 8))
    assert convert.to_cute(rows) == CuteLayout((4, 8), (24, 3))  # its dimensions stay modes
    for family in (convert.to_cute, convert.to_integer, convert.to_piecewise):
        assert isinstance(equivalent(rows, family(rows)), Proved)
        assert isinstance(equivalent(family(rows), rows), Proved)
        assert check(equality(rows, family(rows)).to_json())[0] == 0
    linear = listed(np.array([[0, 3], [1, 2]]))
    assert convert.to_linear(linear).table().tolist() == [0, 1, 3, 2]
    assert convert.linear_form(linear) == ((1, 3), 0)
    other = rows.table().reshape(4, 8, order="F").copy()
    other[2, 5] += 1
    refuted = equivalent(CuteLayout((4, 8), (24, 3)), listed(other))
    assert refuted == Refuted("table", {"coordinate": 2 + 4 * 5, "f": 63, "g": 64})
    # two places differ from what 64 points of noise can be written as: still decided, by table
    noise = listed(np.random.default_rng(3).permutation(256).reshape(16, 16))
    assert isinstance(equivalent(noise, listed(noise.table().reshape(16, 16, order="F"))), Proved)
    with pytest.raises(LayoutError, match="LA662"):
        convert.to_piecewise(noise)
    # without the table engine, the others decide or say what stopped them
    assert isinstance(equivalent(rows, CuteLayout((4, 8), (24, 3)), Budget(table_points=0)), Proved)
    assert isinstance(equivalent(noise, CuteLayout(256), Budget(table_points=0)), Refuted)
    assert isinstance(equivalent(noise, listed(noise.table()), Budget(table_points=0)), Unknown)
    tile = HierarchicalLayout(
        Box.of(i=4), Box.of(j=4), DigitMap(((4, 1),)), (Guard(DigitMap(((4, 1),)), Box.of(i=4), (3,)),)
    )
    assert equivalent(tile, listed(np.arange(4))) == Refuted("normal-form", {"coordinate": 3, "f": None, "g": 3})


WRONG: list[Any] = [None, True, 3, 1.5, 10**5000, "i", b"x", [], (), {}, {"i": 2}, object(), np.arange(3.0), int, la]


@pytest.mark.parametrize("place", range(len(WRONG)))
def test_wrong_types_are_refused_by_name(place: int) -> None:
    wrong, tile = WRONG[place], CuteLayout(4, 1)
    calls = [
        lambda: convert.linear_form(wrong),
        lambda: convert.value_at(wrong, 0),
        lambda: convert.to_linear(wrong),
        lambda: convert.to_integer(wrong),
        lambda: convert.to_piecewise(wrong),
        lambda: convert.to_cute(wrong),
        lambda: equivalent(wrong, tile),
        lambda: equivalent(tile, wrong),
        *(lambda widen=widen: la.compose(wrong, tile, widen=widen) for widen in (False, True)),
        *(lambda widen=widen: la.compose(tile, wrong, widen=widen) for widen in (False, True)),
        *(lambda widen=widen: la.logical_divide(wrong, tile, widen=widen) for widen in (False, True)),
        *(lambda widen=widen: la.logical_divide(tile, wrong, widen=widen) for widen in (False, True)),
        *(lambda widen=widen: la.left_inverse(wrong, widen=widen) for widen in (False, True)),
        *(lambda widen=widen: la.right_inverse(wrong, widen=widen) for widen in (False, True)),
    ]
    for call in calls:
        with pytest.raises(LayoutError) as caught:
            call()
        assert str(caught.value)
    if type(wrong) is not int or wrong > 3:
        with pytest.raises(MalformedError, match="LA234"):
            convert.value_at(tile, wrong)


def test_coordinates_are_those_of_the_layout() -> None:
    for layout in (
        CuteLayout((2, 2), (1, 8)),
        PiecewiseLayout("{ [i] -> [3i] : 0 <= i < 4 }"),
        la.parse("Z[i:4=(2) -> o]"),
    ):
        for index in (-1, 4, 2**70, (0, 1), "0"):
            with pytest.raises(MalformedError):
                convert.value_at(layout, index)  # type: ignore[arg-type]
    with pytest.raises(MalformedError, match="one output"):
        convert.value_at(la.parse("Z[i:4=(2,1) -> o, p]"), 0)


def test_linear_forms_exist_for_powers_of_two_only() -> None:
    """A layout of six points once had the form of four of them."""
    with pytest.raises(RepresentabilityError, match="LA231"):
        convert.linear_form(CuteLayout(6, 1))
    with pytest.raises(MalformedError, match="one output"):
        convert.linear_form(la.parse("Z[i:4=(2,1) -> o, p]"))
    box = Box.of(i=4)
    tile = HierarchicalLayout(box, box, DigitMap(((4, 1),)), (Guard(DigitMap(((4, 1),)), box, (3,)),))
    with pytest.raises(RepresentabilityError, match="LA661"):
        convert.linear_form(tile)


F = PiecewiseLayout("{ [i] -> [i mod 3] : 0 <= i < 12 }")
G = PiecewiseLayout("{ [i] -> [i mod 3] : 0 <= i < 11; [i] -> [7] : i = 11 }")


@pytest.mark.parametrize("engine", ["isl", "smt"])
def test_equality_by_a_solver_is_confirmed(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = equivalent(F, F, _engines=(engine,))
    assert isinstance(answer, Proved)
    assert answer.certificate["confirmed"] == "12 of 12 coordinates"
    # a solver that says equal of what differs is contradicted by the values
    monkeypatch.setattr(operations, "difference", lambda *_: None)
    monkeypatch.setattr(smt, "first_difference", lambda *_: None)
    assert equivalent(F, G, _engines=(engine,)) == Refuted(engine, {"coordinate": 11, "f": 2, "g": 7})

    # and one that names a difference where there is none is not believed
    def forged(_: str, __: str, links: tuple[str, str], ___: int) -> tuple[dict[str, object], tuple[int, ...]]:
        return {}, (1,) * (links[0].split("]")[0].count(",") + 1)

    monkeypatch.setattr(operations, "difference", forged)
    monkeypatch.setattr(smt, "first_difference", lambda joint, *_: {n: 1 for n, _ in joint.digits})
    assert isinstance(equivalent(F, F, _engines=(engine,)), Unknown)


def test_equality_ends_in_time_and_says_what_was_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = PiecewiseLayout("{ [i] -> [floor(i/3)] : 0 <= i < 1048576 }")
    monkeypatch.setattr(equal, "CHUNK", 64)
    start = time.process_time()
    answer = equivalent(
        wide,
        PiecewiseLayout("{ [a, b] -> [floor((a + 1024b)/3)] : 0 <= a, b < 1024 }"),
        Budget(seconds=0.1),
        _engines=("table",),
    )
    assert time.process_time() - start < 0.1 * 1.5 + 0.2
    assert isinstance(answer, Unknown)
    assert answer.reason == "table: the time limit of 0.1 s has passed"
    none = equivalent(F, G, Budget(seconds=0))
    assert isinstance(none, Unknown)
    assert none.tried == equal.ENGINES
    for seconds in (float("nan"), -1, "2", True):
        with pytest.raises(MalformedError, match="LA004"):
            Budget(seconds=seconds)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "layout",
    [
        CuteLayout((2, (3, 2)), (6, (2, 1))),
        la.parse("Sw<2,0,3> o 5 o (4,8):(1,4)"),
        la.LinearLayout.from_bases({"a": [(1, 0), (0, 3)], "b": [(2, 1)]}, {"x": 4, "y": 4}),
        la.LinearLayout((("a", 3),), (("x", 80),), (1 << 79, 3, 1 << 40), 1 << 66),
        PiecewiseLayout("{ [i, j] -> [floor((i + 2j)/3), i - j] : 0 <= i < 4 and 0 <= j < 3 }"),
        la.parse("Z[i:4=(3,1), j:3=(-1,5) -> o, p%7] + (2,3)"),
        HierarchicalLayout(Box.of(i=4), Box.of(i=4), DigitMap(((4, 1),))),
    ],
    ids=str,
)
def test_values_at_many_coordinates_are_those_of_the_table(layout: Any) -> None:
    index = np.arange(layout.size)
    wanted = np.array([layout.at(int(k)) if hasattr(layout, "at") else layout(int(k)) for k in index], dtype=object)
    found = values_at(layout, index)
    assert found.tolist() == wanted.reshape(layout.size, -1).tolist()
    assert values_at(layout, index[::-2]).tolist() == found[::-2].tolist()


def test_a_point_without_a_value_differs_from_every_value() -> None:
    box = Box.of(i=4)
    tile = HierarchicalLayout(box, box, DigitMap(((4, 1),)), (Guard(DigitMap(((4, 1),)), box, (3,)),))
    assert values_at(tile, np.arange(4))[:, 0].tolist() == [0, 1, 2, -1]
    same = la.parse("Z[i:4=(1) -> o]")
    for engines in (("table",), equal.ENGINES):
        answer = equivalent(tile, same, _engines=engines)
        assert isinstance(answer, Refuted)
        assert answer.witness == {"coordinate": 3, "f": None, "g": 3}
    # -1 is a value of the other layout
    assert isinstance(equivalent(tile, PiecewiseLayout("{ [i] -> [i] : 0 <= i < 3; [i] -> [-1] : i = 3 }")), Refuted)
