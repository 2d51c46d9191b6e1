"""Layouts of the scale factors of block-scaled matrix products: one scale for every 16 or 32 elements along k.

Notation: a scale tensor has one row per row of A or column of B and one column per group of k: (M, K / group) for A,
(N, K / group) for B. Its rows are ``dim0`` for both operands.

Implementation notes: a lane's scales belong to operand elements of the same wave, not always of the same lane; the
instructions select the lane. Lanes or registers that the instructions do not read hold copies.

References: AMD, "Introduction to Matrix Core Programming on AMD CDNA3 and CDNA4 architecture" (scaled MFMA); PTX ISA
9.1 sections 9.7.14.3 (block scaling for mma.sync) and 9.7.16.10.7 (block scaling for tcgen05.mma.sync); Triton 3.9.0.
"""

from __future__ import annotations

from collections.abc import Sequence

from layoutalg.f2 import LinearLayout
from layoutalg.targets.layouts.amd import wave_level, wmma_tile
from layoutalg.targets.layouts.amd_instructions import GFX950_SOURCE, WAVE64
from layoutalg.targets.layouts.blocked import operand_cga
from layoutalg.targets.layouts.tile import Tile, Vector, cga_bases, choice, flag, malformed, powers

WMMA_SCALE_SOURCE = "Triton 3.9.0 get_amd_wmma_scale_layout (gfx1250 scaled WMMA)"
MFMA_SCALE_TILES = ((32, 32), (16, 16))


