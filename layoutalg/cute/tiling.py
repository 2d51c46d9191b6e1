"""Compact layouts in a given mode order, and tiles repeated to a shape.

References: CuTe ``make_ordered_layout``, ``make_layout_like``, ``tile_to_shape``.
"""

from __future__ import annotations

import numpy as np

from layoutalg.cute.algebra import coalesce, make_layout
from layoutalg.cute.composed import ComposedLayout, Cute, bottom
from layoutalg.cute.conventions import STRICT, Convention, by_convention
from layoutalg.cute.coords import QUICK
from layoutalg.cute.inttuple import (
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
from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.operands import composed, refusal, within
from layoutalg.cute.product import blocked_product
from layoutalg.cute.reshape import append
from layoutalg.ground.digits import merge
from layoutalg.ground.errors import Diagnostic, LayoutError, MalformedError


def make_ordered_layout(shape: IntTuple, order: IntTuple | None = None) -> CuteLayout:
    """Return the compact layout of ``shape`` with its modes in the given order.

    Mathematically: the bijection onto [0, size) in which the mode of least order runs fastest, then the next, and so
    on. A nested mode with a single order number is column-major inside.

    Args:
        shape: Extents.
        order: One number per mode, nested at most as deep as the shape; only comparisons count. Default: from left to
            right.

    Raises: MalformedError: LA153. AdmissibilityError: LA154.

    Example:
        >>> print(make_ordered_layout((3, 4, 5), (2, 0, 1)))
        (3,4,5):(20,1,4)
        >>> print(make_ordered_layout((3, (2, 2)), (1, 0)))
        (3,(2,2)):(4,(1,2))
    """
    shape = validate(shape, "shape")
    if order is None:
        return CuteLayout(shape)
    order = validate(order, "order")
    where = f"make_ordered_layout({shape_text(shape)}, {shape_text(order)})"
    CuteLayout(shape)  # raises for negative extents and sizes out of range
    modes: list[tuple[int, int, IntTuple]] = []
    _pair(shape, order, modes, where)
    starts: dict[int, int] = {}
    current = 1
    last: tuple[int, int] | None = None
    for rank_number, position, mode in sorted(modes, key=lambda entry: entry[:2]):
        size = product(mode)
        if last is not None and last[0] == rank_number and size > 1:
            raise refusal(
                "LA154",
                "the order is not strict",
                where,
                f"modes {last[1]} and {position} both have the number {rank_number}",
                {"modes": (last[1], position), "number": rank_number},
            )
        starts[position] = current
        current *= size
        last = (rank_number, position) if size > 1 else last
    strides: list[int] = []
    for _, position, mode in modes:
        strides += [step * starts[position] for step in flatten(compact_col_major(mode))]
    return CuteLayout(shape, unflatten(tuple(strides), shape))


def _pair(shape: IntTuple, order: IntTuple, modes: list[tuple[int, int, IntTuple]], where: str) -> None:
    if isinstance(order, int):
        modes.append((order, len(modes), shape))
        return
    if isinstance(shape, int) or len(shape) != len(order):
        because = f"{shape_text(order)} has {len(order)} numbers; {shape_text(shape)} has " + (
            "no modes" if isinstance(shape, int) else f"{len(shape)} modes"
        )
        raise MalformedError(Diagnostic("LA153", "the order does not fit the shape", (where,), because))
    for extent, entry in zip(shape, order, strict=True):
        _pair(extent, entry, modes, where)


def make_layout_like(layout: Cute) -> CuteLayout:
    """Return the compact layout of the same shape with its modes in the order of the strides of ``layout``.

    Mathematically: leaves in order of |stride|, equal strides from left to right (extent 1 first), each with the
    product of the extents before it as stride; stride-0 leaves keep stride 0 and are skipped. Injective once stride-0
    leaves are dropped.

    Args:
        layout: A layout; swizzles are ignored. Elements.

    Raises: MalformedError: LA192.

    Example:
        >>> print(make_layout_like(CuteLayout((2, 3, 4, 5), (0, 42, 1, 0))))
        (2,3,4,5):(0,4,1,0)

    Laws: idempotent; a compact layout is unchanged.
    """
    layout = bottom(composed(layout, "make_layout_like"))
    strides = [0] * len(layout.flat)
    current = 1
    ordered = sorted(range(len(strides)), key=lambda place: (abs(layout.flat[place][1]), layout.flat[place][0] != 1))
    for position in ordered:
        extent, stride = layout.flat[position]
        if stride:
            strides[position] = current
            current *= extent
    if layout.size == 0:
        return CuteLayout(layout.shape)
    return CuteLayout(layout.shape, unflatten(tuple(strides), layout.shape))


def tile_to_shape(
    tile: Cute, shape: IntTuple, order: IntTuple | None = None, *, convention: Convention = STRICT
) -> Cute:
    """Return ``tile`` repeated until its modes have the extents of ``shape``.

    Mathematically: the blocked product of the tile with the compact layout of shape / tile, mode by mode, copies in the
    given order, each mode coalesced. If the tile is a bijection onto [0, size(tile)), so is the result onto
    [0, size(shape)): swizzles act on all copies together, which is fine if their periods divide size(shape) and their
    offsets are 0, and raises if the result leaves that range.

    Args:
        tile: A layout as for ``logical_product``, or a swizzle over one. Elements.
        shape: Target extents, at least as many modes as the tile; of a nested mode only the size matters.
        order: Order of the copies, one number per mode, as in ``make_ordered_layout``; default from left to right.
        convention: ``"cute_cpp"`` rounds up an extent that the tile does not divide, as CuTe C++ does for run-time
            extents and the CuTe DSL always does, and does not check swizzled tiles.

    Raises:
        MalformedError: LA153, LA144, LA192. AdmissibilityError: LA152, LA193, LA154, LA131 to LA134. BudgetError:
        LA114.

    Example:
        >>> print(tile_to_shape(CuteLayout((8, 64), (64, 1)), (128, 128)))
        (128,(64,2)):(64,(1,8192))
        >>> print(tile_to_shape(CuteLayout((8, 64), (64, 1)), (100, 64), convention="cute_cpp"))
        (104,64):(64,1)
    """
    if convention is not STRICT:
        return by_convention(convention, tile_to_shape, tile, shape, order)
    target = validate(shape, "shape")
    own = composed(tile, "tile_to_shape", "tile")
    whole = tiled_to(bottom(own), target, order, whole_tiles=True)
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
    if not (_compact(tile.base) and tile.value_range() == (0, tile.size - 1)) or answer.value_range() == (0, size - 1):
        return
    witness: dict[str, object] = {"size": size}
    if size <= QUICK:
        values = answer.table()
        first = int(np.flatnonzero((values < 0) | (values >= size))[0])
        witness |= {"coordinate": first, "value": int(values[first])}
    periods = ", ".join([str(swizzle.period) for swizzle, _ in tile.stages])
    raise refusal(
        "LA193",
        "the swizzle of the tile maps out of the shape",
        where,
        f"the tile is a bijection onto [0, {tile.size}), but its repetition takes values outside [0, {size}); "
        f"this cannot happen if {size} is a multiple of the swizzle's period, {periods}, and the offset is 0",
        witness,
    )


def _compact(layout: CuteLayout) -> bool:
    """Return whether a layout is a bijection onto [0, size)."""
    current = 1
    for stride, extent in sorted([(stride, extent) for extent, stride in merge(layout.flat)]):
        if stride != current:
            return False
        current *= extent
    return True


def tiled_to(tile: CuteLayout, target: IntTuple, order: IntTuple | None, whole_tiles: bool) -> CuteLayout:
    """Repeat a tile to a shape; extents that it does not divide are rounded up, or raise with ``whole_tiles``."""
    where = f"tile_to_shape({tile}, {shape_text(target)})"
    goal = product_each(target)
    if any(extent < 0 for extent in flatten(target)) or tile.rank > rank(target):
        raise malformed(
            "shape", f"must have extents >= 0 and at least the {tile.rank} modes of the tile", target, "LA153"
        )
    block = append(tile, rank=len(goal))
    if block.size == 0:
        raise refusal("LA131", "the tile is empty", where, "an empty tile cannot fill a shape")
    sizes = tuple([mode.size for mode in block])
    for position, (extent, size) in enumerate(zip(goal, sizes, strict=True)):
        if whole_tiles and extent % size:
            raise refusal(
                "LA152",
                "the tile does not divide the shape",
                where,
                f"mode {position}: {extent} is not a multiple of {size}; element {extent - extent // size * size} of "
                f"tile {extent // size} is {extent}, which falls outside",
                {"mode": position, "element": extent, "extent": extent, "tile": size},
            )
    counts = ceil_div(goal, sizes)
    order = None if order is None else validate(order, "order")
    if order is not None and not congruent(counts, order):
        order_error = f"{shape_text(order)} must have one number for each of the {len(goal)} modes"
        raise MalformedError(
            Diagnostic(code="LA153", what="the order does not fit the shape", where=(where,), because=order_error)
        )
    try:
        tiled = blocked_product(block, make_ordered_layout(counts, order))
    except LayoutError as error:
        raise within(error, where) from error
    modes = make_layout(*[coalesce(mode) for mode in tiled])
    return modes[0] if isinstance(target, int) else modes
