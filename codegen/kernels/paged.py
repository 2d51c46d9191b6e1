"""Kernels between paged caches and contiguous tensors: by vectors, by runs of bytes, or by boxes of the copy engine.

The contiguous tensor is [tokens, heads, head_dim] for ``NHD`` and [heads, tokens, head_dim] for ``HND``: a *segment*,
the rows of a page (of one head of it for ``HND``), is contiguous on both sides. The page table is read by the kernel.

Implementation notes: a run or a box is loaded whole, as its page is; what is behind the last token is cut when it is
stored. By vectors it is not read at all, and rows up to the capacity are zeros.
"""

from __future__ import annotations

from math import prod

from layoutalg.codegen.cuda import MAP_TYPE
from layoutalg.codegen.kernel import KernelSource, checked_name, signature
from layoutalg.codegen.kernels import answer
from layoutalg.codegen.kernels.answer import CHECK, PERSISTENT_GRID
from layoutalg.codegen.kernels.arguments import ArrayArgument
from layoutalg.codegen.kernels.copy import copy_pipeline
from layoutalg.codegen.kernels.indirect import MOST_ROWS, THREADS, VECTOR_BYTES, IndirectKernel, Share, index_list
from layoutalg.codegen.kernels.ring import mover, tiles_of_block
from layoutalg.codegen.pipeline.emission import emit
from layoutalg.codegen.pipeline.program import Loop, Program, Worker
from layoutalg.codegen.portable import portable_prelude
from layoutalg.codegen.prelude import BULK_PRELUDE
from layoutalg.cute import CuteLayout
from layoutalg.proofs.indirect.pages import Paged
from layoutalg.proofs.tensor import Tensor
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProblem
from layoutalg.synth.tensormap import synthesize_tensormap

WAYS = ("vector", "bulk", "tma")
STAGE_BYTES = 16384
STAGES = 6
COUNTED = (("int", "tiles"), ("int", PERSISTENT_GRID))
TYPES = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}

_VECTORS = """
// {what}: a thread moves {each} vectors of a segment.
extern "C" __global__ void __launch_bounds__({threads}) {name}(
    {signature})
{{
    const la_u32 segment = {row};
    const int number = (int)(segment / {heads}u), first = number * {rows};
    if (first >= capacity) return;
    const la_u32 at = {at}, head = segment % {heads}u;
    const la_u32 page = first < tokens ? (la_u32)table[number] : (la_u32)pages;
    // Vectors of the segment that have tokens, and that the contiguous tensor has.
    const int left = tokens - first < {rows} ? tokens - first : {rows};
    const int room = capacity - first < {rows} ? capacity - first : {rows};
    const la_u32 have = page < (la_u32)pages ? (la_u32)left * {row_vectors}u : 0u;
    const la_u32 into = (la_u32)room * {row_vectors}u;
    {pool}la_words4* paged = ({pool}la_words4*)(pool + (la_u64)(have ? page : 0u) * {stride}ull)
        + head * {vectors}u + at;
    {flat}la_words4* flat = ({flat}la_words4*)contiguous
        + ((la_u64)head * (la_u32)capacity + (la_u32)first) * {row_vectors}u + at;
{moves}}}
"""


