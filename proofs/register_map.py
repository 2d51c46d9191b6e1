"""Enumerate the shared-memory or global address of every register, for layouts of any family.

A register layout maps (register, lane, warp) to tile coordinates, or directly to element offsets; the shared layout
maps tile coordinates to element offsets, a tensor those of the tile at an origin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.cute import ComposedLayout, CuteLayout
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import MalformedError
from layoutalg.ground.layout import Layout
from layoutalg.ground.limits import SMEM_REACH
from layoutalg.ground.listed import ListedLayout
from layoutalg.notation.ttgir import block_tile
from layoutalg.notation.written import read_written
from layoutalg.proofs.tile_map import columns, cute_extents, extents_of, in_order, layout_of, offsets

IntArray: TypeAlias = npt.NDArray[np.int64]
CHECK = Checker("LA713", "invalid access of registers to memory")
LANES = 32
MAX_ADDRESSES = 2**22


def bit_addresses(
    registers: object,
    shared: object,
    element_bits: int,
    tile: Sequence[int] | None = None,
    lanes: Sequence[str] | None = None,
    warps: Sequence[str] | None = None,
    wave: int = LANES,
) -> IntArray:
    """Return the bit address of every register, int64[warp, lane, register]; arguments as in ``layoutalg.banks``.

    Raises: MalformedError: LA713, and those of the shared layout.

    Example:
        >>> bit_addresses("(32,4):(4,1)", "(128):(1)", 32)[0, 1].tolist()
        [128, 160, 192, 224]
    """
    box = None if tile is None else CHECK.vector(tile, "tile")
    if not isinstance(registers, Layout):
        known = _extents(shared, element_bits) if box is None and isinstance(registers, str) else None
        registers = read_written(registers, box if isinstance(registers, str) else None, known=known).layout
    values, extents = read_registers(registers, lanes, warps, wave)
    if shared is None:
        if len(values) > 1 or extents is not None:
            raise CHECK.malformed("shared", "must be a layout because registers map to tile coordinates", shared)
        elements = values[0]
    else:
        elements = _placed(values, extents, shared, element_bits, box)
    if elements.size and not 0 <= int(elements.min()) <= int(elements.max()) < SMEM_REACH:
        worst = int(elements.min()) if int(elements.min()) < 0 else int(elements.max())
        raise CHECK.malformed("registers", f"must have element offsets in [0, {SMEM_REACH})", worst)
    return elements * element_bits


def tensor_coordinates(
    registers: object,
    shape: tuple[int, ...],
    tile: Sequence[int] | None = None,
    lanes: Sequence[str] | None = None,
    warps: Sequence[str] | None = None,
    wave: int = LANES,
) -> tuple[list[IntArray], tuple[int, ...]]:
    """Return the tile coordinates in every register, int64[warp, lane, register] per dimension, and the tile extents.

    Args:
        registers: As for ``bit_addresses``, like the arguments after ``shape``.
        shape: Shape of the tensor; also the tile where neither ``tile`` nor the registers have extents, except that a
            blocked attribute has the tile of one block.
        tile: Tile extents.
        lanes: Names of the lane axes.
        warps: Names of the warp axes.
        wave: Lanes of a warp or wave.

    Raises: MalformedError: LA713.

    Example:
        >>> found, tile = tensor_coordinates("(32,2):(2,1)", (8, 8))
        >>> [part[0, 5].tolist() for part in found], tile
        ([[2, 3], [1, 1]], (8, 8))
    """
    box = None if tile is None else CHECK.vector(tile, "tile", len(shape), 1)
    if not isinstance(registers, Layout):
        own = block_tile(registers) if box is None and isinstance(registers, str) else None
        given = read_written(registers, box if isinstance(registers, str) else None, known=own or shape)
        registers, box = given.layout, given.shape if box is None and len(given.shape or ()) == len(shape) else box
    values, extents = read_registers(registers, lanes, warps, wave)
    if box is None:
        box = extents if extents is not None and len(extents) == len(shape) else shape
    if len(values) == 1 and len(shape) > 1:
        _inside(values[0], math.prod(box), "coordinates")
        values = [np.asarray(part, dtype=np.int64) for part in np.unravel_index(values[0], box, order="F")]
    if len(values) != len(shape):
        raise CHECK.malformed("registers", f"must have {len(shape)} dimensions like the tensor", len(values))
    for place, (part, extent) in enumerate(zip(values, box, strict=True)):
        _inside(part, extent, f"coordinates along dimension {place}")
    return values, box


def _extents(shared: object, element_bits: int) -> tuple[int, ...] | None:
    """Return the tile extents of a shared layout; None if it has none of its own."""
    if shared is None:
        return None
    try:
        return extents_of(layout_of(shared, None, max(1, element_bits // 8)))
    except MalformedError:  # no extents of its own
        return None


def read_registers(
    registers: object,
    lanes: Sequence[str] | None = None,
    warps: Sequence[str] | None = None,
    wave: int = LANES,
) -> tuple[list[IntArray], tuple[int, ...] | None]:
    """Return each output of a register layout as int64[warp, lane, register], and the extents of the tile.

    Returns:
        One array per tile dimension, or one of flat coordinates; the extents if the layout has them.
    """
    layout = read_written(registers).layout
    if not isinstance(layout, Layout):
        raise CHECK.malformed("registers", "must be a layout or the text of one", registers)
    if layout.size > MAX_ADDRESSES:
        raise CHECK.malformed("registers", f"must have at most {MAX_ADDRESSES} values", layout.size)
    if not isinstance(layout, CuteLayout | ComposedLayout | ListedLayout):
        return _by_axes(layout, lanes, warps, wave)
    if lanes is not None or warps is not None:
        raise CHECK.malformed("lanes", "must be None for a thread-value layout", warps if lanes is None else lanes)
    return [_thread_value(layout, wave)], None


def tile_elements(
    registers: object, tile: tuple[int, ...], lanes: Sequence[str] | None = None, warps: Sequence[str] | None = None
) -> IntArray:
    """Return the tile element in every register: int64[warp, lane, register], flat, dimension 0 fastest.

    Example:
        >>> tile_elements("(32,2):(1,32)", (8, 8))[0, 3].tolist()
        [3, 35]
    """
    values, _ = read_registers(registers, lanes, warps)
    if len(values) == 1:
        _inside(values[0], math.prod(tile), "coordinates")
        return values[0]
    if len(values) != len(tile):
        raise CHECK.malformed("registers", f"must have the tile's {len(tile)} dimensions", len(values))
    for place, (part, extent) in enumerate(zip(values, tile, strict=True)):
        _inside(part, extent, f"coordinates along dimension {place}")
    return np.asarray(np.ravel_multi_index(tuple(values), tile, order="F"), dtype=np.int64)


def _thread_value(layout: Any, wave: int) -> IntArray:
    """Return a (thread, value) layout, or one of threads alone, as int64[warp, lane, value]."""
    extents = layout.extents if isinstance(layout, ListedLayout) else cute_extents(layout)
    extents = (*extents, 1) if len(extents) == 1 else extents  # threads with one value each
    if len(extents) != 2 or extents[0] % wave:
        rule = f"must be (thread, value) with a multiple of {wave} threads, or have axes register, lane and warp"
        raise CHECK.malformed("registers", rule, extents)
    table = np.asarray(layout.table(), dtype=np.int64).reshape(extents, order="F")
    return table.reshape(extents[0] // wave, wave, extents[1])


def _by_axes(
    layout: Any, lanes: Sequence[str] | None, warps: Sequence[str] | None, wave: int
) -> tuple[list[IntArray], tuple[int, ...] | None]:
    """Return each output as int64[warp, lane, register], and the tile extents; None for a single unnamed output."""
    inputs = layout.in_dims
    if lanes is None and warps is None and "thread" in inputs and "lane" not in inputs:
        lane_axes: tuple[str, ...] = ("thread",)
        warp_axes: tuple[str, ...] = ()
    else:
        lane_axes = CHECK.names(("lane",) if lanes is None else lanes, "lanes", tuple(inputs))
        plain = tuple(name for name in ("warp",) if name in inputs)
        warp_axes = CHECK.names(plain if warps is None else warps, "warps", tuple(inputs))
    blocks = inputs.get("block", 1)
    if blocks != 1 and "block" not in (*lane_axes, *warp_axes):
        raise CHECK.malformed("registers", "must be for a single block", f"{blocks} blocks")
    rest = tuple(name for name in inputs if name not in (*lane_axes, *warp_axes))
    if set(rest) & {*lane_axes} or set(lane_axes) & set(warp_axes):
        raise CHECK.malformed("lanes", "must not share axes with warps", lanes)
    threads = math.prod(inputs[name] for name in lane_axes)
    if threads != wave and not (lane_axes == ("thread",) and threads % wave == 0):
        raise CHECK.malformed("registers", f"must have {wave} lanes", threads)
    order = [list(inputs).index(name) for name in (*lane_axes, *warp_axes, *rest)]
    shape = (wave, threads // wave * math.prod(inputs[name] for name in warp_axes), -1)

    def arranged(column: IntArray) -> IntArray:
        box = np.asarray(column, dtype=np.int64).reshape(list(inputs.values()), order="F")
        return box.transpose(order).reshape(shape, order="F").transpose(1, 0, 2)

    outputs = {name: extent for name, extent in layout.out_dims.items() if (name, extent) != ("block", 1)}
    found = dict(zip(layout.out_dims, columns(layout), strict=True))
    if len(outputs) == 1:
        (name,) = outputs
        extent = outputs[name] if name == "dim0" else None
        return [arranged(found[name])], None if extent is None else (extent,)
    names = in_order(outputs)
    parts = [arranged(found[name]) for name in names]
    return parts, tuple(outputs[name] or int(part.max()) + 1 for name, part in zip(names, parts, strict=True))


def _placed(
    values: list[IntArray],
    extents: tuple[int, ...] | None,
    shared: object,
    element_bits: int,
    tile: tuple[int, ...] | None,
) -> IntArray:
    """Return the element offsets of tile coordinates in a shared layout."""
    box = extents if tile is None else tile
    layout = layout_of(shared, box, max(1, element_bits // 8))
    if box is None:
        box = extents_of(layout)
    if len(values) > 1 and len(box) != len(values):
        raise CHECK.malformed("shared", f"must have {len(values)} dimensions like the registers' tile", box)
    held = offsets(layout, box)
    if len(values) == 1 and len(box) > 1:
        (flat,) = values
        _inside(flat, held.size, "coordinates")
        return held.reshape(-1, order="F")[flat]
    for place, (part, extent) in enumerate(zip(values, box, strict=True)):
        _inside(part, extent, f"coordinates along dimension {place}")
    return held[tuple(values)]


def _inside(part: IntArray, extent: int, what: str) -> None:
    wrong = np.argwhere((part < 0) | (part >= extent))
    if len(wrong):
        warp, lane, register = (int(x) for x in wrong[0])
        hint = f" in register {register} of lane {lane}, warp {warp}"
        raise CHECK.malformed("registers", f"must have {what} in [0, {extent})", int(part[warp, lane, register]), hint)
