"""Kernels between paged caches and contiguous tensors: by vectors, by runs of bytes, or by boxes of the copy engine.

A *segment*, the rows of a page (of one head of it for ``HND``), is contiguous on both sides.

Implementation notes: a run or a box is loaded whole, as its page is; what is behind the last token is cut when it is
stored. By vectors it is not read at all, and rows up to the capacity are zeros.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from layoutalg.codegen.cuda import MAP_TYPE
from layoutalg.codegen.kernel import KernelSource, checked_name, signature
from layoutalg.codegen.kernels import answer
from layoutalg.codegen.kernels.answer import CHECK, PERSISTENT_GRID
from layoutalg.codegen.kernels.arguments import ArrayArgument
from layoutalg.codegen.kernels.copy import copy_pipeline
from layoutalg.codegen.kernels.indirect import MOST_ROWS, IndirectKernel, Share, index_list
from layoutalg.codegen.kernels.ring import mover, tiles_of_block
from layoutalg.codegen.kernels.vectors import CopyLoop, piece_loop
from layoutalg.codegen.pipeline.emission import emit
from layoutalg.codegen.pipeline.program import Loop, Program, Worker
from layoutalg.codegen.portable import portable_prelude
from layoutalg.codegen.prelude import BULK_PRELUDE
from layoutalg.cute import CuteLayout
from layoutalg.proofs.indirect.pages import Paged, PagedBatch
from layoutalg.proofs.tensor import Tensor
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProblem
from layoutalg.synth.indirect import page_pieces, paged_choice
from layoutalg.synth.indirect.choice import VECTOR_BYTES
from layoutalg.synth.tensormap import synthesize_tensormap

WAYS = ("vector", "bulk", "tma")
STAGES = 6
COUNTED = (("int", "tiles"), ("int", PERSISTENT_GRID))
TYPES = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}

_PAGE = """
// The page of a segment, and how many of its rows have tokens: none if the pool does not have it. Beside the pages: its
// first row, and how many of its rows there are.
__device__ __forceinline__ la_u32 {name}_page(
    la_u32 segment, const int* table, {given},
    int capacity, int pages, int& left, int& room, la_u64& row)
{{
    const la_u32 across = capacity ? ((la_u32)capacity + {last}u) / {rows}u : 1u, head = segment % {heads}u;
    const la_u32 all = segment / {heads}u, sequence = {sequence}, number = all - sequence * across;
    left = room = 0;
    if (sequence >= (la_u32){sequences} || number >= across) return 0;
    const int first = (int)(number * {rows}u);
    row = ((la_u64)sequence * {heads}u + head) * (la_u32)capacity + (la_u32)first;
    room = capacity - first < {rows} ? capacity - first : {rows};
{lookup}    if (length <= first) return 0;
    const la_u32 page = (la_u32)table[entry];
    if (page >= (la_u32)pages) return 0;
    left = length - first < room ? length - first : room;
    return page;
}}
"""
_SINGLE = "    const int length = tokens;\n    const la_u32 entry = number;\n"
_CSR = """\
    const int begin = indptr[sequence], many = indptr[sequence + 1] - begin;
    const int length = many > 0 ? (many - 1) * {rows} + last_page_len[sequence] : 0;
    const la_u32 entry = (la_u32)begin + number;
    if (entry >= (la_u32)entries) return 0;
