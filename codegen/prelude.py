"""The CUDA prelude of every kernel: named device functions over inline PTX.

Implementation notes: kernel bodies access hardware only through these names. With ``LA_HOST`` defined the same text
compiles as C++ for the CPU: the PTX bodies disappear and the host header supplies models under the same names. There
are no includes, so NVRTC needs no header files.

References: PTX ISA 9.1, sections on mbarrier, cp.async.bulk.tensor and wgmma.
"""

from __future__ import annotations

from layoutalg.ground.check import Checker
from layoutalg.targets.nvidia.wgmma import N_VALUES

_LOAD = """\
__device__ __forceinline__ void la_tma_load_{rank}d(
    la_u32 destination, const la_tensor_map* map, la_u32 barrier, {args})
{{
    asm volatile("cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {{{slots}}}], [%2];"
                 :: "r"(destination), "l"(map), "r"(barrier), {values} : "memory");
}}
"""

_STORE = """\
__device__ __forceinline__ void la_tma_store_{rank}d(const la_tensor_map* map, la_u32 source, {args})
{{
    asm volatile("cp.async.bulk.tensor.{rank}d.global.shared::cta.tile.bulk_group [%0, {{{slots}}}], [%1];"
                 :: "l"(map), "r"(source), {values} : "memory");
}}
"""


def _copies(template: str, first_slot: int) -> str:
    parts = []
    for rank in range(1, 6):
        parts.append(
            template.format(
                rank=rank,
                args=", ".join(f"int c{j}" for j in range(rank)),
                slots=", ".join(f"%{first_slot + j}" for j in range(rank)),
                values=", ".join(f'"r"(c{j})' for j in range(rank)),
            )
        )
    return "".join(parts)


PRELUDE = (
    r"""// Hardware operations by name. With LA_HOST defined, a host header supplies the same names as C++ models.
#ifndef LA_HOST
typedef unsigned int la_u32;
typedef unsigned long long la_u64;

// The 128 descriptor bytes; the hardware needs 64-byte alignment.
struct alignas(64) la_tensor_map { la_u64 words[16]; };

// Polls before a waiting thread gives up: a wrong byte count must end the kernel, not hang it.
#define LA_SPIN_LIMIT (1 << 20)

extern __shared__ __align__(1024) unsigned char la_dynamic_shared[];

__device__ __forceinline__ unsigned char* la_shared() { return la_dynamic_shared; }

__device__ __forceinline__ la_u32 la_shared_address(const void* pointer)
{
    return (la_u32)__cvta_generic_to_shared(pointer);
}

__device__ __forceinline__ void la_mbarrier_init(la_u32 barrier, la_u32 count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(count) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void la_arrive_expect_tx(la_u32 barrier, la_u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(bytes) : "memory");
}

// Returns false when the phase did not complete within the limit.
__device__ __forceinline__ bool la_wait_parity(la_u32 barrier, la_u32 parity)
{
    for (int spin = 0; spin < LA_SPIN_LIMIT; ++spin) {
        la_u32 done;
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}\n" : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
        if (done) return true;
    }
    return false;
}

// Orders ordinary shared-memory accesses before later ones of the copy engine and the tensor cores, and back.
__device__ __forceinline__ void la_fence_async()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Makes a descriptor that lies in global memory visible to the copy engine.
__device__ __forceinline__ void la_fence_tensor_map(const la_tensor_map* map)
{
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" :: "l"(map) : "memory");
}

__device__ __forceinline__ void la_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Waits until the writes of every committed store are done.
__device__ __forceinline__ void la_store_wait() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

"""
    + _copies(_LOAD, 3)
    + "\n"
    + _copies(_STORE, 2)
    + r"""#endif

// First address at or above the dynamic shared memory's start that is a multiple of `alignment` bytes.
__device__ __forceinline__ unsigned char* la_aligned_shared(la_u32 alignment)
{
    unsigned char* base = la_shared();
    return base + ((0u - la_shared_address(base)) & (alignment - 1u));
}
"""
)
"""Device functions shared by all kernels; compiles with no header."""

_WGMMA_COMMON = r"""#ifndef LA_HOST
__device__ __forceinline__ void la_wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void la_wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void la_wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }
"""


HALF_TYPES = ("f16", "bf16")
"""Operand types supported here."""


def wgmma_prelude(dtype: str, n: int) -> str:
    """Return the wrapper of one warpgroup multiply, d[64, n] += a[64, 16] * b[16, n] in float.

    Args:
        dtype: ``"f16"`` or ``"bf16"``, the operands' type.
        n: Columns, a multiple of 8 from 8 to 256.

    Returns:
        CUDA text that defines ``la_wgmma_m64n{n}k16_{dtype}<transpose_a, transpose_b>(d, a, b, accumulate)`` and the
        fence, commit and wait of warpgroup multiplies.

    Example:
        >>> "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16" in wgmma_prelude("f16", 8)
        True
    """
    check = Checker("LA500", "no such warpgroup multiply")
    if dtype not in HALF_TYPES:
        raise check.malformed("dtype", f"must be one of {HALF_TYPES}", dtype)
    if check.integer(n, "n") not in N_VALUES:
        raise check.malformed("n", "must be a multiple of 8 in 8..256", n)
    registers = n // 2
    rows = [", ".join(f"%{i}" for i in range(j, min(j + 16, registers))) for j in range(0, registers, 16)]
    listed = ",\n".join(rows).replace("\n", '"\n                 " ')
    outputs = [", ".join(f'"+f"(d[{i}])' for i in range(j, min(j + 8, registers))) for j in range(0, registers, 8)]
    a, b, scale, trans_a, trans_b = range(registers, registers + 5)
    joined = ",\n                   ".join(outputs)
    return (
        _WGMMA_COMMON
        + f"""
template <int transpose_a, int transpose_b>
__device__ __forceinline__ void la_wgmma_m64n{n}k16_{dtype}(float (&d)[{registers}], la_u64 a, la_u64 b, int accumulate)
{{
    asm volatile("{{\\n"
                 ".reg .pred p;\\n"
                 "setp.ne.b32 p, %{scale}, 0;\\n"
                 "wgmma.mma_async.sync.aligned.m64n{n}k16.f32.{dtype}.{dtype}"
                 " {{{listed}}},"
                 " %{a}, %{b}, p, 1, 1, %{trans_a}, %{trans_b};\\n"
                 "}}\\n"
                 : {joined}
                 : "l"(a), "l"(b), "r"(accumulate), "n"(transpose_a), "n"(transpose_b));
}}
#endif
"""
    )
