// Conversion through shared memory: 4 byte permutations, 9 accesses, 24 turns, 1 barrier (80 cycles)
extern "C" __global__ void __launch_bounds__(64, 1) la_convert(const la_u32* source, la_u32* destination)
{
    const la_u32 t = threadIdx.x;
    const la_u32 of_t0 = t << 4;
    const la_u32 of_t1 = t << 1;
    const la_u32 s0 = source[t];
    const la_u32 s1 = source[64u + t];
    const la_u32 s2 = source[128u + t];
    const la_u32 s3 = source[192u + t];
    const la_words4 x0 = {{s0, s1, s2, s3}};
    la_shared_store_b128(of_t0, x0);
    __syncthreads();
    const la_u32 x1 = la_shared_load_b16(of_t1);
    const la_u32 x2 = la_shared_load_b16(of_t1 + 128u);
    const la_u32 x3 = la_shared_load_b16(of_t1 + 256u);
    const la_u32 x4 = la_shared_load_b16(of_t1 + 384u);
    const la_u32 x5 = la_shared_load_b16(of_t1 + 512u);
    const la_u32 x6 = la_shared_load_b16(of_t1 + 640u);
    const la_u32 x7 = la_shared_load_b16(of_t1 + 768u);
    const la_u32 x8 = la_shared_load_b16(of_t1 + 896u);
    const la_u32 x9 = la_permute(x1, x2, 0x5410u);
    const la_u32 x10 = la_permute(x3, x4, 0x5410u);
    const la_u32 x11 = la_permute(x5, x6, 0x5410u);
    const la_u32 x12 = la_permute(x7, x8, 0x5410u);
    destination[t] = x9;
    destination[64u + t] = x10;
    destination[128u + t] = x11;
    destination[192u + t] = x12;
}
