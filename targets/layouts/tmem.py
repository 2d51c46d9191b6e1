"""Tensor memory of Blackwell: where a tensor sits in it, and which register layouts load and store it.

Notation: tensor memory has 128 rows ("lanes" in PTX) and up to 512 columns of 32 bits per block; element columns of
narrower packed elements are counted in elements.

References: PTX ISA 9.1 section 9.7.16 (tcgen05: tensor memory, data path layouts, tcgen05.ld and tcgen05.st); Triton
3.9.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, Repair, RepresentabilityError
from layoutalg.targets.layouts.tile import (
    Vector,
    cga_bases,
    choice,
    dims,
    extents,
    flag,
    integer,
    malformed,
    power,
    powers,
    shape_per_cta,
)

ATOM_SOURCE = "PTX ISA 9.1 section 9.7.16 (tcgen05.ld, tcgen05.st shapes)"
TMEM_SOURCE = "PTX ISA 9.1 section 9.7.16 (tcgen05 data path layouts); Triton 3.9.0 TensorMemoryLayout"
ROWS = 128
WORD_COLUMNS = 512
"""Columns of 32 bits of one CTA's tensor memory (PTX ISA 9.1 section 9.7.16, tensor memory)."""

ATOMS: Mapping[str, tuple[tuple[Vector, ...], tuple[Vector, ...]]] = MappingProxyType(
    {
        "32x32b": ((), ((1, 0), (2, 0), (4, 0), (8, 0), (16, 0))),
        "16x64b": ((), ((8, 0), (0, 1), (1, 0), (2, 0), (4, 0))),
        "16x128b": (((8, 0),), ((0, 1), (0, 2), (1, 0), (2, 0), (4, 0))),
        "16x256b": (((0, 1), (8, 0)), ((0, 2), (0, 4), (1, 0), (2, 0), (4, 0))),
    }
)
"""Per access shape the (row, column) images of the register bits and of the lane bits, 32-bit columns."""
SPLIT_ATOM = "16x32bx2"
"""The access whose upper 16 lanes access a second run of columns of the same rows."""


def tmem_atom(shape: str, repeat: int = 1, split_columns: int | None = None) -> LinearLayout:
    """Return which row and 32-bit column each lane and register of one ``tcgen05.ld``/``tcgen05.st`` moves.

    Mathematically, lane t and register r: 32x32b row t, column r; 16x64b row t div 4 + 8 (t mod 2), column (t div 2)
    mod 2; 16x128b row t div 4 + 8 r, column t mod 4; 16x256b row t div 4 + 8 (r div 2), column 2 (t mod 4) + r mod 2;
    16x32bx2 row t mod 16, column r + s (t div 16). Repetition continues to the right.

    Args:
        shape: A key of ``ATOMS``, or ``"16x32bx2"``.
        repeat: The ``.xN`` count, a power of two up to 128 registers.
        split_columns: The immediate s of 16x32bx2, in 32-bit columns; None for ``repeat``, one run of columns.

    Example:
        >>> str(tmem_atom("16x128b"))
        'F2[register=(8,0), lane=(0,1)(0,2)(1,0)(2,0)(4,0) -> row:16, col:4]'
        >>> str(tmem_atom("16x32bx2", 2, 6))
        'F2[register=(0,1), lane=(1,0)(2,0)(4,0)(8,0)(0,6) -> row:16, col:8]'

    Source: PTX ISA 9.1 section 9.7.16 (tcgen05.ld).
    """
    count = power(repeat, "repeat")
    if isinstance(shape, str) and shape == SPLIT_ATOM:
        return _split_atom(count, split_columns)
    if split_columns is not None:
        raise malformed("split_columns", f"must be None for every shape but {SPLIT_ATOM}", split_columns)
    registers, lanes = _atom(shape, (*ATOMS, SPLIT_ATOM))
    if count << len(registers) > ROWS:
        raise malformed(
            "repeat", f"must give at most 128 registers, {1 << len(registers)} each", count, "LA701", ATOM_SOURCE
        )
    rows, columns = extents((*registers, *lanes), 2)
    more = tuple((0, columns << bit) for bit in range(count.bit_length() - 1))
    return LinearLayout.from_bases(
        {"register": (*registers, *more), "lane": lanes}, (("row", rows), ("col", columns * count))
    )


