"""The CUDA prelude of every kernel: named device functions over inline PTX.

Implementation notes: kernel bodies access hardware only through these names. With ``LA_HOST`` defined the same text
compiles as C++ for the CPU: the PTX bodies disappear and the host header supplies models under the same names. There
are no includes, so NVRTC needs no header files.

References: PTX ISA 9.1: mbarrier 9.7.13.15, cp.async 9.7.9.25.3 and its arrival 9.7.13.15.15, cp.async.bulk.tensor
9.7.9.27 and its groups 9.7.9.25.4, wgmma 9.7.15, setmaxnreg 9.7.19.5; bar.sync, barrier.cluster, mapa and cvt under
their names.
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

_MULTICAST = """\
__device__ __forceinline__ void la_tma_load_multicast_{rank}d(
    la_u32 destination, const la_tensor_map* map, la_u32 barrier, la_u32 mask, {args})
{{
    asm volatile("cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {{{slots}}}], [%2], %3;"
                 :: "r"(destination), "l"(map), "r"(barrier), "h"((unsigned short)mask), {values} : "memory");
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


_WAIT_PARITY = r"""// Returns false when the phase did not complete within the limit.
__device__ __forceinline__ bool la_wait_parity(la_u32 barrier, la_u32 parity)
{
#pragma unroll 1
    for (int spin = 0; spin < LA_SPIN_LIMIT; ++spin) {
        la_u32 done;
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}\n" : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
        if (done) return true;
    }
    return false;
}

"""
_WAIT_PHASE = r"""
// Waits for a phase, unless an earlier wait has given up; notes which one did, and in which iteration.
__device__ __forceinline__ void la_wait_phase(la_u32 barrier, la_u32 parity, int wait, int k, int& gave_up)
{
    if (gave_up == 0 && !la_wait_parity(barrier, parity)) gave_up = wait << 8 | (k & 0x7FFF) << 16;
}
"""


def _in_cluster(wait: str) -> str:
    """The same wait for arrivals and bytes that come from other blocks of the cluster."""
    there = wait.replace("la_wait_parity(", "la_wait_parity_cluster(").replace(
        "la_wait_phase(", "la_wait_phase_cluster("
    )
    return there.replace("try_wait.parity.", "try_wait.parity.acquire.cluster.")


PRELUDE = (
    r"""// Hardware operations by name. With LA_HOST defined, a host header supplies the same names as C++ models.
#ifndef LA_HOST
typedef unsigned int la_u32;
typedef unsigned long long la_u64;

// The 128 descriptor bytes; the hardware needs 64-byte alignment.
struct alignas(64) la_tensor_map { la_u64 words[16]; };

// Polls before a waiting thread gives up: a wrong byte count must end the kernel, not hang it. A poll that fails
// suspends the thread for about 4 microseconds (H200), so that it gives up after about a second.
#define LA_SPIN_LIMIT (1 << 18)

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

"""
    + _WAIT_PARITY
    + r"""// Orders ordinary shared-memory accesses before later ones of the copy engine and the tensor cores, and back.
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

// Waits until the copy engine has read the sources of all but this thread's last `pending` committed groups of stores.
template <int pending>
__device__ __forceinline__ void la_store_wait_read()
{
    asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(pending) : "memory");
}

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

PIPELINE_PRELUDE = (
    r"""
#ifndef LA_HOST
// One arrival, and n at once: they release what the thread has done before.
__device__ __forceinline__ void la_arrive(la_u32 barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
}

__device__ __forceinline__ void la_arrive_many(la_u32 barrier, la_u32 n)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(n) : "memory");
}

// Bytes that the barrier's phase expects, without an arrival.
__device__ __forceinline__ void la_expect_tx(la_u32 barrier, la_u32 bytes)
{
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(bytes) : "memory");
}

// Fetches a descriptor that copies will use.
__device__ __forceinline__ void la_prefetch_tensor_map(const la_tensor_map* map)
{
    asm volatile("prefetch.tensormap [%0];" :: "l"(map) : "memory");
}