def mfma_scale(
    operand: str,
    shape: Sequence[int],
    tile: Sequence[int],
    warps_per_cta: Sequence[int],
    tiles_per_warp: Sequence[int] | None = None,
) -> LinearLayout:
    """Return the register layout of the scales of operand A or B of a scaled MFMA product (gfx950).

    Mathematically: lane i + m g holds the scale of row i and group g of 32 elements along k, just as it holds these
    elements of a 4-bit operand; registers run over further groups, then over the wave's tiles. Waves that share the
    operand hold copies.

    Args:
        operand: ``"A"`` or ``"B"``.
        shape: (M, K / 32) for A, (N, K / 32) for B; powers of two.
        tile: Result tile, (32, 32) or (16, 16).
        warps_per_cta: Waves of the result, per dimension (M, N).
        tiles_per_warp: Adjacent tiles of one wave, per dimension of the result; None for one.

    Example:
        >>> str(mfma_scale("A", (32, 4), (32, 32), (1, 1)))
        'F2[register=(0,2), lane=(1,0)(2,0)(4,0)(8,0)(16,0)(0,1), warp=, block= -> dim0:32, dim1:4]'

    Source: AMD matrix core programming text (v_mfma_scale_f32_32x32x64_f8f6f4, 16x16x128); Triton 3.9.0
    ``get_mfma_scale_layout``.
    """
    outer = _operand(operand)
    sizes = powers(shape, "shape", 2)
    found = powers(tile, "tile", 2)
    if found not in MFMA_SCALE_TILES:
        raise malformed("tile", f"must be one of {MFMA_SCALE_TILES}", found, "LA701", GFX950_SOURCE)
    rows = found[0]
    warps = powers(warps_per_cta, "warps_per_cta", 2)
    tiles = (1, 1) if tiles_per_warp is None else powers(tiles_per_warp, "tiles_per_warp", 2)
    built = Tile.start((0, 1)).grow("lane", 0, rows).grow("lane", 1, WAVE64 // rows)
    built = built.grow("register", 1, max(1, sizes[1] // (WAVE64 // rows))).grow("register", 0, tiles[outer])
    return _warps(built, warps, outer).fit(sizes)


def wmma_scale(
    operand: str,
    shape: Sequence[int],
    warp_bases: Sequence[Sequence[int]],
    scale_group: int = 32,
    register_bases: Sequence[Sequence[int]] = (),
    tile: Sequence[int] = (16, 16),
    transposed: bool = False,
    cga: Sequence[Sequence[int]] = (),
) -> LinearLayout:
    """Return the register layout of the scales of operand A or B of a scaled WMMA product (gfx1250).

    Mathematically: a lane holds all groups of its row, at least the 128 / ``scale_group`` of one instruction; lanes
    0..15 run over 16 rows. The last lane bit selects the upper half of a 32-row operand; with the (16, 16) tile, the
    wave's next tile, so that two instructions share the registers; otherwise it holds copies. Further tiles follow in
    registers.

    Args:
        operand: ``"A"`` or ``"B"``.
        shape: (M, K / scale_group) for A, (N, K / scale_group) for B; powers of two.
        warp_bases: Wave bases of the result, in units of tiles (M, N).
        scale_group: Elements along k that share a scale, 16 or 32.
        register_bases: Tile bases of the result.
        tile: (16, 16) or (32, 16).
        transposed: As for the result: the tile's m and n change places.
        cga: Cluster bases of the result.

    Example:
        >>> str(wmma_scale("A", (32, 4), []))
        'F2[register=(0,1)(0,2), lane=(1,0)(2,0)(4,0)(8,0)(16,0), warp=, block= -> dim0:32, dim1:4]'
        >>> str(wmma_scale("A", (16, 4), []))
        'F2[register=(0,1)(0,2), lane=(1,0)(2,0)(4,0)(8,0)(0,0), warp=, block= -> dim0:16, dim1:4]'

    Source: Triton 3.9.0 ``get_wmma_scale_layout``.
    """
    outer = _operand(operand)
    sizes = powers(shape, "shape", 2)
    m, n = wmma_tile(tile, 3)
    if flag(transposed, "transposed"):
        m, n = n, m
    group = choice(scale_group, "scale_group", (16, 32), WMMA_SCALE_SOURCE)
    along_rows = (m, n)[outer] == 32

    def rows_only(images: Sequence[Vector]) -> tuple[Vector, ...]:
        return tuple((image[outer], 0) for image in images)

    waves = wave_level(register_bases, warp_bases, 2)
    registers = tuple(image for image in rows_only(waves["register"]) if any(image))
    level = {"register": registers, "warp": rows_only(waves["warp"])}
    built = Tile.start((0, 1)).grow("register", 1, max(128 // group, sizes[1])).grow("lane", 0, 16)
    groups = len(dict(built.bases)["register"])
    if along_rows:
        built = built.grow("lane", 0, 2)
    whole = built.times(level).fit(sizes, rows_only(operand_cga(cga, 1 - outer, 2)))
    if along_rows:
        return whole
    bases = dict(whole.bases)
    borrowed = slice(groups, groups + (m == n))
    spare = bases["register"][borrowed] or ((0, 0),)
    bases["lane"] = (*bases["lane"], *spare)
    if m == n:
        bases["register"] = bases["register"][:groups] + bases["register"][groups + 1 :]
    return LinearLayout.from_bases(bases, whole.out_dims)


def mma_scale(
    operand: str, shape: Sequence[int], warps_per_cta: Sequence[int], cga: Sequence[Sequence[int]] = ()
) -> LinearLayout:
    """Return the register layout of the scales of operand A or B of block-scaled ``mma.sync`` (sm_120).

    Mathematically, with q = lane mod 4 and g = lane div 4: lane 4 g + q holds every group of row g + 8 (q mod 2) of A,
    or of row (column of B) g; the instruction reads lanes 4 g and 4 g + 1 for A (thread selector 0) and lane 4 g for B,
    the others hold copies.

    Args:
        operand: ``"A"`` or ``"B"``.
        shape: (M, K / group) for A, (N, K / group) for B; powers of two.
        warps_per_cta: Warps of the result, per dimension (M, N).
        cga: Cluster bases of the scale tensor in units of one block's part.

    Example:
        >>> str(mma_scale("A", (32, 2), (2, 1)))
        'F2[register=(0,1), lane=(8,0)(0,0)(1,0)(2,0)(4,0), warp=(16,0), block= -> dim0:32, dim1:2]'

    Source: PTX ISA 9.1 section 9.7.14.3 (scale_vec, byte-id and thread-id selectors); Triton 3.9.0
    (``dot_scaled`` on sm_120).
    """
    outer = _operand(operand)
    sizes = powers(shape, "shape", 2)
    warps = powers(warps_per_cta, "warps_per_cta", 2)
    built = Tile.start((0, 1)).grow("register", 1, sizes[1]).grow("lane", 0, 8)
    lanes = dict(built.bases)["lane"]
    if operand == "A":
        built, lanes = built.grow("lane", 0, 2), ((8, 0), (0, 0), *lanes)
    else:
        lanes = ((0, 0), (0, 0), *lanes)
    built = Tile(built.order, built.bits, tuple((axis, lanes if axis == "lane" else v) for axis, v in built.bases))
    return _warps(built, warps, outer).fit(sizes, cga_bases(cga, 2))


def tensor_memory_scales(shape: Sequence[int], cga: Sequence[Sequence[int]] = ()) -> LinearLayout:
    """Return where the scales of ``tcgen05.mma`` sit in tensor memory: (row, col, block) -> (dim0, dim1).

    Mathematically: with byte columns, row r (mod 32) and column 4 j + c of the first 64 x 4 scales hold row r + 32 j,
    group c; the four 32-row quarters hold copies. Further 64-row pieces follow in columns, then further groups.

    Args:
        shape: (M, K / group) for A, (N, K / group) for B; powers of two.
        cga: Cluster bases in units of one block's part.

    Example:
        >>> str(tensor_memory_scales((128, 4)))
        'F2[row=(1,0)(2,0)(4,0)(8,0)(16,0)(0,0)(0,0), col=(0,1)(0,2)(32,0)(64,0), block= -> dim0:128, dim1:4]'

    Source: PTX ISA 9.1 section 9.7.16.10.7; Triton 3.9.0 ``TensorMemoryScalesLayout``.
    """
    sizes = powers(shape, "shape", 2)
    bases = cga_bases(cga, 2)
    built = Tile.start((0, 1), ("col", "row")).grow("row", 0, 32).copies("row", 4)
    fitted = built.grow("col", 1, 4).grow("col", 0, 2).fit(sizes, bases)
    axes = fitted.bases
    return LinearLayout.from_bases([(axis, axes[axis]) for axis in ("row", "col", "block")], fitted.out_dims)


def _operand(operand: object) -> int:
    """Return the dimension of the result that the operand's rows belong to."""
    if not isinstance(operand, str) or operand not in ("A", "B"):
        raise malformed("operand", "must be 'A' or 'B'", operand)
    return 0 if operand == "A" else 1


def _warps(tile: Tile, warps: Sequence[int], outer: int) -> Tile:
    """Return the tile with the result's warps: the last dimension fastest, along the operand's rows or as copies."""
    for dim in (1, 0):
        tile = tile.grow("warp", 0, warps[dim]) if dim == outer else tile.copies("warp", warps[dim])
    return tile
