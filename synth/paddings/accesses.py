"""Accesses to tiles of any extents, by name or by register layout, as the cells that each instruction touches.

Named accesses cover every cell of the tile once. Lanes move vectors of v elements of the last dimension along lines:
rows, columns, diagonals. A line with at least as many vectors as there are lanes gets its own instructions, the last
one with inactive lanes; shorter lines follow each other within an instruction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.cute import CuteLayout
from layoutalg.f2 import LinearLayout
from layoutalg.ground.check import integers
from layoutalg.ground.limits import ARRAY_RANK
from layoutalg.ground.recognize import Departure, linear
from layoutalg.proofs.padding import CHECK, CellAccess
from layoutalg.proofs.register_map import bit_addresses
from layoutalg.proofs.swizzling import TileAccess, instruction_name, widths
from layoutalg.synth.named_accesses import (
    PATTERNS,
    Named,
    countable,
    lacking,
    name_of,
    named,
    read_block,
    require,
)
from layoutalg.targets.banks import bank_model
from layoutalg.targets.nvidia.accesses import FORMS
from layoutalg.targets.registry import lookup

IntArray: TypeAlias = npt.NDArray[np.int64]
_ROW_BITS = 128


@dataclass(frozen=True, slots=True)
class Asked:
    """An access and the indices of its targets."""

    access: CellAccess
    targets: tuple[int, ...]


def read_accesses(
    given: Sequence[object], shape: tuple[int, ...], element_bits: int, targets: Sequence[str]
) -> tuple[Asked, ...]:
    """Return accesses as cells; named ones once for each lane count among the targets."""
    found: list[Asked] = []
    for each in given:
        said = name_of(each, "accesses")
        if said is None:
            head, kind = _of_kind(each)
            found.append(_registers((head, kind) if kind else head, shape, element_bits, targets))
            continue
        countable(said, "accesses")
        able = tuple(place for place, target in enumerate(targets) if lacking(said, target) is None)
        if not able:
            require(said, targets, "accesses")
        usable = [targets[place] for place in able]
        if said.is_operand or _by_lanes(said, shape, element_bits, usable):
            layout = named(said, _powers(said.name, shape), element_bits, usable[0])
            taken = _registers((layout, said.direction), shape, element_bits, usable, said.bits)
            found.append(Asked(replace(taken.access, name=str(said)), able))
        else:
            found += _named(said, shape, element_bits, targets, able)
    return tuple(found)


def tile_access(access: CellAccess, shape: tuple[int, ...], element_bits: int) -> TileAccess | str | None:
    """Return an access as a register layout over F2, or its name if it moves matrices; None if neither is possible.

    Example:
        >>> rows = CellAccess("rows", "load", 32, (tuple(range(0, 32)), tuple(range(32, 64))))
        >>> print(tile_access(rows, (8, 8), 32).layout)
        F2[register=(4,0), lane=(0,1)(0,2)(0,4)(1,0)(2,0) -> dim0:8, dim1:8]
    """
    if "matrix" in access.kind:
        return access.kind
    cells = access.table
    held = cells.T[:, :, None] + np.arange(access.bits // element_bits)
    sizes = *held.shape[:0:-1], held.shape[0]
    if (cells < 0).any() or any(size & (size - 1) for size in (*sizes, *shape)):
        return None
    points = np.unravel_index(held.reshape(-1), shape)
    found = linear(np.asarray(np.ravel_multi_index(points, shape, order="F"), dtype=np.int64))
    if isinstance(found, Departure):
        return None
    axes = (("register", (sizes[0] * sizes[1]).bit_length() - 1), ("lane", sizes[2].bit_length() - 1))
    dims = tuple((f"dim{place}", extent.bit_length() - 1) for place, extent in enumerate(shape))
    return TileAccess(LinearLayout(axes, dims, *found), access.kind)


def _powers(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the extents of a tile for a fragment, which must be powers of two."""
    if any(extent & (extent - 1) for extent in shape):
        raise CHECK.malformed("accesses", f"must be of a tile with power-of-two extents for {name}", shape)
    return shape


def _of_kind(given: object) -> tuple[object, str]:
    """Split the text of a register layout followed by its kind; anything else has no kind."""
    head, _, tail = given.rpartition(":") if isinstance(given, str) else ("", "", "")
    return (head.strip(), tail.strip()) if tail.strip() in ("load", "store") else (given, "")


