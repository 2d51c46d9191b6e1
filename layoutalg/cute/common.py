"""Nullspace, common sublayouts and distributed domains of layouts.

References: CuTe ``nullspace``, ``max_common_layout``, ``max_common_vector``, ``domain_distribute``.
"""

from __future__ import annotations

from math import gcd

from layoutalg.cute.compose_strided import after_strided
from layoutalg.cute.composed import Cute, bottom
from layoutalg.cute.conventions import STRICT, Convention, by_convention
from layoutalg.cute.inttuple import IntTuple, flatten, integer, malformed, product, shape_text, validate
from layoutalg.cute.layout import CuteLayout, from_flat
from layoutalg.cute.operands import composed, refusal
from layoutalg.cute.swizzled import strided_form
from layoutalg.ground.digits import Flat, evaluate, merge
from layoutalg.ground.errors import AdmissibilityError

EVENTS = 4096


def nullspace(layout: Cute) -> CuteLayout:
    """Return the coalesced layout of the 1-D coordinates that the stride-0 modes reach.

    Mathematically: R injective with L(R(i)) = 0 and size(R) = size(L) / size(filter(L)). It is the whole kernel
    if ``filter(L)`` takes 0 once; cancellation between strides of opposite sign is not searched for.

    Args:
        layout: A non-empty layout; for a swizzled one, the coordinates that share the value of coordinate 0.

    Raises: MalformedError: LA192. AdmissibilityError: LA165.

    Example:
        >>> print(nullspace(CuteLayout((4, 2, 3), (0, 1, 0))))
        (4,3):(1,8)
        >>> print(nullspace(CuteLayout(4)))
        1:0
    """
    own = bottom(composed(layout, "nullspace"))
    if own.size == 0:
        raise refusal("LA165", "the layout is empty", f"nullspace({layout})", "an empty layout has no coordinates")
    return from_flat(still_digits(own.flat))


def still_digits(flat: Flat) -> Flat:
    """Return the merged digits of the 1-D coordinates reached by the stride-0 modes of a digit list.

    Example:
        >>> still_digits(((4, 0), (2, 1), (3, 0)))
        ((4, 1), (3, 8))
    """
    digits: list[tuple[int, int]] = []
    weight = 1
    for extent, stride in merge(flat):
        if stride == 0:
            digits.append((extent, weight))
        weight *= extent
    return merge(tuple(digits))


def max_common_layout(a: Cute, b: Cute) -> CuteLayout:
    """Return the coalesced R with a(R(i)) = b(R(i)) = i for all i < size(R), as large as it finds.

    Mathematically: follows the strides 1, s, s t, ... through the modes of b as far as a agrees; the last step may use
    part of a mode. If b is injective with strides >= 0, R is unique and the result is the longest; otherwise a longer R
    may exist, through modes that overlap or run in opposite directions.

    Args:
        a: A layout. Elements.
        b: A layout of 1-D coordinates in the same order. Elements.

    Raises: MalformedError: LA192. AdmissibilityError: LA165.

    Complexity: O(k^2) for k modes; no enumeration.

    Example:
        >>> print(max_common_layout(CuteLayout((4, 8), (8, 1)), CuteLayout((4, 4), (16, 1))))
        4:4
        >>> print(max_common_layout(CuteLayout(8), CuteLayout((4, 2), (1, 8))))
        4:1

    Laws: composition(a, R) and composition(b, R) are the identity.
    """
    a = strided_form(composed(a, "max_common_layout", "a"), "max_common_layout")
    b = strided_form(composed(b, "max_common_layout", "b"), "max_common_layout")
    for layout in (a, b):
        if layout.size == 0:
            raise refusal("LA165", "a layout is empty", f"max_common_layout({a}, {b})", f"{layout} has no offset 0")
    first = merge(a.flat)
    modes: list[tuple[int, int, int]] = []  # extent, stride, weight
    weight = 1
    for extent, stride in merge(b.flat):
        modes.append((extent, stride, weight))
        weight *= extent
    digits: list[tuple[int, int]] = []
    current = 1
    while True:
        best: tuple[int, int, int] | None = None
        for mode in modes:
            if mode[1] == current:
                count = _agreement(first, digits, mode[0], mode[2], current, a.size)
                if count > 1 and (best is None or count > best[0]):
                    best = (count, mode[2], mode[0])
        if best is None:
            return from_flat(merge(tuple(digits)))
        digits.append(best[:2])
        current *= best[0]
        if best[0] < best[2]:
            return from_flat(merge(tuple(digits)))
        modes = [mode for mode in modes if mode[2] != best[1]]


