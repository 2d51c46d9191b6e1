"""Why an instruction does not carry something: what every finder hands to the answer.

Main definitions: ``Broken``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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
