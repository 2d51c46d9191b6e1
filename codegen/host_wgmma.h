// CPU models of warpgroup multiplies of 16-bit elements; operands are read from shared memory through matrix descriptors.
//
// The product is computed at issue; the rule that shared memory must not change before the wait is not modelled.
#pragma once

namespace la_host {

// Element (m, k) of a 16-bit operand as the tensor core reads it through a matrix descriptor.
template <bool bfloat>
inline float operand(la_u64 descriptor, int m, int k, bool transposed)
{
    const la_u32 start = (la_u32)(descriptor & 0x3FFF) << 4;
    const la_u32 leading = (la_u32)(descriptor >> 16 & 0x3FFF) << 4, stride = (la_u32)(descriptor >> 32 & 0x3FFF) << 4;
    const la_u32 phase = descriptor >> 49 & 7, mode = descriptor >> 62;
    const int w = mode == 0 ? 1 : 16 >> mode;
    la_u32 offset;
    if (!transposed) offset = m % 8 * 16 * w + m / 8 * stride + (mode ? 2 * k : k / 8 * leading + k % 8 * 2);
    else if (mode) offset = m % (8 * w) * 2 + m / (8 * w) * leading + k % 8 * 16 * w + k / 8 * stride;
    else offset = m % 8 * 2 + m / 8 * stride + k % 8 * 16 + k / 8 * leading;
    const la_u32 address = start + offset;
    const la_u32 found = address ^ (((address >> 7) - phase) & (w - 1)) << 4;
    unsigned short bits;
    std::memcpy(&bits, shared_bytes(found, 2), 2);
    return bfloat ? bfloat_to_float(bits) : half_to_float(bits);
}

template <bool bfloat, int n>
inline void multiply(float (&d)[n / 2], la_u64 a, la_u64 b, int accumulate, bool transpose_a, bool transpose_b)
{
    const int t = (int)here->current->thread.x % 128, lane = t % 32;
    float rows[2][16];
    for (int r = 0; r < 2; ++r)
        for (int k = 0; k < 16; ++k) rows[r][k] = operand<bfloat>(a, lane / 4 + 16 * (t / 32) + 8 * r, k, transpose_a);
    for (int v = 0; v < n / 2; ++v) {
        const int column = 2 * (lane % 4) + v % 2 + 8 * (v / 4);
        float sum = accumulate ? d[v] : 0.0f;
        for (int k = 0; k < 16; ++k) sum += rows[v / 2 % 2][k] * operand<bfloat>(b, column, k, transpose_b);
        d[v] = sum;
    }
}

}  // namespace la_host

#define LA_HOST_MEETS(name)                                         \
    static inline void name(unsigned line = __builtin_LINE())      \
    {                                                               \
        static char place;                                          \
        la_host::all_lanes({&place, line});                         \
    }
LA_HOST_MEETS(la_wgmma_fence)
LA_HOST_MEETS(la_wgmma_commit)
LA_HOST_MEETS(la_wgmma_wait)

#define LA_HOST_WGMMA_OF(n, type, bfloat)                                                                   \
    template <int transpose_a, int transpose_b>                                                             \
    static inline void la_wgmma_m64n##n##k16_##type(                                                        \
        float (&d)[n / 2], la_u64 a, la_u64 b, int accumulate, unsigned line = __builtin_LINE())            \
    {                                                                                                       \
        static char place;                                                                                  \
        la_host::all_lanes({&place, line});                                                                 \
        la_host::multiply<bfloat, n>(d, a, b, accumulate, transpose_a, transpose_b);                        \
    }
#define LA_HOST_WGMMA(n) LA_HOST_WGMMA_OF(n, f16, false) LA_HOST_WGMMA_OF(n, bf16, true)
LA_HOST_WGMMA(8) LA_HOST_WGMMA(16) LA_HOST_WGMMA(24) LA_HOST_WGMMA(32) LA_HOST_WGMMA(40) LA_HOST_WGMMA(48)
LA_HOST_WGMMA(56) LA_HOST_WGMMA(64) LA_HOST_WGMMA(72) LA_HOST_WGMMA(80) LA_HOST_WGMMA(88) LA_HOST_WGMMA(96)
LA_HOST_WGMMA(104) LA_HOST_WGMMA(112) LA_HOST_WGMMA(120) LA_HOST_WGMMA(128) LA_HOST_WGMMA(136) LA_HOST_WGMMA(144)
LA_HOST_WGMMA(152) LA_HOST_WGMMA(160) LA_HOST_WGMMA(168) LA_HOST_WGMMA(176) LA_HOST_WGMMA(184) LA_HOST_WGMMA(192)
LA_HOST_WGMMA(200) LA_HOST_WGMMA(208) LA_HOST_WGMMA(216) LA_HOST_WGMMA(224) LA_HOST_WGMMA(232) LA_HOST_WGMMA(240)
LA_HOST_WGMMA(248) LA_HOST_WGMMA(256)
