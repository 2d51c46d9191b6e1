"""Swizzled layouts through the algebra: pinned answers and messages, and large domains."""

from __future__ import annotations

import time

import pytest

from layoutalg.cute import (
    ComposedLayout,
    CuteLayout,
    Swizzle,
    append,
    blocked_product,
    composition,
    dice,
    downcast,
    left_inverse,
    logical_divide,
    logical_product,
    recast,
    right_inverse,
    shift,
    upcast,
)
from layoutalg.cute import slice as cut
from layoutalg.cute.algebra import lift, slice_and_offset
from layoutalg.cute.composition import after
from layoutalg.cute.fit import over_table, simplify
from layoutalg.cute.notation import parse_cute
from layoutalg.ground.errors import AdmissibilityError, BudgetError, LayoutError, MalformedError, RepresentabilityError


def read(text: str) -> ComposedLayout:
    value = parse_cute(text)
    assert isinstance(value, ComposedLayout)
    return value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Sw<3,4,3> o 0 o (Sw<3,4,3> o 0 o (64,64):(64,1))", "(64,64):(64,1)"),
        ("Sw<1,0,3> o 0 o (Sw<1,1,3> o 0 o (4,8):(8,1))", "Sw<2,0,3> o 0 o (4,8):(8,1)"),
        ("Sw<0,0,0> o 4 o (-4 + (3,5):(5,1))", "(3,5):(5,1)"),
        ("Sw<3,4,3> o 0 o (8,8):(1,8)", "(8,8):(1,8)"),
        ("Sw<2,0,2> o 0 o (3,4):(4,1)", "Sw<2,0,2> o 0 o (3,4):(4,1)"),
        ("Sw<1,0,1> o 0 o (0,4):(1,1)", "(0,4):(1,1)"),
    ],
)
def test_simplify(text: str, expected: str) -> None:
    assert str(simplify(read(text))) == expected


def test_simplify_keeps_a_stack_that_no_single_swizzle_replaces() -> None:
    stack = read("Sw<1,0,1> o 0 o (Sw<1,2,3> o 0 o (8,8):(8,1))")
    assert simplify(stack).table().tolist() == stack.table().tolist()
    assert isinstance(simplify(stack), ComposedLayout)


def test_products_of_swizzles() -> None:
    assert composition(Swizzle(2, 0, 3), Swizzle(1, 2, 3)) == Swizzle(3, 0, 3)
    assert composition(Swizzle(3, 4, 3), Swizzle(3, 4, 3)) == Swizzle(0, 0, 0)
    with pytest.raises(RepresentabilityError) as caught:
        composition(Swizzle(1, 0, 1), Swizzle(1, 1, 1))
    assert str(caught.value) == (
        "LA640 the product of the swizzles is not a swizzle\n"
        "  in     composition(Sw<1,0,1>, Sw<1,1,1>)\n"
        "  since  its off-diagonal part is not one run of bits on one diagonal\n"
        "  at     x=4, value=7\n"
        "  see    layoutalg.compose(outer, inner, widen=True), which gives it in a wider family"
    )
    with pytest.raises(AdmissibilityError, match="LA642"):
        composition(Swizzle(1, 0, 1), Swizzle(1, 0, 1, "byte"))


def test_layout_after_a_swizzle() -> None:
    assert str(composition(CuteLayout((8, 8), (8, 1)), Swizzle(3, 0, 3))) == "Sw<3,0,-3> o 0 o (8,8):(8,1)"
    with pytest.raises(AdmissibilityError) as caught:
        composition(CuteLayout(3, 5), Swizzle(1, 0, 1))
    assert str(caught.value) == (
        "LA641 the swizzle maps out of the domain of the layout\n"
        "  in     composition(3:5, Sw<1,0,1>)\n"
        "  since  Sw<1,0,1> maps coordinate 2 to 3, the layout has 3 points\n"
        "  at     coordinate=2, value=3, size=3"
    )
    with pytest.raises(RepresentabilityError, match="LA643"):
        composition(CuteLayout(4, 3), Swizzle(1, 0, 1))
    with pytest.raises(AdmissibilityError, match="LA642"):
        composition(CuteLayout(4, 1), Swizzle(1, 0, 1, "byte"))


