"""A refusal: the rule that stands in the way, the reason and the first counterexample, as every finder reports it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from layoutalg.ground.record import Record


@dataclass(frozen=True, slots=True)
class Broken(Record, code="LA374", schema="layoutalg/broken-rule/1", json="rule reason witness"):
    """A broken rule.

    Args:
        rule: Rule id.
        reason: Why it is broken, in one sentence.
        witness: The first counterexample.
        evidence: Writer of a certificate for the table of the refused layout, called if somebody reads the
            certificate; its answer is None if the table does not show why the rule is broken.

    Example:
        >>> broken = Broken("ACCESS_TILE", "3 rows are no matrix", {"rows": 3})
        >>> str(broken), broken.to_json()["witness"]
        ('3 rows are no matrix, rows = 3', {'rows': 3})
    """

    rule: str
    reason: str
    witness: Mapping[str, object] = field(default_factory=dict, hash=False)
    evidence: Callable[[Any], Any] | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return self.reason + "".join(f", {name} = {value}" for name, value in self.witness.items())
