"""The layouts that a plan has to be compared with: members of forms of swizzles, lesser paddings, or all places at all.

Implementation notes: the checker's own enumeration; finders have theirs (``synth.swizzles.forms``,
``synth.paddings``), and tests compare the two.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE
from layoutalg.targets.nvidia.tensormap.facts import swizzle_supported

IntArray: TypeAlias = npt.NDArray[np.int64]
Columns: TypeAlias = tuple[int, ...]
MOST_STARTS = 1 << 20
"""Starts of lanes, over all layouts, that a certificate lists and a checker counts in seconds."""


class Rivals(NamedTuple):
    """What is claimed to be no better.

    Args:
        accesses: Target, instruction and cells, int64[instruction, lane] with -1 where a lane is inactive.
        layouts: Stages from cells to bytes; None for all places of cells that share no byte.
        turns: The fewest turns.
        first: The first layout with so many.
    """

    accesses: tuple[tuple[str, str, IntArray], ...]
    layouts: tuple[object, ...] | None
    turns: int
    first: int | None = None


def _orders(axes: Sequence[tuple[int, int]]) -> list[tuple[Columns, int]]:
    """Return the tile bits from the lowest offset bit on with each axis innermost, the last first, and its bits."""
    spans = [tuple(range(first, first + bits)) for first, bits in axes]
    return [
        (tuple(bit for each in (own, *(other for other in spans[::-1] if other is not own)) for bit in each), len(own))
        for own in spans[::-1]
    ]


def _placed(order: Columns) -> list[int]:
    """Return the offset of every tile bit."""
    found = [0] * len(order)
    for place, bit in enumerate(order):
        found[bit] = 1 << place
    return found


def _moved(plain: Sequence[int], reads: Sequence[tuple[int, int]]) -> Columns:
    """Return offsets whose bit ``to`` is changed by bit ``of``, as it was before, for all pairs (to, of)."""
    changes = dict.fromkeys(plain, 0)
    for to, of in reads:
        if 1 << of in changes:
            changes[1 << of] ^= 1 << to
    return tuple(offset ^ changes[offset] for offset in plain)


def hardware(axes: Sequence[tuple[int, int]], element_bits: int, targets: Sequence[str]) -> Iterator[Columns]:
    """Yield what the copy engine writes, as offsets of tile bits: boxes of rows of a span, and the swizzle."""
    size = element_bits // 8
    shift = size.bit_length() - 1
    for order, inner in _orders(axes):
        for mode, swizzle in SWIZZLE_TABLE.items():
            if (
                not all(swizzle_supported(mode, target) for target in targets)
                or min((to for to, _ in swizzle.xor), default=shift) < shift
            ):
                continue
            for span in (swizzle.span_bytes,) if swizzle.xor else tuple(16 << at for at in range(20)):
                if size <= span <= min(size << inner, 256 * size):
                    box = (span // size).bit_length() - 1
                    placed = _placed((*order[:box], *order[inner:], *order[box:inner]))
                    yield _moved(placed, [(to - shift, of - shift) for to, of in swizzle.xor])


def cutes(axes: Sequence[tuple[int, int]]) -> Iterator[Columns]:
    """Yield every ``Sw<B,M,S>`` behind the tile by rows and by columns, as offsets of tile bits."""
    total = sum(bits for _, bits in axes)
    for order in (_orders(axes)[0][0], tuple(range(total)))[: max(1, min(2, len(axes)))]:
        placed = _placed(order)
        yield tuple(placed)
        for bits, base, shift in itertools.product(range(1, total + 1), range(total), range(total)):
            if shift >= bits and base + bits + shift <= total:
                pairs = [(base + at, base + shift + at) for at in range(bits)]
                yield _moved(placed, pairs)
                yield _moved(placed, [(of, to) for to, of in pairs])


def xors(axes: Sequence[tuple[int, int]], chunk: int) -> Iterator[Columns]:
    """Yield every XOR of chunk numbers with a linear map of the row, as offsets of tile bits; ``chunk`` is a log."""
    order, inner = _orders(axes)[0]
    placed = _placed(order)
    low = min(chunk, inner)
    for images in itertools.product(range(1 << inner - low), repeat=len(order) - inner):
        changes = {1 << inner + at: image << low for at, image in enumerate(images)}
        yield tuple(offset ^ changes.get(offset, 0) for offset in placed)


def xor_count(axes: Sequence[tuple[int, int]], chunk: int) -> int:
    """Return how many there are."""
    order, inner = _orders(axes)[0]
    return 1 << (inner - min(chunk, inner)) * (len(order) - inner)


def pitches_to(shape: Sequence[int], last: Sequence[int]) -> Iterator[Columns]:
    """Yield all pitches up to the given ones, in lexicographic order, outermost first."""

    def inner(place: int, most: int | None) -> Iterator[Columns]:
        if place == len(shape) - 1:
            yield (1,)
            return
        least = prod(shape[place + 1 :])
        if shape[place] == 1:  # its pitch is that of the row inside it
            for rest in inner(place + 1, None if most is None else most // shape[place + 1]):
                yield (rest[0] * shape[place + 1], *rest)
            return
        for pitch in range(least, (last[place] if most is None else most) + 1):
            for rest in inner(place + 1, pitch // shape[place + 1]):
                yield (pitch, *rest)

    for found in inner(0, None):
        if found > tuple(last):
            return
        yield found


def intervals(size: int, form: str, element_bits: int, most: int) -> list[tuple[int, int]]:
    """Return intervals and amounts of a form, no padding first, then those of the fewest bytes of padding.

    Args:
        size: Elements of the tile.
        form: ``"interval"``, ``"padded_shared"`` or ``"reordered"``.
        element_bits: Bits of an element.
        most: The largest amount.
    """
    unit = max(1, 32 // element_bits) if form == "interval" else 1
    amounts = range(unit, most + 1, unit) if form == "interval" else [1 << bit for bit in range(most.bit_length())]
    runs = [1 << bit for bit in range((size - 1).bit_length()) if 1 << bit >= unit]
    listed = sorted(itertools.product(runs, amounts), key=lambda pair: (pair[1] * ((size - 1) // pair[0]), -pair[0]))
    return [(1 << (size - 1).bit_length(), 0), *listed]
