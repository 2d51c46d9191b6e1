"""What a person types or pipes in: layout notation, hexadecimal digits, or a JSON document, from anywhere.

Main definitions: ``Subject``, ``read_subject``, ``layout_of``.

Implementation notes: an argument is a file where one of that name exists, else the text itself. A text that begins like
JSON is JSON, with JSON's messages; one of hexadecimal digits alone is bytes; everything else is notation. Nothing that
is read is executed.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Literal

from layoutalg.cli.files import no_such_file, read_text, title
from layoutalg.ground.document import load_json
from layoutalg.ground.errors import BudgetError, LayoutError, MalformedError
from layoutalg.notation import parse

_JSON = re.compile(r"""\s*(?:$|\{\s*(?:["'}]|$)|"|(?:null|true|false|-?(?:NaN|Infinity|[0-9.eE+]+))\s*$)""")
"""How a JSON object, string, number or word begins, and no notation."""
_HEX = re.compile(r"(?:0[xX])?([0-9a-fA-F]{64,})")
_PATH = re.compile(r"[./~]|.*\.(?:json|txt|mlir|ttgir|ttir|layout|bin|hex)$", re.DOTALL)
"""What is meant as the name of a file, though no file has it."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a command is asked about.

    Args:
        kind: ``"text"``, ``"hex"`` or ``"json"``.
        value: The notation, the digits, or the document.
        name: What to call its source in messages.
    """

    kind: Literal["text", "hex", "json"]
    value: object
    name: str


def read_subject(argument: str) -> Subject:
    """Return what an argument of the command line stands for.

    Args:
        argument: ``-`` for standard input, the name of a file, or the text itself.

    Raises: MalformedError: LA011, LA012, LA013, LA014.

    Example:
        >>> read_subject("(4,8):(1,4)").kind, read_subject("00" * 128).kind, read_subject('{"a": 1}').kind
        ('text', 'hex', 'json')
    """
    if argument == "-" or _is_there(argument):
        text, name = read_text(argument), title(argument)
        if _is_json(text) and not _HEX.fullmatch(text.strip()):
            return Subject("json", load_json(text, name), name)
    elif _PATH.match(argument) and "(" not in argument:
        raise no_such_file(argument)
    else:
        text, name = argument, "the argument"
        if re.match(r"\s*\{\s*\"", text):
            return Subject("json", load_json(text, name), name)
    digits = _HEX.fullmatch(re.sub(r"\s+", "", text)) if len(text) < 1000 else None
    return Subject("hex", digits[1], name) if digits else Subject("text", text.strip(), name)


def _is_json(text: str) -> bool:
    """Whether to read a text as JSON; a list of it has no arrow, which parameters of an ISL set are followed by."""
    return _JSON.match(text) is not None or (text.lstrip().startswith("[") and "->" not in text)


def _is_there(argument: str) -> bool:
    try:
        return os.path.exists(argument)
    except ValueError:  # a null character
        return False


def layout_of(text: str, shape: tuple[int, ...] | None = None) -> object:
    """Return the layout of a text; whatever rule it breaks, it is then no layout.

    Raises: MalformedError: those of ``layoutalg.parse``. BudgetError: LA001.

    Example:
        >>> print(layout_of("(4,8):(1,4)"))
        (4,8):(1,4)
    """
    try:
        return parse(text, shape)
    except (BudgetError, MalformedError):
        raise
    except LayoutError as error:
        raise MalformedError(error.diagnostic) from None
