"""The input of a swizzle search: accesses of one tile as users write them (layouts in any notation, or names)."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import MalformedError
from layoutalg.ground.layout import Layout
from layoutalg.ground.recognize import Departure, linear
from layoutalg.notation.written import is_written, read_written
from layoutalg.proofs.dtypes import stated_bits
from layoutalg.proofs.register_map import tile_elements
from layoutalg.proofs.swizzling import CHECK, KINDS, TileAccess
from layoutalg.synth.named_accesses import Named, countable, name_of, named, read_name, require
from layoutalg.targets.registry import asked_bits, asked_targets, lookup

ROW_BITS = 128


@dataclass(frozen=True, slots=True)
class Question:
    """Accesses of one tile that one layout must serve on all targets."""

    accesses: tuple[TileAccess, ...]
    targets: tuple[str, ...]
    element_bits: int

    @property
    def bits(self) -> int:
        """Bits of a tile coordinate."""
        return self.accesses[0].layout.out_bits

    @property
    def most(self) -> int:
        """log2 of the elements of the widest access."""
        return max(0, (ROW_BITS // self.element_bits).bit_length() - 1)

    @property
    def word(self) -> int:
        """log2 of the elements of a word."""
        return max(0, (32 // self.element_bits).bit_length() - 1)


def question(accesses: object, target: object, element_bits: int | str | None, tile: object = None) -> Question:
    """Read the arguments of ``swizzle``."""
    if isinstance(accesses, LinearLayout | TileAccess) or is_written(accesses):
        accesses = [accesses]
    given = _listed(accesses, "accesses")
    bits = asked_bits(CHECK, stated_bits(element_bits, *without_kinds(given), check=CHECK))
    targets = asked_targets(CHECK, target)
    wide = max(targets, key=lambda name: lookup(name).lanes)
    tile = _extents_of(given, bits, wide) if tile is None else tile
    read = [access_of(each, "store" if place == 0 else "load", tile, bits, wide) for place, each in enumerate(given)]
    if not read:
        raise CHECK.malformed("accesses", "must name at least one access", accesses)
    first = read[0].layout
    sizes = [bits for _, bits in first.out_axes]
    for place, access in enumerate(read):
        layout = access.layout
        if not set(layout.out_dims) & set(first.out_dims) and [bits for _, bits in layout.out_axes] == sizes:
            # the same tile, its axes under other names
            read[place] = replace(access, layout=replace(layout, out_axes=first.out_axes))
    for access in read:
        if access.layout.out_axes != first.out_axes:
            rule = f"must all map to the tile {first.out_dims}, axes in this order"
            raise CHECK.malformed("accesses", rule, str(access.layout.out_dims))
    for place, access in enumerate(read):
        _check_targets(access, place, targets, bits)
    return Question(tuple(read), targets, bits)


def _check_targets(access: TileAccess, place: int, targets: Sequence[str], element_bits: int) -> None:
    """Refuse lane counts other than the target's, and matrix accesses that no instruction supports."""
    for name in targets:
        if access.kind not in ("load", "store"):
            require(read_name(access.kind) or Named(access.kind, access.kind), [name], "accesses")
        target = lookup(name)
        lanes, bits = target.lanes, len(access.lanes)
        if 1 << bits != lanes:
            rule = f"access {place} must have the {lanes} lanes of a {'wave' if target.vendor == 'amd' else 'warp'}"
            raise CHECK.malformed("accesses", f"{rule} of {name}, lane bits {lanes.bit_length() - 1}", bits)
        if access.by_vectors:
            continue
        if element_bits > 32 or (access.kind.endswith("trans") and element_bits != 16):
            widths = "16" if access.kind.endswith("trans") else "8, 16 or 32"
            raise CHECK.malformed("element_bits", f"must be {widths} for {access.kind}", element_bits)


def access_of(
    given: object, kind: str, tile: object = None, element_bits: int = 16, target: str = "sm_90a"
) -> TileAccess:
    """Return an access.

    Args:
        given: A ``TileAccess``; a layout, its text or a name (``synth.named_accesses``), optionally followed by
            ``:kind``; or a pair of one of these and its kind.
        kind: Default kind.
        tile: Extents of the tile, outermost first, if the layout does not determine them.
        element_bits: Bits of an element.
        target: The target whose lanes names have.

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
        head, _, tail = (part.strip() for part in given.rpartition(":"))
        by_matrices = tail in KINDS[2:] and tail != given.strip()  # rows:ldmatrix
        if (said := name_of(head if by_matrices else given, "accesses")) is not None:
            countable(said, "accesses")
            how = tail if by_matrices else said.by(element_bits, target, kind)
            return TileAccess(named(said, _tile(tile, given), element_bits, target), how)
        if head and tail in KINDS:
            given, kind = head, tail
        given = read_written(given, None if tile is None else _tile(tile, given)).layout
    elif is_written(given):
        given = read_written(given).layout
    if isinstance(given, LinearLayout) and {"register", "lane"} <= set(given.in_dims):
        return TileAccess(given, kind)
    if isinstance(given, Layout):
        return TileAccess(_linear(given, _tile(tile, given), lookup(target).lanes), kind)
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


def _extents_of(accesses: Sequence[object], element_bits: int, target: str) -> tuple[int, ...] | None:
    """Return the tile extents from the first access that determines them; None if none does."""
    for each in accesses:
        with contextlib.suppress(MalformedError):  # this one needs tile= too
            return tuple(access_of(each, "load", None, element_bits, target).layout.out_dims.values())
    return None


def _kind(given: object) -> str:
    said = read_name(given)
    return said.move if said is not None and said.is_instruction else CHECK.choice(given, "kind", KINDS)


def _listed(given: object, argument: str) -> tuple[object, ...]:
    if not isinstance(given, list | tuple):
        raise CHECK.malformed(argument, "must be a list or a tuple", given)
    return tuple(given)


def _tile(tile: object, given: object) -> tuple[int, ...]:
    if tile is None:
        raise CHECK.malformed("tile", f"must be given, such as tile=(64, 64): {given} does not determine it", None)
    extents = tuple(CHECK.integer(extent, "tile") for extent in _listed(tile, "tile"))
    if not extents or any(extent < 1 or extent & (extent - 1) for extent in extents) or math.prod(extents) > 1 << 20:
        raise CHECK.malformed("tile", "must have power-of-two extents and at most 2**20 elements", extents)
    return extents


def _linear(given: Layout, tile: tuple[int, ...], lanes: int) -> LinearLayout:
    """Return a layout of any family as a linear layout over F2."""
    table = tile_elements(given, tile)
    if any(extent & (extent - 1) for extent in table.shape):
        raise CHECK.malformed("accesses", "must have power-of-two numbers of warps, lanes and registers", table.shape)
    found = linear(table.reshape(-1))
    if isinstance(found, Departure):
        warp, lane, register = (int(part) for part in np.unravel_index(found.coordinate, table.shape))
        where = f"warp {warp}, lane {lane}, register {register} holds element {found.value}"
        raise CHECK.malformed("accesses", "must be linear over F2", where)
    sizes = [extent.bit_length() - 1 for extent in table.shape[::-1]]
    if lanes == 2 << sizes[1] and sizes[2] and "lane" not in given.in_dims:  # threads, in waves of 64
        sizes[1:] = [sizes[1] + 1, sizes[2] - 1]
    dims = tuple((f"dim{place}", extent.bit_length() - 1) for place, extent in enumerate(tile))
    return LinearLayout(tuple(zip(("register", "lane", "warp"), sizes, strict=True)), dims, *found)