// The barrier of one role: id 1 to 15, all its threads (whole warps).
__device__ __forceinline__ void la_role_barrier(la_u32 id, la_u32 threads)
{
    asm volatile("bar.sync %0, %1;" :: "r"(id), "r"(threads) : "memory");
}

// Registers per thread of a warpgroup, all of whose warps call it: a multiple of 8 from 24 to 256.
template <int n>
__device__ __forceinline__ void la_registers_dec() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(n)); }

template <int n>
__device__ __forceinline__ void la_registers_inc() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(n)); }

// Two floats as 16-bit halves of a word, rounded to nearest even.
__device__ __forceinline__ la_u32 la_pack_bf16(float low, float high)
{
    la_u32 word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
}

__device__ __forceinline__ la_u32 la_pack_f16(float low, float high)
{
    la_u32 word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
}
#endif
"""
    + _WAIT_PHASE
)
"""What blocks of several roles need besides ``PRELUDE``: arrivals, role barriers, registers, packed halves."""

BULK_PRELUDE = r"""
#ifndef LA_HOST
// Runs of bytes between global and shared memory: addresses and bytes are multiples of 16.
__device__ __forceinline__ void la_bulk_load(la_u32 destination, const void* source, la_u32 bytes, la_u32 barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(destination), "l"(source), "r"(bytes), "r"(barrier) : "memory");
}

__device__ __forceinline__ void la_bulk_store(void* destination, la_u32 source, la_u32 bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 :: "l"(destination), "r"(source), "r"(bytes) : "memory");
}
#endif
"""
"""Copies of runs of bytes by the copy engine, without a descriptor (PTX ISA 9.1, ``cp.async.bulk``)."""

CLUSTER_PRELUDE = (
    r"""
#ifdef LA_HOST
#define __cluster_dims__(...)
#define la_wait_parity_cluster la_wait_parity
#else
"""
    + _in_cluster(_WAIT_PARITY)
    + r"""__device__ __forceinline__ la_u32 la_cluster_rank()
{
    la_u32 rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// All threads of all blocks of the cluster arrive, then wait.
__device__ __forceinline__ void la_cluster_arrive()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

__device__ __forceinline__ void la_cluster_wait()
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// One arrival on the barrier at the same place of another block of the cluster. It releases the thread's ordinary
// accesses to the cluster, which takes hundreds of cycles; the relaxed one does not.
__device__ __forceinline__ void la_arrive_remote(la_u32 barrier, la_u32 rank)
{
    asm volatile("{\n"
                 ".reg .b32 remote;\n"
                 "mapa.shared::cluster.u32 remote, %0, %1;\n"
                 "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n"
                 "}\n" :: "r"(barrier), "r"(rank) : "memory");
}

__device__ __forceinline__ void la_arrive_remote_relaxed(la_u32 barrier, la_u32 rank)
{
    asm volatile("{\n"
                 ".reg .b32 remote;\n"
                 "mapa.shared::cluster.u32 remote, %0, %1;\n"
                 "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [remote];\n"
                 "}\n" :: "r"(barrier), "r"(rank) : "memory");
}

// Copies own shared memory to that of a block of the cluster, whose barrier at the same place gets the bytes. Addresses
// and bytes are multiples of 16.
__device__ __forceinline__ void la_dsmem_copy(
    la_u32 destination, la_u32 source, la_u32 bytes, la_u32 barrier, la_u32 rank)
{
    asm volatile("{\n"
                 ".reg .b32 there, done;\n"
                 "mapa.shared::cluster.u32 there, %0, %4;\n"
                 "mapa.shared::cluster.u32 done, %3, %4;\n"
                 "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [there], [%1], %2, [done];\n"
                 "}\n" :: "r"(destination), "r"(source), "r"(bytes), "r"(barrier), "r"(rank) : "memory");
}

// Loads to the same place of every block whose bit of `mask` is set; each gets its bytes on its own barrier.
"""
    + _copies(_MULTICAST, 4)
    + r"""#endif
"""
    + _in_cluster(_WAIT_PHASE)
)
"""What blocks of a cluster need besides ``PRELUDE``."""

NAMED_PRELUDE = r"""
#ifndef LA_HOST
// Arrives at a barrier of several roles without waiting for it.
__device__ __forceinline__ void la_role_arrive(la_u32 id, la_u32 threads)
{
    asm volatile("bar.arrive %0, %1;" :: "r"(id), "r"(threads) : "memory");
}
#endif
"""
"""What roles need besides ``PIPELINE_PRELUDE`` that meet others at named barriers."""

_ASYNC = """
__device__ __forceinline__ void la_cp_async_{bytes}(la_u32 shared, const void* from)
{{
    asm volatile("cp.async.{cache}.shared.global [%0], [%1], {bytes};"
                 :: "r"(shared), "l"(__cvta_generic_to_global(from)) : "memory");
}}

__device__ __forceinline__ void la_cp_async_fill_{bytes}(la_u32 shared, const void* from, la_u32 filled)
{{
    asm volatile("cp.async.{cache}.shared.global [%0], [%1], {bytes}, %2;"
                 :: "r"(shared), "l"(__cvta_generic_to_global(from)), "r"(filled) : "memory");
}}
"""

CP_ASYNC_PRELUDE = (
    r"""
#ifndef LA_HOST
// Copies of one thread from global to shared memory, both at multiples of their size; `fill` reads the first `filled`
// bytes and writes zeros behind them (0: it reads nothing)."""
    + "".join([_ASYNC.format(bytes=size, cache="cg" if size == 16 else "ca") for size in (4, 8, 16)])
    + r"""
__device__ __forceinline__ void la_cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until all but this thread's last `pending` committed groups are written, and visible to it.
template <int pending>
__device__ __forceinline__ void la_cp_async_wait()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(pending) : "memory");
}

// One of the arrivals that the barrier counts, once this thread's copies so far are written. It releases nothing else.
__device__ __forceinline__ void la_cp_async_arrive(la_u32 barrier)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(barrier) : "memory");
}
#endif
"""
)
"""What roles need besides ``PIPELINE_PRELUDE`` whose threads copy: cp.async and its groups."""

