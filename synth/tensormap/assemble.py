"""Assemble a plan from a box and loops: ordered map dimensions, start coordinates, origin terms, descriptor bytes."""

from __future__ import annotations

import itertools
import math

from layoutalg.proofs.tensormap.plan import Issue, OriginTerm, TensorMapPlan
from layoutalg.proofs.tensormap.problem import TensorMapProblem
from layoutalg.synth.tensormap.lines import Line
from layoutalg.synth.tensormap.views import View
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.nvidia.tensormap import limits


def assemble(stated: TensorMapProblem, view: View) -> TensorMapPlan:
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
        l2_promotion="128B",
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
