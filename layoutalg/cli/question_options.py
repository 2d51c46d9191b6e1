"""Options of the commands that ask: about layouts in memory, about conversions, about instructions, about speed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from layoutalg.cli import arguments as arg
from layoutalg.cli.arguments import Options, Sizes, argument, option
from layoutalg.ground import limits

SUBJECT = "layout notation, JSON, a dump of a descriptor, the name of a file with any of these, or - for standard input"
OF_AN_ATTRIBUTE = "sizes of the tensor of a #ttg attribute, outermost first: 64,64"
EXTENTS = "extents, elements, outermost first"
REGISTERS = "layout from registers (register, lane, warp; or thread, value) to tile coordinates"


@dataclass(frozen=True)
class Explain(Options, about="a question"):
    """Explain a layout, a descriptor, a problem or a plan.

    layoutalg explain "Sw<3,3,3> o 0 o (64,64):(64,1)"
    layoutalg explain "(128,64):(1,128)" --dtype f16
    layoutalg explain "Sw<3,3,3> o 0 o (64,64):(64,1)" --target gfx950
    layoutalg synth tensormap problem.json --json | layoutalg explain -
    echo "(4,8):(1,4)" | layoutalg explain -
    """

    subject: str = argument(SUBJECT)
    dtype: str | None = arg.dtype()
    target: str = arg.target()
    shape: Sizes | None = option("--shape --tile", OF_AN_ATTRIBUTE)


@dataclass(frozen=True)
class Suggest(Options, about="a question"):
    """Which shared layout to use: proved choices, best first, and why the others lose.

    layoutalg suggest --tensor 4096,8192 --tile 128,64 --for wgmma.A
    layoutalg suggest --tensor 512,512 --dtype f32 --tile 32,32 --for ld.shared.b32 --fill threads
    layoutalg suggest --tensor 4096,4096 --tile 64,64 --for ldmatrix.x4.trans --for tma.store --json
    """

    tensor: Sizes = option("--tensor", EXTENTS, required=True)
    stride: Sizes | None = arg.stride()
    dtype: str | None = arg.dtype()
    tile: Sizes = option("--tile --shape", "extents of the tile, outermost first", required=True)
    consumers: list[str] = option(
        "--for",
        "what reads or writes the tile: wgmma.A, wgmma.B, tcgen05.A, tma.store, or as for banks: ldmatrix, "
        "ld.shared.v4, mma.A, mfma.B, rows:store, columns, ...; may be repeated",
        required=True,
        metavar="CONSUMER",
    )
    target: str = arg.target()
    fill: Literal["tma", "threads"] = option("--fill", "what fills the tile", "tma")


@dataclass(frozen=True)
class Banks(Options, about="a question"):
    """Bank conflicts of a shared-memory access, and a layout without them.

    layoutalg banks ldmatrix "(128,32):(32,1)"
    layoutalg banks "F2[register=(0,1)(8,0)(0,8), lane=(0,2)(0,4)(1,0)(2,0)(4,0) -> dim0:16, dim1:16]" \
"(16,16):(16,1)" --access ldmatrix
    layoutalg banks "((4,8),(2,2)):((32,1),(16,8))" "(16,8):(8,1)" --bits 32
    layoutalg banks "(32,4):(4,1)"
    layoutalg banks "(64,8):(64,1)" --target gfx942 --instruction ds_read_b128
    """

    registers: str = argument(
        f"ldmatrix, ld.shared.v4, ds_read_b128, mma.A, mfma.B, mma.D, rows, columns:store, ...; or a {REGISTERS}",
        metavar="access",
    )
    shared: str | None = argument("layout from tile coordinates to element offsets; without it, access maps to offsets")
    dtype: str | None = arg.dtype()
    access: str | None = option(
        "--access --instruction",
        "how registers are moved: load (default), store, ldmatrix, stmatrix.trans, ld.shared.v2.b32, ...",
    )
    target: str = arg.target(arg.EITHER)
    why: bool = option("--why", "show which lanes conflict in which bank, phase by phase", False)
    tile: Sizes | None = option("--tile --shape", "tile extents, if neither layout determines them")
    picture: str | None = arg.picture("the words per bank and phase")


@dataclass(frozen=True)
class Transactions(Options, about="a question"):
    """Sectors and lines of global memory that registers touch, and registers that touch fewer.

    layoutalg transactions "(32,4):(1,32)" 4096,2048 --tile 32,4
    layoutalg transactions "F2[register=(0,1)(0,2), lane=(0,4)(0,8)(1,0)(2,0)(4,0) -> dim0:8, dim1:16]" 1000,50 \
