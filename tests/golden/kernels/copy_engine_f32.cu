// Loads a tile: box 32x16x2 (innermost first), swizzle 128B.
__device__ __forceinline__ void la_copy_1024x4096_b32_tma_load(
    const la_tensor_map* map, la_u32 tile_address, la_u32 barrier, int tile)
{
    const int origin0 = tile / 64 * 16;
    const int origin1 = tile % 64 * 64;
    la_arrive_expect_tx(barrier, 4096u);
    la_tma_load_3d(tile_address, map, barrier, 0, origin0, origin1 / 32);
}

// Stores a tile: box 32x16x2 (innermost first), swizzle 128B.
__device__ __forceinline__ void la_copy_1024x4096_b32_tma_store(
    const la_tensor_map* map, la_u32 tile_address, int tile)
{
    const int origin0 = tile / 64 * 16;
    const int origin1 = tile % 64 * 64;
    la_tma_store_3d(map, tile_address, 0, origin0, origin1 / 32);
    la_store_commit();
}

// Copy of 1024 x 4096 elements of 4 bytes by the copy engine.
// 4096 tiles of 16 x 64, 4 stages, 2 tiles loaded ahead.
extern "C" __global__ void __launch_bounds__(32) la_copy_1024x4096_b32_tma(
    const __grid_constant__ la_tensor_map from, const __grid_constant__ la_tensor_map into, int blocks, int* status)
{
    const la_u32 ring = la_shared_address(la_aligned_shared(1024));
    const la_u32 barriers = ring + 16384;
    if (!la_elect()) return;  // one thread issues everything

    for (int stage = 0; stage < 4; ++stage) la_mbarrier_init(barriers + 8 * stage, 1);
    for (int i = 0; i < 2; ++i) {
        const int tile = (int)blockIdx.x + i * blocks;
        if (tile < 4096) la_copy_1024x4096_b32_tma_load(&from, ring + i * 4096, barriers + 8 * i, tile);
    }

    int stage = 0, loaded = 2, parity = 0;
    bool done = true;
    for (int tile = (int)blockIdx.x; tile < 4096; tile += blocks) {
        done = la_wait_parity(barriers + 8 * stage, parity);
        if (!done) break;
        la_copy_1024x4096_b32_tma_store(&into, ring + stage * 4096, tile);

        // All stores but the last 2 have read their stages: the oldest of those stages takes the next load.
        la_store_wait_read<2>();
        const int next = tile + 2 * blocks;
        if (next < 4096) la_copy_1024x4096_b32_tma_load(&from, ring + loaded * 4096, barriers + 8 * loaded, next);
        if (++loaded == 4) loaded = 0;
        if (++stage == 4) stage = 0, parity ^= 1;
    }
    la_store_wait();
    status[blockIdx.x] = done ? 1 : 2;
}
