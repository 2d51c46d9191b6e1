// An index of 64 bits as one of 32; what is outside the axis stays outside.
__device__ __forceinline__ la_u32 la_gather_warp_b32_index(long long index)
{
    return (la_u64)index < 100u ? (la_u32)index : 100u;
}

// Gather of 50 along axis 1 of 4096 x 100 elements of 4 bytes by shuffles: a warp holds a row in 4 registers of 4 bytes.
extern "C" __global__ void __launch_bounds__(256) la_gather_warp_b32(
    const la_u32* from, const long long* index, la_u32* into)
{
    const la_u32 t = threadIdx.x;
    const la_u32 lane = t % LA_LANES;
    const la_u64 number = ((la_u64)blockIdx.x * 256u + t) / LA_LANES;
    if (number >= 4096ull) return;  // a warp as a whole
    const la_u32* row = from + number * 100u;
    // The row: register i of lane l holds element 32 i + l.
    const la_u32 held0 = row[lane];
    const la_u32 held1 = row[lane + 32u];
    const la_u32 held2 = row[lane + 64u];
    const la_u32 held3 = lane + 96u < 100u ? row[lane + 96u] : 0;

    for (la_u32 i = lane; i - lane < 50u; i += LA_LANES) {
        const la_u32 wanted = i < 50u ? la_gather_warp_b32_index(index[number * 50u + i]) : 100u;
        const la_u32 lane_of = wanted % LA_LANES, which = wanted / LA_LANES;
        la_u32 value = 0;
        const la_u32 of0 = la_shuffle(held0, lane_of);
        if (which == 0u) value = of0;
        const la_u32 of1 = la_shuffle(held1, lane_of);
        if (which == 1u) value = of1;
        const la_u32 of2 = la_shuffle(held2, lane_of);
        if (which == 2u) value = of2;
        const la_u32 of3 = la_shuffle(held3, lane_of);
        if (which == 3u) value = of3;
        if (i < 50u) into[number * 50u + i] = wanted < 100u ? value : 0;
    }
}
