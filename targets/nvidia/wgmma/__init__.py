"""``wgmma`` on sm_90a for f16 and bf16: matrix descriptors, which bytes they read, instruction shapes."""

from __future__ import annotations

from layoutalg.targets.nvidia.wgmma.descriptor import (
    ADDRESS_LIMIT_BYTES,
    SWIZZLES,
    UNIT_BYTES,
    MatrixDescriptor,
    decode,
    swizzle_rows,
)
from layoutalg.targets.nvidia.wgmma.operand import (
    MAJORS,
    ReadPattern,
    checked_major,
    operand_offsets,
    read_pattern,
    swizzle_phase,
    unread_fields,
)
from layoutalg.targets.nvidia.wgmma.shapes import (
    ACCUMULATORS,
    ARCH,
    DTYPES,
    INSTRUCTION_K,
    INSTRUCTION_M,
    N_VALUES,
    accumulator_coordinates,
    has_wgmma,
    instruction_rows,
    operand_evidence,
    require_wgmma,
)

__all__ = [
    "ACCUMULATORS", "ADDRESS_LIMIT_BYTES", "ARCH", "DTYPES", "INSTRUCTION_K", "INSTRUCTION_M", "MAJORS", "N_VALUES",
    "SWIZZLES", "UNIT_BYTES", "MatrixDescriptor", "ReadPattern", "accumulator_coordinates", "checked_major", "decode",
    "has_wgmma", "instruction_rows", "operand_evidence", "operand_offsets", "read_pattern", "require_wgmma",
    "swizzle_phase", "swizzle_rows", "unread_fields",
]  # fmt: skip