def _by_lanes(said: Named, shape: tuple[int, ...], element_bits: int, targets: Sequence[str]) -> bool:
    """Whether lanes do not move one vector each: reads of LDS as operand A, rows of 16 bytes in narrower vectors."""
    if len(shape) != 2 or any(extent & (extent - 1) for extent in shape):
        return False
    if said.name == "rows" and not said.each and shape[1] * element_bits >= _ROW_BITS:
        known = _common_widths(said.direction, element_bits, targets)
        return bool(known) and known[-1] < _ROW_BITS and len({lookup(target).lanes for target in targets}) == 1
    return read_block(said, shape, element_bits, targets[0]) is not None


def _named(
    said: Named, shape: tuple[int, ...], element_bits: int, targets: Sequence[str], able: tuple[int, ...]
) -> Iterator[Asked]:
    name, text = said.name, str(said)
    if said.is_matrix:
        yield Asked(CellAccess(text, said.move, _ROW_BITS, _matrix_rows(said, shape, element_bits)), able)
        return
    kind, along = said.direction, name.partition("along ")[2]
    last = len(shape) - 1
    dimension = int(along) if along else last - 1 if name in PATTERNS[1:] else last
    if not 0 <= dimension < len(shape):
        raise CHECK.malformed("accesses", f"must run along a dimension of {shape}", text)
    wanted, wide = said.bits // element_bits or said.each or None, name == "rows" or said.is_instruction
    size = _vector(text, wanted, wide, kind, shape, element_bits, targets)
    numbers_by_lanes: dict[int, list[int]] = {}
    for number in able:
        lanes = bank_model(targets[number], instruction_name(targets[number], kind, size * element_bits)).lanes
        numbers_by_lanes.setdefault(lanes, []).append(number)
    lines = _order(name, dimension, shape, size)
    held = 128 // element_bits
    if name == "columns" and not said.each and size > 1:
        text = f"{text}:{size}"
    elif name == "columns" and not said.each and shape[dimension] % held == 0:  # 16 bytes of a column for each lane
        lines = (
            lines.reshape(-1, shape[dimension] // held, held).transpose(2, 0, 1).reshape(-1, shape[dimension] // held)
        )
    for lanes, places in numbers_by_lanes.items():
        parts = lines.reshape(1, -1) if lines.shape[1] < lanes else lines
        cells = tuple(
            (*line[at : at + lanes], *[None] * (at + lanes - len(line)))
            for line in parts.tolist()
            for at in range(0, len(line), lanes)
        )
        yield Asked(CellAccess(text, kind, size * element_bits, cells), tuple(places))


def _vector(
    text: str,
    wanted: int | None,
    wide: bool,
    kind: str,
    shape: tuple[int, ...],
    element_bits: int,
    targets: Sequence[str],
) -> int:
    """Return the elements per lane: as requested, otherwise the most for rows and the fewest for the rest."""
    sizes = [bits // element_bits for bits in _common_widths(kind, element_bits, targets)]
    fits = [size for size in sizes if shape[-1] % size == 0 and wanted in (None, size)]
    if not fits:
        rule = f"must have vectors that divide {shape[-1]}; banks are known for vectors of {sizes or 'no'} elements"
        raise CHECK.malformed("accesses", rule, f"{text} of {', '.join(targets)}")
    return fits[-1] if wide else fits[0]


def _common_widths(kind: str, element_bits: int, targets: Sequence[str]) -> list[int]:
    """Return the bits per lane of the accesses whose banks are known on every target, the narrowest first."""
    return sorted(set.intersection(*(set(widths(target, kind, element_bits)) for target in targets)))


def _order(name: str, dimension: int, shape: tuple[int, ...], size: int) -> IntArray:
    """Return the first cells of the vectors, int64[line, place]; lanes step along lines."""
    if len(shape) > ARRAY_RANK:
        raise CHECK.malformed("tile", f"must have at most {ARRAY_RANK} dimensions", f"{len(shape)} dimensions")
    starts = np.arange(prod(shape), dtype=np.int64)[::size].reshape(*shape[:-1], shape[-1] // size)
    if not name.endswith("diagonals"):
        moved = np.moveaxis(starts, dimension, -1)
        return moved.reshape(-1, moved.shape[-1])
    if len(shape) < 2:
        raise CHECK.malformed("accesses", "must have two dimensions for diagonals", shape)
    rows, columns = starts.shape[-2:]
    row = np.arange(rows)[None, :]
    step = np.arange(columns)[:, None]
    column = (step + row if name == "diagonals" else step - row) % columns
    return starts[..., row, column].reshape(-1, rows)


def _matrix_rows(said: Named, shape: tuple[int, ...], element_bits: int) -> tuple[tuple[int | None, ...], ...]:
    """Return the rows of all matrices of 8 rows of 16 bytes, with as many per instruction as it has if that divides."""
    held = _ROW_BITS // element_bits
    if (
        element_bits > 32
        or len(shape) < 2
        or shape[-2] % 8
        or shape[-1] % held
        or (said.name.endswith("trans") and element_bits != 16)
    ):
        rule = f"must divide into matrices of 8 rows of {held} elements, 16-bit ones if transposed"
        raise CHECK.malformed("accesses", rule, f"{said.name} of {shape}, {element_bits} bits")
    starts = np.arange(prod(shape), dtype=np.int64)[::held].reshape(-1, 8, shape[-1] // held)
    rows = starts.transpose(0, 2, 1).reshape(-1, 8)
    most = FORMS[said.name].addresses // 8
    many = next(many for many in (4, 2, 1) if many <= most and len(rows) % many == 0)
    return tuple(tuple(lanes) for lanes in rows.reshape(-1, 8 * many).tolist())


def _registers(
    given: object, shape: tuple[int, ...], element_bits: int, targets: Sequence[str], width: int = 0
) -> Asked:
    """Return a register layout as the widest vectors that its runs along the last dimension allow, or of ``width``."""
    layout, kind = given, "load"
    if isinstance(given, TileAccess):
        layout, kind = given.layout, given.kind
    elif isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], str):
        layout, kind = given
    if kind not in ("load", "store"):
        raise CHECK.malformed("accesses", "must be loads or stores; request matrices by name", kind)
    if isinstance(layout, np.ndarray | list):
        cells = _table(layout, prod(shape))
    else:
        strides = tuple(prod(shape[place + 1 :]) for place in range(len(shape)))
        wave = max(lookup(target).lanes for target in targets)
        cells = bit_addresses(layout, CuteLayout(shape, strides), 8, shape, wave=wave) // 8
    for target in targets:
        if lookup(target).vendor == "nvidia" and cells.shape[1] != 32:
            raise CHECK.malformed("accesses", f"must have 32 lanes for {target}", cells.shape[1])
    for bits in [each for each in _common_widths(kind, element_bits, targets)[::-1] if width in (0, each)]:
        starts = _runs(cells, bits // element_bits, shape[-1])
        if starts is None:
            continue
        for target in targets:
            lanes_of = bank_model(target, instruction_name(target, kind, bits)).lanes
            if lanes_of != cells.shape[1]:
                raise CHECK.malformed("accesses", f"must have {lanes_of} lanes for {target}", cells.shape[1])
        listed = tuple(tuple(None if cell < 0 else cell for cell in lanes) for lanes in starts.tolist())
        return Asked(CellAccess("registers", kind, bits, listed), tuple(range(len(targets))))
    rule = f"must fit a {kind} of {', '.join(targets)} whose banks are known"
    raise CHECK.malformed("accesses", rule, f"{cells.shape[2]} registers of {element_bits} bits")


def is_table(given: object) -> bool:
    """Whether nested lists are one table of cells [lane, register], not several accesses.

    Example:
        >>> is_table([[0, 1], [2, 3]]), is_table([[[0, 1], [2, 3]]]), is_table(["rows"])
        (True, False, False)
    """
    rows = given if isinstance(given, list) else []
    return bool(rows) and all(isinstance(row, list) and all(type(cell) is int for cell in row) for row in rows)


def _table(given: npt.NDArray[np.int64] | list[Any], size: int) -> IntArray:
    """Return an array or nested lists of cells as int64[warp, lane, register]; -1 is an inactive lane."""
    found = integers(given, "accesses")
    table = found[None] if found is not None and found.ndim == 2 else found
    if table is None or table.ndim != 3 or not table.size or table.min() < -1 or table.max() >= size:
        rule = f"must be integers [warp, lane, register] or [lane, register] in [-1, {size})"
        raise CHECK.malformed("accesses", rule, given if found is None else f"{found.dtype} of shape {found.shape}")
    return table.astype(np.int64)


def _runs(cells: IntArray, size: int, extent: int) -> IntArray | None:
    """Return the first cells of runs of ``size`` elements of one row, int64[instruction, lane]; None if not all fit."""
    _, kept = np.unique(cells.reshape(-1, cells.shape[2]), axis=1, return_index=True)
    columns = [np.ascontiguousarray(cells[:, :, register]) for register in np.sort(kept)]
    place = {column.tobytes() for column in columns}
    starts = []
    for column in columns:
        idle = column < 0
        if ((column % extent % size != 0) & ~idle).any():
            continue
        if ((column % extent + size > extent) & ~idle).any():
            return None
        if any(np.where(idle, column, column + step).tobytes() not in place for step in range(1, size)):
            return None
        starts.append(column)
    if len(starts) * size != len(columns):
        return None
    found = np.concatenate(starts)
    return found[(found >= 0).any(axis=1)]
