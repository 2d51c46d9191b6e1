"""Register fragments of NVIDIA's matrix instructions: mma.sync, wgmma, ldmatrix and stmatrix.

Implementation notes: with q = lane mod 4 and g = lane div 4, all of these fragments are one 8-row by 4-lane core: w
neighbouring elements per lane, four lanes along the fast dimension, eight along the slow one; then the tile repeats,
slow dimension first.

References: PTX ISA 9.1 sections 9.7.14.5 (fragments of mma), 9.7.14.5.15 (ldmatrix), 9.7.15.5.1 (fragments of wgmma);
Triton 3.9.0. Evidence: an H200 ran every form of ldmatrix and stmatrix, and wgmma with A in registers for every N
(``tests/data/measured/fragments_dev.npz``, ``benchmarks/device.py fragments``).
"""

from __future__ import annotations

from collections.abc import Sequence

from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import Diagnostic, Repair, RepresentabilityError
from layoutalg.piecewise import PiecewiseLayout
from layoutalg.targets.layouts.blocked import inner_dim, operand_cga
from layoutalg.targets.layouts.tile import Tile, cga_bases, choice, flag, malformed, matrix_shape, power, powers
from layoutalg.targets.nvidia.wgmma.instructions import FLOAT_N

MMA_SOURCE = "PTX ISA 9.1 section 9.7.14.5 (matrix fragments for mma)"
WGMMA_SOURCE = "PTX ISA 9.1 section 9.7.15.5.1 (matrix fragments for wgmma)"
LDMATRIX_SOURCE = "PTX ISA 9.1 section 9.7.14.5.15 (ldmatrix), 9.7.14.5.16 (stmatrix)"
MMA_SHAPES = ((16, 8), (8, 8))
"""Accumulator shapes (M, N) of mma.sync covered here: m16n8 of every type with k, and m8n8k4 for f64."""
MMA_DEPTHS = {(16, 8): (4, 8, 16, 32, 64, 128, 256), (8, 8): (4,)}
"""The K of the instructions of each shape; the position of a value does not depend on it."""


def mma_accumulator(
    shape: Sequence[int],
    warps_per_cta: Sequence[int],
    instruction: Sequence[int] = (16, 8),
    cga: Sequence[Sequence[int]] = (),
) -> LinearLayout:
    """Return the accumulator layout of ``mma.sync`` (C and D).

    Mathematically, in one m16n8 tile: value v of lane 4 g + q is row g + 8 (v div 2), column 2 q + v mod 2. Warps
    follow, the last dimension fastest; a larger tensor repeats in registers, the last dimension first.

    Args:
        shape: Tensor shape, two dimensions or three with a batch first; powers of two.
        warps_per_cta: Warps per dimension.
        instruction: (16, 8), or (8, 8) for f64; optionally followed by K, as in (16, 8, 16), or after a batch of 1.
        cga: Cluster bases in units of one block's part.

    Example:
        >>> str(mma_accumulator((16, 16), (1, 2)))
        'F2[register=(0,1)(8,0), lane=(0,2)(0,4)(1,0)(2,0)(4,0), warp=(0,8), block= -> dim0:16, dim1:16]'

    Source: PTX ISA 9.1 section 9.7.14.5 (m16n8k16 and m8n8k4 accumulators); Triton 3.9.0 ``NVMMADistributedLayout`` 2.
    """
    sizes = matrix_shape(shape)
    rank = len(sizes)
    m, n = _mma_shape(instruction, rank)
    tile = core(Tile.start(_backwards(rank)), rank - 1, rank - 2, 2, m, n)
    return tile.grow_all("warp", powers(warps_per_cta, "warps_per_cta", rank), _backwards(rank)).fit(
        sizes, cga_bases(cga, rank)
    )


