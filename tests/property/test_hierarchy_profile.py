"""Membership, normal forms, level profiles and exchange plans against enumeration of blocks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutalg.ground.errors import AdmissibilityError
from layoutalg.hierarchy import (
    CUTS,
    MECHANISMS,
    Box,
    DigitMap,
    Guard,
    HierarchicalLayout,
    TableMap,
    crossing_ranks,
    exchange_plan,
    hierarchy,
    level_profile,
    preserves_blocks,
    profile_of,
    solve_conversion,
)
from layoutalg.hierarchy import bijection as maps
from layoutalg.hierarchy.blocks import crossing_witness, moved_point
from layoutalg.hierarchy.profile import counts_by_digits, counts_of_table


@st.composite
def invertible(draw: st.DrawFn, bits: int, steps: int = 12) -> DigitMap:
    columns = [1 << bit for bit in draw(st.permutations(range(bits)))]
    if bits > 1:
        for _ in range(draw(st.integers(0, steps))):
            a, b = draw(st.lists(st.integers(0, bits - 1), min_size=2, max_size=2, unique=True))
            columns[a] ^= columns[b]
    return DigitMap.from_bits(tuple(columns), draw(st.integers(0, (1 << bits) - 1)))


@st.composite
def digit_maps(draw: st.DrawFn, extents: tuple[int, ...]) -> DigitMap:
    source, target = draw(st.permutations(range(len(extents)))), draw(st.permutations(range(len(extents))))
    strides, weight = {}, 1
    for digit in target:
        strides[digit] = weight * draw(st.sampled_from((1, 1, -1)))
        weight *= extents[digit]
    return DigitMap(tuple((extents[digit], strides[digit]) for digit in source))


@st.composite
def block_keepers(draw: st.DrawFn, below: int, above: int) -> TableMap:
    """An element of the wreath product, made from its parts: uniform, shifted by xor or add, or a random table."""
    outer = draw(st.permutations(range(above)))
    first = draw(st.permutations(range(below)))
    kind = draw(st.sampled_from(("uniform", "add", "xor", "table")))
    shifts = draw(st.lists(st.integers(0, below - 1), min_size=above, max_size=above))
    step = draw(st.integers(0, below - 1))
    rows = []
    for block in range(above):
        if kind == "uniform":
            rows.append(list(first))
        elif kind == "add":
            rows.append([(value + step * block) % below for value in first])
        elif kind == "xor" and below & (below - 1) == 0:
            rows.append([value ^ (step * (block & 1)) for value in first])
        else:
            rows.append([(value + shifts[block]) % below for value in first])
    return TableMap(tuple(rows[block][x] + below * outer[block] for block in range(above) for x in range(below)))


@st.composite
def cases(draw: st.DrawFn) -> tuple[maps.Bijection, int]:
    """A bijection and the size of a block: F2, digits with prime extents, tables, and members by construction."""
    kind = draw(st.sampled_from(("bits", "digits", "table", "member")))
    if kind == "bits":
        bits = draw(st.integers(0, 7))
        return draw(invertible(bits)), 1 << draw(st.integers(0, bits))
    if kind == "digits":
        extents = tuple(draw(st.lists(st.sampled_from((2, 3, 5, 2, 4, 6)), max_size=4)))
        size = int(np.prod(extents, dtype=np.int64))
        return draw(digit_maps(extents)), draw(st.sampled_from([d for d in range(1, size + 1) if size % d == 0]))
    below, above = draw(st.sampled_from(((1, 4), (2, 3), (3, 3), (4, 4), (5, 2), (2, 8), (6, 1))))
    if kind == "member":
        return maps.canonical(draw(block_keepers(below, above))), below
    return TableMap(tuple(draw(st.permutations(range(below * above))))), below


def reach(table: list[int], below: int) -> list[int]:
    """How many destination blocks each source block feeds."""
    count = len(table) // below
    return [len({value // below for value in table[block * below : (block + 1) * below]}) for block in range(count)]


@settings(max_examples=300, deadline=None)
@given(cases())
def test_fanout_and_moved_are_the_enumerated_ones(case: tuple[maps.Bijection, int]) -> None:
    bijection, below = case
    table = bijection.table().tolist()
    counts = reach(table, below)
    moved = sum(value // below != index // below for index, value in enumerate(table))
    for found in (counts_by_digits(bijection, below), counts_of_table(bijection.table(), below)):
        assert found is None or (found[0], found[2]) == ((min(counts), max(counts)), moved)


@settings(max_examples=300, deadline=None)
@given(cases())
def test_membership_is_decided_with_a_true_witness(case: tuple[maps.Bijection, int]) -> None:
    bijection, below = case
    table = bijection.table().tolist()
    member = max(reach(table, below)) == 1
    pair = crossing_witness(bijection, below)
    assert (pair is None) == member
    layout = HierarchicalLayout(Box.of(x=len(table)), Box.of(x=len(table)), bijection)
    point = moved_point(layout, below)
    if point is None:
        assert all(value // below == index // below for index, value in enumerate(table))
    else:
        assert table[point] // below != point // below
    if pair is not None:
        first, second = pair
        assert first // below == second // below
        assert table[first] // below != table[second] // below


LEVEL_BITS = st.lists(st.integers(0, 2), min_size=5, max_size=5)


def box_of(extents: list[int]) -> Box:
    return hierarchy(**dict(zip(("register", "lane", "warp", "cta", "cluster"), extents, strict=True)))


@st.composite
def f2_conversions(draw: st.DrawFn) -> HierarchicalLayout:
    bits = draw(LEVEL_BITS)
    box = box_of([1 << count for count in bits])
    return HierarchicalLayout(box, box, draw(invertible(sum(bits), 20)))


@settings(max_examples=150, deadline=None)
@given(f2_conversions())
def test_plans_multiply_to_the_map_and_exchange_as_few_bits_as_the_ranks_demand(layout: HierarchicalLayout) -> None:
    plan = exchange_plan(layout)
    bits = layout.map
    first, last = DigitMap.from_bits(plan.first), DigitMap.from_bits(plan.last)
    wires = DigitMap.from_bits(tuple(1 << place for place in plan.wiring))
    expected = [value ^ plan.constant for value in last.table()[wires.table()[first.table()]].tolist()]
    assert expected == layout.map.table().tolist()
    for cut in CUTS:
        below = maps_block(layout.source, cut)
        assert max(reach(first.table().tolist(), below)) == max(reach(last.table().tolist(), below)) == 1
        assert 1 << plan.crossing(cut) == max(reach(layout.map.table().tolist(), below))
    assert sorted(plan.wiring) == list(range(len(plan.wiring)))
    assert all(plan.level_of(bit) != plan.level_of(place) for bit, place in plan.exchanged)
    assert crossing_ranks(bits, plan.levels) == crossing_ranks(wires, plan.levels)


def maps_block(box: Box, cut: str) -> int:
    extents = [extent for _, extent in box.axes]
    return int(np.prod(extents[: CUTS.index(cut) + 1], dtype=np.int64))


@st.composite
def conversions(draw: st.DrawFn) -> tuple[HierarchicalLayout, HierarchicalLayout]:
    """Two layouts of one box of levels over one tensor, with or without guards."""
    extents = draw(st.lists(st.sampled_from((1, 2, 2, 3)), min_size=5, max_size=5))
    box = box_of(extents)
    size = box.size
    answer = []
    tensor = Box.of(x=size)
    for _ in range(2):
        choice = draw(st.sampled_from(("digits", "table")))
        if choice == "digits":
            bijection: maps.Bijection = draw(digit_maps(tuple(draw(st.permutations(extents)))))
        else:
            bijection = maps.canonical(
                TableMap(tuple(np.random.default_rng(draw(st.integers(0, 99))).permutation(size).tolist()))
            )
        guards = (Guard(bijection, tensor, (draw(st.integers(0, size)),)),) if draw(st.booleans()) else ()
        answer.append(HierarchicalLayout(box, tensor, bijection, guards))
    return answer[0], answer[1]


@settings(max_examples=150, deadline=None)
@given(conversions())
def test_level_profiles_are_the_enumerated_ones(pair: tuple[HierarchicalLayout, HierarchicalLayout]) -> None:
    source, destination = pair
    where = {int(value): index for index, value in enumerate(destination.table().tolist()) if value >= 0}
    moves = [(i, where[int(v)]) for i, v in enumerate(source.table().tolist()) if v >= 0 and int(v) in where]
    profile = level_profile(source, destination)
    assert profile.active == len(moves)
    least = dict.fromkeys(MECHANISMS, 0)
    for here, there in moves:
        crossed = [
            cut for cut in CUTS if here // maps_block(source.source, cut) != there // maps_block(source.source, cut)
        ]
        least[MECHANISMS[len(crossed)]] += 1
    assert profile.traffic == least
    assert profile.mechanism == max((m for m in MECHANISMS if least[m]), key=MECHANISMS.index, default="register")
    intrinsic = "global"
    for level, cut in reversed(list(enumerate(CUTS))):
        below = maps_block(source.source, cut)
        feeds: dict[int, set[int]] = {}
        reads: dict[int, set[int]] = {}
        for here, there in moves:
            feeds.setdefault(here // below, set()).add(there // below)
            reads.setdefault(there // below, set()).add(here // below)
        for found, blocks in ((profile.at(cut).fanout, feeds), (profile.at(cut).fanin, reads)):
            sizes = [len(others) for others in blocks.values()] or [0]
            assert found == (min(sizes), max(sizes))
        links = {(here // below, there // below) for here, there in moves}
        if len(feeds) == len(links) == len(reads):
            intrinsic = MECHANISMS[level]
        assert profile.at(cut).block * profile.at(cut).blocks == source.size
    assert profile.intrinsic == intrinsic


@settings(max_examples=100, deadline=None)
@given(conversions(), st.sampled_from(CUTS))
def test_questions_about_levels(pair: tuple[HierarchicalLayout, HierarchicalLayout], cut: str) -> None:
    whole = [HierarchicalLayout(layout.source, layout.target, layout.map) for layout in pair]
    conversion = whole[1].inverse() @ whole[0]
    table = conversion.table().tolist()
    below = maps_block(conversion.source, cut)
    verdict = preserves_blocks(conversion, cut)
    assert bool(verdict) == (max(reach(table, below)) == 1)
    if not verdict:
        flat = [conversion.source.flat(verdict.witness[name]) for name in ("first", "second")]
        assert flat[0] // below == flat[1] // below
        assert table[flat[0]] // below != table[flat[1]] // below
        images = [conversion.target.flat(verdict.witness[f"{name}_image"]) for name in ("first", "second")]
        assert images == [table[index] for index in flat]
    # the equation X o A = B with X inside the blocks: A and B from the tensor into the levels
    stays = all(value // below == index // below for index, value in enumerate(table))
    before, after = whole[0].inverse(), whole[1].inverse()
    if stays:
        assert solve_conversion(before, after, within=cut) @ before == after
    else:
        with pytest.raises(AdmissibilityError, match="LA757") as caught:
            solve_conversion(before, after, within=cut)
        witness = caught.value.diagnostic.witness
        here, there = conversion.source.flat(witness["from"]), conversion.target.flat(witness["to"])
        assert table[here] == there
        assert here // below != there // below


@settings(max_examples=60, deadline=None)
@given(f2_conversions(), st.data())
def test_ranks_do_not_change_under_maps_that_keep_blocks(layout: HierarchicalLayout, data: st.DataObject) -> None:
    bits = layout.map
    count = len(bits.columns)

    def upper() -> DigitMap:
        return DigitMap.from_bits(tuple(1 << k | data.draw(st.integers(0, (1 << k) - 1)) for k in range(count)))

    changed = maps.compose(upper(), maps.compose(bits, upper()))
    changed_layout = HierarchicalLayout(layout.source, layout.target, changed)
    ranks = [entry.rank for entry in profile_of(layout).cuts]
    assert ranks == [entry.rank for entry in profile_of(changed_layout).cuts]
    assert [1 << rank for rank in ranks] == [
        max(reach(layout.map.table().tolist(), e.block)) for e in profile_of(layout).cuts
    ]
