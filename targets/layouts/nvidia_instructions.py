"""Which matrix element each lane and register element of one ``mma.sync`` holds.

Notation: inputs are ``register`` (elements in the order of the instruction's registers, low bits of a 32-bit register
first) and ``lane``; outputs are ``row`` and ``k``, ``k`` and ``col``, or ``row`` and ``col``.

References: PTX ISA 9.1 section 9.7.14.5 (matrix fragments for mma, one subsection per shape).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from types import MappingProxyType

from layoutalg.f2 import LinearLayout
from layoutalg.targets.layouts.nvidia import MMA_SOURCE, core
from layoutalg.targets.layouts.tile import Tile, entry, malformed
from layoutalg.targets.model import fact

ELEMENT_BITS: Mapping[str, int] = MappingProxyType(
    {
        "f64": 64, "f32": 32, "s32": 32, "tf32": 32, "f16": 16, "bf16": 16,
        "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1,
    }
)  # fmt: skip
"""Bits of one element; tf32 takes a 32-bit register."""


@fact("LA374")
class MmaInstruction:
    """One dense ``mma.sync``: D[m, n] = A[m, k] B[k, n] + C[m, n], A by rows and B by columns.

    Args:
        m: Rows of A and D.
        n: Columns of B and D.
        k: Inner extent.
        operand: Element type of A, and of B unless ``operand_b`` is set.
        result: Element type of C and D.
        operand_b: Element type of B if it differs from A's.
        product: How single bits are multiplied: ``"and"`` or ``"xor"``.

    Example:
        >>> MMA["m16n8k16.f32.bf16"].ptx
        'mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32'
    """

    m: int
    n: int
    k: int
    operand: str
    result: str
    operand_b: str = ""
    product: str = ""

    @property
    def ptx(self) -> str:
        """The instruction's name in PTX."""
        shape = f"m{self.m}n{self.n}k{self.k}"
        types = f"{self.result}.{self.operand}.{self.operand_b or self.operand}.{self.result}"
        return f"mma.sync.aligned.{shape}.row.col.{types}{f'.{self.product}.popc' if self.product else ''}"


def _table(rows: str) -> dict[str, MmaInstruction]:
    """Read lines of ``m n k operand[/operand_b][+product] ...: results``."""
    table: dict[str, MmaInstruction] = {}
    for line in rows.strip().splitlines():
        words, results = line.split(":")
        m, n, k, *operands = words.split()
        for operand, result in itertools.product(operands, results.split()):
            types, _, product = operand.partition("+")
            first, _, second = types.partition("/")
            made = MmaInstruction(int(m), int(n), int(k), first, result, second, product)
            rest = f".{second}" * bool(second) + f".{product}" * bool(product)
            table[f"m{m}n{n}k{k}.{result}.{first}{rest}"] = made
    return table


_INT8 = "s8 u8 s8/u8 u8/s8"
_INT4 = "s4 u4 s4/u4 u4/s4"
_FP8 = "e4m3 e5m2 e4m3/e5m2 e5m2/e4m3"
MMA: Mapping[str, MmaInstruction] = MappingProxyType(
    _table(
        f"""
        8 8 4 f64: f64
        16 8 4 f64: f64
        16 8 8 f64: f64
        16 8 16 f64: f64
        16 8 4 tf32: f32
        16 8 8 tf32: f32
        16 8 8 f16: f16 f32
        16 8 16 f16: f16 f32
        16 8 8 bf16: f32
        16 8 16 bf16: f32
        8 8 16 {_INT8}: s32
        16 8 16 {_INT8}: s32
        16 8 32 {_INT8}: s32
        8 8 32 {_INT4}: s32
        16 8 32 {_INT4}: s32
        16 8 64 {_INT4}: s32
        8 8 128 b1+xor b1+and: s32
        16 8 128 b1+xor b1+and: s32
        16 8 256 b1+xor b1+and: s32
        16 8 16 {_FP8}: f16 f32
        16 8 32 {_FP8}: f16 f32
        """
    )
)
"""Dense ``mma.sync`` with A by rows and B by columns that ptxas accepts for sm_90a, as ``shape.result.operand``, then
the type of B if it differs, and ``xor`` or ``and`` for single bits."""


def mma_type(name: str, operand: str) -> str:
    """Return the element type of an operand of a ``mma.sync``.

    Example:
        >>> mma_type("m16n8k32.f16.e4m3.e5m2", "B"), mma_type("m16n8k32.f16.e4m3.e5m2", "D")
        ('e5m2', 'f16')
    """
    made = entry(name, "name", MMA, MMA_SOURCE)
    return {"A": made.operand, "B": made.operand_b or made.operand}.get(operand, made.result)


def mma_fragment(name: str, operand: str) -> LinearLayout:
    """Return which element each lane and register element of one ``mma.sync`` holds.

    Mathematically, with w = max(1, 32 / element bits), q = lane mod 4 and g = lane div 4: element v of A is row
    g + 8 ((v div w) mod 2), column v mod w + w q + 4 w (v div 2 w) (m = 8 has no second row); B is the same with
    columns g and one step of k per word; value v of D is row g + 8 (v div 2), column 2 q + v mod 2.

    Args:
        name: Instruction, as in ``MMA``.
        operand: ``"A"``, ``"B"``, ``"C"`` or ``"D"`` (C is laid out as D).

    Returns:
        (register, lane) -> (row, k) for A, (k, col) for B, (row, col) for C and D.

    Example:
        >>> str(mma_fragment("m16n8k8.f32.tf32", "A"))
        'F2[register=(8,0)(0,4), lane=(0,1)(0,2)(1,0)(2,0)(4,0) -> row:16, k:8]'

    Source: PTX ISA 9.1 section 9.7.14.5. Evidence: every instruction of ``MMA`` ran on an H100
    (``tests/data/measured/mma_dev.npz``), 18 of them on an H200 too (``fragments_dev.npz``).
    """
    shape = entry(name, "name", MMA, MMA_SOURCE)
    extents = {"row": shape.m, "col": shape.n, "k": shape.k}
    return fragment_of(operand, "k", ELEMENT_BITS[shape.operand], extents)


def fragment_of(operand: str, inner: str, element_bits: int, extents: Mapping[str, int]) -> LinearLayout:
    """Return which element each lane and register element holds for an operand of one warp-level instruction.

    Args:
        operand: ``"A"``, ``"B"``, ``"C"`` or ``"D"``.
        inner: Name of the columns of A.
        element_bits: Element width of A and B.
        extents: Extents of ``row``, ``col``, ``k`` and ``inner``.

    Example:
        >>> str(fragment_of("B", "k", 32, {"row": 16, "col": 8, "k": 8}))
        'F2[register=(4,0), lane=(1,0)(2,0)(0,1)(0,2)(0,4) -> k:8, col:8]'
    """
    if operand not in ("A", "B", "C", "D"):
        raise malformed("operand", "must be 'A', 'B', 'C' or 'D'", operand)
    names, fast = {"A": (("row", inner), 1), "B": (("k", "col"), 0)}.get(operand, (("row", "col"), 1))
    width = 2 if operand in ("C", "D") else max(1, 32 // element_bits)
    tile = core(
        Tile.start((0, 1), ("register", "lane")), fast, 1 - fast, width, extents[names[1 - fast]], extents[names[fast]]
    )
    return LinearLayout.from_bases(tile.bases, tuple((name, extents[name]) for name in names))