def test_a_swizzle_above_mends_what_the_bottom_cannot() -> None:
    outer = read("Sw<1,0,1> o 0 o (2,2):(1,3)")  # 0 1 2 5 -> 0 1 3 5
    answer = composition(outer, CuteLayout(4))
    assert answer.table().tolist() == outer.table().tolist()


def test_large_domains_take_milliseconds() -> None:
    big = ComposedLayout(Swizzle(3, 4, 3), 0, CuteLayout((2**20, 2**20), (2**20, 1)))
    start = time.process_time()
    assert str(composition(CuteLayout((2**20, 2**20), (2**20, 1)), big)).startswith("Sw<3,24,3> o 0 o ")
    inverse = right_inverse(big)
    assert inverse.size == 2**40
    for index in (0, 1, 2**39 + 12345, 2**40 - 1):
        assert big(inverse(index)) == index
        assert left_inverse(big)(big(index)) == index
    assert simplify(big) == big
    assert time.process_time() - start < 0.5
    with pytest.raises(BudgetError, match="LA644"):
        after(CuteLayout((3, 2**21), (2**21, 1)), ComposedLayout(Swizzle(1, 0, 1), 0, CuteLayout(3 * 2**21 - 4, 1)))


def test_a_slice_that_no_longer_meets_the_swizzle_loses_it() -> None:
    tile = read("Sw<3,0,3> o 0 o (8,8):(8,1)")
    row = slice_and_offset((5, None), tile)
    assert str(row) == "Sw<3,0,3> o 40 o (8):(1)"
    assert str(simplify(slice_and_offset((None, 3), tile))) == "3 + ((4,2)):((7,36))"
    assert simplify(row).table().tolist() == row.table().tolist()


def test_recasts() -> None:
    tile = read("Sw<3,4,3> o 0 o (64,64):(64,1)")
    assert str(upcast(tile, 2)) == "Sw<3,3,3> o 0 o (64,32):(32,1)"
    assert str(downcast(tile, 2)) == "Sw<3,5,3> o 0 o (64,128):(128,1)"
    with pytest.raises(AdmissibilityError, match="is inside an element of 32"):
        upcast(tile, 32)
    with pytest.raises(AdmissibilityError, match="not a power of two"):
        upcast(tile, 3)
    with pytest.raises(AdmissibilityError, match="the offset 1 is not a multiple"):
        upcast(read("Sw<3,4,3> o 1 o (64,64):(64,1)"), 2)
    with pytest.raises(MalformedError, match="LA160"):
        upcast(tile, 0)
    with pytest.raises(RepresentabilityError, match="LA162"):
        downcast(read("Sw<1,0,1> o 0 o 4:2"), 2)
    idle = read("Sw<1,0,9> o 0 o (4,4):(4,1)")  # the bits it reads are never set
    assert str(upcast(idle, 2)) == "(4,2):(2,1)"


def test_inverses() -> None:
    tile = read("Sw<3,0,3> o 0 o (8,8):(8,1)")
    for inverse in (right_inverse(tile), left_inverse(tile)):
        assert [tile(inverse(index)) for index in range(64)] == list(range(64))
    assert str(right_inverse(read("5 + 6:-1"))) == "5 + 6:-1"
    assert str(right_inverse(read("5 + 6:1"))) == "0:0"
    assert str(left_inverse(read("2 + 3:4"))) == "(4,3):(0,1)"
    with pytest.raises(AdmissibilityError, match="LA131"):
        right_inverse(read("Sw<1,0,1> o 0 o 0:1"))
    with pytest.raises(AdmissibilityError, match="LA131"):
        left_inverse(read("Sw<1,0,1> o 0 o 0:1"))
    with pytest.raises(AdmissibilityError, match="LA649"):
        left_inverse(read("Sw<1,0,1> o -3 o 3:1"))


