"""Ragged copies by thread vectors: one launch that reads the groups itself, for groups too small for boxes.

Every block reads all sizes or offsets into its shared memory and refuses wrong ones, so there is no schedule and no
launch before the copy; 16,384 groups are 64 KB that come from the L2 cache. Groups that stay where they are lie one
behind the other on both sides: they are one span of bytes, whatever their sizes. Groups that are placed elsewhere are
moved by whole vectors of a row: the vectors of all groups are dealt to the warps in turns, and each is shifted with its
group, found from the group of the vector before by doubling steps.

Implementation notes: rows of a placed group begin at any multiple of the row's bytes, so vectors are as long as divides
these; a span begins and ends anywhere, and the bytes outside its vectors of 16 are copied one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from layoutalg.codegen.kernel import KernelSource, checked_name, signature
from layoutalg.codegen.kernels import answer
from layoutalg.codegen.kernels.answer import CHECK, MOST_EXTENT, PERSISTENT_GRID
from layoutalg.codegen.kernels.arguments import ends
from layoutalg.codegen.kernels.indirect import IndirectKernel, index_list
from layoutalg.codegen.kernels.schedule import GIVEN, INDEX_TYPES, MOST_GROUPS
from layoutalg.codegen.kernels.turned import fields
from layoutalg.codegen.kernels.vectors import COPY_LOOP
from layoutalg.codegen.portable import ELEMENT_TYPES, VECTOR_TYPES, portable_prelude
from layoutalg.targets.global_memory import VECTOR_BYTES
from layoutalg.targets.registry import vendor_of

MOST_BLOCKS = 132
"""One for each multiprocessor of an H200: further blocks would read all groups again and copy no faster."""

_BODY = """
// A number of rows; what is negative or beyond ``most`` becomes one more than ``most``, also in sums.
__device__ __forceinline__ la_u32 {name}_kept(long long rows, la_u32 most)
{{
    return (la_u64)rows > most ? most + 1u : (la_u32)rows;
}}

// The group of a row, which is in ``group`` or behind it.
__device__ __forceinline__ la_u32 {name}_group(const la_u32* begins, la_u32 group, la_u32 row)
{{
    la_u32 step = 1;
    for (; group + step < {groups}u && begins[group + step] <= row; step *= 2) group += step;
    while (step /= 2)
        if (group + step < {groups}u && begins[group + step] <= row) group += step;
    return group;
}}

// {what}.
extern "C" __global__ void __launch_bounds__({threads}) {name}(
    {signature})
{{
    la_u32* const begins = (la_u32*)la_shared();  // first row of each group, and the end
    la_u32* const shares = begins + {groups}u + 1u;  // a word of each warp, then another
    la_u32* const shifts = shares + {shares}u;  // rows from a group to its place, modulo 2^32
    const la_u32 t = threadIdx.x, lane = t % LA_LANES, warp = t / LA_LANES;
{ahead}{read}{then}    __syncthreads();
    la_u32 wrong = {groups}u;  // the first wrong group
    #pragma unroll 4
    for (la_u32 g = t; g < {groups}u; g += {threads}u) {{
        const la_u32 begin = begins[g], end = begins[g + 1u];
        bool fits = begin <= end && end <= {limit}u && (end - begin) % {multiple}u == 0;
{place}        if (!fits && g < wrong) wrong = g;
    }}
    for (la_u32 half = LA_LANES / 2; half; half /= 2) {{
        const la_u32 other = la_shuffle(wrong, lane ^ half);
        if (other < wrong) wrong = other;
    }}
    if (lane == 0) shares[{warps}u + warp] = wrong;
    __syncthreads();
    for (la_u32 w = 0; w < {warps}u; ++w)
        if (shares[{warps}u + w] < wrong) wrong = shares[{warps}u + w];
    if (t == 0) status[blockIdx.x] = wrong < {groups}u ? -1 - (int)wrong : 1;
    if (wrong < {groups}u) return;
{behind}    while (at - lane < end) {{
{stores}        at += ({index})blocks * {block}u;
{more}    }}
}}
"""
_OFFSETS = """\
    #pragma unroll 8
    for (la_u32 g = t; g <= {groups}u; g += {threads}u) begins[g] = {name}_kept((long long)groups[g], {limit}u);
"""
_SIZES = """\
    // Each warp adds up its share of the sizes, then all that come before.
    la_u32 sum = 0;
    #pragma unroll 4
    for (la_u32 i = 0; i < {part}u; i += LA_LANES) {{
        const la_u32 g = warp * {part}u + i + lane;
        la_u32 end = g < {groups}u ? {name}_kept((long long)groups[g], {limit}u) : 0u;
        for (la_u32 step = 1; step < LA_LANES; step *= 2) {{
            const la_u32 before = la_shuffle(end, (lane - step) % LA_LANES);
            if (lane >= step) end = {name}_kept((long long)end + before, {limit}u);
        }}
        end = {name}_kept((long long)end + sum, {limit}u);
        if (g < {groups}u) begins[g + 1u] = end;
        sum = la_shuffle(end, LA_LANES - 1u);
    }}
    if (lane == 0) shares[warp] = sum;
    if (t == 0) begins[0] = 0;
    __syncthreads();
    sum = 0;
    for (la_u32 w = 0; w < warp; ++w) sum = {name}_kept((long long)sum + shares[w], {limit}u);
    for (la_u32 g = warp * {part}u + lane; g < {groups}u && g < warp * {part}u + {part}u; g += LA_LANES)
        begins[g + 1u] = {name}_kept((long long)begins[g + 1u] + sum, {limit}u);