"""
_VECTORS = """
// {what}: a thread moves {each} vectors of a segment{turned}.
extern "C" __global__ void __launch_bounds__({bounds}) {name}(
    {signature})
{{
    la_u32 page[{turns}];
    int left[{turns}], room[{turns}];
    la_u64 row[{turns}];
#pragma unroll
    for (la_u32 turn = 0; turn < {turns}u; ++turn) {{
        const la_u32 unit = {unit};
        page[turn] = {name}_page(
            {row}, table, {passed}, capacity, pages, left[turn], room[turn], row[turn]);
    }}
#pragma unroll
    for (la_u32 turn = 0; turn < {turns}u; ++turn) {{
        if (room[turn] <= 0) continue;
        const la_u32 unit = {unit};
        const la_u32 at = {at}, head = ({row}) % {heads}u;
        // Vectors of the segment that have tokens, and that the contiguous tensor has.
        const la_u32 have = (la_u32)left[turn] * {row_vectors}u, into = (la_u32)room[turn] * {row_vectors}u;
        {pool}la_words4* paged = ({pool}la_words4*)(pool + (la_u64)page[turn] * {stride}ull) + head * {vectors}u + at;
        {flat}la_words4* flat = ({flat}la_words4*)contiguous + row[turn] * {row_vectors}u + at;
        if (have == {vectors}u) {{
{whole}        }} else {{
{part}        }}
    }}
}}
"""


def paged_kernel(
    paged: Paged | PagedBatch,
    direction: str = "gather",
    way: str | None = None,
    capacity: int | None = None,
    target: str = "sm_90a",
    *,
    name: str | None = None,
    loop: CopyLoop | None = None,
) -> IndirectKernel:
    """Return the kernel that copies a sequence, or all of a batch, from pages to a contiguous tensor, or back.

    The tensor is [tokens, heads, head_dim] for ``NHD``, [heads, tokens, head_dim] for ``HND``; one for each sequence
    of a batch, all of ``capacity`` tokens.

    Args:
        paged: The cache. Its table is an argument of the kernel: 32-bit page numbers; of a batch, so are ``indptr`` and
            ``last_page_len``. Pages that the pool does not have are never read or written; by vectors, a gather has
            zeros for them.
        direction: ``"gather"``: pages to contiguous; ``"scatter"``: contiguous to pages.
        way: ``"vector"``: 16 bytes a thread; of one sequence also ``"bulk"``: runs of bytes by the copy engine, and
            ``"tma"``: boxes of it. By default the fastest by ``synth.indirect.paged_choice`` that can do it.
        capacity: Tokens of the contiguous tensor, at least those of the longest sequence; only with ``"vector"`` more:
            a gather writes zeros there, as 0 x NaN matters for V.
        target: The target.
        name: Kernel symbol.
        loop: How threads copy by vectors; by default that of ``piece_loop``.

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
    batch = paged if isinstance(paged, PagedBatch) else None
    cache = CHECK.kind(paged, Paged, "paged") if batch is None else batch.whole
    CHECK.choice(direction, "direction", ("gather", "scatter"))
    if loop is not None:
        CHECK.kind(loop, CopyLoop, "loop")
    if direction == "scatter":
        cache.table.written()
    longest = cache.tokens if batch is None else int(batch.lengths.max(initial=0))
    most = longest if capacity is None else CHECK.integer(capacity, "capacity", longest, MOST_ROWS)
    sequences = 1 if batch is None else batch.sequences
    _checked(cache, most, sequences)
    if way is None:
        part = direction == "scatter" and cache.tokens % cache.page_size
        free = batch is None and loop is None and target == "sm_90a" and most == cache.tokens > 0 and not part
        way = paged_choice(cache, target).way if free else "vector"
    by = f"{'batch_' * (batch is not None)}{CHECK.choice(way, 'way', WAYS)}"
    name = f"la_pages_{direction}_{by}" if name is None else checked_name(name)
    if way == "vector":
        return _by_vectors(cache, batch, direction, most, target, name, loop or piece_loop(page_pieces(cache)[0]))
    if batch is not None:
        raise CHECK.malformed("way", "must be vector: the copy engine moves one sequence", way)
    if not answer.checked_target(target).has_tensor_maps:
        raise CHECK.malformed("way", f"must be vector: {target} has no copy engine", way)
    if most != cache.tokens:
        raise CHECK.malformed("capacity", f"must be the {cache.tokens} tokens: only vectors write zeros", most)
    if not cache.tokens:
        raise CHECK.malformed("way", "must be vector: there is no token", way)
    if direction == "scatter" and cache.tokens % cache.page_size:  # the rest of the last page would be overwritten
        rule = f"must be vector: the last of {cache.tokens} tokens is not the last of a page of {cache.page_size}"
        raise CHECK.malformed("way", rule, way)
    return (_by_runs if way == "bulk" else _by_boxes)(cache, direction, target, name)


def _checked(paged: Paged, most: int, sequences: int) -> None:
    for what, size in (("head_dim", paged.row_bytes), ("page_stride", paged.page_stride or 0)):
        if size % VECTOR_BYTES:
            raise CHECK.malformed(what, f"must give a multiple of {VECTOR_BYTES} bytes", size)
    rows = (most + paged.page_size) * paged.kv_heads * max(1, sequences)
    if paged.page_bytes >= 1 << 31 or rows >= 1 << 31 or (paged.pages or 0) >= 1 << 31:
        raise CHECK.malformed("paged", "must have pages below 2^31 bytes, and below 2^31 pages and rows", str(paged))
    if max(most, paged.tokens) >= MOST_ROWS:
        raise CHECK.malformed("seq_len", f"must be below {MOST_ROWS}", max(most, paged.tokens))


def _arrays(paged: Paged, direction: str, most: int, batch: PagedBatch | None = None) -> tuple[ArrayArgument, ...]:
    gathers, pages, many = direction == "gather", paged.pages or 0, 1 if batch is None else batch.sequences
    pool = ArrayArgument("pool", (pages * (paged.page_stride or 0),), 1, VECTOR_BYTES, written=not gathers)
    whole = many * most * paged.kv_heads * paged.row_bytes
    flat = ArrayArgument("contiguous", (whole,), 1, VECTOR_BYTES, written=gathers)
    csr = () if batch is None else (index_list("indptr", many + 1), index_list("last_page_len", many))
    return pool, index_list("table", len(paged.page_table)), *csr, flat


