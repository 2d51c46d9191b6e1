"""Morphisms of flat, nested and padded tuples against enumeration and against the operations on their layouts."""

from __future__ import annotations

import copy
import math
import pickle
from itertools import combinations, pairwise, permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutalg import cute
from layoutalg.cute import (
    CuteLayout,
    Morphism,
    composition,
    make_layout,
)
from layoutalg.cute.inttuple import IntTuple, flatten, unflatten
from layoutalg.cute.pointed import Map
from layoutalg.ground.digits import merge
from layoutalg.ground.errors import AdmissibilityError, LayoutError, RepresentabilityError
from layoutalg.proofs.certify import functoriality

QUICK = settings(max_examples=60, deadline=None)
EXTENTS = st.sampled_from([1, 2, 2, 3, 3, 4, 5])


# --- the judge: digits, written out -------------------------------------------------------------------------------


def digits_of(index: int, extents: tuple[int, ...]) -> list[int]:
    digits = []
    for extent in extents:
        digits.append(index % extent)
        index //= extent
    return digits


def image(domain: tuple[int, ...], codomain: tuple[int, ...], mapping: Map, index: int) -> int:
    """Carry the digits by hand and read them as a flat index of the codomain."""
    target = [0] * len(codomain)
    for digit, entry in zip(digits_of(index, domain), mapping, strict=True):
        if entry is not None:
            target[entry] = digit
    total = 0
    for digit, extent in zip(reversed(target), reversed(codomain), strict=True):
        total = total * extent + digit
    return total


def values(f: Morphism) -> list[int]:
    domain = flatten(f.domain)
    return [image(domain, flatten(f.codomain), f.map, index) for index in range(math.prod(domain))]


def padded_values(p: Morphism) -> list[int]:
    weights = flatten(p.pitch)
    domain = flatten(p.domain)
    return [
        sum(
            digit * weights[entry]
            for digit, entry in zip(digits_of(i, domain), p.map, strict=True)
            if entry is not None
        )
        for i in range(math.prod(domain))
    ]


def layout_values(layout: CuteLayout) -> list[int]:
    found = [0]
    for extent, stride in layout.flat:
        found = [value + stride * digit for digit in range(extent) for value in found]
    return found


def same_modes(a: CuteLayout, b: CuteLayout) -> bool:
    return a.rank == b.rank and all(layout_values(x) == layout_values(y) for x, y in zip(a, b, strict=True))


def divide(a: CuteLayout, b: CuteLayout) -> CuteLayout:
    return composition(a, make_layout(b, cute.complement(b, a.size)))


def multiply(a: CuteLayout, b: CuteLayout) -> CuteLayout:
    return make_layout(a, composition(cute.complement(a, a.size * b.cosize), b))


# --- strategies ---------------------------------------------------------------------------------------------------


def nestings(draw: st.DrawFn, flat: tuple[int, ...]) -> IntTuple:
    """Nest the leaves at random; a single leaf may stay an int."""
    if len(flat) == 1 and draw(st.booleans()):
        return flat[0]
    parts: list[IntTuple] = list(flat)
    for _ in range(draw(st.integers(0, 2))):
        if len(parts) < 2:
            break
        start = draw(st.integers(0, len(parts) - 1))
        stop = draw(st.integers(start + 1, len(parts)))
        parts[start:stop] = [tuple(parts[start:stop])]
    return tuple(parts)


@st.composite
def maps_into(draw: st.DrawFn, codomain: tuple[int, ...], total: bool = False) -> tuple[tuple[int, ...], Map]:
    """A domain and a pointed map into ``codomain``."""
    hit = draw(st.lists(st.sampled_from(range(len(codomain))), unique=True, max_size=4)) if codomain else []
    entries: list[tuple[int, int | None]] = [(codomain[place], place) for place in hit]
    if not total:
        for extent in draw(st.lists(EXTENTS, max_size=2)):
            entries.insert(draw(st.integers(0, len(entries))), (extent, None))
    return tuple([extent for extent, _ in entries]), tuple([place for _, place in entries])


def objects(most: int = 4) -> st.SearchStrategy[tuple[int, ...]]:
    return st.lists(EXTENTS, max_size=most).map(tuple)


@st.composite
def tuple_morphisms(draw: st.DrawFn, total: bool = False) -> Morphism:
    codomain = draw(objects())
    domain, mapping = draw(maps_into(codomain, total))
    return Morphism(domain, codomain, mapping)


@st.composite
def nest_morphisms(draw: st.DrawFn, codomain: IntTuple | None = None) -> Morphism:
    target = nestings(draw, draw(objects())) if codomain is None else codomain
    domain, mapping = draw(maps_into(flatten(target)))
    return Morphism(nestings(draw, domain), target, mapping)


