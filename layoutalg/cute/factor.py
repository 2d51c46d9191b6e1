"""Decide whether i -> A(d i) is a mixed-radix strided function, and whether A is additive over several such runs.

Notation: A is a merged digit list with extents s_k and strides D_k, P_k is the product of the first k extents. With
E_k = D_k - s_{k-1} D_{k-1}, which is never 0 in a merged list,

    A(x) = D_0 x + sum over k >= 1 of E_k floor(x / P_k).

Main statements:

* Along a run x = d i, 0 <= i < s, each term is a linear function plus E_k floor(i u/v) with u/v the reduced fraction
  (d mod P_k) / P_k. On [0, s) the function floor(i u/v) depends only on the greatest fraction p/q <= u/v with q < s, so
  fractions are replaced by that representative and equal ones fused. If all remaining numerators are 1, the terms
  F_q floor(i / q) are a normal form: the run is strided if and only if the q form a divisibility chain whose last
  divides s. One numerator above 1 always breaks the run; several could cancel, and a table decides.
* A(x + y) - A(x) - A(y) is the sum of E_k times the carries into digit k. Without carries A is additive; if the
  coefficients of all carries have one sign it is not. Only carries that could cancel need a table, and only over the
  digits between two positions that no sum crosses.

No step enumerates more than ``PREFIX`` points. A possible cancellation on a larger domain raises ``GaveUpError``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from layoutalg.ground.digits import Flat, IntArray, evaluate, evaluate_many
from layoutalg.ground.limits import CUTE_POINTS

PREFIX = CUTE_POINTS


@dataclass(frozen=True, slots=True)
class Broken:
    """Why a run is not strided: at ``index`` a layout would have ``expected``, but the function has ``actual``."""

    index: int
    expected: int
    actual: int
    because: str


class GaveUpError(Exception):
    """More than ``PREFIX`` points would have to be enumerated."""


def neighbours(numerator: int, denominator: int, limit: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the Farey neighbours low <= numerator/denominator < high with denominators at most ``limit``."""
    low, high = (0, 1), (1, 1)
    gap_low, gap_high = numerator, denominator - numerator
    while low[1] + high[1] <= limit:
        count = min(gap_low // gap_high, (limit - low[1]) // high[1])
        low = (low[0] + count * high[0], low[1] + count * high[1])
        gap_low -= count * gap_high
        room = (limit - high[1]) // low[1]
        count = room if gap_low == 0 else min((gap_high - 1) // gap_low, room)
        high = (high[0] + count * low[0], high[1] + count * low[1])
        gap_high -= count * gap_low
    return low, high


def factor_run(outer: Flat, step: int, extent: int) -> Flat | Broken:
    """Return the digit list of i -> outer(step i) on [0, extent), or the index that rules it out.

    Args:
        outer: Merged digit list A.
        step: d >= 0.
        extent: s >= 1 with d (s - 1) < size of A.

    Raises: GaveUpError: undecided within the table limit.
    """
    if extent == 1:
        return ()
    if step == 0 or not outer:
        return ((extent, 0),)
    if len(outer) == 1 or step * (extent - 1) < outer[0][0]:
        return ((extent, step * outer[0][1]),)
    terms = _terms(outer, step, extent)
    if all(numerator == 1 for numerator, _ in terms):
        return _chain(outer, step, extent, sorted([period for _, period in terms]))
    return _irregular(outer, step, extent, terms)


def _terms(outer: Flat, step: int, extent: int) -> list[tuple[int, int]]:
    """Return (p, q) of the terms F floor(i p/q), F != 0, 0 < p/q < 1, q < extent, that are not linear in i."""
    terms: list[tuple[tuple[int, int], int]] = []
    weight = 1
    before, stride_before = outer[0]
    for current, stride in outer[1:]:
        weight *= before
        residue = step % weight
        if residue * (extent - 1) >= weight:
            fraction = (1, weight // residue) if weight % residue == 0 else neighbours(residue, weight, extent - 1)[0]
            jump = stride - before * stride_before
            place = next((place for place, (known, _) in enumerate(terms) if known == fraction), len(terms))
            terms[place:] = [(fraction, jump + (terms[place][1] if place < len(terms) else 0)), *terms[place + 1 :]]
        before, stride_before = current, stride
    return [fraction for fraction, jump in terms if jump]


def _chain(outer: Flat, step: int, extent: int, periods: list[int]) -> Flat | Broken:
    """Decide a run that jumps at the multiples of ``periods``, all below ``extent``."""
    digits: list[tuple[int, int]] = []
    done = 1
    for period in periods:
        if period % done:
            return _mismatch(outer, step, done, period)
        digits.append((period // done, evaluate(outer, step * done)))
        done = period
    if extent % done:
        return _indivisible(digits, done, extent, evaluate(outer, step * done))
    digits.append((extent // done, evaluate(outer, step * done)))
    return tuple(digits)


def _indivisible(digits: list[tuple[int, int]], done: int, extent: int, actual: int) -> Broken:
    """Return the break of a digit that ends at ``done``, which does not divide the extent."""
    count, stride = digits[-1]
    return Broken(
        done, count * stride, actual, f"its steps of {stride} end at index {done}, which does not divide {extent}"
    )


def _mismatch(outer: Flat, step: int, done: int, index: int) -> Broken:
    """Return the break at ``index`` of a digit forced to end at ``done``: the value is not the sum of its two parts."""
    inside = index % done
    expected = evaluate(outer, step * (index - inside)) + evaluate(outer, step * inside)
    because = (
        f"its step changes at index {done}, so a layout would have at {index} the sum of its values at "
        f"{index - inside} and {inside}"
    )
    return Broken(index, expected, evaluate(outer, step * index), because)


def _irregular(outer: Flat, step: int, extent: int, terms: list[tuple[int, int]]) -> Flat | Broken:
    """Decide a run with a numerator above 1: by its table, or for a long run by a few telling indices."""
    if extent > PREFIX:
        broken = _telling(outer, step, extent, terms)
        if broken is None:
            raise GaveUpError
        return broken
    values = evaluate_many(outer, np.arange(extent, dtype=np.int64) * step)
    digits: list[tuple[int, int]] = []
    done = 1
    while done < extent:
        values_left = values[::done]
        slope = int(values_left[1])
        off = np.flatnonzero(values_left != np.arange(len(values_left), dtype=np.int64) * slope)
        count = int(off[0]) if off.size else len(values_left)
        digits.append((count, slope))
        done *= count
        if done < extent and extent % done:
            return _indivisible(digits, done, extent, int(values[done]))
        if done < extent:
            expected = np.add.outer(values[::done], values[:done]).reshape(-1)
            wrong = np.flatnonzero(expected != values)
            if wrong.size:
                return _mismatch(outer, step, done, int(wrong[0]))
    return tuple(digits)


def _telling(outer: Flat, step: int, extent: int, terms: list[tuple[int, int]]) -> Broken | None:
    """Look for a break of a long run at the end of its first digit and at the first irregular jumps of its terms."""
    straight, bent = 1, extent - 1  # linear on [0, straight], not shown linear on [0, bent]
    while bent - straight > 1:
        middle = (straight + bent) // 2
        if _terms(outer, step, middle + 1):
            bent = middle
        else:
            straight = middle
    done, slope = bent, evaluate(outer, step)
    if evaluate(outer, step * done) == done * slope:
        return None
    if extent % done:
        return _indivisible([(done, slope)], done, extent, evaluate(outer, step * done))
    places = {2 * done - 1, 2 * done, 2 * done + 1}
    for p, q in terms:
        first = -(-q // p)
        excess = p * first - q  # jump m is at m first - floor(m excess / p)
        places.update([-(-m * q // p) for m in (1, 2, 3)])
        if excess:
            places.add(-(-p // excess) * first - 1)
    for place in sorted(places):
        broken = _mismatch(outer, step, done, place) if done < place < extent else None
        if broken is not None and broken.expected != broken.actual:
            return broken
    return None


def first_interaction(outer: Flat, digits: Flat) -> tuple[int, ...] | None:
    """Return digit values where outer(sum of h c) differs from the sum of outer(h c), or None if they always agree."""
    carries: list[tuple[int, int, tuple[int, ...]]] = []  # (P_k, E_k, digit values that reach the greatest sum mod P_k)
    weight = 1
    before, stride_before = outer[0] if outer else (1, 0)
    for current, stride in outer[1:]:
        weight *= before
        total = 0
        where = []
        for extent, step in digits:
            greatest, at = max_residue(step, extent, weight)
            total += greatest
            where.append(at)
        if total >= weight:
            carries.append((weight, stride - before * stride_before, tuple(where)))
        before, stride_before = current, stride
    if not carries:
        return None
    for _, _, where_max in carries:
        if _differs(outer, digits, where_max):
            return where_max
    for low, high in _independent_groups(outer, digits):
        if any(low < weight < high for weight, _, _ in carries):
            found = _enumerate_group(outer, digits, low, high)
            if found is not None:
                return found
    return None


def first_carry(outer: Flat, inner: Flat, runs: Sequence[Flat]) -> int | None:
    """Return a 1-D coordinate of ``inner`` where outer(inner(c)) is not the sum of its runs, or None."""
    digits: list[tuple[int, int]] = []
    weights: list[int] = []  # 1-D coordinate weight in ``inner`` of each digit
    place = 1
    for (extent, step), run in zip(inner, runs, strict=True):
        inside = 1
        for count, _ in run if extent > 1 else ():
            digits.append((count, step * inside))
            weights.append(place * inside)
            inside *= count
        place *= extent
    found = first_interaction(outer, tuple(digits)) if len(digits) > 1 else None
    return None if found is None else sum([value * weight for value, weight in zip(found, weights, strict=True)])


def max_residue(step: int, extent: int, modulus: int) -> tuple[int, int]:
    """Return the greatest value of step c mod modulus over 0 <= c < extent, and a c that reaches it."""
    residue = step % modulus
    if residue == 0 or extent <= 1:
        return 0, 0
    if residue * (extent - 1) < modulus:
        return residue * (extent - 1), extent - 1
    # The greatest residue is closest below a multiple of the modulus: the best approximation of the slope from above.
    (_, _), (above, at) = neighbours(residue, modulus, extent - 1)
    return modulus - (above * modulus - residue * at), at


def _differs(outer: Flat, digits: Flat, values: tuple[int, ...]) -> bool:
    parts = [value * step for value, (_, step) in zip(values, digits, strict=True)]
    return evaluate(outer, sum(parts)) != sum([evaluate(outer, part) for part in parts])


def _independent_groups(outer: Flat, digits: Flat) -> list[tuple[int, int]]:
    """Return ranges of steps [low, high) between positions P_k that no sum of the digits below crosses."""
    cuts = [1]
    weight = 1
    for extent, _ in outer[:-1]:
        weight *= extent
        below = [(count, step) for count, step in digits if step % weight]
        if sum([(count - 1) * step for count, step in below]) < weight:
            cuts.append(weight)
    cuts.append(weight * outer[-1][0] + 1)
    return list(pairwise(cuts))


def _enumerate_group(outer: Flat, digits: Flat, low: int, high: int) -> tuple[int, ...] | None:
    """Compare both sides on all values of the digits with low <= step < high, with the other digits 0."""
    members = [position for position, (_, step) in enumerate(digits) if low <= step < high]
    if math.prod([digits[position][0] for position in members]) > PREFIX:
        raise GaveUpError
    index: IntArray = np.zeros(1, dtype=np.int64)
    parts: IntArray = np.zeros(1, dtype=np.int64)
    for position in members:
        extent, step = digits[position]
        run = np.arange(extent, dtype=np.int64)
        index = np.add.outer(run * step, index).reshape(-1)
        parts = np.add.outer(run * evaluate(outer, step), parts).reshape(-1)
    wrong = np.flatnonzero(evaluate_many(outer, index) != parts)
    if not wrong.size:
        return None
    rest = int(wrong[0])
    values = [0] * len(digits)
    for position in members:
        rest, values[position] = divmod(rest, digits[position][0])
    return tuple(values)
