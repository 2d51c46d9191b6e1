"""Decompose a tile layout into columns of pixels.

Mathematically: a column of P pixels and K channels at offset o is (p, k) -> swizzle(o + p * pitch + k * size), with
pitch K * size or the swizzle's span; o is a multiple of 128. Columns of one size that write every element of the tile
once form a grid: along each row of the matrix their channels, and along each channel their pixels, are intervals of one
length that partition the tile. So all of them are found by trying the divisors of its two extents.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground.refusal import Broken
from layoutalg.proofs.im2col import ColumnIssue
from layoutalg.targets.nvidia.im2col import MAX_CHANNELS, MAX_PIXELS
from layoutalg.targets.nvidia.swizzles import CHUNK_BYTES, PLAIN, SWIZZLE_TABLE
from layoutalg.targets.nvidia.tensormap import apply_swizzle
from layoutalg.targets.nvidia.tensormap.limits import MAX_SMEM_BYTES, SMEM_DESTINATION_ALIGN_BYTES

IntArray: TypeAlias = npt.NDArray[np.int64]
SWIZZLES = PLAIN[::-1]


@dataclass(frozen=True, slots=True)
class Column:
    """The elements that one instruction moves."""

    swizzle: str  # name of the swizzle
    pixels: int  # rows of the matrix
    channels: int  # channels per row


Cut: TypeAlias = tuple[Column, tuple[ColumnIssue, ...]]


def divisors(number: int, most: int) -> list[int]:
    """Return the divisors of a number up to a bound."""
    return [value for value in range(1, min(number, most) + 1) if number % value == 0]


def most_channels(swizzle: str, element_bytes: int) -> int:
    """Return the maximum channels per pixel under a swizzle."""
    return min(MAX_CHANNELS, SWIZZLE_TABLE[swizzle].span_bytes // element_bytes) if swizzle != "NONE" else MAX_CHANNELS


def columns(offsets: IntArray, element_bytes: int, align_bytes: int) -> list[Cut] | Broken:
    """Return every way to split a tile into columns, fewest first, or why there is none.

    Args:
        offsets: Element offsets, int64[pixels, channels].
        element_bytes: Bytes per element.
        align_bytes: Alignment of the tile's address in shared memory.

    Example:
        >>> tile = np.arange(64 * 32).reshape(64, 32)
        >>> [(one.swizzle, one.pixels, one.channels) for one, _ in columns(tile, 2, 1024)][:1]
        [('NONE', 64, 32)]
    """
    at = offsets * element_bytes
    broken = _bytes(at, element_bytes)
    if broken is not None:
        return broken
    found: list[Cut] = []
    for name in SWIZZLES:
        if align_bytes % max(SWIZZLE_TABLE[name].period_bytes, SMEM_DESTINATION_ALIGN_BYTES) == 0:
            found += _under(name, apply_swizzle(name, at), element_bytes)
    return sorted(found, key=lambda cut: len(cut[1])) or _why_not(at, element_bytes, align_bytes)


def _bytes(at: IntArray, element_bytes: int) -> Broken | None:
    """Return why the addresses are not a valid tile, if so."""
    channels = at.shape[1] * element_bytes
    if channels % CHUNK_BYTES:
        return Broken("CHANNELS_16B", f"the tile's channels have {channels} bytes, not a multiple of {CHUNK_BYTES}")
    low, high = int(at.min()), int(at.max()) + element_bytes
    if low < 0:
        return Broken("SMEM_RANGE", f"an element is {-low} bytes before the tile's base")
    if high > MAX_SMEM_BYTES:
        return Broken("SMEM_CAP", f"the tile spans {high} bytes; a block has {MAX_SMEM_BYTES} bytes of shared memory")
    order = np.argsort(at, axis=None, kind="stable")
    same = np.flatnonzero(np.diff(at.reshape(-1)[order]) == 0)
    if same.size:
        pixel, channel = (int(v) for v in np.unravel_index(int(order[same[0] + 1]), at.shape))
        return Broken("SMEM_INJECTIVE", "two elements share an address", {"pixel": pixel, "channel": channel})
    return None


def _under(name: str, linear: IntArray, size: int) -> Iterator[Cut]:
    """Yield the grids of columns, given addresses with the swizzle undone."""
    rows, many = linear.shape
    for channels in divisors(many, most_channels(name, size)):
        if channels * size % CHUNK_BYTES:
            continue
        blocks = linear.reshape(rows, many // channels, channels)
        if (blocks - blocks[:, :, :1] != np.arange(channels) * size).any():
            continue
        pitch = channels * size if name == "NONE" else SWIZZLE_TABLE[name].span_bytes
        for pixels in divisors(rows, MAX_PIXELS):
            starts = blocks[:, :, 0].reshape(rows // pixels, pixels, -1)
            first = starts[:, 0, :]
            wrong = starts - first[:, None, :] != (np.arange(pixels) * pitch)[None, :, None]
            if wrong.any() or (first % SMEM_DESTINATION_ALIGN_BYTES).any():
                continue
            issues = tuple(
                ColumnIssue(row * pixels, block * channels, int(first[row, block]))
                for block in range(first.shape[1])
                for row in range(first.shape[0])
            )
            yield Column(name, pixels, channels), issues


def _why_not(at: IntArray, size: int, align_bytes: int) -> Broken:
    """Return the first rule that rules out every grid."""
    grain = CHUNK_BYTES // size
    chunks = at.reshape(at.shape[0], -1, grain)
    apart = np.argwhere(chunks - chunks[:, :, :1] != np.arange(grain) * size)
    if apart.size or (chunks[:, :, 0] % CHUNK_BYTES).any():
        if not apart.size:
            apart = np.argwhere(chunks[:, :, :1] % CHUNK_BYTES)
        pixel, chunk, within = (int(v) for v in apart[0])
        channel = chunk * grain + within
        text = f"{CHUNK_BYTES} bytes of channels do not fill one chunk of shared memory"
        return Broken(
            "SMEM_DENSE", text, {"pixel": pixel, "channel": channel, "offset": int(at[pixel, channel]) // size}
        )
    for name in SWIZZLES:
        if any(True for _ in _under(name, apply_swizzle(name, at), size)):
            period = max(SWIZZLE_TABLE[name].period_bytes, SMEM_DESTINATION_ALIGN_BYTES)
            text = f"swizzle {name} needs a base aligned to {period} bytes; only {align_bytes} is known"
            return Broken("SMEM_ALIGN", text)
    text = "under no swizzle are its pixels at the pitch of a column that starts 128-byte aligned"
    pixel = max(_regular(name, apply_swizzle(name, at), size) for name in SWIZZLES)
    witness = {"pixel": pixel, "channel": 0, "offset": int(at[pixel, 0]) // size} if pixel < at.shape[0] else {}
    return Broken("SWIZZLE_PITCH", text, witness)


def _regular(name: str, linear: IntArray, size: int) -> int:
    """Return the first pixel that breaks the column that starts at pixel 0."""
    best = 0
    for channels in divisors(linear.shape[1], most_channels(name, size)):
        if (np.diff(linear[0, :channels]) == size).all():
            pitch = channels * size if name == "NONE" else SWIZZLE_TABLE[name].span_bytes
            odd = np.flatnonzero(linear[:, 0] - linear[0, 0] != np.arange(linear.shape[0]) * pitch)
            best = max(best, int(odd[0]) if odd.size else linear.shape[0])
    return best
