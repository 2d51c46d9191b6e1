"""Digits with mixed bits and their text: worked values, refusals with their place, sizes beyond enumeration."""

from __future__ import annotations

import random
from typing import Any

import pytest

import layoutalg as la
from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.ground.errors import BudgetError, LayoutError, MalformedError
from layoutalg.ground.text import Grammar, Tokens
from layoutalg.hierarchy import (
    Box,
    DigitMap,
    HierarchicalLayout,
    TableMap,
    distribute,
    exchange_plan,
    hierarchy,
    preserves_blocks,
    profile_of,
    reindex,
    reshape,
    solve_conversion,
    tile,
)
from layoutalg.hierarchy import bijection as maps

TILE = Box.of(col=64, row=96)
SWIZZLED = reshape(Box.of(x=64 * 96), Box.of(x=64 * 96)) @ HierarchicalLayout(
    TILE,
    Box.of(x=64 * 96),
    reindex(Box.of(x=64 * 96), ComposedLayout(Swizzle(3, 3, 3), 0, CuteLayout(64 * 96))).map,
)


def test_a_swizzled_tile_of_96_rows_is_digits() -> None:
    assert SWIZZLED.map == DigitMap(((64, 1), (2, (8, 64)), (2, (16, 128)), (2, (32, 256)), (12, 512)))
    assert str(SWIZZLED) == "col 64:1, row (2,2,2,12):(64^8,128^16,256^32,512) -> x:6144"
    assert la.parse(str(SWIZZLED)) == SWIZZLED
    table = SWIZZLED.table().reshape(96, 64)
    assert all(table[row, col] == 64 * row + (col ^ 8 * (row % 8)) for row in range(96) for col in range(64))
    assert (SWIZZLED.inverse() @ SWIZZLED).is_identity
    assert SWIZZLED.digits() == {
        "col": ((64, 1),),
        "row": ((2, (8, 64)), (2, (16, 128)), (2, (32, 256)), (12, 512)),
    }


def test_what_the_swizzle_costs_between_levels() -> None:
    warps = distribute(TILE, register=[("col", 8)], lane=[("col", 8), ("row", 4)], warp=[("row", 24)])
    memory = Box.of(x=64 * 96)
    swizzled, plain = SWIZZLED @ warps, reshape(TILE, memory) @ warps
    conversion = plain.inverse() @ swizzled
    assert preserves_blocks(conversion, "lane|warp")
    plan = exchange_plan(conversion)
    assert [plan.crossing(cut.cut) for cut in profile_of(conversion).cuts] == [0, 0, 0, 0]
    assert solve_conversion(plain, swizzled) @ plain == swizzled


