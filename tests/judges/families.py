"""Random values of every family, with what its operations return, and pairs that compose.

Implementation notes: the strategies are the public ones of ``layoutalg.testing.strategies``; a value that an operation
refuses to make is skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

import layoutalg as la
from layoutalg import cute, f2, hierarchy, integer
from layoutalg.cute import ComposedLayout, CoordinateLayout, CuteLayout, Swizzle
from layoutalg.ground.layout import Layout
from layoutalg.testing import strategies as ours

Values = st.SearchStrategy[Any]
Operation = Callable[..., Any]
SIZE = 2**11
"""Most points of an answer that the laws enumerate."""


@st.composite
def small_swizzles(draw: st.DrawFn, max_base: int = 2) -> Swizzle:
    """Swizzles of up to 2 bits that move them by at most 3."""
    bits, base = draw(st.integers(0, 2)), draw(st.integers(0, max_base))
    return Swizzle(bits, base, draw(st.integers(max(bits, 1), 3)) * draw(st.sampled_from((1, -1))))


@st.composite
def mixed_layouts(
    draw: st.DrawFn, strides: st.SearchStrategy[int], max_extent: int = 5, max_power: int = 2, max_modes: int = 3
) -> CuteLayout:
    """CuTe layouts of few modes: half of them with extents that are powers of two, some with a nested pair."""
    powers = st.integers(0, max_power).map(lambda k: 1 << k)
    extents = powers if draw(st.booleans()) else st.integers(1, max_extent)
    shape = draw(st.lists(extents, min_size=1, max_size=max_modes))
    stride = draw(st.lists(strides, min_size=len(shape), max_size=len(shape)))
    if len(shape) > 2 and draw(st.booleans()):
        return CuteLayout(((shape[0], shape[1]), *shape[2:]), ((stride[0], stride[1]), *stride[2:]))
    return CuteLayout(tuple(shape), tuple(stride))


@st.composite
def answers(draw: st.DrawFn, operands: Values, operations: list[Operation], strict: bool = False) -> Any:
    """What an operation returns for drawn operands; the first operand, or nothing, where it refuses them."""
    operation = draw(st.sampled_from(operations))
    given = [draw(operands) for _ in range(operation.__code__.co_argcount)]
    try:
        found = operation(*given)
    except la.LayoutError:
        assume(not strict)
        return given[0]
    return next((part for part in found if isinstance(part, Layout)), given[0]) if type(found) is tuple else found


def _is_total(layout: Any) -> bool:
    return layout.size <= SIZE if getattr(layout, "is_total", True) else False


def _tile(layout: CuteLayout) -> Any:
    return cute.local_tile(layout, tuple(1 for _ in range(layout.rank)), tuple(0 for _ in range(layout.rank)))


def _on_digits(layout: la.IntegerLayout) -> Any:
    found = integer.right_inverse(layout)
    return found.layout if isinstance(found, integer.RightInverse) else layout


CUTE: list[Operation] = [
    lambda f: cute.coalesce(f),
    lambda f: cute.flatten(f),
    lambda f: cute.filter(f),
    lambda f: cute.filter_zeros(f),
    lambda f: cute.right_inverse(f),
    lambda f: cute.left_inverse(f),
    lambda f: cute.complement(f, 40),
    lambda f, g: cute.composition(f, g),
    lambda f, g: cute.make_layout(f, g),
    lambda f, g: cute.max_common_layout(f, g),
    lambda f: cute.logical_divide(f, 2),
    lambda f: cute.zipped_divide(f, (2,)),
    lambda f: cute.logical_product(f, CuteLayout(3)),
    lambda f: cute.blocked_product(f, CuteLayout(2)),
    lambda f: cute.raked_product(f, CuteLayout(2)),
    lambda f: cute.tile_to_shape(f, f.shape),
    lambda f: cute.nullspace(f),
    lambda f: cute.make_layout_like(f),
    lambda f: cute.group(f, 0, 1),
    lambda f: cute.select(f, 0),
    lambda f: cute.take(f, 0, 1),
    lambda f: cute.upcast(f, 2),
    lambda f: cute.downcast(f, 2),
    lambda f: _tile(f),
    lambda f: cute.local_tile(f, (2,), (1,)),
    lambda f: cute.local_partition(f, CuteLayout(2), 1),
    lambda f: cute.slice_and_offset((1,), f),
    lambda f: cute.domain_offset((3,), f),
    lambda f: cute.shift(f, 5),
    lambda f: f[0],
    lambda f: f.inverse(),
]
PLAIN: list[Operation] = [lambda f, g: cute.append(f, g), lambda f, g: cute.prepend(f, g)]
COORDINATES: list[Operation] = [
    lambda f: cute.coalesce(f),
    lambda f: cute.flatten(f),
    lambda f: cute.logical_divide(f, 2),
    lambda f: cute.composition(f, CuteLayout(2)),
    lambda f: cute.select(f, 0),
    lambda f: cute.make_identity_layout(f.shape),
]
MORPHISMS: list[Operation] = [
    lambda f: f.coalesce(),
    lambda f: f.transpose(),
    lambda f: f.complement(),
    lambda f: f.standard_form(),
    lambda f: f.squeeze(),
    lambda f: f.flatten(),
    lambda f: f.sort(),
    lambda f: f.padded(),
    lambda f: f.left_inverse(),
    lambda f: f.right_inverse(),
    lambda f: f.inverse(),
    lambda f, g: f.sum(g),
    lambda f, g: f.logical_product(g),
]
LINEAR: list[Operation] = [
    lambda f: f2.right_inverse(f),
    lambda f: f2.left_inverse(f),
    lambda f, g: f2.direct_sum(f, g),
    lambda f, g: f2.invert_and_compose(f, g),
    lambda f: f2.flatten_ins(f),
    lambda f: f2.flatten_outs(f),
    lambda f: f2.squeeze_ins(f),
    lambda f: f2.remove_zero_bases(f, "in0"),
    lambda f: f2.rename_ins(f, {"in0": "x"}),
    lambda f: f2.transpose_ins(f, tuple(reversed(f.in_dims))),
    lambda f: f2.transpose_outs(f, tuple(reversed(f.out_dims))),
    lambda f: f2.flip_in(f, "in0"),
    lambda f: f2.fix_in(f, {"in0": 0}),
    lambda f: f2.xor_out(f, {"out0": 1}),
    lambda f: f2.resize_in(f, "in0", 4),
    lambda f: f2.resize_out(f, "out0", 4),
    lambda f: f2.sublayout(f, ("in0",), ("out0",)),
    lambda f: f.inverse(),
]
INTEGER: list[Operation] = [
    lambda f: _on_digits(f),
    lambda f: integer.flip(f, "i0"),
    lambda f: integer.shift(f, [3] * len(f.out_dims)),
    lambda f: integer.reshape(f, [("i", f.size)]),
    lambda f: integer.permute(f, tuple(reversed(f.in_dims))),
    lambda f: integer.rename(f, {"i0": "x"}),
    lambda f: integer.select_outputs(f, ["o0"]),
    lambda f: integer.fix(f, "i0", 0),
    lambda f: integer.normal_form(f),
    lambda f: integer.slice(f, "i0", 0, 1),
    lambda f: integer.merge(f, ("i0", "i1"), "i"),
    lambda f: f.inverse(),
]
HIERARCHY: list[Operation] = [
    lambda f: f.inverse(),
    lambda f: f @ f.inverse(),
    lambda f: hierarchy.reshape(hierarchy.Box.of(all=f.size), f.source),
    lambda f: hierarchy.permute(f.source, tuple(reversed(f.in_dims))),
]
TOTAL_PIECES: list[Operation] = [
    lambda f: la.convert.to_piecewise(f),
    lambda f: f @ la.convert.to_piecewise(CuteLayout(f.size)),
    lambda f: f.inverse(),
    lambda f: f.right_inverse(),
    lambda f, g: f.intersect(g),
]
PIECES: list[Operation] = [
    lambda f: f.restrict("{ [" + ", ".join(f.axes) + "] : i0 >= 1 }"),
    lambda f: f.without("{ [" + ", ".join(f.axes) + "] : i0 = 0 }"),
    lambda f: f.inverse(),
    lambda f: f.right_inverse(),
    lambda f: integer.image_inverse(la.convert.to_integer(f)).layout,
]
OPERATIONS: dict[str, tuple[Values, list[Operation]]] = {
    "cute": (ours.cute_layouts(), CUTE + PLAIN),
    "composed": (ours.composed_layouts(), CUTE),
    "coordinate": (ours.coordinate_layouts(), COORDINATES),
    "morphism": (ours.morphisms(), MORPHISMS),
    "linear": (ours.linear_layouts(max_bits=3), LINEAR),
    "integer": (ours.integer_layouts(), INTEGER),
    "piecewise": (ours.piecewise_layouts(max_outputs=1), TOTAL_PIECES),
    "hierarchical": (ours.hierarchical_layouts(), HIERARCHY),
}
"""Operations of a family on one or two of its values."""


def _with_parameters(offset: int, step: int) -> la.PiecewiseLayout:
    return la.PiecewiseLayout(f"[N] -> {{ [i, j] -> [{step}i + N*0 + {offset}, j] : 0 <= i < N and 0 <= j < {step} }}")


FAMILIES: dict[str, Values] = {
    "cute": ours.cute_layouts(),
    "composed": ours.composed_layouts(max_stages=3),
    "coordinate": ours.coordinate_layouts(),
    "morphism": ours.morphisms(),
    "linear": ours.linear_layouts() | ours.linear_layouts(invertible=True),
    "integer": ours.integer_layouts(),
    "piecewise": ours.piecewise_layouts(),
    "hierarchical": ours.hierarchical_layouts(),
}
"""Total layouts, a strategy per family."""
ANSWERS: dict[str, Values] = {name: answers(*OPERATIONS[name]).filter(_is_total) for name in OPERATIONS}
"""What operations of each family return."""

PARTIAL: dict[str, Values] = {
    "partial tile": ours.hierarchical_layouts(partial=True).filter(lambda f: not f.is_total),
    "partial pieces": answers(ours.piecewise_layouts(), PIECES).filter(lambda f: not f.is_total),
    "parameters": st.builds(_with_parameters, st.integers(0, 9), st.integers(1, 4)),
}
"""Layouts without a value at some points of their box."""


PAIRS: dict[str, Values] = {name: ours.composable_pairs(name) for name in FAMILIES}
"""Pairs (outer, inner) of one family: every value of ``inner`` is a coordinate of ``outer``."""


def called(layout: Any, index: int) -> tuple[int, ...]:
    """The outputs at a flat index by the call of the family: ``L(i)``, or ``L(x=1, y=2)`` with axes by name."""
    if isinstance(layout, CuteLayout | ComposedLayout):
        return (layout(index),)
    if isinstance(layout, CoordinateLayout):
        return tuple(np.ravel(np.array(layout(index), dtype=object)).tolist())
    if hasattr(layout, "codomain"):
        return (layout(index),)
    point = {}
    for name, extent in layout.in_dims.items():
        index, point[name] = divmod(index, extent)
    answer = layout(**point)
    return tuple(answer.values()) if isinstance(answer, dict) else tuple(np.ravel(answer).tolist())
