"""Consumers of layouts: which targets have each instruction, what else serves the purpose, and known facts in general.

References: PTX ISA 9.1; AMD matrix instruction calculator; the assembler of LLVM 22.1.8 for instructions of AMD.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

from layoutalg.ground.errors import shown
from layoutalg.ground.record import Record
from layoutalg.ground.verdict import Unknown
from layoutalg.targets.model import Source, fact
from layoutalg.targets.registry import AMD, NVIDIA, TARGETS, Target, having

Grade: TypeAlias = Literal["measured", "documented", "assembled"]
_ASSEMBLER = Source("LLVM assembler", "22.1.8", "what it accepts for the target")
FACT_SCHEMA = "layoutalg/target-fact/1"


@dataclass(frozen=True, slots=True)
class Fact(Record, schema=FACT_SCHEMA, verdict="known", json="value unit evidence=grade source"):
    """A known fact about a target.

    Args:
        value: A number, a shape.
        unit: What the value counts.
        grade: ``"measured"`` on a device, ``"documented"``, or ``"assembled"``: as the assembler accepts it.
        source: Where it is stated.
    """

    value: int | tuple[int, ...] | str
    unit: str
    grade: Grade
    source: Source

    def __str__(self) -> str:
        return f"{self.value} {self.unit} ({self.grade}: {self.source})"


@dataclass(frozen=True, slots=True)
class Absent(Record, schema=FACT_SCHEMA, verdict="absent", json="rule reason instead source"):
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

    def __str__(self) -> str:
        return f"{self.rule}: {self.reason}" + (f"; it has {', '.join(self.instead)}" if self.instead else "")


@fact("LA374")
class ConsumerRule:
    """Which targets have a consumer, and how it is decided.

    Args:
        family: Instructions that one finder decides: see ``synth.admission``.
        rule: Id of the rule that refuses the others.
        targets: Targets that have it.
        needs: What it requires, in words.
        kind: Its purpose: ``"matrix"``, ``"fill"``, ``"read"``, ``"write"``; alternatives are consumers of that kind.
        source: Where it is stated.
    """

    family: str
    rule: str
    targets: tuple[str, ...]
    needs: str
    kind: str
    source: Source


_CUDA = tuple(name for name, target in TARGETS.items() if target.vendor == "nvidia")
_SINCE_90 = "compute capability 9.0 or later of NVIDIA (since sm_90)"


def ptx(section: str) -> Source:
    """Return a section of the PTX ISA."""
    return Source("PTX ISA", "9.1", section)


def _only(family: str, rule: str, targets: tuple[str, ...], kind: str, source: Source = _ASSEMBLER) -> ConsumerRule:
    return ConsumerRule(family, rule, targets, " or ".join(targets), kind, source)


_CALCULATOR = "AMD matrix instruction calculator"
CONSUMERS: Mapping[str, ConsumerRule] = MappingProxyType(
    {
        "tma": ConsumerRule("tma", "NO_TMA", NVIDIA, _SINCE_90, "fill", ptx("9.7.9.27.1")),
        "bulk": ConsumerRule("bulk", "NO_BULK", NVIDIA, _SINCE_90, "fill", ptx("9.7.9.25.4")),
        "cp.async": ConsumerRule("copy", "NO_CP_ASYNC", _CUDA, "sm_80 or later", "fill", ptx("9.7.9.25.3")),
        "wgmma": _only("wgmma", "WGMMA_ARCH", having("wgmma"), "matrix", ptx("9.7.15")),
        "tcgen05": _only("tcgen05", "TCGEN05_ARCH", having("tcgen05"), "matrix", ptx("9.7.16")),
        "mma": ConsumerRule("mma", "NO_MMA", _CUDA, "sm_80 or later", "matrix", ptx("9.7.14.5")),
        **{
            name: ConsumerRule("access", f"NO_{name.upper().replace('.', '_')}", targets, needs, kind, ptx(section))
            for name, targets, needs, kind, section in (
                ("ldmatrix", _CUDA, "sm_75 or later", "read", "9.7.14.5.15"),
                ("stmatrix", NVIDIA, "sm_90 or later", "write", "9.7.14.5.16"),
                ("ld.shared", _CUDA, "an NVIDIA target", "read", "9.7.9.8"),
                ("st.shared", _CUDA, "an NVIDIA target", "write", "9.7.9.11"),
                ("st.async", NVIDIA, "sm_90 or later", "write", "9.7.9.12"),
            )
        },
        "mfma": _only(
            "amd", "NO_MFMA", having("mfma"), "matrix", Source(_CALCULATOR, "1.3.2", "CDNA2, CDNA3; CDNA4: AMD's text")
        ),
        "wmma": _only("amd", "NO_WMMA", having("wmma"), "matrix", Source(_CALCULATOR, "1.3.2", "RDNA3, RDNA4")),
        **{
            f"ds_{verb}_b{bits}": ConsumerRule("lds", "NO_DS", AMD, "an AMD target", verb, _ASSEMBLER)
            for verb in ("read", "write")
            for bits in (32, 64, 96, 128)
        },
        **{
            f"ds_read_{form}": _only("lds", "NO_DS_READ_TR", having("ds_read_tr"), "read")
            for form in ("b64_tr_b16", "b64_tr_b8", "b64_tr_b4", "b96_tr_b6")
        },
        "buffer_load_dword_lds": _only("lds", "NO_LOAD_LDS", having("mfma"), "fill"),
        "global_load_lds_dword": _only("lds", "NO_LOAD_LDS", having("global_load_lds"), "fill"),
        **{
            f"{where}_{width}{after}": _only("lds", "LOAD_LDS_WIDTH", having("load_lds_wide"), "fill")
            for where, after in (("buffer_load", "_lds"), ("global_load_lds", ""))
            for width in ("dwordx3", "dwordx4")
        },
    }
)
"""Which targets have each consumer, by the leading words of its name. Unlisted means unknown."""


def head_of(consumer: object) -> str | None:
    """Return the longest name in ``CONSUMERS`` with which a consumer's name begins.

    Example:
        >>> head_of("ld.shared.v4.b32"), head_of("tma.store"), head_of("tmastore")
        ('ld.shared', 'tma', None)
    """
    words = consumer.split(".") if isinstance(consumer, str) else []
    heads = (".".join(words[:many]) for many in range(len(words), 0, -1))
    return next((head for head in heads if head in CONSUMERS), None)


def consumer(name: str, target: Target) -> Fact | Absent | Unknown:
    """Return whether a target has a consumer, given any name that starts with the consumer's.

    Example:
        >>> consumer("tma.store", TARGETS["sm_80"]).rule, consumer("ldmatrix.x4", TARGETS["sm_80"]).value
        ('NO_TMA', 'ldmatrix')
    """
    head, arch = head_of(name), target.arch
    if head == "cp.async" and name.startswith("cp.async.bulk"):
        head = "tma" if ".tensor" in name else "bulk"
    if head is None:
        return Unknown(f"no known target has {shown(name)}")
    rule = CONSUMERS[head]
    if arch in rule.targets:
        grade: Grade = "measured" if target.measured else "assembled" if rule.source is _ASSEMBLER else "documented"
        return Fact(head, "is there", grade, rule.source)
    instead = tuple(other for other, held in CONSUMERS.items() if held.kind == rule.kind and arch in held.targets)
    return Absent(rule.rule, f"{arch} has no {head}, which needs {rule.needs}", instead, rule.source)
