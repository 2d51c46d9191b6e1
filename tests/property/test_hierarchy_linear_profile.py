"""Profiles of conversions between F2 layouts, copies included, against enumeration of all places."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutalg.errors import AdmissibilityError, MalformedError
from layoutalg.f2 import LinearLayout
from layoutalg.hierarchy import Box, HierarchicalLayout, conversion_profile, hierarchy, level_profile
from layoutalg.hierarchy.bijection import BitMap
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


@settings(max_examples=150)
@given(st.data())
def test_without_copies_it_is_the_profile_of_the_bijection(data: st.DataObject) -> None:
    bits = data.draw(st.lists(st.integers(0, 2), min_size=4, max_size=4))
    total = sum(bits)
    first, second = (data.draw(layouts(bits, total, True).filter(lambda f: f.is_invertible)) for _ in range(2))
    box = hierarchy(register=1 << bits[0], lane=1 << bits[1], warp=1 << bits[2], cta=1 << bits[3])
    whole = level_profile(
        *(HierarchicalLayout(box, Box.of(o=1 << total), BitMap(f.columns, f.constant)) for f in (first, second))
    )
    found = conversion_profile(first, second)
    assert [(e.moved, e.fanout, e.blocks) for e in found.cuts] == [(e.moved, e.fanout, e.blocks) for e in whole.cuts]
    assert (found.mechanism, found.traffic) == (whole.mechanism, whole.traffic)


def test_misuse_is_named() -> None:
    one = LinearLayout.from_bases({"lane": [(1,)]}, {"o": 2})
    two = LinearLayout.from_bases({"lane": [(1,), (0,)]}, {"o": 2})
    thread = LinearLayout.from_bases({"thread": [(1,)]}, {"o": 2})
    with pytest.raises(MalformedError, match=re.escape("must have input axes among ['register', 'lane'")):
        conversion_profile(one, thread)
    with pytest.raises(MalformedError, match="source"):
        conversion_profile("one", one)  # type: ignore[arg-type]
    with pytest.raises(AdmissibilityError, match="one has 2 of lane, the other 4"):
        conversion_profile(one, two)
    hole = LinearLayout.from_bases({"lane": [(0,)]}, {"o": 2})
    with pytest.raises(AdmissibilityError):
        conversion_profile(hole, one)
