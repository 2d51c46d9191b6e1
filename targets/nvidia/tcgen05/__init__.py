"""``tcgen05`` on sm_100a and sm_103a, as documented: descriptors, what they denote, tensor memory, scale factors."""

from __future__ import annotations

from layoutalg.targets.nvidia.tcgen05.descriptor import (
    ADDRESS_LIMIT_BYTES,
    ARCHS,
    LEADING_MODES,
    SWIZZLES,
    MatrixDescriptor,
    decode,
    descriptor_violations,
    has_tcgen05,
)
from layoutalg.targets.nvidia.tcgen05.instruction import (
    BITS,
    KINDS,
    InstructionDescriptor,
    Kind,
    checked_kind,
    decode_instruction,
    instruction_violations,
    m_values,
    n_values,
)
from layoutalg.targets.nvidia.tcgen05.memory import (
    COPY_SHAPES,
    LANE_STEP,
    SHAPES,
    CopyShape,
    TmemAccess,
    TmemAllocation,
    TmemUse,
    accumulator_layout,
    data_path,
)
from layoutalg.targets.nvidia.tcgen05.operand import (
    MAJORS,
    ReadPattern,
    continued_bits,
    layout,
    operand_bits,
    operand_kind,
    read_pattern,
    swizzled,
)
from layoutalg.targets.nvidia.tcgen05.scales import (
    scale_columns,
    scale_copy_bytes,
    scale_layout,
    tensor_memory_scale,
)

__all__ = [
    "ADDRESS_LIMIT_BYTES", "ARCHS", "BITS", "COPY_SHAPES", "KINDS", "LANE_STEP", "LEADING_MODES", "MAJORS", "SHAPES",
    "SWIZZLES", "CopyShape", "InstructionDescriptor", "Kind", "MatrixDescriptor", "ReadPattern", "TmemAccess",
    "TmemAllocation", "TmemUse", "accumulator_layout", "checked_kind", "continued_bits", "data_path", "decode",
    "decode_instruction", "descriptor_violations", "has_tcgen05", "instruction_violations", "layout", "m_values",
    "n_values", "operand_bits", "operand_kind", "read_pattern", "scale_columns", "scale_copy_bytes", "scale_layout",
    "swizzled", "tensor_memory_scale",
]  # fmt: skip
