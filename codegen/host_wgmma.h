// CPU models of warpgroup multiplies of 16- and 8-bit elements; operands are read from shared memory through matrix
// descriptors, products are summed in float (the tensor core keeps fewer bits of products of 8-bit elements).
//
// The product is computed at issue; the rule that shared memory must not change before the wait is not modelled.
#pragma once

namespace la_host {

namespace operands {
struct F16 {
    static constexpr int bytes = 2;
    static float value(const unsigned char* at) { unsigned short bits; std::memcpy(&bits, at, 2); return half_to_float(bits); }
};
struct BF16 {
    static constexpr int bytes = 2;
    static float value(const unsigned char* at) { unsigned short bits; std::memcpy(&bits, at, 2); return bfloat_to_float(bits); }
};
// Exponent of 5 bits: the upper half of an f16.
struct E5M2 {
    static constexpr int bytes = 1;
    static float value(const unsigned char* at) { return half_to_float((unsigned short)(*at << 8)); }
};
// No infinities; all bits of exponent and mantissa set is the only NaN.
struct E4M3 {
    static constexpr int bytes = 1;
    static float value(const unsigned char* at)
    {
        const int exponent = *at >> 3 & 15, mantissa = *at & 7;
        if ((*at & 127) == 127) return __builtin_nanf("");
        const float value = exponent ? __builtin_ldexpf((float)(mantissa + 8), exponent - 10) : __builtin_ldexpf((float)mantissa, -9);
        return *at >> 7 ? -value : value;
    }
};

}  // namespace operands

// Element (m, k) of an operand as the tensor core reads it through a matrix descriptor; bytes are K-major.
template <class Type>
inline float operand(la_u64 descriptor, int m, int k, bool transposed)
{
    constexpr int size = Type::bytes, chunk = 16 / size;
    const la_u32 start = (la_u32)(descriptor & 0x3FFF) << 4;
    const la_u32 leading = (la_u32)(descriptor >> 16 & 0x3FFF) << 4, stride = (la_u32)(descriptor >> 32 & 0x3FFF) << 4;
    const la_u32 phase = descriptor >> 49 & 7, mode = descriptor >> 62;
    const int w = mode == 0 ? 1 : 16 >> mode;
    la_u32 offset;
    if (!transposed) offset = m % 8 * 16 * w + m / 8 * stride + (mode ? size * k : k / chunk * leading + k % chunk * size);
    else if (mode) offset = m % (8 * w) * 2 + m / (8 * w) * leading + k % 8 * 16 * w + k / 8 * stride;
    else offset = m % 8 * 2 + m / 8 * stride + k % 8 * 16 + k / 8 * leading;
    const la_u32 address = start + offset;
    const la_u32 found = address ^ (((address >> 7) - phase) & (w - 1)) << 4;
    return Type::value(shared_bytes(found, size));
}

// The two rows of A of a thread's accumulators, times B.
template <class Type, int n>
inline void multiply_rows(
    float (&d)[n / 2], const float (&rows)[2][32 / Type::bytes], la_u64 b, int accumulate, bool transpose_b)
{
    constexpr int depth = 32 / Type::bytes;
    const int lane = (int)here->current->thread.x % 32;
    for (int v = 0; v < n / 2; ++v) {
        const int column = 2 * (lane % 4) + v % 2 + 8 * (v / 4);
        float sum = accumulate ? d[v] : 0.0f;
        for (int k = 0; k < depth; ++k) sum += rows[v / 2 % 2][k] * operand<Type>(b, column, k, transpose_b);
        d[v] = sum;
    }
}

template <class Type, int n>
inline void multiply(float (&d)[n / 2], la_u64 a, la_u64 b, int accumulate, bool transpose_a, bool transpose_b)
{
    constexpr int depth = 32 / Type::bytes;
    const int t = (int)here->current->thread.x % 128, lane = t % 32;
    float rows[2][depth];
    for (int r = 0; r < 2; ++r)
        for (int k = 0; k < depth; ++k) rows[r][k] = operand<Type>(a, lane / 4 + 16 * (t / 32) + 8 * r, k, transpose_a);
    multiply_rows<Type, n>(d, rows, b, accumulate, transpose_b);
}

// The words of A of every thread: halves 2 q, 2 q + 1 of a row, of the row 8 below, and both 8 columns on.
static thread_local la_u32 fragments[MAX_THREADS][4];

template <class Type, int n>
inline void multiply_registers(
    Site site, float (&d)[n / 2], const la_u32 (&a)[4], la_u64 b, int accumulate, bool transpose_b)
{
    const unsigned mine = here->current->thread.x;
    for (int i = 0; i < 4; ++i) fragments[mine][i] = a[i];
    all_lanes(site);
    float rows[2][16];
    for (int r = 0; r < 2; ++r)
        for (int k = 0; k < 16; ++k) {
            const unsigned char* words = (const unsigned char*)fragments[mine - mine % 4 + k % 8 / 2];
            rows[r][k] = Type::value(words + 4 * (r + k / 8 * 2) + k % 2 * 2);
        }
    multiply_rows<Type, n>(d, rows, b, accumulate, transpose_b);
    warp_barrier(site);
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
template <int pending = 0>
LA_HOST_MEETS(la_wgmma_wait)

#define LA_HOST_WGMMA_OF(n, depth, type, Type, defaults)                                                            \
    template <int transpose_a defaults, int transpose_b defaults>                                                   \
    static inline void la_wgmma_m64n##n##k##depth##_##type(                                                         \
        float (&d)[n / 2], la_u64 a, la_u64 b, int accumulate, unsigned line = __builtin_LINE())                    \
    {                                                                                                               \
        static_assert(depth == 16 || (!transpose_a && !transpose_b), "operands of 8 bits are K-major");             \
        static char place;                                                                                          \
        la_host::all_lanes({&place, line});                                                                         \
        la_host::multiply<la_host::operands::Type, n>(d, a, b, accumulate, transpose_a, transpose_b);               \
    }
#define LA_HOST_WGMMA_REGISTERS(n, type, Type)                                                                      \
    template <int transpose_b>                                                                                      \
    static inline void la_wgmma_registers_m64n##n##k16_##type(                                                      \
        float (&d)[n / 2], const la_u32 (&a)[4], la_u64 b, int accumulate, unsigned line = __builtin_LINE())        \
    {                                                                                                               \
        static char place;                                                                                          \
        la_host::multiply_registers<la_host::operands::Type, n>({&place, line}, d, a, b, accumulate, transpose_b);  \
    }
