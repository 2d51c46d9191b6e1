"""Stand-alone checker of layoutalg certificates: ``python checker [--seconds S] FILE|FOLDER ...``.

Exit code: 0 proved, 1 refuted (with the first wrong fact), 2 unknown (a solver is missing, or a limit was reached), 64
unreadable. It needs Python 3.11 and numpy and imports nothing of layoutalg: copy this folder, read it, run it. A
certificate is JSON, {"schema": SCHEMA, "kind": ..., "statement": ..., "evidence": ..., "seal": ...}: the statement is
the whole claim, the evidence makes it quick to check, the seal is the SHA-256 of the rest. Every fact is recomputed
from the statement. The seal is compared last, but before anything slow.

Certificates are untrusted, so a check is bounded: in time (S seconds per certificate, default 60), in the points at
which functions are evaluated, in the steps that their stages take there, estimated in advance, and in the numbers in
memory at a time.

``base`` reads and evaluates, each of the other files decides some kinds: one function per kind, whose docstring is the
claim.
"""

import json
import pathlib
import sys

from . import equality, indirect, operands, pipelines, tensormaps
from .base import PROVED, REFUTED, SECONDS, UNKNOWN, UNREADABLE, Stop, compare_seal, read, seal, timed

__all__ = ["KINDS", "SCHEMA", "SECONDS", "VERDICTS", "Stop", "check", "files", "line", "main", "parsed", "seal"]

SCHEMA = "layoutalg/certificate/2"
VERDICTS = {PROVED: "proved", REFUTED: "refuted", UNKNOWN: "unknown", UNREADABLE: "unreadable"}
_LATER = (operands.BANK_KINDS, pipelines.KINDS, indirect.KINDS)
_FILES = (equality.KINDS, operands.OPERAND_KINDS, tensormaps.KINDS, *_LATER)
KINDS = {kind: entry for kinds in _FILES for kind, entry in kinds.items()}
"""By name: the function that decides, the form of its statement, the form of its evidence."""


def check(document, seconds=SECONDS) -> tuple:
    """Check a certificate for at most ``seconds``; return the verdict's code and a sentence."""
    try:
        if not isinstance(document, dict) or document.get("schema") != SCHEMA or str(document.get("kind")) not in KINDS:
            raise Stop(UNREADABLE, f"this is not a {SCHEMA} of a known kind")
        decide, statement_form, evidence_form = KINDS[str(document["kind"])]
        form = {"schema": str, "kind": str, "statement": statement_form, "evidence": evidence_form, "seal": str}
        with timed(seconds, document):
            certificate = read(document, form, "certificate")
            sentence = decide(certificate.statement, certificate.evidence)
            compare_seal()
    except Stop as stop:
        return stop.args
    except (RecursionError, MemoryError, OverflowError, ValueError) as error:
        return UNKNOWN, f"this certificate is too large to check here ({type(error).__name__})"
    return PROVED, sentence


def parsed(text: str):
    """Read JSON strictly: integers only, no duplicate names."""

    def refuse(what):
        raise Stop(UNREADABLE, f"this is not a certificate: {str(what)[:200]}")

    def once(pairs):
        return dict(pairs) if len(dict(pairs)) == len(pairs) else refuse("duplicate name")

    try:
        return json.loads(text, parse_float=refuse, parse_constant=refuse, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        return refuse(error)


# --- the command line ------------------------------------------------------------------------------------------------
def files(name: str) -> list:
    return sorted(str(path) for path in pathlib.Path(name).rglob("*.json") if path.is_file()) or [name]


def line(path: str, code: int, sentence: str) -> str:
    return f"{VERDICTS[code]:<10} {ascii(path)[1:-1]}: {sentence}"


def arguments_of(words):
    """Return the names and seconds from the command line, or raise ValueError."""
    names, seconds, rest = [], SECONDS, iter(words)
    for word in rest:
        option, _, value = word.partition("=")
        if option == "--seconds":
            seconds = float(value or next(rest, "nan"))
            if not seconds >= 0:
                raise ValueError("--seconds must be a number >= 0")
        else:
            names.append(word)
    if not names:
        raise ValueError(f"usage: python checker [--seconds S] FILE|FOLDER ... (S: per certificate, default {SECONDS})")
    return names, seconds


def main(words):
    """Check files and folders; print a line per file and return the worst code."""
    try:
        names, seconds = arguments_of(words)
    except ValueError as error:
        print(error, file=sys.stderr)
        return UNREADABLE
    worst = PROVED
    for path in [path for name in names for path in files(name)]:
        try:
            code, sentence = check(parsed(pathlib.Path(path).read_text(encoding="utf-8-sig")), seconds)
        except Stop as stop:
            code, sentence = stop.args
        except (OSError, UnicodeError) as error:
            code, sentence = UNREADABLE, str(error)
        worst = max(worst, code)
        print(line(path, code, sentence))
    return worst
