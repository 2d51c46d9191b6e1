"""The tiles of ragged groups, listed on the device: a kernel that reads sizes or offsets and writes a schedule.

The host knows neither sizes nor the number of tiles. It allocates for the tight bound: n rows in G groups have at most
``tile_bound(n, G, T)`` tiles of T rows. A schedule is int32: four words (tiles, rows of a tile, what is wrong, tiles
across), then four for each tile: its first row, its rows, its group, its first row in the result. Groups without rows
have no tile. What is wrong is 0, or 1 plus the first group whose size is negative, no multiple, too short, or ends
beyond the tensor or the result; then there are no tiles.

Implementation notes: every block scans all groups in shared memory, then writes its share of the tiles, each found by
binary search; so the blocks need not meet. Of several tile heights the kernel takes the one with the fewest tiles, by
the sizes themselves: tiles have equal bytes, so that is the least traffic.
"""

from __future__ import annotations

from collections.abc import Sequence

from layoutalg.codegen.kernel import KernelSource, checked_name, signature
from layoutalg.codegen.kernels import answer
from layoutalg.codegen.kernels.answer import CHECK
from layoutalg.codegen.portable import TENSOR_PRELUDE
from layoutalg.targets.nvidia.tensormap.limits import MAX_SMEM_BYTES

HEADER_WORDS = TILE_WORDS = 4
THREADS = (1024, 512, 256)
GROUPS_OF_THREAD = 4
"""Groups that a thread of the scheduler scans, at least, before a block has more threads."""
MOST_GROUPS = 16384
INDEX_TYPES = {"s32": "int", "s64": "long long"}
GIVEN = ("offsets", "sizes")
TILES_PER_BLOCK = 2048

_BODY = """
// Where a group is in shared memory: threads that walk their groups side by side use different banks.
__device__ __forceinline__ int {name}_at(int group) {{ return group{pad}; }}

// The schedule of {groups} groups by {given}: tiles of {told} rows, the height with the fewest tiles.
extern "C" __global__ void __launch_bounds__({threads}) {name}({signature})
{{
    long long* const begins = (long long*)la_shared();       // first row of each group, and the end
    int* const firsts = (int*)(begins + {name}_at({groups}) + 1);  // first tile of each group, and their number
    long long* const sums = (long long*)(la_shared() + {sums});
    const int t = threadIdx.x, from = t * {each} < {groups} ? t * {each} : {groups};
    const int to = from + {each} < {groups} ? from + {each} : {groups};
    static const la_u32 heights[{heights}] = {{{height_list}}};
    static const int across[{heights}] = {{{across_list}}};
{rows}
    // What is wrong, and the tiles of each height; partial sums of the threads are added by halves.
    for (int h = 0; h < {heights}; ++h) sums[h * {threads} + t] = 0;
    int bad = {groups};
    for (int g = from; g < to; ++g) {{
        const long long begin = begins[{name}_at(g)], end = begins[{name}_at(g + 1)], size = end - begin;
        const bool fits = begin >= 0 && end >= begin && end <= {limit}ll && size % {multiple} == 0
            && (size == 0 || (size >= {least}{inside}));
        if (!fits && g < bad) bad = g;
        for (int h = 0; h < {heights}; ++h)
            sums[h * {threads} + t] += fits ? ((la_u32)size + heights[h] - 1) / heights[h] : 0;
    }}
    sums[{heights} * {threads} + t] = bad;
    __syncthreads();
    for (int half = {threads} / 2; half; half /= 2) {{
        if (t < half) {{
            for (int h = 0; h < {heights}; ++h) sums[h * {threads} + t] += sums[h * {threads} + t + half];
            const long long other = sums[{heights} * {threads} + t + half];
            if (other < sums[{heights} * {threads} + t]) sums[{heights} * {threads} + t] = other;
        }}
        __syncthreads();
    }}
    int best = 0;
    for (int h = 1; h < {heights}; ++h)
        if (sums[h * {threads}] * across[h] < sums[best * {threads}] * across[best]) best = h;
    const la_u32 tile = heights[best];
    const int none = (int)sums[{heights} * {threads}];
    __syncthreads();

    // The first tile of each group: a scan over the threads, then over the groups of each.
    long long mine = 0;
    for (int g = from; g < to && none == {groups}; ++g)
        mine += ((la_u32)(begins[{name}_at(g + 1)] - begins[{name}_at(g)]) + tile - 1) / tile;
    {scan}
    int next = (int)(sums[t] - mine);
    for (int g = from; g < to; ++g) {{
        firsts[{name}_at(g)] = next;
        const la_u32 size = (la_u32)(begins[{name}_at(g + 1)] - begins[{name}_at(g)]);
        if (none == {groups}) next += (int)((size + tile - 1) / tile);
    }}
    if (t == {threads} - 1) firsts[{name}_at({groups})] = (int)sums[t];
    __syncthreads();

    const int tiles = firsts[{name}_at({groups})];
    if (blockIdx.x == 0 && t == 0) {{
        schedule[0] = tiles <= most ? tiles : 0;
        schedule[1] = tile;
        schedule[2] = none < {groups} ? none + 1 : tiles <= most ? 0 : {groups} + 1;
        schedule[3] = across[best];
    }}
    for (int i = (int)blockIdx.x * {threads} + t; i < tiles && tiles <= most; i += blocks * {threads}) {{
        int low = 0, high = {groups};  // the last group whose first tile is at most i; empty ones come before it
        while (high - low > 1) {{
            const int middle = (low + high) / 2;
            if (firsts[{name}_at(middle)] <= i) low = middle; else high = middle;
        }}
        const long long begin = begins[{name}_at(low)], end = begins[{name}_at(low + 1)];
        long long row = begin + (long long)(i - firsts[{name}_at(low)]) * tile;
{shift}        int* const at = schedule + {header} + {words} * i;
        at[0] = (int)row;
        at[1] = (int)(end - row < tile ? end - row : tile);
        at[2] = low;
        at[3] = (int)({into} + (row - begin));
    }}
}}
"""

