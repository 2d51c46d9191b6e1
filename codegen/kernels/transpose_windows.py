"""Transpose of a matrix with unaligned rows: aligned vectors in, whole sectors out.

A block reads ``rows + S`` rows of a strip of columns and writes ``rows`` elements of every column, S being the elements
of a 32-byte sector. For column c the written window begins at the first sector boundary in row c of the result; windows
of vertically adjacent blocks follow without gaps, since ``rows`` is a multiple of S. The part of a row before its first
window is written separately.

Rows are read as the aligned 16-byte vectors that cover them. In shared memory row r begins ``pitch * r`` bytes after
row 0, with ``pitch`` congruent to the source's row size modulo 16: so every vector is 16-byte aligned there too, and
the address of element (r, c) is linear in both. A lane reads the elements of one result word from consecutive rows. The
words of neighbouring lanes are 4 pitch / size bytes apart; if this is an odd number of words, 32 lanes hit 32 banks;
otherwise lanes process ``columns`` adjacent columns to fill the gaps.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from layoutalg.codegen.kernel import KernelSource, checked_name, signature
from layoutalg.codegen.kernels import answer
from layoutalg.codegen.kernels.answer import CHECK, ArrayKernel
from layoutalg.codegen.kernels.arguments import ends
from layoutalg.codegen.portable import portable_prelude
from layoutalg.targets.bank_counting import BANKS
from layoutalg.targets.global_memory import SECTOR_BYTES, VECTOR_BYTES

MOST_HELD = 24

_BODY = """
// {what}.
// A block reads {rows} rows of {cols} columns and writes {high} elements of a column from its first whole sector on.
extern "C" __global__ void __launch_bounds__({threads}) {name}({signature})
{{
    const la_u32 t = threadIdx.x;
    const la_u32 above = blockIdx.x / {per_group}u * {group}u, inside = blockIdx.x % {per_group}u;
    const la_u32 tall = {down}u - above < {group}u ? {down}u - above : {group}u;
    const la_u32 row0 = (above + inside % tall) * {high}u, col0 = inside / tall * {cols}u;
    const la_u64 corner = ((la_u64)row0 * {all_cols}u + col0){times};
    const la_u32 shift = (la_u32)corner & 15u;  // row r of the tile begins at byte shift + {pitch} r of shared memory

    // Aligned vectors of 16 bytes: {vectors} threads read a row.
    const la_u32 across = t % {vectors}u * 16u, line = t / {vectors}u;
    la_words4 held[{steps}];
#pragma unroll
    for (la_u32 i = 0; i < {steps}u; ++i) {{
        const la_u32 row = line + {lines}u * i;
        const la_u64 at = ((corner + (la_u64)row * {row_bytes}ull) & ~15ull) + across;
        held[i] = la_words4{{}};
        if (at + 16u <= {total}ull{whole}) held[i] = *(const la_words4*)(from + at);
    }}
#pragma unroll
    for (la_u32 i = 0; i < {steps}u; ++i) {{
        const la_u32 row = line + {lines}u * i;
        {guard}la_shared_store_b128(((shift + row * {pitch}u) & ~15u) + across, held[i]);
    }}
{tail}    __syncthreads();

    // A lane writes a word of a row of the result: elements of {packed} rows of the tile.
    const la_u32 lane = t % LA_LANES, part = {within} * {packed}u;
    for (la_u32 n = t / LA_LANES; n < {passes}u; n += {warps}u) {{
        const la_u32 c = {column}, to_col = col0 + c;
        if (to_col >= {all_cols}u) {leave};
        const la_u64 to = (la_u64)to_col * {all_rows}u + row0;
        const la_u32 skip = (0u - (la_u32)to) & {mask}u;  // elements before the first whole sector
        const la_u32 place = shift + c{times} + (skip + part) * {pitch}u;
        unsigned char* begin = into + (to + skip + part){times};
        const la_u32 left = {all_rows}u - row0;
#pragma unroll
        for (la_u32 j = 0; j < {turns}u; ++j) {{
            const la_u32 row = skip + part + {stride}u * j;
            const la_u32 word = la_word_at(place + {stride_bytes}u * j);
            if (row + {packed}u <= left) *(la_u32*)(begin + {step}u * j) = word;
{rest}        }}
        if (row0 == 0) {{  // what lies before the first whole sector
            for (la_u32 k = {within}; k < skip && k < {all_rows}u; k += {along}u)
                ((la_element*)into)[to + k] = (la_element)la_shared_load_b{bits}(shift + c{times} + k * {pitch}u);
        }}
    }}
}}
"""

_REST = """            else
                for (la_u32 i = 0; i < {packed}u && row + i < left; ++i)
                    ((la_element*)(begin + {step}u * j))[i] = (la_element)(word >> {bits}u * i);
