"""Products of layouts: logical, zipped, tiled, flat, blocked and raked.

Main statements: logical_product(A, T) = (A, C o T) with C = complement(A, size(filter(A)) * cosize(T)). Copy j of A
starts at offset C(T(j)). C has the offsets where a copy of A fits without overlap, so distinct values of T give
disjoint copies.

Notation: ``A * T``; a tiler in angle brackets works mode by mode.

References: J. Cecka, arXiv:2603.02298; the CuTe products of the same names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from layoutalg.cute.algebra import make_layout
from layoutalg.cute.complement import complement
from layoutalg.cute.compose_strided import after_strided
from layoutalg.cute.composed import ComposedLayout, Cute
from layoutalg.cute.conventions import STRICT, Convention, by_convention
from layoutalg.cute.divide import shaped
from layoutalg.cute.inttuple import INT_LIMIT, malformed
from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.operands import (
    Tiler,
    Under,
    Where,
    as_layout,
    composed,
    read_tiler,
    refusal,
    tiler_text,
    weight,
    within,
)
from layoutalg.cute.reshape import append
from layoutalg.ground.cache import remembered
from layoutalg.ground.errors import AdmissibilityError, MalformedError, RepresentabilityError


def logical_product(block: Under, tiler: Tiler, *, convention: Convention = STRICT) -> Under:
    """Return (block, rest): mode 0 walks one copy of ``block``, mode 1 walks from copy to copy.

    Mathematically: (A, C o T) with C = complement(A, size(filter(A)) * cosize(T)): copy j starts at C(T(j)). A tuple of
    tilers multiplies mode by mode; None and missing entries keep the mode. An int n means n copies in order, ``n:1``.

    Args:
        block: Strides >= 0, injective once stride-0 modes are dropped, with a divisible chain of strides. The swizzles
            of a swizzled block act on all copies. Elements.
        tiler: The order of the copies: a layout with strides >= 0, an int, None, or a tuple of these.
        convention: ``"cute_cpp"`` and ``"pycute"`` place the copies by that peer's unchecked composition and bound the
            places by the whole size of the block, stride-0 modes included. ``"pycute"`` treats an int as a divide.

    Raises:
        MalformedError: LA141, LA192. AdmissibilityError: LA131 to LA134, LA120, LA150. RepresentabilityError: LA151.
        BudgetError: LA125.

    Example:
        >>> print(logical_product(CuteLayout((2, 2), (4, 1)), CuteLayout(6, 1)))
        ((2,2),(2,3)):((4,1),(2,8))
        >>> print(logical_product(CuteLayout(4), 3))
        (4,3):(1,4)
        >>> print(logical_product(CuteLayout(6), 3, convention="pycute"))
        (3,2):(1,3)

    Laws: the copies have disjoint offsets if the tiler is injective; copy 0 is the block.
    """
    return _call(block, tiler, convention, logical_product)


def zipped_product(block: Under, tiler: Tiler, *, convention: Convention = STRICT) -> Under:
    """Return ((block modes), (copy modes)).

    Mathematically: ``logical_product`` with the blocks of all modes gathered in mode 0 and the copies in mode 1. Modes
    without a tiler go to mode 1. None gives ``1:0`` and puts the whole mode into mode 1, as in pycute.

    Args:
        block: As in ``logical_product``.
        tiler: As in ``logical_product``; may nest.
        convention: As in ``logical_product``; ``"cute_cpp"`` also rejects None.

    Raises: As ``logical_product``; LA143, None under ``"cute_cpp"``; LA144, unknown convention.

    Example:
        >>> print(zipped_product(CuteLayout((2, 5), (5, 1)), CuteLayout((3, 4), (1, 3))))
        ((2,5),(3,4)):((5,1),(10,30))
    """
    return _call(block, tiler, convention, zipped_product)


def tiled_product(block: Under, tiler: Tiler, *, convention: Convention = STRICT) -> Under:
    """Return ((block modes), copy mode, copy mode, ...); arguments and errors as in ``zipped_product``.

    Example:
        >>> print(tiled_product(CuteLayout((2, 5), (5, 1)), CuteLayout((3, 4), (1, 3))))
        ((2,5),3,4):((5,1),10,30)
    """
    return _call(block, tiler, convention, tiled_product)


def flat_product(block: Under, tiler: Tiler, *, convention: Convention = STRICT) -> Under:
    """Return (block mode, ..., copy mode, ...); arguments and errors as in ``zipped_product``.

    Example:
        >>> print(flat_product(CuteLayout((2, 5), (5, 1)), CuteLayout((3, 4), (1, 3))))
        (2,5,3,4):(5,1,10,30)
    """
    return _call(block, tiler, convention, flat_product)


def blocked_product(block: Under, tiler: CuteLayout | int, *, convention: Convention = STRICT) -> Under:
    """Return the product whose mode k is (mode k of the block, mode k of the copies): blocks stay together.

    Mathematically: both sides are padded with ``1:0`` to equal rank, multiplied, and zipped mode by mode. As in CuTe
    C++ the modes are not coalesced and the padding stays; ``coalesce(R, (0,) * R.rank)`` gives the shorter form.

    Args:
        block: As in ``logical_product``.
        tiler: A layout, or an int n meaning ``n:1``.
        convention: As in ``logical_product``. pycute has neither product; ``"pycute"`` only selects how copies are
            placed, and an int still means ``n:1``.

    Raises: As ``logical_product``.

    Example:
        >>> print(blocked_product(CuteLayout((2, 5), (5, 1)), CuteLayout((3, 4), (1, 3))))
        ((2,3),(5,4)):((5,10),(1,30))

    Laws: same offsets as ``logical_product``.
    """
    return _zipped_by_mode(block, tiler, convention, blocked_product)


def raked_product(block: Under, tiler: CuteLayout | int, *, convention: Convention = STRICT) -> Under:
    """Return the product whose mode k is (mode k of the copies, mode k of the block): blocks interleave.

    Mathematically: ``blocked_product`` with the two sides swapped in each mode. The padding modes stay, as in CuTe C++;
    the CuTe DSL drops them, as does ``coalesce`` by mode.

    Args, returns and errors as in ``blocked_product``.

    Example:
        >>> print(raked_product(CuteLayout(4), CuteLayout((2, 3), (3, 1))))
        ((2,4),(3,1)):((12,1),(4,0))
        >>> from layoutalg.cute.algebra import coalesce
        >>> print(coalesce(raked_product(CuteLayout(4), CuteLayout((2, 3), (3, 1))), (0, 0)))
        ((2,4),3):((12,1),4)

    Laws: same offsets as ``logical_product``.
    """
    return _zipped_by_mode(block, tiler, convention, raked_product)


def _call(block: Under, tiler: Tiler, convention: Convention, operation: Callable[..., Under]) -> Under:
    """Multiply; repeated calls are cached."""
    if convention is not STRICT:
        return by_convention(convention, operation, block, tiler)
    name = operation.__name__
    composed(block, name, "block")
    known = read_tiler(tiler, lambda: f"{name}({block}, {tiler_text(tiler)})")
    return cast(Under, _multiplied(block, known, name))


@remembered(weight)
def _multiplied(block: Cute, tiler: Tiler, name: str) -> Cute:
    if isinstance(block, ComposedLayout):
        return block.rebase(cast(CuteLayout, _multiplied(block.base, tiler, name)))

    def where() -> str:
        return f"{name}({block}, {tiler_text(tiler)})"

    def split(mode: CuteLayout, entry: CuteLayout | int) -> CuteLayout:
        return product_of(mode, as_layout(entry), where)

    return shaped(name, block, tiler, split, where)


def _zipped_by_mode(
    block: Under, tiler: CuteLayout | int, convention: Convention, operation: Callable[..., Under]
) -> Under:
    if convention is not STRICT:
        return by_convention(convention, operation, block, tiler)
    name = operation.__name__
    composed(block, name, "block")
    return cast(Under, _interleaved(block, layout_tiler(block, tiler, name), name))


def layout_tiler(block: Cute, tiler: Tiler, name: str) -> CuteLayout | int:
    """Return a tiler that is a layout or an int, or raise."""
    known = read_tiler(tiler, lambda: f"{name}({block}, {tiler_text(tiler)})")
    if known is None or isinstance(known, tuple):
        raise malformed("tiler", "must be a layout or an integer", tiler, "LA141")
    return known


@remembered(weight)
def _interleaved(block: Cute, tiler: CuteLayout | int, name: str) -> Cute:
    if isinstance(block, ComposedLayout):
        return block.rebase(cast(CuteLayout, _interleaved(block.base, tiler, name)))
    return interleaved(block, tiler, name, lambda a, b: product_of(a, b, lambda: f"{name}({block}, {tiler})"))


def interleaved(
    block: CuteLayout, tiler: CuteLayout | int, name: str, multiply: Callable[[CuteLayout, CuteLayout], CuteLayout]
) -> CuteLayout:
    """Return the blocked or raked product, given the product of two layouts."""
    copies = as_layout(tiler)
    top = max(block.rank, copies.rank)
    first, second = multiply(_modes(block, top), _modes(copies, top))
    if name == "raked_product":
        first, second = second, first
    return make_layout(*[make_layout(a, b) for a, b in zip(first, second, strict=True)])


def _modes(layout: CuteLayout, rank: int) -> CuteLayout:
    """Return the layout as a tuple of ``rank`` modes, so that a refined mode still counts as one."""
    return make_layout(*append(layout, rank=rank))


def product_of(block: CuteLayout, tiler: CuteLayout, where: Where) -> CuteLayout:
    """Return (A, C o T), or raise."""
    own = block.size
    for extent, stride in block.flat:
        if stride == 0 and extent > 1:
            own //= extent
    try:
        rest = complement(block, places_of(own, tiler.cosize, where))
        return make_layout(block, after_strided(rest, tiler))
    except RepresentabilityError as error:
        raise within(error, where, "LA151", "the starts of the copies are not a CuTe layout") from error
    except (AdmissibilityError, MalformedError) as error:
        raise within(error, where) from error


def places_of(own: int, places: int, where: Where) -> int:
    """Return the number of offsets that the copies need, or raise if there are too many."""
    bound = own * max(1, places)
    if bound >= INT_LIMIT:
        because = f"{places} places of {own} elements are {bound} offsets; the limit is 2^63 - 1"
        raise refusal("LA150", "the copies leave the signed 64-bit range", where, because)
    return bound or 1
