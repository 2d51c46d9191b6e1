// Conversion through shared memory, by matrices: 2 accesses, 16 turns, 1 barrier (64 cycles)
extern "C" __global__ void __launch_bounds__(64, 1) la_convert(const la_u32* source, la_u32* destination)
{
    const la_u32 t = threadIdx.x;
    const la_u32 of_t0 = t << 4;
    const la_u32 of_t1 = ((t & 0x20u) << 2) ^ ((t & 0x7u) << 4) ^ ((t & 0x18u) << 5);
    const la_u32 s0 = source[t];
    const la_u32 s1 = source[64u + t];
    const la_u32 s2 = source[128u + t];
    const la_u32 s3 = source[192u + t];
    const la_words4 x0 = {{s0, s1, s2, s3}};
    la_shared_store_b128(of_t0, x0);
    __syncthreads();
    const la_words4 x1 = la_ldmatrix_x4(of_t1);
    destination[t] = x1.word[0];
    destination[64u + t] = x1.word[1];
    destination[128u + t] = x1.word[2];
    destination[192u + t] = x1.word[3];
}
