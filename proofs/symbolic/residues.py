"""Decide the out-of-bounds class of one tile dimension for every extent by checking one period of residues.

Along a tile dimension the origin is m u for any integer u, and the bound is H. A tile element t is requested for low <=
m u + e t < H. The engine moves it if 0 <= c + a u < E for each map dimension that u moves, with E = alpha H + beta. The
last such u are floor((H - 1 - e t) / m) and floor((E - 1 - c) / a). If alpha / a = 1 / m, both grow by the same amount
when H grows by P = lcm(m, denominators of alpha and beta), so their difference depends only on H mod P, and P values of
H decide for all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from layoutalg.ground.record import Checked
from layoutalg.proofs.tensormap.walk import UndecidedError

IntArray = npt.NDArray[np.int64]
MAX_PERIOD = 2**16


@dataclass(frozen=True, slots=True)
class Axis(Checked, code="LA374"):
    """A map dimension moved by one tile dimension: step per lattice point, and extent = alpha H + beta."""

    step: int
    alpha: Fraction
    beta: Fraction


@dataclass(frozen=True, slots=True)
class Residues(Checked, code="LA374"):
    """What holds for which H mod ``period``."""

    period: int  # period in H
    whole: frozenset[int]  # residues at which every extent is an integer
    covered: frozenset[int]  # those at which the engine moves every requested element
    exact: frozenset[int]  # those of ``covered`` at which it moves nothing else
    weak: frozenset[int]  # those of ``covered`` at which it moves nothing else for origins in bounds


def residues(reach: IntArray, coords: list[IntArray], axes: list[Axis], multiple: int, low: int) -> Residues:
    """Return what holds at which residues of H.

    Args:
        reach: ``e t`` of each walked element, duplicates dropped.
        coords: Per map dimension, the coordinates of these elements at the origin 0.
        axes: These map dimensions.
        multiple: The lattice step m, at least 1.
        low: The lower bound.

    Raises: UndecidedError: an extent does not grow with the bound, or the period is too long.

    Example:
        >>> t = np.arange(4)
        >>> halves = residues(t, [t // 2], [Axis(2, Fraction(1, 2), Fraction(0))], 4, 0)
        >>> sorted(halves.whole), sorted(halves.exact)
        ([0, 2], [0, 2])
    """
    period = multiple
    for axis in axes:
        if axis.step <= 0 or axis.alpha / axis.step != Fraction(1, multiple):
            raise UndecidedError("an extent of the map does not grow with the bound as its coordinate does")
        period = math.lcm(period, axis.alpha.denominator, axis.beta.denominator)
    if period > MAX_PERIOD:
        raise UndecidedError(f"the class has period {period}; at most {MAX_PERIOD} sizes are checked")
    whole, covered, exact, weak = set(), set(), set(), set()
    first_wanted = -((reach - low) // multiple)
    first = np.full(reach.size, -(2**61), dtype=np.int64)
    for axis, coordinate in zip(axes, coords, strict=True):
        first = np.maximum(first, -(coordinate // axis.step))
    inside = -(-low // multiple)
    for bound in range(period, 2 * period):
        extents = [axis.alpha * bound + axis.beta for axis in axes]
        if any(extent.denominator != 1 for extent in extents):
            continue
        residue = bound % period
        whole.add(residue)
        last_wanted = (bound - 1 - reach) // multiple
        last = np.full(reach.size, 2**61, dtype=np.int64)
        for axis, coordinate, extent in zip(axes, coords, extents, strict=True):
            last = np.minimum(last, (int(extent) - 1 - coordinate) // axis.step)
        if (first > first_wanted).any() or (last < last_wanted).any():
            continue
        covered.add(residue)
        if (first == first_wanted).all() and (last == last_wanted).all():
            exact.add(residue)
        end = (bound - 1) // multiple
        clipped_first, clipped_last = np.maximum(first, inside), np.minimum(last, end)
        foreign = (clipped_first <= clipped_last) & ((clipped_first < first_wanted) | (clipped_last > last_wanted))
        if not foreign.any():
            weak.add(residue)
    return Residues(period, frozenset(whole), frozenset(covered), frozenset(exact), frozenset(weak))


def as_congruence(kept: frozenset[int], period: int) -> tuple[int, int] | None:
    """Return (modulus, residue) if these residues form one class, otherwise None.

    Example:
        >>> as_congruence(frozenset({1, 5}), 8), as_congruence(frozenset({0, 1}), 4)
        ((4, 1), None)
    """
    if not kept or period % len(kept):
        return None
    modulus = period // len(kept)
    least = min(kept)
    return (modulus, least % modulus) if kept == frozenset(range(least % modulus, period, modulus)) else None
