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

from layoutalg.codegen.kernel import STATUS_DONE, STATUS_TIMEOUT, KernelSource, checked_name, signature
from layoutalg.codegen.kernels import answer
from layoutalg.codegen.kernels.answer import CHECK, ArrayKernel
from layoutalg.codegen.kernels.arguments import ends
from layoutalg.codegen.kernels.ring import PARAMETERS, checked_tiles, mover, tile_plan
from layoutalg.codegen.kernels.turned import fields, turned_words, vector_of
from layoutalg.codegen.portable import TENSOR_PRELUDE
from layoutalg.codegen.thread_numbers import IntArray, Numbers
from layoutalg.f2 import LinearLayout
from layoutalg.proofs.served import Served, counted
from layoutalg.targets.nvidia.swizzles import CHUNK_BYTES, SWIZZLE_TABLE

CHUNK, SPAN = CHUNK_BYTES, SWIZZLE_TABLE["128B"].span_bytes
LANES = 32
MOST_REGISTER_BYTES = 256

_BODY = """
// {what}.
// {tiles} tiles of {rows} x {cols}, {stages} stages; a thread turns blocks of {side} x {side} elements.
{told}extern "C" __global__ void __launch_bounds__({threads}) {name}(
    {signature})
{{
    const la_u32 t = threadIdx.x;
    const la_u32 ring = (la_u32)(la_aligned_shared({align}) - la_shared());
    const la_u32 ring_address = la_shared_address(la_shared() + ring);
    const la_u32 turned = ring + {turned}, barriers = ring_address + {barriers};
    const bool issues = t < 32 && la_elect();  // the thread that issues every copy
{parts}
    if (issues) {{
        for (int stage = 0; stage < {stages}; ++stage) la_mbarrier_init(barriers + 8 * stage, 1);
        for (int i = 0; i < {stages}; ++i) {{
            const int tile = (int)blockIdx.x + i * blocks;
            if (tile < {tiles}) {name}_load(&from, ring_address + i * {stage_bytes}, barriers + 8 * i, tile);
        }}
    }}
    __syncthreads();

    int stage = 0, parity = 0, leaving = 0;
    bool done = true;
    for (int tile = (int)blockIdx.x; tile < {tiles}; tile += blocks) {{
        done = la_wait_parity(barriers + 8 * stage, parity);
        if (!done) break;
        const la_u32 came = ring + stage * {stage_bytes}, goes = turned + leaving * {stage_bytes};
{loads}
        // Threads have read the stage, and all stores but the last {pending} their tiles: both may be written again.
        la_fence_async();
        if (issues) la_store_wait_read<{pending}>();
        __syncthreads();
        const int next = tile + {stages} * blocks;
        if (issues && next < {tiles})
            {name}_load(&from, ring_address + stage * {stage_bytes}, barriers + 8 * stage, next);
{stores}
        la_fence_async();
        __syncthreads();
        if (issues) {name}_store(&into, ring_address + {turned} + leaving * {stage_bytes}, tile);
        if (++leaving == {leaving}) leaving = 0;
        if (++stage == {stages}) stage = 0, parity ^= 1;
    }}
    if (issues) {{
        la_store_wait();
        status[blockIdx.x] = done ? {status_done} : {status_timeout};
    }}
}}
"""


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
        threads: Threads of a block; by default one per small block of a tile, at most 256.
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
    stage, align = height * width * size, 1024
    turned = CHECK.integer(stages, "stages", 1, 9) * stage
    barriers = turned + CHECK.integer(leaving, "leaving", 1, 5) * stage
    smem = answer.fitting(align + barriers + 8 * stages, target, f"{stages + leaving} tiles of {height} x {width}")
    load = tile_plan((rows, cols), dtype, (height, width), "128B", target, "load")
    store = tile_plan((cols, rows), dtype, (width, height), "128B", target, "store")
    counts = checked_tiles((rows, cols), (height, width), stages)
    what = f"transpose of {rows} x {cols} {answer.elements(size)} by the copy engine"
    name = f"la_transpose_{rows}x{cols}_b{8 * size}_tma" if name is None else checked_name(name)
    order = (0, 1) if down else (1, 0)
    inner = [counts[dim] for dim in order]
    movers = mover(load, f"{name}_load", "Loads a tile.", order, inner)
    movers += mover(store, f"{name}_store", "Stores a turned tile.", tuple(1 - dim for dim in order), inner)
    numbers = Numbers()
    loads, stores, served = _turning((height, width), size, threads, numbers, target)
    text = _BODY.format(
        what=answer.sentence(what), tiles=prod(counts), rows=height, cols=width, stages=stages, side=side,
        threads=threads, name=name, told="".join(f"// {each}\n" for each in served), signature=signature(PARAMETERS),
        align=align, turned=turned, barriers=barriers, parts=numbers.declared(), stage_bytes=stage,
        leaving=leaving, pending=leaving - 1, loads="".join(f"        {line}\n" for line in loads),
        stores="\n".join(f"        {line}" for line in stores), status_done=STATUS_DONE,
        status_timeout=STATUS_TIMEOUT,
    )  # fmt: skip
    kernel = KernelSource(
        name, TENSOR_PRELUDE + movers + "".join(numbers.tables) + text, target, threads, smem, PARAMETERS
    )
    arrays = ends((rows, cols), (cols, rows), size, load.problem.base_align_bytes)
    moved, maps = 2 * rows * cols * size, (load.raw, store.raw)
    return ArrayKernel(kernel, prod(counts), what, moved, arrays, maps=maps, persistent=True, served=served)


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


def _turning(
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
        counted(number, target, name, np.concatenate(each).reshape(-1, LANES))
        for number, (name, each) in enumerate((("ld.shared.v4.b32", read), ("st.shared.v4.b32", written)))
    )
    return loads, stores, served
