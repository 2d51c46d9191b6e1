"""Kernels that move arrays: copies, transposes, gathers, staging in shared memory.

Main definitions: ``ArrayKernel``; ``copy_kernel``, ``transpose_kernel``, ``transpose_ring_kernel``.
"""

from __future__ import annotations

from layoutalg.codegen.kernels.answer import ArrayKernel
from layoutalg.codegen.kernels.copy import copy_kernel
from layoutalg.codegen.kernels.transpose import transpose_kernel
from layoutalg.codegen.kernels.transpose_ring import transpose_ring_kernel

__all__ = ["ArrayKernel", "copy_kernel", "transpose_kernel", "transpose_ring_kernel"]
