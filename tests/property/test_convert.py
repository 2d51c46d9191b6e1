"""Conversions of random layouts against their tables."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from judges.families import mixed_layouts, small_swizzles

from layoutalg import convert
from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import BudgetError, RepresentabilityError
from layoutalg.piecewise import PiecewiseLayout

strides = st.one_of(st.integers(-9, 20), st.integers(0, 6).map(lambda k: 1 << k))
offsets = st.one_of(st.just(0), st.integers(-20, 40), st.integers(0, 6).map(lambda k: 1 << k))


@st.composite
def layouts(draw: st.DrawFn, stack: int = 2) -> CuteLayout | ComposedLayout:
    layout: CuteLayout | ComposedLayout = draw(mixed_layouts(strides, max_modes=4))
    for _ in range(draw(st.integers(0, stack))):
        layout = ComposedLayout(draw(small_swizzles()), draw(offsets), layout)
    return layout


@st.composite
def linear_layouts(draw: st.DrawFn) -> LinearLayout:
    bits = draw(st.lists(st.integers(0, 3), max_size=3))
    width = draw(st.integers(0, 6))
    columns = draw(st.lists(st.integers(0, 2**width - 1), min_size=sum(bits), max_size=sum(bits)))
    axes = tuple((f"a{index}", size) for index, size in enumerate(bits))
    return LinearLayout(axes, (("o", width),), tuple(columns), draw(st.integers(0, 2**width - 1)))


def first_departure(values: list[int]) -> int | None:
    forced = [values[0]]
    while len(forced) < len(values):
        step = values[len(forced)] ^ values[0]
        forced += [value ^ step for value in forced]
    return next((index for index, value in enumerate(values) if value != forced[index]), None)


@settings(max_examples=300)
@given(layouts(stack=3))
def test_to_linear_is_exact_or_shows_the_first_carry(layout: CuteLayout | ComposedLayout) -> None:
    values = layout.table().tolist()
    power = len(values).bit_count() == 1
    try:
        answer = convert.to_linear(layout)
    except RepresentabilityError as error:
        witness = error.diagnostic.witness or {}
        if error.diagnostic.code == "LA231":
            assert not power
        elif error.diagnostic.code == "LA232":
            assert values[witness["coordinate"]] == witness["value"] < 0  # type: ignore[call-overload,operator]
        else:
            assert witness["x"] ^ witness["y"] == first_departure(values)  # type: ignore[operator]
        return
    assert power
    assert answer.table().tolist() == values
    assert answer.in_dims == {"i": len(values)}
    assert max(values).bit_length() <= answer.out_bits


@settings(max_examples=200)
@given(layouts(), st.data())
def test_whatever_a_linear_layout_comes_from_goes_back(
    layout: CuteLayout | ComposedLayout, data: st.DataObject
) -> None:
    try:
        linear = convert.to_linear(layout)
    except RepresentabilityError:
        return
    try:
        back = convert.to_cute(linear)
    except RepresentabilityError:
        assert isinstance(layout, ComposedLayout)
        assert len(layout.stages) > 1, "one swizzle always goes back"
        return
    assert np.array_equal(back.table(), layout.table())


def swizzle_forms(values: list[int]) -> bool:
    """Whether some swizzle within 7 bits leaves columns with disjoint bits, by trying them all."""
    columns = [values[1 << bit] ^ values[0] for bit in range(len(values).bit_length() - 1)]
    tried = [Swizzle(0, 0, 0)]
    tried += [
        Swizzle(bits, base, sign * far)
        for bits in (1, 2, 3)
        for base in range(6)
        for far in range(bits, 7)
        for sign in (1, -1)
    ]
    for swizzle in tried:
        moved = [swizzle(column) for column in columns]
        if sum(moved) == int(np.bitwise_or.reduce(np.array([0, *moved]))):
            return True
    return False


@settings(max_examples=200)
@given(linear_layouts())
def test_to_cute_is_complete_for_one_swizzle(layout: LinearLayout) -> None:
    values = layout.table().tolist()
    try:
        answer = convert.to_cute(layout)
    except RepresentabilityError as error:
        assert not swizzle_forms(values)
        witness = error.diagnostic.witness or {}
        x, y = witness["x"], witness["y"]
        assert isinstance(x, int)
        assert isinstance(y, int)
        assert witness["f(x+y)"] == values[x + y]
        assert witness["f(x)+f(y)-f(0)"] == values[x] + values[y] - values[0]
        return
    assert answer.table().tolist() == values
    if len(layout.in_dims) > 1:
        assert [mode.size for mode in answer] == list(layout.in_dims.values())


@settings(max_examples=60, deadline=None)
@given(layouts(stack=1) | linear_layouts())
def test_piecewise_has_the_same_table_and_survives_repr(layout: CuteLayout | ComposedLayout | LinearLayout) -> None:
    try:
        answer = convert.to_piecewise(layout)
    except BudgetError:
        return
    assert np.array_equal(answer.table(), layout.table())
    assert eval(repr(answer), {"PiecewiseLayout": PiecewiseLayout}) == answer
    assert answer.is_equal(convert.to_piecewise(layout))


@settings(max_examples=100)
@given(layouts() | linear_layouts())
def test_recognize_rebuilds_the_table(layout: CuteLayout | ComposedLayout | LinearLayout) -> None:
    values = layout.table()
    if isinstance(layout, CuteLayout):
        assert isinstance(convert.recognize(values), CuteLayout)
    try:
        answer = convert.recognize(values)
    except RepresentabilityError:
        assert isinstance(layout, ComposedLayout)
        return
    assert np.array_equal(answer.table(), values)


@settings(max_examples=300)
@given(st.lists(st.integers(-3, 8), min_size=1, max_size=8))
def test_recognize_of_any_table_is_exact_or_names_the_first_violation(values: list[int]) -> None:
    try:
        answer = convert.recognize(values)
    except RepresentabilityError as error:
        witness = error.diagnostic.witness or {}
        at = witness["coordinate"]
        assert isinstance(at, int)
        assert values[at] == witness["value"] != witness["strided"]
        assert first_strided_violation(values) == at
        return
    assert answer.table().tolist() == values


def first_strided_violation(values: list[int]) -> int | None:
    """The least index at which no layout of that many points agrees with the table up to and including it."""
    moved = [value - values[0] for value in values]
    best = 0
    for extents in factorisations(len(values)):
        strides_found: list[int] = []
        weight = 1
        for extent in extents:
            strides_found.append(moved[weight])
            weight *= extent
        for index, value in enumerate(moved):
            rest, total = index, 0
            for extent, stride in zip(extents, strides_found, strict=True):
                rest, digit = divmod(rest, extent)
                total += digit * stride
            if total != value:
                best = max(best, index)
                break
        else:
            return None
    return best


def factorisations(size: int) -> list[tuple[int, ...]]:
    """All ordered factorisations of a size into extents of at least 2."""
    if size == 1:
        return [()]
    return [
        (extent, *rest)
        for extent in range(2, size + 1)
        if size % extent == 0
        for rest in factorisations(size // extent)
    ]
