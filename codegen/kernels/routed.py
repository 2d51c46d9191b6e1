"""Kernels that move rows to their experts and back: permutations, and weighted sums of permuted rows.

Rows move as vectors of 16 bytes from global to global memory. ``push`` reads every token once and writes it to all its
places; ``pull`` writes every place from its token, named by an index or by the run that it is in.
"""

from __future__ import annotations

from layoutalg.codegen.kernel import KernelSource, checked_name, signature
from layoutalg.codegen.kernels import answer
from layoutalg.codegen.kernels.answer import CHECK
from layoutalg.codegen.kernels.arguments import ArrayArgument
from layoutalg.codegen.kernels.indirect import MOST_ROWS, THREADS, IndirectKernel, Share, index_list
from layoutalg.codegen.portable import portable_prelude
from layoutalg.proofs.dtypes import element_type
from layoutalg.targets.global_memory import VECTOR_BYTES
from layoutalg.targets.registry import Target

MOST_K = 64
MANY_VECTORS = 1 << 18
"""Vectors from which on threads move 8 each: fewer would leave multiprocessors without a block."""
WAYS = ("push", "pull")
SUMS = ("bf16", "f16", "f32")

_PUSH = """
// {what}: a thread reads {each} vectors of a token and writes them to all its places.
extern "C" __global__ void __launch_bounds__({threads}) {name}({signature})
{{
    const la_u32 row = {row};
    if (row >= (la_u32)tokens) return;
    const la_u32 at = {at};
    const la_words4* from = (const la_words4*)source + (la_u64)row * {vectors}u + at;
    la_words4* into = (la_words4*)destination + at;
{loads}
#pragma unroll {unroll}
    for (la_u32 j = 0; j < {k}u; ++j) {{
        const la_u32 place = (la_u32)index[(la_u64)row * {k}u + j];
        if (place >= (la_u32)rows) continue;
        la_words4* there = into + (la_u64)place * {vectors}u;
{stores}    }}
}}
"""

_PULL = """
// {what}: a thread moves {each} vectors of a row; a row without a source is zero.
extern "C" __global__ void __launch_bounds__({threads}) {name}({signature})
{{
    const la_u32 row = {row};
    if (row >= (la_u32)rows) return;
    const la_u32 at = {at};
{token}    const la_u32 have = token < (la_u32)tokens ? {vectors}u : 0u;
    const la_words4* from = (const la_words4*)source + (la_u64)(have ? token : 0u) * {vectors}u + at;
    la_words4* there = (la_words4*)destination + (la_u64)row * {vectors}u + at;
{loads}{stores}}}
"""

_BY_INDEX = """\
    const la_u32 token = (la_u32)index[row] / {k}u;
"""
_BY_RUN = """\
    // The last run that does not begin behind the row: (place, first, step, length).
    la_u32 low = 0;
    for (la_u32 high = (la_u32)count; high - low > 1;) {{
        const la_u32 middle = (low + high) / 2;
        if (runs[4u * middle] <= (int)row) low = middle;
        else high = middle;
    }}
    const la_words4 run = count > 0 ? ((const la_words4*)runs)[low] : la_words4{{}};
    const la_u32 inside = row - run.word[0];
    const long long named = (int)run.word[1] + (long long)(int)run.word[2] * inside;
    const la_u32 token = inside < run.word[3] && named >= 0 && named < tokens ? (la_u32)named : (la_u32)tokens;
"""

_SUM = """
// {what}: added in the order of the experts of a token, each product fused with its addition.
extern "C" __global__ void __launch_bounds__({threads}) {name}(
    {signature})
{{
    const la_u32 row = {row};
    if (row >= (la_u32)tokens) return;
    la_words4* there = (la_words4*)destination + (la_u64)row * {vectors}u;
    for (la_u32 at = {at}, i = 0; i < {each}u && at < {vectors}u; at += {width}u, ++i) {{
        float sum[{lanes}] = {{}};
#pragma unroll {unroll}
        for (la_u32 j = 0; j < {k}u; ++j) {{
            const la_u32 place = (la_u32)index[(la_u64)row * {k}u + j];
            if (place >= (la_u32)rows) continue;
            const float weight = weights[(la_u64)row * {k}u + j];
            const la_words4 part = ((const la_words4*)source)[(la_u64)place * {vectors}u + at];
            for (la_u32 w = 0; w < 4; ++w) {{
{add}            }}
        }}
        la_words4 whole;
        for (la_u32 w = 0; w < 4; ++w) whole.word[w] = {pack};
        there[at] = whole;
    }}
}}
"""

