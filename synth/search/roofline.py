"""Roofline estimates: the cycles of a kernel from what it multiplies, moves and issues.

A kernel of equal blocks takes as long as its slowest resource. Multiplications, shared memory and issue belong to one
multiprocessor: the blocks are worked off in turns, and the last turn is as long as a full one. HBM and the L2 cache
belong to all.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isqrt, prod
from typing import Final

from layoutalg.ground.check import Checker
from layoutalg.ground.errors import Diagnostic, RepresentabilityError
from layoutalg.ground.record import Record
from layoutalg.ground.verdict import Unknown
from layoutalg.targets.pipeline_costs import pipeline_costs
from layoutalg.targets.roofs import roofs
from layoutalg.targets.target_model import model_of

CHECK = Checker("LA886", "invalid search")


@dataclass(frozen=True, slots=True)
class Work(Record, code="LA886"):
    """What a kernel does: per block, except what the chip does as a whole.

    Args:
        blocks: Blocks of the whole kernel.
        dtype: Element type of the multiplications.
        macs: Multiplications.
        at_once: Blocks that run at the same time; 0: one on each multiprocessor.
        waits: Cycles in which its multiplications wait: for barriers, and for the last one before a slot is free.
        copies: Cycles of its copies.
        alone: Cycles beside which nothing else of it runs: the first copy, the result.
        shared_bytes: Bytes written to and read from shared memory.
        issues: Instructions of warps.
        latency: Cycles that a block waits for copies, multiplications and barriers that do not overlap.
        l2_bytes: Bytes that pass the L2 cache, of the whole kernel.
        hbm_bytes: Bytes from and to memory, of the whole kernel.
    """

    blocks: int
    dtype: str
    macs: int
    at_once: int = 0
    waits: int = 0
    copies: int = 0
    alone: int = 0
    shared_bytes: int = 0
    issues: int = 0
    latency: int = 0
    l2_bytes: int = 0
    hbm_bytes: int = 0

    def _validate(self) -> None:
        for name in self.__slots__:
            if name != "dtype":
                CHECK.integer(getattr(self, name), name, int(name == "blocks"))


def times(work: Work, target: str = "sm_90a") -> dict[str, float]:
    """Return the cycles that a kernel takes on each resource alone."""
    chip, macs = roofs(target), pipeline_costs(target).macs
    CHECK.choice(work.dtype, "dtype", macs)
    turns = ceil(work.blocks / (work.at_once or chip.units))
    block = {
        "mma": work.macs / macs[work.dtype] + work.waits,
        "copies": work.copies,
        "shared": work.shared_bytes / chip.shared_bytes,
        "issue": work.issues / chip.issues,
        "latency": work.latency,
    }
    whole = {"l2": work.l2_bytes / chip.l2_bytes, "hbm": work.hbm_bytes / chip.hbm_bytes}
    return {name: turns * (float(amount) + work.alone) for name, amount in block.items()} | whole


def cycles(work: Work, target: str = "sm_90a") -> tuple[float, str]:
    """Return the estimated cycles of a kernel, and the resource that bounds them.

    Example:
        >>> cycles(Work(132, "bf16", macs=128 * 256 * 4096, hbm_bytes=2**20))
        (65536.0, 'mma')
        >>> cycles(Work(133, "bf16", macs=128 * 256 * 4096, hbm_bytes=2**20))[0]
        131072.0
    """
    found = times(work, target)
    slowest = max(found, key=lambda name: found[name])
    return found[slowest], slowest


def least_traffic_tile(room: int, row_step: int, column_step: int) -> tuple[int, int] | None:
    """Return the tile of at most ``room`` accumulators that loads the fewest bytes a multiplication, or None.

    A tile of r x c loads r + c elements for r c multiplications: least at r = c = sqrt(room). With steps, an optimum
    has the largest r for its c or the largest c for its r, and its smaller side is at most sqrt(room).

    Example:
        >>> least_traffic_tile(128 * 256, 64, 16), least_traffic_tile(128 * 128, 64, 16)
        ((192, 160), (128, 128))
    """
    CHECK.integer(room, "room", 1, 2**24)
    CHECK.integer(row_step, "row_step", 1)
    CHECK.integer(column_step, "column_step", 1)
    side = isqrt(room)
    found = [(rows, room // rows // column_step * column_step) for rows in range(row_step, side + 1, row_step)]
    found += [
        (room // columns // row_step * row_step, columns) for columns in range(column_step, side + 1, column_step)
    ]
    whole = [tile for tile in found if min(tile) > 0]
    return min(whole, key=lambda tile: ((tile[0] + tile[1]) / (tile[0] * tile[1]), tile), default=None)


TIERS: Final = {
    "registers": (("registers_per_block",), 4),
    "tensor": (("tmem_columns", "tmem_lanes"), 4),
    "shared": (("shared_bytes_per_block_optin",), 1),
}
"""Memory that accumulators can be in: the limits whose product counts its cells, and bytes of a cell."""


def tier_bytes(tier: str, target: str = "sm_90a") -> int:
    """Return the bytes that a block has in a tier: ``"registers"``, ``"tensor"`` or ``"shared"``.

    Raises: RepresentabilityError: LA979: the target has no such memory.

    Example:
        >>> tier_bytes("registers"), tier_bytes("tensor", "sm_100a")
        (262144, 262144)
    """
    names, cell = TIERS[CHECK.choice(tier, "tier", TIERS)]
    limits = [model_of(target).limit(name) for name in names]
    values = [limit.value for limit in limits if not isinstance(limit, Unknown) and isinstance(limit.value, int)]
    found = prod(values) * cell if len(values) == len(names) else 0
    if not found:
        raise RepresentabilityError(Diagnostic("LA979", f"no {tier} memory is known", (target,)))
    return found


def tier_tile(tier: str, target: str, row_step: int, column_step: int, buffers: int = 1) -> tuple[int, int] | None:
    """Return the tile that loads least a multiplication, with its ``f32`` accumulators in a tier.

    Args:
        tier: As of ``tier_bytes``.
        target: Architecture.
        row_step: Rows of an instruction; 128 in tensor memory, where a column holds a number of each of 128 rows.
        column_step: Columns of an instruction.
        buffers: Tiles that are in the tier at once: 2 if one is stored while the next is multiplied.

    Example:
        >>> tier_tile("tensor", "sm_100a", 128, 16), tier_tile("tensor", "sm_100a", 128, 16, buffers=2)
        ((256, 256), (128, 256))
    """
    CHECK.integer(buffers, "buffers", 1, 2**16)
    if tier == "tensor" and row_step % 128:
        raise CHECK.malformed("row_step", "must be a multiple of 128 in tensor memory", row_step)
    room = tier_bytes(tier, target) // (4 * buffers)
    return least_traffic_tile(room, row_step, column_step) if room else None
