"""Copies of arrays: by the copy engine through a ring of stages, or by thread vectors.

Implementation notes: with the copy engine two threads of a block do everything: one loads tiles ahead, the other stores
each from the slot it arrived in, and hands a slot back once its store has read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from layoutalg.codegen.kernel import KernelSource, checked_name, signature
from layoutalg.codegen.kernels import answer
from layoutalg.codegen.kernels.answer import CHECK, PERSISTENT_GRID, ArrayKernel
from layoutalg.codegen.kernels.arguments import ends
from layoutalg.codegen.kernels.ring import PARAMETERS, checked_tiles, mover, origins, tile_plan, tiles_of_block
from layoutalg.codegen.kernels.vectors import COPY_LOOP, CopyLoop
from layoutalg.codegen.pipeline.emission import emit
from layoutalg.codegen.pipeline.program import Loop, Program, Worker
from layoutalg.codegen.portable import portable_prelude
from layoutalg.proofs.pipeline import Barrier, Buffer, Op, Pipeline, Role
from layoutalg.synth.indirect.choice import STAGE_BYTES
from layoutalg.targets.global_memory import VECTOR_BYTES

WAYS = ("tma", "vector")

_VECTOR_BODY = """
// {what}: a thread moves {each} vectors of 16 bytes, threads beside each other vectors beside each other.
extern "C" __global__ void __launch_bounds__({bounds}) {name}({signature})
{{
    const la_u64 first = (la_u64)blockIdx.x * {block_vectors}u;
    const la_words4* source = (const la_words4*)from + first + threadIdx.x;
    la_words4* target = (la_words4*)into + first + threadIdx.x;
    if (first + {block_vectors}u <= {vectors}ull) {{
#pragma unroll
        for (la_u32 turn = 0; turn < {turns}u; ++turn, source += {turn}u, target += {turn}u) {{
{loads}{stores}        }}
    }} else {{
        for (la_u32 i = 0; first + threadIdx.x + i < {vectors}ull && i < {block_vectors}u; i += {threads}u)
            target[i] = source[i];
    }}
{tail}}}
"""

_TAIL = """
    // The last {tail} bytes fill no vector.
    if (blockIdx.x == 0 && threadIdx.x < {tail}) into[{whole}ull + threadIdx.x] = from[{whole}ull + threadIdx.x];
