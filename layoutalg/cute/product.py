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

from layoutalg.cute.algebra import filter as drop_zeros
from layoutalg.cute.algebra import make_layout
from layoutalg.cute.complement import complement
from layoutalg.cute.composition import composition
from layoutalg.cute.divide import flat, tiled, unzip
from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.reshape import append
from layoutalg.cute.tilers import (
    Parity,
    Tiler,
    as_layout,
    by_mode,
    check_parity,
    read_tiler,
    refusal,
    tiler_text,
    within,
)
from layoutalg.errors import AdmissibilityError, MalformedError, RepresentabilityError
from layoutalg.inttuple import INT_LIMIT, malformed


def logical_product(block: CuteLayout, tiler: Tiler) -> CuteLayout:
    """Return (block, rest): mode 0 walks one copy of ``block``, mode 1 walks from copy to copy.

    Mathematically: (A, C o T) with C = complement(A, size(filter(A)) * cosize(T)): copy j starts at C(T(j)). A tuple of
    tilers multiplies mode by mode and keeps the modes it leaves out; None leaves a mode as it is. An int n means n
    copies in order, ``n:1`` (pycute divides there, which is no product).

    Args:
        block: Strides >= 0, injective once stride-0 modes are dropped, with a divisible chain of strides. Elements.
        tiler: The order of the copies: a layout with strides >= 0, an int, None, or a tuple of these.

    Returns:
        The product, of rank 2 for a layout or int tiler. Elements.

    Raises:
        MalformedError: LA141, the tiler is no tiler or has too many entries.
        AdmissibilityError: LA131 to LA134, the block has no complement; LA120, the tiler has a negative stride; LA150,
            the copies leave the signed 64-bit range.
        RepresentabilityError: LA151, the starts of the copies are no CuTe layout, with the first coordinate.
        BudgetError: LA125, undecided.

    Example:
        >>> print(logical_product(CuteLayout((2, 2), (4, 1)), CuteLayout(6, 1)))
        ((2,2),(2,3)):((4,1),(2,8))
        >>> print(logical_product(CuteLayout(4), 3))
        (4,3):(1,4)

    Laws: the copies have disjoint offsets where the tiler is injective; copy 0 is the block.
    Source: CuTe ``logical_product``.
    """
    where = f"logical_product({block}, {tiler_text(tiler)})"
    return _by_mode(_check(block), read_tiler(tiler, where), where)


def zipped_product(block: CuteLayout, tiler: Tiler, parity: Parity = "strict") -> CuteLayout:
    """Return ((block modes), (copy modes)).

    Mathematically: ``logical_product`` with the blocks of all modes gathered in mode 0 and the copies in mode 1. Modes
    without a tiler go to mode 1. None gives ``1:0`` and puts the whole mode into mode 1, as in pycute.

    Args:
        block: As in ``logical_product``.
        tiler: As in ``logical_product``; may nest.
        parity: ``"cute_cpp"`` refuses None; else all conventions agree.

    Raises:
        As ``logical_product``; LA143, None under ``"cute_cpp"``; LA144, no such parity.

    Example:
        >>> print(zipped_product(CuteLayout((2, 5), (5, 1)), CuteLayout((3, 4), (1, 3))))
        ((2,5),(3,4)):((5,1),(10,30))

    Source: CuTe ``zipped_product``.
    """
    where = f"zipped_product({block}, {tiler_text(tiler)})"
    known = read_tiler(tiler, where)
    return unzip(
        _check(block), known, lambda mode, entry: _product(mode, as_layout(entry), where), check_parity(parity), where
    )


def tiled_product(block: CuteLayout, tiler: Tiler, parity: Parity = "strict") -> CuteLayout:
    """Return ((block modes), copy mode, copy mode, ...); arguments and errors as in ``zipped_product``.

    Example:
        >>> print(tiled_product(CuteLayout((2, 5), (5, 1)), CuteLayout((3, 4), (1, 3))))
        ((2,5),3,4):((5,1),10,30)

    Source: CuTe ``tiled_product``.
    """
    return tiled(zipped_product(block, tiler, parity))


def flat_product(block: CuteLayout, tiler: Tiler, parity: Parity = "strict") -> CuteLayout:
    """Return (block mode, ..., copy mode, ...); arguments and errors as in ``zipped_product``.

    Example:
        >>> print(flat_product(CuteLayout((2, 5), (5, 1)), CuteLayout((3, 4), (1, 3))))
        (2,5,3,4):(5,1,10,30)

    Source: CuTe ``flat_product``.
    """
    return flat(zipped_product(block, tiler, parity))


def blocked_product(block: CuteLayout, tiler: CuteLayout | int) -> CuteLayout:
    """Return the product whose mode k is (mode k of the block, mode k of the copies): blocks stay together.

    Mathematically: both sides are filled up with ``1:0`` to equal rank, multiplied, and zipped mode by mode. The modes
    are not coalesced, and filled-up modes stay, as in CuTe C++; ``coalesce(R, (0,) * R.rank)`` gives the shorter form.

    Args:
        block: As in ``logical_product``.
        tiler: A layout, or an int n meaning ``n:1``.

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
    first, second = _equal_ranks(block, tiler, "blocked_product")
    return make_layout(*[make_layout(a, b) for a, b in zip(first, second, strict=True)])


def raked_product(block: CuteLayout, tiler: CuteLayout | int) -> CuteLayout:
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
    first, second = _equal_ranks(block, tiler, "raked_product")
    return make_layout(*[make_layout(b, a) for a, b in zip(first, second, strict=True)])


def _check(block: object) -> CuteLayout:
    if not isinstance(block, CuteLayout):
        raise malformed("block", "must be a CuteLayout", block, "LA141")
    return block


def _equal_ranks(block: CuteLayout, tiler: CuteLayout | int, name: str) -> tuple[CuteLayout, CuteLayout]:
    where = f"{name}({block}, {tiler_text(tiler)})"
    known = read_tiler(tiler, where)
    if known is None or isinstance(known, tuple):
        raise malformed("tiler", "must be a layout or an integer", tiler, "LA141")
    copies = as_layout(known)
    top = max(_check(block).rank, copies.rank)
    result = _product(append(block, rank=top), append(copies, rank=top), where)
    return result[0], result[1]


def _by_mode(block: CuteLayout, tiler: Tiler, where: str) -> CuteLayout:
    if tiler is None:
        return block
    if not isinstance(tiler, tuple):
        return _product(block, as_layout(tiler), where)
    by_mode(block, tiler, where)
    modes = [_by_mode(block[position], entry, where) for position, entry in enumerate(tiler)]
    return make_layout(*modes, *[block[position] for position in range(len(tiler), block.rank)])


def _product(block: CuteLayout, tiler: CuteLayout, where: str) -> CuteLayout:
    """Return (A, C o T), exact or refused."""
    bound = drop_zeros(block).size * max(1, tiler.cosize)
    if bound >= INT_LIMIT:
        raise refusal(
            "LA150",
            "the copies leave the signed 64-bit range",
            where,
            f"{tiler.cosize} places of {drop_zeros(block).size} elements are {bound} offsets, the limit is 2^63 - 1",
        )
    try:
        rest = complement(block, max(1, bound))
        return make_layout(block, composition(rest, tiler))
    except RepresentabilityError as error:
        raise within(error, where, "LA151", "the starts of the copies are no CuTe layout") from error
    except (AdmissibilityError, MalformedError) as error:
        raise within(error, where) from error
