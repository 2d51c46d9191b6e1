extern "C" __global__ void __launch_bounds__(128) la_run_load_3d(const la_tensor_map* maps, const int* heads, const int* issues, unsigned char* images, int image_bytes, int* status)
{
    const la_tensor_map* map = maps + blockIdx.x;
    const int* head = heads + 4 * blockIdx.x;
    const int first = head[0], count = head[1], offset = head[3];
    unsigned char* base = la_aligned_shared(1024);
    unsigned char* image = images + (la_u64)image_bytes * blockIdx.x;
    const la_u32 tile_address = la_shared_address(base) + offset;
    const la_u32 barrier = la_shared_address(base) + image_bytes;  // after the image, 8-byte aligned

    for (int i = threadIdx.x; i < image_bytes; i += 128) base[i] = 0xEE;
    if (threadIdx.x == 0) la_mbarrier_init(barrier, 1);
    la_fence_async();
    __syncthreads();

    if (threadIdx.x == 0) {
        la_fence_tensor_map(map);
        la_arrive_expect_tx(barrier, head[2]);
        for (int q = first; q < first + count; ++q) {
            const int* issue = issues + 6 * q;
            la_tma_load_3d(tile_address + issue[0], map, barrier, issue[1], issue[2], issue[3]);
        }
    }
    const bool done = la_wait_parity(barrier, 0);
    __syncthreads();

    for (int i = threadIdx.x; i < image_bytes; i += 128) image[i] = base[i];
    if (threadIdx.x == 0) status[blockIdx.x] = done ? 1 : 2;
}
