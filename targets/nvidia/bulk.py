"""Bulk copies of one contiguous run of bytes, without a tensor map: requirements and supported reductions.

Implementation notes: the reductions are those that the CUDA 13 assembler accepts for sm_90a, out of 14 types times 8
operations (``tests/property/test_admission_bulk.py`` checks again). All of them, and copies in both directions, ran on
an H100 (``tests/data/measured/forms_dev.json.gz``): there a misaligned address is an error, a misaligned size is
silently rounded down.

References: PTX ISA 9.1, 9.7.9.25.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from layoutalg.targets.model import Rule, Source

UNIT_BYTES = 16
"""Sizes and both addresses are multiples of this."""
_SOURCE = Source("PTX ISA", "9.1", "9.7.9.25.4 Bulk copy: cp.async.bulk, cp.reduce.async.bulk")
_TABLE = (
    ("BULK_CONTIGUOUS", "a copy moves one run of bytes that is contiguous on both sides", "one run"),
    ("BULK_SIZE", "its size is a multiple of 16 bytes", "16 bytes"),
    ("BULK_ALIGN", "it starts at multiples of 16 bytes on both sides", "16 bytes"),
    ("BULK_BOUNDS", "every tile is inside the tensor: nothing is filled or skipped", "whole tiles"),
    ("BULK_REDUCE_DTYPE", "the reduction has an instruction for the element type", "per operation"),
    ("BULK_COPIES", "at most as many copies as requested", "the option issues"),
)
RULES: Mapping[str, Rule] = MappingProxyType(
    {name: Rule(name, text, limit, (_SOURCE,), documented=True, scope="use") for name, text, limit in _TABLE}
)
"""Rules of a copy by id; ``BULK_COPIES`` is the caller's own limit."""

REDUCTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "add": ("u32", "s32", "u64", "f16", "bf16", "f32", "f64"),
        "min": ("u32", "s32", "u64", "s64", "f16", "bf16"),
        "max": ("u32", "s32", "u64", "s64", "f16", "bf16"),
        "inc": ("u32",),
        "dec": ("u32",),
        **dict.fromkeys(("and", "or", "xor"), ("u32", "s32", "u64", "s64")),
    }
)
"""Element types of each reduction to global memory; bitwise ones depend on the width alone (32 or 64 bits)."""
NO_FLUSH = ("f16", "bf16")
"""Types whose ``add`` is written with ``.noftz``."""
INSTRUCTIONS: Mapping[str, str] = MappingProxyType(
    {
        "bulk": "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes",
        "bulk.multicast": "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster",
        "bulk.store": "cp.async.bulk.global.shared::cta.bulk_group",
        **{f"bulk.reduce.{name}": f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{name}" for name in REDUCTIONS},
    }
)
"""The instruction of each consumer; a reduction appends its type."""


def instruction(consumer: str, dtype: str) -> str:
    """Return the name of the instruction in PTX.

    Args:
        consumer: A key of ``INSTRUCTIONS``.
        dtype: Element type.

    Example:
        >>> instruction("bulk.reduce.add", "bf16")
        'cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16'
    """
    name = INSTRUCTIONS[consumer]
    if ".reduce." not in consumer:
        return name
    if consumer.rpartition(".")[2] in ("and", "or", "xor"):
        return f"{name}.b{dtype[1:]}"
    flush = ".noftz" if consumer.endswith("add") and dtype in NO_FLUSH else ""
    return f"{name}{flush}.{dtype}"