def mma_operand(
    operand: str,
    shape: Sequence[int],
    warps_per_cta: Sequence[int],
    k_width: int,
    instruction: Sequence[int] = (16, 8),
    cga: Sequence[Sequence[int]] = (),
) -> LinearLayout:
    """Return the register layout of operand A or B of ``mma.sync``.

    Mathematically, A in one tile of 16 rows: element v < w of the first word of lane 4 g + q is row g, k = w q + v;
    then rows 8..15, then the next 4 w columns. B the same with 8 columns in place of rows. With w = 32 / element bits
    this is the fragment of one instruction; a larger w keeps several instructions' words of a lane adjacent. Warps that
    share the operand hold copies.

    Args:
        operand: ``"A"`` (shape M x K) or ``"B"`` (K x N).
        shape: Shape of the operand; powers of two.
        warps_per_cta: Warps of the accumulator, per dimension.
        k_width: Elements w that a lane holds contiguously along K.
        instruction: (16, 8), or (8, 8) for f64; optionally followed by K, as in (16, 8, 16), or after a batch of 1.
        cga: Cluster bases of the accumulator.

    Example:
        >>> str(mma_operand("B", (16, 8), (1, 1), 2))
        'F2[register=(1,0)(8,0), lane=(2,0)(4,0)(0,1)(0,2)(0,4), warp=, block= -> dim0:16, dim1:8]'

    Source: PTX ISA 9.1 section 9.7.14.5; Triton 3.9.0 ``DotOperandLayout`` of ``NVMMADistributedLayout`` version 2.
    """
    sizes = matrix_shape(shape)
    rank = len(sizes)
    inner = inner_dim(operand, rank)
    width = power(k_width, "k_width")
    m, _ = _mma_shape(instruction, rank)
    depth = width * (4 if m == 8 else 8)
    outer = rank - 2 if operand == "A" else rank - 1
    order = (inner, outer, *range(rank - 3, -1, -1))
    tile = core(Tile.start(order), inner, outer, width, m if operand == "A" else 8, depth)
    warps = powers(warps_per_cta, "warps_per_cta", rank)
    return _operand_warps(tile, warps, inner, _backwards(rank)).fit(sizes, operand_cga(cga, inner, rank))


def wgmma_accumulator(
    shape: Sequence[int], warps_per_cta: Sequence[int] = (4, 1), n: int = 256, cga: Sequence[Sequence[int]] = ()
) -> LinearLayout:
    """Return the accumulator layout of ``wgmma.mma_async``.

    Mathematically, in one m64nN tile: value v of lane 4 g + q in warp w is row g + 16 w + 8 ((v div 2) mod 2), column
    2 q + v mod 2 + 8 (v div 4). Warps run along the first dimension fastest, four of them per instruction.

    Args:
        shape: Tensor shape M x N; powers of two.
        warps_per_cta: Warps per dimension, the first a multiple of 4.
        n: Columns of one instruction.
        cga: Cluster bases in units of one block's part.

    Example:
        >>> str(wgmma_accumulator((64, 16), n=16))
        'F2[register=(0,1)(8,0)(0,8), lane=(0,2)(0,4)(1,0)(2,0)(4,0), warp=(16,0)(32,0), block= -> dim0:64, dim1:16]'

    Source: PTX ISA 9.1 section 9.7.15.5.1; Triton 3.9.0 ``NVMMADistributedLayout`` version 3.
    """
    sizes = powers(shape, "shape", 2)
    columns = choice(n, "n", FLOAT_N, WGMMA_SOURCE)
    if columns & (columns - 1):
        raise RepresentabilityError(
            Diagnostic(
                code="LA702",
                what="this wgmma accumulator is not linear over F2",
                where=(f"m64n{columns}",),
                because=f"{columns} columns are not a power of two; wgmma_fragment({columns}) is piecewise",
                witness={"n": columns},
                source=WGMMA_SOURCE,
            )
        )
    tile = core(Tile.start((1, 0)), 1, 0, 2, 16, columns)
    warps = _warpgroup(warps_per_cta)
    return tile.grow_all("warp", warps, (0, 1)).fit(sizes, cga_bases(cga, 2))


