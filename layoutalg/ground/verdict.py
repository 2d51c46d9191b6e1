"""The three possible verdicts on a claim: proved, refuted, unknown.

``str`` is what the command line prints, ``repr`` is Python code for an equal value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from layoutalg.ground.errors import plain, shown
from layoutalg.ground.picture import Shown

SCHEMA = "layoutalg/verdict/1"
_WIDTH = 84
_UNSAID = ("claim", "digest", "engine", "schema")
"""Certificate entries that the first lines already show, or that only a checker reads."""


@dataclass(frozen=True, slots=True)
class Proved(Shown):
    """The claim holds everywhere. ``engine`` decided it; ``certificate`` is what a checker needs to confirm it.

    Example:
        >>> print(Proved("table", {"claim": "both are equal", "elements": 32}))
        proved        both are equal
          by          table
          elements    32
    """

    engine: str
    certificate: Mapping[str, object] = field(default_factory=dict, hash=False)

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        claim = self.certificate.get("claim")
        first = f"by {self.engine}" if claim is None else str(claim)
        facts: dict[str, object] = {} if claim is None else {"by": self.engine}
        facts |= {key: value for key, value in self.certificate.items() if key not in _UNSAID}
        return "\n".join([f"proved        {first}", *_entries(facts)])

    def to_json(self) -> dict[str, object]:
        """Return the verdict as JSON-ready data."""
        known = {"engine": self.engine, "certificate": plain(dict(self.certificate))}
        return {"schema": SCHEMA, "verdict": "proved", **known}


@dataclass(frozen=True, slots=True)
class Refuted(Shown):
    """The claim fails at ``witness``: the first coordinate found where the sides differ, with both values.

    Example:
        >>> print(Refuted("table", {"what": "another offset", "at": 3, "left": 6, "right": 7}))
        refuted       another offset
          at          at=3, left=6, right=7
    """

    engine: str
    witness: Mapping[str, object] = field(default_factory=dict, hash=False)
    point: object = field(default=None, compare=False, repr=False, kw_only=True)
    """The witness's coordinate by modes or axes, if there are several."""

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        what = next((key for key in ("what", "claim", "because") if key in self.witness), "")
        told = ", ".join(f"{key}={_value(value)}" for key, value in self.witness.items() if key != what)
        lines = [f"refuted       {self.witness[what] if what else f'by {self.engine}'}"]
        where = "" if self.point is None else f"{_value(self.point)}: "
        return "\n".join(lines + [f"  at          {where}{told}"] * bool(told))

    def to_json(self) -> dict[str, object]:
        """Return the verdict as JSON-ready data."""
        return {"schema": SCHEMA, "verdict": "refuted", "engine": self.engine, "witness": plain(dict(self.witness))}


@dataclass(frozen=True, slots=True)
class Unknown(Shown):
    """Undecided within the budget. ``bool()`` raises, so that it cannot pass for a yes or a no.

    Example:
        >>> print(Unknown("the budget ran out", ("table", "ISL")))
        unknown       the budget ran out
          tried       table, ISL
    """

    reason: str
    tried: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        raise ValueError(f"an unknown verdict has no truth value: {self.reason}")

    def __str__(self) -> str:
        tried = {"tried": ", ".join(self.tried)} if self.tried else {}
        return "\n".join([f"unknown       {self.reason}", *_entries(tried)])

    def to_json(self) -> dict[str, object]:
        """Return the verdict as JSON-ready data."""
        return {"schema": SCHEMA, "verdict": "unknown", "reason": self.reason, "tried": list(self.tried)}


def _value(value: object) -> str:
    return value if isinstance(value, str) else shown(value)


def _entries(facts: Mapping[str, object]) -> list[str]:
    """Return the facts, one truncated line each."""
    width = max([11, *map(len, facts)])
    told = ((key, value[:_WIDTH] if isinstance(value, str) else shown(value, _WIDTH)) for key, value in facts.items())
    return [f"  {key:<{width}} {text}" for key, text in told]


Verdict: TypeAlias = Proved | Refuted | Unknown
