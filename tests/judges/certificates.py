"""Certificates as an attacker would write them: any statement and evidence, with the right seal."""

from __future__ import annotations

from typing import Any

from layoutalg.proofs import checker

NOTHING: dict[str, object] = {}


def sealed(kind: str, statement: object, evidence: object = NOTHING) -> dict[str, Any]:
    """The document of a claim, right or wrong."""
    made = {"schema": checker.SCHEMA, "kind": kind, "statement": statement, "evidence": evidence}
    return made | {"seal": checker.seal(made)}


def told(kind: str, statement: object, evidence: object = NOTHING) -> tuple[int, str]:
    """What the stand-alone checker says of a claim."""
    code, sentence = checker.check(sealed(kind, statement, evidence))
    return code, sentence
