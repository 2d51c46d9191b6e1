"""Coalescing, complements, inverses, swizzles and evaluation against enumeration."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutalg.cute import (
    ComposedLayout,
    CuteLayout,
    Swizzle,
    coalesce,
    complement,
    composition,
    flatten,
    left_inverse,
    make_layout,
)
from layoutalg.cute import filter as drop_zeros
from layoutalg.cute.inttuple import IntTuple, unflatten
from layoutalg.ground.errors import AdmissibilityError

QUICK = settings(max_examples=200, deadline=None)


def shapes(least: int = 1, greatest: int = 5) -> st.SearchStrategy[IntTuple]:
    leaf: st.SearchStrategy[IntTuple] = st.integers(least, greatest)
    return st.recursive(leaf, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=5)


@st.composite
def layouts(draw: st.DrawFn, least: int = 1, low: int = -9, high: int = 20) -> CuteLayout:
    shape = draw(shapes(least))
    count = len(CuteLayout(shape).flat)
    strides = draw(st.lists(st.integers(low, high), min_size=count, max_size=count))
    return CuteLayout(shape, unflatten(tuple(strides), shape))


@st.composite
def chains(draw: st.DrawFn, padded: bool = False) -> CuteLayout:
    """Injective layouts, up to stride-0 modes: modes with whole gaps between them, or rows padded by any amount."""
    modes = []
    current = before = 1
    for _ in range(draw(st.integers(0, 4))):
        if padded:
            current += before * draw(st.integers(0, 3))
        current *= draw(st.sampled_from([1, 1, 1, 2, 3]))
        before = current
        extent = draw(st.integers(1, 4))
        modes.append((extent, draw(st.sampled_from([current, current, current, current, 0]))))
        current *= extent
    modes = draw(st.permutations(modes))
    return CuteLayout(tuple([extent for extent, _ in modes]), tuple([stride for _, stride in modes]))


def enumerate_layout(layout: CuteLayout) -> list[int]:
    values = [0]
    for extent, stride in layout.flat:
        values = [value + stride * digit for digit in range(extent) for value in values]
    return values


def numbers(witness: Mapping[str, object], *keys: str) -> list[int]:
    values = [witness[key] for key in keys]
    return [value for value in values if isinstance(value, int)]


@given(layouts(least=0))
@QUICK
def test_coalesce_keeps_the_function(layout: CuteLayout) -> None:
    result = coalesce(layout)
    assert enumerate_layout(result) == enumerate_layout(layout)
    assert result.depth <= 1
    assert coalesce(result) == result == coalesce(flatten(layout))
    if isinstance(layout.shape, tuple):
        by_mode = coalesce(layout, tuple([0] * layout.rank))
        assert [coalesce(mode) for mode in layout] == list(by_mode)


@given(layouts(low=0, high=6), layouts(low=0, high=6))
@QUICK
def test_coalesce_is_a_complete_normal_form(left: CuteLayout, right: CuteLayout) -> None:
    assert (coalesce(left) == coalesce(right)) == (enumerate_layout(left) == enumerate_layout(right))


def test_coalesce_separates_all_small_layouts() -> None:
    forms: dict[CuteLayout, tuple[int, ...]] = {}
    for a in range(1, 4):
        for b in range(1, 4):
            for c in range(1, 3):
                for strides in np.ndindex(7, 7, 4):
                    layout = CuteLayout((a, b, c), tuple([int(stride) - 2 for stride in strides]))
                    values = tuple(enumerate_layout(layout))
                    assert forms.setdefault(coalesce(layout), values) == values
    assert len(set(forms.values())) == len(forms)


def check_complement(layout: CuteLayout, bound: int, result: CuteLayout) -> None:
    mine, gaps = enumerate_layout(drop_zeros(layout)), enumerate_layout(result)
    both = sorted(a + b for a in mine for b in gaps)
    assert both == list(range(len(both)))
    assert len(both) >= bound
    assert gaps == sorted(gaps)
    assert coalesce(result) == result


@given(chains(), st.none() | st.integers(1, 200))
@QUICK
def test_complement_of_a_chain_exists(layout: CuteLayout, bound: int | None) -> None:
    result = complement(layout, bound)
    check_complement(layout, bound or 1, result)
    if bound is not None and bound % max(layout.cosize, 1) == 0:
        assert result.size * drop_zeros(layout).size >= bound


@given(layouts(low=0, high=12), st.integers(1, 100))
@QUICK
def test_complement_is_right_or_refused_for_a_reason(layout: CuteLayout, bound: int) -> None:
    mine = enumerate_layout(drop_zeros(layout))
    injective = len(set(mine)) == len(mine)
    try:
        result = complement(layout, bound)
    except AdmissibilityError as error:
        witness = error.diagnostic.witness
        if error.diagnostic.code == "LA133":
            assert not injective
            assert witness is not None
            first, second, offset = numbers(witness, "coordinate", "other", "offset")
            assert first != second
            assert layout(first) == layout(second) == offset
        else:
            assert error.diagnostic.code == "LA134"
        modes = sorted((stride, extent) for extent, stride in coalesce(layout).flat if stride)
        assert any(d % (s * e) for (s, e), (d, _) in pairwise(modes))
    else:
        assert injective
        check_complement(layout, bound, result)


@given(chains(padded=True))
@QUICK
def test_left_inverse_of_padded_rows_exists(layout: CuteLayout) -> None:
    values, back = enumerate_layout(layout), enumerate_layout(left_inverse(layout))
    assert [values[back[value]] for value in values] == values
    if len(set(values)) == len(values):
        assert [back[value] for value in values] == list(range(layout.size))


@given(st.one_of(chains(), layouts(low=0, high=12)))
@QUICK
def test_left_inverse(layout: CuteLayout) -> None:
    values = enumerate_layout(layout)
    try:
        result = left_inverse(layout)
    except AdmissibilityError as error:
        assert error.diagnostic.code in ("LA133", "LA134")
        witness = error.diagnostic.witness
        if error.diagnostic.code == "LA133" and witness is not None:
            first, second, offset = numbers(witness, "coordinate", "other", "offset")
            assert values[first] == values[second] == offset
            assert first != second
        return
    back = enumerate_layout(result)
    assert result.size >= layout.cosize
    if len(set(values)) == len(values):
        assert [back[value] for value in values] == list(range(layout.size))
        assert coalesce(composition(result, layout)) == coalesce(CuteLayout(layout.size))
    else:
        assert [values[back[value]] for value in values] == values


@st.composite
def swizzles(draw: st.DrawFn) -> Swizzle:
    bits = draw(st.integers(0, 4))
    shift = draw(st.integers(bits, 6)) * draw(st.sampled_from([1, -1]))
    return Swizzle(bits, draw(st.integers(0, 5)), shift)


@given(swizzles(), st.integers(-40, 40), layouts(low=-40, high=40))
@settings(max_examples=80, deadline=None)
def test_span_without_enumeration(swizzle: Swizzle, offset: int, base: CuteLayout) -> None:
    """Two extra modes make the layout too large to enumerate; scaled down, the same span is known by enumeration."""
    step = 2**15 * base.cosize
    wide = ComposedLayout(swizzle, offset, make_layout(base, CuteLayout(2**22, step)))
    narrow = ComposedLayout(swizzle, offset, make_layout(base, CuteLayout(2, step)))
    low, high = narrow.value_range()
    assert wide.value_range() == (low, high + step * (2**22 - 2))
