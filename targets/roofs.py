"""Rates of a chip for estimates of kernels: what it moves and issues in a cycle, by target, with evidence.

The numbers are data, ``roofs.json``; those of multiplications are in ``targets.pipeline_costs``, the bandwidth of
memory is the best of ``targets.memory_costs``. Records: ``units``: the driver; ``shared_bytes``: eight warps load or
store a word in 8.16 and 7.94 cycles, 126 and 129 bytes (``conversion_costs_dev``); ``l2_bytes``: the most that a
product loaded, 14.2 TB/s (``search_dev``, 64 x 128 of 4096); ``copied_bytes`` and ``step`` fit 264 products
(``products_dev``). ``assumed`` names what no record has: the clock under load, and the instructions of four schedulers,
as in the programming guide. ``benchmarks/device.py roofs`` measures all but the fitted ones.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from layoutalg.ground.check import Checker
from layoutalg.ground.record import Record
from layoutalg.targets.memory_costs import memory_costs
from layoutalg.targets.registry import entry_of, stored

CHECK = Checker("LA885", "invalid roofs of a chip")


@dataclass(frozen=True, slots=True)
class Roofs(Record, code="LA885"):
    """What a chip does in a cycle.

    Example:
        >>> roofs("sm_90a").units
        132
    """

    chip: str
    assumed: tuple[str, ...]  # numbers that no record has: they rank candidates and do not predict times
    units: int  # multiprocessors
    clock_mhz: float  # cycles in a microsecond
    hbm_bytes: float  # bytes from or to memory, by the whole chip
    l2_bytes: float  # bytes from or to the L2 cache, by the whole chip
    shared_bytes: float  # bytes from or to shared memory, by one multiprocessor
    issues: float  # instructions of a warp, by one multiprocessor
    copied_bytes: float  # bytes, in whole lines of the L2 cache, that the copies of one multiprocessor load
    step: float  # cycles that a step of multiplications takes beside multiplying and crossing barriers

    @property
    def evidence(self) -> str:
        """``"assumed"`` if any number is, otherwise ``"measured"``."""
        return "assumed" if self.assumed else "measured"

    def _validate(self) -> None:
        for name in self.assumed:
            CHECK.choice(name, "assumed", self.__slots__[2:])
        for name in self.__slots__[2:]:
            if not 0 < getattr(self, name) < 2**31:
                raise CHECK.malformed(name, "must be positive", getattr(self, name))


@functools.cache
def _table() -> Mapping[str, Roofs]:
    found = {}
    for target, entry in stored(__file__).items():
        memory, cycles = memory_costs(target), 1e-3 * entry["clock_mhz"]  # of a nanosecond
        found[target] = Roofs(**entry, hbm_bytes=round(max(memory.vector) / cycles, 1))
    return found


def roofs(target: str) -> Roofs:
    """Return the rates of a target.

    Raises: RepresentabilityError: LA979: none are known.
    """
    return entry_of(_table(), target, "LA979", "no rates are known")
