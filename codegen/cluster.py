"""Device functions of a thread-block cluster, under the same names for CUDA and the CPU.

A kernel text uses ``LA_CLUSTER(blocks)`` before its launch bounds and these names:

- ``la_cluster_thread(threads)``: the thread's number in the cluster, block by block of ``threads`` threads.
- ``la_own(byte, window)``: the byte within the thread's own block, as ``la_shared_store_b...`` expects it.
- ``la_cluster_load_b8|b16|b32|b64|b128(byte, window)``: a load from any block of the cluster.
- ``la_cluster_barrier()``: all threads of the cluster wait for each other.

On the CPU a cluster runs as one block with all its threads and the shared memory of its blocks back to back.

References: PTX ISA 9.1, mapa, ld.shared::cluster, barrier.cluster; CUDA C++ programming guide, thread block clusters.
"""

from __future__ import annotations

_TEXT = r"""
// A byte of a cluster is the rank of its block times the bytes of a block (window), and the byte there.
#ifdef __CUDACC__
#define LA_CLUSTER(blocks) __cluster_dims__(blocks, 1, 1)
__device__ __forceinline__ la_u32 la_cluster_thread(la_u32 threads)
{
    la_u32 rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return threadIdx.x + rank * threads;
}

__device__ __forceinline__ void la_cluster_barrier()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

__device__ __forceinline__ la_u32 la_own(la_u32 byte, la_u32 window) { return byte & (window - 1); }

__device__ __forceinline__ la_u32 la_mapped(la_u32 byte, la_u32 window)
{
    const la_u32 own = (la_u32)__cvta_generic_to_shared(la_shared() + la_own(byte, window));
    la_u32 there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(own), "r"(byte / window));
    return there;
}
"""
_LOADS = (
    (8, "la_u32", '"=r"(value)', "u8 %0", "%1"),
    (16, "unsigned short", '"=h"(value)', "u16 %0", "%1"),
    (32, "la_u32", '"=r"(value)', "u32 %0", "%1"),
    (64, "la_words2", '"=r"(value.word[0]), "=r"(value.word[1])', "v2.u32 {%0, %1}", "%2"),
    (128, "la_words4", ", ".join(f'"=r"(value.word[{word}])' for word in range(4)), "v4.u32 {%0, %1, %2, %3}", "%4"),
)


def cluster_prelude() -> str:
    """Return the cluster functions for the device and for the CPU.

    Example:
        >>> "mapa.shared::cluster" in cluster_prelude()
        True
    """
    device, host = _TEXT, [
        "#else\n#define LA_CLUSTER(blocks)\n#define la_cluster_thread(threads) threadIdx.x\n"
        "#define la_cluster_barrier() __syncthreads()\n#define la_own(byte, window) (byte)\n"
    ]  # fmt: skip
    for bits, kind, outputs, values, address in _LOADS:
        returned = kind if bits > 32 else "la_u32"
        device += (
            f"\n__device__ __forceinline__ {returned} la_cluster_load_b{bits}(la_u32 byte, la_u32 window)\n{{\n"
            f"    {kind} value;\n"
            f'    asm volatile("ld.shared::cluster.{values}, [{address}];"\n'
            f'                 : {outputs} : "r"(la_mapped(byte, window)) : "memory");\n    return value;\n}}\n'
        )
        host.append(f"#define la_cluster_load_b{bits}(byte, window) la_shared_load_b{bits}(byte)\n")
    return device + "".join(host) + "#endif\n"
