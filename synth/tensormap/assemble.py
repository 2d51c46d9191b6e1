"""From a box and loops to a plan: map dimensions in order, start coordinates, origin terms, descriptor bytes.

Main definitions: ``assemble``.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from layoutalg.proofs.tensormap.plan import Issue, OriginTerm, TensorMapPlan
from layoutalg.proofs.tensormap.problem import TensorMapProblem
from layoutalg.synth.tensormap.search import Candidate
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.nvidia.tensormap import limits


@dataclass(frozen=True, slots=True)
class _Dim:
    """A map dimension: the part [cut, next) of an axis."""

    axis: int
    cut: int
    above: int | None
    stride_bytes: int
    extent: int
    box: int
    element_stride: int


def assemble(problem: TensorMapProblem, candidate: Candidate, oob: str, l2_promotion: str = "128B") -> TensorMapPlan:
    """Return the plan of a candidate, with its claims filled in (the checker decides whether they hold)."""
    frame = candidate.frame
    dims = _ordered(candidate)
    base = problem.base_elem_offset + sum(
        low * stride for (low, _), stride in zip(problem.bounds, problem.global_strides, strict=True)
    )
    # shift moves the coordinate of the origin 0 by -low, so the base stands at the first element in bounds
    tensor_map = hardware.TensorMap(
        dtype=frame.dtype,
        dims=tuple(dim.extent for dim in dims),
        strides_bytes=tuple(dim.stride_bytes for dim in dims[1:]),
        box=tuple(dim.box for dim in dims),
        element_strides=tuple(dim.element_stride for dim in dims),
        swizzle=candidate.swizzle,
        l2_promotion=l2_promotion,
        oob_fill=problem.oob_fill if problem.direction == "load" else "ZERO",
        base_address=base * problem.element_bytes,
    )
    issues = _issues(candidate, dims)
    period = max(hardware.swizzle_period_bytes(candidate.swizzle), hardware.swizzle_period_bytes(problem.swizzle))
    undocumented = tuple(
        sorted({v.rule for v in hardware.violations(tensor_map, target=problem.arch, evidence="documented")})
    )
    footprint = hardware.footprint_bytes(tensor_map)
    return TensorMapPlan(
        problem=problem,
        tensor_map=tensor_map,
        raw=hardware.encode(tensor_map, target=problem.arch),
        issues=issues,
        origin_map=tuple(_terms(candidate, dim) for dim in dims),
        expect_tx_bytes=len(issues) * hardware.transaction_bytes(tensor_map),
        smem_align_bytes=max(limits.SMEM_DESTINATION_ALIGN_BYTES, period),
        smem_bytes=max(issue.smem_offset_bytes for issue in issues) + footprint,
        oob=oob,
        undocumented=undocumented,
    )


def _ordered(candidate: Candidate) -> list[_Dim]:
    """Carried dimensions in box order; the others slipped in where they keep the strides rising."""
    frame = candidate.frame
    dims: dict[tuple[int, int], _Dim] = {}
    for index, cuts in enumerate(candidate.cuts()):
        axis = frame.axes[index]
        for cut, above in itertools.zip_longest(cuts, cuts[1:]):
            extent = -(-axis.extent // cut) if above is None else above // cut
            dims[index, cut] = _Dim(index, cut, above, axis.unit * cut * frame.element_bytes, extent, 1, 1)
    ordered: list[_Dim] = []
    for carried in candidate.carried:
        plain = dims.pop((carried.axis, carried.cut))
        step = carried.element_stride
        box = carried.extent * step if carried.extent * step <= limits.MAX_BOX else (carried.extent - 1) * step + 1
        ordered.append(_Dim(plain.axis, plain.cut, plain.above, plain.stride_bytes, plain.extent, box, step))
    for extra in sorted(dims.values(), key=lambda dim: dim.stride_bytes):
        position = next(
            (at for at in range(1, len(ordered)) if ordered[at].stride_bytes > extra.stride_bytes), len(ordered)
        )
        ordered.insert(position, extra)
    return ordered


def _terms(candidate: Candidate, dim: _Dim) -> tuple[OriginTerm, ...]:
    """The origin moves the last part of its axis; the cut divides every lattice step, so nothing carries below."""
    if dim.above is not None:
        return ()
    return tuple((tile_dim, top, bottom * dim.cut) for tile_dim, top, bottom in candidate.frame.axes[dim.axis].moves)


def _issues(candidate: Candidate, dims: list[_Dim]) -> tuple[Issue, ...]:
    """One issue per turn of all loops, the first loop fastest."""
    issues = []
    frame = candidate.frame
    for turns in itertools.product(*[loop.turns for loop in reversed(candidate.loops)]):
        x = [axis.shift for axis in frame.axes]
        offset = 0
        for loop, (step, smem) in zip(reversed(candidate.loops), turns, strict=True):
            x[loop.axis] += step
            offset += smem
        coords = tuple(
            x[dim.axis] // dim.cut if dim.above is None else x[dim.axis] // dim.cut % (dim.above // dim.cut)
            for dim in dims
        )
        issues.append(Issue(coords, offset * frame.element_bytes))
    return tuple(issues)
