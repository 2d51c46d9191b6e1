"""The table of commands: one class of options per command, from which its arguments, help and examples are made.

Implementation notes: the docstring of a class is its help, followed by its examples; its fields are the arguments, in
order. This module imports nothing heavy, which keeps ``--help`` and usage errors fast.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, NoReturn, TypeAlias

from layoutalg.cli.answers import EXIT_CODES, USAGE
from layoutalg.cli.output import say, tell
from layoutalg.ground import clock, limits
from layoutalg.ground.errors import MalformedError
from layoutalg.ground.text import escaped
from layoutalg.ground.version import __version__

DEVICES = ("auto", "cuda", "host", "simulator")
SUBJECT = "layout notation, JSON, a dump of a descriptor, the name of a file with any of these, or - for standard input"
Sizes: TypeAlias = tuple[int, ...]


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
        self.later: dict[str, Argument] = {}
        for action in (None, "store"):
            self.register("action", action, _Once)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, options anywhere; refuse leftover arguments with the usage of the command they were given to."""
        for name, (flags, how) in self.later.items():  # only the command that is used gets its arguments
            self.add_argument(*flags or [name], **how | {"dest": name} if flags else how)
        self.later = {}
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


def _read_as(rule: str, read: Callable[[str], Any]) -> Callable[[str], Any]:
    """A type of argparse that refuses a text with the rule it breaks."""

    def typed(text: str) -> Any:
        try:
            return read(text)
        except (MalformedError, ValueError):
            raise argparse.ArgumentTypeError(f"{text[:40]!r} is not {rule}") from None

    return typed


def _matched(pattern: str, text: str) -> str:
    if not re.fullmatch(pattern, text):
        raise ValueError(text)
    return text


