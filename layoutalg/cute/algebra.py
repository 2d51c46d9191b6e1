"""Operations on one CuTe layout: build, measure, shorten, filter, rearrange and slice its modes.

``coalesce`` is a complete normal form: two layouts are the same function of the 1-D coordinate if and only if they
coalesce to equal layouts. An operation on the domain replaces L by L o X, where X depends only on the shape of L (for a
CuTe layout possibly refined); so it acts on a swizzled layout through its base and on a coordinate layout through the
compact layout of its shape. A coordinate has None, written ``_``, for kept modes and integers for fixed ones: if c
fixes some modes of x, L(x) = L(c with _ at 0) + slice(c, L)(the rest of x).

References: J. Cecka, arXiv:2603.02298; CuTe documentation of NVIDIA CUTLASS.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

from layoutalg.cute import inttuple
from layoutalg.cute.composition import coordinates_after
from layoutalg.cute.coordinates import CoordinateLayout, basis_leaves
from layoutalg.cute.fit import strided_form
from layoutalg.cute.inttuple import IntTuple, integer, malformed, shape_text, validate
from layoutalg.cute.layout import CuteLayout, from_flat, trusted
from layoutalg.cute.operands import FAMILIES, AnyLayout, Under, cached, operand_refusal, refusal, require_cute
from layoutalg.cute.swizzle import ComposedLayout, Cute, shift
from layoutalg.ground.digits import merge, split
from layoutalg.ground.errors import Diagnostic, MalformedError, shown
from layoutalg.ground.limits import TUPLE_DEPTH, TUPLE_MODES

Sized: TypeAlias = "CuteLayout | ComposedLayout | CoordinateLayout"
Coord: TypeAlias = "int | tuple[Coord, ...] | None"

_LAYOUTS = (CuteLayout, ComposedLayout, CoordinateLayout)


def make_layout(*parts: Cute | IntTuple) -> CuteLayout:
    """Return the layout with the given modes, or the layout of a shape and an optional stride.

    Args:
        parts: Layouts, which become the modes; or a shape; or a shape and a stride.

    Example:
        >>> print(make_layout(CuteLayout(4, 2), CuteLayout((2, 2), (1, 8))), make_layout((4, 8)))
        (4,(2,2)):(2,(1,8)) (4,8):(1,4)
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
            flat += part._flat
    if len(shape) == len(parts):
        if len(flat) <= TUPLE_MODES and _is_plain(shape, TUPLE_DEPTH - 2):
            return trusted(tuple(shape), tuple(stride), tuple(flat))
        return CuteLayout(tuple(shape), tuple(stride))  # checks the limits on modes and depth
    if shape or len(parts) > 2:
        wrong = next((part for part in parts if shape and not isinstance(part, CuteLayout | ComposedLayout)), parts)
        raise malformed("parts", "must be layouts only, or a shape and an optional stride", wrong, "LA108")
    return CuteLayout(*[validate(part, "shape") for part in parts])


def _is_plain(shape: Sequence[IntTuple], levels: int) -> bool:
    """Return whether no tuple in ``shape`` is empty and none nests deeper than ``levels`` below it."""
    nested = [entry for entry in shape if type(entry) is tuple]
    if not nested:
        return bool(shape)
    return levels > 0 and False not in [_is_plain(entry, levels - 1) for entry in nested]


def size(value: Sized | IntTuple) -> int:
    """Return the number of coordinates of a layout or shape.

    Example:
        >>> size(CuteLayout((4, 8))), size((4, (2, 3)))
        (32, 24)
    """
    return value.size if isinstance(value, _LAYOUTS) else inttuple.product(inttuple.extents(value))


def cosize(layout: CuteLayout | ComposedLayout) -> int:
    """Return 1 + the greatest offset - the least offset; 0 for an empty layout.

    Example:
        >>> cosize(CuteLayout((4, 8), (16, 1))), cosize(CuteLayout(4, -1))
        (56, 4)
    """
    return require_cute(layout, "cosize").cosize


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
    """Apply ``operation``, which only rearranges the domain, to a layout of any kind."""
    if isinstance(layout, CuteLayout):
        return cast(AnyLayout, operation(layout))
    if isinstance(layout, ComposedLayout):
        return cast(AnyLayout, layout.rebase(operation(layout.base)))
    if isinstance(layout, CoordinateLayout):
        return cast(AnyLayout, coordinates_after(layout, operation(CuteLayout(layout.shape))))
    raise operand_refusal(layout, name, "layout", FAMILIES)


