"""The inspector of routed rows: a stable counting sort of labels, padded to blocks.

Equal labels of a warp are counted by a match, warps and blocks take their shares in order: the result is the same in
every run. Up to 1,024 labels one block does everything; beyond, one kernel counts per block and another places.

Implementation notes: what is behind the last row is filled up to the bound that a grid is for, so that nothing has to
be read back from the device.
"""

from __future__ import annotations

from dataclasses import replace

from layoutalg.codegen.kernel import KernelSource, checked_name, signature
from layoutalg.codegen.kernels import answer
from layoutalg.codegen.kernels.answer import CHECK
from layoutalg.codegen.kernels.gather import INDICES
from layoutalg.codegen.kernels.indirect import MOST_ROWS, THREADS, IndirectKernel, index_list
from layoutalg.codegen.portable import portable_prelude
from layoutalg.proofs.dtypes import element_type
from layoutalg.proofs.groups import tile_bound

ONE_BLOCK = 1024
"""Most labels that one block sorts."""
MOST_COUNTED_BLOCKS = 128
MOST_EXPERTS = 1024
"""So that the counts of all warps fit the shared memory that every launch may have."""

_SORT = """
// The expert of an entry; {experts} if another rank has it, or it is none.
__device__ __forceinline__ la_u32 {name}_label(const {index}* ids, int at, int end)
{{
    if (at >= end) return {experts}u;
    const {index} id = ids[at];
    return id >= {first} && id <= {last} ? (la_u32)id : {experts}u;
}}

// Of the lanes of the warp with the same label: how many there are, and how many are before this one.
__device__ __forceinline__ void {name}_same(la_u32 label, la_u32 lane, la_u32& before, la_u32& all)
{{
#if defined(__CUDA_ARCH__) && !defined(LA_HOST)
    const la_u32 mask = __match_any_sync(0xFFFFFFFFu, label);
    before = (la_u32)__popc(mask & ((1u << lane) - 1u));
    all = (la_u32)__popc(mask);
#else
    before = all = 0;
    for (la_u32 other = 0; other < LA_LANES; ++other) {{
        const bool equal = la_shuffle(label, other) == label;
        before += equal && other < lane;
        all += equal;
    }}
#endif
}}

// Words of shared memory: counts[warp][expert], then of all experts their rows, first rows and first padded rows.
__device__ __forceinline__ la_u32 {name}_get(la_u32 word) {{ return la_shared_load_b32(4u * word); }}
__device__ __forceinline__ void {name}_put(la_u32 word, la_u32 value) {{ la_shared_store_b32(4u * word, value); }}

// Counts the labels of this block's share, each warp its own part.
__device__ __forceinline__ void {name}_count(const {index}* ids, int first, int part, int end)
{{
    const la_u32 lane = threadIdx.x % LA_LANES, row = threadIdx.x / LA_LANES * {experts}u;
    for (la_u32 i = threadIdx.x; i < {warps}u * {experts}u; i += {threads}u) {name}_put(i, 0u);
    __syncthreads();
    for (int at = first; at < first + part; at += LA_LANES) {{
        const la_u32 label = {name}_label(ids, at + (int)lane, end);
        la_u32 before, all;
        {name}_same(label, lane, before, all);
        if (label < {experts}u && before == 0) {name}_put(row + label, {name}_get(row + label) + all);
        la_sync_warp();
    }}
    __syncthreads();
}}
"""

_COUNT = """
// {what}: counts for each block.
extern "C" __global__ void __launch_bounds__({threads}) {name}({signature})
{{
    const int part = share / {warps};
    {name}_count(topk_ids, (int)blockIdx.x * share + (int)(threadIdx.x / LA_LANES) * part, part, n);
    for (la_u32 g = threadIdx.x; g < {experts}u; g += {threads}u) {{
        la_u32 sum = 0;
        for (la_u32 w = 0; w < {warps}u; ++w) sum += {name}_get(w * {experts}u + g);
        by_block[blockIdx.x * {experts}u + g] = (int)sum;
    }}
}}
"""