def wgmma_operand(
    operand: str,
    shape: Sequence[int],
    warps_per_cta: Sequence[int] = (4, 1),
    k_width: int = 2,
    cga: Sequence[Sequence[int]] = (),
) -> LinearLayout:
    """Return the register layout of operand A of ``wgmma.mma_async``.

    Mathematically: the fragment of ``mma_operand`` per warp, warps along the first dimension fastest.

    Args:
        operand: ``"A"``. B is always read from shared memory: see ``shared.nvmma_shared``.
        shape: M x K; powers of two.
        warps_per_cta: Warps of the accumulator, the first a multiple of 4.
        k_width: Elements a lane holds contiguously along K: 32 / element bits for one instruction.
        cga: Cluster bases of the accumulator.

    Example:
        >>> str(wgmma_operand("A", (64, 16)))
        'F2[register=(0,1)(8,0)(0,8), lane=(0,2)(0,4)(1,0)(2,0)(4,0), warp=(16,0)(32,0), block= -> dim0:64, dim1:16]'

    Source: PTX ISA 9.1 section 9.7.15.5.1; Triton 3.9.0 ``DotOperandLayout`` of ``NVMMADistributedLayout`` version 3.
    """
    inner = inner_dim(operand, 2)
    if operand == "B":
        raise RepresentabilityError(
            Diagnostic(
                code="LA704",
                what="operand B of wgmma has no register layout",
                where=("wgmma_operand('B', ...)",),
                because="wgmma reads B from shared memory through a matrix descriptor; nvmma_shared gives that layout",
                source=WGMMA_SOURCE,
            )
        )
    sizes = powers(shape, "shape", 2)
    width = power(k_width, "k_width")
    tile = core(Tile.start((1, 0)), 1, 0, width, 16, 8 * width)
    return _operand_warps(tile, _warpgroup(warps_per_cta), inner, (0, 1)).fit(sizes, operand_cga(cga, inner, 2))


def wgmma_fragment(n: int) -> PiecewiseLayout:
    """Return the accumulator of one ``wgmma`` for every N, on digits: (v0, v1, v2, q, g, w) -> (row, col).

    Mathematically: value v0 + 2 v1 + 4 v2 of lane 4 g + q in warp w is row g + 8 v1 + 16 w, column v0 + 2 q + 8 v2.

    Args:
        n: Columns, 8..256 in steps of 8, powers of two or not.

    Example:
        >>> wgmma_fragment(24).in_dims
        {'v0': 2, 'v1': 2, 'v2': 3, 'q': 4, 'g': 8, 'w': 4}
    """
    blocks = choice(n, "n", FLOAT_N, WGMMA_SOURCE) // 8
    return PiecewiseLayout(
        "{ [v0, v1, v2, q, g, w] -> [row = g + 8v1 + 16w, col = v0 + 2q + 8v2] : 0 <= v0 < 2 and 0 <= v1 < 2 "
        f"and 0 <= v2 < {blocks} and 0 <= q < 4 and 0 <= g < 8 and 0 <= w < 4 }}"
    )


