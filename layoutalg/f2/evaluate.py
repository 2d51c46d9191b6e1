"""Evaluate an affine map over F2 at arrays of coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.f2.axes import AxisBits, fields
from layoutalg.ground import memory
from layoutalg.ground.axes import Coordinate

PACKED_BITS = 63
"""Maximum bits of a value in an int64; wider values become object arrays of Python integers."""

Inputs: TypeAlias = Sequence[tuple[Coordinate, int]]
"""Coordinates and number of bits per input axis; the coordinates broadcast together."""


def values_at(
    inputs: Inputs, columns: Sequence[int], constant: int, out_bits: int, shape: tuple[int, ...]
) -> npt.NDArray[Any]:
    """Return the packed values; the coordinates broadcast to ``shape``.

    Example:
        >>> values_at([(np.arange(4), 2)], (1, 3), 4, 3, (4,)).tolist()
        [4, 5, 7, 6]
    """
    kind = np.int64 if out_bits <= PACKED_BITS else object
    answer = np.full(shape, constant, dtype=kind)
    column = iter(columns)
    for values, bits in inputs:
        array = np.asarray(values)
        for bit in range(bits):
            image = next(column)
            if image:
                # an in-place xor keeps the shape of ``answer``; the operand broadcasts
                answer ^= (array >> bit & 1).astype(kind, copy=False) * image
    return answer


def values_by_axis(
    inputs: Inputs, columns: Sequence[int], constant: int, outputs: AxisBits, shape: tuple[int, ...]
) -> dict[str, npt.NDArray[Any]]:
    """Return the values per output axis."""
    memory.reserve("the values of a linear layout", prod(shape), 8 * (len(outputs) + 3))
    out_bits = sum(bits for _, bits in outputs)
    if out_bits <= PACKED_BITS:
        packed = values_at(inputs, columns, constant, out_bits, shape)
        return {name: np.asarray(packed >> low & ((1 << bits) - 1)) for name, low, bits in fields(outputs)}
    answer = {}
    for name, low, bits in fields(outputs):
        first, *rest = (value >> low & ((1 << bits) - 1) for value in (constant, *columns))
        answer[name] = values_at(inputs, rest, first, bits, shape)
    return answer
