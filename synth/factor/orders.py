"""Factor layouts of other extents by trying every order of the digits that a descriptor can walk.

Mathematically: a strided bijection P of a tile onto 0 to N - 1 splits each tile dimension into digits and arranges all
of them as one chain of offset digits with weights 1, e1, e1 e2, ... (strides of a direct sum that fills an interval
divide one another). Split into primes, P is an order of the primes of each dimension and an order of all these digits;
one dimension begins with the elements of a 16-byte chunk, or of a row of the swizzle, at weight 1. The descriptor's
maps onto 0 to N - 1 are the S P with S a swizzle that keeps 0 to N - 1 as a set.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground import clock
from layoutalg.ground.digits import Flat, merge, table
from layoutalg.synth.factor.bits import run_bits
from layoutalg.synth.factor.question import Question
from layoutalg.targets.nvidia.tensormap.facts import apply_swizzle

IntArray: TypeAlias = npt.NDArray[np.int64]
MOST = 20000
"""Limit on orders tried."""


@dataclass(frozen=True, slots=True)
class Order:
    """One descriptor map: per tile dimension, in the order of the axes, its digits as (extent, stride)."""

    swizzle: str  # name of the swizzle
    digits: tuple[Flat, ...]  # the digits before the swizzle
    rounds: int  # shuffles of the residual


def swizzled_offsets(offsets: IntArray, swizzle: str, element_bytes: int) -> IntArray:
    """Return element offsets after a swizzle; an involution if elements are at most 16 bytes."""
    return np.asarray(apply_swizzle(swizzle, offsets * element_bytes), dtype=np.int64) // element_bytes


def tried(question: Question, swizzles: tuple[str, ...]) -> tuple[list[Order], bool]:
    """Return the maps that keep every warp, fewest rounds first, and whether all maps of the class were tried."""
    size, element = question.size, question.dtype.bits // 8
    low = question.chunk.bit_length() - 1
    extents = tuple(extent for _, extent in question.tile)
    _, lane, warp = question.owner
    _, lanes, warps = question.counts
    thread = warp * lanes + lane
    found: list[Order] = []
    whole, left = True, MOST
    for swizzle in swizzles:
        wanted = swizzled_offsets(question.offsets, swizzle, element)
        if int(wanted.max()) >= size:
            whole = False
            continue
        for digits in orders(extents, 1 << run_bits(swizzle, low)):
            if not left:
                return sorted(found, key=lambda each: each.rounds), False
            left -= 1
            clock.check("the search for an order of digits")
            laid = table(tuple(digit for each in digits for digit in each))
            back = np.empty(size, dtype=np.int64)
            back[laid] = np.arange(size)
            source = back[wanted]
            if np.array_equal(warp[source], warp):
                moving = np.bincount(thread, weights=lane[source] != lane, minlength=lanes * warps)
                found.append(Order(swizzle, digits, int(moving.max())))
    return sorted(found, key=lambda each: each.rounds), whole


def orders(extents: tuple[int, ...], run: int) -> Iterator[tuple[Flat, ...]]:
    """Yield every strided bijection of a tile onto an interval that begins with ``run`` elements of one dimension.

    Args:
        extents: Tile extents.
        run: Elements that stay contiguous.

    Example:
        >>> len(list(orders((8, 6), 8))), next(orders((8, 6), 8))
        (3, (((8, 1),), ((6, 8),)))
    """
    seen: set[tuple[Flat, ...]] = set()
    for inner, extent in enumerate(extents):
        if extent % run:
            continue
        rests = [_prime_orders(other // run if at == inner else other) for at, other in enumerate(extents)]
        for splits in itertools.product(*rests):
            pieces = [(dim, place) for dim, split in enumerate(splits) for place in range(len(split))]
            for chain in itertools.permutations(pieces):
                strides, weight = [[0] * len(split) for split in splits], run
                for dim, place in chain:
                    strides[dim][place] = weight
                    weight *= splits[dim][place]
                made = tuple(
                    merge((((run, 1),) if dim == inner else ()) + tuple(zip(split, strides[dim], strict=True)))
                    or ((1, 0),)
                    for dim, split in enumerate(splits)
                )
                if made not in seen:
                    seen.add(made)
                    yield made


def _prime_orders(number: int) -> list[tuple[int, ...]]:
    """Every order of the prime factors of a number.

    Example:
        >>> _prime_orders(12)
        [(2, 2, 3), (2, 3, 2), (3, 2, 2)]
    """
    if number == 1:
        return [()]
    primes = [
        prime for prime in range(2, number + 1) if number % prime == 0 and all(prime % d for d in range(2, prime))
    ]
    return [(prime, *rest) for prime in primes for rest in _prime_orders(number // prime)]


def first_mixed(question: Question) -> int:
    """Return the largest weight p such that blocks of p offsets belong to one warp: the digit there mixes warps."""
    warp = np.empty(question.size, dtype=np.int64)
    warp[question.offsets] = question.owner[2]
    changes = np.flatnonzero(warp[1:] != warp[:-1]) + 1
    return int(np.gcd.reduce(changes)) if len(changes) else question.size
