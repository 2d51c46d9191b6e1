"""Digits with mixed bits against enumeration: one normal form per function, algebra, levels, plans, text."""

from __future__ import annotations

import pickle
import random
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import layoutalg as la
from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.f2 import matrix
from layoutalg.ground.errors import LayoutError, RepresentabilityError
from layoutalg.hierarchy import (
    CUTS,
    Box,
    DigitMap,
    Guard,
    HierarchicalLayout,
    TableMap,
    exchange_plan,
    hierarchy,
    profile_of,
    reindex,
)
from layoutalg.hierarchy import bijection as maps
from layoutalg.hierarchy.blocks import crossing_witness, moved_point
from layoutalg.hierarchy.build import unswizzled
from layoutalg.hierarchy.notation import parse_hierarchical
from layoutalg.hierarchy.profile import counts_by_digits, counts_of_table

Case = tuple[DigitMap, list[int]]


EXTENTS = st.lists(st.sampled_from((2, 2, 2, 2, 3, 5, 4, 6, 1)), max_size=6).filter(lambda e: prod(e) <= 100)
RANDOM = st.randoms(use_true_random=False)


@st.composite
def mixed(draw: st.DrawFn, extents: list[int] | None = None) -> Case:
    """A digit map built from a reindex, a product of row operations and flips, with the values of those."""
    extents, rng = draw(EXTENTS) if extents is None else extents, draw(RANDOM)
    places = list(range(len(extents)))
    weight, weights = 1, dict[int, int]()
    for digit in rng.sample(places, len(places)):
        weights[digit] = weight
        weight *= extents[digit]
    bits = [digit for digit in places if extents[digit] == 2 and rng.random() < 0.85]
    columns = [1 << k for k in rng.sample(range(len(bits)), len(bits))]
    for _ in range(rng.randrange(2 * len(bits)) if len(bits) > 1 else 0):
        first, second = rng.sample(range(len(bits)), 2)
        columns[first] ^= columns[second]
    flipped = [digit for digit in bits if rng.random() < 0.3]
    reversed_ = [digit for digit in places if digit not in bits and rng.random() < 0.3]
    modes: list[tuple[int, int | tuple[int, ...]]] = []
    for digit in places:
        if digit in bits:
            column = columns[bits.index(digit)]
            modes.append((2, tuple(weights[bit] for k, bit in enumerate(bits) if column >> k & 1)))
        else:
            modes.append((extents[digit], -weights[digit] if digit in reversed_ else weights[digit]))
    values = []
    for index in range(weight):
        value, parity = 0, 0
        for digit in places:
            index, coordinate = divmod(index, extents[digit])
            if digit in bits:
                parity ^= columns[bits.index(digit)] * coordinate
            else:
                value += weights[digit] * (extents[digit] - 1 - coordinate if digit in reversed_ else coordinate)
        for k, digit in enumerate(bits):
            value += weights[digit] * (parity >> k & 1 ^ (digit in flipped))
        values.append(value)
    return DigitMap(tuple(modes), tuple(weights[digit] for digit in flipped)), values


def divisors(number: int) -> list[int]:
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]


