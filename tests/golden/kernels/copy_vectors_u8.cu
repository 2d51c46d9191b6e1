// Copy of 333 x 77 elements of 1 byte: a thread moves 4 vectors of 16 bytes, threads beside each other vectors beside each other.
extern "C" __global__ void __launch_bounds__(256) la_copy_333x77_b8_vector(const unsigned char* from, unsigned char* into)
{
    const la_u64 first = (la_u64)blockIdx.x * 1024u;
    const la_words4* source = (const la_words4*)from + first + threadIdx.x;
    la_words4* target = (la_words4*)into + first + threadIdx.x;
    if (first + 1024u <= 1602ull) {
        const la_words4 a0 = source[0];
        const la_words4 a1 = source[256];
        const la_words4 a2 = source[512];
        const la_words4 a3 = source[768];
        target[0] = a0;
        target[256] = a1;
        target[512] = a2;
        target[768] = a3;
    } else {
        for (la_u32 i = 0; first + threadIdx.x + i < 1602ull && i < 1024u; i += 256u)
            target[i] = source[i];
    }

    // The last 9 bytes fill no vector.
    if (blockIdx.x == 0 && threadIdx.x < 9) into[25632ull + threadIdx.x] = from[25632ull + threadIdx.x];
}
