"""Evaluate a layout of any family on tile coordinates: which axis is which tile dimension.

Tile dimensions are those of the tensor, outermost first; values are element offsets in shared memory. The first rule
that applies assigns the axes:

* A CuTe layout with as many modes as the tile has dimensions: mode k is dimension k.
* Axes named ``dim0``, ``dim1``, ... or ``row`` and ``col``: by name, in any order.
* An input ``offset`` with outputs ``dim0``, ``dim1``, ... (Triton's shared layouts): the inverse, by name.
* Any other axes, and a CuTe layout of one mode: the flat colexicographic coordinate, as everywhere in the library. The
  first (fastest) axes make up dimension 0, the next ones dimension 1, and so on. Each dimension ends where an axis
  ends, unless there is a single axis.

``axes`` names the axes, outermost dimension first, and overrides the first two rules; the leaves of a CuTe layout are
``c0``, ``c1``, ...
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate
from operator import mul
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.f2 import LinearLayout
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import shown
from layoutalg.ground.layout import OFFSET, Layout, takes_offsets
from layoutalg.ground.limits import ARRAY_RANK
from layoutalg.ground.listed import ListedLayout
from layoutalg.notation.written import read_written
from layoutalg.proofs.tensor import row_major
from layoutalg.targets.layouts.padding import PaddedShared

IntArray: TypeAlias = npt.NDArray[np.int64]
CHECK = Checker("LA376", "invalid shared-memory layout for the tile")
_DIMENSION = re.compile(r"dim(0|[1-9][0-9]?)")
SHARED_LAYOUTS = (Layout, PaddedShared)
"""Layout types accepted for a tile in shared memory."""
_OF_OFFSETS = (CuteLayout, ComposedLayout, LinearLayout, ListedLayout, PaddedShared)


def layout_of(smem: object, tile: tuple[int, ...] | None, element_bytes: int) -> Any:
    """Return ``smem`` as a layout.

    Args:
        smem: Anything ``read_written`` accepts: a layout; its text, in which a swizzle of byte addresses may precede a
            layout of elements; an array of element offsets; or None for the row-major tile.
        tile: Tile extents; None if ``smem`` has them.
        element_bytes: Bytes of an element.

    Raises: MalformedError: LA376, and those of ``layoutalg.parse``. AdmissibilityError: LA111.

    Example:
        >>> print(layout_of("Sw<3,4,3,byte> o 0 o (8,64):(64,1)", None, 2))
        Sw<3,3,3> o 0 o (8,64):(64,1)
    """
    if smem is None:
        if tile is None:
            raise CHECK.malformed("smem", "must be a layout if no tile is given", smem)
        return CuteLayout(tile, row_major(tile))
    found = read_written(smem, tile, element_bytes=element_bytes)
    if found.bits is not None and max(1, found.bits // 8) != element_bytes:
        rule = f"must have elements of {8 * element_bytes} bits like the dtype"
        raise CHECK.malformed("smem", rule, f"{found.bits} bits in {found.text or found.dtype}")
    layout = found.layout
    if not isinstance(layout, (*_OF_OFFSETS, Swizzle)):
        from layoutalg.bridges.normal import normal

        layout = normal(layout) or layout
    if not isinstance(layout, SHARED_LAYOUTS):
        raise CHECK.malformed("smem", "must be a layout or the text of one", smem)
    return layout


def extents_of(layout: Any, axes: Sequence[str] | None = None) -> tuple[int, ...]:
    """Return the tile extents of a layout, outermost first; each mode or axis is one dimension.

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
        layout: A result of ``layout_of``.
        tile: Tile extents.
        axes: Names of the layout's axes, outermost dimension first; None for the module's rules.

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
            raise CHECK.malformed("axes", "must be None because the outputs of smem name the dimensions", axes)
        return _inverted(layout, tile)
    inputs = layout.in_dims
    ordered = _ordered(inputs, axes)
    extents = [inputs[name] for name in ordered]
    ends = {1, *accumulate(extents, mul)}
    if sum(extent > 1 for extent in extents) > 1 and not set(accumulate(tile, mul)) <= ends:
        axes_text = ", ".join(f"{name}:{inputs[name]}" for name in ordered)
        hint = "; pass axes=..., outermost dimension first"
        raise CHECK.malformed("smem", f"must have axes that make up the tile {tile} in order", axes_text, hint)
    values = _values(layout).reshape(list(inputs.values()), order="F")
    return values.transpose([list(inputs).index(name) for name in ordered]).reshape(tile, order="F")


