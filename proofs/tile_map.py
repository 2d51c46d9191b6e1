"""A layout of any family as a function of tile coordinates: which of its axes is which tile dimension.

Notation: the tile's dimensions are those of the tensor, outermost first; the function's values are element offsets in
shared memory. The coordinates of a layout are read in this order of rules.

* A CuTe layout with as many modes as the tile has dimensions: mode k is dimension k.
* Named axes ``dim0``, ``dim1``, ... or, of two dimensions, ``row`` and ``col``: by name, in whatever order they stand.
* Outputs ``dim0``, ``dim1``, ... of an input ``offset`` (Triton's shared layouts): the inverse, by name.
* Any other axes, and a CuTe layout of one mode: the flat colexicographic coordinate, as everywhere in the library. The
  first (fastest) axes make up dimension 0, the next ones dimension 1, and so on. Each dimension ends where an axis
  ends, unless there is a single axis.

``axes`` names the axes, outermost dimension first, in place of the first two rules; leaves of a CuTe layout are
``c0``, ``c1``, ...
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import accumulate
from operator import mul
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.bridges.normal import OFFSET, normal, takes_offsets
from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import shown
from layoutalg.ground.layout import Layout
from layoutalg.ground.limits import ARRAY_RANK
from layoutalg.ground.listed import ListedLayout
from layoutalg.notation.written import read_written
from layoutalg.proofs.tensor import row_major
from layoutalg.targets.layouts.padding import PaddedShared

IntArray: TypeAlias = npt.NDArray[np.int64]
CHECK = Checker("LA376", "this is not a shared-memory layout of the tile")
_DIMENSION = re.compile(r"dim(0|[1-9][0-9]?)")
SHARED_LAYOUTS = (Layout, PaddedShared)
"""Types of layouts that can be a tile in shared memory."""


def layout_of(smem: object, tile: tuple[int, ...] | None, element_bytes: int) -> Any:
    """Return the layout that ``smem`` is or writes.

    Args:
        smem: What ``read_written`` takes: a layout; the text of one, in which a swizzle of byte addresses may stand
            before a layout of elements; an array of element offsets; or None for the row-major tile.
        tile: Tile extents; None where ``smem`` knows them.
        element_bytes: Bytes of an element.

    Raises: MalformedError: LA376, and those of ``layoutalg.parse``. AdmissibilityError: LA111.

    Example:
        >>> print(layout_of("Sw<3,4,3,byte> o 0 o (8,64):(64,1)", None, 2))
        Sw<3,3,3> o 0 o (8,64):(64,1)
    """
    if smem is None:
        if tile is None:
            raise CHECK.malformed("smem", "must be a layout where no tile is given", smem)
        return CuteLayout(tile, row_major(tile))
    found = read_written(smem, tile, element_bytes=element_bytes)
    if found.bits is not None and max(1, found.bits // 8) != element_bytes:
        rule = f"must be of elements of {8 * element_bytes} bits, the type that is asked about"
        raise CHECK.malformed("smem", rule, f"{found.bits} bits in {found.text or found.dtype}")
    known = None if isinstance(found.layout, Swizzle) else normal(found.layout)
    layout = found.layout if known is None else known
    if not isinstance(layout, SHARED_LAYOUTS):
        raise CHECK.malformed("smem", "must be a layout or the text of one", smem)
    return layout


def extents_of(layout: Any, axes: Sequence[str] | None = None) -> tuple[int, ...]:
    """Return the extents of the tile that a layout speaks of, outermost first; one mode or axis is one dimension.

    Example:
        >>> from layoutalg.targets.layouts.shared import nvmma_shared
        >>> extents_of(nvmma_shared((8, 64), 128, 16)), extents_of(CuteLayout((8, (4, 16)), (64, (16, 1))))
        ((8, 64), (8, 64))
    """
    if axes is None and isinstance(layout, CuteLayout | ComposedLayout):
        return cute_extents(layout)
    if isinstance(layout, PaddedShared):
        layout = layout.linear
    outputs = layout.out_dims
    if takes_offsets(layout):
        return tuple([outputs[f"dim{place}"] or 0 for place in range(len(outputs))])
    inputs = layout.in_dims
    return tuple([inputs[name] for name in _ordered(inputs, axes)])


def offsets(layout: Any, tile: tuple[int, ...], axes: Sequence[str] | None = None) -> IntArray:
    """Return the element offset of every tile element, indexed outermost dimension first.

    Args:
        layout: What ``layout_of`` returns.
        tile: Tile extents.
        axes: Names of the layout's axes, outermost dimension first; None for the rules of this module.

    Raises: MalformedError: LA376. BudgetError: those of the layout's table.

    Example:
        >>> from layoutalg.f2 import LinearLayout
        >>> shared = LinearLayout.from_bases({"offset": [(0, 1), (1, 1)]}, {"dim0": 2, "dim1": 2})
        >>> offsets(shared, (2, 2)).tolist()
        [[0, 1], [3, 2]]
    """
    if len(tile) > ARRAY_RANK:
        raise CHECK.malformed("tile", f"must have at most {ARRAY_RANK} dimensions", f"{len(tile)} dimensions")
    if isinstance(layout, PaddedShared):
        return layout.addresses()[offsets(layout.linear, tile, axes)]
    check_tile(layout, tile, axes)
    if axes is None and isinstance(layout, CuteLayout | ComposedLayout):
        return np.asarray(layout.table(), dtype=np.int64).reshape(tile, order="F")
    if takes_offsets(layout):
        if axes is not None:
            raise CHECK.malformed("axes", "must be None where the outputs of smem name the dimensions", axes)
        return _inverted(layout, tile)
    inputs = layout.in_dims
    ordered = _ordered(inputs, axes)
    extents = [inputs[name] for name in ordered]
    ends = {1, *accumulate(extents, mul)}
    if sum(extent > 1 for extent in extents) > 1 and not set(accumulate(tile, mul)) <= ends:
        axes_text = ", ".join(f"{name}:{inputs[name]}" for name in ordered)
        hint = "; axes= names them outermost dimension first"
        raise CHECK.malformed("smem", f"must have axes that make up the tile {tile} in order", axes_text, hint)
    values = _values(layout).reshape(list(inputs.values()), order="F")
    return values.transpose([list(inputs).index(name) for name in ordered]).reshape(tile, order="F")


def check_tile(layout: Any, tile: tuple[int, ...], axes: Sequence[str] | None = None) -> None:
    """Refuse a layout that has not the elements, or whose modes are not the dimensions, of a tile.

    Raises: MalformedError: LA376.
    """
    if isinstance(layout, PaddedShared):
        layout = layout.linear
    if layout.size != math.prod(tile) and not takes_offsets(layout):
        rule = f"must have the {shown(math.prod(tile))} elements of the tile {shown(tile)}"
        raise CHECK.malformed("smem", rule, layout.size)
    if axes is None and isinstance(layout, CuteLayout | ComposedLayout):
        check_modes(layout, tile)


def cute_extents(layout: CuteLayout | ComposedLayout) -> tuple[int, ...]:
    """Return the size of each top-level mode."""
    shape = layout.shape
    return tuple([CuteLayout(mode).size for mode in (shape if isinstance(shape, tuple) else (shape,))])


def check_modes(layout: CuteLayout | ComposedLayout, tile: tuple[int, ...]) -> None:
    """Refuse a CuTe layout whose modes are neither the tile's dimensions nor one mode of all its elements."""
    extents = cute_extents(layout)
    if extents != tile and (len(extents) > 1 or math.prod(extents) != math.prod(tile)):
        hint = "; mode k is tile dimension k, outermost first" if sorted(extents) == sorted(tile) else ""
        raise CHECK.malformed("smem", f"must have modes of the tile's extents {tile}, or one mode", extents, hint)


