"""Recasts and common layouts against enumeration."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st
from strided_judge import enumerate_layout, is_strided, layouts

from layoutalg.cute import (
    CuteLayout,
    downcast,
    make_ordered_layout,
    max_alignment,
    max_common_layout,
    max_common_vector,
    nullspace,
    recast,
    upcast,
)
from layoutalg.cute import filter as drop_zeros
from layoutalg.cute.inttuple import flatten
from layoutalg.ground.errors import RepresentabilityError

QUICK = settings(max_examples=60, deadline=None)


def judge_upcast(layout: CuteLayout, factor: int) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Every (extents, values) of a layout in wide elements that takes exactly the narrow offsets, mode by mode."""
    found = set()
    flat = layout.flat
    divisors = [[g for g in range(1, extent + 1) if extent % g == 0] for extent, _ in flat]
    for inner in itertools.product(*divisors):
        inside = enumerate_layout(tuple((g, stride) for g, (_, stride) in zip(inner, flat, strict=True)))
        if sorted(inside) != list(range(factor)):
            continue
        outer = enumerate_layout(tuple((e // g, g * d) for g, (e, d) in zip(inner, flat, strict=True)))
        if all(value % factor == 0 for value in outer):
            extents = tuple(e // g for g, (e, _) in zip(inner, flat, strict=True))
            found.add((extents, tuple(value // factor for value in outer)))
    return found


@st.composite
def recast_cases(draw: st.DrawFn) -> tuple[CuteLayout, int]:
    """A layout most of whose modes continue a chain or are multiples of the factor."""
    factor = draw(st.sampled_from([1, 2, 2, 3, 4, 4, 6, 8, 12]))
    modes = []
    current = 1
    for _ in range(draw(st.integers(1, 4))):
        extent, kind = draw(st.sampled_from([1, 2, 2, 3, 4, 4, 6, 8])), draw(st.integers(0, 19))
        modes.append(
            (extent, current if kind < 11 else factor * (kind - 14) if kind < 17 else draw(st.integers(-6, 12)))
        )
        current *= extent if kind < 11 else 1
    modes = draw(st.permutations(modes))
    return CuteLayout(tuple([extent for extent, _ in modes]), tuple([stride for _, stride in modes])), factor


@given(recast_cases())
@settings(max_examples=600, deadline=None)
def test_upcast_is_exact_or_rightly_refused(case: tuple[CuteLayout, int]) -> None:
    layout, factor = case
    truth = judge_upcast(layout, factor)
    assert len(truth) < 2
    try:
        result = upcast(layout, factor)
    except RepresentabilityError:
        assert not truth
    else:
        extents = tuple([extent for extent, _ in result.flat])
        assert truth == {(extents, tuple(result.table().tolist()))}
        narrow = sorted(factor * value + r for value in result.table().tolist() for r in range(factor))
        assert narrow == sorted(layout.table().tolist())
    divisors = [n for n in range(1, layout.size + 1) if layout.size % n == 0]
    assert max_alignment(layout) == next(n for n in reversed(divisors) if judge_upcast(layout, n))


@given(layouts(low=0, high=6), st.integers(1, 5), st.sampled_from([4, 6, 8, 12, 16, 32]))
@QUICK
def test_downcast_splits_every_element(layout: CuteLayout, factor: int, bits: int) -> None:
    try:
        result = downcast(layout, factor)
    except RepresentabilityError:
        assert all(extent > 1 and stride != 1 for extent, stride in layout.flat)
        return
    wide = [factor * value + r for value in layout.table().tolist() for r in range(factor)]
    assert sorted(result.table().tolist()) == sorted(wide)
    back = upcast(result, factor)
    assert back.shape == layout.shape
    assert back.table().tolist() == layout.table().tolist()
    try:
        read = recast(layout, 8, bits)
    except RepresentabilityError:
        return
    old = sorted(8 * value + r for value in layout.table().tolist() for r in range(8))
    assert sorted(bits * value + r for value in read.table().tolist() for r in range(bits)) == old


def judge_common(a: list[int], b: list[int]) -> int:
    """The greatest n with a layout R of size n and a(R(i)) = b(R(i)) = i, where b is injective, no stride below 0."""
    places = {value: place for place, value in enumerate(b)}
    table: list[int] = []
    best = 0
    for value in range(len(b)):
        place = places.get(value)
        if place is None or place >= len(a) or a[place] != value:
            break
        table.append(place)
        if is_strided(table):
            best = len(table)
    return best


@st.composite
def nearly_compact(draw: st.DrawFn) -> CuteLayout:
    """A compact layout in some order of its modes, of which one stride may be wrong."""
    extents = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    layout = make_ordered_layout(tuple(extents), tuple(draw(st.permutations(range(len(extents))))))
    strides = list(flatten(layout.stride))
    if draw(st.booleans()):
        strides[draw(st.integers(0, len(strides) - 1))] = draw(st.integers(-2, 11))
    return CuteLayout(layout.shape, tuple(strides))


@given(nearly_compact(), nearly_compact())
@settings(max_examples=600, deadline=None)
def test_common_layouts_are_the_longest(a: CuteLayout, b: CuteLayout) -> None:
    result = max_common_layout(a, b)
    for layout in (a, b):
        assert [layout(place) for place in result.table().tolist()] == list(range(result.size))
    assert max_common_vector(a, b) == result.size
    if len(set(b.table().tolist())) == b.size and min(stride for _, stride in b.flat) >= 0:
        assert result.size == judge_common(a.table().tolist(), b.table().tolist())


@given(layouts(low=0, high=6))
@QUICK
def test_nullspace_is_sent_to_0(layout: CuteLayout) -> None:
    kernel = nullspace(layout)
    values = kernel.table().tolist()
    assert len(set(values)) == len(values)
    assert {layout(value) for value in values} == {0}
    assert kernel.size * drop_zeros(layout).size == layout.size
