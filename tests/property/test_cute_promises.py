"""Operations on swizzled layouts and layouts at offsets, against enumeration."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from layoutalg import cute
from layoutalg.bridges.equal import equivalent
from layoutalg.cute import Basis, ComposedLayout, CoordinateLayout, CuteLayout, Swizzle, shift
from layoutalg.cute.coordinates import leaf_paths
from layoutalg.cute.inttuple import flatten, graft
from layoutalg.ground.errors import AdmissibilityError, BudgetError, LayoutError, RepresentabilityError
from layoutalg.notation import parse
from layoutalg.testing.strategies import composed_layouts, cute_layouts, swizzles


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


@pytest.mark.parametrize("seed", range(2))
def test_random_operands_of_every_kind(seed: int) -> None:
    """Products, divides and compositions of all kinds of operands: values by enumeration, or a refusal."""
    generator = random.Random(seed)
    answered = sum(hunt(generator) for _ in range(150))
    assert answered > 150


def hunt(generator: random.Random) -> int:
    """Try every operation on one random pair; return how many answered."""
    outer, inner = operand(generator), plain_layout(generator)
    answered = 0
    for name in OPERATIONS:
        try:
            answer = getattr(cute, name)(outer, inner)
        except LayoutError:
            continue
        answered += 1
        table = values(answer)
        assert answer.table().tolist() == table
        assert table == OPERATIONS[name](outer, inner, table), (name, str(outer), str(inner), str(answer))
    for first, second in ((inner, outer), (outer, operand(generator))):
        try:
            answer = cute.composition(first, second)
        except LayoutError:
            continue
        answered += 1
        assert values(answer) == [values(first)[value] for value in values(second)]
    return answered


def plain_layout(generator: random.Random) -> CuteLayout:
    count = generator.randint(1, 3)
    shape = tuple(generator.choice((1, 2, 2, 3, 4, 4, 6, 8)) for _ in range(count))
    stride = [0]
    if generator.random() < 0.6:
        stride, current = [], generator.choice((1, 1, 2, 3))
        for extent in shape:
            stride.append(generator.choice((current, current, current, 0)))
            current *= extent * generator.choice((1, 1, 1, 2))
        if generator.random() < 0.2:
            place = generator.randrange(count)
            stride[place] = -stride[place]
    else:
        stride = [generator.randint(-6, 20) for _ in shape]
    if count == 1 and generator.random() < 0.7:
        return CuteLayout(shape[0], stride[0])
    if count == 3 and generator.random() < 0.4:
        return CuteLayout((shape[0], shape[1:]), (stride[0], tuple(stride[1:])))
    return CuteLayout(shape, tuple(stride))


def operand(generator: random.Random) -> Any:
    layout = plain_layout(generator)
    kind = generator.random()
    if kind < 0.4:
        return layout
    if kind < 0.6:
        return shift(layout, generator.randint(-9, 30))
    bits = generator.randint(0, 2)
    distance = (bits + generator.randint(0, 2)) * generator.choice((1, 1, -1))
    inner = layout if kind < 0.9 else shift(layout, generator.randint(0, 9))
    return ComposedLayout(Swizzle(bits, generator.randint(0, 3), distance), generator.choice((0, 0, 3, 8)), inner)


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
    while isinstance(outer, ComposedLayout):
        chain = []
        layer: Any = outer
        while isinstance(layer, ComposedLayout):
            chain.append((layer.outer, layer.offset))
            layer = layer.inner
        for swizzle, offset in reversed(chain):
            numbers = [swizzled(swizzle, number + offset) for number in numbers]
        break
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


@pytest.mark.parametrize("seed", range(2))
def test_inverses_and_recasts_of_every_kind(seed: int) -> None:
    generator = random.Random(seed)
    answered: Counter[str] = Counter()
    for _ in range(250):
        layout, other, factor = operand(generator), plain_layout(generator), generator.choice((2, 3, 4))
        table = values(layout)
        for name in ("right_inverse", "left_inverse"):
            try:
                back = values(getattr(cute, name)(layout))
            except LayoutError:
                continue
            answered[name] += 1
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
            answered[name] += 1
            wide, narrow = (recast, table) if name == "upcast" else (table, recast)
            assert Counter(narrow) == Counter(factor * value + step for value in wide for step in range(factor))
        if isinstance(layout, CuteLayout):
            common = values(cute.max_common_layout(layout, other))
            assert [table[place] for place in common] == list(range(len(common))) == [values(other)[x] for x in common]
        assert cute.cosize(layout) == 1 + max(table) - min(table)
    assert min(answered[name] for name in ("right_inverse", "left_inverse", "upcast", "downcast")) > 5


@st.composite
def coordinate_layouts(draw: st.DrawFn) -> CoordinateLayout:
    shape = draw(cute_layouts()).shape
    profile = draw(cute_layouts(max_leaves=3)).shape
    paths = leaf_paths(profile, ())
    leaves = [
        Basis(tuple(draw(st.lists(st.tuples(st.sampled_from(paths), st.integers(-9, 9)), max_size=3))))
        for _ in flatten(shape)
    ]
    return CoordinateLayout(shape, graft(iter(leaves), shape), draw(st.sampled_from([profile])))


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
