"""Kernels with roles, written by hand, and the documents of what they do."""

from __future__ import annotations

from typing import Any

from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.prelude import PRELUDE, wgmma_prelude
from layoutalg.proofs.pipeline import Pipeline

_NAMES = r"""
#define LANE ((int)threadIdx.x & 31)
#define WARP ((int)threadIdx.x / 32)
__device__ __forceinline__ bool elected()
{
    la_u32 chosen;
    asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xFFFFFFFF;\nselp.u32 %0, 1, 0, p;\n}\n" : "=r"(chosen));
    return chosen;
}
__device__ __forceinline__ void arrive(la_u32 barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
}
__device__ __forceinline__ void meet(int id, int threads)
{
    asm volatile("bar.sync %0, %1;" :: "r"(id), "r"(threads) : "memory");
}
template <int n> __device__ __forceinline__ void multiplied()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(n) : "memory");
}
template <int n> __device__ __forceinline__ void stored()
{
    asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(n) : "memory");
}
"""

PRODUCT = (
    PRELUDE
    + wgmma_prelude("bf16", 64)
    + _NAMES
    + r"""
extern "C" __global__ void __launch_bounds__(160) product(
    const __grid_constant__ la_tensor_map a, const __grid_constant__ la_tensor_map b, int n, float* d)
{
    const la_u32 base = la_shared_address(la_aligned_shared(1024));
    const la_u32 a_ring = base, b_ring = base + 3 * 8192, full = base + 6 * 8192, empty = full + 24;
    if (threadIdx.x == 0) {
        for (int i = 0; i < 3; ++i) la_mbarrier_init(full + 8 * i, 1), la_mbarrier_init(empty + 8 * i, 4);
    }
    __syncthreads();
    int slot = 0, parity = 0;
    if (WARP == 4) {
        if (elected()) {
            for (int k = 0; k < n; ++k) {
                if (!la_wait_parity(empty + 8 * slot, parity ^ 1)) return;
                la_arrive_expect_tx(full + 8 * slot, 16384);
                la_tma_load_2d(a_ring + 8192 * slot, &a, full + 8 * slot, 64 * k, 64 * (int)blockIdx.x);
                la_tma_load_2d(b_ring + 8192 * slot, &b, full + 8 * slot, 64 * k, 0);
                if (++slot == 3) slot = 0, parity ^= 1;
            }
        }
        return;
    }
    float sum[32];
    for (int v = 0; v < 32; ++v) sum[v] = 0.0f;
    int last = 0;
    for (int k = 0; k < n; ++k) {
        la_wait_parity(full + 8 * slot, parity);
        const la_u64 x = ((a_ring + 8192 * slot) & 0x3FFFF) >> 4 | 0x4000004000010000ull;
        const la_u64 y = ((b_ring + 8192 * slot) & 0x3FFFF) >> 4 | 0x4000004000010000ull;
        la_wgmma_fence();
#pragma unroll
        for (int s = 0; s < 4; ++s) la_wgmma_m64n64k16_bf16<0, 0>(sum, x + 2 * s, y + 2 * s, 1);
        la_wgmma_commit();
        multiplied<1>();
        if (k > 0 && elected()) arrive(empty + 8 * last);
        last = slot;
        if (++slot == 3) slot = 0, parity ^= 1;
    }
    multiplied<0>();
    if (n > 0 && elected()) arrive(empty + 8 * last);
    for (int v = 0; v < 32; ++v) d[128 * v + threadIdx.x] = sum[v];
}
"""
)

COPIES = (
    PRELUDE
    + _NAMES
    + r"""
extern "C" __global__ void __launch_bounds__(96) copies(
    const __grid_constant__ la_tensor_map from, const __grid_constant__ la_tensor_map into, int n)
{
    unsigned char* const memory = la_aligned_shared(128);
    const la_u32 base = la_shared_address(memory), left = 4 * 1024, full = base + 6 * 1024, empty = full + 32;
    if (threadIdx.x == 0) {
        for (int i = 0; i < 4; ++i) la_mbarrier_init(full + 8 * i, 1), la_mbarrier_init(empty + 8 * i, 64);
    }
    __syncthreads();
    int slot = 0, parity = 0, out = 0;
    if (WARP == 0) {
        for (int k = 0; k < n; ++k) {
            la_wait_parity(empty + 8 * slot, parity ^ 1);
            if (elected()) {
                la_arrive_expect_tx(full + 8 * slot, 1024);
                la_tma_load_1d(base + 1024 * slot, &from, full + 8 * slot, 128 * k);
            }
            if (++slot == 4) slot = 0, parity ^= 1;
        }
        return;
    }
    const int t = (int)threadIdx.x - 32;
    for (int k = 0; k < n; ++k) {
        la_wait_parity(full + 8 * slot, parity);
        if (t == 0) stored<1>();
        meet(1, 64);
        for (int i = t; i < 256; i += 64)
            ((int*)(memory + left))[256 * out + i] = ((int*)memory)[256 * slot + i] + 1;
        la_fence_async();
        arrive(empty + 8 * slot);
        meet(1, 64);
        if (t == 0) {
            la_tma_store_1d(&into, base + left + 1024 * out, 128 * k);
            la_store_commit();
        }
        if (++slot == 4) slot = 0, parity ^= 1;
        out ^= 1;
    }
    if (t == 0) la_store_wait();
}
"""
)

