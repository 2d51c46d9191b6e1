// CPU models of matrix instructions: NVIDIA mma.sync, AMD MFMA and WMMA, as functions of all lanes of a warp or wave.
//
// The placement of elements is taken from the vendors' documents (PTX ISA fragments; closed forms of AMD's matrix
// instruction calculator and ISA guides), from element to lane and register, independently of the Python tables, which map
// lane and register to element. Every lane deposits its words, then computes the elements of D that it holds. Sums are in
// float or int, from k = 0 up.
#pragma once

namespace la_host {

enum Type { F16, BF16, S8, U8, F32, S32 };
constexpr int bits_of(Type type) { return type == F16 || type == BF16 ? 16 : type == S8 || type == U8 ? 8 : 32; }
struct Place { unsigned lane, element; };
constexpr int MOST_WORDS = 8;
static thread_local la_u32 deposited[2][MAX_THREADS][MOST_WORDS];

template <Type type> struct Value { typedef float type_of; };
template <> struct Value<S8> { typedef int type_of; };
template <> struct Value<U8> { typedef int type_of; };
template <> struct Value<S32> { typedef int type_of; };

// Element e of packed words, `step` bits each.
template <Type type, int step>
inline typename Value<type>::type_of element(const la_u32* words, unsigned e)
{
    const la_u32 raw = words[e * step / 32] >> e * step % 32;
    if (type == F16) return half_to_float((unsigned short)raw);
    if (type == BF16) return bfloat_to_float((unsigned short)raw);
    if (type == S8) return (signed char)raw;
    if (type == U8) return (unsigned char)raw;
    if (type == S32) return (int)raw;
    float value;
    std::memcpy(&value, &raw, 4);
    return value;
}

template <Type type, int step, class Given>
inline void set_element(la_u32* words, unsigned e, Given value)
{
    la_u32 raw;
    if (type == F16) raw = float_to_half((float)value);
    else if (type == BF16) raw = float_to_bfloat((float)value);
    else std::memcpy(&raw, &value, 4);
    const la_u32 mask = bits_of(type) == 16 ? 0xFFFFu << e * step % 32 : ~0u;
    la_u32& word = words[e * step / 32];
    word = (word & ~mask) | (raw << e * step % 32 & mask);
}

// PTX: lane 4 g + q. A word holds `wide` neighbours along k; words cover rows g and g + 8 first, then k.
template <int m, int bits>
struct Mma {
    static constexpr int wide = 32 / bits;
    static constexpr bool copied = false;
    static Place a(int i, int k, int)
    {
        const int word = (m == 16 ? 2 : 1) * (k / (4 * wide)) + i / 8;
        return {(unsigned)(4 * (i % 8) + k / wide % 4), (unsigned)(word * wide + k % wide)};
    }
    static Place b(int k, int j, int)
    {
        return {(unsigned)(4 * j + k / wide % 4), (unsigned)(k / (4 * wide) * wide + k % wide)};
    }
    static Place d(int i, int j, int) { return {(unsigned)(4 * (i % 8) + j / 2), (unsigned)(2 * (i / 8) + j % 2)}; }
};

// AMD's calculator, dense MFMA except f64.
template <int m, int n, int k_all, int blocks>
struct Mfma {
    static constexpr bool copied = false;
    static Place side(int row, int rows, int k, int block)
    {
        const int per = k_all * rows * blocks / 64;
        if (blocks == 1) return {(unsigned)(row + rows * (k / per)), (unsigned)(k % per)};
        return {(unsigned)(row + rows * block), (unsigned)(k % per)};
    }
    static Place a(int i, int k, int block) { return side(i, m, k, block); }
    static Place b(int k, int j, int block) { return side(j, n, k, block); }
    static Place d(int i, int j, int block)
    {
        if (m == 32) return {(unsigned)(32 * (i / 4 % 2) + j), (unsigned)(16 * block + 4 * (i / 8) + i % 4)};
        if (m == 16) return {(unsigned)(16 * (i / 4) + j), (unsigned)(4 * block + i % 4)};
        return {(unsigned)(4 * block + j), (unsigned)i};
    }
};

// RDNA3 holds every operand twice, in lanes 0 to 15 and 16 to 31; rows of D alternate between the halves. RDNA4 splits k
// between the halves in runs of 4 (16 bits) or 8 (8 bits), and the rows of D in 0 to 7 and 8 to 15.
template <int generation, int bits>
struct Wmma {
    static constexpr bool copied = generation == 3;
    static Place side(int row, int k)
    {
        constexpr int run = bits == 16 ? 4 : 8;
        if (copied) return {(unsigned)row, (unsigned)k};
        return {(unsigned)(row + 16 * (k / run % 2)), (unsigned)(k % run + run * (k / (2 * run)))};
    }
    static Place a(int i, int k, int) { return side(i, k); }
    static Place b(int k, int j, int) { return side(j, k); }
    static Place d(int i, int j, int)
    {
        if (copied) return {(unsigned)(j + 16 * (i % 2)), (unsigned)(i / 2)};
        return {(unsigned)(j + 16 * (i / 8)), (unsigned)(i % 8)};
    }
};

template <class Where, int m, int n, int k_all, int blocks, Type left, Type right, Type result, int step>
inline void matrix_product(
    Site site, la_u32* d, const la_u32* a, int words_a, const la_u32* b, int words_b, const la_u32* c, int words_d)
{
    const unsigned mine = here->current->thread.x, lane = mine % LA_LANES, first = mine - lane;
    std::memcpy(deposited[0][mine], a, 4 * words_a);
    std::memcpy(deposited[1][mine], b, 4 * words_b);
    all_lanes(site);
    if (Where::copied)
        for (int side = 0; side < 2; ++side)
            if (std::memcmp(deposited[side][mine], deposited[side][mine ^ 16], 4 * (side ? words_b : words_a)))
                fault(OPERAND_COPIES);
    la_u32 sums[64];
    std::memcpy(sums, c, 4 * words_d);
    for (int block = 0; block < blocks; ++block)
        for (int i = 0; i < m; ++i)
            for (int j = 0; j < n; ++j) {
                const Place to = Where::d(i, j, block);
                if (to.lane != lane) continue;
                auto sum = element<result, step>(c, to.element);
                for (int k = 0; k < k_all; ++k) {
                    const Place x = Where::a(i, k, block), y = Where::b(k, j, block);
                    sum += element<left, bits_of(left)>(deposited[0][first + x.lane], x.element)
                         * element<right, bits_of(right)>(deposited[1][first + y.lane], y.element);
                }
                set_element<result, step>(sums, to.element, sum);
            }
    warp_barrier(site);
    std::memcpy(d, sums, 4 * words_d);
}

}  // namespace la_host