"""
_PLACES = """\
    #pragma unroll 8
    for (la_u32 g = t; g < {groups}u; g += {threads}u) shifts[g] = {name}_kept((long long)placed[g], {ends}u);
"""
_PLACE = """\
        const la_u32 place = shifts[g];
        fits = fits && (begin == end || (place <= {ends}u && end - begin <= {ends}u - place));
        shifts[g] = place - begin;
"""
_ENDS = {
    "offsets": """\
    const la_u32 from_row = {name}_kept((long long)groups[0], {limit}u);
    la_u32 to_row = {name}_kept((long long)groups[{groups}u], {limit}u);
    if (to_row > {limit}u || to_row < from_row) to_row = from_row;  // refused below
""",
    "sizes": """\
    const la_u32 from_row = begins[0], to_row = begins[{groups}u];
""",
}
_ROWS = """\
    const {index} first = ({index})from_row * {row}u, end = ({index})to_row * {row}u;
"""
_BYTES = """\
    const la_u64 begin_byte = (la_u64)from_row * {row}u, end_byte = (la_u64)to_row * {row}u;
    const {index} first = ({index})((begin_byte + 15u) / 16u), end = ({index})(end_byte / 16u);
"""
_FIRST = """\
    // With offsets the first rows are on their way while the groups are checked; before the groups are read they would
    // delay them.
    {index} at = first + ({index})blockIdx.x * {block}u + warp * {span}u + lane;
{vectors}{loads}"""
_EDGES = """\
    // The bytes before and behind the vectors of 16 are of the first block.
    const la_u64 head = (la_u64)first * 16u < end_byte ? (la_u64)first * 16u : end_byte;
    const la_u64 tail = (la_u64)end * 16u > head ? (la_u64)end * 16u : head;
    if (blockIdx.x == 0 && t < 16) {{
        const unsigned char* const bytes = (const unsigned char*)from;
        if (begin_byte + t < head) ((unsigned char*)into)[begin_byte + t] = bytes[begin_byte + t];
        if (tail + t < end_byte) ((unsigned char*)into)[tail + t] = bytes[tail + t];
    }}
