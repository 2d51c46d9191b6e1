"""Architectures by name, and which devices were measured for each.

Implementation notes: a target without a measured device has documented facts only. Measurements are not extrapolated
to other chips or drivers, with one exception: every NVIDIA target has the same documented banks, so bank groups
measured on one are assumed for the others. ``Target.bank_grade`` records this, and answers with turns repeat it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

from layoutalg.ground.errors import Diagnostic, MalformedError, shown
from layoutalg.ground.kinds import checked_kinds


@dataclass(frozen=True, slots=True)
class Device:
    """A device that was measured.

    Args:
        chip: Product name.
        driver: Driver version.
        runtime: Platform version of that driver, e.g. ``"CUDA 13.0"``.
    """

    chip: str
    driver: str
    runtime: str

    def __post_init__(self) -> None:
        checked_kinds(self, "LA374")


Vendor: TypeAlias = Literal["nvidia", "amd"]
BankGrade: TypeAlias = Literal["measured", "documented", "assumed"]


@dataclass(frozen=True, slots=True)
class Target:
    """An architecture.

    Args:
        arch: Name as compilers spell it.
        vendor: ``"nvidia"`` or ``"amd"``.
        compute_capability: (major, minor) of NVIDIA; None for AMD.
        measured: Devices whose behaviour is recorded here; empty if only documents are known.
        isa: Instruction set: ``"PTX"``, ``"CDNA3"``, ``"RDNA4"``, ...
        lanes: Lanes of a warp or wave; 32 for RDNA, whose matrix instructions are described for wave32.
    """

    arch: str
    vendor: Vendor
    compute_capability: tuple[int, int] | None
    measured: tuple[Device, ...] = ()
    isa: str = "PTX"
    lanes: int = 32

    def __post_init__(self) -> None:
        checked_kinds(self, "LA374")

    @property
    def has_tensor_maps(self) -> bool:
        """Whether TMA exists: from compute capability 9.0."""
        return self.compute_capability is not None and self.compute_capability >= (9, 0)

    def bank_grade(self, wide: bool) -> BankGrade:
        """Return the evidence behind bank turns of an NVIDIA target (for AMD, see ``lds_rules``).

        Args:
            wide: Whether the warp is served in groups: more than 32 bits per lane, ``ldmatrix`` or ``stmatrix``. The
                32 banks of 4 bytes are documented, the groups are not.

        Example:
            >>> [lookup(arch).bank_grade(wide=True) for arch in ("sm_90a", "sm_86")], lookup("sm_86").bank_grade(False)
            (['measured', 'assumed'], 'documented')
        """
        return "measured" if self.measured else "assumed" if wide else "documented"


def grade_in_words(grade: str, arch: str) -> str:
    """Return the evidence for turns, as answers print it.

    Example:
        >>> grade_in_words("assumed", "sm_86"), grade_in_words("documented", "sm_86")
        ('measured on NVIDIA H200 (sm_90a), assumed for sm_86', 'documented')
    """
    return f"measured on {H200.chip} (sm_90a), assumed for {arch}" if grade == "assumed" else grade


H200 = Device("NVIDIA H200", "580.159.04", "CUDA 13.0")

TARGETS: Mapping[str, Target] = MappingProxyType(
    {
        target.arch: target
        for target in (
            Target("sm_80", "nvidia", (8, 0)),
            Target("sm_86", "nvidia", (8, 6)),
            Target("sm_87", "nvidia", (8, 7)),
            Target("sm_89", "nvidia", (8, 9)),
            Target("sm_90", "nvidia", (9, 0), (H200,)),
            Target("sm_90a", "nvidia", (9, 0), (H200,)),
            Target("sm_100", "nvidia", (10, 0)),
            Target("sm_100a", "nvidia", (10, 0)),
            Target("sm_103a", "nvidia", (10, 3)),
            Target("sm_120a", "nvidia", (12, 0)),
            Target("gfx90a", "amd", None, (), "CDNA2", 64),
            Target("gfx942", "amd", None, (), "CDNA3", 64),
            Target("gfx950", "amd", None, (), "CDNA4", 64),
            Target("gfx1100", "amd", None, (), "RDNA3", 32),
            Target("gfx1201", "amd", None, (), "RDNA4", 32),
        )
    }
)
"""Every supported architecture."""

NVIDIA: tuple[str, ...] = tuple(name for name, target in TARGETS.items() if target.has_tensor_maps)
"""Architectures that have tensor maps."""

AMD: tuple[str, ...] = tuple(name for name, target in TARGETS.items() if target.vendor == "amd")
"""Architectures of AMD."""


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
        >>> lookup("gfx942").isa, lookup("gfx942").lanes, lookup("gfx942").has_tensor_maps
        ('CDNA3', 64, False)

    Source: the compute capabilities of the CUDA programming guide; the instruction sets of LLVM's AMDGPU guide.
    """
    target = TARGETS.get(arch) if isinstance(arch, str) else None
    if target is None:
        raise MalformedError(
            Diagnostic(
                "LA340", f"target {shown(arch)} is not known", because="the known targets are " + ", ".join(TARGETS)
            )
        )
    return target
