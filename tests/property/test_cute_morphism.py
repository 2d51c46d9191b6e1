"""Morphisms of flat, nested and padded tuples against enumeration and against the operations on their layouts."""

from __future__ import annotations

import copy
import math
import pickle
from itertools import combinations, pairwise, permutations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from layoutalg import cute
from layoutalg.cute import (
    CuteLayout,
    Morphism,
    composition,
    find_isomorphism,
    is_tractable,
    make_layout,
    mutual_refinement,
    weak_composite,
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


def nested(f: Morphism) -> Morphism:
    """The same morphism one level deeper."""
    return Morphism((f.domain,), (f.codomain, ()), f.map)


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
    flat = [entry.flatten() for entry in chain]
    assert flat[2] @ (flat[1] @ flat[0]) == (h @ g @ f).flatten()
    assert Morphism.identity(flat[0].codomain) @ flat[0] == flat[0] == flat[0] @ Morphism.identity(flat[0].domain)


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
    assert f.is_isomorphism == (sorted(f.map, key=str) == sorted(range(len(f.codomain)), key=str))
    assert nested(f).transpose().flatten() == g
    if f.is_isomorphism:
        assert ~f @ f == Morphism.identity(f.domain)
        assert f @ ~f == Morphism.identity(f.codomain)
        assert sorted(table) == list(range(len(table)))
    if sorted(table) == list(range(math.prod(f.codomain))):
        assert [values(~f)[value] for value in table] == list(range(len(table)))
        assert [table[index] for index in values(~f)] == list(range(len(table)))
    else:
        assert not f.is_isomorphism
        with pytest.raises(AdmissibilityError, match="LA187"):
            f.inverse()
    if None not in f.map:
        assert f.left_inverse() @ f == Morphism.identity(f.domain)
    if set(range(len(f.codomain))) <= set(f.map):
        assert f @ f.right_inverse() == Morphism.identity(f.codomain)


def is_standard(f: Morphism) -> bool:
    """The definition: a flat codomain that ends with a hit leaf, no extent 1 is hit, gaps are single and above 1."""
    extents, hit = f.codomain, set(f.map)
    assert isinstance(extents, tuple)
    gaps = [place not in hit for place in range(len(extents))]
    if f.pitch is not None and any(gaps):
        return False
    return 1 not in extents and not any(a and b for a, b in pairwise([*gaps, True]))


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
            assert Morphism.from_layout(f.to_layout()) == f.standard_form()
            assert is_standard(f.standard_form())
            assert [f.standard_form() == g.standard_form() for g in into if g.domain == f.domain] == [
                values(f) == values(g) for g in into if g.domain == f.domain
            ]
            assert values(f) == layout_values(f.to_layout())
            for g in out:
                pairs += 1
                table = values(g)
                assert values(g @ f) == [table[value] for value in values(f)]
    assert pairs > 3000


# --- operations ---------------------------------------------------------------------------------------------------


@given(tuple_morphisms(), tuple_morphisms())
@QUICK
def test_direct_sum(f: Morphism, g: Morphism) -> None:
    both = f.sum(g)
    scale = math.prod(f.codomain)
    assert values(both) == [a + scale * b for b in values(g) for a in values(f)]
    assert values(nested(f).sum(nested(g))) == values(both)
    assert both.domain == (f.domain, g.domain)
    assert both.flatten().codomain == f.codomain + g.codomain


@given(tuple_morphisms(), st.data())
@QUICK
def test_restrict_factorize_concat_sort(f: Morphism, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(f.domain))))
    cut = data.draw(st.integers(0, len(order)))
    first, second = f.restrict(tuple(order[:cut])), f.restrict(tuple(order[cut:]))
    joined = first.concat(second)
    assert joined.flatten() == f.restrict(tuple(order))
    assert layout_values(joined.to_layout()) == layout_values(make_layout(first.to_layout(), second.to_layout()))
    places = tuple(sorted({entry for entry in f.map if entry is not None}))
    through = f.factorize(places)
    assert Morphism.inclusion(f.codomain, places) @ through == f
    ordered = f.sort()
    assert ordered == f @ f.sorting()
    assert f.sorting().is_isomorphism
    assert list(ordered.strides) == sorted(f.strides)
    assert sorted(values(ordered)) == sorted(values(f))
    assert nested(f).sort().flatten() == ordered


