"""Options of the commands that combine, convert and draw layouts, and of those for indices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from layoutalg.cli import arguments as arg
from layoutalg.cli.arguments import Options, Sizes, argument, option
from layoutalg.cli.question_options import OF_AN_ATTRIBUTE, SUBJECT

NOTATIONS = ("cute_cpp", "cute_dsl", "cute_type", "ttg", "gluon", "isl")
"""Forms of ``to_text``."""
LAYOUT = "layout notation, a table of offsets as JSON, a file of it, or -"
INDICES = "a JSON list, a .json or .npy file, or -"


@dataclass(frozen=True)
class Equivalent(Options, about="equality of two layouts"):
    """Whether two layouts are the same function: proved, or a coordinate where they differ.

    layoutalg equivalent "(4,8):(8,1)" "((2,2),8):((8,16),1)"
    layoutalg equal "Sw<3,3,3> o 0 o (64,64):(64,1)" "memref<64x64xf16, strided<[72, 1]>>"
    layoutalg equal "affine_map<(i, j) -> (72 * i + j)>" "(64,64):(72,1)" --json
    """

    f: str = argument(LAYOUT)
    g: str = argument("another one; a text without extents takes those of the other")
    shape: Sizes | None = option("--shape --tile", "tensor extents, if neither layout has them: 64,64")


@dataclass(frozen=True)
class Compose(Options, about="a composition"):
    """One layout after another: c -> outer(inner(c)).

    layoutalg compose "(6,8):(1,10)" "2:4"
    layoutalg compose "(6,2):(1,7)" "(3,2):(2,3)" --widen
    """

    outer: str = argument("the layout that is applied last")
    inner: str = argument("the layout that is applied first")
    widen: bool = option("--widen", "any two families; the result in the narrowest family that has it", False)


@dataclass(frozen=True)
class LogicalDivide(Options, about="a division"):
    """A layout divided by a tile: the tile, then the rest.

    layoutalg logical_divide "(6,2):(1,7)" "3:1"
    layoutalg divide "(6,2):(1,7)" "4:1" --widen
    layoutalg divide "(128,64):(64,1)" "<32,32>"
    """

    layout: str = argument("the layout")
    tile: str = argument(
        "a CuTe layout that has a complement in the layout's size; or one of each mode: <32,(4,8):(1,4)>"
    )
    widen: bool = option("--widen", "the result in the narrowest family that has it", False)


@dataclass(frozen=True)
class Inverse(Options, about="an inverse"):
    """A one-sided inverse of a layout.

    layoutalg inverse "(4,8):(8,1)"
    layoutalg inverse "(2,40):(3,2)" --left --widen
    layoutalg inverse "(4,8):(1,8)" --right
    """

    layout: str = argument("the layout")
    left: bool = option("--left", "R with R(layout(c)) = c (the default)", False)
    right: bool = option("--right", "R with layout(R(i)) = i for all i below its size", False)
    widen: bool = option("--widen", "the inverse of a CuTe layout in the narrowest family that has it", False)


@dataclass(frozen=True)
class Convert(Options, about="a conversion"):
    """The same layout in another family or another system's notation; for registers see conversion.

    layoutalg convert "F2[i=(1)(2)(5) -> o:8]" cute
    layoutalg convert "Sw<3,3,3> o 0 o (8,64):(64,1)" linear
    layoutalg convert "memref<64x64xf16, strided<[72, 1]>>" cute_cpp
    """

    layout: str = argument(LAYOUT)
    form: str = argument(f"cute, linear, integer, piecewise; or {', '.join(NOTATIONS)}")


@dataclass(frozen=True)
class Gather(Options, about="a question"):
    """The cheapest gather of registers along an axis; the ranking of the ways of gathering arrays by these indices.

    layoutalg gather "F2[register=(32), lane=(1)(2)(4)(8)(16) -> x:64]" --axis x --bits 32
    layoutalg gather "(32,2):(1,32)" --axis 0 --shape 64 --mechanism shared --emit kernel.cu
    layoutalg gather --indices "[[3, 0, 1, 2], [0, 0, 2, 2]]" --length 4 --bits 32
    """

    source: str | None = argument("register layout of the tensor (register, lane, warp; or thread, value)")
    index: str | None = argument("register layout of the indices (default: that of the tensor)")
    axis: str | None = option("--axis", "axis along which indices select, by name or position")
    indices: str | None = option("--indices", f"rank the ways for rows of these indices, [rows, count]: {INDICES}")
    length: int | None = option("--length", "elements of a row of the array (default: of the axis)")
    dtype: str | None = arg.dtype()
    target: str = arg.target(arg.EITHER)
    mechanism: Literal["registers", "shuffles", "shared"] | None = option("--mechanism", "only plans of this mechanism")
    shape: Sizes | None = option("--shape --tile", "extents of the tensor, if its layout does not state them: 64,64")
    index_shape: Sizes | None = option("--index-shape", "extents of the indices (default: those of the tensor)")
    kernel: str | None = arg.file("--emit", "write the kernel, CUDA or HIP,", metavar="FILE")


@dataclass(frozen=True)
class Routing(Options, about="a question"):
    """Where rows go when tokens are routed to experts, padded to blocks, with its certificate checked.

    layoutalg routing "[[2, 0], [0, 2], [2, 1]]" --experts 4 --block 2
    layoutalg routing topk_ids.npy --experts 128 --block 64 --local 32,63 --json
    """

    ids: str = argument(f"experts of each token, [tokens, k]: {INDICES}")
    experts: int = option("--experts", "number of experts", required=True)
    block: int = option("--block", "rows of a tile", 64)
    local: Sizes | None = option("--local", "first and last expert of this rank: 32,63")


@dataclass(frozen=True)
class Paged(Options, about="a question"):
    """Where the bytes of a paged sequence are: runs of pages and bytes, who may write, with its certificate checked.

    layoutalg paged "[4, 5, 2]" --page 16,8,128,2 --seq-len 40 --pages 8
    layoutalg paged table.npy --page 64,1,576,2 --layout HND --json
    """

    table: str = argument(f"page table: {INDICES}")
    page: Sizes = option(
        "--page",
        "tokens of a page, heads, elements of a head, bytes of an element: 16,8,128,2",
        type=arg.page,
        required=True,
    )
    layout: Literal["NHD", "HND"] = option("--layout", "order in a page", "NHD")
    seq_len: int | None = option("--seq-len", "tokens (default: those of all pages)")
    pages: int | None = option("--pages", "pages of the pool (default: up to the highest of the table)")
    stride: int | None = option("--stride", "bytes from page to page (default: those of a page)")


@dataclass(frozen=True)
class Draw(Options, about="a document"):
    """Draw a layout, a plan, a pipeline or an answer, as text or as SVG.

    layoutalg draw "(4,8):(8,1)"
    layoutalg draw "Sw<3,3,3> o 0 o (64,64):(64,1)" -o tile.svg
    layoutalg draw "(4,8):(1,4)" --against "(4,8):(8,1)" -o difference.svg
    layoutalg draw "Sw<3,3,3> o 0 o (64,64):(64,1)" --for wgmma.A -o operand.svg
    layoutalg draw plan.json -o plan.svg
    layoutalg draw pipeline.json -o pipeline.svg
    """

    subject: str = argument(SUBJECT)
    against: str | None = option("--against", "a second layout: the cells that differ are outlined", metavar="SUBJECT")
    consumer: str | None = option(
        "--for", "draw the answer of layoutalg admissible for this consumer", metavar="CONSUMER"
    )
    target: str = arg.target()
    dtype: str | None = arg.dtype()
    view: Literal["grid", "owners", "matrix"] | None = option("--view", "default: by the kind of value")
    show: Literal["value", "coordinate", "both"] = option("--show", "what cells show", "value")
    shape: Sizes | None = option("--shape --tile", OF_AN_ATTRIBUTE)
    svg: bool = option("--svg", "SVG on standard output instead of text", False)
    output: str | None = arg.file("-o --output", "write the picture as SVG")
