"""Left and right inverses of CuTe layouts.

Main definitions: ``left_inverse``, ``right_inverse``.

Main statements: the strides of a layout onto [0, n) form the chain 1, s_1, s_1 s_2, ... in some order of its modes;
reading the chain back, with each mode's weight in the 1-D coordinate as stride, inverts it.

References: J. Cecka, arXiv:2603.02298; CuTe ``left_inverse``, ``right_inverse``.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import overload

import numpy as np

from layoutalg.cute.algebra import from_flat
from layoutalg.cute.complement import divisible_chain
from layoutalg.cute.composed import ComposedLayout
from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.operand import NARROW, RECENT, swizzled, weight
from layoutalg.ground.cache import remembered
from layoutalg.ground.digits import merge, table
from layoutalg.ground.errors import AdmissibilityError, Diagnostic

DRIFT_TRIALS = 4096
SEARCHED = 64


@overload
def right_inverse(layout: CuteLayout) -> CuteLayout: ...
@overload
def right_inverse(layout: ComposedLayout) -> CuteLayout | ComposedLayout: ...
def right_inverse(layout: CuteLayout | ComposedLayout) -> CuteLayout | ComposedLayout:
    """Return R with layout(R(i)) = i for all i < size(R).

    Mathematically: a section of L over [0, size(R)), found by following the strides 1, s, s t, ... through the modes;
    modes that do not continue the chain are left out, so R may be as small as ``1:0``. Of a swizzled layout: that of
    the layout at the bottom after the swizzles undone, as far as these stay inside it; see
    ``layoutalg.cute.swizzled_inverse``.

    Args:
        layout: Any layout that is not empty; stride-0 and negative modes are left out. Elements.

    Returns:
        Coalesced layout from offsets to 1-D coordinates.

    Raises: MalformedError: LA192. AdmissibilityError: LA131. RepresentabilityError: LA643. BudgetError: LA644, LA648.

    Complexity: O(k log k) for k modes.

    Example:
        >>> print(right_inverse(CuteLayout((4, 8), (8, 1))))
        (8,4):(4,1)
        >>> print(right_inverse(CuteLayout(4, 2)))
        1:0

    Laws: composition(L, R) is the identity on [0, size(R)).
    Source: CuTe ``right_inverse``.
    """
    own = layout if type(layout) is CuteLayout else swizzled(layout, "right_inverse")
    if isinstance(own, CuteLayout):
        return _right_inverse(own) if len(own._flat) <= NARROW else _right_inverse_wide(own)
    from layoutalg.cute.swizzled_inverse import right_inverse_of

    return right_inverse_of(own)


@lru_cache(RECENT)
def _right_inverse(layout: CuteLayout) -> CuteLayout:
    if layout.size == 0:
        raise AdmissibilityError(
            Diagnostic(
                code="LA131",
                what="the layout is empty",
                where=(f"right_inverse({layout})",),
                because="an empty layout does not even reach offset 0",
            )
        )
    chain: dict[int, tuple[int, int]] = {}
    weight = 1
    for extent, stride in merge(layout.flat):
        if stride > 0:
            chain.setdefault(stride, (extent, weight))
        weight *= extent
    digits: list[tuple[int, int]] = []
    current = 1
    while current in chain:
        extent, weight = chain[current]
        digits.append((extent, weight))
        current *= extent
    return from_flat(merge(tuple(digits)))


_right_inverse_wide = remembered(weight)(_right_inverse.__wrapped__)


@overload
def left_inverse(layout: CuteLayout) -> CuteLayout: ...
@overload
def left_inverse(layout: ComposedLayout) -> CuteLayout | ComposedLayout: ...
def left_inverse(layout: CuteLayout | ComposedLayout) -> CuteLayout | ComposedLayout:
    """Return R with R(layout(i)) = i where the layout is injective, and layout(R(layout(i))) = layout(i) always.

    Mathematically: a retraction of L. The strides must divide one another in turn, up to a drift of all modes together
    that stays below the least stride, ``(2,3):(3,16)`` say; rows may be padded by any amount. Any other injective
    layout with a cosize of at most 64 is searched for among all mixed radices.
    Offsets that L leaves out get some value, in whole gaps that of the gap's first offset.

    Args:
        layout: Strides >= 0; once stride-0 modes are dropped, each stride is a multiple of the one before it and at
            least its stride times extent, or the cosize is at most 64. Elements.

    Returns:
        Coalesced layout from offsets to 1-D coordinates, defined on at least [0, cosize).

    Raises:
        MalformedError: LA192. AdmissibilityError: LA131, LA132, LA133, LA134, LA649. RepresentabilityError: LA643.
        BudgetError: LA114, LA644.

    Complexity: O(k log k) for k modes where the strides divide; a search of milliseconds for a cosize of at most 64.

    Example:
        >>> print(left_inverse(CuteLayout((4, 8), (8, 1))))
        (8,4):(4,1)
        >>> print(left_inverse(CuteLayout(4, 2)))
        (2,4):(0,1)
        >>> print(left_inverse(CuteLayout((8, 16), (1, 12))))
        (12,16):(1,8)
        >>> print(left_inverse(CuteLayout((2, 8), (3, 2))))
        (2,9):(-1,2)

    Laws: composition(R, L) is the identity on L's domain where L is injective.
    Source: CuTe ``left_inverse``, which refuses the padded case.
    """
    own = layout if type(layout) is CuteLayout else swizzled(layout, "left_inverse")
    if isinstance(own, CuteLayout):
        return _left_inverse(own) if len(own._flat) <= NARROW else _left_inverse_wide(own)
    from layoutalg.cute.swizzled_inverse import left_inverse_of

    return left_inverse_of(own)


@lru_cache(RECENT)
def _left_inverse(layout: CuteLayout) -> CuteLayout:
    try:
        chain = divisible_chain(layout, lambda: f"left_inverse({layout})", padded=True)
    except AdmissibilityError as error:
        found = _drifting(layout) or _searched(layout) if error.diagnostic.code == "LA134" else None
        if found is None:
            raise
        return found
    digits: list[tuple[int, int]] = []
    end, last = 1, (1, 1, 0)  # where the digits so far end, and the mode that wrote the last of them
    for mode in chain:
        extent, stride, weight = mode
        if stride % end:
            digits[-1] = (stride // last[1], last[2])  # padding: let the digit before run through the gap
        else:
            digits.append((stride // end, 0))
        digits.append((extent, weight))
        end, last = extent * stride, mode
    return from_flat(merge(tuple(digits)))


_left_inverse_wide = remembered(weight)(_left_inverse.__wrapped__)


def _drifting(layout: CuteLayout) -> CuteLayout | None:
    """Return a left inverse for strides that form a divisible chain up to a small drift, or None.

    With periods w_1 | w_2 | ... and w_k <= d_k, an offset is the sum of c_k w_k and of a drift c_k (d_k - w_k). While
    the whole drift stays below w_1 it changes no digit of the periods, so these read the coordinates back.
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
