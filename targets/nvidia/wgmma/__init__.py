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
from layoutalg.targets.nvidia.wgmma.meaning import accumulator_layout, layout, metadata_layout, register_layout
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
    "MAJORS", "MULTIPLIES", "N_VALUES", "OPERAND_BITS", "SPARSE_CODES", "SWIZZLES", "UNIT_BYTES", "MatrixDescriptor",
    "Multiply", "ReadPattern", "accumulator_coordinates", "accumulator_layout", "checked_major", "decode", "has_wgmma",
    "instruction_k", "instruction_rows", "layout", "metadata_coordinates", "metadata_layout", "multiply", "n_values",
    "operand_evidence", "operand_offsets", "read_pattern", "register_coordinates", "register_layout", "require_wgmma",
    "swizzle_phase", "swizzle_rows", "unread_fields",
]  # fmt: skip
