"""Tensor layouts of AMD's matrix instructions: MFMA (wave64) and WMMA (wave32).

Implementation notes: "transposed" computes the product with swapped operands, so that a lane holds neighbours of
one row of the result instead of one column. The fragments of single instructions are in ``amd_instructions``.

References: AMD matrix instruction calculator 1.3.2; Triton 3.9.0 (``AMDMFMALayout``, ``AMDWMMALayout``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import Repair
from layoutalg.targets.layouts.amd_instructions import CALCULATOR, MFMA, WAVE32, WAVE64, WMMA
from layoutalg.targets.layouts.blocked import inner_dim, operand_cga
from layoutalg.targets.layouts.tile import (
    Tile,
    Vector,
    cga_bases,
    check_level,
    choice,
    flag,
    malformed,
    matrix_shape,
    power,
    powers,
    vectors,
)
from layoutalg.targets.registry import TARGETS, having

MFMA_TILES = ((32, 32), (16, 16), (64, 4), (4, 64))
"""Result tiles (M, N); the last two are the 4x4 instruction with one operand broadcast to all 16 matrices."""
WMMA_TILES = ((16, 16), (32, 16))
WMMA_WIDTHS: Mapping[int, tuple[int, ...]] = MappingProxyType({1: (8, 16), 2: (4, 8, 16)})
"""Elements a lane holds contiguously along k: in version 1 every lane holds all of them anyway; version 3 allows any
power of two."""
WMMA_DEPTHS: Mapping[int, tuple[int, ...]] = MappingProxyType({1: (16,), 2: (16, 32), 3: (4, 32, 64, 128)})
"""k of the instructions, per version; with the (32, 16) tile 64 and 128."""
WMMA_VERSIONS: Mapping[str, int] = MappingProxyType(
    {name: {"RDNA3": 1, "RDNA4": 2}[TARGETS[name].isa] for name in having("wmma")}
)
"""WMMA version of each target whose instructions are listed."""


def mfma_accumulator(
    shape: Sequence[int],
    tile: Sequence[int],
    warps_per_cta: Sequence[int],
    transposed: bool = False,
    result_bits: int = 32,
    tiles_per_warp: Sequence[int] | None = None,
    cga: Sequence[Sequence[int]] = (),
) -> LinearLayout:
    """Return the result layout of an MFMA product.

    Mathematically, in one m x n tile with h = 4 (1 for 64-bit results): registers over h rows, lanes over the n columns
    and then over the next rows, registers over the remaining rows; transposed exchanges rows and columns. Then the last
    dimension is filled completely (tiles, warps, repetitions) before tiles, warps and repetitions along the one before
    it.

    Args:
        shape: Tensor shape, two dimensions or three with a batch first; powers of two.
        tile: Result tile (m, n): (32, 32), (16, 16), (64, 4) or (4, 64).
        warps_per_cta: Waves per dimension.
        transposed: Whether lanes hold neighbours of a row. (64, 4) exists only transposed.
        result_bits: 32 or 64.
        tiles_per_warp: Adjacent tiles of one wave, per dimension; None for one.
        cga: Cluster bases in units of one block's part.

    Example:
        >>> str(mfma_accumulator((16, 16), (16, 16), (1, 1)))
        'F2[register=(1,0)(2,0), lane=(0,1)(0,2)(0,4)(0,8)(4,0)(8,0), warp=, block= -> dim0:16, dim1:16]'

    Source: AMD matrix instruction calculator 1.3.2; Triton 3.9.0 ``AMDMFMALayout``.
    """
    sizes = matrix_shape(shape)
    rank = len(sizes)
    m, n = _mfma_tile(tile)
    swapped = flag(transposed, "transposed")
    if (m, n) == (64, 4) and not swapped:
        turn = (Repair("transpose the result", "transposed = True"),)
        raise malformed("transposed", "must be True for the (64, 4) tile", swapped, "LA701", CALCULATOR, turn)
    bits = choice(result_bits, "result_bits", (32, 64), CALCULATOR)
    if bits == 64 and (m, n) != (16, 16):
        turn = (Repair("use the tile of the f64 instruction", "tile = (16, 16)"),)
        raise malformed("tile", "must be (16, 16) for 64-bit results", (m, n), "LA701", CALCULATOR, turn)
    warps = powers(warps_per_cta, "warps_per_cta", rank)
    tiles = _tiles(tiles_per_warp, rank)
    height = 1 if bits == 64 else 4
    rows, columns = rank - 2, rank - 1
    tall, wide, across = (columns, rows, m) if swapped else (rows, columns, n)
    built = Tile.start((columns, rows, *range(rank - 3, -1, -1))).grow("register", tall, height)
    built = built.grow("lane", wide, across).grow("lane", tall, WAVE64 // across)
    built = built.grow("register", tall, max(1, m * n // (WAVE64 * height)))
    built = built.grow("register", columns, tiles[columns]).grow("warp", columns, warps[columns])
    built = built.grow("register", columns, max(1, sizes[columns] // (n * tiles[columns] * warps[columns])))
    built = built.grow("register", rows, tiles[rows]).grow("warp", rows, warps[rows])
    if rank == 3:
        built = built.grow("warp", 0, warps[0])
    return built.fit(sizes, cga_bases(cga, rank))


def mfma_operand(
    operand: str,
    shape: Sequence[int],
    tile: Sequence[int],
    warps_per_cta: Sequence[int],
    k_width: int,
    tiles_per_warp: Sequence[int] | None = None,
    cga: Sequence[Sequence[int]] = (),
) -> LinearLayout:
    """Return the register layout of operand A or B of an MFMA product.

    Mathematically: registers over w consecutive k, lanes over the rows (of A; columns of B) of the tile and then over
    k, registers over all further k, then over the wave's tiles; waves that share the operand hold copies. For the (64,
    4) and (4, 64) tiles the 64-wide operand takes 16 steps of k.

    Args:
        operand: ``"A"`` (M x K) or ``"B"`` (K x N).
        shape: Shape of the operand; powers of two.
        tile: Result tile (m, n), as for ``mfma_accumulator``.
        warps_per_cta: Waves of the result, per dimension.
        k_width: Elements w that a lane holds contiguously along k.
        tiles_per_warp: As for the result.
        cga: Cluster bases of the result; blocks that differ only along k hold copies, as for every other operand here
            (Triton 3.9.0 splits k between them; the chips with MFMA have no clusters).

    Example:
        >>> str(mfma_operand("A", (32, 8), (32, 32), (1, 1), 4))
        'F2[register=(0,1)(0,2), lane=(1,0)(2,0)(4,0)(8,0)(16,0)(0,4), warp=, block= -> dim0:32, dim1:8]'

    Source: AMD matrix instruction calculator 1.3.2; Triton 3.9.0 ``DotOperandLayout`` of ``AMDMFMALayout``.
    """
    sizes = matrix_shape(shape)
    rank = len(sizes)
    inner = inner_dim(operand, rank)
    outer = rank - 2 if operand == "A" else rank - 1
    m, n = _mfma_tile(tile)
    width = power(k_width, "k_width")
    across = m if operand == "A" else n
    warps = powers(warps_per_cta, "warps_per_cta", rank)
    built = Tile.start((inner, outer, *range(rank - 3, -1, -1))).grow("register", inner, width)
    built = built.grow("lane", outer, across).grow("lane", inner, WAVE64 // across)
    if across == 64:
        built = built.grow("register", inner, 16)
    built = built.grow("register", inner, max(1, sizes[inner] // built.sizes[inner]))
    built = built.grow("register", outer, _tiles(tiles_per_warp, rank)[outer])
    for dim in range(rank - 1, -1, -1):
        built = built.copies("warp", warps[dim]) if dim == inner else built.grow("warp", dim, warps[dim])
    return built.fit(sizes, operand_cga(cga, inner, rank))


def wmma_accumulator(
    shape: Sequence[int],
    version: int,
    warp_bases: Sequence[Sequence[int]],
    register_bases: Sequence[Sequence[int]] = (),
    transposed: bool = False,
    tile: Sequence[int] = (16, 16),
    cga: Sequence[Sequence[int]] = (),
) -> LinearLayout:
    """Return the result layout of a WMMA product.

    Mathematically: in one 16 x 16 tile lanes 0..15 run over the columns; version 1 puts row bit 0 in the last lane bit
    and rows 2, 4, 8 in registers, the others rows 1, 2, 4 in registers and row 8 in the last lane bit. Transposed
    exchanges rows and columns. Waves and further registers then count whole tiles.

    Args:
        shape: Tensor shape, two dimensions or three with a batch first; powers of two.
        version: 1 RDNA3, 2 RDNA4, 3 gfx1250.
        warp_bases: Basis vectors of the wave axis in units of tiles.
        register_bases: Basis vectors of adjacent tiles in one wave, in units of tiles.
        transposed: Whether registers run along a row.
        tile: (16, 16), or (32, 16) for version 3.
        cga: Cluster bases in units of one block's part.

    Example:
        >>> str(wmma_accumulator((16, 16), 1, []))
        'F2[register=(2,0)(4,0)(8,0), lane=(0,1)(0,2)(0,4)(0,8)(1,0), warp=, block= -> dim0:16, dim1:16]'

    Source: AMD matrix instruction calculator 1.3.2; Triton 3.9.0 ``AMDWMMALayout``.
    """
    sizes = matrix_shape(shape)
    rank = len(sizes)
    generation = choice(version, "version", (1, 2, 3), CALCULATOR)
    m, _ = wmma_tile(tile, generation)
    rows, columns = rank - 2, rank - 1
    tall, wide = (columns, rows) if flag(transposed, "transposed") else (rows, columns)
    built = Tile.start((columns, rows, *range(rank - 3, -1, -1))).grow("lane", wide, 16)
    if generation == 1:
        built = built.grow("lane", tall, 2).grow("register", tall, 8)
    else:
        built = built.grow("register", tall, 8).grow("lane", tall, 2).grow("register", tall, m // 16)
    return built.times(wave_level(register_bases, warp_bases, rank)).fit(sizes, cga_bases(cga, rank))


def wmma_operand(
    operand: str,
    shape: Sequence[int],
    version: int,
    warp_bases: Sequence[Sequence[int]],
    k_width: int,
    register_bases: Sequence[Sequence[int]] = (),
    instruction: Sequence[int] = (16, 16, 16),
    cga: Sequence[Sequence[int]] = (),
    transposed: bool = False,
) -> LinearLayout:
    """Return the register layout of operand A or B of a WMMA product.

    Mathematically: registers over w consecutive k, lanes over 16 rows (of A; columns of B), one lane bit over the next
    k (version 1: a copy), registers over the rest of the instruction's k and rows; then waves and tiles, their k part
    dropped. Transposed, the instruction's m and n change places.

    Args:
        operand: ``"A"`` (M x K) or ``"B"`` (K x N).
        shape: Shape of the operand; powers of two.
        version: 1 RDNA3, 2 RDNA4, 3 gfx1250.
        warp_bases: Wave bases of the result, in units of tiles.
        k_width: Elements w that a lane holds contiguously along k.
        register_bases: Tile bases of the result.
        instruction: (m, n, k).
        cga: Cluster bases of the result.
        transposed: As for the result; it matters where m differs from n.

    Example:
        >>> str(wmma_operand("A", (16, 16), 1, [], 16))
        'F2[register=(0,1)(0,2)(0,4)(0,8), lane=(1,0)(2,0)(4,0)(8,0)(0,0), warp=, block= -> dim0:16, dim1:16]'

    Source: AMD matrix instruction calculator 1.3.2; Triton 3.9.0 ``DotOperandLayout`` of ``AMDWMMALayout``.
    """
    sizes = matrix_shape(shape)
    rank = len(sizes)
    inner = inner_dim(operand, rank)
    outer = rank - 2 if operand == "A" else rank - 1
    generation = choice(version, "version", (1, 2, 3), CALCULATOR)
    m, n, k = powers(instruction, "instruction", 3)
    rows, columns = wmma_tile((m, n), generation)
    if flag(transposed, "transposed"):
        rows, columns = columns, rows
    depths = (64, 128) if m == 32 else WMMA_DEPTHS[generation]
    if k not in depths:
        rule = f"must be one of {depths} for version {generation} and m = {m}"
        raise malformed("instruction[2]", rule, k, "LA701", CALCULATOR)
    width = power(k_width, "k_width")
    depth = WAVE32 // 16
    if generation in WMMA_WIDTHS and width not in WMMA_WIDTHS[generation]:
        rule = f"must be one of {WMMA_WIDTHS[generation]} for version {generation}"
        raise malformed("k_width", rule, width, "LA701", CALCULATOR)
    if k % width or (generation > 1 and width * depth > k):
        rule = f"must divide the instruction's k = {k}" + (" over two lanes" if generation > 1 else "")
        raise malformed("k_width", rule, width, "LA701", CALCULATOR)
    built = Tile.start((inner, outer, *range(rank - 3, -1, -1))).grow("register", inner, width).grow("lane", outer, 16)
    built = built.copies("lane", depth) if generation == 1 else built.grow("lane", inner, depth)
    built = built.grow("register", inner, max(1, k // (width * depth)))
    built = built.grow("register", outer, (rows if operand == "A" else columns) // 16)

    def drop(images: tuple[Vector, ...]) -> tuple[Vector, ...]:
        return tuple(tuple(0 if dim == inner else part for dim, part in enumerate(vector)) for vector in images)

    level = wave_level(register_bases, warp_bases, rank)
    registers = tuple(vector for vector in drop(level["register"]) if any(vector))
    return built.times({"register": registers, "warp": drop(level["warp"])}).fit(sizes, operand_cga(cga, inner, rank))


def operand_block(
    target: str, element_bits: int, run: int, extents: tuple[int, int]
) -> tuple[LinearLayout, str] | None:
    """Return the block of operand A whose lanes read ``run`` consecutive elements along k at once, and its name.

    A tile (N, K) of operand B is read the same way. 16 rows are preferred to 32.

    Args:
        target: Architecture.
        element_bits: Bits of an element.
        run: Elements that a lane reads, along k.
        extents: Rows and k of a tile that the block must divide.

    Returns:
        None if the target has no dense instruction for such elements, or no block divides the tile.

    Example:
        >>> layout, name = operand_block("gfx950", 16, 8, (64, 64))
        >>> print(name, layout)
        MFMA 16x16 F2[register=(0,1)(0,2)(0,4), lane=(1,0)(2,0)(4,0)(8,0)(0,8)(0,16), warp=, block= -> dim0:16, dim1:32]
    """
    known = {**MFMA, **WMMA}.get(target, {})
    if run & (run - 1) or not any(shape.element_bits == element_bits for shape in known.values()):
        return None
    if target in MFMA:
        sides = [side for side in (16, 32) if not (extents[0] % side or extents[1] % (WAVE64 // side * run))]
        if not sides:
            return None
        tile = sides[0], sides[0]
        depth = WAVE64 // tile[0] * run
        return mfma_operand("A", (tile[0], depth), tile, (1, 1), run), f"MFMA {tile[0]}x{tile[1]}"
    version = WMMA_VERSIONS[target]
    width = max(run, WMMA_WIDTHS[version][0])
    depth = max(16, width * (version > 1) * 2)
    if depth not in WMMA_DEPTHS[version] or extents[0] % 16 or extents[1] % depth:
        return None
    return wmma_operand("A", (16, depth), version, [], width, instruction=(16, 16, depth)), "WMMA 16x16"


def wave_level(register_bases: object, warp_bases: object, rank: int) -> dict[str, tuple[Vector, ...]]:
    """Return the checked tile bases of registers and waves of a WMMA result, in units of tiles."""
    level = {
        "register": vectors(register_bases, "register_bases", rank),
        "warp": vectors(warp_bases, "warp_bases", rank),
    }
    check_level("register_bases and warp_bases", "tile", (*level["register"], *level["warp"]), rank)
    return level


def _mfma_tile(tile: object) -> tuple[int, int]:
    found = powers(tile, "tile", 2)
    if found not in MFMA_TILES:
        raise malformed("tile", f"must be one of {MFMA_TILES}", found, "LA701", CALCULATOR)
    return found[0], found[1]


def _tiles(tiles_per_warp: object, rank: int) -> tuple[int, ...]:
    return (1,) * rank if tiles_per_warp is None else powers(tiles_per_warp, "tiles_per_warp", rank)


def wmma_tile(tile: object, version: int) -> tuple[int, int]:
    """Return a checked result tile (m, n) of WMMA."""
    found = powers(tile, "tile", 2)
    if found not in WMMA_TILES or (found == (32, 16) and version != 3):
        raise malformed("tile", "must be (16, 16), or (32, 16) for version 3", found, "LA701", CALCULATOR)
    return found[0], found[1]
