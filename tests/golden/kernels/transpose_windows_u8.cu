typedef unsigned char la_element;

// The word of four elements of one column, 141 bytes apart.
__device__ __forceinline__ la_u32 la_word_at(la_u32 place)
{
    const la_u32 a = la_shared_load_b8(place), b = la_shared_load_b8(place + 141u);
    const la_u32 c = la_shared_load_b8(place + 2u * 141u), d = la_shared_load_b8(place + 3u * 141u);
    return la_permute(la_permute(a, b, 0x5140u), la_permute(c, d, 0x5140u), 0x5410u);
}

// Transpose of 511 x 1021 elements of 1 byte.
// A block reads 288 rows of 112 columns and writes 256 elements of a column from its first whole sector on.
extern "C" __global__ void __launch_bounds__(512) la_transpose_511x1021_b8(const unsigned char* from, unsigned char* into)
{
    const la_u32 t = threadIdx.x;
    const la_u32 above = blockIdx.x / 20u * 2u, inside = blockIdx.x % 20u;
    const la_u32 tall = 2u - above < 2u ? 2u - above : 2u;
    const la_u32 row0 = (above + inside % tall) * 256u, col0 = inside / tall * 112u;
    const la_u64 corner = ((la_u64)row0 * 1021u + col0);
    const la_u32 shift = (la_u32)corner & 15u;  // row r of the tile begins at byte shift + 141 r of shared memory

    // Aligned vectors of 16 bytes: 8 threads read a row.
    const la_u32 across = t % 8u * 16u, line = t / 8u;
    la_words4 held[5];
#pragma unroll
    for (la_u32 i = 0; i < 5u; ++i) {
        const la_u32 row = line + 64u * i;
        const la_u64 at = ((corner + (la_u64)row * 1021ull) & ~15ull) + across;
        held[i] = la_words4{};
        if (at + 16u <= 521731ull && row < 288u) held[i] = *(const la_words4*)(from + at);
    }
#pragma unroll
    for (la_u32 i = 0; i < 5u; ++i) {
        const la_u32 row = line + 64u * i;
        if (row < 288u) la_shared_store_b128(((shift + row * 141u) & ~15u) + across, held[i]);
    }
    if (corner + 293155ull > 521731ull) {  // the last 3 elements fill no vector
        __syncthreads();
        if (t < 3u) {
            const la_u64 element = 521728ull + t;
            const la_u32 row = (la_u32)(element / 1021u), col = (la_u32)(element % 1021u);
            if (row >= row0 && row - row0 < 288u && col >= col0 && col - col0 < 112u)
                la_shared_store_b8(shift + (row - row0) * 141u + (col - col0),
                                        ((const la_element*)from)[element]);
        }
    }
    __syncthreads();

    // A lane writes a word of a row of the result: elements of 4 rows of the tile.
    const la_u32 lane = t % LA_LANES, part = lane * 4u;
    for (la_u32 n = t / LA_LANES; n < 112u; n += 16u) {
        const la_u32 c = n, to_col = col0 + c;
        if (to_col >= 1021u) break;
        const la_u64 to = (la_u64)to_col * 511u + row0;
        const la_u32 skip = (0u - (la_u32)to) & 31u;  // elements before the first whole sector
        const la_u32 place = shift + c + (skip + part) * 141u;
        unsigned char* begin = into + (to + skip + part);
        const la_u32 left = 511u - row0;
#pragma unroll
        for (la_u32 j = 0; j < 2u; ++j) {
            const la_u32 row = skip + part + 128u * j;
            const la_u32 word = la_word_at(place + 18048u * j);
            if (row + 4u <= left) *(la_u32*)(begin + 128u * j) = word;
            else
                for (la_u32 i = 0; i < 4u && row + i < left; ++i)
                    ((la_element*)(begin + 128u * j))[i] = (la_element)(word >> 8u * i);
        }
        if (row0 == 0) {  // what lies before the first whole sector
            for (la_u32 k = lane; k < skip && k < 511u; k += 32u)
                ((la_element*)into)[to + k] = (la_element)la_shared_load_b8(shift + c + k * 141u);
        }
    }
}
