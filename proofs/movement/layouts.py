"""Layouts of movement terms: tables from coordinates to places of memory, or from places of threads to elements.

Notation: elements of a value of shape (s0, s1, ...) are numbered row-major, the last axis fastest. A layout of memory
has the value's shape and an element offset at each coordinate, -1 where the value is 0 and no memory is read. A layout
of registers is indexed by warp, lane and register and contains element numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground.check import Checker, integers
from layoutalg.ground.errors import Diagnostic, LayoutError, MalformedError
from layoutalg.ground.layout import Layout
from layoutalg.notation.written import is_written, read_written
from layoutalg.proofs.register_map import tile_elements
from layoutalg.proofs.tile_map import layout_of, offsets

IntArray: TypeAlias = npt.NDArray[np.int64]
CHECK = Checker("LA995", "invalid movement term")
MOST_ELEMENTS = 1 << 20
"""Elements of one value, and places of one layout."""
MOST_OFFSET = 1 << 40
FILL = -1
"""The offset of an element that no memory has: it is 0."""


@dataclass(frozen=True, slots=True)
class Table:
    """An array of integers that can be a key.

    Args:
        shape: Its extents.
        data: Its numbers, 8 bytes each.

    Example:
        >>> Table.of(np.arange(6).reshape(2, 3)).array().tolist()
        [[0, 1, 2], [3, 4, 5]]
    """

    shape: tuple[int, ...]
    data: bytes

    def __post_init__(self) -> None:
        shape = CHECK.vector(self.shape, "shape", low=1)
        if not isinstance(self.data, bytes) or len(self.data) != 8 * math.prod(shape):
            raise CHECK.malformed("data", f"must be bytes, 8 for each of {math.prod(shape)} numbers", self.data)
        object.__setattr__(self, "shape", shape)

    @classmethod
    def of(cls, array: Any) -> Table:
        """Return the table of an array."""
        held = np.ascontiguousarray(array, dtype=np.int64)
        return cls(tuple(map(int, held.shape)), held.tobytes())

    def array(self) -> IntArray:
        """Return the numbers, read-only."""
        return np.frombuffer(self.data, dtype=np.int64).reshape(self.shape)

    def __repr__(self) -> str:
        return f"Table.of({self.array().tolist()})"

    def to_json(self) -> object:
        """Return the numbers as nested lists."""
        return self.array().tolist()


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the row-major strides of a shape, also of one with extents of 0."""
    found = [1]
    for extent in reversed(shape[1:]):
        found.append(found[-1] * extent)
    return tuple(reversed(found))[: len(shape)]


def strided(shape: Sequence[int], strides: Sequence[int]) -> IntArray:
    """Return the offset at each coordinate."""
    found = np.zeros(shape, dtype=np.int64)
    for axis, stride in enumerate(strides):
        at = [1] * len(shape)
        at[axis] = -1
        found += (np.arange(shape[axis], dtype=np.int64) * stride).reshape(at)
    return found


def affine(table: IntArray) -> tuple[int, tuple[int, ...]] | None:
    """Return offset and strides of a layout of memory; None if it has none.

    Example:
        >>> affine(strided((4, 8), (8, 1)) + 3), affine(np.array([0, 1, 3]))
        ((3, (8, 1)), None)
    """
    origin = (0,) * table.ndim
    first = int(table[origin])
    steps = [0 if extent == 1 else int(table[(*origin[:axis], 1, *origin[axis + 1 :])]) - first
             for axis, extent in enumerate(table.shape)]  # fmt: skip
    if first < 0 or min(steps) < 0 or not np.array_equal(table, first + strided(table.shape, steps)):
        return None
    return first, tuple(steps)


@contextmanager
def located(where: str) -> Iterator[None]:
    """Say of a refused layout which argument of which term it is."""
    try:
        yield
    except LayoutError as error:
        said = error.diagnostic
        raise MalformedError(Diagnostic(CHECK.code, CHECK.what, (where,), said.because or said.what)) from None


def register_layout(layout: object, shape: tuple[int, ...], where: str) -> Table:
    """Return a layout of registers.

    Args:
        layout: A layout from register, lane, warp to the axes of the tensor, or its text; a CuTe layout of threads and
            values to element numbers, first axis fastest; or a table [warp][lane][register] of element numbers, last
            axis fastest.
        shape: The shape of the value.
        where: The argument, for messages.
    """
    size = math.prod(shape)
    if isinstance(layout, Table):
        found = layout.array()
    elif is_written(layout) or isinstance(layout, Layout):
        with located(where):
            value = read_written(layout, shape).layout
            numbers = tile_elements(value, shape)
        found = np.ravel_multi_index(np.unravel_index(numbers, shape, order="F"), shape)
    else:
        read = integers(layout, where)
        if read is None:
            raise CHECK.malformed(where, "must be a layout of registers or a table [warp][lane][register]", layout)
        found = read.astype(np.int64)
    if found.ndim != 3 or not 0 < found.size <= MOST_ELEMENTS:
        rule = f"must have the axes warp, lane, register and at most {MOST_ELEMENTS} places"
        raise CHECK.malformed(where, rule, found.shape)
    if found.min() < 0 or found.max() >= size:
        wrong = found.reshape(-1)[np.flatnonzero((found.reshape(-1) < 0) | (found.reshape(-1) >= size))[0]]
        raise CHECK.malformed(where, f"must have element numbers in [0, {size})", int(wrong))
    missing = np.flatnonzero(np.bincount(found.reshape(-1), minlength=size) == 0)
    if len(missing):
        raise CHECK.malformed(where, f"must hold every element, element {int(missing[0])} too", f"{found.shape} places")
    return Table.of(found)


def memory_layout(layout: object, shape: tuple[int, ...], element_bytes: int, where: str) -> Table:
    """Return a layout of memory that a value is written to: every element has its own offset.

    Args:
        layout: A layout of the tile in element offsets, of any family, its text, a table, or None for row-major.
        shape: The shape of the value.
        element_bytes: Bytes of an element, for texts in bytes.
        where: The argument, for messages.
    """
    if isinstance(layout, Table):
        found = layout.array()
    elif layout is None:
        found = strided(shape, row_major(shape))
    else:
        read = None if is_written(layout) else integers(layout, where)
        with located(where):
            found = offsets(layout_of(layout, shape, element_bytes), shape) if read is None else read.astype(np.int64)
    if found.shape != shape:
        raise CHECK.malformed(where, f"must have the shape {shape}", found.shape)
    if found.min() < 0 or found.max() >= MOST_OFFSET:
        beyond = int(found.min()) if found.min() < 0 else int(found.max())
        raise CHECK.malformed(where, f"must have offsets in [0, {MOST_OFFSET})", beyond)
    ordered = np.sort(found, axis=None)
    twice = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(twice):
        raise CHECK.malformed(where, "must give each element its own offset", f"{int(ordered[twice[0]])} for two")
    return Table.of(found)