def _agreement(outer: Flat, digits: list[tuple[int, int]], extent: int, weight: int, current: int, size: int) -> int:
    """Return the greatest count <= extent for which the digits and (count, weight) together are the identity in a."""
    reach = sum([(count - 1) * step for count, step in digits])
    count = min(extent, _straight(outer, weight, current, extent))
    if reach + (count - 1) * weight >= size:
        count = (size - 1 - reach) // weight + 1
    while count > 1 and not _identity(outer, (*digits, (count, weight)), current * count):
        count = _shorter(outer, digits, weight, current, count)
    return count


def _straight(outer: Flat, step: int, slope: int, extent: int) -> int:
    """Return the least i < extent with outer(step i) != slope i, or extent if there is none nearby."""
    places: list[tuple[int, int]] = []  # (residue, weight): digits carry where i residue passes a multiple of weight
    size = 1
    for width, _ in outer:
        size *= width
    inside = min(extent, (size - 1) // step + 1)
    weight = 1
    for width, _ in outer[:-1]:
        weight *= width
        if step % weight:
            places.append((step % weight, weight))
    if inside > 1 and evaluate(outer, step) != slope:
        return 1
    index = 1
    for _ in range(EVENTS):
        following = [-(-(index * residue // weight + 1) * weight // residue) for residue, weight in places]
        index = min([place for place in following if place < inside], default=inside)
        if index >= inside:
            return inside
        if evaluate(outer, step * index) != slope * index:
            return index
    return index


def _identity(outer: Flat, digits: tuple[tuple[int, int], ...], size: int) -> bool:
    """Return whether outer after the digits is the identity on [0, size)."""
    try:
        answer = after_strided(from_flat(outer), CuteLayout(*_columns(digits)))
    except (AdmissibilityError, ValueError):
        return False
    return merge(answer.flat) == ((size, 1),)


def _columns(digits: tuple[tuple[int, int], ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple([count for count, _ in digits]), tuple([step for _, step in digits])


def _shorter(outer: Flat, digits: list[tuple[int, int]], weight: int, current: int, count: int) -> int:
    """Return the greatest shorter count that is the identity; monotone in the prefix, hence bisection."""
    low, high = 1, count
    while high - low > 1:
        middle = (low + high) // 2
        if _identity(outer, (*digits, (middle, weight)), current * middle):
            low = middle
        else:
            high = middle
    return low


def max_common_vector(a: Cute, b: Cute) -> int:
    """Return how many elements from offset 0 on are at the same place in both layouts: size of ``max_common_layout``.

    Example:
        >>> max_common_vector(CuteLayout((4, 8), (8, 1)), CuteLayout((4, 4), (16, 1)))
        4
    """
    return max_common_layout(a, b).size


def domain_distribute(shape: IntTuple, count: int, *, convention: Convention = STRICT) -> CuteLayout:
    """Return ``count`` coordinates of ``shape``, as many as possible from each mode in turn.

    Mathematically: R increasing with size(R) = N, taking from mode k the gcd of its extent and of what is left of N, at
    the mode's own weight. It exists if and only if N divides the size of the shape.

    Args:
        shape: Extents >= 1.
        count: N >= 1.
        convention: ``"cute_cpp"`` returns what it found even if that is fewer than N.

    Raises: MalformedError: LA166, LA144. AdmissibilityError: LA167.

    Example:
        >>> print(domain_distribute((15, 14), 6))
        (3,2):(1,15)
        >>> print(domain_distribute((15, 14), 4, convention="cute_cpp"))
        2:15

    Laws: zipped_divide(CuteLayout(shape), R) exists.
    """
    if convention is not STRICT:
        return by_convention(convention, domain_distribute, shape, count)
    found, total, left = distributed(shape, count)
    if left > 1:
        size = product(validate(shape, "shape"))
        raise refusal(
            "LA167",
            "the count cannot be spread over the shape",
            f"domain_distribute({shape_text(validate(shape, 'shape'))}, {total})",
            f"{total} does not divide the size {size}; only {total // left} can be taken",
            {"found": total // left, "left": left},
        )
    return found


def distributed(shape: IntTuple, count: int) -> tuple[CuteLayout, int, int]:
    """Return the coordinates found, the validated count, and the factor by which they fall short."""
    extents = flatten(validate(shape, "shape"))
    total = integer(count, "count", "LA166")
    if any(extent < 1 for extent in extents) or total < 1:
        raise malformed("shape, count", "must be at least 1", (validate(shape, "shape"), total), "LA166")
    digits: list[tuple[int, int]] = []
    left, weight = total, 1
    for extent in extents:
        taken = gcd(extent, left)
        digits.append((taken, weight))
        left //= taken
        weight *= extent
    return from_flat(merge(tuple(digits))), total, left
