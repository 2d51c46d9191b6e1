"""Dense layouts of a tile as orders of its digits under a swizzle: the search space of joint layouts.

Notation: the extents of a tile are R = 2^r R' and C = 2^c C' with R', C' odd. A digit is a pair (dimension, bit), bits
being those of the coordinate modulo 2^r or 2^c. The low bits of a byte address are those within an element.

An order keeps 16 bytes along one dimension together (the chunk), followed by all other digits in any order, then the
odd factors; a swizzle of the target is applied last. For 2^k elements per chunk there are 2 (r + c - k)! orders per
swizzle; each is a bijection onto consecutive addresses.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.ground.check import Checker
from layoutalg.ground.digits import Flat, merge
from layoutalg.targets.nvidia.swizzles import CHUNK_BYTES

IntArray: TypeAlias = npt.NDArray[np.int64]
Digit: TypeAlias = tuple[int, int]
Xor: TypeAlias = tuple[int, int, int]
CHUNK_BITS = CHUNK_BYTES.bit_length() - 1
"""Byte-address bits of a chunk."""
LINE_BITS = 7
"""Byte-address bits of a row of all banks."""


def xors(xor: Xor) -> dict[int, int]:
    """Return which byte-address bit is XORed into which: target bit -> source bit.

    Example:
        >>> xors((2, 4, 3))
        {4: 7, 5: 8}
    """
    bits, base, shift = xor
    return {bit: bit + shift for bit in range(base, base + bits)}


def spreading(row_bytes: int, element_bytes: int) -> Iterator[Xor]:
    """Yield the XORs of 4-, 8- or 16-byte chunks that spread consecutive power-of-two rows over the banks."""
    row = row_bytes.bit_length() - 1
    for base in (4, 3, 2) if row_bytes == 1 << row else ():
        if 1 << base >= element_bytes and row > base:
            yield min(LINE_BITS, row) - base, base, max(LINE_BITS, row) - base


def matrix_of(check: Checker, tile: Sequence[int]) -> tuple[int, int]:
    """Return the two dimensions of a tile whose other extents are 1."""
    wide = [place for place, extent in enumerate(tile) if extent > 1]
    if len(tile) < 2 or len(wide) > 2 or min(tile) < 1:
        raise check.malformed("tile", "must be a matrix: two dimensions, others of extent 1", tile)
    spare = [place for place in range(len(tile) - 1, -1, -1) if place not in wide]
    first, second = sorted((*wide, *spare[: 2 - len(wide)]))
    return first, second


def embedded(
    modes: Sequence[Flat], places: Sequence[int], rank: int, xor: Xor | None, element_bytes: int
) -> CuteLayout | ComposedLayout:
    """Return the layout of a tile of any rank with these digits at its dimensions ``places``, under a swizzle."""
    shape: list[int | tuple[int, ...]] = [1] * rank
    stride: list[int | tuple[int, ...]] = [0] * rank
    for place, digits in zip(places, modes, strict=True):
        if len(digits) == 1:
            ((shape[place], stride[place]),) = digits
        elif digits:
            shape[place], stride[place] = tuple(n for n, _ in digits), tuple(d for _, d in digits)
    found = CuteLayout(tuple(shape), tuple(stride))
    if xor is None or not xor[0]:
        return found
    return ComposedLayout(Swizzle(*xor, "byte").recast_elements(element_bytes), 0, found)


@dataclass(frozen=True)
class Box:
    """A tile: rows, columns, and bytes of an element."""

    extents: tuple[int, int]
    element_bytes: int

    @cached_property
    def bits(self) -> tuple[int, int]:
        """r and c: the number of digits of each dimension."""
        rows, columns = ((extent & -extent).bit_length() - 1 for extent in self.extents)
        return rows, columns

    @cached_property
    def low(self) -> int:
        """Byte-address bits within an element."""
        return self.element_bytes.bit_length() - 1

    @cached_property
    def chunk(self) -> int:
        """Digits of a chunk."""
        return CHUNK_BITS - self.low

    @property
    def bytes(self) -> int:
        """Bytes of the tile."""
        return math.prod(self.extents) * self.element_bytes

    def digits(self, inner: int) -> tuple[Digit, ...]:
        """Return the digits outside the chunk, those of the inner dimension first."""
        first = tuple((inner, bit) for bit in range(self.chunk, self.bits[inner]))
        return first + tuple((1 - inner, bit) for bit in range(self.bits[1 - inner]))

    def has(self, inner: int) -> bool:
        """Return whether a dimension divides into whole chunks."""
        return self.bits[inner] >= self.chunk

    def code(self, rows: IntArray, columns: IntArray) -> IntArray:
        """Return the coordinate as one number: row digits, column digits, then the odd factors."""
        r, c = self.bits
        low = rows % (1 << r) | (columns % (1 << c)) << r
        return low | ((rows >> r) + (self.extents[0] >> r) * (columns >> c)) << (r + c)

    def index(self, digit: Digit) -> int:
        """Return a digit's bit in ``code``."""
        return digit[1] + (self.bits[0] if digit[0] else 0)


@dataclass(frozen=True)
class Order:
    """A layout of the space."""

    box: Box  # the tile
    inner: int  # the dimension of the chunks
    digits: tuple[Digit, ...]  # all digits outside the chunk, fastest first
    swizzle: str  # its name
    xor: Xor  # (bits, base, shift) on byte addresses

    def __str__(self) -> str:
        named = "".join(f" {'rc'[dim]}{bit}" for dim, bit in self.digits)
        return f"chunks along {'rows' if self.inner else 'columns'}, then{named}; {self.swizzle}"

    @cached_property
    def places(self) -> dict[Digit, int]:
        """The byte-address bit of every digit before the swizzle."""
        chunk = [(self.inner, bit) for bit in range(self.box.chunk)]
        return {digit: place + self.box.low for place, digit in enumerate([*chunk, *self.digits])}

    def layout(self, places: Sequence[int] = (0, 1), rank: int = 2) -> CuteLayout | ComposedLayout:
        """Return the layout, tile coordinates outermost first to element offsets, embedded in a tile of any rank."""
        reach = 1 << sum(self.box.bits)
        modes: list[Flat] = [(), ()]
        for dim in (self.inner, 1 - self.inner):
            held = [(2, 1 << self.places[dim, bit] - self.box.low) for bit in range(self.box.bits[dim])]
            odd = self.box.extents[dim] >> self.box.bits[dim]
            if odd > 1:
                held.append((odd, reach))
                reach *= odd
            modes[dim] = merge(tuple(held))
        return embedded(modes, places, rank, self.xor, self.box.element_bytes)

    @cached_property
    def table(self) -> IntArray:
        """The byte address of every element, int64[rows, columns]."""
        return np.asarray(self.layout().table(), dtype=np.int64).reshape(self.box.extents, order="F") * (
            self.box.element_bytes
        )


def padded(box: Box, inner: int, pad_bytes: int, places: Sequence[int] = (0, 1), rank: int = 2) -> CuteLayout:
    """Return the tile with ``pad_bytes`` between its rows (columns if the inner dimension is 0)."""
    pitch = box.extents[inner] + pad_bytes // box.element_bytes
    shape, stride = [1] * rank, [0] * rank
    for dim in (0, 1):
        shape[places[dim]], stride[places[dim]] = box.extents[dim], 1 if dim == inner else pitch
    return CuteLayout(tuple(shape), tuple(stride))
