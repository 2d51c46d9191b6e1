"""The algebra of swizzled layouts against enumeration: right values, and no refusal where a form exists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from judges.families import mixed_layouts, small_swizzles

from layoutalg.cute import (
    ComposedLayout,
    CuteLayout,
    Swizzle,
    composition,
    left_inverse,
)
from layoutalg.cute.fit import (
    first_leaving,
    simplify,
)
from layoutalg.cute.inttuple import IntTuple, flatten
from layoutalg.ground.digits import IntArray
from layoutalg.ground.errors import AdmissibilityError, RepresentabilityError

EVERY = [
    Swizzle(0, 0, 0),
    *[
        Swizzle(bits, base, sign * far)
        for bits in (1, 2, 3)
        for base in range(8)
        for far in range(bits, 9)
        for sign in (1, -1)
    ],
]


def cute_layouts(negative: bool = False) -> st.SearchStrategy[CuteLayout]:
    steps = st.one_of(st.integers(0, 5).map(lambda k: 1 << k), st.integers(-6 if negative else 0, 17))
    return mixed_layouts(steps, max_extent=6, max_power=3)


@st.composite
def composed_layouts(draw: st.DrawFn, negative: bool = False) -> ComposedLayout:
    layout: CuteLayout | ComposedLayout = draw(cute_layouts(negative))
    for _ in range(draw(st.integers(1, 2))):
        layout = ComposedLayout(draw(small_swizzles()), draw(st.sampled_from((0, 0, 0, 1, 4, 11, 16))), layout)
    assert isinstance(layout, ComposedLayout)
    return layout


def is_strided(values: IntArray) -> bool:
    """Whether values that start at 0 are a layout of one flat coordinate; an own walk, element by element."""
    count, done = len(values), 1
    expected = np.zeros(1, dtype=np.int64)
    while done < count:
        stride, extent = int(values[done]), 1
        while extent * done < count and values[extent * done] == extent * stride:
            extent += 1
        if count % (done * extent):
            return False
        expected = np.add.outer(np.arange(extent) * stride, expected).reshape(-1)
        done *= extent
    return bool((expected == values).all())


def has_form(values: IntArray, shape: IntTuple) -> bool:
    """Whether some swizzle makes the values strided on the shape, by trying them all."""
    for swizzle in EVERY:
        moved = swizzle.map(values.copy())
        moved -= moved[0]
        total, weight, good = np.zeros(1, dtype=np.int64), 1, True
        for extent in flatten(shape):
            run = moved[np.arange(extent) * weight]
            good = good and is_strided(run)
            total = np.add.outer(run, total).reshape(-1)
            weight *= extent
        if good and (total == moved).all():
            return True
    return False


@settings(max_examples=150, deadline=None)
@given(cute_layouts(negative=True) | composed_layouts(), cute_layouts() | composed_layouts() | small_swizzles())
def test_composition_is_exact_and_refused_only_where_no_form_exists(
    outer: CuteLayout | ComposedLayout, inner: CuteLayout | ComposedLayout | Swizzle
) -> None:
    assume(isinstance(outer, ComposedLayout) or not isinstance(inner, CuteLayout))
    values = inner.map(np.arange(outer.size)) if isinstance(inner, Swizzle) else inner.table()
    shape = outer.shape if isinstance(inner, Swizzle) else inner.shape
    outside = np.flatnonzero((values < 0) | (values >= outer.size))
    if outside.size:
        with pytest.raises(AdmissibilityError) as caught:
            composition(outer, inner)
        if isinstance(inner, Swizzle):
            assert caught.value.diagnostic.witness is not None
            assert caught.value.diagnostic.witness["coordinate"] == outside[0]
        return
    truth = outer.table()[values]
    try:
        answer = composition(outer, inner)
    except RepresentabilityError:
        assert not has_form(truth, shape)
        return
    assert answer.table().tolist() == truth.tolist()
    if not isinstance(inner, ComposedLayout) and isinstance(outer, CuteLayout):
        assert [mode.size for mode in answer] == [mode.size for mode in outer]


@settings(max_examples=120, deadline=None)
@given(composed_layouts(negative=True))
def test_simplify_keeps_the_function_and_finds_the_least_stack(layout: ComposedLayout) -> None:
    answer = simplify(layout)
    values = layout.table()
    assert answer.table().tolist() == values.tolist()
    assert [mode.size for mode in answer] == [mode.size for mode in layout]
    if isinstance(answer, ComposedLayout):
        if len(answer.stages) > 1:
            assert not has_form(values, layout.shape)
        elif answer.outer.bits:
            assert not is_strided(values - values[0]) or not has_plain(values, layout.shape)


def has_plain(values: IntArray, shape: IntTuple) -> bool:
    moved, weight = values - values[0], 1
    total = np.zeros(1, dtype=np.int64)
    for extent in flatten(shape):
        run = moved[np.arange(extent) * weight]
        if not is_strided(run):
            return False
        total = np.add.outer(run, total).reshape(-1)
        weight *= extent
    return bool((total == moved).all())


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 5), st.permutations(range(6)), small_swizzles())
def test_inverses_of_swizzled_permutations_of_bits_exist(bits: int, order: list[int], swizzle: Swizzle) -> None:
    strides = [1 << place for place in order if place < bits]
    layout = ComposedLayout(swizzle, 0, CuteLayout((2,) * bits, tuple(strides)) if bits else CuteLayout(1, 0))
    try:
        inverse = left_inverse(layout)
    except RepresentabilityError:
        # then no swizzle at all gives the inverse a strided form on the least interval
        table = layout.table()
        least = np.zeros(1 << int(table.max()).bit_length(), dtype=np.int64)
        least[table] = np.arange(len(table))
        assert len(least) > len(table) or not has_form(least, len(least))
        return
    assert inverse.table()[layout.table()].tolist() == list(range(layout.size))


@settings(max_examples=200)
@given(small_swizzles(), st.integers(0, 300), st.integers(0, 300))
def test_first_leaving(swizzle: Swizzle, size: int, bound: int) -> None:
    outside = [x for x in range(size) if swizzle(x) >= bound]
    assert first_leaving(swizzle, size, bound) == (outside[0] if outside else None)
