"""Assemble a plan from a box and loops: ordered map dimensions, start coordinates, origin terms, descriptor bytes."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from layoutalg.proofs.tensormap.plan import Issue, OriginTerm, TensorMapPlan
from layoutalg.proofs.tensormap.problem import TensorMapProblem
from layoutalg.synth.tensormap.lines import Line
from layoutalg.synth.tensormap.search import Candidate
from layoutalg.synth.tensormap.views import View
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


def assemble(
    stated: TensorMapProblem, problem: TensorMapProblem, candidate: Candidate, l2_promotion: str = "128B"
) -> TensorMapPlan:
    """Return the plan of a candidate with its claims, which the checker must still verify.

    Args:
        stated: The problem that the plan solves.
        problem: The variant of it that the candidate solves.
        candidate: Box and loops.
        l2_promotion: The map's L2 promotion.
    """
    dims = _ordered(candidate)
    base = problem.base_elem_offset + sum(
        low * stride for (low, _), stride in zip(problem.bounds, problem.global_strides, strict=True)
    )
    # shift moves the coordinate of origin 0 by -low, so the base is the first element in bounds
    tensor_map = hardware.TensorMap(
        dtype=problem.dtype,
        dims=tuple(dim.extent for dim in dims),
        strides_bytes=tuple(dim.stride_bytes for dim in dims[1:]),
        box=tuple(dim.box for dim in dims),
        element_strides=tuple(dim.element_stride for dim in dims),
        swizzle=candidate.swizzle,
        l2_promotion=l2_promotion,
        oob_fill=problem.oob_fill if problem.direction == "load" else "ZERO",
        base_address=base * problem.element_bytes,
    )
    terms = tuple(_terms(stated, problem, candidate, dim) for dim in dims)
    return filled_in(stated, tensor_map, _issues(candidate, dims), terms, "exact")


def assemble_view(stated: TensorMapProblem, view: View, l2_promotion: str = "128B") -> TensorMapPlan:
    """Return the plan of a view with its claims, which the checker must still verify."""
    problem = view.problem
    order = _rising(view.lines, len(view.box.rows))
    lines = [view.lines[at] for at in order]
    ratio = view.ratio
    tensor_map = hardware.TensorMap(
        dtype=problem.dtype if ratio == 1 else {2: "u16", 4: "u32", 8: "u64"}[problem.element_bytes * ratio],
        dims=(view.extents[0] // ratio, *(view.extents[at] for at in order[1:])),
        strides_bytes=tuple(line.stride_bytes for line in lines[1:]),
        box=(lines[0].box // ratio, *(_box(line.box, line.element_stride) for line in lines[1:])),
        element_strides=tuple(line.element_stride for line in lines),
        swizzle=problem.swizzle,
        l2_promotion=l2_promotion,
        oob_fill=problem.oob_fill if problem.direction == "load" else "ZERO",
        base_address=view.base_bytes,
    )
    terms = []
    for position, at in enumerate(order):
        whole = 1 if position else ratio
        row = []
        for dim, slope in sorted(view.slopes[at].items()):
            bottom = stated.origin_multiple[dim] * whole
            common = math.gcd(slope, bottom)
            row.append((dim, slope // common, bottom // common))
        terms.append(tuple(row))
    return filled_in(stated, tensor_map, _view_issues(view, order), tuple(terms), view.oob)


def filled_in(
    problem: TensorMapProblem,
    tensor_map: hardware.TensorMap,
    issues: tuple[Issue, ...],
    origin_map: tuple[tuple[OriginTerm, ...], ...],
    oob: str,
) -> TensorMapPlan:
    """Fill in what follows from the map and its issues."""
    undocumented = tuple(
        sorted({v.rule for v in hardware.violations(tensor_map, target=problem.arch, evidence="documented")})
    )
    footprint = hardware.footprint_bytes(tensor_map)
    return TensorMapPlan(
        problem=problem,
        tensor_map=tensor_map,
        raw=hardware.encode(tensor_map, target=problem.arch),
        issues=issues,
        origin_map=origin_map,
        expect_tx_bytes=len(issues) * hardware.transaction_bytes(tensor_map),
        smem_align_bytes=max(map(hardware.tile_align_bytes, (tensor_map.swizzle, problem.swizzle))),
        smem_bytes=max(issue.smem_offset_bytes for issue in issues) + footprint,
        oob=oob,
        undocumented=undocumented,
    )


def _box(count: int, step: int) -> int:
    """Box extent of which an element stride of ``step`` picks ``count`` elements."""
    return count * step if count * step <= limits.MAX_BOX else (count - 1) * step + 1


def _rising(lines: tuple[Line, ...], rows: int) -> list[int]:
    """Order of the map's dimensions: rows of the box unchanged, the others inserted by rising stride."""
    order = list(range(rows))
    for extra in sorted(range(rows, len(lines)), key=lambda at: lines[at].stride_bytes):
        stride = lines[extra].stride_bytes
        place = next((i for i in range(1, len(order)) if lines[order[i]].stride_bytes > stride), len(order))
        order.insert(place, extra)
    return order


def _view_issues(view: View, order: list[int]) -> tuple[Issue, ...]:
    """One issue per iteration of all loops, the first loop fastest."""
    atoms = view.box.atoms
    turned = [(index, tuple(range(atoms[index].extent))) for index in view.box.loops]
    if len(view.box.starts) > 1:
        turned.insert(0, (view.box.rows[-1].atoms[-1], view.box.starts))
    issues = []
    for turns in itertools.product(*[counts for _, counts in reversed(turned)]):
        coords, offset = list(view.starts), 0
        for (index, _), turn in zip(reversed(turned), turns, strict=True):
            offset += turn * atoms[index].stride
            for at, factors in enumerate(view.factors):
                coords[at] += turn * factors.get(index, 0)
        coords[0] //= view.ratio
        issues.append(Issue(tuple(coords[at] for at in order), offset * view.problem.element_bytes))
    return tuple(issues)


def _ordered(candidate: Candidate) -> list[_Dim]:
    """Carried dimensions in box order, the others inserted by rising stride."""
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
        box = _box(carried.extent, step)
        ordered.append(_Dim(plain.axis, plain.cut, plain.above, plain.stride_bytes, plain.extent, box, step))
    for extra in sorted(dims.values(), key=lambda dim: dim.stride_bytes):
        position = next(
            (at for at in range(1, len(ordered)) if ordered[at].stride_bytes > extra.stride_bytes), len(ordered)
        )
        ordered.insert(position, extra)
    return ordered


def _terms(
    stated: TensorMapProblem, problem: TensorMapProblem, candidate: Candidate, dim: _Dim
) -> tuple[OriginTerm, ...]:
    """The origin moves the last part of its axis; the cut divides every lattice step, so nothing carries."""
    if dim.above is not None:
        return ()
    terms = []
    for at, top, bottom in candidate.frame.axes[dim.axis].moves:
        mine, theirs = problem.origin_multiple[at], stated.origin_multiple[at]  # the lattice step in each
        common = math.gcd(mine, theirs)
        terms.append((at, top * mine // common, bottom * dim.cut * theirs // common))
    return tuple(terms)


def _issues(candidate: Candidate, dims: list[_Dim]) -> tuple[Issue, ...]:
    """One issue per iteration of all loops, the first loop fastest."""
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
