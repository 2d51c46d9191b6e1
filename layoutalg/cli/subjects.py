"""What a person types or pipes in: layout notation, hexadecimal digits, or a JSON document, from anywhere.

Implementation notes: an argument is a file where one of that name exists, else the text itself. A text that begins like
JSON is JSON, with JSON's messages; one of hexadecimal digits alone is bytes; everything else is notation. Nothing that
is read is executed.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from layoutalg.cli.files import no_such_file, read_text, title
from layoutalg.ground.document import load_json, malformed
from layoutalg.ground.errors import AdmissibilityError, BudgetError, LayoutError, MalformedError
from layoutalg.notation import parse
from layoutalg.notation.written import Written, read_written
from layoutalg.proofs.dtypes import stated_type

_JSON = re.compile(r"""\s*(?:$|\{\s*(?:["'}]|$)|"|(?:null|true|false|-?(?:NaN|Infinity|[0-9.eE+]+))\s*$)""")
"""How a JSON object, string, number or word begins, and no notation."""
_HEX = re.compile(r"(?:0[xX])?([0-9a-fA-F]{64,})")
_PATH = re.compile(r"[./~]|.*\.(?:json|txt|mlir|ttgir|ttir|layout|bin|hex)$", re.DOTALL)
"""What is meant as the name of a file, though no file has it."""

_ARGUMENT = re.compile(r"\b([a-z_]+)=(?![\w=])")
"""What messages of the library write for an argument that is missing: shape=."""


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


def texts_of(arguments: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Return the texts that several arguments of one command stand for.

    Args:
        arguments: As in ``read_subject``; one of them may be standard input.
        names: What the command calls them, for messages.

    Raises: MalformedError: LA010, and those of ``read_subject``.

    Example:
        >>> texts_of(["rows", "(4,8):(1,4)"], ["accesses", "accesses"])
        ('rows', '(4,8):(1,4)')
    """
    if list(arguments).count("-") > 1:
        raise malformed(names[-1], f"standard input can be one of {', '.join(dict.fromkeys(names))}")
    found = [read_subject(argument) for argument in arguments]
    for subject, name in zip(found, names, strict=True):
        if subject.kind != "text":
            raise malformed(name, "must be layout notation, or a name where the command has names", subject.value)
    return tuple(str(subject.value) for subject in found)


@contextlib.contextmanager
def said_as(options: Mapping[str, str]) -> Iterator[None]:
    """Let errors call arguments of the library by the options of the command; a text that is no layout is bad usage.

    Args:
        options: Name in the library -> name on the command line.

    Raises: MalformedError: whatever rule a text breaks, it is then no layout.

    Example:
        >>> from layoutalg.ask import banks
        >>> with said_as({"kind": "--access"}):
        ...     banks("(32,4):(4,1)", kind="lod")
        Traceback (most recent call last):
        layoutalg.ground.errors.MalformedError: LA713 invalid shared-memory access
          in     --access
          since  must be one of load, store, ldmatrix, stmatrix, ldmatrix.trans, stmatrix.trans, or an instruction's \
name, not 'lod'
          at     actual=lod
    """
    try:
        yield
    except (AdmissibilityError, MalformedError) as error:
        found = error.diagnostic
        where = tuple(options.get(place, place) for place in found.where)
        because = _ARGUMENT.sub(lambda name: options.get(name[1], name[0]), found.because)
        raise MalformedError(replace(found, where=where, because=because)) from error.__cause__


def layout_of(text: str, shape: tuple[int, ...] | None = None) -> object:
    """Return the layout of a text; whatever rule it breaks, it is then no layout.

    Raises: MalformedError: those of ``layoutalg.parse``. BudgetError: LA001.

    Example:
        >>> print(layout_of("(4,8):(1,4)"))
        (4,8):(1,4)
    """
    with _of_text():
        return parse(text, shape)


def written_in(text: str, shape: tuple[int, ...] | None = None, dtype: str | None = None) -> Written:
    """Return the layout of a text with what the text says of its elements.

    Args:
        text: As in ``read_written``.
        shape: Sizes of the tensor, for a text without sizes.
        dtype: The element type that ``--dtype`` names, for a swizzle of bytes.

    Raises: MalformedError: those of ``layoutalg.parse``, LA375. BudgetError: LA001.

    Example:
        >>> written_in("smem_ptr[8b](unset) o (4,8):(8,1)").bits
        8
    """
    with _of_text():
        size = max(1, stated_type(dtype, text, argument="--dtype").bits // 8)
        return read_written(text, shape, element_bytes=size)


@contextlib.contextmanager
def _of_text() -> Iterator[None]:
    """Whatever rule a text breaks, it is then no layout."""
    try:
        yield
    except (BudgetError, MalformedError):
        raise
    except LayoutError as error:
        raise MalformedError(error.diagnostic) from None
