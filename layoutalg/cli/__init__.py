"""The command line: ``layoutalg explain | synth | check | validate | demo``.

Main definitions: ``main``, the exit codes.

Implementation notes: sub-commands are imported when called, so that ``--help`` stays quick. Every answer of the library
becomes text or one JSON document on standard output; progress and diagnostics go to standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from layoutalg.cli.exits import PROVED, REFUTED, UNKNOWN, USAGE
from layoutalg.errors import BudgetError, LayoutError, MalformedError, MissingExtraError


class _Parser(argparse.ArgumentParser):
    """argparse with our usage exit code."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        print(f"{self.prog}: {message}", file=sys.stderr)
        raise SystemExit(USAGE)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="layoutalg", description=__doc__.splitlines()[0] if __doc__ else None)
    commands = parser.add_subparsers(dest="command", required=True, parser_class=_Parser)

    explain = commands.add_parser("explain", help="what a layout, a descriptor or a problem is")
    explain.add_argument(
        "subject", help="layout notation, 256 hexadecimal digits, a JSON file, or - for standard input"
    )
    explain.add_argument("--dtype", default="bf16", help="element type, for banks and descriptors (default bf16)")
    explain.add_argument("--target", default="sm_90a", help="architecture (default sm_90a)")

    synth = commands.add_parser("synth", help="find a descriptor")
    kinds = synth.add_subparsers(dest="kind", required=True, parser_class=_Parser)
    tensormap = kinds.add_parser("tensormap", help="a TMA plan from a problem document")
    tensormap.add_argument("file", help="problem JSON, a list of problems, or - for standard input")
    tensormap.add_argument("-o", "--output", help="write the JSON answer to this file")
    tensormap.add_argument("--budget", type=float, default=30.0, help="seconds per problem (default 30)")

    check = commands.add_parser("check", help="replay the proof of a plan")
    check.add_argument("file", help="plan JSON, a list of plans, or - for standard input")

    validate = commands.add_parser("validate", help="run a plan and compare every byte")
    validate.add_argument("file", help="plan or problem JSON, a list of them, or - for standard input")
    validate.add_argument("--device", default="auto", choices=("auto", "cuda", "host", "simulator"))
    validate.add_argument("--seed", type=int, default=0)

    demo = commands.add_parser("demo", help="plan, prove, compile and validate a collection of tiles")
    demo.add_argument("file", help="tiles JSON (schema layoutalg/real-tiles/1)")
    demo.add_argument("--device", default="auto", choices=("auto", "cuda", "host", "simulator"))

    for command in (explain, tensormap, check, validate, demo):
        command.add_argument("--json", action="store_true", help="print one JSON document")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Returns:
        0 proved, 1 refuted or inadmissible, 2 unknown (a budget ran out, an optional part is missing), 64 bad usage.
    """
    arguments = _parser().parse_args(argv)
    try:
        return _dispatch(arguments)
    except LayoutError as error:
        if arguments.json:
            print(json.dumps({"verdict": "error", "error": error.diagnostic.to_json()}))
        print(f"layoutalg: {error}", file=sys.stderr)
        return _code(error)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PROVED
    except KeyboardInterrupt:
        print("layoutalg: interrupted", file=sys.stderr)
        return 130


def _code(error: LayoutError) -> int:
    if isinstance(error, MalformedError):
        return USAGE
    return UNKNOWN if isinstance(error, (BudgetError, MissingExtraError)) else REFUTED


def _dispatch(arguments: argparse.Namespace) -> int:
    if arguments.command == "explain":
        from layoutalg.cli.explain import explain

        return explain(arguments.subject, arguments.dtype, arguments.target, arguments.json)
    if arguments.command == "synth":
        from layoutalg.cli.plans import synth_tensormap

        return synth_tensormap(arguments.file, arguments.output, arguments.budget, arguments.json)
    if arguments.command == "check":
        from layoutalg.cli.plans import check_plans

        return check_plans(arguments.file, arguments.json)
    if arguments.command == "validate":
        from layoutalg.cli.plans import validate_plans

        return validate_plans(arguments.file, arguments.device, arguments.seed, arguments.json)
    from layoutalg.cli.demo import demo

    return demo(arguments.file, arguments.device, arguments.json)


__all__ = ["PROVED", "REFUTED", "UNKNOWN", "USAGE", "main"]