_FLOATS = r"""
#ifdef LA_HOST
#define la_fma __builtin_fmaf
static inline float la_float(la_u32 bits) { float value; std::memcpy(&value, &bits, 4); return value; }
static inline la_u32 la_bits(float value) { la_u32 bits; std::memcpy(&bits, &value, 4); return bits; }
static inline float la_half(la_u32 bits) { return la_host::half_to_float((unsigned short)bits); }
static inline la_u32 la_to_half(float value) { return la_host::float_to_half(value); }
static inline la_u32 la_to_bfloat(float value) { return la_host::float_to_bfloat(value); }
#else
#ifdef __CUDA_ARCH__
#define la_fma __fmaf_rn
__device__ __forceinline__ float la_float(la_u32 bits) { return __uint_as_float(bits); }
__device__ __forceinline__ la_u32 la_bits(float value) { return __float_as_uint(value); }
__device__ __forceinline__ float la_half(la_u32 bits)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"((unsigned short)bits));
    return value;
}
__device__ __forceinline__ la_u32 la_to_half(float value)
{
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}
#else
#define la_fma __builtin_fmaf
__device__ __forceinline__ float la_float(la_u32 bits) { return __builtin_bit_cast(float, bits); }
__device__ __forceinline__ la_u32 la_bits(float value) { return __builtin_bit_cast(la_u32, value); }
__device__ __forceinline__ float la_half(la_u32 bits)
{
    return (float)__builtin_bit_cast(_Float16, (unsigned short)bits);
}
__device__ __forceinline__ la_u32 la_to_half(float value)
{
    return __builtin_bit_cast(unsigned short, (_Float16)value);
}
#endif
// To nearest even; a NaN stays one.
__device__ __forceinline__ la_u32 la_to_bfloat(float value)
{
    const la_u32 bits = la_bits(value);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return bits >> 16 | 0x40u;
    return (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
}
#endif
"""


def _vectors(row_bytes: object) -> int:
    size = CHECK.integer(row_bytes, "row_bytes", VECTOR_BYTES, 1 << 24)
    if size % VECTOR_BYTES:
        raise CHECK.malformed("row_bytes", f"must be a multiple of {VECTOR_BYTES}", size)
    return size // VECTOR_BYTES


def _grid(share: Share, rows: int, found: Target) -> int:
    return answer.checked_grid(share.blocks, max(1, rows), answer.most_blocks(found, THREADS))


def permute_kernel(
    tokens: int,
    k: int,
    rows: int,
    row_bytes: int,
    *,
    way: str = "push",
    target: str = "sm_90a",
    name: str | None = None,
) -> IndirectKernel:
    """Return the kernel that copies tokens to the rows of their experts.

    Mathematically, ``push``: destination[index[t, j]] = source[t], index being the inverse of a routing, [tokens, k];
    places outside [0, rows), such as -1, are left out and other rows stay as they are. ``pull``:
    destination[i] = source[index[i] div k], index being an order, [rows]; sentinels of tokens k and more give zeros.

    Args:
        tokens: Rows of the source.
        k: Experts of each token.
        rows: Rows of the destination.
        row_bytes: Bytes of a row, a multiple of 16.
        way: ``"push"`` reads each token once, which is faster unless each has one expert; ``"pull"`` writes each row
            once, padding included.
        target: The target.
        name: Kernel symbol.

    Raises: MalformedError: LA945, LA340, LA506. InfeasibleError: LA948.

    Example:
        >>> permute_kernel(4096, 8, 32768, 14336).blocks, permute_kernel(4096, 8, 32768, 14336, way="pull").blocks
        (2048, 16384)
    """
    found, share, sizes = _checked(tokens, k, rows, row_bytes, target)
    many, each, height = sizes
    CHECK.choice(way, "way", WAYS)
    push = way == "push"
    name = f"la_permute_{way}_{16 * share.vectors}_k{each}" if name is None else checked_name(name)
    parameters = _parameters("unsigned char")
    what = f"{'places' if push else 'gathers'} rows of {16 * share.vectors} bytes, {each} for each token"
    text = (_PUSH if push else _PULL.replace("{token}", _BY_INDEX)).format(
        what=answer.sentence(what), each=share.each, threads=THREADS, name=name, signature=signature(parameters),
        row=share.row, at=share.at, vectors=share.vectors, k=each, unroll=min(each, 8),
        **_moves(share, target, push),
    )  # fmt: skip
    kernel = KernelSource(name, portable_prelude(target) + text, target, THREADS, 0, parameters)
    index = index_list("index", many * each if push else height)
    moved = (many + height) * 16 * share.vectors + index.nbytes
    arrays = (_bytes("source", many, share), index, _bytes("destination", height, share, written=True))
    return IndirectKernel(kernel, _grid(share, many if push else height, found), what, moved, arrays, (many, height))


