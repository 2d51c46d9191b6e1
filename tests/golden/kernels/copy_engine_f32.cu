// Loads a tile: box 32x16x2 (innermost first), swizzle 128B.
__device__ __forceinline__ void la_copy_1024x4096_b32_tma_load(
    const la_tensor_map* map, la_u32 tile_address, la_u32 barrier, int origin0, int origin1)
{
    la_tma_load_3d(tile_address, map, barrier, 0, origin0, origin1 / 32);
}

// Stores a tile: box 32x16x2 (innermost first), swizzle 128B.
__device__ __forceinline__ void la_copy_1024x4096_b32_tma_store(
    const la_tensor_map* map, la_u32 tile_address, int origin0, int origin1)
{
    la_tma_store_3d(map, tile_address, 0, origin0, origin1 / 32);
}

// Copy of 1024 x 4096 elements of 4 bytes by the copy engine: tiles of 16 x 64.
// Pipeline: safe for every N >= 0.
//   barriers  full: 1 arrival, empty: 1 arrival
//   buffers   T
//   load      loop: wait empty[k], phase -1; arrive_tx full[k], 4096 bytes; tma_load T[k], full[k], 4096 bytes
//   store     loop: wait full[k]; tma_store T[k]; bulk_commit; bulk_wait 2; arrive empty[k-2]. post: bulk_wait 0
extern "C" __global__ void __launch_bounds__(64, 1) la_copy_1024x4096_b32_tma(
    const __grid_constant__ la_tensor_map from, const __grid_constant__ la_tensor_map into, int blocks, int* status)
{
    const la_u32 first_byte = (la_u32)(la_aligned_shared(1024) - la_shared());
    const la_u32 shared = la_shared_address(la_shared() + first_byte), barriers = shared + 16384;
    const la_u32 warp = la_shuffle(threadIdx.x / 32, 0);
    int gave_up = 0;  // the wait that did, and its iteration
    int* const failed = (int*)(la_shared() + first_byte + 16448);
    if (threadIdx.x == 0) {
        *failed = 0;
        la_prefetch_tensor_map(&from);
        la_prefetch_tensor_map(&into);
        for (int slot = 0; slot < 4; ++slot) la_mbarrier_init(shared + 16384 + 8 * slot, 1);  // full
        for (int slot = 0; slot < 4; ++slot) la_mbarrier_init(shared + 16416 + 8 * slot, 1);  // empty
    }
    __syncthreads();

    if (warp < 1) {  // load
        if (warp == 0 && la_elect()) {
            la_u32 slot4 = 0, parity4 = 0;
            const int trips = blocks >= 4096 ? (int)blockIdx.x < 4096 : (4096 - (int)blockIdx.x + blocks - 1) / blocks;
            int k = 0;
            for (; k < trips; ++k) {
                la_wait_phase(barriers + 32 + 8 * slot4, parity4 ^ 1, 1, k, gave_up);
                la_arrive_expect_tx(barriers + 0 + 8 * slot4, 4096u);
                const int tile = (int)blockIdx.x + k * blocks;
                la_copy_1024x4096_b32_tma_load(&from, (shared + 4096 * slot4), (barriers + 0 + 8 * slot4), tile / 64 * 16, tile % 64 * 64);
                if (++slot4 == 4) slot4 = 0, parity4 ^= 1;
            }
        }
    }
    if (warp >= 1 && warp < 2) {  // store
        if (warp == 1 && la_elect()) {
            la_u32 slot4 = 0, parity4 = 0;
            const int trips = blocks >= 4096 ? (int)blockIdx.x < 4096 : (4096 - (int)blockIdx.x + blocks - 1) / blocks;
            int k = 0;
            for (; k < trips; ++k) {
                la_wait_phase(barriers + 0 + 8 * slot4, parity4, 2, k, gave_up);
                const int tile = (int)blockIdx.x + k * blocks;
                la_copy_1024x4096_b32_tma_store(&into, (shared + 4096 * slot4), tile / 64 * 16, tile % 64 * 64);
                la_store_commit();
                la_store_wait_read<2>();
                if (k >= 2) {
                    la_arrive(barriers + 32 + 8 * (slot4 + 2 - (slot4 >= 2 ? 4 : 0)));
                }
                if (++slot4 == 4) slot4 = 0, parity4 ^= 1;
            }
            la_store_wait_read<0>();
        }
    }

    if (gave_up) *failed = gave_up;
    __syncthreads();
    if (threadIdx.x == 0) status[blockIdx.x] = *failed ? 2 | *failed : 1;
}