@st.composite
def chains(draw: st.DrawFn, length: int = 2) -> list[Morphism]:
    """Morphisms f_0, f_1, ... with f_1 @ f_0 and so on defined."""
    found = [draw(nest_morphisms())]
    while len(found) < length:
        found.insert(0, draw(nest_morphisms(found[0].domain)))
    return found


@st.composite
def padded_morphisms(draw: st.DrawFn) -> Morphism:
    base = draw(nest_morphisms())
    pitches = []
    reach = 0
    for extent in flatten(base.codomain):
        least = 0 if extent == 1 else reach
        pitch = least + 1 + draw(st.sampled_from([0, 0, 1, 2, 5]))
        pitches.append(pitch)
        reach += (extent - 1) * pitch
    return Morphism(base.domain, base.codomain, base.map, unflatten(tuple(pitches), base.codomain))


@st.composite
def refinements(draw: st.DrawFn, coarse: IntTuple) -> IntTuple:
    if isinstance(coarse, tuple):
        return tuple([draw(refinements(entry)) for entry in coarse])
    parts: list[int] = []
    rest = coarse
    while rest > 1:
        part = draw(st.sampled_from([d for d in range(2, rest + 1) if rest % d == 0]))
        parts.append(part)
        rest //= part
    if len(parts) == 1 and draw(st.booleans()):
        return coarse
    parts += [1] * draw(st.integers(0, 1))
    return nestings(draw, tuple(parts)) if parts else draw(st.sampled_from([1, (), (1, 1)]))


@st.composite
def layouts(draw: st.DrawFn) -> CuteLayout:
    shape = draw(st.lists(st.integers(0, 5), min_size=1, max_size=4).map(tuple))
    strides = draw(st.lists(st.integers(-2, 24), min_size=len(shape), max_size=len(shape)))
    return CuteLayout(shape, tuple(strides))


# --- evaluation and values ----------------------------------------------------------------------------------------


@given(st.one_of(tuple_morphisms(), nest_morphisms()))
@QUICK
def test_evaluation_is_the_carried_digits(f: Morphism) -> None:
    wanted = values(f)
    layout = f.to_layout()
    assert layout.shape == f.domain
    assert layout_values(layout) == wanted
    assert f.table().tolist() == wanted
    assert [f(index) for index in range(len(wanted))] == wanted
    assert f.apply(np.arange(len(wanted))).tolist() == wanted
    domain, codomain = flatten(f.domain), flatten(f.codomain)
    for index in range(0, len(wanted), 7):
        if isinstance(f.domain, int):
            continue
        there = f(unflatten(tuple(digits_of(index, domain)), f.domain))
        assert there == unflatten(tuple(digits_of(wanted[index], codomain)), f.codomain)


@given(st.one_of(tuple_morphisms(), nest_morphisms(), padded_morphisms()))
@QUICK
def test_values_are_values(f: Morphism) -> None:
    assert eval(repr(f)) == f
    assert pickle.loads(pickle.dumps(f)) == f == copy.deepcopy(f)
    assert len({f, copy.copy(f)}) == 1


@given(st.one_of(tuple_morphisms(), nest_morphisms()))
@QUICK
def test_preimages(f: Morphism) -> None:
    table = values(f)
    for index in range(math.prod(flatten(f.codomain))):
        assert f.preimage(index) == (table.index(index) if index in table else None)


# --- the category -------------------------------------------------------------------------------------------------


@given(chains(3))
@QUICK
def test_category_laws(chain: list[Morphism]) -> None:
    f, g, h = chain
    assert h @ (g @ f) == (h @ g) @ f == f.then(g).then(h)
    assert f @ Morphism.identity(f.domain) == f == Morphism.identity(f.codomain) @ f


@given(chains(2))
@QUICK
def test_functoriality(chain: list[Morphism]) -> None:
    f, g = chain
    inner, outer = values(f), values(g)
    assert values(g @ f) == [outer[value] for value in inner]
    composed = composition(g.to_layout(), f.to_layout())
    assert layout_values(composed) == layout_values((g @ f).to_layout())
    assert merge(composed.flat) == merge((g @ f).to_layout().flat)