"""


def copy_kernel(
    shape: Sequence[int],
    dtype: object,
    target: str = "sm_90a",
    *,
    way: str | None = None,
    tile: Sequence[int] | None = None,
    swizzle: str = "NONE",
    stages: int = 4,
    threads: int = COPY_LOOP.threads,
    per_thread: int = COPY_LOOP.each,
    name: str | None = None,
) -> ArrayKernel:
    """Return the kernel that copies a dense array.

    Mathematically: ``into[x] = from[x]``.

    Args:
        shape: Extents, outermost first.
        dtype: Element type by any of its names.
        target: The target.
        way: ``"tma"``: by the copy engine; ``"vector"``: by the threads. By default the copy engine, if the target was
            measured on a device and the array's rows are multiples of 16 bytes.
        tile: Extents of a tile, for the copy engine; chosen by default.
        swizzle: Swizzle of its tiles in shared memory: ``"NONE"``, ``"32B"``, ``"64B"``, ``"128B"``.
        stages: Its stages, 2 to 16.
        threads: Threads of a block, for vectors.
        per_thread: Vectors that a thread reads before it writes, 1 to 16.
        name: Kernel symbol.

    Raises: MalformedError: LA945, LA340, LA375, LA506. InfeasibleError: LA946, LA948. InadmissibleError: no descriptor
        does it.

    Example:
        >>> copy_kernel((4096, 4096), "bf16").persistent, copy_kernel((4096, 4096), "bf16", "gfx942").persistent
        (True, False)
    """
    extents, size, found = answer.checked_shape(shape), answer.element_bytes(dtype), answer.checked_target(target)
    if way is None:
        known = found.has_tensor_maps and found.measured and len(extents) <= 5
        way = "tma" if known and extents[-1] * size % 16 == 0 else "vector"
    CHECK.choice(way, "way", WAYS)
    name = f"la_copy_{'x'.join(map(str, extents))}_b{8 * size}_{way}" if name is None else checked_name(name)
    if way == "vector":
        answer.checked_threads(threads, found)
        each = CHECK.integer(per_thread, "per_thread", 1, 17)
        return _vectors(extents, size, target, replace(COPY_LOOP, threads=threads, each=each), name)
    if not found.has_tensor_maps:
        raise CHECK.malformed("way", f"must be vector: {target} has no copy engine for tensors", way)
    chosen = _tile(extents, size) if tile is None else answer.checked_shape(tile, len(extents))
    return _ring(extents, dtype, size, target, chosen, swizzle, CHECK.integer(stages, "stages", 2, 17), name)


def _tile(extents: Sequence[int], size: int) -> tuple[int, ...]:
    """Return a tile of at most 16 KiB, as long in the inner dimensions as a box allows."""
    room = STAGE_BYTES // size
    tile: list[int] = []
    for extent in reversed(extents):
        most = min(room, 256, 1 << (extent - 1).bit_length())
        tile.append(max(1, min(most, extent) if extent * size % 16 == 0 or tile else most))
        room = max(1, room // tile[-1])
    return tuple(reversed(tile))


def _ring(
    extents: tuple[int, ...], dtype: object, size: int, target: str, tile: tuple[int, ...], swizzle: str, stages: int,
    name: str,
) -> ArrayKernel:  # fmt: skip
    load, store = (tile_plan(extents, dtype, tile, swizzle, target, way) for way in ("load", "store"))
    counts = checked_tiles(extents, tile, stages)
    tiles, order = prod(counts), tuple(reversed(range(len(extents))))
    what = f"copy of {' x '.join(map(str, extents))} {answer.elements(size)} by the copy engine"
    told = f"box {'x'.join(map(str, load.tensor_map.box))} (innermost first), swizzle {load.tensor_map.swizzle}"
    origin = f"const int tile = (int)blockIdx.x + k * {PERSISTENT_GRID};\n"
    at = origins(tile, order, counts)
    workers = (
        Worker((Loop("load", (("loop[2]", f"{origin}{name}_load(&from, $T, $bar, {at});"),)),), elected=True),
        Worker((Loop("store", (("loop[1]", f"{origin}{name}_store(&into, $T, {at});"),)),), elected=True),
    )
    program = Program(
        copy_pipeline(stages, max(1, stages // 2), load.smem_bytes, load.expect_tx_bytes), workers, PARAMETERS,
        tiles_of_block(tiles), plans=(("T", load), ("T", store)),
        before=mover(load, f"{name}_load", f"Loads a tile: {told}.")
        + mover(store, f"{name}_store", f"Stores a tile: {told}."),
    )  # fmt: skip
    kernel = emit(
        program, name, target, title=f"{answer.sentence(what)}: tiles of {' x '.join(map(str, tile))}."
    ).kernel
    arrays = ends(extents, extents, size, load.problem.base_align_bytes)
    moved = 2 * prod(extents) * size
    return ArrayKernel(kernel, tiles, what, moved, arrays, maps=(load.raw, store.raw), persistent=True)


def copy_pipeline(stages: int, behind: int, size: int, copied: int) -> Pipeline:
    """Return the pipeline of a copy: one role loads tiles, another stores them and hands slots back later.

    Args:
        stages: Slots of the ring.
        behind: Stores that may still read their slots while the next is started.
        size: Bytes of a slot.
        copied: Bytes that a load delivers.

    Example:
        >>> from layoutalg.proofs.pipeline import verify
        >>> verify(copy_pipeline(4, 2, 16384, 16384)).engine
        'event graph'
    """
    load = (
        Op("wait", bar="empty", ph=-1), Op("arrive_tx", bar="full", bytes=copied),
        Op("tma_load", buf="T", bar="full", bytes=copied),
    )  # fmt: skip
    store = (
        Op("wait", bar="full"), Op("tma_store", buf="T"), Op("bulk_commit"), Op("bulk_wait", n=behind),
        Op("arrive", bar="empty", off=-behind, n=1),
    )  # fmt: skip
    roles = Role("load", loop=load), Role("store", loop=store, post=(Op("bulk_wait"),))
    ring = Barrier(1, stages)
    return Pipeline(stages, (("full", ring), ("empty", ring)), (("T", Buffer(stages, size)),), roles)


def _vectors(extents: tuple[int, ...], size: int, target: str, loop: CopyLoop, name: str) -> ArrayKernel:
    total = prod(extents) * size
    vectors, tail = divmod(total, VECTOR_BYTES)
    threads, block = loop.threads, loop.threads * loop.each * loop.turns
    blocks = answer.checked_grid(
        lambda extent: max(1, -(-(total // extents[0] * extent // VECTOR_BYTES) // block)), extents[0],
        answer.most_blocks(answer.checked_target(target), threads),
    )  # fmt: skip
    what = f"copy of {' x '.join(map(str, extents))} {answer.elements(size)}"
    loads, stores = loop.moves(target, threads, ("source", "target"), indents=(12, 12))
    parameters = (("const unsigned char*", "from"), ("unsigned char*", "into"))
    text = _VECTOR_BODY.format(
        what=answer.sentence(what), each=loop.each * loop.turns, threads=threads, bounds=loop.bounds(target), name=name,
        signature=signature(parameters), turns=loop.turns, turn=threads * loop.each, block_vectors=block,
        vectors=vectors, loads=loads, stores=stores, tail=_TAIL.format(tail=tail, whole=total - tail) if tail else "",
    )  # fmt: skip
    kernel = KernelSource(name, portable_prelude(target) + loop.prelude(target) + text, target, threads, 0, parameters)
    return ArrayKernel(kernel, blocks, what, 2 * total, ends(extents, extents, size, VECTOR_BYTES))
