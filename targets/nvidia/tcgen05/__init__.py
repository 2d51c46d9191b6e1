"""``tcgen05`` on sm_100a and sm_103a, as documented: shared-memory and instruction descriptors."""

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
    KINDS,
    InstructionDescriptor,
    Kind,
    checked_kind,
    decode_instruction,
    instruction_violations,
    m_values,
    n_values,
)

__all__ = [
    "ADDRESS_LIMIT_BYTES", "ARCHS", "KINDS", "LEADING_MODES", "SWIZZLES", "InstructionDescriptor", "Kind",
    "MatrixDescriptor", "checked_kind", "decode", "decode_instruction", "descriptor_violations", "has_tcgen05",
    "instruction_violations", "m_values", "n_values",
]  # fmt: skip
