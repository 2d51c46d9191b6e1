"""Integers as narrow floats by their definition, in arrays as the copy engine wants them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

MANTISSA = {"bf16": (8, 7, 16), "f16": (5, 10, 16), "e4m3": (4, 3, 8), "e5m2": (5, 2, 8)}
"""Bits of the exponent and of the mantissa, and in all."""


def encoded(values: npt.NDArray[Any], kind: str) -> npt.NDArray[Any]:
    """The bits of integers of a type, rounded to nearest even by its definition."""
    exponent_bits, mantissa_bits, bits = MANTISSA[kind]
    size = np.abs(values).astype(np.float64)
    exponent = np.floor(np.log2(np.where(size > 0, size, 1))).astype(np.int64)
    scaled = np.rint(size * 2.0 ** (mantissa_bits - exponent)).astype(np.int64)  # rint rounds ties to even
    # a mantissa that rounds up to the next power of two carries into the exponent by itself
    word = (exponent + (1 << exponent_bits - 1) - 1 << mantissa_bits) + scaled - (1 << mantissa_bits)
    word = np.where(size == 0, 0, word | np.where(values < 0, 1 << bits - 1, 0))
    return word.astype(np.uint16 if bits == 16 else np.uint8)


def aligned(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A copy at a multiple of 256 bytes."""
    room = np.zeros(array.nbytes + 256, dtype=np.uint8)
    first = -room.ctypes.data % 256
    copy = room[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