store --dtype f32 --origin 992,48
    layoutalg transactions "(64,4):(1,64)" "(64,4):(1024,1)" global_load_dwordx4 --bits 32 --target gfx942
    """

    registers: str = argument(REGISTERS, metavar="registers")
    tensor: str = argument(
        "extents of the tensor, outermost first: 4096,2048; or a layout from tile coordinates to element offsets"
    )
    instruction: str | None = argument(
        "ld.global.v4.b32, st.global.b16, cp.async.16, global_load_dwordx4, ...; load or store: the widest "
        "(default load)"
    )
    stride: Sizes | None = arg.stride()
    dtype: str | None = arg.dtype("element type of the tensor (default: that of the text, or bf16)")
    align: int | None = option("--align", "bytes that the tensor's base is a multiple of (default 256)")
    origin: tuple[Any, ...] | None = option(
        "--origin",
        "coordinates of the tile's first element: 0,64; 0,16%%64 for 16 modulo 64 (default: the first tile)",
        type=arg.origin,
    )
    access: str | None = option("--access --instruction", "the instruction, as an option")
    target: str = arg.target(arg.EITHER)
    tile: Sizes | None = option(
        "--tile --shape",
        "tile extents, for registers without them (default: the tile of a block of #ttg.blocked, or the tensor)",
    )
    picture: str | None = arg.picture("the sectors that each lane touches")


@dataclass(frozen=True)
class Padding(Options, about="a question"):
    """The smallest padding of a shared tile with which accesses take the fewest turns.

    layoutalg padding 64,64 rows ldmatrix
    layoutalg padding 33,70 "store rows:1" columns --bits 32
    layoutalg padding 64,64 rows columns --target gfx942 --form padded_shared
    """

    shape: Sizes = argument("extents of the tile, outermost first: 64,64")
    accesses: list[str] = argument(
        "as for banks: rows, columns, ldmatrix, mma.A, ..., or a register layout; also diagonals, antidiagonals, "
        "'along 0'; elements per lane (rows:4) and :store may follow"
    )
    dtype: str | None = arg.dtype()
    targets: list[str] | None = arg.targets()
    form: Literal["pitches", "interval", "padded_shared", "reordered"] = option(
        "--form", "form of the padding", "pitches"
    )
    picture: str | None = arg.picture("the banks without and with padding")


@dataclass(frozen=True)
class Swizzle(Options, about="a question"):
    """The shared layout of a tile with the fewest turns for several accesses.

    layoutalg swizzle rows columns --tile 64,64
    layoutalg swizzle rows ldmatrix --tile 64,64 --form tma
    layoutalg swizzle "((8,4),(2,8)):((64,2),(1,8)):store" columns --tile 64,64 --form xor
    layoutalg swizzle rows:load --tile 64,64 --target gfx942 --target gfx950 --form cute --json
    """

    accesses: list[str] = argument(
        "as for banks: rows, columns, ldmatrix, mma.A, ..., or a register layout; :load, :store, ... may follow; "
        "without these the first is a store"
    )
    targets: list[str] | None = arg.targets()
    dtype: str | None = arg.dtype()
    form: Literal["any", "tma", "cute", "xor"] = option("--form", "form of the layout", "any")
    tile: Sizes | None = option("--tile --shape", "tile extents, if the accesses do not determine them")
    chunk: int = option("--chunk", "bytes per chunk for the form xor", 16)
    picture: str | None = arg.picture("the banks of each access before and after, and the lines of memory,")


@dataclass(frozen=True)
class Ragged(Options, about="a question"):
    """The maps that copy tiles of every group of a ragged tensor, whatever the sizes, and the copies for given sizes.

    layoutalg ragged "Sw<3,3,3> o 0 o (64,64):(64,1)" --tensor 4096,512 --sizes 70,0,64
    layoutalg ragged "Sw<3,3,3> o 0 o (128,64):(64,1)" --tensor 65536,4096 --strategy exact_pool --json
    layoutalg ragged "(64,64):(64,1)" --tensor 4096,512 --tile 64,64 --multiple 8 --emit kernel.cu --sizes 72,0,64
    """

    shared: str = argument("layout of the tile in shared memory: tile coordinates to element offsets")
    tensor: Sizes = option("--tensor", EXTENTS, required=True)
    stride: Sizes | None = arg.stride()
    dtype: str | None = arg.dtype()
    tile: Sizes | None = option("--tile --shape", "tile extents, if the layout does not determine them")
    sizes: Sizes | None = option("--sizes", "rows of each group: 70,0,64", type=arg.rows)
    strategy: Literal["auto", "exact_pool", "overlap_pool", "shift_back", "clip", "descriptors", "overfetch"] = option(
        "--strategy", "how the last rows of a group are copied", "auto"
    )
    multiple: int = option("--multiple", "what divides every size", 1)
    axis: int = option("--axis", "the ragged dimension", 0)
    store: bool = option("--store", "plan stores from shared memory to the tensor", False)
    target: str = arg.target()
    kernel: str | None = arg.file("--emit", "write the kernels that copy the groups, CUDA,", metavar="FILE")
    picture: str | None = arg.picture("which copy takes which rows")


@dataclass(frozen=True)
class Conversion(Options):
    """The cheapest way from one layout of registers to another.

    layoutalg conversion "F2[register=(1), lane=(2)(4)(8)(16)(32) -> x:64]" \
