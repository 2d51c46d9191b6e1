// A stand-in for the driver's header: as much of it as emitted host text names. Calls are printed, field by field.
#pragma once
#include <cstdint>
#include <cstdio>

typedef std::uint64_t cuuint64_t;
typedef std::uint32_t cuuint32_t;
typedef enum { CUDA_SUCCESS = 0 } CUresult;
typedef struct alignas(64) { cuuint64_t opaque[16]; } CUtensorMap;
typedef enum {
    CU_TENSOR_MAP_DATA_TYPE_UINT8, CU_TENSOR_MAP_DATA_TYPE_UINT16, CU_TENSOR_MAP_DATA_TYPE_UINT32,
    CU_TENSOR_MAP_DATA_TYPE_INT32, CU_TENSOR_MAP_DATA_TYPE_UINT64, CU_TENSOR_MAP_DATA_TYPE_INT64,
    CU_TENSOR_MAP_DATA_TYPE_FLOAT16, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
    CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32,
    CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ, CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B, CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B,
    CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B
} CUtensorMapDataType;
typedef enum { CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_INTERLEAVE_16B, CU_TENSOR_MAP_INTERLEAVE_32B } CUtensorMapInterleave;
typedef enum {
    CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_SWIZZLE_32B, CU_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_SWIZZLE_128B,
    CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B, CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B, CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B
} CUtensorMapSwizzle;
typedef enum {
    CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_L2_PROMOTION_L2_64B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
    CU_TENSOR_MAP_L2_PROMOTION_L2_256B
} CUtensorMapL2promotion;
typedef enum {
    CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
} CUtensorMapFloatOOBfill;

inline CUresult cuTensorMapEncodeTiled(
    CUtensorMap*, CUtensorMapDataType type, cuuint32_t rank, void* address, const cuuint64_t* dims,
    const cuuint64_t* strides, const cuuint32_t* box, const cuuint32_t* steps, CUtensorMapInterleave interleave,
    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
    std::printf("[%d, %llu, [", int(type), static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(address)));
    for (cuuint32_t i = 0; i < rank; ++i) std::printf("%s%llu", i ? ", " : "", static_cast<unsigned long long>(dims[i]));
    std::printf("], [");
    for (cuuint32_t i = 0; i + 1 < rank; ++i)
        std::printf("%s%llu", i ? ", " : "", static_cast<unsigned long long>(strides[i]));
    std::printf("], [");
    for (cuuint32_t i = 0; i < rank; ++i) std::printf("%s%u", i ? ", " : "", box[i]);
    std::printf("], [");
    for (cuuint32_t i = 0; i < rank; ++i) std::printf("%s%u", i ? ", " : "", steps[i]);
    std::printf("], %d, %d, %d, %d]\n", int(interleave), int(swizzle), int(promotion), int(fill));
    return CUDA_SUCCESS;
}