@given(nest_morphisms())
@QUICK
def test_modes_of_nest_morphisms(f: Morphism) -> None:
    layout = f.to_layout()
    assert [f[mode].to_layout() for mode in range(f.rank)] == [layout[mode] for mode in range(layout.rank)]
    assert f.restrict(tuple(range(f.rank))).to_layout().flat == layout.flat
    modes = 1 if isinstance(f.codomain, int) else len(f.codomain)
    assert f.factorize(tuple(range(modes))).to_layout() == layout


@given(st.one_of(nest_morphisms(), padded_morphisms()))
@QUICK
def test_squeeze_coalesce_standard_form_keep_the_function(f: Morphism) -> None:
    wanted = layout_values(f.to_layout())
    assert layout_values(f.squeeze().to_layout()) == wanted
    assert 1 not in flatten(f.squeeze().domain)
    assert f.coalesce().to_layout() == cute.coalesce(f.to_layout())
    assert f.coalesce().coalesce() == f.coalesce()
    standard = f.standard_form()
    assert layout_values(standard.to_layout()) == wanted
    assert standard.standard_form() == standard
    assert Morphism.from_layout(f.to_layout(), padded=f.pitch is not None) == standard
    assert is_standard(standard)


@given(tuple_morphisms())
@QUICK
def test_flat_coalesce_and_complement(f: Morphism) -> None:
    assert nested(f).complement().flatten() == f.complement()
    assert merge(f.to_layout().flat) == f.coalesce().squeeze().to_layout().flat
    rest = f.complement()
    whole = math.prod(f.codomain)
    assert merge(rest.to_layout().flat) == merge(cute.complement(f.to_layout(), whole).flat)
    kept = tuple([position for position, entry in enumerate(f.map) if entry is not None])
    onto = f.restrict(kept).concat(rest)
    assert onto.is_isomorphism
    assert sorted(values(onto)) == list(range(whole))


@given(chains(2))
@QUICK
def test_divide(chain: list[Morphism]) -> None:
    g, f = chain
    answer = f.logical_divide(g).to_layout()
    wanted = divide(f.to_layout(), g.to_layout())
    assert answer.rank == wanted.rank == 2
    assert same_modes(answer, wanted)
    assert layout_values(f.flatten().flat_divide(g.flatten()).to_layout()) == layout_values(wanted)


@given(nest_morphisms(), st.data())
@QUICK
def test_product(f: Morphism, data: st.DataObject) -> None:
    g = data.draw(nest_morphisms(f.complement().domain))
    answer = f.logical_product(g).to_layout()
    wanted = multiply(f.to_layout(), g.to_layout())
    assert same_modes(answer, wanted)
    flat = f.flatten().flat_product(Morphism(flatten(g.domain), g.codomain, g.map).flatten())
    assert layout_values(flat.to_layout()) == layout_values(wanted)


@given(st.one_of(nest_morphisms(), padded_morphisms()), st.data())
@QUICK
def test_pullback_and_pushforward_keep_the_function(f: Morphism, data: st.DataObject) -> None:
    wanted = layout_values(f.to_layout())
    fine = data.draw(refinements(f.codomain))
    pulled = f.pullback(fine)
    assert pulled.codomain == fine
    assert layout_values(pulled.to_layout()) == wanted
    finer = data.draw(refinements(f.domain))
    pushed = f.pushforward(finer)
    assert pushed.domain == finer
    assert layout_values(pushed.to_layout()) == wanted
    if f.pitch is None:
        assert values(pulled) == values(pushed) == wanted
        assert f.pushforward(pulled.domain).map == pulled.map or None in f.transpose().map
    else:
        assert padded_values(pulled) == padded_values(pushed) == wanted


