"""Answer one document or a list of them, one at a time; the exit code is the worst."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable

from layoutalg.cli.exits import INTERNAL, PROVED, UNKNOWN, exit_code
from layoutalg.cli.output import Answers, OutputError, Result, answer_file, progress, tell
from layoutalg.ground import clock
from layoutalg.ground.document import Documents
from layoutalg.ground.errors import Diagnostic, LayoutError, shown

ERROR_SCHEMA = "layoutalg/error/1"
Answer = tuple[Result, list[str], int]
TRACEBACK = "LAYOUTALG_TRACEBACK"
"""Environment variable; if set, internal errors show their traceback."""


def each(
    stated: Callable[[], Documents],
    as_json: bool,
    budget_seconds: float,
    answer: Callable[[object], Answer],
    output: str | None = None,
) -> int:
    """Answer every document; return the worst exit code.

    The error of a single document is raised; in a list it becomes that document's answer and the rest continue.

    Args:
        stated: Reads the documents; called after the answer file was found to be writable.
        as_json: Print JSON.
        budget_seconds: Wall time per document.
        answer: Answers one document.
        output: File for the JSON answers, or None.
    """
    with answer_file(output) as file:
        documents = stated()
        answers = Answers(documents.is_list, as_json, file)
        worst = PROVED
        for index, document in enumerate(documents):
            try:
                with clock.within(budget_seconds):
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