def rearrange(layout: AnyLayout, operation: Callable[[CuteLayout], CuteLayout], name: str) -> AnyLayout:
    """``lift`` for an operation that keeps every leaf; a coordinate layout then keeps its leaves too."""
    if not isinstance(layout, CoordinateLayout):
        return lift(layout, operation, name)
    strides = basis_leaves(layout.shape, layout.stride)
    found = operation(CuteLayout(layout.shape, inttuple.unflatten(tuple(range(len(strides))), layout.shape)))
    kept = inttuple.graft(iter([strides[leaf] for _, leaf in found.flat]), found.shape)
    return cast(AnyLayout, CoordinateLayout(found.shape, kept, layout.profile))


def flatten(layout: AnyLayout) -> AnyLayout:
    """Return the layout without nesting: the same leaves in one tuple; an int shape stays an int.

    Example:
        >>> print(flatten(CuteLayout((4, (2, 2)), (1, (16, 4)))))
        (4,2,2):(1,16,4)
    """

    def flattened(base: CuteLayout) -> CuteLayout:
        if isinstance(base.shape, int):
            return base
        return CuteLayout(inttuple.flatten(base.shape), inttuple.flatten(base.stride))

    return rearrange(layout, flattened, "flatten")


def unflatten(layout: AnyLayout, profile: IntTuple) -> AnyLayout:
    """Return the leaves of the layout nested like ``profile``; only the structure of ``profile`` counts.

    Example:
        >>> print(unflatten(CuteLayout((2, 3, 5)), (0, (0, 0))))
        (2,(3,5)):(1,(2,6))

    Laws: same function of the 1-D coordinate; ``flatten`` undoes it.
    """
    nested = validate(profile, "profile")

    def unflattened(base: CuteLayout) -> CuteLayout:
        if len(inttuple.flatten(nested)) != len(base.flat):
            rule = f"must have {len(base.flat)} leaves, as many as {shape_text(base.shape)}"
            raise malformed("profile", rule, nested, "LA155")
        shape, stride = inttuple.flatten(base.shape), inttuple.flatten(base.stride)
        return CuteLayout(inttuple.unflatten(shape, nested), inttuple.unflatten(stride, nested))

    return rearrange(layout, unflattened, "unflatten")


def coalesce(layout: AnyLayout, profile: IntTuple | None = None) -> AnyLayout:
    """Return the layout in the fewest modes with the same function of the 1-D coordinate.

    Mathematically: R with size(R) = size(L), depth at most 1 and R(i) = L(i) for all i < size(L); adjacent modes fuse
    where the next stride continues the run. With a profile, the modes at its leaves are coalesced separately.

    Args:
        layout: Any layout. Size 0 gives ``0:0``, size 1 gives ``1:0``.
        profile: None, or an int tuple with one entry per mode, nested as deep as modes must stay separate. Only its
            structure counts.

    Example:
        >>> layout = CuteLayout((2, (1, 6)), (1, (6, 2)))
        >>> print(coalesce(layout), coalesce(layout, (1, 1)))
        12:1 (2,6):(1,2)

    Laws: idempotent; keeps ``table``.
    """
    if profile is None and isinstance(layout, CuteLayout):
        return _coalesced(layout)  # type: ignore[return-value]
    wanted = 0 if profile is None else validate(profile, "profile")
    return lift(layout, lambda base: _coalesced_by(base, wanted), "coalesce")


@cached
def _coalesced(layout: CuteLayout) -> CuteLayout:
    return from_flat(merge(layout.flat))


def _coalesced_by(layout: CuteLayout, profile: IntTuple) -> CuteLayout:
    if isinstance(profile, int):
        return _coalesced(layout)
    if isinstance(layout.shape, int) or len(profile) != layout.rank:
        own = "an int shape" if isinstance(layout.shape, int) else f"{layout.rank}"
        because = f"the profile has {len(profile)} modes, the layout has {own}"
        where = (f"coalesce({layout}, {shape_text(profile)})",)
        raise MalformedError(Diagnostic("LA109", "the profile does not match the layout", where, because))
    return make_layout(*[_coalesced_by(layout[position], entry) for position, entry in enumerate(profile)])


