"""The boxes that cover one segment of rows: the fewest of a strategy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from layoutalg.ground import memory
from layoutalg.proofs.groups import group_offsets
from layoutalg.proofs.ragged import CHECK, tail

BOX_STRATEGIES = ("exact_pool", "overlap_pool", "shift_back", "clip")
Boxes = list[tuple[int, int]]


def boxes(segment_rows: int | Sequence[int], tile_rows: int, strategy: str) -> Boxes | list[Boxes]:
    """Return the boxes that copy a segment, as (rows, first row): whole tiles, then the boxes of the rest.

    The fewest boxes: of a partition into powers of two up to T (``exact_pool``); of a cover of the rest by such boxes
    (``overlap_pool``); of any cover by boxes of at most T rows (``shift_back`` from T rows on; shorter segments are
    covered as by ``overlap_pool``); and ceil(L / T) tiles of which the last may reach past the segment (``clip``).

    Args:
        segment_rows: Rows of the segment, or of several.
        tile_rows: T, a power of two (other heights: whole tiles, and powers of two for the rest).
        strategy: One of ``BOX_STRATEGIES``.

    Returns:
        The boxes of the segment; for several segments, a list for each.

    Raises: MalformedError: LA865, LA869. BudgetError: LA002.

    Example:
        >>> boxes(77, 64, "exact_pool"), boxes(77, 64, "overlap_pool"), boxes(77, 64, "shift_back")
        ([(64, 0), (8, 64), (4, 72), (1, 76)], [(64, 0), (8, 64), (8, 69)], [(64, 0), (64, 13)])
        >>> boxes([0, 5, 64], 64, "overlap_pool"), boxes(77, 64, "clip")
        ([[], [(4, 0), (4, 1)], [(64, 0)]], [(64, 0), (64, 64)])
    """
    tile = CHECK.integer(tile_rows, "tile_rows", 1, 1 << 31)
    CHECK.choice(strategy, "strategy", BOX_STRATEGIES)
    one = not hasattr(segment_rows, "__len__")
    sizes = [CHECK.integer(segment_rows, "segment_rows", 0)] if one else segment_rows
    ends = group_offsets(sizes, argument="segment_rows").tolist()
    lengths = [end - start for start, end in pairwise(ends)]
    memory.reserve("the boxes", sum([length // tile + tile.bit_length() for length in lengths]), 160)
    found = [_boxes(length, tile, strategy) for length in lengths]
    return found[0] if one else found


def _boxes(length: int, tile: int, strategy: str) -> Boxes:
    whole, rest = divmod(length, tile)
    found = [(tile, tile * place) for place in range(whole)]
    return found + [(piece.height, tile * whole + piece.first) for piece in tail(strategy, tile, rest, whole > 0)]