def check_tile(layout: Any, tile: tuple[int, ...], axes: Sequence[str] | None = None) -> None:
    """Refuse a layout whose size or modes do not match a tile."""
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
    """Refuse a CuTe layout with neither the tile's dimensions as modes nor one mode of all its elements."""
    extents = cute_extents(layout)
    if extents != tile and (len(extents) > 1 or math.prod(extents) != math.prod(tile)):
        hint = "; mode k is tile dimension k, outermost first" if sorted(extents) == sorted(tile) else ""
        raise CHECK.malformed("smem", f"must have modes with the tile's extents {tile}, or one mode", extents, hint)


def in_order(names: Collection[str]) -> tuple[str, ...]:
    """Return the names of axes, that of dimension 0 first: by name if they are numbered or row and col."""
    if set(names) == {f"dim{place}" for place in range(len(names))}:
        return tuple(sorted(names, key=lambda name: int(name[3:])))
    return ("row", "col") if set(names) == {"row", "col"} else tuple(names)


def _ordered(inputs: Mapping[str, int], axes: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of the axes, those of dimension 0 first."""
    return in_order(inputs) if axes is None else CHECK.names(axes, "axes", tuple(inputs), whole=True)


def _inverted(layout: Any, tile: tuple[int, ...]) -> IntArray:
    """Return the offset of each coordinate."""
    inputs, outputs = layout.in_dims, layout.out_dims
    wide = {name: extent for name, extent in inputs.items() if name != OFFSET and extent != 1}
    if wide:
        raise CHECK.malformed("smem", "must be for one block: only the input offset may exceed extent 1", wide)
    if len(outputs) != len(tile):
        raise CHECK.malformed("smem", f"must have {len(tile)} dimensions like the tile", list(outputs))
    found = columns(layout)
    points = [found[list(outputs).index(f"dim{place}")] for place in range(len(tile))]
    for place, (column, extent) in enumerate(zip(points, tile, strict=True)):
        known = outputs[f"dim{place}"] or int(column.max()) + 1
        if known != extent or int(column.min()) < 0:
            raise CHECK.malformed("smem", f"must have the tile's extents {tile}", known, f" along dim{place}")
    index = np.ravel_multi_index(points, tile)
    held = np.bincount(index, minlength=math.prod(tile))
    for wrong, rule in ((held == 0, "must contain every element"), (held > 1, "must contain every element once")):
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
    """Return the offset at every flat coordinate; several outputs are the coordinates of a row-major tile.

    Raises: MalformedError: LA376, if an output is unbounded.
    """
    if isinstance(layout, CuteLayout | ComposedLayout | ListedLayout) or len(layout.out_dims) == 1:
        return np.asarray(layout.table(), dtype=np.int64).reshape(-1)
    extents = tuple(layout.out_dims.values())
    if not all(extents):
        raise CHECK.malformed("layout", "must bound its outputs", ", ".join(layout.out_dims))
    return np.asarray(np.ravel_multi_index(tuple(columns(layout)), extents), dtype=np.int64)


def _values(layout: Any) -> IntArray:
    """Return the offset at every flat coordinate: the only output that varies."""
    names = list(layout.out_dims)
    moving = [name for name, extent in layout.out_dims.items() if extent != 1]
    if len(moving) > 1:
        raise CHECK.malformed("smem", "must have a single output, the offset", moving)
    if moving and _DIMENSION.fullmatch(moving[0]):
        raise CHECK.malformed(
            "smem", "must map coordinates to offsets, or an input offset to coordinates", str(layout)[:80]
        )
    if not names:
        raise CHECK.malformed("smem", "must have an output, the offset", str(layout))
    column = columns(layout)[names.index(moving[0]) if moving else 0]
    if column.dtype == object or (column.size and int(column.min()) < 0):
        raise CHECK.malformed("smem", "must have offsets >= 0", int(column.min()))
    return column
