// Loads a tile.
__device__ __forceinline__ void la_transpose_512x1024_b32_tma_load(
    const la_tensor_map* map, la_u32 tile_address, la_u32 barrier, int tile)
{
    const int origin0 = tile / 32 * 32;
    const int origin1 = tile % 32 * 32;
    la_arrive_expect_tx(barrier, 4096u);
    la_tma_load_2d(tile_address, map, barrier, origin1, origin0);
}

// Stores a turned tile.
__device__ __forceinline__ void la_transpose_512x1024_b32_tma_store(
    const la_tensor_map* map, la_u32 tile_address, int tile)
{
    const int origin0 = tile % 32 * 32;
    const int origin1 = tile / 32 * 32;
    la_tma_store_2d(map, tile_address, origin1, origin0);
    la_store_commit();
}

// Transpose of 512 x 1024 elements of 4 bytes by the copy engine.
// 512 tiles of 32 x 32, 2 stages; a thread turns blocks of 4 x 4 elements.
// 8 x ld.shared.v4.b32 of sm_90a: 32 turns, free of conflicts
// 8 x st.shared.v4.b32 of sm_90a: 32 turns, free of conflicts
extern "C" __global__ void __launch_bounds__(64) la_transpose_512x1024_b32_tma(
    const __grid_constant__ la_tensor_map from, const __grid_constant__ la_tensor_map into, int blocks, int* status)
{
    const la_u32 t = threadIdx.x;
    const la_u32 ring = (la_u32)(la_aligned_shared(1024) - la_shared());
    const la_u32 ring_address = la_shared_address(la_shared() + ring);
    const la_u32 turned = ring + 8192, barriers = ring_address + 16384;
    const bool issues = t < 32 && la_elect();  // the thread that issues every copy
    const la_u32 of_t0 = ((t & 0x8u) << 3) ^ ((t & 0x7u) << 4) ^ ((t & 0x39u) << 6) ^ ((t & 0x7u) << 9);
    const la_u32 of_t1 = ((t & 0x38u) << 1) ^ ((t & 0x7u) << 4) ^ ((t & 0x1u) << 6) ^ ((t & 0x7u) << 9);

    if (issues) {
        for (int stage = 0; stage < 2; ++stage) la_mbarrier_init(barriers + 8 * stage, 1);
        for (int i = 0; i < 2; ++i) {
            const int tile = (int)blockIdx.x + i * blocks;
            if (tile < 512) la_transpose_512x1024_b32_tma_load(&from, ring_address + i * 4096, barriers + 8 * i, tile);
        }
    }
    __syncthreads();

    int stage = 0, parity = 0, leaving = 0;
    bool done = true;
    for (int tile = (int)blockIdx.x; tile < 512; tile += blocks) {
        done = la_wait_parity(barriers + 8 * stage, parity);
        if (!done) break;
        const la_u32 came = ring + stage * 4096, goes = turned + leaving * 4096;
        const la_words4 a0_0 = la_shared_load_b128(came + of_t0);
        const la_words4 a0_1 = la_shared_load_b128(came + (of_t0 ^ 144u));
        const la_words4 a0_2 = la_shared_load_b128(came + (of_t0 ^ 288u));
        const la_words4 a0_3 = la_shared_load_b128(came + (of_t0 ^ 432u));

        // Threads have read the stage, and all stores but the last 1 their tiles: both may be written again.
        la_fence_async();
        if (issues) la_store_wait_read<1>();
        __syncthreads();
        const int next = tile + 2 * blocks;
        if (issues && next < 512)
            la_transpose_512x1024_b32_tma_load(&from, ring_address + stage * 4096, barriers + 8 * stage, next);
        la_shared_store_b128(goes + of_t1, la_words4{{a0_0.word[0], a0_1.word[0], a0_2.word[0], a0_3.word[0]}});
        la_shared_store_b128(goes + (of_t1 ^ 144u), la_words4{{a0_0.word[1], a0_1.word[1], a0_2.word[1], a0_3.word[1]}});
        la_shared_store_b128(goes + (of_t1 ^ 288u), la_words4{{a0_0.word[2], a0_1.word[2], a0_2.word[2], a0_3.word[2]}});
        la_shared_store_b128(goes + (of_t1 ^ 432u), la_words4{{a0_0.word[3], a0_1.word[3], a0_2.word[3], a0_3.word[3]}});
        la_fence_async();
        __syncthreads();
        if (issues) la_transpose_512x1024_b32_tma_store(&into, ring_address + 8192 + leaving * 4096, tile);
        if (++leaving == 2) leaving = 0;
        if (++stage == 2) stage = 0, parity ^= 1;
    }
    if (issues) {
        la_store_wait();
        status[blockIdx.x] = done ? 1 : 2;
    }
}