@given(tuple_morphisms())
@QUICK
def test_inverse_category(f: Morphism) -> None:
    g = f.transpose()
    assert f @ g @ f == f
    assert g @ f @ g == g
    assert (g @ f) @ (g @ f) == g @ f
    table, back = values(f), values(g)
    assert all(table[back[value]] == value for value in table)
    if None not in f.map and len(f.map) == len(f.codomain):
        assert ~f @ f == Morphism.identity(f.domain)
        assert f @ ~f == Morphism.identity(f.codomain)
        assert sorted(table) == list(range(len(table)))
    if sorted(table) == list(range(math.prod(f.codomain))):
        assert [values(~f)[value] for value in table] == list(range(len(table)))
        assert [table[index] for index in values(~f)] == list(range(len(table)))
    else:
        with pytest.raises(AdmissibilityError, match="LA187"):
            f.inverse()
    if None not in f.map:
        assert f.left_inverse() @ f == Morphism.identity(f.domain)
    if set(range(len(f.codomain))) <= set(f.map):
        assert f @ f.right_inverse() == Morphism.identity(f.codomain)


def small_objects() -> list[tuple[int, ...]]:
    return [extents for count in range(4) for extents in product((1, 2, 3), repeat=count)]


def morphisms_between(domain: tuple[int, ...], codomain: tuple[int, ...]) -> list[Morphism]:
    found = []
    for mapping in product((None, *range(len(codomain))), repeat=len(domain)):
        hit = [entry for entry in mapping if entry is not None]
        fits = all(e is None or codomain[e] == s for s, e in zip(domain, mapping, strict=True))
        if len(set(hit)) == len(hit) and fits:
            found.append(Morphism(domain, codomain, mapping))
    return found


def test_exhaustive_small_morphisms() -> None:
    small = [extents for extents in small_objects() if len(extents) <= 2]
    pairs = 0
    for middle in small:
        into = [f for domain in small for f in morphisms_between(domain, middle)]
        out = [g for codomain in small for g in morphisms_between(middle, codomain)]
        for f in into:
            assert values(f) == layout_values(f.to_layout()) == values(Morphism.from_layout(f.to_layout()))
            for g in out:
                pairs += 1
                table = values(g)
                assert values(g @ f) == [table[value] for value in values(f)]
    assert pairs > 3000


# --- operations ---------------------------------------------------------------------------------------------------


@given(nest_morphisms())
@QUICK
def test_modes_of_nest_morphisms(f: Morphism) -> None:
    layout = f.to_layout()
    assert [f[mode].to_layout() for mode in range(f.rank)] == [layout[mode] for mode in range(layout.rank)]


@given(tuple_morphisms())
@QUICK
def test_concat_and_complement(f: Morphism) -> None:
    rest, whole = f.complement(), math.prod(f.codomain)
    assert merge(rest.to_layout().flat) == merge(cute.complement(f.to_layout(), whole).flat)
    both = f.concat(rest)
    assert layout_values(both.to_layout()) == layout_values(make_layout(f.to_layout(), rest.to_layout()))
    if None not in f.map:
        assert sorted(values(both)) == list(range(whole))


@given(chains(2))
@QUICK
def test_divide(chain: list[Morphism]) -> None:
    g, f = chain
    answer = f.logical_divide(g).to_layout()
    wanted = divide(f.to_layout(), g.to_layout())
    assert answer.rank == wanted.rank == 2
    assert same_modes(answer, wanted)


@given(nest_morphisms(), st.data())
@QUICK
def test_product(f: Morphism, data: st.DataObject) -> None:
    g = data.draw(nest_morphisms(f.complement().domain))
    answer = f.logical_product(g).to_layout()
    wanted = multiply(f.to_layout(), g.to_layout())
    assert same_modes(answer, wanted)


@given(st.one_of(nest_morphisms(), padded_morphisms()), st.data())
@QUICK
def test_pushforward_keeps_the_function(f: Morphism, data: st.DataObject) -> None:
    wanted = layout_values(f.to_layout())
    finer = data.draw(refinements(f.domain))
    pushed = f.pushforward(finer)
    assert pushed.domain == finer
    assert layout_values(pushed.to_layout()) == wanted
    assert (values(pushed) if f.pitch is None else padded_values(pushed)) == wanted


# --- layouts to morphisms -----------------------------------------------------------------------------------------


def is_chain(layout: CuteLayout) -> bool:
    """The definition by brute force: some order of the moving modes is a divisible chain."""
    modes = [(s, d) for s, d in layout.flat if s > 1 and d != 0]
    if layout.size == 0 or any(d < 0 for _, d in modes):
        return False
    return any(
        all(slow[1] % (fast[0] * fast[1]) == 0 for fast, slow in pairwise(order)) for order in permutations(modes)
    )


