"""Matrix transpose with the copy engine: tiles arrive and leave swizzled, threads transpose small blocks in between.

A tile and its transpose are stored with the 128-byte swizzle: the number of a 16-byte chunk is XORed with the row
modulo 8. Threads transpose blocks of one chunk a side; lane bits 0 to 2 step along a diagonal, i.e. through the chunks
of both sides at once, so that the eight lanes of a group access eight different chunks when they load and when they
store. Turns are counted when the text is generated.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import prod

import numpy as np

from layoutalg.codegen.kernel import checked_name
from layoutalg.codegen.kernels import answer
from layoutalg.codegen.kernels.answer import CHECK, PERSISTENT_GRID, ArrayKernel
from layoutalg.codegen.kernels.arguments import ends
from layoutalg.codegen.kernels.ring import PARAMETERS, checked_tiles, mover, origins, tile_plan, tiles_of_block
from layoutalg.codegen.kernels.turned import fields, turned_words, vector_of
from layoutalg.codegen.pipeline.emission import emit
from layoutalg.codegen.pipeline.program import WARP, Loop, Program, Worker
from layoutalg.codegen.thread_numbers import IntArray, Numbers
from layoutalg.f2 import LinearLayout
from layoutalg.proofs.pipeline import Barrier, Buffer, Op, Pipeline, Role
from layoutalg.proofs.served import Served, counted
from layoutalg.targets.nvidia.swizzles import CHUNK_BYTES, SWIZZLE_TABLE

CHUNK, SPAN = CHUNK_BYTES, SWIZZLE_TABLE["128B"].span_bytes
MOST_REGISTER_BYTES = 256


def transpose_ring_kernel(
    shape: Sequence[int],
    dtype: object,
    target: str = "sm_90a",
    *,
    tile: tuple[int, int] | None = None,
    threads: int | None = None,
    stages: int = 2,
    leaving: int = 2,
    down: bool = False,
    name: str | None = None,
) -> ArrayKernel:
    """Return the kernel that transposes a dense matrix with the copy engine on both sides.

    Args:
        shape: Rows and columns; both must be multiples of 16 bytes.
        dtype: Element type; 1, 2, 4 or 8 bytes.
        target: A target with tensor maps.
        tile: Rows and columns of a tile, powers of two of at least 128 bytes; default 128 bytes a side.
        threads: Threads that turn; by default one per small block of a tile, at most 256.
        stages: Tiles loaded ahead, 1 to 8.
        leaving: Transposed tiles with stores in flight, 1 to 4.
        down: Whether consecutive blocks process tiles top to bottom instead of left to right.
        name: Kernel symbol.

    Raises: MalformedError: LA945, LA340, LA375, LA506. InfeasibleError: LA946, LA948. InadmissibleError: no descriptor
        does it.

    Example:
        >>> made = transpose_ring_kernel((8192, 8192), "f32")
        >>> [each.turns == each.ideal for each in made.served]
        [True, True]
    """
    rows, cols = answer.checked_shape(shape, 2)
    size, found = answer.element_bytes(dtype), answer.checked_target(target)
    if not found.has_tensor_maps:
        raise CHECK.malformed("target", "must have a copy engine for tensors", target)
    least = SPAN // size
    given = (least, least) if tile is None else tuple(tile) if isinstance(tile, (tuple, list)) else ()
    if len(given) != 2:
        raise CHECK.malformed("tile", "must be rows and columns", tile)
    height, width = (answer.power(extent, "tile", least, 256) for extent in given)
    side = CHUNK // size
    blocks = height * width // side**2
    threads = min(blocks, 256) if threads is None else answer.checked_threads(threads, found)
    if blocks % threads or blocks // threads * side * CHUNK > MOST_REGISTER_BYTES:
        rule = f"must divide {blocks} blocks of {side * CHUNK} bytes, at most {MOST_REGISTER_BYTES} bytes per thread"
        raise CHECK.malformed("threads", rule, threads)
    stage = height * width * size
    CHECK.integer(stages, "stages", 1, 9)
    CHECK.integer(leaving, "leaving", 1, 5)
    load = tile_plan((rows, cols), dtype, (height, width), "128B", target, "load")
    store = tile_plan((cols, rows), dtype, (width, height), "128B", target, "store")
    counts = checked_tiles((rows, cols), (height, width), stages)
    what = f"transpose of {rows} x {cols} {answer.elements(size)} by the copy engine"
    name = f"la_transpose_{rows}x{cols}_b{8 * size}_tma" if name is None else checked_name(name)
    order = (0, 1) if down else (1, 0)
    numbers = Numbers()
    loads, stores, served = turning((height, width), size, threads, numbers, target)
    origin = f"const int tile = (int)blockIdx.x + k * {PERSISTENT_GRID};\n"
    into = origins((width, height), tuple(1 - dim for dim in order), counts[::-1])
    bodies = (
        ("loop[1]", "\n".join(["const la_u32 came = $A_byte;", *loads])),
        ("loop[5]", "\n".join(["const la_u32 goes = $B_byte;", *stores])),
        ("loop[7]", f"{origin}{name}_store(&into, $B, {into});"),
    )
    at = origins((height, width), order, counts)
    workers = (
        Worker((Loop("load", (("loop[2]", f"{origin}{name}_load(&from, $A, $bar, {at});"),)),), elected=True),
        Worker((Loop("turn", bodies),), threads // WARP, start=numbers.declared(0)),
    )
    program = Program(
        turn_pipeline(stages, leaving, threads // WARP, stage), workers, PARAMETERS, tiles_of_block(prod(counts)),
        plans=(("A", load), ("B", store)),
        before=mover(load, f"{name}_load", "Loads a tile.") + mover(store, f"{name}_store", "Stores a turned tile.")
        + "".join(numbers.tables),
    )  # fmt: skip
    title = f"{answer.sentence(what)}: a thread turns blocks of {side} x {side} elements."
    kernel = emit(program, name, target, title="\n".join([title, *map(str, served)])).kernel
    arrays = ends((rows, cols), (cols, rows), size, load.problem.base_align_bytes)
    moved, maps = 2 * rows * cols * size, (load.raw, store.raw)
    return ArrayKernel(kernel, prod(counts), what, moved, arrays, maps=maps, persistent=True, served=served)


def turn_pipeline(stages: int, leaving: int, warps: int, size: int) -> Pipeline:
    """Return the pipeline of a transpose: one role loads tiles, the other reads, turns and stores them.

    Args:
        stages: Slots of tiles that arrive.
        leaving: Slots of tiles that leave.
        warps: Warps that turn.
        size: Bytes of a tile.

    Example:
        >>> from layoutalg.proofs.pipeline import verify
        >>> verify(turn_pipeline(2, 2, 8, 16384)).engine
        'event graph'
    """
    load = (
        Op("wait", bar="empty", ph=-1), Op("arrive_tx", bar="full", bytes=size), Op("tma_load", buf="A", bar="full"),
    )  # fmt: skip
    turn = (
        Op("wait", bar="full"), Op("read", buf="A"), Op("proxy_fence"), Op("arrive", bar="empty", n=warps),
        Op("bulk_wait", n=leaving - 1), Op("write", buf="B"), Op("proxy_fence"), Op("tma_store", buf="B"),
        Op("bulk_commit"),
    )  # fmt: skip
    return Pipeline(
        stages, (("full", Barrier(1, stages)), ("empty", Barrier(warps, stages))),
        (("A", Buffer(stages, size)), ("B", Buffer(leaving, size))),
        (Role("load", loop=load), Role("turn", loop=turn, post=(Op("bulk_wait"),))),
    )  # fmt: skip


def _blocks(rows: int, cols: int, threads: int) -> LinearLayout:
    """(step, thread) to (row, col) of the blocks: three lane bits run along the diagonal, the next shift it."""
    bases = [(1 << bit, 1 << bit) for bit in range(3)] + [(1 << bit, 0) for bit in range(3)]
    bases += [(0, 1 << bit) for bit in range(3, cols.bit_length() - 1)]
    bases += [(1 << bit, 0) for bit in range(3, rows.bit_length() - 1)]
    bits = threads.bit_length() - 1
    return LinearLayout.from_bases({"step": bases[bits:], "thread": bases[:bits]}, {"row": rows, "col": cols})


def _swizzled(rows: IntArray, chunks: IntArray, height: int) -> IntArray:
    """Byte offset of 16-byte chunks of a tile of ``height`` rows: panels of 128 bytes, swizzled."""
    return chunks // 8 * (height * SPAN) + rows * SPAN + (chunks % 8 ^ rows % 8) * CHUNK


def turning(
    tile: tuple[int, int], size: int, threads: int, numbers: Numbers, target: str
) -> tuple[list[str], list[str], tuple[Served, ...]]:
    """Statements that load a thread's blocks, those that transpose and store them, and the turns of the banks."""
    height, width = tile
    side = CHUNK // size
    layout = _blocks(height // side, width // side, threads)
    table = np.asarray(layout.table(), dtype=np.int64).reshape(threads, -1)
    row, col = table % (height // side), table // (height // side)
    names = (f"w{number}" for number in itertools.count())
    loads, stores = list[str](), list[str]()
    read, written = [], []
    for step in range(table.shape[1]):
        held = []
        for line in range(side):
            at = _swizzled(row[:, step] * side + line, col[:, step], height)
            read.append(at)
            loads.append(f"const la_words4 a{step}_{line} = la_shared_load_b128(came + {numbers.text(at)});")
            held.append(fields(CHUNK // 4, f"a{step}_{line}"))
        lines, columns = turned_words(held, size, names)
        stores += lines
        for line, words in enumerate(columns):
            at = _swizzled(col[:, step] * side + line, row[:, step], width)
            written.append(at)
            stores.append(f"la_shared_store_b128(goes + {numbers.text(at)}, {vector_of(words, CHUNK // 4, target)});")
    served = tuple(
        counted(number, target, name, np.concatenate(each).reshape(-1, WARP))
        for number, (name, each) in enumerate((("ld.shared.v4.b32", read), ("st.shared.v4.b32", written)))
    )
    return loads, stores, served
