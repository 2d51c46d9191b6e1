"""``wgmma`` on sm_90a: matrix descriptors, which bytes they read, instructions, register fragments."""

from __future__ import annotations

from layoutalg.targets.nvidia.wgmma.descriptor import (
    ADDRESS_LIMIT_BYTES,
    SWIZZLES,
    UNIT_BYTES,
    MatrixDescriptor,
    decode,
    swizzle_rows,
)
from layoutalg.targets.nvidia.wgmma.fragments import (
    SPARSE_CODES,
    accumulator_coordinates,
    metadata_coordinates,
    register_coordinates,
)
from layoutalg.targets.nvidia.wgmma.instructions import (
    FLOAT_N,
    INTEGER_N,
    MULTIPLIES,
    OPERAND_BITS,
    Multiply,
    instruction_k,
    multiply,
    n_values,
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
    has_wgmma,
    instruction_rows,
    operand_evidence,
    require_wgmma,
)

__all__ = [
    "ACCUMULATORS", "ADDRESS_LIMIT_BYTES", "ARCH", "DTYPES", "FLOAT_N", "INSTRUCTION_K", "INSTRUCTION_M", "INTEGER_N",
    "MAJORS", "MULTIPLIES", "N_VALUES", "OPERAND_BITS", "SPARSE_CODES", "SWIZZLES", "UNIT_BYTES",
    "MatrixDescriptor", "Multiply", "ReadPattern", "accumulator_coordinates", "checked_major", "decode", "has_wgmma",
    "instruction_k", "instruction_rows", "metadata_coordinates", "multiply", "n_values", "operand_evidence",
    "operand_offsets", "read_pattern", "register_coordinates", "require_wgmma", "swizzle_phase", "swizzle_rows",
    "unread_fields",
]  # fmt: skip