def test_lift_and_over_table() -> None:
    assert str(lift(read("Sw<1,0,1> o 4 o (2,2):(1,2)"), lambda layout: layout[0])) == "Sw<1,0,1> o 4 o 2:1"
    values = read("Sw<1,0,2> o 0 o (3,4):(4,1)").table()
    assert str(over_table(values, (3, 4))) == "Sw<1,0,2> o 0 o (3,4):(4,1)"
    assert over_table(values, (4, 3)) is None


def test_equal_stacks_have_one_spelling() -> None:
    base, swizzle, idle = CuteLayout((4, 8), (8, 1)), Swizzle(1, 0, 1), Swizzle(0, 4, 3)
    behind = ComposedLayout(swizzle, 0, base)
    assert ComposedLayout(idle, 5, base) == shift(base, 5) == shift(shift(base, 2), 3)
    assert str(ComposedLayout(idle, 5, base)) == "5 + (4,8):(8,1)"
    assert ComposedLayout(swizzle, 1, shift(base, 2)) == ComposedLayout(swizzle, 3, base)
    assert shift(behind, 0) == behind == ComposedLayout(idle, 0, behind)
    stack = ComposedLayout(swizzle, 1, ComposedLayout(idle, 2, behind))
    assert stack.stages == ((swizzle, 3), (swizzle, 0))
    assert (stack.outer, stack.offset, stack.inner, stack.inner.inner) == (swizzle, 3, behind, base)
    assert shift(behind, 7).stages == ((Swizzle(0, 0, 0), 7), (swizzle, 0))
    with pytest.raises(MalformedError, match="LA102"):
        shift(shift(CuteLayout(4, -(2**61)), 2**62), 2**62)


LAYOUT = CuteLayout((8, 4, 2), (1, 8, 32))
UNDER = ComposedLayout(Swizzle(2, 2, 2), 0, CuteLayout((8, 8), (8, 1)))


def test_swizzled_operands() -> None:
    assert str(append(UNDER, CuteLayout(2, 64))) == "Sw<2,2,2> o 0 o (8,8,2):(8,1,64)"
    assert str(dice((1, None), UNDER)) == "Sw<2,2,2> o 0 o (8):(8)"
    assert str(recast(UNDER, 8, 16)) == "Sw<2,1,2> o 0 o (8,4):(4,1)"
    assert cut(None, UNDER) == UNDER
    bottom = blocked_product(UNDER.base, CuteLayout((2, 3)))
    assert blocked_product(UNDER, CuteLayout((2, 3))) == UNDER.rebase(bottom)
    assert logical_product(UNDER, CuteLayout(2))[0] == UNDER
    with pytest.raises(AdmissibilityError, match="LA647"):
        upcast(UNDER, 8)
    with pytest.raises(RepresentabilityError, match="LA161"):
        upcast(ComposedLayout(Swizzle(1, 4, 1), 0, CuteLayout(4, 2)), 4)
    with pytest.raises(RepresentabilityError, match="LA162"):
        downcast(ComposedLayout(Swizzle(1, 0, 1), 0, CuteLayout(4, 2)), 2)
    with pytest.raises(MalformedError, match="LA160"):
        upcast(UNDER, True)


def test_repeated_calls_tell_equal_numbers_apart() -> None:
    assert logical_divide(LAYOUT, 1) == logical_divide(LAYOUT, CuteLayout(1, 1))
    for bad in (True, 1.0, "1"):
        with pytest.raises(LayoutError, match="LA141"):
            logical_divide(LAYOUT, bad)  # type: ignore[arg-type]
        with pytest.raises(LayoutError, match="LA141"):
            logical_product(LAYOUT, (bad,))  # type: ignore[arg-type]
