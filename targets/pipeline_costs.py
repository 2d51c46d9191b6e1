"""Costs of asynchronous copies, matrix instructions and barriers in cycles of an SM, by target, with evidence.

The numbers are data: ``pipeline_costs.json`` says of each target on which chip, when and how they were found.
``benchmarks/device.py pipelines`` measures them and writes such an entry. An estimate is good for comparing schedules,
not for predicting times.

References: CUDA C++ Programming Guide, throughput of arithmetic instructions, compute capability 9.0; PTX ISA 9.1,
9.7.15 (``wgmma``).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Literal

from layoutalg.ground.check import Checker
from layoutalg.ground.record import Record
from layoutalg.targets.registry import entry_of, stored

CHECK = Checker("LA978", "invalid pipeline costs")
MOST_CYCLES = 1e6


@dataclass(frozen=True, slots=True)
class PipelineCosts(Record, code="LA978"):
    """Cycles of an SM, and what it does in a cycle.

    Example:
        >>> costs = pipeline_costs("sm_90a")
        >>> costs.mma(64, 256, 64, "bf16")[0], costs.load(32) <= costs.load(32, issues=2) < costs.load(64, issues=2)
        (512, True)
    """

    chip: str
    date: str  # when the numbers were found
    evidence: Literal["measured", "estimate"]
    method: str  # how they were found
    load_latency: float  # from a TMA load to its barrier, without the parts below
    load_latency_per_kib: float  # for each KiB
    load_latency_per_issue: float  # for the second of several copies
    load_occupancy: float  # of the copy engine by one copy, at least
    load_occupancy_per_kib: float  # for each KiB
    store_latency: float  # from a TMA store until its source is read
    store_latency_per_kib: float  # for each KiB
    mma_latency: float  # from the end of the last ``wgmma`` on the tensor cores to its result
    macs: Mapping[str, int] = field(hash=False)  # multiplications a cycle by element type
    arrive: float  # from an arrival to the completion of a phase
    wait: float  # from there until the waiting warp goes on
    float_lanes: int  # additions and multiplications of ``f32`` a cycle
    compare_lanes: int  # maxima a cycle
    convert_lanes: int  # conversions from ``f32`` a cycle
    sfu_lanes: int  # exponentials a cycle

    def _validate(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if isinstance(value, (int, float)) and not 0 <= value < MOST_CYCLES:
                raise CHECK.malformed(name, "must be a number of cycles", value)
        for name, value in self.macs.items():
            CHECK.integer(value, f"macs of {name}", 1, 1 << 20)

    def load(self, kib: float, issues: int = 1) -> tuple[int, int]:
        """Return occupancy and latency of a TMA load of so many KiB in so many copies."""
        occupancy = ceil(max(issues * self.load_occupancy, kib * self.load_occupancy_per_kib))
        extra = self.load_latency_per_issue * (min(issues, 3) - 1)
        return occupancy, occupancy + ceil(self.load_latency + kib * self.load_latency_per_kib + extra)

    def store(self, kib: float, issues: int = 1) -> tuple[int, int]:
        """Return occupancy and latency of a TMA store, until its source is read."""
        occupancy = ceil(max(issues * self.load_occupancy, kib * self.load_occupancy_per_kib))
        return occupancy, occupancy + ceil(self.store_latency + kib * self.store_latency_per_kib)

    def mma(self, m: int, n: int, k: int, dtype: str) -> tuple[int, int]:
        """Return occupancy and latency of a chain of ``wgmma`` that multiplies a tile."""
        CHECK.choice(dtype, "dtype", self.macs)
        occupancy = ceil(m * n * k / self.macs[dtype])
        return occupancy, occupancy + ceil(self.mma_latency)

    @property
    def crossing(self) -> int:
        """Cycles from an arrival to the warp that waits for it."""
        return ceil(self.arrive + self.wait)


@functools.cache
def _table() -> Mapping[str, PipelineCosts]:
    return {target: PipelineCosts(**entry) for target, entry in stored(__file__).items()}


def pipeline_costs(target: str) -> PipelineCosts:
    """Return the costs of a target.

    Raises: RepresentabilityError: LA979: none are known.

    Example:
        >>> pipeline_costs("sm_90a").evidence in ("measured", "estimate")
        True
    """
    return entry_of(_table(), target, "LA979", "no pipeline costs are known")
