"""Reinterpret a layout in wider or narrower elements.

Notation: a wide element holds N narrow ones; offset j in wide elements covers the narrow offsets N j, ..., N j + N - 1.

Main statements: upcast(L, N) = U exists if each mode k splits into g_k times a rest so that the inner parts together
are exactly the offsets 0, ..., N - 1, and N U(c) = L(g c). The inner parts then follow the chain 1, g, g g', ...
through whole modes (the last one possibly in part), and every other stride is a multiple of N, so the question is
decided mode by mode. downcast is the inverse: the mode of stride 1 absorbs the new elements.

References: CuTe ``upcast``, ``downcast``, ``recast_layout``, ``max_alignment``.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import overload

from layoutalg.cute.fit import simplify
from layoutalg.cute.inttuple import integer, malformed, unflatten
from layoutalg.cute.layout import CuteLayout, from_runs
from layoutalg.cute.operands import refusal, require_cute
from layoutalg.cute.swizzle import ComposedLayout, Cute, staged
from layoutalg.ground.digits import Flat
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, RepresentabilityError


@overload
def upcast(layout: CuteLayout, factor: int) -> CuteLayout: ...
@overload
def upcast(layout: ComposedLayout, factor: int) -> Cute: ...
def upcast(layout: Cute, factor: int) -> Cute:
    """Return the layout, with the same nesting, in elements ``factor`` times larger.

    Mathematically: N U(c) + r, 0 <= r < N, takes exactly the offsets of L with the same multiplicity; the extent of
    mode k is divided by the number of its old elements inside one new element.

    Args:
        layout: A layout, or a swizzled one, whose swizzles then act on the new offsets. Old elements.
        factor: N >= 1.

    Example:
        >>> print(upcast(CuteLayout((8, 4), (1, 16)), 4), upcast(CuteLayout((2, 4), (4, 1)), 2))
        (2,4):(1,4) (2,2):(2,1)
        >>> from layoutalg.cute.swizzle import Swizzle
        >>> print(upcast(ComposedLayout(Swizzle(3, 4, 3), 0, CuteLayout((8, 64), (64, 1))), 2))
        Sw<3,3,3> o 0 o (8,32):(32,1)

    Laws: downcast(upcast(L, N), N) has the offsets of L.
    """
    count = _checked_factor(factor)
    where = f"upcast({require_cute(layout, 'upcast')}, {count})"
    try:
        return _wider(layout, count, where)
    except (AdmissibilityError, RepresentabilityError):
        fewer = simplify(layout)  # a swizzle without effect here does not split elements either
        if fewer == layout:
            raise
        return _wider(fewer, count, where)


def _wider(layout: Cute, count: int, where: str) -> Cute:
    _require_power_of_two(layout, count, where)
    low = count.bit_length() - 1
    for swizzle, offset in reversed(layout.stages):
        if offset % count:
            raise refusal("LA647", _NO_FORM, where, f"the offset {offset} is not a multiple of {count}")
        if swizzle.bits and swizzle.base < low:
            because = f"{swizzle} moves bit {swizzle.base}, which is inside an element of {count}"
            raise refusal("LA647", _NO_FORM, where, because)
    stages = [(swizzle.raised(-low), offset // count) for swizzle, offset in layout.stages]
    return staged(stages, _wider_strided(layout.base, count, where))


_NO_FORM = "the layout has no exact form in elements of that width"


def _require_power_of_two(layout: Cute, count: int, where: str) -> None:
    if count & (count - 1) and any(swizzle.bits for swizzle, _ in layout.stages):
        because = f"{count} is not a power of two, so elements do not fill whole address bits"
        raise refusal("LA647", _NO_FORM, where, because)


def _wider_strided(layout: CuteLayout, count: int, where: str) -> CuteLayout:
    if count == 1:
        return layout
    if layout.size == 0:
        strides = tuple([stride // count if stride % count == 0 else 0 for _, stride in layout.flat])
        return CuteLayout(layout.shape, unflatten(strides, layout.shape))
    return from_runs(
        [(mode,) for mode in wider(layout.flat, inner_counts(layout.flat, count, where), count)], layout.shape
    )


def wider(flat: Flat, inner: Sequence[int], count: int) -> Flat:
    """Rescale the modes to elements ``count`` times larger; inner[k] old elements of mode k lie in one new element."""
    modes: list[tuple[int, int]] = []
    for (extent, stride), taken in zip(flat, inner, strict=True):
        left = extent // taken
        # an extent-1 mode is never stepped: print the stride that CuTe prints, rounded away from 0
        unused = -(-stride // count) if stride > 0 else stride // count
        modes.append((left, taken * stride // count if left > 1 else unused))
    return tuple(modes)


def inner_counts(flat: Flat, count: int, where: str) -> list[int]:
    """Return how many old elements of each mode lie in one new element, or raise."""
    inner = [1] * len(flat)
    loose: list[tuple[int, int]] = []
    for position, (extent, stride) in enumerate(flat):
        if extent > 1 and stride % count:
            second = any(stride == known for known, _ in loose)
            if second or stride < 0:
                reason = "a second mode has it" if second else "a negative stride cannot be inside an element"
                raise _partial(where, count, f"stride {stride} is not a multiple of {count}, and {reason}", stride)
            loose.append((stride, position))
    current = 1
    for stride, position in sorted(loose):
        if stride != current or current >= count:
            continue
        loose.remove((stride, position))
        extent = flat[position][0]
        room = count // current
        if room % extent == 0:
            inner[position] = extent
        elif extent % room == 0:
            inner[position] = room
        else:
            because = f"the mode {extent}:{current} must fill {room} places of an element, but neither of {extent} and "
            raise _partial(where, count, f"{because}{room} divides the other", current)
        current *= inner[position]
    if current != count:
        raise _partial(where, count, f"no mode reaches offset {current} of the new element 0", current)
    if loose:
        stride = min(loose)[0]
        raise _partial(where, count, f"stride {stride} is not a multiple of {count} and not part of an element", stride)
    return inner


def _partial(where: str, count: int, because: str, offset: int) -> RepresentabilityError:
    witness = {"offset": offset, "factor": count}
    return RepresentabilityError(
        Diagnostic("LA161", f"a wide element of {count} would be only partly covered", (where,), because, witness)
    )


@overload
def downcast(layout: CuteLayout, factor: int) -> CuteLayout: ...
@overload
def downcast(layout: ComposedLayout, factor: int) -> Cute: ...
def downcast(layout: Cute, factor: int) -> Cute:
    """Return the layout, with the same nesting, in elements ``factor`` times smaller.

    Mathematically: D with D(c) = N L(c') + r, where the digit of one mode k is N c'_k + r and all others are those of
    c'. Mode k is the first with stride 1 and extent above 1; failing that the first with extent 1, preferably stride 1.

    Args:
        layout: A layout, or a swizzled one, whose swizzles then act on the new offsets. Old elements.
        factor: N >= 1.

    Example:
        >>> print(downcast(CuteLayout((2, 4), (1, 4)), 4))
        (8,4):(1,16)

    Laws: upcast(downcast(L, N), N) = L up to the strides of extent-1 modes.
    """
    count = _checked_factor(factor)
    where = f"downcast({require_cute(layout, 'downcast')}, {count})"
    narrow = _narrower(layout.base, count, where)
    _require_power_of_two(layout, count, where)
    low = count.bit_length() - 1
    return staged([(swizzle.raised(low), offset * count) for swizzle, offset in layout.stages], narrow)


def _narrower(layout: CuteLayout, count: int, where: str) -> CuteLayout:
    if count == 1:
        return layout
    flat = narrower(layout.flat, _widened(layout, where), count)
    if layout.size == 0:
        flat = tuple([(extent, 0) for extent, _ in flat])
    runs = [((extent, 0 if extent == 1 and abs(stride) >= 2**62 else stride),) for extent, stride in flat]
    return from_runs(runs, layout.shape)


def narrower(flat: Flat, position: int, count: int) -> Flat:
    """Rescale the modes to elements ``count`` times smaller; the mode at ``position`` absorbs them."""
    modes = [(extent, stride * count) for extent, stride in flat]
    modes[position] = (flat[position][0] * count, 1)
    return tuple(modes)


def _widened(layout: CuteLayout, where: str) -> int:
    for position, (extent, stride) in enumerate(layout.flat):
        if stride == 1 and extent > 1:
            return position
    single = [position for position, (extent, _) in enumerate(layout.flat) if extent == 1]
    marked = [position for position in single if layout.flat[position][1] == 1]
    if single:
        return (marked or single)[0]
    if layout.size == 0:
        return 0
    because = f"{layout} has no mode of stride 1 and none of extent 1 to run through the old element"
    what, source = "no mode can absorb the new elements", "append(layout) adds such a mode, 1:0"
    raise RepresentabilityError(Diagnostic("LA162", what, (where,), because, source=source))


@overload
def recast(layout: CuteLayout, old_bits: int, new_bits: int) -> CuteLayout: ...
@overload
def recast(layout: ComposedLayout, old_bits: int, new_bits: int) -> Cute: ...
def recast(layout: Cute, old_bits: int, new_bits: int) -> Cute:
    """Return the layout of elements of ``old_bits`` read as elements of ``new_bits``.

    Mathematically: downcast to the greatest common width, then upcast; the same bits of memory, equally often.

    Args:
        layout: A layout. Elements of ``old_bits``.
        old_bits: Width of an element of ``layout``, >= 1. Bits.
        new_bits: Width of an element of the result, >= 1. Bits.

    Raises: As ``upcast`` and ``downcast``; MalformedError: LA160 also for a width that is not an integer >= 1.

    Example:
        >>> print(recast(CuteLayout((64, 8), (1, 64)), 8, 16), recast(CuteLayout((8, 3), (1, 8)), 6, 8))
        (32,8):(1,32) (6,3):(1,6)
    """
    old, new = _checked_factor(old_bits, "old_bits"), _checked_factor(new_bits, "new_bits")
    common = gcd(old, new)
    return upcast(downcast(layout, old // common), new // common)


def max_alignment(layout: CuteLayout | ComposedLayout) -> int:
    """Return the greatest N for which ``upcast(layout, N)`` is exact.

    Mathematically: the largest aligned block of elements that the layout always takes as a whole. Under swizzles and
    offsets N divides every offset, and is a power of two below every bit that a swizzle moves.

    Args:
        layout: A non-empty layout, possibly swizzled. Elements.

    Complexity: O(k^2) for k modes; for a swizzled layout as ``simplify``.

    Example:
        >>> [max_alignment(CuteLayout(*pair)) for pair in (((8, 4), (1, 24)), ((8, 4), (1, 12)), (4, 2))]
        [8, 4, 1]
        >>> from layoutalg.cute.swizzle import Swizzle
        >>> max_alignment(ComposedLayout(Swizzle(3, 3, 3), 0, CuteLayout((8, 64), (64, 1))))
        8
    """
    if require_cute(layout, "max_alignment").size == 0:
        raise refusal("LA163", "the layout is empty", f"max_alignment({layout})", "every factor would be exact")
    best = 1
    for form in (layout, simplify(layout)):  # a swizzle without effect here does not limit it
        limits = [1 << swizzle.base for swizzle, _ in form.stages if swizzle.bits]
        limits += [offset for _, offset in form.stages]
        best = max(best, _alignment(form.base, gcd(*limits)))
    return best


def _alignment(layout: CuteLayout, limit: int) -> int:
    """Return the greatest divisor N of ``limit`` for which ``upcast(layout, N)`` is exact."""
    modes = [(extent, stride) for extent, stride in layout.flat if extent > 1 and stride]
    best = current = 1
    while True:
        found = [position for position, (_, stride) in enumerate(modes) if stride == current]
        if not found:
            return best
        extent = modes.pop(found[0])[0]
        rest = gcd(limit, *[stride for _, stride in modes])
        if rest % current == 0:
            best = max(best, current * gcd(extent, rest // current))
        current *= extent


def _checked_factor(value: int, name: str = "factor") -> int:
    """Return a factor >= 1, or raise."""
    count = integer(value, name, "LA160")
    if count < 1:
        raise malformed(name, "must be at least 1", count, "LA160")
    return count
