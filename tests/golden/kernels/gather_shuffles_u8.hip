// Gather of 50 along axis 1 of 4096 x 100 elements of 1 byte by shuffles: a warp holds a row in 2 registers of 1 bytes.
extern "C" __global__ void __launch_bounds__(256) la_gather_warp_b8(
    const unsigned char* from, const int* index, unsigned char* into)
{
    const la_u32 t = threadIdx.x;
    const la_u32 lane = t % LA_LANES;
    const la_u64 number = ((la_u64)blockIdx.x * 256u + t) / LA_LANES;
    if (number >= 4096ull) return;  // a warp as a whole
    const unsigned char* row = from + number * 100u;
    // The row: register i of lane l holds element 64 i + l.
    const la_u32 held0 = row[lane];
    const la_u32 held1 = lane + 64u < 100u ? row[lane + 64u] : 0;

    for (la_u32 i = lane; i - lane < 50u; i += LA_LANES) {
        const la_u32 wanted = i < 50u ? (la_u32)index[number * 50u + i] : 100u;
        const la_u32 lane_of = wanted % LA_LANES, which = wanted / LA_LANES;
        la_u32 value = 0;
        const la_u32 of0 = la_shuffle(held0, lane_of);
        if (which == 0u) value = of0;
        const la_u32 of1 = la_shuffle(held1, lane_of);
        if (which == 1u) value = of1;
        if (i < 50u) into[number * 50u + i] = wanted < 100u ? value : 0;
    }
}
