"""Costs of register-moving instructions by target, with evidence.

Notation: cycles of an SM (compute unit) per instruction of one warp while many warps share the unit. Few warps leave
parts of it idle: an instruction costs a warp at least ``issue`` cycles. Latencies are cycles until a dependent
instruction can issue; warps that wait together pay them once.

References: CUDA C++ Programming Guide, throughput of native arithmetic instructions (32 lanes of a shuffle, 64 of a
select or a byte permutation a cycle, 16 in each of four schedulers); AMD CDNA 3 and RDNA 3 architecture guides (LDS of
128 bytes a cycle, 64 lanes of a vector instruction a cycle, 16 in each of four SIMD units). Latencies are not
documented; they are assumed until a device has been measured. ``sm_90a`` is measured:
``tests/data/measured/conversion_costs_dev.json.gz``. There a warp that only shuffles takes 4.6 to 5 cycles for each,
not ``issue``; mixed with selects in whole conversions, shuffles do cost ``issue`` (``conversions_dev.json.gz``).
"""

from __future__ import annotations

from dataclasses import dataclass

from layoutalg.ground.check import Checker
from layoutalg.ground.kinds import checked_kinds
from layoutalg.targets.registry import lookup

MOST_CYCLES = 1e6
CHECK = Checker("LA932", "invalid instruction costs")


@dataclass(frozen=True, slots=True)
class InstructionCosts:
    """SM cycles for the instructions of one warp, and latencies."""

    issue: float  # minimum cycles of one warp for a register instruction or a bank turn
    shuffle: float  # a shuffle of one word
    select: float  # a select, including its share of the comparison
    permute: float  # a byte permutation
    turn: float  # a bank turn
    shuffle_latency: float  # from a shuffle to the use of its result
    shared_latency: float  # from a shared-memory load to the use of its result, including the store before it
    block_barrier: float  # a block barrier
    warp_barrier: float  # a warp barrier
    evidence: str  # ``"measured"``; ``"documented"``: throughputs are documented, latencies assumed; ``"assumed"``

    def __post_init__(self) -> None:
        checked_kinds(self, "LA932")
        for name in self.__slots__[:-1]:
            if not 0 <= getattr(self, name) < MOST_CYCLES:
                raise CHECK.malformed(name, "must be a number of cycles", getattr(self, name))
        if self.evidence not in ("measured", "documented", "assumed"):
            raise CHECK.malformed("evidence", "must be measured, documented or assumed", self.evidence)

    def taken(self, shuffles: float, selects: float, permutes: float, turns: float, warps: int) -> float:
        """Return the SM cycles for per-warp instruction counts and the bank turns of all warps.

        Mathematically: the sum of n * max(issue, warps * cycles) over instructions that every warp executes n times;
        each warp's share of bank turns is turns / warps.

        Args:
            shuffles: Shuffles per thread.
            selects: Selects per thread.
            permutes: Byte permutations per thread.
            turns: Bank turns of all warps.
            warps: Warps of the block.

        Example:
            >>> costs = instruction_costs("sm_90a")
            >>> costs.taken(8, 0, 0, 0, 1), costs.taken(8, 0, 0, 0, 4), costs.taken(0, 8, 0, 16, 4)
            (16.0, 32.0, 32.0)
        """
        each = ((shuffles, self.shuffle), (selects, self.select), (permutes, self.permute), (turns / warps, self.turn))
        return sum(count * max(self.issue, warps * cycles) for count, cycles in each)


_NVIDIA = InstructionCosts(2.0, 1.0, 0.5, 0.5, 1.0, 23.0, 52.0, 24.0, 4.0, "documented")
_CDNA = InstructionCosts(4.0, 2.0, 1.0, 1.0, 1.0, 64.0, 128.0, 32.0, 4.0, "documented")
_RDNA = InstructionCosts(1.0, 1.0, 0.5, 0.5, 1.0, 48.0, 96.0, 32.0, 4.0, "assumed")
_HOPPER = InstructionCosts(2.0, 1.0, 0.5, 0.5, 1.0, 24.0, 28.0, 20.0, 1.0, "measured")
COSTS: dict[str, InstructionCosts] = {"sm_90a": _HOPPER, "nvidia": _NVIDIA, "amd64": _CDNA, "amd32": _RDNA}
"""By target if it has its own entry (a measurement), otherwise by vendor and lanes."""


def instruction_costs(target: str) -> InstructionCosts:
    """Return the costs of a target's instructions.

    Example:
        >>> instruction_costs("sm_90a").select, instruction_costs("gfx942").evidence
        (0.5, 'documented')
    """
    found = lookup(CHECK.kind(target, str, "target"))
    family = "nvidia" if found.vendor == "nvidia" else f"amd{found.lanes}"
    return COSTS.get(target, COSTS[family])
