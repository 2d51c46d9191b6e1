"""``layoutalg schema``: the JSON Schemas of the documents, shipped as data files."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from layoutalg.cli import commands
from layoutalg.cli.answers import PROVED
from layoutalg.cli.output import say, say_json
from layoutalg.ground.document import malformed

FOLDER = Path(__file__).parent / "data" / "schemas"


@cache
def schema_names() -> tuple[str, ...]:
    """Return the names of the schemas."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.json")))


def schema_text(name: str) -> str:
    """Return the text of a JSON Schema.

    Args:
        name: One of ``schema_names``, or as documents write it, with its version: ``layoutalg/NAME/1``.

    Example:
        >>> json.loads(schema_text("layoutalg/verdict/1"))["title"]
        'layoutalg/verdict/1'
    """
    short = name.split("/")[1] if name.startswith("layoutalg/") else name
    text = (FOLDER / f"{short}.json").read_text(encoding="utf-8") if short in schema_names() else ""
    if not text or (name != short and name != json.loads(text)["$id"]):
        raise malformed("name", f"must be one of {', '.join(schema_names())}", name)
    return text


def run_schema(given: commands.Schema) -> int:
    """Print a schema, or all names with their descriptions."""
    if given.name is not None:
        say(schema_text(given.name).rstrip("\n"))
        return PROVED
    about = {short: str(json.loads(schema_text(short))["description"]) for short in schema_names()}
    if given.json:
        say_json({"schema": "layoutalg/schemas/1", "schemas": about})
    else:
        say("\n".join(f"{short:<20} {says}" for short, says in about.items()))
    return PROVED
