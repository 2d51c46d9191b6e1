"""Divide a layout by a tiler: logical, zipped, tiled and flat.

Main statements: with C = complement(T, size(A)), the pair (T, C) is a bijection onto [0, size(A)) once the stride-0
modes of T are dropped, and logical_divide(A, T) = A o (T, C). A layout R with that function exists if and only if C
exists, (T, C) ends at size(A), and the composition is a CuTe layout; each is decided without enumeration. C is unique,
because the least offset not yet covered must start the next copy of T.

Notation: ``A / T``; a tiler in angle brackets works mode by mode.

References: J. Cecka, arXiv:2603.02298; CuTe ``logical_divide``, ``zipped_divide``, ``tiled_divide``, ``flat_divide``.
"""

from __future__ import annotations

from collections.abc import Callable

from layoutalg.cute.algebra import lift, make_layout
from layoutalg.cute.complement import complement
from layoutalg.cute.compose_strided import after_strided
from layoutalg.cute.composed import ComposedLayout
from layoutalg.cute.conventions import STRICT, Convention, by_convention
from layoutalg.cute.coordinates import CoordinateLayout
from layoutalg.cute.inttuple import IntTuple
from layoutalg.cute.layout import CuteLayout, trusted
from layoutalg.cute.operands import (
    FAMILIES,
    AnyLayout,
    Tiler,
    Where,
    as_layout,
    by_mode,
    operand_refusal,
    read_tiler,
    refusal,
    tiler_text,
    weight,
    within,
)
from layoutalg.ground.cache import remembered
from layoutalg.ground.digits import evaluate, first_outside, span
from layoutalg.ground.errors import AdmissibilityError, RepresentabilityError

Split = Callable[[CuteLayout, "CuteLayout | int"], CuteLayout]


def logical_divide(layout: AnyLayout, tiler: Tiler, *, convention: Convention = STRICT) -> AnyLayout:
    """Return ``layout`` split into (tile, rest): mode 0 walks one tile, mode 1 walks from tile to tile.

    Mathematically: A o (T, C) with C = complement(T, size(A)). A tuple of tilers divides mode by mode; None and
    missing entries keep the mode.

    Args:
        layout: A layout of any family.
        tiler: A layout of 1-D coordinates of ``layout`` (or of its mode), an int n meaning ``n:1``, None, or a tuple.
        convention: For a tiler that does not divide, ``"cute_cpp"`` rounds the rest up mode by mode: the result is
            larger than the layout and may have offsets outside it. ``"pycute"`` bounds the rest by the size and
            only does pycute's divisibility check. Neither checks the function.

    Raises:
        MalformedError: LA141, LA144, LA192. AdmissibilityError: LA140, LA131 to LA134. RepresentabilityError: LA142,
        LA145. BudgetError: LA125.

    Complexity: as ``composition``; independent of the sizes.

    Example:
        >>> print(logical_divide(CuteLayout((4, 2, 3), (2, 1, 8)), CuteLayout(4, 2)))
        ((2,2),(2,3)):((4,1),(2,8))
        >>> print(logical_divide(CuteLayout((6, 4), (1, 10)), (2, 4)))
        ((2,3),(4,1)):((1,2),(10,0))
        >>> print(logical_divide(CuteLayout((6, 4), (1, 10)), 4, convention="cute_cpp"))
        (4,(2,4)):(1,(4,10))

    Laws: the table of the result is that of the layout, reordered by (T, C).
    """
    return _call(layout, tiler, convention, logical_divide)


def zipped_divide(layout: AnyLayout, tiler: Tiler, *, convention: Convention = STRICT) -> AnyLayout:
    """Return ``layout`` split into ((tile modes), (rest modes)).

    Mathematically: ``logical_divide`` with the tiles of all modes gathered in mode 0 and the rests in mode 1. Modes
    without a tiler go to the rest. None means a tile of one element, with the whole mode in the rest, as in pycute;
    CuTe C++ does not compile it.

    Args:
        layout: A layout of any family.
        tiler: As in ``logical_divide``; may nest.
        convention: As in ``logical_divide``; ``"cute_cpp"`` also rejects None.

    Raises: As ``logical_divide``; MalformedError: LA143, None under ``"cute_cpp"``.

    Example:
        >>> print(zipped_divide(CuteLayout((4, 6, 5)), (2, 3)))
        ((2,3),(2,2,5)):((1,4),(2,12,24))

    Laws: slicing mode 1 gives one tile; slicing mode 0 gives the same element of every tile.
    """
    return _call(layout, tiler, convention, zipped_divide)


def tiled_divide(layout: AnyLayout, tiler: Tiler, *, convention: Convention = STRICT) -> AnyLayout:
    """Return ``layout`` split into ((tile modes), rest mode, rest mode, ...).

    Args and errors as in ``zipped_divide``.

    Example:
        >>> print(tiled_divide(CuteLayout((4, 6, 5)), (2, 3)))
        ((2,3),2,2,5):((1,4),2,12,24)
    """
    return _call(layout, tiler, convention, tiled_divide)


