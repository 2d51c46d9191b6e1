"""Which matrix element each lane and register element of one sparse ``mma.sync`` holds, and which metadata is read.

Notation: as in ``nvidia_instructions``. A means its stored half. A *group* is a run of row elements of which half are
stored: two elements of 32 bits, four of 16 or 8, eight of 4 (in pairs); its *code* is four bits of metadata. G is the
number of groups in a row: 4, 8 or 16.

References: PTX ISA 9.1 sections 9.7.14.6.1 (sparse matrix storage), 9.7.14.6.2 (fragments), 9.7.14.6.3 (mma.sp).
Evidence: every instruction, variant and selector ran on an H100 (``tests/data/measured/sparse_dev.npz``).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from layoutalg.f2 import LinearLayout
from layoutalg.targets.layouts.nvidia_instructions import ELEMENT_BITS, fragment_of
from layoutalg.targets.layouts.tile import entry, integer, malformed
from layoutalg.targets.model import fact
from layoutalg.targets.nvidia.wgmma.fragments import SPARSE_CODES

IntArray = npt.NDArray[np.int64]
SPARSE_SOURCE = "PTX ISA 9.1 section 9.7.14.6 (mma.sp)"
VARIANTS = ("sp", "sp::ordered_metadata")
"""The two forms of an instruction: the second requires codes with increasing positions."""
NIBBLES = 8
LANES = 32


@fact("LA374")
class SparseMma:
    """One sparse ``mma.sync``: D[m, n] = A[m, k] B[k, n] + C[m, n], half of A stored, 16 rows and 8 columns.

    Args:
        k: Inner extent of B; A stores k/2.
        operand: Element type of A, and of B unless ``operand_b`` is set.
        result: Element type of C and D.
        operand_b: Element type of B if it differs from A's.

    Example:
        >>> MMA_SP["m16n8k32.f32.bf16"].ptx("sp")
        'mma.sp.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32'
    """

    k: int
    operand: str
    result: str
    operand_b: str = ""

    @property
    def m(self) -> int:
        """Rows of A and D."""
        return 16

    @property
    def n(self) -> int:
        """Columns of B and D."""
        return 8

    @property
    def group(self) -> int:
        """Elements of a group."""
        return {32: 2, 4: 8}.get(ELEMENT_BITS[self.operand], 4)

    @property
    def groups(self) -> int:
        """Groups of a row."""
        return self.k // self.group

    def ptx(self, variant: str = VARIANTS[1]) -> str:
        """Return the instruction's name in PTX."""
        types = f"{self.result}.{self.operand}.{self.operand_b or self.operand}.{self.result}"
        return f"mma.{variant}.sync.aligned.m16n8k{self.k}.row.col.{types}"


def _table() -> dict[str, SparseMma]:
    rows: list[tuple[tuple[int, ...], tuple[str, ...], tuple[str, ...]]] = [
        ((16, 32), ("f16",), ("f16", "f32")),
        ((16, 32), ("bf16",), ("f32",)),
        ((8, 16), ("tf32",), ("f32",)),
        ((32, 64), ("s8", "u8", "s8/u8", "u8/s8"), ("s32",)),
        ((64, 128), ("s4", "u4", "s4/u4", "u4/s4"), ("s32",)),
        ((64,), ("e4m3", "e5m2", "e4m3/e5m2", "e5m2/e4m3"), ("f32",)),
    ]
    table = {}
    for extents, operands, results in rows:
        for k, operand, result in itertools.product(extents, operands, results):
            first, _, second = operand.partition("/")
            table[f"m16n8k{k}.{result}.{first}{f'.{second}' if second else ''}"] = SparseMma(k, first, result, second)
    return table


MMA_SP: Mapping[str, SparseMma] = MappingProxyType(_table())
"""Sparse ``mma.sync`` that ptxas accepts from sm_80 on (8-bit floats: sm_89), named like the dense ones."""

CODES: Mapping[int, Mapping[int, tuple[int, ...]]] = MappingProxyType({**SPARSE_CODES, 4: SPARSE_CODES[8]})
"""By element bits: the code of a group, and the positions (for 4-bit elements, of pairs) of its stored parts."""


def variant_of(name: str) -> tuple[str, str]:
    """Return the variant and the name in ``MMA_SP`` of a sparse instruction; both empty if it is not one.

    Example:
        >>> variant_of("sp.m16n8k32.f32.bf16"), variant_of("m16n8k16.f32.bf16")
        (('sp', 'm16n8k32.f32.bf16'), ('', ''))
    """
    variant, _, rest = name.partition(".")
    return (variant, rest) if variant in VARIANTS and rest in MMA_SP else ("", "")


def mma_sp_type(name: str, operand: str) -> str:
    """Return the element type of an operand of a sparse ``mma.sync``.

    Example:
        >>> mma_sp_type("m16n8k64.s32.s8.u8", "B"), mma_sp_type("m16n8k64.s32.s8.u8", "D")
        ('u8', 's32')
    """
    made = entry(name, "name", MMA_SP, SPARSE_SOURCE)
    return {"A": made.operand, "B": made.operand_b or made.operand}.get(operand, made.result)