def filter_zeros(layout: Under) -> Under:
    """Return the layout with the extent of every stride-0 mode set to 1; empty modes stay empty.

    Mathematically: same profile and strides, and the same set of offsets.

    Example:
        >>> print(filter_zeros(CuteLayout((2, (4, 3)), (0, (1, 0)))))
        (1,(4,1)):(0,(1,0))
    """
    return lift(require_cute(layout, "filter_zeros"), _without_zeros, "filter_zeros")


def _without_zeros(layout: CuteLayout) -> CuteLayout:
    extents = tuple([1 if stride == 0 and extent > 1 else extent for extent, stride in layout.flat])
    return CuteLayout(inttuple.unflatten(extents, layout.shape), layout.stride)


def filter(layout: Under) -> Under:
    """Return the layout without stride-0 and extent-1 modes, coalesced.

    Mathematically: the same set of offsets, each with the multiplicity that the remaining modes give it.

    Example:
        >>> print(filter(CuteLayout((2, 4, 3), (0, 1, 4))))
        12:1
    """
    return coalesce(filter_zeros(require_cute(layout, "filter")))


def group(layout: AnyLayout, begin: int, end: int) -> AnyLayout:
    """Group the modes begin, ..., end - 1 into one mode; the same function of the 1-D coordinate.

    Example:
        >>> print(group(CuteLayout((2, 3, 5, 7)), 1, 3))
        (2,(3,5),7):(1,(2,6),30)
    """

    def grouped(base: CuteLayout) -> CuteLayout:
        first, last = _mode_range(base, begin, end)
        modes = list(base)
        return make_layout(*modes[:first], make_layout(*modes[first:last]), *modes[last:])

    return rearrange(layout, grouped, "group")


def select(layout: AnyLayout, *modes: int) -> AnyLayout:
    """Return the layout with the given modes, in the given order.

    Example:
        >>> print(select(CuteLayout((2, 3, 5)), 2, 0))
        (5,2):(6,1)
    """
    chosen = [integer(mode, "mode", "LA107") for mode in modes]
    if len(set(chosen)) != len(chosen):
        raise malformed("modes", "must name each mode at most once", modes, "LA155")
    return rearrange(layout, lambda base: make_layout(*[base[mode] for mode in chosen]), "select")


def take(layout: AnyLayout, begin: int, end: int) -> AnyLayout:
    """Return the modes begin, ..., end - 1 as a layout.

    Example:
        >>> print(take(CuteLayout((2, 3, 5)), 1, 3))
        (3,5):(2,6)
    """

    def taken(base: CuteLayout) -> CuteLayout:
        first, last = _mode_range(base, begin, end)
        return make_layout(*list(base)[first:last])

    return rearrange(layout, taken, "take")


def _mode_range(layout: CuteLayout, begin: int, end: int) -> tuple[int, int]:
    first, last = integer(begin, "begin", "LA155"), integer(end, "end", "LA155")
    if not 0 <= first < last <= layout.rank:
        raise malformed("begin, end", f"must satisfy 0 <= begin < end <= {layout.rank}", (first, last), "LA155")
    return first, last


def append(layout: Under, mode: CuteLayout | None = None, rank: int | None = None) -> Under:
    """Append ``mode`` once, or until the layout has ``rank`` modes.

    Args:
        layout: A layout, possibly swizzled; an int shape counts as one mode.
        mode: Default ``1:0``.
        rank: None to append once; otherwise the target rank, at least that of the layout.

    Example:
        >>> print(append(CuteLayout((4, 8)), CuteLayout(2, 32)), append(CuteLayout(4), rank=3))
        (4,8,2):(1,4,32) (4,1,1):(1,0,0)
    """

    def appended(base: CuteLayout) -> CuteLayout:
        extra = _extra_modes(base, mode, rank)
        return make_layout(*base, *extra) if extra else base

    return lift(require_cute(layout, "append"), appended)


