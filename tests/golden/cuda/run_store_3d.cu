extern "C" __global__ void __launch_bounds__(128) la_run_store_3d(const la_tensor_map* maps, const int* heads, const int* issues, unsigned char* images, int image_bytes, int* status)
{
    const la_tensor_map* map = maps + blockIdx.x;
    const int* head = heads + 4 * blockIdx.x;
    const int first = head[0], count = head[1], offset = head[3];
    unsigned char* base = la_aligned_shared(1024);
    unsigned char* image = images + (la_u64)image_bytes * blockIdx.x;
    const la_u32 tile_address = la_shared_address(base) + offset;
    for (int i = threadIdx.x; i < image_bytes; i += 128) base[i] = image[i];
    la_fence_async();
    __syncthreads();

    if (threadIdx.x == 0) {
        la_fence_tensor_map(map);
        for (int q = first; q < first + count; ++q) {
            const int* issue = issues + 6 * q;
            la_tma_store_3d(map, tile_address + issue[0], issue[1], issue[2], issue[3]);
        }
        la_store_commit();
        la_store_wait();
        status[blockIdx.x] = 1;
    }
}