"F2[register=(32), lane=(1)(2)(4)(8)(16) -> x:64]" --bits 32
    layoutalg conversion "(32,2):(2,1)" "(32,2):(1,32)" --bits 16 --target gfx1201 --emit kernel.hip
    """

    source: str = argument("the element that each register has (register, lane, warp; or thread, value)")
    destination: str = argument("the element that each register needs")
    dtype: str | None = arg.dtype()
    target: str = arg.target(arg.EITHER)
    mechanism: Literal["registers", "shuffles", "shared", "matrices", "cluster"] | None = option(
        "--mechanism", "only plans of this mechanism"
    )
    smem: int | None = option("--smem", "limit on shared memory in bytes (default: that of a block)")
    shape: Sizes | None = option("--shape --tile", "tensor extents, if neither layout determines them: 64,64")
    kernel: str | None = arg.file("--emit", "write the kernel, CUDA or HIP,", metavar="FILE")
    picture: str | None = arg.picture("the steps", "--picture")


@dataclass(frozen=True)
class Admissible(Options, about="a question"):
    """Whether an instruction can carry a layout: the bits and a proof, or the reason.

    layoutalg admissible "Sw<3,3,3> o 0 o (64,64):(64,1)" wgmma.A
    layoutalg admissible "Sw<3,3,3> o 0 o (64,64):(64,1)" tma
    layoutalg admissible "(8,8):(8,1)" ldmatrix.x1 --dtype f16 --json
    layoutalg admissible "Sw<3,3,3> o 0 o (64,64):(64,1)" tma --option tensor=4096,8192 --option issues=1
    layoutalg admissible "Sw<3,3,3> o 0 o (64,64):(64,1)" tcgen05.A --target sm_100a --option kind=f16
    """

    layout: str = argument("layout notation, JSON (a table of offsets, a problem), a file of it, or -")
    consumer: str = argument("tma, tma.store, wgmma.A, ...; or as for banks: ldmatrix, ld.shared.v4, mma.A, ...")
    target: str = arg.target()
    dtype: str | None = arg.dtype()
    tile: Sizes | None = option("--tile --shape", "tile extents, if the layout does not determine them")
    align: int = option("--align", "alignment of the tile in shared memory, in bytes", 1024)
    options: list[tuple[str, str]] | None = option(
        "--option",
        "further argument of the consumer: tensor, issues, oob, n, metadata, kind, sparse, cta_group, ws, m, "
        "registers, lanes, warps, global, bounds, ctas, ...; the value is JSON, @FILE of JSON, sizes such as 64,64 "
        "(of a tensor: its extents), or text such as layout notation; may be repeated",
        type=arg.named,
        metavar="NAME=VALUE",
    )
    budget: float = arg.budget(limits.PLAN_SECONDS)


@dataclass(frozen=True)
class Factorise(Options, about="a question"):
    """The part of a layout that a descriptor can carry, and the shuffles for the rest.

    layoutalg factorise "F2[register=(1)(2)(8), lane=(4)(16)(32)(64)(128) -> offset:256]"
    layoutalg factorise "(16,64):(64,1)" --json
    """

    layout: str = argument("layout notation, JSON (a table of offsets), a file of it, or -")
    consumer: str = option(
        "--consumer",
        "tma, tma.store, ldmatrix..., stmatrix..., ld.shared..., st.shared..., ds_read..., ds_write...",
        "tma",
    )
    target: str = arg.target()
    dtype: str | None = arg.dtype()
    warps: int = option("--warps", "warps that share a tile", 1)
    budget: float = arg.budget(limits.PLAN_SECONDS)


@dataclass(frozen=True)
class Diagnose(Options, about="a question"):
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
    target: str = arg.target()


@dataclass(frozen=True)
class Tune(Options):
    """The legal choices of a kernel that should be fastest; measured by a function of yours.

    layoutalg tune gemm 4096 4096 4096
    layoutalg tune gemm 8192 8192 8192 --dtype e4m3 --top 4 --json
    """

    what: Literal["gemm"] = argument("gemm: D = A B^T by wgmma")
    shape: list[int] = argument("M N K", nargs=3)
    dtype: str = option("--dtype", "type of A and B", "bf16")
    target: str = arg.target()
    top: int = option("--top", "number of choices", 16)
    measure: str | None = option(
        "--measure",
        "gpu: milliseconds on the first GPU; MODULE:FUNCTION from a choice, a dict, to a number, less is better "
        "(default: only rank)",
    )
    database: str | None = option("--database", "SQLite file of results; what is in it is not measured again")
    dask: str | None = option("--dask", "address of a dask scheduler whose workers measure (default: here)")


@dataclass(frozen=True)
class Campaign(Options):
    """Random cases against independent judges; a counterexample is repeated by its seed.

    layoutalg campaign ragged --plans 200
    layoutalg campaign indirect --plans 200 --seed 7 --json
    """

    name: str = argument(
        "ragged: copies of drawn groups, counted row by row; indirect: drawn routings and paged sequences, entry by "
        "entry; MODULE:FUNCTION of yours, from a seed to what is wrong, empty if nothing"
    )
    plans: int = option("--plans", "number of cases", 1000)
    seed: int = option("--seed", "seed of the first case; the others follow", 1, type=arg.seed)
    workers: int = option("--workers", "number of processes; 1: here", 1)
    dask: str | None = option("--dask", "address of a dask scheduler whose workers take their place")
    budget: float = option("--budget", "seconds", 600.0)
