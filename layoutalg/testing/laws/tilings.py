"""Enumerations that the laws are judged by; they share no code with the algebra.

Notation: a layout is its shape and stride, or the list of its values in the order of the flat coordinate.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

LIMIT = 2**14


def modes(shape: Any, stride: Any) -> list[tuple[int, int]]:
    """Return the (extent, stride) of the leaves, fastest first."""
    if isinstance(shape, tuple):
        return [mode for part, step in zip(shape, stride, strict=True) for mode in modes(part, step)]
    return [(shape, stride)]


def values(shape: Any, stride: Any) -> list[int]:
    """Return the values at the flat coordinates, the first mode fastest.

    Example:
        >>> values((2, (2, 2)), (1, (8, 0)))
        [0, 1, 8, 9, 0, 1, 8, 9]
    """
    found = [0]
    for extent, step in modes(shape, stride):
        found = [base + digit * step for digit in range(extent) for base in found]
    return found


def starts(block: Sequence[int], count: int, cover: int = 0) -> list[int] | None:
    """Return where copies of a block start that fill 0, 1, 2, ... without gap or overlap; None where they cannot.

    Args:
        block: The values of the block; those that it takes twice count once.
        count: Number of copies.
        cover: Go on until as many numbers are filled and none beyond is.

    Example:
        >>> starts([0, 2], 4), starts([0, 1, 3], 2)
        ([0, 1, 4, 5], None)
    """
    offsets = sorted(set(block))
    if offsets[0] != 0:
        return None
    ahead: set[int] = set()
    found: list[int] = []
    filled = 0
    while len(found) < count or (cover and (filled < cover or ahead)):
        fresh = {filled + offset for offset in offsets}
        if fresh & ahead or filled > LIMIT:
            return None
        found.append(filled)
        ahead |= fresh
        while filled in ahead:
            ahead.discard(filled)
            filled += 1
    return found


def divided(table: Sequence[int], tile: Sequence[int]) -> list[int] | None:
    """Return a table read tile by tile; None where copies of the tile do not fill its coordinates.

    Example:
        >>> divided([0, 10, 20, 30], [0, 2])
        [0, 20, 10, 30]
    """
    count, rest = divmod(len(table), len(set(tile)))
    found = None if rest else starts(tile, count)
    if found is None or found[-1] + max(tile) >= len(table):
        return None
    return [table[start + offset] for start in found for offset in tile]


def multiplied(block: Sequence[int], places: Sequence[int]) -> list[int] | None:
    """Return copies of a block at the places; None where copies do not fill the numbers up to some point.

    Args:
        block: The values of the block.
        places: Numbers of the copies, in the order wanted.

    Example:
        >>> multiplied([0, 2], [0, 1])
        [0, 2, 1, 3]
    """
    if min(places) < 0:
        return None
    found = starts(block, max(places) + 1, 1)
    return None if found is None else [found[place] + offset for place in places for offset in block]
