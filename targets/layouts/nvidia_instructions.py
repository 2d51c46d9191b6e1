"""Which matrix element each lane and register element of one ``mma.sync`` holds, dense or sparse.

Notation: inputs are ``register`` (elements in the order of the instruction's registers, low bits of a 32-bit register
first) and ``lane``; outputs are ``row`` and ``k``, ``k`` and ``col``, or ``row`` and ``col``. Sparse A means its stored
half. A *group* is a run of row elements of which half are stored: two elements of 32 bits, four of 16 or 8, eight of 4
(in pairs); its *code* is four bits of metadata. G is the number of groups in a row: 4, 8 or 16.

References: PTX ISA 9.1 sections 9.7.14.5 (matrix fragments for mma, one subsection per shape), 9.7.14.6 (mma.sp).
Evidence: every instruction, sparse variant and selector ran on an H100 (``tests/data/measured/mma_dev.npz``,
``sparse_dev.npz``).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from layoutalg.f2 import LinearLayout
from layoutalg.targets.layouts.nvidia import MMA_SOURCE, core
from layoutalg.targets.layouts.tile import Tile, entry, integer, malformed
from layoutalg.targets.model import fact, type_bits
from layoutalg.targets.nvidia.wgmma.fragments import SPARSE_CODES

ELEMENT_BITS = type_bits("f64 f32 s32 tf32 f16 bf16 e4m3 e5m2 s8 u8 s4 u4 b1")
"""Bits of one element; tf32 takes a 32-bit register."""


@fact("LA374")
class MmaInstruction:
    """One dense ``mma.sync``: D[m, n] = A[m, k] B[k, n] + C[m, n], A by rows and B by columns.

    Example:
        >>> MMA["m16n8k16.f32.bf16"].ptx
        'mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32'
    """

    m: int  # rows of A and D
    n: int  # columns of B and D
    k: int  # inner extent
    operand: str  # element type of A, and of B unless ``operand_b`` is set
    result: str  # element type of C and D
    operand_b: str = ""  # element type of B if it differs from A's
    product: str = ""  # how single bits are multiplied: ``"and"`` or ``"xor"``

    @property
    def ptx(self) -> str:
        """The instruction's name in PTX."""
        shape = f"m{self.m}n{self.n}k{self.k}"
        types = f"{self.result}.{self.operand}.{self.operand_b or self.operand}.{self.result}"
        return f"mma.sync.aligned.{shape}.row.col.{types}{f'.{self.product}.popc' if self.product else ''}"


def _rows(text: str) -> Iterator[tuple[str, tuple[int, int, int], tuple[str, str, str, str]]]:
    """Read lines of ``m n k operand[/operand_b][+product] ...: results``: names, shapes, and types with the product."""
    for line in text.strip().splitlines():
        words, results = line.split(":")
        m, n, k, *operands = words.split()
        for operand, result in itertools.product(operands, results.split()):
            types, _, product = operand.partition("+")
            first, _, second = types.partition("/")
            rest = f".{second}" * bool(second) + f".{product}" * bool(product)
            yield f"m{m}n{n}k{k}.{result}.{first}{rest}", (int(m), int(n), int(k)), (first, result, second, product)


_INT8 = "s8 u8 s8/u8 u8/s8"
_INT4 = "s4 u4 s4/u4 u4/s4"
_FP8 = "e4m3 e5m2 e4m3/e5m2 e5m2/e4m3"
MMA: Mapping[str, MmaInstruction] = MappingProxyType(
    {
        name: MmaInstruction(*shape, *types)
        for name, shape, types in _rows(
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
    }
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


IntArray = npt.NDArray[np.int64]
SPARSE_SOURCE = "PTX ISA 9.1 section 9.7.14.6 (mma.sp)"
VARIANTS = ("sp", "sp::ordered_metadata")
"""The two forms of an instruction: the second requires codes with increasing positions."""
NIBBLES = 8
LANES = 32


@fact("LA374")
class SparseMma:
    """One sparse ``mma.sync``: D[m, n] = A[m, k] B[k, n] + C[m, n], half of A stored, 16 rows and 8 columns.

    Example:
        >>> MMA_SP["m16n8k32.f32.bf16"].ptx("sp")
        'mma.sp.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32'
    """

    k: int  # inner extent of B; A stores k/2
    operand: str  # element type of A, and of B unless ``operand_b`` is set
    result: str  # element type of C and D
    operand_b: str = ""  # element type of B if it differs from A's

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


MMA_SP: Mapping[str, SparseMma] = MappingProxyType(
    {
        name: SparseMma(k, first, result, second)
        for name, (_, _, k), (first, result, second, _) in _rows(
            f"""
            16 8 16 f16: f16 f32
            16 8 32 f16: f16 f32
            16 8 16 bf16: f32
            16 8 32 bf16: f32
            16 8 8 tf32: f32
            16 8 16 tf32: f32
            16 8 32 {_INT8}: s32
            16 8 64 {_INT8}: s32
            16 8 64 {_INT4}: s32
            16 8 128 {_INT4}: s32
            16 8 64 {_FP8}: f32
            """
        )
    }
)
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
