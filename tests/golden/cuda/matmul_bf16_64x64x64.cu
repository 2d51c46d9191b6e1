// A: load of a bf16 tile [64, 64]: box [64, 64], swizzle 128B, 1 copy, 8192 bytes in all
// B: load of a bf16 tile [64, 64]: box [64, 64], swizzle 128B, 1 copy, 8192 bytes in all
// d[64, 64] = A[64, 64] B[64, 64]^T in float, one warpgroup, 64 x 64 at a time.
// Pipeline: safe for every N >= 0.
//   barriers  full: 1 arrival
//   buffers   A, B, acc
//   multiply  pre: arrive_tx full[k], 16384 bytes; tma_load A[k], full[k], 8192 bytes; tma_load B[k], full[k], 8192 bytes; wait full[k]; mma A[k]; mma B[k]; mma_write acc[0]; mma_commit; mma_wait 0; read acc[0]
extern "C" __global__ void __launch_bounds__(128, 1) la_matmul(
    const __grid_constant__ la_tensor_map map_a, int a_origin0, int a_origin1, const __grid_constant__ la_tensor_map map_b, int b_origin0, int b_origin1, float* d, int* status)
{
    const la_u32 first_byte = (la_u32)(la_aligned_shared(1024) - la_shared());
    const la_u32 shared = la_shared_address(la_shared() + first_byte), barriers = shared + 16384;
    const la_u32 warp = la_shuffle(threadIdx.x / 32, 0);
    int gave_up = 0;  // the wait that did, and its iteration
    int* const failed = (int*)(la_shared() + first_byte + 16392);
    if (threadIdx.x == 0) {
        *failed = 0;
        la_prefetch_tensor_map(&map_a);
        la_prefetch_tensor_map(&map_b);
        for (int slot = 0; slot < 1; ++slot) la_mbarrier_init(shared + 16384 + 8 * slot, 1);  // full
    }

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
    __syncthreads();

    if (warp < 4) {  // multiply
        const la_u32 which = 0, t = (threadIdx.x) % 128;
        const bool leader = la_elect(), issuer = leader && t < 32;
        float acc[32];
        if (issuer) la_arrive_expect_tx(barriers + 0, 16384u);
        if (issuer) {
            la_tma_load_2d(shared, &map_a, (barriers + 0), a_origin1, a_origin0);
        }
        if (issuer) {
            la_tma_load_2d((shared + 8192), &map_b, (barriers + 0), b_origin1, b_origin0);
        }
        la_wait_phase(barriers + 0, 0, 1, 0, gave_up);
        la_wgmma_fence();
        la_wgmma_m64n64k16_bf16<0, 0>(acc, ((shared & 0x3FFFF) >> 4) + 0x4000004000010000ull, (((shared + 8192) & 0x3FFFF) >> 4) + 0x4000004000010000ull, 0);
        la_wgmma_m64n64k16_bf16<0, 0>(acc, ((shared & 0x3FFFF) >> 4) + 0x4000004000010002ull, (((shared + 8192) & 0x3FFFF) >> 4) + 0x4000004000010002ull, 1);
        la_wgmma_m64n64k16_bf16<0, 0>(acc, ((shared & 0x3FFFF) >> 4) + 0x4000004000010004ull, (((shared + 8192) & 0x3FFFF) >> 4) + 0x4000004000010004ull, 1);
        la_wgmma_m64n64k16_bf16<0, 0>(acc, ((shared & 0x3FFFF) >> 4) + 0x4000004000010006ull, (((shared + 8192) & 0x3FFFF) >> 4) + 0x4000004000010006ull, 1);
        la_wgmma_commit();
        la_wgmma_wait<0>();
        if (gave_up == 0) {  // rows 0 to 63, columns 0 to 63
            #pragma unroll
            for (int v = 0; v < 32; ++v) d[0 + (2 * t + 56 * (t >> 2) + 512 * (t >> 5)) + v + 510 * (v >> 1) - 1016 * (v >> 2)] = acc[v];
        }
    }

    if (gave_up) *failed = gave_up;
    __syncthreads();
    if (threadIdx.x == 0) status[blockIdx.x] = *failed ? 2 | *failed : 1;
}
