"""Read JSON documents of bounded size, lists one document at a time."""

from __future__ import annotations

import sys
from typing import BinaryIO

from layoutalg.ground import limits
from layoutalg.ground.document import Documents, load_json, split_json
from layoutalg.ground.errors import Diagnostic, MalformedError
from layoutalg.ground.text import escaped

_CHUNK = 2**20


def read_text(name: str) -> str:
    """Return the text of a file, or of standard input for ``-``.

    Raises: MalformedError: LA012.
    """
    try:
        if name == "-":
            raw = _read(_standard_input())
        else:
            with open(name, "rb") as file:
                raw = _read(file)
    except (OSError, ValueError) as error:  # ValueError: a name with a null character, a closed stream
        raise _refused("cannot read the document", name, getattr(error, "strerror", None) or str(error)) from None
    if len(raw) > limits.DOCUMENT_BYTES:
        raise _refused("document too large", name, f"the limit is {limits.DOCUMENT_BYTES} bytes")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refused("not a UTF-8 text", name, str(error)) from None


def _standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise ValueError("standard input is closed")
    return sys.stdin.buffer


def _read(file: BinaryIO) -> bytes:
    """Return the contents of a file, or the first ``DOCUMENT_BYTES`` + 1 bytes of a longer one."""
    parts, room = [], limits.DOCUMENT_BYTES + 1
    while room and (part := file.read(min(room, _CHUNK))):
        parts.append(part)
        room -= len(part)
    return b"".join(parts)


def _refused(what: str, name: str, because: str) -> MalformedError:
    return MalformedError(Diagnostic("LA012", what, (title(name),), because))


def no_such_file(name: str) -> MalformedError:
    """Return the error for a file that does not exist."""
    return _refused("cannot read the document", name, "there is no such file")


def title(name: str) -> str:
    """Return the name of a file for messages."""
    return "standard input" if name == "-" else escaped(name, 300)


def read_document(name: str) -> object:
    """Return the single document of a file."""
    return load_json(read_text(name), title(name))


def read_documents(name: str) -> Documents:
    """Return the documents of a file, one or a list of them."""
    return split_json(read_text(name), title(name))
