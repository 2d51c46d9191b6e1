"""The offsets that a CuTe layout skips, and what else compares strides in order: nullspace, common parts, distribution.

Main statements: sort the modes of an injective layout by stride. If each stride is divisible by stride times extent
of the mode before it, the gaps between them form a layout C, and the modes of both together, sorted, are one compact
chain 1, s_1, s_1 s_2, ...; so (L, C) is a bijection onto an interval [0, n). Without that chain the operation raises.

References: J. Cecka, arXiv:2603.02298; the CuTe operations of the same names.
"""

from __future__ import annotations

from itertools import pairwise
from math import gcd
from typing import TypeAlias

import numpy as np

from layoutalg.cute.composition import compose_strided
from layoutalg.cute.fit import simplify, strided_form
from layoutalg.cute.inttuple import (
    INT_LIMIT,
    IntTuple,
    ceil_div,
    flatten,
    integer,
    malformed,
    product,
    shape_text,
    steps_over,
    validate,
)
from layoutalg.cute.layout import CuteLayout, from_flat
from layoutalg.cute.operands import Where, cached, refusal, require_cute
from layoutalg.cute.swizzle import Cute
from layoutalg.ground import recognize
from layoutalg.ground.digits import Flat, merge
from layoutalg.ground.errors import AdmissibilityError, LayoutError, MalformedError, shown
from layoutalg.ground.limits import CUTE_POINTS

Mode: TypeAlias = "tuple[int, int, int]"
"""Extent, stride, and weight in the 1-D coordinate."""

Chain: TypeAlias = "tuple[Mode, ...]"
"""Modes sorted by stride."""


def weighted(flat: Flat) -> list[Mode]:
    """Return the modes of the shortest digit list with their weights in the 1-D coordinate."""
    modes: list[Mode] = []
    weight = 1
    for extent, stride in merge(flat):
        modes.append((extent, stride, weight))
        weight *= extent
    return modes


def complement(layout: Cute, cosize: IntTuple | None = None) -> CuteLayout:
    """Return the layout of the offsets that ``layout`` skips.

    Mathematically: the sorted, coalesced C such that, with the stride-0 modes of L dropped, (L, C) is a bijection onto
    [0, n), where n >= ``cosize`` is the least such bound whose outermost gap is whole.

    If the bound is a shape S, the outermost gap is filled mode by mode, rounding up: n = t * size(ceil_div(S, t)) for
    the outermost step t, which is size(S) if t divides S mode by mode; a shape that this does not cover is refused.

    Args:
        layout: Strides >= 0, injective once stride-0 modes are dropped, with a divisible chain of strides; or a
            swizzled layout with the values of such a layout. Elements.
        cosize: Bound to cover, >= 1, or a shape of extents >= 1; default the cosize of the layout. Elements.

    Complexity: O(k log k) for k modes, no enumeration.

    Example:
        >>> print(complement(CuteLayout((2, 2), (1, 6)), 24), complement(CuteLayout(4, 2), 16))
        (3,2):(2,12) (2,2):(1,8)
        >>> print(complement(CuteLayout(4), 24), complement(CuteLayout(4), (6, 4)))
        6:4 8:4

    Laws: the offsets of L and C only share 0; size(C) * size(filter(L)) = n.
    """
    own = layout if type(layout) is CuteLayout else _image(require_cute(layout, "complement"))
    if type(cosize) is int and 0 < cosize < INT_LIMIT:
        return _complement(own, cosize)
    return _complement(own, max(1, own.cosize) if cosize is None else _bound_of(cosize))


def _image(layout: Cute) -> CuteLayout:
    """Return a strided layout with the same set of values: the complement depends on nothing else."""
    form = simplify(layout)
    if isinstance(form, CuteLayout):
        return form
    if form.size <= CUTE_POINTS and form.value_range()[0] == 0:
        values, counts = np.unique(form.table(), return_counts=True)
        modes = recognize.strided(values)
        if not isinstance(modes, recognize.Departure) and counts.min() == counts.max():
            return from_flat(modes)
    return strided_form(form, "complement")


def complement_up_to(layout: CuteLayout, bound: IntTuple) -> CuteLayout:
    """``complement`` of a strided layout for a checked bound."""

    def where() -> str:
        return f"complement({layout}, {shape_text(bound)})"

    chain = divisible_chain(layout._flat, where)
    if isinstance(bound, int):
        return from_flat(gaps(chain, bound))
    current = chain[-1][0] * chain[-1][1] if chain else 1
    steps = product(ceil_div(bound, current))
    if steps * current < product(bound):
        because = f"{steps} steps of {current}, counted mode by mode, end before {shown(product(bound))}"
        witness = {"covered": steps * current, "size": product(bound)}
        raise refusal("LA148", "the outermost step does not divide the shape mode by mode", where, because, witness)
    return from_flat(gaps(chain, steps * current))


