"""Recasts and common layouts against enumeration."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st
from strided_judge import enumerate_layout

from layoutalg.cute import (
    CuteLayout,
    max_alignment,
    upcast,
)
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