def ldmatrix_fragment(matrices: int, transposed: bool = False, element_bits: int = 16) -> LinearLayout:
    """Return which element of the 8x8 matrices each lane and register element of ``ldmatrix``/``stmatrix`` holds.

    Mathematically: a matrix is 8 rows of 16 bytes, of e = 128 / element_bits elements. Word i of lane l is matrix i,
    row l div 4, columns (e/4)(l mod 4) + 0, 1, ...; with ``.trans`` (16-bit elements) row and column change places.

    Args:
        matrices: 1, 2 or 4 (the ``.x1``, ``.x2``, ``.x4`` forms).
        transposed: The ``.trans`` form.
        element_bits: 8, 16 or 32; how the 16-byte rows are divided. The untransposed instruction only moves words.

    Returns:
        (register, lane) -> (row, col, matrix): register counts elements, low half of a word first.

    Example:
        >>> str(ldmatrix_fragment(2))
        'F2[register=(0,1,0)(0,0,1), lane=(0,2,0)(0,4,0)(1,0,0)(2,0,0)(4,0,0) -> row:8, col:8, matrix:2]'
    """
    count = choice(matrices, "matrices", (1, 2, 4), LDMATRIX_SOURCE)
    bits = power(element_bits, "element_bits")
    swap = flag(transposed, "transposed")
    if bits not in (8, 16, 32) or (swap and bits != 16):
        rule = "must be 16 with .trans, otherwise 8, 16 or 32"
        raise malformed("element_bits", rule, bits, "LA701", LDMATRIX_SOURCE)
    row, col = (1, 0) if swap else (0, 1)
    tile = Tile.start((0, 1, 2), ("register", "lane")).grow("register", col, 32 // bits)
    tile = tile.grow("lane", col, 4).grow("lane", row, 8).grow("register", 2, count)
    return LinearLayout.from_bases(tile.bases, (("row", 8), ("col", 128 // bits), ("matrix", count)))


def ldmatrix_rows(matrices: int) -> LinearLayout:
    """Return the row and matrix that each address lane of ``ldmatrix``/``stmatrix`` points to.

    Mathematically: lane 8 i + r supplies the 16-byte-aligned address of row r of matrix i. Lanes from 8 ``matrices`` on
    supply nothing, so the lane axis has that size.

    Args:
        matrices: 1, 2 or 4.

    Example:
        >>> str(ldmatrix_rows(2))
        'F2[lane=(1,0)(2,0)(4,0)(0,1) -> row:8, matrix:2]'

    Source: PTX ISA 9.1 section 9.7.14.5.15 (addresses of threads 0-7, 8-15, 16-23, 24-31).
    """
    count = choice(matrices, "matrices", (1, 2, 4), LDMATRIX_SOURCE)
    tile = Tile.start((0, 1), ("lane",)).grow("lane", 0, 8).grow("lane", 1, count)
    return LinearLayout.from_bases(tile.bases, (("row", 8), ("matrix", count)))


def core(tile: Tile, fast: int, slow: int, width: int, rows: int, columns: int) -> Tile:
    """Return the fragment of a rows x columns tile: ``width`` elements and 4 lanes along ``fast``, 8 along ``slow``."""
    return (
        tile.grow("register", fast, width)
        .grow("lane", fast, 4)
        .grow("lane", slow, 8)
        .grow("register", slow, rows // 8)
        .grow("register", fast, columns // (4 * width))
    )


def _operand_warps(tile: Tile, warps: Sequence[int], inner: int, order: Sequence[int]) -> Tile:
    for dim in order:
        tile = tile.copies("warp", warps[dim]) if dim == inner else tile.grow("warp", dim, warps[dim])
    return tile


def _backwards(rank: int) -> tuple[int, ...]:
    return tuple(range(rank - 1, -1, -1))


def _mma_shape(instruction: object, rank: int) -> tuple[int, int]:
    """Return (M, N) of an instruction shape, also from (M, N, K) and, for a tensor with a batch, (1, M, N)."""
    found = powers(instruction, "instruction")
    shape = found[1:] if rank == 3 and len(found) == 3 and found[0] == 1 else found[:2]
    inner = found[2:] if shape == found[:2] else ()
    if len(found) > 3 or shape not in MMA_SHAPES or (inner and inner[0] not in MMA_DEPTHS[shape]):
        shapes = " or ".join(f"{m, n}, alone or with k in {MMA_DEPTHS[m, n]}" for m, n in MMA_SHAPES)
        raise malformed("instruction", f"must be {shapes}", found, "LA701", MMA_SOURCE)
    return shape[0], shape[1]


def _warpgroup(warps_per_cta: object) -> tuple[int, ...]:
    warps = powers(warps_per_cta, "warps_per_cta", 2)
    if warps[0] % 4:
        rule = "must be a multiple of 4: four warps along M execute one wgmma"
        four = (Repair("use a whole warpgroup", f"warps_per_cta = {(4, warps[1])}"),)
        raise malformed("warps_per_cta[0]", rule, warps[0], "LA701", WGMMA_SOURCE, four)
    return warps
