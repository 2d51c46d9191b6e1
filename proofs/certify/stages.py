"""Functions as the stand-alone checker takes them: stages from integers to integers (``layoutalg.proofs.checker``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import mul
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground.recognize import Departure, linear, strided

Stages: TypeAlias = list[list[Any]]


@dataclass(frozen=True, slots=True)
class Function:
    """A layout as a function of its flat coordinate, or of parameters and coordinates if ``size`` is None."""

    stages: Stages  # stages of the checker
    size: int | None  # number of points
    digits: tuple[int, ...] = ()  # extents of its digits, fastest first
    inputs: int = 0  # number of parameters and coordinates if there is no size
    outputs: int = 1  # number of values

    def document(self) -> dict[str, object]:
        """Return the function's JSON form in a statement."""
        domain = {"inputs": self.inputs} if self.size is None else {"size": self.size}
        return {**domain, "stages": self.stages}


def listed(values: npt.NDArray[np.int64]) -> Function:
    """Return a table as digits and strides, columns over F2 or itself: the first form that fits.

    Example:
        >>> listed(np.array([0, 4, 1, 5])).stages, listed(np.array([0, 1, 3, 2])).stages
        ([['split', [2, 2]], ['affine', [[4, 1]], [0]]], [['xor', [1, 3], 0]])
    """
    size, first = len(values), int(values[0])
    modes = strided(values)
    if not isinstance(modes, Departure) and modes:
        extents, strides = ([digit[part] for digit in modes] for part in (0, 1))
        return Function([["split", extents], ["affine", [strides], [first]]], size)
    columns = linear(values) if size & (size - 1) == 0 and int(values.min()) >= 0 else None
    if columns is not None and not isinstance(columns, Departure):
        return Function([["xor", list(columns[0]), columns[1]]], size)
    return Function([["table", values.tolist()]], size)


def document(values: npt.NDArray[np.int64]) -> object:
    """Return listed values as a function of a statement."""
    return listed(values).document()


def common_digits(parts: Iterable[Sequence[int]], size: int, *, bits: bool) -> list[int]:
    """Return digits whose running products include those of the first part and, where divisible, of the others.

    Args:
        parts: Extents, fastest first; each has the product ``size``.
        size: The product.
        bits: Whether to split factors of two.

    Example:
        >>> common_digits([(4, 6), (2, 12)], 24, bits=False), common_digits([(24,), ()], 24, bits=True)
        ([2, 2, 6], [2, 2, 2, 3])
    """
    cuts = [1, size]
    for part in parts:
        for cut in accumulate(part, mul):
            cuts = _with_cut(cuts, cut)
    if bits:
        for low, high in zip(list(cuts), cuts[1:], strict=False):
            for step in range(1, (high // low & -(high // low)).bit_length()):
                cuts = _with_cut(cuts, low << step)
    return [high // low for low, high in pairwise(cuts) if high > low]


def _with_cut(cuts: list[int], cut: int) -> list[int]:
    """Return a chain of divisors with one more if it fits."""
    low = max(known for known in cuts if known <= cut)
    high = min((known for known in cuts if known >= cut), default=0)
    fits = cut not in cuts and high and cut % low == 0 and high % cut == 0
    return sorted([*cuts, cut]) if fits else cuts