_PLACE = """
// {what}.
extern "C" __global__ void __launch_bounds__({threads}) {name}(
    {signature})
{{
    const la_u32 t = threadIdx.x, lane = t % LA_LANES, warp = t / LA_LANES;
    const int part = share / {warps}, first = (int)blockIdx.x * share + (int)warp * part;
    {name}_count(topk_ids, first, part, n);
    // Rows of every expert, and where each warp's begin behind the expert's first row.
    for (la_u32 g = t; g < {experts}u; g += {threads}u) {{
        la_u32 total = 0, before = 0;
{totals}        for (la_u32 w = 0; w < {warps}u; ++w) {{
            const la_u32 many = {name}_get(w * {experts}u + g);
            {name}_put(w * {experts}u + g, before);
            before += many;
        }}
        {name}_put({rows}u + g, {single}total);
    }}
    __syncthreads();
    if (warp == 0) {{
        // The first warp adds up: each lane {chunk} experts, then the lanes.
        la_u32 sum = 0, padded = 0;
        for (la_u32 i = 0, g = lane * {chunk}u; i < {chunk}u && g < {experts}u; ++i, ++g) {{
            const la_u32 many = {name}_get({rows}u + g);
            sum += many;
            padded += (many + {block}u - 1u) / {block}u * {block}u;
        }}
        la_u32 sums = sum, paddeds = padded;
        for (la_u32 step = 1; step < LA_LANES; step *= 2) {{
            const la_u32 one = la_shuffle(sums, (lane - step) % LA_LANES);
            const la_u32 other = la_shuffle(paddeds, (lane - step) % LA_LANES);
            if (lane >= step) {{ sums += one; paddeds += other; }}
        }}
        sum = sums - sum;
        padded = paddeds - padded;
        for (la_u32 i = 0, g = lane * {chunk}u; i < {chunk}u && g < {experts}u; ++i, ++g) {{
            const la_u32 many = {name}_get({rows}u + g);
            {name}_put({starts}u + g, sum);
            {name}_put({padded}u + g, padded);
            sum += many;
            padded += (many + {block}u - 1u) / {block}u * {block}u;
        }}
        if (lane == LA_LANES - 1u) {{
            {name}_put({starts}u + {experts}u, sums);
            {name}_put({padded}u + {experts}u, paddeds);
        }}
    }}
    __syncthreads();
    for (int at = first; at < first + part; at += LA_LANES) {{
        const int mine = at + (int)lane;
        const la_u32 label = {name}_label(topk_ids, mine, n);
        la_u32 before, all;
        {name}_same(label, lane, before, all);
        const la_u32 base = label < {experts}u ? {name}_get(warp * {experts}u + label) : 0u;
        la_sync_warp();
        if (label < {experts}u) {{
            const la_u32 row = base + before;
            const la_u32 start = {name}_get({starts}u + label), padded = {name}_get({padded}u + label);
            order[start + row] = mine;
            padded_order[padded + row] = mine;
            inverse[mine] = (int)(start + row);
            if (before == 0) {name}_put(warp * {experts}u + label, base + all);
        }} else if (mine < n) {{
            inverse[mine] = -1;
        }}
        la_sync_warp();
    }}
    // What no row fills: the padding of each expert, and everything behind the last block up to the bound.
    const la_u32 end = {name}_get({padded}u + {experts}u), all_rows = {name}_get({starts}u + {experts}u);
    for (la_u32 g = blockIdx.x * {warps}u + warp; g < {experts}u; g += gridDim.x * {warps}u) {{
        const la_u32 from = {name}_get({padded}u + g), to = {name}_get({padded}u + g + 1u);
        for (la_u32 i = from + {name}_get({rows}u + g) + lane; i < to; i += LA_LANES) padded_order[i] = n;
        for (la_u32 i = from / {block}u + lane; i < to / {block}u; i += LA_LANES) block_experts[i] = (int)g;
    }}
    const la_u32 every = gridDim.x * {threads}u, number = blockIdx.x * {threads}u + t;
    for (la_u32 i = end + number; i < (la_u32)bound * {block}u; i += every) padded_order[i] = n;
    for (la_u32 i = end / {block}u + number; i < (la_u32)bound; i += every) block_experts[i] = -1;
    for (la_u32 i = all_rows + number; i < (la_u32)n; i += every) order[i] = n;
    if (blockIdx.x == 0)
        for (la_u32 g = t; g <= {experts}u; g += {threads}u) {{
            offsets[g] = (int){name}_get({starts}u + g);
            padded_offsets[g] = (int){name}_get({padded}u + g);
            if (g < {experts}u) counts[g] = (int){name}_get({rows}u + g);
        }}
}}
"""

_TOTALS = """\
        for (la_u32 b = 0; b < gridDim.x; ++b) {{
            const la_u32 many = (la_u32)by_block[b * {experts}u + g];
            total += many;
            before += b < blockIdx.x ? many : 0u;
        }}
"""


