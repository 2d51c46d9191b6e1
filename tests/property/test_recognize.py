"""Recognition of tables: the minimal form where one exists, a proof by exhaustion where none does."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutalg import convert
from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle, coalesce
from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import MalformedError, RepresentabilityError
from layoutalg.ground.recognize import swizzled_forms
from layoutalg.integer import IntegerLayout

EVERY = [
    Swizzle(bits, base, sign * far)
    for bits in (1, 2, 3)
    for base in range(11)
    for far in range(bits, 11)
    for sign in (1, -1)
]


def factorisations(size: int) -> list[tuple[int, ...]]:
    if size == 1:
        return [()]
    return [(n, *rest) for n in range(2, size + 1) if size % n == 0 for rest in factorisations(size // n)]


def strided(values: list[int], modulus: int = 0) -> bool:
    """Whether some ordered factorisation of the size makes the values less the first one strided: all are tried."""
    moved = [(value - values[0]) % modulus if modulus else value - values[0] for value in values]
    for extents in factorisations(len(values)):
        weight, built = 1, [0]
        for extent in extents:
            built = [base + digit * moved[weight] for digit in range(extent) for base in built]
            weight *= extent
        if [value % modulus if modulus else value for value in built] == moved:
            return True
    return False


def some_swizzle(values: list[int]) -> bool:
    return any(strided([swizzle(value) for value in values]) for swizzle in EVERY)


def some_modulus(values: list[int]) -> bool:
    """A modulus divides a departure of a strided form, which is below thrice the greatest value."""
    return any(strided(values, modulus) for modulus in range(max(values) + 1, 3 * max(values) + 2))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.integers(0, 15), min_size=1, max_size=9))
def test_refused_tables_have_no_form(values: list[int]) -> None:
    try:
        answer = convert.recognize(values)
    except RepresentabilityError as error:
        assert not strided(values)
        assert not some_swizzle(values)
        assert not some_modulus(values)
        witness = error.diagnostic.witness or {}
        assert values[witness["coordinate"]] == witness["value"] != witness["strided"]  # type: ignore[call-overload]
        return
    assert answer.table().tolist() == values
    if isinstance(answer, CuteLayout):
        assert answer == coalesce(answer)
        assert values[0] == 0
    elif isinstance(answer, LinearLayout):
        assert not some_swizzle(values)
    elif isinstance(answer, IntegerLayout) or answer.outer.bits:
        assert not strided(values)


@settings(max_examples=150, deadline=None)
@given(st.data(), st.integers(2, 40), st.sampled_from([(7,), (3, 4), (5, 1, 3), (2, 3, 4), (5, 1)]))
def test_strides_modulo_m_are_recognized(data: st.DataObject, modulus: int, box: tuple[int, ...]) -> None:
    offset, *strides = data.draw(st.tuples(*[st.integers(0, modulus - 1)] * (len(box) + 1)))
    points = [point[::-1] for point in itertools.product(*map(range, reversed(box)))]
    values = [(offset + sum(d * x for d, x in zip(strides, point, strict=True))) % modulus for point in points]
    assert convert.recognize(values).table().tolist() == values
    assert convert.recognize(values, box).table().tolist() == values


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(-9, 9), min_size=1, max_size=6))
def test_negative_tables(values: list[int]) -> None:
    try:
        answer = convert.recognize(values)
    except RepresentabilityError:
        assert not strided(values)
        assert not some_swizzle(values)
        return
    assert answer.table().tolist() == values


@settings(max_examples=120, deadline=None)
@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=3),
    st.integers(0, 2),
    st.integers(0, 3),
    st.integers(0, 2),
    st.sampled_from((1, -1)),
    st.integers(0, 30),
    st.data(),
)
def test_every_swizzled_layout_comes_back(
    shape: list[int], bits: int, base: int, more: int, sign: int, offset: int, data: st.DataObject
) -> None:
    stride = data.draw(st.lists(st.integers(0, 12), min_size=len(shape), max_size=len(shape)))
    swizzle = Swizzle(bits, base, sign * max(1, bits + more))
    layout = ComposedLayout(swizzle, offset, CuteLayout(tuple(shape), tuple(stride)))
    values = layout.table()
    found = convert.recognize(values)
    assert found.table().tolist() == values.tolist()
    shaped = convert.recognize(values, tuple(shape))
    assert shaped.table().tolist() == values.tolist()
    assert isinstance(shaped, (CuteLayout, ComposedLayout))
    assert [mode.size for mode in shaped] == shape


def test_forms_are_all_found() -> None:
    values = Swizzle(2, 0, 2)(np.array([0, 3, 6, 9, 12, 15, 18, 21, 24]))
    forms = dict(swizzled_forms(values))
    assert (2, 0, 2) in forms
    for (bits, base, shift), modes in forms.items():
        moved = Swizzle(bits, base, shift)(values)
        rebuilt = np.zeros(1, dtype=np.int64)
        for extent, stride in modes:
            rebuilt = np.add.outer(np.arange(extent) * stride, rebuilt).reshape(-1)
        assert (rebuilt + moved[0]).tolist() == moved.tolist()


def test_shapes_and_refusals() -> None:
    assert str(convert.recognize(list(range(6)), (2, 3))) == "(2,3):(1,2)"
    assert str(convert.recognize([0, 1, 4, 5, 2, 3, 6, 7], (2, 4))) == "(2,(2,2)):(1,(4,2))"
    with pytest.raises(RepresentabilityError) as caught:
        convert.recognize([0, 1, 2, 3, 7, 8], (2, 3))
    assert str(caught.value) == (
        "LA235 the layout is not shape:stride with at most one swizzle\n"
        "  in     recognize(table of 6 entries, (2,3))\n"
        "  since  entry 4 is 7, a strided layout would give 4; no swizzle helps; no modulus helps\n"
        "  at     coordinate=4, value=7, strided=4"
    )
    with pytest.raises(MalformedError, match="LA234"):
        convert.recognize([0, 1, 2], (2, 2))
    with pytest.raises(RepresentabilityError, match="swizzles were not tried"):
        convert.recognize([0, 1, 2**61 + 1])
