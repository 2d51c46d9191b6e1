"""Rule out tiles that no descriptor carries for any values of their unknown parameters: the first filter of a search.

For copies: a copy moves 16-byte chunks that are aligned and contiguous on both sides, and swizzles permute whole
chunks. So each in-bounds element has global byte address = shared byte address mod 16; the element next to a chunk's
first in shared memory is next in global memory; and no two elements share an address. A tile that breaks one of these
for every parameter value has no map with any box, order or swizzle. For operands of ``wgmma`` the chunks are contiguous
along one of the two dimensions, and everything else moves by whole chunks.

These rules only refuse. Tiles that pass may still be refused by the planner; how many are is measured
(``benchmarks/campaign_abstract.py``).
"""

from __future__ import annotations

from collections.abc import Iterator

from layoutalg.ground.refusal import Broken
from layoutalg.ground.values import Values, constant
from layoutalg.synth.abstract.tile import AbstractTile, Digit
from layoutalg.targets.nvidia.tensormap import limits

CHUNK = limits.GLOBAL_ALIGN_BYTES


def never_copied(tile: AbstractTile) -> tuple[Broken, ...]:
    """Return the rules by which TMA can copy none of these tiles; empty if some may be copied.

    Example:
        >>> from layoutalg.ground.values import Values
        >>> rows = AbstractTile.dense("bf16", (64, 64))
        >>> never_copied(rows.padded(0, Values(1, 7, 2)))[0].rule, never_copied(rows.padded(0, Values(0, 64)))
        ('STRIDE_ALIGN', ())
    """
    return (*_base(tile), *_shared(tile), *_chunks(tile))


def never_operand(tile: AbstractTile) -> tuple[Broken, ...]:
    """Return the rules by which ``wgmma`` can read none of these (MN, K) tiles.

    Example:
        >>> rows = AbstractTile.dense("bf16", (64, 64))
        >>> [broken.rule for broken in never_operand(rows.spread(0, 0, 1))], never_operand(rows)
        (['WGMMA_CHUNK'], ())
    """
    if tile.rank != 2:
        return (Broken("WGMMA_RANK", f"an operand has two dimensions, the tile has {tile.rank}"),)
    majors = (1, 0) if tile.size == 2 else (1,)
    if any(_major(tile, along) for along in majors):
        return ()
    text = "no dimension has 16 contiguous bytes with all other shared-memory strides multiples of 16 bytes"
    return (Broken("WGMMA_CHUNK", text),)


def _base(tile: AbstractTile) -> Iterator[Broken]:
    if not tile.base_align.ever_multiple(CHUNK):
        yield Broken(
            "BASE_ALIGN", f"the base is only known to be aligned to {tile.base_align} bytes; a map needs {CHUNK}"
        )
    elif not (tile.offset * tile.size).ever_multiple(CHUNK):
        yield Broken("BASE_ALIGN", f"the first element is {tile.offset} x {tile.size} bytes from the base")


def _shared(tile: AbstractTile) -> Iterator[Broken]:
    reach = constant(0)
    for digits in tile.shared:
        for extent, stride in digits:
            if stride.single == 0 and _least(extent) >= 2:
                yield Broken("SMEM_INJECTIVE", "a shared-memory digit has stride 0, so elements share an address")
                return
            if stride.low is None or stride.low < 0:
                return
            reach = reach + (constant(max(1, _least(extent))) - 1) * constant(stride.low)
    if _least(reach * tile.size) >= limits.MAX_SMEM_BYTES:
        yield Broken("SMEM_CAP", f"the tile spans {reach} x {tile.size} bytes")


def _chunks(tile: AbstractTile) -> Iterator[Broken]:
    """Chunks must agree on both sides: the same neighbours, and equal addresses modulo a chunk."""
    if tile.size >= CHUNK:
        return
    beside = inner = False
    for dim in range(tile.rank):
        place = constant(1)
        for extent, stride in tile.shared[dim]:
            if extent.high is None or extent.high >= 2:
                beside |= 1 in stride
                inner |= 1 in stride and (1 in place * tile.strides[dim] or _least(tile.extents[dim]) < 2)
                seen = _least(extent) >= 2 and place.high is not None and _least(tile.extents[dim]) > place.high
                apart = (place * tile.strides[dim] - stride) * tile.size
                if seen and not apart.ever_multiple(CHUNK):
                    text = (
                        f"along dimension {dim} neighbours are {place * tile.strides[dim]} x {tile.size} bytes apart "
                        f"in global and {stride} x {tile.size} in shared memory, different modulo {CHUNK}"
                    )
                    yield Broken("STRIDE_ALIGN", text)
            place = place * extent
        yield from _origins(tile, dim, place)
    if not beside:
        yield Broken("SMEM_DENSE", "no two elements are adjacent in shared memory")
    elif not inner:
        yield Broken("INNER_CONTIGUOUS", "elements adjacent in shared memory are not adjacent in global memory")


def _origins(tile: AbstractTile, dim: int, extent: Values) -> Iterator[Broken]:
    """The next tile uses the same shared addresses, so its global distance must be whole chunks."""
    if extent.high is None or _least(tile.extents[dim]) <= extent.high:
        return
    if not (extent * tile.strides[dim] * tile.size).ever_multiple(CHUNK):
        rule = "INNER_START" if tile.strides[dim].single == 1 else "STRIDE_ALIGN"
        text = f"tiles are {extent} x {tile.strides[dim]} x {tile.size} bytes apart along dimension {dim}"
        yield Broken(rule, f"{text}, never a multiple of {CHUNK}")


def _major(tile: AbstractTile, along: int) -> bool:
    """Return whether the tile may be contiguous along one dimension and move by whole chunks along the other."""
    return _run(tile.shared[along], tile.size) and all(
        _least(extent) < 2 or (stride * tile.size).ever_multiple(CHUNK) for extent, stride in tile.shared[1 - along]
    )


def _run(digits: tuple[Digit, ...], size: int) -> bool:
    """Return whether digits may begin with 16 contiguous bytes and continue by whole chunks."""
    place = constant(1)
    for extent, stride in digits:
        within = place.high is not None and place.high * size < CHUNK and _least(extent) >= 2
        if within and stride.meet(place) is None:
            return False
        beyond = _least(place) * size >= CHUNK and _least(extent) >= 2
        if beyond and not (stride * size).ever_multiple(CHUNK):
            return False
        place = place * extent
    return place.high is None or place.high * size >= CHUNK


def _least(values: Values) -> int:
    return 0 if values.low is None else values.low
