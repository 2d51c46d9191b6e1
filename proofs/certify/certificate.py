"""Certificates: a statement, evidence that makes it quick to check, and a seal, in one versioned JSON form.

``layoutalg.proofs.checker``, a stand-alone folder, defines the form and decides; this module only builds, reads and
writes certificates.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from layoutalg.ground import clock
from layoutalg.ground.check import Checker
from layoutalg.ground.verdict import Proved, Refuted, Unknown, Verdict
from layoutalg.proofs import checker
from layoutalg.proofs.fields import Statement

KINDS = tuple(checker.KINDS)
"""The kinds of certificates."""
_PARTS = ("schema", "kind", "statement", "evidence", "seal")
_check = Checker("LA425", "invalid certificate")


@dataclass(frozen=True, slots=True)
class Certificate(Statement):
    """A claim that a third party can check with one folder, ``layoutalg/proofs/checker``, and numpy.

    Args:
        kind: One of ``KINDS``.
        statement: The whole claim, as JSON data.
        evidence: What makes it quick to check, as JSON data; the checker does not search.

    Example:
        >>> f, g = ({"size": 8, "stages": stages} for stages in ([["split", [2, 4]], ["affine", [[1, 2]], [0]]], []))
        >>> made = Certificate("equality", {"f": f, "g": g}, {"by": "table"})
        >>> bool(made.check()), Certificate.from_json(made.to_text()) == made
        (True, True)
    """

    kind: str
    statement: Mapping[str, object] = field(hash=False)
    evidence: Mapping[str, object] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if type(self.kind) is not str or self.kind not in KINDS:
            raise _check.malformed("kind", f"must be one of {', '.join(KINDS)}", self.kind)
        for name in ("statement", "evidence"):
            object.__setattr__(self, name, _own(name, getattr(self, name)))

    def __str__(self) -> str:
        return f"certificate   {self.kind}\n  seal        {self.seal}"

    @property
    def seal(self) -> str:
        """The SHA-256 of everything else in canonical JSON."""
        return checker.seal(self._open())

    def _open(self) -> dict[str, object]:
        """Return the document without its seal, as a deep copy."""
        statement, evidence = (json.loads(json.dumps(part)) for part in (self.statement, self.evidence))
        return {"schema": checker.SCHEMA, "kind": self.kind, "statement": statement, "evidence": evidence}

    def to_json(self) -> dict[str, object]:
        """Return the sealed document."""
        return self._open() | {"seal": self.seal}

    def to_text(self) -> str:
        """Return the document as one line of JSON."""
        return json.dumps(self.to_json(), separators=(",", ":"))

    @classmethod
    def from_json(cls, document: object) -> Certificate:
        """Read a document or its text; ``check`` decides whether it holds.

        Raises: MalformedError: LA425, also if the seal does not match.
        """
        if isinstance(document, str):
            try:
                document = checker.parsed(document)
            except checker.Stop as stop:
                raise _check.malformed("document", f"must be JSON ({stop.args[1]})", document) from None
        if not isinstance(document, dict) or sorted(document, key=str) != sorted(_PARTS):
            raise _check.malformed("document", f"must be an object with {', '.join(_PARTS)}", document)
        if document["schema"] != checker.SCHEMA:
            raise _check.malformed("schema", f"must be {checker.SCHEMA}", document["schema"])
        made = cls(document["kind"], document["statement"], document["evidence"])
        if document["seal"] != made.seal:
            raise _check.malformed("seal", f"must be {made.seal} for this document", document["seal"])
        return made

    def check(self) -> Verdict:
        """Return the stand-alone checker's verdict: proved, refuted by the first wrong fact, or unknown.

        Every fact is recomputed from the statement without calling the library. The time limit is the one of
        ``ground.clock``, otherwise one minute.
        """
        given = clock.left()
        code, told = checker.check(self.to_json(), checker.SECONDS if math.isinf(given) else given)
        if code == 2:
            return Unknown(told, ("checker",))
        return Proved("checker", {"claim": told}) if code == 0 else Refuted("checker", {"what": told})


def _own(name: str, value: object) -> dict[str, object]:
    """Return a deep copy of a JSON object, which must not contain floats."""
    try:
        text = json.dumps(value)
        read = checker.parsed(text)
    except (TypeError, ValueError, RecursionError):
        raise _check.malformed(name, "must be JSON data", value) from None
    except checker.Stop as stop:
        raise _check.malformed(name, f"must be JSON data ({stop.args[1]})", value) from None
    if not isinstance(read, dict):
        raise _check.malformed(name, "must be an object", value)
    return read
