"""Composition against a judge that only looks at tables.

The judge decides whether the table of A after B is strided mode by mode by trying every ordered factorisation of every
extent, and whether it adds up over the modes by an outer sum. It shares no code with the library's decision.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from strided_judge import enumerate_layout, is_strided

from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle, coalesce, composition
from layoutalg.cute.factor import factor_run, first_interaction, max_residue, neighbours
from layoutalg.ground.digits import merge
from layoutalg.ground.errors import AdmissibilityError, LayoutError, RepresentabilityError

Table = npt.NDArray[np.int64]


def table(layout: CuteLayout) -> Table:
    return np.array(enumerate_layout(layout.flat), dtype=np.int64)


def judge(outer: CuteLayout, inner: CuteLayout) -> str:
    left, right = table(outer), table(inner)
    if right.size and (right.min() < 0 or right.max() >= left.size):
        return "leaves"
    values = left[right]
    weight = 1
    total = np.zeros(1, dtype=np.int64)
    for extent, _ in inner.flat:
        run = values[::weight][:extent]
        if not is_strided(run):
            return "no"
        total = np.add.outer(run, total).reshape(-1)
        weight *= extent
    return "yes" if np.array_equal(total, values) else "no"


@st.composite
def pairs(draw: st.DrawFn) -> tuple[CuteLayout, CuteLayout]:
    """An outer layout and an inner one that mostly stays inside it."""
    greatest = draw(st.sampled_from([2, 3, 4, 8]))
    extents = draw(st.lists(st.integers(1, greatest), min_size=1, max_size=4))
    strides = draw(st.lists(st.integers(-10, 30), min_size=len(extents), max_size=len(extents)))
    outer = CuteLayout(tuple(extents), tuple(strides))
    room = outer.size - 1 + draw(st.sampled_from([0, 0, 0, 0, 0, 0, 3]))
    modes = []
    for _ in range(draw(st.integers(1, 3))):
        extent = draw(st.integers(1, 8))
        step = draw(st.integers(0, max(0, room // max(1, extent - 1))))
        if step * (extent - 1) > room:
            extent = 1
        room -= step * (extent - 1)
        modes.append((extent, step))
    modes = draw(st.permutations(modes))
    return outer, CuteLayout(tuple([mode[0] for mode in modes]), tuple([mode[1] for mode in modes]))


@given(pairs())
@settings(max_examples=600, deadline=None)
@example((CuteLayout((6, 2), (1, 7)), CuteLayout((3, 2), (2, 3))))
@example((CuteLayout((2, 2, 3), (1, 5, 7)), CuteLayout((2, 2), (3, 1))))
@example((CuteLayout((2, 3, 2), (1, 4, 2)), CuteLayout(2, 8)))
def test_exact_or_rightly_refused(pair: tuple[CuteLayout, CuteLayout]) -> None:
    outer, inner = pair
    truth = judge(outer, inner)
    left, right = table(outer), table(inner)
    try:
        result = composition(outer, inner)
    except RepresentabilityError as error:
        assert truth == "no"
        witness = error.diagnostic.witness
        assert witness is not None
        index = witness["coordinate"]
        assert isinstance(index, int)
        assert witness["composition"] == left[right[index]] != witness["layout"]
    except AdmissibilityError as error:
        assert truth == "leaves"
        witness = error.diagnostic.witness
        assert witness is not None
        first = int(np.flatnonzero((right < 0) | (right >= left.size))[0])
        assert (witness["coordinate"], witness["value"]) == (first, right[first])
    else:
        assert truth == "yes"
        assert np.array_equal(table(result), left[right])
        assert [mode.size for mode in result] == [mode.size for mode in inner]


def seeded_pairs(seed: int, count: int) -> list[tuple[CuteLayout, CuteLayout]]:
    """Pairs with tiny extents and strides, where carries cancel often."""
    generator = np.random.default_rng(seed)
    answer: list[tuple[CuteLayout, CuteLayout]] = []
    while len(answer) < count:
        rank = int(generator.integers(2, 6))
        extents = tuple(int(x) for x in generator.integers(2, 4, rank))
        strides = tuple(int(x) for x in generator.integers(-4, 8, rank))
        outer = CuteLayout(extents, strides)
        shape = tuple(int(x) for x in generator.integers(2, 5, int(generator.integers(1, 4))))
        steps = tuple(int(x) for x in generator.integers(0, max(2, outer.size // 3), len(shape)))
        inner = CuteLayout(shape, steps)
        if inner.cosize <= outer.size:
            answer.append((outer, inner))
    return answer


def test_cancelling_carries_are_decided() -> None:
    seen = {"yes": 0, "no": 0}
    for outer, inner in seeded_pairs(11, 3000):
        truth = judge(outer, inner)
        seen[truth] += 1
        try:
            result = composition(outer, inner)
        except RepresentabilityError:
            assert truth == "no", (outer, inner)
        else:
            assert truth == "yes", (outer, inner)
            assert np.array_equal(result.table(), table(outer)[table(inner)])
    assert min(seen.values()) > 300


@st.composite
def large_pairs(draw: st.DrawFn) -> tuple[CuteLayout, CuteLayout]:
    """Layouts of up to 2^45 elements: smooth extents, steps near the products of the outer extents."""
    factor = st.sampled_from([2, 3, 4, 8, 12, 64, 96, 1000, 1024, 4096])
    extents = draw(st.lists(factor, min_size=2, max_size=4))
    strides = draw(st.lists(st.integers(-9, 2**14), min_size=len(extents), max_size=len(extents)))
    outer = CuteLayout(tuple(extents), tuple(strides))
    weights = [1]
    for extent in extents:
        weights += [weights[-1] * extent, weights[-1] * extent // 2, weights[-1] * extent + 1, weights[-1] * extent - 1]
    modes = []
    room = outer.size - 1
    for _ in range(draw(st.integers(1, 3))):
        step = draw(st.sampled_from(weights))
        extent = draw(factor)
        while extent > 1 and step * (extent - 1) > room:
            extent //= 2
        room -= step * (extent - 1)
        modes.append((extent, step))
    return outer, CuteLayout(tuple([mode[0] for mode in modes]), tuple([mode[1] for mode in modes]))


@given(large_pairs(), st.lists(st.integers(0, 2**62), min_size=1, max_size=50))
@settings(max_examples=400, deadline=None)
def test_large_domains(pair: tuple[CuteLayout, CuteLayout], samples: list[int]) -> None:
    outer, inner = pair
    try:
        result = composition(outer, inner)
    except RepresentabilityError as error:
        witness = error.diagnostic.witness
        assert witness is not None
        index = witness["coordinate"]
        assert isinstance(index, int)
        assert witness["composition"] == outer(inner(index)) != witness["layout"]
    else:
        assert result.size == inner.size
        for sample in [*samples, -1]:
            index = sample % inner.size
            assert result(index) == outer(inner(index))


@given(pairs(), st.lists(st.integers(1, 4), min_size=1, max_size=2))
@settings(max_examples=150, deadline=None)
def test_associative_where_both_sides_exist(pair: tuple[CuteLayout, CuteLayout], shape: list[int]) -> None:
    outer, middle = pair
    inner = CuteLayout(tuple(shape))
    try:
        left = composition(composition(outer, middle), inner)
        right = composition(outer, composition(middle, inner))
    except LayoutError:
        return
    assert np.array_equal(left.table(), right.table())


@given(pairs())
@settings(max_examples=100, deadline=None)
def test_identity_is_neutral(pair: tuple[CuteLayout, CuteLayout]) -> None:
    layout = pair[0]
    assert coalesce(composition(layout, CuteLayout(layout.size))) == coalesce(layout)
    inner = pair[1]
    if inner.cosize <= 10**6 and inner.size:
        assert composition(CuteLayout(inner.cosize), inner).table().tolist() == inner.table().tolist()


@given(pairs(), st.integers(0, 2), st.integers(0, 2), st.integers(-8, 8))
@settings(max_examples=100, deadline=None)
def test_swizzle_stays_outside(pair: tuple[CuteLayout, CuteLayout], bits: int, base: int, offset: int) -> None:
    outer, inner = pair
    swizzled = ComposedLayout(Swizzle(bits, base, 2), offset, outer)
    try:
        expected = composition(outer, inner).table()
        result = composition(swizzled, inner)
    except LayoutError:
        return
    assert np.array_equal(result.table(), Swizzle(bits, base, 2)(expected + offset))


@given(pairs(), st.integers(0, 2), st.integers(0, 3), st.integers(0, 4))
@settings(max_examples=150, deadline=None)
def test_layout_after_a_swizzle(pair: tuple[CuteLayout, CuteLayout], bits: int, base: int, shift: int) -> None:
    outer = CuteLayout(2**12, 1 << shift)
    inner = ComposedLayout(Swizzle(bits, base, -2), 0, composition(CuteLayout(2**12), CuteLayout(pair[1].shape)))
    assert composition(outer, inner).table().tolist() == [value << shift for value in inner.table().tolist()]


@given(st.integers(1, 60), st.data())
@settings(max_examples=200, deadline=None)
def test_farey_neighbours(denominator: int, data: st.DataObject) -> None:
    numerator = data.draw(st.integers(0, denominator - 1))
    limit = data.draw(st.integers(1, 40))
    low, high = neighbours(numerator, denominator, limit)
    fractions = [(p, q) for q in range(1, limit + 1) for p in range(q + 1)]
    below = max((p / q for p, q in fractions if p * denominator <= numerator * q))
    above = min((p / q for p, q in fractions if p * denominator > numerator * q))
    assert low[0] / low[1] == below
    assert high[0] / high[1] == above


@given(st.integers(0, 200), st.integers(1, 60), st.integers(1, 90))
@settings(max_examples=300, deadline=None)
def test_greatest_residue(step: int, extent: int, modulus: int) -> None:
    greatest, at = max_residue(step, extent, modulus)
    assert greatest == max(step * c % modulus for c in range(extent)) == step * at % modulus
    assert 0 <= at < extent


@pytest.mark.parametrize("prefix", [0, 3])
def test_answers_without_tables_agree(monkeypatch: pytest.MonkeyPatch, prefix: int) -> None:
    """With the table limit at (nearly) nothing the algebraic rules alone still give the same answers, or give up."""
    from layoutalg.cute import factor

    tally = {"agree": 0, "gave up": 0}
    for outer, inner in seeded_pairs(5, 1500):
        merged = merge(outer.flat)
        digits = []
        for extent, step in inner.flat:
            monkeypatch.setattr(factor, "PREFIX", 2**20)
            full = factor_run(merged, step, extent)
            monkeypatch.setattr(factor, "PREFIX", prefix)
            try:
                short = factor_run(merged, step, extent)
            except factor.GaveUpError:
                tally["gave up"] += 1
            else:
                assert isinstance(short, factor.Broken) == isinstance(full, factor.Broken)
                if not isinstance(short, factor.Broken):
                    assert short == full
                tally["agree"] += 1
            if isinstance(full, factor.Broken):
                break
            inside = 1
            for count, _ in full:
                digits.append((count, step * inside))
                inside *= count
        else:
            monkeypatch.setattr(factor, "PREFIX", 2**20)
            found = first_interaction(merged, tuple(digits))
            monkeypatch.setattr(factor, "PREFIX", prefix)
            try:
                assert (first_interaction(merged, tuple(digits)) is None) == (found is None)
            except factor.GaveUpError:
                tally["gave up"] += 1
    assert tally["gave up"] < tally["agree"] / 10
