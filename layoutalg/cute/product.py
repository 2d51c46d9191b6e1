"""Repeating a layout over a layout of tiles: logical, zipped, tiled, flat, blocked and raked products.

Main definitions: ``logical_product``, ``zipped_product``, ``tiled_product``, ``flat_product``, ``blocked_product``,
``raked_product``.

Main statements: logical_product(A, T) = (A, C o T) with C = complement(A, size(filter(A)) * cosize(T)). Copy j of A
starts at offset C(T(j)). The offsets of C are those where a copy of A fits without overlap, so distinct values of T
give disjoint copies.

Notation: ``A * T``; a tiler in angle brackets works mode by mode.

References: J. Cecka, arXiv:2603.02298; CuTe ``logical_product``, ``blocked_product``, ``raked_product``.
"""

from __future__ import annotations

from typing import TypeAlias, TypeVar, cast

from layoutalg.cute.algebra import make_layout
from layoutalg.cute.complement import complement
from layoutalg.cute.composed import ComposedLayout
from layoutalg.cute.composition import composition
from layoutalg.cute.conventions import STRICT, Parity, check_parity
from layoutalg.cute.divide import Split, flat, logical_divide, tiled, unzip
from layoutalg.cute.inttuple import INT_LIMIT, malformed
from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.operand import swizzled, weight
from layoutalg.cute.parity import composition_as, cosize_as
from layoutalg.cute.reshape import append
from layoutalg.cute.tilers import (
    Tiler,
    Where,
    as_layout,
    by_mode,
    read_tiler,
    refusal,
    tiler_text,
    within,
)
from layoutalg.ground.cache import remembered
from layoutalg.ground.errors import AdmissibilityError, MalformedError, RepresentabilityError

Block: TypeAlias = "CuteLayout | ComposedLayout"
Operand = TypeVar("Operand", CuteLayout, ComposedLayout)


def logical_product(block: Operand, tiler: Tiler, parity: Parity = "strict") -> Operand:
    """Return (block, rest): mode 0 walks one copy of ``block``, mode 1 walks from copy to copy.

    Mathematically: (A, C o T) with C = complement(A, size(filter(A)) * cosize(T)): copy j starts at C(T(j)). A tuple of
    tilers multiplies mode by mode and keeps the modes it leaves out; None leaves a mode as it is. An int n means n
    copies in order, ``n:1``.

    Args:
        block: Strides >= 0, injective once stride-0 modes are dropped, with a divisible chain of strides. Of a swizzled
            block the layout under the swizzles is repeated; these then act on all copies. Elements.
        tiler: The order of the copies: a layout with strides >= 0, an int, None, or a tuple of these.
        parity: ``"cute_cpp"`` and ``"pycute"`` place the copies by the composition of that peer, which is never checked
            as a function, and bound the places by the whole size of the block, stride-0 modes included. ``"pycute"``
            also reads an int as a divide, as pycute does.

    Returns:
        The product, of rank 2 for a layout or int tiler. Elements.

    Raises:
        MalformedError: LA141, LA192. AdmissibilityError: LA131 to LA134, LA120, LA150. RepresentabilityError: LA151.
        BudgetError: LA125.

    Example:
        >>> print(logical_product(CuteLayout((2, 2), (4, 1)), CuteLayout(6, 1)))
        ((2,2),(2,3)):((4,1),(2,8))
        >>> print(logical_product(CuteLayout(4), 3))
        (4,3):(1,4)
        >>> print(logical_product(CuteLayout(6), 3, parity="pycute"))
        (3,2):(1,3)

    Laws: the copies have disjoint offsets where the tiler is injective; copy 0 is the block.
    Source: CuTe ``logical_product``.
    """
    return _call(block, tiler, parity, "logical_product")