"""

_TAIL = """    if (corner + {reach}ull > {total}ull) {{  // the last {count} elements fill no vector
        __syncthreads();
        if (t < {count}u) {{
            const la_u64 element = {first}ull + t;
            const la_u32 row = (la_u32)(element / {all_cols}u), col = (la_u32)(element % {all_cols}u);
            if (row >= row0 && row - row0 < {rows}u && col >= col0 && col - col0 < {cols}u)
                la_shared_store_b{bits}(shift + (row - row0) * {pitch}u + (col - col0){times},
                                        ((const la_element*)from)[element]);
        }}
    }}
"""

_WORDS = {
    1: """
typedef unsigned char la_element;

// The word of four elements of one column, {pitch} bytes apart.
__device__ __forceinline__ la_u32 la_word_at(la_u32 place)
{{
    const la_u32 a = la_shared_load_b8(place), b = la_shared_load_b8(place + {pitch}u);
    const la_u32 c = la_shared_load_b8(place + 2u * {pitch}u), d = la_shared_load_b8(place + 3u * {pitch}u);
    return la_permute(la_permute(a, b, 0x5140u), la_permute(c, d, 0x5140u), 0x5410u);
}}
""",
    2: """
typedef unsigned short la_element;

// The word of two elements of one column, {pitch} bytes apart.
__device__ __forceinline__ la_u32 la_word_at(la_u32 place)
{{
    return la_permute(la_shared_load_b16(place), la_shared_load_b16(place + {pitch}u), 0x5410u);
}}
""",
    4: """
typedef la_u32 la_element;

