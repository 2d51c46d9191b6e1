"""Composition and inverses that may leave the family: against enumeration, refused only where there is no value."""

from __future__ import annotations

import pickle
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judges.families import FAMILIES

import layoutalg as la
from layoutalg.bridges import piecewise
from layoutalg.bridges.composition import widened
from layoutalg.bridges.inverse import widened_left, widened_right
from layoutalg.bridges.normal import values_at
from layoutalg.convert import to_piecewise
from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle, composition
from layoutalg.cute.notation import parse_cute
from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import AdmissibilityError, BudgetError, MalformedError, RepresentabilityError
from layoutalg.piecewise import PiecewiseLayout, inverse


@pytest.mark.parametrize(
    ("outer", "inner", "family"),
    [
        ("(6,8):(1,10)", "2:4", "cute"),
        ("(4,8):(8,1)", "Sw<2,0,2> o 0 o (4,8):(1,4)", "composed"),
        ("Sw<2,0,2> o 0 o (4,8):(1,4)", "(2,4):(4,1)", "composed"),
        ("(6,2):(1,7)", "(3,2):(2,3)", "piecewise"),
        ("(4,6,8):(2,3,5)", "6:3", "piecewise"),
        ("(4,4):(1,8)", "Sw<1,0,1> o 0 o (Sw<1,1,2> o 0 o (4,4):(1,4))", "linear"),
    ],
)
def test_composition_names_its_family(outer: str, inner: str, family: str) -> None:
    left, right = parse_cute(outer), parse_cute(inner)
    answer = widened(left, right)
    truth = left.table()[right.table()]  # type: ignore[union-attr]
    assert answer.family == family
    assert answer.value.table().tolist() == truth.tolist()  # type: ignore[union-attr]
    assert bool(answer.passed) == (family not in ("cute", "composed"))
    assert pickle.loads(pickle.dumps(answer)) == answer


def test_the_refusal_offers_what_promotion_gives() -> None:
    outer, inner = CuteLayout((6, 2), (1, 7)), CuteLayout((3, 2), (2, 3))
    with pytest.raises(RepresentabilityError, match=r"layoutalg\.compose\(outer, inner, widen=True\)"):
        composition(outer, inner)
    assert widened(outer, inner).family == "piecewise"
    assert widened(outer, inner).passed[0].startswith("cute: LA122 the modes of the right operand")


def test_swizzles() -> None:
    assert widened(Swizzle(2, 0, 3), Swizzle(1, 2, 3)).family == "swizzle"
    answer = widened(Swizzle(1, 0, 1), Swizzle(1, 1, 1))
    assert answer.family == "linear"
    assert [answer.value(i=x)["offset"] for x in range(8)] == [  # type: ignore[operator,index,call-arg]
        Swizzle(1, 0, 1)(Swizzle(1, 1, 1)(x)) for x in range(8)
    ]
    with pytest.raises(AdmissibilityError, match="LA641"):
        widened(CuteLayout(3, 5), Swizzle(1, 0, 1))
    odd = widened(CuteLayout(4, 3), Swizzle(1, 0, 1))
    assert odd.value.table().tolist() == [0, 3, 9, 6]  # type: ignore[union-attr]


def test_other_families_as_operands() -> None:
    swap = LinearLayout.from_bases({"i": [(2,), (1,)]}, {"o": 4})
    assert widened(swap, CuteLayout(4)).family == "linear"
    assert widened(CuteLayout((2, 2), (8, 1)), swap).value.table().tolist() == [0, 1, 8, 9]  # type: ignore[union-attr]
    assert widened(Swizzle(1, 0, 1), swap).value.table().tolist() == [0, 3, 1, 2]  # type: ignore[union-attr]
    assert widened(swap, Swizzle(1, 0, 1)).value.table().tolist() == [0, 2, 3, 1]  # type: ignore[union-attr]
    line = PiecewiseLayout("{ [i] -> [2i] : 0 <= i < 3 }")
    answer = widened(CuteLayout((2, 3), (3, 1)), line)
    assert answer.family == "piecewise"
    assert answer.value.table().tolist() == [0, 1, 2]  # type: ignore[union-attr]
    with pytest.raises(AdmissibilityError, match="LA651"):
        widened(CuteLayout(4), line)
    with pytest.raises(MalformedError, match="LA652"):
        widened(4, CuteLayout(4))  # type: ignore[arg-type]


