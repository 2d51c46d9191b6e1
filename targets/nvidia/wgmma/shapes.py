"""Instruction shapes of ``wgmma`` for 16-bit floats, which operand reads were measured, and the accumulator fragment.

Main definitions: ``INSTRUCTION_M``, ``INSTRUCTION_K``, ``N_VALUES``, ``DTYPES``, ``ACCUMULATORS``,
``has_wgmma``, ``require_wgmma``, ``instruction_rows``, ``operand_evidence``, ``accumulator_coordinates``.

Implementation notes: the shapes of other element types are documented but left out; nothing here answers for them.

References: PTX ISA 9.1 section 9.7.15 (asynchronous warpgroup level matrix instructions).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from layoutalg.ground.errors import Diagnostic, MalformedError, TargetRuleError, shown
from layoutalg.targets.nvidia.wgmma.descriptor import checked_integer
from layoutalg.targets.registry import lookup

ARCH = "sm_90a"
INSTRUCTION_M = 64
INSTRUCTION_K = 16
N_VALUES = tuple(range(8, 257, 8))
THREADS = 128
SHAPE_SOURCE = "PTX ISA 9.1 section 9.7.15 (matrix shape: m64nNk16 for .f16 and .bf16, N = 8..256 step 8)"

DTYPES = ("f16", "bf16")
ACCUMULATORS: Mapping[str, tuple[str, ...]] = MappingProxyType({"f16": ("f16", "f32"), "bf16": ("f32",)})

_EVIDENCE = MappingProxyType({"A": "measured", "B": "measured"})
"""A: reads of 1,200 descriptors on an H200, f16. B: reads of 640 descriptors on an H200, f16, N = 8, 64, 128, 256."""


def has_wgmma(target: str) -> bool:
    """Return whether an architecture has ``wgmma``: sm_90a alone, not sm_90 and none of compute capability 10.

    Raises: MalformedError: LA340.

    Example:
        >>> has_wgmma("sm_90a"), has_wgmma("sm_90"), has_wgmma("sm_100a")
        (True, False, False)

    Source: PTX ISA 9.1 section 9.7.15.
    """
    return lookup(target).arch == ARCH


def require_wgmma(target: str) -> None:
    """Refuse an architecture without ``wgmma``; descriptors and plans of this package are not for it.

    Raises: MalformedError: LA340. TargetRuleError: LA373.

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


def instruction_rows(operand: str) -> tuple[int, ...]:
    """Return how many rows (M of A, N of B) one instruction can read of that operand.

    Args:
        operand: ``"A"`` or ``"B"``.

    Raises: MalformedError: LA360.

    Example:
        >>> instruction_rows("A"), instruction_rows("B")[-1]
        ((64,), 256)

    Source: PTX ISA 9.1 section 9.7.15.
    """
    if not isinstance(operand, str) or operand not in ("A", "B"):
        raise _operand_error(operand)
    return (INSTRUCTION_M,) if operand == "A" else N_VALUES


def operand_evidence(operand: str) -> str:
    """Return how the read rule of that operand is known: ``"measured"`` or ``"modelled"``.

    Args:
        operand: ``"A"`` or ``"B"``.

    Raises: MalformedError: LA360.

    Example:
        >>> operand_evidence("A")
        'measured'
    """
    if not isinstance(operand, str) or operand not in ("A", "B"):
        raise _operand_error(operand)
    return _EVIDENCE[operand]


def accumulator_coordinates(n: int) -> npt.NDArray[np.int64]:
    """Return which element of D each thread of the warpgroup holds in each accumulator register.

    Mathematically: for thread t with q = t mod 4, g = (t div 4) mod 8, w = t div 32, and value v,
    row = g + 16 w + 8 ((v div 2) mod 2) and column = 2 q + v mod 2 + 8 (v div 4): a bijection onto 64 x n.

    Args:
        n: Columns of the instruction, 8..256 in steps of 8.

    Returns:
        int64[128, n/2, 2]: (row, column) of value v of thread t.

    Raises: MalformedError: LA350, LA359.

    Example:
        >>> accumulator_coordinates(16)[37, :5].tolist()
        [[17, 2], [17, 3], [25, 2], [25, 3], [17, 10]]

    Source: PTX ISA 9.1 section 9.7.15, accumulator fragment of m64nNk16.
    """
    columns = checked_integer("n", n, "accumulator_coordinates")
    if columns not in N_VALUES:
        because = f"n must be a multiple of 8 in 8..256, not {shown(columns)}"
        raise MalformedError(
            Diagnostic("LA359", "no such wgmma shape", ("accumulator_coordinates",), because, source=SHAPE_SOURCE)
        )
    t = np.arange(THREADS, dtype=np.int64)[:, None]
    v = np.arange(columns // 2, dtype=np.int64)[None, :]
    row = t // 4 % 8 + 16 * (t // 32) + 8 * (v // 2 % 2)
    column = 2 * (t % 4) + v % 2 + 8 * (v // 4)
    return np.stack(np.broadcast_arrays(row, column), axis=-1)
