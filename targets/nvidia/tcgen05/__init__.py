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
    LANE_STEP,
    SHAPES,
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
    scale_copy_bytes,
    scale_layout,
)

__all__ = [
    "ADDRESS_LIMIT_BYTES", "ARCHS", "BITS", "KINDS", "LANE_STEP", "LEADING_MODES", "MAJORS", "SHAPES",
    "SWIZZLES", "InstructionDescriptor", "Kind", "MatrixDescriptor", "ReadPattern", "TmemAccess",
    "TmemAllocation", "TmemUse", "accumulator_layout", "checked_kind", "continued_bits", "data_path", "decode",
    "decode_instruction", "descriptor_violations", "has_tcgen05", "instruction_violations", "layout", "m_values",
    "n_values", "operand_bits", "operand_kind", "read_pattern", "scale_copy_bytes", "scale_layout",
    "swizzled",
]  # fmt: skip