def paged_kernel(
    paged: Paged,
    direction: str = "gather",
    *,
    way: str = "vector",
    capacity: int | None = None,
    target: str = "sm_90a",
    name: str | None = None,
) -> IndirectKernel:
    """Return the kernel that copies a sequence from its pages to a contiguous tensor, or back.

    Args:
        paged: The cache. Its table is an argument of the kernel: 32-bit page numbers. Pages that the pool does not
            have are never read or written; by vectors, a gather has zeros for them.
        direction: ``"gather"``: pages to contiguous; ``"scatter"``: contiguous to pages.
        way: ``"vector"``: 16 bytes a thread; ``"bulk"``: runs of bytes by the copy engine; ``"tma"``: boxes of it.
        capacity: Tokens of the contiguous tensor, at least those of the sequence; only with ``"vector"`` more: a
            gather writes zeros there, as 0 x NaN matters for V.
        target: The target.
        name: Kernel symbol.

    Raises: AdmissibilityError: LA939, for a scatter through a table with a page twice. MalformedError: LA945, LA340.
        InfeasibleError: LA948.

    Example:
        >>> from layoutalg.proofs.indirect import Paged
        >>> cache = Paged([4, 5, 2], 16, 8, 128, 2, "NHD", 40, 8)
        >>> for way in ("vector", "bulk", "tma"):
        ...     print(paged_kernel(cache, way=way).what)
        gathers 3 pages of 16 tokens of 2048 bytes by vectors
        gathers 3 pages of 16 tokens of 2048 bytes by runs of 16384 bytes
        gathers 3 pages of 16 tokens of 2048 bytes by boxes of 8 x 8 x 128 elements
    """
    CHECK.kind(paged, Paged, "paged")
    CHECK.choice(direction, "direction", ("gather", "scatter"))
    CHECK.choice(way, "way", WAYS)
    if direction == "scatter":
        paged.table.written()
    most = paged.tokens if capacity is None else CHECK.integer(capacity, "capacity", paged.tokens, MOST_ROWS)
    _checked(paged, most)
    name = f"la_pages_{direction}_{way}" if name is None else checked_name(name)
    if way == "vector":
        return _by_vectors(paged, direction, most, target, name)
    if not answer.checked_target(target).has_tensor_maps:
        raise CHECK.malformed("way", f"must be vector: {target} has no copy engine", way)
    if most != paged.tokens:
        raise CHECK.malformed("capacity", f"must be the {paged.tokens} tokens: only vectors write zeros", most)
    if not paged.tokens:
        raise CHECK.malformed("way", "must be vector: there is no token", way)
    if direction == "scatter" and paged.tokens % paged.page_size:  # the rest of the last page would be overwritten
        rule = f"must be vector: the last of {paged.tokens} tokens is not the last of a page of {paged.page_size}"
        raise CHECK.malformed("way", rule, way)
    return (_by_runs if way == "bulk" else _by_boxes)(paged, direction, target, name)


def _checked(paged: Paged, most: int) -> None:
    for what, size in (("head_dim", paged.row_bytes), ("page_stride", paged.page_stride or 0)):
        if size % VECTOR_BYTES:
            raise CHECK.malformed(what, f"must give a multiple of {VECTOR_BYTES} bytes", size)
    if paged.page_bytes >= 1 << 31 or most * paged.kv_heads >= 1 << 31 or (paged.pages or 0) >= 1 << 31:
        raise CHECK.malformed("paged", "must have pages below 2^31 bytes, and below 2^31 pages and rows", str(paged))
    if most >= MOST_ROWS:
        raise CHECK.malformed("seq_len", f"must be below {MOST_ROWS}", most)


def _heads(paged: Paged) -> int:
    """Segments of a page."""
    return paged.kv_heads if paged.kv_layout == "HND" else 1


def _row_bytes(paged: Paged) -> int:
    """Bytes of a token in a segment."""
    return paged.row_bytes * paged.kv_heads // _heads(paged)


def _arrays(paged: Paged, direction: str, most: int) -> tuple[ArrayArgument, ...]:
    gathers, pages = direction == "gather", paged.pages or 0
    pool = ArrayArgument("pool", (pages * (paged.page_stride or 0),), 1, VECTOR_BYTES, written=not gathers)
    whole = most * paged.kv_heads * paged.row_bytes
    flat = ArrayArgument("contiguous", (whole,), 1, VECTOR_BYTES, written=gathers)
    return pool, index_list("table", len(paged.page_table)), flat


def _what(paged: Paged, direction: str, how: str) -> str:
    size = paged.kv_heads * paged.row_bytes
    return f"{direction}s {len(paged.page_table)} pages of {paged.page_size} tokens of {size} bytes by {how}"


def _moved(paged: Paged) -> int:
    return 2 * paged.tokens * paged.kv_heads * paged.row_bytes + 4 * len(paged.page_table)


def _pointers(direction: str) -> tuple[tuple[str, str], ...]:
    pool, flat = ("const ", "") if direction == "gather" else ("", "const ")
    return (f"{pool}unsigned char*", "pool"), ("const int*", "table"), (f"{flat}unsigned char*", "contiguous")


