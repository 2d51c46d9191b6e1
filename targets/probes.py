"""Behaviour of devices that no document states: what a probe has shown, by target.

The entries are data, ``probes.json``: ``benchmarks/device.py ragged`` writes that of ``clip``. Without an entry, what
relies on the behaviour is refused.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from layoutalg.ground.check import Checker
from layoutalg.ground.record import Record
from layoutalg.targets.registry import lookup, stored

CHECK = Checker("LA891", "invalid record of a probe")


@dataclass(frozen=True, slots=True)
class ClipProbe(Record, code="LA891"):
    """Where address arithmetic of the copy engine was seen to wrap at 2^64, so that rows behind a group are clipped."""

    chip: str
    driver: str  # its driver
    date: str  # when
    # forms and directions that moved every byte right: ``"read_write load"``, ``"write_only store"``, ...
    forms: tuple[str, ...]
    element_bytes: tuple[int, ...]  # elements that were tried
    # what happened to rows above a group, which are in bounds: ``"moved"``, or empty if it was not tried
    above: str = ""
    evidence: str = "probed"

    def _validate(self) -> None:
        CHECK.choice(self.above, "above", ("", "moved"))
        CHECK.choice(self.evidence, "evidence", ("probed",))


def clip_probe(target: str) -> ClipProbe | None:
    """Return what the probe of a target found; None if none ran.

    Example:
        >>> clip_probe("sm_100a") is None
        True
    """
    lookup(CHECK.kind(target, str, "target"))
    found = _probes()["clip"].get(target)
    return None if found is None else ClipProbe(**found)


@functools.cache
def _probes() -> dict[str, dict[str, dict[str, Any]]]:
    return stored(__file__)
