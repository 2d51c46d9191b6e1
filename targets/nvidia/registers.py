"""Registers of NVIDIA's threads and blocks, and what ``setmaxnreg`` sets.

Main statements: two limits differ by one. An instruction names one of 255 registers, which bounds what a thread *uses*
and what ptxas states as a kernel's count. Registers are *allocated* in units of 8 for each thread, so that a thread of
255 owns 256; ``setmaxnreg``, which states what a warp owns, takes 256 too (NVRTC 13.5 compiles
``setmaxnreg.inc`` with 256 into kernels whose count is 255).

References: CCCL ``cuda::arch_traits`` (registers per thread, per block); CUDA occupancy calculator (unit: 256
registers of a warp); PTX ISA 9.1, 9.7.19.5 ``setmaxnreg`` (24 to 256, a multiple of 8; a pool for each CTA).
"""

from __future__ import annotations

from typing import Final

THREAD_REGISTERS: Final = 255
"""Registers that a thread can use."""
BLOCK_REGISTERS: Final = 65536
"""Registers of a block, and of a multiprocessor."""
SETMAXNREG: Final = range(24, 257, 8)
"""Registers of a thread that ``setmaxnreg`` can state."""


def launch_registers(threads: int) -> int:
    """Return the registers that a thread owns at launch: its share of the block's, in units of 8, at most 256.

    Example:
        >>> launch_registers(384), launch_registers(128)
        (168, 256)
    """
    return min(SETMAXNREG[-1], whole_units(BLOCK_REGISTERS // threads))


def whole_units(registers: int) -> int:
    """Return a number of registers, rounded down to whole units of allocation.

    Example:
        >>> whole_units(170)
        168
    """
    return registers // SETMAXNREG.step * SETMAXNREG.step