TURN = r"""
extern "C" __global__ void __launch_bounds__(32) turn(
    const __grid_constant__ la_tensor_map from, const __grid_constant__ la_tensor_map into, int n)
{
    const la_u32 ring = la_shared_address(la_aligned_shared(128)), full = ring + 4096;
    if (!elected()) return;
    for (int i = 0; i < 4; ++i) la_mbarrier_init(full + 8 * i, 1);
    for (int i = 0; i < 2; ++i) {
        la_arrive_expect_tx(full + 8 * i, 1024);
        la_tma_load_1d(ring + 1024 * i, &from, full + 8 * i, 256 * i);
    }
    for (int k = 0; k < n; ++k) {
        if (!la_wait_parity(full + k % 4 * 8, k / 4 & 1)) return;
        la_tma_store_1d(&into, ring + k % 4 * 1024, 256 * k);
        la_store_commit();
        stored<2>();
        if (k < n - 2) {
            la_arrive_expect_tx(full + (k + 2) % 4 * 8, 1024);
            la_tma_load_1d(ring + (k + 2) % 4 * 1024, &from, full + (k + 2) % 4 * 8, 256 * (k + 2));
        }
    }
    la_store_wait();
}
"""

PAIR = r"""
__device__ __forceinline__ void meet_cluster()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\n barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ __forceinline__ la_u32 rank()
{
    la_u32 found;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(found));
    return found;
}
__device__ __forceinline__ la_u32 far(la_u32 address, la_u32 to)
{
    la_u32 found;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(found) : "r"(address), "r"(to));
    return found;
}
__device__ __forceinline__ void arrive_at(la_u32 barrier, la_u32 to)
{
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(far(barrier, to)) : "memory");
}
__device__ __forceinline__ void load_both(
    la_u32 to, const la_tensor_map* map, la_u32 barrier, unsigned short mask, int c)
{
    asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
                 " [%0], [%1, {%4}], [%2], %3;" :: "r"(to), "l"(map), "r"(barrier), "h"(mask), "r"(c) : "memory");
}

// Each block loads one half of a tile for both; both tell both when they have read.
extern "C" __global__ void __launch_bounds__(64) pair(const __grid_constant__ la_tensor_map from, int n)
{
    const la_u32 ring = la_shared_address(la_aligned_shared(128)), full = ring + 2048, empty = full + 16;
    if (threadIdx.x < 2) la_mbarrier_init(full + 8 * threadIdx.x, 1), la_mbarrier_init(empty + 8 * threadIdx.x, 2);
    meet_cluster();
    int slot = 0, parity = 0;
    if (WARP == 0) {
        if (elected()) {
            for (int k = 0; k < n; ++k) {
                la_wait_parity(empty + 8 * slot, parity ^ 1);
                la_arrive_expect_tx(full + 8 * slot, 1024);
                load_both(ring + 1024 * slot + 512 * rank(), &from, full + 8 * slot, (unsigned short)3, 256 * k);
                if (++slot == 2) slot = 0, parity ^= 1;
            }
        }
    } else {
        for (int k = 0; k < n; ++k) {
            la_wait_parity(full + 8 * slot, parity);
            asm volatile("" :: "r"(*(volatile int*)(la_aligned_shared(128) + 1024 * slot + 4 * LANE)));
            la_fence_async();
            __syncwarp();
            if (elected()) {
                arrive_at(empty + 8 * slot, 0);
                arrive_at(empty + 8 * slot, 1);
            }
            if (++slot == 2) slot = 0, parity ^= 1;
        }
    }
    meet_cluster();
}
"""

_MAP = "const __grid_constant__ la_tensor_map"


def _pipeline(
    stages: int, barriers: dict[str, Any], buffers: dict[str, Any], roles: list[Any], least: int, cluster: int = 1
) -> Pipeline:
    """Ops are written as (op, entries)."""
    for role in roles:
        for part in {"pre", "loop", "post"} & set(role):
            role[part] = [{"op": op, **entries} for op, entries in role[part]]
    document = {"schema": "layoutalg/pipeline/1", "stages": stages, "barriers": barriers, "buffers": buffers}
    more = {"cluster": cluster} if cluster > 1 else {}
    return Pipeline.from_json(document | {"roles": roles, "trips": f"N >= {least}"} | more)


