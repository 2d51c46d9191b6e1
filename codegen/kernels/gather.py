"""Gathers along an axis: by shuffles of a warp, through shared memory, or directly.

The array is viewed as (outer, n, inner), n being the axis. If inner is 1 and a row of n elements fits a few registers
per lane, a warp holds the row and lanes read it from each other; if it fits shared memory, a block keeps it there;
otherwise every element is loaded directly from global memory.

Implementation notes: an index outside the axis (including negative ones) gives 0; nothing outside the array is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from layoutalg.codegen.kernel import KernelSource, checked_name, signature
from layoutalg.codegen.kernels import answer
from layoutalg.codegen.kernels.answer import CHECK, MOST_BYTES, ArrayKernel
from layoutalg.codegen.kernels.arguments import ArrayArgument
from layoutalg.codegen.portable import ELEMENT_TYPES, portable_prelude
from layoutalg.proofs.dtypes import element_type
from layoutalg.synth.indirect.choice import GATHER_WORDS, row_ways

INDICES = {"s32": "int", "s64": "long long"}
_INDEX = """
// An index of 64 bits as one of 32; what is outside the axis stays outside.
__device__ __forceinline__ la_u32 {name}_index(long long index)
{{
    return (la_u64)index < {n}u ? (la_u32)index : {n}u;
}}
"""
_HEAD = """
// {what}: {told}.
extern "C" __global__ void __launch_bounds__({threads}) {name}(
    {signature})
{{
    const la_u32 t = threadIdx.x;
"""
_DIRECT = """\
    const {offset} at = {wide}blockIdx.x * {threads}u + t;
    if (at >= {total}) return;
    const la_u32 wanted = {read}index[at]{done};
    into[at] = wanted < {n}u ? from[{place}] : 0;
}}
"""
_SHARED = """\
    const {kind}* row = from + (la_u64)blockIdx.x * {n}u;
    for (la_u32 i = t; i < {n}u; i += {threads}u)
        {keep}
    __syncthreads();

    const la_u64 first = (la_u64)blockIdx.x * {m}u;
    for (la_u32 i = t; i < {m}u; i += {threads}u) {{
        const la_u32 wanted = {read}index[first + i]{done};
{take}        into[first + i] = wanted < {n}u ? value : 0;
    }}
}}
"""
_WARP = """\
    const la_u32 lane = t % LA_LANES;
    const la_u64 number = ((la_u64)blockIdx.x * {threads}u + t) / LA_LANES;
    if (number >= {rows}ull) return;  // a warp as a whole
    const {kind}* row = from + number * {n}u;
    // The row: register i of lane l holds element {lanes} i + l.
{loads}
    for (la_u32 i = lane; i - lane < {m}u; i += LA_LANES) {{
        const la_u32 wanted = i < {m}u ? {read}index[number * {m}u + i]{done} : {n}u;
        const la_u32 lane_of = wanted % LA_LANES, which = wanted / LA_LANES;
{turns}        if (i < {m}u) into[number * {m}u + i] = wanted < {n}u ? value : 0;
    }}
}}
"""


def gather_kernel(
    shape: Sequence[int],
    axis: int,
    count: int,
    dtype: object,
    target: str = "sm_90a",
    *,
    index_dtype: object = "s32",
    way: str | None = None,
    threads: int = 256,
    name: str | None = None,
) -> ArrayKernel:
    """Return the kernel that gathers along an axis of a dense row-major array.

    Mathematically: ``into[.., j, ..] = from[.., index[.., j, ..], ..]``, j at the axis; 0 if the index is negative or
    at least the axis' extent. Parameters: ``(from, index, into)``.

    Args:
        shape: Extents of the source.
        axis: The axis, from 0; negative numbers count from the end.
        count: Extent of index and result along the axis; their other extents are the source's.
        dtype: Element type; 1, 2, 4 or 8 bytes.
        target: The target.
        index_dtype: Type of the indices, by any of its names: ``"s32"``, or ``"s64"`` like PyTorch's and numpy's.
        way: ``"warp"``, ``"shared"`` or ``"direct"``; by default the first that the axis allows.
        threads: Threads of a block.
        name: Kernel symbol.

    Example:
        >>> [gather_kernel(shape, axis, 64, "f32").what.split(" by ")[1] for shape, axis in (
        ...     ((512, 100), 1), ((512, 4000), 1), ((512, 100), 0))]
        ['shuffles', 'shared memory', 'loads']
    """
    extents, size, found = answer.checked_shape(shape), answer.element_bytes(dtype), answer.checked_target(target)
    place = CHECK.integer(axis, "axis", -len(extents), len(extents)) % len(extents)
    m = CHECK.integer(count, "count", 1, 1 << 31)
    integer = element_type(index_dtype).name
    if integer not in INDICES:
        raise CHECK.malformed("index_dtype", f"must be one of {', '.join(INDICES)}", str(index_dtype))
    answer.checked_threads(threads, found)
    n, inner, rows = extents[place], prod(extents[place + 1 :]), prod(extents[:place])
    words, each = -(-n // found.lanes), max(1, size // 4)
    allowed = {one: fits and (inner == 1 or one == "direct") for one, fits in row_ways(n, size, found.lanes).items()}
    if way is None:
        way = next(one for one in allowed if allowed[one])
    CHECK.choice(way, "way", tuple(allowed))
    if way == "shared" and inner == 1:
        answer.fitting(n * size, target, f"a row of {n} elements")
    elif not allowed[way]:
        most = f", of at most {GATHER_WORDS // each * found.lanes} elements" if way == "warp" else ""
        raise CHECK.malformed("way", f"must be direct: {way} needs the last axis{most}", f"axis {place} of {extents}")
    by = {"warp": "shuffles", "shared": "shared memory", "direct": "loads"}[way]
    shown = " x ".join(map(str, extents))
    what = f"gather of {m} along axis {place} of {shown} {answer.elements(size)} by {by}"
    name = f"la_gather_{way}_b{8 * size}" if name is None else checked_name(name)
    kind = ELEMENT_TYPES[size]
    parameters = ((f"const {kind}*", "from"), (f"const {INDICES[integer]}*", "index"), (f"{kind}*", "into"))
    total = rows * m * inner
    per_block = {"warp": threads // found.lanes * m, "shared": m, "direct": threads}[way]
    outermost = extents[0] if place else m
    limit = min(answer.most_blocks(found, threads), MOST_BYTES // (8 * per_block))
    blocks = answer.checked_grid(lambda extent: -(-(total // outermost * extent) // per_block), outermost, limit)
    told = {
        "warp": f"a warp holds a row in {words} registers of {size} bytes",
        "shared": "a block holds a row in shared memory",
        "direct": "every thread one element",
    }[way]
    how = {"read": "(la_u32)", "done": ""} if integer == "s32" else {"read": f"{name}_index(", "done": ")"}
    head = "" if integer == "s32" else _INDEX.format(n=n, name=name)
    head += _HEAD.format(
        what=answer.sentence(what), told=told, threads=threads, name=name, signature=signature(parameters)
    )
    body = {"warp": _warp, "shared": _shared, "direct": _direct}[way](
        {"threads": threads, "total": total, "out_row": m * inner, "inner": inner, "n": n, "m": m, "kind": kind,
         "rows": rows, "lanes": found.lanes, **how},
        size, words,
    )  # fmt: skip
    smem = n * size if way == "shared" else 0
    kernel = KernelSource(name, portable_prelude(target) + head + body, target, threads, smem, parameters)
    whole, index_bytes = (*extents[:place], m, *extents[place + 1 :]), int(integer[1:]) // 8
    arrays = (
        ArrayArgument("source", extents, size, size),
        ArrayArgument("index", whole, index_bytes, index_bytes, indices=True),
        ArrayArgument("destination", whole, size, size, written=True),
    )
    return ArrayKernel(kernel, blocks, what, total * (2 * size + index_bytes), arrays)


def _direct(numbers: dict[str, int | str], size: int, words: int) -> str:  # noqa: ARG001
    """The direct kernel; 32-bit offsets if they cover every element of both arrays and every thread number."""
    total, inner, out_row, n = (int(numbers[name]) for name in ("total", "inner", "out_row", "n"))
    narrow = max(total + int(numbers["threads"]), int(numbers["rows"]) * n * inner) <= 1 << 32
    kind, end, wide = ("la_u32", "u", "") if narrow else ("la_u64", "ull", "(la_u64)")
    row = "wanted" if total == out_row else f"at / {out_row}{end} * {n}u + wanted"
    place = row
    if inner > 1:
        place = f"({row})" if " " in row else f"{wide}{row}"
        place += f" * {inner}{end} + at % {inner}{end}"
    return _DIRECT.format(offset=kind, wide=wide, place=place, **numbers | {"total": f"{total}{end}"})


def _shared(numbers: dict[str, int | str], size: int, words: int) -> str:  # noqa: ARG001
    if size == 8:
        keep = "la_shared_store_b64(8u * i, la_words2{{(la_u32)row[i], (la_u32)(row[i] >> 32)}});"
        take = "        const la_words2 kept = la_shared_load_b64(wanted < {n}u ? 8u * wanted : 0u);\n"
        take += "        const la_u64 value = (la_u64)kept.word[1] << 32 | kept.word[0];\n"
    else:
        keep = f"la_shared_store_b{8 * size}({size}u * i, row[i]);"
        take = f"        const la_u32 value = la_shared_load_b{8 * size}(wanted < {{n}}u ? {size}u * wanted : 0u);\n"
    return _SHARED.format(keep=keep, take=take.format(**numbers), **numbers)


def _warp(numbers: dict[str, int | str], size: int, words: int) -> str:
    n, lanes, kind = int(numbers["n"]), int(numbers["lanes"]), "la_u64" if size == 8 else "la_u32"
    loads, turns = [], [f"        {kind} value = 0;\n"]
    for word in range(words):
        at = f"lane + {word * lanes}u" if word else "lane"
        value = f"row[{at}]" if (word + 1) * lanes <= n else f"{at} < {n}u ? row[{at}] : 0"
        loads.append(f"    const {kind} held{word} = {value};\n")
        taken = f"la_shuffle(held{word}, lane_of)"
        if size == 8:
            high = f"la_shuffle((la_u32)(held{word} >> 32), lane_of)"
            taken = f"(la_u64){high} << 32 | la_shuffle((la_u32)held{word}, lane_of)"
        turns.append(f"        const {kind} of{word} = {taken};\n        if (which == {word}u) value = of{word};\n")
    return _WARP.format(loads="".join(loads), turns="".join(turns), **numbers)
