"""Morphisms of nested tuples: the category, its inverses, and the functor to layouts.

Main statements: a morphism carries digits, so composing morphisms composes the functions of their layouts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise, product
from typing import Any

from layoutalg.cute import (
    CuteLayout,
    Morphism,
    coalesce,
    complement,
    composition,
    is_tractable,
    logical_divide,
    logical_product,
    make_layout,
    mutual_refinement,
    weak_composite,
)
from layoutalg.cute.inttuple import flatten
from layoutalg.cute.pointed import Map, followed, prefix_products, strides_at, transpose
from layoutalg.ground.digits import evaluate
from layoutalg.ground.errors import AdmissibilityError, LayoutError, RepresentabilityError
from layoutalg.proofs.laws.engines import enumerated, integers
from layoutalg.proofs.laws.law import Law
from layoutalg.proofs.laws.places import digits_of, index, state_digits
from layoutalg.proofs.laws.trial import Trial

_OBJECTS = ((2,), (3,), (2, 2), (2, 3), (3, 2))
_ARROWS = "the 65 morphisms between (2), (3), (2,2), (2,3) and (3,2)"
_STRUCTURE = "a morphism is a map of positions; extents are only compared, so nothing here depends on their values"
Follow = Callable[[Map, Map], Map]


def _functorial(trial: Trial, follow: Follow = followed) -> None:
    middle, free = (trial.extent("t0"), trial.extent("t1")), trial.extent("u")
    for number, (inner, outer) in enumerate(product(_INTO, _ONWARD)):
        domain = tuple([free if entry is None else middle[entry] for entry in inner])
        owner = transpose(outer, 2)
        codomain = tuple([free if entry is None else middle[entry] for entry in owner])
        f, g, whole = [
            tuple(zip(extents, strides_at(mapping, prefix_products(target)[:-1]), strict=True))
            for extents, mapping, target in (
                (domain, inner, middle),
                (middle, outer, codomain),
                (domain, follow(inner, outer), codomain),
            )
        ]
        digits = digits_of(trial, f"x{number}_", domain)
        x = index(trial, digits, domain)
        carried = [0 if entry is None else digits[entry] for entry in transpose(inner, 2)]
        y = evaluate(f, x)
        state_digits(trial, y, carried, middle)
        trial.claim(evaluate(whole, x) == evaluate(g, y), "|g f|(x) = |g|(|f|(x))")


_INTO: tuple[Map, ...] = ((0, 1), (1, 0), (None, 0), (1, None))
_ONWARD: tuple[Map, ...] = ((1, 0), (None, 1))


def _inner_alone(inner: Map, outer: Map) -> Map:  # noqa: ARG001
    """Forget where the second morphism leads."""
    return inner


@cache
def _maps(domain: int, codomain: int) -> tuple[Map, ...]:
    """Return all pointed maps between so many positions that are injective away from the base point."""
    found = product([None, *range(codomain)], repeat=domain)
    return tuple([each for each in found if len({*each} - {None}) == domain - each.count(None)])


Sizes = tuple[int, int, int, int]


def _sizes() -> Iterator[Sizes]:
    return product(range(3), range(4), range(3), range(4))


def _of_maps(sizes: Sizes, follow: Follow = followed) -> str | None:
    """Extents are not read: what holds for maps of positions holds for morphisms with any extents."""
    a, b, c, d = sizes
    for f, g in product(_maps(a, b), _maps(b, c)):
        whole, back = follow(f, g), transpose(f, b)
        if any(follow(whole, h) != follow(f, follow(g, h)) for h in _maps(c, d)):
            return "composition is not associative"
        if follow(f, tuple(range(b))) != f or follow(tuple(range(a)), f) != f:
            return "an identity is not neutral"
        if follow(follow(f, back), f) != f or follow(follow(back, f), back) != back:
            return "the transpose is no generalised inverse"
        if transpose(whole, c) != follow(transpose(g, c), back):
            return "transposing does not turn composites around"
    return None


def _kept_where_free(inner: Map, outer: Map) -> Map:
    """Leave a position where the second map forgets it."""
    return tuple([entry if entry is None or outer[entry] is None else outer[entry] for entry in inner])


_FOR_ALL = tuple(
    [
        replace(each, scope="all extents, as maps do not read them; at most 2, 3, 2 and 3 leaves", for_all=True)
        for each in enumerated(_sizes, _of_maps, partial(_of_maps, follow=_kept_where_free), "", 144)
    ]
)


@cache
def _arrows() -> tuple[Morphism, ...]:
    found = []
    for domain, codomain in product(_OBJECTS, repeat=2):
        for images in product([None, *range(len(codomain))], repeat=len(domain)):
            hit = [image for image in images if image is not None]
            kept = all(image is None or domain[k] == codomain[image] for k, image in enumerate(images))
            if len(set(hit)) == len(hit) and kept:
                found.append(Morphism(domain, codomain, images))
    return tuple(found)


Pair = tuple[Morphism, Morphism]
Triple = tuple[Morphism, Morphism, Morphism]
Compose = Callable[[Morphism, Morphism], Morphism]


def _after(outer: Morphism, inner: Morphism) -> Morphism:
    found: Morphism = outer @ inner
    return found


def _pairs() -> Iterator[Pair]:
    return ((f, g) for f, g in product(_arrows(), repeat=2) if f.codomain == g.domain)


def _triples() -> Iterator[Triple]:
    return ((f, g, h) for f, g in _pairs() for h in _arrows() if g.codomain == h.domain)


def _category(triple: Triple, after: Compose = _after) -> str | None:
    f, g, h = triple
    if after(h, after(g, f)) != after(after(h, g), f):
        return "composition is not associative"
    neutral = after(f, Morphism.identity(f.domain)) == f == after(Morphism.identity(f.codomain), f)
    return None if neutral else "an identity is not neutral"


def _left_most(outer: Morphism, inner: Morphism) -> Morphism:
    """Send what goes to the base point to the first free place of equal extent instead."""
    found = _after(outer, inner)
    images = list(found.map)
    for k, image in enumerate(images):
        free = [p for p, t in enumerate(flatten(found.codomain)) if t == flatten(found.domain)[k] and p not in images]
        if image is None and free:
            images[k] = free[0]
    return Morphism(found.domain, found.codomain, tuple(images))


def _inverse(pair: Pair, transpose: Callable[[Morphism], Morphism] = Morphism.transpose) -> str | None:
    f, g = pair
    back = transpose(f)
    if f @ back @ f != f or back @ f @ back != back:
        return "the transpose is no generalised inverse"
    others = [a for a in _arrows() if (a.domain, a.codomain) == (f.codomain, f.domain)]
    if [a for a in others if f @ a @ f == f and a @ f @ a == a] != [back]:
        return "the generalised inverse is not unique"
    return None if transpose(g @ f) == transpose(f) @ transpose(g) else "transposing does not turn composites around"


def _same_places(f: Morphism) -> Morphism:
    """Read the map itself backwards, as if it were a permutation of the positions of one tuple."""
    images = tuple([k if k < len(f.map) and f.map[k] == k else None for k in range(len(flatten(f.codomain)))])
    return Morphism(f.codomain, f.domain, images)


def _functor(pair: Pair, after: Compose = _after) -> str | None:
    f, g = pair
    whole, inner, outer = after(g, f).to_layout(), f.to_layout(), g.to_layout()
    if [whole(x) for x in range(whole.size)] != [outer(inner(x)) for x in range(inner.size)]:
        return "|g f| is not |g| after |f|"
    if composition(outer, inner).table().tolist() != whole.table().tolist():
        return "the composition of the layouts is another one"
    return None


def _layouts() -> Iterator[CuteLayout]:
    for count in (1, 2, 3):
        for shape in product((1, 2, 3), repeat=count):
            for stride in product((0, 1, 2, 3, 6) if count > 2 else range(13), repeat=count):
                yield CuteLayout(shape, stride)


def _tractable(layout: CuteLayout, encode: Callable[[CuteLayout], Morphism] = Morphism.from_layout) -> str | None:
    moving = sorted((d, s) for s, d in layout.flat if s > 1 and d)
    chain = all(slow % (d * s) == 0 for (d, s), (slow, _) in pairwise(moving))
    if bool(is_tractable(layout)) is not chain:
        return "is_tractable does not say whether the strides form a chain"
    try:
        f = encode(layout)
    except RepresentabilityError:
        return "a tractable layout is refused" if chain else None
    same = [(s, d if s > 1 else 0) for s, d in layout.flat] == list(f.to_layout().flat)
    if not chain or not same:
        return "the morphism has another layout"
    return None if f.standard_form() == f else "the morphism is not in standard form"


def _compact(layout: CuteLayout) -> Morphism:
    """Forget the gaps between the modes."""
    f = Morphism.from_layout(layout)
    hit = sorted(image for image in f.map if image is not None)
    codomain = tuple([flatten(f.codomain)[place] for place in hit])
    images = tuple([None if image is None else hit.index(image) for image in f.map])
    return Morphism(f.domain, codomain, images) if hit else f


Operation = Callable[[Morphism], Morphism]


def _operations(pair: Pair, gaps: Operation = Morphism.complement) -> str | None:
    """The operations on morphisms are those on layouts."""
    f, g = pair
    inner, outer, size = f.to_layout(), g.to_layout(), math.prod(flatten(f.codomain))
    if coalesce(gaps(f).to_layout()) != complement(inner, size):
        return "the complement is not that of the layout"
    if f.coalesce().to_layout() != coalesce(inner):
        return "coalescing is not that of the layout"
    try:
        divided = logical_divide(outer, inner).table().tolist()
    except LayoutError:
        divided = None
    if None not in f.map and divided is not None and g.logical_divide(f).to_layout().table().tolist() != divided:
        return "the division is not that of the layouts"
    rest = f.complement()
    if None in f.map or rest.size < 2:
        return None
    copies = Morphism.identity(rest.domain)
    multiplied = f.logical_product(copies).to_layout()
    if f.concat(rest).to_layout() != make_layout(inner, rest.to_layout()):
        return "the concatenation is not the layout of both"
    wanted = logical_product(inner, copies.to_layout()).table().tolist()
    return None if multiplied.table().tolist() == wanted else "the product is not that of the layouts"


def _all_leaves(f: Morphism) -> Morphism:
    """Take all leaves of the codomain, hit or not."""
    return Morphism.identity(f.codomain)


Shape = tuple[int, ...]
Tuples = tuple[Shape, Shape]


def _tuples() -> Iterator[Tuples]:
    each: list[Shape] = [shape for count in (1, 2) for shape in product((2, 3, 4, 6, 12), repeat=count)]
    return product(each, each)


def _refined(pair: Tuples, refine: Callable[..., Any] = mutual_refinement) -> str | None:
    first, second = pair
    cuts = sorted({*prefix_products(first), *prefix_products(second)})
    chain = all(high % low == 0 for low, high in pairwise(cuts))
    try:
        found = refine(first, second)
    except AdmissibilityError:
        return "tuples whose cuts divide one another are refused" if chain else None
    left, right = flatten(found.first), flatten(found.second)
    short, long = sorted((left, right), key=len)
    if not chain or long[: len(short)] != short:
        return "the refinements have no common flattening"
    sizes = [math.prod(flatten(entry)) for entry in found.first] == list(first)
    least = len(long) == len(cuts) - 1
    return None if sizes and least else "the refinements are not the least ones of the tuples"


def _too_fine(first: tuple[int, ...], second: tuple[int, ...]) -> Any:
    """Cut every 4 in two."""
    halves = [tuple([(2, 2) if extent == 4 else extent for extent in shape]) for shape in (first, second)]
    mutual_refinement(first, second)
    return mutual_refinement(halves[0], halves[1])


def _weak_pairs() -> Iterator[Pair]:
    inner = [Morphism(4, (4, 3), (0,)), Morphism(12, (12,), (0,)), Morphism((2, 6), (2, 6), (None, 1))]
    inner += [Morphism((4, 3), (3, 4), (1, 0)), Morphism(6, (2, 6), (1,)), *_arrows()]
    outer = [Morphism((6, 2), (2, 5, 6), (2, 0)), Morphism((2, 2, 3), (3, 2, 2), (2, 1, 0))]
    return product(inner, [*outer, Morphism(12, (3, 12), (1,))])


def _weak(pair: Pair, compose: Callable[[Morphism, Morphism], Morphism] = weak_composite) -> str | None:
    f, g = pair
    try:
        found = compose(f, g)
    except AdmissibilityError:
        return None
    inner, outer = f.to_layout(), g.to_layout()
    same = found.to_layout().table().tolist() == [outer(inner(x)) for x in range(inner.size)]
    return None if same else "the weak composite is not |g| after |f|"


def _by_position(inner: Morphism, outer: Morphism) -> Morphism:
    """Follow the positions without refining."""
    images = [None if k is None or k >= len(outer.map) else outer.map[k] for k in inner.map]
    extents, ends = flatten(inner.domain), flatten(outer.codomain)
    kept = [None if k is None or ends[k] != s else k for k, s in zip(images, extents, strict=True)]
    return Morphism(inner.domain, outer.codomain, tuple(kept))


LAWS = (
    Law(
        "morphism.category",
        "Composition of morphisms is associative and identities are neutral.",
        ("layoutalg.cute.morphism.composition", "layoutalg.cute.Morphism.identity", "layoutalg.cute.pointed.followed"),
        (
            *_FOR_ALL,
            *enumerated(
                _triples, _category, partial(_category, after=_left_most), f"composable triples of {_ARROWS}", 12623
            ),
        ),
    ),
    Law(
        "morphism.inverse_category",
        "The transpose g of f is the one morphism with f g f = f and g f g = g, and turns composites around.",
        ("layoutalg.cute.Morphism.transpose", "layoutalg.cute.pointed.transpose"),
        (
            *_FOR_ALL,
            *enumerated(
                _pairs, _inverse, partial(_inverse, transpose=_same_places), f"composable pairs of {_ARROWS}", 903
            ),
        ),
    ),
    Law(
        "morphism.functorial",
        "|g f| = |g| after |f|, which is the composition of the layouts; by induction over the leaves.",
        ("layoutalg.cute.morphism.composition", "layoutalg.cute.pointed.followed", "layoutalg.cute.pointed.strides_at"),
        (
            *integers(
                _functorial, partial(_functorial, follow=_inner_alone), "8 pairs of maps of 2 leaves, all extents"
            ),
            *enumerated(_pairs, _functor, partial(_functor, after=_left_most), f"composable pairs of {_ARROWS}", 903),
        ),
    ),
    Law(
        "morphism.tractable",
        "A layout is that of a morphism exactly where its strides, sorted, form a chain; from_layout is then the "
        "inverse of to_layout on standard forms.",
        ("layoutalg.cute.is_tractable", "layoutalg.cute.Morphism.from_layout", "layoutalg.cute.Morphism.standard_form"),
        enumerated(
            _layouts,
            _tractable,
            partial(_tractable, encode=_compact),
            "layouts of at most 3 modes, strides 0..12",
            4935,
        ),
        "the codomain has a leaf for every gap, so its length depends on the values: structure, which symbols lack",
    ),
    Law(
        "morphism.operations",
        "Complement, coalesce, division, product and concatenation of morphisms are those of their layouts.",
        (
            "layoutalg.cute.Morphism.complement",
            "layoutalg.cute.Morphism.coalesce",
            "layoutalg.cute.Morphism.logical_divide",
            "layoutalg.cute.Morphism.logical_product",
        ),
        enumerated(_pairs, _operations, partial(_operations, gaps=_all_leaves), f"composable pairs of {_ARROWS}", 903),
        _STRUCTURE,
    ),
    Law(
        "refinement.mutual",
        "Two tuples have a mutual refinement exactly where their cuts divide one another; it has no other cuts, and "
        "one flattening begins the other.",
        ("layoutalg.cute.mutual_refinement",),
        enumerated(_tuples, _refined, partial(_refined, refine=_too_fine), "pairs of 30 tuples of extents 2..12", 900),
        "the number of cuts depends on which of them are equal; tried by cases",
    ),
    Law(
        "refinement.weak_composite",
        "|weak_composite(f, g)| = |g| after |f| wherever it is defined.",
        ("layoutalg.cute.weak_composite", "layoutalg.cute.Morphism.pullback", "layoutalg.cute.Morphism.pushforward"),
        enumerated(
            _weak_pairs,
            _weak,
            partial(_weak, compose=_by_position),
            "70 morphisms before 3 with other tuples in the middle",
            210,
        ),
        "it is a composite after refining, morphism.functorial and refinement.mutual",
    ),
)