@given(layouts())
@settings(max_examples=300, deadline=None)
def test_layouts_have_a_morphism_exactly_if_their_modes_are_a_chain_or_padded_rows(layout: CuteLayout) -> None:
    moving = [(s, d) for s, d in layout.flat if s > 1 and d != 0]
    increasing = False
    if layout.size and all(d > 0 for _, d in moving):
        table = layout_values(CuteLayout(*zip(*sorted(moving, key=lambda m: m[1]), strict=True))) if moving else [0]
        increasing = all(a < b for a, b in pairwise(table))
    zeroed = CuteLayout(layout.shape, tuple([d if s > 1 else 0 for s, d in layout.flat])) if layout.size else layout
    for padded, exists, code in ((False, is_chain(layout), "LA603"), (True, increasing, "LA612")):
        if exists:
            found = Morphism.from_layout(layout, padded=padded)
            assert found.to_layout() == zeroed
            assert Morphism.from_layout(zeroed, padded=padded) == found
            continue
        with pytest.raises(RepresentabilityError, match=code) as caught:
            Morphism.from_layout(layout, padded=padded)
        assert caught.value.diagnostic.because
        assert_breaks(layout, *caught.value.diagnostic.witness["modes"])  # type: ignore[index,misc]


def assert_breaks(layout: CuteLayout, a: int, b: int) -> None:
    """Two modes, or one named twice, that no chain has."""
    first, second = layout.flat[a], layout.flat[b]
    if a == b:
        assert first[0] == 0 or first[1] < 0
    else:
        assert not is_chain(CuteLayout(*zip(first, second, strict=True))) or second[1] <= layout.size * first[1]


# --- padded morphisms ---------------------------------------------------------------------------------------------


@given(padded_morphisms(), st.data())
@QUICK
def test_padded_morphisms(p: Morphism, data: st.DataObject) -> None:
    assert eval(repr(p)) == p
    wanted = padded_values(p)
    assert layout_values(p.to_layout()) == wanted == p.table().tolist()
    for offset in range(max(wanted) + 3):
        assert p.preimage(offset) == (wanted.index(offset) if offset in wanted else None)
    whole = layout_values(CuteLayout(flatten(p.codomain), flatten(p.pitch)))
    assert all(a < b for a, b in pairwise(whole))
    assert [whole[value] for value in values(Morphism(p.domain, p.codomain, p.map))] == wanted
    g = data.draw(nest_morphisms(p.domain))
    h = data.draw(nest_morphisms(g.domain))
    assert padded_values(p @ g) == [wanted[value] for value in values(g)]
    assert layout_values(composition(p.to_layout(), g.to_layout())) == padded_values(p @ g)
    assert p @ (g @ h) == (p @ g) @ h
    assert p @ Morphism.identity(p.domain) == p == Morphism.identity(p.domain).then(p)
    assert same_modes(p.logical_divide(g).to_layout(), divide(p.to_layout(), g.to_layout()))
    rest = p.complement()
    both = [a + b for a in sorted(set(wanted)) for b in padded_values(rest)]
    assert sorted(both) == whole
    copies = p.logical_product(data.draw(nest_morphisms(rest.domain)))
    assert set(padded_values(copies)) <= set(whole)
    assert [p[mode].to_layout() for mode in range(p.rank)] == list(p.to_layout())
    try:
        nest = p.unpadded()
    except RepresentabilityError:
        assert not is_chain(p.to_layout())
    else:
        assert values(nest) == wanted


# --- certificates -------------------------------------------------------------------------------------------------


def statement_values(function: dict[str, Any]) -> list[int]:
    """The values of a strided function as a statement writes it: digits times strides and an offset."""
    *split, (_, (strides,), (offset,)) = function["stages"]
    values = []
    for index in range(function["size"]):
        digits, rest = [], index
        for extent in split[0][1][:-1] if split else []:
            digits.append(rest % extent)
            rest //= extent
        values.append(offset + sum(digit * stride for digit, stride in zip([*digits, rest], strides, strict=True)))
    return values


@given(chains(2))
@QUICK
def test_functoriality_is_certified(chain: list[Morphism]) -> None:
    f, g = chain
    made = functoriality(f, g)
    assert made.check()
    inner, outer, composite = (layout_values(arrow.to_layout()) for arrow in (f, g, g @ f))
    assert [outer[value] for value in inner] == composite
    claimed = [statement_values(made.statement[name]) for name in "gfh"]
    assert claimed == [inner, outer, composite]


@given(padded_morphisms(), st.data())
@QUICK
def test_padded_composites_are_certified(p: Morphism, data: st.DataObject) -> None:
    assert functoriality(data.draw(nest_morphisms(p.domain)), p).check()


def test_refusals_are_layout_errors() -> None:
    objects_ = [(), (1,), (2,), (2, 3), (3, 2)]
    for first, second in combinations(objects_, 2):
        with pytest.raises(LayoutError, match="LA184"):
            Morphism.identity(first) @ Morphism.identity(second)
