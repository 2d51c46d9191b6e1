"""The complement of a CuTe layout: the offsets it skips, as a layout.

Main statements: sort the modes of an injective layout by stride. If each stride is divisible by stride times extent
of the mode before it, the gaps between them form a layout C, and the modes of both together, sorted, are one compact
chain 1, s_1, s_1 s_2, ...; so (L, C) is a bijection onto an interval [0, n). Without that chain the operation raises.

References: J. Cecka, arXiv:2603.02298; CuTe ``complement``.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from math import gcd
from typing import TypeAlias

import numpy as np

from layoutalg.cute.composed import Cute
from layoutalg.cute.conventions import STRICT, Convention, by_convention
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
from layoutalg.cute.operands import NARROW, RECENT, Where, composed, refusal, weight
from layoutalg.cute.swizzled import simplify, strided_form
from layoutalg.ground import recognize
from layoutalg.ground.cache import remembered
from layoutalg.ground.digits import Flat, merge
from layoutalg.ground.errors import AdmissibilityError, MalformedError, shown
from layoutalg.ground.limits import CUTE_POINTS

Chain: TypeAlias = "tuple[tuple[int, int, int], ...]"
"""Modes (extent, stride, 1-D weight), sorted by stride."""


def complement(layout: Cute, cosize: IntTuple | None = None, *, convention: Convention = STRICT) -> CuteLayout:
    """Return the layout of the offsets that ``layout`` skips.

    Mathematically: the sorted, coalesced C such that, with the stride-0 modes of L dropped, (L, C) is a bijection onto
    [0, n), where n >= ``cosize`` is the least such bound whose outermost gap is whole.

    If the bound is a shape S, the outermost gap is filled mode by mode, rounding up: n = t * size(ceil_div(S, t)) for
    the outermost step t, which is size(S) if t divides S mode by mode.

    Args:
        layout: Strides >= 0, injective once stride-0 modes are dropped, with a divisible chain of strides; or a
            swizzled layout with the values of such a layout. Elements.
        cosize: Bound to cover, >= 1, or a shape of extents >= 1; default the cosize of the layout. Elements.
        convention: How to read a shape. ``"strict"`` counts mode by mode and raises if that does not cover the shape,
            ``"cute_cpp"`` counts mode by mode unchecked, ``"pycute"`` uses the size of the shape. An integer bound
            means the same in all; the layout is always checked.

    Raises:
        MalformedError: LA130, LA102, LA144, LA192. AdmissibilityError: LA131 to LA134, LA148. RepresentabilityError:
        LA136. BudgetError: LA114.

    Complexity: O(k log k) for k modes, no enumeration.

    Example:
        >>> print(complement(CuteLayout((2, 2), (1, 6)), 24))
        (3,2):(2,12)
        >>> print(complement(CuteLayout(4, 2), 16))
        (2,2):(1,8)
        >>> print(complement(CuteLayout(4), 24), complement(CuteLayout(4), (6, 4)))
        6:4 8:4
        >>> print(complement(CuteLayout(4), (6, 4), convention="pycute"))
        6:4

    Laws: the offsets of L and C only share 0; size(C) * size(filter(L)) = n.
    """
    if convention is not STRICT:
        return by_convention(convention, complement, layout, cosize)
    if type(layout) is not CuteLayout:
        layout = _image(composed(layout, "complement"))
    if type(cosize) is int and 0 < cosize < INT_LIMIT:
        return _complement(layout, cosize) if len(layout._flat) <= NARROW else _complement_wide(layout, cosize)
    bound: IntTuple = max(1, layout.cosize) if cosize is None else bound_of(cosize)
    return _complement_wide(layout, bound)


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


@lru_cache(RECENT)
def _complement(layout: CuteLayout, bound: IntTuple) -> CuteLayout:
    def where() -> str:
        return f"complement({layout}, {shape_text(bound)})"

    chain = divisible_chain(layout.flat, where)
    if isinstance(bound, int):
        return from_flat(gaps(chain, bound))
    current = chain[-1][0] * chain[-1][1] if chain else 1
    steps = product(ceil_div(bound, current))
    if steps * current < product(bound):
        raise refusal(
            "LA148",
            "the outermost step does not divide the shape mode by mode",
            where(),
            f"{steps} steps of {current}, counted mode by mode, end before {shown(product(bound))}",
            {"covered": steps * current, "size": product(bound)},
        )
    return from_flat(gaps(chain, steps * current))


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


_complement_wide = remembered(weight)(_complement.__wrapped__)


def bound_of(cosize: IntTuple) -> IntTuple:
    """Validate the bound of a complement."""
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

    Raises: AdmissibilityError: LA131 to LA134.

    Example:
        >>> divisible_chain(((4, 2), (2, 1)), "")
        ((2, 1, 4), (4, 2, 1))
    """
    modes: list[tuple[int, int, int]] = []
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


def _no_chain(fast: tuple[int, int, int], slow: tuple[int, int, int], where: Where, padded: bool) -> AdmissibilityError:
    """Return the error for two modes that do not form a divisible chain."""
    clash = _collision(fast, slow)
    names = f"{fast[0]}:{fast[1]} and {slow[0]}:{slow[1]}"
    if clash is None:
        needed = f"{fast[1]}" if padded else f"{fast[0]} * {fast[1]} = {fast[0] * fast[1]}"
        return refusal(
            "LA134",
            "the strides do not form a divisible chain",
            where,
            f"for the modes {names}, {slow[1]} is not a multiple of {needed}",
            {"faster": f"{fast[0]}:{fast[1]}", "slower": f"{slow[0]}:{slow[1]}"},
        )
    first, second = clash
    return refusal(
        "LA133",
        "the layout is not injective",
        where,
        f"the modes {names} overlap",
        {"coordinate": first, "other": second, "offset": first // fast[2] * fast[1]},
    )


def _collision(fast: tuple[int, int, int], slow: tuple[int, int, int]) -> tuple[int, int] | None:
    """Return two 1-D coordinates with equal offset inside two modes, or None if the two modes are injective.

    a d = b e with 0 <= a < s, 0 <= b < t has a solution other than 0 exactly when the least one, a = e/g and b = d/g
    with g = gcd(d, e), is inside both extents.
    """
    common = gcd(fast[1], slow[1])
    a, b = slow[1] // common, fast[1] // common
    if a < fast[0] and b < slow[0]:
        return a * fast[2], b * slow[2]
    return None