def test_refusals_stay_where_there_is_no_value() -> None:
    with pytest.raises(AdmissibilityError, match="LA120"):
        widened(CuteLayout(4), CuteLayout(4, 2))
    with pytest.raises(AdmissibilityError, match="LA131"):
        widened_right(CuteLayout(0, 1))
    with pytest.raises(AdmissibilityError, match="LA133"):
        widened_left(CuteLayout((3, 3), (1, 1)))
    with pytest.raises(MalformedError, match="LA652"):
        widened_left(3)  # type: ignore[arg-type]


def test_divides_and_inverses() -> None:
    layout = CuteLayout((6, 2), (1, 7))
    assert isinstance(la.logical_divide(layout, CuteLayout(3)), CuteLayout)
    with pytest.raises(RepresentabilityError, match="LA121"):
        la.logical_divide(layout, CuteLayout(4, 1))
    divided = la.logical_divide(layout, CuteLayout(4, 1), widen=True)
    assert isinstance(divided, PiecewiseLayout)
    assert divided.table().tolist() == layout.table().tolist()
    assert widened_right(CuteLayout((4, 8), (8, 1))).family == "cute"
    layout = CuteLayout((2, 40), (3, 2))
    inverse = widened_left(layout)
    assert inverse.family == "piecewise"
    assert inverse.value.table()[layout.table()].tolist() == list(range(80))  # type: ignore[union-attr]
    bits = CuteLayout((2, 2, 2), (1, 80, 32))
    linear = widened_left(bits)
    assert linear.family == "linear"
    assert linear.value.table()[bits.table()].tolist() == list(range(8))  # type: ignore[union-attr]


def test_piecewise_composition_by_digits() -> None:
    grid = PiecewiseLayout("{ [r, c] -> [8r + c] : 0 <= r < 4 and 0 <= c < 8 }")
    turn = PiecewiseLayout("{ [a, b] -> [b, a] : 0 <= a < 8 and 0 <= b < 4 }")
    assert (grid @ turn).table().tolist() == [8 * b + a for b in range(4) for a in range(8)]
    assert turn.then(grid) == grid @ turn
    flat = PiecewiseLayout("{ [i] -> [5i + 1] : 0 <= i < 6 }")
    assert (grid @ flat).table().tolist() == grid.table()[flat.table()].tolist()
    with pytest.raises(AdmissibilityError) as caught:
        grid @ PiecewiseLayout("{ [i] -> [5i + 1] : 0 <= i < 8 }")
    witness = caught.value.diagnostic.witness
    assert witness is not None
    assert witness["value"] == (36,)
    with pytest.raises(AdmissibilityError, match="LA650"):
        PiecewiseLayout("{ [a, b, c] -> [a] : 0 <= a < 2 and 0 <= b < 2 and 0 <= c < 2 }") @ turn
    with pytest.raises(TypeError):
        grid @ 3  # type: ignore[operator]


shapes = st.lists(st.integers(1, 6), min_size=1, max_size=3)


@settings(max_examples=60, deadline=None)
@given(shapes, shapes, st.data())
def test_promotion_is_exact(outer: list[int], inner: list[int], data: st.DataObject) -> None:
    strides = [data.draw(st.lists(st.integers(0, 9), min_size=len(s), max_size=len(s))) for s in (outer, inner)]
    left, right = CuteLayout(tuple(outer), tuple(strides[0])), CuteLayout(tuple(inner), tuple(strides[1]))
    values = right.table()
    if values.max() >= left.size:
        with pytest.raises(AdmissibilityError, match="LA120"):
            widened(left, right)
        return
    try:
        answer = widened(left, right)
    except BudgetError:
        return
    truth = left.table()[values]
    assert isinstance(answer.value, (CuteLayout, LinearLayout, PiecewiseLayout))
    assert np.array_equal(answer.value.table(), truth)
    if answer.family == "piecewise" and len(truth).bit_count() == 1:
        assert any(truth[i] != _forced(truth.tolist(), i) for i in range(len(truth)))


def _forced(truth: list[int], index: int) -> int:
    value = truth[0]
    for bit in range(index.bit_length()):
        if index >> bit & 1:
            value ^= truth[1 << bit] ^ truth[0]
    return value


@settings(max_examples=40, deadline=None)
@given(shapes, st.data())
def test_left_inverses_are_exact(shape: list[int], data: st.DataObject) -> None:
    stride = data.draw(st.lists(st.integers(1, 20), min_size=len(shape), max_size=len(shape)))
    layout: CuteLayout | ComposedLayout = CuteLayout(tuple(shape), tuple(stride))
    if data.draw(st.booleans()):
        layout = ComposedLayout(Swizzle(1, 0, data.draw(st.integers(1, 3))), 0, layout)
    values = layout.table().tolist()
    try:
        answer = widened_left(layout)
    except (AdmissibilityError, RepresentabilityError, BudgetError) as error:
        assert isinstance(error, BudgetError) or len(set(values)) < len(values)
        return
    table = answer.value.table()  # type: ignore[union-attr]
    if len(set(values)) == len(values):
        assert table[values].tolist() == list(range(len(values)))