def prepend(layout: Under, mode: CuteLayout | None = None, rank: int | None = None) -> Under:
    """Prepend ``mode`` once, or until the layout has ``rank`` modes; arguments as in ``append``.

    Example:
        >>> print(prepend(CuteLayout((4, 8)), CuteLayout(2, 32)))
        (2,4,8):(32,1,4)
    """

    def prepended(base: CuteLayout) -> CuteLayout:
        extra = _extra_modes(base, mode, rank)
        return make_layout(*extra, *base) if extra else base

    return lift(require_cute(layout, "prepend"), prepended)


def _extra_modes(layout: CuteLayout, mode: CuteLayout | None, rank: int | None) -> list[CuteLayout]:
    if mode is not None and not isinstance(mode, CuteLayout):
        raise malformed("mode", "must be a CuteLayout", mode, "LA155")
    added = CuteLayout(1, 0) if mode is None else mode
    if rank is None:
        return [added]
    target = integer(rank, "rank", "LA155")
    if not layout.rank <= target <= TUPLE_MODES:
        raise malformed("rank", f"must be in [{layout.rank}, {TUPLE_MODES}]", target, "LA155")
    return [added] * (target - layout.rank)


def replace(layout: Under, position: int, mode: CuteLayout) -> Under:
    """Replace one top-level mode.

    Example:
        >>> print(replace(CuteLayout((4, 8)), 1, CuteLayout((2, 2), (4, 16))))
        (4,(2,2)):(1,(4,16))
    """
    if not isinstance(mode, CuteLayout):
        raise malformed("mode", "must be a CuteLayout", mode, "LA155")

    def replaced(base: CuteLayout) -> CuteLayout:
        modes = list(base)
        base[position]  # raises for a mode that does not exist
        modes[integer(position, "position")] = mode
        return make_layout(*modes)

    return lift(require_cute(layout, "replace"), replaced)


def slice(coord: Coord, layout: Under) -> Under:
    """Return the modes of ``layout`` where ``coord`` is None.

    Mathematically: R with L(x) = L(x with kept modes at 0) + R(kept part of x). Kept modes inside a nested mode move up
    one level, as in CuTe.

    Args:
        coord: None to keep everything; an int, fixing the whole mode by its 1-D coordinate; or a tuple of such entries,
            one per mode.
        layout: A layout. A swizzled one is not additive over its modes, so the offset of the fixed part stays under the
            innermost swizzle: R(kept part of x) = L(x).

    Returns:
        The kept modes; ``():()`` if there are none. The offset of the fixed part is dropped; ``slice_and_offset`` keeps
        it.

    Example:
        >>> layout = CuteLayout((4, (2, 3)), (6, (3, 1)))
        >>> print(slice((1, None), layout), slice((None, (None, 2)), layout), slice(None, layout))
        ((2,3)):((3,1)) (4,2):(6,3) (4,(2,3)):(6,(3,1))
    """
    if isinstance(require_cute(layout, "slice"), ComposedLayout):
        return cast(Under, slice_and_offset(coord, layout))

    def sliced(base: CuteLayout) -> CuteLayout:
        _offset_fixed(coord, base, f"slice({coord_text(coord)}, {base})", 0)
        return base if coord is None else make_layout(*_modes_at(coord, base, True))

    return lift(layout, sliced, "slice")


def dice(coord: Coord, layout: Under) -> Under:
    """Return the modes of ``layout`` where ``coord`` is an integer: those that ``slice`` drops.

    Args:
        coord: As in ``slice``.
        layout: A layout; swizzles are kept, over the remaining modes.

    Example:
        >>> layout = CuteLayout((4, (2, 3)), (6, (3, 1)))
        >>> print(dice((1, None), layout), dice((None, (None, 2)), layout), dice(5, layout))
        (4):(6) (3):(1) (4,(2,3)):(6,(3,1))
    """

    def diced(base: CuteLayout) -> CuteLayout:
        _offset_fixed(coord, base, f"dice({coord_text(coord)}, {base})", 0)
        return make_layout(*_modes_at(coord, base, False)) if isinstance(coord, tuple) or coord is None else base

    return lift(require_cute(layout, "dice"), diced, "dice")


