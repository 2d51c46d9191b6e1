"""The answers to "can this instruction carry this layout?": admitted with the bits, or refused with the reason.

Main statements: a layout is admissible for a consumer exactly if some descriptor of the target denotes it. ``Admitted``
holds that descriptor, and a certificate that the stand-alone checker accepts; ``Refused`` holds the broken rules, a
witness, and repairs that were admitted when they were tried. What is neither is ``Unknown`` and says what is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from layoutalg.ground.check import Checker
from layoutalg.ground.errors import Repair, plain
from layoutalg.ground.kinds import checked_kinds
from layoutalg.ground.picture import Shown
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.certify.certificate import Certificate

SCHEMA = "layoutalg/admission/1"
Grade: TypeAlias = Literal["measured", "documented"]
CHECK = Checker("LA800", "this is not an answer about an instruction")


class _Later:
    """A value some of whose fields are found when they are first read."""

    __slots__ = ("_later",)

    def __getattr__(self, name: str) -> Any:
        try:
            later: dict[str, Callable[[], Any]] = object.__getattribute__(self, "_later")
        except AttributeError:
            later = {}
        if name not in later:
            raise AttributeError(f"{type(self).__name__} has no {name}", name=name, obj=self)
        found = later[name]()
        object.__setattr__(self, name, found)
        return found


@dataclass(frozen=True, slots=True)
class Admitted(_Later, Shown):
    """A descriptor, or a list of instructions, that denotes the layout.

    Args:
        consumer: The instruction, as it was asked for.
        target: Architecture.
        dtype: Element type.
        descriptor: What carries the layout: a plan of the consumer's finder, with ``to_json``.
        certificate: What the stand-alone checker proves of it.
        evidence: How the meaning of the descriptor is known: ``"measured"`` on a device or ``"documented"``.

    Raises: MalformedError: LA800.
    """

    consumer: str
    target: str
    dtype: str
    descriptor: Any = field(hash=False)
    certificate: Certificate
    evidence: Grade

    def __post_init__(self) -> None:
        checked_kinds(self, "LA800")
        if not callable(getattr(self.descriptor, "to_json", None)):
            raise CHECK.malformed("descriptor", "must have to_json", self.descriptor)

    @classmethod
    def certified_later(cls, certificate: Callable[[], Certificate], **given: Any) -> Admitted:
        """Return an answer that was decided otherwise; its certificate is made when it is first read."""
        made = object.__new__(cls)
        for name, value in given.items():
            object.__setattr__(made, name, value)
        object.__setattr__(made, "_later", {"certificate": certificate})
        return made

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        told = "\n".join(f"  {line}" for line in str(self.descriptor).splitlines())
        return f"admitted      {self.consumer} on {self.target}, {self.dtype} ({self.evidence})\n{told}"

    def to_json(self) -> dict[str, object]:
        """Return the answer as JSON-ready data."""
        return {
            "schema": SCHEMA, "verdict": "admitted", "consumer": self.consumer, "target": self.target,
            "dtype": self.dtype, "evidence": self.evidence, "descriptor": self.descriptor.to_json(),
            "certificate": self.certificate.to_json(),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Refused(_Later, Shown):
    """No descriptor of the consumer denotes the layout.

    Args:
        consumer: The instruction, as it was asked for.
        target: Architecture.
        dtype: Element type.
        rules: Ids of the broken rules, the first reason first; at least one.
        reasons: One sentence per rule.
        witness: The first coordinate that shows it, with what is there and what the instruction needs there.
        repairs: Changes that were admitted when they were tried, the least first: see ``Cost``.
        certificate: What the stand-alone checker proves of the refusal; None where its kinds have no evidence for it.

    Raises: MalformedError: LA800.

    Implementation notes: a finder that needs time for witness, repairs or certificate gives functions to ``deferred``;
    each is called when the field is first read.
    """

    consumer: str
    target: str
    dtype: str
    rules: tuple[str, ...]
    reasons: tuple[str, ...]
    witness: Mapping[str, object] = field(default_factory=dict, hash=False)
    repairs: tuple[Repair, ...] = ()
    certificate: Certificate | None = None

    def __post_init__(self) -> None:
        checked_kinds(self, "LA800")
        if not self.rules or len(self.rules) != len(self.reasons):
            raise CHECK.malformed("rules", "must name at least one rule, with one reason for each", self.rules)

    def deferred(self, **found: Callable[[], Any]) -> Refused:
        """Return the refusal with fields that are found when they are first read.

        Example:
            >>> refused = Refused("tma", "sm_90a", "f16", ("SMEM_DENSE",), ("a gap",))
            >>> refused.deferred(repairs=lambda: (Repair("close the gap", "(8,64):(64,1)"),)).repairs[0].detail
            '(8,64):(64,1)'
        """
        made = Refused(self.consumer, self.target, self.dtype, self.rules, self.reasons)
        pending = {**getattr(self, "_later", {}), **found}
        for name in ("witness", "repairs", "certificate"):
            if name in pending:
                object.__delattr__(made, name)
            else:
                object.__setattr__(made, name, getattr(self, name))
        object.__setattr__(made, "_later", pending)
        return made

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        lines = [f"refused       {self.consumer} on {self.target}, {self.dtype}"]
        lines += [f"  {rule}: {reason}" for rule, reason in zip(self.rules, self.reasons, strict=True)]
        if self.witness:
            lines.append("  at          " + ", ".join(f"{key}={value}" for key, value in self.witness.items()))
        return "\n".join(lines + [f"  try         {repair}" for repair in self.repairs])

    def to_json(self) -> dict[str, object]:
        """Return the answer as JSON-ready data."""
        return {
            "schema": SCHEMA, "verdict": "refused", "consumer": self.consumer, "target": self.target,
            "dtype": self.dtype, "rules": list(self.rules), "reasons": list(self.reasons),
            "witness": plain(self.witness), "repairs": [repair.to_json() for repair in self.repairs],
            "certificate": None if self.certificate is None else self.certificate.to_json(),
        }  # fmt: skip


Admission: TypeAlias = Admitted | Refused | Unknown
