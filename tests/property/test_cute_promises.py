"""Operations on swizzled layouts and layouts at offsets, against enumeration."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from layoutalg import cute
from layoutalg.bridges.equal import equivalent
from layoutalg.cute import ComposedLayout, CoordinateLayout, CuteLayout, Swizzle, shift
from layoutalg.ground.errors import AdmissibilityError, BudgetError, LayoutError, RepresentabilityError
from layoutalg.notation import parse
from layoutalg.testing.strategies import composed_layouts, coordinate_layouts, cute_layouts, swizzles


def values(layout: Any) -> list[int]:
    """The values over the 1-D coordinates, by Python integers and from the fields alone."""
    if isinstance(layout, ComposedLayout):
        return [swizzled(layout.outer, layout.offset + value) for value in values(layout.inner)]
    table = [0]
    for extent, stride in layout.flat:
        table = [base + digit * stride for digit in range(extent) for base in table]
    return table


def swizzled(swizzle: Swizzle, number: int) -> int:
    moved = number & ((1 << swizzle.bits) - 1) << (swizzle.base + max(0, swizzle.shift))
    return number ^ (moved >> swizzle.shift if swizzle.shift >= 0 else moved << -swizzle.shift)


def test_a_tile_whose_swizzle_leads_out_of_the_shape() -> None:
    tile = ComposedLayout(Swizzle(1, 1, 1), 0, CuteLayout(2))
    with pytest.raises(AdmissibilityError, match="LA193") as caught:
        cute.tile_to_shape(tile, (6,))
    assert caught.value.diagnostic.witness == {"size": 6, "coordinate": 4, "value": 6}
    assert sorted(cute.tile_to_shape(tile, (8,)).table().tolist()) == list(range(8))


@settings(max_examples=180, deadline=None)
@given(st.data())
def test_a_bijective_tile_stays_bijective_or_is_refused(data: st.DataObject) -> None:
    extents = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=2))
    order = data.draw(st.permutations(range(len(extents))))
    tile: Any = cute.make_ordered_layout(tuple(extents), tuple(order))
    for _ in range(data.draw(st.integers(0, 2))):
        tile = ComposedLayout(data.draw(swizzles()), data.draw(st.sampled_from([0, 0, 0, 4])), tile)
    shape = tuple(extent * data.draw(st.integers(1, 5)) for extent in extents)
    onto = sorted(values(tile)) == list(range(tile.size))
    bottom = tile.base if isinstance(tile, ComposedLayout) else tile
    wide: Any = cute.tile_to_shape(bottom, shape)
    wide = tile.rebase(wide) if isinstance(tile, ComposedLayout) else wide
    try:
        answer = cute.tile_to_shape(tile, shape)
    except AdmissibilityError as error:
        assert error.diagnostic.code == "LA193"
        witness = error.diagnostic.witness
        assert witness is not None
        assert onto
        assert values(wide)[witness["coordinate"]] == witness["value"]  # type: ignore[index]
        assert witness["value"] not in range(wide.size)  # type: ignore[comparison-overlap]
        return
    assert answer == wide
    assert not onto or sorted(values(answer)) == list(range(answer.size))
    block = values(tile)
    inside = [
        place for place in range(answer.size) if all(c < e for c, e in zip(digits(place, shape), extents, strict=True))
    ]
    assert [values(answer)[place] for place in inside] == block  # the first copy is the tile


def digits(index: int, shape: tuple[int, ...]) -> list[int]:
    found = []
    for extent in shape:
        index, digit = divmod(index, extent)
        found.append(digit)
    return found


@settings(max_examples=200, deadline=None)
@given(composed_layouts() | st.builds(shift, cute_layouts(), st.integers(-40, 40)), st.data())
def test_rearrangements_keep_the_values(layout: Any, data: st.DataObject) -> None:
    table = values(layout)
    assert layout.table().tolist() == layout.apply(np.arange(layout.size)).tolist() == table
    profile = 0 if isinstance(layout.shape, int) else (0,) * layout.rank
    for same in (cute.coalesce(layout), cute.flatten(layout), cute.coalesce(layout, profile)):
        assert values(same) == table
    for fewer in (cute.filter(layout), cute.filter_zeros(layout)):
        assert set(values(fewer)) == set(table)
    start = tuple([data.draw(st.integers(0, mode.size - 1)) for mode in layout]) or 0
    shifted = cute.domain_offset(start if isinstance(layout.shape, tuple) else start[0], layout)  # type: ignore[index]
    assert shifted(0) == layout(*start)  # type: ignore[misc]
    assert type(shifted) is type(layout)
    kept = tuple([None if data.draw(st.booleans()) else digit for digit in start])  # type: ignore[union-attr]
    if isinstance(layout.shape, tuple) and kept:
        part = cute.slice_and_offset(kept, layout)
        point = tuple([0 if digit is None else digit for digit in kept])
        assert part(0) == layout(*point)
        assert set(values(part)) <= set(table)


@settings(max_examples=70, deadline=None)
@given(composed_layouts())
def test_alignment_is_the_widest_exact_upcast(layout: ComposedLayout) -> None:
    best = cute.max_alignment(layout)
    cute.upcast(layout, best)
    table = values(layout)
    if best > 1:
        counted = Counter(table)
        assert all(counted[value // best * best + step] == counted[value] for value in table for step in range(best))
    for factor in range(best + 1, 3 * best + 18):
        with pytest.raises(LayoutError):
            cute.upcast(layout, factor)


@settings(max_examples=80, deadline=None)
@given(cute_layouts(max_leaves=3), cute_layouts(max_leaves=2, max_extent=4))
def test_blocked_and_raked_products_have_the_offsets_of_the_product(block: CuteLayout, tiler: CuteLayout) -> None:
    try:
        plain = cute.logical_product(block, tiler)
    except LayoutError:
        return
    for operation in (cute.blocked_product, cute.raked_product):
        zipped = operation(block, tiler)
        assert zipped.rank == max(block.rank, tiler.rank)
        assert Counter(values(zipped)) == Counter(values(plain))


def test_products_whose_copies_need_a_refined_mode() -> None:
    assert str(cute.blocked_product(parse("4:2"), 4)) == "((4,(2,2))):((2,(1,8)))"
    assert str(cute.raked_product(parse("(4):(2)"), 8)) == "(((2,4),4)):(((1,8),2))"


SHIFTED = st.builds(shift, cute_layouts(), st.integers(-9, 30))
OPERANDS = cute_layouts(max_leaves=3) | SHIFTED | composed_layouts(max_stages=2)
INNER = cute_layouts(max_leaves=3, injective=True) | cute_layouts(max_leaves=3)


@settings(max_examples=300, deadline=None)
@given(OPERANDS, OPERANDS, INNER)
def test_operands_of_every_kind(outer: Any, other: Any, inner: CuteLayout) -> None:
    """Products, divides and compositions of all kinds of operands: values by enumeration, or a refusal."""
    for name in OPERATIONS:
        try:
            answer = getattr(cute, name)(outer, inner)
        except LayoutError:
            continue
        table = values(answer)
        assert answer.table().tolist() == table
        assert table == OPERATIONS[name](outer, inner, table), (name, str(outer), str(inner), str(answer))
    for first, second in ((inner, outer), (outer, other)):
        try:
            answer = cute.composition(first, second)
        except LayoutError:
            continue
        assert values(answer) == [values(first)[value] for value in values(second)]


def composed(outer: Any, inner: CuteLayout, _: list[int]) -> list[int]:
    return [values(outer)[value] for value in values(inner)]


def divided(outer: Any, inner: CuteLayout, _: list[int]) -> list[int]:
    """The values of ``outer`` at (tile, starts of its copies), the copies placed where they first fit."""
    table = values(outer)
    moving = [mode for mode in inner.flat if mode[1]] or [(1, 0)]
    tile = values(CuteLayout(tuple([extent for extent, _ in moving]), tuple([stride for _, stride in moving])))
    covered: set[int] = set()
    starts = []
    for place in range(len(table)):
        if place not in covered:
            fresh = {place + value for value in tile}
            assert not fresh & covered
            assert max(fresh) < len(table)
            covered |= fresh
            starts.append(place)
    return [table[start + value] for start in starts for value in values(inner)]


def multiplied(outer: Any, inner: CuteLayout, _: list[int]) -> list[int]:
    """The block at each start, the starts being where copies of it first fit; all under the swizzles."""
    base = outer.base if isinstance(outer, ComposedLayout) else outer
    own = sorted(set(values(base)))
    wanted = max(values(inner), default=0) + 1
    covered: set[int] = set()
    starts: list[int] = []
    place = 0
    while len(starts) < wanted:
        if place not in covered:
            fresh = {place + value for value in own}
            assert not fresh & covered
            covered |= fresh
            starts.append(place)
        place += 1
    numbers = [starts[copy] + value for copy in values(inner) for value in values(base)]
    for swizzle, offset in reversed(outer.stages if isinstance(outer, ComposedLayout) else ()):
        numbers = [swizzled(swizzle, number + offset) for number in numbers]
    return numbers


OPERATIONS = {"composition": composed, "logical_divide": divided, "logical_product": multiplied}


@settings(max_examples=100, deadline=None)
@given(cute_layouts(), st.integers(-50, 50))
def test_a_layout_at_an_offset_is_taken_everywhere(layout: CuteLayout, offset: int) -> None:
    moved = shift(layout, offset)
    assert parse(str(moved)) == moved
    assert eval(repr(moved), vars(cute)) == moved
    assert equivalent(moved, ComposedLayout(Swizzle(0, 0, 0), offset, layout))
    assert bool(equivalent(moved, layout)) == (offset == 0)
    assert cute.cosize(moved) == cute.cosize(layout)
    assert moved.inner == moved.base == layout
    assert moved.rebase(CuteLayout(2, 3), 1) == shift(CuteLayout(2, 3), offset + 1)
    low = min(values(moved))
    assume(low >= 0)
    wide = CuteLayout((max(values(moved)) + 1, 2), (2, 1))
    try:
        answer = cute.composition(wide, moved)
    except (RepresentabilityError, BudgetError):
        return
    assert values(answer) == [values(wide)[value] for value in values(moved)]


@settings(max_examples=400, deadline=None)
@given(OPERANDS | INNER, INNER, st.sampled_from([2, 3, 4]))
def test_inverses_and_recasts_of_every_kind(layout: Any, other: CuteLayout, factor: int) -> None:
    table = values(layout)
    for name in ("right_inverse", "left_inverse"):
        try:
            back = values(getattr(cute, name)(layout))
        except LayoutError:
            continue
        if name == "right_inverse":
            assert [table[place] for place in back] == list(range(len(back)))
        else:
            assert [table[back[value]] for value in table] == table
            assert len(set(table)) < len(table) or [back[value] for value in table] == list(range(len(table)))
    for name in ("upcast", "downcast"):
        try:
            recast = values(getattr(cute, name)(layout, factor))
        except LayoutError:
            continue
        wide, narrow = (recast, table) if name == "upcast" else (table, recast)
        assert Counter(narrow) == Counter(factor * value + step for value in wide for step in range(factor))
    if isinstance(layout, CuteLayout):
        common = values(cute.max_common_layout(layout, other))
        assert [table[place] for place in common] == list(range(len(common))) == [values(other)[x] for x in common]
    assert cute.cosize(layout) == 1 + max(table) - min(table)


@settings(max_examples=200, deadline=None)
@given(coordinate_layouts())
def test_coordinate_layouts_are_read_back(layout: CoordinateLayout) -> None:
    assert parse(str(layout)) == layout
    assert eval(repr(layout), vars(cute)) == layout


@settings(max_examples=200, deadline=None)
@given(composed_layouts(), st.integers(-40, 40), swizzles())
def test_stacks_over_offsets_are_read_back(layout: ComposedLayout, offset: int, swizzle: Swizzle) -> None:
    for value in (
        layout,
        ComposedLayout(swizzle, offset, layout),
        ComposedLayout(swizzle, 3, shift(layout.base, offset)),
    ):
        assert parse(str(value)) == value
