"""Strategies for pairs of layouts in a known relation.

Implementation notes: each pair is correct by construction, so it can test code that decides or composes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from hypothesis import reject
from hypothesis import strategies as st

from layoutalg import convert
from layoutalg.cute import ComposedLayout, CuteLayout, Morphism, coalesce
from layoutalg.cute.inttuple import flatten
from layoutalg.ground.errors import BudgetError, LayoutError
from layoutalg.ground.layout import Layout
from layoutalg.hierarchy import Box, HierarchicalLayout
from layoutalg.integer import IntegerLayout
from layoutalg.piecewise import PiecewiseLayout
from layoutalg.testing.strategies.arguments import several
from layoutalg.testing.strategies.families import FAMILIES, layouts
from layoutalg.testing.strategies.hierarchy import bijections, hierarchical_layouts
from layoutalg.testing.strategies.maps import linear_layouts, morphisms, piecewise_layouts
from layoutalg.testing.strategies.strided import RANKS, coordinate_layouts, cute_layouts, swizzles

Pair = tuple[Any, Any]


def equal_pairs(families: str | Iterable[str] = FAMILIES) -> st.SearchStrategy[tuple[Layout, Layout]]:
    """Two different layouts that are the same function of the flat coordinate.

    Args:
        families: Families of the first layout; the second may be of another family.
    """
    return _equal_pairs(several(families, "families", FAMILIES))


@st.composite
def _equal_pairs(draw: st.DrawFn, families: tuple[str, ...]) -> tuple[Layout, Layout]:
    one = draw(layouts(families))
    ways = _STRIDED + _CONVERTED if isinstance(one, CuteLayout) else _CONVERTED
    start = draw(st.integers(0, len(ways) - 1))
    for way in ways[start:] + ways[:start]:
        try:
            other = way(draw, one)
        except LayoutError:  # the other family cannot represent this function
            continue
        if type(other) is not type(one) or other != one:
            return one, other
    raise TypeError(f"no second form of {one!r} was found")


def _split(draw: st.DrawFn, layout: CuteLayout) -> CuteLayout:
    """Split one mode in two, or insert a mode of extent 1 and any stride."""
    modes = list(layout.flat)
    place = draw(st.integers(0, len(modes) - 1))
    extent, stride = modes[place]
    inner = draw(st.sampled_from([n for n in range(1, extent + 1) if extent % n == 0]))
    if inner == extent:
        modes.insert(place, (1, draw(st.integers(-2, 9))))
    else:
        modes[place : place + 1] = [(inner, stride), (extent // inner, inner * stride)]
    return CuteLayout(tuple([extent for extent, _ in modes]), tuple([stride for _, stride in modes]))


def _renamed(_: st.DrawFn, layout: Any) -> PiecewiseLayout:
    """The piecewise form with renamed axes."""
    found = convert.to_piecewise(layout)
    text = found.text
    for name in found.axes:
        text = re.sub(rf"(?<![A-Za-z_]){name}(?!\w)", f"other_{name}", text)
    return PiecewiseLayout(text, found.outputs)


_STRIDED: list[Callable[[st.DrawFn, Any], Any]] = [lambda _, layout: coalesce(layout), _split]
_CONVERTED: list[Callable[[st.DrawFn, Any], Any]] = [
    lambda _, layout: convert.to_cute(layout),
    lambda _, layout: convert.to_linear(layout),
    lambda _, layout: convert.to_integer(layout),
    _renamed,
]


def near_pairs(families: str | Iterable[str] = FAMILIES) -> st.SearchStrategy[tuple[Layout, Layout, int]]:
    """Two layouts and the only flat coordinate at which their values differ, slightly.

    Args:
        families: Families of the first layout; the second is piecewise. Layouts that ISL cannot convert in time are
            skipped.
    """
    return _near_pairs(several(families, "families", FAMILIES))


@st.composite
def _near_pairs(draw: st.DrawFn, families: tuple[str, ...]) -> tuple[Layout, Layout, int]:
    layout: Any = draw(layouts(families))
    at, shift = draw(st.integers(0, layout.size - 1)), draw(st.sampled_from((1, -1, 7)))
    try:
        return layout, _shifted(layout, at, shift), at
    except BudgetError:  # ISL times out on some swizzle stacks with extents that are not powers of two
        reject()


def _shifted(layout: Any, at: int, shift: int) -> PiecewiseLayout:
    """The piecewise form of a layout, with one value changed."""
    pieces = convert.to_piecewise(layout)
    coordinates, rest = [], at
    for name, extent in pieces.in_dims.items():
        rest, digit = divmod(rest, extent)
        coordinates.append(f"{name} = {digit}")
    first, *others = [value] if isinstance(value := pieces.at(at), int) else value
    point, there = ", ".join(pieces.axes), " and ".join(coordinates) or "0 = 0"
    value_text = ", ".join(map(str, (first + shift, *others)))
    other = PiecewiseLayout(f"{{ [{point}] -> [{value_text}] : {there} }}", pieces.outputs)
    return pieces.without(f"{{ [{point}] : {there} }}").union(other) if layout.size > 1 else other


@st.composite
def admissible_pairs(draw: st.DrawFn) -> tuple[CuteLayout, CuteLayout]:
    """Pairs (A, B) of CuTe layouts with the image of B in the domain of A, so that A o B is defined."""
    outer = draw(cute_layouts())
    inner = draw(cute_layouts(max_leaves=3, max_extent=4, strides=st.integers(0, 12)))
    if inner.cosize > outer.size:
        inner = CuteLayout(min(outer.size, draw(st.integers(1, 12))), 1)
    return outer, inner


def composable_pairs(families: str | Iterable[str] = FAMILIES) -> st.SearchStrategy[tuple[Layout, Layout]]:
    """Pairs (outer, inner) of one family, every value of ``inner`` being a coordinate of ``outer``.

    Args:
        families: Names of the families to draw from, or one name.
    """
    drawn: st.SearchStrategy[tuple[Layout, Layout]] = st.one_of(
        [_COMPOSABLE[name]() for name in several(families, "families", FAMILIES)]
    )
    return drawn


@st.composite
def _composed_pairs(draw: st.DrawFn) -> Pair:
    outer, inner = draw(admissible_pairs())
    return ComposedLayout(draw(swizzles()), 0, outer), inner


@st.composite
def _coordinate_pairs(draw: st.DrawFn) -> Pair:
    outer = draw(coordinate_layouts())
    return outer, CuteLayout(draw(st.integers(1, outer.size)), 1)


@st.composite
def _linear_pairs(draw: st.DrawFn) -> Pair:
    inner = draw(linear_layouts())
    return draw(linear_layouts(inputs=inner.out_dims, outputs={"y": 8})), inner


@st.composite
def _integer_pairs(draw: st.DrawFn) -> Pair:
    axes = draw(st.lists(st.tuples(st.integers(1, 5), st.integers(-4, 9), st.integers(0, 1)), min_size=1, max_size=2))
    names = [f"m{place}" for place in range(len(axes))]
    extents = dict(zip(names, [extent for extent, _, _ in axes], strict=True))
    outer = IntegerLayout.from_strides(extents, [stride for _, stride, _ in axes], 2)
    inner = IntegerLayout(
        (("x", min(extents.values())),),
        tuple([(name, 0) for name in names]),
        tuple([(step,) for _, _, step in axes]),
        tuple([0 for _ in names]),
    )
    return outer, inner


@st.composite
def _piecewise_pairs(draw: st.DrawFn) -> Pair:
    outer = draw(piecewise_layouts(max_outputs=1))
    count = draw(st.integers(1, 9))
    step = draw(st.integers(0, max(0, (outer.size - 1) // count)))
    return outer, PiecewiseLayout(f"{{ [i] -> [{step}i] : 0 <= i < {count} }}")


@st.composite
def _hierarchical_pairs(draw: st.DrawFn) -> Pair:
    inner = draw(hierarchical_layouts())
    return HierarchicalLayout(inner.target, Box.of(all=inner.size), draw(bijections(inner.size))), inner


@st.composite
def _morphism_pairs(draw: st.DrawFn) -> Pair:
    outer = draw(morphisms())
    domain = flatten(outer.domain)
    ranks = [draw(RANKS) for _ in domain]
    order = sorted(range(len(ranks)), key=ranks.__getitem__)
    return outer, Morphism(tuple([domain[place] for place in order]), domain, tuple(order))


_COMPOSABLE: dict[str, Callable[[], st.SearchStrategy[Pair]]] = {
    "cute": admissible_pairs,
    "composed": _composed_pairs,
    "coordinate": _coordinate_pairs,
    "morphism": _morphism_pairs,
    "linear": _linear_pairs,
    "integer": _integer_pairs,
    "piecewise": _piecewise_pairs,
    "hierarchical": _hierarchical_pairs,
}