DELAY_PRELUDE = r"""
#ifndef LA_HOST
__device__ __forceinline__ void la_sleep(la_u32 nanoseconds) { asm volatile("nanosleep.u32 %0;" :: "r"(nanoseconds)); }
#endif

// Delays a warp before an op: mostly a little, one time in four by up to 8 microseconds.
__device__ __forceinline__ void la_delay(la_u32 seed, la_u32 op, la_u32 k)
{
    la_u32 x = (seed * 64 + op) * 0x9E3779B9u ^ (k * 0x85EBCA6Bu + (blockIdx.x * 32 + threadIdx.x / 32) * 0xC2B2AE35u);
    x = (x ^ x >> 16) * 0x7FEB352Du;
    x = (x ^ x >> 15) * 0x846CA68Bu;
    x ^= x >> 16;
    la_sleep(x >> 8 & (x & 3 ? 0xFFu : 0x1FFFu));
}
"""
"""Delays for tests, by a hash of a seed, the warp, the op and its iteration."""

_WGMMA_COMMON = r"""#ifndef LA_HOST
__device__ __forceinline__ void la_wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void la_wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits until all but the last `pending` committed groups of multiplies are done.
template <int pending = 0>
__device__ __forceinline__ void la_wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(pending) : "memory");
}
"""


HALF_TYPES = ("f16", "bf16")
"""Operand types of 16 bits: 16 columns of A per instruction, either operand transposed or not."""
BYTE_TYPES = ("e4m3", "e5m2")
"""Operand types of 8 bits: 32 columns of A per instruction, both operands K-major."""