def _what(paged: Paged, direction: str, how: str) -> str:
    size = paged.kv_heads * paged.row_bytes
    return f"{direction}s {len(paged.page_table)} pages of {paged.page_size} tokens of {size} bytes by {how}"


def _moved(paged: Paged, tokens: int) -> int:
    return 2 * tokens * paged.kv_heads * paged.row_bytes + 4 * len(paged.page_table)


def _pointers(direction: str, *lists: str) -> tuple[tuple[str, str], ...]:
    pool, flat = ("const ", "") if direction == "gather" else ("", "const ")
    named = [("const int*", each) for each in ("table", *lists)]
    return (f"{pool}unsigned char*", "pool"), *named, (f"{flat}unsigned char*", "contiguous")


def _by_vectors(
    paged: Paged, batch: PagedBatch | None, direction: str, most: int, target: str, name: str, loop: CopyLoop
) -> IndirectKernel:
    found, size, (segment, *_) = answer.checked_target(target), paged.page_size, page_pieces(paged)
    answer.checked_threads(loop.threads, found)
    heads, vectors = paged.page_bytes // segment, segment // VECTOR_BYTES
    share = replace(Share.of(vectors, loop.each, loop.each, loop.threads), unit="unit")
    gathers = direction == "gather"
    sides = ("paged", "flat") if gathers else ("flat", "paged")
    whole, part = (
        "".join(share.moves(target, *bounds, names=sides, indents=(12, 12), loop=loop))
        for bounds in (("", ""), ("have", "into" if gathers else "have"))
    )
    lists, counts = ((), ("tokens",)) if batch is None else (("indptr", "last_page_len"), ("sequences", "entries"))
    numbers = [("int", each) for each in (*counts, "capacity", "pages", "apart")]
    parameters = (*_pointers(direction, *lists), *numbers)
    text = (_PAGE + _VECTORS).format(
        what=f"{answer.sentence(direction)}s pages of {size} tokens", each=share.each, bounds=loop.bounds(target),
        turned=f", {loop.turns} times" if loop.turns > 1 else "", signature=signature(parameters), name=name,
        unit="blockIdx.x + turn * (la_u32)apart" if loop.apart else f"blockIdx.x * {loop.turns}u + turn",
        rows=size, last=size - 1, heads=heads, turns=loop.turns, row=share.row, at=share.at, vectors=vectors,
        row_vectors=vectors // size, stride=paged.page_stride, whole=whole, part=part,
        pool="const " if gathers else "", flat="" if gathers else "const ",
        given=", ".join([f"{'const int*' if each in lists else 'int'} {each}" for each in (*lists, *counts)]),
        passed=", ".join((*lists, *counts)), sequence="0u" if batch is None else "all / across",
        sequences="1" if batch is None else "sequences", lookup=_SINGLE if batch is None else _CSR.format(rows=size),
    )  # fmt: skip
    many, tokens = (1, paged.tokens) if batch is None else (batch.sequences, int(batch.lengths.sum()))
    blocks = answer.checked_grid(
        lambda rows: -(-share.blocks(rows) // loop.turns), max(1, many * -(-most // size) * heads),
        answer.most_blocks(found, loop.threads),
    )  # fmt: skip
    text = portable_prelude(target) + loop.prelude(target) + text
    kernel = KernelSource(name, text, target, loop.threads, 0, parameters)
    sizes = (tokens,) if batch is None else (many, len(paged.page_table))
    values, arrays = (*sizes, most, paged.pages or 0, blocks), _arrays(paged, direction, most, batch)
    return IndirectKernel(kernel, blocks, _what(paged, direction, "vectors"), _moved(paged, tokens), arrays, values)


def _by_runs(paged: Paged, direction: str, target: str, name: str) -> IndirectKernel:
    size, run, _ = page_pieces(paged)
    heads, row = paged.page_bytes // size, size // paged.page_size
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
        kernel,
        tiles,
        what,
        _moved(paged, paged.tokens),
        arrays,
        (paged.tokens, paged.pages or 0, tiles),
        persistent=True,
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
    rows, heads = page_pieces(paged)[2]
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
    return IndirectKernel(kernel, tiles, what, _moved(paged, paged.tokens), arrays, (tiles,), maps, persistent=True)


def _plan(tensor: tuple[object, object], tile: tuple[int, ...], element: int, target: str, way: str) -> TensorMapPlan:
    """Return the plan of one side, its tile dense in shared memory."""
    extents, strides = tensor
    shape = Tensor(tuple(extents), strides, TYPES[element], base_align_bytes=VECTOR_BYTES)  # type: ignore[arg-type]
    dense = CuteLayout(tile, tuple(prod(tile[dim + 1 :]) for dim in range(len(tile))))
    return synthesize_tensormap(TensorMapProblem.of(shape, tile, dense, arch=target, direction=way))
