"""Read files and standard input as text and as JSON documents of bounded size."""

from __future__ import annotations

import os
import re
import sys
from typing import BinaryIO

from layoutalg.ground import limits
from layoutalg.ground.document import Documents, load_json, split_json
from layoutalg.ground.errors import Diagnostic, MalformedError
from layoutalg.ground.text import escaped

_CHUNK = 2**20
_OBJECTS = re.compile(r"\s*(?:\[\s*)?\{\s*[\"}]")


def title(name: str) -> str:
    """Return the name of a file for messages."""
    return "standard input" if name == "-" else escaped(name, 300)


def refused(what: str, name: str, because: str) -> MalformedError:
    """Return the error of a file that cannot be read."""
    return MalformedError(Diagnostic("LA012", what, (title(name),), because))


def read_text(name: str) -> str:
    """Return the text of a file, or of standard input for ``-``; a JSON object or a list of them as it is."""
    if _OBJECTS.match(name) and not os.path.exists(name.replace("\0", "")):
        return name
    return text_of(read_bytes(name), name)


def text_of(raw: bytes, name: str) -> str:
    """Return the contents of a file as text."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise refused("not a UTF-8 text", name, str(error)) from None


def read_bytes(name: str) -> bytes:
    """Return the contents of a file, or of standard input for ``-``."""
    try:
        if name != "-":
            with open(name, "rb") as file:
                raw = _read(file)
        elif sys.stdin is None:
            raise ValueError("standard input is closed")
        else:
            raw = _read(sys.stdin.buffer)
    except (OSError, ValueError) as error:  # ValueError: a name with a null character, a closed stream
        raise refused("cannot read the document", name, getattr(error, "strerror", None) or str(error)) from None
    if len(raw) > limits.DOCUMENT_BYTES:
        raise refused("document too large", name, f"the limit is {limits.DOCUMENT_BYTES} bytes")
    return raw


def _read(file: BinaryIO) -> bytes:
    """Return the contents of a file, or the first ``DOCUMENT_BYTES`` + 1 bytes of a longer one."""
    parts, room = [], limits.DOCUMENT_BYTES + 1
    while room and (part := file.read(min(room, _CHUNK))):
        parts.append(part)
        room -= len(part)
    return b"".join(parts)


def read_document(name: str) -> object:
    """Return the single document of a file."""
    return load_json(read_text(name), title(name))


def read_documents(name: str) -> Documents:
    """Return the documents of a file, one or a list of them."""
    return split_json(read_text(name), title(name))
