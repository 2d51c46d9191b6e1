"""Recasts and common layouts against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
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


def recast_case(generator: np.random.Generator) -> tuple[CuteLayout, int]:
    factor = int(generator.choice([1, 2, 2, 3, 4, 4, 6, 8, 12]))
    rank = int(generator.integers(1, 5))
    extents = tuple(int(x) for x in generator.choice([1, 2, 2, 3, 4, 4, 6, 8], rank))
    strides = []
    current = 1
    for extent in extents:
        kind = generator.random()
        if kind < 0.55:
            strides.append(current)
            current *= extent
        elif kind < 0.85:
            strides.append(factor * int(generator.integers(-3, 6)))
        else:
            strides.append(int(generator.integers(-6, 13)))
    order = generator.permutation(rank)
    return CuteLayout(tuple(extents[i] for i in order), tuple(strides[i] for i in order)), factor


def check_recasts(seed: int, count: int) -> dict[str, int]:
    generator = np.random.default_rng(seed)
    tally = {"right": 0, "rightly refused": 0}
    for _ in range(count):
        layout, factor = recast_case(generator)
        truth = judge_upcast(layout, factor)
        assert len(truth) < 2
        try:
            result = upcast(layout, factor)
        except RepresentabilityError as error:
            assert not truth, (layout, factor, str(error))
            tally["rightly refused"] += 1
        else:
            extents = tuple(extent for extent, _ in result.flat)
            assert truth == {(extents, tuple(result.table().tolist()))}, (layout, factor, result)
            narrow = sorted(factor * value + r for value in result.table().tolist() for r in range(factor))
            assert narrow == sorted(layout.table().tolist())
            tally["right"] += 1
        divisors = [n for n in range(1, layout.size + 1) if layout.size % n == 0]
        greatest = next(n for n in reversed(divisors) if judge_upcast(layout, n))
        assert max_alignment(layout) == greatest, layout
    return tally


def test_upcast_is_exact_or_rightly_refused() -> None:
    assert min(check_recasts(3, 2000).values()) > 300


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


def check_common(seed: int, count: int) -> dict[str, int]:
    generator = np.random.default_rng(seed)
    tally = {"longest": 0, "contract only": 0}
    for _ in range(count):
        pair = []
        for _ in range(2):
            rank = int(generator.integers(1, 4))
            extents = tuple(int(x) for x in generator.integers(1, 5, rank))
            order = tuple(int(x) for x in generator.permutation(rank))
            layout = make_ordered_layout(extents, order)
            if generator.random() < 0.5:
                strides = list(flatten(layout.stride))
                strides[int(generator.integers(rank))] = int(generator.integers(-2, 12))
                layout = CuteLayout(extents, tuple(strides))
            pair.append(layout)
        a, b = pair
        result = max_common_layout(a, b)
        for layout in pair:
            assert [layout(place) for place in result.table().tolist()] == list(range(result.size)), (a, b, result)
        assert max_common_vector(a, b) == result.size
        if len(set(b.table().tolist())) == b.size and min(stride for _, stride in b.flat) >= 0:
            assert result.size == judge_common(a.table().tolist(), b.table().tolist()), (a, b, result)
            tally["longest"] += 1
        else:
            tally["contract only"] += 1
    return tally


def test_common_layouts_are_the_longest() -> None:
    assert check_common(4, 2000)["longest"] > 1000


@given(layouts(low=0, high=6))
@QUICK
def test_nullspace_is_sent_to_0(layout: CuteLayout) -> None:
    kernel = nullspace(layout)
    values = kernel.table().tolist()
    assert len(set(values)) == len(values)
    assert {layout(value) for value in values} == {0}
    assert kernel.size * drop_zeros(layout).size == layout.size
