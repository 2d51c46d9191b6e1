"""Functions as plain numbers: pieces of quasi-affine forms, extracted once from ISL and evaluated with numpy.

A set is a function without outputs. Parameters are leading inputs of every form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from layoutalg.piecewise.value import Value

Array: TypeAlias = "npt.NDArray[Any]"
SAFE = 2**62


@dataclass(frozen=True, slots=True)
class Form:
    """The number ``(sum of dims[i] x_i + sum of floors[j] q_j + constant) / denominator``."""

    dims: tuple[int, ...]
    floors: tuple[int, ...]
    constant: int
    denominator: int = 1


@dataclass(frozen=True, slots=True)
class Region:
    """A conjunction of constraints."""

    floors: tuple[Form, ...]  # ``floors[j]`` defines ``q_j`` as a rounded-down form in the dims and earlier q
    constraints: tuple[tuple[Form, bool], ...]  # pairs (form, is_equality): form = 0 or form >= 0


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of a function: the regions where it applies and, per output, its floors and value."""

    regions: tuple[Region, ...]
    outputs: tuple[tuple[tuple[Form, ...], Form], ...]


def evaluated(
    value: Value, params: Mapping[str, Any], arrays: Sequence[Array], shape: tuple[int, ...], everywhere: bool = False
) -> tuple[list[Array], Array]:
    """Return the outputs of a function at points (0 where it is undefined), and where it is defined.

    Args:
        value: The function.
        params: Parameters, as numbers or arrays of ``shape``; others are ignored.
        arrays: Values of its axes, all of the same shape.
        shape: That shape.
        everywhere: Whether the function is known to be defined at all points; the guard of a single piece is skipped.
    """
    given = [np.broadcast_to(np.asarray(params[name]), shape) for name in value.params]
    dims = [*given, *arrays]
    highest = [max(abs(int(line.min())), abs(int(line.max()))) + 1 if line.size else 1 for line in dims]
    is_wide = value.slope * max([2, *highest]) >= SAFE and reach(value.pieces, highest) >= SAFE
    dtype: Any = object if is_wide else np.int64
    dims = [line.astype(dtype, copy=False) for line in dims]
    if everywhere and len(value.pieces) == 1:
        return _values(value.pieces[0], dims, shape, dtype), np.ones(shape, dtype=bool)
    answers = [np.zeros(shape, dtype=dtype) for _ in value.outputs]
    covered = np.zeros(shape, dtype=bool)
    for piece in value.pieces:
        inside = np.zeros(shape, dtype=bool)
        for region in piece.regions:
            inside |= holds(region, dims, shape, dtype)
        covered |= inside
        for answer, found in zip(answers, _values(piece, dims, shape, dtype), strict=True):
            answer[...] = np.where(inside, found, answer)
    return answers, covered


def _values(piece: Piece, dims: Sequence[Array], shape: tuple[int, ...], dtype: Any) -> list[Array]:
    return [
        form_value(value, dims, floor_values(floors, dims, shape, dtype), shape, dtype)
        for floors, value in piece.outputs
    ]


def floor_values(floors: Sequence[Form], dims: Sequence[Array], shape: tuple[int, ...], dtype: Any) -> list[Array]:
    """Return the values of the floors, each of which may use earlier ones."""
    known: list[Array] = []
    for form in floors:
        known.append(form_value(form, dims, known, shape, dtype))
    return known


def form_value(form: Form, dims: Sequence[Array], floors: Sequence[Array], shape: tuple[int, ...], dtype: Any) -> Array:
    """Return the rounded-down value of a form."""
    total: Any = None
    for coefficient, value in (*zip(form.dims, dims, strict=True), *zip(form.floors, floors, strict=False)):
        if coefficient:
            term = value if coefficient == 1 else coefficient * value
            total = term if total is None else total + term
    if total is None:
        return np.full(shape, form.constant // form.denominator, dtype=dtype)
    total = total + form.constant if form.constant else total
    found: Array = total // form.denominator if form.denominator != 1 else total
    return found


def holds(region: Region, dims: Sequence[Array], shape: tuple[int, ...], dtype: Any) -> Array:
    """Return where a conjunction is true."""
    floors = floor_values(region.floors, dims, shape, dtype)
    inside = np.ones(shape, dtype=bool)
    for form, is_equality in region.constraints:
        value = form_value(form, dims, floors, shape, dtype)
        inside &= np.asarray(value == 0 if is_equality else value >= 0, dtype=bool)
    return inside


def reach(pieces: Sequence[Piece], extents: Sequence[int]) -> int:
    """Return a bound on the magnitude of every intermediate number, to decide whether 64-bit arithmetic is safe.

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
