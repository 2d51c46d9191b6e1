"""Which rows an instruction reads, which element types ``wgmma`` has, and which operand reads were measured.

References: PTX ISA 9.1 section 9.7.15 (asynchronous warpgroup level matrix instructions).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from layoutalg.ground.errors import Diagnostic, MalformedError, TargetRuleError, shown
from layoutalg.targets.nvidia.wgmma.instructions import FLOAT_N, MULTIPLIES, OPERAND_BITS, n_values
from layoutalg.targets.registry import having, lookup

ARCH = having("wgmma")[0]
INSTRUCTION_M = 64
INSTRUCTION_K = 16
N_VALUES = FLOAT_N
SHAPE_SOURCE = "PTX ISA 9.1 section 9.7.15 (matrix shape: m64nNk16 for .f16 and .bf16, N = 8..256 step 8)"

DTYPES = tuple(OPERAND_BITS)
"""Element types of operands."""
ACCUMULATORS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {dtype: MULTIPLIES[dtype, dtype].accumulators for dtype in DTYPES}
)
"""Element types of D, by the type of both operands."""

_EVIDENCE = MappingProxyType({"A": "measured", "B": "measured"})
"""Reads through 1,200 descriptors of A and 640 of B on an H200 (f16), and 2,432 of all types on an H100."""


def has_wgmma(target: str) -> bool:
    """Return whether an architecture has ``wgmma``: sm_90a alone, not sm_90 and none of compute capability 10.

    Example:
        >>> has_wgmma("sm_90a"), has_wgmma("sm_90"), has_wgmma("sm_100a")
        (True, False, False)

    Source: PTX ISA 9.1 section 9.7.15.
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

    Source: PTX ISA 9.1 section 9.7.15.
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

    Source: PTX ISA 9.1 section 9.7.15.
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