def _named(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name.isidentifier():
        raise ValueError(text)
    return name, value


def _below(most: int, number: int) -> int:
    if not 0 <= number < most:
        raise ValueError(number)
    return number


_sizes = _read_as(
    "a list of sizes such as 64,64",
    lambda text: tuple(map(int, _matched(r"[0-9]{1,18}(,[0-9]{1,18}){0,15}", text).split(","))),
)
_page = _read_as(
    "four sizes such as 16,8,128,2",
    lambda text: tuple(map(int, _matched(r"[0-9]{1,18}(,[0-9]{1,18}){3}", text).split(","))),
)
_rows = _read_as(
    "a list of sizes such as 70,0,64",
    lambda text: tuple(map(int, _matched(r"-?[0-9]{1,18}(,-?[0-9]{1,18})*", text).split(","))),
)
_origin = _read_as(
    "a list of coordinates such as 0,64, or 0,16%64 for 16 modulo 64",
    lambda text: tuple(
        tuple(map(int, part.split("%"))) if "%" in part else int(part)
        for part in _matched(r"-?[0-9]{1,18}(%[0-9]{1,18})?(,-?[0-9]{1,18}(%[0-9]{1,18})?)*", text).split(",")
    ),
)
_seconds = _read_as("a number of seconds, at least 0", lambda text: clock.checked_seconds(float(text), "a budget"))
_count = _read_as("a whole number, at least 0", lambda text: int(_matched(r"[0-9]{1,1000}", text)))
_element = _read_as(
    "an element type or its width, 4, 8, 16, 32, 64 or 128",
    lambda text: _matched("4|8|16|32|64|128", text) if text.isdecimal() else text,
)
_address = _read_as(
    "an address such as 0x7f00", lambda text: int(_matched(r"0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20}", text), 0)
)
_seed = _read_as("an integer from 0 to 2^64 - 1", lambda text: _below(2**64, int(text)))
_option = _read_as("an option such as issues=1", _named)
_fields = _read_as(
    "a form such as rows=128,columns=256",
    lambda text: tuple((name, int(_matched(r"[0-9]{1,18}", value))) for name, value in map(_named, text.split(","))),
)


class Argument(NamedTuple):
    """An argument of a command: an option if it has flags, otherwise positional; ``how`` argparse reads it."""

    flags: tuple[str, ...]
    how: dict[str, Any]


def argument(says: str | None, *flags: str, default: Any = None, **how: Any) -> Any:
    """Return an argument, as a field of a command has it."""
    if how.get("nargs") != "+" and "required" not in how:
        how["default"] = default
    return Argument(flags, {"help": says, **how})


def _target(says: str = "architecture (default sm_90a)") -> Any:
    return argument(says, "--target", default="sm_90a")


def _targets() -> Any:
    says = "NVIDIA or AMD architecture; repeat it for one answer that serves several (default sm_90a)"
    return argument(says, "--target", action="append", metavar="TARGET")


def _dtype(says: str = "element type, by any library's name (default: that of the text, or bf16)") -> Any:
    return argument(f"{says}; or only its width in bits", "--dtype", "--bits", type=_element)


def _extents(flag: str, says: str, **how: Any) -> Any:
    same = {"--tile": ["--shape"], "--shape": ["--tile"]}
    return argument(says, flag, *same.get(flag, []), type=_sizes, **how)


def _output(says: str) -> Any:
    return argument(f"{says} to this file, completely or not at all", "-o", "--output")


def _picture(what: str, *also: str) -> Any:
    says = f"write {what} as SVG to this file, completely or not at all"
    return argument(says, "--picture", *also, metavar="FILE")


def _flag(flag: str, says: str) -> Any:
    return argument(says, flag, default=False, action="store_true")


def _documented() -> Any:
    return _flag("--documented-only", "refuse what breaks the documentation even if measured chips accept it")


def _budget(seconds: float = limits.COMMAND_SECONDS) -> Any:
    says = f"seconds for each document (default {seconds:g})"
    return argument(says, "--budget", type=_seconds, default=seconds)


def _json(says: str = "print one JSON document that names its schema") -> Any:
    return _flag("--json", says)


class Given:
    """What a command was given."""

    def __init__(self, **given: Any) -> None:
        vars(self).update(given)


class Options(Given):
    """Options that most commands have; shown after their own."""

    budget: float = _budget()
    json: bool = _json()


class Explain(Options):
    """Explain a layout, a descriptor, a problem or a plan.

    layoutalg explain "Sw<3,3,3> o 0 o (64,64):(64,1)"
    layoutalg explain "(128,64):(1,128)" --dtype f16
    layoutalg explain "Sw<3,3,3> o 0 o (64,64):(64,1)" --target gfx950
    layoutalg explain "(64,64):(72,1)" --at 13,21
    layoutalg synth tensormap problem.json --json | layoutalg explain -
    echo "(4,8):(1,4)" | layoutalg explain -
    """

    subject: str = argument(SUBJECT)
    dtype: str | None = _dtype()
    target: str = _target()
    shape: Sizes | None = _extents("--shape", "sizes of the tensor of a #ttg attribute, outermost first: 64,64")
    at: Sizes | None = _extents("--at", "an element of the tile: which registers hold it, or where it is: 13,21")


class Suggest(Options):
    """Which shared layout to use: proved choices, best first, and why the others lose.

    layoutalg suggest --tensor 4096,8192 --tile 128,64 --for wgmma.A
    layoutalg suggest --tensor 512,512 --dtype f32 --tile 32,32 --for ld.shared.b32 --fill threads
    layoutalg suggest --tensor 4096,4096 --tile 64,64 --for ldmatrix.x4.trans --for tma.store --json
    """

    tensor: Sizes = _extents("--tensor", "extents, elements, outermost first", required=True)
    stride: Sizes | None = _extents("--stride", "element strides of the tensor (default row-major)")
    dtype: str | None = _dtype()
    tile: Sizes = _extents("--tile", "extents of the tile, outermost first", required=True)
    consumers: list[str] = argument(
        "what reads or writes the tile: wgmma.A, wgmma.B, tcgen05.A, tma.store, or as for banks: ldmatrix, "
        "ld.shared.v4, mma.A, mfma.B, rows:store, columns, ...; may be repeated",
        "--for",
        action="append",
        required=True,
        metavar="CONSUMER",
    )
    target: str = _target()
    fill: str = argument("what fills the tile (default tma)", "--fill", choices=("tma", "threads"), default="tma")


class Banks(Options):
    """Bank conflicts of a shared-memory access, and a layout without them.

    layoutalg banks ldmatrix "(128,32):(32,1)"
    layoutalg banks "F2[register=(0,1)(8,0)(0,8), lane=(0,2)(0,4)(1,0)(2,0)(4,0) -> dim0:16, dim1:16]" \
"(16,16):(16,1)" --access ldmatrix
    layoutalg banks "((4,8),(2,2)):((32,1),(16,8))" "(16,8):(8,1)" --bits 32
    layoutalg banks "(32,4):(4,1)"
    layoutalg banks "(64,8):(64,1)" --target gfx942 --instruction ds_read_b128
    """

    registers: str = argument(
        "ldmatrix, ld.shared.v4, ds_read_b128, mma.A, mfma.B, mma.D, rows, columns:store, ...; "
        "or a layout from registers (register, lane, warp; or thread, value) to tile coordinates",
        metavar="access",
    )
    shared: str | None = argument(
        "layout from tile coordinates to element offsets; without it, access maps to offsets", nargs="?"
    )
    dtype: str | None = _dtype()
    access: str | None = argument(
        "how registers are moved: load (default), store, ldmatrix, stmatrix.trans, ld.shared.v2.b32, ...",
        "--access",
        "--instruction",
    )
    target: str = _target("NVIDIA or AMD architecture (default sm_90a)")
    why: bool = _flag("--why", "show which lanes conflict in which bank, phase by phase")
    tile: Sizes | None = _extents("--tile", "tile extents, if neither layout determines them")
    operand: str | None = argument(
        "which layout of a printed tiled MMA or copy: A, B, C; source, destination", "--operand"
    )
    picture: str | None = _picture("the words per bank and phase", "-o", "--output")


class Transactions(Options):
    """Sectors and lines of global memory that registers touch, and registers that touch fewer.

    layoutalg transactions "(32,4):(1,32)" 4096,2048 --tile 32,4
    layoutalg transactions "F2[register=(0,1)(0,2), lane=(0,4)(0,8)(1,0)(2,0)(4,0) -> dim0:8, dim1:16]" 1000,50 \
store --dtype f32 --origin 992,48
    layoutalg transactions "(64,4):(1,64)" "(64,4):(1024,1)" global_load_dwordx4 --bits 32 --target gfx942
    """

    registers: str = argument(
        "layout from registers (register, lane, warp; or thread, value) to tile coordinates", metavar="registers"
    )
    tensor: str = argument(
        "extents of the tensor, outermost first: 4096,2048; or a layout from tile coordinates to element offsets"
    )
    instruction: str | None = argument(
        "ld.global.v4.b32, st.global.b16, cp.async.16, global_load_dwordx4, ...; load or store: the widest "
        "(default load)",
        nargs="?",
    )
    stride: Sizes | None = _extents("--stride", "element strides of the tensor (default row-major)")
    dtype: str | None = _dtype("element type of the tensor (default: that of the text, or bf16)")
    align: int | None = argument("bytes that the tensor's base is a multiple of (default 256)", "--align", type=_count)
    origin: tuple[Any, ...] | None = argument(
        "coordinates of the tile's first element: 0,64; 0,16%%64 for 16 modulo 64 (default: the first tile)",
        "--origin",
        type=_origin,
    )
    access: str | None = argument("the instruction, as an option", "--access", "--instruction")
    target: str = _target("NVIDIA or AMD architecture (default sm_90a)")
    tile: Sizes | None = _extents(
        "--tile",
        "tile extents, for registers without them (default: the tile of a block of #ttg.blocked, or the tensor)",
    )
    picture: str | None = _picture("the sectors that each lane touches", "-o", "--output")


class Padding(Options):
    """The smallest padding of a shared tile with which accesses take the fewest turns.

    layoutalg padding 64,64 rows ldmatrix
    layoutalg padding 33,70 "store rows:1" columns --bits 32
    layoutalg padding 64,64 rows columns --target gfx942 --form padded_shared
    """

    shape: Sizes = argument("extents of the tile, outermost first: 64,64", type=_sizes)
    accesses: list[str] = argument(
        "as for banks: rows, columns, ldmatrix, mma.A, ..., or a register layout; also diagonals, antidiagonals, "
        "'along 0'; elements per lane (rows:4) and :store may follow",
        nargs="+",
    )
    dtype: str | None = _dtype()
    targets: list[str] | None = _targets()
    form: str = argument(
        "form of the padding (default pitches)",
        "--form",
        choices=("pitches", "interval", "padded_shared", "reordered"),
        default="pitches",
    )
    picture: str | None = _picture("the banks without and with padding", "-o", "--output")


class Swizzle(Options):
    """The shared layout of a tile with the fewest turns for several accesses.

    layoutalg swizzle rows columns --tile 64,64
    layoutalg swizzle rows ldmatrix --tile 64,64 --form tma
    layoutalg swizzle "((8,4),(2,8)):((64,2),(1,8)):store" columns --tile 64,64 --form xor
    layoutalg swizzle rows:load --tile 64,64 --target gfx942 --target gfx950 --form cute --json
    """

    accesses: list[str] = argument(
        "as for banks: rows, columns, ldmatrix, mma.A, ..., or a register layout; :load, :store, ... may follow; "
        "without these the first is a store",
        nargs="+",
    )
    targets: list[str] | None = _targets()
    dtype: str | None = _dtype()
    form: str = argument("form of the layout", "--form", default="any", choices=("any", "tma", "cute", "xor"))
    tile: Sizes | None = _extents("--tile", "tile extents, if the accesses do not determine them")
    chunk: int = argument("bytes per chunk for the form xor (default 16)", "--chunk", type=_count, default=16)
    picture: str | None = _picture(
        "the banks of each access before and after, and the lines of memory,", "-o", "--output"
    )


class Ragged(Options):
    """The maps that copy tiles of every group of a ragged tensor, whatever the sizes, and the copies for given sizes.

    layoutalg ragged "Sw<3,3,3> o 0 o (64,64):(64,1)" --tensor 4096,512 --sizes 70,0,64
    layoutalg ragged "Sw<3,3,3> o 0 o (128,64):(64,1)" --tensor 65536,4096 --strategy exact_pool --json
    layoutalg ragged "(64,64):(64,1)" --tensor 4096,512 --tile 64,64 --multiple 8 --emit kernel.cu --sizes 72,0,64
    """

    shared: str = argument("layout of the tile in shared memory: tile coordinates to element offsets")
    tensor: Sizes = _extents("--tensor", "extents, elements, outermost first", required=True)
    stride: Sizes | None = _extents("--stride", "element strides of the tensor (default row-major)")
    dtype: str | None = _dtype()
    tile: Sizes | None = _extents("--tile", "tile extents, if the layout does not determine them")
    sizes: tuple[int, ...] | None = argument("rows of each group: 70,0,64", "--sizes", type=_rows)
    strategy: str = argument(
        "how the last rows of a group are copied (default auto)",
        "--strategy",
        default="auto",
        choices=("auto", "exact_pool", "overlap_pool", "shift_back", "clip", "descriptors", "overfetch"),
    )
    multiple: int = argument("what divides every size (default 1)", "--multiple", type=_count, default=1)
    axis: int = argument("the ragged dimension (default 0)", "--axis", type=_count, default=0)
    store: bool = _flag("--store", "plan stores from shared memory to the tensor")
    target: str = _target()
    kernel: str | None = argument(
        "write the kernels that copy the groups, CUDA, to this file, completely or not at all", "--emit", metavar="FILE"
    )
    picture: str | None = _picture("which copy takes which rows", "-o", "--output")


NOTATIONS = ("cute_cpp", "cute_dsl", "cute_type", "ttg", "gluon", "mlir", "isl")
"""Forms of ``to_text``."""


class Equivalent(Options):
    """Whether two layouts are the same function: proved, or a coordinate where they differ.

    layoutalg equivalent "(4,8):(8,1)" "((2,2),8):((8,16),1)"
    layoutalg equal "Sw<3,3,3> o 0 o (64,64):(64,1)" "memref<64x64xf16, strided<[72, 1]>>"
    layoutalg equal "affine_map<(i, j) -> (72 * i + j)>" "(64,64):(72,1)" --json
    """

    f: str = argument("layout notation, a table of offsets as JSON, a file of it, or -")
    g: str = argument("another one; a text without extents takes those of the other")
    shape: Sizes | None = _extents("--shape", "tensor extents, if neither layout has them: 64,64")


class Compose(Options):
    """One layout after another: c -> outer(inner(c)).

    layoutalg compose "(6,8):(1,10)" "2:4"
    layoutalg compose "(6,2):(1,7)" "(3,2):(2,3)" --widen
    """

    outer: str = argument("the layout that is applied last")
    inner: str = argument("the layout that is applied first")
    widen: bool = _flag("--widen", "any two families; the result in the narrowest family that has it")


class LogicalDivide(Options):
    """A layout divided by a tile: the tile, then the rest.

    layoutalg logical_divide "(6,2):(1,7)" "3:1"
    layoutalg divide "(6,2):(1,7)" "4:1" --widen
    layoutalg divide "(128,64):(64,1)" "<32,32>"
    """

    layout: str = argument("the layout")
    tile: str = argument(
        "a CuTe layout that has a complement in the layout's size; or one of each mode: <32,(4,8):(1,4)>"
    )
    widen: bool = _flag("--widen", "the result in the narrowest family that has it")


class Inverse(Options):
    """A one-sided inverse of a layout.

    layoutalg inverse "(4,8):(8,1)"
    layoutalg inverse "(2,40):(3,2)" --left --widen
    layoutalg inverse "(4,8):(1,8)" --right
    """

    layout: str = argument("the layout")
    left: bool = _flag("--left", "R with R(layout(c)) = c (the default)")
    right: bool = _flag("--right", "R with layout(R(i)) = i for all i below its size")
    widen: bool = _flag("--widen", "the inverse of a CuTe layout in the narrowest family that has it")


class Convert(Options):
    """The same layout in another family or another system's notation; for registers see conversion.

    layoutalg convert "F2[i=(1)(2)(5) -> o:8]" cute
    layoutalg convert "Sw<3,3,3> o 0 o (8,64):(64,1)" linear
    layoutalg convert "memref<64x64xf16, strided<[72, 1]>>" cute_cpp
    """

    layout: str = argument("layout notation, a table of offsets as JSON, a file of it, or -")
    form: str = argument(f"cute, linear, integer, piecewise; or {', '.join(NOTATIONS)}")


class Conversion(Options):
    """The cheapest way from one layout of registers to another.

    layoutalg conversion "F2[register=(1), lane=(2)(4)(8)(16)(32) -> x:64]" \
"F2[register=(32), lane=(1)(2)(4)(8)(16) -> x:64]" --bits 32
    layoutalg conversion "(32,2):(2,1)" "(32,2):(1,32)" --bits 16 --target gfx1201 --emit kernel.hip
    """

    source: str = argument("the element that each register has (register, lane, warp; or thread, value)")
    destination: str = argument("the element that each register needs")
    dtype: str | None = _dtype()
    target: str = _target("NVIDIA or AMD architecture (default sm_90a)")
    mechanism: str | None = argument(
        "only plans of this mechanism",
        "--mechanism",
        choices=("registers", "shuffles", "shared", "matrices", "cluster"),
    )
    smem: int | None = argument("limit on shared memory in bytes (default: that of a block)", "--smem", type=_count)
    shape: Sizes | None = _extents("--shape", "tensor extents, if neither layout determines them: 64,64")
    kernel: str | None = argument(
        "write the kernel, CUDA or HIP, to this file, completely or not at all", "--emit", metavar="FILE"
    )
    picture: str | None = _picture("the steps")


class Gather(Options):
    """The cheapest gather of registers along an axis; the ranking of the ways of gathering arrays by these indices.

    layoutalg gather "F2[register=(32), lane=(1)(2)(4)(8)(16) -> x:64]" --axis x --bits 32
    layoutalg gather "(32,2):(1,32)" --axis 0 --shape 64 --mechanism shared --emit kernel.cu
    layoutalg gather --indices "[[3, 0, 1, 2], [0, 0, 2, 2]]" --length 4 --bits 32
    """

    source: str | None = argument("register layout of the tensor (register, lane, warp; or thread, value)", nargs="?")
    index: str | None = argument("register layout of the indices (default: that of the tensor)", nargs="?")
    axis: str | None = argument("axis along which indices select, by name or position", "--axis")
    indices: str | None = argument(
        "rank the ways for rows of these indices, [rows, count]: a JSON list, a .json or .npy file, or -", "--indices"
    )
    length: int | None = argument("elements of a row of the array (default: of the axis)", "--length", type=_count)
    dtype: str | None = _dtype()
    target: str = _target("NVIDIA or AMD architecture (default sm_90a)")
    mechanism: str | None = argument(
        "only plans of this mechanism", "--mechanism", choices=("registers", "shuffles", "shared")
    )
    shape: Sizes | None = _extents("--shape", "extents of the tensor, if its layout does not state them: 64,64")
    index_shape: Sizes | None = _extents("--index-shape", "extents of the indices (default: those of the tensor)")
    kernel: str | None = argument(
        "write the kernel, CUDA or HIP, to this file, completely or not at all", "--emit", metavar="FILE"
    )


class Admissible(Options):
    """Whether an instruction can carry a layout: the bits and a proof, or the reason.

    layoutalg admissible "Sw<3,3,3> o 0 o (64,64):(64,1)" wgmma.A
    layoutalg admissible "Sw<3,3,3> o 0 o (64,64):(64,1)" tma
    layoutalg admissible "(8,8):(8,1)" ldmatrix.x1 --dtype f16 --json
    layoutalg admissible "Sw<3,3,3> o 0 o (64,64):(64,1)" tma --option tensor=4096,8192 --option issues=1
    layoutalg admissible "Sw<3,3,3> o 0 o (64,64):(64,1)" tcgen05.A --target sm_100a --option kind=f16
    """

    layout: str = argument("layout notation, JSON (a table of offsets, a problem), a file of it, or -")
    consumer: str = argument("tma, tma.store, wgmma.A, ...; or as for banks: ldmatrix, ld.shared.v4, mma.A, ...")
    target: str = _target()
    dtype: str | None = _dtype()
    tile: Sizes | None = _extents("--tile", "tile extents, if the layout does not determine them")
    align: int = argument(
        "alignment of the tile in shared memory, in bytes (default 1024)", "--align", type=_count, default=1024
    )
    options: list[tuple[str, str]] | None = argument(
        "further argument of the consumer: tensor, issues, oob, n, metadata, kind, sparse, cta_group, ws, m, "
        "registers, lanes, warps, global, bounds, ctas, ...; the value is JSON, @FILE of JSON, sizes such as 64,64 "
        "(of a tensor: its extents), or text such as layout notation; may be repeated",
        "--option",
        action="append",
        type=_option,
        metavar="NAME=VALUE",
    )
    budget: float = _budget(limits.PLAN_SECONDS)


class Factorise(Options):
    """The part of a layout that a descriptor can carry, and the shuffles for the rest.

    layoutalg factorise "F2[register=(1)(2)(8), lane=(4)(16)(32)(64)(128) -> offset:256]"
    layoutalg factorise "(16,64):(64,1)" --json
    """

    layout: str = argument("layout notation, JSON (a table of offsets), a file of it, or -")
    consumer: str = argument(
        "tma, tma.store, ldmatrix..., stmatrix..., ld.shared..., st.shared..., ds_read..., ds_write... (default tma)",
        "--consumer",
        default="tma",
    )
    target: str = _target()
    dtype: str | None = _dtype()
    warps: int = argument("warps that share a tile (default 1)", "--warps", type=_count, default=1)
    budget: float = _budget(limits.PLAN_SECONDS)


class Diagnose(Options):
    """The fields and the broken rules of a tensor map's bytes or a driver call's arguments.

    layoutalg diagnose map.bin
    layoutalg diagnose arguments.json
    hexdump -C map.bin | layoutalg diagnose -
    layoutalg diagnose call.cpp
    """

    map: str = argument(
        "a dump: digits, xxd, hexdump, gdb, a C array; a file with one, the bytes, the call in C++, or its arguments "
        "as JSON; or -"
    )
    target: str = _target()


class SynthTensormap(Options):
    """A TMA plan, from a problem document or from a shared-memory layout and a tensor.

    layoutalg synth tensormap problem.json -o plan.json
    layoutalg synth tensormap - --json < problems.json
    layoutalg synth tensormap "Sw<3,3,3> o 0 o (64,64):(64,1)" --tensor 4096,8192 --dtype bf16
    layoutalg synth tensormap "Sw<3,3,3> o 0 o (64,64):(64,1)" --tensor 4096,8192 --documented-only
    """

    file: str = argument("problem JSON, a list of problems, - for standard input, or layout notation")
    tensor: Sizes | None = _extents("--tensor", "with layout notation: extents of the tensor, outermost first")
    stride: Sizes | None = _extents("--stride", "element strides of the tensor (default row-major)")
    tile: Sizes | None = _extents("--tile", "extents of the tile (default: those of the layout)")
    dtype: str | None = _dtype("with layout notation: element type (default: that of the text, or bf16)")
    target: str = _target("with layout notation: architecture (default sm_90a)")
    store: bool = _flag("--store", "with layout notation: shared to global memory")
    documented_only: bool = _documented()
    output: str | None = _output("write the JSON answer")


class SynthWgmma(Options):
    """The descriptors with which wgmma reads a tile, from a problem document or a layout.

    layoutalg synth wgmma "Sw<3,3,3> o 0 o (64,64):(64,1)" --operand A
    layoutalg synth wgmma operand.json -o operand-plan.json
    """

    file: str = argument("problem JSON, a list of problems, - for standard input, or layout notation")
    operand: Literal["A", "B"] | None = argument(
        "with layout notation: (M,K) of A or (N,K) of B", "--operand", choices=("A", "B")
    )
    dtype: str | None = _dtype("with layout notation: element type (default: that of the text, or bf16)")
    output: str | None = _output("write the JSON answer")


class Synth(Given):
    """Find descriptors and prove them.

    layoutalg synth tensormap problem.json -o plan.json
    layoutalg synth tensormap "Sw<3,3,3> o 0 o (64,64):(64,1)" --tensor 4096,8192
    layoutalg synth wgmma "Sw<3,3,3> o 0 o (64,64):(64,1)" --operand A
    """


class Check(Options):
    """Check certificates with the stand-alone checker, and replay the proofs of plans.

    layoutalg check certificate.json
    layoutalg check certificates/
    layoutalg synth tensormap problem.json --json | layoutalg check -
    layoutalg check plans.json --documented-only --json
    """

    file: str = argument(
        "a certificate, a plan (TensorMap or wgmma) or a list of plans as JSON; a folder for all .json files "
        "below it; or - for standard input"
    )
    documented_only: bool = _documented()


class Verify(Options):
    """Decide for every trip count whether a pipeline can hang, race or lose bytes; show a run that goes wrong.

    layoutalg verify pipeline.json
    layoutalg verify pipeline.json --policy practice --json
    layoutalg verify kernel.ttgir
    """

    file: str = argument(
        "pipelines as JSON (schema layoutalg/pipeline/1), a Triton kernel (TTGIR), or - for standard input"
    )
    target: str = _target()
    policy: str = argument(
        "practice: a copy may overwrite a slot after generic reads with no proxy fence, and stores may run when the "
        "block ends (default strict)",
        "--policy",
        choices=("strict", "practice"),
        default="strict",
    )


class Certify(Options):
    """Write a claim or its negation as a certificate for the stand-alone checker.

    layoutalg certify equality "(4,8):(8,1)" "((2,2),8):((8,16),1)" -o equality.json
    layoutalg certify composition "(4,8):(8,1)" "8:2" | layoutalg check -
    layoutalg certify inverse "(4,8):(8,1)" --side both
    layoutalg certify plan plan.json
    layoutalg certify banks sm_90a ld.shared.v4.b32 "(32,4):(144,16)"
    layoutalg certify pipeline pipeline.json
    """

    claim: str = argument(
        "equality: two layouts; composition: outer, inner and optionally the result; inverse: a layout and "
        "optionally its inverse; plan, operand: a TensorMap or wgmma plan or problem; handoff: a TensorMap plan and "
        "the wgmma plan that reads its tile; banks: a target, an instruction and a layout of byte addresses; "
        "pipeline: a pipeline",
        choices=("equality", "composition", "inverse", "plan", "operand", "handoff", "banks", "pipeline"),
    )
    of: list[str] = argument("layouts as in explain; JSON; a target and an instruction", nargs="+")
    side: str = argument("side of the inverse", "--side", choices=("left", "right", "both"), default="left")
    codomain: int | None = argument("size of the domain of the inverse", "--codomain", type=_count)
    output: str | None = _output("write the certificate")


class Checker(Given):
    """The path of the stand-alone certificate checker, one folder that needs only numpy.

    layoutalg checker
    layoutalg checker -o checker && python checker certificate.json
    """

    output: str | None = argument("copy it to this new or empty folder, completely or not at all", "-o", "--output")
    json: bool = _json("print its files in a JSON document that names its schema")


class Routing(Options):
    """Where rows go when tokens are routed to experts, padded to blocks, with its certificate checked.

    layoutalg routing "[[2, 0], [0, 2], [2, 1]]" --experts 4 --block 2
    layoutalg routing topk_ids.npy --experts 128 --block 64 --local 32,63 --json
    """

    ids: str = argument("experts of each token, [tokens, k]: a JSON list, a .json or .npy file, or -")
    experts: int = argument("number of experts", "--experts", type=_count, required=True)
    block: int = argument("rows of a tile (default 64)", "--block", type=_count, default=64)
    local: Sizes | None = _extents("--local", "first and last expert of this rank: 32,63")


class Paged(Options):
    """Where the bytes of a paged sequence are: runs of pages and bytes, who may write, with its certificate checked.

    layoutalg paged "[4, 5, 2]" --page 16,8,128,2 --seq-len 40 --pages 8
    layoutalg paged table.npy --page 64,1,576,2 --layout HND --json
    """

    table: str = argument("page table: a JSON list, a .json or .npy file, or -")
    page: Sizes = argument("tokens of a page, heads, elements of a head, bytes of an element: 16,8,128,2", "--page",
                           type=_page, required=True)  # fmt: skip
    layout: str = argument("order in a page (default NHD)", "--layout", choices=("NHD", "HND"), default="NHD")
    seq_len: int | None = argument("tokens (default: those of all pages)", "--seq-len", type=_count)
    pages: int | None = argument("pages of the pool (default: up to the highest of the table)", "--pages", type=_count)
    stride: int | None = argument("bytes from page to page (default: those of a page)", "--stride", type=_count)


class Validate(Options):
    """Run a plan and compare every byte.

    layoutalg validate plan.json
    layoutalg validate problem.json --device simulator --seed 7
    """

    file: str = argument("plan or problem JSON, a list of them, or - for standard input")
    device: str = argument(None, "--device", default="auto", choices=DEVICES)
    seed: int = argument("seed of the random memory contents (default 0)", "--seed", type=_seed, default=0)
    budget: float = _budget(limits.RUN_SECONDS)


class Draw(Options):
    """Draw a layout, a plan, a pipeline or an answer, as text or as SVG.

    layoutalg draw "(4,8):(8,1)"
    layoutalg draw "Sw<3,3,3> o 0 o (64,64):(64,1)" -o tile.svg
    layoutalg draw "(4,8):(1,4)" --against "(4,8):(8,1)" -o difference.svg
    layoutalg draw "Sw<3,3,3> o 0 o (64,64):(64,1)" --for wgmma.A -o operand.svg
    layoutalg draw plan.json -o plan.svg
    layoutalg draw pipeline.json -o pipeline.svg
    """

    subject: str = argument(SUBJECT)
    against: str | None = argument(
        "a second layout: the cells that differ are outlined", "--against", metavar="SUBJECT"
    )
    consumer: str | None = argument(
        "draw the answer of layoutalg admissible for this consumer", "--for", metavar="CONSUMER"
    )
    target: str = _target()
    dtype: str | None = _dtype()
    view: str | None = argument("default: by the kind of value", "--view", choices=("grid", "owners", "matrix"))
    show: Literal["value", "coordinate", "both"] = argument(
        "what cells show", "--show", choices=("value", "coordinate", "both"), default="value"
    )
    shape: Sizes | None = _extents("--shape", "sizes of the tensor of a #ttg attribute, outermost first: 64,64")
    svg: bool = _flag("--svg", "SVG on standard output instead of text")
    output: str | None = _output("write the picture as SVG")


class Emit(Options):
    """Source text of a proved plan, or of a matrix product whose pipeline is proved.

    layoutalg emit host plan.json -o make_map.h
    layoutalg emit bytes problem.json --name weights_map
    layoutalg emit bytes plan.json --base-address 0x7f0000001000
    layoutalg emit raw plan.json -o map.bin
    layoutalg emit kernel plan.json --documented-only
    layoutalg emit gemm 4096 4096 4096 -o gemm.cu
    layoutalg emit gemm 8192 8192 8192 --dtype e4m3 --form rows=128,columns=256,leaving=128,cluster=2
    """

    what: str = argument(
        "host: a C++ function that calls cuTensorMapEncodeTiled; bytes: a C array of the map, or of the wgmma "
        "descriptors; raw: the bytes themselves; kernel: CUDA that copies a tile; gemm: CUDA of D = A B^T; the others: "
        "the plan as source text for that system",
        choices=("host", "bytes", "raw", "kernel", "gemm", "cpp", "ptx", "mlir", "gluon", "cute_dsl"),
    )
    subject: list[str] = argument(
        "plan or problem JSON, a dump of a map, a file with either, or -; for gemm: M N K", nargs="+"
    )
    name: str | None = argument("name of the function, array or kernel", "--name")
    target: str = _target("architecture, for dumps and gemm (default sm_90a)")
    output: str | None = _output("write")
    documented_only: bool = _documented()
    base_address: int | None = argument(
        "bytes, raw: address of the tensor's allocation, decimal or 0x... (default 0)",
        "--base-address",
        type=_address,
        metavar="ADDRESS",
    )
    dtype: str | None = _dtype("gemm: type of A and B: bf16 (the default), f16, e4m3, e5m2")
    result: str | None = argument("gemm: type of D: bf16 (the default), f16", "--result")
    form: tuple[tuple[str, int], ...] | None = argument(
        "gemm: rows=128,columns=256 and any of consumers, leaving, cluster, behind, stages, together (default: the "
        "form that should be fastest)",
        "--form",
        type=_fields,
    )
    major_a: str | None = argument("gemm: MN if A is K x M row-major", "--major-a", choices=("K", "MN"))
    major_b: str | None = argument("gemm: MN if B is K x N row-major", "--major-b", choices=("K", "MN"))


class Tune(Options):
    """The legal choices of a kernel that should be fastest; measured by a function of yours.

    layoutalg tune gemm 4096 4096 4096
    layoutalg tune gemm 8192 8192 8192 --dtype e4m3 --top 4 --json
    """

    what: str = argument("gemm: D = A B^T by wgmma", choices=("gemm",))
    shape: list[int] = argument("M N K", nargs=3, type=_count)
    dtype: str = argument("type of A and B (default bf16)", "--dtype", default="bf16")
    target: str = _target()
    top: int = argument("number of choices (default 16)", "--top", type=_count, default=16)
    measure: str | None = argument(
        "gpu: milliseconds on the first GPU; MODULE:FUNCTION from a choice, a dict, to a number, less is better "
        "(default: only rank)",
        "--measure",
    )
    database: str | None = argument("SQLite file of results; what is in it is not measured again", "--database")
    dask: str | None = argument("address of a dask scheduler whose workers measure (default: here)", "--dask")


class Campaign(Options):
    """Random cases against independent judges; a counterexample is repeated by its seed.

    layoutalg campaign ragged --plans 200
    layoutalg campaign indirect --plans 200 --seed 7 --json
    """

    name: str = argument(
        "ragged: copies of drawn groups, counted row by row; indirect: drawn routings and paged sequences, entry by "
        "entry; MODULE:FUNCTION of yours, from a seed to what is wrong, empty if nothing"
    )
    plans: int = argument("number of cases (default 1000)", "--plans", type=_count, default=1000)
    seed: int = argument("seed of the first case; the others follow (default 1)", "--seed", type=_seed, default=1)
    workers: int = argument("number of processes (default 1: here)", "--workers", type=_count, default=1)
    dask: str | None = argument("address of a dask scheduler whose workers take their place", "--dask")
    budget: float = argument("seconds (default 600)", "--budget", type=_seconds, default=600.0)


class Schema(Options):
    """The JSON Schema of a document that layoutalg reads or writes.

    layoutalg schema
    layoutalg schema tensormap-problem
    layoutalg schema layoutalg/tensormap-plan/1
    """

    name: str | None = argument("name of the schema; without it, all names are listed", nargs="?")


class Demo(Options):
    """Plan, prove, compile and validate a collection of tiles.

    layoutalg demo
    layoutalg demo --device simulator --json > rows.json
    layoutalg demo my-tiles.json
    """

    file: str | None = argument(
        "tiles JSON (schema layoutalg/real-tiles/1); default: 113 tiles of well-known kernels", nargs="?"
    )
    device: str = argument(None, "--device", default="auto", choices=DEVICES)
    budget: float = _budget(limits.RUN_SECONDS)


COMMANDS: dict[str, type[Any]] = {
    "explain": Explain, "suggest": Suggest, "banks": Banks, "transactions": Transactions, "padding": Padding,
    "swizzle": Swizzle, "equivalent": Equivalent, "compose": Compose, "logical_divide": LogicalDivide,
    "inverse": Inverse, "convert": Convert, "conversion": Conversion, "gather": Gather, "ragged": Ragged,
    "admissible": Admissible,
    "factorise": Factorise, "diagnose": Diagnose, "synth": Synth,
    "check": Check, "certify": Certify, "checker": Checker, "verify": Verify, "validate": Validate, "draw": Draw,
    "emit": Emit, "tune": Tune, "campaign": Campaign, "routing": Routing, "paged": Paged,
    "schema": Schema, "demo": Demo,
}  # fmt: skip
SHORT = {"equivalent": "equal", "logical_divide": "divide"}
"""Shorter names of commands."""
KINDS: dict[str, type[Any]] = {"tensormap": SynthTensormap, "wgmma": SynthWgmma}
"""The commands of ``synth``."""


def command_line(first: str | None = None) -> Parser:
    """Return the parser of the whole command line; ``run`` in its namespace names the function of the command.

    Where the first word names a command, no other command is set up: that takes most of the time of a parse.
    """
    named = next((name for name, short in SHORT.items() if short == first), first)
    shown = 'layoutalg explain "Sw<3,3,3> o 0 o (64,64):(64,1)"', "layoutalg demo", "layoutalg synth --help"
    codes = [f"  {code:<4} {says}" for code, says in EXIT_CODES.items()]
    parser = Parser(
        prog="layoutalg",
        description="What a GPU data layout does, which hardware feature can carry it, and the exact descriptor bits.",
        epilog="\n".join([_examples(shown), "exit codes:", *codes]),
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=Parser)
    for name, options in [(named, COMMANDS[named])] if named in COMMANDS else COMMANDS.items():
        command = _add(commands, name, options, f"run_{name}")
        if options is Synth:
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
    command.later = arguments_of(options)
    command.set_defaults(options_class=options, run=run)
    return command


def arguments_of(options: type[Any]) -> dict[str, Argument]:
    """Return the arguments of a command by name, its own before those that most commands have."""
    found = {
        name: entry
        for kind in reversed(options.__mro__)
        for name, entry in vars(kind).items()
        if isinstance(entry, Argument)
    }
    return {name: found[name] for name in sorted(found, key=lambda name: name in vars(Options))}


def options_of(found: argparse.Namespace) -> Any:
    """Return the options of the command that was parsed."""
    kind = found.options_class
    return kind(**{name: getattr(found, name) for name in arguments_of(kind)})
