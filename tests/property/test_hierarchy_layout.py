"""Hierarchical layouts against enumeration: normal forms, composition, inverses, guards, conversion equations."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutalg.cute import CuteLayout
from layoutalg.f2 import LinearLayout, solve_outer
from layoutalg.ground.digits import aligned
from layoutalg.ground.errors import AdmissibilityError
from layoutalg.hierarchy import (
    Box,
    DigitMap,
    Guard,
    HierarchicalLayout,
    TableMap,
    reindex,
)
from layoutalg.hierarchy import bijection as maps
from layoutalg.testing.strategies import bijections

EXTENTS = (2, 3, 5, 7, 4, 6)


@st.composite
def digit_maps(draw: st.DrawFn, extents: tuple[int, ...] | None = None) -> DigitMap:
    """A random permutation of digits with random reversals; ``extents`` in any order when given."""
    if extents is None:
        extents = tuple(draw(st.lists(st.sampled_from(EXTENTS), max_size=4)))
    source = draw(st.permutations(range(len(extents))))
    target = draw(st.permutations(range(len(extents))))
    strides, weight = {}, 1
    for digit in target:
        strides[digit] = weight * draw(st.sampled_from((1, 1, -1)))
        weight *= extents[digit]
    return DigitMap(tuple((extents[digit], strides[digit]) for digit in source))


@st.composite
def columns_of(draw: st.DrawFn, bits: int) -> tuple[tuple[int, ...], int]:
    """The columns of an invertible matrix over F2, and a constant."""
    columns = [1 << bit for bit in draw(st.permutations(range(bits)))]
    if bits > 1:
        for _ in range(draw(st.integers(0, 10))):
            a, b = draw(st.lists(st.integers(0, bits - 1), min_size=2, max_size=2, unique=True))
            columns[a] ^= columns[b]
    return tuple(columns), draw(st.integers(0, (1 << bits) - 1))


def factors(size: int, draw: st.DrawFn) -> tuple[int, ...]:
    found, rest = [], size
    while rest > 1:
        divisor = draw(st.sampled_from([d for d in range(2, rest + 1) if rest % d == 0]))
        found.append(divisor)
        rest //= divisor
    return tuple(found)


def values(bijection: maps.Bijection) -> list[int]:
    """The definition of each form, one point at a time."""
    answer = []
    for index in range(bijection.size):
        if isinstance(bijection, TableMap):
            answer.append(bijection.values[index])
        else:
            value, rest = 0, index
            flipped = dict.fromkeys(bijection.flips, 1)
            for extent, stride in bijection.modes:
                rest, digit = divmod(rest, extent)
                if isinstance(stride, tuple):
                    for weight in stride:
                        flipped[weight] = flipped.get(weight, 0) + digit
                else:
                    value += digit * stride if stride > 0 else (extent - 1 - digit) * -stride
            for weight, count in flipped.items():
                bit = value // weight % 2
                value += ((bit + count) % 2 - bit) * weight
            answer.append(value)
    return answer


SIZES = st.sampled_from((1, 2, 6, 8, 12, 16, 30, 32, 36, 60, 64))


@given(digit_maps())
def test_digit_maps_are_what_they_say(digits: DigitMap) -> None:
    table = values(digits)
    assert sorted(table) == list(range(digits.size))
    assert digits.table().tolist() == table == [digits.at(index) for index in range(digits.size)]
    assert maps.canonical(TableMap(tuple(table))) == digits
    assert values(maps.inverse(digits)) == np.argsort(table).tolist()


@given(st.integers(0, 7).flatmap(columns_of))
def test_maps_over_f2_are_what_their_columns_say(given: tuple[tuple[int, ...], int]) -> None:
    columns, constant = given
    wanted = []
    for index in range(1 << len(columns)):
        value = constant
        for bit, column in enumerate(columns):
            value ^= column * (index >> bit & 1)
        wanted.append(value)
    mapping = DigitMap.from_bits(columns, constant)
    assert values(mapping) == mapping.table().tolist() == wanted
    assert (mapping.columns, mapping.offset) == given


@given(SIZES.flatmap(bijections))
def test_the_canonical_form_is_the_same_function_and_unique(bijection: maps.Bijection) -> None:
    table = values(bijection)
    form = maps.canonical(bijection)
    assert values(form) == table
    assert form == maps.canonical(TableMap(tuple(table)))
    assert maps.canonical(form) == form
    assert eval(repr(form)) == form
    assert pickle.loads(pickle.dumps(form)) == form


@given(SIZES.flatmap(lambda size: st.tuples(bijections(size), bijections(size))))
def test_composition_and_inverse(pair: tuple[maps.Bijection, maps.Bijection]) -> None:
    outer, inner = pair
    table = [values(outer)[value] for value in values(inner)]
    answer = maps.compose(outer, inner)
    assert values(answer) == table
    assert answer == maps.canonical(answer)
    back = maps.inverse(answer)
    assert [values(back)[value] for value in table] == list(range(len(table)))
    assert maps.compose(answer, back) == maps.identity(len(table))


@given(st.sampled_from((2, 3, 4, 6, 8)).flatmap(bijections), st.integers(1, 4), st.integers(1, 4))
def test_acting_in_the_middle(bijection: maps.Bijection, low: int, high: int) -> None:
    table, size = values(bijection), bijection.size
    expected = [
        index % low + low * table[index // low % size] + low * size * (index // low // size)
        for index in range(low * size * high)
    ]
    assert values(maps.local(bijection, low, high)) == expected


@given(digit_maps(), st.lists(st.sampled_from((2, 3, 4, 6, 12)), max_size=2))
def test_aligned_digits_are_the_same_function_on_shared_boundaries(digits: DigitMap, cuts: list[int]) -> None:
    pieces = aligned(digits.modes, [cut for cut in cuts if digits.size % cut == 0])
    if pieces is None:
        return
    assert DigitMap(pieces) == digits
    starts, weight = set(), 1
    for extent, _ in pieces:
        starts.add(weight)
        weight *= extent
    assert starts == {abs(stride) for _, stride in pieces}


@st.composite
def boxes(draw: st.DrawFn, size: int, prefix: str) -> Box:
    extents = factors(size, draw)
    return Box(tuple((f"{prefix}{k}", extent) for k, extent in enumerate(extents)))


@st.composite
def layouts(draw: st.DrawFn, source: Box, prefix: str, guards: int = 2) -> HierarchicalLayout:
    size = source.size
    found = []
    for _ in range(draw(st.integers(0, guards))):
        box = draw(boxes(size, "g"))
        found.append(Guard(draw(bijections(size)), box, tuple(draw(st.integers(0, e)) for _, e in box.axes)))
    return HierarchicalLayout(source, draw(boxes(size, prefix)), draw(bijections(size)), tuple(found))


def partial(layout: HierarchicalLayout) -> dict[int, int]:
    """The partial function, by the definition of its guards."""
    answer = {}
    table = values(layout.map)
    for index in range(layout.size):
        inside = True
        for guard in layout.guards:
            point = guard.box.point(values(guard.map)[index])
            inside &= all(point[name] < bound for name, bound in zip(guard.box.names, guard.bounds, strict=True))
        if inside:
            answer[index] = table[index]
    return answer


def linear(columns: list[int], constant: int, out_bits: int, name: str) -> LinearLayout:
    return LinearLayout((("i", len(columns)),), ((name, out_bits),), tuple(columns), constant)


@given(
    st.integers(0, 4).flatmap(
        lambda n: st.tuples(*[st.lists(st.integers(0, 7), min_size=n, max_size=n)] * 2, *[st.integers(0, 7)] * 2)
    )
)
def test_linear_conversion_equations_are_solved_or_refused_rightly(
    case: tuple[list[int], list[int], int, int],
) -> None:
    before, after = linear(case[0], case[2], 3, "x"), linear(case[1], case[3], 3, "y")
    seen: dict[int, int] = {}
    solvable = all(
        seen.setdefault(a, b) == b for a, b in zip(before.table().tolist(), after.table().tolist(), strict=True)
    )
    if solvable:
        assert (solve_outer(before, after) @ before) == after
    else:
        with pytest.raises(AdmissibilityError, match="LA757") as caught:
            solve_outer(before, after)
        witness = caught.value.diagnostic.witness
        assert before.at(witness["first"]) == before.at(witness["second"])
        assert after.at(witness["first"]) != after.at(witness["second"])


shapes = st.lists(st.integers(1, 7), min_size=1, max_size=3)


@given(st.lists(st.tuples(st.sampled_from((1, 2, 3)), st.integers(-2, 6)), min_size=1, max_size=3))
def test_cute_layouts_are_verified(modes: list[tuple[int, int]]) -> None:
    layout = CuteLayout(tuple(e for e, _ in modes), tuple(d for _, d in modes))
    table = layout.table().tolist()
    if sorted(table) == list(range(layout.size)):
        assert reindex(Box.of(x=layout.size), layout).table().tolist() == table
    else:
        with pytest.raises(AdmissibilityError, match="LA752"):
            reindex(Box.of(x=layout.size), layout)


@given(st.lists(st.integers(0, 7), min_size=3, max_size=3), st.integers(0, 7))
def test_linear_layouts_are_verified(columns: list[int], constant: int) -> None:
    layout = linear(columns, constant, 3, "o")
    table = layout.table().tolist()
    if len(set(table)) == 8:
        assert reindex(Box.of(x=8), layout).table().tolist() == table
    else:
        with pytest.raises(AdmissibilityError, match="LA752") as caught:
            reindex(Box.of(x=8), layout)
        witness = caught.value.diagnostic.witness
        assert table[witness["first"]] == table[witness["second"]] == witness["value"]


shapes = st.lists(st.integers(1, 7), min_size=1, max_size=3)
