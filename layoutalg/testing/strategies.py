"""Hypothesis strategies for the library's values: small, shrinking towards the plain, and covering the odd corners.

Main definitions: ``int_tuples``, ``cute_layouts``, ``admissible_pairs``, ``swizzles``, ``composed_layouts``,
``coordinate_layouts``, ``morphisms``, ``linear_layouts``, ``integer_layouts``, ``piecewise_layouts``, ``bijections``,
``hierarchical_layouts``, ``tensormap_problems``.

Implementation notes: this module imports hypothesis; nothing else of the package imports this module.
"""

from __future__ import annotations

import math
import random
from typing import Literal

from hypothesis import strategies as st

from layoutalg.cute import ComposedLayout, CoordinateLayout, CuteLayout, E, Morphism, Swizzle
from layoutalg.cute.inttuple import IntTuple
from layoutalg.f2 import LinearLayout
from layoutalg.hierarchy import Box, DigitMap, Guard, HierarchicalLayout, TableMap
from layoutalg.integer import IntegerLayout
from layoutalg.piecewise import PiecewiseLayout
from layoutalg.testing.problems import random_problem


def int_tuples(
    leaves: st.SearchStrategy[int] | None = None, *, max_leaves: int = 6, tuples_only: bool = False
) -> st.SearchStrategy[IntTuple]:
    """Nested tuples of integers (1..6 unless told), at most ``max_leaves`` of them."""
    base = st.integers(1, 6) if leaves is None else leaves
    nested: st.SearchStrategy[IntTuple] = st.recursive(
        base, lambda inner: st.lists(inner, min_size=1, max_size=3).map(tuple), max_leaves=max_leaves
    )
    return nested.filter(lambda value: isinstance(value, tuple)) if tuples_only else nested


def _like(shape: IntTuple, strides: list[int]) -> IntTuple:
    """Consume strides in order, in the profile of ``shape``."""
    if isinstance(shape, tuple):
        return tuple(_like(mode, strides) for mode in shape)
    return strides.pop(0)


def _leaves(shape: IntTuple) -> int:
    return sum(_leaves(mode) for mode in shape) if isinstance(shape, tuple) else 1


@st.composite
def cute_layouts(
    draw: st.DrawFn, *, max_leaves: int = 4, max_extent: int = 6, strides: st.SearchStrategy[int] | None = None
) -> CuteLayout:
    """CuTe layouts with any strides (-12..40 unless told): broadcast, overlapping, negative and compact ones."""
    shape = draw(int_tuples(st.integers(1, max_extent), max_leaves=max_leaves))
    if draw(st.booleans()):
        return CuteLayout(shape)
    values = draw(
        st.lists(st.integers(-12, 40) if strides is None else strides, min_size=_leaves(shape), max_size=_leaves(shape))
    )
    return CuteLayout(shape, _like(shape, list(values)))


@st.composite
def admissible_pairs(draw: st.DrawFn) -> tuple[CuteLayout, CuteLayout]:
    """Pairs (A, B) where the image of B lies in the domain of A, so that A o B is a function."""
    outer = draw(cute_layouts())
    inner = draw(cute_layouts(max_leaves=3, max_extent=4, strides=st.integers(0, 12)))
    if inner.cosize > outer.size:
        inner = CuteLayout(min(outer.size, draw(st.integers(1, 12))), 1)
    return outer, inner


def swizzles(unit: Literal["element", "byte"] = "element") -> st.SearchStrategy[Swizzle]:
    """Swizzles of up to 3 bits, shifts of either sign."""

    def build(bits: int, base: int, distance: int, down: bool) -> Swizzle:
        return Swizzle(bits, base, (bits + distance) * (-1 if down else 1), unit)

    return st.builds(build, st.integers(0, 3), st.integers(0, 4), st.integers(0, 3), st.booleans())


@st.composite
def composed_layouts(draw: st.DrawFn, *, max_stages: int = 1) -> ComposedLayout:
    """Swizzles of a layout with non-negative strides, each at a small offset."""
    layout: CuteLayout | ComposedLayout = draw(cute_layouts(strides=st.integers(0, 40)))
    for _ in range(draw(st.integers(1, max_stages))):
        layout = ComposedLayout(draw(swizzles()), draw(st.integers(0, 40)), layout)
    assert isinstance(layout, ComposedLayout)  # noqa: S101
    return layout


@st.composite
def coordinate_layouts(draw: st.DrawFn) -> CoordinateLayout:
    """CuTe layouts whose values are coordinates of two leaves."""
    extents = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    step = st.tuples(st.integers(0, 1), st.integers(1, 3))
    strides = [draw(step) for _ in extents]
    return CoordinateLayout(tuple(extents), tuple(E(path) * scale for path, scale in strides), (0, 0))


@st.composite
def morphisms(draw: st.DrawFn) -> Morphism:
    """Morphisms of flat tuples, padded or not: some modes of the codomain in any order, others broadcast."""
    codomain = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    order = draw(st.permutations(range(len(codomain))))
    kept = order[: draw(st.integers(0, len(order)))]
    parts: list[tuple[int, int | None]] = [(codomain[place], place) for place in kept]
    for extent in draw(st.lists(st.integers(1, 4), max_size=1)):
        parts.insert(draw(st.integers(0, len(parts))), (extent, None))
    pitch, reach = [], 0
    for extent in codomain:
        pitch.append(reach + 1 + draw(st.integers(0, 2)))
        reach += (extent - 1) * pitch[-1]
    return Morphism(
        tuple(extent for extent, _ in parts),
        tuple(codomain),
        tuple(place for _, place in parts),
        tuple(pitch) if draw(st.booleans()) else None,
    )