@settings(deadline=None)
@given(mixed(), st.integers(1, 3), st.integers(1, 3))
def test_values_and_the_one_normal_form(case: Case, low: int, high: int) -> None:
    mapping, values = case
    assert [mapping.at(index) for index in range(len(values))] == values
    assert mapping.apply(np.arange(len(values))).tolist() == mapping.table().tolist() == values
    assert maps.canonical(TableMap(tuple(values))) == mapping
    assert DigitMap(mapping.modes, mapping.flips) == mapping
    assert DigitMap(mapping.pieces(), mapping.flips) == mapping
    assert eval(repr(mapping)) == mapping == pickle.loads(pickle.dumps(mapping))
    back = np.argsort(values).tolist()
    assert maps.inverse(mapping) == maps.canonical(TableMap(tuple(back)))
    assert maps.inverse(mapping).table().tolist() == back
    if len(values) & (len(values) - 1) == 0:
        assert DigitMap.from_bits(mapping.columns, mapping.offset) == mapping
        for index, value in enumerate(values):
            assert matrix.apply(mapping.columns, index) ^ mapping.offset == value
    local, size = maps.local(mapping, low, high), len(values)
    assert local.table().tolist() == [
        x % low + low * values[x // low % size] + low * size * (x // low // size) for x in range(low * size * high)
    ]


@settings(deadline=None)
@given(EXTENTS.flatmap(lambda e: st.tuples(mixed(e), st.permutations(e).flatmap(mixed))))
def test_composition_is_exact_and_equal_functions_are_equal_values(pair: tuple[Case, Case]) -> None:
    (outer, after), (inner, before) = pair
    answer = maps.compose(outer, inner)
    expected = [after[value] for value in before]
    assert answer.table().tolist() == expected
    assert answer == maps.canonical(TableMap(tuple(expected)))
    assert (outer == inner) == (after == before)


@settings(deadline=None)
@given(mixed(), st.data())
def test_levels(case: Case, data: st.DataObject) -> None:
    mapping, values = case
    size = len(values)
    below = data.draw(st.sampled_from(divisors(size)))
    feeds = [len({value // below for value in values[at : at + below]}) for at in range(0, size, below)]
    away = [index for index, value in enumerate(values) if value // below != index // below]
    for found in (counts_by_digits(mapping, below), counts_of_table(np.array(values), below)):
        assert found is None or (found[0], found[2]) == ((min(feeds), max(feeds)), len(away))
    point = moved_point(HierarchicalLayout(Box.of(x=size), Box.of(x=size), mapping), below)
    assert point in away if away else point is None
    pair = crossing_witness(mapping, below)
    assert (pair is None) == (max(feeds) == 1)
    if pair is not None:
        assert pair[0] // below == pair[1] // below
        assert values[pair[0]] // below != values[pair[1]] // below


@settings(deadline=None)
@given(RANDOM)
def test_plans(rng: random.Random) -> None:
    """Digits of one box of levels on both sides: bits mixed at random, equal other digits permuted and reversed."""
    levels = [[rng.choice((2, 2, 3, 5)) for _ in range(rng.randrange(3))] for _ in range(5)]
    extents = [extent for level in levels for extent in level]
    if prod(extents) > 2000:
        return
    weights = [prod(extents[:k]) for k in range(len(extents))]
    modes: list[tuple[int, int | tuple[int, ...]]] = [(0, 0)] * len(extents)
    for kind in (2, 3, 5):
        own = [k for k, extent in enumerate(extents) if extent == kind]
        columns = [{weights[k]} for k in rng.sample(own, len(own))]
        for _ in range(2 * len(own) if kind == 2 and len(own) > 1 else 0):
            first, second = rng.sample(range(len(own)), 2)
            columns[first] = columns[first] ^ columns[second]
        for k, column in zip(own, columns, strict=True):
            plain = rng.choice((1, -1)) * min(column)
            modes[k] = (kind, tuple(column) if kind == 2 else plain)
    names = ("register", "lane", "warp", "cta", "cluster")
    box = hierarchy(**{name: prod(level) for name, level in zip(names, levels, strict=True)})
    conversion = HierarchicalLayout(box, box, DigitMap(tuple(modes)))
    values = conversion.table().tolist()
    plan = exchange_plan(conversion)
    first, wires, last = plan.stages
    assert last.table()[wires.table()[first.table()]].tolist() == values
    assert wires.is_plain
    below = 1
    for cut, level in zip(CUTS, levels, strict=False):
        below *= prod(level)
        for table, reach in ((values, plan.fanout(cut)), (first.table().tolist(), 1), (last.table().tolist(), 1)):
            assert {len({v // below for v in table[at : at + below]}) for at in range(0, len(table), below)} == {reach}
        assert profile_of(conversion).at(cut).fanout == (plan.fanout(cut),) * 2
    assert all(plan.level_of(place) != plan.level_of(end) for place, end in plan.exchanged)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from((2, 3, 4, 8)), min_size=1, max_size=3), RANDOM)
def test_swizzled_layouts_are_read_as_digits(extents: list[int], rng: random.Random) -> None:
    strides, weight = [0] * len(extents), 1
    for digit in rng.sample(range(len(extents)), len(extents)):
        strides[digit] = weight * rng.choice((1, 1, -1))
        weight *= extents[digit]
    offset = sum((e - 1) * -d for e, d in zip(extents, strides, strict=True) if d < 0) + (rng.random() < 0.1)
    bits, base = rng.randrange(3), rng.randrange(3)
    swizzle = Swizzle(bits, base, rng.choice((-1, 1)) * (bits + rng.randrange(2)))
    layout = ComposedLayout(swizzle, offset, CuteLayout(tuple(extents), tuple(strides)))
    table = [layout(index) for index in range(layout.size)]
    if sorted(table) != list(range(layout.size)):
        with pytest.raises(LayoutError, match="LA752"):
            reindex(Box.of(x=layout.size), layout)
        return
    answer = reindex(Box.of(x=layout.size), layout).map
    assert answer == maps.canonical(TableMap(tuple(table)))
    if isinstance(answer, DigitMap):
        outer, inner = unswizzled(answer)
        assert inner.is_plain
        assert [outer(value) for value in inner.table().tolist()] == table


@settings(max_examples=300, deadline=None)
@given(mixed())
def test_what_is_taken_for_a_swizzle_is_one(case: Case) -> None:
    answer = unswizzled(case[0])
    if answer is not None:
        assert [answer[0](value) for value in answer[1].table().tolist()] == case[1]


NAMES = ("x", "y", "row", "table", "and", "where", "F2", "Z", "Sw", "given", "é", "e\u0301", "a·b", "_", "x1", "o")


def boxed(rng: random.Random, size: int) -> Box:
    extents = []
    while size > 1:
        extents.append(rng.choice(divisors(size)[1:]))
        size //= extents[-1]
    extents += [1] * (rng.random() < 0.2)
    return Box(tuple(zip(rng.sample(NAMES, len(extents)), extents, strict=True)))


@st.composite
def layouts(draw: st.DrawFn) -> HierarchicalLayout:
    (mapping, values), rng = draw(mixed()), draw(RANDOM)
    if rng.random() < 0.15:
        mapping = maps.canonical(TableMap(tuple(rng.sample(values, len(values)))))
    source, target = boxed(rng, len(values)), boxed(rng, len(values))
    guards = []
    for _ in range(rng.choice((0, 0, 1, 2))):
        places = (
            (maps.identity(len(values)), source),
            (mapping, target),
            (maps.inverse(mapping), boxed(rng, len(values))),
        )
        acting, box = rng.choice(places)
        guards.append(Guard(acting, box, tuple(rng.randrange(extent + 1) for _, extent in box.axes)))
    return HierarchicalLayout(source, target, mapping, tuple(guards))


@settings(deadline=None)
@given(layouts())
def test_text_reads_back_or_says_that_it_cannot(layout: HierarchicalLayout) -> None:
    assert eval(repr(layout)) == layout
    if "..." in str(layout):
        with pytest.raises(RepresentabilityError, match="LA762 the text abbreviates a table"):
            la.parse(str(layout))
    else:
        assert la.parse(str(layout)) == layout


@settings(max_examples=300, deadline=None)
@given(layouts(), st.data())
def test_damaged_text_is_another_layout_or_a_named_error_with_its_place(
    layout: HierarchicalLayout, data: st.DataObject
) -> None:
    text = str(layout)
    at, char = data.draw(st.integers(0, len(text))), data.draw(st.sampled_from("0123456789()[]:,^->|<. xé&²٣"))
    damaged = data.draw(st.sampled_from((text[:at], text[:at] + text[at + 1 :], text[:at] + char + text[at + 1 :])))
    try:
        found = parse_hierarchical(damaged)
    except LayoutError as error:
        assert error.diagnostic.code in ("LA750", "LA752", "LA761", "LA762")
        assert 0 <= error.diagnostic.witness["position"] <= len(damaged)
    else:
        assert parse_hierarchical(str(found)) == found
