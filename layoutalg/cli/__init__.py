"""The command line: one command per question, with text or JSON answers and exit codes.

Implementation notes: sub-commands are imported when called, which keeps ``--help`` quick. Answers go to standard output
as text or one JSON document; progress and diagnostics go to standard error. Every exception that ends a command ends
up here as one message and one exit code.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import threading
from collections.abc import Iterator, Sequence
from typing import NoReturn

from layoutalg.cli.arguments import command_line
from layoutalg.cli.exits import (
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
)  # fmt: skip
from layoutalg.cli.output import OutputError, Told, flush, say_json, silence, tell
from layoutalg.ground import clock


class _TerminatedError(BaseException):
    """SIGTERM as an exception, so that no half-written file is left behind."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code, one of ``layoutalg.cli.exits.EXIT_CODES``."""
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
    """Parse the arguments and dispatch; exceptions become a message and an exit code."""
    try:
        arguments = command_line().parse_args(argv)
    except SystemExit as stop:  # --help and bad usage
        return stop.code if isinstance(stop.code, int) else USAGE
    try:
        return _dispatch(arguments)
    except OutputError:
        raise
    except Exception as error:
        from layoutalg.cli.batch import failed

        result, lines, code = failed(error)
        if arguments.json:
            say_json(result)
        tell(f"layoutalg: {lines[0]}")
        return code


def _dispatch(arguments: argparse.Namespace) -> int:
    if arguments.command == "explain":
        from layoutalg.cli.explain import explain

        with clock.within(arguments.budget):
            return explain(arguments.subject, arguments.dtype, arguments.target, arguments.json, arguments.shape)
    if arguments.command == "certify":
        from layoutalg.cli.certify import Asked, write_certificate

        asked = Asked(arguments.of, arguments.side, arguments.codomain, arguments.budget)
        return write_certificate(arguments.claim, asked, arguments.output, arguments.json)
    if arguments.command == "checker":
        from layoutalg.cli.certificates import show_checker

        return show_checker(arguments.output, arguments.json)
    if arguments.command == "schema":
        from layoutalg.cli.schemas import show_schema

        return show_schema(arguments.name, arguments.json)
    if arguments.command in ("suggest", "banks", "padding", "swizzle", "admissible", "factorise", "diagnose"):
        return _asked(arguments)
    if arguments.command == "convert":
        from layoutalg.cli.conversions import Asked as Conversion
        from layoutalg.cli.conversions import convert_layout

        how = (arguments.bits, arguments.target, arguments.mechanism, arguments.smem, arguments.shape)
        question = Conversion(arguments.source, arguments.destination, *how)
        return convert_layout(question, arguments.kernel, _told(arguments))
    if arguments.command in ("draw", "emit"):
        return _written(arguments)
    if arguments.command == "demo":
        from layoutalg.cli.demo import demo

        return demo(arguments.file, arguments.device, arguments.budget, arguments.json)
    return _planned(arguments)


def _asked(given: argparse.Namespace) -> int:
    """Questions about hardware."""
    from layoutalg.cli.questions import admit, bank_turns, diagnose_map, factor, find_swizzle, pad_tile, suggest_layouts

    with clock.within(given.budget):
        clock.check("a question")
        if given.command == "banks":
            asked = (given.bits, given.access, given.tile, given.target)
            return bank_turns(given.registers, given.shared, *asked, given.why, _told(given))
        if given.command == "padding":
            tile = (given.shape, given.accesses, given.targets or ["sm_90a"], given.bits)
            return pad_tile(*tile, given.form, _told(given))
        if given.command == "swizzle":
            how = (given.targets or ["sm_90a"], given.bits, given.form, given.tile, given.chunk, given.engine)
            return find_swizzle(given.accesses, *how, _told(given))
        if given.command == "diagnose":
            return diagnose_map(given.map, given.target, given.json)
        if given.command == "admissible":
            how = (given.target, given.dtype, given.tile, given.align, given.options, given.budget)
            return admit(given.layout, given.consumer, *how, given.json)
        if given.command == "factorise":
            kind = (given.consumer, given.target, given.dtype)
            return factor(given.layout, *kind, given.warps, given.budget, given.json)
        tensor = (given.tensor, given.stride, given.dtype)
        return suggest_layouts(*tensor, given.tile, given.consumers, given.target, given.fill, given.budget, given.json)


def _told(given: argparse.Namespace) -> Told:
    return Told(given.picture, given.budget, given.json)


def _written(given: argparse.Namespace) -> int:
    """``draw`` and ``emit``."""
    with clock.within(given.budget):
        clock.check("a document")
        if given.command == "draw":
            from layoutalg.cli.pictures import Asked, draw_subject

            asked = Asked(given.consumer, given.target, given.dtype) if given.consumer else None
            look = (given.against, asked, given.view, given.show, given.shape, given.svg)
            return draw_subject(given.subject, *look, given.output, given.budget, given.json)
        from layoutalg.cli.emit import emit

        how = (given.name, given.target, given.documented_only, given.output)
        return emit(given.what, given.subject, *how, given.budget, given.json)


def _planned(given: argparse.Namespace) -> int:
    """``synth``, ``check`` and ``validate``."""
    from layoutalg.cli.certificates import check_any
    from layoutalg.cli.plans import synth_tensormap, synth_wgmma, validate_plans

    if given.command == "check":
        return check_any(given.file, given.budget, given.json, given.documented_only)
    if given.command == "validate":
        return validate_plans(given.file, given.device, given.seed, given.budget, given.json)
    if given.kind == "wgmma":
        return synth_wgmma(given.file, given.output, given.budget, given.json, operand=given.operand, dtype=given.dtype)
    return synth_tensormap(
        given.file,
        given.output,
        given.budget,
        given.json,
        tensor=given.tensor,
        stride=given.stride,
        tile=given.tile,
        dtype=given.dtype,
        target=given.target,
        direction="store" if given.store else "load",
        documented_only=given.documented_only,
    )


__all__ = [
    "EXIT_CODES", "INTERNAL", "INTERRUPTED", "OUTPUT", "PROVED", "REFUTED", "TERMINATED", "UNKNOWN", "USAGE",
    "exit_code", "main",
]  # fmt: skip
