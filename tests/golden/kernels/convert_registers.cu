// Conversion inside threads: 4 byte permutations (8 cycles)
extern "C" __global__ void __launch_bounds__(64, 1) la_convert(const la_u32* source, la_u32* destination)
{
    const la_u32 t = threadIdx.x;
    const la_u32 s0 = source[t];
    const la_u32 s1 = source[64u + t];
    const la_u32 s2 = source[128u + t];
    const la_u32 s3 = source[192u + t];
    const la_u32 x0 = la_permute(s0, s2, 0x5410u);
    const la_u32 x1 = la_permute(s1, s3, 0x5410u);
    const la_u32 x2 = la_permute(s0, s2, 0x7632u);
    const la_u32 x3 = la_permute(s1, s3, 0x7632u);
    destination[t] = x0;
    destination[64u + t] = x1;
    destination[128u + t] = x2;
    destination[192u + t] = x3;
}
