"""Fix some coordinates of a layout: slices, their offsets, and the dropped part.

Notation: a coordinate has None, written ``_``, for kept modes and integers for fixed ones.

Main statements: if c fixes some modes of x, L(x) = L(c with _ at 0) + slice(c, L)(the rest of x).

References: CuTe ``slice``, ``dice``, ``slice_and_offset``, ``domain_offset``.
"""

from __future__ import annotations

from typing import TypeAlias, cast

from layoutalg.cute.algebra import lift, make_layout
from layoutalg.cute.composed import ComposedLayout, Cute, bottom, shift
from layoutalg.cute.conventions import STRICT, Convention, by_convention
from layoutalg.cute.inttuple import IntTuple, flatten, integer, product, shape_text, validate
from layoutalg.cute.inttuple import unflatten as nest
from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.operands import Under, composed, refusal
from layoutalg.ground.digits import split
from layoutalg.ground.errors import Diagnostic, MalformedError, shown
from layoutalg.ground.limits import TUPLE_DEPTH

Coord: TypeAlias = "int | tuple[Coord, ...] | None"


def slice(coord: Coord, layout: Under, *, convention: Convention = STRICT) -> Under:
    """Return the modes of ``layout`` where ``coord`` is None.

    Mathematically: R with L(x) = L(x with kept modes at 0) + R(kept part of x). Kept modes inside a nested mode move up
    one level, as in CuTe.

    Args:
        coord: None to keep everything; an int, fixing the whole mode by its 1-D coordinate; or a tuple of such entries,
            one per mode.
        layout: A layout. A swizzled one is not additive over its modes, so the offset of the fixed part stays under the
            innermost swizzle: R(kept part of x) = L(x).
        convention: ``"pycute"`` wraps the result of a bare None in one more level; otherwise all conventions agree.

    Returns:
        The kept modes; ``():()`` if there are none. The offset of the fixed part is dropped; ``slice_and_offset`` keeps
        it.

    Raises: MalformedError: LA156, LA144. AdmissibilityError: LA157.

    Example:
        >>> layout = CuteLayout((4, (2, 3)), (6, (3, 1)))
        >>> print(slice((1, None), layout), slice((None, (None, 2)), layout), slice(None, layout))
        ((2,3)):((3,1)) (4,2):(6,3) (4,(2,3)):(6,(3,1))
        >>> print(slice(None, CuteLayout((4, 8)), convention="pycute"))
        ((4,8)):((1,4))
        >>> from layoutalg.cute.swizzle import Swizzle
        >>> print(slice((None, 1), ComposedLayout(Swizzle(1, 0, 1), 0, CuteLayout((2, 4)))))
        Sw<1,0,1> o 2 o (2):(1)

    Source: CuTe ``slice``; pycute ``slice_``.
    """
    if convention is not STRICT:
        return cast(Under, by_convention(convention, slice, coord, layout))
    if isinstance(composed(layout, "slice"), ComposedLayout):
        return cast(Under, slice_and_offset(coord, layout))

    def sliced(base: CuteLayout) -> CuteLayout:
        _fixed(coord, base, f"slice({coord_text(coord)}, {base})", 0)
        return base if coord is None else make_layout(*_kept(coord, base, True))

    return lift(layout, sliced, "slice")


def dice(coord: Coord, layout: Under) -> Under:
    """Return the modes of ``layout`` where ``coord`` is an integer: those that ``slice`` drops.

    Args:
        coord: As in ``slice``.
        layout: A layout; swizzles are kept, over the remaining modes.

    Raises: As ``slice``.

    Example:
        >>> layout = CuteLayout((4, (2, 3)), (6, (3, 1)))
        >>> print(dice((1, None), layout), dice((None, (None, 2)), layout), dice(5, layout))
        (4):(6) (3):(1) (4,(2,3)):(6,(3,1))
    """

    def diced(base: CuteLayout) -> CuteLayout:
        _fixed(coord, base, f"dice({coord_text(coord)}, {base})", 0)
        return make_layout(*_kept(coord, base, False)) if isinstance(coord, tuple) or coord is None else base

    return lift(composed(layout, "dice"), diced, "dice")


def slice_and_offset(coord: Coord, layout: Cute) -> ComposedLayout:
    """Return the kept modes together with the offset of the fixed ones.

    Mathematically: (o, R) with L(x) = o + R(kept part of x) for every x that agrees with ``coord``. For a swizzled
    layout the offset is added under the innermost swizzle.

    Args and errors as in ``slice``.

    Example:
        >>> print(slice_and_offset((1, None), CuteLayout((4, 8), (8, 1))))
        8 + (8):(1)
        >>> from layoutalg.cute.swizzle import Swizzle
        >>> print(slice_and_offset((None, 1), ComposedLayout(Swizzle(1, 0, 1), 0, CuteLayout((2, 4)))))
        Sw<1,0,1> o 2 o (2):(1)
    """
    base = bottom(composed(layout, "slice_and_offset"))
    offset = _fixed(coord, base, f"slice({coord_text(coord)}, {layout})", 0)
    rest = base if coord is None else make_layout(*_kept(coord, base, True))
    return moved(layout, rest, offset)


