"""Count the points that keep their block number under a digit map.

Notation: both functions take the modes of the map, split at the cut and at the shared bits, the image of 0, and the
number ``below`` of points of a block. Digits *above* the cut have weights of at least ``below``.
"""

from __future__ import annotations

import numpy as np

from layoutalg.f2 import matrix
from layoutalg.ground import limits, memory
from layoutalg.ground.digits import Digits, IntArray, placed, shared_bits, weights
from layoutalg.hierarchy.digitmap import ARRAY_LIMIT


def kept_on_common_digits(pieces: Digits, origin: int, below: int) -> int:
    """Return how many points keep every digit above the cut, for common digits of both sides.

    For bits this is an affine system over F2, for the other digits see ``_cycles``.

    Example:
        >>> kept_on_common_digits(((2, 2), (2, 1), (3, -4)), 8, 2)
        2
    """
    bits = [(weight, stride) for weight, extent, stride in placed(pieces) if extent == 2]
    others = [(weight, extent, stride) for weight, extent, stride in placed(pieces) if extent != 2]
    place = {weight: 1 << k for k, (weight, _) in enumerate(bits) if weight >= below}
    change = [sum(place.get(bit, 0) for bit in weights(stride)) ^ place.get(weight, 0) for weight, stride in bits]
    wanted = sum(mask for weight, mask in place.items() if origin // weight % 2)
    solved = matrix.solve(change, wanted)
    if solved is None:
        return 0
    plain = [(weight, extent, stride) for weight, extent, stride in others if isinstance(stride, int)]
    return _cycles(plain, below) << len(solved[1])


def _cycles(digits: list[tuple[int, int, int]], below: int) -> int:
    """Return how many values of plain digits, as (weight, extent, stride), keep every digit above the cut.

    Above the cut, the digit that arrives at a place must equal the digit that was there. These equations form chains
    and cycles. Each has one solution per digit value, except that a cycle with an odd number of reversals has only the
    midpoint of an odd extent.
    """
    arrow = {place: (abs(stride), stride < 0) for place, _, stride in digits if abs(stride) >= below}
    reached = {place for place, _ in arrow.values()}
    kept, seen = 1, set[int]()
    # chains first, from their start; the rest are cycles
    for place, extent, _ in sorted(digits, key=lambda digit: digit[0] in reached):
        if place in seen:
            continue
        here, turned = place, False
        while here not in seen:
            seen.add(here)
            here, reversed_ = arrow.get(here, (here, False))
            turned ^= reversed_
        kept *= extent % 2 if turned and place in reached else extent
    return kept


def kept_by_equation(pieces: Digits, origin: int, below: int) -> int | None:
    """Return how many points keep their block number, by meet-in-the-middle; None if that is too large.

    Mathematically: block number before minus after is a constant plus one term per plain digit and one per group of
    bits that share target bits; its zeros are counted.

    Example:
        >>> kept_by_equation(((2, 3), (3, 1)), 0, 1)
        2
    """
    free, constant = 1, -(origin // below)
    terms: list[IntArray] = []
    shared = shared_bits(pieces)
    groups: list[tuple[set[int], list[tuple[int, tuple[int, ...]]]]] = []
    for weight, extent, stride in placed(pieces):
        touched = weights(stride)
        if not shared.isdisjoint(touched):
            groups = _grouped(groups, weight, touched)
            continue
        before = weight // below if weight >= below else 0
        after = touched[0] // below if touched[0] >= below else 0
        sign = -1 if isinstance(stride, int) and stride < 0 else 1
        coefficient = before - sign * after
        if not coefficient:
            free *= extent
        elif extent > limits.HIERARCHY_POINTS or extent * abs(coefficient) >= ARRAY_LIMIT:
            return None
        else:
            terms.append(coefficient * np.arange(extent, dtype=np.int64))
            memory.reserve("the digits of a map", sum(map(len, terms)), 8)
    for targets, columns in groups:
        found = _group_term(sorted(targets), columns, origin, below)
        if found is None:
            return None
        terms.append(found[0])
        free <<= found[1]
    solutions = _vanishing(terms, constant)
    return None if solutions is None else free * solutions


def _grouped(
    groups: list[tuple[set[int], list[tuple[int, tuple[int, ...]]]]], weight: int, touched: tuple[int, ...]
) -> list[tuple[set[int], list[tuple[int, tuple[int, ...]]]]]:
    """Return the groups with one more bit, merging those that it connects."""
    targets, columns = set(touched), [(weight, touched)]
    apart = []
    for group in groups:
        if group[0].isdisjoint(touched):
            apart.append(group)
        else:
            targets |= group[0]
            columns = [*group[1], *columns]
    return [*apart, (targets, columns)]


def _group_term(
    targets: list[int], columns: list[tuple[int, tuple[int, ...]]], origin: int, below: int
) -> tuple[IntArray, int] | None:
    """Return (values, k): block number before minus after over a group of bits, offset to be 0 at index 0.

    Each value stands for 2**k points. The values depend on the bits through a matrix, so only its image is enumerated.
    """
    above = [(weight // below, 0) for weight, _ in columns if weight >= below]
    above += [(-(bit // below), origin // bit % 2) for bit in targets if bit >= below]
    place = {("source", weight): 0 for weight, _ in columns if weight >= below}
    place |= {("target", bit): 0 for bit in targets if bit >= below}
    place = {key: 1 << k for k, key in enumerate(place)}
    vectors = [
        place.get(("source", weight), 0) | sum(place.get(("target", bit), 0) for bit in touched)
        for weight, touched in columns
    ]
    basis = matrix.image_basis(vectors)
    if 1 << len(basis) > limits.HIERARCHY_POINTS or len(place) > 62 or sum(abs(c) for c, _ in above) >= ARRAY_LIMIT:
        return None
    start = sum(1 << k for k, (_, value) in enumerate(above) if value)
    image = matrix.table(basis, start)
    total = np.zeros(len(image), dtype=np.int64)
    for k, (coefficient, value) in enumerate(above):
        total += coefficient * ((image >> k & 1) - value)
    return total, len(columns) - len(basis)


def _vanishing(terms: list[IntArray], constant: int) -> int | None:
    """Return in how many ways one value per term and the constant add up to 0; None if there are too many."""
    sides: list[list[IntArray]] = [[], []]
    sizes = [1, 1]
    for term in sorted(terms, key=len, reverse=True):
        side = int(sizes[1] < sizes[0])
        sides[side].append(term)
        sizes[side] *= len(term)
    reach = abs(constant) + sum(int(np.abs(term).max()) for term in terms)
    if max(sizes) > limits.HIERARCHY_POINTS or reach >= ARRAY_LIMIT:
        return None
    sums = []
    for side_terms in sides:
        total = np.zeros(1, dtype=np.int64)
        for term in side_terms:
            total = (total[:, None] + term).reshape(-1)
        sums.append(np.unique(total, return_counts=True))
    (left, left_counts), (right, right_counts) = sums
    _, here, there = np.intersect1d(left, -constant - right, assume_unique=True, return_indices=True)
    return sum(int(a) * int(b) for a, b in zip(left_counts[here], right_counts[there], strict=True))
