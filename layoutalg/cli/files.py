"""Reading documents and writing answers: JSON only, and never half a file.

Main definitions: ``read_text``, ``read_documents``, ``write_document``, ``progress``.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from layoutalg.document import load_json
from layoutalg.errors import Diagnostic, MalformedError

MAX_DOCUMENT_BYTES = 64 * 1024 * 1024


def read_text(name: str) -> str:
    """Return the text of a file, or of standard input for ``-``.

    Raises:
        MalformedError: LA012, the file cannot be read, is too large or is not UTF-8.
    """
    try:
        if name == "-":
            raw = sys.stdin.buffer.read(MAX_DOCUMENT_BYTES + 1)
        else:
            with open(name, "rb") as file:
                raw = file.read(MAX_DOCUMENT_BYTES + 1)
        if len(raw) > MAX_DOCUMENT_BYTES:
            raise MalformedError(
                Diagnostic("LA012", "document too large", (name,), f"the limit is {MAX_DOCUMENT_BYTES} bytes")
            )
        return raw.decode("utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        raise MalformedError(Diagnostic("LA012", "cannot read the document", (name,), reason)) from None
    except UnicodeDecodeError as error:
        raise MalformedError(Diagnostic("LA012", "not a UTF-8 text", (name,), str(error))) from None


def read_documents(name: str) -> tuple[list[object], bool]:
    """Return the documents of a file and whether it held a list of them."""
    value = load_json(read_text(name), "standard input" if name == "-" else name)
    if isinstance(value, list):
        return value, True
    return [value], False


def write_document(name: str, document: object) -> None:
    """Write JSON through a temporary file beside the target, so that the target is whole or untouched."""
    target = Path(name)
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".part")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
            file.write("\n")
        os.replace(temporary, target)
    except OSError as error:
        raise MalformedError(
            Diagnostic("LA012", "cannot write the answer", (name,), error.strerror or str(error))
        ) from None


def progress(done: int, total: int, what: str) -> None:
    """Say how far long work has come, on standard error, where a person watches."""
    if total > 1 and sys.stderr.isatty():
        end = "\n" if done == total else ""
        print(f"\r\x1b[K{done}/{total} {what}", end=end, file=sys.stderr, flush=True)
