"""Unary operations on CuTe layouts: building, measuring, coalescing and filtering.

Main statements: ``coalesce`` is a complete normal form: two layouts are the same function of the 1-D coordinate if and
only if they coalesce to equal layouts. An operation on the domain replaces L by L o X, where X depends only on the
shape of L (for a CuTe layout possibly refined); so it acts on a swizzled layout through its base and on a coordinate
layout through the compact layout of its shape.

References: J. Cecka, arXiv:2603.02298; CuTe documentation of NVIDIA CUTLASS.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias, cast

from layoutalg.cute import inttuple
from layoutalg.cute.basis import basis_leaves
from layoutalg.cute.compose_coordinates import coordinates_after
from layoutalg.cute.composed import ComposedLayout, Cute
from layoutalg.cute.conventions import STRICT, Convention, by_convention
from layoutalg.cute.coordinates import CoordinateLayout
from layoutalg.cute.inttuple import IntTuple, malformed, validate
from layoutalg.cute.layout import CuteLayout, from_flat, trusted
from layoutalg.cute.operands import (
    FAMILIES,
    NARROW,
    RECENT,
    AnyLayout,
    Under,
    composed,
    operand_refusal,
    weight,
)
from layoutalg.cute.swizzled import strided_form
from layoutalg.ground import limits
from layoutalg.ground.cache import remembered
from layoutalg.ground.digits import merge
from layoutalg.ground.errors import Diagnostic, MalformedError

Sized: TypeAlias = "CuteLayout | ComposedLayout | CoordinateLayout"


def make_layout(*parts: Cute | IntTuple) -> CuteLayout:
    """Return the layout with the given modes, or the layout of a shape and an optional stride.

    Args:
        parts: Layouts, which become the modes; or a shape; or a shape and a stride.

    Raises: MalformedError: LA108.

    Example:
        >>> print(make_layout(CuteLayout(4, 2), CuteLayout((2, 2), (1, 8))))
        (4,(2,2)):(2,(1,8))
        >>> print(make_layout((4, 8)))
        (4,8):(1,4)
    """
    shape: list[IntTuple] = []
    stride: list[IntTuple] = []
    flat: list[tuple[int, int]] = []
    for part in parts:
        if isinstance(part, ComposedLayout):
            part = strided_form(part, "make_layout")
        if isinstance(part, CuteLayout):
            shape.append(part.shape)
            stride.append(part.stride)
            flat += part.flat
    if len(shape) == len(parts):
        if len(flat) <= limits.TUPLE_MODES and _plain(shape, limits.TUPLE_DEPTH - 2):
            return trusted(tuple(shape), tuple(stride), tuple(flat))
        return CuteLayout(tuple(shape), tuple(stride))  # checks the limits on modes and depth
    if shape or len(parts) > 2:
        wrong = next((part for part in parts if shape and not isinstance(part, CuteLayout | ComposedLayout)), parts)
        raise malformed("parts", "must be layouts only, or a shape and an optional stride", wrong, "LA108")
    return CuteLayout(*[validate(part, "shape") for part in parts])


def _plain(shape: Sequence[IntTuple], levels: int) -> bool:
    """Return whether no tuple in ``shape`` is empty and none nests deeper than ``levels`` below it."""
    nested = [entry for entry in shape if type(entry) is tuple]
    if not nested:
        return bool(shape)
    return levels > 0 and False not in [_plain(entry, levels - 1) for entry in nested]


def size(value: Sized | IntTuple) -> int:
    """Return the number of coordinates of a layout or shape.

    Raises: MalformedError: LA100, LA103.

    Example:
        >>> size(CuteLayout((4, 8))), size((4, (2, 3)))
        (32, 24)
    """
    return value.size if isinstance(value, _LAYOUTS) else inttuple.product(inttuple.extents(value))


_LAYOUTS = (CuteLayout, ComposedLayout, CoordinateLayout)


def cosize(layout: CuteLayout | ComposedLayout, *, convention: Convention = STRICT) -> int:
    """Return 1 + the greatest offset - the least offset; 0 for an empty layout.

    Args:
        layout: A layout.
        convention: ``"pycute"`` gives 1 + the offset of the last coordinate, which differs for negative strides;
            ``"cute_cpp"`` ignores the swizzles.

    Raises: MalformedError: LA144, LA146, LA192.

    Example:
        >>> cosize(CuteLayout((4, 8), (16, 1))), cosize(CuteLayout(4, -1))
        (56, 4)
        >>> cosize(CuteLayout(4, -1), convention="pycute")
        -2
    """
    if convention is not STRICT:
        return by_convention(convention, cosize, layout)
    return composed(layout, "cosize").cosize


def rank(value: Sized | IntTuple) -> int:
    """Return the number of top-level modes of a layout or shape.

    Example:
        >>> rank(CuteLayout((4, (2, 2))))
        2
    """
    return value.rank if isinstance(value, _LAYOUTS) else inttuple.rank(validate(value, "shape"))


def depth(value: Sized | IntTuple) -> int:
    """Return the nesting depth of a layout or shape.

    Example:
        >>> depth(CuteLayout((4, (2, 2))))
        2
    """
    return value.depth if isinstance(value, _LAYOUTS) else inttuple.depth(validate(value, "shape"))


def lift(layout: AnyLayout, operation: Callable[[CuteLayout], CuteLayout], name: str = "this operation") -> AnyLayout:
    """Apply ``operation``, which only rearranges the domain, to a layout of any kind.

    Args:
        layout: A CuTe, composed or coordinate layout.
        operation: Its action on a CuTe layout.
        name: Its public name, for messages.

    Raises: MalformedError: LA192.

    Example:
        >>> from layoutalg.cute.swizzle import Swizzle
        >>> print(lift(ComposedLayout(Swizzle(1, 0, 1), 0, CuteLayout((2, 2))), lambda base: base[1]))
        Sw<1,0,1> o 0 o 2:2
    """
    if isinstance(layout, CuteLayout):
        return cast(AnyLayout, operation(layout))
    if isinstance(layout, ComposedLayout):
        return cast(AnyLayout, layout.rebase(operation(layout.base)))
    if isinstance(layout, CoordinateLayout):
        return cast(AnyLayout, coordinates_after(layout, operation(CuteLayout(layout.shape))))
    raise operand_refusal(layout, name, "layout", FAMILIES)


def rearrange(layout: AnyLayout, operation: Callable[[CuteLayout], CuteLayout], name: str) -> AnyLayout:
    """``lift`` for an operation that keeps every leaf; a coordinate layout then keeps its leaves too.

    Raises: MalformedError: LA192.

    Example:
        >>> from layoutalg.cute.basis import E
        >>> layout = CoordinateLayout((1, (4, 2)), (E(1), (E(0), E(1))))
        >>> print(rearrange(layout, lambda base: make_layout(base[1], base[0]), "exchange"))
        ((4,2),1):((E0,E1),E1)
    """
    if not isinstance(layout, CoordinateLayout):
        return lift(layout, operation, name)
    strides = basis_leaves(layout.shape, layout.stride)
    found = operation(CuteLayout(layout.shape, inttuple.unflatten(tuple(range(len(strides))), layout.shape)))
    kept = inttuple.graft(iter([strides[leaf] for _, leaf in found.flat]), found.shape)
    return cast(AnyLayout, CoordinateLayout(found.shape, kept, layout.profile))


def flatten(layout: AnyLayout) -> AnyLayout:
    """Return the layout without nesting: the same leaves in one tuple; an int shape stays an int.

    Args:
        layout: A layout of any family.

    Raises: MalformedError: LA192.

    Example:
        >>> print(flatten(CuteLayout((4, (2, 2)), (1, (16, 4)))))
        (4,2,2):(1,16,4)
    """
    return rearrange(layout, _flattened, "flatten")


def _flattened(layout: CuteLayout) -> CuteLayout:
    if isinstance(layout.shape, int):
        return layout
    return CuteLayout(inttuple.flatten(layout.shape), inttuple.flatten(layout.stride))


def coalesce(layout: AnyLayout, profile: IntTuple | None = None) -> AnyLayout:
    """Return the layout in the fewest modes with the same function of the 1-D coordinate.

    Mathematically: R with size(R) = size(L), depth at most 1 and R(i) = L(i) for all i < size(L); adjacent modes fuse
    where the next stride continues the run. With a profile, the modes at its leaves are coalesced separately.

    Args:
        layout: Any layout. Size 0 gives ``0:0``, size 1 gives ``1:0``.
        profile: None, or an int tuple with one entry per mode, nested as deep as modes must stay separate. Only its
            structure counts.

    Raises: MalformedError: LA109, LA192.

    Complexity: O(k) for k modes.

    Example:
        >>> print(coalesce(CuteLayout((2, (1, 6)), (1, (6, 2)))))
        12:1
        >>> print(coalesce(CuteLayout((2, (1, 6)), (1, (6, 2))), (1, 1)))
        (2,6):(1,2)

    Laws: idempotent; keeps ``table``.
    """
    if profile is None and isinstance(layout, CuteLayout) and len(layout._flat) <= NARROW:
        return _coalesced(layout)  # type: ignore[return-value]
    return lift(layout, lambda base: _coalesced_by(base, profile), "coalesce")


@lru_cache(RECENT)
def _coalesced(layout: CuteLayout) -> CuteLayout:
    return from_flat(merge(layout.flat))


_coalesced_wide = remembered(weight)(_coalesced.__wrapped__)


def _coalesced_by(layout: CuteLayout, profile: IntTuple | None) -> CuteLayout:
    if profile is None:
        return _coalesced(layout) if len(layout._flat) <= NARROW else _coalesced_wide(layout)
    return _coalesce_by(layout, validate(profile, "profile"))


def _coalesce_by(layout: CuteLayout, profile: IntTuple) -> CuteLayout:
    if isinstance(profile, int):
        return from_flat(merge(layout.flat))
    if isinstance(layout.shape, int) or len(profile) != layout.rank:
        because = f"the profile has {len(profile)} modes, the layout has " + (
            "an int shape" if isinstance(layout.shape, int) else f"{layout.rank}"
        )
        raise MalformedError(
            Diagnostic(
                "LA109",
                "the profile does not match the layout",
                (f"coalesce({layout}, {inttuple.shape_text(profile)})",),
                because,
            )
        )
    return make_layout(*[_coalesce_by(layout[position], entry) for position, entry in enumerate(profile)])


def filter_zeros(layout: Under) -> Under:
    """Return the layout with the extent of every stride-0 mode set to 1; empty modes stay empty.

    Mathematically: same profile and strides, and the same set of offsets.

    Args:
        layout: A CuTe or swizzled layout.

    Raises: MalformedError: LA192.

    Example:
        >>> print(filter_zeros(CuteLayout((2, (4, 3)), (0, (1, 0)))))
        (1,(4,1)):(0,(1,0))
    """
    return lift(composed(layout, "filter_zeros"), _without_zeros, "filter_zeros")


def _without_zeros(layout: CuteLayout) -> CuteLayout:
    extents = tuple([1 if stride == 0 and extent > 1 else extent for extent, stride in layout.flat])
    return CuteLayout(inttuple.unflatten(extents, layout.shape), layout.stride)


def filter(layout: Under) -> Under:
    """Return the layout without stride-0 and extent-1 modes, coalesced.

    Mathematically: the same set of offsets, each with the multiplicity that the remaining modes give it.

    Args and errors as in ``filter_zeros``.

    Example:
        >>> print(filter(CuteLayout((2, 4, 3), (0, 1, 4))))
        12:1
    """
    return coalesce(filter_zeros(composed(layout, "filter")))
