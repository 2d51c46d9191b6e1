"""Matrix transpose through swizzled shared memory: one text for NVIDIA, AMD and the CPU.

A block transposes one tile. Its threads read vectors along the rows, transpose small blocks in registers, store them to
shared memory as vectors along the rows of the result, and load what they write to global memory. ``synth.swizzle``
finds the shared layout for this pair of accesses.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from math import gcd

import numpy as np

from layoutalg.codegen.kernel import KernelSource, checked_name, signature
from layoutalg.codegen.kernels import answer
from layoutalg.codegen.kernels.answer import CHECK, ArrayKernel
from layoutalg.codegen.kernels.arguments import ends
from layoutalg.codegen.kernels.transpose_windows import transpose_windows_kernel
from layoutalg.codegen.kernels.turned import TileShape, fields, turned_words, vector_of
from layoutalg.codegen.portable import VECTOR_TYPES, portable_prelude
from layoutalg.codegen.thread_numbers import IntArray, Numbers
from layoutalg.ground.errors import Repair, RepresentabilityError
from layoutalg.proofs.swizzling import SwizzlePlan, TileAccess
from layoutalg.synth.swizzles import swizzle
from layoutalg.targets.banks import bank_model
from layoutalg.targets.registry import Target

PARAMETERS = (("const unsigned char*", "from"), ("unsigned char*", "into"))
WAYS = ("vectors", "windows")
MOST_REGISTER_BYTES = 256

_BODY = """
// {what}.
// A block turns a tile of {rows} x {cols}; a thread reads {take} elements of a row, writes {give} of a column.
{told}extern "C" __global__ void __launch_bounds__({threads}) {name}({signature})
{{
    const la_u32 t = threadIdx.x;
{origin}{parts}
    // Vectors along the rows of the source.
    const la_u32 row = row0 + {in_row}, col = col0 + {in_col};
{loads}
    // Transposed in registers, then to shared memory as vectors along the rows of the result.
{stores}    __syncthreads();

    const la_u32 to_row = row0 + {out_row}, to_col = col0 + {out_col};
{writes}}}
"""


def transpose_kernel(
    shape: Sequence[int],
    dtype: object,
    target: str = "sm_90a",
    *,
    tile: tuple[int, int] | None = None,
    threads: int = 256,
    vector_bytes: int = 16,
    group: int = 4,
    way: str | None = None,
    name: str | None = None,
) -> ArrayKernel:
    """Return the kernel that writes the transpose of a dense row-major matrix.

    Mathematically: ``into[c, r] = from[r, c]``.

    Args:
        shape: Rows and columns of the source, any extents.
        dtype: Element type by any of its names; 1, 2, 4 or 8 bytes.
        target: The target.
        tile: Rows and columns of a tile, powers of two; chosen by default.
        threads: Threads of a block.
        vector_bytes: Maximum bytes that a lane reads or writes at once: 4, 8 or 16.
        group: Number of vertically adjacent tiles that consecutive blocks process before moving right.
        way: ``"vectors"``: as above; rows of both sides must be 4-byte aligned. ``"windows"``: by whole sectors
            (``transpose_windows_kernel``, which chooses tile, threads and group itself). By default windows if rows of
            either side are not multiples of 16 bytes, elements have at most 4 bytes and no tile is given.
        name: Kernel symbol.

    Example:
        >>> made = transpose_kernel((8192, 8192), "f16")
        >>> made.kernel.threads, made.swizzle.conflict_free
        (256, True)

    Source: arXiv 2505.23819, section 5.4 (common complement of the two accesses).
    """
    rows, cols = answer.checked_shape(shape, 2)
    size, found = answer.element_bytes(dtype), answer.checked_target(target)
    answer.checked_threads(threads, found)
    if way is not None:
        CHECK.choice(way, "way", WAYS)
    ragged = rows * size % 16 != 0 or cols * size % 16 != 0
    if way == "windows" or (way is None and ragged and size <= 4 and tile is None):
        return transpose_windows_kernel(shape, dtype, target, name=name)
    if rows * size % 4 or cols * size % 4:
        what = "way" if way else "tile"
        raise CHECK.malformed(what, "needs 4-byte aligned rows (otherwise use way='windows')", (rows, cols))
    most = min(answer.power(vector_bytes, "vector_bytes", 4, 16), 8 if size == 1 else 16)
    group = CHECK.integer(group, "group", 1, 1 << 16)
    into, out = (max(gcd(extent * size, most), 4, size) for extent in (cols, rows))
    shape_of = _tile(tile, size, into, out, found, threads)
    held = shape_of.rows * shape_of.cols * size // threads
    if held > MOST_REGISTER_BYTES:
        raise CHECK.malformed("tile", f"must give a thread at most {MOST_REGISTER_BYTES} bytes", f"{held} bytes")
    smem = answer.fitting(shape_of.rows * shape_of.cols * size, target, f"a tile of {shape_of.rows} x {shape_of.cols}")
    plan = _swizzled(shape_of, 8 * size, target)
    what = f"transpose of {rows} x {cols} {answer.elements(size)}"
    name = f"la_transpose_{rows}x{cols}_b{8 * size}" if name is None else checked_name(name)
    across = -(-cols // shape_of.cols)
    blocks = answer.checked_grid(
        lambda extent: -(-extent // shape_of.rows) * across, rows, answer.most_blocks(found, threads), splits=False
    )
    text = _text(shape_of, plan, (rows, cols), size, (into, out), group, what, name, target)
    kernel = KernelSource(name, portable_prelude(target) + text, target, threads, smem, PARAMETERS)
    arrays = ends((rows, cols), (cols, rows), size, max(into, out))
    return ArrayKernel(kernel, blocks, what, 2 * rows * cols * size, arrays, plan, served=plan.served)


def _tile(tile: object, size: int, into: int, out: int, target: Target, threads: int) -> TileShape:
    """Return the tile; by default 64 elements or 128 bytes a side, whichever is more."""
    take, give, lanes = into // size, out // size, target.lanes
    if tile is None:
        height = width = max(64, 128 // size)
        while height * width < take * give * threads:
            height, width = (height, 2 * width) if width < height else (2 * height, width)
        extents = (height, width)
    else:
        given = tile if isinstance(tile, (tuple, list)) and len(tile) == 2 else None
        if given is None:
            raise CHECK.malformed("tile", "must be rows and columns", tile)
        extents = (answer.power(given[0], "tile", give, 1 << 12), answer.power(given[1], "tile", take, 1 << 12))
    if extents[0] * extents[1] < take * give * threads:
        rule = f"must have at least {take * give} elements per thread for {threads} threads"
        raise CHECK.malformed("tile", rule, extents)
    return TileShape(*extents, take, give, lanes, threads // lanes)


@lru_cache(maxsize=64)
def tile_swizzle(shape: TileShape, element_bits: int, target: str) -> SwizzlePlan:
    """Return the shared layout for a tile stored in read order and loaded in write order.

    Args:
        shape: The tile.
        element_bits: Bits of an element.
        target: The target; if its banks are unpublished, the layout of sm_90a (32 lanes) or gfx942 (64) is used, and
            the plan says so.

    Raises: RepresentabilityError: LA912, if the banks of its accesses are published for neither.
    """
    accesses = (TileAccess(shape.reader, "store"), TileAccess(shape.writer))
    relative = "sm_90a" if shape.lanes == 32 else "gfx942"
    found = []
    for known in (target, relative):
        try:
            found.append(swizzle(accesses, known, element_bits))
        except RepresentabilityError:
            if known == relative and not found:
                raise
    return min(found, key=lambda plan: sum(each.count for each in plan.served))


def _swizzled(shape: TileShape, element_bits: int, target: str) -> SwizzlePlan:
    """The same; a refusal suggests a larger tile that works."""
    try:
        return tile_swizzle(shape, element_bits, target)
    except RepresentabilityError as error:
        refused = error
    for down, across in ((2, 1), (1, 2), (2, 2), (4, 2), (2, 4), (4, 4)):
        larger = replace(shape, rows=down * shape.rows, cols=across * shape.cols)
        try:
            tile_swizzle(larger, element_bits, target)
        except RepresentabilityError:
            continue
        repair = Repair("use a larger tile", f"tile=({larger.rows}, {larger.cols})")
        raise RepresentabilityError(replace(refused.diagnostic, repairs=(repair,)))
    raise refused


def vectors(plan: SwizzlePlan, access: int, element_bytes: int) -> list[tuple[int, ...]]:
    """Return the registers of every instruction of a thread, in shared-memory order."""
    served = plan.served[access]
    count = bank_model(served.target, served.instruction).access_bytes // element_bytes
    order = np.argsort(_offsets(plan, access, 1)[0], kind="stable").tolist()
    return [tuple(order[first : first + count]) for first in range(0, len(order), count)]


def _offsets(plan: SwizzlePlan, access: int, size: int) -> IntArray:
    """Byte offset in shared memory by thread and register."""
    layout = plan.smem @ plan.accesses[access].layout
    registers = layout.in_dims["register"]
    return np.asarray(layout.table(), dtype=np.int64).reshape(-1, registers) * size


def _text(
    shape: TileShape, plan: SwizzlePlan, extents: tuple[int, int], size: int, widths: tuple[int, int], group: int,
    what: str, name: str, target: str,
) -> str:  # fmt: skip
    rows, cols = extents
    numbers = Numbers()
    reader, writer = (_coordinates(layout, shape) for layout in (shape.reader, shape.writer))
    in_row, in_col = (numbers.text(reader[:, 0, axis]) for axis in range(2))
    out_row, out_col = (numbers.text(writer[:, 0, axis]) for axis in range(2))
    names = (f"w{number}" for number in itertools.count())
    loads, stores, writes = list[str](), list[str](), list[str]()
    loads.append(f"    const unsigned char* at = from + ((la_u64)row * {cols}u + col) * {size}u;")
    store_at, load_at = _offsets(plan, 0, size), _offsets(plan, 1, size)
    block = shape.take * shape.give
    packed = max(1, 4 // size)
    word_of: dict[tuple[int, int], list[str]] = {}  # (step and column, rows / packed) -> words of its elements
    for step in range(shape.steps):
        held = []
        for line in range(shape.give):
            row, col = (int(value) for value in reader[0, step * block + line])
            held.append(fields(widths[0] // 4, f"a{step}_{line}"))
            loads += _load(f"a{step}_{line}", row, col, extents, size, widths[0])
        lines, columns = turned_words(held, size, names)
        stores += [f"    {line}" for line in lines]
        wide = max(1, size // 4)
        for column, words in enumerate(columns):
            for first in range(0, len(words), wide):
                word_of[step * shape.take + column, first // wide] = words[first : first + wide]
    for run in vectors(plan, 0, size):
        words = [word for register in run[::packed] for word in word_of[_word(register, shape, packed)]]
        place = numbers.alone(store_at[:, run[0]])
        stores.append(f"    la_shared_store_b{32 * len(words)}({place}, {vector_of(words, widths[0] // 4, target)});")
    word_of.clear()
    loaded = 0
    for number, run in enumerate(vectors(plan, 1, size)):
        kind = VECTOR_TYPES[len(run) * size]
        writes.append(
            f"    const {kind} b{number} = la_shared_load_b{8 * len(run) * size}({numbers.alone(load_at[:, run[0]])});"
        )
        loaded = len(run) * size // 4
        parts = iter(fields(loaded, f"b{number}"))
        for register in run[::packed]:
            word_of[_word(register, shape, packed)] = [next(parts) for _ in range(max(1, size // 4))]
    writes.append(f"    unsigned char* to = into + ((la_u64)to_col * {rows}u + to_row) * {size}u;")
    for column in range(shape.steps * shape.take):
        row, col = (int(value) for value in writer[0, column * shape.give])
        words = [word for part in range(shape.give // packed) for word in word_of[column, part]]
        writes += _write(vector_of(words, loaded, target), row, col, extents, size, widths[1])
    told = "".join(f"// {each}\n" for each in plan.served)
    return "".join(numbers.tables) + _BODY.format(
        what=answer.sentence(what), rows=shape.rows, cols=shape.cols, take=shape.take, give=shape.give, told=told,
        threads=shape.lanes * shape.warps, name=name, signature=signature(PARAMETERS),
        origin=_origin(shape, extents, group), parts=numbers.declared(), in_row=in_row, in_col=in_col,
        loads="".join(f"{line}\n" for line in loads), stores="".join(f"{line}\n" for line in stores),
        out_row=out_row, out_col=out_col, writes="".join(f"{line}\n" for line in writes),
    )  # fmt: skip


def _word(register: int, shape: TileShape, packed: int) -> tuple[int, int]:
    """(step and column, rows / packed) of a register."""
    return register // shape.give, register % shape.give // packed


def _coordinates(layout: object, shape: TileShape) -> IntArray:
    """Row and column by thread and register: int64[threads, registers, 2]."""
    table = np.asarray(layout.table(), dtype=np.int64)  # type: ignore[attr-defined]
    row, col = table % shape.rows, table // shape.rows
    return np.stack([row, col], axis=-1).reshape(shape.lanes * shape.warps, -1, 2)


def _origin(shape: TileShape, extents: tuple[int, int], group: int) -> str:
    """Statements that select a block's tile: groups of tile rows, top to bottom within each."""
    down, across = -(-extents[0] // shape.rows), -(-extents[1] // shape.cols)
    group = min(group, down)
    if group == 1:
        where = f"const la_u32 down = blockIdx.x / {across}u, across = blockIdx.x % {across}u;"
        return f"    {where}\n    const la_u32 row0 = down * {shape.rows}u, col0 = across * {shape.cols}u;\n"
    lines = [
        f"const la_u32 above = blockIdx.x / {group * across}u * {group}u, inside = blockIdx.x % {group * across}u;",
        f"const la_u32 high = {down}u - above < {group}u ? {down}u - above : {group}u;",
        f"const la_u32 row0 = (above + inside % high) * {shape.rows}u, col0 = inside / high * {shape.cols}u;",
    ] if down % group else [
        f"const la_u32 above = blockIdx.x / {group * across}u * {group}u, inside = blockIdx.x % {group * across}u;",
        f"const la_u32 row0 = (above + inside % {group}u) * {shape.rows}u, col0 = inside / {group}u * {shape.cols}u;",
    ]  # fmt: skip
    return "".join(f"    {line}\n" for line in lines)


def _sum(name: str, more: int) -> str:
    return f"{name} + {more}u" if more else name


def _inside(row: str, more_rows: int, col: str, more_cols: int, extents: tuple[int, int]) -> str:
    return f"{_sum(row, more_rows)} < {extents[0]}u && {_sum(col, more_cols)} < {extents[1]}u"


def _load(value: str, row: int, col: int, extents: tuple[int, int], size: int, width: int) -> list[str]:
    """Statements that read a vector ``row`` rows and ``col`` columns after the thread's first."""
    ahead = (row * extents[1] + col) * size
    inside = _inside("row", row, "col", col, extents)
    kind = VECTOR_TYPES[width]
    zero = " = 0u" if width == 4 else " = {}"
    return [f"    {kind} {value}{zero};", f"    if ({inside}) {value} = *(const {kind}*){_wide('at', ahead)};"]


def _wide(name: str, more: int) -> str:
    return f"({name} + {more}{'ull' if more >= 1 << 31 else 'u'})" if more else name


def _write(value: str, row: int, col: int, extents: tuple[int, int], size: int, width: int) -> list[str]:
    """Statements that write a vector along the rows, ``row`` rows and ``col`` columns after the thread's first."""
    ahead = (col * extents[0] + row) * size
    inside = _inside("to_row", row, "to_col", col, extents)
    return [f"    if ({inside}) *({VECTOR_TYPES[width]}*){_wide('to', ahead)} = {value};"]
