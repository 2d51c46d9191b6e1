"""Certify that a layout has no factor: under no swizzle and innermost dimension is some warp bit one offset bit.

A descriptor's map sends each bit of the tile to one offset bit, before the swizzle, and the low bits of one dimension
to the low offset bits. Shuffles stay in a warp, so each warp bit of the places must be the offset bit that the map
gives it: bit b of the layout with the swizzle undone, at every place. The candidates are (swizzle, dimension, b) for
one warp bit that has none. That descriptors denote only these maps is not certified.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from layoutalg.proofs.certify.certificate import Certificate
from layoutalg.proofs.certify.stages import Stages
from layoutalg.proofs.certify.systems import Equation, System, excluded, none_of, overlap, rows_of
from layoutalg.synth.factor.bits import Bits, run_bits, swizzled
from layoutalg.synth.factor.question import Question


def certified(question: Question, bits: Bits | None, swizzles: Sequence[str]) -> Certificate | None:
    """Return a certificate that no descriptor map leaves a residual inside warps, if one was found.

    Args:
        question: The refused question.
        bits: The same over F2, if it is linear over F2.
        swizzles: The target's swizzles.
    """
    f = np.asarray(question.offsets, dtype=np.int64)
    twice = overlap(f)
    if twice is not None or bits is None:
        return twice
    candidates: list[System] = []
    for swizzle in swizzles:
        run = run_bits(swizzle, bits.low)
        for dim in [dim for dim in bits.dims if dim] or [()]:
            found = _candidates(bits, f, swizzle, run, dim)
            if found is None:
                return None
            candidates += found
    return none_of(f, candidates)


def _candidates(bits: Bits, f: Any, swizzle: str, run: int, dim: tuple[int, ...]) -> list[System] | None:
    """Systems for the offset bits that some warp bit could be, but is not; or for a dimension shorter than the run."""
    size = len(f)
    if len(dim) < run:
        return [System((np.zeros(1, dtype=np.int64),), (Equation((), 1 << len(dim), (), 1 << run),))]
    fixed = {place: bit for bit, place in enumerate(dim[:run])}
    places = np.arange(size, dtype=np.int64)
    columns = [swizzled(1 << bit, swizzle, bits.low) for bit in range(len(bits.columns))]
    for place in bits.of_role(2):
        free = [bit for bit in range(len(columns)) if bit not in fixed.values()]
        systems = []
        for bit in [fixed[place]] if place in fixed else free:
            after: Stages = [["xor", columns, 0], ["split", [1 << bit, 2, 1]], ["affine", [[0, 1, 0]], [0]]]
            systems.append(System((places,), (Equation(((1, 0, 0),), -(places >> place & 1)),), after))
        if all(excluded(rows_of(f.reshape(-1, 1), system)) is not None for system in systems):
            return systems
    return None
