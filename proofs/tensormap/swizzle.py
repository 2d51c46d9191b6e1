"""Swizzles by their definition, for the problem side of a proof.

``Sw<bits, base, shift>`` maps address a to a XOR ((a div 2^shift) AND mask), where the mask selects ``bits`` bits from
bit ``base``. This is the checkers' one table of swizzles: deliberately neither the table and code of ``targets``, which
the finder uses, nor the chunk arithmetic that models the engine in ``walk``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

XORS: Mapping[str, tuple[tuple[int, int, int], ...]] = MappingProxyType(
    {
        "NONE": (),
        "32B": ((1, 4, 3),),
        "64B": ((2, 4, 3),),
        "128B": ((3, 4, 3),),
        "128B_ATOM_32B": ((2, 5, 2),),
        "128B_ATOM_32B_FLIP_8B": ((2, 5, 2), (1, 3, 4)),
        "128B_ATOM_64B": ((1, 6, 1),),
    }
)
"""(bits, base, shift) of each swizzle on shared byte addresses; both of FLIP_8B read the original address."""
CHUNK_BYTES = 16
PHASES: Mapping[str, int] = MappingProxyType({"NONE": 1, "32B": 2, "64B": 4, "128B": 8})
"""Measured number of 128-byte rows with distinct phases, also the number of chunks in a span; narrowest first."""


def swizzled(mode: str, addresses: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return shared byte addresses after the XOR.

    Args:
        mode: A key of ``XORS``.
        addresses: int64, at least 0.

    Example:
        >>> swizzled("64B", np.array([0, 128, 144, 384])).tolist()
        [0, 144, 128, 432]
    """
    answer = addresses.copy()
    for bits, base, shift in XORS[mode]:
        for bit in range(base, base + bits):
            answer ^= (addresses >> (bit + shift) & 1) << bit
    return answer


def period_bytes(mode: str) -> int:
    """Return the period of the pattern in bytes: one past the highest bit it reads.

    Example:
        >>> [period_bytes(mode) for mode in ("32B", "64B", "128B")]
        [256, 512, 1024]
    """
    return max((1 << (bits + base + shift) for bits, base, shift in XORS[mode]), default=1)
