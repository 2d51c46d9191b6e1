"""Which CUDA toolkits accept a tensor map: per toolkit accepted, refused by a rule, or unknown.

Main statements: one toolkit's driver was measured, and its verdict decides for that toolkit. For every other toolkit a
map is refused if the toolkit's text states a broken rule that the measured driver enforces, and accepted if neither
text nor driver objects. If they disagree the answer is unknown, since no driver of that toolkit was tested. Rules that
no text states might hold in any toolkit, so a map that breaks one is unknown as well.

References: ``cuda.h`` of CUDA 12.0 to 13.5, text of ``cuTensorMapEncodeTiled``; PTX ISA, target directives.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

from layoutalg.targets.model import Violation, fact, version
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE
from layoutalg.targets.nvidia.tensormap.checks import broken, enforced_violations, no_tensor_maps, violations
from layoutalg.targets.nvidia.tensormap.fields import DTYPES, TensorMap
from layoutalg.targets.nvidia.tensormap.rules import RULES
from layoutalg.targets.registry import TARGETS, lookup

Answer: TypeAlias = Literal["accepted", "refused", "unknown"]
TOOLKITS: tuple[str, ...] = (
    "12.0", "12.1", "12.3", "12.4", "12.5", "12.6", "12.8", "12.9", "13.0", "13.1", "13.2", "13.3", "13.4", "13.5",
)  # fmt: skip
"""CUDA toolkits whose documentation was read, in order."""
MEASURED = "13.0"
"""The toolkit of the driver that was measured."""
PTX: Mapping[str, str] = MappingProxyType(
    {"12.0": "8.0", "12.1": "8.1", "12.3": "8.3", "12.4": "8.4", "12.5": "8.5", "12.6": "8.5", "12.8": "8.7",
     "12.9": "8.8", "13.0": "9.0", "13.1": "9.1"}
)  # fmt: skip
"""PTX ISA version of a toolkit, where known."""
FIRST: Mapping[str, str] = MappingProxyType(
    {name: target.toolkit for name, target in TARGETS.items() if target.toolkit}
)
"""The first toolkit with tensor maps that compiles for a target (sm_90 itself is older)."""
PACKED_AND_ATOM = "12.8"
"""The first toolkit with the packed types and the ATOM swizzles."""


@fact("LA374")
class Acceptance:
    """One toolkit's verdict on a tensor map.

    Args:
        toolkit: CUDA toolkit.
        answer: ``"accepted"``, ``"refused"`` or ``"unknown"``.
        rules: Ids of the rules that make the map refused or unknown.
        reason: In words; empty if accepted.
        evidence: ``"measured"`` with the driver of this toolkit, otherwise ``"documented"``.
    """

    toolkit: str
    answer: Answer
    rules: tuple[str, ...]
    reason: str
    evidence: Literal["measured", "documented"]

    def __bool__(self) -> bool:
        if self.answer == "unknown":
            raise ValueError(f"the answer is unknown and has no truth value: {self.reason}")
        return self.answer == "accepted"

    def __str__(self) -> str:
        told = f"CUDA {self.toolkit}: {self.answer} ({self.evidence})"
        return told + (f"; {', '.join(self.rules)}: {self.reason}" if self.rules else "")

    def to_json(self) -> dict[str, object]:
        """Return the answer as JSON-ready data."""
        return {
            "schema": "layoutalg/acceptance/1", "toolkit": self.toolkit, "answer": self.answer,
            "rules": list(self.rules), "reason": self.reason, "evidence": self.evidence,
        }  # fmt: skip


def accepted_since(tm: TensorMap, target: str = "sm_90a") -> tuple[Acceptance, ...]:
    """Return every known toolkit's verdict on a map, oldest first.

    Example:
        >>> tm = TensorMap("bf16", (64, 64), (128,), (64, 64), swizzle="128B_ATOM_32B")
        >>> [found.toolkit for found in accepted_since(tm, "sm_100a") if found][0]
        '12.8'
        >>> tall = TensorMap("bf16", (64, 2**32), (128,), (64, 8))
        >>> print(accepted_since(tall, "sm_100a")[-1])
        CUDA 13.5: refused (documented); DIM_EXECUTE: dims[1] = 4294967296 is outside 1..2^31

    Source: ``cuda.h`` 12.0 to 13.5; measured on NVIDIA H200, driver 580.159.04 (CUDA 13.0).
    """
    text = violations(tm, target, "documented")
    enforced = enforced_violations(tm)
    if no_tensor_maps(target):
        return tuple(_answer(toolkit, "refused", text) for toolkit in TOOLKITS)
    return tuple(_judged(tm, target, toolkit, text, enforced) for toolkit in TOOLKITS)


def _judged(
    tm: TensorMap, target: str, toolkit: str, text: tuple[Violation, ...], enforced: tuple[Violation, ...]
) -> Acceptance:
    at, measured = version(toolkit), bool(lookup(target).measured)
    if at < version(FIRST[target]):
        message = f"it cannot compile for {target}; CUDA {FIRST[target]} is the first that can"
        return _answer(toolkit, "refused", (Violation("TOOLKIT_ARCH", message, "target"),))
    if at < version(PACKED_AND_ATOM) and (missing := _later(tm)):
        return _answer(toolkit, "refused", missing)
    if toolkit == MEASURED and measured:
        return _answer(toolkit, "refused" if enforced else "accepted", enforced, "measured")
    here = (
        *(one for one in text if RULES[one.rule].stated_in(toolkit) or one.rule == "DIM_RANGE"),
        *_tall(tm, toolkit),
    )
    firm = tuple(one for one in here if RULES[one.rule].evidence[0].finding != "not enforced")
    if firm:
        return _answer(toolkit, "refused", firm)
    if here:
        return _answer(toolkit, "unknown", here, note=f"stated, but not enforced by the driver of CUDA {MEASURED}: ")
    others = tuple(one for one in (*text, *_of_driver(enforced)) if one not in here)
    if others:
        note = f"not stated for CUDA {toolkit}, but by another text or driver: "
        return _answer(toolkit, "unknown", others, note=note)
    return _answer(toolkit, "accepted", ())


def _later(tm: TensorMap) -> tuple[Violation, ...]:
    """Values that ``cuda.h`` had no name for."""
    found = []
    if DTYPES[tm.dtype].packed:
        found.append(Violation("TOOLKIT_ENUM", f"dtype {tm.dtype} is in cuda.h since {PACKED_AND_ATOM}", "dtype"))
    if SWIZZLE_TABLE[tm.swizzle].compute_capability >= (10, 0):
        message = f"swizzle {tm.swizzle} is in cuda.h since {PACKED_AND_ATOM}"
        found.append(Violation("TOOLKIT_ENUM", message, "swizzle"))
    return tuple(found)


def _tall(tm: TensorMap, toolkit: str) -> tuple[Violation, ...]:
    """Extents that the text allows only up to 13.4."""
    if not RULES["DIM_EXECUTE"].stated_in(toolkit):
        return ()
    beyond = {entry.position for entry in broken(tm, ("DIM_RANGE",))}
    return tuple(entry for entry in broken(tm, ("DIM_EXECUTE",)) if entry.position not in beyond)


def _of_driver(enforced: tuple[Violation, ...]) -> tuple[Violation, ...]:
    """What the measured driver refuses, except ARCH_ATOM, which says nothing about compute capability 10.0."""
    return tuple(one for one in enforced if one.rule != "ARCH_ATOM")


def _answer(
    toolkit: str,
    answer: Answer,
    found: tuple[Violation, ...],
    evidence: Literal["measured", "documented"] = "documented",
    note: str = "",
) -> Acceptance:
    rules = tuple(dict.fromkeys(one.rule for one in found))
    return Acceptance(toolkit, answer, rules, note + found[0].message if found else "", evidence)
