#include <cuda.h>

#include <cstdint>

// load of a bf16 tile [64, 64]: box [64, 64], swizzle 128B, 1 copy, 8192 bytes in all.
// The barrier expects 8192 bytes. The tile base in shared memory is aligned to 1024 bytes.
// `base` is the first byte of the tensor's allocation. Returns what the driver returns.
inline CUresult make_tensor_map(CUtensorMap* map, void* base) {
    const cuuint64_t dims[2] = {512, 1024};  // elements, innermost first
    const cuuint64_t strides[1] = {1024};  // bytes, from dimension 1 on
    const cuuint32_t box[2] = {64, 64};
    const cuuint32_t element_strides[2] = {1, 1};
    void* const address = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(base) + 0ull);
    return cuTensorMapEncodeTiled(
        map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, address, dims, strides, box, element_strides,
        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
        CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}