def _by_vectors(paged: Paged, direction: str, most: int, target: str, name: str) -> IndirectKernel:
    found, heads, row = answer.checked_target(target), _heads(paged), _row_bytes(paged) // VECTOR_BYTES
    share = Share.of(paged.page_size * row)
    gathers = direction == "gather"
    sides = ("paged", "flat") if gathers else ("flat", "paged")
    loads, stores = share.moves(target, "have", "into" if gathers else "have", sides)
    parameters = (*_pointers(direction), ("int", "tokens"), ("int", "capacity"), ("int", "pages"))
    what = _what(paged, direction, "vectors")
    text = _VECTORS.format(
        what=f"{answer.sentence(direction)}s pages of {paged.page_size} tokens", each=share.each, threads=THREADS,
        name=name, signature=signature(parameters),
        row=share.row, at=share.at, heads=heads, rows=paged.page_size, row_vectors=row, vectors=share.vectors,
        stride=paged.page_stride, moves=loads + stores, pool="const " if gathers else "",
        flat="" if gathers else "const ",
    )  # fmt: skip
    segments = -(-most // paged.page_size) * heads
    blocks = answer.checked_grid(share.blocks, max(1, segments), answer.most_blocks(found, THREADS))
    kernel = KernelSource(name, portable_prelude(target) + text, target, THREADS, 0, parameters)
    numbers = (paged.tokens, most, paged.pages or 0)
    return IndirectKernel(kernel, blocks, what, _moved(paged), _arrays(paged, direction, most), numbers)


def _divisor(number: int, most: int) -> int:
    """Return the largest divisor up to a bound."""
    return next(each for each in range(min(number, max(1, most)), 0, -1) if number % each == 0)


def _by_runs(paged: Paged, direction: str, target: str, name: str) -> IndirectKernel:
    heads, row, size = _heads(paged), _row_bytes(paged), paged.page_size * _row_bytes(paged)
    run = VECTOR_BYTES * _divisor(size // VECTOR_BYTES, STAGE_BYTES // VECTOR_BYTES)
    parts = size // run
    tiles = answer.checked_grid(lambda pages: pages * heads * parts, len(paged.page_table), answer.MOST_BLOCKS // 8)
    gathers = direction == "gather"
    place = f"""\
// The run's bytes in the pool and in the contiguous tensor, and how many of them have tokens.
__device__ __forceinline__ void {name}_run(
    int tile, const int* table, int tokens, int pages, la_u64& paged, la_u64& flat, la_u32& bytes)
{{
    const la_u32 part = (la_u32)tile % {parts}u * {run}u, segment = (la_u32)tile / {parts}u;
    const la_u32 number = segment / {heads}u, head = segment % {heads}u, first = number * {paged.page_size}u;
    const la_u32 page = (la_u32)table[number];
    const bool known = page < (la_u32)pages;
    paged = (la_u64)(known ? page : 0u) * {paged.page_stride}ull + (la_u64)head * {size}u + part;
    flat = ((la_u64)head * (la_u32)tokens + first) * {row}u + part;
    const la_u64 left = ((la_u64)(la_u32)tokens - first) * {row}u;
    bytes = !known || left <= part ? 0u : left - part < {run}u ? (la_u32)(left - part) : {run}u;
}}
"""
    start = (
        f"la_u64 paged, flat; la_u32 bytes; {name}_run((int)blockIdx.x + k * {PERSISTENT_GRID}, table, tokens, pages,"
        " paged, flat, bytes);\n"
    )
    near, far = ("pool + paged", "contiguous + flat") if gathers else ("contiguous + flat", "pool + paged")
    program = _ring(
        run, (f"{start}la_bulk_load($T, {near}, {run}u, $bar);", f"{start}if (bytes) la_bulk_store({far}, $T, bytes);"),
        (*_pointers(direction), ("int", "tokens"), ("int", "pages"), *COUNTED), BULK_PRELUDE + place,
    )  # fmt: skip
    what = _what(paged, direction, f"runs of {run} bytes")
    kernel = emit(program, name, target, title=f"{answer.sentence(direction)}s pages by runs of {run} bytes.").kernel
    arrays = _arrays(paged, direction, paged.tokens)
    return IndirectKernel(
        kernel, tiles, what, _moved(paged), arrays, (paged.tokens, paged.pages or 0, tiles), persistent=True
    )


def _ring(
    size: int, bodies: tuple[str, str], parameters: tuple[tuple[str, str], ...], before: str,
    plans: tuple[tuple[str, TensorMapPlan], ...] = (), bytes_: int | None = None,
) -> Program:  # fmt: skip
    """Return the program that loads tiles ahead and stores them, one thread each."""
    load, store = bodies
    workers = (
        Worker((Loop("load", (("loop[2]", load),)),), elected=True),
        Worker((Loop("store", (("loop[1]", store),)),), elected=True),
    )
    pipeline = copy_pipeline(STAGES, STAGES // 2, size, size if bytes_ is None else bytes_)
    return Program(pipeline, workers, parameters, tiles_of_block("tiles"), plans=plans, before=before)


def _by_boxes(paged: Paged, direction: str, target: str, name: str) -> IndirectKernel:
    nhd, gathers, element = paged.kv_layout == "NHD", direction == "gather", paged.element_bytes
    heads = _divisor(paged.kv_heads, STAGE_BYTES // paged.row_bytes) if nhd else 1
    rows = _divisor(paged.box_rows(paged.page_size), STAGE_BYTES // (heads * paged.row_bytes))
    steps = paged.strides
    order = ("token", "head") if nhd else ("head", "token")
    extents = {"token": paged.page_size, "head": paged.kv_heads}
    boxed = {"token": rows, "head": heads}
    inner = [boxed[each] for each in order]
    pages = ((paged.pages or 1, *[extents[each] for each in order], paged.head_dim),
             tuple(step // element for step in (steps["page"], *[steps[each] for each in order], element)))  # fmt: skip
    flat_extents = extents | {"token": paged.tokens}
    flat = ([flat_extents[each] for each in order] + [paged.head_dim], None)
    pool = _plan(pages, (1, *inner, paged.head_dim), element, target, "load" if gathers else "store")
    other = _plan(flat, (*inner, paged.head_dim), element, target, "store" if gathers else "load")
    counts = paged.page_size // rows, paged.kv_heads // heads
    tiles = answer.checked_grid(lambda many: many * prod(counts), len(paged.page_table), answer.MOST_BLOCKS // 8)
    start = f"""\
const int tile = (int)blockIdx.x + k * {PERSISTENT_GRID}, number = tile / {prod(counts)};
const int row = tile / {counts[1]} % {counts[0]} * {rows}, head = tile % {counts[1]} * {heads};
"""
    at = {"token": "row", "head": "head"}
    there = ", ".join(["table[number]", *[at[each] for each in order], "0"])
    at["token"] = f"number * {paged.page_size} + row"
    here = ", ".join([*[at[each] for each in order], "0"])
    sides = [("pool", there, pool), ("contiguous", here, other)]
    (near, near_at, load), (far, far_at, store) = sides if gathers else sides[::-1]
    bodies = (
        f"{start}{name}_load(&{near}, $T, $bar, {near_at});", f"{start}{name}_store(&{far}, $T, {far_at});",
    )  # fmt: skip
    parameters = ((MAP_TYPE, "pool"), ("const int*", "table"), (MAP_TYPE, "contiguous"), *COUNTED)
    before = mover(load, f"{name}_load", "Loads a box.") + mover(store, f"{name}_store", "Stores a box.")
    program = _ring(load.smem_bytes, bodies, parameters, before, (("T", load), ("T", store)), load.expect_tx_bytes)
    box = " x ".join(map(str, (*inner, paged.head_dim)))
    what = _what(paged, direction, f"boxes of {box} elements")
    kernel = emit(
        program, name, target, title=f"{answer.sentence(direction)}s pages by boxes of {box} elements."
    ).kernel
    arrays = _arrays(paged, direction, paged.tokens)
    maps = (("pool", pool.raw), ("contiguous", other.raw))
    return IndirectKernel(kernel, tiles, what, _moved(paged), arrays, (tiles,), maps, persistent=True)


def _plan(tensor: tuple[object, object], tile: tuple[int, ...], element: int, target: str, way: str) -> TensorMapPlan:
    """Return the plan of one side, its tile dense in shared memory."""
    extents, strides = tensor
    shape = Tensor(tuple(extents), strides, TYPES[element], base_align_bytes=VECTOR_BYTES)  # type: ignore[arg-type]
    dense = CuteLayout(tile, tuple(prod(tile[dim + 1 :]) for dim in range(len(tile))))
    return synthesize_tensormap(TensorMapProblem.of(shape, tile, dense, arch=target, direction=way))
