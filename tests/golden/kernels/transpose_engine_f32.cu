// Loads a tile.
__device__ __forceinline__ void la_transpose_512x1024_b32_tma_load(
    const la_tensor_map* map, la_u32 tile_address, la_u32 barrier, int origin0, int origin1)
{
    la_tma_load_2d(tile_address, map, barrier, origin1, origin0);
}

// Stores a turned tile.
__device__ __forceinline__ void la_transpose_512x1024_b32_tma_store(
    const la_tensor_map* map, la_u32 tile_address, int origin0, int origin1)
{
    la_tma_store_2d(map, tile_address, origin1, origin0);
}

// Transpose of 512 x 1024 elements of 4 bytes by the copy engine: a thread turns blocks of 4 x 4 elements.
// 8 x ld.shared.v4.b32 of sm_90a: 32 turns, free of conflicts
// 8 x st.shared.v4.b32 of sm_90a: 32 turns, free of conflicts
// Pipeline: safe for every N >= 0.
//   barriers  full: 1 arrival, empty: 2 arrivals
//   buffers   A, B
//   load      loop: wait empty[k], phase -1; arrive_tx full[k], 4096 bytes; tma_load A[k], full[k]
//   turn      loop: wait full[k]; read A[k]; proxy_fence; arrive empty[k], 2; bulk_wait 1; write B[k]; proxy_fence; tma_store B[k]; bulk_commit. post: bulk_wait 0
extern "C" __global__ void __launch_bounds__(96, 1) la_transpose_512x1024_b32_tma(
    const __grid_constant__ la_tensor_map from, const __grid_constant__ la_tensor_map into, int blocks, int* status)
{
    const la_u32 first_byte = (la_u32)(la_aligned_shared(1024) - la_shared());
    const la_u32 shared = la_shared_address(la_shared() + first_byte), barriers = shared + 16384;
    const la_u32 warp = la_shuffle(threadIdx.x / 32, 0);
    int gave_up = 0;  // the wait that did, and its iteration
    int* const failed = (int*)(la_shared() + first_byte + 16416);
    if (threadIdx.x == 0) {
        *failed = 0;
        la_prefetch_tensor_map(&from);
        la_prefetch_tensor_map(&into);
        for (int slot = 0; slot < 2; ++slot) la_mbarrier_init(shared + 16384 + 8 * slot, 1);  // full
        for (int slot = 0; slot < 2; ++slot) la_mbarrier_init(shared + 16400 + 8 * slot, 2);  // empty
    }
    __syncthreads();

    if (warp < 1) {  // load
        if (warp == 0 && la_elect()) {
            la_u32 slot2 = 0, parity2 = 0;
            const int trips = blocks >= 512 ? (int)blockIdx.x < 512 : (512 - (int)blockIdx.x + blocks - 1) / blocks;
            int k = 0;
            for (; k < trips; ++k) {
                la_wait_phase(barriers + 16 + 8 * slot2, parity2 ^ 1, 1, k, gave_up);
                la_arrive_expect_tx(barriers + 0 + 8 * slot2, 4096u);
                const int tile = (int)blockIdx.x + k * blocks;
                la_transpose_512x1024_b32_tma_load(&from, (shared + 4096 * slot2), (barriers + 0 + 8 * slot2), tile / 32 * 32, tile % 32 * 32);
                if (++slot2 == 2) slot2 = 0, parity2 ^= 1;
            }
        }
    }
    if (warp >= 1 && warp < 3) {  // turn
        const la_u32 which = 0, t = (threadIdx.x - 32) % 64;
        const bool leader = la_elect(), issuer = leader && t < 32;
        const la_u32 of_t0 = ((t & 0x8u) << 3) ^ ((t & 0x7u) << 4) ^ ((t & 0x39u) << 6) ^ ((t & 0x7u) << 9);
        const la_u32 of_t1 = ((t & 0x38u) << 1) ^ ((t & 0x7u) << 4) ^ ((t & 0x1u) << 6) ^ ((t & 0x7u) << 9);
        la_u32 slot2 = 0, parity2 = 0;
        const int trips = blocks >= 512 ? (int)blockIdx.x < 512 : (512 - (int)blockIdx.x + blocks - 1) / blocks;
        int k = 0;
        for (; k < trips; ++k) {
            la_wait_phase(barriers + 0 + 8 * slot2, parity2, 2, k, gave_up);
            const la_u32 came = (first_byte + 4096 * slot2);
            const la_words4 a0_0 = la_shared_load_b128(came + of_t0);
            const la_words4 a0_1 = la_shared_load_b128(came + (of_t0 ^ 144u));
            const la_words4 a0_2 = la_shared_load_b128(came + (of_t0 ^ 288u));
            const la_words4 a0_3 = la_shared_load_b128(came + (of_t0 ^ 432u));
            la_fence_async();
            la_sync_warp();
            if (leader) la_arrive(barriers + 16 + 8 * slot2);
            if (issuer) la_store_wait_read<1>();
            la_role_barrier(1, 64);
            const la_u32 goes = (first_byte + 8192 + 4096 * slot2);
            la_shared_store_b128(goes + of_t1, la_words4{{a0_0.word[0], a0_1.word[0], a0_2.word[0], a0_3.word[0]}});
            la_shared_store_b128(goes + (of_t1 ^ 144u), la_words4{{a0_0.word[1], a0_1.word[1], a0_2.word[1], a0_3.word[1]}});
            la_shared_store_b128(goes + (of_t1 ^ 288u), la_words4{{a0_0.word[2], a0_1.word[2], a0_2.word[2], a0_3.word[2]}});
            la_shared_store_b128(goes + (of_t1 ^ 432u), la_words4{{a0_0.word[3], a0_1.word[3], a0_2.word[3], a0_3.word[3]}});
            la_fence_async();
            la_role_barrier(1, 64);
            if (issuer) {
                const int tile = (int)blockIdx.x + k * blocks;
                la_transpose_512x1024_b32_tma_store(&into, (shared + 8192 + 4096 * slot2), tile % 32 * 32, tile / 32 * 32);
            }
            if (issuer) la_store_commit();
            if (++slot2 == 2) slot2 = 0, parity2 ^= 1;
        }
        if (issuer) la_store_wait_read<0>();
    }

    if (gave_up) *failed = gave_up;
    __syncthreads();
    if (threadIdx.x == 0) status[blockIdx.x] = *failed ? 2 | *failed : 1;
}
