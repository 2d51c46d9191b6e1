"""Read what the user types or pipes in: layout notation, hexadecimal digits, or a JSON document.

Implementation notes: an argument is a file if one of that name exists, otherwise the text itself. Text that begins like
JSON is parsed as JSON; text of hexadecimal digits is bytes; everything else is notation. Input is never executed.
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
"""The beginning of a JSON object, string, number or word that no notation shares."""
_HEX = re.compile(r"(?:0[xX])?([0-9a-fA-F]{64,})")
_PATH = re.compile(r"[./~]|.*\.(?:json|txt|mlir|ttgir|ttir|layout|bin|hex)$", re.DOTALL)
"""A text meant as a file name, even if no such file exists."""

_ARGUMENT = re.compile(r"\b([a-z_]+)=(?![\w=])")
"""A missing argument in a library message, such as shape=."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a command.

    Args:
        kind: ``"text"``, ``"hex"`` or ``"json"``.
        value: The notation, the digits, or the document.
        name: Name of its source for messages.
    """

    kind: Literal["text", "hex", "json"]
    value: object
    name: str


def read_subject(argument: str) -> Subject:
    """Read a command-line argument.

    Args:
        argument: ``-`` for standard input, a file name, or the text itself.

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
    """Whether a text is JSON; ``[n] -> ...``, the parameters of an ISL set, is not."""
    return _JSON.match(text) is not None or (text.lstrip().startswith("[") and "->" not in text)


def _is_there(argument: str) -> bool:
    try:
        return os.path.exists(argument)
    except ValueError:  # a null character
        return False


def texts_of(arguments: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Read several command-line arguments as texts.

    Args:
        arguments: As for ``read_subject``; at most one may be standard input.
        names: Their names, for messages.

    Raises: MalformedError: LA010, and those of ``read_subject``.

    Example:
        >>> texts_of(["rows", "(4,8):(1,4)"], ["accesses", "accesses"])
        ('rows', '(4,8):(1,4)')
    """
    if list(arguments).count("-") > 1:
        raise malformed(names[-1], f"standard input can be only one of {', '.join(dict.fromkeys(names))}")
    found = [read_subject(argument) for argument in arguments]
    for subject, name in zip(found, names, strict=True):
        if subject.kind != "text":
            raise malformed(name, "must be layout notation, or a name that the command knows", subject.value)
    return tuple(str(subject.value) for subject in found)


@contextlib.contextmanager
def said_as(options: Mapping[str, str]) -> Iterator[None]:
    """Rewrite library errors to name command-line options.

    Args:
        options: Name in the library -> name on the command line.

    Raises: MalformedError: if the text is not a valid layout.

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
    """Return the layout of a text.

    Raises: MalformedError: if the text is not a valid layout. BudgetError: LA001.

    Example:
        >>> print(layout_of("(4,8):(1,4)"))
        (4,8):(1,4)
    """
    with _of_text():
        return parse(text, shape)


def written_in(text: str, shape: tuple[int, ...] | None = None, dtype: str | None = None) -> Written:
    """Return the layout of a text with what the text says about its elements.

    Args:
        text: As for ``read_written``.
        shape: Tensor sizes, for a text without sizes.
        dtype: The value of ``--dtype``, for a swizzle on bytes.

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
    """Turn any error of a text other than a budget's into ``MalformedError``."""
    try:
        yield
    except (BudgetError, MalformedError):
        raise
    except LayoutError as error:
        raise MalformedError(error.diagnostic) from None
