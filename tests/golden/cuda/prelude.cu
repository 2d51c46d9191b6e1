// Hardware operations by name. With LA_HOST defined, a host header supplies the same names as C++ models.
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

// Returns false when the phase did not complete within the limit.
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

// Waits until the copy engine has read the sources of all but this thread's last `pending` committed groups of stores.
template <int pending>
__device__ __forceinline__ void la_store_wait_read()
{
    asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(pending) : "memory");
}

__device__ __forceinline__ void la_tma_load_1d(
    la_u32 destination, const la_tensor_map* map, la_u32 barrier, int c0)
{
    asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%3}], [%2];"
                 :: "r"(destination), "l"(map), "r"(barrier), "r"(c0) : "memory");
}
__device__ __forceinline__ void la_tma_load_2d(
    la_u32 destination, const la_tensor_map* map, la_u32 barrier, int c0, int c1)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%3, %4}], [%2];"
                 :: "r"(destination), "l"(map), "r"(barrier), "r"(c0), "r"(c1) : "memory");
}
__device__ __forceinline__ void la_tma_load_3d(
    la_u32 destination, const la_tensor_map* map, la_u32 barrier, int c0, int c1, int c2)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%3, %4, %5}], [%2];"
                 :: "r"(destination), "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2) : "memory");
}
__device__ __forceinline__ void la_tma_load_4d(
    la_u32 destination, const la_tensor_map* map, la_u32 barrier, int c0, int c1, int c2, int c3)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%3, %4, %5, %6}], [%2];"
                 :: "r"(destination), "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3) : "memory");
}
__device__ __forceinline__ void la_tma_load_5d(
    la_u32 destination, const la_tensor_map* map, la_u32 barrier, int c0, int c1, int c2, int c3, int c4)
{
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%3, %4, %5, %6, %7}], [%2];"
                 :: "r"(destination), "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4) : "memory");
}

__device__ __forceinline__ void la_tma_store_1d(const la_tensor_map* map, la_u32 source, int c0)
{
    asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%0, {%2}], [%1];"
                 :: "l"(map), "r"(source), "r"(c0) : "memory");
}
__device__ __forceinline__ void la_tma_store_2d(const la_tensor_map* map, la_u32 source, int c0, int c1)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];"
                 :: "l"(map), "r"(source), "r"(c0), "r"(c1) : "memory");
}
__device__ __forceinline__ void la_tma_store_3d(const la_tensor_map* map, la_u32 source, int c0, int c1, int c2)
{
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];"
                 :: "l"(map), "r"(source), "r"(c0), "r"(c1), "r"(c2) : "memory");
}
__device__ __forceinline__ void la_tma_store_4d(const la_tensor_map* map, la_u32 source, int c0, int c1, int c2, int c3)
{
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5}], [%1];"
                 :: "l"(map), "r"(source), "r"(c0), "r"(c1), "r"(c2), "r"(c3) : "memory");
}
__device__ __forceinline__ void la_tma_store_5d(const la_tensor_map* map, la_u32 source, int c0, int c1, int c2, int c3, int c4)
{
    asm volatile("cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5, %6}], [%1];"
                 :: "l"(map), "r"(source), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4) : "memory");
}
#endif

// First address at or above the dynamic shared memory's start that is a multiple of `alignment` bytes.
__device__ __forceinline__ unsigned char* la_aligned_shared(la_u32 alignment)
{
    unsigned char* base = la_shared();
    return base + ((0u - la_shared_address(base)) & (alignment - 1u));
}
