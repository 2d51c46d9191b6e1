"""Equality of random equal and mutated pairs: all engines agree with the tables and with each other."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judges.families import mixed_layouts, small_swizzles

from layoutalg import convert
from layoutalg.bridges.equal import ENGINES, Budget, equivalent
from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import BudgetError, RepresentabilityError
from layoutalg.ground.verdict import Proved, Refuted, Unknown
from layoutalg.piecewise import PiecewiseLayout

AnyLayout = CuteLayout | ComposedLayout | LinearLayout | PiecewiseLayout
strides = st.one_of(st.integers(-5, 12), st.integers(0, 5).map(lambda k: 1 << k))


@st.composite
def composed_layouts(draw: st.DrawFn) -> CuteLayout | ComposedLayout:
    layout: CuteLayout | ComposedLayout = draw(mixed_layouts(strides))
    if draw(st.booleans()):
        layout = ComposedLayout(draw(small_swizzles(max_base=1)), draw(st.sampled_from((0, 0, 3, 8, -4))), layout)
    return layout


def rewritten(layout: CuteLayout | ComposedLayout, draw: st.DrawFn) -> AnyLayout:
    """The same function in another form."""
    bridge = draw(st.sampled_from(("linear", "cute", "piecewise", "recognize", "split", "twice")))
    try:
        if bridge == "linear":
            return convert.to_linear(layout)
        if bridge == "cute":
            return convert.to_cute(layout)
        if bridge == "piecewise":
            return convert.to_piecewise(layout)
        if bridge == "recognize":
            return convert.recognize(layout.table())
    except (RepresentabilityError, BudgetError):
        pass
    if bridge == "twice":
        swizzle = Swizzle(1, 0, 2)
        return ComposedLayout(swizzle, 0, ComposedLayout(swizzle, 0, layout))
    base = layout.base if isinstance(layout, ComposedLayout) else layout
    modes = [
        part
        for extent, stride in base.flat
        for part in ([(2, stride), (extent // 2, 2 * stride)] if extent % 2 == 0 and extent else [(extent, stride)])
    ]
    split = CuteLayout(tuple(extent for extent, _ in modes), tuple(stride for _, stride in modes))
    return layout.rebase(split) if isinstance(layout, ComposedLayout) else split


def mutated(layout: CuteLayout | ComposedLayout, draw: st.DrawFn) -> AnyLayout:
    """Another function of the same size, seldom the same one."""
    base = layout.base if isinstance(layout, ComposedLayout) else layout
    steps = [stride for _, stride in base.flat]
    steps[draw(st.integers(0, len(steps) - 1))] += draw(st.sampled_from((-1, 1, 4)))
    other = CuteLayout(tuple(extent for extent, _ in base.flat), tuple(steps))
    return layout.rebase(other) if isinstance(layout, ComposedLayout) else other


@st.composite
def pairs(draw: st.DrawFn) -> tuple[AnyLayout, AnyLayout]:
    layout = draw(composed_layouts())
    other = rewritten(layout, draw) if draw(st.booleans()) else mutated(layout, draw)
    return (layout, other) if draw(st.booleans()) else (other, layout)


@settings(max_examples=150)
@given(pairs())
def test_engines_agree_with_the_tables(pair: tuple[AnyLayout, AnyLayout]) -> None:
    f, g = pair
    left, right = f.table().tolist(), g.table().tolist()
    for engine in ENGINES:
        answer = equivalent(f, g, _engines=(engine,))
        if isinstance(answer, Unknown):
            assert engine in ("normal-form", "isl", "smt")
            assert engine in answer.reason
            continue
        assert bool(answer) == (left == right), engine
        assert answer.engine == engine
        if isinstance(answer, Refuted):
            at = answer.witness["coordinate"]
            assert isinstance(at, int)
            assert answer.witness["f"] == left[at] != right[at] == answer.witness["g"]


@settings(max_examples=150)
@given(pairs())
def test_the_ladder_always_decides_small_layouts(pair: tuple[AnyLayout, AnyLayout]) -> None:
    f, g = pair
    answer = equivalent(f, g)
    assert isinstance(answer, Proved | Refuted)
    assert answer.engine in ("normal-form", "table")
    assert bool(answer) == (f.table().tolist() == g.table().tolist())
    assert bool(equivalent(g, f)) == bool(answer)
    assert bool(equivalent(f, f))


@given(mixed_layouts(strides), mixed_layouts(strides))
def test_plain_layouts_are_always_decided_by_normal_form_with_the_first_difference(
    f: CuteLayout, g: CuteLayout
) -> None:
    answer = equivalent(f, g)
    left, right = f.table().tolist(), g.table().tolist()
    assert isinstance(answer, Proved | Refuted)
    assert bool(answer) == (left == right)
    if len(left) != len(right):
        assert answer == Refuted("size", {"size of f": len(left), "size of g": len(right)})
        return
    assert answer.engine == "normal-form"
    if isinstance(answer, Refuted):
        at = next(index for index, (a, b) in enumerate(zip(left, right, strict=True)) if a != b)
        assert answer.witness == {"coordinate": at, "f": left[at], "g": right[at]}


@settings(max_examples=30)
@given(st.sampled_from((3, 5, 6, 7)), st.sampled_from((1 << 12, 1 << 20)), st.integers(0, 3), st.booleans())
def test_large_swizzled_ragged_layouts_are_decided_without_enumeration(
    rows: int, columns: int, offset: int, change: bool
) -> None:
    layout = ComposedLayout(Swizzle(2, 3, 3), 8 * offset, CuteLayout((8, rows, columns), (1, 8, 8 * rows)))
    # the same function, with the run of eight under the swizzle written as two modes
    other = ComposedLayout(Swizzle(2, 3, 3), 8 * offset, CuteLayout((2, 4, rows * columns), (1, 2 + change, 8)))
    answer = equivalent(layout, other, Budget(table_points=0))
    assert bool(answer) == (not change)


def test_isl_and_z3_decide_a_swizzle_written_in_two_ways() -> None:
    # the swizzle's source bits never change here, so it is the identity; the size is no power of two
    f = ComposedLayout(Swizzle(1, 0, 4), 0, CuteLayout((3, 5), (1, 3)))
    g = CuteLayout(15, 1)
    for engine in ("isl", "smt", "table"):
        assert equivalent(f, g, _engines=(engine,)) == equivalent(g, f, _engines=(engine,)) or engine != "table"
        assert bool(equivalent(f, g, _engines=(engine,)))
    with pytest.raises(ValueError, match="swizzles differ"):
        bool(equivalent(f, g, _engines=("normal-form",)))
