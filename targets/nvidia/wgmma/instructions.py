"""Which multiplications ``wgmma`` has: operand types, accumulators, K, N, what may be transposed, negated or sparse.

Main statements: one instruction reads 256 bits of every row of A and of B along K; with sparse A, 256 stored bits of A
meet 512 bits of B. Only 16-bit operands in shared memory may be MN-major.

References: PTX ISA 9.1 section 9.7.15.2 (shapes), 9.7.15.5 and 9.7.15.6 (dense and sparse instructions). N = 240 and
256 of the integer types are missing from the document's syntax but not from its shapes; the assembler accepts them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from layoutalg.ground.errors import Diagnostic, MalformedError, TargetRuleError, shown
from layoutalg.targets.model import Evidence, Finding, Rule, Source, fact, type_bits
from layoutalg.targets.nvidia.wgmma.descriptor import checked_integer
from layoutalg.targets.registry import having, lookup

SOURCE = "PTX ISA 9.1 section 9.7.15"
OPERAND_BITS = type_bits("f16 bf16 tf32 e4m3 e5m2 s8 u8 b1")
"""Element types of operands and their width in shared memory."""
K_BITS = 256
"""Bits of one operand row that an instruction reads."""
FLOAT_N = tuple(range(8, 257, 8))
INTEGER_N = (8, 16, 24, *range(32, 257, 16))


@fact("LA374")
class Multiply:
    """One pair of operand types."""

    a: str  # element type of A
    b: str  # element type of B
    accumulators: tuple[str, ...]  # element types of D
    n: tuple[int, ...]  # legal numbers of columns of an instruction
    transposable: bool  # whether an operand in shared memory may be MN-major
    negatable: bool  # whether immediates may negate A and B
    sparse: bool  # whether A may be sparse

    @property
    def bits(self) -> int:
        """Element width of A and B."""
        return OPERAND_BITS[self.a]

    @property
    def k(self) -> int:
        """Elements along K of one dense instruction; twice as many for a sparse one."""
        return K_BITS // self.bits


def _all() -> dict[tuple[str, str], Multiply]:
    half, single, whole = ("f16", "f32"), ("f32",), ("s32",)
    made = [
        Multiply("f16", "f16", half, FLOAT_N, True, True, True),
        Multiply("bf16", "bf16", single, FLOAT_N, True, True, True),
        Multiply("tf32", "tf32", single, FLOAT_N, False, True, True),
        Multiply("b1", "b1", whole, INTEGER_N, False, False, False),
    ]
    made += [Multiply(a, b, half, FLOAT_N, False, True, True) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")]
    made += [Multiply(a, b, whole, INTEGER_N, False, False, True) for a in ("s8", "u8") for b in ("s8", "u8")]
    return {(entry.a, entry.b): entry for entry in made}


MULTIPLIES: Mapping[tuple[str, str], Multiply] = MappingProxyType(_all())
"""By the element types of A and B."""


def multiply(a: str, b: str | None = None) -> Multiply:
    """Return the multiplication of two element types.

    Args:
        a: Element type of A.
        b: Element type of B; None for that of A.

    Example:
        >>> multiply("e4m3", "e5m2").accumulators, multiply("s8", "u8").k
        (('f16', 'f32'), 32)
    """
    other = a if b is None else b
    found = MULTIPLIES.get((a, other)) if isinstance(a, str) and isinstance(other, str) else None
    if found is None:
        pairs = ", ".join(dict.fromkeys(f"{x} x {y}" for x, y in MULTIPLIES))
        because = f"operands must be {pairs}, not {shown(a)} x {shown(other)}"
        raise MalformedError(Diagnostic("LA810", "no such wgmma multiplication", (), because, source=SOURCE))
    return found


def instruction_k(element_bits: int, sparse: bool = False) -> int:
    """Return the elements along K that one instruction multiplies.

    Args:
        element_bits: 1, 8, 16 or 32.
        sparse: Whether A is sparse.

    Example:
        >>> [instruction_k(bits) for bits in (16, 32, 8, 1)]
        [16, 8, 32, 256]
    """
    if not isinstance(sparse, bool):
        because = f"sparse must be True or False, not {shown(sparse)}"
        raise MalformedError(Diagnostic("LA810", "no such wgmma multiplication", ("instruction_k",), because))
    return (2 if sparse else 1) * K_BITS // checked_bits(element_bits)


def checked_bits(element_bits: object, where: str = "instruction_k") -> int:
    """Check an operand's element width and return it."""
    bits = checked_integer("element_bits", element_bits, where)
    if bits not in OPERAND_BITS.values():
        known = ", ".join(str(known) for known in sorted({*OPERAND_BITS.values()}))
        because = f"element_bits must be one of {known}, not {shown(bits)}"
        raise MalformedError(Diagnostic("LA810", "wgmma has no operands of this width", (where,), because))
    return bits