@st.composite
def linear_layouts(draw: st.DrawFn, *, max_bits: int = 5, invertible: bool = False) -> LinearLayout:
    """Affine maps over F2 with one or two axes on either side; ``invertible`` ones shear a permutation of the bits."""
    ins = draw(st.lists(st.integers(0, max_bits), min_size=1, max_size=2))
    if invertible:
        return _invertible(draw, sum(ins))
    outs = draw(st.lists(st.integers(0, max_bits), min_size=1, max_size=2))
    image = st.tuples(*(st.integers(0, (1 << bits) - 1) for bits in outs))
    bases = {f"in{index}": draw(st.lists(image, min_size=bits, max_size=bits)) for index, bits in enumerate(ins)}
    sizes = {f"out{index}": 1 << bits for index, bits in enumerate(outs)}
    return LinearLayout.from_bases(bases, sizes, offset=draw(image))


def _sheared(draw: st.DrawFn, bits: int) -> list[int]:
    """The columns of an invertible matrix."""
    columns = [1 << image for image in draw(st.permutations(range(bits)))]
    if bits > 1:
        for source, target in draw(st.lists(st.tuples(st.integers(0, bits - 1), st.integers(0, bits - 1)), max_size=8)):
            if source != target:
                columns[target] ^= columns[source]
    return columns


def _invertible(draw: st.DrawFn, bits: int) -> LinearLayout:
    bases = {"in0": [(column,) for column in _sheared(draw, bits)]}
    return LinearLayout.from_bases(bases, {"out0": 1 << bits}, offset=(draw(st.integers(0, (1 << bits) - 1)),))


@st.composite
def integer_layouts(draw: st.DrawFn, *, max_outputs: int = 2) -> IntegerLayout:
    """Affine maps on boxes of one to three axes, over Z or modulo a small m per output."""
    extents = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    moduli = draw(st.lists(st.sampled_from((0, 0, 2, 4, 5, 8, 16)), min_size=1, max_size=max_outputs))
    row = st.tuples(*(st.integers(-4, 12) for _ in extents))
    return IntegerLayout(
        tuple((f"i{place}", extent) for place, extent in enumerate(extents)),
        tuple((f"o{place}", modulus) for place, modulus in enumerate(moduli)),
        tuple(draw(row) for _ in moduli),
        tuple(draw(st.integers(-3, 5)) for _ in moduli),
    )


@st.composite
def piecewise_layouts(draw: st.DrawFn, *, max_outputs: int = 2) -> PiecewiseLayout:
    """Affine forms, floors and residues on boxes of one to three axes, in one piece or two."""
    extents = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    names = [f"i{place}" for place in range(len(extents))]
    form = st.sampled_from(("{t}", "({t}) mod 7", "floor(({t} + 1)/2)", "3 + {t}"))

    def value() -> str:
        strides = draw(st.lists(st.integers(-2, 8), min_size=len(names), max_size=len(names)))
        return draw(form).format(t=" + ".join(f"{a}*{name}" for a, name in zip(strides, names, strict=True)))

    outputs = draw(st.integers(1, max_outputs))
    box = " and ".join(f"0 <= {name} < {extent}" for name, extent in zip(names, extents, strict=True))
    point = ", ".join(names)
    cut = draw(st.integers(0, extents[-1]))
    guards = [f"{names[-1]} < {cut}", f"{names[-1]} >= {cut}"] if 0 < cut < extents[-1] else ["0 = 0"]
    pieces = [f"[{point}] -> [{', '.join(value() for _ in range(outputs))}] : {box} and {guard}" for guard in guards]
    return PiecewiseLayout(f"{{ {'; '.join(pieces)} }}")


def _factors(draw: st.DrawFn, size: int) -> list[int]:
    """Extents with this product."""
    extents = []
    while size > 1:
        extents.append(draw(st.sampled_from([n for n in range(2, size + 1) if size % n == 0])))
        size //= extents[-1]
    return extents or [1]


@st.composite
def bijections(draw: st.DrawFn, size: int) -> DigitMap | TableMap:
    """Bijections of [0, size): digits in another order, some reversed; bits where there are; or a table."""
    kind = draw(st.sampled_from(("digits", "bits", "table") if size.bit_count() == 1 else ("digits", "table")))
    if kind == "bits":
        return DigitMap.from_bits(tuple(_sheared(draw, size.bit_length() - 1)), draw(st.integers(0, size - 1)))
    if kind == "table":
        return TableMap(tuple(draw(st.permutations(range(size)))))
    extents = _factors(draw, size)
    strides, weight = [0] * len(extents), 1
    for place in draw(st.permutations(range(len(extents)))):
        strides[place] = weight * draw(st.sampled_from((1, -1)))
        weight *= extents[place]
    return DigitMap(tuple(zip(extents, strides, strict=True)))


@st.composite
def hierarchical_layouts(draw: st.DrawFn, *, partial: bool = False) -> HierarchicalLayout:
    """Bijections between two named boxes of at most 36 points; ``partial`` ones may have a guard."""
    size = math.prod(draw(st.lists(st.integers(1, 4), min_size=1, max_size=2)))

    def box(name: str) -> Box:
        return Box(tuple((f"{name}{place}", extent) for place, extent in enumerate(_factors(draw, size))))

    guards: tuple[Guard, ...] = ()
    if partial:
        bounded = box("g")
        bounds = tuple(draw(st.integers(0, extent)) for _, extent in bounded.axes)
        guards = (Guard(draw(bijections(size)), bounded, bounds),)
    return HierarchicalLayout(box("s"), box("t"), draw(bijections(size)), guards)


def tensormap_problems() -> st.SearchStrategy[dict[str, object]]:
    """TensorMap problem documents around the legal boundaries."""
    return st.integers(0, 2**32 - 1).map(lambda seed: random_problem(random.Random(seed)))
