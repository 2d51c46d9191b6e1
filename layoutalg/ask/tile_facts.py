"""Explain a layout as a tile in shared memory: the instructions that can use it, and its bank turns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from layoutalg.ask.carriers import carriers
from layoutalg.ask.consumers import Served, along
from layoutalg.ask.fact import Fact, said
from layoutalg.ask.fragments import fragments
from layoutalg.ground.errors import BudgetError, LayoutError
from layoutalg.proofs.dtypes import dtype_name, element_type
from layoutalg.proofs.smem import SharedTile, shared_tile
from layoutalg.proofs.tensor import Tensor, row_major
from layoutalg.proofs.tile_map import SHARED_LAYOUTS, extents_of, offsets
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.registry import lookup

ASSUMED_TILES = 16
MAX_MATRIX = 2**16
"""Largest tile, in elements, whose bank turns are counted."""


def tile_facts(layout: Any, dtype: str, target: str, tile: tuple[int, ...] | None = None) -> Iterator[Fact]:
    """Yield what the hardware can do with a layout as a tile.

    Args:
        layout: A layout of any family.
        dtype: Element type.
        target: Architecture.
        tile: Tile extents, outermost first; None for those of the layout.

    Example:
        >>> from layoutalg.cute import CuteLayout
        >>> [fact.name for fact in tile_facts(CuteLayout((64, 64), (64, 1)), "bf16", "sm_90a")][:5]
        ['as a tile', 'assumed', 'TMA', 'wgmma A', 'wgmma B']
        >>> [fact.name for fact in tile_facts(CuteLayout((64, 64), (64, 1)), "bf16", "gfx950")]
        ['as a tile', 'ds_read', 'ds_write', 'LDS fill', 'not there']
    """
    if not isinstance(layout, SHARED_LAYOUTS):
        return
    kind = element_type(dtype)
    yield from fragments(layout, kind.name, target)
    try:
        carried = dtype_name(kind.name)
    except LayoutError as error:
        yield said("as a tile", f"no: {error.diagnostic.because}")
        return
    try:
        shared = shared_tile(layout, tile, hardware.element_bytes(carried))
    except LayoutError as error:
        word = "not decided" if isinstance(error, BudgetError) else "no"
        yield said("as a tile", f"{word}: {error.diagnostic.because or error.diagnostic.what}")
        extents = _extents(layout, tile)
        if extents is not None:
            yield from carriers(layout, extents, kind.name, target)
            yield from _bank_facts(layout, carried, target, extents)
        return
    digits = ", ".join(" ".join(f"{extent}:{step}" for extent, step in dim) or "1:0" for dim in shared.modes)
    about = {"extents": list(shared.tile), "dtype": carried, "swizzle": shared.swizzle}
    about["digits"] = [[list(digit) for digit in dim] for dim in shared.modes]
    text = f"{list(shared.tile)} of {kind.name}, digits ({digits}), swizzle {shared.swizzle}"
    yield said("as a tile", text, about)
    tensor = None
    if lookup(target).has_tensor_maps:
        try:
            tensor = _assumed(shared, carried)
            yield _told(tensor)
        except LayoutError as error:
            yield said("assumed", f"no tensor: {error.diagnostic.because or error.diagnostic.what}")
    yield from carriers(layout, shared.tile, kind.name, target, tensor)
    yield from _bank_facts(layout, carried, target, shared.tile)


def _told(tensor: Tensor) -> Fact:
    text = f"a tensor of {ASSUMED_TILES} tiles per dimension, contiguous where the tile is: {tensor}"
    return said("assumed", text, {"shape": list(tensor.shape), "stride": list(tensor.strides), "dtype": tensor.dtype})


def _extents(layout: Any, tile: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """The extents of a layout, if it is defined everywhere in them; otherwise None."""
    try:
        extents = extents_of(layout) if tile is None else tile
        offsets(layout, extents)
    except LayoutError:
        return None
    return extents


def _assumed(shared: SharedTile, dtype: str) -> Tensor:
    """The dense tensor of ``ASSUMED_TILES`` tiles per dimension whose contiguous dimension is the tile's."""
    tile = shared.tile
    inner = next((dim for dim, digits in enumerate(shared.modes) if any(stride == 1 for _, stride in digits)), -1)
    order = sorted(range(len(tile)), key=lambda dim: dim == inner % len(tile))  # outermost first
    dense = row_major(tuple([ASSUMED_TILES * tile[dim] for dim in order]))
    stride = tuple([dense[order.index(dim)] for dim in range(len(tile))])
    return Tensor(tuple(ASSUMED_TILES * extent for extent in tile), stride, dtype)


def _bank_facts(layout: Any, dtype: str, target: str, extents: tuple[int, ...]) -> Iterator[Fact]:
    """Bank turns of warps along rows and along columns."""
    try:
        if len(extents) != 2 or not 0 < int(np.prod(extents)) <= MAX_MATRIX or not lookup(target).measured:
            return
        table = offsets(layout, (extents[0], extents[1])) * hardware.element_bytes(dtype)
    except LayoutError:
        return
    instruction = f"ld.shared.b{8 * hardware.element_bytes(dtype)}"
    for name, dimension in (("rows", 1), ("columns", 0)):
        yield _turns(name, instruction, target, table, dtype, dimension)


def _turns(name: str, instruction: str, target: str, table: Any, dtype: str, dimension: int) -> Fact:
    try:
        served = along(instruction, target, table, hardware.element_bytes(dtype), dimension)
    except LayoutError as error:
        served = Served(0, 0, error.diagnostic.because or error.diagnostic.what, holds=False)
    if not served.holds:
        return said(name, f"no: {served.text}", {"instruction": instruction, "because": served.text})
    value = {"instruction": instruction, "turns": served.turns, "ideal": served.ideal}
    return said(name, f"{instruction}: {served.text}", value)