def n_values(dtype: str) -> tuple[int, ...]:
    """Return the legal numbers of columns for this element type of B.

    Example:
        >>> n_values("s8")[:6], len(n_values("f16"))
        ((8, 16, 24, 32, 48, 64), 32)
    """
    return multiply(dtype).n


DTYPES = tuple(OPERAND_BITS)
"""Element types of operands."""
ARCH = having("wgmma")[0]
INSTRUCTION_M = 64
N_VALUES = FLOAT_N
SHAPE_SOURCE = "PTX ISA 9.1 section 9.7.15 (matrix shape: m64nNk16 for .f16 and .bf16, N = 8..256 step 8)"


_EVIDENCE = MappingProxyType({"A": "measured", "B": "measured"})
"""Reads through 1,200 descriptors of A and 640 of B on an H200 (f16), and 2,432 of all types on an H100."""


def has_wgmma(target: str) -> bool:
    """Return whether an architecture has ``wgmma``: sm_90a alone, not sm_90 and none of compute capability 10.

    Example:
        >>> has_wgmma("sm_90a"), has_wgmma("sm_90"), has_wgmma("sm_100a")
        (True, False, False)
    """
    return "wgmma" in lookup(target).features


def require_wgmma(target: str) -> None:
    """Refuse an architecture without ``wgmma``.

    Example:
        >>> require_wgmma("sm_90a")
        >>> require_wgmma("sm_100a")
        Traceback (most recent call last):
        layoutalg.ground.errors.TargetRuleError: LA373 sm_100a has no wgmma
          since  wgmma needs sm_90a
          see    PTX ISA 9.1 section 9.7.15 (matrix shape: m64nNk16 for .f16 and .bf16, N = 8..256 step 8)
    """
    if not has_wgmma(target):
        because = f"wgmma needs {ARCH}"
        raise TargetRuleError(
            Diagnostic("LA373", f"{target} has no wgmma", because=because, source=SHAPE_SOURCE), "WGMMA_ARCH"
        )


def _operand_error(operand: object) -> MalformedError:
    because = f"operand must be 'A' or 'B', not {shown(operand)}"
    return MalformedError(Diagnostic("LA360", "no such wgmma operand", because=because, source=SHAPE_SOURCE))


def instruction_rows(operand: str, dtype: str = "f16") -> tuple[int, ...]:
    """Return how many rows (M of A, N of B) one instruction can read of that operand.

    Args:
        operand: ``"A"`` or ``"B"``.
        dtype: Element type; integers and bits have fewer N.

    Example:
        >>> instruction_rows("A"), instruction_rows("B")[-1], instruction_rows("B", "s8")[:5]
        ((64,), 256, (8, 16, 24, 32, 48))
    """
    if not isinstance(operand, str) or operand not in ("A", "B"):
        raise _operand_error(operand)
    return (INSTRUCTION_M,) if operand == "A" else n_values(dtype)