def test_mixed_digits_beyond_enumeration_stay_exact() -> None:
    box = hierarchy(register=64, lane=32, warp=12, cta=45, cluster=2**24)
    low = reindex(box, ComposedLayout(Swizzle(3, 3, 3), 0, CuteLayout(2048)), ("register", "lane"))
    high = reindex(box, DigitMap.from_bits((*(1 << k for k in range(28)), 1 << 28 | 5)), ("lane", "cluster"))
    turned = reindex(box, CuteLayout((5, 9), (9, 1)), ("cta",))
    whole = turned @ high @ low
    assert box.size > 2**40
    assert isinstance(whole.map, DigitMap)
    assert (whole.inverse() @ whole).is_identity
    generator = random.Random(1)
    for _ in range(20):
        point = {name: generator.randrange(extent) for name, extent in box.axes}
        lane = point["lane"] ^ (5 if point["cluster"] >> 23 else 0)
        flat = (point["register"] + 64 * point["lane"]) ^ (point["lane"] % 8 << 3)
        expected = point | {"register": flat % 64, "lane": lane, "cta": point["cta"] // 5 + point["cta"] % 5 * 9}
        assert whole(**point) == expected
    assert la.parse(str(whole)) == whole
    assert profile_of(low).mechanism == "register"
    assert profile_of(high).at("lane|warp").moved == 0
    assert profile_of(high).at("register|lane").moved == box.size // 2
    assert not any(exchange_plan(high @ low).exchanged)


def test_forms_that_are_written_differently_are_one_value() -> None:
    assert DigitMap(((2, -1), (2, (1, 2)))) == DigitMap(((2, 1), (2, (2, 1))), (1,))
    assert DigitMap(((2, -1), (2, (1, 2)))).table().tolist() == [1, 0, 2, 3]
    assert DigitMap(((2, (1,)), (2, (2,))), (2,)) == DigitMap(((2, 1), (2, -2)))
    assert DigitMap(((2, (2,)), (3, 4), (2, (1,)))).is_plain
    # most breaks of the first digit are multiples of 4, the later ones only of 2
    late = DigitMap(((4, 1), (1024, -4), (2, (2, 4096))))
    assert maps.canonical(TableMap(tuple(late.table().tolist()))) == late


def test_digits_that_do_not_divide_a_cut_part_at_a_corner() -> None:
    box = hierarchy(register=2, lane=3, warp=2**40)
    layout = HierarchicalLayout(box, box, DigitMap(((3, 2), (2, 1), (2**40, 6))))
    verdict = preserves_blocks(layout, "register|lane")
    assert not verdict
    assert verdict.witness["first_image"] == {"register": 0, "lane": 0, "warp": 0, "cta": 0, "cluster": 0}
    assert verdict.witness["second_image"] == {"register": 0, "lane": 1, "warp": 0, "cta": 0, "cluster": 0}
    with pytest.raises(LayoutError, match="LA757 no conversion stays inside the blocks"):
        solve_conversion(reshape(box, box), layout, within="register|lane")


def test_functions_are_read_point_by_point() -> None:
    assert reindex(Box.of(x=6), lambda index: 5 - index).map == DigitMap(((6, -1),))
    with pytest.raises(MalformedError, match="must have a value at 3, not ZeroDivisionError"):
        reindex(Box.of(x=6), lambda index: index * (3 - index) // (3 - index))
    with pytest.raises(LayoutError, match="value 0 occurs twice"):
        reindex(Box.of(x=6), lambda index: index % 5)
    with pytest.raises(BudgetError, match="evaluating a function point by point"):
        reindex(Box.of(x=2**21), lambda index: index)


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda: DigitMap(((2, ()),)), "must have extent 2 and distinct weights, at least one, not (2, ())"),
        (lambda: DigitMap(((3, (1, 2)),)), "must have extent 2 and distinct weights, at least one, not (3, (1, 2))"),
        (lambda: DigitMap(((2, (1, 1)),)), "must have extent 2 and distinct weights, at least one, not (2, (1, 1))"),
        (lambda: DigitMap(((2, (1, 2)), (2, (1, 2)))), "the flips of shared bits are linearly dependent"),
        (lambda: DigitMap(((2, (1, 2)),)), "1 bits flip 2 shared bits"),
        (lambda: DigitMap(((3, 1), (2, (1, 2)))), "a digit overlaps one of the bits of weights [1, 2]"),
        (lambda: DigitMap(((2, 1), (2, (1, 4)))), "the next stride must be 2, not 4"),
        (lambda: DigitMap(((2, 1),), (1,)), "must be distinct and among the shared bits [], not (1,)"),
        (lambda: DigitMap(((2, 1), (2, (1, 2))), (1, 1)), "must be distinct and among the shared bits [1, 2]"),
        (lambda: DigitMap(((2, 1), (2, (1, 2))), [1]), "must be a tuple of weights, not [1]"),  # type: ignore[arg-type]
        (lambda: DigitMap(((10**5000, 1),)), "must be below 2**4096 in magnitude, not a number of 16610 bits"),
        (lambda: Box.of(x=2**4000, y=2**4000), "must have fewer than 2**4096 points"),
        (lambda: tile(7, {}), "box\n  since  must be a Box, not 7"),  # type: ignore[arg-type]
        (lambda: profile_of(None), "conversion\n  since  must be a HierarchicalLayout, not None"),  # type: ignore[arg-type]
        (lambda: reindex(Box.of(x=2), [0, 10**5000]), "must be below 2**4096 in magnitude"),
    ],
)
def test_refusals(call: Any, part: str) -> None:
    with pytest.raises(LayoutError) as caught:
        call()
    assert part in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "x 8:1 -> x_in:4, x_out:2 | x<5",
        "register 2:1, lane 32:2, warp 1:0, cta 1:0, cluster 1:0 -> x:64 | x<50",
        "[a:2, b:3] (3,2):(2,1) -> x:6",
        "[x:3] table 1,2,0 -> x:3",
        "[] 1:0 -> []",
        "[] 1:0 -> a:1",
        "a 1:0 -> []",
        "x (2,2):(1,2^1) ^ (2) -> y:4",
        "x 4:1 -> y:4 | x<2 where 4:-1 -> x:4",
        "x 6:1 -> y:6 | x<5 | a<1 where table 0,2,1,3,4,5 -> a:3, b:2",
    ],
)
def test_text_as_it_is_written(text: str) -> None:
    layout = la.parse(text)
    assert isinstance(layout, HierarchicalLayout)
    assert str(layout) == text
    assert la.parse(text.replace(" ", "  ")) == layout


