"""The numbers that maps and their uses must respect.

Implementation notes: each number belongs to a rule in ``rules``, with its sources and evidence.

References: CUDA driver API 13.0, ``cuTensorMapEncodeTiled``; PTX ISA 9.1 sections 5.5 and 9.7.9.27; CUDA programming
guide 13.0, technical specifications per compute capability.
"""

from __future__ import annotations

MAX_RANK = 5
MAX_DIM_ENCODED = 1 << 32
"""Largest extent that the driver encodes."""
MAX_DIM = 1 << 31
"""Largest extent that the engine can use: loads through a larger one raised an illegal instruction."""
MAX_BOX = 256
MAX_BOX_BYTES = 233_472
MAX_ELEMENT_STRIDE = 8
STRIDE_LIMIT_BYTES = 1 << 40
ADDRESS_LIMIT = 1 << 57
GLOBAL_ALIGN_BYTES = 16
MAX_SMEM_BYTES = 232_448
SMEM_DESTINATION_ALIGN_BYTES = 128
STORE_CHUNK_BYTES = 16
MAX_PHASE_BYTES = (1 << 20) - 1
"""Bytes that one barrier phase can expect (rule TX)."""
