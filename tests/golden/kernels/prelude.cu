// Hardware operations by name. With LA_HOST defined, a host header supplies the same names as C++ models.
#ifndef LA_HOST
typedef unsigned int la_u32;
typedef unsigned long long la_u64;

extern __shared__ __align__(1024) unsigned char la_dynamic_shared[];

__device__ __forceinline__ unsigned char* la_shared() { return la_dynamic_shared; }
#define LA_LANES 32

struct __align__(8) la_words2 { la_u32 word[2]; };
struct __align__(16) la_words4 { la_u32 word[4]; };
__device__ __forceinline__ la_u32 la_shared_load_b8(la_u32 byte)
{
    return *(const unsigned char*)(la_shared() + byte);
}
__device__ __forceinline__ void la_shared_store_b8(la_u32 byte, la_u32 value)
{
    *(unsigned char*)(la_shared() + byte) = (unsigned char)value;
}
__device__ __forceinline__ la_u32 la_shared_load_b16(la_u32 byte)
{
    return *(const unsigned short*)(la_shared() + byte);
}
__device__ __forceinline__ void la_shared_store_b16(la_u32 byte, la_u32 value)
{
    *(unsigned short*)(la_shared() + byte) = (unsigned short)value;
}
__device__ __forceinline__ la_u32 la_shared_load_b32(la_u32 byte)
{
    return *(const la_u32*)(la_shared() + byte);
}
__device__ __forceinline__ void la_shared_store_b32(la_u32 byte, la_u32 value)
{
    *(la_u32*)(la_shared() + byte) = (la_u32)value;
}
__device__ __forceinline__ la_words2 la_shared_load_b64(la_u32 byte)
{
    return *(const la_words2*)(la_shared() + byte);
}
__device__ __forceinline__ void la_shared_store_b64(la_u32 byte, la_words2 value)
{
    *(la_words2*)(la_shared() + byte) = (la_words2)value;
}
__device__ __forceinline__ la_words4 la_shared_load_b128(la_u32 byte)
{
    return *(const la_words4*)(la_shared() + byte);
}
__device__ __forceinline__ void la_shared_store_b128(la_u32 byte, la_words4 value)
{
    *(la_words4*)(la_shared() + byte) = (la_words4)value;
}

__device__ __forceinline__ la_u32 la_shuffle(la_u32 word, la_u32 lane)
{
    return __shfl_sync(0xFFFFFFFFu, word, (int)lane);
}

__device__ __forceinline__ la_u32 la_permute(la_u32 low, la_u32 high, la_u32 selector)
{
    return __byte_perm(low, high, selector);
}

__device__ __forceinline__ bool la_elect()
{
#if __CUDA_ARCH__ >= 900
    la_u32 chosen;
    asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xFFFFFFFF;\nselp.u32 %0, 1, 0, p;\n}\n" : "=r"(chosen));
    return chosen;
#else
    return threadIdx.x % 32 == 0;
#endif
}

__device__ __forceinline__ void la_sync_warp() { __syncwarp(); }

__device__ __forceinline__ la_u64 la_cycles() { return (la_u64)clock64(); }

__device__ __forceinline__ la_u32 la_ldmatrix_x1(la_u32 byte)
{
    la_u32 words;
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
                 : "=r"(words) : "r"((la_u32)__cvta_generic_to_shared(la_shared() + byte)) : "memory");
    return words;
}
#if __CUDA_ARCH__ >= 900
__device__ __forceinline__ void la_stmatrix_x1(la_u32 byte, la_u32 words)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};"
                 :: "r"((la_u32)__cvta_generic_to_shared(la_shared() + byte)), "r"(words) : "memory");
}
#endif
__device__ __forceinline__ la_u32 la_ldmatrix_x1_trans(la_u32 byte)
{
    la_u32 words;
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
                 : "=r"(words) : "r"((la_u32)__cvta_generic_to_shared(la_shared() + byte)) : "memory");
    return words;
}
#if __CUDA_ARCH__ >= 900
__device__ __forceinline__ void la_stmatrix_x1_trans(la_u32 byte, la_u32 words)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};"
                 :: "r"((la_u32)__cvta_generic_to_shared(la_shared() + byte)), "r"(words) : "memory");
}
#endif
__device__ __forceinline__ la_words2 la_ldmatrix_x2(la_u32 byte)
{
    la_words2 words;
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(words.word[0]), "=r"(words.word[1]) : "r"((la_u32)__cvta_generic_to_shared(la_shared() + byte)) : "memory");
    return words;
}
#if __CUDA_ARCH__ >= 900
__device__ __forceinline__ void la_stmatrix_x2(la_u32 byte, la_words2 words)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};"
                 :: "r"((la_u32)__cvta_generic_to_shared(la_shared() + byte)), "r"(words.word[0]), "r"(words.word[1]) : "memory");
}
#endif
__device__ __forceinline__ la_words2 la_ldmatrix_x2_trans(la_u32 byte)
{
    la_words2 words;
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(words.word[0]), "=r"(words.word[1]) : "r"((la_u32)__cvta_generic_to_shared(la_shared() + byte)) : "memory");
    return words;
}
#if __CUDA_ARCH__ >= 900
__device__ __forceinline__ void la_stmatrix_x2_trans(la_u32 byte, la_words2 words)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};"
                 :: "r"((la_u32)__cvta_generic_to_shared(la_shared() + byte)), "r"(words.word[0]), "r"(words.word[1]) : "memory");
}
#endif
__device__ __forceinline__ la_words4 la_ldmatrix_x4(la_u32 byte)
{
    la_words4 words;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words.word[0]), "=r"(words.word[1]), "=r"(words.word[2]), "=r"(words.word[3]) : "r"((la_u32)__cvta_generic_to_shared(la_shared() + byte)) : "memory");
    return words;
}
#if __CUDA_ARCH__ >= 900
__device__ __forceinline__ void la_stmatrix_x4(la_u32 byte, la_words4 words)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                 :: "r"((la_u32)__cvta_generic_to_shared(la_shared() + byte)), "r"(words.word[0]), "r"(words.word[1]), "r"(words.word[2]), "r"(words.word[3]) : "memory");
}
#endif
__device__ __forceinline__ la_words4 la_ldmatrix_x4_trans(la_u32 byte)
{
    la_words4 words;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words.word[0]), "=r"(words.word[1]), "=r"(words.word[2]), "=r"(words.word[3]) : "r"((la_u32)__cvta_generic_to_shared(la_shared() + byte)) : "memory");
    return words;
}
#if __CUDA_ARCH__ >= 900
__device__ __forceinline__ void la_stmatrix_x4_trans(la_u32 byte, la_words4 words)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};"
                 :: "r"((la_u32)__cvta_generic_to_shared(la_shared() + byte)), "r"(words.word[0]), "r"(words.word[1]), "r"(words.word[2]), "r"(words.word[3]) : "memory");
}
#endif
#endif

