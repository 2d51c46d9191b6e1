"""Exit codes, and answers to one document or a list of them.

Main statements: 0 means everything requested was answered, proved and written; 1 is always a verdict; every other
ending has its own code. For a list of documents the largest code counts. A test compares the table of codes with
docs/command-line.md.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from typing import TypeAlias

from layoutalg.cli.output import Answers, OutputError, Result, answer_file, progress, tell
from layoutalg.ground import clock
from layoutalg.ground.document import Documents
from layoutalg.ground.errors import (
    BudgetError,
    DeviceMismatchError,
    Diagnostic,
    InfeasibleError,
    LayoutError,
    MalformedError,
    shown,
)

PROVED = 0
REFUTED = 1
UNKNOWN = 2
USAGE = 64
INTERNAL = 70
OUTPUT = 74
INTERRUPTED = 130
TERMINATED = 143

EXIT_CODES = {
    PROVED: "proved, admissible, agrees or explained: everything requested was answered and written",
    REFUTED: "refuted or inadmissible",
    UNKNOWN: "unknown: a budget ran out, an optional part is missing, or nothing was measured for the target",
    USAGE: "bad usage, or a document that cannot be read",
    INTERNAL: "internal error in layoutalg, or out of memory",
    OUTPUT: "the answers could not be written (closed pipe, full disk); unwritten ones count as undecided",
    INTERRUPTED: "interrupted",
    TERMINATED: "terminated",
}
ERROR_SCHEMA = "layoutalg/error/1"
VERDICT_SCHEMA = "layoutalg/verdict/1"
CERTIFICATES = "layoutalg/certificate/"
"""Start of the schema of certificates of any version."""
Answer: TypeAlias = tuple[Result, list[str], int]
TRACEBACK = "LAYOUTALG_TRACEBACK"
"""Environment variable; if set, internal errors show their traceback."""


def schema_of(document: object) -> str:
    """Return the schema that a document names, or an empty text."""
    schema = document.get("schema") if isinstance(document, dict) else None
    return schema if isinstance(schema, str) else ""


def exit_code(error: BaseException) -> int:
    """Return the exit code for an exception; only impossibility proofs and device mismatches refute."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, MalformedError):
        return USAGE
    if isinstance(error, (InfeasibleError, DeviceMismatchError)) and not isinstance(error, BudgetError):
        return REFUTED
    return UNKNOWN if isinstance(error, LayoutError) else INTERNAL


def each(
    stated: Callable[[], Documents],
    as_json: bool,
    seconds: float,
    answer: Callable[[object], Answer],
    output: str | None = None,
) -> int:
    """Answer every document; return the worst exit code.

    The error of a single document is raised; in a list it becomes that document's answer and the rest continue.

    Args:
        stated: Reads the documents; called after the answer file was found to be writable.
        as_json: Print JSON.
        seconds: Wall time per document.
        answer: Answers one document.
        output: File for the JSON answers, or None.
    """
    with answer_file(output) as file:
        documents = stated()
        answers = Answers(documents.is_list, as_json, file)
        worst = PROVED
        for index, document in enumerate(documents):
            try:
                with clock.within(seconds):
                    clock.check("a document")
                    result, lines, code = answer(document)
            except OutputError:
                raise
            except Exception as error:
                if not documents.is_list:
                    raise
                result, lines, code = failed(error)
            answers.put(result, lines)
            worst = max(worst, code)
            progress(index + 1, len(documents), "done")
        answers.end()
    return worst


def failed(error: Exception) -> Answer:
    """Return the answer for a question that failed with an error; never a refutation."""
    if isinstance(error, LayoutError):
        code = exit_code(error)
        verdict = "unknown" if code == UNKNOWN else "error"
        result: Result = {"schema": ERROR_SCHEMA, "verdict": verdict, "error": error.diagnostic.to_json()}
        return result, [str(error)], code
    diagnostic = internal(error)
    result = {"schema": ERROR_SCHEMA, "verdict": "error", "error": diagnostic.to_json()}
    return result, [f"{diagnostic.what}: {diagnostic.because}"], INTERNAL


def internal(error: Exception) -> Diagnostic:
    """Return the diagnostic of an unexpected exception; its traceback is shown on request."""
    if os.environ.get(TRACEBACK) and sys.stderr is not None:
        tell("".join(traceback.format_exception(error)).rstrip("\n"))
    if isinstance(error, MemoryError):
        return Diagnostic("LA015", "out of memory", because="the question or its answer is too large")
    try:
        words = " ".join(str(error).split())
    except Exception:
        words = shown(error)
    because = f"{type(error).__name__}: {words[:200]}; set {TRACEBACK}=1 to see where"
    return Diagnostic("LA015", "internal error in layoutalg", because=because)
