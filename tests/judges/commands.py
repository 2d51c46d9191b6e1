"""Run the command line in this process, as people type it."""

from __future__ import annotations

import contextlib
import io
import json
import sys

from layoutalg.cli import main


def run(*words: str, stdin: object = None) -> tuple[int, str, str]:
    """Return exit code, standard output and standard error; documents are written to standard input as JSON."""
    match stdin:
        case None | bytes():
            raw = stdin or b""
        case str():
            raw = stdin.encode()
        case _:
            raw = json.dumps(stdin).encode()
    out, err, before = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO(), sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(raw))
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(list(words))
    finally:
        sys.stdin = before
    out.flush()
    told = out.buffer.getvalue().decode("utf-8", "surrogateescape")
    assert "Traceback" not in told + err.getvalue()
    return code, told, err.getvalue()
