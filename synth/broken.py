"""A broken rule: why an instruction cannot do what was asked, in the form every finder reports it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from layoutalg.ground.errors import plain

SCHEMA = "layoutalg/broken-rule/1"


@dataclass(frozen=True, slots=True)
class Broken:
    """A broken rule.

    Args:
        rule: Rule id.
        reason: Why it is broken, in one sentence.
        witness: The first counterexample.
    """

    rule: str
    reason: str
    witness: Mapping[str, object] = field(default_factory=dict, hash=False)

    def to_json(self) -> dict[str, object]:
        """Return the rule as JSON-ready data."""
        return {"schema": SCHEMA, "rule": self.rule, "reason": self.reason, "witness": plain(dict(self.witness))}
