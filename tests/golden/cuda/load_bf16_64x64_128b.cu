// load of a bf16 tile [64, 64]: box [64, 64], swizzle 128B, 1 copy, 8192 bytes in all
extern "C" __global__ void __launch_bounds__(128) la_load_bf16_64x64_128b(const __grid_constant__ la_tensor_map map, int origin0, int origin1, unsigned char* image, int* status)
{
    unsigned char* tile = la_aligned_shared(1024);
    const la_u32 tile_address = la_shared_address(tile);
    const la_u32 barrier = tile_address + 8448;

    // No start coordinates express such an origin: nothing is copied.
    if (origin0 % 64 != 0 || origin1 % 64 != 0) {
        if (threadIdx.x == 0) *status = 3;
        return;
    }

    // Poison what the copies must overwrite, and some bytes behind the tile that they must leave alone.
    for (int i = threadIdx.x; i < 8448; i += 128) tile[i] = 0xEE;
    if (threadIdx.x == 0) la_mbarrier_init(barrier, 1);
    la_fence_async();
    __syncthreads();

    if (threadIdx.x == 0) {
        la_arrive_expect_tx(barrier, 8192);
        la_tma_load_2d(tile_address, &map, barrier, origin1, origin0);
    }
    bool done = la_wait_parity(barrier, 0);
    __syncthreads();

    for (int i = threadIdx.x; i < 8448; i += 128) image[i] = tile[i];
    if (threadIdx.x == 0) *status = done ? 1 : 2;
}
