"""Rearrange the modes of a layout.

Main statements: each result is the layout after a map of its coordinates, so this works for swizzled and coordinate
layouts too. ``group`` and ``unflatten`` keep the function of the 1-D coordinate; ``select`` and ``take`` restrict it to
the kept modes, with the others at 0.

References: CuTe ``group``, ``select``, ``take``, ``append``, ``prepend``, ``replace``.
"""

from __future__ import annotations

from layoutalg.cute import inttuple
from layoutalg.cute.algebra import lift, make_layout, rearrange
from layoutalg.cute.inttuple import IntTuple, integer, malformed, shape_text, validate
from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.operands import AnyLayout, Under, composed
from layoutalg.ground.limits import TUPLE_MODES


def group(layout: AnyLayout, begin: int, end: int) -> AnyLayout:
    """Group the modes begin, ..., end - 1 into one mode.

    Raises: MalformedError: LA155.

    Example:
        >>> print(group(CuteLayout((2, 3, 5, 7)), 1, 3))
        (2,(3,5),7):(1,(2,6),30)

    Laws: same function of the 1-D coordinate.
    """

    def grouped(base: CuteLayout) -> CuteLayout:
        first, last = _range(base, begin, end)
        modes = list(base)
        return make_layout(*modes[:first], make_layout(*modes[first:last]), *modes[last:])

    return rearrange(layout, grouped, "group")


def select(layout: AnyLayout, *modes: int) -> AnyLayout:
    """Return the layout with the given modes, in the given order.

    Raises: MalformedError: LA107, LA155.

    Example:
        >>> print(select(CuteLayout((2, 3, 5)), 2, 0))
        (5,2):(6,1)
    """
    chosen = [integer(mode, "mode", "LA107") for mode in modes]
    if len(set(chosen)) != len(chosen):
        raise malformed("modes", "must name each mode at most once", modes, "LA155")
    return rearrange(layout, lambda base: make_layout(*[base[mode] for mode in chosen]), "select")


def take(layout: AnyLayout, begin: int, end: int) -> AnyLayout:
    """Return the modes begin, ..., end - 1 as a layout.

    Raises: MalformedError: LA155.

    Example:
        >>> print(take(CuteLayout((2, 3, 5)), 1, 3))
        (3,5):(2,6)
    """

    def taken(base: CuteLayout) -> CuteLayout:
        first, last = _range(base, begin, end)
        return make_layout(*list(base)[first:last])

    return rearrange(layout, taken, "take")


def append(layout: Under, mode: CuteLayout | None = None, rank: int | None = None) -> Under:
    """Append ``mode`` once, or until the layout has ``rank`` modes.

    Args:
        layout: A layout, possibly swizzled; an int shape counts as one mode.
        mode: Default ``1:0``.
        rank: None to append once; otherwise the target rank, at least that of the layout.

    Raises: MalformedError: LA155, LA192.

    Example:
        >>> print(append(CuteLayout((4, 8)), CuteLayout(2, 32)), append(CuteLayout(4), rank=3))
        (4,8,2):(1,4,32) (4,1,1):(1,0,0)
    """

    def appended(base: CuteLayout) -> CuteLayout:
        extra = _extra(base, mode, rank)
        return make_layout(*base, *extra) if extra else base

    return lift(composed(layout, "append"), appended)


def prepend(layout: Under, mode: CuteLayout | None = None, rank: int | None = None) -> Under:
    """Prepend ``mode`` once, or until the layout has ``rank`` modes.

    Args and errors as in ``append``.

    Example:
        >>> print(prepend(CuteLayout((4, 8)), CuteLayout(2, 32)))
        (2,4,8):(32,1,4)
    """

    def prepended(base: CuteLayout) -> CuteLayout:
        extra = _extra(base, mode, rank)
        return make_layout(*extra, *base) if extra else base

    return lift(composed(layout, "prepend"), prepended)


def replace(layout: Under, position: int, mode: CuteLayout) -> Under:
    """Replace one top-level mode.

    Raises: MalformedError: LA107, LA155, LA192.

    Example:
        >>> print(replace(CuteLayout((4, 8)), 1, CuteLayout((2, 2), (4, 16))))
        (4,(2,2)):(1,(4,16))
    """
    if not isinstance(mode, CuteLayout):
        raise malformed("mode", "must be a CuteLayout", mode, "LA155")

    def replaced(base: CuteLayout) -> CuteLayout:
        modes = list(base)
        base[position]  # raises for a mode that does not exist
        modes[integer(position, "position")] = mode
        return make_layout(*modes)

    return lift(composed(layout, "replace"), replaced)


def unflatten(layout: AnyLayout, profile: IntTuple) -> AnyLayout:
    """Return the leaves of the layout nested like ``profile``; only the structure of ``profile`` counts.

    Raises: MalformedError: LA155.

    Example:
        >>> print(unflatten(CuteLayout((2, 3, 5)), (0, (0, 0))))
        (2,(3,5)):(1,(2,6))

    Laws: same function of the 1-D coordinate; ``flatten`` undoes it.
    """
    nested = validate(profile, "profile")

    def unflattened(base: CuteLayout) -> CuteLayout:
        leaves = len(inttuple.flatten(nested))
        if leaves != len(base.flat):
            raise malformed(
                "profile", f"must have {len(base.flat)} leaves, as many as {shape_text(base.shape)}", nested, "LA155"
            )
        return CuteLayout(
            inttuple.unflatten(tuple([extent for extent, _ in base.flat]), nested),
            inttuple.unflatten(tuple([stride for _, stride in base.flat]), nested),
        )

    return rearrange(layout, unflattened, "unflatten")


def _range(layout: CuteLayout, begin: int, end: int) -> tuple[int, int]:
    first, last = integer(begin, "begin", "LA155"), integer(end, "end", "LA155")
    if not 0 <= first < last <= layout.rank:
        raise malformed("begin, end", f"must satisfy 0 <= begin < end <= {layout.rank}", (first, last), "LA155")
    return first, last


def _extra(layout: CuteLayout, mode: CuteLayout | None, rank: int | None) -> list[CuteLayout]:
    if mode is not None and not isinstance(mode, CuteLayout):
        raise malformed("mode", "must be a CuteLayout", mode, "LA155")
    added = CuteLayout(1, 0) if mode is None else mode
    if rank is None:
        return [added]
    target = integer(rank, "rank", "LA155")
    if not layout.rank <= target <= TUPLE_MODES:
        raise malformed("rank", f"must be in [{layout.rank}, {TUPLE_MODES}]", target, "LA155")
    return [added] * (target - layout.rank)
