// A: load of a bf16 tile [64, 64]: box [64, 64], swizzle 128B, 1 copy, 8192 bytes in all
// B: load of a bf16 tile [64, 64]: box [64, 64], swizzle 128B, 1 copy, 8192 bytes in all
// d[64, 64] = A[64, 64] * B[64, 64]^T in float, one warpgroup. Instruction tiles are 64 x 64 x 16.
extern "C" __global__ void __launch_bounds__(128) la_matmul(const __grid_constant__ la_tensor_map map_a, int a_origin0, int a_origin1, const __grid_constant__ la_tensor_map map_b, int b_origin0, int b_origin1, float* d, int* status)
{
    unsigned char* base = la_aligned_shared(1024);
    const la_u32 a_address = la_shared_address(base);
    const la_u32 b_address = a_address + 8192;
    const la_u32 barrier = a_address + 16384;

    // No start coordinates express such an origin: nothing is copied.
    if (a_origin0 % 64 != 0 || a_origin1 % 64 != 0) {
        if (threadIdx.x == 0) *status = 3;
        return;
    }

    // No start coordinates express such an origin: nothing is copied.
    if (b_origin0 % 64 != 0 || b_origin1 % 64 != 0) {
        if (threadIdx.x == 0) *status = 3;
        return;
    }

    if (threadIdx.x == 0) la_mbarrier_init(barrier, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        la_arrive_expect_tx(barrier, 16384);
        la_tma_load_2d(a_address, &map_a, barrier, a_origin1, a_origin0);
        la_tma_load_2d(b_address, &map_b, barrier, b_origin1, b_origin0);
    }
    const bool done = la_wait_parity(barrier, 0);
    __syncthreads();
    if (threadIdx.x == 0) *status = done ? 1 : 2;
    if (!done) return;

    // Matrix descriptors with start addresses relative to each tile base, in units of 16 bytes.
    const la_u64 a_base = (a_address & 0x3FFFF) >> 4, b_base = (b_address & 0x3FFFF) >> 4;
    const int t = threadIdx.x, lane = 2 * t + 56 * (t >> 2) + 512 * (t >> 5);  // where thread t's values begin in d
    {  // rows 0 to 63, columns 0 to 63
        float acc[32];
#pragma unroll
        for (int v = 0; v < 32; ++v) acc[v] = 0.0f;
        la_wgmma_fence();
        la_wgmma_m64n64k16_bf16<0, 0>(acc, a_base + 0x4000004000010000ull, b_base + 0x4000004000010000ull, 0);
        la_wgmma_m64n64k16_bf16<0, 0>(acc, a_base + 0x4000004000010002ull, b_base + 0x4000004000010002ull, 1);
        la_wgmma_m64n64k16_bf16<0, 0>(acc, a_base + 0x4000004000010004ull, b_base + 0x4000004000010004ull, 1);
        la_wgmma_m64n64k16_bf16<0, 0>(acc, a_base + 0x4000004000010006ull, b_base + 0x4000004000010006ull, 1);
        la_wgmma_commit();
        la_wgmma_wait();
#pragma unroll
        for (int v = 0; v < 32; ++v)
            d[0 + lane + v + 510 * (v >> 1) - 1016 * (v >> 2)] = acc[v];
    }
}
