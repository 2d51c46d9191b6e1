// Hardware operations by name. With LA_HOST defined, a host header supplies the same names as C++ models.
#ifndef LA_HOST
typedef unsigned int la_u32;
typedef unsigned long long la_u64;

#ifndef __HIPCC_RTC__  // hipRTC knows the names of the language; a bare clang does not
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(threads, ...) __attribute__((amdgpu_flat_work_group_size(threads, threads)))
struct la_index { la_u32 x, y, z; };
#define threadIdx (la_index{__builtin_amdgcn_workitem_id_x(), 0, 0})
#define blockIdx (la_index{__builtin_amdgcn_workgroup_id_x(), 0, 0})
#endif
#undef __forceinline__
#define __forceinline__ inline __attribute__((always_inline))
#ifndef __align__
#define __align__(bytes) __attribute__((aligned(bytes)))
#endif
#define __syncthreads() la_block_barrier()
#define LA_LANES 64

struct __align__(8) la_words2 { la_u32 word[2]; };
struct __align__(16) la_words4 { la_u32 word[4]; };

extern __shared__ __align__(1024) unsigned char la_dynamic_shared[];

__device__ __forceinline__ unsigned char* la_shared() { return la_dynamic_shared; }
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

__device__ __forceinline__ void la_block_barrier()
{
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

__device__ __forceinline__ la_u32 la_shuffle(la_u32 word, la_u32 lane)
{
    return (la_u32)__builtin_amdgcn_ds_bpermute((int)(4 * lane), (int)word);
}

// v_perm_b32 numbers the bytes of its second operand first and takes a byte per selector.
__device__ __forceinline__ la_u32 la_permute(la_u32 low, la_u32 high, la_u32 selector)
{
    const la_u32 pairs = (selector & 0x77u) | (selector & 0x7700u) << 8;
    return __builtin_amdgcn_perm(high, low, (pairs & 0x70007u) | (pairs & 0x700070u) << 4);
}

__device__ __forceinline__ bool la_elect() { return threadIdx.x % LA_LANES == 0; }

__device__ __forceinline__ void la_sync_warp()
{
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

__device__ __forceinline__ la_u64 la_cycles() { return __builtin_readcyclecounter(); }
#endif

