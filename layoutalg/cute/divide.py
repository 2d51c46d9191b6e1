"""Divide a layout by a tiler, repeat it in the order of a tiler, and repeat a tile until it has a shape.

Main statements: with C = complement(T, size(A)), the pair (T, C) is a bijection onto [0, size(A)) once the stride-0
modes of T are dropped, and logical_divide(A, T) = A o (T, C). A layout R with that function exists if and only if C
exists, (T, C) ends at size(A), and the composition is a CuTe layout; each is decided without enumeration. C is unique,
because the least offset not yet covered must start the next copy of T.

logical_product(A, T) = (A, C o T) with C = complement(A, size(filter(A)) * cosize(T)). Copy j of A starts at offset
C(T(j)). C has the offsets where a copy of A fits without overlap, so distinct values of T give disjoint copies.

References: J. Cecka, arXiv:2603.02298; the CuTe operations of the same names.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from layoutalg.cute.algebra import append, coalesce, lift, make_layout
from layoutalg.cute.complement import complement_up_to
from layoutalg.cute.composition import compose_strided
from layoutalg.cute.coordinates import CoordinateLayout
from layoutalg.cute.inttuple import (
    INT_LIMIT,
    QUICK,
    IntTuple,
    ceil_div,
    compact_col_major,
    congruent,
    flatten,
    malformed,
    product,
    product_each,
    rank,
    shape_text,
    unflatten,
    validate,
)
from layoutalg.cute.layout import CuteLayout, trusted
from layoutalg.cute.operands import (
    FAMILIES,
    AnyLayout,
    Tiler,
    Under,
    Where,
    as_layout,
    by_mode,
    cached,
    operand_refusal,
    read_tiler,
    refusal,
    require_cute,
    tiler_text,
    within,
)
from layoutalg.cute.swizzle import ComposedLayout, Cute
from layoutalg.ground.digits import evaluate, first_outside, merge, span
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, LayoutError, MalformedError, RepresentabilityError

Split = Callable[[CuteLayout, "CuteLayout | int"], CuteLayout]


def logical_divide(layout: AnyLayout, tiler: Tiler) -> AnyLayout:
    """Return ``layout`` split into (tile, rest): mode 0 walks one tile, mode 1 walks from tile to tile.

    Mathematically: A o (T, C) with C = complement(T, size(A)). A tuple of tilers divides mode by mode; None and
    missing entries keep the mode.

    Args:
        layout: A layout of any family.
        tiler: A layout of 1-D coordinates of ``layout`` (or of its mode), an int n meaning ``n:1``, None, or a tuple.

    Raises:
        AdmissibilityError: the tiler does not divide the layout, or has no complement. RepresentabilityError: the
        result is no CuTe layout. BudgetError: undecided. MalformedError: operands that do not fit.

    Complexity: as ``composition``; independent of the sizes.

    Example:
        >>> print(logical_divide(CuteLayout((4, 2, 3), (2, 1, 8)), CuteLayout(4, 2)))
        ((2,2),(2,3)):((4,1),(2,8))
        >>> print(logical_divide(CuteLayout((6, 4), (1, 10)), (2, 4)))
        ((2,3),(4,1)):((1,2),(10,0))

    Laws: the table of the result is that of the layout, reordered by (T, C).
    """
    return _divided(layout, tiler, "logical_divide")


def zipped_divide(layout: AnyLayout, tiler: Tiler) -> AnyLayout:
    """Return ``layout`` split into ((tile modes), (rest modes)).

    Mathematically: ``logical_divide`` with the tiles of all modes gathered in mode 0 and the rests in mode 1. Modes
    without a tiler go to the rest. None means a tile of one element, with the whole mode in the rest, as in pycute;
    CuTe C++ does not compile it. Arguments and errors as in ``logical_divide``; the tiler may nest.

    Example:
        >>> print(zipped_divide(CuteLayout((4, 6, 5)), (2, 3)))
        ((2,3),(2,2,5)):((1,4),(2,12,24))

    Laws: slicing mode 1 gives one tile; slicing mode 0 gives the same element of every tile.
    """
    return _divided(layout, tiler, "zipped_divide")


def tiled_divide(layout: AnyLayout, tiler: Tiler) -> AnyLayout:
    """Return ``layout`` split into ((tile modes), rest mode, rest mode, ...); arguments as in ``zipped_divide``.

    Example:
        >>> print(tiled_divide(CuteLayout((4, 6, 5)), (2, 3)))
        ((2,3),2,2,5):((1,4),2,12,24)
    """
    return _divided(layout, tiler, "tiled_divide")


def flat_divide(layout: AnyLayout, tiler: Tiler) -> AnyLayout:
    """Return ``layout`` split into (tile mode, ..., rest mode, ...); arguments as in ``zipped_divide``.

    Example:
        >>> print(flat_divide(CuteLayout((4, 6, 5)), (2, 3)))
        (2,3,2,2,5):(1,4,2,12,24)
    """
    return _divided(layout, tiler, "flat_divide")


def _divided(layout: AnyLayout, tiler: Tiler, name: str) -> AnyLayout:
    if not isinstance(layout, CuteLayout | ComposedLayout | CoordinateLayout):
        raise operand_refusal(layout, name, "layout", FAMILIES)
    return _tiled(layout, read_tiler(tiler, lambda: f"{name}({layout}, {tiler_text(tiler)})"), name)


@cached
def _tiled(layout: AnyLayout, tiler: Tiler, name: str) -> AnyLayout:
    """Return the divide or product called ``name``."""

    def where() -> str:
        return f"{name}({layout}, {tiler_text(tiler)})"

    def split(mode: CuteLayout, entry: CuteLayout | int) -> CuteLayout:
        return operation(mode, as_layout(entry), where)

    operation = _divide if name.endswith("divide") else product_of
    return lift(layout, lambda base: shaped(name, base, tiler, split, where), name)


def shaped(name: str, layout: CuteLayout, tiler: Tiler, split: Split, where: Where) -> CuteLayout:
    """Return the divide or product called ``name``, given its ``split`` of one mode."""
    if name.startswith("logical"):
        return _by_mode(layout, tiler, split, where)
    zipped = unzip(layout, tiler, split, where)
    if name.startswith("zipped"):
        return zipped
    (tile, rest), (tile_step, rest_step) = _entries(zipped.shape), _entries(zipped.stride)
    if name.startswith("tiled"):
        return trusted((tile, *_entries(rest)), (tile_step, *_entries(rest_step)), zipped.flat)
    shape, stride = (*_entries(tile), *_entries(rest)), (*_entries(tile_step), *_entries(rest_step))
    return trusted(shape, stride, zipped.flat)


def _entries(value: IntTuple) -> tuple[IntTuple, ...]:
    return value if isinstance(value, tuple) else (value,)


def unzip(layout: CuteLayout, tiler: Tiler, split: Split, where: Where) -> CuteLayout:
    """Gather the first and the second parts of all modes into rank 2; ``split`` divides or multiplies one mode."""
    if tiler is None:
        return make_layout(CuteLayout(1, 0), layout)
    if not isinstance(tiler, tuple):
        return split(layout, tiler)
    by_mode(layout, tiler, where)
    parts = [unzip(layout[position], entry, split, where) for position, entry in enumerate(tiler)]
    kept = [layout[position] for position in range(len(tiler), layout.rank)]
    return make_layout(make_layout(*[part[0] for part in parts]), make_layout(*[part[1] for part in parts], *kept))


def _by_mode(layout: CuteLayout, tiler: Tiler, split: Split, where: Where) -> CuteLayout:
    if tiler is None:
        return layout
    if not isinstance(tiler, tuple):
        return split(layout, tiler)
    by_mode(layout, tiler, where)
    modes = [_by_mode(layout[position], entry, split, where) for position, entry in enumerate(tiler)]
    return make_layout(*modes, *[layout[position] for position in range(len(tiler), layout.rank)])


def _divide(layout: CuteLayout, tile: CuteLayout, where: Where) -> CuteLayout:
    """Return A o (T, C), or raise."""
    size = layout.size
    if size == 0:  # (T, C) covers nothing: C is empty
        return compose_strided(layout, make_layout(tile, CuteLayout(0, 0)))
    low, high = span(tile._flat)
    if low < 0 or high >= size:
        raise _falls_outside(layout, tile, tile, where)
    try:
        rest = complement_up_to(tile, size)
    except AdmissibilityError as error:
        raise within(error, where) from error
    whole = make_layout(tile, rest)
    if span(whole._flat)[1] >= size:
        raise _falls_outside(layout, tile, whole, where)
    try:
        return compose_strided(layout, whole)
    except RepresentabilityError as error:
        raise within(error, where, "LA142", "the divided layout is not a CuTe layout") from error


def _falls_outside(layout: CuteLayout, tile: CuteLayout, whole: CuteLayout, where: Where) -> AdmissibilityError:
    """Return the error for a tiler that reaches past the layout, with the first such coordinate of (tile, rest)."""
    first = first_outside(whole.flat, layout.size) or 0
    element = evaluate(whole.flat, first)
    copy, inside = divmod(first, tile.size)
    because = (
        f"{tile} does not tile [0, {layout.size}): element {inside} of tile {copy} is {element}, which falls outside"
    )
    witness = {"coordinate": (inside, copy), "element": element, "size": layout.size}
    return refusal("LA140", "the tiler does not divide the layout", where, because, witness)


def logical_product(block: Under, tiler: Tiler) -> Under:
    """Return (block, rest): mode 0 walks one copy of ``block``, mode 1 walks from copy to copy.

    Mathematically: (A, C o T) with C = complement(A, size(filter(A)) * cosize(T)): copy j starts at C(T(j)). A tuple of
    tilers multiplies mode by mode; None and missing entries keep the mode. An int n means n copies in order, ``n:1``.

    Args:
        block: Strides >= 0, injective once stride-0 modes are dropped, with a divisible chain of strides. The swizzles
            of a swizzled block act on all copies. Elements.
        tiler: The order of the copies: a layout with strides >= 0, an int, None, or a tuple of these.

    Raises:
        AdmissibilityError: the block has no complement, or the copies leave the 64-bit range. RepresentabilityError:
        the starts of the copies are no CuTe layout. BudgetError: undecided. MalformedError: operands that do not fit.

    Example:
        >>> print(logical_product(CuteLayout((2, 2), (4, 1)), CuteLayout(6, 1)), logical_product(CuteLayout(4), 3))
        ((2,2),(2,3)):((4,1),(2,8)) (4,3):(1,4)

    Laws: the copies have disjoint offsets if the tiler is injective; copy 0 is the block.
    """
    return _multiplied(block, tiler, "logical_product")


def zipped_product(block: Under, tiler: Tiler) -> Under:
    """Return ((block modes), (copy modes)).

    Mathematically: ``logical_product`` with the blocks of all modes gathered in mode 0 and the copies in mode 1. Modes
    without a tiler go to mode 1. None gives ``1:0`` and puts the whole mode into mode 1, as in pycute. Arguments and
    errors as in ``logical_product``; the tiler may nest.

    Example:
        >>> print(zipped_product(CuteLayout((2, 5), (5, 1)), CuteLayout((3, 4), (1, 3))))
        ((2,5),(3,4)):((5,1),(10,30))
    """
    return _multiplied(block, tiler, "zipped_product")


def tiled_product(block: Under, tiler: Tiler) -> Under:
    """Return ((block modes), copy mode, copy mode, ...); arguments as in ``zipped_product``.

    Example:
        >>> print(tiled_product(CuteLayout((2, 5), (5, 1)), CuteLayout((3, 4), (1, 3))))
        ((2,5),3,4):((5,1),10,30)
    """
    return _multiplied(block, tiler, "tiled_product")


def flat_product(block: Under, tiler: Tiler) -> Under:
    """Return (block mode, ..., copy mode, ...); arguments as in ``zipped_product``.

    Example:
        >>> print(flat_product(CuteLayout((2, 5), (5, 1)), CuteLayout((3, 4), (1, 3))))
        (2,5,3,4):(5,1,10,30)
    """
    return _multiplied(block, tiler, "flat_product")


def _multiplied(block: Under, tiler: Tiler, name: str) -> Under:
    require_cute(block, name, "block")
    return _tiled(block, read_tiler(tiler, lambda: f"{name}({block}, {tiler_text(tiler)})"), name)


def blocked_product(block: Under, tiler: CuteLayout | int) -> Under:
    """Return the product whose mode k is (mode k of the block, mode k of the copies): blocks stay together.

    Mathematically: both sides are padded with ``1:0`` to equal rank, multiplied, and zipped mode by mode. As in CuTe
    C++ the modes are not coalesced and the padding stays (the CuTe DSL drops it); ``coalesce(R, (0,) * R.rank)`` gives
    the shorter form.

    Args:
        block: As in ``logical_product``.
        tiler: A layout, or an int n meaning ``n:1``.

    Example:
        >>> print(blocked_product(CuteLayout((2, 5), (5, 1)), CuteLayout((3, 4), (1, 3))))
        ((2,3),(5,4)):((5,10),(1,30))

    Laws: same offsets as ``logical_product``.
    """
    return _interleaved(block, tiler, "blocked_product")


def raked_product(block: Under, tiler: CuteLayout | int) -> Under:
    """Return the product whose mode k is (mode k of the copies, mode k of the block): blocks interleave.

    Mathematically: ``blocked_product`` with the two sides swapped in each mode; arguments as there.

    Example:
        >>> print(raked_product(CuteLayout(4), CuteLayout((2, 3), (3, 1))))
        ((2,4),(3,1)):((12,1),(4,0))
    """
    return _interleaved(block, tiler, "raked_product")


def _interleaved(block: Under, tiler: CuteLayout | int, name: str) -> Under:
    require_cute(block, name, "block")
    known = read_tiler(tiler, lambda: f"{name}({block}, {tiler_text(tiler)})")
    if known is None or isinstance(known, tuple):
        raise malformed("tiler", "must be a layout or an integer", tiler, "LA141")
    return lift(block, lambda base: interleaved(base, as_layout(known), name), name)


@cached
def interleaved(block: CuteLayout, copies: CuteLayout, name: str) -> CuteLayout:
    """Return the blocked or raked product of two layouts."""
    top = max(block.rank, copies.rank)
    # as a tuple of modes, so that a refined mode still counts as one
    own, others = [make_layout(*append(layout, rank=top)) for layout in (block, copies)]
    first, second = product_of(own, others, lambda: f"{name}({block}, {copies})")
    if name == "raked_product":
        first, second = second, first
    return make_layout(*[make_layout(a, b) for a, b in zip(first, second, strict=True)])


def product_of(block: CuteLayout, tiler: CuteLayout, where: Where) -> CuteLayout:
    """Return (A, C o T), or raise."""
    own = block.size
    for extent, stride in block._flat:
        if stride == 0 and extent > 1:
            own //= extent
    places = tiler.cosize
    bound = own * max(1, places)
    if bound >= INT_LIMIT:
        because = f"{places} places of {own} elements are {bound} offsets; the limit is 2^63 - 1"
        raise refusal("LA150", "the copies leave the signed 64-bit range", where, because)
    try:
        rest = complement_up_to(block, bound or 1)
        return make_layout(block, compose_strided(rest, tiler))
    except RepresentabilityError as error:
        raise within(error, where, "LA151", "the starts of the copies are not a CuTe layout") from error
    except (AdmissibilityError, MalformedError) as error:
        raise within(error, where) from error


def make_ordered_layout(shape: IntTuple, order: IntTuple | None = None) -> CuteLayout:
    """Return the compact layout of ``shape`` with its modes in the given order.

    Mathematically: the bijection onto [0, size) in which the mode of least order runs fastest, then the next, and so
    on. A nested mode with a single order number is column-major inside.

    Args:
        shape: Extents.
        order: One number per mode, nested at most as deep as the shape; only comparisons count. Default: from left to
            right.

    Example:
        >>> print(make_ordered_layout((3, 4, 5), (2, 0, 1)), make_ordered_layout((3, (2, 2)), (1, 0)))
        (3,4,5):(20,1,4) (3,(2,2)):(4,(1,2))
    """
    shape = validate(shape, "shape")
    if order is None:
        return CuteLayout(shape)
    order = validate(order, "order")
    where = f"make_ordered_layout({shape_text(shape)}, {shape_text(order)})"
    CuteLayout(shape)  # raises for negative extents and sizes out of range
    modes: list[tuple[int, int, IntTuple]] = []
    _pair_orders(shape, order, modes, where)
    starts: dict[int, int] = {}
    current = 1
    last: tuple[int, int] | None = None
    for number, position, mode in sorted(modes, key=lambda entry: entry[:2]):
        size = product(mode)
        if last is not None and last[0] == number and size > 1:
            because = f"modes {last[1]} and {position} both have the number {number}"
            witness = {"modes": (last[1], position), "number": number}
            raise refusal("LA154", "the order is not strict", where, because, witness)
        starts[position] = current
        current *= size
        last = (number, position) if size > 1 else last
    strides = [step * starts[position] for _, position, mode in modes for step in flatten(compact_col_major(mode))]
    return CuteLayout(shape, unflatten(tuple(strides), shape))


def _pair_orders(shape: IntTuple, order: IntTuple, modes: list[tuple[int, int, IntTuple]], where: str) -> None:
    if isinstance(order, int):
        modes.append((order, len(modes), shape))
        return
    if isinstance(shape, int) or len(shape) != len(order):
        own = "no modes" if isinstance(shape, int) else f"{len(shape)} modes"
        because = f"{shape_text(order)} has {len(order)} numbers; {shape_text(shape)} has {own}"
        raise MalformedError(Diagnostic("LA153", "the order does not fit the shape", (where,), because))
    for extent, entry in zip(shape, order, strict=True):
        _pair_orders(extent, entry, modes, where)


def make_layout_like(layout: Cute) -> CuteLayout:
    """Return the compact layout of the same shape with its modes in the order of the strides of ``layout``.

    Mathematically: leaves in order of |stride|, equal strides from left to right (extent 1 first), each with the
    product of the extents before it as stride; stride-0 leaves keep stride 0 and are skipped. Injective once stride-0
    leaves are dropped.

    Args:
        layout: A layout; swizzles are ignored. Elements.

    Example:
        >>> print(make_layout_like(CuteLayout((2, 3, 4, 5), (0, 42, 1, 0))))
        (2,3,4,5):(0,4,1,0)

    Laws: idempotent; a compact layout is unchanged.
    """
    own = require_cute(layout, "make_layout_like").base
    if own.size == 0:
        return CuteLayout(own.shape)
    strides = [0] * len(own.flat)
    current = 1
    for position in sorted(range(len(strides)), key=lambda place: (abs(own.flat[place][1]), own.flat[place][0] != 1)):
        extent, stride = own.flat[position]
        if stride:
            strides[position] = current
            current *= extent
    return CuteLayout(own.shape, unflatten(tuple(strides), own.shape))


def tile_to_shape(tile: Cute, shape: IntTuple, order: IntTuple | None = None) -> Cute:
    """Return ``tile`` repeated until its modes have the extents of ``shape``.

    Mathematically: the blocked product of the tile with the compact layout of shape / tile, mode by mode, copies in the
    given order, each mode coalesced. If the tile is a bijection onto [0, size(tile)), so is the result onto
    [0, size(shape)): swizzles act on all copies together, which is fine if their periods divide size(shape) and their
    offsets are 0, and raises if the result leaves that range.

    Args:
        tile: A layout as for ``logical_product``, or a swizzle over one. Elements.
        shape: Target extents, at least as many modes as the tile; of a nested mode only the size matters. The tile must
            divide them; CuTe C++ rounds run-time extents up instead.
        order: Order of the copies, one number per mode, as in ``make_ordered_layout``; default from left to right.

    Example:
        >>> print(tile_to_shape(CuteLayout((8, 64), (64, 1)), (128, 128)))
        (128,(64,2)):(64,(1,8192))
    """
    target = validate(shape, "shape")
    own = require_cute(tile, "tile_to_shape", "tile")
    whole = _repeated(own.base, target, order)
    if isinstance(own, CuteLayout):
        return whole
    answer = own.rebase(whole)
    _require_onto(own, answer, f"tile_to_shape({tile}, {shape_text(target)})")
    return answer


def _require_onto(tile: ComposedLayout, answer: ComposedLayout, where: str) -> None:
    """Raise if the tile is onto [0, size(tile)) but its repetition is not onto [0, size(answer)).

    The stack of swizzles is a bijection of the integers, so only the range of the values matters.
    """
    size = answer.size
    if size == 0 or all(offset == 0 and size % swizzle.period == 0 for swizzle, offset in tile.stages):
        return
    if not (_is_compact(tile.base) and tile.value_range() == (0, tile.size - 1)):
        return
    if answer.value_range() == (0, size - 1):
        return
    witness: dict[str, object] = {"size": size}
    if size <= QUICK:
        values = answer.table()
        first = int(np.flatnonzero((values < 0) | (values >= size))[0])
        witness |= {"coordinate": first, "value": int(values[first])}
    periods = ", ".join([str(swizzle.period) for swizzle, _ in tile.stages])
    because = (
        f"the tile is a bijection onto [0, {tile.size}), but its repetition takes values outside [0, {size}); "
        f"this cannot happen if {size} is a multiple of the swizzle's period, {periods}, and the offset is 0"
    )
    raise refusal("LA193", "the swizzle of the tile maps out of the shape", where, because, witness)


def _is_compact(layout: CuteLayout) -> bool:
    """Return whether a layout is a bijection onto [0, size)."""
    current = 1
    for stride, extent in sorted([(stride, extent) for extent, stride in merge(layout.flat)]):
        if stride != current:
            return False
        current *= extent
    return True


def _repeated(tile: CuteLayout, target: IntTuple, order: IntTuple | None) -> CuteLayout:
    where = f"tile_to_shape({tile}, {shape_text(target)})"
    goal = product_each(target)
    if any(extent < 0 for extent in flatten(target)) or tile.rank > rank(target):
        rule = f"must have extents >= 0 and at least the {tile.rank} modes of the tile"
        raise malformed("shape", rule, target, "LA153")
    block = append(tile, rank=len(goal))
    if block.size == 0:
        raise refusal("LA131", "the tile is empty", where, "an empty tile cannot fill a shape")
    sizes = tuple([mode.size for mode in block])
    for position, (extent, size) in enumerate(zip(goal, sizes, strict=True)):
        if extent % size:
            element, copy = extent - extent // size * size, extent // size
            because = (
                f"mode {position}: {extent} is not a multiple of {size}; element {element} of tile {copy} is {extent}, "
                "which falls outside"
            )
            witness = {"mode": position, "element": extent, "extent": extent, "tile": size}
            raise refusal("LA152", "the tile does not divide the shape", where, because, witness)
    counts = ceil_div(goal, sizes)
    order = None if order is None else validate(order, "order")
    if order is not None and not congruent(counts, order):
        because = f"{shape_text(order)} must have one number for each of the {len(goal)} modes"
        raise MalformedError(Diagnostic("LA153", "the order does not fit the shape", (where,), because))
    try:
        tiled = blocked_product(block, make_ordered_layout(counts, order))
    except LayoutError as error:
        raise within(error, where) from error
    modes = make_layout(*[coalesce(mode) for mode in tiled])
    return modes[0] if isinstance(target, int) else modes
