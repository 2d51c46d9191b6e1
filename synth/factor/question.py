"""The layout to factor: the offset of every place, and the thread that owns it.

Notation: a place is a flat coordinate of the layout, first axis fastest. Axes named ``register``, ``lane`` and ``warp``
identify a place; ``roles`` names those of other layouts. The tile of such a layout has one dimension, and tile
coordinate t belongs to place t. A tile layout keeps its dimensions, and its elements are dealt to threads in row-major
order: one 16-byte chunk per lane, over the lanes, then the warps, then again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.bridges.cute import recognize
from layoutalg.cute import ComposedLayout, CuteLayout
from layoutalg.f2 import LinearLayout, flatten_outs, transpose_outs
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import LayoutError
from layoutalg.ground.layout import takes_offsets
from layoutalg.ground.listed import ListedLayout
from layoutalg.proofs.dtypes import ElementType, stated_type
from layoutalg.proofs.tile_map import extents_of, flat_offsets, in_order, layout_of, offsets
from layoutalg.targets.nvidia.swizzles import CHUNK_BYTES

IntArray: TypeAlias = npt.NDArray[np.int64]
CHECK = Checker("LA880", "invalid argument to factorise()")
ROLES = ("register", "lane", "warp")
WARP_LANES = 32
MOST = 1 << 16


@dataclass(frozen=True, slots=True)
class Question:
    """A layout with its places."""

    layout: Any = field(hash=False)  # the layout as parsed
    dtype: ElementType  # element type
    axes: tuple[tuple[str, int], ...]  # (name, extent) of the layout's axes, fastest first
    tile: tuple[tuple[str, int], ...]  # (name, extent) of the carried layout's axes
    order: tuple[str, ...]  # the axes of the tile, outermost dimension first
    offsets: IntArray = field(hash=False)  # the element offset at every place
    owner: IntArray = field(hash=False)  # register, lane and warp of every place, one row each
    threaded: bool  # whether the axes identify registers, lanes and warps

    @property
    def size(self) -> int:
        """Number of places."""
        return len(self.offsets)

    @property
    def counts(self) -> tuple[int, int, int]:
        """Registers per lane, lanes per warp, warps."""
        registers, lanes, warps = (int(part) + 1 for part in self.owner.max(axis=1))
        return registers, lanes, warps

    @property
    def chunk(self) -> int:
        """Elements per 16 bytes."""
        return max(1, CHUNK_BYTES * 8 // self.dtype.bits)


def read(layout: object, dtype: object, warps: int, roles: Sequence[str] | None, lanes: int = WARP_LANES) -> Question:
    """Return the question; arguments as for ``factorise``, plus the lanes of a warp."""
    CHECK.integer(warps, "warps", 1, 33)
    kind = stated_type(dtype, layout, check=CHECK)
    if kind.bits not in (8, 16, 32, 64):
        raise CHECK.malformed("dtype", "must have 8, 16, 32 or 64 bits", kind.name)
    found = layout_of(layout, None, max(1, kind.bits // 8))
    if isinstance(found, ListedLayout):
        found = _with_formula(found)
    if isinstance(found, LinearLayout) and len(found.out_dims) > 1 and not takes_offsets(found):
        found = flatten_outs(transpose_outs(found, in_order(tuple(found.out_dims))[::-1]), "offset")  # row-major
    modes = _axes(found)
    named = tuple(name for name, _ in modes)
    if roles is not None:
        named = CHECK.texts(roles, "roles", (*ROLES, "thread"), len(modes))
    size = math.prod(extent for _, extent in modes)
    if not 0 < size <= MOST:
        raise CHECK.malformed("layout", f"must have 1 to {MOST} places", size)
    if set(named) & {*ROLES, "thread"}:
        return _threads(found, kind, modes, named, size, lanes)
    return _tile(found, kind, modes, warps, lanes)


def _with_formula(layout: ListedLayout) -> Any:
    """Recognize a table as a layout of the same tile; return it unchanged if that fails."""
    try:
        found = recognize(layout.table(), layout.extents)
    except LayoutError:
        return layout
    return (
        found if isinstance(found, CuteLayout | ComposedLayout) and len(_axes(found)) == len(layout.extents) else layout
    )


def _axes(layout: Any) -> tuple[tuple[str, int], ...]:
    if isinstance(layout, CuteLayout | ComposedLayout | ListedLayout) or not hasattr(layout, "in_dims"):
        return tuple((f"dim{place}", extent) for place, extent in enumerate(extents_of(layout)))
    inputs = dict(layout.in_dims)
    if "offset" in inputs and len(inputs) == 1:
        return tuple((f"dim{place}", extent) for place, extent in enumerate(extents_of(layout)))
    return tuple(inputs.items())


def _threads(
    layout: Any, kind: ElementType, modes: tuple[tuple[str, int], ...], named: tuple[str, ...], size: int, lanes: int
) -> Question:
    places = np.arange(size, dtype=np.int64)
    owner = np.zeros((3, size), dtype=np.int64)
    scale = [1, 1, 1]
    for name, (axis, extent) in zip(named, modes, strict=True):
        digit, places = places % extent, places // extent
        parts: tuple[tuple[int, IntArray, int], ...]
        if name == "thread":
            if extent > lanes and extent % lanes:
                raise CHECK.malformed("layout", f"must have a multiple of {lanes} threads", extent)
            parts = (
                (1, digit % lanes, min(extent, lanes)),
                (2, digit // lanes, -(-extent // lanes)),
            )
        elif name in ROLES:
            parts = ((ROLES.index(name), digit, extent),)
        elif extent == 1:
            continue
        else:
            raise CHECK.malformed("layout", f"must have the axes {', '.join(ROLES)}; others need extent 1", axis)
        for role, value, width in parts:
            owner[role] += scale[role] * value
            scale[role] *= width
    if scale[1] > lanes:
        raise CHECK.malformed("layout", f"must have at most {lanes} lanes", scale[1])
    return Question(layout, kind, modes, (("tile", size),), ("tile",), flat_offsets(layout), owner, True)


def _tile(layout: Any, kind: ElementType, modes: tuple[tuple[str, int], ...], warps: int, lanes: int) -> Question:
    names = [name for name, _ in modes]
    order = in_order(names)
    extents = dict(modes)
    shape = tuple(extents[name] for name in order)
    axes = [order.index(name) for name in names]
    table = offsets(layout, shape).transpose(axes).reshape(-1, order="F")
    rows = np.arange(len(table), dtype=np.int64).reshape(shape).transpose(axes).reshape(-1, order="F")
    return Question(layout, kind, modes, modes, order, table, _dealt(rows, kind, warps, lanes), False)


def _dealt(rows: IntArray, kind: ElementType, warps: int, lanes: int) -> IntArray:
    """Register, lane and warp of row-major positions."""
    size = len(rows)
    if size % warps:
        raise CHECK.malformed("warps", "must divide the number of tile elements", warps)
    lanes = math.gcd(size // warps, lanes)
    vector = math.gcd(size // warps // lanes, max(1, CHUNK_BYTES * 8 // kind.bits))
    low, rest = rows % vector, rows // vector
    lane, rest = rest % lanes, rest // lanes
    return np.stack([low + vector * (rest // warps), lane, rest % warps])