_OFFSETS = """    for (int g = t; g <= {groups}; g += {threads}) begins[{name}_at(g)] = groups[g];
    __syncthreads();
"""
_SIZES = """    long long mine_rows = 0;
    for (int g = from; g < to; ++g) mine_rows += groups[g];
    {scan}
    long long begin_here = sums[t] - mine_rows;
    for (int g = from; g < to; ++g) {{
        begins[{name}_at(g)] = begin_here;
        begin_here += groups[g];
    }}
    if (t == {threads} - 1) begins[{name}_at({groups})] = sums[t];
    __syncthreads();
"""
_SCAN = """sums[t] = {value};
    __syncthreads();
    for (int step = 1; step < {threads}; step *= 2) {{
        const long long before = t >= step ? sums[t - step] : 0;
        __syncthreads();
        sums[t] += before;
        __syncthreads();
    }}"""
_SHIFT = """        if (end - begin >= tile && end - row < tile) row = end - tile;  // the last tile ends with the group
"""


def _padded(each: int) -> bool:
    """Whether the groups of a thread begin at an even distance from those of the next, unless a word is left out."""
    return each % 2 == 0


def _sums(groups: int, threads: int) -> int:
    """The first byte behind what is kept of groups, 12 bytes each."""
    each = -(-groups // threads)
    return -(-12 * (groups + groups // each * _padded(each) + 1) // 8) * 8


def schedule_kernel(
    groups: int,
    tiles: Sequence[tuple[int, int]],
    rows: int,
    target: str = "sm_90a",
    *,
    given: str = "offsets",
    index_dtype: str = "s32",
    multiple: int = 1,
    least: int = 1,
    shift_back: bool = False,
    placed: bool = False,
    into_rows: int | None = None,
    name: str | None = None,
) -> KernelSource:
    """Return the kernel that lists the tiles of ragged groups.

    Parameters: ``(groups, placed?, schedule, most, blocks)``: sizes or offsets, the first row of each group in the
    result, the schedule with room for ``most`` tiles, the grid.

    Args:
        groups: Their number, at most 16384.
        tiles: (rows, tiles across) of each tile height to choose from.
        rows: Rows of the tensor.
        target: The target.
        given: ``"offsets"``: G + 1 running sums, or ``"sizes"``.
        index_dtype: ``"s32"`` or ``"s64"``.
        multiple: What divides every size.
        least: Rows of the smallest group that is not empty.
        shift_back: Whether the last tile of a group of at least a tile ends with it.
        placed: Whether groups of the result begin elsewhere than in the source.
        into_rows: Rows of the result, if not those of the tensor.
        name: Kernel symbol.
    """
    answer.checked_target(target)
    CHECK.integer(groups, "groups", 1, MOST_GROUPS + 1)
    CHECK.choice(given, "given", GIVEN)
    CHECK.choice(index_dtype, "index_dtype", INDEX_TYPES)
    heights = [CHECK.integer(height, "tiles", 1, 257) for height, _ in tiles]
    row = 8 * (len(heights) + 1)
    threads = next(
        (n for n in THREADS if n * GROUPS_OF_THREAD <= groups and _sums(groups, n) + n * row <= MAX_SMEM_BYTES),
        THREADS[-1],
    )
    each, sums = -(-groups // threads), _sums(groups, threads)
    smem = answer.fitting(sums + threads * row, target, f"{groups} groups")
    ends = rows if into_rows is None else into_rows
    limit, inside = (rows, f" && placed[g] >= 0 && placed[g] <= {ends} - size") if placed else (min(rows, ends), "")
    name = f"la_schedule_{groups}_{given}" if name is None else checked_name(name)
    kind = INDEX_TYPES[index_dtype]
    parameters = (
        (f"const {kind}*", "groups"), *(((f"const {kind}*", "placed"),) if placed else ()), ("int*", "schedule"),
        ("int", "most"), ("int", "blocks"),
    )  # fmt: skip
    first = _OFFSETS if given == "offsets" else _SIZES
    common = {"name": name, "groups": groups, "threads": threads}
    text = _BODY.format(
        **common,
        given=given, signature=signature(parameters), each=each, sums=sums,
        told=", ".join(map(str, heights)), heights=len(heights), height_list=", ".join(map(str, heights)),
        across_list=", ".join([str(across) for _, across in tiles]), limit=limit, multiple=multiple, least=least,
        rows=first.format(**common, scan=_SCAN.format(value="mine_rows", threads=threads)),
        scan=_SCAN.format(value="mine", threads=threads), shift=_SHIFT if shift_back else "", header=HEADER_WORDS,
        words=TILE_WORDS, into="placed[low]" if placed else "begin", inside=inside,
        pad=f" + group / {each}" * _padded(each),
    )  # fmt: skip
    return KernelSource(name, TENSOR_PRELUDE + text, target, threads, smem, parameters, grid="blocks")
