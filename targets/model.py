"""Building blocks of hardware facts: sources, device evidence, rules and violations.

Implementation notes: documented and enforced behaviour may differ, so a rule records both. Rules contain no code: the
predicates live next to the values they check and refer to rules by id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias, TypeVar, dataclass_transform

from layoutalg.ground.kinds import checked_kinds
from layoutalg.ground.record import Record

Finding: TypeAlias = Literal["enforced", "not enforced", "enforced differently", "not tested"]
Scope: TypeAlias = Literal["value", "use"]
Class = TypeVar("Class")


@dataclass_transform(frozen_default=True)
def fact(code: str) -> Callable[[type[Class]], type[Class]]:
    """Make a class a frozen dataclass with slots whose fields are checked against their annotations.

    Args:
        code: Code of the error for a field of another kind.
    """

    def made(cls: type[Class]) -> type[Class]:
        cls.__post_init__ = lambda self: checked_kinds(self, code)  # type: ignore[attr-defined]
        return dataclass(frozen=True, slots=True)(cls)

    return made


@fact("LA374")
class Source:
    """A document that states a fact.

    Args:
        document: Title.
        version: Version or date of the text that was read.
        section: Section, function or table.
    """

    document: str
    version: str
    section: str

    def __str__(self) -> str:
        return f"{self.document} {self.version}, {self.section}"


@fact("LA374")
class Evidence:
    """What one device with one driver did with a rule.

    Args:
        chip: Product name of the device measured.
        driver: Driver version.
        finding: Whether the rule was enforced as stated, differently, not at all, or not tested.
        text: What was seen, in words and numbers.
    """

    chip: str
    driver: str
    finding: Finding
    text: str


_TYPE_BITS: Mapping[str, int] = MappingProxyType(
    {
        "f64": 64, "f32": 32, "s32": 32, "tf32": 32, "f16": 16, "bf16": 16, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8,
        "e2m3": 6, "e3m2": 6, "e2m1": 4, "s4": 4, "u4": 4, "b1": 1,
    }
)  # fmt: skip


def type_bits(names: str) -> Mapping[str, int]:
    """Return the bits of an element of each of these types, as matrix instructions name them; tf32 fills 32 bits.

    Example:
        >>> dict(type_bits("tf32 e2m1"))
        {'tf32': 32, 'e2m1': 4}
    """
    return MappingProxyType({name: _TYPE_BITS[name] for name in names.split()})


def version(text: str) -> tuple[int, ...]:
    """Return a version as a tuple of integers, so that versions compare.

    Example:
        >>> version("12.10") > version("12.9")
        True
    """
    return tuple(int(part) for part in text.split("."))


@fact("LA374")
class Rule:
    """A hardware limit with its sources and its evidence.

    Args:
        id: Stable identifier in capitals, for example ``"BOX_RANGE"``.
        statement: The rule in one sentence.
        limit: The numbers of the rule, compact.
        sources: Documents that state it; for an undocumented rule, empty.
        documented: Whether a document of the vendor states it.
        evidence: What devices did, one entry per chip and driver.
        scope: ``"value"`` when a single value can break it, ``"use"`` when only an instruction that uses the value can.
        since: First CUDA toolkit whose documentation states it, e.g. ``"12.8"``; None if none does.
        until: First toolkit whose documentation no longer does; None if the latest one read still does.
    """

    id: str
    statement: str
    limit: str
    sources: tuple[Source, ...]
    documented: bool
    evidence: tuple[Evidence, ...] = ()
    scope: Scope = "value"
    since: str | None = None
    until: str | None = None

    def stated_in(self, toolkit: str) -> bool:
        """Return whether a CUDA toolkit's documentation states the rule.

        Example:
            >>> Rule("R", "A rule.", "", (), True, since="12.8", until="13.5").stated_in("13.0")
            True
        """
        at = version(toolkit)
        return self.since is not None and version(self.since) <= at and (self.until is None or at < version(self.until))

    def on(self, chip: str) -> tuple[Evidence, ...]:
        """Return the evidence of one chip, in the order recorded."""
        return tuple(entry for entry in self.evidence if entry.chip == chip)


@dataclass(frozen=True, slots=True)
class Violation(Record):
    """One value that breaks one rule.

    Args:
        rule: Id of the rule.
        message: The field, its position, the actual number and the limit, in words.
        field: Name of the field at fault.
        position: Index inside the field; None when the field is one value.
    """

    rule: str
    message: str
    field: str
    position: int | None = None

    def __str__(self) -> str:
        return f"{self.rule}: {self.message}"
