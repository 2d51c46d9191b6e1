"""Lift plans at several sizes to one symbolic map by fitting polynomials to its fields.

A field is a constant, or an affine function of a bound, an extent, a stride or a product of bounds of the problem. The
checker derives for which sizes the result is correct.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from layoutalg.ground.polynomial import Polynomial, number, value_at
from layoutalg.proofs.symbolic.guard import Guard
from layoutalg.proofs.symbolic.plan import SymbolicMap, SymbolicPlan, evaluated
from layoutalg.proofs.symbolic.problem import SymbolicProblem
from layoutalg.proofs.tensor import Size, size_text
from layoutalg.proofs.tensormap import TensorMapPlan

_SAME = ("dtype", "box", "element_strides", "interleave", "swizzle", "l2_promotion", "oob_fill", "base_address")


def lifted(
    problem: SymbolicProblem, plans: Sequence[TensorMapPlan], sizes: Sequence[Mapping[str, int]]
) -> SymbolicPlan | None:
    """Return the symbolic plan whose instances are ``plans`` at ``sizes``; None if they differ in more than numbers."""
    first, *others = plans
    tm = first.tensor_map
    for other in others:
        if other.issues != first.issues or other.origin_map != first.origin_map or other.oob != first.oob:
            return None
        if any(getattr(other.tensor_map, name) != getattr(tm, name) for name in _SAME):
            return None
    extents = [*_bases(problem)]
    pitches = [stride for stride in evaluated(problem.tensor.strides) if stride.names]
    dims = [_fit([plan.tensor_map.dims[j] for plan in plans], extents, sizes) for j in range(len(tm.dims))]
    strides = [
        _fit([plan.tensor_map.strides_bytes[j] for plan in plans], pitches, sizes) for j in range(len(tm.dims) - 1)
    ]
    if None in dims or None in strides:
        return None
    named = SymbolicMap(
        tm.dtype, tuple(dims), tuple(strides), tm.box, tm.element_strides, tm.swizzle, tm.l2_promotion, tm.oob_fill,
        tm.base_address,
    )  # fmt: skip
    numbers = first.expect_tx_bytes, first.smem_align_bytes, first.smem_bytes
    return SymbolicPlan(problem, named, first.issues, first.origin_map, *numbers, first.oob, Guard((), problem.names))


def _bases(problem: SymbolicProblem) -> Iterator[Polynomial]:
    """Polynomials of which a map extent may be an affine function."""
    highs = [top for top in evaluated([high for _, high in problem.bounds]) if top.names]
    yield from dict.fromkeys(highs)
    yield from dict.fromkeys(extent for extent in evaluated(problem.tensor.shape) if extent.names)
    for one, two in itertools.combinations(highs, 2):
        yield one * two


def _fit(values: Sequence[int], bases: Sequence[Polynomial], sizes: Sequence[Mapping[str, int]]) -> Size | None:
    """Return the constant, or alpha p + beta for one of these polynomials, with these values at these sizes."""
    if len(set(values)) == 1:
        return values[0]
    for shifted in (False, True):  # a multiple is more likely
        for base in bases:
            at = [value_at(base, entry) for entry in sizes]
            other = next((index for index, value in enumerate(at) if value != at[0]), None)
            if other is None:
                continue
            slope = Fraction(values[other] - values[0]) / (at[other] - at[0])
            alpha = slope if shifted else Fraction(values[0]) / at[0]
            beta = values[0] - alpha * at[0]
            if all(alpha * x + beta == value for x, value in zip(at, values, strict=True)):
                return size_text(base * number(alpha) + number(beta))
    return None