__device__ __forceinline__ la_u32 la_word_at(la_u32 place) {{ return la_shared_load_b32(place); }}
""",
}


def transpose_windows_kernel(
    shape: Sequence[int],
    dtype: object,
    target: str = "sm_90a",
    *,
    rows: int | None = None,
    vectors: int | None = None,
    threads: int | None = None,
    group: int | None = None,
    name: str | None = None,
) -> ArrayKernel:
    """Return the kernel that transposes a dense row-major matrix of any extents, by vectors and whole sectors.

    Mathematically: ``into[c, r] = from[r, c]``. Source and destination must be 16-byte aligned.

    Args:
        shape: Rows and columns.
        dtype: Element type of 1, 2 or 4 bytes.
        target: The target.
        rows: Elements of a column that a block writes, a power of two of at least 128 bytes.
        vectors: Vectors of 16 bytes that a block reads of each row: 8, 16 or 32.
        threads: Threads of a block.
        group: Number of vertically adjacent tiles that consecutive blocks process before moving right.
        name: Kernel symbol.

    Defaults are the fastest measured.

    Example:
        >>> made = transpose_windows_kernel((8191, 8193), "f32")
        >>> made.blocks, made.kernel.threads
        (8640, 512)
    """
    all_rows, all_cols = answer.checked_shape(shape, 2)
    size, found = answer.element_bytes(dtype, (1, 2, 4)), answer.checked_target(target)
    threads = 512 if threads is None else answer.checked_threads(threads, found)
    group = CHECK.integer(64 if group is None else group, "group", 1, 1 << 16)
    vectors = answer.power((8 if size == 1 else 16) if vectors is None else vectors, "vectors", 8, 32)
    packed, sector = 4 // size, SECTOR_BYTES // size
    pitch = vectors * VECTOR_BYTES + (all_cols * size % VECTOR_BYTES or VECTOR_BYTES)
    columns = min(4, gcd(pitch // size, BANKS))
    along = found.lanes // columns
    high = max((512 if size == 4 else 256) // size, along * packed) if rows is None else rows
    high = answer.power(high, "rows", max(128 // size, along * packed), 4096)
    height, lines, warps = high + sector, threads // vectors, threads // found.lanes
    steps = -(-height // lines)
    if steps > MOST_HELD:
        raise CHECK.malformed("rows", f"must give a thread at most {MOST_HELD} vectors", steps)
    # a row of this many columns fits its aligned vectors wherever it begins
    cols = ((vectors - 1) * VECTOR_BYTES // size + 1) // (columns * packed) * (columns * packed)
    down, across = -(-all_rows // high), -(-all_cols // cols)
    group = min(group, down)
    answer.checked_grid(
        lambda extent: -(-extent // high) * across, all_rows, answer.most_blocks(found, threads), splits=False
    )
    smem = answer.fitting(height * pitch + 2 * VECTOR_BYTES, target, f"{height} rows of {pitch} bytes")
    what = f"transpose of {all_rows} x {all_cols} {answer.elements(size)}"
    name = f"la_transpose_{all_rows}x{all_cols}_b{8 * size}" if name is None else checked_name(name)
    parameters = (("const unsigned char*", "from"), ("unsigned char*", "into"))
    total = all_rows * all_cols * size
    guard = f"row < {height}u" if height % lines else ""
    stride = along * packed
    numbers = {
        "what": answer.sentence(what), "rows": height, "cols": cols, "high": high, "threads": threads, "name": name,
        "signature": signature(parameters), "per_group": group * across, "group": group, "down": down,
        "all_rows": all_rows, "all_cols": all_cols, "times": f" * {size}u" if size > 1 else "",
        "bits": 8 * size, "pitch": pitch,
        "vectors": vectors, "steps": steps, "lines": lines, "row_bytes": all_cols * size, "total": total,
        "whole": f" && {guard}" if guard else "", "guard": f"if ({guard}) " if guard else "", "packed": packed,
        "along": along, "passes": cols // columns, "warps": warps, "mask": sector - 1, "turns": high // stride,
        "within": "lane" if columns == 1 else f"lane % {along}u",
        "stride": stride, "stride_bytes": stride * pitch, "step": 4 * along,
        "column": _column(columns, packed, along), "leave": "break" if columns == 1 else "continue",
        "count": total % VECTOR_BYTES // size, "first": total // VECTOR_BYTES * VECTOR_BYTES // size,
        "reach": ((height - 1) * all_cols + cols) * size + VECTOR_BYTES,
    }  # fmt: skip
    rest = _REST.format(**numbers) if packed > 1 else ""
    tail = _TAIL.format(**numbers) if total % VECTOR_BYTES else ""
    text = _WORDS[size].format(**numbers) + _BODY.format(**numbers, rest=rest, tail=tail)
    kernel = KernelSource(name, portable_prelude(target) + text, target, threads, smem, parameters)
    arrays = ends((all_rows, all_cols), (all_cols, all_rows), size, VECTOR_BYTES)
    return ArrayKernel(kernel, down * across, what, 2 * total, arrays)


def _column(columns: int, packed: int, along: int) -> str:
    """The tile column that a lane writes in pass ``n``; adjacent lane groups are one word apart."""
    if columns == 1:
        return "n"
    beside = f"lane / {along}u"
    if packed == 1:
        return f"n * {columns}u + {beside}"
    return f"n / {packed}u * {columns * packed}u + {beside} * {packed}u + n % {packed}u"