#define LA_HOST_PRODUCT(name, where, m, n, k, blocks, left, right, result, step)                                        \
    template <int words_d, int words_a, int words_b>                                                                    \
    static inline void la_##name(                                                                                       \
        la_u32 (&d)[words_d], const la_u32 (&a)[words_a], const la_u32 (&b)[words_b], const la_u32 (&c)[words_d],       \
        unsigned line = __builtin_LINE())                                                                               \
    {                                                                                                                   \
        static char place;                                                                                              \
        using namespace la_host;                                                                                        \
        static_assert(words_a <= MOST_WORDS && words_b <= MOST_WORDS && words_d <= 64, "words of a lane");              \
        matrix_product<where, m, n, k, blocks, left, right, result, step>(                                              \
            {&place, line}, d, a, words_a, b, words_b, c, words_d);                                                     \
    }
#define LA_COMMA_ ,

#define LA_HOST_MMA(m, k, left, right, result, step, name) \
    LA_HOST_PRODUCT(mma_m##m##n8k##k##_##name, Mma<m LA_COMMA_ bits_of(left)>, m, 8, k, 1, left, right, result, step)
LA_HOST_MMA(16, 8, F16, F16, F16, 16, f16_f16)
LA_HOST_MMA(16, 8, F16, F16, F32, 32, f32_f16)
LA_HOST_MMA(16, 16, F16, F16, F16, 16, f16_f16)
LA_HOST_MMA(16, 16, F16, F16, F32, 32, f32_f16)
LA_HOST_MMA(16, 8, BF16, BF16, F32, 32, f32_bf16)
LA_HOST_MMA(16, 16, BF16, BF16, F32, 32, f32_bf16)
#define LA_HOST_MMA_INTEGERS(m, k)               \
    LA_HOST_MMA(m, k, S8, S8, S32, 32, s32_s8)    \
    LA_HOST_MMA(m, k, U8, U8, S32, 32, s32_u8)    \
    LA_HOST_MMA(m, k, S8, U8, S32, 32, s32_s8_u8) \
    LA_HOST_MMA(m, k, U8, S8, S32, 32, s32_u8_s8)
LA_HOST_MMA_INTEGERS(8, 16)
LA_HOST_MMA_INTEGERS(16, 16)
LA_HOST_MMA_INTEGERS(16, 32)

#define LA_HOST_MFMA(name, m, k, blocks, type, result) \
    LA_HOST_PRODUCT(mfma_##name, Mfma<m LA_COMMA_ m LA_COMMA_ k LA_COMMA_ blocks>, m, m, k, blocks, type, type, result, 32)
#define LA_HOST_MFMA_F(m, k, blocks, now)                                 \
    LA_HOST_MFMA(f32_##m##x##m##x##k##now##f16, m, k, blocks, F16, F32)   \
    LA_HOST_MFMA(f32_##m##x##m##x##k##now##bf16, m, k, blocks, BF16, F32) \
    LA_HOST_MFMA(f32_##m##x##m##x##k##f16, m, k, blocks, F16, F32)        \
    LA_HOST_MFMA(f32_##m##x##m##x##k##bf16_1k, m, k, blocks, BF16, F32)
LA_HOST_MFMA_F(32, 4, 2, _2b_)
LA_HOST_MFMA_F(16, 4, 4, _4b_)
LA_HOST_MFMA_F(4, 4, 16, _16b_)
LA_HOST_MFMA_F(32, 8, 1, _)
LA_HOST_MFMA_F(16, 16, 1, _)
LA_HOST_MFMA(f32_32x32x2bf16, 32, 2, 2, BF16, F32)
LA_HOST_MFMA(f32_16x16x2bf16, 16, 2, 4, BF16, F32)
LA_HOST_MFMA(f32_4x4x2bf16, 4, 2, 16, BF16, F32)
LA_HOST_MFMA(f32_32x32x4bf16, 32, 4, 1, BF16, F32)
LA_HOST_MFMA(f32_16x16x8bf16, 16, 8, 1, BF16, F32)
LA_HOST_MFMA(i32_32x32x4i8, 32, 4, 2, S8, S32)
LA_HOST_MFMA(i32_16x16x4i8, 16, 4, 4, S8, S32)
LA_HOST_MFMA(i32_4x4x4i8, 4, 4, 16, S8, S32)
LA_HOST_MFMA(i32_32x32x8i8, 32, 8, 1, S8, S32)
LA_HOST_MFMA(i32_16x16x16i8, 16, 16, 1, S8, S32)
LA_HOST_MFMA(i32_32x32x4_2b_i8, 32, 4, 2, S8, S32)
LA_HOST_MFMA(i32_16x16x4_4b_i8, 16, 4, 4, S8, S32)
LA_HOST_MFMA(i32_4x4x4_16b_i8, 4, 4, 16, S8, S32)
LA_HOST_MFMA(i32_32x32x16_i8, 32, 16, 1, S8, S32)
LA_HOST_MFMA(i32_16x16x32_i8, 16, 32, 1, S8, S32)
LA_HOST_MFMA(f32_16x16x32_f16, 16, 32, 1, F16, F32)
LA_HOST_MFMA(f32_16x16x32_bf16, 16, 32, 1, BF16, F32)
LA_HOST_MFMA(f32_32x32x16_f16, 32, 16, 1, F16, F32)
LA_HOST_MFMA(f32_32x32x16_bf16, 32, 16, 1, BF16, F32)
LA_HOST_MFMA(i32_16x16x64_i8, 16, 64, 1, S8, S32)
LA_HOST_MFMA(i32_32x32x32_i8, 32, 32, 1, S8, S32)

#ifdef LA_RDNA  // generation number: RDNA3 and RDNA4 use the same names
#define LA_HOST_WMMA(name, type, result, step) \
    LA_HOST_PRODUCT(wmma_##name, Wmma<LA_RDNA LA_COMMA_ bits_of(type)>, 16, 16, 16, 1, type, type, result, step)
LA_HOST_WMMA(f32_16x16x16_f16, F16, F32, 32)
LA_HOST_WMMA(f32_16x16x16_bf16, BF16, F32, 32)
LA_HOST_WMMA(f16_16x16x16_f16, F16, F16, (LA_RDNA == 3 ? 32 : 16))
LA_HOST_WMMA(bf16_16x16x16_bf16, BF16, BF16, (LA_RDNA == 3 ? 32 : 16))
LA_HOST_WMMA(i32_16x16x16_iu8, S8, S32, 32)
#endif
