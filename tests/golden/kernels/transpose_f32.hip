// Transpose of 512 x 520 elements of 4 bytes.
// A block turns a tile of 32 x 32; a thread reads 4 elements of a row, writes 4 of a column.
// 4 x ds_write_b128 of gfx942: 32 turns, free of conflicts (documented)
// 4 x ds_read_b128 of gfx942: 32 turns, free of conflicts
extern "C" __global__ void __launch_bounds__(64) la_transpose_512x520_b32(const unsigned char* from, unsigned char* into)
{
    const la_u32 t = threadIdx.x;
    const la_u32 above = blockIdx.x / 68u * 4u, inside = blockIdx.x % 68u;
    const la_u32 row0 = (above + inside % 4u) * 32u, col0 = inside / 4u * 32u;
    const la_u32 of_t0 = (t & 0x38u) >> 1;
    const la_u32 of_t1 = (t & 0x7u) << 2;
    const la_u32 of_t2 = ((t & 0x38u) << 1) ^ ((t & 0x4u) << 3) ^ (t << 4);
    const la_u32 of_t3 = (t & 0x20u) ^ ((t & 0x38u) << 1) ^ ((t & 0x7u) << 4) ^ ((t & 0x7u) << 7);

    // Vectors along the rows of the source.
    const la_u32 row = row0 + of_t0, col = col0 + of_t1;
    const unsigned char* at = from + ((la_u64)row * 520u + col) * 4u;
    la_words4 a0_0 = {};
    if (row < 512u && col < 520u) a0_0 = *(const la_words4*)at;
    la_words4 a0_1 = {};
    if (row + 1u < 512u && col < 520u) a0_1 = *(const la_words4*)(at + 2080u);
    la_words4 a0_2 = {};
    if (row + 2u < 512u && col < 520u) a0_2 = *(const la_words4*)(at + 4160u);
    la_words4 a0_3 = {};
    if (row + 3u < 512u && col < 520u) a0_3 = *(const la_words4*)(at + 6240u);

    // Transposed in registers, then to shared memory as vectors along the rows of the result.
    la_shared_store_b128(of_t2, la_words4{{a0_0.word[0], a0_1.word[0], a0_2.word[0], a0_3.word[0]}});
    la_shared_store_b128(of_t2 ^ 1024u, la_words4{{a0_0.word[1], a0_1.word[1], a0_2.word[1], a0_3.word[1]}});
    la_shared_store_b128(of_t2 ^ 2048u, la_words4{{a0_0.word[2], a0_1.word[2], a0_2.word[2], a0_3.word[2]}});
    la_shared_store_b128(of_t2 ^ 3072u, la_words4{{a0_0.word[3], a0_1.word[3], a0_2.word[3], a0_3.word[3]}});
    __syncthreads();

    const la_u32 to_row = row0 + of_t1, to_col = col0 + of_t0;
    const la_words4 b0 = la_shared_load_b128(of_t3);
    const la_words4 b1 = la_shared_load_b128(of_t3 ^ 1024u);
    const la_words4 b2 = la_shared_load_b128(of_t3 ^ 2048u);
    const la_words4 b3 = la_shared_load_b128(of_t3 ^ 3072u);
    unsigned char* to = into + ((la_u64)to_col * 512u + to_row) * 4u;
    if (to_row < 512u && to_col < 520u) *(la_words4*)to = la_words4{{b0.word[0], b0.word[1], b0.word[2], b0.word[3]}};
    if (to_row < 512u && to_col + 1u < 520u) *(la_words4*)(to + 2048u) = la_words4{{b1.word[0], b1.word[1], b1.word[2], b1.word[3]}};
    if (to_row < 512u && to_col + 2u < 520u) *(la_words4*)(to + 4096u) = la_words4{{b2.word[0], b2.word[1], b2.word[2], b2.word[3]}};
    if (to_row < 512u && to_col + 3u < 520u) *(la_words4*)(to + 6144u) = la_words4{{b3.word[0], b3.word[1], b3.word[2], b3.word[3]}};
}
