// load of a bf16 tile [8, 640]: box [64, 8], swizzle 128B, 10 copies, 10240 bytes in all
extern "C" __global__ void __launch_bounds__(128) la_load_bf16_8x640_128b(const __grid_constant__ la_tensor_map map, int origin0, int origin1, unsigned char* image, int* status)
{
    unsigned char* tile = la_aligned_shared(1024);
    const la_u32 tile_address = la_shared_address(tile);
    const la_u32 barrier = tile_address + 19712;

    // No start coordinates express such an origin: nothing is copied.
    if (origin0 % 8 != 0 || origin1 % 640 != 0) {
        if (threadIdx.x == 0) *status = 3;
        return;
    }

    // Poison what the copies must overwrite, and some bytes behind the tile that they must leave alone.
    for (int i = threadIdx.x; i < 19712; i += 128) tile[i] = 0xEE;
    if (threadIdx.x == 0) la_mbarrier_init(barrier, 1);
    la_fence_async();
    __syncthreads();

    if (threadIdx.x == 0) {
        la_arrive_expect_tx(barrier, 10240);
        // Shared byte offset and start coordinates of each copy.
        static const int issues0[10][3] = {
            {0, 0, 0},
            {2048, 64, 0},
            {4096, 128, 0},
            {6144, 192, 0},
            {8192, 256, 0},
            {10240, 320, 0},
            {12288, 384, 0},
            {14336, 448, 0},
            {16384, 512, 0},
            {18432, 576, 0},
        };
        for (int q = 0; q < 10; ++q)
            la_tma_load_2d(tile_address + issues0[q][0], &map, barrier, issues0[q][1] + origin1, issues0[q][2] + origin0);
    }
    bool done = la_wait_parity(barrier, 0);
    __syncthreads();

    for (int i = threadIdx.x; i < 19712; i += 128) image[i] = tile[i];
    if (threadIdx.x == 0) *status = done ? 1 : 2;
}
