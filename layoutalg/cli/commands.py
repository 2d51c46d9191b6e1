"""The table of commands: one class of options per command, from which its arguments, help and examples are made.

Implementation notes: the docstring of a class is its help, followed by its examples; its fields are the arguments, in
order. This module imports nothing heavy, which keeps ``--help`` and usage errors fast.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, NoReturn

from layoutalg.cli import layout_options as layouts
from layoutalg.cli import plan_options as plans
from layoutalg.cli import question_options as questions
from layoutalg.cli.answers import EXIT_CODES, USAGE
from layoutalg.cli.arguments import add_arguments
from layoutalg.cli.output import say, tell
from layoutalg.ground.text import escaped
from layoutalg.ground.version import __version__


class _Once(argparse._StoreAction):
    """An option with one value; argparse would silently use the last of several."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        if option is not None and isinstance(parser, Parser):
            if self.dest in parser.given:
                raise argparse.ArgumentError(self, f"was given twice, the second time as {str(values)[:40]!r}")
            parser.given.add(self.dest)
        setattr(namespace, self.dest, values)


class Parser(argparse.ArgumentParser):
    """argparse with our usage exit code, and with output that reports write errors."""

    def __init__(self, *of: Any, **named: Any) -> None:
        super().__init__(*of, **{"formatter_class": argparse.RawDescriptionHelpFormatter, **named})
        self.given: set[str] = set()
        self.mixed = False
        for action in (None, "store"):
            self.register("action", action, _Once)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, options anywhere; refuse leftover arguments with the usage of the command they were given to."""
        if self.mixed or self._subparsers is not None:
            self.given.clear()
            found, left = super().parse_known_args(args, namespace)
        else:
            self.mixed = True  # argparse ends an optional argument, such as SHARED of banks, at the first option
            try:
                found, left = super().parse_known_intermixed_args(args, namespace)
            finally:
                self.mixed = False
        if left and not self.mixed:
            self.error(f"unrecognized arguments: {' '.join(left)}")
        return found, left

    def print_help(self, file: object = None) -> None:  # noqa: ARG002 - standard output alone
        say(self.format_help().rstrip())

    def error(self, message: str) -> NoReturn:
        tell(f"{self.format_usage()}{self.prog}: {escaped(message, 1000)}")
        raise SystemExit(USAGE)


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        say(f"layoutalg {__version__}")
        parser.exit()


COMMANDS: dict[str, type[Any]] = {
    "explain": questions.Explain, "suggest": questions.Suggest, "banks": questions.Banks,
    "transactions": questions.Transactions, "padding": questions.Padding, "swizzle": questions.Swizzle,
    "equivalent": layouts.Equivalent, "compose": layouts.Compose, "logical_divide": layouts.LogicalDivide,
    "inverse": layouts.Inverse, "convert": layouts.Convert, "conversion": questions.Conversion,
    "gather": layouts.Gather, "ragged": questions.Ragged, "admissible": questions.Admissible,
    "factorise": questions.Factorise, "diagnose": questions.Diagnose, "synth": plans.Synth, "check": plans.Check,
    "certify": plans.Certify, "checker": plans.Checker, "verify": plans.Verify, "validate": plans.Validate,
    "draw": layouts.Draw, "emit": plans.Emit, "tune": questions.Tune, "campaign": questions.Campaign,
    "routing": layouts.Routing, "paged": layouts.Paged, "schema": plans.Schema, "demo": plans.Demo,
}  # fmt: skip
SHORT = {"equivalent": "equal", "logical_divide": "divide"}
"""Shorter names of commands."""
KINDS: dict[str, type[Any]] = {"tensormap": plans.SynthTensormap, "wgmma": plans.SynthWgmma}
"""The commands of ``synth``."""


def command_line() -> Parser:
    """Return the parser of the whole command line; ``run`` in its namespace names the function of the command."""
    shown = 'layoutalg explain "Sw<3,3,3> o 0 o (64,64):(64,1)"', "layoutalg demo", "layoutalg synth --help"
    codes = [f"  {code:<4} {says}" for code, says in EXIT_CODES.items()]
    parser = Parser(
        prog="layoutalg",
        description="What a GPU data layout does, which hardware feature can carry it, and the exact descriptor bits.",
        epilog="\n".join([_examples(shown), "exit codes:", *codes]),
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=Parser)
    for name, options in COMMANDS.items():
        command = _add(commands, name, options, f"run_{name}")
        if options is plans.Synth:
            kinds = command.add_subparsers(dest="kind", required=True, parser_class=Parser)
            for kind, inner in KINDS.items():
                _add(kinds, kind, inner, f"run_{name}_{kind}")
    return parser


def _examples(lines: Sequence[str]) -> str:
    return "\n".join(["examples:", *(f"  {line}" for line in lines)])


def _add(commands: argparse._SubParsersAction[Parser], name: str, options: type[Any], run: str) -> Parser:
    """Add a command: its help and examples from the docstring, its arguments from the fields."""
    first, *lines = filter(None, (line.strip() for line in (options.__doc__ or name).splitlines()))
    says = first[0].lower() + first[1:].removesuffix(".")
    short = [SHORT[name]] if name in SHORT else []
    command = commands.add_parser(name, aliases=short, help=says, description=first, epilog=_examples(lines))
    add_arguments(command, options)
    command.set_defaults(options_class=options, run=run)
    return command


def options_of(found: argparse.Namespace) -> Any:
    """Return the options of the command that was parsed."""
    kind = found.options_class
    return kind(**{entry.name: getattr(found, entry.name) for entry in fields(kind)})
