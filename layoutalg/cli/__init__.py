"""The command line: one command per question, with text or JSON answers and exit codes.

Implementation notes: the module of a command is imported when it runs, which keeps ``--help`` quick. Answers go to
standard output as text or one JSON document; progress and diagnostics go to standard error. Every exception that ends a
command ends up here as one message and one exit code.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, cast

from layoutalg.cli.answers import (
    EXIT_CODES,
    INTERNAL,
    INTERRUPTED,
    OUTPUT,
    PROVED,
    REFUTED,
    TERMINATED,
    UNKNOWN,
    USAGE,
    exit_code,
    failed,
)
from layoutalg.cli.commands import command_line, options_of
from layoutalg.cli.output import OutputError, flush, say_json, silence, tell
from layoutalg.ground.lazy import door

_run_of, _ = door(
    __name__,
    {
        "layoutalg.cli.questions": "run_explain run_suggest run_banks run_transactions run_padding run_swizzle "
        "run_ragged run_conversion run_admissible run_factorise run_diagnose",
        "layoutalg.cli.layouts": "run_equivalent run_compose run_logical_divide run_inverse run_convert",
        "layoutalg.cli.plans": "run_synth_tensormap run_synth_wgmma run_validate",
        "layoutalg.cli.checks": "run_check run_checker run_verify",
        "layoutalg.cli.certify": "run_certify",
        "layoutalg.cli.writing": "run_draw run_emit",
        "layoutalg.cli.indirect": "run_routing run_paged run_gather",
        "layoutalg.cli.schemas": "run_schema",
        "layoutalg.cli.search": "run_tune run_campaign",
        "layoutalg.cli.demo": "run_demo",
    },
)
"""The function of each command, by name; it takes the options and returns the exit code."""


class _TerminatedError(BaseException):
    """SIGTERM as an exception, so that no half-written file is left behind."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code, one of ``layoutalg.cli.answers.EXIT_CODES``."""
    try:
        with _terminable():
            code = _run(argv)
            flush()
            return code
    except OutputError as error:
        silence()
        tell(f"layoutalg: {error}")
        return OUTPUT
    except KeyboardInterrupt:
        tell("layoutalg: interrupted")
        return INTERRUPTED
    except _TerminatedError:
        tell("layoutalg: terminated")
        return TERMINATED


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Turn SIGTERM into an exception unless someone else handles it."""

    def stop(*_: object) -> NoReturn:
        raise _TerminatedError

    ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if ours:
        signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _run(argv: Sequence[str] | None) -> int:
    """Parse the arguments and run the command; exceptions become a message and an exit code."""
    try:
        found = command_line().parse_args(argv)
    except SystemExit as stop:  # --help and bad usage
        return stop.code if isinstance(stop.code, int) else USAGE
    try:
        run = cast(Callable[[Any], int], _run_of(found.run))
        return run(options_of(found))
    except OutputError:
        raise
    except Exception as error:
        result, lines, code = failed(error)
        if found.json:
            say_json(result)
        tell(f"layoutalg: {lines[0]}")
        return code


__all__ = [
    "EXIT_CODES", "INTERNAL", "INTERRUPTED", "OUTPUT", "PROVED", "REFUTED", "TERMINATED", "UNKNOWN", "USAGE",
    "exit_code", "main",
]  # fmt: skip