def moved(layout: Cute, base: CuteLayout, offset: int) -> ComposedLayout:
    """Return ``offset + base`` under the stages of ``layout``."""
    return layout.rebase(base, offset) if isinstance(layout, ComposedLayout) else shift(base, offset)


def domain_offset(coord: IntTuple, layout: Cute, *, convention: Convention = STRICT) -> ComposedLayout:
    """Return the layout starting at ``coord``.

    Mathematically: c -> L(coord + c), leaf by leaf. Each extent is shortened to what remains after the coordinate, so
    the result stays inside L.

    Args:
        coord: A coordinate inside the layout; a 1-D coordinate of a mode is split into its digits.
        layout: A layout; for a swizzled one the offset is added under the innermost swizzle.
        convention: ``"cute_cpp"`` keeps the shape, so the result reads past the end of a mode.

    Raises: MalformedError: LA156. AdmissibilityError: LA157.

    Example:
        >>> print(domain_offset((1, 2), CuteLayout((4, 8), (8, 1))))
        10 + (3,6):(8,1)
        >>> print(domain_offset((1, 2), CuteLayout((4, 8), (8, 1)), convention="cute_cpp"))
        10 + (4,8):(8,1)
    """
    if convention is not STRICT:
        return by_convention(convention, domain_offset, coord, layout)
    base, start, offset = domain_start(coord, layout)
    digits = _digits(start, base.shape)
    left = tuple([extent - digit for (extent, _), digit in zip(base.flat, digits, strict=True)])
    return moved(layout, CuteLayout(nest(left, base.shape), base.stride), offset)


def domain_start(coord: IntTuple, layout: Cute) -> tuple[CuteLayout, IntTuple, int]:
    """Return the layout under all stages, the validated coordinate and its offset there."""
    start = validate(coord, "coordinate")
    base = bottom(composed(layout, "domain_offset"))
    return base, start, _fixed(start, base, f"domain_offset({shape_text(start)}, {layout})", 0)


def coord_text(coord: object) -> str:
    """Return a coordinate in CuTe notation.

    Example:
        >>> coord_text((1, (None, 2)))
        '(1,(_,2))'
    """
    if coord is None:
        return "_"
    if isinstance(coord, tuple):
        text = "(" + ",".join([coord_text(entry) for entry in coord[:32]]) + ")"
        return text if len(text) <= 120 else text[:117] + "..."
    return shown(coord)


def _fixed(coord: Coord, layout: CuteLayout, where: str, level: int) -> int:
    """Return the offset of the fixed part, or raise if the coordinate does not fit."""
    if coord is None:
        return 0
    if isinstance(coord, tuple):
        if isinstance(layout.shape, int) or len(coord) != layout.rank or level >= TUPLE_DEPTH:
            modes = "no modes" if isinstance(layout.shape, int) else f"{layout.rank} modes"
            because = f"{coord_text(coord)} has {len(coord)} entries; {shape_text(layout.shape)} has {modes}"
            raise MalformedError(Diagnostic("LA156", "the coordinate does not fit the layout", (where,), because))
        return sum([_fixed(entry, layout[position], where, level + 1) for position, entry in enumerate(coord)])
    value = integer(coord, "coordinate", "LA156")
    if not 0 <= value < layout.size:
        raise refusal(
            "LA157",
            "the coordinate lies outside the layout",
            where,
            f"{value} is not in [0, {layout.size}), the extent of {shape_text(layout.shape)}",
            {"coordinate": value, "size": layout.size},
        )
    return layout(value)


def _kept(coord: Coord, layout: CuteLayout, blank: bool) -> list[CuteLayout]:
    """Return the modes at None (``blank``) or at integers, moved up to one level."""
    if isinstance(coord, tuple):
        return [mode for position, entry in enumerate(coord) for mode in _kept(entry, layout[position], blank)]
    return [layout] if (coord is None) == blank else []


def _digits(coord: IntTuple, shape: IntTuple) -> list[int]:
    if isinstance(coord, tuple) and isinstance(shape, tuple):
        return [digit for c, s in zip(coord, shape, strict=True) for digit in _digits(c, s)]
    return list(split(product(coord), flatten(shape))[0])
