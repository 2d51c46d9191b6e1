"""Deciding whether i -> A(d i) is a mixed-radix strided function, and whether A adds up over several such runs.

Main definitions: ``Broken``, ``factor_run``, ``first_interaction``.

Notation: A is a merged digit list with extents s_k and strides D_k, P_k is the product of the first k extents. With
E_k = D_k - s_{k-1} D_{k-1}, which is never 0 in a merged list,

    A(x) = D_0 x + sum over k >= 1 of E_k floor(x / P_k).

Main statements:

* Along a run x = d i, 0 <= i < s, each term is a linear function plus E_k floor(u i / v) with u/v the reduced fraction
  (d mod P_k) / P_k. On [0, s) the function floor(u i / v) depends only on the greatest fraction p/q <= u/v with q < s, so
  fractions are replaced by that representative and equal ones fused. If every numerator left is 1, the terms
  F_q floor(i / q) are a normal form: the run is strided if and only if the q divide one another in turn and the last
  divides s. A numerator above 1 leaves a short table as the judge.
* A(x + y) - A(x) - A(y) is the sum of E_k times the carries into digit k. Without carries A is additive; if all carries
  that occur have coefficients of one sign it is not. Only cancelling carries need a table, and only over the digits
  between two positions that nothing crosses.

Implementation notes: no step enumerates a domain larger than ``PREFIX``. Where cancellation on a larger domain cannot be
decided the search gives up and says so; it never guesses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from layoutalg.cute.radix import Flat, IntArray, evaluate, evaluate_many

PREFIX = 2**20


@dataclass(frozen=True, slots=True)
class Broken:
    """Why a run is not strided: at ``index`` a layout of that form would have ``expected``, the function has ``actual``."""

    index: int
    expected: int
    actual: int
    because: str


class GaveUpError(Exception):
    """A table longer than ``PREFIX`` would be needed."""


def factor_run(outer: Flat, step: int, extent: int) -> Flat | Broken:
    """Return the digit list of i -> outer(step i) on [0, extent), or the first index where none fits.

    Args:
        outer: Merged digit list A.
        step: d >= 0.
        extent: s >= 1 with d (s - 1) < size of A.

    Raises:
        GaveUpError: Undecided within the table limit.

    Example:
        >>> factor_run(((2, 1), (8, 10)), 3, 4)
        ((2, 11), (2, 30))
    """
    if extent == 1:
        return ()
    if step == 0 or not outer:
        return ((extent, 0),)
    if len(outer) == 1 or step * (extent - 1) < outer[0][0]:
        return ((extent, step * outer[0][1]),)
    terms = _terms(outer, step, extent)
    if all(fraction.numerator == 1 for fraction in terms):
        return _chain(outer, step, extent, {fraction.denominator: value for fraction, value in terms.items()})
    return _by_table(outer, step, extent)


def _terms(outer: Flat, step: int, extent: int) -> dict[Fraction, int]:
    """Return the coefficients F of the terms F floor(i p/q), 0 < p/q < 1, q < extent, that are not linear in i."""
    terms: dict[Fraction, int] = {}
    weight = 1
    for (previous, last), (_, stride) in zip(outer, outer[1:], strict=False):
        weight *= previous
        residue = step % weight
        if residue == 0 or residue * (extent - 1) < weight:
            continue
        fraction = floor_fraction(residue, weight, extent - 1)
        terms[fraction] = terms.get(fraction, 0) + stride - previous * last
    return {fraction: value for fraction, value in terms.items() if value}


def floor_fraction(numerator: int, denominator: int, limit: int) -> Fraction:
    """Return the greatest fraction <= numerator/denominator whose denominator is at most ``limit``.

    Example:
        >>> floor_fraction(3, 8, 3)
        Fraction(1, 3)
    """
    value = Fraction(numerator, denominator)
    if value.denominator <= limit:
        return value
    # Descend the Stern-Brocot tree in whole runs: low <= value < high are neighbours throughout.
    low, high = (value.numerator // value.denominator, 1), (1, 0)
    p, q = value.numerator, value.denominator
    while True:
        # low -> low + k high while it stays <= value
        gap_low = p * low[1] - q * low[0]
        gap_high = q * high[0] - p * high[1]
        steps = gap_low // gap_high if gap_high else 0
        if high[1]:
            steps = min(steps, (limit - low[1]) // high[1])
        low = (low[0] + steps * high[0], low[1] + steps * high[1])
        gap_low -= steps * gap_high
        if low[1] + high[1] > limit or gap_low == 0:
            return Fraction(*low)
        # high -> high + k low while it stays > value
        steps = max(1, (gap_high - 1) // gap_low)
        steps = min(steps, (limit - high[1]) // low[1])
        high = (high[0] + steps * low[0], high[1] + steps * low[1])
        if low[1] + high[1] > limit:
            return Fraction(*low)


def _chain(outer: Flat, step: int, extent: int, terms: dict[int, int]) -> Flat | Broken:
    """Decide a sum of a linear function and terms F floor(i / q) by divisibility of the q."""
    digits: list[tuple[int, int]] = []
    done = 1
    for period in [*sorted(terms), extent]:
        stride = evaluate(outer, step * done)
        if period % done:
            # The first multiple of the digit's period that the new period cuts: the jump falls inside a run.
            return _compare(outer, step, tuple(digits), done, period)
        if period == extent:
            digits.append((extent // done, stride))
            return tuple(digits)
        digits.append((period // done, stride))
        done = period
    return tuple(digits)


def _compare(outer: Flat, step: int, digits: Flat, done: int, index: int) -> Broken:
    """Return the break at ``index``: the value of the digits found so far, continued, against the function."""
    block, inside = divmod(index, done)
    # The table up to ``done`` forces the digits; the last one found may still continue, so compare where it cannot.
    expected = evaluate(outer, step * done * block) + evaluate(digits, inside)
    return Broken(index, expected, evaluate(outer, step * index), "")