@pytest.mark.parametrize(
    ("text", "code", "position", "because"),
    [
        ("x 8:1", "LA761", 5, "expected ->, found 'the end'"),
        ("x 8:1 ->", "LA761", 8, "expected an axis, found 'the end'"),
        ("x 8:1 -> y", "LA761", 10, "expected :, found 'the end'"),
        ("x (2,4):1 -> y:8", "LA761", 2, "expected as many extents as strides, not 2 and 1"),
        ("x (2,4):(1;2) -> y:8", "LA761", 10, "expected a name, a number or one of"),
        ("x 8:1 -> y:8 y", "LA761", 13, "expected | or the end, found 'y'"),
        ("x 8:1 -> y:8 | z<1", "LA761", 15, "expected axes of the source (x:8) or of the target (y:8)"),
        ("x 8:1 -> y:8 | x<1 and x<2", "LA761", 23, "expected one bound of x"),
        ("x 8:1 -> y:8 | x<1 where 8:1 -> y:8", "LA761", 15, "expected axes among ['y']"),
        ("x 8:1 -> y:8 | x<9", "LA750", 15, "must be in [0, 9), not 9; written at character 15"),
        ("x 8:1 -> y:9", "LA750", 0, "must have the 8 points of the source"),
        ("x 8:2 -> y:8", "LA752", 0, "the next stride must be 1, not 2; written at character 0"),
        ("x 4:1, x 2:4 -> y:8", "LA750", 0, "must not repeat an earlier name"),
        ("[x:3] table 1,0 -> x:3", "LA750", 0, "must have the 3 points of the source"),
        ("[x:3] table 1,1,0 -> x:3", "LA752", 6, "value 1 occurs twice"),
        ("[x:3] table 1,2,... -> x:3", "LA762", 16, "it has only the first 2 values; use repr or pickle"),
        ("x 8:1 -> y:" + "9" * 4001, "LA761", 11, "expected an extent"),
    ],
)
def test_malformed_text_names_the_place(text: str, code: str, position: int, because: str) -> None:
    with pytest.raises(LayoutError) as caught:
        la.parse(text)
    diagnostic = caught.value.diagnostic
    assert (diagnostic.code, diagnostic.witness["position"]) == (code, position)
    assert because in diagnostic.because


def test_names_are_identifiers_whatever_their_letters() -> None:
    grammar = Grammar(("=",), False, "LA000", "bad")
    text = "e\u0301 = a·b ℘ x1"
    assert [item[1] for item in Tokens(text, grammar).items] == ["e\u0301", "=", "a·b", "℘", "x1"]
    for damaged in ("a²", "·a", "a\u200b"):
        with pytest.raises(MalformedError, match="LA000"):
            Tokens(damaged, grammar)
