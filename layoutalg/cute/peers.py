"""Answers of CuTe C++ and pycute where they deliberately differ from the exact contract.

* Past its domain a layout continues in its last mode (both); strict raises. ``idx2crd`` of a 1-D coordinate past the
  end: C++ lets the last digit grow without bound, pycute takes every digit modulo its extent.
* A by-mode tiler shorter than the layout: C++ drops the modes without a tiler, pycute keeps them.
* A tiler that does not divide: C++ rounds the rest up mode by mode, so the result is larger than the layout and may
  have offsets outside it; pycute raises if its divisibility check notices; strict always raises.
* The cosize of a negative stride: C++ uses its magnitude, pycute evaluates the last coordinate.

Both peers compose mode by mode of the inner layout and never check the function, so their answers may differ from the
composition as a function. Use them to port or compare code.

References: CuTe C++ of NVIDIA CUTLASS; ``python/pycute`` of CUTLASS.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from layoutalg.cute import algebra, common, coords, divide, product, slicing, tiling
from layoutalg.cute.algebra import coalesce, lift, make_layout
from layoutalg.cute.complement import bound_of, complement, divisible_chain
from layoutalg.cute.composed import ComposedLayout, Cute
from layoutalg.cute.composition import composition
from layoutalg.cute.conventions import Convention, peer
from layoutalg.cute.coordinates import CoordinateLayout
from layoutalg.cute.divide import Split, shaped
from layoutalg.cute.inttuple import (
    IntTuple,
    ceil_div,
    extents,
    flatten,
    integer,
    malformed,
    shape_text,
    unflatten,
    validate,
)
from layoutalg.cute.inttuple import product as leaves_product
from layoutalg.cute.layout import CuteLayout, from_flat
from layoutalg.cute.operands import (
    FAMILIES,
    AnyLayout,
    Tiler,
    Where,
    as_layout,
    by_mode,
    composed,
    operand_refusal,
    plain,
    read_tiler,
    refusal,
    tiler_text,
    within,
)
from layoutalg.cute.recast import away_from_zero, checked_factor, downcast, upcast
from layoutalg.cute.slicing import Coord
from layoutalg.cute.swizzle import Swizzle
from layoutalg.ground.digits import Flat, merge
from layoutalg.ground.errors import (
    AdmissibilityError,
    Diagnostic,
    LayoutError,
    MalformedError,
    RepresentabilityError,
)

CPP: Convention = "cute_cpp"
PYCUTE: Convention = "pycute"


@peer(composition, CPP, PYCUTE)
def _composition(convention: Convention, outer: Any, inner: Any) -> Any:
    """Factor each mode of ``inner`` through ``outer`` separately, unchecked; the peers have no convention for
    swizzles or a swizzled inner layout."""
    if isinstance(inner, ComposedLayout | CoordinateLayout | Swizzle) or isinstance(outer, Swizzle):
        return composition(outer, inner)
    where = f"composition({composed(outer, 'composition', 'outer')}, {tiler_text(inner)})"
    known = read_tiler(inner, where)
    return lift(outer, lambda base: _compose(base, known, convention, where), "composition")


def _compose(outer: CuteLayout, inner: Tiler, convention: Convention, where: str) -> CuteLayout:
    if inner is None:
        return outer
    if isinstance(inner, tuple):
        by_mode(outer, inner, where)
        modes = [_compose(outer[position], entry, convention, where) for position, entry in enumerate(inner)]
        kept = [] if convention == "cute_cpp" else [outer[position] for position in range(len(inner), outer.rank)]
        return make_layout(*modes, *kept)
    layout = as_layout(inner)
    if isinstance(layout.shape, tuple):
        return make_layout(*[_compose(outer, mode, convention, where) for mode in layout])
    (extent, step) = layout.flat[0]
    if step == 0:
        return CuteLayout(extent, 0)
    return from_flat(_thread(outer.flat, extent, step, convention, where))


def _thread(outer: Flat, extent: int, step: int, convention: Convention, where: str) -> Flat:
    """Return the digits that a peer computes for the mode extent:step, in one pass over ``outer`` from the fastest."""
    if convention == "cute_cpp" and outer and outer[-1][0] == 1:
        outer = (*outer[:-1], (2, outer[-1][1]))  # C++ keeps a last mode of extent 1, the one that continues
    merged = merge(outer) or ((1, 0),)
    found: list[tuple[int, int]] = []
    left = extent
    for width, stride in merged[:-1]:
        magnitude = abs(step) if convention == "cute_cpp" else step
        if step == 0 or left == 0:
            zero = "stride" if step == 0 else "extent"
            raise _peer_refuses(convention, where, f"its {zero} is 0 at the mode {width}:{stride}, a division by zero")
        if step % width and (width % step if convention == "pycute" else magnitude >= width):
            raise _peer_refuses(convention, where, f"neither of stride {step} and extent {width} divides the other")
        if convention == "pycute":
            taken = min(max(1, width // step), left)
            following = -(-step // width)
        else:
            taken = min(-(-width // magnitude), left)
            following = -(-magnitude // width) * (1 if step > 0 else -1)
        if taken != 1:
            if convention == "cute_cpp" and left % taken:
                raise _peer_refuses(convention, where, f"extent {left} is not a multiple of {taken}")
            found.append((taken, step * stride))
            left //= taken
        step = following
    if left != 1 or not found:
        found.append((left, step * merged[-1][1]))
    return tuple(found)


def _peer_refuses(convention: Convention, where: str, because: str) -> RepresentabilityError:
    name = "CuTe C++" if convention == "cute_cpp" else "pycute"
    return RepresentabilityError(
        Diagnostic(code="LA145", what=f"{name} refuses this composition", where=(where,), because=because)
    )


@peer(complement, CPP, PYCUTE)
def _complement(convention: Convention, layout: CuteLayout, cosize: IntTuple | None) -> CuteLayout:
    """C++ rounds a shape up mode by mode, pycute uses its size."""
    if not isinstance(cosize, tuple):
        return complement(layout, cosize)
    shape = bound_of(cosize)
    if convention == PYCUTE:
        return complement(layout, CuteLayout(shape).size)
    return _complement_rounded(plain(layout, "complement"), shape)


def _complement_rounded(layout: CuteLayout, shape: IntTuple) -> CuteLayout:
    """Return the complement bounded by a shape that is rounded up mode by mode."""
    end = 1
    for extent, stride, _ in divisible_chain(layout.flat, f"complement({layout}, {shape_text(shape)})"):
        end = extent * stride
    return complement(layout, max(1, leaves_product(ceil_div(shape, end)) * end))


@peer(algebra.cosize, CPP, PYCUTE)
def _cosize(convention: Convention, layout: Cute) -> int:
    """C++ ignores the swizzles, pycute evaluates the last coordinate."""
    if isinstance(layout, ComposedLayout):
        return layout.base.cosize if convention == CPP else layout.cosize  # pycute has no swizzled layouts
    if convention == CPP:
        return algebra.cosize(layout)
    if plain(layout, "cosize").size == 0:
        because = "pycute evaluates the last coordinate; an empty layout has none"
        raise MalformedError(Diagnostic("LA146", "the layout is empty", (f"cosize({layout})",), because))
    return layout(layout.size - 1) + 1


def _divided(name: str, convention: Convention, layout: AnyLayout, tiler: Tiler) -> AnyLayout:
    if not isinstance(layout, CuteLayout | ComposedLayout | CoordinateLayout):
        raise operand_refusal(layout, name, "layout", FAMILIES)
    where = f"{name}({layout}, {tiler_text(tiler)})"
    known = _read(name, tiler, convention, where)
    return lift(layout, lambda base: shaped(name, base, known, _splitter(convention), where), name)


def _splitter(convention: Convention) -> Split:
    """Return how a peer divides one mode."""

    def split(layout: CuteLayout, tiler: CuteLayout | int) -> CuteLayout:
        tile = as_layout(tiler)
        if convention == CPP:  # C++ bounds by the shape of the coalesced layout
            rest = _complement_rounded(tile, coalesce(layout).shape)
        else:
            rest = complement(tile, max(1, layout.size))
        return _compose(layout, make_layout(tile, rest), convention, f"composition({layout}, {tile})")

    return split


def _read(name: str, tiler: Tiler, convention: Convention, where: Where) -> Tiler:
    """Read a tiler; C++ does not compile None in the zipped forms."""
    known = read_tiler(tiler, where)
    if convention == CPP and not name.startswith("logical"):
        _refuse_blank(known, where)
    return known


def _refuse_blank(tiler: Tiler, where: Where) -> None:
    if tiler is None:
        raise refusal("LA143", "CuTe C++ refuses a blank tiler here", where, "_ does not name a tile")
    for entry in tiler if isinstance(tiler, tuple) else ():
        _refuse_blank(entry, where)


def _multiplied(name: str, convention: Convention, block: Cute, tiler: Tiler) -> Cute:
    where = f"{name}({composed(block, name, 'block')}, {tiler_text(tiler)})"
    known = _read(name, tiler, convention, where)

    def split(mode: CuteLayout, entry: CuteLayout | int) -> CuteLayout:
        if convention == PYCUTE and isinstance(entry, int):
            return divide.logical_divide(mode, entry, convention=PYCUTE)
        return _product(mode, as_layout(entry), convention, where)

    return lift(block, lambda base: shaped(name, base, known, split, where), name)


def _interleaved(name: str, convention: Convention, block: Cute, tiler: CuteLayout | int) -> Cute:
    known = product.layout_tiler(composed(block, name, "block"), tiler, name)
    where = f"{name}({block}, {known})"

    def multiply(mode: CuteLayout, copies: CuteLayout) -> CuteLayout:
        return _product(mode, copies, convention, where)

    return lift(block, lambda base: product.interleaved(base, known, name, multiply), name)


def _product(block: CuteLayout, tiler: CuteLayout, convention: Convention, where: Where) -> CuteLayout:
    try:
        bound = product.places_of(block.size, algebra.cosize(tiler, convention=convention), where)
        return make_layout(block, _composition(convention, complement(block, bound), tiler))
    except LayoutError as error:
        raise within(error, where) from error


for _operation in ("logical", "zipped", "tiled", "flat"):
    _name = f"{_operation}_divide"
    peer(getattr(divide, _name), CPP, PYCUTE)(partial(_divided, _name))
    _name = f"{_operation}_product"
    peer(getattr(product, _name), CPP, PYCUTE)(partial(_multiplied, _name))
for _name in ("blocked_product", "raked_product"):
    peer(getattr(product, _name), CPP, PYCUTE)(partial(_interleaved, _name))


@peer(upcast, CPP)
def _upcast(_: Convention, layout: Cute, factor: int) -> Cute:
    """Extents are rounded up."""
    count = checked_factor(factor)
    if isinstance(layout, ComposedLayout):
        return upcast(layout, count)
    where = f"upcast({plain(layout, 'upcast')}, {count})"
    extents: list[int] = []
    strides: list[int] = []
    for extent, stride in layout.flat:
        if stride == 0 or stride % count == 0:
            extents.append(extent)
        elif count % stride == 0:
            extents.append(-(-extent // (count // abs(stride))))
        else:
            because = f"neither of stride {stride} and {count} divides the other"
            raise refusal("LA161", "CuTe C++ refuses this recast", where, because, {"stride": stride, "factor": count})
        strides.append(away_from_zero(stride, count))
    return CuteLayout(unflatten(tuple(extents), layout.shape), unflatten(tuple(strides), layout.shape))


@peer(downcast, CPP)
def _downcast(_: Convention, layout: Cute, factor: int) -> Cute:
    """Every mode of stride 1 or -1 is widened."""
    count = checked_factor(factor)
    if isinstance(layout, ComposedLayout):
        return downcast(layout, count)
    flat = plain(layout, "downcast").flat
    pairs = [(extent * count, d) if abs(d) == 1 else (extent, d * count) for extent, d in flat]
    return CuteLayout(
        unflatten(tuple([extent for extent, _ in pairs]), layout.shape),
        unflatten(tuple([stride for _, stride in pairs]), layout.shape),
    )


@peer(slicing.slice, PYCUTE)
def _slice(_: Convention, coord: Coord, layout: Cute) -> Cute:
    """A bare None is wrapped in one more level."""
    found = slicing.slice(coord, layout)
    return make_layout(found) if coord is None and isinstance(found, CuteLayout) else found


@peer(slicing.domain_offset, CPP)
def _domain_offset(_: Convention, coord: IntTuple, layout: Cute) -> ComposedLayout:
    """C++ keeps the shape, so the result reads past the end of a mode."""
    base, _start, offset = slicing.domain_start(coord, layout)
    return slicing.moved(layout, base, offset)


@peer(tiling.tile_to_shape, CPP)
def _tile_to_shape(_: Convention, tile: Cute, shape: IntTuple, order: IntTuple | None) -> Cute:
    """C++ rounds up extents that the tile does not divide."""
    own, target = composed(tile, "tile_to_shape", "tile"), validate(shape, "shape")
    return lift(own, lambda base: tiling.tiled_to(base, target, order, whole_tiles=False))


@peer(common.domain_distribute, CPP)
def _domain_distribute(_: Convention, shape: IntTuple, count: int) -> CuteLayout:
    """Like CuTe, return a shorter result instead of raising."""
    return common.distributed(shape, count)[0]


@peer(coords.crd2idx, CPP, PYCUTE)
def _crd2idx(_: Convention, coord: IntTuple, shape: IntTuple, stride: IntTuple | None) -> int:
    sizes = extents(shape)
    return _grow(validate(coord, "coordinate"), sizes, coords.strides_of(sizes, stride))


def _grow(coord: IntTuple, shape: IntTuple, stride: IntTuple) -> int:
    if isinstance(coord, tuple):
        if isinstance(shape, int) or isinstance(stride, int) or len(coord) != len(shape):
            raise malformed("coordinate", f"must match the shape {shape_text(shape)}", coord, "LA104")
        return sum([_grow(c, s, d) for c, s, d in zip(coord, shape, stride, strict=True)])
    leaves = tuple(zip(flatten(shape), flatten(stride), strict=True))
    total = 0
    for extent, step in leaves[:-1]:
        if extent == 0:
            raise AdmissibilityError(
                Diagnostic("LA105", "the coordinate lies outside the domain", because=f"{shape_text(shape)} is empty")
            )
        coord, digit = divmod(coord, extent)
        total += digit * step
    return total + coord * leaves[-1][1] if leaves else 0


@peer(coords.idx2crd, CPP, PYCUTE)
def _idx2crd(convention: Convention, index: int, shape: IntTuple) -> IntTuple:
    """C++ lets the last digit grow, pycute takes each modulo its extent."""
    sizes = extents(shape)
    rest = integer(index, "index")
    leaves = flatten(sizes)
    if rest < 0 or 0 in leaves or not leaves:
        return coords.idx2crd(rest, sizes)
    digits: list[int] = []
    for extent in leaves[:-1]:
        rest, digit = divmod(rest, extent)
        digits.append(digit)
    digits.append(rest if convention == CPP else rest % leaves[-1])
    return unflatten(tuple(digits), sizes)
