"""CUDA text for plans; compile, launch, run on the CPU, simulate, validate.

Implementation notes: names load on first use; cuda.core and the driver bindings are imported where they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if __name__ != "layoutalg.codegen":
    raise ImportError("import layoutalg.codegen, not codegen: this folder is only its source location")

from layoutalg.ground.lazy import door

if TYPE_CHECKING:
    from layoutalg.codegen import kernels, pipeline
    from layoutalg.codegen.compile import CompileError, to_cubin
    from layoutalg.codegen.conversion import conversion_kernel
    from layoutalg.codegen.cuda import load_kernel, store_kernel
    from layoutalg.codegen.exports import EXPORT_FORMS, export
    from layoutalg.codegen.kernel import KernelSource
    from layoutalg.codegen.kernels import (
        ArrayKernel,
        AttentionKernel,
        MatmulKernel,
        attention_kernel,
        copy_kernel,
        gather_kernel,
        gemm_kernel,
        grouped_gemm_kernel,
        staging_kernel,
        transpose_kernel,
        transpose_ring_kernel,
    )
    from layoutalg.codegen.kernels.spaces import attention_options, attention_space, form_of, gemm_space
    from layoutalg.codegen.launch import DeviceInfo, DeviceTensor, device, load_tile, place_map, store_tile
    from layoutalg.codegen.matmul import WgmmaTiles, matmul_kernel
    from layoutalg.codegen.product import Operand, ProductReport, product_kernel, validate_product, wgmma_tiles
    from layoutalg.codegen.simulate import shared_image, store_memory
    from layoutalg.codegen.validation import Difference, ValidationReport, default_origins, validate

__all__ = [
    "EXPORT_FORMS", "ArrayKernel", "AttentionKernel", "CompileError", "DeviceInfo", "DeviceTensor", "Difference",
    "KernelSource", "MatmulKernel", "Operand", "ProductReport", "ValidationReport", "WgmmaTiles", "attention_kernel",
    "attention_options", "attention_space", "conversion_kernel", "copy_kernel", "default_origins", "device", "export",
    "form_of", "gather_kernel", "gemm_kernel", "gemm_space", "grouped_gemm_kernel", "kernels", "load_kernel",
    "load_tile", "matmul_kernel", "pipeline", "place_map", "product_kernel", "shared_image", "staging_kernel",
    "store_kernel", "store_memory", "store_tile", "to_cubin", "transpose_kernel", "transpose_ring_kernel", "validate",
    "validate_product", "wgmma_tiles",
]  # fmt: skip

__getattr__, __dir__ = door(
    __name__,
    {
        "layoutalg.codegen.compile": "CompileError to_cubin",
        "layoutalg.codegen.conversion": "conversion_kernel",
        "layoutalg.codegen.cuda": "load_kernel store_kernel",
        "layoutalg.codegen.exports": "EXPORT_FORMS export",
        "layoutalg.codegen.kernel": "KernelSource",
        "layoutalg.codegen.kernels": "kernels ArrayKernel AttentionKernel MatmulKernel attention_kernel copy_kernel "
        "gather_kernel gemm_kernel grouped_gemm_kernel staging_kernel transpose_kernel transpose_ring_kernel",
        "layoutalg.codegen.kernels.spaces": "attention_options attention_space form_of gemm_space",
        "layoutalg.codegen.launch": "DeviceInfo DeviceTensor device load_tile place_map store_tile",
        "layoutalg.codegen.matmul": "WgmmaTiles matmul_kernel",
        "layoutalg.codegen.pipeline": "pipeline",
        "layoutalg.codegen.product": "Operand ProductReport product_kernel validate_product wgmma_tiles",
        "layoutalg.codegen.simulate": "shared_image store_memory",
        "layoutalg.codegen.validation": "Difference ValidationReport default_origins validate",
    },
)
