// Loads 16 bytes by ld.global.nc.L1::no_allocate.v4.u32.
__device__ __forceinline__ la_words4 la_copy_load(const la_words4* from)
{
#ifdef LA_HOST
    return *from;
#else
    la_words4 found;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(found.word[0]), "=r"(found.word[1]), "=r"(found.word[2]), "=r"(found.word[3]) : "l"(from));
    return found;
#endif
}

// Stores 16 bytes by st.global.L1::no_allocate.v4.u32.
__device__ __forceinline__ void la_copy_store(la_words4* into, const la_words4& value)
{
#ifdef LA_HOST
    *into = value;
#else
    asm volatile("st.global.L1::no_allocate.v4.u32 [%0], {%1, %2, %3, %4};"
                 :: "l"(into), "r"(value.word[0]), "r"(value.word[1]), "r"(value.word[2]), "r"(value.word[3]));
#endif
}

// Copy of 333 x 77 elements of 1 byte: a thread moves 2 vectors of 16 bytes, threads beside each other vectors beside each other.
extern "C" __global__ void __launch_bounds__(512, 4) la_copy_333x77_b8_vector(const unsigned char* from, unsigned char* into)
{
    const la_u64 first = (la_u64)blockIdx.x * 1024u;
    const la_words4* source = (const la_words4*)from + first + threadIdx.x;
    la_words4* target = (la_words4*)into + first + threadIdx.x;
    if (first + 1024u <= 1602ull) {
#pragma unroll
        for (la_u32 turn = 0; turn < 1u; ++turn, source += 1024u, target += 1024u) {
            const la_words4 a0 = la_copy_load(source + 0);
            const la_words4 a1 = la_copy_load(source + 512);
            la_copy_store(target + 0, a0);
            la_copy_store(target + 512, a1);
        }
    } else {
        for (la_u32 i = 0; first + threadIdx.x + i < 1602ull && i < 1024u; i += 512u)
            target[i] = source[i];
    }

    // The last 9 bytes fill no vector.
    if (blockIdx.x == 0 && threadIdx.x < 9) into[25632ull + threadIdx.x] = from[25632ull + threadIdx.x];
}
