"""The transpose of a matrix whose rows begin at any element: every row of the result is written by whole sectors.

Main definitions: ``transpose_windows_kernel``.

Main statements: a block loads ``rows`` rows of a strip of columns and writes ``rows - S`` elements of every column, S
being the elements of a sector of 32 bytes. For column c the written window begins at the first element that begins a
sector in row c of the result; the windows of the blocks below each other follow without gaps, since ``rows - S`` is a
multiple of S. What lies before the first window of a row is written by itself.

Notation: column c lies in shared memory as a run of ``rows`` elements, its word w at place ``w ^ (c / p) % 32``, p
elements a word. Stores run along the columns, loads along the rows from any first row on; both find 32 different banks
in 32 lanes, the loads because only the column decides what is exclusive-ored.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from layoutalg.codegen.kernel import KernelSource, checked_name, signature
from layoutalg.codegen.kernels.answer import (
    CHECK,
    ArrayKernel,
    checked_shape,
    checked_target,
    checked_threads,
    element_bytes,
    fitting,
    power,
)
from layoutalg.codegen.kernels.turned import turned_words
from layoutalg.codegen.kernels.words import words_text
from layoutalg.codegen.portable import portable_prelude

SECTOR_BYTES = 32
BANKS = 32
MOST_HELD = 64

_BODY = """
// {what}:
// a block reads {rows} rows of {cols} columns and writes {high} elements of each, from the first whole sector on.
extern "C" __global__ void __launch_bounds__({threads}) {name}({signature})
{{
    const la_u32 lane = threadIdx.x % LA_LANES, warp = threadIdx.x / LA_LANES;
    const la_u32 above = blockIdx.x / {per_group}u * {group}u, inside = blockIdx.x % {per_group}u;
    const la_u32 high = {down}u - above < {group}u ? {down}u - above : {group}u;
    const la_u32 row0 = (above + inside % high) * {high}u, col0 = inside / high * {cols}u;

    // A warp reads a row at a time, a lane {packed} elements of it.
    const la_u32 col = col0 + lane{times};
    const la_u32 first = lane * {lane_pitch}u ^ (warp ^ lane % {banks}u) * 4u;
{declared}
#pragma unroll
    for (la_u32 i = 0; i < {steps}u; ++i) {{
        const la_u32 row = row0 + (warp + {warps}u * i){times};
{loads}    }}
#pragma unroll
    for (la_u32 i = 0; i < {steps}u; ++i) {{
        const la_u32 place = first ^ {stride}u * i;
{stores}    }}
    __syncthreads();

    // A warp writes a row of the result at a time, a lane a word.
#pragma unroll 2
    for (la_u32 c = warp; c < {cols}u; c += {warps}u) {{
        const la_u32 to_col = col0 + c;
        if (to_col >= {all_cols}u) break;
        const la_u64 to = (la_u64)to_col * {all_rows}u + row0;
        const la_u32 skip = (0u - (la_u32)to) & {mask}u;  // elements before the first whole sector
        const la_u32 run = c * {pitch}u, turn = c{over} % {banks}u;
        unsigned char* begin = into + (to + skip) * {size}u;
#pragma unroll
        for (la_u32 j = 0; j < {turns}u; ++j) {{
            const la_u32 k = (lane + {lanes}u * j){times}, row = skip + k;
{take}            const bool mine = k < {high}u;
            if (mine && row0 + row + {packed}u <= {all_rows}u) *(la_u32*)(begin + k * {size}u) = word;
{rest}        }}
        if (row0 == 0) {{  // what lies before the first whole sector
            const la_u32 word = la_shared_load_b32(run + (lane{over} ^ turn) * 4u);
            if (lane < skip && lane < {all_rows}u) ((LA_ELEMENT_TYPE*)into)[lane + to] = (LA_ELEMENT_TYPE){part};
        }}
    }}
}}
"""


def transpose_windows_kernel(
    shape: Sequence[int],
    dtype: str,
    target: str = "sm_90a",
    *,
    rows: int | None = None,
    threads: int | None = None,
    group: int | None = None,
    name: str | None = None,
) -> ArrayKernel:
    """Return the kernel that transposes a dense row-major matrix of any extents, by words and whole sectors.

    Args:
        shape: Rows and columns.
        dtype: Element type of 1, 2 or 4 bytes.
        target: The target.
        rows: Rows that a block reads, a power of two of at least 128 bytes; chosen when left out.
        threads: Threads of a block; the best of those measured when left out, as for ``rows`` and ``group``.
        group: Strips of rows that neighbouring blocks take below each other.
        name: Kernel symbol.

    Raises: MalformedError: LA945, LA340, LA375, LA506. InfeasibleError: LA946.

    Example:
        >>> made = transpose_windows_kernel((8191, 8193), "f32")
        >>> made.blocks, made.kernel.dynamic_smem_bytes
        (17733, 16384)
    """
    all_rows, all_cols = checked_shape(shape, 2)
    size, found = element_bytes(dtype, (1, 2, 4)), checked_target(target)
    threads = (512 if size == 2 else 256) if threads is None else checked_threads(threads, found)
    group = CHECK.integer((1 if size == 4 else 64) if group is None else group, "group", 1, 1 << 16)
    packed, lanes, warps = 4 // size, found.lanes, threads // found.lanes
    cols = lanes * packed
    height = (4096 if size == 4 and lanes == 32 else 8192) * packed // cols if rows is None else rows
    height = power(height, "rows", max(128 // size, warps * packed), 4096)
    steps = height // (warps * packed)
    if steps * packed > MOST_HELD:
        raise CHECK.malformed("rows", f"must leave a thread at most {MOST_HELD} words", steps * packed)
    high = height - SECTOR_BYTES // size
    down, across = -(-all_rows // high), -(-all_cols // cols)
    group = min(group, down)
    if down * across >= 1 << 31:
        raise CHECK.malformed("shape", "must leave fewer than 2^31 blocks", down * across)
    smem = fitting(height * cols * size, target, f"{height} rows of {cols} columns")
    what = f"transpose of {all_rows} x {all_cols} elements of {size} bytes"
    name = f"la_transpose_{all_rows}x{all_cols}_b{8 * size}" if name is None else checked_name(name)
    parameters = (("const unsigned char*", "from"), ("unsigned char*", "into"))
    declared, loads, stores = _inward(all_rows, all_cols, size, packed, height * size, steps, warps)
    text = words_text(size) + _BODY.format(
        what=what, rows=height, cols=cols, high=high, threads=threads, name=name, signature=signature(parameters),
        per_group=group * across, group=group, down=down, packed=packed, pitch=height * size, banks=BANKS,
        lane_pitch=packed * height * size, times=f" * {packed}u" if packed > 1 else "",
        over=f" / {packed}u" if packed > 1 else "",
        part=f"(word >> lane % {packed}u * {8 * size}u)" if packed > 1 else "word",
        declared=declared, steps=steps, warps=warps, loads=loads, stride=4 * warps, stores=stores,
        all_cols=all_cols, all_rows=all_rows, mask=SECTOR_BYTES // size - 1, size=size,
        turns=-(-high // (lanes * packed)), lanes=lanes, take=_taken(packed, height),
        rest=_rest(size, packed, all_rows),
    )  # fmt: skip
    kernel = KernelSource(name, portable_prelude(target) + text, target, threads, smem, parameters)
    return ArrayKernel(kernel, down * across, what, 2 * all_rows * all_cols * size)


def _inward(
    all_rows: int, all_cols: int, size: int, packed: int, pitch: int, steps: int, warps: int
) -> tuple[str, str, str]:
    """Declarations, loads and stores of the words that a step reads: ``packed`` rows of one word."""
    shifted = all_cols * size % 4 != 0
    total = all_rows * all_cols * size
    declared, loads = [], []
    for line in range(packed):
        row = f"row + {line}u" if line else "row"
        inside = f"{row} < {all_rows}u && col < {all_cols}u"
        at = f"((la_u64)({row}) * {all_cols}u + col) * {size}u"
        if shifted:
            declared.append(f"    la_u32 low{line}[{steps}], high{line}[{steps}];\n")
            loads += [
                f"low{line}[i] = {inside} ? la_word_around(from, {at}, {total}ull) : 0u;",
                f"high{line}[i] = {inside} ? la_word_around(from, {at} + 4u, {total}ull) : 0u;",
            ]
        elif size < 4:
            declared.append(f"    la_u32 held{line}[{steps}];\n")
            loads.append(f"held{line}[i] = {inside} ? la_word_around(from, {at}, {total}ull) : 0u;")
        else:
            declared.append(f"    la_u32 held{line}[{steps}];\n")
            loads.append(f"held{line}[i] = {inside} ? *(const la_u32*)(from + {at}) : 0u;")
    stores = []
    for line in range(packed):
        if shifted:
            row = f"row0 + (warp + {warps}u * i) * {packed}u + {line}u"
            at = f"(({row}) * {all_cols}u + col) * {size}u"
            stores.append(f"const la_u32 a{line} = la_word_of(low{line}[i], high{line}[i], {at});")
        else:
            stores.append(f"const la_u32 a{line} = held{line}[i];")
    names = (f"w{number}" for number in itertools.count())
    lines, columns = turned_words([[f"a{line}"] for line in range(packed)], size, names)
    stores += lines
    stores += [
        f"la_shared_store_b32(place{f' ^ {part * pitch}u' if part else ''}, {words[0]});"
        for part, words in enumerate(columns)
    ]
    return "".join(declared), _indented(loads), _indented(stores)


def _indented(lines: Sequence[str]) -> str:
    return "".join(f"        {line}\n" for line in lines)


def _taken(packed: int, height: int) -> str:
    """Statements that bring the word of rows ``row`` to ``row + packed - 1`` of a column; all lanes load."""
    if packed == 1:
        lines = [f"const la_u32 word = la_shared_load_b32(run + (row % {height}u ^ turn) * 4u);"]
    else:
        lines = [
            f"const la_u32 at = row / {packed}u % {height // packed}u, after = (at + 1u) % {height // packed}u;",
            "const la_u32 low = la_shared_load_b32(run + (at ^ turn) * 4u);",
            "const la_u32 high = la_shared_load_b32(run + (after ^ turn) * 4u);",
            f"const la_u32 word = la_word_of(low, high, row % {packed}u * {4 // packed}u);",
        ]
    return "".join(f"            {line}\n" for line in lines)


def _rest(size: int, packed: int, all_rows: int) -> str:
    """The last elements of a row that fill no word."""
    if packed == 1:
        return ""
    return (
        f"            else if (mine && row0 + row < {all_rows}u)\n"
        f"                la_part_to(begin, k * {size}u, word, 0, ({all_rows}u - row0 - row) * {size}u);\n"
    )