def runs_kernel(
    tokens: int, rows: int, count: int, row_bytes: int, *, target: str = "sm_90a", name: str | None = None
) -> IndirectKernel:
    """Return the kernel that copies runs of rows, of any lengths, in one launch.

    Mathematically: destination[place + j] = source[first + step j] for 0 <= j < length, for every run (place, first,
    step, length); rows behind the last run, or of a source that there is not, are zeros. The places rise from 0 by the
    lengths, as those of ``proofs.indirect.Runs.pieces``, which is the argument, as 32-bit integers.

    Args:
        tokens: Rows of the source.
        rows: Rows of the destination.
        count: Runs.
        row_bytes: Bytes of a row, a multiple of 16.
        target: The target.
        name: Kernel symbol.

    Raises: MalformedError: LA945, LA340, LA506. InfeasibleError: LA948.

    Example:
        >>> from layoutalg.proofs.indirect import Routing
        >>> runs = Routing([[0], [0], [1]], 2, 16).runs
        >>> runs.pieces.tolist(), runs_kernel(3, 3, len(runs.pieces), 256).what
        ([[0, 0, 1, 2], [2, 2, 1, 1]], 'copies rows of 256 bytes by 2 runs')
    """
    many = CHECK.integer(count, "count", 0, MOST_ROWS)
    found, share, (sources, _, height) = _checked(tokens, 1, rows, row_bytes, target)
    name = f"la_runs_{16 * share.vectors}" if name is None else checked_name(name)
    parameters = (*_parameters("unsigned char", "runs"), ("int", "count"))
    what = f"copies rows of {16 * share.vectors} bytes by {many} runs"
    text = _PULL.replace("{token}", _BY_RUN).format(
        what=f"Copies runs of rows of {16 * share.vectors} bytes", each=share.each, threads=THREADS, name=name,
        signature=signature(parameters), row=share.row, at=share.at, vectors=share.vectors, **_moves(share, target),
    )  # fmt: skip
    kernel = KernelSource(name, portable_prelude(target) + text, target, THREADS, 0, parameters)
    runs = ArrayArgument("runs", (many, 4), 4, VECTOR_BYTES, indices=True)
    arrays = (_bytes("source", sources, share), runs, _bytes("destination", height, share, written=True))
    moved = 2 * height * 16 * share.vectors + runs.nbytes
    return IndirectKernel(kernel, _grid(share, height, found), what, moved, arrays, (sources, height, many))