def zipped_product(block: Operand, tiler: Tiler, parity: Parity = "strict") -> Operand:
    """Return ((block modes), (copy modes)).

    Mathematically: ``logical_product`` with the blocks of all modes gathered in mode 0 and the copies in mode 1. Modes
    without a tiler go to mode 1. None gives ``1:0`` and puts the whole mode into mode 1, as in pycute.

    Args:
        block: As in ``logical_product``.
        tiler: As in ``logical_product``; may nest.
        parity: As in ``logical_product``; ``"cute_cpp"`` also refuses None.

    Raises:
        As ``logical_product``; LA143, None under ``"cute_cpp"``; LA144, no such parity.

    Example:
        >>> print(zipped_product(CuteLayout((2, 5), (5, 1)), CuteLayout((3, 4), (1, 3))))
        ((2,5),(3,4)):((5,1),(10,30))

    Source: CuTe ``zipped_product``.
    """
    return _call(block, tiler, parity, "zipped_product")


def tiled_product(block: Operand, tiler: Tiler, parity: Parity = "strict") -> Operand:
    """Return ((block modes), copy mode, copy mode, ...); arguments and errors as in ``zipped_product``.

    Example:
        >>> print(tiled_product(CuteLayout((2, 5), (5, 1)), CuteLayout((3, 4), (1, 3))))
        ((2,5),3,4):((5,1),10,30)

    Source: CuTe ``tiled_product``.
    """
    return _call(block, tiler, parity, "tiled_product")


def flat_product(block: Operand, tiler: Tiler, parity: Parity = "strict") -> Operand:
    """Return (block mode, ..., copy mode, ...); arguments and errors as in ``zipped_product``.

    Example:
        >>> print(flat_product(CuteLayout((2, 5), (5, 1)), CuteLayout((3, 4), (1, 3))))
        (2,5,3,4):(5,1,10,30)

    Source: CuTe ``flat_product``.
    """
    return _call(block, tiler, parity, "flat_product")


def blocked_product(block: Operand, tiler: CuteLayout | int, parity: Parity = "strict") -> Operand:
    """Return the product whose mode k is (mode k of the block, mode k of the copies): blocks stay together.

    Mathematically: both sides are filled up with ``1:0`` to equal rank, multiplied, and zipped mode by mode. The modes
    are not coalesced, and filled-up modes stay, as in CuTe C++; ``coalesce(R, (0,) * R.rank)`` gives the shorter form.

    Args:
        block: As in ``logical_product``.
        tiler: A layout, or an int n meaning ``n:1``.
        parity: As in ``logical_product``. pycute has neither product; ``"pycute"`` then only names how the copies are
            placed, and an int still means ``n:1``.

    Returns:
        Layout with max(rank(block), rank(tiler)) modes. Elements.

    Raises:
        As ``logical_product``.

    Example:
        >>> print(blocked_product(CuteLayout((2, 5), (5, 1)), CuteLayout((3, 4), (1, 3))))
        ((2,3),(5,4)):((5,10),(1,30))

    Laws: same offsets as ``logical_product``.
    Source: CuTe ``blocked_product``.
    """
    return _zipped_by_mode(block, tiler, parity, "blocked_product")


def raked_product(block: Operand, tiler: CuteLayout | int, parity: Parity = "strict") -> Operand:
    """Return the product whose mode k is (mode k of the copies, mode k of the block): blocks interleave.

    Mathematically: as ``blocked_product`` with the two sides swapped in each mode. Filled-up modes stay, as in CuTe
    C++; the CuTe DSL drops them, which ``coalesce`` by mode does too.

    Args, returns and errors as in ``blocked_product``.

    Example:
        >>> print(raked_product(CuteLayout(4), CuteLayout((2, 3), (3, 1))))
        ((2,4),(3,1)):((12,1),(4,0))
        >>> from layoutalg.cute.algebra import coalesce
        >>> print(coalesce(raked_product(CuteLayout(4), CuteLayout((2, 3), (3, 1))), (0, 0)))
        ((2,4),3):((12,1),4)

    Laws: same offsets as ``logical_product``.
    Source: CuTe ``raked_product``.
    """
    return _zipped_by_mode(block, tiler, parity, "raked_product")