def _split_atom(count: int, split_columns: int | None) -> LinearLayout:
    split = count if split_columns is None else integer(split_columns, "split_columns")
    if count > ROWS:
        raise malformed("repeat", "must give at most 128 registers", count, "LA701", ATOM_SOURCE)
    if split % count:
        raise RepresentabilityError(
            Diagnostic(
                code="LA702",
                what="this tensor memory access is not linear over F2",
                where=(f"{SPLIT_ATOM}.x{count}", f"split_columns={split}"),
                repairs=(Repair("move the second run", f"split_columns = {(split // count + 1) * count}"),),
                because=f"columns r + {split} h with r < {count} carry; use a multiple of {count}",
                witness={"register": 1 << ((split & -split).bit_length() - 1), "lane": 16},
                source=ATOM_SOURCE,
            )
        )
    registers = tuple((0, 1 << bit) for bit in range(count.bit_length() - 1))
    lanes = ((1, 0), (2, 0), (4, 0), (8, 0), (0, split))
    columns = extents((*registers, *lanes), 2)[1]
    return LinearLayout.from_bases({"register": registers, "lane": lanes}, (("row", 16), ("col", columns)))


def tensor_memory(
    shape: Sequence[int],
    block: Sequence[int],
    column_stride: int = 1,
    two_ctas: bool = False,
    cga: Sequence[Sequence[int]] = (),
    fp4_padded: bool = False,
) -> LinearLayout:
    """Return where a tensor sits in tensor memory: (row, col, block) -> (dim0, dim1).

    Mathematically: a block of 128 rows fills the rows; one of 64 rows uses rows 0..15 of each 32-row quarter, the other
    half holding the next block along dim0, else along dim1, else nothing (a zero vector); with two CTAs the upper half
    of a 64-row block's columns lies in rows 64..127. Further blocks follow in columns, dim0 first.

    Args:
        shape: Tensor shape M x N, powers of two.
        block: Rows (64 or 128) and columns of one matrix instruction's tile.
        column_stride: Element columns from one element to the next: 1 packed, 32 / element bits unpacked.
        two_ctas: Whether a pair of blocks shares the instruction; the first cluster basis is then (1, 0).
        cga: Cluster bases in units of one block's part.
        fp4_padded: Bytes of two 4-bit elements, each in two bytes of tensor memory (operand A of the f8f6f4 kinds); the
            second byte is not an element of its own. Packed columns only.

    Example:
        >>> str(tensor_memory((128, 4), (128, 4)))
        'F2[row=(1,0)(2,0)(4,0)(8,0)(16,0)(32,0)(64,0), col=(0,1)(0,2), block= -> dim0:128, dim1:4]'

    Source: PTX ISA 9.1 section 9.7.16 (data path layouts D, E, F); Triton 3.9.0 ``TensorMemoryLayout``.
    """
    sizes = powers(shape, "shape", 2)
    rows, width = powers(block, "block", 2)
    choice(rows, "block[0]", (64, 128), TMEM_SOURCE)
    stride = choice(column_stride, "column_stride", (1, 2, 4), TMEM_SOURCE)
    if flag(fp4_padded, "fp4_padded"):
        if stride != 1:
            raise malformed("column_stride", "must be 1 with fp4_padded", stride, "LA701", TMEM_SOURCE)
        stride = 2
    paired = flag(two_ctas, "two_ctas")
    bases = cga_bases(cga, 2)
    if paired and bases[:1] != ((1, 0),):
        raise malformed(
            "cga", "must start with (1, 0) with two_ctas: the pair divides the rows", bases, "LA701", TMEM_SOURCE
        )
    part = shape_per_cta(sizes, bases)
    columns = min(width, part[1])
    split = extents(bases, 2)
    if split[0] > sizes[0] or split[1] > sizes[1] or part[0] < rows or (rows == 64 and paired and columns < 2):
        raise AdmissibilityError(
            Diagnostic(
                code="LA706",
                what="the tensor does not fill one tensor memory tile",
                where=(f"shape={sizes}", f"block={(rows, width)}", f"cga={bases}"),
                because=f"{split} blocks have a part of {part} each; the tile has {rows} rows",
                witness={"part": part},
                source=TMEM_SOURCE,
            )
        )
    col: list[Vector] = [
        *((0, 0),) * (stride.bit_length() - 1),
        *((0, 1 << bit) for bit in range(columns.bit_length() - 1)),
    ]
    row: list[Vector] = [(1 << bit, 0) for bit in range(rows.bit_length() - 1)]
    covered = [rows, columns]
    if rows == 64 and not paired:
        if part[0] > rows:
            covered[0], half = 2 * rows, (rows, 0)
        elif part[1] > columns:
            covered[1], half = 2 * columns, (0, columns)
        else:
            half = (0, 0)
        row.insert(4, half)
    elif rows == 64:
        row.append(col.pop())
    for dim in (0, 1):
        col += [
            tuple(covered[dim] << bit if index == dim else 0 for index in range(2))
            for bit in range((part[dim] // covered[dim]).bit_length() - 1)
        ]
    if 1 << len(col) > 4 * WORD_COLUMNS:
        raise AdmissibilityError(
            Diagnostic(
                code="LA706",
                what="the tensor does not fit tensor memory",
                where=(f"shape={sizes}", f"block={(rows, width)}", f"cga={bases}"),
                because=f"it needs {1 << len(col)} columns; there are {WORD_COLUMNS} of 32 bits, "
                f"{4 * WORD_COLUMNS} of the smallest elements",
                witness={"columns": 1 << len(col)},
                source=TMEM_SOURCE,
            )
        )
    blocks = tuple(tuple(step * size for step, size in zip(vector, part, strict=True)) for vector in bases)
    return LinearLayout.from_bases(
        (("row", row), ("col", col), ("block", blocks)), tuple(zip(dims(2), sizes, strict=True))
    )


def tmem_registers(memory: LinearLayout, atom: str, warps: int, element_bits: int = 32) -> LinearLayout:
    """Return the register layout with which warps load or store a tensor in tensor memory, using one access shape.

    Mathematically: ``memory`` after the map (register, lane, warp, block) -> (row, col, block) that starts with the
    access shape on 32-bit columns, sends the first two warp bits to rows 32 and 64, the 16-row shapes' missing row 16
    to a warp (of more than four) or a register, the columns to registers and the remaining warps to the last columns;
    warps beyond the columns hold copies. Elements narrower than 32 bits are packed (adjacent) or unpacked (one per
    32-bit column).

    Args:
        memory: As ``tensor_memory`` returns it.
        atom: A key of ``ATOMS``.
        warps: Number of warps, a power of two of at least 4.
        element_bits: 8, 16 or 32; 8 for scale factors.

    Example:
        >>> str(tmem_registers(tensor_memory((128, 4), (128, 4)), "32x32b", 4))
        'F2[register=(0,1)(0,2), lane=(1,0)(2,0)(4,0)(8,0)(16,0), warp=(32,0)(64,0), block= -> dim0:128, dim1:4]'

    Source: PTX ISA 9.1 section 9.7.16 (tcgen05.ld access restrictions); Triton 3.9.0 ``compute_tmem_reg_layout``.
    """
    _atom(atom, tuple(ATOMS))
    if not isinstance(memory, LinearLayout) or tuple(memory.in_dims) != ("row", "col", "block") or memory.constant:
        raise malformed("memory", "must be a LinearLayout of row, col and block without a constant", memory)
    if dict(memory.in_axes)["row"] != 7 or len(memory.out_axes) != 2:
        raise malformed("memory", "must have 128 rows and two output dimensions", memory)
    count = power(warps, "warps")
    if count < 4:
        raise malformed("warps", "must be at least 4: one warp per 32-row quarter", count)
    bits = power(element_bits, "element_bits")
    if bits not in (8, 16, 32):
        raise malformed("element_bits", "must be 8, 16 or 32", bits)
    if bits != 8 and not any(map(any, memory.bases["row"][5:])):
        raise malformed("element_bits", "must be 8 if all quarters hold copies (scale factors)", bits)
    answer = _moved(memory, atom, count, bits)
    if isinstance(answer, LinearLayout):
        return answer
    works = [name for name in ATOMS if isinstance(_moved(memory, name, count, bits), LinearLayout)]
    raise AdmissibilityError(
        Diagnostic(
            code="LA707",
            what="this tensor cannot be moved with that access shape",
            where=(str(memory), f"atom={atom!r}"),
            because=answer,
            repairs=tuple(Repair("use another access shape", f"atom = {name!r}") for name in works),
            source=ATOM_SOURCE,
        )
    )


def _moved(memory: LinearLayout, atom: str, count: int, bits: int) -> LinearLayout | str:
    """Return the layout of ``tmem_registers`` for checked arguments, or the reason for its absence."""
    registers, lanes = ATOMS[atom]
    rows, columns, packed = _words(memory, bits)
    if columns is None:
        return "its columns hold neither packed nor unpacked elements"
    while columns and not any(columns[-1]):
        # the last columns are copies of earlier ones and are not moved
        columns = columns[:-1]
    if 1 << len(columns) > WORD_COLUMNS:
        return f"it needs {1 << len(columns)} columns of 32 bits, tensor memory has {WORD_COLUMNS}"
    scale = 1 << packed
    low = tuple((0, 1 << bit) for bit in range(packed))

    def place(image: Vector) -> Vector:
        return _xor(rows, columns, image)

    width = extents((*registers, *lanes), 2)[1]
    missing = (1 << len(columns)) // width
    if missing == 0:
        return f"it has {1 << len(columns)} columns of 32 bits, the access needs {width}"
    whole = atom == "32x32b"
    # with half-filled quarters lane bit 4 of 32x32b is taken from the columns below, so it may be empty here
    needed = [place(image) for image in (*registers, *(lanes[:-1] if whole else lanes))]
    if _rank(needed, memory) < len(needed):
        return "some register or lane would hold no element of its own"
    half_empty = rows[4] == (0, 0)
    row16 = "" if whole or half_empty else "warp" if count > 4 else "register"
    spread = count // (8 if row16 == "warp" else 4)
    copies = spread // min(missing, spread)
    spread //= copies
    missing //= spread
    run = missing.bit_length() - 1
    if run and whole and half_empty:
        lanes = (*lanes[:-1], (0, width << (run - 1)))
        run -= 1
        right = width << (run + 1)
    else:
        right = width << run
    registers = (*registers, *((0, width << bit) for bit in range(run)))
    warp: list[Vector] = [(32, 0), (64, 0)]
    if row16 == "warp":
        warp.append((16, 0))
    elif row16 == "register":
        registers = (*registers, (16, 0))
    warp += [(0, right << bit) for bit in range(spread.bit_length() - 1)]
    widened = {
        "register": (*low, *(_scaled(place(image), scale) for image in registers)),
        "lane": tuple(_scaled(place(image), scale) for image in lanes),
        "warp": (*(_scaled(place(image), scale) for image in warp), *((0, 0),) * (copies.bit_length() - 1)),
        "block": memory.bases["block"],
    }
    return LinearLayout.from_bases(widened, memory.out_dims)


def _words(memory: LinearLayout, bits: int) -> tuple[tuple[Vector, ...], tuple[Vector, ...] | None, int]:
    """Return the images of rows and of 32-bit columns in units of words, and log2 of the elements per word.

    Packed elements are divided out of the low columns; unpacked ones leave zero vectors there, of which 16-bit elements
    are then moved two at a time. None if the columns are neither.
    """
    rows: tuple[Vector, ...] = memory.bases["row"]
    columns: tuple[Vector, ...] = memory.bases["col"]
    packed = 0
    while bits < 32:
        steps = 0
        while bits << (steps + 1) <= 32 and _divides(rows, columns, 0, steps + 1):
            steps += 1
        if steps:
            rows, columns = _divided(rows, columns, 0, steps)
            packed, bits = packed + steps, bits << steps
            continue
        zeros = (32 // bits).bit_length() - 1
        if bits == 16 and _divides(rows, columns, zeros, 1):
            rows, columns = _divided(rows, columns, zeros, 1)
            return rows, columns, packed + 1
        if _divides(rows, columns, zeros, 0):
            return *_divided(rows, columns, zeros, 0), packed
        return rows, columns if not columns else None, packed
    return rows, columns, packed


def _divides(rows: tuple[Vector, ...], columns: tuple[Vector, ...], zeros: int, ones: int) -> bool:
    """Whether the columns start with ``zeros`` copies, then ``ones`` unit steps of dim1 that nothing else touches."""
    if len(columns) < zeros + ones or any(any(image) for image in columns[:zeros]):
        return False
    if columns[zeros : zeros + ones] != tuple((0, 1 << bit) for bit in range(ones)):
        return False
    return all(image[1] & ((1 << ones) - 1) == 0 for image in (*rows, *columns[zeros + ones :]))


def _divided(
    rows: tuple[Vector, ...], columns: tuple[Vector, ...], zeros: int, ones: int
) -> tuple[tuple[Vector, ...], tuple[Vector, ...]]:
    def shift(image: Vector) -> Vector:
        return (image[0], image[1] >> ones)

    return tuple(map(shift, rows)), tuple(map(shift, columns[zeros + ones :]))


def _xor(rows: tuple[Vector, ...], columns: tuple[Vector, ...], image: Vector) -> Vector:
    """Return the tensor coordinate, in words, of a (row, column) difference."""
    answer = [0, 0]
    for part, table in ((image[0], rows), (image[1], columns)):
        for bit, step in enumerate(table):
            if part >> bit & 1:
                answer[0] ^= step[0]
                answer[1] ^= step[1]
    return (answer[0], answer[1])


def _scaled(image: Vector, scale: int) -> Vector:
    return (image[0], image[1] * scale)


def _rank(images: Sequence[Vector], memory: LinearLayout) -> int:
    return LinearLayout.from_bases({"lane": tuple(images)}, memory.out_dims).rank


def _atom(shape: object, known: tuple[str, ...]) -> tuple[tuple[Vector, ...], tuple[Vector, ...]]:
    if not isinstance(shape, str) or shape not in known:
        argument = "shape" if SPLIT_ATOM in known else "atom"
        hint = "" if SPLIT_ATOM in known else " (32x32b becomes 16x32bx2 automatically if quarters are half empty)"
        raise malformed(argument, f"must be one of {known}{hint}", shape, "LA701", ATOM_SOURCE)
    return ATOMS[shape]
