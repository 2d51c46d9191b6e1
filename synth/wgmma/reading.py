"""Addresses before the XOR, and field differences, of a requested ``wgmma`` layout."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from layoutalg.ground.digits import table
from layoutalg.proofs.wgmma import OperandProblem
from layoutalg.targets.nvidia import wgmma as hardware
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE

Table = npt.NDArray[np.int64]


def axis_bytes(problem: OperandProblem) -> tuple[Table, Table]:
    """Return the bytes that the MN and K coordinates add to an address before the XOR.

    Example:
        >>> axis_bytes(OperandProblem("B", (8, 16), (((2, 1), (4, 32)), ((16, 2),))))[0].tolist()
        [0, 2, 64, 66, 128, 130, 192, 194]
    """
    mn, k = (problem.element_bits * table(modes) // 8 for modes in problem.smem_modes)
    return mn, k


def linear_addresses(problem: OperandProblem) -> Table:
    """Return the byte address of every element before the XOR, for tile base 0; int64[mn, k].

    Example:
        >>> linear_addresses(OperandProblem("B", (8, 16), (((8, 64),), ((16, 1),)), "128B"))[1, [0, 8]].tolist()
        [128, 144]
    """
    mn, k = axis_bytes(problem)
    return problem.smem_base_bytes + mn[:, None] + k[None, :]


def is_byte_wise(problem: OperandProblem) -> bool:
    """Return whether every element starts a byte, or every eight one-bit elements along K form a byte, in order.

    Example:
        >>> is_byte_wise(OperandProblem("B", (8, 256), (((8, 256),), ((256, 1),)), dtype="b1"))
        True
        >>> is_byte_wise(OperandProblem("B", (8, 256), (((8, 1),), ((256, 8),)), dtype="b1"))
        False
    """
    if problem.element_bits > 1:
        return True
    mn, k = (table(modes) for modes in problem.smem_modes)
    return not (mn % 8).any() and not (k % 8 != np.arange(k.size) % 8).any()


def base_phases(problem: OperandProblem, swizzle: str) -> range:
    """Return the tile bases that matter: those the alignment allows, below the common period of both swizzles.

    Example:
        >>> list(base_phases(OperandProblem("B", (8, 16), (((8, 16),), ((16, 1),)), "32B", align_bytes=64), "32B"))
        [0, 64, 128, 192]
    """
    return phases_of(problem.swizzle, swizzle, problem.align_bytes)


def phases_of(own: str, mode: str, align_bytes: int) -> range:
    """Return the tile bases that an alignment allows, below the common period of the tile's swizzle and a mode."""
    period = max(SWIZZLE_TABLE[name].period_bytes for name in (own, mode))
    return range(0, period, min(align_bytes, period))


def majors(problem: OperandProblem) -> tuple[str, ...]:
    """Return the majors that the element type allows."""
    return hardware.MAJORS if hardware.multiply(problem.dtype).transposable else ("K",)


def differences(block: Table, major: str, swizzle: str, element_bits: int = 16) -> tuple[int, dict[str, int]]:
    """Return the start and the stride fields of a linear block in one mode; unread fields are 16.

    Args:
        block: int64[rows, k]: byte addresses of one instruction's elements, XOR undone.
        major: ``"K"`` or ``"MN"``.
        swizzle: The mode.
        element_bits: Bits of an element.

    Example:
        >>> differences(np.arange(1024).reshape(64, 16) * 2, "K", "32B")
        (0, {'leading_bytes': 16, 'stride_bytes': 256})
    """
    pattern = hardware.read_pattern(major, swizzle, element_bits, block.shape[1])
    first = int(block[0, 0])
    fields = {"leading_bytes": hardware.UNIT_BYTES, "stride_bytes": hardware.UNIT_BYTES}
    for line, digits in ((block[:, 0], pattern.mn), (block[0, :], pattern.k)):
        weight = 1
        for extent, step in digits:
            if isinstance(step, str) and weight < line.size:
                fields[step] = int(line[weight]) - first
            weight *= max(extent, 1)
    return first, fields
