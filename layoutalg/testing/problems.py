"""Random TensorMap problems: every rank, type, swizzle and direction, around the legal boundaries.

Implementation notes: about two thirds are admissible. Extents are small enough for the whole tensor to fit in memory,
so that plans can be executed on real bytes.
"""

from __future__ import annotations

import math
import random

from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.nvidia.swizzles import PLAIN

DTYPES = ("u8", "u16", "bf16", "f16", "f32", "u32", "s32", "u64", "s64", "f64")
_EXTENTS = (1, 2, 3, 5, 7, 8, 16, 24, 30, 33, 64, 100)
_ROWS = (16, 32, 48, 64, 80, 96, 128, 200, 256, 512, 1000)
MAX_TILE_BYTES = 100_000


def random_problem(rng: random.Random, max_rank: int = 6) -> dict[str, object]:
    """Return a problem document.

    Args:
        rng: Source of randomness.
        max_rank: Largest rank of the tensor.

    Example:
        >>> random_problem(random.Random(7))["schema"]
        'layoutalg/tensormap-problem/1'
    """
    rank = rng.choice([rank for rank in (1, 2, 2, 3, 3, 4, 5, 6) if rank <= max_rank])
    dtype = rng.choice(DTYPES)
    size = hardware.element_bytes(dtype)
    inner = rng.randrange(rank) if rng.random() < 0.3 else rank - 1
    shape = [rng.choice(_EXTENTS) for _ in range(rank)]
    tile = [rng.choice((1, 1, 2, 3, 4, 8)) if rng.random() < 0.6 else min(extent, 8) for extent in shape]
    shape[inner] = rng.choice(_ROWS)
    tile[inner] = rng.choice((16, 32, 64, 128, 256, 512, 16 // size, 24, 48))
    if rank > 1 and rng.random() < 0.1:
        tile[rng.randrange(rank)] = rng.choice((64, 257, 300, 512))
    while math.prod(tile) * size > MAX_TILE_BYTES:
        longest = max(range(rank), key=lambda dim: tile[dim])
        tile[longest] = max(1, tile[longest] // 2)
    order = [inner, *(dim for dim in reversed(range(rank)) if dim != inner)]
    if rng.random() < 0.2:
        tail = order[1:]
        rng.shuffle(tail)
        order = [inner, *tail]
    stride = _strides(rng, shape, order, size)
    steps = [1] * rank
    if rank > 1 and rng.random() < 0.2:
        steps[rng.choice([dim for dim in range(rank) if dim != inner])] = rng.choice((2, 3, 4, 8, 16))
    swizzle = rng.choice((*PLAIN, "128B"))
    document: dict[str, object] = {
        "schema": "layoutalg/tensormap-problem/1",
        "arch": "sm_90a",
        "direction": rng.choice(("load", "load", "store")),
        "global": {"shape": shape, "stride": stride, "dtype": dtype, "base_align_bytes": 256},
        "tile": tile,
        "smem": {"modes": _modes(rng, tile, order, size, swizzle), "swizzle": swizzle},
        "element_strides": steps,
        "oob_fill": "NAN" if rng.random() < 0.1 else "ZERO",
    }
    if rng.random() < 0.15:
        document["bounds"] = [max(1, extent - rng.randrange(3)) for extent in shape]
    if rng.random() < 0.1:
        document["base_elem_offset"] = rng.choice((8, 16, 64))
    if rng.random() < 0.2:
        document["origin_multiple"] = [
            max(1, 16 // size) if dim == inner else rng.choice((1, 1, tile[dim])) for dim in range(rank)
        ]
    return document


def _strides(rng: random.Random, shape: list[int], order: list[int], size: int) -> list[int]:
    """Contiguous or padded strides in the given order, occasionally broadcast or overlapping."""
    stride = [0] * len(shape)
    reach = 1
    for dim in order:
        stride[dim] = reach
        reach *= shape[dim]
        if rng.random() < 0.25:
            reach += rng.choice((0, 8, 16, 32, 3))
        if rng.random() < 0.7 and reach * size % 16:
            reach = -(-reach * size // 16) * 16 // size
    if len(shape) > 1 and rng.random() < 0.08:
        stride[rng.choice(order[1:])] = rng.choice((0, 16 // size, 64))
    return stride


def _modes(rng: random.Random, tile: list[int], order: list[int], size: int, swizzle: str) -> list[list[list[int]]]:
    """Dense rows, rows at the swizzle span, or column blocks one span wide."""
    inner = order[0]
    span = 0 if swizzle == "NONE" else hardware.swizzle_span_bytes(swizzle) // size
    row = tile[inner]
    modes: list[list[list[int]]] = [[] for _ in tile]
    outer = order[1:]
    if rng.random() < 0.2:
        rng.shuffle(outer)
    style = rng.random()
    if span and row > span and row % span == 0 and style < 0.7:
        reach = span
        for dim in outer:
            modes[dim] = [[tile[dim], reach]]
            reach *= tile[dim]
        modes[inner] = [[span, 1], [row // span, reach]]
        return modes
    reach = max(row, span) if style < 0.9 else row
    modes[inner] = [[row, 1]]
    for dim in outer:
        if rng.random() < 0.05:
            reach += rng.choice((8, 64, 128))
        modes[dim] = [[tile[dim], reach]]
        reach *= tile[dim]
    return modes
