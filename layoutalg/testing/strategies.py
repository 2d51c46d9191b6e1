"""Hypothesis strategies for the library's values: small, shrinking towards the plain, and covering the odd corners.

Main definitions: ``int_tuples``, ``cute_layouts``, ``admissible_pairs``, ``swizzles``, ``composed_layouts``,
``linear_layouts``, ``tensormap_problems``.

Implementation notes: this module imports hypothesis; nothing else of the package imports this module.
"""

from __future__ import annotations

import random
from typing import Literal

from hypothesis import strategies as st

from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.cute.inttuple import IntTuple
from layoutalg.f2 import LinearLayout
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


def composed_layouts() -> st.SearchStrategy[ComposedLayout]:
    """A swizzle of a layout with non-negative strides, at a small offset."""
    inner = cute_layouts(strides=st.integers(0, 40))
    return st.builds(ComposedLayout, swizzles(), st.integers(0, 40), inner)


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


def _invertible(draw: st.DrawFn, bits: int) -> LinearLayout:
    columns = [1 << image for image in draw(st.permutations(range(bits)))]
    if bits > 1:
        for source, target in draw(st.lists(st.tuples(st.integers(0, bits - 1), st.integers(0, bits - 1)), max_size=8)):
            if source != target:
                columns[target] ^= columns[source]
    bases = {"in0": [(column,) for column in columns]}
    return LinearLayout.from_bases(bases, {"out0": 1 << bits}, offset=(draw(st.integers(0, (1 << bits) - 1)),))


def tensormap_problems() -> st.SearchStrategy[dict[str, object]]:
    """TensorMap problem documents around the legal boundaries."""
    return st.integers(0, 2**32 - 1).map(lambda seed: random_problem(random.Random(seed)))
