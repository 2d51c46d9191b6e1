"""Architectures by name, and which devices were measured for each.

Implementation notes: a target without a measured device has documented facts only. Measurements are not extrapolated
to other chips or drivers, with one exception: every NVIDIA target has the same documented banks, so bank groups
measured on one are assumed for the others. ``Target.bank_grade`` records this, and answers with turns repeat it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, TypeVar

from layoutalg.ground.check import Checker
from layoutalg.ground.errors import Diagnostic, MalformedError, RepresentabilityError, shown
from layoutalg.targets.model import fact
from layoutalg.targets.nvidia.registers import THREAD_REGISTERS


@fact("LA374")
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


Entry = TypeVar("Entry")
Vendor: TypeAlias = Literal["nvidia", "amd"]
BankGrade: TypeAlias = Literal["measured", "documented", "assumed"]


@fact("LA374")
class Target:
    """An architecture.

    Args:
        arch: Name as compilers spell it.
        vendor: ``"nvidia"`` or ``"amd"``.
        compute_capability: (major, minor) of NVIDIA; None for AMD.
        measured: Devices whose behaviour is recorded here; empty if only documents are known.
        isa: Instruction set: ``"PTX"``, ``"CDNA3"``, ``"RDNA4"``, ...
        lanes: Lanes of a warp or wave; 32 for RDNA, whose matrix instructions are described for wave32.
        features: What not every target of its vendor has: names of ``FEATURES``.
        shared_kib: KiB of shared memory of a block and of an SM (of a work-group and of a compute unit).
        threads: Threads of an SM of NVIDIA.
        blocks: Blocks of an SM of NVIDIA.
        registers: Registers of a thread.
        file_kib: KiB of the register file of a compute unit of AMD.
        toolkit: First CUDA toolkit with tensor maps that compiles for it; "" if none.
    """

    arch: str
    vendor: Vendor
    compute_capability: tuple[int, int] | None
    measured: tuple[Device, ...] = ()
    isa: str = "PTX"
    lanes: int = 32
    features: tuple[str, ...] = ()
    shared_kib: tuple[int, int] = (0, 0)
    threads: int = 0
    blocks: int = 0
    registers: int = THREAD_REGISTERS
    file_kib: int = 0
    toolkit: str = ""

    @property
    def has_tensor_maps(self) -> bool:
        """Whether TMA exists: from compute capability 9.0."""
        return self.compute_capability is not None and self.compute_capability >= (9, 0)

    def bank_grade(self, wide: bool) -> BankGrade:
        """Return the evidence behind bank turns of an NVIDIA target (for AMD, see ``lds_rules``).

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

FEATURES: Mapping[str, str] = MappingProxyType(
    {
        "wgmma": "warpgroup matrix products",
        "tcgen05": "matrix products in tensor memory",
        "narrow": "ldmatrix and stmatrix of 8-bit and narrower elements",
        "gather4": "tensor-map copies of four rows to shared::cta",
        "scatter4": "the same to shared::cluster, and stores of four rows",
        "mfma": "matrix products of a wave of 64",
        "wmma": "matrix products of a wave of 32",
        "global_load_lds": "loads from global addresses straight into LDS",
        "load_lds_wide": "such loads of more than 32 bits",
        "ds_read_tr": "transposing reads of LDS",
    }
)
"""What some targets of a vendor have and others lack."""


def _sm(
    name: str, capability: tuple[int, int], kib: int, threads: int, blocks: int, toolkit: str = "", *features: str
) -> Target:
    measured = (H200,) if capability == (9, 0) else ()
    return Target(
        name, "nvidia", capability, measured, "PTX", 32, features, (kib - 1, kib), threads, blocks, toolkit=toolkit
    )


def _gfx(name: str, isa: str, lanes: int, kib: tuple[int, int], file_kib: int, registers: int, *more: str) -> Target:
    features = ("mfma" if lanes == 64 else "wmma", *more)
    return Target(name, "amd", None, (), isa, lanes, features, kib, registers=registers, file_kib=file_kib)