def mma_sp_fragment(name: str, operand: str) -> LinearLayout:
    """Return which element each lane and register element of one sparse ``mma.sync`` holds.

    Mathematically: as for a dense instruction (``mma_fragment``) of shape (16, k/2) for A, (k, 8) for B, (16, 8) for C
    and D; column j of A is the j-th stored element of its row.

    Args:
        name: Instruction, as in ``MMA_SP``.
        operand: ``"A"``, ``"B"``, ``"C"`` or ``"D"``.

    Returns:
        (register, lane) -> (row, stored) for A, (k, col) for B, (row, col) for C and D.

    Example:
        >>> str(mma_sp_fragment("m16n8k8.f32.tf32", "A"))
        'F2[register=(8,0), lane=(0,1)(0,2)(1,0)(2,0)(4,0) -> row:16, stored:4]'
    """
    made = entry(name, "name", MMA_SP, SPARSE_SOURCE)
    extents = {"row": 16, "col": 8, "k": made.k, "stored": made.k // 2}
    return fragment_of(operand, "stored", ELEMENT_BITS[made.operand], extents)


def mma_sp_selectors(name: str) -> int:
    """Return an instruction's sparsity selectors: 4, 2 or 1 if one, two or all four lanes of a quad supply metadata.

    Example:
        >>> [mma_sp_selectors(f"m16n8k{k}.s32.u8") for k in (32, 64)], mma_sp_selectors("m16n8k16.f32.f16")
        ([2, 1], 4)
    """
    return 16 // entry(name, "name", MMA_SP, SPARSE_SOURCE).groups


def mma_sp_metadata(name: str, selector: int = 0) -> IntArray:
    """Return which row and group each nibble of each lane's metadata word describes.

    Mathematically, with q = lane mod 4 and g = lane div 4, nibble i of a lane: G = 4: row g + 8 (i div 4), group
    i mod 4, for lanes with q = selector. G = 8: for lanes with q div 2 = selector, row g + 8 (i div 4), group
    4 (q mod 2) + i mod 4 for elements of 16 and 32 bits; row g + 8 (q mod 2), group i for 8 and 4 bits. G = 16: row
    g + 8 (q mod 2), group 8 (q div 2) + i, for all lanes.

    Args:
        name: Instruction, as in ``MMA_SP``.
        selector: Sparsity selector, below ``mma_sp_selectors(name)``.

    Returns:
        int64[32, 8, 2]: (row, group) of nibble i of a lane, low bits first; -1 if it is not read.

    Example:
        >>> mma_sp_metadata("m16n8k16.f32.bf16", 1)[[4, 5], 5].tolist()
        [[-1, -1], [9, 1]]
    """
    made = entry(name, "name", MMA_SP, SPARSE_SOURCE)
    groups = made.groups
    if integer(selector, "selector") >= 16 // groups:
        raise malformed("selector", f"must be below {16 // groups} for {name}", selector)
    lane = np.arange(LANES, dtype=np.int64)[:, None]
    i = np.arange(NIBBLES, dtype=np.int64)[None, :]
    g, q = lane // 4, lane % 4
    if groups == 16:
        row, group, speaker = g + 8 * (q % 2), 8 * (q // 2) + i, np.zeros_like(q)
    elif groups == 8 and ELEMENT_BITS[made.operand] < 16:
        row, group, speaker = g + 8 * (q % 2), i, q // 2
    elif groups == 8:
        row, group, speaker = g + 8 * (i // 4), 4 * (q % 2) + i % 4, q // 2
    else:
        row, group, speaker = g + 8 * (i // 4), i % 4, q
    places = np.stack(np.broadcast_arrays(row, group), axis=-1)
    return np.where((speaker == selector)[:, :, None], places, -1)


def expanded(name: str, stored: npt.NDArray[np.float64], codes: IntArray) -> npt.NDArray[np.float64]:
    """Return the full A, zeros included.

    Args:
        name: Instruction, as in ``MMA_SP``.
        stored: [16, k/2].
        codes: The code of each row and group, [16, G].

    Raises: MalformedError: LA700, LA701: a code not in ``CODES``.

    Example:
        >>> expanded("m16n8k8.f32.tf32", np.ones((16, 4)), np.full((16, 4), 0b1110))[0].tolist()
        [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0]
    """
    made = entry(name, "name", MMA_SP, SPARSE_SOURCE)
    bits = ELEMENT_BITS[made.operand]
    table = CODES[bits]
    if not np.isin(codes, list(table)).all():
        raise malformed("codes", f"must be among {sorted(table)}", codes)
    run = 2 if bits == 4 else 1
    matrix = np.zeros((16, made.groups, made.group))
    parts = stored.reshape(16, made.groups, -1, run)
    rows, groups = np.indices(codes.shape)
    places = np.zeros((16, parts.shape[2]), dtype=np.int64)
    for code, held in table.items():
        places[code] = held
    for part in range(parts.shape[2]):
        for step in range(run):
            matrix[rows, groups, run * places[codes, part] + step] = parts[:, :, part, step]
    return matrix.reshape(16, made.k)
