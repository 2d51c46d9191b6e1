"""Find a shared layout of the same tile under which an access is conflict-free.

Main statements: a swizzle that XORs offset bits from M up permutes aligned blocks of 2^(M + B) elements, so a layout
that fills whole blocks stays a bijection onto the same bytes. The caller recounts every candidate before returning it,
so a wrong candidate costs time, never a wrong answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.ground.errors import LayoutError
from layoutalg.proofs.swizzling import KINDS
from layoutalg.proofs.tile_map import extents_of, layout_of
from layoutalg.synth.paddings import padding
from layoutalg.synth.swizzles import swizzle
from layoutalg.targets.nvidia.swizzles import CHUNK_BYTES

CHUNK_BITS = 8 * CHUNK_BYTES
MOST_BITS = 5
"""A bank number has 5 bits, so no swizzle needs to XOR more."""


def cure_of(
    registers: object,
    shared: object,
    bits: int,
    kind: str,
    target: str,
    tile: Sequence[int] | None,
    lanes: object,
    warps: object,
    *,
    freed: Callable[[Any], bool],
) -> Any:
    """Return the first candidate that makes the access conflict-free, or None.

    Args:
        registers: As for ``layoutalg.banks``, like the arguments up to ``warps``.
        shared: The conflicting layout.
        bits: Element width.
        kind: How the registers are moved.
        target: The target.
        tile: Tile extents, if given.
        lanes: Lane axes.
        warps: Warp axes.
        freed: Counts the access under a layout and tells whether it is conflict-free.
    """
    layout = layout_of(shared, None if tile is None else tuple(tile), max(1, bits // 8))
    extents = extents_of(layout) if tile is None else tuple(tile)
    plain = layout.base if isinstance(layout, ComposedLayout) else layout
    if not isinstance(plain, CuteLayout):  # any dense layout of the tile will do: take row-major
        plain = CuteLayout(extents, tuple(math.prod(extents[place + 1 :]) for place in range(len(extents))))
    for found in _swizzled(plain, bits):
        if freed(found):
            return found
    if lanes is not None or warps is not None or kind not in KINDS:
        return None
    for search in (_linear, _padded):
        try:
            found = search(registers, bits, kind, target, extents)
            if found is not None and freed(found):
                return found
        except LayoutError:  # this search cannot handle these registers; the next one may
            continue
    return None


def _swizzled(plain: CuteLayout, bits: int) -> Iterator[ComposedLayout]:
    """Swizzles of a layout that fills its blocks; whole 16-byte chunks first, fewest bits first."""
    used = np.unique(plain.table())
    size = len(used)
    if size & (size - 1) or int(used[-1]) != size - 1:
        return
    total, chunk = size.bit_length() - 1, max(0, (CHUNK_BITS // bits).bit_length() - 1)
    for base in range(min(chunk, total), -1, -1):
        for many in range(1, MOST_BITS + 1):
            for shift in range(many, total - base - many + 1):
                yield ComposedLayout(Swizzle(many, base, shift), 0, plain)


def _linear(registers: object, bits: int, kind: str, target: str, extents: tuple[int, ...]) -> Any:
    return swizzle([(registers, kind)], target, bits, tile=extents).smem


def _padded(registers: object, bits: int, kind: str, target: str, extents: tuple[int, ...]) -> Any:
    given = kind if kind not in ("load", "store") else (registers, kind)
    return CuteLayout(extents, padding(extents, [given], target, bits).pitches)
