"""Enumerate the shared-memory layouts of a tile worth trying: orders, splits into boxes, swizzles, paddings.

Main statements: rows are contiguous along one of the two dimensions, whole or cut into blocks of at least 16 bytes;
blocks are packed densely in either order; then comes each swizzle of the target, or row padding. If threads fill the
tile, XORs that spread chunks of 4, 8 or 16 bytes over all banks are tried too. Equal functions are one candidate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from layoutalg.cute import ComposedLayout, CuteLayout
from layoutalg.ground.digits import Flat, merge
from layoutalg.synth.solving.space import Xor, embedded, spreading
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.nvidia.swizzles import CHUNK_BYTES, XORS

PAD_BYTES = (4, 8, 16, 32, 64)
BLOCKS = (8, 64, 128, 256)
"""Row counts of partial blocks."""
SWIZZLES: Mapping[str, Xor | None] = {name: xor if xor[0] else None for name, xor in XORS.items()}
"""(bits, base, shift) on byte addresses of the swizzles that are one XOR."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A layout of the tile.

    Args:
        modes: ``(extent, element stride)`` digits of each matrix dimension, fastest first.
        swizzle: Its name.
        xor: (bits, base, shift) of the swizzle on byte addresses, or None.
        inner: The contiguous dimension of the matrix.
        block: Rows and columns of a dense block, as (across, along).
        pad_bytes: Bytes between rows.
    """

    modes: tuple[Flat, ...]
    swizzle: str
    xor: Xor | None
    inner: int
    block: tuple[int, int]
    pad_bytes: int = 0

    def __str__(self) -> str:
        order = "rows" if self.inner else "columns"
        behind = f"{self.swizzle} swizzle" if self.swizzle != "NONE" else "no swizzle"
        padded = f", {self.pad_bytes} bytes of padding" if self.pad_bytes else ""
        return f"{order} contiguous, {behind}, blocks of {self.block[0]} x {self.block[1]}{padded}"

    def layout(self, element_bytes: int, places: tuple[int, ...], rank: int) -> CuteLayout | ComposedLayout:
        """Return the layout on the whole tile, whose other dimensions have extent 1."""
        return embedded(self.modes, places, rank, self.xor, element_bytes)


def candidates(matrix: tuple[int, int], element_bytes: int, target: str, copied: bool = True) -> Iterator[Candidate]:
    """Yield each candidate once, dense ones first.

    Args:
        matrix: Extents of the tile's two dimensions.
        element_bytes: Bytes of an element.
        target: Architecture, for its swizzles.
        copied: Whether TMA moves the tile; it supports only its own swizzles.

    Example:
        >>> print(next(candidates((64, 64), 2, "sm_90a")))
        rows contiguous, 128B swizzle, blocks of 64 x 64
    """
    seen: set[tuple[tuple[Flat, ...], Xor | None]] = set()
    for found in _all(matrix, element_bytes, target, copied):
        key = found.modes, found.xor
        if key not in seen:
            seen.add(key)
            yield found


def _all(matrix: tuple[int, int], size: int, target: str, copied: bool) -> Iterator[Candidate]:
    known = target if target in hardware.ARCHITECTURES else "sm_90"  # without TMA any swizzle is possible
    names = [name for name in reversed(tuple(SWIZZLES)) if hardware.swizzle_supported(name, known)]
    for pad in (0, *PAD_BYTES):
        for inner in (1, 0):
            along, across = matrix[inner], matrix[1 - inner]
            for name in names if not pad else ["NONE"]:
                for block in _blocks(across, along, size, name) if not pad else [(across, along)]:
                    if pad % size == 0:
                        yield from _laid(matrix, inner, block, pad // size, (name, SWIZZLES[name]), size)
                span = hardware.swizzle_span_bytes(name)
                if not pad and name != "NONE" and along * size < span and span % size == 0:
                    yield from _laid(matrix, inner, (across, along), span // size - along, (name, SWIZZLES[name]), size)
            if not pad and not copied:
                for xor in spreading(along * size, size):
                    yield from _laid(
                        matrix, inner, (across, along), 0, (f"Sw<{','.join(map(str, xor))},byte>", xor), size
                    )


def _blocks(across: int, along: int, size: int, swizzle: str) -> Iterator[tuple[int, int]]:
    """Yield (rows, columns) of dense blocks, largest first."""
    span = hardware.swizzle_span_bytes(swizzle) if swizzle != "NONE" else CHUNK_BYTES
    columns = [n for n in range(along, 0, -1) if along % n == 0 and n * size % span == 0] or [along]
    rows = [across, *(n for n in BLOCKS if n < across and across % n == 0)]
    for width in columns:
        for height in rows:
            yield height, width


def _laid(
    matrix: tuple[int, int], inner: int, block: tuple[int, int], pad: int, swizzle: tuple[str, Xor | None], size: int
) -> Iterator[Candidate]:
    """Yield the layouts with this block: blocks ordered across the rows first, then along them first."""
    height, width = block
    counts = {inner: matrix[inner] // width, 1 - inner: matrix[1 - inner] // height}
    pitch = width + pad
    for order in ((1 - inner, inner), (inner, 1 - inner)):
        digits = {inner: [(width, 1)], 1 - inner: [(height, pitch)]}
        reach = height * pitch
        for dim in order:
            digits[dim].append((counts[dim], reach))
            reach *= counts[dim]
        modes = tuple(merge(tuple(digits[dim])) for dim in (0, 1))
        yield Candidate(modes, *swizzle, inner, block, pad * size)
        if 1 in counts.values():
            return


def reach_bytes(candidate: Candidate, element_bytes: int) -> int:
    """Return the size in bytes before the swizzle, which does not leave its span."""
    last = sum((extent - 1) * stride for digits in candidate.modes for extent, stride in digits)
    return math.ceil((last + 1) * element_bytes)
