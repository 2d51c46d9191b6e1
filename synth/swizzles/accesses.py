"""Accesses as users write them: layouts in any notation, or names such as ``rows``."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence

import numpy as np

from layoutalg.f2 import LinearLayout, matrix
from layoutalg.ground.errors import MalformedError
from layoutalg.ground.layout import Layout
from layoutalg.notation.written import is_written, read_written
from layoutalg.proofs.register_map import tile_elements
from layoutalg.proofs.swizzling import CHECK, KINDS, TileAccess
from layoutalg.synth.named_accesses import NAMES, is_name, named
from layoutalg.targets.nvidia.accesses import short_name


def access_of(given: object, kind: str, tile: object = None, element_bits: int = 16, lanes: int = 32) -> TileAccess:
    """Return an access.

    Args:
        given: A ``TileAccess``; a layout, its text or a name of ``NAMES``, optionally followed by ``:kind``; or a pair
            of one of these and its kind.
        kind: Default kind.
        tile: Extents of the tile, outermost first, if the layout does not determine them.
        element_bits: Bits of an element.
        lanes: Lanes of a warp, for names.

    Example:
        >>> print(access_of("rows:store", "load", (8, 64)).layout)
        F2[register=(0,1)(0,2)(0,4)(4,0), lane=(0,8)(0,16)(0,32)(1,0)(2,0) -> row:8, col:64]
        >>> access_of("((4,8),(2,2)):((16,1),(8,64))", "load", (8, 16)).kind
        'load'
    """
    if isinstance(given, TileAccess):
        return given
    if isinstance(given, tuple | list) and len(given) == 2:
        given, said_kind = given
        kind = _kind(said_kind)
    if isinstance(given, str):
        said = given
        head, _, tail = (part.strip() for part in given.rpartition(":"))
        if head and (tail in KINDS or is_name(head)):
            given, kind = head, _kind(tail)
        if is_name(given):
            given = short_name(given.strip())
            kind = given if given in KINDS else kind
            return TileAccess(named(given, _tile(tile, given), element_bits, lanes), kind)
        if not given.partition(":")[0].strip().replace(".", "").isidentifier():
            given = read_written(given, None if tile is None else _tile(tile, given)).layout
        if not isinstance(given, Layout):
            rule = f"must be layouts or names ({', '.join(NAMES)}), optionally followed by a kind (rows:store)"
            raise CHECK.malformed("accesses", rule, said)
    elif is_written(given):
        given = read_written(given).layout
    if isinstance(given, LinearLayout) and {"register", "lane"} <= set(given.in_dims):
        return TileAccess(given, kind)
    if isinstance(given, Layout):
        return TileAccess(_linear(given, _tile(tile, given), lanes), kind)
    raise CHECK.malformed("accesses", "must be layouts, or pairs of a layout and its kind", given)


def without_kinds(accesses: Sequence[object]) -> list[object]:
    """Return accesses as given (layouts, texts, names), but without their kinds.

    Example:
        >>> without_kinds(["rows:store", ("(4,8):(8,1)", "load"), "(4,8):(8,1)"])
        ['rows', '(4,8):(8,1)', '(4,8):(8,1)']
    """
    found = []
    for each in accesses:
        each = each[0] if isinstance(each, tuple | list) and len(each) == 2 else each
        head, _, tail = each.rpartition(":") if isinstance(each, str) else ("", "", "")
        found.append(head.strip() if head and tail.strip() in KINDS else each)
    return found


def extents_of(accesses: Sequence[object], element_bits: int, lanes: int) -> tuple[int, ...] | None:
    """Return the tile extents from the first access that determines them; None if none does.

    Example:
        >>> extents_of(["rows", "F2[register=(0,1), lane=(0,2)(0,4)(1,0)(2,0)(4,0) -> dim0:8, dim1:8]"], 16, 32)
        (8, 8)
    """
    for each in accesses:
        with contextlib.suppress(MalformedError):  # this one needs tile= too
            return tuple(access_of(each, "load", None, element_bits, lanes).layout.out_dims.values())
    return None


def _kind(given: object) -> str:
    if not isinstance(given, str) or given not in KINDS:
        raise CHECK.malformed("kind", f"must be one of {', '.join(KINDS)}", given)
    return given


def listed(given: object, argument: str) -> tuple[object, ...]:
    """Return the entries of a list or a tuple."""
    if not isinstance(given, list | tuple):
        raise CHECK.malformed(argument, "must be a list or a tuple", given)
    return tuple(given)


def _tile(tile: object, given: object) -> tuple[int, ...]:
    if tile is None:
        raise CHECK.malformed("tile", f"must be given, such as tile=(64, 64): {given} does not determine it", None)
    extents = tuple(CHECK.integer(extent, "tile") for extent in listed(tile, "tile"))
    if not extents or any(extent < 1 or extent & (extent - 1) for extent in extents) or math.prod(extents) > 1 << 20:
        raise CHECK.malformed("tile", "must have power-of-two extents and at most 2**20 elements", extents)
    return extents


def _linear(given: Layout, tile: tuple[int, ...], lanes: int) -> LinearLayout:
    """Return a layout of any family as a linear layout over F2."""
    table = tile_elements(given, tile)
    if any(extent & (extent - 1) for extent in table.shape):
        raise CHECK.malformed("accesses", "must have power-of-two numbers of warps, lanes and registers", table.shape)
    flat = table.reshape(-1)
    constant = int(flat[0])
    columns = [int(flat[1 << bit]) ^ constant for bit in range(flat.size.bit_length() - 1)]
    found = np.array([constant ^ matrix.apply(columns, place) for place in range(flat.size)])
    if not np.array_equal(found, flat):
        wrong = int(np.nonzero(found != flat)[0][0])
        warp, lane, register = (int(part) for part in np.unravel_index(wrong, table.shape))
        where = f"warp {warp}, lane {lane}, register {register} holds element {flat[wrong]}"
        raise CHECK.malformed("accesses", "must be linear over F2", where)
    names = ("register", "lane", "warp")
    sizes = [extent.bit_length() - 1 for extent in table.shape[::-1]]
    if lanes == 2 << sizes[1] and sizes[2] and "lane" not in given.in_dims:  # threads, in waves of 64
        sizes[1:] = [sizes[1] + 1, sizes[2] - 1]
    dims = tuple((f"dim{place}", extent.bit_length() - 1) for place, extent in enumerate(tile))
    return LinearLayout(tuple(zip(names, sizes, strict=True)), dims, tuple(columns), constant)
