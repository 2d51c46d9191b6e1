"""The arguments of every command, with examples."""

from __future__ import annotations

import argparse
import re
from typing import Any, NoReturn

from layoutalg.cli.exits import EXIT_CODES, USAGE
from layoutalg.cli.output import say, tell
from layoutalg.ground import clock, limits
from layoutalg.ground.errors import MalformedError
from layoutalg.ground.text import escaped
from layoutalg.ground.version import __version__

DEVICES = ("auto", "cuda", "host", "simulator")
SUBJECT = "layout notation, JSON, hexadecimal digits, the name of a file with any of these, or - for standard input"
_SW = '"Sw<3,3,3> o 0 o (64,64):(64,1)"'


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
        super().__init__(*of, **named)
        self.given: set[str] = set()
        for action in (None, "store"):
            self.register("action", action, _Once)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse; refuse leftover arguments with the usage of the command they were given to."""
        self.given.clear()
        found, left = super().parse_known_args(args, namespace)
        if left:
            self.error(f"unrecognized arguments: {' '.join(left)}")
        return found, left

    def print_help(self, file: object = None) -> None:  # noqa: ARG002 - standard output alone
        say(self.format_help().rstrip())

    def error(self, message: str) -> NoReturn:
        tell(f"{self.format_usage()}{self.prog}: {escaped(message, 1000)}")
        raise SystemExit(USAGE)


class _Version(argparse.Action):
    def __init__(self, option_strings: list[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="print the version and exit")

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        say(f"layoutalg {__version__}")
        parser.exit()


def _seconds(text: str) -> float:
    try:
        return clock.checked_seconds(float(text), "a budget")
    except (MalformedError, ValueError):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number of seconds, at least 0") from None


def _sizes(text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"[0-9]{1,18}(,[0-9]{1,18}){0,15}", text):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a list of sizes such as 64,64")
    return tuple(map(int, text.split(",")))


def _option(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not an option such as issues=1")
    return name, value


def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,1000}", text):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a whole number, at least 0")
    return int(text)


def _bits(text: str) -> int:
    if text not in ("4", "8", "16", "32", "64", "128"):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not 4, 8, 16, 32, 64 or 128")
    return int(text)


def _seed(text: str) -> int:
    try:
        seed = int(text)
    except ValueError:
        seed = -1
    if not 0 <= seed < 2**64:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not an integer from 0 to 2^64 - 1")
    return seed


def _examples(*lines: str) -> str:
    return "\n".join(["examples:", *(f"  {line}" for line in lines)])


def _add(commands: argparse._SubParsersAction[Parser], name: str, says: str, *examples: str) -> Parser:
    return commands.add_parser(
        name,
        help=says,
        description=f"{says[0].upper()}{says[1:]}.",
        epilog=_examples(*examples),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def command_line() -> Parser:
    """Return the parser of the whole command line."""
    parser = Parser(
        prog="layoutalg",
        description="What a GPU data layout does, which hardware feature can carry it, and the exact descriptor bits.",
        epilog="\n".join(
            [
                _examples(f"layoutalg explain {_SW}", "layoutalg demo", "layoutalg synth --help"),
                "exit codes:",
                *(f"  {code:<4} {says}" for code, says in EXIT_CODES.items()),
            ]
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version)
    commands = parser.add_subparsers(dest="command", required=True, parser_class=Parser)
    adders = (
        _explain, _suggest, _banks, _padding, _swizzle, _convert, _admissible, _factorise, _diagnose, _synth, _check,
        _certify, _checker, _validate, _draw, _emit, _schema, _demo,
    )  # fmt: skip
    for add in adders:
        add(commands)
    return parser


def _common(command: Parser, seconds: float = limits.COMMAND_SECONDS) -> None:
    command.add_argument(
        "--budget", type=_seconds, default=seconds, help=f"seconds for each document (default {seconds:g})"
    )
    command.add_argument("--json", action="store_true", help="print one JSON document that names its schema")


def _drawn(command: Parser, what: str, *also: str) -> None:
    command.add_argument(
        "--picture", *also, metavar="FILE", help=f"write {what} as SVG to this file, completely or not at all"
    )


def _documented(command: Parser) -> None:
    command.add_argument(
        "--documented-only",
        action="store_true",
        help="refuse what breaks the documentation even if measured chips accept it",
    )


def _explain(commands: argparse._SubParsersAction[Parser]) -> None:
    command = _add(
        commands, "explain", "explain a layout, a descriptor, a problem or a plan",
        f"layoutalg explain {_SW}", 'layoutalg explain "(128,64):(1,128)" --dtype f16',
        f"layoutalg explain {_SW} --target gfx950",
        "layoutalg synth tensormap problem.json --json | layoutalg explain -",
        'echo "(4,8):(1,4)" | layoutalg explain -',
    )  # fmt: skip
    command.add_argument("subject", help=SUBJECT)
    command.add_argument("--dtype", help="element type, by any library's name (default: that of the text, or bf16)")
    command.add_argument("--target", default="sm_90a", help="architecture (default sm_90a)")
    command.add_argument("--shape", type=_sizes, help="sizes of the tensor of a #ttg attribute, outermost first: 64,64")
    _common(command)


def _suggest(commands: argparse._SubParsersAction[Parser]) -> None:
    command = _add(
        commands, "suggest", "which shared layout to use: proved choices, best first, and why the others lose",
        "layoutalg suggest --tensor 4096,8192 --tile 128,64 --for wgmma.A",
        "layoutalg suggest --tensor 512,512 --dtype f32 --tile 32,32 --for ld.shared.b32 --fill threads",
        "layoutalg suggest --tensor 4096,4096 --tile 64,64 --for ldmatrix.x4.trans --for tma.store --json",
    )  # fmt: skip
    command.add_argument("--tensor", type=_sizes, required=True, help="extents, elements, outermost first")
    command.add_argument("--stride", type=_sizes, help="element strides of the tensor (default row-major)")
    command.add_argument("--dtype", help="element type (default: that of the text, or bf16)")
    command.add_argument("--tile", type=_sizes, required=True, help="extents of the tile, outermost first")
    command.add_argument(
        "--for",
        dest="consumers",
        action="append",
        required=True,
        metavar="CONSUMER",
        help="what reads or writes the tile: wgmma.A, wgmma.B, tcgen05.A, ldmatrix.x4, ldmatrix.x4.trans, stmatrix.x4, "
        "ld.shared.v4.b32, st.shared.b32, tma.store, ...; may be repeated",
    )
    command.add_argument("--target", default="sm_90a", help="architecture (default sm_90a)")
    command.add_argument("--fill", choices=("tma", "threads"), default="tma", help="what fills the tile (default tma)")
    _common(command)


def _of_targets(command: Parser) -> None:
    command.add_argument(
        "--target", action="append", dest="targets", metavar="TARGET",
        help="NVIDIA or AMD architecture; repeat it for one answer that serves several (default sm_90a)",
    )  # fmt: skip


def _banks(commands: argparse._SubParsersAction[Parser]) -> None:
    fragment = "F2[register=(0,1)(8,0)(0,8), lane=(0,2)(0,4)(1,0)(2,0)(4,0) -> dim0:16, dim1:16]"
    command = _add(
        commands, "banks", "bank conflicts of a shared-memory access, and a layout without them",
        'layoutalg banks ldmatrix "(128,32):(32,1)"',
        f'layoutalg banks "{fragment}" "(16,16):(16,1)" --access ldmatrix',
        'layoutalg banks "((4,8),(2,2)):((32,1),(16,8))" "(16,8):(8,1)" --bits 32', 'layoutalg banks "(32,4):(4,1)"',
        'layoutalg banks "(64,8):(64,1)" --target gfx942 --instruction ds_read_b128',
    )  # fmt: skip
    command.add_argument(
        "registers", metavar="access", help="ldmatrix, ldmatrix.trans, stmatrix, rows, columns, mma.A, mma.B, mma.C; "
        "or a layout from registers (register, lane, warp; or thread, value) to tile coordinates",
    )  # fmt: skip
    command.add_argument(
        "shared", nargs="?", help="layout from tile coordinates to element offsets; without it, access maps to offsets"
    )
    command.add_argument("--bits", type=_bits, help="element width (default: that of the texts, or 16)")
    command.add_argument(
        "--access", "--instruction", dest="access",
        help="how registers are moved: load (default), store, ldmatrix, stmatrix.trans, ld.shared.v2.b32, ...",
    )  # fmt: skip
    command.add_argument("--target", default="sm_90a", help="NVIDIA or AMD architecture (default sm_90a)")
    command.add_argument("--why", action="store_true", help="show which lanes conflict in which bank, phase by phase")
    command.add_argument("--tile", type=_sizes, help="tile extents, if neither layout determines them")
    _drawn(command, "the words per bank and phase", "-o", "--output")
    _common(command)


def _convert(commands: argparse._SubParsersAction[Parser]) -> None:
    rows = "F2[register=(1), lane=(2)(4)(8)(16)(32) -> x:64]"
    columns = "F2[register=(32), lane=(1)(2)(4)(8)(16) -> x:64]"
    command = _add(
        commands, "convert", "the cheapest way from one layout of registers to another",
        f'layoutalg convert "{rows}" "{columns}" --bits 32',
        'layoutalg convert "(32,2):(2,1)" "(32,2):(1,32)" --bits 16 --target gfx1201 --emit kernel.hip',
    )  # fmt: skip
    command.add_argument("source", help="the element that each register has (register, lane, warp; or thread, value)")
    command.add_argument("destination", help="the element that each register needs")
    command.add_argument("--bits", type=_bits, help="element width (default: that of the texts, or 16)")
    command.add_argument("--target", default="sm_90a", help="NVIDIA or AMD architecture (default sm_90a)")
    command.add_argument(
        "--mechanism",
        choices=("registers", "shuffles", "shared", "matrices", "cluster"),
        help="only plans of this mechanism",
    )
    command.add_argument("--smem", type=_count, help="limit on shared memory in bytes (default: that of a block)")
    command.add_argument("--shape", type=_sizes, help="tensor extents, if neither layout determines them: 64,64")
    command.add_argument(
        "--emit", dest="kernel", metavar="FILE",
        help="write the kernel, CUDA or HIP, to this file, completely or not at all",
    )  # fmt: skip
    _drawn(command, "the steps")
    _common(command)


def _padding(commands: argparse._SubParsersAction[Parser]) -> None:
    command = _add(
        commands, "padding", "the smallest padding of a shared tile with which accesses take the fewest turns",
        "layoutalg padding 64,64 rows ldmatrix", 'layoutalg padding 33,70 "store rows:1" columns --bits 32',
        "layoutalg padding 64,64 rows columns --target gfx942 --form padded_shared",
    )  # fmt: skip
    command.add_argument("shape", type=_sizes, help="extents of the tile, outermost first: 64,64")
    command.add_argument(
        "accesses", nargs="+", help="rows, columns, diagonals, antidiagonals, 'along 0', optionally with elements per "
        "lane (rows:4) and 'store ' in front; ldmatrix, stmatrix; or a register layout",
    )  # fmt: skip
    command.add_argument("--bits", type=_bits, help="element width (default: that of the texts, or 16)")
    _of_targets(command)
    forms = ("pitches", "interval", "padded_shared", "reordered")
    command.add_argument("--form", choices=forms, default="pitches", help="form of the padding (default pitches)")
    _drawn(command, "the banks without and with padding", "-o", "--output")
    _common(command)


def _swizzle(commands: argparse._SubParsersAction[Parser]) -> None:
    command = _add(
        commands, "swizzle", "the shared layout of a tile with the fewest turns for several accesses",
        "layoutalg swizzle rows columns --tile 64,64", "layoutalg swizzle rows ldmatrix --tile 64,64 --form tma",
        'layoutalg swizzle "((8,4),(2,8)):((64,2),(1,8)):store" columns --tile 64,64 --form xor',
        "layoutalg swizzle rows:load --tile 64,64 --target gfx942 --target gfx950 --form cute --json",
    )  # fmt: skip
    command.add_argument(
        "accesses",
        nargs="+",
        help="layout from registers to tile coordinates, or rows, columns, ldmatrix, ...; append :load, :store, ...; "
        "without these the first is a store",
    )
    _of_targets(command)
    command.add_argument("--bits", type=_bits, help="element width (default: that of the texts, or 16)")
    command.add_argument("--form", default="any", choices=("any", "tma", "cute", "xor"), help="form of the layout")
    command.add_argument("--tile", type=_sizes, help="tile extents, if the accesses do not determine them")
    command.add_argument("--chunk", type=_count, default=16, help="bytes per chunk for the form xor (default 16)")
    command.add_argument("--engine", default="search", choices=("search", "smt"), help="smt: z3 confirms the least xor")
    _drawn(command, "the banks of each access before and after, and the lines of memory,", "-o", "--output")
    _common(command)


def _admissible(commands: argparse._SubParsersAction[Parser]) -> None:
    command = _add(
        commands, "admissible", "whether an instruction can carry a layout: the bits and a proof, or the reason",
        f"layoutalg admissible {_SW} wgmma.A", f"layoutalg admissible {_SW} tma",
        'layoutalg admissible "(8,8):(8,1)" ldmatrix.x1 --dtype f16 --json',
        f"layoutalg admissible {_SW} tma --option tensor=4096,8192 --option issues=1",
        f"layoutalg admissible {_SW} tcgen05.A --target sm_100a --option kind=f16",
    )  # fmt: skip
    command.add_argument("layout", help="layout notation, JSON (a table of offsets, a problem), a file of it, or -")
    command.add_argument("consumer", help="tma, tma.store, wgmma.A, ldmatrix.x4.trans, ld.shared.v4.b32, mfma, ...")
    _of_target(command)
    command.add_argument("--tile", type=_sizes, help="tile extents, if the layout does not determine them")
    command.add_argument(
        "--align", type=_count, default=1024, help="alignment of the tile in shared memory, in bytes (default 1024)"
    )
    command.add_argument(
        "--option",
        dest="options",
        action="append",
        type=_option,
        default=[],
        metavar="NAME=VALUE",
        help="further argument of the consumer: tensor, issues, oob, n, metadata, kind, sparse, cta_group, ws, m, "
        "registers, lanes, warps, global, bounds, ctas, ...; the value is JSON, @FILE of JSON, sizes such as 64,64 "
        "(of a tensor: its extents), or text such as layout notation; may be repeated",
    )
    _common(command, limits.PLAN_SECONDS)


def _factorise(commands: argparse._SubParsersAction[Parser]) -> None:
    command = _add(
        commands, "factorise", "the part of a layout that a descriptor can carry, and the shuffles for the rest",
        'layoutalg factorise "F2[register=(1)(2)(8), lane=(4)(16)(32)(64)(128) -> offset:256]"',
        'layoutalg factorise "(16,64):(64,1)" --json',
    )  # fmt: skip
    command.add_argument("layout", help="layout notation, JSON (a table of offsets), a file of it, or -")
    consumers = "tma, tma.store, ldmatrix..., stmatrix..., ld.shared..., st.shared..., ds_read..., ds_write..."
    command.add_argument("--consumer", default="tma", help=f"{consumers} (default tma)")
    _of_target(command)
    command.add_argument("--warps", type=_count, default=1, help="warps that share a tile (default 1)")
    _common(command, limits.PLAN_SECONDS)


def _diagnose(commands: argparse._SubParsersAction[Parser]) -> None:
    command = _add(
        commands, "diagnose", "the fields and the broken rules of a tensor map's bytes or a driver call's arguments",
        "layoutalg diagnose map.bin", "layoutalg diagnose arguments.json", "layoutalg diagnose - < digits.txt",
    )  # fmt: skip
    command.add_argument(
        "map", help="hexadecimal digits; a file with them, the bytes, or the call's arguments as JSON; or -"
    )
    command.add_argument("--target", default="sm_90a", help="architecture (default sm_90a)")
    _common(command)


def _of_target(command: Parser) -> None:
    command.add_argument("--target", default="sm_90a", help="architecture (default sm_90a)")
    command.add_argument("--dtype", help="element type (default: that of the text, or bf16)")


def _synth(commands: argparse._SubParsersAction[Parser]) -> None:
    synth = _add(
        commands, "synth", "find descriptors and prove them",
        "layoutalg synth tensormap problem.json -o plan.json",
        f"layoutalg synth tensormap {_SW} --tensor 4096,8192",
        f"layoutalg synth wgmma {_SW} --operand A",
    )  # fmt: skip
    kinds = synth.add_subparsers(dest="kind", required=True, parser_class=Parser)
    tensormap = _add(
        kinds, "tensormap", "a TMA plan, from a problem document or from a shared-memory layout and a tensor",
        "layoutalg synth tensormap problem.json -o plan.json", "layoutalg synth tensormap - --json < problems.json",
        f"layoutalg synth tensormap {_SW} --tensor 4096,8192 --dtype bf16",
        f"layoutalg synth tensormap {_SW} --tensor 4096,8192 --documented-only",
    )  # fmt: skip
    tensormap.add_argument("file", help="problem JSON, a list of problems, - for standard input, or layout notation")
    tensormap.add_argument("--tensor", type=_sizes, help="with layout notation: extents of the tensor, outermost first")
    tensormap.add_argument("--stride", type=_sizes, help="element strides of the tensor (default row-major)")
    tensormap.add_argument("--tile", type=_sizes, help="extents of the tile (default: those of the layout)")
    tensormap.add_argument("--dtype", help="with layout notation: element type (default: that of the text, or bf16)")
    tensormap.add_argument("--target", default="sm_90a", help="with layout notation: architecture (default sm_90a)")
    tensormap.add_argument("--store", action="store_true", help="with layout notation: shared to global memory")
    _documented(tensormap)
    wgmma = _add(
        kinds, "wgmma", "the descriptors with which wgmma reads a tile, from a problem document or a layout",
        f"layoutalg synth wgmma {_SW} --operand A", "layoutalg synth wgmma operand.json -o operand-plan.json",
    )  # fmt: skip
    wgmma.add_argument("file", help="problem JSON, a list of problems, - for standard input, or layout notation")
    wgmma.add_argument("--operand", choices=("A", "B"), help="with layout notation: (M,K) of A or (N,K) of B")
    wgmma.add_argument("--dtype", help="with layout notation: element type (default: that of the text, or bf16)")
    for kind in (tensormap, wgmma):
        kind.add_argument("-o", "--output", help="write the JSON answer to this file, completely or not at all")
        _common(kind)


def _check(commands: argparse._SubParsersAction[Parser]) -> None:
    command = _add(
        commands, "check", "check certificates with the stand-alone checker, and replay the proofs of plans",
        "layoutalg check certificate.json", "layoutalg check certificates/",
        "layoutalg synth tensormap problem.json --json | layoutalg check -",
        "layoutalg check plans.json --documented-only --json",
    )  # fmt: skip
    command.add_argument(
        "file",
        help="a certificate, a plan (TensorMap or wgmma) or a list of plans as JSON; a folder for all .json files "
        "below it; or - for standard input",
    )
    _documented(command)
    _common(command)


def _certify(commands: argparse._SubParsersAction[Parser]) -> None:
    command = _add(
        commands, "certify", "write a claim or its negation as a certificate for the stand-alone checker",
        'layoutalg certify equality "(4,8):(8,1)" "((2,2),8):((8,16),1)" -o equality.json',
        'layoutalg certify composition "(4,8):(8,1)" "8:2" | layoutalg check -',
        'layoutalg certify inverse "(4,8):(8,1)" --side both', "layoutalg certify plan plan.json",
        'layoutalg certify banks sm_90a ld.shared.v4.b32 "(32,4):(144,16)"',
    )  # fmt: skip
    command.add_argument(
        "claim",
        choices=("equality", "composition", "inverse", "plan", "operand", "handoff", "banks"),
        help="equality: two layouts; composition: outer, inner and optionally the result; inverse: a layout and "
        "optionally its inverse; plan, operand: a TensorMap or wgmma plan or problem; handoff: a TensorMap plan and "
        "the wgmma plan that reads its tile; banks: a target, an instruction and a layout of byte addresses",
    )
    command.add_argument("of", nargs="+", help="layouts as in explain; JSON; a target and an instruction")
    command.add_argument("--side", choices=("left", "right", "both"), default="left", help="side of the inverse")
    command.add_argument("--codomain", type=_count, help="size of the domain of the inverse")
    command.add_argument("-o", "--output", help="write the certificate to this file, completely or not at all")
    _common(command)


def _checker(commands: argparse._SubParsersAction[Parser]) -> None:
    command = _add(
        commands, "checker", "the path of the stand-alone certificate checker, one folder that needs only numpy",
        "layoutalg checker", "layoutalg checker -o checker && python checker certificate.json",
    )  # fmt: skip
    command.add_argument("-o", "--output", help="copy it to this new or empty folder, completely or not at all")
    command.add_argument("--json", action="store_true", help="print its files in a JSON document that names its schema")


def _validate(commands: argparse._SubParsersAction[Parser]) -> None:
    command = _add(
        commands, "validate", "run a plan and compare every byte",
        "layoutalg validate plan.json", "layoutalg validate problem.json --device simulator --seed 7",
    )  # fmt: skip
    command.add_argument("file", help="plan or problem JSON, a list of them, or - for standard input")
    command.add_argument("--device", default="auto", choices=DEVICES)
    command.add_argument("--seed", type=_seed, default=0, help="seed of the random memory contents (default 0)")
    _common(command, limits.RUN_SECONDS)


def _draw(commands: argparse._SubParsersAction[Parser]) -> None:
    command = _add(
        commands, "draw", "draw a layout, a plan or an answer, as text or as SVG",
        'layoutalg draw "(4,8):(8,1)"', f"layoutalg draw {_SW} -o tile.svg",
        'layoutalg draw "(4,8):(1,4)" --against "(4,8):(8,1)" -o difference.svg',
        f"layoutalg draw {_SW} --for wgmma.A -o operand.svg", "layoutalg draw plan.json -o plan.svg",
    )  # fmt: skip
    command.add_argument("subject", help=SUBJECT)
    command.add_argument("--against", metavar="SUBJECT", help="a second layout: the cells that differ are outlined")
    command.add_argument(
        "--for", dest="consumer", metavar="CONSUMER", help="draw the answer of layoutalg admissible for this consumer"
    )
    _of_target(command)
    command.add_argument("--view", choices=("grid", "owners", "matrix"), help="default: by the kind of value")
    command.add_argument("--show", choices=("value", "coordinate", "both"), default="value", help="what cells show")
    command.add_argument("--shape", type=_sizes, help="sizes of the tensor of a #ttg attribute, outermost first: 64,64")
    command.add_argument("--svg", action="store_true", help="SVG on standard output instead of text")
    command.add_argument("-o", "--output", help="write the picture as SVG to this file, completely or not at all")
    _common(command)


def _emit(commands: argparse._SubParsersAction[Parser]) -> None:
    command = _add(
        commands, "emit", "source text of a proved plan",
        "layoutalg emit host plan.json -o make_map.h", "layoutalg emit bytes problem.json --name weights_map",
        "layoutalg emit raw plan.json -o map.bin", "layoutalg emit kernel plan.json --documented-only",
    )  # fmt: skip
    command.add_argument(
        "what",
        choices=("host", "bytes", "raw", "kernel", "cpp", "ptx", "mlir", "gluon", "cute_dsl"),
        help="host: a C++ function that calls cuTensorMapEncodeTiled; bytes: a C array of the map, or of the wgmma "
        "descriptors; raw: the bytes themselves; kernel: CUDA that copies a tile; the others: the plan as source text "
        "for that system",
    )
    command.add_argument("subject", help="plan or problem JSON, the 256 digits of a map, a file with either, or -")
    command.add_argument("--name", help="name of the function, array or kernel")
    command.add_argument("--target", default="sm_90a", help="architecture, for digits (default sm_90a)")
    command.add_argument("-o", "--output", help="write to this file, completely or not at all")
    _documented(command)
    _common(command)


def _schema(commands: argparse._SubParsersAction[Parser]) -> None:
    command = _add(
        commands, "schema", "the JSON Schema of a document that layoutalg reads or writes",
        "layoutalg schema", "layoutalg schema tensormap-problem", "layoutalg schema layoutalg/tensormap-plan/1",
    )  # fmt: skip
    command.add_argument("name", nargs="?", help="name of the schema; without it, all names are listed")
    _common(command)


def _demo(commands: argparse._SubParsersAction[Parser]) -> None:
    command = _add(
        commands, "demo", "plan, prove, compile and validate a collection of tiles",
        "layoutalg demo", "layoutalg demo --device simulator --json > rows.json", "layoutalg demo my-tiles.json",
    )  # fmt: skip
    command.add_argument(
        "file", nargs="?", help="tiles JSON (schema layoutalg/real-tiles/1); default: 113 tiles of well-known kernels"
    )
    command.add_argument("--device", default="auto", choices=DEVICES)
    _common(command, limits.RUN_SECONDS)
