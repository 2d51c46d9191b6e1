"""Bandwidth of copies by the bytes that are contiguous, and the time of a launch, by target, with evidence.

The numbers are data: ``memory_costs.json`` says of each target on which chip, when and how they were found;
``benchmarks/device.py indirect`` measures them and writes such an entry. Bandwidth counts bytes read and written.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import log2
from typing import Literal

from layoutalg.ground.check import Checker
from layoutalg.ground.record import Record
from layoutalg.targets.registry import entry_of, stored

CHECK = Checker("LA941", "invalid memory costs")
WAYS = ("vector", "bulk", "box")
MOST = 1e9


@dataclass(frozen=True, slots=True)
class MemoryCosts(Record, code="LA941"):
    """What copies cost.

    Example:
        >>> costs = memory_costs("sm_90a")
        >>> costs.bandwidth("vector", 1 << 20) >= costs.bandwidth("vector", 48) >= costs.bandwidth("vector", 16)
        True
    """

    chip: str
    date: str  # when the numbers were found
    evidence: Literal["measured", "assumed"]
    method: str  # how they were found
    launch_us: float  # time between kernels of one stream or graph
    granules: tuple[int, ...]  # contiguous bytes, rising
    vector: tuple[float, ...]  # GB/s for each, by loads and stores of 16 bytes
    bulk: tuple[float, ...]  # the same by ``cp.async.bulk`` of one run each
    box: tuple[float, ...]  # the same by boxes of the copy engine
    shuffles_per_us: float  # warp shuffles of all SMs
    # blocks of a gather through shared memory, one row each, that begin and end beside the copying
    blocks_per_us: float
    gathers_per_us: float  # loads by a warp of 4 bytes per lane from any places, at the best
    sectors_per_us: float  # sectors of 32 bytes that loads get from L1
    cached_gbps: float  # GB/s read from L2
    cache_bytes: int  # bytes of L2

    def _validate(self) -> None:
        if not self.granules or self.granules[0] < 1 or any(one >= two for one, two in pairwise(self.granules)):
            raise CHECK.malformed("granules", "must be rising numbers of bytes", self.granules)
        for name in WAYS:
            if len(getattr(self, name)) != len(self.granules):
                raise CHECK.malformed(name, f"must have {len(self.granules)} entries", len(getattr(self, name)))
        single = ("launch_us", "shuffles_per_us", "blocks_per_us", "gathers_per_us", "sectors_per_us", "cached_gbps",
                  "cache_bytes")  # fmt: skip
        numbers = [(name, value) for name in WAYS for value in getattr(self, name)]
        for name, value in numbers + [(name, getattr(self, name)) for name in single]:
            if not 0 < value < MOST:
                raise CHECK.malformed(name, "must be a positive number", value)

    def bandwidth(self, way: str, granule: int) -> float:
        """Return GB/s of copies of so many contiguous bytes; between the measured ones linear in their logarithm."""
        table = getattr(self, CHECK.choice(way, "way", WAYS))
        size = CHECK.integer(granule, "granule", 1)
        if size <= self.granules[0]:
            return float(table[0]) * size / self.granules[0]
        points = list(zip(self.granules, table, strict=True))
        for (low, one), (high, other) in pairwise(points):
            if size <= high:
                return float(one + (other - one) * log2(size / low) / log2(high / low))
        return float(table[-1])


@functools.cache
def _table() -> Mapping[str, MemoryCosts]:
    return {target: MemoryCosts(**entry) for target, entry in stored(__file__).items()}


def memory_costs(target: str) -> MemoryCosts:
    """Return the costs of a target.

    Raises: RepresentabilityError: LA942: none are known.

    Example:
        >>> memory_costs("sm_90a").chip
        'NVIDIA H200'
    """
    return entry_of(_table(), target, "LA942", "no memory costs are known")
