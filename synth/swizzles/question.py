"""The input of a swizzle search: accesses of one tile, targets, element width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from layoutalg.f2 import LinearLayout
from layoutalg.notation.written import is_written
from layoutalg.proofs.dtypes import stated_bits
from layoutalg.proofs.swizzling import CHECK, TileAccess
from layoutalg.synth.swizzles.accesses import access_of, extents_of, listed, without_kinds
from layoutalg.targets.asked import asked_bits, asked_targets
from layoutalg.targets.registry import lookup

NODES = 10_000
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


def question(accesses: object, target: object, element_bits: int | None, tile: object = None) -> Question:
    """Read the arguments of ``swizzle``."""
    if isinstance(accesses, LinearLayout | TileAccess) or is_written(accesses):
        accesses = [accesses]
    given = listed(accesses, "accesses")
    bits = asked_bits(CHECK, stated_bits(element_bits, *without_kinds(given), check=CHECK))
    targets = asked_targets(CHECK, target)
    lanes = max(lookup(name).lanes for name in targets)
    tile = extents_of(given, bits, lanes) if tile is None else tile
    read = [access_of(each, "store" if place == 0 else "load", tile, bits, lanes) for place, each in enumerate(given)]
    if not read:
        raise CHECK.malformed("accesses", "must name at least one access", accesses)
    first = read[0].layout
    for place, access in enumerate(read):
        if not set(access.layout.out_dims) & set(first.out_dims):  # the same tile, its axes under other names
            read[place] = replace(access, layout=replace(access.layout, out_axes=_renamed(access.layout, first)))
    for access in read:
        if access.layout.out_axes != first.out_axes:
            rule = f"must all map to the tile {first.out_dims}, axes in this order"
            raise CHECK.malformed("accesses", rule, str(access.layout.out_dims))
    for place, access in enumerate(read):
        _serves(access, place, targets, bits)
    return Question(tuple(read), targets, bits)


def _renamed(layout: LinearLayout, first: LinearLayout) -> tuple[tuple[str, int], ...]:
    """The axes of a layout renamed like another's, if the sizes agree."""
    same = [bits for _, bits in layout.out_axes] == [bits for _, bits in first.out_axes]
    return first.out_axes if same else layout.out_axes


def _serves(access: TileAccess, place: int, targets: Sequence[str], element_bits: int) -> None:
    """Refuse lane counts other than the target's, and matrix accesses that no instruction supports."""
    for name in targets:
        target = lookup(name)
        lanes, bits = target.lanes, len(access.lanes)
        if 1 << bits != lanes:
            rule = f"access {place} must have the {lanes} lanes of a {'wave' if target.vendor == 'amd' else 'warp'}"
            raise CHECK.malformed("accesses", f"{rule} of {name}, lane bits {lanes.bit_length() - 1}", bits)
        if access.kind in ("load", "store"):
            continue
        if target.vendor != "nvidia":
            rule = f"must be loads and stores on {name}: {access.kind} is an NVIDIA instruction"
            raise CHECK.malformed("accesses", rule, f"{access.kind} as access {place}")
        if element_bits > 32 or (access.kind.endswith("trans") and element_bits != 16):
            widths = "16" if access.kind.endswith("trans") else "8, 16 or 32"
            raise CHECK.malformed("element_bits", f"must be {widths} for {access.kind}", element_bits)


def word_of(asked: Question) -> int:
    """log2 of the elements per word."""
    return max(0, (32 // asked.element_bits).bit_length() - 1)


def outside(base: Sequence[int], candidates: Sequence[int]) -> tuple[int, ...]:
    """Return those candidates that, taken in order, enlarge the span of ``base``."""
    pivots: dict[int, int] = {}
    chosen = []
    for place, vector in enumerate((*base, *candidates)):
        left = vector
        while left:
            top = left.bit_length()
            held = pivots.get(top)
            if held is None:
                pivots[top] = left
                if place >= len(base):
                    chosen.append(vector)
                break
            left ^= held
    return tuple(chosen)