@pytest.mark.parametrize(
    ("outer", "inner"),
    [
        ("Sw<3,2,3> o 1 o (Sw<3,2,3> o 5 o (8,8,4):(5,17,64))", "Sw<1,2,3> o 0 o (16,2):(5,4)"),
        ("Sw<3,1,4> o 5 o (16,16,16):(5,64,17)", "Sw<3,0,4> o 8 o (8):(7)"),
        ("Sw<2,0,4> o 1 o (5,2,32):(5,2,7)", "Sw<1,2,3> o 5 o (Sw<1,3,3> o 13 o (Sw<1,2,3> o 3 o (4,16):(2,17)))"),
        ("Sw<2,3,4> o 8 o (Sw<3,2,4> o 3 o (16,5,16):(5,64,7))", "(5,5,5):(8,2,7)"),
    ],
)
def test_stacks_of_few_points_always_compose(outer: str, inner: str) -> None:
    left, right = parse_cute(outer), parse_cute(inner)
    start = time.process_time()
    answer = widened(left, right)
    assert time.process_time() - start < 2
    assert answer.value.table().tolist() == left.apply(right.table()).tolist()  # type: ignore[union-attr]


def test_answers_of_isl_are_compared_with_the_operands(monkeypatch: pytest.MonkeyPatch) -> None:
    outer, inner = CuteLayout((7, 1000), (1, 9)), CuteLayout((10, 100), (11, 60))
    assert widened(outer, inner).family == "piecewise"
    wrong = PiecewiseLayout("{ [i] -> [i] : 0 <= i < 1000 }")
    monkeypatch.setattr(PiecewiseLayout, "__matmul__", lambda *_: wrong)
    with pytest.raises(BudgetError, match="LA745"):
        widened(outer, inner)
    monkeypatch.setattr(
        inverse, "left_inverse", lambda *_, **__: PiecewiseLayout("{ [v] -> [v] : 0 <= v <= 807 }").value
    )
    with pytest.raises(BudgetError, match="LA745"):
        widened_left(CuteLayout((2, 270), (2, 3)))
    assert widened_left(CuteLayout((2, 100), (2, 3))).family == "piecewise"


def test_conversions_through_isl_are_compared_with_the_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    layout = parse_cute("Sw<2,0,3> o 1 o (5,7):(3,11)")
    assert to_piecewise(layout).table().tolist() == layout.table().tolist()
    monkeypatch.setattr(piecewise, "_convert", lambda *_: PiecewiseLayout("{ [i] -> [i] : 0 <= i < 35 }"))
    with pytest.raises(BudgetError, match="LA745"):
        to_piecewise(layout)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_two_families_compose_by_flat_coordinates(data: st.DataObject) -> None:
    kinds = [name for name in FAMILIES if name not in ("coordinate", "morphism")]
    outer = data.draw(FAMILIES[data.draw(st.sampled_from(kinds))])
    inner = data.draw(FAMILIES[data.draw(st.sampled_from(kinds))])
    left, right = (values_at(layout, np.arange(layout.size)) for layout in (outer, inner))
    if right.shape[1] != 1 or not inner.size:
        return
    same = type(outer) is type(inner) and not isinstance(outer, CuteLayout | ComposedLayout)
    inside = ((right >= 0) & (right < outer.size)).all()
    try:
        found = la.compose(outer, inner, widen=True)
    except AdmissibilityError:
        assert same or not inside
        return
    except BudgetError:
        return
    if not same:
        assert inside
        assert values_at(found, np.arange(found.size)).tolist() == left[right[:, 0]].tolist()


def test_outputs_meet_the_axes_of_their_names() -> None:
    """A composition that leaves the family once met axes by position."""
    outer = la.parse("Z[a:4=(1), b:2=(4) -> o%7]")
    inner = la.parse("Z[i:2=(1,1), j:4=(0,1) -> b, a%4]")
    wanted = [outer(b=(i := k % 2), a=(i + k // 2) % 4)["o"] for k in range(8)]
    assert la.compose(outer, inner, widen=True).table().tolist() == wanted
    with pytest.raises(AdmissibilityError, match="LA650"):
        la.compose(CuteLayout((4, 2)), inner, widen=True)
