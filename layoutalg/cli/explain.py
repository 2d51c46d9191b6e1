"""``layoutalg explain``: print ``layoutalg.explain`` as text or JSON."""

from __future__ import annotations

from layoutalg.ask.explanation import SCHEMA, Explanation
from layoutalg.ask.explanation import explain as explained
from layoutalg.cli.exits import PROVED, REFUTED
from layoutalg.cli.output import say, say_json
from layoutalg.cli.subjects import read_subject
from layoutalg.ground.document import Reader, malformed
from layoutalg.ground.errors import MalformedError
from layoutalg.proofs.dtypes import element_type, read_dtype
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.registry import TARGETS

__all__ = ["SCHEMA", "explain"]

ILLEGAL = ("LA309", "LA310")
"""Codes of ``decode`` for 128 bytes that no driver writes."""


def explain(subject: str, dtype: str | None, target: str, as_json: bool, shape: tuple[int, ...] | None = None) -> int:
    """Explain a layout in notation, a descriptor in hexadecimal, or a document; return the exit code."""
    if target not in TARGETS:
        raise malformed("--target", f"must be one of {', '.join(TARGETS)}", target)
    element = None
    if dtype is not None:
        read_dtype(Reader(dtype, "--dtype"), hardware.PLAIN_DTYPES)
        element = element_type(dtype).name
    given = read_subject(subject)
    try:
        told = explained(given.value, element, target, shape)
    except MalformedError as error:
        if given.kind != "hex" or error.diagnostic.code not in ILLEGAL:
            raise
        lines = (error.diagnostic.what, error.diagnostic.because)
        told = Explanation("descriptor", (("illegal", lines),), {"illegal": list(lines)}, holds=False)
    if as_json:
        say_json(told.to_json())
    else:
        say(str(told))
    return PROVED if told.holds else REFUTED
