"""What is known about a target, with evidence: limits, matrix instructions and fragments, bank turns, consumers.

Implementation notes: one model serves all vendors. A query returns a ``Fact`` with its source, ``Absent`` if documents
say that the target lacks the feature, or ``Unknown``; it never raises for a registered target.

References: CCCL ``cuda::arch_traits``; PTX ISA 9.1; CUDA programming guide; ROCm documentation, GPU specifications;
LLVM ``AMDGPUBaseInfo``, and the assembler of LLVM 22.1.8 for instructions of AMD.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import numpy.typing as npt

from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import RepresentabilityError, plain, shown
from layoutalg.ground.kinds import checked_kinds
from layoutalg.ground.verdict import Unknown
from layoutalg.targets import banks
from layoutalg.targets.layouts.amd_instructions import MFMA, WMMA, mfma_fragment, wmma_fragment
from layoutalg.targets.layouts.nvidia_instructions import MMA, MmaInstruction, mma_fragment
from layoutalg.targets.layouts.nvidia_sparse import MMA_SP, VARIANTS, SparseMma, mma_sp_fragment, variant_of
from layoutalg.targets.model import Source
from layoutalg.targets.registry import AMD, NVIDIA, TARGETS, Target, lookup

Grade: TypeAlias = Literal["measured", "documented"]

_CCCL = Source("CCCL, cuda::arch_traits", "004ad19 (2026)", "libcudacxx/include/cuda/__device/arch_traits.h")
_GUIDE_BANKS = Source("CUDA programming guide", "13.0", "shared memory: 32 banks of 32-bit words")
_PTX_BARRIER = Source("PTX ISA", "9.1", "barrier: sixteen barriers, 0 to 15, in every CTA")
_PTX_TMEM = Source("PTX ISA", "9.1", "9.7.16, tensor memory: 128 lanes, 512 columns")
_GUIDE_CLUSTER = Source("CUDA programming guide", "13.0", "thread block clusters: at most 8 blocks are portable")
_PTX_TMA = Source("PTX ISA", "9.1", "5.5 tensors: alignment in shared and global memory")
_ROCM = Source("ROCm documentation", "e88a729 (2026)", "AMD GPU specifications: wavefront size, LDS, VGPR file")
_LLVM = Source("LLVM AMDGPUBaseInfo.cpp", "2025", "getAddressableNumVGPRs, getMaxFlatWorkGroupSize")
_ASSEMBLER = Source("LLVM assembler", "22.1.8", "what it accepts for the target")
_LDS = Source("AMD ISA guides", "CDNA2 to CDNA4, RDNA3, RDNA4", "local data share: bytes of a work-group")


FACT_SCHEMA = "layoutalg/target-fact/1"


@dataclass(frozen=True, slots=True)
class Fact:
    """A known fact about a target.

    Args:
        value: A number, a shape.
        unit: What the value counts.
        grade: ``"measured"`` on a device, or ``"documented"``.
        source: Where it is stated.
    """

    value: int | tuple[int, ...] | str
    unit: str
    grade: Grade
    source: Source

    def __post_init__(self) -> None:
        checked_kinds(self, "LA374")

    def __str__(self) -> str:
        return f"{self.value} {self.unit} ({self.grade}: {self.source})"

    def to_json(self) -> dict[str, object]:
        """Return the fact as JSON-ready data."""
        return {"schema": FACT_SCHEMA, "verdict": "known", **_entry(self)}


def _entry(fact: Fact) -> dict[str, object]:
    return {"value": plain(fact.value), "unit": fact.unit, "evidence": fact.grade, "source": str(fact.source)}


@dataclass(frozen=True, slots=True)
class Absent:
    """A feature that documents say a target lacks.

    Args:
        rule: Id of the rule.
        reason: In words.
        instead: What the target has for the same purpose; may be empty.
        source: Where it is stated.
    """

    rule: str
    reason: str
    instead: tuple[str, ...]
    source: Source

    def __post_init__(self) -> None:
        checked_kinds(self, "LA374")

    def __str__(self) -> str:
        return f"{self.rule}: {self.reason}" + (f"; it has {', '.join(self.instead)}" if self.instead else "")

    def to_json(self) -> dict[str, object]:
        """Return the missing feature as JSON-ready data."""
        told = {"rule": self.rule, "reason": self.reason, "instead": list(self.instead), "source": str(self.source)}
        return {"schema": FACT_SCHEMA, "verdict": "absent", **told}


@dataclass(frozen=True, slots=True)
class ConsumerRule:
    """Which targets have a consumer.

    Args:
        rule: Id of the rule that refuses the others.
        targets: Targets that have it.
        needs: What it requires, in words.
        kind: Its purpose: ``"matrix"``, ``"fill"``, ``"read"``, ``"write"``; alternatives are consumers of that kind.
        source: Where it is stated.
    """

    rule: str
    targets: tuple[str, ...]
    needs: str
    kind: str
    source: Source

    def __post_init__(self) -> None:
        checked_kinds(self, "LA374")


_CUDA = tuple(name for name, target in TARGETS.items() if target.vendor == "nvidia")
_CDNA, _RDNA = ("gfx90a", "gfx942", "gfx950"), ("gfx1100", "gfx1201")


def _ptx(section: str) -> Source:
    return Source("PTX ISA", "9.1", section)


def _lds(kind: str) -> ConsumerRule:
    return ConsumerRule("NO_DS", AMD, "an AMD target", kind, _ASSEMBLER)


def _only(rule: str, targets: tuple[str, ...], kind: str, source: Source = _ASSEMBLER) -> ConsumerRule:
    return ConsumerRule(rule, targets, " or ".join(targets), kind, source)


CONSUMERS: Mapping[str, ConsumerRule] = MappingProxyType(
    {
        "tma": ConsumerRule(
            "NO_TMA", NVIDIA, "compute capability 9.0 or later of NVIDIA (since sm_90)", "fill", _ptx("9.7.9.27")
        ),
        "bulk": ConsumerRule(
            "NO_BULK", NVIDIA, "compute capability 9.0 or later of NVIDIA (since sm_90)", "fill", _ptx("cp.async.bulk")
        ),
        "cp.async": ConsumerRule("NO_CP_ASYNC", _CUDA, "sm_80 or later", "fill", _ptx("9.7.9.25.3")),
        "wgmma": _only("WGMMA_ARCH", ("sm_90a",), "matrix", _ptx("9.7.15")),
        "tcgen05": _only("TCGEN05_ARCH", ("sm_100a", "sm_103a"), "matrix", _ptx("9.7.16")),
        "mma": ConsumerRule("NO_MMA", _CUDA, "sm_80 or later", "matrix", _ptx("9.7.14.5")),
        "ldmatrix": ConsumerRule("NO_LDMATRIX", _CUDA, "sm_75 or later", "read", _ptx("9.7.14.5.15")),
        "stmatrix": ConsumerRule("NO_STMATRIX", NVIDIA, "sm_90 or later", "write", _ptx("9.7.14.5.16")),
        "ld.shared": ConsumerRule("NO_LD_SHARED", _CUDA, "an NVIDIA target", "read", _ptx("9.7.9.8")),
        "st.shared": ConsumerRule("NO_ST_SHARED", _CUDA, "an NVIDIA target", "write", _ptx("9.7.9.11")),
        "mfma": _only(
            "NO_MFMA",
            _CDNA,
            "matrix",
            Source("AMD matrix instruction calculator", "1.3.2", "CDNA2, CDNA3; CDNA4: AMD's text"),
        ),
        "wmma": _only("NO_WMMA", _RDNA, "matrix", Source("AMD matrix instruction calculator", "1.3.2", "RDNA3, RDNA4")),
        **{f"ds_read_b{bits}": _lds("read") for bits in (32, 64, 96, 128)},
        **{f"ds_write_b{bits}": _lds("write") for bits in (32, 64, 96, 128)},
        **{
            name: _only("NO_DS_READ_TR", ("gfx950",), "read")
            for name in ("ds_read_b64_tr_b16", "ds_read_b64_tr_b8", "ds_read_b64_tr_b4", "ds_read_b96_tr_b6")
        },
        "buffer_load_dword_lds": _only("NO_LOAD_LDS", _CDNA, "fill"),
        "global_load_lds_dword": _only("NO_LOAD_LDS", ("gfx942", "gfx950"), "fill"),
        **{
            f"{where}_{width}{after}": _only("LOAD_LDS_WIDTH", ("gfx950",), "fill")
            for where, after in (("buffer_load", "_lds"), ("global_load_lds", ""))
            for width in ("dwordx3", "dwordx4")
        },
    }
)
"""Which targets have each consumer, by the leading words of its name. Unlisted means unknown."""


def _nvidia(
    per_sm: int, threads_per_sm: int, blocks: int, cluster: bool, tmem: bool, measured: bool
) -> dict[str, Fact]:
    def cccl(value: int, unit: str) -> Fact:
        return Fact(value, unit, "documented", _CCCL)

    found = {
        "lanes": Fact(32, "lanes of a warp", "measured" if measured else "documented", _CCCL),
        "registers_per_thread": cccl(255, "32-bit registers"),
        "registers_per_block": cccl(65536, "32-bit registers"),
        "threads_per_block": cccl(1024, "threads"),
        "threads_per_sm": cccl(threads_per_sm, "threads"),
        "blocks_per_sm": cccl(blocks, "blocks"),
        "shared_bytes_per_block": cccl(48 << 10, "bytes"),
        "shared_bytes_per_block_optin": cccl((per_sm - 1) << 10, "bytes"),
        "shared_bytes_per_sm": cccl(per_sm << 10, "bytes"),
        "named_barriers": Fact(16, "barriers of a block", "documented", _PTX_BARRIER),
        "cluster_blocks": Fact(8 if cluster else 1, "blocks, portably", "documented", _GUIDE_CLUSTER),
        "tmem_columns": Fact(512 if tmem else 0, "columns", "documented", _PTX_TMEM),
        "tmem_lanes": Fact(128 if tmem else 0, "lanes", "documented", _PTX_TMEM),
        "bank_bytes": Fact(4, "bytes of a bank", "measured" if measured else "documented", _GUIDE_BANKS),
        "banks": Fact(32, "banks", "measured" if measured else "documented", _GUIDE_BANKS),
    }
    if cluster:
        grade: Grade = "measured" if measured else "documented"
        found["tma_shared_align_bytes"] = Fact(128, "bytes", grade, _PTX_TMA)
        found["tma_global_align_bytes"] = Fact(16, "bytes", grade, _PTX_TMA)
    return found


def _amd(lanes: int, group: int, unit: int, file_kib: int, registers: int) -> dict[str, Fact]:
    return {
        "lanes": Fact(lanes, "lanes of a wave", "documented", _ROCM),
        "registers_per_thread": Fact(registers, "VGPRs and AccVGPRs", "documented", _LLVM),
        "register_file_bytes": Fact(file_kib << 10, "bytes of a compute unit", "documented", _ROCM),
        "threads_per_block": Fact(1024, "lanes of a work-group", "documented", _LLVM),
        "lds_bytes_per_block": Fact(group << 10, "bytes of a work-group", "documented", _LDS),
        "lds_bytes_per_unit": Fact(unit << 10, "bytes of a compute unit (RDNA: of two)", "documented", _ROCM),
    }


LIMITS: Mapping[str, Mapping[str, Fact]] = MappingProxyType(
    {
        "sm_80": _nvidia(164, 2048, 32, cluster=False, tmem=False, measured=False),
        "sm_86": _nvidia(100, 1536, 16, cluster=False, tmem=False, measured=False),
        "sm_87": _nvidia(164, 1536, 16, cluster=False, tmem=False, measured=False),
        "sm_89": _nvidia(100, 1536, 24, cluster=False, tmem=False, measured=False),
        "sm_90": _nvidia(228, 2048, 32, cluster=True, tmem=False, measured=True),
        "sm_90a": _nvidia(228, 2048, 32, cluster=True, tmem=False, measured=True),
        "sm_100": _nvidia(228, 2048, 32, cluster=True, tmem=False, measured=False),
        "sm_100a": _nvidia(228, 2048, 32, cluster=True, tmem=True, measured=False),
        "sm_103a": _nvidia(228, 2048, 32, cluster=True, tmem=True, measured=False),
        "sm_120a": _nvidia(100, 1536, 24, cluster=True, tmem=False, measured=False),
        "gfx90a": _amd(64, 64, 64, 512, 512),
        "gfx942": _amd(64, 64, 64, 512, 512),
        "gfx950": _amd(64, 160, 160, 512, 512),
        "gfx1100": _amd(32, 64, 128, 768, 256),
        "gfx1201": _amd(32, 64, 128, 768, 256),
    }
)
"""Limits by target and name."""


@dataclass(frozen=True, slots=True)
class TargetModel:
    """What is known about one target.

    Args:
        target: The target of the registry.

    Example:
        >>> model = model_of("gfx942")
        >>> model.limit("lanes").value, model.shape("mfma.v_mfma_f32_32x32x8_f16").value
        (64, (32, 32, 8))
        >>> print(model.consumer("wgmma.A"))
        WGMMA_ARCH: gfx942 has no wgmma, which needs sm_90a; it has mfma
        >>> print(model.limit("tmem_columns"))
        unknown       no data on the limit 'tmem_columns' of gfx942
    """

    target: Target

    def __post_init__(self) -> None:
        checked_kinds(self, "LA374")

    def __str__(self) -> str:
        first = f"{self.target.arch}: {self.target.vendor}, {self.target.isa}, {self.target.lanes} lanes"
        facts = [f"  {name:<29}{fact}" for name, fact in self.limits.items()]
        return "\n".join([first, *facts, f"  {'consumers':<29}{', '.join(self.consumers)}"])

    @property
    def limits(self) -> Mapping[str, Fact]:
        """Every known limit by name."""
        return LIMITS[self.target.arch]

    def limit(self, name: str) -> Fact | Unknown:
        """Return a limit: ``"lanes"``, ``"registers_per_thread"``, ``"shared_bytes_per_block_optin"``, ..."""
        found = self.limits.get(name) if isinstance(name, str) else None
        return found or Unknown(f"no data on the limit {shown(name)} of {self.target.arch}")

    @property
    def consumers(self) -> tuple[str, ...]:
        """The target's consumers, by the leading words of their names."""
        return tuple(name for name, rule in CONSUMERS.items() if self.target.arch in rule.targets)

    def consumer(self, name: str) -> Fact | Absent | Unknown:
        """Return whether the target has a consumer, given any name that starts with the consumer's.

        Example:
            >>> model_of("sm_80").consumer("tma.store").rule, model_of("sm_80").consumer("ldmatrix.x4").value
            ('NO_TMA', 'ldmatrix')
        """
        words = name.split(".") if isinstance(name, str) else []
        heads = (".".join(words[:many]) for many in range(len(words), 0, -1))
        head = next((head for head in heads if head in CONSUMERS), None)
        if head is None:
            return Unknown(f"no known target has {shown(name)}")
        rule, arch = CONSUMERS[head], self.target.arch
        if arch in rule.targets:
            grade: Grade = "measured" if self.target.measured else "documented"
            return Fact(head, "is there", grade, rule.source)
        instead = tuple(other for other in self.consumers if CONSUMERS[other].kind == rule.kind)
        return Absent(rule.rule, f"{arch} has no {head}, which needs {rule.needs}", instead, rule.source)

    @property
    def instructions(self) -> tuple[str, ...]:
        """Matrix instructions whose fragments are known: ``"mma.m16n8k16.f32.f16"``, ``"mfma.v_mfma_..."``, ..."""
        arch = self.target.arch
        found = [f"mma.{name}" for name in MMA if self._has_mma(MMA[name])]
        found += [f"mma.{variant}.{name}" for variant in VARIANTS for name in MMA_SP if self._has_mma(MMA_SP[name])]
        found += [f"mfma.{name}" for name in MFMA.get(arch, ())]
        return (*found, *(f"wmma.{name}" for name in WMMA.get(arch, ())))

    def shape(self, instruction: str) -> Fact | Unknown:
        """Return (m, n, k) of a matrix instruction."""
        family, _, name = instruction.partition(".") if isinstance(instruction, str) else ("", "", "")
        if instruction not in self.instructions:
            return self._no_instruction(instruction)
        if family == "mma":
            sparse = variant_of(name)[1]
            made = MMA_SP[sparse] if sparse else MMA[name]
            grade: Grade = "measured" if self.target.measured else "documented"
            return Fact((made.m, made.n, made.k), "m, n, k", grade, _ptx("9.7.14.6" if sparse else "9.7.14.5"))
        table = (MFMA if family == "mfma" else WMMA)[self.target.arch][name]
        return Fact(
            (table.m, table.n, table.k),
            "m, n, k",
            "documented",
            Source("AMD matrix instruction calculator", "1.3.2", table.evidence),
        )

    def fragment(self, instruction: str, operand: str) -> LinearLayout | Unknown:
        """Return which element each register and lane of an instruction's operand A, B, C or D holds.

        Example:
            >>> model_of("gfx1201").fragment("wmma.v_wmma_f32_16x16x16_f16", "D").in_dims
            {'register': 8, 'lane': 32}
        """
        if instruction not in self.instructions:
            return self._no_instruction(instruction)
        if operand not in ("A", "B", "C", "D"):
            return Unknown(f"a matrix instruction has the operands A, B, C and D, not {shown(operand)}")
        family, _, name = instruction.partition(".")
        if family == "mma":
            sparse = variant_of(name)[1]
            return mma_sp_fragment(sparse, operand) if sparse else mma_fragment(name, operand)
        return (mfma_fragment if family == "mfma" else wmma_fragment)(name, operand, self.target.arch)

    def turns(self, operation: str, byte_addresses: Sequence[int | None] | npt.NDArray[Any]) -> int | Unknown:
        """Return the shared-memory turns, as ``banks.turns``; ``Unknown`` if the rule is unknown.

        Raises: MalformedError: LA709, for invalid addresses.
        """
        if self.target.vendor == "nvidia" and isinstance(operation, str) and operation.startswith(("ds_", "buffer_")):
            return Unknown(f"{self.target.arch} has no {operation}")
        try:
            return banks.turns(self.target.arch, operation, byte_addresses)
        except RepresentabilityError as error:
            return Unknown(error.diagnostic.because or error.diagnostic.what, ("banks",))

    def _has_mma(self, made: MmaInstruction | SparseMma) -> bool:
        capability = self.target.compute_capability
        return capability is not None and capability >= _first(made)

    def _no_instruction(self, name: object) -> Unknown:
        return Unknown(f"no data on a matrix instruction {shown(name)} of {self.target.arch}")

    def to_json(self) -> dict[str, object]:
        """Return the model as JSON-ready data."""
        limits = {name: _entry(fact) for name, fact in self.limits.items()}
        return {
            "schema": "layoutalg/target-model/1", "arch": self.target.arch, "vendor": self.target.vendor,
            "isa": self.target.isa, "limits": limits, "consumers": list(self.consumers),
            "instructions": list(self.instructions),
        }  # fmt: skip


def _first(made: MmaInstruction | SparseMma) -> tuple[int, int]:
    """The first compute capability that has an ``mma.sync``."""
    if made.operand == "f64" and (made.m, made.n, made.k) != (8, 8, 4):
        return 9, 0
    return (8, 9) if made.operand in ("e4m3", "e5m2") else (8, 0)


def model_of(arch: str) -> TargetModel:
    """Return what is known about a target.

    Raises: MalformedError: LA340.

    Example:
        >>> print(model_of("sm_90a").limit("shared_bytes_per_block_optin"))  # doctest: +ELLIPSIS
        232448 bytes (documented: CCCL, cuda::arch_traits 004ad19 (2026), ...)
    """
    return TargetModel(lookup(arch))