"""


@dataclass(frozen=True, slots=True)
class SpanKernel(IndirectKernel):
    """One kernel that moves the rows of ragged groups: arrays ``source``, ``destination``, ``groups``, ``placed``."""

    def gave_up(self, status: int) -> str:
        """Say what a status means; empty for success."""
        if status < 0:
            return f"nothing was copied: group {-1 - status} has a wrong size, or ends beyond the rows of a side"
        return "" if status == 1 else f"the kernel did not finish: status {status}"


def ragged_span_kernel(
    shape: Sequence[int],
    dtype: object,
    groups: int,
    target: str = "sm_90a",
    *,
    multiple: int = 1,
    into_rows: int | None = None,
    given: str = "offsets",
    index_dtype: str = "s32",
    placed: bool = False,
    threads: int = 1024,
    per_thread: int = 8,
    name: str | None = None,
) -> SpanKernel:
    """Return the kernel that copies ragged groups of a row-major matrix by vectors, in one launch.

    Mathematically: ``into[placed[g] + i] = from[offsets[g] + i]`` for the rows i of each group, and nothing else; if
    the sizes are wrong, nothing at all, and every status names the first wrong group (``gave_up``).

    Args:
        shape: Rows and columns.
        dtype: Element type by any of its names.
        groups: The number of groups.
        target: The target; it needs no copy engine.
        multiple: What divides every size.
        into_rows: Rows of the destination, if not those of the source.
        given: Whether ``groups`` of the launch are ``"offsets"`` (G + 1 running sums) or ``"sizes"``.
        index_dtype: Their type, ``"s32"`` or ``"s64"``.
        placed: Whether groups begin elsewhere in the destination, by another array; they must not overlap there.
        threads: Threads of a block.
        per_thread: Vectors that a thread reads before it writes, 1 to 16.
        name: Kernel symbol.

    Raises: MalformedError: LA945. InfeasibleError: LA946.

    Example:
        >>> made = ragged_span_kernel((65536, 256), "f32", 16384)
        >>> [each.name for each in made.arrays], made.blocks
        (['source', 'destination', 'groups'], 132)
        >>> ragged_span_kernel((65536, 250), "f32", 16384, placed=True).arrays[0].align_bytes
        8
    """
    rows, columns = answer.checked_shape(shape, 2)
    found, size = answer.checked_target(target), answer.element_bytes(dtype)
    CHECK.integer(groups, "groups", 1, MOST_GROUPS + 1)
    CHECK.integer(multiple, "multiple", 1, MOST_EXTENT)
    CHECK.choice(given, "given", GIVEN)
    CHECK.choice(index_dtype, "index_dtype", INDEX_TYPES)
    CHECK.kind(placed, bool, "placed")
    answer.checked_threads(threads, found)
    CHECK.integer(per_thread, "per_thread", 1, 17)
    into, row_bytes = answer.checked_shape((rows if into_rows is None else into_rows, columns))[0], columns * size
    vector = min(VECTOR_BYTES, row_bytes & -row_bytes) if placed else VECTOR_BYTES
    warps, span, block = threads // found.lanes, found.lanes * per_thread, threads * per_thread
    vectors = -(-max(rows, into) * row_bytes // vector)
    index = "la_u32" if vectors < MOST_EXTENT else "la_u64"  # a step behind the last stays below 2^32
    by = f"{' to other places' * placed} by vectors of {vector} byte{'s' * (vector > 1)}"
    what = f"copy of {groups} ragged groups of {rows} x {columns} {answer.elements(size)}{by}"
    name = f"la_ragged_spans_{rows}x{columns}_b{8 * size}" if name is None else checked_name(name)
    kind, integer = ({**ELEMENT_TYPES, **VECTOR_TYPES})[vector], INDEX_TYPES[index_dtype]
    listed = ("groups", "placed") if placed else ("groups",)
    parameters = (
        (f"const {kind}*", "from"), (f"{kind}*", "into"), *[(f"const {integer}*", each) for each in listed],
        ("int", PERSISTENT_GRID), ("int*", "status"),
    )  # fmt: skip
    loads, stores, held = [], [], []
    for number in range(per_thread):
        at = f"at + {number * found.lanes}u" if number else "at"
        taken = f"from[{at}]"
        if vector == VECTOR_BYTES:
            taken = COPY_LOOP.read(target, "from", f"({at})")
        elif vendor_of(target) == "amd" and vector == 8:  # clang for AMD would spill structs copied as a whole
            taken = f"{kind}{{{{{', '.join(fields(2, taken))}}}}}"
        held.append(f"    {kind} a{number} = {{}};\n")
        loads.append(f"if ({at} < end) a{number} = {taken};\n")
        there = at
        if placed:
            row = f"({at}) / {row_bytes // vector}u"
            stores.append(f"        if ({at} < end) group = {name}_group(begins, group, (la_u32)({row}));\n")
            there = f"{at} + ({index})(int)shifts[group] * {row_bytes // vector}u"
        put = COPY_LOOP.write(target, "into", f"({there})") if vector == VECTOR_BYTES else f"into[{there}] = {{value}}"
        stores.append(f"        if ({at} < end) {put.format(value=f'a{number}')};\n")
    whole, early = row_bytes % vector == 0, given == "offsets"
    common = {
        "name": name, "groups": groups, "threads": threads, "multiple": multiple, "ends": into, "index": index,
        "limit": rows if placed else min(rows, into), "part": -(-groups // threads) * found.lanes, "block": block,
        "row": row_bytes // vector if whole else row_bytes, "span": span, "vectors": "".join(held),
        "loads": "".join("    " + each for each in loads),
    }  # fmt: skip
    moves, behind = _ENDS[given] + (_ROWS if whole else _BYTES), "" if whole else _EDGES
    behind += "    la_u32 group = 0;\n" * placed
    parts = {
        "ahead": moves * early, "then": _FIRST * early, "behind": (moves + _FIRST) * (not early) + behind,
        "read": (_OFFSETS if given == "offsets" else _SIZES) + _PLACES * placed, "place": _PLACE * placed,
    }  # fmt: skip
    text = _BODY.format(
        **common, **{part: each.format(**common) for part, each in parts.items()}, what=answer.sentence(what),
        signature=signature(parameters), warps=warps, shares=2 * warps, stores="".join(stores),
        more="".join("        " + each for each in loads),
    )  # fmt: skip
    smem = answer.fitting(4 * (groups + 1 + 2 * warps + groups * placed), target, f"{groups} groups")
    prelude = COPY_LOOP.prelude(target) if vector == VECTOR_BYTES else ""
    kernel = KernelSource(name, portable_prelude(target) + prelude + text, target, threads, smem, parameters)
    indices = 4 if index_dtype == "s32" else 8
    arrays = ends((rows, columns), (into, columns), size, max(size, vector))
    arrays += (index_list("groups", groups + (given == "offsets"), indices),)
    arrays += (index_list("placed", groups, indices),) if placed else ()
    blocks = max(1, min(MOST_BLOCKS, -(-rows * row_bytes // (vector * block))))
    moved = 2 * min(rows, into) * row_bytes + sum([each.nbytes for each in arrays[2:]])
    return SpanKernel(kernel, blocks, what, moved, arrays, (), persistent=True)
