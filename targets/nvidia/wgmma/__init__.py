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
    accumulator_layout,
    metadata_coordinates,
    register_coordinates,
    register_layout,
)
from layoutalg.targets.nvidia.wgmma.instructions import (
    ARCH,
    DTYPES,
    FLOAT_N,
    INSTRUCTION_M,
    INTEGER_N,
    MULTIPLIES,
    N_VALUES,
    OPERAND_BITS,
    Multiply,
    has_wgmma,
    instruction_k,
    instruction_rows,
    multiply,
    n_values,
    operand_evidence,
    require_wgmma,
)
from layoutalg.targets.nvidia.wgmma.operand import (
    MAJORS,
    ReadPattern,
    checked_major,
    layout,
    operand_offsets,
    read_pattern,
    swizzle_phase,
    unread_fields,
)

__all__ = [
    "ADDRESS_LIMIT_BYTES", "ARCH", "DTYPES", "FLOAT_N", "INSTRUCTION_M", "INTEGER_N",
    "MAJORS", "MULTIPLIES", "N_VALUES", "OPERAND_BITS", "SPARSE_CODES", "SWIZZLES", "UNIT_BYTES", "MatrixDescriptor",
    "Multiply", "ReadPattern", "accumulator_coordinates", "accumulator_layout", "checked_major", "decode", "has_wgmma",
    "instruction_k", "instruction_rows", "layout", "metadata_coordinates", "multiply", "n_values",
    "operand_evidence", "operand_offsets", "read_pattern", "register_coordinates", "register_layout", "require_wgmma",
    "swizzle_phase", "swizzle_rows", "unread_fields",
]  # fmt: skip