def slice_and_offset(coord: Coord, layout: Cute) -> ComposedLayout:
    """Return the kept modes together with the offset of the fixed ones.

    Mathematically: (o, R) with L(x) = o + R(kept part of x) for every x that agrees with ``coord``. For a swizzled
    layout the offset is added under the innermost swizzle. Arguments as in ``slice``.

    Example:
        >>> print(slice_and_offset((1, None), CuteLayout((4, 8), (8, 1))))
        8 + (8):(1)
        >>> from layoutalg.cute.swizzle import Swizzle
        >>> print(slice_and_offset((None, 1), ComposedLayout(Swizzle(1, 0, 1), 0, CuteLayout((2, 4)))))
        Sw<1,0,1> o 2 o (2):(1)
    """
    base = require_cute(layout, "slice_and_offset").base
    offset = _offset_fixed(coord, base, f"slice({coord_text(coord)}, {layout})", 0)
    rest = base if coord is None else make_layout(*_modes_at(coord, base, True))
    return moved(layout, rest, offset)


def moved(layout: Cute, base: CuteLayout, offset: int) -> ComposedLayout:
    """Return ``offset + base`` under the stages of ``layout``."""
    return layout.rebase(base, offset) if isinstance(layout, ComposedLayout) else shift(base, offset)


def domain_offset(coord: IntTuple, layout: Cute) -> ComposedLayout:
    """Return the layout starting at ``coord``.

    Mathematically: c -> L(coord + c), leaf by leaf. Each extent is shortened to what remains after the coordinate, so
    the result stays inside L.

    Args:
        coord: A coordinate inside the layout; a 1-D coordinate of a mode is split into its digits.
        layout: A layout; for a swizzled one the offset is added under the innermost swizzle.

    Example:
        >>> print(domain_offset((1, 2), CuteLayout((4, 8), (8, 1))))
        10 + (3,6):(8,1)
    """
    start = validate(coord, "coordinate")
    base = require_cute(layout, "domain_offset").base
    offset = _offset_fixed(start, base, f"domain_offset({shape_text(start)}, {layout})", 0)
    digits = _digits(start, base.shape)
    left = tuple([extent - digit for (extent, _), digit in zip(base.flat, digits, strict=True)])
    return moved(layout, CuteLayout(inttuple.unflatten(left, base.shape), base.stride), offset)


def coord_text(coord: object, level: int = 0) -> str:
    """Return a coordinate in CuTe notation, bounded in length and depth."""
    if coord is None:
        return "_"
    if isinstance(coord, tuple):
        if level > TUPLE_DEPTH:
            return "(...)"
        text = "(" + ",".join([coord_text(entry, level + 1) for entry in coord[:32]]) + ")"
        return text if len(text) <= 120 else text[:117] + "..."
    return shown(coord)


def _offset_fixed(coord: Coord, layout: CuteLayout, where: str, level: int) -> int:
    """Return the offset of the fixed part, or raise if the coordinate does not fit."""
    if coord is None:
        return 0
    if isinstance(coord, tuple):
        if isinstance(layout.shape, int) or len(coord) != layout.rank or level >= TUPLE_DEPTH:
            modes = "no modes" if isinstance(layout.shape, int) else f"{layout.rank} modes"
            because = f"{coord_text(coord)} has {len(coord)} entries; {shape_text(layout.shape)} has {modes}"
            raise MalformedError(Diagnostic("LA156", "the coordinate does not fit the layout", (where,), because))
        return sum([_offset_fixed(entry, layout[position], where, level + 1) for position, entry in enumerate(coord)])
    value = integer(coord, "coordinate", "LA156")
    if not 0 <= value < layout.size:
        because = f"{value} is not in [0, {layout.size}), the extent of {shape_text(layout.shape)}"
        witness = {"coordinate": value, "size": layout.size}
        raise refusal("LA157", "the coordinate lies outside the layout", where, because, witness)
    return layout(value)


def _modes_at(coord: Coord, layout: CuteLayout, blank: bool) -> list[CuteLayout]:
    """Return the modes at None (``blank``) or at integers, moved up to one level."""
    if isinstance(coord, tuple):
        return [mode for position, entry in enumerate(coord) for mode in _modes_at(entry, layout[position], blank)]
    return [layout] if (coord is None) == blank else []


def _digits(coord: IntTuple, shape: IntTuple) -> list[int]:
    if isinstance(coord, tuple) and isinstance(shape, tuple):
        return [digit for c, s in zip(coord, shape, strict=True) for digit in _digits(c, s)]
    return list(split(inttuple.product(coord), inttuple.flatten(shape))[0])