def operand_evidence(operand: str) -> str:
    """Return the evidence for that operand's read rule: ``"measured"`` or ``"modelled"``.

    Args:
        operand: ``"A"`` or ``"B"``.

    Example:
        >>> operand_evidence("A")
        'measured'
    """
    if not isinstance(operand, str) or operand not in ("A", "B"):
        raise _operand_error(operand)
    return _EVIDENCE[operand]


_MATRIX = "9.7.15.5.1 (register fragments, matrix descriptor and canonical layouts)"
_H100 = ("NVIDIA H100 80GB HBM3", "580.159.04")


def _rule(rule: str, statement: str, limit: str, section: str, finding: Finding, seen: str) -> Rule:
    return Rule(rule, statement, limit, (Source("PTX ISA", "9.1", section),), True, (Evidence(*_H100, finding, seen),))


_TABLE = (
    _rule("WGMMA_ARCH", "wgmma needs sm_90a.", "sm_90a", "9.7.15 (target ISA notes)",
          "not tested", "other chips were not run"),
    _rule("WGMMA_DTYPE", "Operands are f16, bf16, tf32, e4m3, e5m2, s8, u8 or b1.", "8 types",
          "9.7.15.2", "not tested", "the assembler refuses others"),
    _rule("WGMMA_ROWS", "A has 64 rows; B has an N that is legal for its type.", "64; 8..256", "9.7.15.2",
          "not tested", "every legal N ran"),
    _rule("WGMMA_K", "One instruction reads 256 bits of a row (512 of B if A is sparse).", "K % 256 bits", "9.7.15.2",
          "not tested", "every type ran with its K"),
    _rule("WGMMA_BITS", "Eight one-bit elements along K are the bits of one byte, low bit first.", "b1", "9.7.15.2",
          "enforced", "each bit's place was read back"),
    _rule("WGMMA_MAJOR", "The operand is contiguous along K; 16-bit types may be contiguous along MN instead.",
          "16 bytes", _MATRIX, "enforced", "reads of random descriptors"),
    _rule("WGMMA_PITCH", "Rows of a group of eight are one swizzle span apart, or 16 bytes.", "16, 32, 64, 128 bytes",
          _MATRIX, "enforced", "reads of random descriptors"),
    _rule("WGMMA_UNIFORM", "Groups are evenly spaced.", "LBO, SBO", _MATRIX, "enforced",
          "reads of random descriptors"),
    _rule("WGMMA_ALIGN", "Starts and distances are multiples of 16 bytes.", "16 bytes", _MATRIX, "not tested",
          "the fields cannot hold others"),
    _rule("WGMMA_ZERO", "Distances that are read are not 0.", "> 0", _MATRIX, "not tested",
          "descriptors with 0 were not run"),
    _rule("WGMMA_ADDRESS", "Addresses and distances fit 18 bits.", "< 2^18", _MATRIX, "not tested",
          "addresses beyond were not run"),
    _rule("WGMMA_REPEAT", "The digits of a coordinate add up over the whole instruction.", "", _MATRIX, "enforced",
          "reads of random descriptors"),
    _rule("WGMMA_SWIZZLE", "The XOR is that of the mode: chunk bits with address bits 7 and up.", "4 modes",
          _MATRIX, "enforced", "reads of random descriptors"),
    _rule("WGMMA_LAYOUT", "The layout is strided, followed by one hardware swizzle.", "", _MATRIX, "not tested",
          "descriptors can express nothing else"),
    _rule("WGMMA_FRAGMENT", "Registers hold the instruction's fragment, warps 16 rows each in order.", "64 rows",
          _MATRIX, "enforced", "each register's place was read back"),
    _rule("WGMMA_SPARSE", "A may be sparse for f16, bf16, tf32 and the 8-bit types.", "not b1", "9.7.15.6",
          "not tested", "every type with sparse instructions ran"),
    _rule("WGMMA_METADATA", "Each contributing thread holds the codes of its row and groups.", "", "9.7.15.6.1",
          "enforced", "random words were read back through the product"),
)  # fmt: skip
RULES: Mapping[str, Rule] = MappingProxyType({rule.id: rule for rule in _TABLE})
"""The rules by id."""
