"""Which matrix element each lane and register element of one AMD matrix instruction holds: MFMA and WMMA.

Notation: inputs are ``register`` (elements in the order of the instruction's registers, low bits of a 32-bit register
first) and ``lane``; outputs are ``row``, ``col``, ``k`` and ``matrix`` (the instruction's independent "blocks").

Implementation notes: operand fragments are a run of at most 128 bits (MFMA) or 64 bits (RDNA4 WMMA) of consecutive k
per lane, then the lanes over the rows, the matrices and the rest of k, then further runs in registers.

References: AMD matrix instruction calculator 1.3.2 (CDNA2, CDNA3, RDNA3, RDNA4); AMD Instinct MI300 ISA section 7; AMD,
"Introduction to Matrix Core Programming on AMD CDNA3 and CDNA4 architecture" (gfx950 f8f6f4 operands).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from layoutalg.f2 import LinearLayout
from layoutalg.targets.layouts.tile import Tile, entry, malformed
from layoutalg.targets.model import fact
from layoutalg.targets.registry import lookup

CALCULATOR = "AMD matrix instruction calculator 1.3.2"
GFX950_SOURCE = "AMD, Introduction to Matrix Core Programming on AMD CDNA3 and CDNA4 architecture, sections 5.4 and 5.5"
WAVE64, WAVE32 = 64, 32
MFMA_RUN_BITS = 128
WMMA_RUN_BITS = 64


@fact("LA374")
class MatrixInstruction:
    """The shape of one dense matrix instruction: ``matrices`` products of m x k by k x n.

    Example:
        >>> MFMA["gfx942"]["v_mfma_f32_32x32x8_f16"].k
        8
    """

    m: int  # rows of A and D
    n: int  # columns of B and D
    k: int  # inner extent
    matrices: int  # independent products ("blocks" in AMD's manuals)
    element_bits: int  # bits of an element of A and B
    result_bits: int  # bits of an element of D
    # ``"calculator"`` (checked entry by entry), ``"documented"`` (AMD text or code) or ``"form"`` (the closed form of
    # the family, not stated entry by entry for this shape)
    evidence: str


def _table(rows: str, evidence: str) -> dict[str, MatrixInstruction]:
    """Read lines of ``m n k matrices element_bits result_bits: names``."""
    table: dict[str, MatrixInstruction] = {}
    for line in rows.strip().splitlines():
        numbers, names = line.split(":")
        m, n, k, matrices, element_bits, result_bits = map(int, numbers.split())
        for name in names.split():
            table[name] = MatrixInstruction(m, n, k, matrices, element_bits, result_bits, evidence)
    return table


_SHARED = _table(
    """
    32 32 1 2 32 32: v_mfma_f32_32x32x1_2b_f32
    16 16 1 4 32 32: v_mfma_f32_16x16x1_4b_f32
    4 4 1 16 32 32: v_mfma_f32_4x4x1_16b_f32
    32 32 2 1 32 32: v_mfma_f32_32x32x2_f32
    16 16 4 1 32 32: v_mfma_f32_16x16x4_f32
    32 32 4 2 16 32: v_mfma_f32_32x32x4_2b_f16 v_mfma_f32_32x32x4_2b_bf16
    16 16 4 4 16 32: v_mfma_f32_16x16x4_4b_f16 v_mfma_f32_16x16x4_4b_bf16
    4 4 4 16 16 32: v_mfma_f32_4x4x4_16b_f16 v_mfma_f32_4x4x4_16b_bf16
    32 32 8 1 16 32: v_mfma_f32_32x32x8_f16 v_mfma_f32_32x32x8_bf16
    16 16 16 1 16 32: v_mfma_f32_16x16x16_f16 v_mfma_f32_16x16x16_bf16
    32 32 4 2 8 32: v_mfma_i32_32x32x4_2b_i8
    16 16 4 4 8 32: v_mfma_i32_16x16x4_4b_i8
    4 4 4 16 8 32: v_mfma_i32_4x4x4_16b_i8
    32 32 16 1 8 32: v_mfma_i32_32x32x16_i8
    16 16 32 1 8 32: v_mfma_i32_16x16x32_i8
    16 16 4 1 64 64: v_mfma_f64_16x16x4_f64
    4 4 4 4 64 64: v_mfma_f64_4x4x4_4b_f64
    16 16 32 1 8 32: v_mfma_f32_16x16x32_bf8_bf8 v_mfma_f32_16x16x32_bf8_fp8 v_mfma_f32_16x16x32_fp8_bf8
    16 16 32 1 8 32: v_mfma_f32_16x16x32_fp8_fp8
    32 32 16 1 8 32: v_mfma_f32_32x32x16_bf8_bf8 v_mfma_f32_32x32x16_bf8_fp8 v_mfma_f32_32x32x16_fp8_bf8
    32 32 16 1 8 32: v_mfma_f32_32x32x16_fp8_fp8
    """,
    "calculator",
)
_GFX90A = _table(
    """
    32 32 1 2 32 32: v_mfma_f32_32x32x1f32
    16 16 1 4 32 32: v_mfma_f32_16x16x1f32
    4 4 1 16 32 32: v_mfma_f32_4x4x1f32
    32 32 2 1 32 32: v_mfma_f32_32x32x2f32
    16 16 4 1 32 32: v_mfma_f32_16x16x4f32
    32 32 4 2 16 32: v_mfma_f32_32x32x4f16 v_mfma_f32_32x32x4bf16_1k
    16 16 4 4 16 32: v_mfma_f32_16x16x4f16 v_mfma_f32_16x16x4bf16_1k
    4 4 4 16 16 32: v_mfma_f32_4x4x4f16 v_mfma_f32_4x4x4bf16_1k
    32 32 8 1 16 32: v_mfma_f32_32x32x8f16 v_mfma_f32_32x32x8bf16_1k
    16 16 16 1 16 32: v_mfma_f32_16x16x16f16 v_mfma_f32_16x16x16bf16_1k
    32 32 4 2 8 32: v_mfma_i32_32x32x4i8
    16 16 4 4 8 32: v_mfma_i32_16x16x4i8
    4 4 4 16 8 32: v_mfma_i32_4x4x4i8
    32 32 8 1 8 32: v_mfma_i32_32x32x8i8
    16 16 16 1 8 32: v_mfma_i32_16x16x16i8
    32 32 2 2 16 32: v_mfma_f32_32x32x2bf16
    16 16 2 4 16 32: v_mfma_f32_16x16x2bf16
    4 4 2 16 16 32: v_mfma_f32_4x4x2bf16
    32 32 4 1 16 32: v_mfma_f32_32x32x4bf16
    16 16 8 1 16 32: v_mfma_f32_16x16x8bf16
    16 16 4 1 64 64: v_mfma_f64_16x16x4f64
    4 4 4 4 64 64: v_mfma_f64_4x4x4f64
    """,
    "calculator",
)
_XF32 = _table("16 16 8 1 32 32: v_mfma_f32_16x16x8_xf32\n32 32 4 1 32 32: v_mfma_f32_32x32x4_xf32", "calculator")
_GFX950 = _table(
    """
    16 16 32 1 16 32: v_mfma_f32_16x16x32_f16 v_mfma_f32_16x16x32_bf16
    32 32 16 1 16 32: v_mfma_f32_32x32x16_f16 v_mfma_f32_32x32x16_bf16
    16 16 64 1 8 32: v_mfma_i32_16x16x64_i8
    32 32 32 1 8 32: v_mfma_i32_32x32x32_i8
    16 16 128 1 8 32: v_mfma_f32_16x16x128_f8f6f4
    16 16 128 1 4 32: v_mfma_f32_16x16x128_f8f6f4_4bit
    """,
    "form",
) | _table(
    "32 32 64 1 8 32: v_mfma_f32_32x32x64_f8f6f4\n32 32 64 1 4 32: v_mfma_f32_32x32x64_f8f6f4_4bit", "documented"
)

MFMA: Mapping[str, Mapping[str, MatrixInstruction]] = MappingProxyType(
    {
        "gfx90a": MappingProxyType(_GFX90A),
        "gfx942": MappingProxyType(_SHARED | _XF32),
        "gfx950": MappingProxyType(_SHARED | _GFX950),
    }
)
"""Dense MFMA of CDNA2, CDNA3 and CDNA4. The ``_4bit`` entries are f8f6f4 instructions with 4-bit operands; 6-bit
operands pack across registers and have no power-of-two element."""

WMMA: Mapping[str, Mapping[str, MatrixInstruction]] = MappingProxyType(
    {
        "gfx1100": MappingProxyType(
            _table(
                """
                16 16 16 1 16 32: v_wmma_f32_16x16x16_f16 v_wmma_f32_16x16x16_bf16
                16 16 16 1 16 16: v_wmma_f16_16x16x16_f16 v_wmma_bf16_16x16x16_bf16
                16 16 16 1 8 32: v_wmma_i32_16x16x16_iu8
                16 16 16 1 4 32: v_wmma_i32_16x16x16_iu4
                """,
                "calculator",
            )
        ),
        "gfx1201": MappingProxyType(
            _table(
                """
                16 16 16 1 16 32: v_wmma_f32_16x16x16_f16 v_wmma_f32_16x16x16_bf16
                16 16 16 1 16 16: v_wmma_f16_16x16x16_f16 v_wmma_bf16_16x16x16_bf16
                16 16 16 1 8 32: v_wmma_i32_16x16x16_iu8
                16 16 16 1 4 32: v_wmma_i32_16x16x16_iu4
                16 16 32 1 4 32: v_wmma_i32_16x16x32_iu4
                16 16 16 1 8 32: v_wmma_f32_16x16x16_fp8_fp8 v_wmma_f32_16x16x16_fp8_bf8
                16 16 16 1 8 32: v_wmma_f32_16x16x16_bf8_fp8 v_wmma_f32_16x16x16_bf8_bf8
                """,
                "calculator",
            )
        ),
    }
)
"""Dense WMMA of RDNA3 and RDNA4, wave32."""


def mfma_fragment(name: str, operand: str, arch: str = "gfx942") -> LinearLayout:
    """Return which element each lane and register element of one MFMA instruction holds.

    Mathematically, with c = min(elements per lane, 128 bits) and p = k div c: A[i][k] of matrix b sits in lane
    i + m (b + matrices (p mod L)), register k mod c + c (p div L), where L lanes share a row; B[k][j] likewise.
    D[i][j], with h = 4 (1 for f64): register i mod h first, lanes over j, then (for m = 4) over b, then the next bits
    of i; the rest of i and of b in registers.

    Args:
        name: Instruction, as in ``MFMA[arch]``.
        operand: ``"A"``, ``"B"``, ``"C"`` or ``"D"`` (C is laid out as D).
        arch: ``"gfx90a"``, ``"gfx942"`` or ``"gfx950"``.

    Returns:
        (register, lane) -> (row, k, matrix) for A, (k, col, matrix) for B, (row, col, matrix) for C and D.

    Example:
        >>> str(mfma_fragment("v_mfma_f32_32x32x8_f16", "A"))
        'F2[register=(0,1,0)(0,2,0), lane=(1,0,0)(2,0,0)(4,0,0)(8,0,0)(16,0,0)(0,4,0) -> row:32, k:8, matrix:1]'

    Source: AMD matrix instruction calculator 1.3.2 (CDNA2, CDNA3); for gfx950 AMD's matrix core programming text.
    """
    shape = _instruction(MFMA, name, arch)
    _operand(operand)
    if operand in ("A", "B"):
        rows = shape.m if operand == "A" else shape.n
        per_lane = shape.k * rows * shape.matrices // WAVE64
        run = min(per_lane, MFMA_RUN_BITS // shape.element_bits)
        lanes = WAVE64 // (rows * shape.matrices)
        fast, slow = (1, 0) if operand == "A" else (0, 1)
        tile = Tile.start((0, 1, 2), ("register", "lane")).grow("register", fast, run).grow("lane", slow, rows)
        tile = tile.grow("lane", 2, shape.matrices).grow("lane", fast, lanes)
        return _named(tile.grow("register", fast, shape.k // (run * lanes)), operand, shape)
    height = 1 if shape.result_bits == WAVE64 else 4
    tile = Tile.start((0, 1, 2), ("register", "lane")).grow("register", 0, height).grow("lane", 1, shape.n)
    in_lanes = shape.matrices if shape.m == 4 else 1
    tile = tile.grow("lane", 2, in_lanes).grow("lane", 0, WAVE64 // (shape.n * in_lanes))
    tile = tile.grow("register", 0, shape.m // tile.sizes[0]).grow("register", 2, shape.matrices // in_lanes)
    return _named(tile, operand, shape)


def wmma_fragment(name: str, operand: str, arch: str = "gfx1100") -> LinearLayout:
    """Return which element each lane and register element of one WMMA instruction holds (wave32).

    Mathematically, on gfx1100: A[i][k] sits in lanes i and i + 16 (copies), register k; D[i][j] in lane
    j + 16 (i mod 2), register i div 2. On gfx1201, with c = min(elements per lane, 64 bits): A[i][k] sits in lane
    i + 16 ((k div c) mod 2), register k mod c + c (k div 2 c); D[i][j] in lane j + 16 (i div 8), register i mod 8.
    B[k][j] mirrors A.

    Args:
        name: Instruction, as in ``WMMA[arch]``.
        operand: ``"A"``, ``"B"``, ``"C"`` or ``"D"`` (C is laid out as D).
        arch: ``"gfx1100"`` (RDNA3) or ``"gfx1201"`` (RDNA4).

    Returns:
        (register, lane) -> (row, k, matrix) for A, (k, col, matrix) for B, (row, col, matrix) for C and D. A 16-bit
        result on gfx1100 uses one half of each 32-bit register; register counts the 32-bit registers there.

    Example:
        >>> str(wmma_fragment("v_wmma_f32_16x16x16_f16", "D"))
        'F2[register=(2,0,0)(4,0,0)(8,0,0), lane=(0,1,0)(0,2,0)(0,4,0)(0,8,0)(1,0,0) -> row:16, col:16, matrix:1]'
    """
    shape = _instruction(WMMA, name, arch)
    _operand(operand)
    replicated = lookup(arch).isa == "RDNA3"
    tile = Tile.start((0, 1, 2), ("register", "lane"))
    if operand in ("A", "B"):
        fast, slow = (1, 0) if operand == "A" else (0, 1)
        if replicated:
            return _named(tile.grow("register", fast, shape.k).grow("lane", slow, 16).copies("lane", 2), operand, shape)
        run = min(shape.k // 2, WMMA_RUN_BITS // shape.element_bits)
        tile = tile.grow("register", fast, run).grow("lane", slow, 16).grow("lane", fast, 2)
        return _named(tile.grow("register", fast, shape.k // (2 * run)), operand, shape)
    tile = tile.grow("lane", 1, 16)
    tile = (
        tile.grow("lane", 0, 2).grow("register", 0, 8) if replicated else tile.grow("register", 0, 8).grow("lane", 0, 2)
    )
    return _named(tile, operand, shape)


def _instruction(table: Mapping[str, Mapping[str, MatrixInstruction]], name: object, arch: object) -> MatrixInstruction:
    known = entry(arch, "arch", table, CALCULATOR)
    if not isinstance(name, str) or name not in known:
        raise malformed("name", f"must be a dense matrix instruction of {arch}", name, "LA701", CALCULATOR)
    return known[name]


def _operand(operand: object) -> None:
    if not isinstance(operand, str) or operand not in ("A", "B", "C", "D"):
        raise malformed("operand", "must be 'A', 'B', 'C' or 'D'", operand)


def _named(tile: Tile, operand: str, shape: MatrixInstruction) -> LinearLayout:
    names = {"A": ("row", "k"), "B": ("k", "col")}.get(operand, ("row", "col"))
    extent = {"row": shape.m, "col": shape.n, "k": shape.k}
    return LinearLayout.from_bases(
        tile.bases, ((names[0], extent[names[0]]), (names[1], extent[names[1]]), ("matrix", shape.matrices))
    )