def wgmma_prelude(dtype: str, n: int) -> str:
    """Return the wrapper of one warpgroup multiply, d[64, n] += a[64, k] * b[k, n] in float.

    Args:
        dtype: The operands' type: ``"f16"``, ``"bf16"`` (k is 16), ``"e4m3"``, ``"e5m2"`` (k is 32).
        n: Columns, a multiple of 8 from 8 to 256.

    Returns:
        CUDA text that defines ``la_wgmma_m64n{n}k{k}_{dtype}<transpose_a, transpose_b>(d, a, b, accumulate)`` (8 bits:
        ``<>``), and the fence, commit and wait of warpgroup multiplies.

    Example:
        >>> "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16" in wgmma_prelude("f16", 8)
        True
    """
    return _WGMMA_COMMON + _multiply(dtype, n) + "#endif\n"


def wgmma_registers_prelude(dtype: str, n: int) -> str:
    """Return the wrapper of a warpgroup multiply whose A is in registers; it goes behind that of ``wgmma_prelude``.

    Args:
        dtype: The operands' type: ``"f16"`` or ``"bf16"``.
        n: Columns, a multiple of 8 from 8 to 256.

    Returns:
        CUDA text that defines ``la_wgmma_registers_m64n{n}k16_{dtype}<transpose_b>(d, a, b, accumulate)``; ``a`` are
        the four words of ``targets.nvidia.wgmma.register_coordinates(16)``.

    Example:
        >>> "la_u32 (&a)[4], la_u64 b" in wgmma_registers_prelude("f16", 8)
        True
    """
    return "#ifndef LA_HOST" + _multiply(dtype, n, registers=True) + "#endif\n"


def _multiply(dtype: str, n: int, registers: bool = False) -> str:
    """The wrapper of one multiply, with A behind a descriptor or in registers."""
    check = Checker("LA500", "no such warpgroup multiply")
    types = HALF_TYPES if registers else HALF_TYPES + BYTE_TYPES
    if dtype not in types:
        raise check.malformed("dtype", f"must be one of {types}", dtype)
    if check.integer(n, "n") not in N_VALUES:
        raise check.malformed("n", "must be a multiple of 8 in 8..256", n)
    sums, halves = n // 2, dtype in HALF_TYPES
    rows = [", ".join(f"%{i}" for i in range(j, min(j + 16, sums))) for j in range(0, sums, 16)]
    listed = ",\n".join(rows).replace("\n", '"\n                 " ')
    outputs = [", ".join(f'"+f"(d[{i}])' for i in range(j, min(j + 8, sums))) for j in range(0, sums, 8)]
    joined = ",\n                   ".join(outputs)
    words = 4 if registers else 1
    a = ", ".join(f"%{sums + i}" for i in range(words))
    b, scale, first = range(sums + words, sums + words + 3)
    k, default = (16, "") if halves else (32, " = 0")
    turns = ("transpose_b",) if registers else ("transpose_a", "transpose_b")
    transposed = "".join(f", %{first + place}" for place, _ in enumerate(turns)) if halves else ""
    values = "".join(f', "n"({turn})' for turn in turns) if halves else ""
    rule = "" if halves else '    static_assert(!transpose_a && !transpose_b, "operands of 8 bits are K-major");\n'
    kind, taken = ("const la_u32 (&a)[4]", ", ".join(f'"r"(a[{i}])' for i in range(4))) if registers else (
        "la_u64 a", '"l"(a)'
    )  # fmt: skip
    call = f"la_wgmma_{'registers_' * registers}m64n{n}k{k}_{dtype}"
    return f"""
template <{", ".join(f"int {turn}{default}" for turn in turns)}>
__device__ __forceinline__ void {call}(float (&d)[{sums}], {kind}, la_u64 b, int accumulate)
{{
{rule}    asm volatile("{{\\n"
                 ".reg .pred p;\\n"
                 "setp.ne.b32 p, %{scale}, 0;\\n"
                 "wgmma.mma_async.sync.aligned.m64n{n}k{k}.f32.{dtype}.{dtype}"
                 " {{{listed}}},"
                 " {f"{{{a}}}" if registers else a}, %{b}, p, 1, 1{transposed};\\n"
                 "}}\\n"
                 : {joined}
                 : {taken}, "l"(b), "r"(accumulate){values});
}}
"""
