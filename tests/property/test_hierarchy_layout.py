"""Hierarchical layouts against enumeration: normal forms, composition, inverses, guards, conversion equations."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutalg.cute import CuteLayout
from layoutalg.f2 import LinearLayout, solve_outer
from layoutalg.ground.digits import aligned
from layoutalg.ground.errors import AdmissibilityError, MalformedError
from layoutalg.hierarchy import (
    Box,
    DigitMap,
    Guard,
    HierarchicalLayout,
    TableMap,
    distribute,
    permute,
    reindex,
    restrict,
    solve_conversion,
    tile,
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


def bit_maps(bits: int) -> st.SearchStrategy[DigitMap]:
    return columns_of(bits).map(lambda given: DigitMap.from_bits(*given))


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


@st.composite
def chains(draw: st.DrawFn) -> tuple[HierarchicalLayout, HierarchicalLayout]:
    first = draw(layouts(draw(boxes(draw(SIZES), "a")), "b"))
    return first, draw(layouts(first.target, "c"))


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


@settings(max_examples=60, deadline=None)
@given(chains())
def test_partial_bijections_compose_and_invert(pair: tuple[HierarchicalLayout, HierarchicalLayout]) -> None:
    inner, outer = pair
    first, second = partial(inner), partial(outer)
    both = {index: second[value] for index, value in first.items() if value in second}
    answer = outer @ inner
    assert partial(answer) == both
    assert answer == inner.then(outer)
    assert answer.active() == len(both)
    assert answer.table().tolist() == [both.get(index, -1) for index in range(answer.size)]
    assert partial(answer.inverse()) == {value: index for index, value in both.items()}
    assert answer.inverse().inverse() == answer
    assert eval(repr(answer)) == answer
    assert pickle.loads(pickle.dumps(answer)) == answer
    assert hash(eval(repr(answer))) == hash(answer)
    everywhere = np.arange(answer.size)
    assert answer.apply(everywhere[::-1].reshape(1, -1)).tolist() == [answer.table()[::-1].tolist()]
    if answer.in_dims:
        places = np.unravel_index(everywhere, tuple(answer.in_dims.values()), "F")
        named = answer.apply(dict(zip(answer.in_dims, places, strict=True)))
        for name, found in named.items():
            assert found.tolist() == [answer.target.point(both[k])[name] if k in both else -1 for k in everywhere]
    for index in range(0, answer.size, 7):
        assert answer.holds(index) is (index in both)
        if index in both:
            assert answer.at(index) == both[index]
            assert answer(**answer.source.point(index)) == answer.target.point(both[index])
        else:
            with pytest.raises(AdmissibilityError, match="LA753"):
                answer.at(index)


@given(SIZES.flatmap(lambda size: st.tuples(bijections(size), bijections(size))))
def test_conversion_equations(pair: tuple[maps.Bijection, maps.Bijection]) -> None:
    before, after = (HierarchicalLayout(Box.of(i=m.size), Box.of(o=m.size), m) for m in pair)
    answer = solve_conversion(before, after)
    assert answer @ before == after
    left, right = values(pair[0]), values(pair[1])
    assert values(answer.map) == [right[left.index(value)] for value in range(len(left))]


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


@given(st.lists(st.integers(-1, 6), min_size=6, max_size=6))
def test_tables_are_verified(table: list[int]) -> None:
    box = Box.of(x=6)
    if sorted(table) == list(range(6)):
        assert reindex(box, table).table().tolist() == table
        return
    with pytest.raises((AdmissibilityError, MalformedError)) as caught:
        reindex(box, table)
    witness = caught.value.diagnostic.witness
    if "first" in witness:
        assert table[witness["first"]] == table[witness["second"]] == witness["value"]
    else:
        assert table[witness["index"]] == witness["value"]
        assert not 0 <= witness["value"] < 6


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


@settings(deadline=None)
@given(shapes, st.data())
def test_tiles_ragged_or_not(shape: list[int], data: st.DataObject) -> None:
    box = Box(tuple((f"x{k}", extent) for k, extent in enumerate(shape)))
    tiles = {name: data.draw(st.integers(1, 5)) for name in box.names}
    inner, outer = data.draw(st.permutations(box.names)), data.draw(st.permutations(box.names))
    layout = tile(box, tiles, inner=inner, outer=outer)
    assert layout.target.names == (*(f"{n}_in" for n in inner), *(f"{n}_out" for n in outer))
    assert layout.active() == box.size
    for index in range(layout.size):
        point = layout.source.point(index)
        real = all(point[name] < box.dims[name] for name in box.names)
        assert layout.holds(index) == real
        if real:
            expected = {f"{name}_in": value % tiles[name] for name, value in point.items()}
            expected |= {f"{name}_out": value // tiles[name] for name, value in point.items()}
            assert layout(**point) == expected


@given(shapes, st.data())
def test_orders_and_axis_permutations(shape: list[int], data: st.DataObject) -> None:
    box = Box(tuple((f"x{k}", extent) for k, extent in enumerate(shape)))
    ordered = permute(box, data.draw(st.permutations(box.names)))
    chosen = data.draw(st.lists(st.sampled_from(box.names), unique=True, max_size=2))
    sub = Box(tuple((name, box.dims[name]) for name in chosen))
    table = data.draw(st.permutations(range(sub.size)))
    moved = reindex(box, table, chosen)
    for index in range(box.size):
        point = box.point(index)
        assert ordered(**point) == point
        new = sub.point(table[sub.flat({name: point[name] for name in chosen})])
        assert moved(**point) == point | new


@given(st.integers(1, 40), st.integers(1, 9), st.data())
def test_levels_hold_every_element_once(cols: int, rows: int, data: st.DataObject) -> None:
    tensor = Box.of(col=cols, row=rows)
    given_levels = {}
    covered = {"col": 1, "row": 1}
    for level in ("register", "lane", "warp", "cta"):
        entries = data.draw(st.lists(st.tuples(st.sampled_from(("col", "row")), st.integers(1, 4)), max_size=2))
        given_levels[level] = entries
        for axis, extent in entries:
            covered[axis] *= extent
    missing = {axis: -(-extent // covered[axis]) for axis, extent in tensor.axes}
    given_levels["cluster"] = list(missing.items())
    layout = distribute(tensor, **given_levels)
    if layout.size > 4000:
        return
    assert layout.active() == tensor.size
    found = []
    for index in range(layout.size):
        point = layout.source.point(index)
        weight, expected = {"col": 1, "row": 1}, {"col": 0, "row": 0}
        for level in ("register", "lane", "warp", "cta", "cluster"):
            rest = point[level]
            for axis, extent in given_levels[level]:
                rest, digit = divmod(rest, extent)
                expected[axis] += digit * weight[axis]
                weight[axis] *= extent
        real = expected["col"] < cols and expected["row"] < rows
        assert layout.holds(index) == real
        if real:
            assert layout(**point) == expected
            found.append((expected["col"], expected["row"]))
    assert len(set(found)) == len(found) == tensor.size


@given(chains(), st.data())
def test_restrictions(pair: tuple[HierarchicalLayout, HierarchicalLayout], data: st.DataObject) -> None:
    layout, _ = pair
    bounds = {name: data.draw(st.integers(0, extent)) for name, extent in layout.target.axes}
    limits = {name: data.draw(st.integers(0, extent)) for name, extent in layout.source.axes}
    answer = partial(restrict(layout, source=limits, target=bounds))
    assert answer == {
        index: value
        for index, value in partial(layout).items()
        if all(layout.target.point(value)[name] < bound for name, bound in bounds.items())
        and all(layout.source.point(index)[name] < bound for name, bound in limits.items())
    }
