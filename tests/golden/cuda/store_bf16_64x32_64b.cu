// store of a bf16 tile [64, 32]: box [32, 64], swizzle 64B, 1 copy, 4096 bytes in all
extern "C" __global__ void __launch_bounds__(128) la_store_bf16_64x32_64b(const __grid_constant__ la_tensor_map map, int origin0, int origin1, const unsigned char* image, int* status)
{
    unsigned char* tile = la_aligned_shared(512);
    const la_u32 tile_address = la_shared_address(tile);

    // No start coordinates express such an origin: nothing is copied.
    if (origin0 % 64 != 0 || origin1 % 32 != 0 || origin1 < 0 || origin0 < 0) {
        if (threadIdx.x == 0) *status = 3;
        return;
    }

    for (int i = threadIdx.x; i < 4096; i += 128) tile[i] = image[i];
    la_fence_async();  // every thread: its writes before the copy engine's reads
    __syncthreads();

    if (threadIdx.x == 0) {
        la_tma_store_2d(&map, tile_address, origin1, origin0);
        la_store_commit();
        la_store_wait();
        *status = 1;
    }
}
