"""``layoutalg check`` for files and folders, and ``layoutalg checker``.

Implementation notes: certificates are checked only by ``layoutalg/proofs/checker``, so text and exit code are those
of ``python checker FILE``; plans and refusals go to ``layoutalg.cli.plans``.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from layoutalg.cli import commands
from layoutalg.cli.answers import (
    CERTIFICATES,
    PROVED,
    REFUTED,
    UNKNOWN,
    VERDICT_SCHEMA,
    Answer,
    each,
    failed,
    schema_of,
)
from layoutalg.cli.files import read_text, title
from layoutalg.cli.output import OutputError, Result, progress, put_folder, say, say_json
from layoutalg.ground import clock
from layoutalg.ground.document import Documents, malformed, split_json
from layoutalg.proofs import checker, pipeline

EMITTED = "layoutalg/emitted/1"


def run_check(given: commands.Check) -> int:
    """Check the certificate, plans or refusals in a file, or in every JSON file below a folder."""
    if given.file != "-" and os.path.isdir(given.file.replace("\0", "")):
        return _check_folder(given)
    text = read_text(given.file)
    certificate = _certificate(text)
    if certificate is None:

        def answer(document: object) -> Answer:
            return _check_plan(document, given)

        return each(lambda: split_json(text, title(given.file)), given.json, given.budget, answer)
    with clock.within(given.budget):
        clock.check("a certificate")
        result, lines, code = _check_certificate(certificate, given.file)
    if given.json:
        say_json(result)
    else:
        say(lines[0])
    return code


def run_verify(given: commands.Verify) -> int:
    """Verify the pipelines in a file, or the kernel whose TTGIR it has."""

    def stated() -> Documents:
        text = read_text(given.file)
        kernel = text.lstrip()[:1] not in ("", "{", "[")
        return split_json(json.dumps(text) if kernel else text, title(given.file))

    def answer(document: object) -> Answer:
        verdict = pipeline.verify(document, given.target, given.policy)
        code = {"proved": PROVED, "refuted": REFUTED}.get(str(verdict.to_json()["verdict"]), UNKNOWN)
        return verdict.to_json(), [str(verdict)], code

    return each(stated, given.json, given.budget, answer)


def _check_plan(document: object, given: commands.Check) -> Answer:
    from layoutalg.cli.plans import checked

    return checked(document, given.documented_only)


def _certificate(text: str) -> object:
    """The certificate in a text; None if the text is something else."""
    if text.lstrip()[:1] != "{":
        return None
    try:
        document = checker.parsed(text)
    except checker.Stop:
        return None
    return document if schema_of(document).startswith(CERTIFICATES) else None


def _check_certificate(certificate: object, name: str) -> Answer:
    """The verdict of the stand-alone checker, in its own words."""
    code, told = checker.check(certificate, clock.left())
    kind = certificate.get("kind") if isinstance(certificate, dict) else None
    lines = [checker.line("standard input" if name == "-" else name, code, told)]
    if code not in (PROVED, REFUTED, UNKNOWN):
        return failed(malformed("/kind", told, kind))[0], lines, code
    result: Result = {"schema": VERDICT_SCHEMA, "verdict": checker.VERDICTS[code]}
    if code == PROVED:
        return result | {"certificate": {"engine": "checker", "kind": kind, "claim": told}}, lines, code
    if code == REFUTED:
        return result | {"witness": {"what": told}}, lines, code
    return result | {"reason": told, "tried": ["checker"]}, lines, code


def _check_folder(given: commands.Check) -> int:
    """Print one line, or one JSON list entry, per document below a folder."""
    worst, results = PROVED, []
    paths = checker.files(given.file)
    for place, path in enumerate(paths):
        for result, line, code in _check_file(path, given):
            worst = max(worst, code)
            if given.json:
                results.append(result | {"file": path})
            else:
                say(line)
        progress(place + 1, len(paths), "done")
    if given.json:
        say_json(results)
    return worst


def _check_file(path: str, given: commands.Check) -> list[tuple[Result, str, int]]:
    """The answers to the documents of one file, each with its line."""
    try:
        with clock.within(given.budget):
            text = read_text(path)
            certificate = _certificate(text)
            if certificate is not None:
                clock.check("a certificate")
                result, lines, code = _check_certificate(certificate, path)
                return [(result, lines[0], code)]
        documents = split_json(text, path)
    except OutputError:
        raise
    except Exception as error:
        return [_in_a_line(path, failed(error))]
    found = []
    for place, document in enumerate(documents):
        try:
            with clock.within(given.budget):
                clock.check("a document")
                answer = _check_plan(document, given)
        except Exception as error:
            answer = failed(error)
        found.append(_in_a_line(f"{path}[{place}]" if documents.is_list else path, answer))
    return found


def _in_a_line(path: str, answer: Answer) -> tuple[Result, str, int]:
    """Condense an answer into one line in the format of the stand-alone checker."""
    result, lines, code = answer
    word = checker.VERDICTS.get(code, "error") if result["verdict"] != "inadmissible" else "inadmissible"
    told = " ".join(lines[0].split()).removeprefix(f"{word} ")
    return result, f"{word:<10} {ascii(path)[1:-1]}: {told}", code


def run_checker(given: commands.Checker) -> int:
    """Print the path of the stand-alone checker, or copy its folder."""
    source = Path(checker.__file__).parent
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(source.glob("*.py"))}
    if given.output is not None:
        put_folder(given.output, texts)
    if given.json:
        say_json({"schema": EMITTED, "what": "checker", "files": texts})
    elif given.output is None:
        say(str(source))
    return PROVED
