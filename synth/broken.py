"""Why an instruction does not carry something: what every finder hands to the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from layoutalg.ground.errors import plain

SCHEMA = "layoutalg/broken-rule/1"


@dataclass(frozen=True, slots=True)
class Broken:
    """A rule that is broken.

    Args:
        rule: Its id.
        reason: Why, in one sentence.
        witness: The first place that shows it.
    """

    rule: str
    reason: str
    witness: Mapping[str, object] = field(default_factory=dict, hash=False)

    def to_json(self) -> dict[str, object]:
        """Return the rule as JSON-ready data."""
        return {"schema": SCHEMA, "rule": self.rule, "reason": self.reason, "witness": plain(dict(self.witness))}
