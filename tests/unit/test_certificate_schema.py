"""The JSON Schema of certificates is what the checker reads; ``--update-golden`` writes it again."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from layoutalg.cli.schemas import FOLDER, schema_text
from layoutalg.proofs import checker
from layoutalg.proofs.checker.base import STAGES as CHECKED
from layoutalg.proofs.checker.base import read as read_form

FILE = FOLDER / "certificate.json"
STAGES = {
    "type": "array",
    "description": "lists of integers to lists of integers, one after the other",
    "items": {
        "type": "array",
        "minItems": 1,
        "prefixItems": [{"enum": [*CHECKED, "fork"]}],
    },
}
DEFINITIONS = {"stages": STAGES}


def of(form: Any) -> dict[str, Any]:
    """A form of the checker's ``read`` as a JSON Schema."""
    if isinstance(form, dict):
        return {
            "type": "object",
            "required": [name for name in form if not name.endswith("?")],
            "properties": {name.rstrip("?"): of(entry) for name, entry in form.items()},
            "additionalProperties": False,
        }
    if isinstance(form, list):
        return {"type": "array", "items": of(form[0])}
    if isinstance(form, tuple):
        count = len(form)
        return {"type": "array", "prefixItems": [of(entry) for entry in form], "minItems": count, "maxItems": count}
    if isinstance(form, set):
        return {"enum": sorted(form)}
    if isinstance(form, range):
        top = {"maximum": form[-1]} if form[-1] < 2**63 else {}
        return {"type": "integer", "minimum": form.start, **top}
    if form in (int, str, bool):
        return {"type": {int: "integer", str: "string", bool: "boolean"}[form]}
    name = form.__name__
    return {"$ref": f"#/$defs/{name}"} if name in DEFINITIONS else {"description": words(form)}


def words(function: Callable[..., Any]) -> str:
    return " ".join((function.__doc__ or function.__name__).split())


def schema() -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": checker.SCHEMA,
        "title": checker.SCHEMA,
        "description": "A claim, what makes it quick to check, and a seal; layoutalg/proofs/checker checks it.",
        "type": "object",
        "required": ["schema", "kind", "statement", "evidence", "seal"],
        "properties": {
            "schema": {"const": checker.SCHEMA},
            "kind": {"enum": list(checker.KINDS), "description": "what is claimed"},
            "statement": {"type": "object", "description": "all that is claimed"},
            "evidence": {"type": "object", "description": "what makes it quick to check"},
            "seal": {
                "type": "string",
                "pattern": "^[0-9a-f]{64}$",
                "description": "SHA-256 of the rest as JSON without blanks, names in order",
            },
        },
        "additionalProperties": False,
        "oneOf": [
            {
                "title": kind,
                "description": words(decide),
                "properties": {"kind": {"const": kind}, "statement": of(statement), "evidence": of(evidence)},
            }
            for kind, (decide, statement, evidence) in checker.KINDS.items()
        ],
        "$defs": DEFINITIONS,
    }


def test_the_schema_is_what_the_checker_reads(request: pytest.FixtureRequest) -> None:
    text = json.dumps(schema(), indent=1) + "\n"
    if request.config.getoption("--update-golden"):
        FILE.write_text(text, encoding="utf-8")
    assert schema_text(checker.SCHEMA) == text, "the kinds changed; after review, --update-golden"
    jsonschema.Draft202012Validator.check_schema(schema())


def test_the_forms_of_read_are_those_of_the_schema() -> None:
    forms = {"n": range(3), "t?": {"a", "b"}, "l": [(int, str)]}
    for value in (
        {"n": 0, "l": []}, {"n": 2, "t": "a", "l": [[1, "x"]]}, {"n": 3, "l": []}, {"n": 0}, {"n": 0, "l": [], "m": 1},
        {"n": 0, "l": [[1]]}, {"n": 0, "l": [[1, "x", 2]]}, {"n": 0, "l": {}}, {"n": "0", "l": []},
        {"n": True, "l": []},
        {"n": 0, "t": "c", "l": []}, {"n": 0, "l": [["x", 1]]}, [], None,
    ):  # fmt: skip
        try:
            read_form(value, forms, "here")
            read = True
        except checker.Stop:
            read = False
        assert jsonschema.Draft202012Validator(of(forms)).is_valid(value) == read, value
