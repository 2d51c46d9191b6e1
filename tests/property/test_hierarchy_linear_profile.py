"""Profiles of conversions between F2 layouts, copies included, against enumeration of all places."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutalg.f2 import LinearLayout, solve
from layoutalg.ground.errors import AdmissibilityError, MalformedError
from layoutalg.hierarchy import Box, DigitMap, HierarchicalLayout, conversion_profile, hierarchy, level_profile
from layoutalg.hierarchy.levels import MECHANISMS

AXES = ("register", "lane", "warp", "block")


@st.composite
def layouts(draw: st.DrawFn, bits: list[int], out_bits: int, spread: bool) -> LinearLayout:
    """Layouts that reach every value; ``spread`` allows dense columns and copies (zero or repeated columns)."""
    total = sum(bits)
    images = [1 << i for i in range(out_bits)] + [0] * (total - out_bits)
    order = draw(st.permutations(range(total)))
    columns = [images[i] for i in order]
    if spread:
        for _ in range(draw(st.integers(0, 4)) if total else 0):
            i, j = draw(st.integers(0, total - 1)), draw(st.integers(0, total - 1))
            if i != j:
                columns[i] ^= columns[j]
    inputs = tuple(zip(AXES, bits, strict=True))
    return LinearLayout(inputs, (("o", out_bits),), tuple(columns), draw(st.integers(0, 2**out_bits - 1)))


def place(index: int, bits: list[int]) -> tuple[int, ...]:
    """Coordinates (register, lane, warp, block) of a flat index."""
    answer = []
    for count in bits:
        answer.append(index & ((1 << count) - 1))
        index >>= count
    return tuple(answer)


@settings(max_examples=150)
@given(st.data())
def test_the_mechanism_is_the_least_that_some_choice_of_copies_allows(data: st.DataObject) -> None:
    above = data.draw(st.lists(st.integers(0, 2), min_size=3, max_size=3))
    counts = [data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))]
    out_bits = data.draw(st.integers(0, sum(above) + min(counts)))
    bits_a, bits_b = [counts[0], *above], [counts[1], *above]
    source = data.draw(layouts(bits_a, out_bits, True))
    destination = data.draw(layouts(bits_b, out_bits, True))
    profile = conversion_profile(source, destination)
    holders: dict[int, list[tuple[int, ...]]] = defaultdict(list)
    for index in range(source.size):
        holders[source.at(index)].append(place(index, bits_a))
    assert profile.active == destination.size
    loud = 0
    for cut, entry in enumerate(profile.cuts, start=1):
        forced = sum(
            all(other[cut:] != place(index, bits_b)[cut:] for other in holders[destination.at(index)])
            for index in range(destination.size)
        )
        assert entry.moved >= forced
        assert entry.blocks == 1 << sum(bits_b[cut:])
        if forced:
            loud = cut
    assert profile.mechanism == MECHANISMS[loud]


@settings(max_examples=200)
@given(st.data())
def test_blocks_fed_and_read_are_those_of_the_values_fetched(data: st.DataObject) -> None:
    above = data.draw(st.lists(st.integers(0, 2), min_size=3, max_size=3))
    counts = [data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))]
    out_bits = data.draw(st.integers(0, sum(above) + min(counts)))
    bits_a, bits_b = [counts[0], *above], [counts[1], *above]
    source = data.draw(layouts(bits_a, out_bits, True))
    # a destination that need not reach every value leaves places of the source unread
    inputs = tuple(zip(AXES, bits_b, strict=True))
    values = st.lists(st.integers(0, 2**out_bits - 1), min_size=sum(bits_b), max_size=sum(bits_b))
    destination = LinearLayout(inputs, (("o", out_bits),), tuple(data.draw(values)))
    profile = conversion_profile(source, destination)
    gather = solve(source, destination).choose("local")
    fetched = [(place(gather.at(index), bits_a), place(index, bits_b)) for index in range(destination.size)]
    assert all(source.at(gather.at(index)) == destination.at(index) for index in range(destination.size))
    intrinsic = "global"
    for cut in range(4, 0, -1):
        links = {(here[cut:], there[cut:]) for here, there in fetched}
        feeds, reads = ({link[side] for link in links} for side in (0, 1))
        entry = profile.cuts[cut - 1]
        for found, blocks, side in ((entry.fanout, feeds, 0), (entry.fanin, reads, 1)):
            sizes = [sum(link[side] == block for link in links) for block in blocks]
            assert found == (min(sizes), max(sizes))
        if len(feeds) == len(links) == len(reads):
            intrinsic = MECHANISMS[cut - 1]
    assert profile.intrinsic == intrinsic


def test_copies_of_one_value_are_no_renumbering() -> None:
    source = LinearLayout.from_bases({"register": [(1,)], "warp": [(2,)]}, {"x": 4})
    profile = conversion_profile(source, LinearLayout.from_bases({"register": [], "warp": [(0,)]}, {"x": 4}))
    assert profile.intrinsic == "shared"
    assert (profile.at("lane|warp").fanout, profile.at("lane|warp").fanin) == ((2, 2), (1, 1))
    assert "lane|warp: 1 moved, each block feeds 2, reads 1 of 2, rank 0" in str(profile)


@settings(max_examples=150)
@given(st.data())
def test_without_copies_it_is_the_profile_of_the_bijection(data: st.DataObject) -> None:
    bits = data.draw(st.lists(st.integers(0, 2), min_size=4, max_size=4))
    total = sum(bits)
    first, second = (data.draw(layouts(bits, total, True).filter(lambda f: f.is_invertible)) for _ in range(2))
    box = hierarchy(register=1 << bits[0], lane=1 << bits[1], warp=1 << bits[2], cta=1 << bits[3])
    whole = level_profile(
        *(
            HierarchicalLayout(box, Box.of(o=1 << total), DigitMap.from_bits(f.columns, f.constant))
            for f in (first, second)
        )
    )
    found = conversion_profile(first, second)
    assert found.cuts == whole.cuts
    assert (found.mechanism, found.traffic) == (whole.mechanism, whole.traffic)


def test_misuse_is_named() -> None:
    one = LinearLayout.from_bases({"lane": [(1,)]}, {"o": 2})
    two = LinearLayout.from_bases({"lane": [(1,), (0,)]}, {"o": 2})
    thread = LinearLayout.from_bases({"thread": [(1,)]}, {"o": 2})
    with pytest.raises(MalformedError, match=re.escape("must have input axes among ['register', 'lane'")):
        conversion_profile(one, thread)
    with pytest.raises(MalformedError, match="source"):
        conversion_profile("one", one)  # type: ignore[arg-type]
    with pytest.raises(AdmissibilityError, match="the source has 2 of lane, the destination 4"):
        conversion_profile(one, two)
    hole = LinearLayout.from_bases({"lane": [(0,)]}, {"o": 2})
    with pytest.raises(AdmissibilityError):
        conversion_profile(hole, one)