def product() -> tuple[KernelSource, Pipeline]:
    """A loader and a warp group that multiplies; slots are released one iteration later."""
    barriers = (("full", 6 * 8192, 3), ("empty", 6 * 8192 + 24, 3))
    roles = (("math", 0, 4), ("load", 4, 1))
    parameters = ((_MAP, "a"), (_MAP, "b"), ("int", "n"), ("float*", "d"))
    kernel = KernelSource(
        "product", PRODUCT, "sm_90a", 160, 6 * 8192 + 1072, parameters, barriers=barriers, roles=roles
    )
    full, empty = {"bar": "full"}, {"bar": "empty"}
    load = [
        ("wait", empty | {"ph": -1}), ("arrive_tx", full | {"bytes": 16384}), ("tma_load", full | {"buf": "A"}),
        ("tma_load", full | {"buf": "B"}),
    ]  # fmt: skip
    math = [
        ("wait", full), ("mma", {"buf": "A"}), ("mma", {"buf": "B"}), ("mma_commit", {}), ("mma_wait", {"n": 1}),
        ("arrive", empty | {"off": -1, "n": 4}),
    ]  # fmt: skip
    end = [("mma_wait", {"n": 0}), ("arrive", empty | {"off": -1, "n": 4})]
    named = {"full": {"count": 1}, "empty": {"count": 4}}
    given = [{"name": "load", "loop": load}, {"name": "math", "loop": math, "post": end}]
    return kernel, _pipeline(3, named, {"A": {"bytes": 8192}, "B": {"bytes": 8192}}, given, 0)


def copies() -> tuple[KernelSource, Pipeline]:
    """A loader, and two warps that read, write and store through a second ring."""
    barriers, roles = (("full", 6144, 4), ("empty", 6176, 4)), (("load", 0, 1), ("store", 1, 2))
    parameters = ((_MAP, "from"), (_MAP, "into"), ("int", "n"))
    kernel = KernelSource("copies", COPIES, "sm_90a", 96, 6208 + 128, parameters, barriers=barriers, roles=roles)
    full, empty = {"bar": "full"}, {"bar": "empty"}
    load = [
        ("wait", empty | {"ph": -1}), ("arrive_tx", full | {"bytes": 1024}), ("tma_load", full | {"buf": "A"}),
    ]  # fmt: skip
    store = [
        ("wait", full), ("bulk_wait", {"n": 1}), ("read", {"buf": "A"}), ("write", {"buf": "C"}), ("proxy_fence", {}),
        ("arrive", empty | {"n": 64}), ("tma_store", {"buf": "C"}), ("bulk_commit", {}),
    ]  # fmt: skip
    named = {"full": {"count": 1}, "empty": {"count": 64}}
    given = [{"name": "load", "loop": load}, {"name": "store", "loop": store, "post": [("bulk_wait", {"n": 0})]}]
    return kernel, _pipeline(4, named, {"A": {"bytes": 1024}, "C": {"bytes": 1024, "slots": 2}}, given, 0)


def turn() -> tuple[KernelSource, Pipeline]:
    """One thread that loads two slots ahead and stores."""
    parameters = ((_MAP, "from"), (_MAP, "into"), ("int", "n"))
    text = PRELUDE + _NAMES + TURN
    kernel = KernelSource(
        "turn", text, "sm_90a", 32, 4096 + 32 + 128, parameters, barriers=(("full", 4096, 4),), roles=(("all", 0, 1),)
    )
    full = {"bar": "full"}
    pre = [
        (op, entries | {"idx_abs": index})
        for index in range(2)
        for op, entries in (("arrive_tx", full | {"bytes": 1024}), ("tma_load", full | {"buf": "A"}))
    ]
    ahead = {"off": 2, "guard": {"from": 0, "until": 2}}
    loop = [
        ("wait", full), ("tma_store", {"buf": "A"}), ("bulk_commit", {}), ("bulk_wait", {"n": 2}),
        ("arrive_tx", full | {"bytes": 1024} | ahead), ("tma_load", full | {"buf": "A"} | ahead),
    ]  # fmt: skip
    role = {"name": "all", "pre": pre, "loop": loop, "post": [("bulk_wait", {"n": 0})]}
    return kernel, _pipeline(4, {"full": {"count": 1}}, {"A": {"bytes": 1024}}, [role], 2)


def pair() -> tuple[KernelSource, Pipeline]:
    """Two blocks of a cluster: each loads a half for both."""
    text = PRELUDE + _NAMES + PAIR
    barriers, roles = (("full", 2048, 2), ("empty", 2064, 2)), (("load", 0, 1), ("use", 1, 1))
    parameters = ((_MAP, "from"), ("int", "n"))
    kernel = KernelSource("pair", text, "sm_90a", 64, 2080 + 128, parameters, barriers=barriers, roles=roles)
    load = [
        ("wait", {"bar": "empty", "ph": -1}), ("arrive_tx", {"bar": "full", "bytes": 1024}),
        ("tma_load", {"buf": "A", "bar": "full", "bytes": 512, "multicast": "all"}),
    ]  # fmt: skip
    use = [("wait", {"bar": "full"}), ("read", {"buf": "A"}), ("proxy_fence", {})]
    use.append(("arrive", {"bar": "empty", "to": "all"}))
    given = [{"name": "load", "loop": load}, {"name": "use", "loop": use}]
    named = {"full": {"count": 1}, "empty": {"count": 2}}
    return kernel, _pipeline(2, named, {"A": {"bytes": 1024}}, given, 0, 2)
