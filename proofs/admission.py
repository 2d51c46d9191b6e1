"""The answers to "can this instruction carry this layout?": admitted with the bits, or refused with the reason.

A layout is admissible for a consumer iff some descriptor of the target denotes it. ``Admitted`` carries that descriptor
and a certificate for the stand-alone checker; ``Refused`` the broken rules, a witness, and repairs that were tried and
admitted; ``Unknown`` what is missing for a decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from layoutalg.ground.check import Checker
from layoutalg.ground.errors import Repair
from layoutalg.ground.picture import Shown
from layoutalg.ground.record import Record
from layoutalg.ground.refusal import Broken
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.certify.certificate import Certificate

SCHEMA = "layoutalg/admission/1"
Grade: TypeAlias = Literal["measured", "documented"]
CHECK = Checker("LA800", "invalid admission answer")


class _Later:
    """A value with fields that are computed on first read."""

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
class Admitted(
    Record,
    _Later,
    Shown,
    code="LA800",
    schema=SCHEMA,
    verdict="admitted",
    json="consumer target dtype evidence descriptor certificate",
):
    """A descriptor, or a list of instructions, that denotes the layout.

    Args:
        consumer: The instruction, as the caller named it.
        target: Architecture.
        dtype: Element type.
        descriptor: The plan of the consumer's finder that carries the layout; has ``to_json``.
        certificate: Its proof for the stand-alone checker.
        evidence: Basis of the descriptor's meaning: ``"measured"`` on a device or ``"documented"``.
    """

    consumer: str
    target: str
    dtype: str
    descriptor: Any = field(hash=False)
    certificate: Certificate
    evidence: Grade

    def _validate(self) -> None:
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


@dataclass(frozen=True, slots=True)
class Refused(
    Record,
    _Later,
    Shown,
    code="LA800",
    schema=SCHEMA,
    verdict="refused",
    json="consumer target dtype rules reasons witness repairs certificate",
):
    """No descriptor of the consumer denotes the layout.

    Args:
        consumer: The instruction, as the caller named it.
        target: Architecture.
        dtype: Element type.
        rules: Ids of the broken rules, at least one, the main reason first.
        reasons: One sentence per rule.
        witness: The first coordinate that breaks a rule, with the value there and the one the instruction needs.
        repairs: Changes that were tried and admitted, the smallest first: see ``Cost``.
        certificate: Proof of the refusal for the stand-alone checker; None if no certificate kind covers it.
    """

    consumer: str
    target: str
    dtype: str
    rules: tuple[str, ...]
    reasons: tuple[str, ...]
    witness: Mapping[str, object] = field(default_factory=dict, hash=False)
    repairs: tuple[Repair, ...] = ()
    certificate: Certificate | None = None

    @classmethod
    def by(cls, broken: Iterable[Broken], consumer: str, target: str, dtype: str, **more: Any) -> Refused:
        """Return the refusal by broken rules, the main reason first; what is said twice is listed once."""
        said: dict[tuple[str, str], Broken] = {}
        for each in broken:
            said.setdefault((each.rule, each.reason), each)
        rules, reasons = tuple(rule for rule, _ in said), tuple(reason for _, reason in said)
        witness = next((each.witness for each in said.values()), {})
        return cls(consumer, target, dtype, rules, reasons, witness, **more)

    def _validate(self) -> None:
        if not self.rules or len(self.rules) != len(self.reasons):
            raise CHECK.malformed("rules", "must name at least one rule, with one reason for each", self.rules)

    def deferred(self, **found: Callable[[], Any]) -> Refused:
        """Return the refusal with fields computed on first read.

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

    def certified(self, writer: Callable[[], Certificate | None]) -> Refused:
        """Return the refusal with a further writer of its certificate, asked if there is none so far."""
        return self.deferred(certificate=lambda: self.certificate or writer())

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        lines = [f"refused       {self.consumer} on {self.target}, {self.dtype}"]
        lines += [f"  {rule}: {reason}" for rule, reason in zip(self.rules, self.reasons, strict=True)]
        if self.witness:
            lines.append("  at          " + ", ".join(f"{key}={value}" for key, value in self.witness.items()))
        return "\n".join(lines + [f"  try         {repair}" for repair in self.repairs])


Admission: TypeAlias = Admitted | Refused | Unknown
