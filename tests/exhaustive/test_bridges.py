"""All small layouts: every bridge is right or refused with a coordinate that shows it, and the engines agree."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from layoutalg import convert
from layoutalg.bridges.equal import ENGINES, equivalent
from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.ground.errors import RepresentabilityError
from layoutalg.ground.verdict import Proved, Refuted

Layout = CuteLayout | ComposedLayout


def first_departure(values: list[int]) -> int | None:
    """The least index where values leave the affine map over F2 that 0 and the powers of two fix."""
    forced = [values[0]]
    while len(forced) < len(values):
        step = values[len(forced)] ^ values[0]
        forced += [value ^ step for value in forced]
    return next((index for index, value in enumerate(values) if value != forced[index]), None)


def judge_to_linear(layout: Layout) -> str:
    """Check ``to_linear`` against the values of the layout; return which answer it gave."""
    values = layout.table().tolist()
    power = len(values).bit_count() == 1
    wrong = first_departure(values) if power else None
    try:
        answer = convert.to_linear(layout)
    except RepresentabilityError as error:
        witness = error.diagnostic.witness or {}
        if error.diagnostic.code == "LA231":
            assert not power
            assert witness == {"size": len(values)}
        elif error.diagnostic.code == "LA232":
            at = next(index for index, value in enumerate(values) if value < 0)
            assert wrong is None
            assert witness == {"coordinate": at, "value": values[at]}
        else:
            x, y = witness["x"], witness["y"]
            assert isinstance(x, int)
            assert isinstance(y, int)
            assert x ^ y == wrong, "not the first coordinate"
            assert witness["f(x^y)"] == values[x ^ y]
            assert witness["f(x)^f(y)^f(0)"] == values[x] ^ values[y] ^ values[0] != values[x ^ y]
        return error.diagnostic.code
    assert power
    assert answer.table().tolist() == values
    return "exact"


def count(layouts: Iterator[Layout]) -> dict[str, int]:
    tally: dict[str, int] = {}
    for layout in layouts:
        answer = judge_to_linear(layout)
        tally[answer] = tally.get(answer, 0) + 1
    return tally


def test_two_modes_with_extents_2_4_8_and_strides_0_to_16() -> None:
    shapes = itertools.product((2, 4, 8), repeat=2)
    layouts = (CuteLayout(s, d) for s in shapes for d in itertools.product(range(17), repeat=2))
    tally = count(layouts)
    assert sum(tally.values()) == 2601
    assert tally == {"exact": 441, "LA230": 2160}


def test_two_modes_with_extents_2_to_8_and_negative_strides() -> None:
    shapes = itertools.product(range(2, 9), repeat=2)
    tally = count(CuteLayout(s, d) for s in shapes for d in itertools.product(range(-6, 9), repeat=2))
    assert set(tally) == {"exact", "LA230", "LA231", "LA232"}
    assert sum(tally.values()) == 49 * 225


def test_three_modes() -> None:
    shapes = itertools.product((1, 2, 4), repeat=3)
    tally = count(CuteLayout(s, d) for s in shapes for d in itertools.product((-4, 0, 1, 2, 3, 4, 8), repeat=3))
    assert sum(tally.values()) == 27 * 343


def swizzled() -> Iterator[ComposedLayout]:
    strides = ((1, 4), (4, 1), (1, 5), (3, 8), (2, -2), (0, 7))
    for bits, base in itertools.product((0, 1, 2), (0, 1)):
        for shift in (-2, -1, 1, 2, 3):
            if abs(shift) >= bits:
                for stride, offset in itertools.product(strides, (0, 1, 2, 5, 16, -3)):
                    yield ComposedLayout(Swizzle(bits, base, shift), offset, CuteLayout((4, 4), stride))


def test_swizzled_tiles_with_offsets() -> None:
    tally = count(swizzled())
    assert set(tally) == {"exact", "LA230"}


def test_stacks_of_two_swizzles_with_offsets() -> None:
    inner = [layout for index, layout in enumerate(swizzled()) if index % 7 == 0]
    outer = [(Swizzle(1, 0, 2), offset) for offset in (0, 1, -5, 8)] + [(Swizzle(2, 1, -2), 3)]
    tally = count(ComposedLayout(swizzle, offset, layout) for layout in inner for swizzle, offset in outer)
    assert tally["exact"] > 50
    assert tally["LA230"] > 50


def test_to_cute_and_recognize_return_the_function_or_refuse() -> None:
    kinds = set()
    for layout in swizzled():
        values = layout.table()
        for bridge, argument in ((convert.to_cute, layout), (convert.recognize, values)):
            try:
                answer = bridge(argument)  # type: ignore[operator]
            except RepresentabilityError:
                kinds.add("refused")
                continue
            kinds.add(type(answer).__name__)
            assert np.array_equal(answer.table(), values)
    assert kinds == {"CuteLayout", "ComposedLayout"}  # one swizzle over a layout is always found again


def test_every_two_mode_table_is_recognised_as_its_coalesced_layout() -> None:
    seen: dict[tuple[int, ...], CuteLayout] = {}
    for shape in itertools.product((1, 2, 3, 4), repeat=2):
        for stride in itertools.product(range(-3, 6), repeat=2):
            values = tuple(CuteLayout(shape, stride).table().tolist())
            answer = convert.recognize(values)
            assert isinstance(answer, CuteLayout)
            assert tuple(answer.table().tolist()) == values
            assert seen.setdefault(values, answer) == answer
            assert all(extent > 1 for extent, _ in answer.flat) or answer == CuteLayout(1, 0)


@pytest.mark.parametrize("engine", ENGINES)
def test_each_engine_decides_all_pairs_of_small_layouts(engine: str) -> None:
    layouts: list[Layout] = [
        CuteLayout(shape, stride)
        for shape in ((12,), (3, 4), (4, 3), (2, 6))
        for stride in itertools.product((0, 1, 4), repeat=len(shape))
    ]
    layouts += [ComposedLayout(Swizzle(1, 0, 2), offset, CuteLayout((3, 4), (4, 1))) for offset in (0, 4)]
    tables = [layout.table().tolist() for layout in layouts]
    step = 1 if engine in ("normal-form", "table") else 7
    for index, (a, b) in enumerate(itertools.product(range(len(layouts)), repeat=2)):
        if index % step:
            continue
        answer = equivalent(layouts[a], layouts[b], _engines=(engine,))
        if engine == "normal-form" and not isinstance(answer, Proved | Refuted):
            assert isinstance(layouts[a], ComposedLayout) or isinstance(layouts[b], ComposedLayout)
            continue
        assert bool(answer) == (tables[a] == tables[b])
        if isinstance(answer, Refuted):
            at = answer.witness["coordinate"]
            assert isinstance(at, int)
            assert (answer.witness["f"], answer.witness["g"]) == (tables[a][at], tables[b][at])
            assert tables[a][at] != tables[b][at]
            if engine in ("normal-form", "table"):
                assert tables[a][:at] == tables[b][:at]
