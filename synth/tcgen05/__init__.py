"""Find ``tcgen05`` descriptors for operands, scale factors and accumulators, or the reasons why there are none."""

from __future__ import annotations

from layoutalg.synth.tcgen05.operand import OperandQuestion, find_operand
from layoutalg.synth.tcgen05.scales import find_scales
from layoutalg.synth.tcgen05.tmem import find_registers

__all__ = ["OperandQuestion", "find_operand", "find_registers", "find_scales"]
