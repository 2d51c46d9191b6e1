// Conversion by shuffles: 4 shuffles, 16 selects (144 cycles), the minimum
extern "C" __global__ void __launch_bounds__(128, 1) la_convert(const la_u32* source, la_u32* destination)
{
    const la_u32 t = threadIdx.x;
    const la_u32 of_t0 = t >> 4 & 1u;
    const la_u32 of_t1 = t >> 5 & 1u;
    const la_u32 of_t2 = ((t & 0x3cu) >> 2) ^ ((t & 0x3u) << 4);
    const la_u32 of_t3 = of_t2 ^ 48u;
    const la_u32 of_t4 = of_t2 ^ 32u;
    const la_u32 of_t5 = of_t2 ^ 16u;
    const la_u32 of_t6 = t & 1u;
    const la_u32 of_t7 = t >> 1 & 1u;
    const la_u32 s0 = source[t];
    const la_u32 s1 = source[128u + t];
    const la_u32 s2 = source[256u + t];
    const la_u32 s3 = source[384u + t];
    const la_u32 x0 = of_t0 ? s1 : s0;
    const la_u32 x1 = of_t0 ? s3 : s2;
    const la_u32 x2 = of_t0 ? s0 : s1;
    const la_u32 x3 = of_t0 ? s2 : s3;
    const la_u32 x4 = of_t1 ? x1 : x0;
    const la_u32 x5 = of_t1 ? x3 : x2;
    const la_u32 x6 = of_t1 ? x0 : x1;
    const la_u32 x7 = of_t1 ? x2 : x3;
    const la_u32 x8 = la_shuffle(x7, of_t3);
    const la_u32 x9 = la_shuffle(x6, of_t4);
    const la_u32 x10 = la_shuffle(x5, of_t5);
    const la_u32 x11 = la_shuffle(x4, of_t2);
    const la_u32 x12 = of_t6 ? x10 : x11;
    const la_u32 x13 = of_t6 ? x8 : x9;
    const la_u32 x14 = of_t6 ? x11 : x10;
    const la_u32 x15 = of_t6 ? x9 : x8;
    const la_u32 x16 = of_t7 ? x13 : x12;
    const la_u32 x17 = of_t7 ? x15 : x14;
    const la_u32 x18 = of_t7 ? x12 : x13;
    const la_u32 x19 = of_t7 ? x14 : x15;
    destination[t] = x16;
    destination[128u + t] = x17;
    destination[256u + t] = x18;
    destination[384u + t] = x19;
}
