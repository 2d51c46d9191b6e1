"""Where an element of a tile is: the registers that hold it, or its offset in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from layoutalg.ask.facts import CHECK, Fact, said
from layoutalg.cute import CuteLayout
from layoutalg.ground.layout import Layout
from layoutalg.ground.limits import POINTS
from layoutalg.notation.tiled import PrintedTiling
from layoutalg.proofs.tile_map import columns, extents_of, in_order, layout_of, offsets

LISTED = 8
"""Places that are written out; data has all of them."""
PARTS = ("block", "warp", "lane", "thread", "register", "value")


def place_facts(layout: Any, at: Sequence[int], bits: int, shape: Sequence[int] | None) -> Iterator[Fact]:
    """Yield where an element of a tile is.

    Args:
        layout: Registers (to tile coordinates), or a tile in memory.
        at: Coordinates of the element, outermost dimension first.
        bits: Bits of an element.
        shape: Extents of the tile, if the layout has none.

    Example:
        >>> from layoutalg.targets.layouts.nvidia import mma_operand
        >>> next(place_facts(mma_operand("A", (16, 16), (1, 1), 2), (9, 3), 16, None)).lines
        ('(9, 3): thread 5 (warp 0, lane 5), register 3',)
        >>> next(place_facts(CuteLayout((8, 4), (5, 1)), (3, 2), 16, None)).lines
        ('(3, 2): element 17, byte 34 of 16-bit elements',)
    """
    if isinstance(layout, Layout) and {"register", "lane", "thread"} & set(layout.in_dims):
        outputs = {name: extent for name, extent in layout.out_dims.items() if (name, extent) != ("block", 1)}
        point = _point(at, [outputs[name] or POINTS for name in in_order(outputs)])
        values = dict(zip(layout.out_dims, columns(layout), strict=True))
        equal = np.logical_and.reduce(
            [values[name] == value for name, value in zip(in_order(outputs), point, strict=True)]
        )
        yield _held(point, np.flatnonzero(equal), layout.in_dims)
        return
    memory = layout_of(layout, None if shape is None else tuple(shape), max(1, bits // 8))
    extents = extents_of(memory) if shape is None else tuple(shape)
    point = _point(at, extents)
    offset = int(offsets(memory, extents)[point])
    where = f"element {offset}, bit {offset * bits}" if bits % 8 else f"element {offset}, byte {offset * bits // 8}"
    yield said(
        "at",
        f"{point}: {where} of {bits}-bit elements",
        {"coordinate": list(point), "offset": offset, "bit": offset * bits},
    )


def tiling_places(tiling: PrintedTiling, at: Sequence[int]) -> Iterator[Fact]:
    """Yield the threads and values of a tiled copy, or of each operand of a tiled matrix instruction, at coordinates.

    Args:
        tiling: As CuTe prints it.
        at: Coordinates in the tile: M and N of a copy and of C, M and K of A, N and K of B.
    """
    tile = tiling.tile
    if tile is None:
        raise CHECK.malformed("at", "must be None for an atom without a tile", tuple(at))
    sides = {"A": (0, 2), "B": (1, 2), "C": (0, 1)}
    boxes = {name: [tile[dim] for dim in sides.get(name, range(len(tile)))] for name in tiling.layouts}
    inside = [name for name, box in boxes.items() if len(at) == len(box) and all(map(int.__lt__, at, box))]
    for name in inside or list(boxes)[-1:]:
        yield from thread_value_facts(name, tiling.layouts[name], at, boxes[name])


def thread_value_facts(name: str, layout: CuteLayout, at: Sequence[int], tile: Sequence[int]) -> Iterator[Fact]:
    """Yield the threads and values that hold an element of a tile, of a layout to flat coordinates.

    Args:
        name: Of the layout.
        layout: From (thread, value) to the flat coordinate, first dimension fastest.
        at: Coordinates of the element.
        tile: Extents of the tile.

    Example:
        >>> next(thread_value_facts("C", CuteLayout((4, 2), (2, 1)), (1, 2), (2, 4))).lines
        ('(1, 2): thread 2, value 1',)
    """
    point = _point(at, tile)
    flat = int(np.ravel_multi_index(point, tuple(tile), order="F"))
    axes = {"thread": layout[0].size, "value": layout[1].size}
    yield _held(point, np.flatnonzero(np.asarray(layout.table()) == flat), axes, f"at {name}")


def _point(at: Sequence[int], extents: Sequence[int]) -> tuple[int, ...]:
    if len(at) != len(extents) or any(not 0 <= part < extent for part, extent in zip(at, extents, strict=True)):
        raise CHECK.malformed("at", f"must be coordinates inside {tuple(extents)}", tuple(at))
    return tuple(at)


def _held(point: tuple[int, ...], found: Any, axes: Mapping[str, int], name: str = "at") -> Fact:
    """Return the places of flat indices on axes."""
    order = sorted(axes, key=_rank)
    order = [axis for axis in order if (axis, axes[axis]) != ("block", 1)]
    indices = dict(zip(axes, np.unravel_index(found, tuple(axes.values()), order="F"), strict=True))
    rows = sorted(zip(*[indices[axis].tolist() for axis in order], strict=True))
    places = [dict(zip(order, row, strict=True)) for row in rows]
    for place in places:
        if "lane" in place:
            place["thread"] = place.get("warp", 0) * axes["lane"] + place["lane"]
    lines = [_text(place) for place in places[:LISTED]] + [f"{len(rows) - LISTED} more"] * (len(rows) > LISTED)
    said_first = lines.pop() if len(lines) == 1 else f"{len(rows)} copies" if rows else "in no register"
    return said(name, [f"{point}: {said_first}", *lines], {"coordinate": list(point), "places": places})


def _rank(axis: str) -> int:
    return PARTS.index(axis) if axis in PARTS else -1


def _text(place: Mapping[str, int]) -> str:
    """Return a place in words: what is in brackets is what the thread is made of."""
    inside = ", ".join(f"{name} {place[name]}" for name in ("warp", "lane") if "lane" in place and name in place)
    parts = [
        f"thread {value} ({inside})" if name == "thread" and inside else f"{name} {value}"
        for name, value in sorted(place.items(), key=lambda item: _rank(item[0]))
        if not (inside and name in ("warp", "lane"))
    ]
    return ", ".join(parts)
