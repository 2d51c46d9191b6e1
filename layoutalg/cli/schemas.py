"""``layoutalg schema``: the JSON Schemas of the documents, which are data files of this package."""

from __future__ import annotations

import json
from pathlib import Path

from layoutalg.cli.exits import PROVED
from layoutalg.cli.output import say, say_json
from layoutalg.ground.document import malformed

FOLDER = Path(__file__).parent / "data" / "schemas"


def schema_names() -> tuple[str, ...]:
    """Return the names of the schemas.

    Example:
        >>> "tensormap-plan" in schema_names()
        True
    """
    return tuple(sorted(path.stem for path in FOLDER.glob("*.json")))


def schema_text(name: str) -> str:
    """Return a JSON Schema as it is shipped.

    Args:
        name: Of ``schema_names``; also as documents write it, ``layoutalg/NAME/1``, with its version.

    Raises: MalformedError: LA010.

    Example:
        >>> json.loads(schema_text("layoutalg/verdict/1"))["title"]
        'layoutalg/verdict/1'
    """
    short = name.split("/")[1] if name.startswith("layoutalg/") else name
    text = (FOLDER / f"{short}.json").read_text(encoding="utf-8") if short in schema_names() else ""
    if not text or name not in (short, json.loads(text)["$id"]):
        raise malformed("name", f"must be one of {', '.join(schema_names())}", name)
    return text


def show_schema(name: str | None, as_json: bool) -> int:
    """Print a schema, or the names of all with what each describes."""
    if name is not None:
        say(schema_text(name).rstrip("\n"))
        return PROVED
    about = {short: str(json.loads(schema_text(short))["description"]) for short in schema_names()}
    if as_json:
        say_json({"schema": "layoutalg/schemas/1", "schemas": about})
    else:
        say("\n".join(f"{short:<20} {says}" for short, says in about.items()))
    return PROVED
