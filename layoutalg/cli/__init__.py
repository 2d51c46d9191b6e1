"""The command line: ``layoutalg explain | synth | check | validate | demo``.

Main definitions: ``main``; ``layoutalg.cli.exits`` lists the exit codes.

Implementation notes: sub-commands are imported when called, so that ``--help`` stays quick. Every answer of the library
becomes text or one JSON document on standard output; progress and diagnostics go to standard error. Whatever ends a
command ends here, in one message and one exit code.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import signal
import threading
from collections.abc import Iterator, Sequence
from typing import NoReturn

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
from layoutalg.cli.output import OutputError, flush, say, say_json, silence, tell
from layoutalg.ground import clock, limits
from layoutalg.ground.errors import MalformedError
from layoutalg.ground.text import escaped


class _TerminatedError(BaseException):
    """SIGTERM, so that no half-written file stays behind."""


class _Parser(argparse.ArgumentParser):
    """argparse with our usage exit code and our way of writing, which notices what could not be written."""

    def print_help(self, file: object = None) -> None:  # noqa: ARG002 - standard output alone
        say(self.format_help().rstrip())

    def error(self, message: str) -> NoReturn:
        tell(f"{self.format_usage()}{self.prog}: {escaped(message, 1000)}")
        raise SystemExit(USAGE)


def _seconds(text: str) -> float:
    try:
        return clock.checked_seconds(float(text), "a budget")
    except (MalformedError, ValueError):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number of seconds, at least 0") from None


def _sizes(text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"[0-9]{1,9}(,[0-9]{1,9}){0,15}", text):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a list of sizes such as 64,64")
    return tuple(map(int, text.split(",")))


def _seed(text: str) -> int:
    try:
        seed = int(text)
    except ValueError:
        seed = -1
    if not 0 <= seed < 2**64:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not an integer from 0 to 2^64 - 1")
    return seed


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="layoutalg",
        description="What a GPU data layout does, which hardware feature can carry it, and the exact descriptor bits.",
        epilog="\n".join(["exit codes:", *(f"  {code:<4} {says}" for code, says in EXIT_CODES.items())]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)

    explain = commands.add_parser("explain", help="what a layout, a descriptor or a problem is")
    explain.add_argument(
        "subject", help="layout notation, 256 hexadecimal digits, a JSON file, or - for standard input"
    )
    explain.add_argument("--dtype", default="bf16", help="element type, for descriptors (default bf16)")
    explain.add_argument("--target", default="sm_90a", help="architecture (default sm_90a)")
    explain.add_argument("--shape", type=_sizes, help="sizes of the tensor of a #ttg attribute, outermost first: 64,64")

    synth = commands.add_parser("synth", help="find a descriptor")
    kinds = synth.add_subparsers(dest="kind", required=True, parser_class=_Parser)
    tensormap = kinds.add_parser("tensormap", help="a TMA plan from a problem document")
    tensormap.add_argument("file", help="problem JSON, a list of problems, or - for standard input")
    tensormap.add_argument("-o", "--output", help="write the JSON answer to this file, completely or not at all")

    check = commands.add_parser("check", help="replay the proof of a plan or a certificate")
    check.add_argument(
        "file", help="plan JSON (TensorMap or wgmma), certificate JSON, a list of them, or - for standard input"
    )

    validate = commands.add_parser("validate", help="run a plan and compare every byte")
    validate.add_argument("file", help="plan or problem JSON, a list of them, or - for standard input")
    validate.add_argument("--device", default="auto", choices=("auto", "cuda", "host", "simulator"))
    validate.add_argument("--seed", type=_seed, default=0, help="of the random memory that is copied (default 0)")

    demo = commands.add_parser("demo", help="plan, prove, compile and validate a collection of tiles")
    demo.add_argument("file", help="tiles JSON (schema layoutalg/real-tiles/1)")
    demo.add_argument("--device", default="auto", choices=("auto", "cuda", "host", "simulator"))

    for command in (explain, tensormap, check, validate, demo):
        seconds = limits.RUN_SECONDS if command in (validate, demo) else limits.COMMAND_SECONDS
        command.add_argument(
            "--budget", type=_seconds, default=seconds, help=f"seconds for each document (default {seconds:g})"
        )
        command.add_argument("--json", action="store_true", help="print one JSON document")
    return parser


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
    """Turn SIGTERM into an exception, where nobody else handles it."""

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
        arguments = _parser().parse_args(argv)
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
    if arguments.command == "synth":
        from layoutalg.cli.plans import synth_tensormap

        return synth_tensormap(arguments.file, arguments.output, arguments.budget, arguments.json)
    if arguments.command == "check":
        from layoutalg.cli.plans import check_plans

        return check_plans(arguments.file, arguments.budget, arguments.json)
    if arguments.command == "validate":
        from layoutalg.cli.plans import validate_plans

        return validate_plans(arguments.file, arguments.device, arguments.seed, arguments.budget, arguments.json)
    from layoutalg.cli.demo import demo

    return demo(arguments.file, arguments.device, arguments.budget, arguments.json)


__all__ = [
    "EXIT_CODES", "INTERNAL", "INTERRUPTED", "OUTPUT", "PROVED", "REFUTED", "TERMINATED", "UNKNOWN", "USAGE",
    "exit_code", "main",
]  # fmt: skip