_BLACKWELL = ("tcgen05", "narrow", "gather4", "scatter4")
TARGETS: Mapping[str, Target] = MappingProxyType(
    {
        target.arch: target
        for target in (
            _sm("sm_80", (8, 0), 164, 2048, 32),
            _sm("sm_86", (8, 6), 100, 1536, 16),
            _sm("sm_87", (8, 7), 164, 1536, 16),
            _sm("sm_89", (8, 9), 100, 1536, 24),
            _sm("sm_90", (9, 0), 228, 2048, 32, "12.0"),
            _sm("sm_90a", (9, 0), 228, 2048, 32, "12.0", "wgmma"),
            _sm("sm_100", (10, 0), 228, 2048, 32, "12.8", "gather4"),
            _sm("sm_100a", (10, 0), 228, 2048, 32, "12.8", *_BLACKWELL),
            _sm("sm_103a", (10, 3), 228, 2048, 32, "12.9", *_BLACKWELL),
            _sm("sm_120a", (12, 0), 100, 1536, 24, "12.8", "narrow", "gather4"),
            _sm("sm_121a", (12, 1), 100, 1536, 24, "12.9", "narrow", "gather4"),
            _gfx("gfx90a", "CDNA2", 64, (64, 64), 512, 512),
            _gfx("gfx942", "CDNA3", 64, (64, 64), 512, 512, "global_load_lds"),
            _gfx("gfx950", "CDNA4", 64, (160, 160), 512, 512, "global_load_lds", "load_lds_wide", "ds_read_tr"),
            _gfx("gfx1100", "RDNA3", 32, (64, 128), 768, 256),
            _gfx("gfx1201", "RDNA4", 32, (64, 128), 768, 256),
        )
    }
)
"""Every supported architecture."""

NVIDIA: tuple[str, ...] = tuple(name for name, target in TARGETS.items() if target.has_tensor_maps)
"""Architectures that have tensor maps."""

AMD: tuple[str, ...] = tuple(name for name, target in TARGETS.items() if target.vendor == "amd")
"""Architectures of AMD."""


def having(feature: str) -> tuple[str, ...]:
    """Return the architectures with a feature.

    Example:
        >>> having("wgmma"), having("narrow")
        (('sm_90a',), ('sm_100a', 'sm_103a', 'sm_120a', 'sm_121a'))
    """
    return tuple(name for name, target in TARGETS.items() if feature in target.features)


def lookup(arch: str) -> Target:
    """Return the target of that name.

    Args:
        arch: Architecture as compilers spell it, for example ``"sm_90a"``.

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


def stored(module: str) -> dict[str, Any]:
    """Return what the JSON file beside a module has, by target or kind."""
    found: dict[str, Any] = json.loads(Path(module).with_suffix(".json").read_text(encoding="utf-8"))
    return found


def entry_of(table: Mapping[str, Entry], target: str, code: str, what: str) -> Entry:
    """Return the entry of a target in a table of some targets; the refusal of others lists those."""
    lookup(target)
    if target not in table:
        because = f"known are those of {', '.join(table)}"
        raise RepresentabilityError(Diagnostic(code, what, (target,), because))
    return table[target]


def vendor_of(arch: object) -> Vendor | None:
    """Return whose architecture a name is, registered or not, by how the vendors spell them; None for other values.

    Example:
        >>> vendor_of("sm_70"), vendor_of("gfx1250"), vendor_of("cpu")
        ('nvidia', 'amd', None)
    """
    prefixes: dict[str, Vendor] = {"sm_": "nvidia", "gfx": "amd"}
    return prefixes.get(arch[:3]) if isinstance(arch, str) else None


ELEMENT_BITS = (8, 16, 32, 64, 128)
"""Widths of elements that loads, stores and shuffles move."""


def asked_bits(check: Checker, given: object) -> int:
    """Check an element width and return it.

    Args:
        check: The question's checker.
        given: The argument ``element_bits``.

    Example:
        >>> asked_bits(Checker("LA910"), 16)
        16
    """
    bits = check.integer(given, "element_bits")
    if bits not in ELEMENT_BITS:
        raise check.malformed("element_bits", "must be 8, 16, 32, 64 or 128", bits)
    return bits


def asked_targets(check: Checker, given: object) -> tuple[str, ...]:
    """Return the names of the targets that one answer must cover.

    Args:
        check: The question's checker.
        given: The argument ``target``.

    Example:
        >>> asked_targets(Checker("LA910"), "sm_90a"), asked_targets(Checker("LA910"), ["gfx942", "gfx950"])
        (('sm_90a',), ('gfx942', 'gfx950'))
    """
    named = (given,) if isinstance(given, str) else given
    if not isinstance(named, list | tuple) or not named:
        raise check.malformed("target", "must be a target or a list of them", given)
    targets = tuple(check.kind(name, str, "target") for name in named)
    for name in targets:
        lookup(name)
    return targets
