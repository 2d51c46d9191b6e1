"""The layouts that an optimality claim compares a plan with: members of a swizzle form, smaller paddings, or anything.

This is the checker's own enumeration. The finders have theirs (``synth.swizzles.forms``, ``synth.paddings``); tests
compare the two.
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
"""Most lane addresses, over all layouts, in a certificate: a checker counts them in seconds."""


class Rivals(NamedTuple):
    """The layouts claimed to take no fewer turns."""

    # target, instruction and cells, int64[instruction, lane], with -1 for inactive lanes
    accesses: tuple[tuple[str, str, IntArray], ...]
    layouts: tuple[object, ...] | None  # stages from cells to bytes; None for every placement of cells without overlap
    turns: int  # the fewest turns
    first: int | None = None  # the first layout that takes them


def _orders(axes: Sequence[tuple[int, int]]) -> list[tuple[Columns, int]]:
    """Return, for each axis as innermost (last axis first), the tile bits by offset bit, and the axis' bit count."""
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
    """Return the offsets after XORing original bit ``of`` into bit ``to``, for all pairs (to, of)."""
    changes = dict.fromkeys(plain, 0)
    for to, of in reads:
        if 1 << of in changes:
            changes[1 << of] ^= 1 << to
    return tuple(offset ^ changes[offset] for offset in plain)


def hardware(axes: Sequence[tuple[int, int]], element_bits: int, targets: Sequence[str]) -> Iterator[Columns]:
    """Yield the layouts that TMA boxes of span-wide rows with a swizzle write, as offsets of tile bits."""
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
    """Yield every ``Sw<B,M,S>`` over the row-major and column-major tile, as offsets of tile bits."""
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
    """Yield every XOR of chunk numbers with a linear map of the row, as offsets of tile bits; ``chunk`` is a log2."""
    order, inner = _orders(axes)[0]
    placed = _placed(order)
    low = min(chunk, inner)
    for images in itertools.product(range(1 << inner - low), repeat=len(order) - inner):
        changes = {1 << inner + at: image << low for at, image in enumerate(images)}
        yield tuple(offset ^ changes.get(offset, 0) for offset in placed)


def xor_count(axes: Sequence[tuple[int, int]], chunk: int) -> int:
    """Return the number of layouts that ``xors`` yields."""
    order, inner = _orders(axes)[0]
    return 1 << (inner - min(chunk, inner)) * (len(order) - inner)


def pitches_to(shape: Sequence[int], last: Sequence[int]) -> Iterator[Columns]:
    """Yield all pitches up to the given ones, in lexicographic order, outermost first."""

    def inner(place: int, most: int | None) -> Iterator[Columns]:
        if place == len(shape) - 1:
            yield (1,)
            return
        least = prod(shape[place + 1 :])
        if shape[place] == 1:  # its pitch is immaterial: use the dense one
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
    """Return the (interval, amount) pairs of a form in order of padding bytes, no padding first.

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
