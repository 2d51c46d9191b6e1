// Gather of 50 along axis 1 of 4096 x 3000 elements of 8 bytes by shared memory: a block holds a row in shared memory.
extern "C" __global__ void __launch_bounds__(256) la_gather_shared_b64(
    const la_u64* from, const int* index, la_u64* into)
{
    const la_u32 t = threadIdx.x;
    const la_u64* row = from + (la_u64)blockIdx.x * 3000u;
    for (la_u32 i = t; i < 3000u; i += 256u)
        la_shared_store_b64(8u * i, la_words2{{(la_u32)row[i], (la_u32)(row[i] >> 32)}});
    __syncthreads();

    const la_u64 first = (la_u64)blockIdx.x * 50u;
    for (la_u32 i = t; i < 50u; i += 256u) {
        const la_u32 wanted = (la_u32)index[first + i];
        const la_words2 kept = la_shared_load_b64(wanted < 3000u ? 8u * wanted : 0u);
        const la_u64 value = (la_u64)kept.word[1] << 32 | kept.word[0];
        into[first + i] = wanted < 3000u ? value : 0;
    }
}
