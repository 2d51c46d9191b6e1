"""What is known about a target, with evidence: limits, matrix instructions and fragments, bank turns, consumers.

Implementation notes: one model serves all vendors. A query returns a ``Fact`` with its source, ``Absent`` if documents
say that the target lacks the feature, or ``Unknown``; it never raises for a registered target.

References: CCCL ``cuda::arch_traits``; PTX ISA 9.1; CUDA programming guide; ROCm documentation, GPU specifications;
the assembler and clang of LLVM 22.1.8 for instructions and limits of AMD.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy.typing as npt

from layoutalg.f2 import LinearLayout
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import RepresentabilityError, shown
from layoutalg.ground.verdict import Unknown
from layoutalg.targets import banks
from layoutalg.targets.bank_counting import BANKS, WORD_BYTES
from layoutalg.targets.consumers import CONSUMERS, Absent, Fact, Grade, consumer, ptx
from layoutalg.targets.layouts.amd_instructions import MFMA, WMMA, mfma_fragment, wmma_fragment
from layoutalg.targets.layouts.nvidia_instructions import (
    MMA,
    MMA_SP,
    VARIANTS,
    MmaInstruction,
    SparseMma,
    mma_fragment,
    mma_sp_fragment,
    variant_of,
)
from layoutalg.targets.model import Source, fact
from layoutalg.targets.nvidia.tensormap.limits import GLOBAL_ALIGN_BYTES, SMEM_DESTINATION_ALIGN_BYTES
from layoutalg.targets.registry import TARGETS, Target, lookup

__all__ = ["CONSUMERS", "LIMITS", "Absent", "Fact", "TargetModel", "model_of"]

_CCCL = Source("CCCL, cuda::arch_traits", "004ad19 (2026)", "libcudacxx/include/cuda/__device/arch_traits.h")
_GUIDE_BANKS = Source(
    "CUDA C++ Programming Guide", "13.0", "Compute Capability 5.x, Shared Memory: 32 banks of 32 bits"
)
_PTX_BARRIER = Source("PTX ISA", "9.1", "9.7.13.1 barrier: sixteen barriers, 0 to 15, in every CTA")
_PTX_TMEM = Source("PTX ISA", "9.1", "9.7.16.1 tensor memory: 128 lanes, 512 columns")
_PTX_SETMAXNREG = Source(
    "PTX ISA", "9.1", "9.7.19.5 setmaxnreg: 24 to 256, a multiple of 8; architectures with a suffix"
)
_GUIDE_CLUSTER = Source(
    "CUDA C++ Programming Guide", "13.0", "5.2.1 Thread Block Clusters: at most 8 blocks are portable"
)
_PTX_TMA = Source("PTX ISA", "9.1", "5.5.7 shared memory, 5.5.3.1 global memory: alignment of tensor copies")
_ROCM = Source("ROCm documentation", "e88a729 (2026)", "AMD GPU specifications: wavefront size, LDS, VGPR file")
_LLVM = Source("LLVM assembler and clang", "22.1.8", "last register, bytes of LDS and lanes that a kernel may have")

CHECK = Checker("LA374")
REGISTERS_PER_BLOCK = 65536


def _nvidia(target: Target) -> Iterator[tuple[str, int, str, Source, Grade]]:
    """Yield the name, the value, the unit, the source and the grade of each limit."""
    grade: Grade = "measured" if target.measured else "documented"
    (block, unit), tmem = target.shared_kib, "tcgen05" in target.features
    yield "lanes", target.lanes, "lanes of a warp", _CCCL, grade
    yield "registers_per_thread", target.registers, "32-bit registers", _CCCL, "documented"
    yield "registers_per_block", REGISTERS_PER_BLOCK, "32-bit registers", _CCCL, "documented"
    yield "threads_per_block", 1024, "threads", _CCCL, "documented"
    yield "threads_per_sm", target.threads, "threads", _CCCL, "documented"
    yield "blocks_per_sm", target.blocks, "blocks", _CCCL, "documented"
    yield "shared_bytes_per_block", 48 << 10, "bytes", _CCCL, "documented"
    yield "shared_bytes_per_block_optin", block << 10, "bytes", _CCCL, "documented"
    yield "shared_bytes_per_sm", unit << 10, "bytes", _CCCL, "documented"
    yield "named_barriers", 16, "barriers of a block", _PTX_BARRIER, "documented"
    yield "cluster_blocks", 8 if target.has_tensor_maps else 1, "blocks, portably", _GUIDE_CLUSTER, "documented"
    if target.has_tensor_maps and target.arch.endswith("a"):
        yield "setmaxnreg_least", 24, "registers of a thread", _PTX_SETMAXNREG, "documented"
        yield "setmaxnreg_most", 256, "registers of a thread", _PTX_SETMAXNREG, "documented"
        yield "setmaxnreg_step", 8, "registers of a thread", _PTX_SETMAXNREG, "documented"
    yield "tmem_columns", 512 if tmem else 0, "columns", _PTX_TMEM, "documented"
    yield "tmem_lanes", 128 if tmem else 0, "lanes", _PTX_TMEM, "documented"
    yield "bank_bytes", WORD_BYTES, "bytes of a bank", _GUIDE_BANKS, grade
    yield "banks", BANKS, "banks", _GUIDE_BANKS, grade
    if target.has_tensor_maps:
        yield "tma_shared_align_bytes", SMEM_DESTINATION_ALIGN_BYTES, "bytes", _PTX_TMA, grade
        yield "tma_global_align_bytes", GLOBAL_ALIGN_BYTES, "bytes", _PTX_TMA, grade


def _amd(target: Target) -> Iterator[tuple[str, int, str, Source, Grade]]:
    """The same for AMD."""
    block, unit = target.shared_kib
    yield "lanes", target.lanes, "lanes of a wave", _ROCM, "documented"
    yield "registers_per_thread", target.registers, "VGPRs and AccVGPRs", _LLVM, "assembled"
    yield "register_file_bytes", target.file_kib << 10, "bytes of a compute unit", _ROCM, "documented"
    yield "threads_per_block", 1024, "lanes of a work-group", _LLVM, "assembled"
    yield "lds_bytes_per_block", block << 10, "bytes of a work-group", _LLVM, "assembled"
    yield "lds_bytes_per_unit", unit << 10, "bytes of a compute unit (RDNA: of two)", _ROCM, "documented"


LIMITS: Mapping[str, Mapping[str, Fact]] = MappingProxyType(
    {
        arch: MappingProxyType(
            {
                name: Fact(value, unit, grade, source)
                for name, value, unit, source, grade in (_nvidia if target.vendor == "nvidia" else _amd)(target)
            }
        )
        for arch, target in TARGETS.items()
    }
)
"""Limits by target and name."""


@fact("LA374")
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

    def register_excess(self, words: int, threads: int) -> str:
        """Return the register limit that a block exceeds, with both numbers; "" within the limits.

        Args:
            words: 32-bit registers that each thread holds at a time.
            threads: Threads of the block.

        Example:
            >>> model_of("sm_90a").register_excess(128, 256), model_of("sm_90a").register_excess(128, 1024)
            ('', '131072 registers per block, sm_90a has 65536')
            >>> model_of("gfx942").register_excess(1024, 64)
            '1024 registers per thread, gfx942 has 512'
        """
        words = CHECK.integer(words, "words", 0, 2**32)
        threads = CHECK.integer(threads, "threads", 1, 2**32)
        target = self.target
        room = REGISTERS_PER_BLOCK if target.vendor == "nvidia" else (target.file_kib << 10) // 4
        if words > target.registers:
            return f"{words} registers per thread, {target.arch} has {target.registers}"
        return f"{words * threads} registers per block, {target.arch} has {room}" if words * threads > room else ""

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
        return consumer(name, self.target)

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
            return Fact((made.m, made.n, made.k), "m, n, k", grade, ptx("9.7.14.6" if sparse else "9.7.14.5"))
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


def _entry(fact: Fact) -> dict[str, object]:
    """Return a fact as an entry of the model's document."""
    return {key: value for key, value in fact.to_json().items() if key not in ("schema", "verdict")}


def _first(made: MmaInstruction | SparseMma) -> tuple[int, int]:
    """The first compute capability that has an ``mma.sync``."""
    if made.operand == "f64" and (made.m, made.n, made.k) != (8, 8, 4):
        return 9, 0
    return (8, 9) if made.operand in ("e4m3", "e5m2") else (8, 0)


def model_of(arch: str) -> TargetModel:
    """Return what is known about a target.

    Example:
        >>> print(model_of("sm_90a").limit("shared_bytes_per_block_optin"))  # doctest: +ELLIPSIS
        232448 bytes (documented: CCCL, cuda::arch_traits 004ad19 (2026), ...)
    """
    return TargetModel(lookup(arch))