def _ordered(inputs: Mapping[str, int], axes: Sequence[str] | None) -> tuple[str, ...]:
    """The names of the axes, those of dimension 0 first."""
    if axes is not None:
        return CHECK.names(axes, "axes", tuple(inputs), whole=True)
    if set(inputs) == {f"dim{place}" for place in range(len(inputs))}:
        return tuple(sorted(inputs, key=lambda name: int(name[3:])))
    if set(inputs) == {"row", "col"}:
        return "row", "col"
    return tuple(inputs)


def _inverted(layout: Any, tile: tuple[int, ...]) -> IntArray:
    """Return the offset that holds each coordinate."""
    inputs, outputs = layout.in_dims, layout.out_dims
    wide = {name: extent for name, extent in inputs.items() if name != OFFSET and extent != 1}
    if wide:
        raise CHECK.malformed("smem", "must be the layout of one block: of its inputs only offset may have parts", wide)
    if len(outputs) != len(tile):
        raise CHECK.malformed("smem", f"must have the {len(tile)} dimensions of the tile", list(outputs))
    found = columns(layout)
    points = [found[list(outputs).index(f"dim{place}")] for place in range(len(tile))]
    for place, (column, extent) in enumerate(zip(points, tile, strict=True)):
        known = outputs[f"dim{place}"] or int(column.max()) + 1
        if known != extent or int(column.min()) < 0:
            raise CHECK.malformed("smem", f"must have the tile's extents {tile}", known, f" along dim{place}")
    index = np.ravel_multi_index(points, tile)
    held = np.bincount(index, minlength=math.prod(tile))
    for wrong, rule in ((held == 0, "must hold every element"), (held > 1, "must hold every element once")):
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            where = tuple(int(part) for part in np.unravel_index(at, tile))
            held_at = np.flatnonzero(index == at)[:2].tolist()
            raise CHECK.malformed("smem", rule, held_at, f", the offsets of coordinate {where}")
    values = np.empty(math.prod(tile), dtype=np.int64)
    values[index] = np.arange(index.size)
    return values.reshape(tile)


