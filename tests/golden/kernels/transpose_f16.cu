// Transpose of 512 x 520 elements of 2 bytes.
// A block turns a tile of 32 x 32; a thread reads 4 elements of a row, writes 4 of a column.
// 4 x st.shared.v4.b32 of sm_90a: 16 turns, free of conflicts
// 4 x ld.shared.v4.b32 of sm_90a: 16 turns, free of conflicts
extern "C" __global__ void __launch_bounds__(32) la_transpose_512x520_b16(const unsigned char* from, unsigned char* into)
{
    const la_u32 t = threadIdx.x;
    const la_u32 above = blockIdx.x / 68u * 4u, inside = blockIdx.x % 68u;
    const la_u32 row0 = (above + inside % 4u) * 32u, col0 = inside / 4u * 32u;
    const la_u32 of_t0 = (t & 0x18u) >> 1;
    const la_u32 of_t1 = (t & 0x7u) << 2;
    const la_u32 of_t2 = ((t & 0x18u) << 1) ^ (t << 4);
    const la_u32 of_t3 = ((t & 0x18u) << 1) ^ ((t & 0x7u) << 4) ^ ((t & 0x7u) << 7);

    // Vectors along the rows of the source.
    const la_u32 row = row0 + of_t0, col = col0 + of_t1;
    const unsigned char* at = from + ((la_u64)row * 520u + col) * 2u;
    la_words2 a0_0 = {};
    if (row < 512u && col < 520u) a0_0 = *(const la_words2*)at;
    la_words2 a0_1 = {};
    if (row + 1u < 512u && col < 520u) a0_1 = *(const la_words2*)(at + 1040u);
    la_words2 a0_2 = {};
    if (row + 2u < 512u && col < 520u) a0_2 = *(const la_words2*)(at + 2080u);
    la_words2 a0_3 = {};
    if (row + 3u < 512u && col < 520u) a0_3 = *(const la_words2*)(at + 3120u);
    la_words2 a1_0 = {};
    if (row + 16u < 512u && col < 520u) a1_0 = *(const la_words2*)(at + 16640u);
    la_words2 a1_1 = {};
    if (row + 17u < 512u && col < 520u) a1_1 = *(const la_words2*)(at + 17680u);
    la_words2 a1_2 = {};
    if (row + 18u < 512u && col < 520u) a1_2 = *(const la_words2*)(at + 18720u);
    la_words2 a1_3 = {};
    if (row + 19u < 512u && col < 520u) a1_3 = *(const la_words2*)(at + 19760u);

    // Transposed in registers, then to shared memory as vectors along the rows of the result.
    const la_u32 w0 = la_permute(a0_0.word[0], a0_1.word[0], 0x5410u);
    const la_u32 w1 = la_permute(a0_0.word[0], a0_1.word[0], 0x7632u);
    const la_u32 w2 = la_permute(a0_0.word[1], a0_1.word[1], 0x5410u);
    const la_u32 w3 = la_permute(a0_0.word[1], a0_1.word[1], 0x7632u);
    const la_u32 w4 = la_permute(a0_2.word[0], a0_3.word[0], 0x5410u);
    const la_u32 w5 = la_permute(a0_2.word[0], a0_3.word[0], 0x7632u);
    const la_u32 w6 = la_permute(a0_2.word[1], a0_3.word[1], 0x5410u);
    const la_u32 w7 = la_permute(a0_2.word[1], a0_3.word[1], 0x7632u);
    const la_u32 w8 = la_permute(a1_0.word[0], a1_1.word[0], 0x5410u);
    const la_u32 w9 = la_permute(a1_0.word[0], a1_1.word[0], 0x7632u);
    const la_u32 w10 = la_permute(a1_0.word[1], a1_1.word[1], 0x5410u);
    const la_u32 w11 = la_permute(a1_0.word[1], a1_1.word[1], 0x7632u);
    const la_u32 w12 = la_permute(a1_2.word[0], a1_3.word[0], 0x5410u);
    const la_u32 w13 = la_permute(a1_2.word[0], a1_3.word[0], 0x7632u);
    const la_u32 w14 = la_permute(a1_2.word[1], a1_3.word[1], 0x5410u);
    const la_u32 w15 = la_permute(a1_2.word[1], a1_3.word[1], 0x7632u);
    la_shared_store_b128(of_t2, la_words4{{w0, w4, w1, w5}});
    la_shared_store_b128(of_t2 ^ 576u, la_words4{{w8, w12, w9, w13}});
    la_shared_store_b128(of_t2 ^ 1024u, la_words4{{w2, w6, w3, w7}});
    la_shared_store_b128(of_t2 ^ 1600u, la_words4{{w10, w14, w11, w15}});
    __syncthreads();

    const la_u32 to_row = row0 + of_t1, to_col = col0 + of_t0;
    const la_words4 b0 = la_shared_load_b128(of_t3);
    const la_words4 b1 = la_shared_load_b128(of_t3 ^ 64u);
    const la_words4 b2 = la_shared_load_b128(of_t3 ^ 1024u);
    const la_words4 b3 = la_shared_load_b128(of_t3 ^ 1088u);
    unsigned char* to = into + ((la_u64)to_col * 512u + to_row) * 2u;
    if (to_row < 512u && to_col < 520u) *(la_words2*)to = la_words2{{b0.word[0], b0.word[1]}};
    if (to_row < 512u && to_col + 1u < 520u) *(la_words2*)(to + 1024u) = la_words2{{b0.word[2], b0.word[3]}};
    if (to_row < 512u && to_col + 2u < 520u) *(la_words2*)(to + 2048u) = la_words2{{b2.word[0], b2.word[1]}};
    if (to_row < 512u && to_col + 3u < 520u) *(la_words2*)(to + 3072u) = la_words2{{b2.word[2], b2.word[3]}};
    if (to_row < 512u && to_col + 16u < 520u) *(la_words2*)(to + 16384u) = la_words2{{b1.word[0], b1.word[1]}};
    if (to_row < 512u && to_col + 17u < 520u) *(la_words2*)(to + 17408u) = la_words2{{b1.word[2], b1.word[3]}};
    if (to_row < 512u && to_col + 18u < 520u) *(la_words2*)(to + 18432u) = la_words2{{b3.word[0], b3.word[1]}};
    if (to_row < 512u && to_col + 19u < 520u) *(la_words2*)(to + 19456u) = la_words2{{b3.word[2], b3.word[3]}};
}