#define LA_HOST_WGMMA(n)                                                                             \
    LA_HOST_WGMMA_OF(n, 16, f16, F16, ) LA_HOST_WGMMA_OF(n, 16, bf16, BF16, )                        \
    LA_HOST_WGMMA_REGISTERS(n, f16, F16) LA_HOST_WGMMA_REGISTERS(n, bf16, BF16)                      \
    LA_HOST_WGMMA_OF(n, 32, e4m3, E4M3, = 0) LA_HOST_WGMMA_OF(n, 32, e5m2, E5M2, = 0)
LA_HOST_WGMMA(8) LA_HOST_WGMMA(16) LA_HOST_WGMMA(24) LA_HOST_WGMMA(32) LA_HOST_WGMMA(40) LA_HOST_WGMMA(48)
LA_HOST_WGMMA(56) LA_HOST_WGMMA(64) LA_HOST_WGMMA(72) LA_HOST_WGMMA(80) LA_HOST_WGMMA(88) LA_HOST_WGMMA(96)
LA_HOST_WGMMA(104) LA_HOST_WGMMA(112) LA_HOST_WGMMA(120) LA_HOST_WGMMA(128) LA_HOST_WGMMA(136) LA_HOST_WGMMA(144)
LA_HOST_WGMMA(152) LA_HOST_WGMMA(160) LA_HOST_WGMMA(168) LA_HOST_WGMMA(176) LA_HOST_WGMMA(184) LA_HOST_WGMMA(192)
LA_HOST_WGMMA(200) LA_HOST_WGMMA(208) LA_HOST_WGMMA(216) LA_HOST_WGMMA(224) LA_HOST_WGMMA(232) LA_HOST_WGMMA(240)
LA_HOST_WGMMA(248) LA_HOST_WGMMA(256)
