"""Architectures by name, and which devices were measured for each.

Main definitions: ``Device``, ``Target``, ``TARGETS``, ``lookup``.

Implementation notes: a target without a measured device carries documented facts only. Nothing here extrapolates from
one chip or driver to another; the caller sees the absence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from layoutalg.ground.errors import Diagnostic, MalformedError, shown
from layoutalg.ground.kinds import checked_kinds


@dataclass(frozen=True, slots=True)
class Device:
    """A device that was measured.

    Args:
        chip: Product name.
        driver: Driver version.
        runtime: Version of the programming platform of that driver.
    """

    chip: str
    driver: str
    runtime: str

    def __post_init__(self) -> None:
        checked_kinds(self, "LA374")


@dataclass(frozen=True, slots=True)
class Target:
    """An architecture.

    Args:
        arch: Name as compilers spell it.
        vendor: ``"nvidia"``.
        compute_capability: (major, minor).
        measured: Devices whose behaviour is recorded; empty where there are only documents.
    """

    arch: str
    vendor: str
    compute_capability: tuple[int, int]
    measured: tuple[Device, ...] = ()

    def __post_init__(self) -> None:
        checked_kinds(self, "LA374")


H200 = Device("NVIDIA H200", "580.159.04", "CUDA 13.0")

TARGETS: Mapping[str, Target] = MappingProxyType(
    {
        target.arch: target
        for target in (
            Target("sm_90", "nvidia", (9, 0), (H200,)),
            Target("sm_90a", "nvidia", (9, 0), (H200,)),
            Target("sm_100", "nvidia", (10, 0)),
            Target("sm_100a", "nvidia", (10, 0)),
            Target("sm_103a", "nvidia", (10, 3)),
        )
    }
)

NVIDIA: tuple[str, ...] = tuple(name for name, target in TARGETS.items() if target.vendor == "nvidia")
"""Architectures that have tensor maps."""


def lookup(arch: str) -> Target:
    """Return the target of that name.

    Args:
        arch: Architecture as compilers spell it, for example ``"sm_90a"``.

    Raises: MalformedError: LA340.

    Example:
        >>> lookup("sm_90a").compute_capability
        (9, 0)
        >>> lookup("sm_100a").measured
        ()

    Source: the compute capabilities of the CUDA programming guide.
    """
    target = TARGETS.get(arch) if isinstance(arch, str) else None
    if target is None:
        raise MalformedError(
            Diagnostic(
                "LA340", f"target {shown(arch)} is not known", because="the known targets are " + ", ".join(TARGETS)
            )
        )
    return target