@given(tuple_morphisms(), st.data())
@QUICK
def test_flat_refinements(f: Morphism, data: st.DataObject) -> None:
    fine, finer = data.draw(refinements(f.codomain)), data.draw(refinements(f.domain))
    assert f.pullback(fine).flatten() == nested(f).pullback((fine, ())).flatten()
    assert f.pushforward(finer).flatten() == nested(f).pushforward((finer,)).flatten()


# --- mutual refinements and weak composites -----------------------------------------------------------------------


def factorizations(number: int) -> list[tuple[int, ...]]:
    """All ordered factorizations into factors > 1."""
    if number == 1:
        return [()]
    return [
        (first, *rest)
        for first in range(2, number + 1)
        if number % first == 0
        for rest in factorizations(number // first)
    ]


def flat_refinements(extents: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [sum(parts, ()) for parts in product(*[factorizations(extent) for extent in extents])]


@given(
    st.lists(st.sampled_from([1, 2, 3, 4, 6, 8]), max_size=3).map(tuple),
    st.lists(st.sampled_from([1, 2, 3, 4, 6, 8]), max_size=3).map(tuple),
)
@settings(max_examples=200, deadline=None)
def test_mutual_refinement_is_least(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    shared = [
        max(a, b, key=len)
        for a in flat_refinements(first)
        for b in flat_refinements(second)
        if a[: len(b)] == b or b[: len(a)] == a
    ]
    try:
        answer = mutual_refinement(first, second)
    except AdmissibilityError as error:
        assert error.diagnostic.code == "LA600"
        assert not shared
        return
    left, right = flatten(answer.first), flatten(answer.second)
    assert isinstance(answer.first, tuple)
    assert isinstance(answer.second, tuple)
    for whole, refined in ((first, answer.first), (second, answer.second)):
        assert tuple([math.prod(flatten(part)) for part in refined]) == whole
        assert flatten(refined) in flat_refinements(whole)
    assert left[: len(right)] == right or right[: len(left)] == left
    least = min(len(found) for found in shared)
    assert max(len(left), len(right)) == least
    assert [found for found in set(shared) if len(found) == least] == [max(left, right, key=len)]


def cuts_chain(*extents: tuple[int, ...]) -> bool:
    cuts = sorted({math.prod(flat[:count]) for flat in extents for count in range(len(flat) + 1)})
    return all(high % low == 0 for low, high in pairwise(cuts))


def check_by_layout(f: Morphism, g: Morphism, wanted: list[int]) -> None:
    try:
        answer = weak_composite(f, g, by_layout=True)
    except RepresentabilityError as error:
        assert error.diagnostic.code in ("LA121", "LA122", "LA603", "LA612")
    else:
        assert layout_values(answer.to_layout()) == wanted


@given(nest_morphisms(), st.one_of(nest_morphisms(), padded_morphisms()))
@settings(max_examples=150, deadline=None)
def test_weak_composite_is_the_composition_of_functions(f: Morphism, g: Morphism) -> None:
    inner, outer = layout_values(f.to_layout()), layout_values(g.to_layout())
    try:
        answer = weak_composite(f, g)
    except AdmissibilityError as error:
        if error.diagnostic.code == "LA601":
            assert error.diagnostic.witness is not None
            first = error.diagnostic.witness["coordinate"]
            assert first == next(index for index, value in enumerate(inner) if value >= len(outer))
        else:
            assert error.diagnostic.code == "LA600"
            assert max(inner) < len(outer)
            assert not cuts_chain(flatten(f.standard_form().codomain), flatten(g.coalesce().domain))
            try:
                layout = composition(g.to_layout(), f.to_layout())
            except LayoutError:
                assert not error.diagnostic.repairs
            else:
                assert str(layout) in error.diagnostic.repairs[0].detail
            check_by_layout(f, g, [outer[value] for value in inner])
        return
    assert (answer.pitch is None) == (g.pitch is None)
    assert layout_values(answer.to_layout()) == [outer[value] for value in inner]
    parts = (answer.domain,) if isinstance(f.domain, int) else answer.domain
    wholes = (f.domain,) if isinstance(f.domain, int) else f.domain
    assert isinstance(parts, tuple)
    assert [math.prod(flatten(part)) for part in parts] == [math.prod(flatten(whole)) for whole in wholes]
    composed = composition(g.to_layout(), f.to_layout())
    assert layout_values(composed) == layout_values(answer.to_layout())


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_weak_composites_of_regrouped_morphisms_exist(data: st.DataObject) -> None:
    """g over another grouping of the same leaves: every strict composite has its weak counterpart."""
    g, f = data.draw(nest_morphisms()), None
    fine = data.draw(refinements(g.domain))
    assume(math.prod(flatten(g.domain)) > 1)
    f = data.draw(nest_morphisms(fine))
    answer = weak_composite(f, g)
    assert values(answer) == values(g.pushforward(fine) @ f)
    assert weak_composite(f.flatten(), g.flatten()).flatten() == answer.flatten()


@given(nest_morphisms(), nest_morphisms(), nest_morphisms())
@settings(max_examples=80, deadline=None)
def test_weak_composition_is_associative_as_a_function(f: Morphism, g: Morphism, h: Morphism) -> None:
    try:
        right = weak_composite(f, weak_composite(g, h))
        left = weak_composite(weak_composite(f, g), h)
    except LayoutError:
        return
    assert values(left) == values(right)


@given(objects(), objects())
@QUICK
def test_isomorphic_objects(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    found = find_isomorphism(first, second)
    assert (found is None) == (sorted(first) != sorted(second))
    if found is not None:
        assert found.is_isomorphism
        assert (found.domain, found.codomain) == (first, second)


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
def test_tractable_layouts_round_trip_and_others_say_why(layout: CuteLayout) -> None:
    answer = is_tractable(layout)
    assert bool(answer) == is_chain(layout)
    assert answer.layout == layout
    moving = [(s, d) for s, d in layout.flat if s > 1 and d != 0]
    increasing = False
    if layout.size and all(d > 0 for _, d in moving):
        table = layout_values(CuteLayout(*zip(*sorted(moving, key=lambda m: m[1]), strict=True))) if moving else [0]
        increasing = all(a < b for a, b in pairwise(table))
    assert (answer.kind in ("tractable", "padded")) == increasing
    zeroed = CuteLayout(layout.shape, tuple([d if s > 1 else 0 for s, d in layout.flat])) if layout.size else layout
    if increasing:
        p = Morphism.from_layout(layout, padded=True)
        assert p.to_layout() == zeroed
        assert p.standard_form() == p
    else:
        with pytest.raises(RepresentabilityError, match="LA612"):
            Morphism.from_layout(layout, padded=True)
    if answer:
        assert answer.morphism is not None
        assert answer.morphism.to_layout() == zeroed
        assert answer.morphism.standard_form() == answer.morphism
        assert Morphism.from_layout(layout) == answer.morphism
        return
    with pytest.raises(RepresentabilityError, match="LA603"):
        Morphism.from_layout(layout)
    assert answer.modes is not None
    assert answer.because
    a, b = answer.modes
    if answer.kind == "overlapping":
        pair = CuteLayout((layout.flat[a][0], layout.flat[b][0]), (layout.flat[a][1], layout.flat[b][1]))
        assert len(set(layout_values(pair))) < pair.size
    elif answer.kind == "padded":
        assert not is_chain(CuteLayout(*zip(layout.flat[a], layout.flat[b], strict=True)))
    elif answer.kind == "negative":
        assert layout.flat[a][1] < 0
    elif answer.kind == "empty":
        assert layout.flat[a][0] == 0


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
    assert [whole[value] for value in values(p.base)] == wanted
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
    assert [p[mode].to_layout() for mode in range(p.base.rank)] == list(p.to_layout())
    try:
        nest = p.unpadded()
    except RepresentabilityError:
        assert not is_chain(p.to_layout())
    else:
        assert values(nest) == wanted


@given(nest_morphisms())
@QUICK
def test_compact_padding_is_no_padding(f: Morphism) -> None:
    p = f.padded()
    assert p.to_layout() == f.to_layout()
    assert p.unpadded() == f.standard_form()
    assert p.complement().to_layout() == f.complement().to_layout()


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