def columns(layout: Any) -> list[IntArray]:
    """Return the values of each output of a layout with named axes, at every flat coordinate."""
    outputs = layout.out_dims
    table = np.asarray(layout.table())
    if table.ndim == 2:
        return list(table.T)
    found = []
    for name, extent in outputs.items():
        if len(outputs) == 1:
            return [table]
        if not extent:
            raise CHECK.malformed("smem", f"must bound its output {name}", extent)
        table, column = np.divmod(table, extent)
        found.append(column)
    return found


def flat_offsets(layout: Any) -> IntArray:
    """Return the offset at every flat coordinate; several outputs are the dimensions of a row-major tile.

    Raises: MalformedError: LA376, where an output has no bound.
    """
    if isinstance(layout, CuteLayout | ComposedLayout | ListedLayout) or len(layout.out_dims) == 1:
        return np.asarray(layout.table(), dtype=np.int64).reshape(-1)
    extents = tuple(layout.out_dims.values())
    if not all(extents):
        raise CHECK.malformed("layout", "must bound its outputs", ", ".join(layout.out_dims))
    return np.asarray(np.ravel_multi_index(tuple(columns(layout)), extents), dtype=np.int64)


def _values(layout: Any) -> IntArray:
    """Return the offset at every flat coordinate: the only output of more than one value."""
    names = list(layout.out_dims)
    moving = [name for name, extent in layout.out_dims.items() if extent != 1]
    if len(moving) > 1:
        raise CHECK.malformed("smem", "must have one output, the offset", moving)
    if moving and _DIMENSION.fullmatch(moving[0]):
        raise CHECK.malformed(
            "smem", "must take coordinates to offsets, or an input offset to coordinates", str(layout)[:80]
        )
    if not names:
        raise CHECK.malformed("smem", "must have an output, the offset", str(layout))
    column = columns(layout)[names.index(moving[0]) if moving else 0]
    if column.dtype == object or (column.size and int(column.min()) < 0):
        raise CHECK.malformed("smem", "must have an offset of at least 0 at every coordinate", int(column.min()))
    return column