def routing_kernels(
    count: int,
    experts: int,
    block: int,
    *,
    local: tuple[int, int] | None = None,
    index_dtype: object = "s32",
    target: str = "sm_90a",
    name: str = "la_route",
) -> tuple[IndirectKernel, ...]:
    """Return the inspector: one kernel, or two to be launched one after the other.

    It writes the lists of ``la.routing`` as 32-bit integers: ``order`` filled with the sentinel ``count`` up to
    ``count``, ``padded_order`` up to ``tile_bound`` blocks, ``block_experts`` with -1. Entries that are no expert of
    this rank are left out, numbers that are no expert at all as well.

    Args:
        count: Flattened ids.
        experts: Number of experts, up to 1024.
        block: Rows of a block.
        local: First and last expert of this rank.
        index_dtype: Type of the ids: ``"s32"`` or ``"s64"``.
        target: The target.
        name: Kernel symbol.

    Raises: MalformedError: LA945, LA340, LA506.

    Example:
        >>> [kernel.blocks for kernel in routing_kernels(256, 64, 16)], [
        ...     kernel.blocks for kernel in routing_kernels(32768, 128, 64)]
        ([1], [32, 32])
    """
    found = answer.checked_target(target)
    many = CHECK.integer(count, "count", 0, MOST_ROWS)
    groups = CHECK.integer(experts, "experts", 1, MOST_EXPERTS + 1)
    height = CHECK.integer(block, "block", 1, 1 << 16)
    first, last = (0, groups - 1) if local is None else CHECK.vector(local, "local", 2, 0)
    if not first <= last < groups:
        raise CHECK.malformed("local", f"must be the first and the last expert, below {groups}", local)
    integer = element_type(index_dtype).name
    if integer not in INDICES:
        raise CHECK.malformed("index_dtype", f"must be one of {', '.join(INDICES)}", str(index_dtype))
    bound = tile_bound(many, last - first + 1, height)
    if bound * height > MOST_ROWS:
        raise CHECK.malformed("block", f"must give at most {MOST_ROWS} padded rows", height)
    checked_name(name)
    share = ONE_BLOCK
    while -(-many // share) > MOST_COUNTED_BLOCKS:
        share *= 2
    blocks, warps = max(1, -(-many // share)), THREADS // found.lanes
    single = blocks == 1
    index, size = INDICES[integer], int(integer[1:]) // 8
    ids = ((f"const {index}*", "topk_ids"), *(() if single else (("int*", "by_block"),)))
    given = index_list("topk_ids", many, size)
    table = index_list("by_block", blocks * groups, written=True)
    rows = warps * groups
    words = {
        "name": name, "index": index, "experts": groups, "first": first, "last": last, "warps": warps,
        "threads": THREADS, "block": height, "rows": rows, "starts": rows + groups, "padded": rows + 2 * groups + 1,
        "chunk": -(-groups // found.lanes), "single": "before + " if single else "",
        "totals": "" if single else _TOTALS.format(experts=groups),
    }  # fmt: skip
    smem = 4 * (rows + 3 * groups + 2)
    local_text = "" if local is None else f" {first} to {last}"
    what = f"stable sort of {many} labels by {groups} experts{local_text}, padded to blocks of {height}"
    outputs = {
        "counts": groups, "offsets": groups + 1, "order": many, "inverse": many, "padded_offsets": groups + 1,
        "padded_order": bound * height, "block_experts": bound,
    }  # fmt: skip
    lists = tuple(index_list(each, length, written=True) for each, length in outputs.items())
    into = (*ids, *(("int*", each) for each in outputs), ("int", "n"), ("int", "share"), ("int", "bound"))
    text = portable_prelude(target) + _SORT.format(**words)
    text += _PLACE.format(
        what=f"Stable sort of labels{local_text} by {groups} experts", signature=signature(into), **words
    )
    moved = many * (size + 8) + 4 * sum(outputs.values())
    placing = IndirectKernel(
        KernelSource(name, text, target, THREADS, smem, into), blocks, what, moved,
        (given, *(() if single else (replace(table, written=False),)), *lists), (many, share, bound),
    )  # fmt: skip
    if single:
        return (placing,)
    parameters = (*ids, ("int", "n"), ("int", "share"))
    counting_name = f"{name}_counts"
    words["name"] = counting_name
    text = portable_prelude(target) + _SORT.format(**words)
    text += _COUNT.format(what=f"Labels{local_text} by {groups} experts", signature=signature(parameters), **words)
    counting = KernelSource(counting_name, text, target, THREADS, 4 * rows, parameters)
    first_pass = IndirectKernel(
        counting, blocks, f"counts of {many} labels by {blocks} blocks", many * size + table.nbytes, (given, table),
        (many, share),
    )  # fmt: skip
    return first_pass, placing
