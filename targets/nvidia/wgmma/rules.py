"""The rules that make a layout an operand or accumulator of ``wgmma``, as data."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from layoutalg.targets.model import Evidence, Finding, Rule, Source

_MATRIX = "9.7.15.5.1 (register fragments, matrix descriptor and canonical layouts)"
_H100 = ("NVIDIA H100 80GB HBM3", "580.159.04")


def _rule(rule: str, statement: str, limit: str, section: str, finding: Finding, seen: str) -> Rule:
    return Rule(rule, statement, limit, (Source("PTX ISA", "9.1", section),), True, (Evidence(*_H100, finding, seen),))


_TABLE = (
    _rule("WGMMA_ARCH", "wgmma needs sm_90a.", "sm_90a", "9.7.15 (target ISA notes)",
          "not tested", "other chips were not run"),
    _rule("WGMMA_DTYPE", "Operands are f16, bf16, tf32, e4m3, e5m2, s8, u8 or b1.", "8 types",
          "9.7.15.2", "not tested", "the assembler refuses others"),
    _rule("WGMMA_ROWS", "A has 64 rows; B has an N that is legal for its type.", "64; 8..256", "9.7.15.2",
          "not tested", "every legal N ran"),
    _rule("WGMMA_K", "One instruction reads 256 bits of a row (512 of B if A is sparse).", "K % 256 bits", "9.7.15.2",
          "not tested", "every type ran with its K"),
    _rule("WGMMA_BITS", "Eight one-bit elements along K are the bits of one byte, low bit first.", "b1", "9.7.15.2",
          "enforced", "each bit's place was read back"),
    _rule("WGMMA_MAJOR", "The operand is contiguous along K; 16-bit types may be contiguous along MN instead.",
          "16 bytes", _MATRIX, "enforced", "reads of random descriptors"),
    _rule("WGMMA_PITCH", "Rows of a group of eight are one swizzle span apart, or 16 bytes.", "16, 32, 64, 128 bytes",
          _MATRIX, "enforced", "reads of random descriptors"),
    _rule("WGMMA_UNIFORM", "Groups are evenly spaced.", "LBO, SBO", _MATRIX, "enforced",
          "reads of random descriptors"),
    _rule("WGMMA_ALIGN", "Starts and distances are multiples of 16 bytes.", "16 bytes", _MATRIX, "not tested",
          "the fields cannot hold others"),
    _rule("WGMMA_ZERO", "Distances that are read are not 0.", "> 0", _MATRIX, "not tested",
          "descriptors with 0 were not run"),
    _rule("WGMMA_ADDRESS", "Addresses and distances fit 18 bits.", "< 2^18", _MATRIX, "not tested",
          "addresses beyond were not run"),
    _rule("WGMMA_REPEAT", "The digits of a coordinate add up over the whole instruction.", "", _MATRIX, "enforced",
          "reads of random descriptors"),
    _rule("WGMMA_SWIZZLE", "The XOR is that of the mode: chunk bits with address bits 7 and up.", "4 modes",
          _MATRIX, "enforced", "reads of random descriptors"),
    _rule("WGMMA_LAYOUT", "The layout is strided, followed by one hardware swizzle.", "", _MATRIX, "not tested",
          "descriptors can express nothing else"),
    _rule("WGMMA_FRAGMENT", "Registers hold the instruction's fragment, warps 16 rows each in order.", "64 rows",
          _MATRIX, "enforced", "each register's place was read back"),
    _rule("WGMMA_SPARSE", "A may be sparse for f16, bf16, tf32 and the 8-bit types.", "not b1", "9.7.15.6",
          "not tested", "every type with sparse instructions ran"),
    _rule("WGMMA_METADATA", "Each contributing thread holds the codes of its row and groups.", "", "9.7.15.6.1",
          "enforced", "random words were read back through the product"),
)  # fmt: skip
RULES: Mapping[str, Rule] = MappingProxyType({rule.id: rule for rule in _TABLE})
"""The rules by id."""
