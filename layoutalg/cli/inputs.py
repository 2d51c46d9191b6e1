"""Read what the user types or pipes in: layout notation, dumps of bytes, or JSON documents.

Implementation notes: an argument is a file if one of that name exists, otherwise the text itself. Text that shows
memory is a dump, as are the bytes of a map; text that begins like JSON is parsed as JSON; everything else is notation.
Input is never executed.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from layoutalg.cli.files import read_bytes, refused, text_of, title
from layoutalg.ground.document import load_json, malformed
from layoutalg.ground.errors import AdmissibilityError, BudgetError, LayoutError, MalformedError
from layoutalg.notation import parse
from layoutalg.notation.written import Written, read_written
from layoutalg.proofs.dtypes import stated_type
from layoutalg.targets.dumps import is_dump
from layoutalg.targets.nvidia.tensormap.texts import is_call

_JSON = re.compile(r"""\s*(?:$|\{\s*(?:["'}]|$)|"|(?:null|true|false|-?(?:NaN|Infinity|[0-9.eE+]+))\s*$)""")
"""The beginning of a JSON object, string, number or word that no notation shares."""
MAP_SIZES = (64, 128)
"""Sizes in bytes of a binary map file: the whole map, or only the half with fields."""
_TEXT = frozenset(b"\t\n\v\f\r") | frozenset(range(32, 127))
_PATH = re.compile(r"[./~]|.*\.(?:json|txt|mlir|ttgir|ttir|layout|bin|hex)$", re.DOTALL)
"""A text meant as a file name, even if no such file exists."""
_ARGUMENT = re.compile(r"\b([a-z_]+)=(?![\w=])")
"""A missing argument in a library message, such as shape=."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a command: notation, a dump of a descriptor (text or bytes), or a document."""

    kind: Literal["text", "dump", "json"]
    value: object

    def text(self, argument: str, rule: str) -> str:
        """Return the notation; anything else breaks the rule."""
        if self.kind != "text":
            raise malformed(argument, rule, self.value)
        return str(self.value)


def read_subject(argument: str) -> Subject:
    """Read a command-line argument: ``-`` for standard input, a file name, or the text itself.

    Example:
        >>> read_subject("(4,8):(1,4)").kind, read_subject("00" * 128).kind, read_subject('{"a": 1}').kind
        ('text', 'dump', 'json')
    """
    if argument == "-" or _exists(argument):
        raw, name = read_bytes(argument), title(argument)
        if len(raw) in MAP_SIZES and not _TEXT.issuperset(raw):
            return Subject("dump", raw)
        text = text_of(raw, argument)
        # [n] -> ..., the parameters of an ISL set, is not JSON
        listed = text.lstrip().startswith("[") and "->" not in text
        if (_JSON.match(text) or listed) and not _shows_bytes(text):
            return Subject("json", load_json(text, name))
    elif _PATH.match(argument) and "(" not in argument and not _shows_bytes(argument):
        raise refused("cannot read the document", argument, "there is no such file")
    else:
        text = argument
        if re.match(r"\s*\{\s*\"", text):
            return Subject("json", load_json(text, "the argument"))
    return Subject("dump", text) if _shows_bytes(text) else Subject("text", text.strip())


def _shows_bytes(text: str) -> bool:
    return is_dump(text) or is_call(text)


def _exists(argument: str) -> bool:
    try:
        return os.path.exists(argument)
    except ValueError:  # a null character
        return False


def texts_of(arguments: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Read several arguments as texts; at most one may be standard input.

    Raises: MalformedError: LA010, and those of ``read_subject``.
    """
    if list(arguments).count("-") > 1:
        raise malformed(names[-1], f"standard input can be only one of {', '.join(dict.fromkeys(names))}")
    found = [read_subject(argument) for argument in arguments]
    rule = "must be layout notation, or a name that the command knows"
    return tuple(subject.text(name, rule) for subject, name in zip(found, names, strict=True))


@contextlib.contextmanager
def as_options(options: Mapping[str, str]) -> Iterator[None]:
    """Rewrite library errors to name command-line options.

    Args:
        options: Name in the library -> name on the command line.

    Raises: MalformedError: if the text is not a valid layout.

    Example:
        >>> from layoutalg.ask import banks
        >>> with as_options({"kind": "--access"}):
        ...     banks("(32,4):(4,1)", kind="lod")
        Traceback (most recent call last):
        layoutalg.ground.errors.MalformedError: LA713 invalid access of registers to memory
          in     --access
          since  must be one of load, store, ldmatrix, ldmatrix.trans, stmatrix, stmatrix.trans, or an instruction's \
name, not 'lod'
    """
    try:
        yield
    except (AdmissibilityError, MalformedError) as error:
        found = error.diagnostic
        where = tuple(options.get(place, place) for place in found.where)
        because = _ARGUMENT.sub(lambda name: options.get(name[1], name[0]), found.because)
        raise MalformedError(replace(found, where=where, because=because)) from error.__cause__


def layout_of(text: str) -> object:
    """Return the layout of a text.

    Raises: MalformedError: if the text is not a valid layout. BudgetError: LA001.
    """
    with _as_malformed():
        return parse(text)


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
    with _as_malformed():
        size = max(1, stated_type(dtype, text, argument="--dtype").bits // 8)
        return read_written(text, shape, element_bytes=size)


@contextlib.contextmanager
def _as_malformed() -> Iterator[None]:
    """Turn any error of a text other than a budget's into ``MalformedError``."""
    try:
        yield
    except (BudgetError, MalformedError):
        raise
    except LayoutError as error:
        raise MalformedError(error.diagnostic) from None
