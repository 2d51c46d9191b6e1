// Staging of 500 x 304 elements of 2 bytes in tiles of 32 x 32.
// Element of the tile to element of shared memory: F2[row=(1)(2)(8)(80)(160), col=(4)(256)(512)(16)(32) -> offset:1024].
// 4 x st.shared.v4.b32 of sm_90a: 16 turns, free of conflicts
// 4 x ld.shared.v4.b32 of sm_90a: 16 turns, free of conflicts
extern "C" __global__ void __launch_bounds__(32) la_staging_32x32_b16(const unsigned short* from, unsigned short* into)
{
    const la_u32 t = threadIdx.x;
    const la_u32 row0 = blockIdx.x / 10u * 32u, col0 = blockIdx.x % 10u * 32u;
    const la_u32 of_t0 = ((t & 0x1cu) << 2) ^ ((t & 0x18u) << 4) ^ ((t & 0x3u) << 5);
    const la_u32 of_t1 = (t & 0x1cu);
    const la_u32 of_t2 = (t & 0x3u) << 3;
    const la_u32 of_t3 = ((t & 0x18u) << 2) ^ ((t & 0x7u) << 4) ^ ((t & 0x6u) << 6);

    // From memory; elements outside the matrix are 0.
    const la_u32 r0 = row0 + of_t1;
    const la_u32 c1 = col0 + of_t2;
    const unsigned short a0_0 = r0 < 500u && c1 < 304u ? from[(la_u64)r0 * 304u + c1] : 0;
    const la_u32 r2 = row0 + (of_t1 ^ 1u);
    const unsigned short a0_1 = r2 < 500u && c1 < 304u ? from[(la_u64)r2 * 304u + c1] : 0;
    const la_u32 r3 = row0 + (of_t1 ^ 2u);
    const unsigned short a0_2 = r3 < 500u && c1 < 304u ? from[(la_u64)r3 * 304u + c1] : 0;
    const la_u32 r4 = row0 + (of_t1 ^ 3u);
    const unsigned short a0_3 = r4 < 500u && c1 < 304u ? from[(la_u64)r4 * 304u + c1] : 0;
    const la_u32 c5 = col0 + (of_t2 ^ 1u);
    const unsigned short a0_4 = r0 < 500u && c5 < 304u ? from[(la_u64)r0 * 304u + c5] : 0;
    const unsigned short a0_5 = r2 < 500u && c5 < 304u ? from[(la_u64)r2 * 304u + c5] : 0;
    const unsigned short a0_6 = r3 < 500u && c5 < 304u ? from[(la_u64)r3 * 304u + c5] : 0;
    const unsigned short a0_7 = r4 < 500u && c5 < 304u ? from[(la_u64)r4 * 304u + c5] : 0;
    const la_u32 c6 = col0 + (of_t2 ^ 2u);
    const unsigned short a1_8 = r0 < 500u && c6 < 304u ? from[(la_u64)r0 * 304u + c6] : 0;
    const unsigned short a1_9 = r2 < 500u && c6 < 304u ? from[(la_u64)r2 * 304u + c6] : 0;
    const unsigned short a1_10 = r3 < 500u && c6 < 304u ? from[(la_u64)r3 * 304u + c6] : 0;
    const unsigned short a1_11 = r4 < 500u && c6 < 304u ? from[(la_u64)r4 * 304u + c6] : 0;
    const la_u32 c7 = col0 + (of_t2 ^ 3u);
    const unsigned short a1_12 = r0 < 500u && c7 < 304u ? from[(la_u64)r0 * 304u + c7] : 0;
    const unsigned short a1_13 = r2 < 500u && c7 < 304u ? from[(la_u64)r2 * 304u + c7] : 0;
    const unsigned short a1_14 = r3 < 500u && c7 < 304u ? from[(la_u64)r3 * 304u + c7] : 0;
    const unsigned short a1_15 = r4 < 500u && c7 < 304u ? from[(la_u64)r4 * 304u + c7] : 0;
    const la_u32 c8 = col0 + (of_t2 ^ 4u);
    const unsigned short a2_16 = r0 < 500u && c8 < 304u ? from[(la_u64)r0 * 304u + c8] : 0;
    const unsigned short a2_17 = r2 < 500u && c8 < 304u ? from[(la_u64)r2 * 304u + c8] : 0;
    const unsigned short a2_18 = r3 < 500u && c8 < 304u ? from[(la_u64)r3 * 304u + c8] : 0;
    const unsigned short a2_19 = r4 < 500u && c8 < 304u ? from[(la_u64)r4 * 304u + c8] : 0;
    const la_u32 c9 = col0 + (of_t2 ^ 5u);
    const unsigned short a2_20 = r0 < 500u && c9 < 304u ? from[(la_u64)r0 * 304u + c9] : 0;
    const unsigned short a2_21 = r2 < 500u && c9 < 304u ? from[(la_u64)r2 * 304u + c9] : 0;
    const unsigned short a2_22 = r3 < 500u && c9 < 304u ? from[(la_u64)r3 * 304u + c9] : 0;
    const unsigned short a2_23 = r4 < 500u && c9 < 304u ? from[(la_u64)r4 * 304u + c9] : 0;
    const la_u32 c10 = col0 + (of_t2 ^ 6u);
    const unsigned short a3_24 = r0 < 500u && c10 < 304u ? from[(la_u64)r0 * 304u + c10] : 0;
    const unsigned short a3_25 = r2 < 500u && c10 < 304u ? from[(la_u64)r2 * 304u + c10] : 0;
    const unsigned short a3_26 = r3 < 500u && c10 < 304u ? from[(la_u64)r3 * 304u + c10] : 0;
    const unsigned short a3_27 = r4 < 500u && c10 < 304u ? from[(la_u64)r4 * 304u + c10] : 0;
    const la_u32 c11 = col0 + (of_t2 ^ 7u);
    const unsigned short a3_28 = r0 < 500u && c11 < 304u ? from[(la_u64)r0 * 304u + c11] : 0;
    const unsigned short a3_29 = r2 < 500u && c11 < 304u ? from[(la_u64)r2 * 304u + c11] : 0;
    const unsigned short a3_30 = r3 < 500u && c11 < 304u ? from[(la_u64)r3 * 304u + c11] : 0;
    const unsigned short a3_31 = r4 < 500u && c11 < 304u ? from[(la_u64)r4 * 304u + c11] : 0;

    // To shared memory in the layout.
    la_shared_store_b128(of_t0, la_words4{{(la_u32)a0_0 | (la_u32)a0_1 << 16, (la_u32)a0_2 | (la_u32)a0_3 << 16, (la_u32)a0_4 | (la_u32)a0_5 << 16, (la_u32)a0_6 | (la_u32)a0_7 << 16}});
    la_shared_store_b128(of_t0 ^ 512u, la_words4{{(la_u32)a1_8 | (la_u32)a1_9 << 16, (la_u32)a1_10 | (la_u32)a1_11 << 16, (la_u32)a1_12 | (la_u32)a1_13 << 16, (la_u32)a1_14 | (la_u32)a1_15 << 16}});
    la_shared_store_b128(of_t0 ^ 1024u, la_words4{{(la_u32)a2_16 | (la_u32)a2_17 << 16, (la_u32)a2_18 | (la_u32)a2_19 << 16, (la_u32)a2_20 | (la_u32)a2_21 << 16, (la_u32)a2_22 | (la_u32)a2_23 << 16}});
    la_shared_store_b128(of_t0 ^ 1536u, la_words4{{(la_u32)a3_24 | (la_u32)a3_25 << 16, (la_u32)a3_26 | (la_u32)a3_27 << 16, (la_u32)a3_28 | (la_u32)a3_29 << 16, (la_u32)a3_30 | (la_u32)a3_31 << 16}});
    __syncthreads();

    // Registers of access 1.
    unsigned short* held1 = into + (la_u64)blockIdx.x * 1024u + t * 32u;
    const la_words4 b1_0 = la_shared_load_b128(of_t3);
    *(la_words4*)held1 = b1_0;
    const la_words4 b1_1 = la_shared_load_b128(of_t3 ^ 512u);
    *(la_words4*)(held1 + 8) = b1_1;
    const la_words4 b1_2 = la_shared_load_b128(of_t3 ^ 1024u);
    *(la_words4*)(held1 + 16) = b1_2;
    const la_words4 b1_3 = la_shared_load_b128(of_t3 ^ 1536u);
    *(la_words4*)(held1 + 24) = b1_3;
}
