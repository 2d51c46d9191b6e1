"""The three answers to a question: proved, refuted, unknown.

Main definitions: ``Proved``, ``Refuted``, ``Unknown``, ``Verdict``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from layoutalg.ground.picture import Shown


@dataclass(frozen=True, slots=True)
class Proved(Shown):
    """The claim holds everywhere. ``engine`` decided it; ``certificate`` holds what a checker needs to agree."""

    engine: str
    certificate: Mapping[str, object] = field(default_factory=dict, hash=False)

    def __bool__(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Refuted(Shown):
    """The claim fails at ``witness``: the first coordinate found where both sides differ, with both values."""

    engine: str
    witness: Mapping[str, object] = field(default_factory=dict, hash=False)

    def __bool__(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Unknown(Shown):
    """Nothing decided within the budget. Its truth value is an error, so that it cannot pass for a yes or a no."""

    reason: str
    tried: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        raise ValueError(f"the verdict is unknown and has no truth value: {self.reason}")


Verdict: TypeAlias = Proved | Refuted | Unknown
