"""Rates of a chip for estimates of kernels: what it moves and issues in a cycle, by target, with evidence.

The numbers are data, ``roofs.json``; those of multiplications are in ``targets.pipeline_costs``. ``"assumed"`` numbers
rank candidates and do not predict times: HBM as in the data sheet (4.8 TB/s), the L2 cache 64 bytes for each
multiprocessor, shared memory and issue as in the programming guide; copied bytes and steps fit 264 products that an
H200 timed (``tests/data/measured/products_dev.json.gz``). ``benchmarks/device.py search`` measures them.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from layoutalg.ground.check import Checker
from layoutalg.ground.errors import Diagnostic, RepresentabilityError
from layoutalg.ground.record import Record
from layoutalg.targets.registry import lookup

CHECK = Checker("LA885", "invalid roofs of a chip")


@dataclass(frozen=True, slots=True)
class Roofs(Record, code="LA885"):
    """What a chip does in a cycle.

    Args:
        chip: The chip.
        evidence: ``"measured"``, ``"documented"`` or ``"assumed"``.
        units: Multiprocessors.
        clock_mhz: Cycles in a microsecond.
        hbm_bytes: Bytes from or to memory, by the whole chip.
        l2_bytes: Bytes from or to the L2 cache, by the whole chip.
        shared_bytes: Bytes from or to shared memory, by one multiprocessor.
        issues: Instructions of a warp, by one multiprocessor.
        copied_bytes: Bytes, in whole lines of the L2 cache, that the copies of one multiprocessor load.
        step: Cycles that a step of multiplications takes beside multiplying and crossing barriers.

    Example:
        >>> roofs("sm_90a").units
        132
    """

    chip: str
    evidence: Literal["measured", "documented", "assumed"]
    units: int
    clock_mhz: float
    hbm_bytes: float
    l2_bytes: float
    shared_bytes: float
    issues: float
    copied_bytes: float
    step: float

    def _validate(self) -> None:
        for name in self.__slots__[2:]:
            if not 0 < getattr(self, name) < 2**31:
                raise CHECK.malformed(name, "must be positive", getattr(self, name))


@functools.cache
def _table() -> Mapping[str, Roofs]:
    text = Path(__file__).with_suffix(".json").read_text(encoding="utf-8")
    return {target: Roofs(**entry) for target, entry in json.loads(text).items()}


def roofs(target: str) -> Roofs:
    """Return the rates of a target.

    Raises: RepresentabilityError: LA979: none are known.
    """
    lookup(target)
    if target not in _table():
        because = f"known are those of {', '.join(_table())}"
        raise RepresentabilityError(Diagnostic("LA979", "no rates are known", (target,), because))
    return _table()[target]
