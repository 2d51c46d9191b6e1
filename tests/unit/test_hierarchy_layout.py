"""Hierarchical layouts: worked values, refusals and their messages, sizes beyond enumeration."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from layoutalg import f2
from layoutalg.cute import CuteLayout
from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import AdmissibilityError, BudgetError, LayoutError, MalformedError
from layoutalg.hierarchy import (
    Box,
    DigitMap,
    Guard,
    HierarchicalLayout,
    TableMap,
    distribute,
    hierarchy,
    permute,
    reindex,
    reshape,
    restrict,
    solve_conversion,
    tile,
)
from layoutalg.hierarchy import bijection as maps
from layoutalg.hierarchy.levels import block_size
from layoutalg.integer import IntegerLayout
from layoutalg.piecewise import PiecewiseLayout


def test_levels_come_in_one_order_whatever_the_order_of_the_arguments() -> None:
    box = hierarchy(register=8, cluster=2, warp=4, lane=32)
    assert box.names == ("register", "lane", "warp", "cta", "cluster")
    assert block_size(box, "warp|cta") == 1024
    assert box.is_hierarchy
    assert not Box.of(lane=4, register=2).is_hierarchy


def test_a_chain_from_elements_to_bricks_to_levels() -> None:
    tensor = Box.of(x=8, y=8, z=8)
    bricks = tile(tensor, {"x": 4, "y": 4, "z": 4})
    levels = hierarchy(warp=8, lane=16, register=4)
    owner = reshape(bricks.target, levels) @ bricks
    assert owner(x=5, y=0, z=1) == {"register": 1, "lane": 4, "warp": 1, "cta": 0, "cluster": 0}
    back = owner.inverse()
    assert (owner @ back).is_identity
    assert back(register=1, lane=4, warp=1, cta=0, cluster=0) == {"x": 5, "y": 0, "z": 1}


def test_equal_functions_are_equal_values_whatever_they_were_built_from() -> None:
    box = Box.of(x=8)
    columns = LinearLayout.from_bases({"i": [(4,), (1,), (2,)]}, {"o": 8})
    table = columns.table()
    cute = CuteLayout((2, 4), (4, 1))
    forms = [reindex(box, mapping) for mapping in (columns, table, table.tolist(), tuple(table.tolist()), cute)]
    assert len(set(forms)) == 1
    assert forms[0].map == DigitMap(((2, 4), (4, 1)))


def test_bijections_are_read_from_layouts_of_every_family() -> None:
    box = Box.of(x=6)
    wanted = [0, 3, 1, 4, 2, 5]
    turned = reshape(Box.of(i=2, j=3), box) @ permute(Box.of(j=3, i=2), ("i", "j"))
    for layout in (
        CuteLayout((2, 3), (3, 1)),
        IntegerLayout.from_strides({"i": 2, "j": 3}, (3, 1)),
        turned.inverse(),
        PiecewiseLayout("{ [i, j] -> [3i + j] : 0 <= i < 2 and 0 <= j < 3 }"),
    ):
        assert reindex(box, layout).table().tolist() == wanted, layout
    with pytest.raises(AdmissibilityError, match="LA752"):
        reindex(box, IntegerLayout.from_strides({"i": 2, "j": 3}, (3, 2)))
    with pytest.raises(LayoutError, match="must have integer values"):
        reindex(box, PiecewiseLayout("{ [i] -> [i, i] : 0 <= i < 6 }"))


def test_a_swizzle_stays_on_bits_and_a_rotation_by_three_becomes_a_table() -> None:
    swizzled = reindex(Box.of(x=16), [i ^ (i >> 2 & 3) for i in range(16)])
    assert swizzled.map == DigitMap(((4, 1), (2, (1, 4)), (2, (2, 8))))
    assert swizzled.map == DigitMap.from_bits((1, 2, 5, 10))
    assert str(swizzled) == "x (4,2,2):(1,4^1,8^2) -> x:16"
    rotated = reindex(Box.of(x=3), [1, 2, 0])
    assert rotated.map == TableMap((1, 2, 0))
    assert str(rotated) == "[x:3] table 1,2,0 -> x:3"


def test_digits_that_straddle_two_axes_print_without_axes() -> None:
    layout = HierarchicalLayout(Box.of(a=2, b=3), Box.of(x=6), DigitMap(((3, 2), (2, 1))))
    assert layout.digits() is None
    assert str(layout) == "[a:2, b:3] (3,2):(2,1) -> x:6"
    whole = HierarchicalLayout(Box.of(a=3, b=2), Box.of(x=6), DigitMap(((3, 2), (2, -1))))
    assert whole.digits() == {"a": ((3, 2),), "b": ((2, -1),)}
    assert str(whole) == "a 3:2, b 2:-1 -> x:6"


def test_sizes_far_beyond_enumeration_stay_exact() -> None:
    box = hierarchy(cluster=1000, cta=3, warp=2**40, lane=27, register=2**30)
    turned = permute(box, ("lane", "cluster", "register", "warp", "cta"))
    back = turned.inverse()
    assert (back @ turned).is_identity
    point = {"cluster": 999, "cta": 2, "warp": 2**39 + 7, "lane": 26, "register": 2**30 - 1}
    assert back(**turned(**point)) == point == turned(**point)
    wide = HierarchicalLayout(
        Box.of(x=2**80), Box.of(x=2**80), DigitMap.from_bits(tuple(1 << (80 - 1 - k) for k in range(80)), 5)
    )
    assert (wide @ wide.inverse()).is_identity
    with pytest.raises(BudgetError, match="LA754"):
        wide.table()
    with pytest.raises(MalformedError, match=r"at most 2\*\*62"):
        wide.apply([0])


def test_digits_without_common_boundaries_need_a_table_or_are_refused() -> None:
    inner = DigitMap(((2, 3), (3, 1)))
    outer = DigitMap(((2, 3), (3, 1)))
    expected = [outer.table()[value] for value in inner.table()]
    assert maps.compose(outer, inner).table().tolist() == expected
    big = 2**20
    with pytest.raises(BudgetError, match="LA754"):
        maps.compose(DigitMap(((2, 3), (3, 1), (big, 6))), DigitMap(((2, 3), (3, 1), (big, -6))))


def test_a_table_inside_a_large_box_is_refused_not_guessed() -> None:
    with pytest.raises(BudgetError, match="points, the limit is 1048576"):
        reindex(Box.of(lane=3, register=2**20), [1, 2, 0], ("lane",))
    swizzled = reindex(Box.of(lane=4, register=3 * 2**20), [1, 0, 3, 2], ("lane",))
    assert swizzled(lane=2, register=7) == {"lane": 3, "register": 7}


def test_a_partial_tile_says_where_it_ends() -> None:
    layout = distribute(Box.of(x=50), register=[("x", 2)], lane=[("x", 32)])
    assert str(layout) == "register 2:1, lane 32:2, warp 1:0, cta 1:0, cluster 1:0 -> x:64 | x<50"
    with pytest.raises(AdmissibilityError) as caught:
        layout(register=0, lane=25, warp=0, cta=0, cluster=0)
    assert str(caught.value) == (
        "LA753 the point is outside the partial tile\n"
        "  in     register 2:1, lane 32:2, warp 1:0, cta 1:0, cluster 1:0 -> x:64 | x<50\n"
        "  since  it maps to {'x': 50}, the bounds are {'x': 50}\n"
        "  at     register=0, lane=25, warp=0, cta=0, cluster=0"
    )
    assert layout.apply(np.array([49, 50])).tolist() == [49, -1]


def test_guards_that_always_hold_vanish_and_guards_of_one_map_join() -> None:
    whole = reindex(Box.of(x=6), [3, 4, 5, 0, 1, 2])
    assert restrict(whole, source={"x": 6}) == whole
    assert restrict(restrict(whole, target={"x": 4}), target={"x": 5}) == restrict(whole, target={"x": 4})
    assert restrict(whole, target={"x": 0}).active() == 0


def test_solving_with_different_guards_is_refused_at_a_point() -> None:
    layout = reindex(Box.of(x=4), [1, 0, 3, 2])
    short = restrict(layout, source={"x": 3})
    with pytest.raises(AdmissibilityError, match="one side is defined at a point where the other is not") as caught:
        solve_conversion(short, layout)
    assert caught.value.diagnostic.witness == {"x": 3}
    assert solve_conversion(short, short).table().tolist() == [0, 1, -1, 3]


def test_values_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Box.of(x=3).axes = ()  # type: ignore[misc]


def test_a_single_name_a_range_and_an_empty_list_are_accepted() -> None:
    box = Box.of(self=2, cls=3)
    assert permute(X3, "x") == reshape(X3, X3)
    assert reindex(box, range(2, -1, -1), "cls") == reindex(box, [2, 1, 0], ("cls",))
    assert reindex(X3, range(2, -1, -1)).map == DigitMap(((3, -1),))
    assert reindex(X3, range(3)).is_identity
    for empty in ([], (), np.array([], dtype=np.int64)):
        assert reshape(X3, X3).apply(empty).tolist() == []
    assert reshape(box, box)(self=1, cls=2) == {"self": 1, "cls": 2}


def test_numpy_integers_are_integers() -> None:
    assert Box.of(x=np.int64(3)) == Box.of(x=3)  # type: ignore[arg-type]
    assert reindex(Box.of(x=3), [np.int32(2), 1, 0]).map == DigitMap(((3, -1),))


X3 = Box.of(x=3)
LINEAR = LinearLayout.from_bases({"i": [(1,), (1,)]}, {"o": 4})


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda: Box(3), "must be a mapping or a sequence of (name, entry) pairs, not 3"),  # type: ignore[arg-type]
        (lambda: Box((("x", 0),)), "axes['x']\n  since  must be at least 1, not 0"),
        (lambda: X3.point(3), "must be in [0, 3), not 3"),
        (lambda: X3.stride("y"), "must be among ['x'], not 'y'"),
        (lambda: block_size(X3, "lane|warp"), "must have the axes ['register', 'lane', 'warp', 'cta', 'cluster']"),
        (lambda: block_size(hierarchy(), "lane"), "must be among ['register|lane', 'lane|warp'"),
        (lambda: DigitMap(((2, 1), (2, 1))), "the next stride must be 2, not 1"),
        (lambda: DigitMap([(2, 1)]), "must be a tuple of (extent, stride) pairs"),  # type: ignore[arg-type]
        (lambda: DigitMap.from_bits((1, 1)), "2 bits, but only rank 1"),
        (lambda: DigitMap.from_bits((1, 4)), "columns[1]\n  since  must be in [0, 4), not 4"),
        (lambda: TableMap(()), "must not be empty"),
        (lambda: TableMap((0, 0)), "value 0 occurs twice"),
        (lambda: TableMap((0, 2)), "value 2 is not in [0, 2)"),
        (lambda: reindex(X3, [0, 1]), "2 points, but the box has 3"),
        (lambda: reindex(X3, np.zeros((3, 1), dtype=int)), "must be a one-dimensional array, not array([[0]"),
        (lambda: reindex(X3, "012"), "must be a layout, a function or a sequence of values, not '012'"),
        (lambda: reindex(X3, CuteLayout(3, 2)), "the next stride must be 1, not 2"),
        (lambda: reindex(Box.of(x=4), LINEAR), "2 bits, but only rank 1"),
        (lambda: HierarchicalLayout(X3, Box.of(y=2), DigitMap(((3, 1),))), "must have the 3 points of the source"),
        (lambda: HierarchicalLayout(X3, X3, DigitMap(((2, 1),))), "map\n  since  must have the 3 points"),
        (lambda: HierarchicalLayout(X3, X3, [0, 1, 2]), "must be a DigitMap or a TableMap"),  # type: ignore[arg-type]
        (lambda: Guard(DigitMap(((3, 1),)), X3, (4,)), "bounds['x']\n  since  must be in [0, 4), not 4"),
        (lambda: reshape(X3, Box.of(y=4)), "must have the 3 points of the source, not 'y:4 with 4'"),
        (lambda: permute(X3, ("y",)), "must be a permutation of ['x'], not ('y',)"),
        (lambda: tile(X3, {"y": 2}), "must map axes among ['x'] to extents"),
        (lambda: tile(X3, {"x": 0}), "tiles['x']\n  since  must be at least 1, not 0"),
        (lambda: tile(X3, {"x": 2}, inner=("y",)), "inner\n  since  must be a permutation of ['x']"),
        (lambda: reindex(X3, [0], ("x", "x")), "must be distinct names among ['x']"),
        (
            lambda: distribute(X3, thread=[("x", 3)]),
            "must be among ['cluster', 'cta', 'warp', 'lane', 'register'], not 'thread'",
        ),
        (lambda: distribute(X3, lane=[("y", 3)]), "must be (axis, extent) pairs with axes among ['x']"),
        (lambda: distribute(X3, lane=[("x", 2)]), "axis x has 3 elements, the levels cover 2"),
        (lambda: restrict(reshape(X3, X3), source={"x": 4}), "source['x']\n  since  must be in [0, 4), not 4"),
        (lambda: restrict(reshape(X3, X3), target={"y": 1}), "must map axes among ['x'] to bounds"),
        (lambda: reshape(X3, X3).apply([3]), "must be in [0, 3), not 3"),
        (lambda: reshape(X3, X3).map.at(3), "index\n  since  must be in [0, 3), not 3"),
        (lambda: reindex(X3, range(10**30, 0, -3)), f"{10**30 // 3 + 1} points, but the box has 3"),
        (lambda: solve_conversion(reshape(X3, X3), reshape(X3, X3), within="q"), "within\n  since  must be among"),
        (
            lambda: reshape(X3, Box.of(y=3)) @ reshape(X3, X3).then(reshape(X3, Box.of(z=3))),
            "the inner layout maps to (z:3)",
        ),
        (
            lambda: solve_conversion(reshape(X3, X3), reshape(Box.of(y=3), X3)),
            "one maps from (x:3), the other from (y:3)",
        ),
        (lambda: f2.solve_outer(LINEAR, LinearLayout.identity({"i": 2})), "the input axes are {'i': 4}"),
        (lambda: f2.solve_outer(LINEAR, LinearLayout.identity({"i": 4})), "two inputs share a value in the inner"),
    ],
)
def test_refusals_name_argument_rule_and_value(call: Any, part: str) -> None:
    with pytest.raises(LayoutError) as caught:
        call()
    assert part in str(caught.value)
