"""Accesses to a shared-memory tile by name instead of by layout.

``rows`` and ``columns`` give every lane 16 bytes along a row or a column, consecutive lanes along it; ``ldmatrix``,
``stmatrix`` and their ``.trans`` variants, with or without ``.x4``, are the fragments of matrices of 8 rows of 16
bytes; ``mma.A`` (M x K), ``mma.B`` (N x K) and ``mma.C`` (M x N) are the fragments of ``mma.sync``, moved by ordinary
loads and stores. One warp moves the whole tile.
"""

from __future__ import annotations

from collections.abc import Sequence

from layoutalg.f2 import LinearLayout
from layoutalg.proofs.swizzling import CHECK
from layoutalg.targets.layouts.nvidia import mma_accumulator, mma_operand
from layoutalg.targets.nvidia.accesses import SHORT, short_name

FRAGMENTS = ("mma.A", "mma.B", "mma.C")
NAMES = ("rows", "columns", *SHORT, *FRAGMENTS)


def is_name(value: object) -> bool:
    """Whether a value is the name of an access.

    Example:
        >>> is_name("ldmatrix.x4"), is_name("rows"), is_name("(4,8):(1,4)")
        (True, True, False)
    """
    return isinstance(value, str) and short_name(value.strip()) in NAMES


def lanes_text(name: str, element_bits: int) -> str:
    """Return in words which elements each lane of a named access moves.

    Example:
        >>> lanes_text("ldmatrix", 16)
        '8 lanes per 8 x 16-byte matrix, each at the start of a row; matrices go down the rows first'
        >>> lanes_text("columns", 16)
        'neighbouring lanes along a column, 8 elements each'
    """
    name = short_name(name)
    if name in SHORT:
        if name.endswith("trans"):
            return "8 lanes per 8 x 16-byte matrix, each at the start of a row; matrices go along the rows first"
        return "8 lanes per 8 x 16-byte matrix, each at the start of a row; matrices go down the rows first"
    if name in FRAGMENTS:
        return f"the lanes of one warp as in operand {name[-1]} of mma.sync"
    along = "row" if name == "rows" else "column"
    return f"neighbouring lanes along a {along}, {max(1, 128 // element_bits)} elements each"


def named(name: str, tile: tuple[int, ...], element_bits: int, lanes: int) -> LinearLayout:
    """Return the register layout of a named access: (register, lane) to tile coordinates.

    Args:
        name: One of ``NAMES``.
        tile: The two extents, powers of two, outermost first.
        element_bits: Bits of an element.
        lanes: Lanes of a warp or wave.

    Example:
        >>> print(named("ldmatrix", (16, 16), 16, 32))
        F2[register=(0,1)(8,0)(0,8), lane=(0,2)(0,4)(1,0)(2,0)(4,0) -> row:16, col:16]
        >>> print(named("mma.B", (8, 16), 16, 32))
        F2[register=(0,1)(0,8), lane=(0,2)(0,4)(1,0)(2,0)(4,0) -> row:8, col:16]
    """
    name = short_name(name)
    if len(tile) != 2:
        raise CHECK.malformed("tile", f"must have two extents for {name}", tile)
    held: Sequence[tuple[int, ...]]
    rest: Sequence[tuple[int, ...]]
    rows = [(1 << bit, 0) for bit in range(tile[0].bit_length() - 1)]
    columns = [(0, 1 << bit) for bit in range(tile[1].bit_length() - 1)]
    wave = lanes.bit_length() - 1
    wide = max(0, (128 // element_bits).bit_length() - 1)
    if name not in ("rows", "columns") and wave != 5:
        raise CHECK.malformed("accesses", f"{name} needs warps of 32 lanes", lanes)
    if name in FRAGMENTS:
        held, rest = _fragment(name, tile, element_bits)
    elif name in SHORT:
        word = 1 if name.endswith("trans") else max(0, (32 // element_bits).bit_length() - 1)
        if len(rows) < 3 or len(columns) < wide or element_bits > 32:
            rule = f"must have at least 8 rows of 16 bytes for {name}, elements of at most 32 bits"
            raise CHECK.malformed("tile", rule, f"{tile} of {element_bits} bits")
        first, second = (rows[:3], columns[:wide]) if name.endswith("trans") else (columns[:wide], rows[:3])
        held, rest = first[:word], [*first[word:], *second, *rows[3:], *columns[wide:]]
    else:
        inner, outer = (columns, rows) if name == "rows" else (rows, columns)
        held, rest = inner[:wide], inner[wide:] + outer
    if len(rest) < wave:
        raise CHECK.malformed("tile", f"must have 16 bytes for each of {lanes} lanes", tile)
    return LinearLayout.from_bases(
        {"register": [*held, *rest[wave:]], "lane": rest[:wave]}, {"row": tile[0], "col": tile[1]}
    )


def _fragment(
    name: str, tile: tuple[int, ...], element_bits: int
) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Return the images of the bits of a lane's first word, then those of the lanes and the other registers."""
    depth, least = 8 * max(1, 32 // element_bits), (8 if name == "mma.B" else 16)
    wanted = (16, 8) if name == "mma.C" else (least, depth)
    if tile[0] < wanted[0] or tile[1] < wanted[1] or element_bits > 32:
        rule = f"must be at least {wanted[0]} x {wanted[1]} for {name}, elements of 8 to 32 bits"
        raise CHECK.malformed("tile", rule, f"{tile} of {element_bits} bits")
    if name == "mma.C":
        bases = mma_accumulator(tile, (1, 1)).bases
    else:
        shape = tile if name == "mma.A" else tile[::-1]
        bases = mma_operand(name[-1], shape, (1, 1), max(1, 32 // element_bits)).bases
    turned = {axis: [image[:: -1 if name == "mma.B" else 1] for image in bases[axis]] for axis in ("register", "lane")}
    return [], [*turned["lane"], *turned["register"]]