def _call(block: Operand, tiler: Tiler, parity: Parity, name: str) -> Operand:
    """Return the product called ``name``; looks repeated calls up."""
    if parity is not STRICT:
        check_parity(parity)
    swizzled(block, name, "block")
    known = read_tiler(tiler, lambda: f"{name}({block}, {tiler_text(tiler)})")
    return cast(Operand, _multiplied(block, known, parity, name))


@remembered(weight)
def _multiplied(block: Block, tiler: Tiler, parity: Parity, name: str) -> Block:
    if isinstance(block, ComposedLayout):
        return block.rebase(_call(block.base, tiler, parity, name))

    def where() -> str:
        return f"{name}({block}, {tiler_text(tiler)})"

    def multiplied(mode: CuteLayout, entry: CuteLayout | int) -> CuteLayout:
        if parity == "pycute" and isinstance(entry, int):
            return logical_divide(mode, entry, parity)
        return _product(mode, as_layout(entry), parity, where)

    if name == "logical_product":
        return _by_mode(block, tiler, multiplied, where)
    zipped = unzip(block, tiler, multiplied, parity, where)
    return tiled(zipped) if name == "tiled_product" else flat(zipped) if name == "flat_product" else zipped


def _zipped_by_mode(block: Operand, tiler: CuteLayout | int, parity: Parity, name: str) -> Operand:
    if parity is not STRICT:
        check_parity(parity)
    swizzled(block, name, "block")
    known = read_tiler(tiler, lambda: f"{name}({block}, {tiler_text(tiler)})")
    if known is None or isinstance(known, tuple):
        raise malformed("tiler", "must be a layout or an integer", tiler, "LA141")
    return cast(Operand, _interleaved(block, known, parity, name))


@remembered(weight)
def _interleaved(block: Block, tiler: CuteLayout | int, parity: Parity, name: str) -> Block:
    if isinstance(block, ComposedLayout):
        return block.rebase(_zipped_by_mode(block.base, tiler, parity, name))
    copies = as_layout(tiler)
    top = max(block.rank, copies.rank)
    first, second = _product(_modes(block, top), _modes(copies, top), parity, lambda: f"{name}({block}, {tiler})")
    if name == "raked_product":
        first, second = second, first
    return make_layout(*[make_layout(a, b) for a, b in zip(first, second, strict=True)])


def _modes(layout: CuteLayout, rank: int) -> CuteLayout:
    """Return the layout as a tuple of ``rank`` modes, so that a mode that is refined still is one mode."""
    return make_layout(*append(layout, rank=rank))


def _by_mode(block: CuteLayout, tiler: Tiler, split: Split, where: Where) -> CuteLayout:
    if tiler is None:
        return block
    if not isinstance(tiler, tuple):
        return split(block, tiler)
    by_mode(block, tiler, where)
    modes = [_by_mode(block[position], entry, split, where) for position, entry in enumerate(tiler)]
    return make_layout(*modes, *[block[position] for position in range(len(tiler), block.rank)])


def _product(block: CuteLayout, tiler: CuteLayout, parity: Parity, where: Where) -> CuteLayout:
    """Return (A, C o T), exact or refused, or by the convention of a peer."""
    places = cosize_as(tiler, parity)
    own = block.size
    if parity == "strict":
        for extent, stride in block.flat:
            if stride == 0 and extent > 1:
                own //= extent
    bound = own * max(1, places)
    if bound >= INT_LIMIT:
        raise refusal(
            "LA150",
            "the copies leave the signed 64-bit range",
            where,
            f"{places} places of {own} elements are {bound} offsets, the limit is 2^63 - 1",
        )
    try:
        rest = complement(block, bound or 1)
        starts = composition(rest, tiler) if parity == "strict" else composition_as(rest, tiler, parity)
        return make_layout(block, starts)
    except RepresentabilityError as error:
        if parity != "strict":
            raise within(error, where) from error
        raise within(error, where, "LA151", "the starts of the copies are no CuTe layout") from error
    except (AdmissibilityError, MalformedError) as error:
        raise within(error, where) from error