def unpermute_kernel(
    tokens: int,
    k: int,
    rows: int,
    columns: int,
    dtype: object = "bf16",
    target: str = "sm_90a",
    name: str | None = None,
) -> IndirectKernel:
    """Return the kernel that adds up the rows of each token with weights.

    Mathematically: destination[t] = sum over j of weights[t, j] source[index[t, j]], from j = 0 on, each step one fused
    multiplication and addition of ``f32``, rounded once to the type at the end; places outside [0, rows) are left out.

    Args:
        tokens: Rows of the destination.
        k: Experts of each token.
        rows: Rows of the source.
        columns: Elements of a row; its bytes a multiple of 16.
        dtype: ``"bf16"``, ``"f16"`` or ``"f32"``.
        target: The target.
        name: Kernel symbol.

    Raises: MalformedError: LA945, LA340, LA506. InfeasibleError: LA948.

    Example:
        >>> print(unpermute_kernel(4096, 8, 32768, 7168).what)
        adds 8 rows of 7168 bf16 for each token
    """
    kind = element_type(dtype).name
    if kind not in SUMS:
        raise CHECK.malformed("dtype", f"must be one of {', '.join(SUMS)}", str(dtype))
    size = 4 if kind == "f32" else 2
    found, share, (many, each, height) = _checked(
        tokens, k, rows, CHECK.integer(columns, "columns", 1, 1 << 24) * size, target
    )
    name = f"la_unpermute_{columns}_{kind}_k{each}" if name is None else checked_name(name)
    word = "part.word[w]"
    if kind == "f32":
        sums, pack = [("sum[w]", f"la_float({word})")], "la_bits(sum[w])"
    else:
        low, high = {"bf16": (f"{word} << 16", f"{word} & 0xFFFF0000u"), "f16": (f"{word} & 0xFFFFu", f"{word} >> 16")}[
            kind
        ]
        read, write = ("la_float", "la_to_bfloat") if kind == "bf16" else ("la_half", "la_to_half")
        sums = [("sum[2 * w]", f"{read}({low})"), ("sum[2 * w + 1]", f"{read}({high})")]
        pack = f"{write}(sum[2 * w]) | {write}(sum[2 * w + 1]) << 16"
    add = "".join(f"                {into} = la_fma(weight, {value}, {into});\n" for into, value in sums)
    (pointer, first), *rest = _parameters("unsigned char")
    parameters = ((pointer, first), rest[0], ("const float*", "weights"), *rest[1:])
    what = f"adds {each} rows of {columns} {kind} for each token"
    text = _SUM.format(
        what=answer.sentence(what), each=share.each, threads=THREADS, name=name, signature=signature(parameters),
        row=share.row, at=share.at, vectors=share.vectors, width=share.width, lanes=16 // size, k=each,
        unroll=min(each, 8), add=add, pack=pack,
    )  # fmt: skip
    kernel = KernelSource(name, portable_prelude(target) + _FLOATS + text, target, THREADS, 0, parameters)
    index = index_list("index", many * each)
    arrays = (
        ArrayArgument("source", (height, columns), size, VECTOR_BYTES), index,
        ArrayArgument("weights", (many * each,), 4, 4),
        ArrayArgument("destination", (many, columns), size, VECTOR_BYTES, written=True),
    )  # fmt: skip
    moved = (many + height) * columns * size + 2 * index.nbytes
    return IndirectKernel(kernel, _grid(share, many, found), what, moved, arrays, (many, height))


def _checked(
    tokens: object, k: object, rows: object, row_bytes: object, target: str
) -> tuple[Target, Share, tuple[int, int, int]]:
    found, vectors = answer.checked_target(target), _vectors(row_bytes)
    sizes = (
        CHECK.integer(tokens, "tokens", 0, MOST_ROWS), CHECK.integer(k, "k", 1, MOST_K + 1),
        CHECK.integer(rows, "rows", 0, MOST_ROWS),
    )  # fmt: skip
    share = Share.of(vectors, 8 if sizes[0] * vectors >= MANY_VECTORS else 2)
    if max(sizes[0], sizes[2]) * vectors * VECTOR_BYTES > answer.MOST_BYTES or sizes[0] * sizes[1] >= 1 << 31:
        raise CHECK.malformed("tokens", f"must give arrays of at most {answer.MOST_BYTES} bytes", sizes[0])
    return found, share, sizes


def _moves(share: Share, target: str, push: bool = False) -> dict[str, str]:
    """The statements that load and store a thread's vectors."""
    loads, stores = share.moves(target, "" if push else "have", indents=(4, 8 if push else 4))
    return {"loads": loads, "stores": stores}


def _parameters(kind: str, index: str = "index") -> tuple[tuple[str, str], ...]:
    pointers = ((f"const {kind}*", "source"), ("const int*", index), (f"{kind}*", "destination"))
    return (*pointers, ("int", "tokens"), ("int", "rows"))


def _bytes(name: str, rows: int, share: Share, written: bool = False) -> ArrayArgument:
    return ArrayArgument(name, (rows, 16 * share.vectors), 1, VECTOR_BYTES, written=written)
