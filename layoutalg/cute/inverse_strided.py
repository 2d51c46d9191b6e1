"""Left and right inverses of CuTe layouts.

Main statements: the strides of a layout onto [0, n) form the chain 1, s_1, s_1 s_2, ... in some order of its modes;
reading the chain back, with each mode's weight in the 1-D coordinate as stride, inverts it.

References: J. Cecka, arXiv:2603.02298; CuTe ``left_inverse``, ``right_inverse``.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np

from layoutalg.cute.complement import Chain, divisible_chain
from layoutalg.cute.layout import CuteLayout, from_flat
from layoutalg.cute.operands import NARROW, RECENT, weight
from layoutalg.ground.cache import remembered
from layoutalg.ground.digits import Flat, merge, table
from layoutalg.ground.errors import AdmissibilityError, Diagnostic

DRIFT_TRIALS = 4096
SEARCHED = 64


def right_strided(layout: CuteLayout) -> CuteLayout:
    """Return ``right_inverse`` of a CuTe layout."""
    return _right(layout) if len(layout._flat) <= NARROW else _right_wide(layout)


@lru_cache(RECENT)
def _right(layout: CuteLayout) -> CuteLayout:
    if layout.size == 0:
        because = "an empty layout has no offset 0"
        raise AdmissibilityError(Diagnostic("LA131", "the layout is empty", (f"right_inverse({layout})",), because))
    return from_flat(right_digits(layout.flat))


def right_digits(flat: Flat) -> Flat:
    """Return the merged digits of the right inverse of a non-empty digit list.

    Example:
        >>> right_digits(((4, 8), (8, 1)))
        ((8, 4), (4, 1))
    """
    modes: list[tuple[int, int, int]] = []
    weight = 1
    for extent, stride in merge(flat):
        if stride > 0:
            modes.append((stride, extent, weight))
        weight *= extent
    digits: list[tuple[int, int]] = []
    current = 1
    for stride, extent, weight in sorted(modes, key=lambda mode: mode[0]):  # of equal strides the first counts
        if stride == current:
            digits.append((extent, weight))
            current *= extent
    return merge(tuple(digits))


_right_wide = remembered(weight)(_right.__wrapped__)


def left_strided(layout: CuteLayout) -> CuteLayout:
    """Return ``left_inverse`` of a CuTe layout."""
    return _left(layout) if len(layout._flat) <= NARROW else _left_wide(layout)


@lru_cache(RECENT)
def _left(layout: CuteLayout) -> CuteLayout:
    try:
        chain = divisible_chain(layout.flat, lambda: f"left_inverse({layout})", padded=True)
    except AdmissibilityError as error:
        found = _drifting(layout) or _searched(layout) if error.diagnostic.code == "LA134" else None
        if found is None:
            raise
        return found
    return from_flat(left_digits(chain))


def left_digits(chain: Chain) -> Flat:
    """Return the merged digits of the left inverse of a chain of modes, whose rows may be padded.

    Example:
        >>> left_digits(((4, 2, 1),))
        ((2, 0), (4, 1))
    """
    digits: list[tuple[int, int]] = []
    end, last = 1, (1, 1, 0)  # end of the digits so far, and the mode of the last one
    for mode in chain:
        extent, stride, weight = mode
        if stride % end:
            digits[-1] = (stride // last[1], last[2])  # padding: the digit before runs through the gap
        else:
            digits.append((stride // end, 0))
        digits.append((extent, weight))
        end, last = extent * stride, mode
    return merge(tuple(digits))


_left_wide = remembered(weight)(_left.__wrapped__)


def _drifting(layout: CuteLayout) -> CuteLayout | None:
    """Return a left inverse for strides that form a divisible chain up to a small drift, or None.

    With periods w_1 | w_2 | ... and w_k <= d_k, an offset is the sum of c_k w_k plus the drifts c_k (d_k - w_k). A
    total drift below w_1 changes no digit of the periods, so these still give the coordinates.
    """
    modes: list[tuple[int, int, int]] = []
    weight = 1
    for extent, stride in merge(layout.flat):
        if stride:
            modes.append((stride, extent, weight))
        weight *= extent
    modes.sort()
    for first in range(modes[0][0], max(0, modes[0][0] - DRIFT_TRIALS), -1):
        digits: list[tuple[int, int]] = [(first, 0)]
        drift = (modes[0][1] - 1) * (modes[0][0] - first)
        period = first
        for (_, extent, below), (stride, count, _) in pairwise(modes):
            ratio = stride // period
            if ratio < extent:
                break
            digits.append((ratio, below))
            period *= ratio
            drift += (count - 1) * (stride - period)
        else:
            if drift < first:
                return from_flat(merge((*digits, (modes[-1][1], modes[-1][2]))))
    return None


def _searched(layout: CuteLayout) -> CuteLayout | None:
    """Return a left inverse of an injective layout of small cosize in the fewest digits, or None.

    For given radices the strides of the inverse solve a linear system with one equation per offset; the rounded
    solution is checked in integers.
    """
    if layout.cosize > SEARCHED:
        return None
    modes: list[tuple[int, int, int]] = []
    weight = 1
    for extent, stride in merge(layout.flat):
        if stride:
            modes.append((extent, stride, weight))
        weight *= extent
    offsets = table(tuple([(extent, stride) for extent, stride, _ in modes]))
    wanted = table(tuple([(extent, below) for extent, _, below in modes]))
    if len(np.unique(offsets)) < len(offsets):
        return None
    chains: list[tuple[int, ...]] = [(1,)]
    while chains:
        for chain in chains:
            ends = (*chain, chain[-1] * -(-layout.cosize // chain[-1]))
            digits = np.stack([offsets % high // low for low, high in pairwise(ends)], axis=1)
            strides = np.rint(np.linalg.lstsq(digits.astype(np.float64), wanted, rcond=None)[0]).astype(np.int64)
            if (digits @ strides == wanted).all():
                found = [(high // low, int(step)) for (low, high), step in zip(pairwise(ends), strides, strict=True)]
                return from_flat(merge(tuple(found)))
        chains = [(*chain, period) for chain in chains for period in range(2 * chain[-1], layout.cosize, chain[-1])]
    return None