_complement = cached(complement_up_to)


def gaps(chain: Chain, bound: int) -> Flat:
    """Return the merged digits between the modes of a divisible chain and after them, up to a bound.

    Example:
        >>> gaps(((4, 2, 1),), 16)
        ((2, 1), (2, 8))
    """
    digits: list[tuple[int, int]] = []
    current = 1
    for extent, stride, _ in chain:
        if stride != current:
            digits.append((stride // current, current))
        current = extent * stride
    digits.append((steps_over(bound, current), current))
    return merge(tuple(digits))


def _bound_of(cosize: IntTuple) -> IntTuple:
    if isinstance(cosize, tuple):
        try:
            bound = validate(cosize, "cosize")
        except MalformedError as error:
            raise malformed("cosize", "must be an integer or a shape", cosize, "LA130") from error
    else:
        bound = integer(cosize, "cosize", "LA130")
    if any(extent < 1 for extent in flatten(bound)):
        rule = "must have extents >= 1" if isinstance(bound, tuple) else "must be at least 1"
        raise malformed("cosize", rule, bound, "LA130")
    return bound


def divisible_chain(flat: Flat, where: Where, padded: bool = False) -> Chain:
    """Return the modes (extent, stride, 1-D weight) sorted by stride, stride-0 and extent-1 modes dropped.

    Mathematically: each stride must be a multiple of stride times extent of the mode before it; with ``padded``, only a
    multiple of its stride and at least stride times extent, as in a matrix with padded rows.

    Args:
        flat: The modes of any layout.
        where: The call, for messages, or a function that returns it.
        padded: Whether a stride need not be a multiple of the width of the mode before it.

    Raises: AdmissibilityError: LA131 empty, LA132 negative, LA133 not injective, LA134 no chain.

    Example:
        >>> divisible_chain(((4, 2), (2, 1)), "")
        ((2, 1, 4), (4, 2, 1))
    """
    modes: list[Mode] = []
    weight = 1
    for extent, stride in merge(flat):
        if extent == 0:
            raise refusal("LA131", "the layout is empty", where, "an empty layout has no offsets")
        if stride < 0:
            raise refusal("LA132", "the layout has a negative stride", where, f"mode {extent}:{stride} runs below 0")
        if stride:
            modes.append((extent, stride, weight))
        weight *= extent
    if len(modes) < 2:
        return tuple(modes)
    modes.sort(key=lambda mode: (mode[1], mode[0]))
    for fast, slow in pairwise(modes):
        width = fast[0] * fast[1]
        if slow[1] < width or slow[1] % (fast[1] if padded else width):
            raise _no_chain(fast, slow, where, padded)
    return tuple(modes)


def _no_chain(fast: Mode, slow: Mode, where: Where, padded: bool) -> AdmissibilityError:
    """Return the error for two modes that do not form a divisible chain."""
    names = f"{fast[0]}:{fast[1]} and {slow[0]}:{slow[1]}"
    # a d = b e with 0 <= a < s, 0 <= b < t has a solution other than 0 if and only if the least one is inside both
    common = gcd(fast[1], slow[1])
    a, b = slow[1] // common, fast[1] // common
    if a < fast[0] and b < slow[0]:
        witness = {"coordinate": a * fast[2], "other": b * slow[2], "offset": a * fast[1]}
        return refusal("LA133", "the layout is not injective", where, f"the modes {names} overlap", witness)
    needed = f"{fast[1]}" if padded else f"{fast[0]} * {fast[1]} = {fast[0] * fast[1]}"
    because = f"for the modes {names}, {slow[1]} is not a multiple of {needed}"
    if padded:
        because += "; layoutalg.left_inverse(layout, widen=True) has the inverse in a wider family"
    modes = {"faster": f"{fast[0]}:{fast[1]}", "slower": f"{slow[0]}:{slow[1]}"}
    return refusal("LA134", "the strides do not form a divisible chain", where, because, modes)


def nullspace(layout: Cute) -> CuteLayout:
    """Return the coalesced layout of the 1-D coordinates that the stride-0 modes reach.

    Mathematically: R injective with L(R(i)) = 0 and size(R) = size(L) / size(filter(L)). It is the whole kernel
    if ``filter(L)`` takes 0 once; cancellation between strides of opposite sign is not searched for.

    Args:
        layout: A non-empty layout; for a swizzled one, the coordinates that share the value of coordinate 0.

    Example:
        >>> print(nullspace(CuteLayout((4, 2, 3), (0, 1, 0))), nullspace(CuteLayout(4)))
        (4,3):(1,8) 1:0
    """
    own = require_cute(layout, "nullspace").base
    if own.size == 0:
        raise refusal("LA165", "the layout is empty", f"nullspace({layout})", "an empty layout has no coordinates")
    return from_flat(still_digits(own.flat))


def still_digits(flat: Flat) -> Flat:
    """Return the merged digits of the 1-D coordinates reached by the stride-0 modes of a digit list."""
    return merge(tuple([(extent, weight) for extent, stride, weight in weighted(flat) if stride == 0]))


def max_common_layout(a: Cute, b: Cute) -> CuteLayout:
    """Return the coalesced R with a(R(i)) = b(R(i)) = i for all i < size(R), as large as it finds.

    Mathematically: follows the strides 1, s, s t, ... through the modes of b as far as a agrees; the last step may use
    part of a mode. If b is injective with strides >= 0, R is unique and the result is the longest; otherwise a longer R
    may exist, through modes that overlap or run in opposite directions.

    Args:
        a: A layout. Elements.
        b: A layout of 1-D coordinates in the same order. Elements.

    Complexity: O(k^2 log n) for k modes; no enumeration.

    Example:
        >>> print(max_common_layout(CuteLayout((4, 8), (8, 1)), CuteLayout((4, 4), (16, 1))))
        4:4

    Laws: composition(a, R) and composition(b, R) are the identity.
    """
    a = strided_form(require_cute(a, "max_common_layout", "a"), "max_common_layout")
    b = strided_form(require_cute(b, "max_common_layout", "b"), "max_common_layout")
    for layout in (a, b):
        if layout.size == 0:
            raise refusal("LA165", "a layout is empty", f"max_common_layout({a}, {b})", f"{layout} has no offset 0")
    modes = weighted(b.flat)
    digits: Flat = ()
    current = 1
    while True:
        counts = [(_agreement(a, digits, mode, current), mode) for mode in modes if mode[1] == current]
        count, best = max(counts, key=lambda found: found[0], default=(1, (1, 0, 0)))
        if count > 1:
            digits = (*digits, (count, best[2]))
            current *= count
            modes.remove(best)
        if count < best[0] or count == 1:
            return from_flat(merge(digits))


def _agreement(outer: CuteLayout, digits: Flat, mode: Mode, current: int) -> int:
    """Return the greatest count <= extent for which the digits and (count, weight) together are the identity in a.

    The identity on a longer prefix includes that on a shorter one, hence bisection.
    """
    low, high = 1, mode[0] + 1
    while high - low > 1:
        middle = (low + high) // 2
        try:
            found = compose_strided(outer, from_flat((*digits, (middle, mode[2]))))
        except LayoutError:
            high = middle
            continue
        low, high = (middle, high) if merge(found.flat) == ((current * middle, 1),) else (low, middle)
    return low


def max_common_vector(a: Cute, b: Cute) -> int:
    """Return how many elements from offset 0 on are at the same place in both layouts: size of ``max_common_layout``.

    Example:
        >>> max_common_vector(CuteLayout((4, 8), (8, 1)), CuteLayout((4, 4), (16, 1)))
        4
    """
    return max_common_layout(a, b).size


def domain_distribute(shape: IntTuple, count: int) -> CuteLayout:
    """Return ``count`` coordinates of ``shape``, as many as possible from each mode in turn.

    Mathematically: R increasing with size(R) = N, taking from mode k the gcd of its extent and of what is left of N, at
    the mode's own weight. It exists if and only if N divides the size of the shape; CuTe C++ returns fewer otherwise.

    Args:
        shape: Extents >= 1.
        count: N >= 1.

    Example:
        >>> print(domain_distribute((15, 14), 6))
        (3,2):(1,15)

    Laws: zipped_divide(CuteLayout(shape), R) exists.
    """
    sizes = validate(shape, "shape")
    total = integer(count, "count", "LA166")
    if min(flatten(sizes), default=1) < 1 or total < 1:
        raise malformed("shape, count", "must be at least 1", (sizes, total), "LA166")
    digits: list[tuple[int, int]] = []
    left, weight = total, 1
    for extent in flatten(sizes):
        taken = gcd(extent, left)
        digits.append((taken, weight))
        left //= taken
        weight *= extent
    if left > 1:
        because = f"{total} does not divide the size {product(sizes)}; only {total // left} can be taken"
        where, witness = f"domain_distribute({shape_text(sizes)}, {total})", {"found": total // left, "left": left}
        raise refusal("LA167", "the count cannot be spread over the shape", where, because, witness)
    return from_flat(merge(tuple(digits)))
