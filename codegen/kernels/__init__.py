"""Kernels on arrays: copies, transposes, gathers, staging; ragged copies and transposes; matrix products, attention."""

from __future__ import annotations

from typing import TYPE_CHECKING

from layoutalg.ground.lazy import door

if TYPE_CHECKING:
    from layoutalg.codegen.kernels.answer import ArrayKernel
    from layoutalg.codegen.kernels.attention import AttentionKernel, attention_kernel
    from layoutalg.codegen.kernels.copy import copy_kernel
    from layoutalg.codegen.kernels.gather import gather_kernel
    from layoutalg.codegen.kernels.gemm import MatmulKernel, gemm_kernel
    from layoutalg.codegen.kernels.gemm_forms import Form, forms
    from layoutalg.codegen.kernels.grouped import GroupedKernel, grouped_forms, grouped_gemm_kernel
    from layoutalg.codegen.kernels.paged import paged_kernel
    from layoutalg.codegen.kernels.ragged import RaggedKernel, ragged_copy_kernel, ragged_kernel
    from layoutalg.codegen.kernels.ragged_spans import SpanKernel, ragged_span_kernel
    from layoutalg.codegen.kernels.ragged_transpose import ragged_transpose_kernel
    from layoutalg.codegen.kernels.runnable import kernel_of
    from layoutalg.codegen.kernels.schedule import schedule_kernel
    from layoutalg.codegen.kernels.staging import staging_kernel
    from layoutalg.codegen.kernels.transpose import transpose_kernel
    from layoutalg.codegen.kernels.transpose_ring import transpose_ring_kernel
    from layoutalg.codegen.kernels.transpose_windows import transpose_windows_kernel
    from layoutalg.proofs.groups import tile_bound

__all__ = [
    "ArrayKernel",
    "AttentionKernel",
    "Form",
    "GroupedKernel",
    "MatmulKernel",
    "RaggedKernel",
    "SpanKernel",
    "attention_kernel",
    "copy_kernel",
    "forms",
    "gather_kernel",
    "gemm_kernel",
    "grouped_forms",
    "grouped_gemm_kernel",
    "kernel_of",
    "paged_kernel",
    "ragged_copy_kernel",
    "ragged_kernel",
    "ragged_span_kernel",
    "ragged_transpose_kernel",
    "schedule_kernel",
    "staging_kernel",
    "tile_bound",
    "transpose_kernel",
    "transpose_ring_kernel",
    "transpose_windows_kernel",
]

__getattr__, __dir__ = door(
    __name__,
    {
        "layoutalg.codegen.kernels.answer": "ArrayKernel",
        "layoutalg.codegen.kernels.attention": "AttentionKernel attention_kernel",
        "layoutalg.codegen.kernels.copy": "copy_kernel",
        "layoutalg.codegen.kernels.gather": "gather_kernel",
        "layoutalg.codegen.kernels.gemm": "MatmulKernel gemm_kernel",
        "layoutalg.codegen.kernels.gemm_forms": "Form forms",
        "layoutalg.codegen.kernels.grouped": "GroupedKernel grouped_forms grouped_gemm_kernel",
        "layoutalg.codegen.kernels.paged": "paged_kernel",
        "layoutalg.codegen.kernels.ragged": "RaggedKernel ragged_copy_kernel ragged_kernel",
        "layoutalg.codegen.kernels.ragged_spans": "SpanKernel ragged_span_kernel",
        "layoutalg.codegen.kernels.ragged_transpose": "ragged_transpose_kernel",
        "layoutalg.codegen.kernels.runnable": "kernel_of",
        "layoutalg.codegen.kernels.schedule": "schedule_kernel",
        "layoutalg.codegen.kernels.staging": "staging_kernel",
        "layoutalg.codegen.kernels.transpose": "transpose_kernel",
        "layoutalg.codegen.kernels.transpose_ring": "transpose_ring_kernel",
        "layoutalg.codegen.kernels.transpose_windows": "transpose_windows_kernel",
        "layoutalg.proofs.groups": "tile_bound",
    },
)
