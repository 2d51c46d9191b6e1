"""Evaluation of piecewise quasi-affine functions with numpy; no solver.

Main definitions: ``evaluate``, ``reach``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from layoutalg.piecewise.piece import Form, Piece, Region

SAFE = 2**62


def integers(value: object) -> npt.NDArray[np.int64] | None:
    """Return a number, a list or an array of integers as an array (of Python integers where 64 bits do not do).

    Example:
        >>> integers([1, 2]), integers([]), integers(1.5), integers([[1], [2, 3]])
        (array([1, 2]), array([], dtype=int64), None, None)
    """
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, OverflowError):  # rows of different lengths, for one
        return None
    if isinstance(value, (list, tuple)) and not array.size:  # numpy reads an empty list as floats
        array = array.astype(np.int64)
    exact = array.dtype.kind in "iu" or (array.dtype.kind == "O" and all(type(entry) is int for entry in array.flat))
    return array if exact else None


def evaluate(
    pieces: Sequence[Piece],
    digits: Sequence[npt.NDArray[np.int64]],
    shape: tuple[int, ...],
    outputs: int,
    dtype: npt.DTypeLike,
) -> tuple[list[npt.NDArray[np.int64]], npt.NDArray[np.bool_]]:
    """Return the outputs (0 where no piece applies) and where some piece applies.

    Args:
        pieces: Disjoint pieces.
        digits: One array per input, all of ``shape`` and ``dtype``.
        shape: The common shape.
        outputs: Number of outputs.
        dtype: int64, or object where 64 bits would not do.
    """
    answers = [np.zeros(shape, dtype=dtype) for _ in range(outputs)]
    covered = np.zeros(shape, dtype=bool)
    for piece in pieces:
        inside = np.zeros(shape, dtype=bool)
        for region in piece.regions:
            inside |= holds(region, digits, shape, dtype)
        covered |= inside
        for answer, (floors, value) in zip(answers, piece.outputs, strict=True):
            found = form_value(value, digits, floor_values(floors, digits, shape, dtype), shape, dtype)
            answer[...] = np.where(inside, found, answer)
    return answers, covered


def floor_values(
    floors: Sequence[Form], digits: Sequence[npt.NDArray[np.int64]], shape: tuple[int, ...], dtype: npt.DTypeLike
) -> list[npt.NDArray[np.int64]]:
    """Return the values of the floors, each of which may mention the ones before."""
    known: list[npt.NDArray[np.int64]] = []
    for form in floors:
        known.append(form_value(form, digits, known, shape, dtype))
    return known


def form_value(
    form: Form,
    digits: Sequence[npt.NDArray[np.int64]],
    floors: Sequence[npt.NDArray[np.int64]],
    shape: tuple[int, ...],
    dtype: npt.DTypeLike,
) -> npt.NDArray[np.int64]:
    """Return the rounded-down value of a form."""
    total = np.full(shape, form.constant, dtype=dtype)
    for coefficient, value in (*zip(form.dims, digits, strict=True), *zip(form.floors, floors, strict=False)):
        if coefficient:
            total = total + coefficient * value
    return total // form.denominator if form.denominator != 1 else total


def holds(
    region: Region, digits: Sequence[npt.NDArray[np.int64]], shape: tuple[int, ...], dtype: npt.DTypeLike
) -> npt.NDArray[np.bool_]:
    """Return where a conjunction holds."""
    floors = floor_values(region.floors, digits, shape, dtype)
    inside = np.ones(shape, dtype=bool)
    for form, is_equality in region.constraints:
        value = form_value(form, digits, floors, shape, dtype)
        inside &= np.asarray(value == 0 if is_equality else value >= 0, dtype=bool)
    return inside


def reach(pieces: Sequence[Piece], extents: Sequence[int]) -> int:
    """Return a bound on the magnitude of every intermediate number, so that 64-bit arithmetic can be trusted.

    Args:
        pieces: The pieces.
        extents: Input k has a magnitude below ``extents[k]``.
    """
    worst = 0

    def bound(form: Form, floors: Sequence[int]) -> int:
        nonlocal worst
        parts = [abs(a) * max(n - 1, 0) for a, n in zip(form.dims, extents, strict=True)]
        parts += [abs(a) * q for a, q in zip(form.floors, floors, strict=False)]
        total = abs(form.constant) + sum(parts)
        worst = max(worst, total, *(abs(a) for a in (form.denominator, *form.dims, *form.floors)))
        return total // form.denominator + 1

    for piece in pieces:
        groups = [(region.floors, [form for form, _ in region.constraints]) for region in piece.regions]
        groups += [(floors, [value]) for floors, value in piece.outputs]
        for floors, forms in groups:
            known: list[int] = []
            for form in floors:
                known.append(bound(form, known))
            for form in forms:
                bound(form, known)
    return worst