def flat_divide(layout: AnyLayout, tiler: Tiler, *, convention: Convention = STRICT) -> AnyLayout:
    """Return ``layout`` split into (tile mode, tile mode, ..., rest mode, rest mode, ...).

    Args and errors as in ``zipped_divide``.

    Example:
        >>> print(flat_divide(CuteLayout((4, 6, 5)), (2, 3)))
        (2,3,2,2,5):(1,4,2,12,24)
    """
    return _call(layout, tiler, convention, flat_divide)


def tiled(zipped: CuteLayout) -> CuteLayout:
    """Unpack the second mode of a rank-2 layout."""
    (tile, rest), (tile_step, rest_step) = _modes(zipped.shape), _modes(zipped.stride)
    return trusted((tile, *_modes(rest)), (tile_step, *_modes(rest_step)), zipped.flat)


def flat(zipped: CuteLayout) -> CuteLayout:
    """Unpack both modes of a rank-2 layout."""
    (tile, rest), (tile_step, rest_step) = _modes(zipped.shape), _modes(zipped.stride)
    return trusted((*_modes(tile), *_modes(rest)), (*_modes(tile_step), *_modes(rest_step)), zipped.flat)


def _modes(value: IntTuple) -> tuple[IntTuple, ...]:
    return value if isinstance(value, tuple) else (value,)


def unzip(layout: CuteLayout, tiler: Tiler, split: Split, where: Where) -> CuteLayout:
    """Gather the first and the second parts of all modes into rank 2; ``split`` divides or multiplies one mode."""
    if tiler is None:
        return make_layout(CuteLayout(1, 0), layout)
    if not isinstance(tiler, tuple):
        return split(layout, tiler)
    by_mode(layout, tiler, where)
    parts = [unzip(layout[position], entry, split, where) for position, entry in enumerate(tiler)]
    kept = [layout[position] for position in range(len(tiler), layout.rank)]
    return make_layout(make_layout(*[part[0] for part in parts]), make_layout(*[part[1] for part in parts], *kept))


def shaped(name: str, layout: CuteLayout, tiler: Tiler, split: Split, where: Where) -> CuteLayout:
    """Return the divide or product called ``name``, given its ``split`` of one mode."""
    if name.startswith("logical"):
        return _by_mode(layout, tiler, split, where)
    zipped = unzip(layout, tiler, split, where)
    return tiled(zipped) if name.startswith("tiled") else flat(zipped) if name.startswith("flat") else zipped


def _call(layout: AnyLayout, tiler: Tiler, convention: Convention, operation: Callable[..., AnyLayout]) -> AnyLayout:
    """Divide a layout of any kind; repeated calls are cached."""
    if convention is not STRICT:
        return by_convention(convention, operation, layout, tiler)
    name = operation.__name__
    if not isinstance(layout, CuteLayout | ComposedLayout | CoordinateLayout):
        raise operand_refusal(layout, name, "layout", FAMILIES)
    return _divided(layout, read_tiler(tiler, lambda: f"{name}({layout}, {tiler_text(tiler)})"), name)


@remembered(weight)
def _divided(layout: AnyLayout, tiler: Tiler, name: str) -> AnyLayout:
    def where() -> str:
        return f"{name}({layout}, {tiler_text(tiler)})"

    def split(mode: CuteLayout, entry: CuteLayout | int) -> CuteLayout:
        return _divide(mode, as_layout(entry), where)

    return lift(layout, lambda base: shaped(name, base, tiler, split, where), name)


def _by_mode(layout: CuteLayout, tiler: Tiler, split: Split, where: Where) -> CuteLayout:
    if tiler is None:
        return layout
    if not isinstance(tiler, tuple):
        return split(layout, tiler)
    by_mode(layout, tiler, where)
    modes = [_by_mode(layout[position], entry, split, where) for position, entry in enumerate(tiler)]
    return make_layout(*modes, *[layout[position] for position in range(len(tiler), layout.rank)])


def _divide(layout: CuteLayout, tile: CuteLayout, where: Where) -> CuteLayout:
    """Return A o (T, C), or raise."""
    size = layout.size
    if size == 0:  # (T, C) covers nothing: C is empty
        return after_strided(layout, make_layout(tile, CuteLayout(0, 0)))
    low, high = span(tile.flat)
    if low < 0 or high >= size:
        raise _outside(layout, tile, tile, where)
    try:
        rest = complement(tile, size)
    except AdmissibilityError as error:
        raise within(error, where) from error
    whole = make_layout(tile, rest)
    if span(whole.flat)[1] >= size:
        raise _outside(layout, tile, whole, where)
    try:
        return after_strided(layout, whole)
    except RepresentabilityError as error:
        raise within(error, where, "LA142", "the divided layout is not a CuTe layout") from error


def _outside(layout: CuteLayout, tile: CuteLayout, whole: CuteLayout, where: Where) -> AdmissibilityError:
    """Return the error for a tiler that reaches past the layout, with the first such coordinate of (tile, rest)."""
    first = first_outside(whole.flat, layout.size) or 0
    element = evaluate(whole.flat, first)
    copy, inside = divmod(first, tile.size)
    return refusal(
        "LA140",
        "the tiler does not divide the layout",
        where,
        f"{tile} does not tile [0, {layout.size}): element {inside} of tile {copy} is {element}, which falls outside",
        {"coordinate": (inside, copy), "element": element, "size": layout.size},
    )
