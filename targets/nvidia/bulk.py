"""Copies of one run of bytes by the copy engine, without a map: what they need, and which reductions they do.

Implementation notes: the reductions are those that the assembler of CUDA 13 takes for sm_90a, all 14 types of all 8
operations asked (``tests/property/test_admission_bulk.py`` asks again). All of them, and copies in both directions, ran
on an H100 (``tests/data/measured/forms_dev.json.gz``): an address off its multiple is an error there, and a size off
its multiple is rounded down without one.

References: PTX ISA 9.1, cp.async.bulk, cp.reduce.async.bulk.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from layoutalg.targets.model import Rule, Source

UNIT_BYTES = 16
"""Sizes and both addresses are multiples of this."""
_SOURCE = Source("PTX ISA", "9.1", "cp.async.bulk, cp.reduce.async.bulk")
_TABLE = (
    ("BULK_CONTIGUOUS", "a copy moves one run of bytes that is contiguous on both sides", "one run"),
    ("BULK_SIZE", "its size is a multiple of 16 bytes", "16 bytes"),
    ("BULK_ALIGN", "it starts at multiples of 16 bytes on both sides", "16 bytes"),
    ("BULK_BOUNDS", "every tile lies inside the tensor: nothing is filled or left out", "whole tiles"),
    ("BULK_REDUCE_DTYPE", "a reduction has an instruction of the element type", "per operation"),
    ("BULK_COPIES", "at most as many copies as were asked for", "the option issues"),
)
RULES: Mapping[str, Rule] = MappingProxyType(
    {name: Rule(name, text, limit, (_SOURCE,), documented=True, scope="use") for name, text, limit in _TABLE}
)
"""What a copy must keep, by id; ``BULK_COPIES`` is the caller's own."""

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
"""Element types of each reduction to global memory; the bitwise ones are of 32 or 64 bits whatever they mean."""
NO_FLUSH = ("f16", "bf16")
"""Types whose sum is written ``.noftz``."""
INSTRUCTIONS: Mapping[str, str] = MappingProxyType(
    {
        "bulk": "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes",
        "bulk.multicast": "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster",
        "bulk.store": "cp.async.bulk.global.shared::cta.bulk_group",
        **{f"bulk.reduce.{name}": f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{name}" for name in REDUCTIONS},
    }
)
"""The instruction of each consumer; a reduction's type follows it."""


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
