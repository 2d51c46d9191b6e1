"""Which matrix element each lane and register element of one ``mma.sync`` holds.

Main definitions: ``MmaInstruction``, ``MMA``, ``mma_fragment``.

Notation: inputs are ``register`` (elements in the order of the instruction's registers, low bits of a 32-bit register
first) and ``lane``; outputs are ``row`` and ``k``, ``k`` and ``col``, or ``row`` and ``col``.

References: PTX ISA 9.1 section 9.7.14.5 (matrix fragments for mma, one subsection per shape).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from layoutalg.f2 import LinearLayout
from layoutalg.ground.kinds import checked_kinds
from layoutalg.targets.layouts.nvidia import MMA_SOURCE, core
from layoutalg.targets.layouts.tile import Tile, entry, malformed

ELEMENT_BITS: Mapping[str, int] = MappingProxyType(
    {
        "f64": 64, "f32": 32, "s32": 32, "tf32": 32, "f16": 16, "bf16": 16,
        "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8,
    }
)  # fmt: skip
"""Bits of one element; tf32 takes a 32-bit register."""


@dataclass(frozen=True, slots=True)
class MmaInstruction:
    """One dense ``mma.sync``: D[m, n] = A[m, k] B[k, n] + C[m, n], A by rows and B by columns.

    Args:
        m: Rows of A and D.
        n: Columns of B and D.
        k: Inner extent.
        operand: Element type of A and B.
        result: Element type of C and D.

    Example:
        >>> MMA["m16n8k16.f32.bf16"].ptx
        'mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32'
    """

    m: int
    n: int
    k: int
    operand: str
    result: str

    def __post_init__(self) -> None:
        checked_kinds(self, "LA374")

    @property
    def ptx(self) -> str:
        """The instruction's name in PTX."""
        shape = f"m{self.m}n{self.n}k{self.k}"
        return f"mma.sync.aligned.{shape}.row.col.{self.result}.{self.operand}.{self.operand}.{self.result}"


def _table(rows: str) -> dict[str, MmaInstruction]:
    """Read lines of ``m n k operand: results``."""
    table: dict[str, MmaInstruction] = {}
    for line in rows.strip().splitlines():
        words, results = line.split(":")
        m, n, k, operand = words.split()
        for result in results.split():
            made = MmaInstruction(int(m), int(n), int(k), operand, result)
            table[f"m{m}n{n}k{k}.{result}.{operand}"] = made
    return table


MMA: Mapping[str, MmaInstruction] = MappingProxyType(
    _table(
        """
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
        16 8 16 s8: s32
        16 8 32 s8: s32
        16 8 16 u8: s32
        16 8 32 u8: s32
        16 8 32 e4m3: f32
        16 8 32 e5m2: f32
        """
    )
)
"""Dense ``mma.sync`` that ran on sm_90, as ``shape.result.operand``: f64, and the m16n8 shapes whose operands have one
type of at least 8 bits. m8n8k16, mixed operand types and 4-bit and 1-bit forms are not listed."""


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

    Raises: MalformedError: LA700, LA701.

    Example:
        >>> str(mma_fragment("m16n8k8.f32.tf32", "A"))
        'F2[register=(8,0)(0,4), lane=(0,1)(0,2)(1,0)(2,0)(4,0) -> row:16, k:8]'

    Source: PTX ISA 9.1 section 9.7.14.5. Evidence: every instruction of ``MMA`` ran on an H200
    (``tests/data/measured/fragments_dev.npz``).
    """
    shape = entry(name, "name", MMA, MMA_SOURCE)
    if operand not in ("A", "B", "C", "D"):
        raise malformed("operand", "must be 'A', 'B', 'C' or 'D'", operand)
    names, fast = {"A": (("row", "k"), 1), "B": (("k", "col"), 0)}.get(operand, (("row", "col"), 1))
    extent = {"row": shape.m, "col": shape.n, "k": shape.k}
    width = 2 if operand in ("C", "D") else max(1, 32 // ELEMENT_BITS[shape.operand])
    tile = core(
        Tile.start((0, 1), ("register", "lane")), fast, 1 - fast, width, extent[names[1 - fast]], extent[names[fast]]
    )
    return LinearLayout.from_bases(tile.bases, tuple((name, extent[name]) for name in names))
