"""Reading a layout in wider or narrower elements.

Main definitions: ``upcast``, ``downcast``, ``recast``, ``max_alignment``.

Notation: a wide element holds N narrow ones; offset j in wide elements covers the narrow offsets N j, ..., N j + N - 1.

Main statements: upcast(L, N) = U exists where each mode k splits as g_k times a rest such that the inner parts
together are exactly the offsets 0, ..., N - 1 and N U(c) = L(g c). The inner parts then follow the chain 1, g, g g',
... through modes that are used up, the last one perhaps in part, and every other stride is a multiple of N; so the
answer is decided mode by mode. downcast inverts it: one mode, that of stride 1, takes the new elements.

References: CuTe ``upcast``, ``downcast``, ``recast_layout``, ``max_alignment``.
"""

from __future__ import annotations

from math import gcd
from typing import overload

from layoutalg.cute.composed import ComposedLayout
from layoutalg.cute.conventions import Parity, check_parity
from layoutalg.cute.inttuple import integer, malformed, unflatten
from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.operand import plain, swizzled
from layoutalg.cute.tilers import refusal
from layoutalg.ground.errors import Diagnostic, RepresentabilityError


@overload
def upcast(layout: CuteLayout, factor: int, parity: Parity = "strict") -> CuteLayout: ...
@overload
def upcast(layout: ComposedLayout, factor: int, parity: Parity = "strict") -> CuteLayout | ComposedLayout: ...
def upcast(layout: CuteLayout | ComposedLayout, factor: int, parity: Parity = "strict") -> CuteLayout | ComposedLayout:
    """Return the layout in elements that hold ``factor`` of the old ones.

    Mathematically: U with N U(c) + r running over exactly the offsets of L, each as often as L takes it; mode k of U
    has its extent divided by the number of its old elements inside one new element.

    Args:
        layout: A layout, or a swizzled one: its swizzles then act on the new offsets. Old elements.
        factor: N >= 1.
        parity: ``"strict"`` refuses where a new element would be filled in part. ``"cute_cpp"`` rounds extents up as
            CuTe C++ does (``3:1`` by 2 is ``2:1``, half an element too many) and refuses only where a stride and N do
            not divide one another. pycute has no such function, a swizzled layout no such rounding: both follow strict.

    Returns:
        Layout with the nesting of ``layout``. New elements.

    Raises: MalformedError: LA160, LA144. RepresentabilityError: LA161. AdmissibilityError: LA161, LA647.

    Example:
        >>> print(upcast(CuteLayout((8, 4), (1, 16)), 4))
        (2,4):(1,4)
        >>> print(upcast(CuteLayout((2, 4), (4, 1)), 2))
        (2,2):(2,1)
        >>> print(upcast(CuteLayout(3), 2, parity="cute_cpp"))
        2:1
        >>> from layoutalg.cute.swizzle import Swizzle
        >>> print(upcast(ComposedLayout(Swizzle(3, 4, 3), 0, CuteLayout((8, 64), (64, 1))), 2))
        Sw<3,3,3> o 0 o (8,32):(32,1)

    Laws: downcast(upcast(L, N), N) has the offsets of L.
    Source: CuTe ``upcast``.
    """
    count = _factor(factor)
    if isinstance(layout, ComposedLayout):
        from layoutalg.cute.swizzled_recast import upcast_composed

        check_parity(parity)
        return upcast_composed(layout, count)
    where = f"upcast({plain(layout, 'upcast')}, {count})"
    if check_parity(parity) == "cute_cpp":
        return _rounded(layout, count, where)
    if count == 1:
        return layout
    if layout.size == 0:
        strides = tuple([stride // count if stride % count == 0 else 0 for _, stride in layout.flat])
        return CuteLayout(layout.shape, unflatten(strides, layout.shape))
    inner = _inner_counts(layout, count, where)
    extents: list[int] = []
    strides_out: list[int] = []
    for (extent, stride), taken in zip(layout.flat, inner, strict=True):
        left = extent // taken
        extents.append(left)
        if left > 1:
            strides_out.append(taken * stride // count)
        else:  # no step is taken; show what CuTe shows
            strides_out.append(_away(stride, count))
    return CuteLayout(unflatten(tuple(extents), layout.shape), unflatten(tuple(strides_out), layout.shape))


def _inner_counts(layout: CuteLayout, count: int, where: str) -> list[int]:
    """Return how many old elements of each mode lie in one new element, or refuse."""
    inner = [1] * len(layout.flat)
    loose: dict[int, int] = {}
    for position, (extent, stride) in enumerate(layout.flat):
        if extent > 1 and stride % count:
            if stride in loose or stride < 0:
                reason = "a second mode has it" if stride in loose else "negative strides cannot lie inside an element"
                raise _partial(where, count, f"stride {stride} is no multiple of {count}, and {reason}", stride)
            loose[stride] = position
    current = 1
    while current < count and current in loose:
        position = loose.pop(current)
        extent = layout.flat[position][0]
        room = count // current
        if room % extent == 0:
            inner[position] = extent
        elif extent % room == 0:
            inner[position] = room
        else:
            raise _partial(
                where,
                count,
                f"the mode {extent}:{current} leaves {room} places in an element, and {extent} and {room} "
                "do not divide one another",
                current,
            )
        current *= inner[position]
    if current != count:
        raise _partial(where, count, f"offset {current} of the new element 0 is not reached by the next mode", current)
    if loose:
        stride = min(loose)
        raise _partial(where, count, f"stride {stride} is no multiple of {count} and lies off the element", stride)
    return inner


def _away(stride: int, count: int) -> int:
    """Return stride / count rounded away from 0."""
    return -(-stride // count) if stride > 0 else stride // count


def _partial(where: str, count: int, because: str, offset: int) -> RepresentabilityError:
    return RepresentabilityError(
        Diagnostic(
            code="LA161",
            what=f"some elements of {count} old ones would be filled in part",
            where=(where,),
            because=because,
            witness={"offset": offset, "factor": count},
        )
    )


def _rounded(layout: CuteLayout, count: int, where: str) -> CuteLayout:
    extents: list[int] = []
    strides: list[int] = []
    for extent, stride in layout.flat:
        if stride == 0 or stride % count == 0:
            extents.append(extent)
        elif count % stride == 0:
            extents.append(-(-extent // (count // abs(stride))))
        else:
            because = f"stride {stride} and {count} do not divide one another"
            raise refusal("LA161", "CuTe C++ refuses this recast", where, because, {"stride": stride, "factor": count})
        strides.append(_away(stride, count))
    return CuteLayout(unflatten(tuple(extents), layout.shape), unflatten(tuple(strides), layout.shape))


@overload
def downcast(layout: CuteLayout, factor: int, parity: Parity = "strict") -> CuteLayout: ...
@overload
def downcast(layout: ComposedLayout, factor: int, parity: Parity = "strict") -> CuteLayout | ComposedLayout: ...
def downcast(
    layout: CuteLayout | ComposedLayout, factor: int, parity: Parity = "strict"
) -> CuteLayout | ComposedLayout:
    """Return the layout in elements of which ``factor`` fit into an old one.

    Mathematically: D with D(c) = N L(c') + r, where the digit of one mode k is N c'_k + r and all others are those of
    c'. Mode k is the first of stride 1 and extent above 1, or else the first of extent 1.

    Args:
        layout: A layout, or a swizzled one: its swizzles then act on the new offsets. Old elements.
        factor: N >= 1.
        parity: ``"strict"`` refuses where no mode can take the new elements. ``"cute_cpp"`` widens every mode of stride
            1 or -1 and none where there is none, as CuTe C++ does. pycute has no such function, a swizzled layout no
            such convention: both follow strict.

    Returns:
        Layout with the nesting of ``layout``. New elements.

    Raises: MalformedError: LA160, LA102. RepresentabilityError: LA162. AdmissibilityError: LA647.

    Example:
        >>> print(downcast(CuteLayout((2, 4), (1, 4)), 4))
        (8,4):(1,16)

    Laws: upcast(downcast(L, N), N) = L up to the strides of extent-1 modes.
    Source: CuTe ``downcast``.
    """
    count = _factor(factor)
    if isinstance(layout, ComposedLayout):
        from layoutalg.cute.swizzled_recast import downcast_composed

        check_parity(parity)
        return downcast_composed(layout, count)
    where = f"downcast({plain(layout, 'downcast')}, {count})"
    if check_parity(parity) == "cute_cpp":
        pairs = [(extent * count, d) if abs(d) == 1 else (extent, d * count) for extent, d in layout.flat]
        return CuteLayout(
            unflatten(tuple([extent for extent, _ in pairs]), layout.shape),
            unflatten(tuple([stride for _, stride in pairs]), layout.shape),
        )
    if count == 1:
        return layout
    position = _widened(layout, where)
    extents = [extent * (count if place == position else 1) for place, (extent, _) in enumerate(layout.flat)]
    strides = [stride * count for _, stride in layout.flat]
    strides[position] = 1
    if layout.size == 0:
        strides = [0] * len(strides)
    for place, extent in enumerate(extents):
        if extent == 1 and abs(strides[place]) >= 2**62:
            strides[place] = 0
    return CuteLayout(unflatten(tuple(extents), layout.shape), unflatten(tuple(strides), layout.shape))


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
    raise RepresentabilityError(
        Diagnostic(
            code="LA162",
            what="no mode can take the new elements",
            where=(where,),
            because=f"{layout} has no mode of stride 1 and none of extent 1 that could run through the old element",
            source="append(layout) adds a mode 1:0 that can",
        )
    )


@overload
def recast(layout: CuteLayout, old_bits: int, new_bits: int, parity: Parity = "strict") -> CuteLayout: ...
@overload
def recast(
    layout: ComposedLayout, old_bits: int, new_bits: int, parity: Parity = "strict"
) -> CuteLayout | ComposedLayout: ...
def recast(
    layout: CuteLayout | ComposedLayout, old_bits: int, new_bits: int, parity: Parity = "strict"
) -> CuteLayout | ComposedLayout:
    """Return the layout of elements of ``old_bits`` read as elements of ``new_bits``.

    Mathematically: downcast to the greatest common width, then upcast; the same bits of memory, each as often.

    Args:
        layout: A layout. Elements of ``old_bits``.
        old_bits: Width of an element of ``layout``, >= 1. Bits.
        new_bits: Width of an element of the result, >= 1. Bits.
        parity: As in ``upcast`` and ``downcast``.

    Raises:
        As ``upcast`` and ``downcast``; MalformedError: LA160 also for a width that is no integer >= 1.

    Example:
        >>> print(recast(CuteLayout((64, 8), (1, 64)), 8, 16))
        (32,8):(1,32)
        >>> print(recast(CuteLayout((8, 3), (1, 8)), 6, 8))
        (6,3):(1,6)

    Source: CuTe ``recast_layout``.
    """
    old, new = _factor(old_bits, "old_bits"), _factor(new_bits, "new_bits")
    common = gcd(old, new)
    return upcast(downcast(layout, old // common, parity), new // common, parity)


def max_alignment(layout: CuteLayout | ComposedLayout) -> int:
    """Return the greatest N for which ``upcast(layout, N)`` is exact.

    Mathematically: the most elements that lie together, aligned, wherever the layout takes one of them. Under swizzles
    and offsets N divides every offset, and is a power of two that no swizzle reaches into.

    Args:
        layout: A layout that is not empty, or a swizzled one. Elements.

    Raises: MalformedError: LA192. AdmissibilityError: LA163.

    Complexity: O(k^2) for k modes; of a swizzled layout as ``simplify``.

    Example:
        >>> max_alignment(CuteLayout((8, 4), (1, 24))), max_alignment(CuteLayout((8, 4), (1, 12)))
        (8, 4)
        >>> max_alignment(CuteLayout(4, 2))
        1
        >>> from layoutalg.cute.swizzle import Swizzle
        >>> max_alignment(ComposedLayout(Swizzle(3, 3, 3), 0, CuteLayout((8, 64), (64, 1))))
        8

    Source: CuTe ``max_alignment``.
    """
    if swizzled(layout, "max_alignment").size == 0:
        raise refusal("LA163", "the layout is empty", f"max_alignment({layout})", "every factor would do")
    if isinstance(layout, CuteLayout):
        return _alignment(layout, 0)
    from layoutalg.cute.swizzled import simplify

    best = 1
    for form in (layout, simplify(layout)):  # a swizzle that does nothing here does not count
        stages = form.stages if isinstance(form, ComposedLayout) else ()
        limits = [1 << swizzle.base for swizzle, _ in stages if swizzle.bits] + [offset for _, offset in stages]
        best = max(best, _alignment(form.base if isinstance(form, ComposedLayout) else form, gcd(*limits)))
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


def _factor(value: int, name: str = "factor") -> int:
    count = integer(value, name, "LA160")
    if count < 1:
        raise malformed(name, "must be at least 1", count, "LA160")
    return count
