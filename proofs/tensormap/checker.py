"""Checker of TensorMap plans: proves or refutes that the issues realise the problem for every tile origin.

It decides, in this order, each with the first counterexample:
  1. the 128 bytes decode to the stated fields, the fields encode to the bytes, and the target accepts them;
  2. shared memory: the swizzled box walks of the issues hit exactly the requested addresses and reach each element;
  3. global memory: every walked element has the address of its tile element, at the origin 0 by table and along each
     step of the origin lattice by linearity, hence at every origin;
  4. bounds: the engine's in-bounds test equals the problem's always (exact), for all origins in bounds (weak), or not
     (lost);
  5. reach: the map covers no byte outside the tensor, and every origin in bounds has 32-bit start coordinates, for a
     store nonnegative ones (the device faults otherwise); ``TensorMapPlan.coordinates`` refuses origins without;
  6. the plan's numbers (transaction bytes, alignment, footprint, class, rules) equal the ones recomputed here.

The checker shares no algorithm with the finder, only the tables of ``targets``. Bytes and acceptance are decided twice,
by ``decode`` and ``violations`` and by ``proofs.tensormap.driver``, which no finder calls; see ``docs/checkers.md``.
"""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from layoutalg.ground import clock
from layoutalg.ground.errors import BudgetError, LayoutError
from layoutalg.ground.verdict import Proved, Refuted, Unknown, Verdict
from layoutalg.proofs.fields import instance, wrong_certificate
from layoutalg.proofs.tensormap import driver
from layoutalg.proofs.tensormap.bounds import Boxes, classify_bounds, requested_boxes
from layoutalg.proofs.tensormap.plan import OOB_CLASSES, TensorMapPlan, tensor_map_to_json
from layoutalg.proofs.tensormap.presburger import sampled_origins
from layoutalg.proofs.tensormap.swizzle import period_bytes
from layoutalg.proofs.tensormap.walk import (
    ADDRESS_LIMIT,
    SLICES,
    MismatchError,
    UndecidedError,
    Walk,
    coefficients,
    first,
    promotion,
    walk,
)
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.nvidia.tensormap import limits

SCHEMA = "layoutalg/certificate/1"
CLAIMS = {
    "load": "requested shared-memory image = box walk then XOR, for every tile origin of the lattice"
    " that starts within 32 bits",
    "store": "requested global elements = box walk then XOR, for every tile origin of the lattice"
    " that starts at coordinates of 0 to 2^31 - 1",
}
WEAKER = "out-of-bounds class weaker than required"
"""What refutes a plan that is right in all but the required class."""
Interval = tuple[int, int]


def check(plan: TensorMapPlan) -> Verdict:
    """Decide whether a plan realises its problem.

    Args:
        plan: A plan from the finder, or read by ``TensorMapPlan.from_json``.

    Returns:
        ``Proved`` with the certificate (claim, out-of-bounds class, engine, counts, digest of the plan), ``Refuted``
        with the first counterexample (for addresses: tile coordinate, origin, expected and got), or ``Unknown`` with
        what was tried, also on exceeding the time (``clock.within``) or memory limit.
    """
    instance("plan", plan, TensorMapPlan)
    try:
        certificate = _certify(plan)
        differs = wrong_certificate(plan.certificate, certificate)
        if differs is not None:
            raise MismatchError("wrong certificate", **differs)
    except MismatchError as mismatch:
        return Refuted("checker", mismatch.witness)
    except UndecidedError as undecided:
        return _open(plan, str(undecided))
    except BudgetError as spent:
        return _open(plan, spent.diagnostic.because)
    return Proved(str(certificate["engine"]), certificate)


def proved(plan: TensorMapPlan) -> tuple[TensorMapPlan, Verdict]:
    """Check a plan; return it with the out-of-bounds class that the checker finds and, if proved, its certificate."""
    verdict = check(plan)
    if isinstance(verdict, Refuted) and verdict.witness.get("field") == "oob":
        plan = plan.with_changes(oob=verdict.witness["expected"])
        verdict = check(plan)
    return (plan.with_changes(certificate=verdict.certificate) if isinstance(verdict, Proved) else plan), verdict


def _open(plan: TensorMapPlan, because: str) -> Verdict:
    """Return ``Unknown``, or ``Refuted`` if the attached certificate is for another plan."""
    held = plan.certificate and plan.certificate.get("digest")
    if held and held != plan.digest():
        witness = {"what": "wrong certificate", "field": "digest", "expected": plan.digest(), "got": held}
        return Refuted("checker", witness)
    return Unknown(because, ("intervals", "isl"))


def _certify(plan: TensorMapPlan) -> dict[str, object]:
    _check_bytes(plan)
    undocumented = _check_rules(plan)
    walked, oob, engine = _decide(plan)
    _check_claims(plan, walked, oob, undocumented)
    certificate: dict[str, object] = {
        "schema": SCHEMA,
        "claim": CLAIMS[plan.direction],
        "oob": oob,
        "engine": engine,
        "elements": math.prod(plan.problem.tile),
        "walked": walked.coords[0].size,
        "origin_multiple": list(plan.problem.origin_multiple),
        "digest": plan.digest(),
    }
    if engine == "isl" and oob != "lost":  # ISL's class was also confirmed on samples
        certificate["sampled_origins"] = sampled_origins(walked)
    return certificate


def _decide(plan: TensorMapPlan) -> tuple[Walk, str, str]:
    _check_issues(plan)
    walked = walk(plan)
    clock.check("the proof of a plan")
    moves = coefficients(plan)
    boxes = requested_boxes(plan, walked)
    _check_global_addresses(plan, walked, moves, boxes)
    _check_inner_alignment(plan, moves)
    _check_starts(plan, moves)
    oob, engine = classify_bounds(plan, walked, moves, boxes)
    _check_reach(plan)
    if plan.direction == "store":
        _check_store(plan, oob)
    return walked, oob, engine


def _check_bytes(plan: TensorMapPlan) -> None:
    """Check that bytes and fields agree."""
    target = plan.problem.arch
    try:
        decoded = hardware.decode(plan.raw, target=target)
    except LayoutError as error:
        reason = error.diagnostic.because
        raise MismatchError("the 128 bytes are not a descriptor", hex=plan.hex, reason=reason) from None
    if decoded != plan.tensor_map:
        mine, stated = tensor_map_to_json(decoded), tensor_map_to_json(plan.tensor_map)
        field = next(key for key in stated if stated[key] != mine[key])
        raise MismatchError(
            "bytes and fields differ",
            field=field,
            expected=stated[field],
            got=mine[field],
            first_wrong_element=_first_wrong_element(plan, decoded),
        )
    again = driver.encoded(plan.tensor_map)
    if again != plan.raw:
        raise MismatchError("the fields encode to other bytes", expected=again.hex(), got=plan.hex)


def _first_wrong_element(plan: TensorMapPlan, decoded: hardware.TensorMap) -> object:
    """Return what the bytes move wrongly; None if the differing field does not affect the data."""
    try:
        _decide(plan.with_changes(tensor_map=decoded))
    except MismatchError as mismatch:
        return mismatch.witness
    except UndecidedError as undecided:
        return str(undecided)
    except LayoutError as error:  # a map of another rank
        return error.diagnostic.because
    return None


def _check_rules(plan: TensorMapPlan) -> tuple[str, ...]:
    """Check that the target accepts the map; return the documented rules that it breaks."""
    target, tm = plan.problem.arch, plan.tensor_map
    documented = hardware.violations(tm, target=target, evidence="documented")
    if not hardware.is_measured(target):
        raise MismatchError("no device of this architecture was measured", field="arch", got=target)
    refused = hardware.violations(tm, target=target, evidence="enforced")
    if refused:
        raise MismatchError("the target refuses the map", rule=refused[0].rule, reason=refused[0].message)
    if not driver.accepted(tm):
        raise MismatchError("the target refuses the map", rule="driver", reason="the second reading of the rules does")
    if plan.direction == "load" and tm.oob_fill != plan.problem.oob_fill:
        raise MismatchError("wrong fill", field="oob_fill", expected=plan.problem.oob_fill, got=tm.oob_fill)
    return tuple(sorted({violation.rule for violation in documented}))


def _check_issues(plan: TensorMapPlan) -> None:
    """Check the alignment of the shared-memory destinations."""
    for index, issue in enumerate(plan.issues):
        if issue.smem_offset_bytes < 0 or issue.smem_offset_bytes % limits.SMEM_DESTINATION_ALIGN_BYTES:
            raise MismatchError(
                "a shared-memory address is not aligned",
                issue=index,
                smem_offset_bytes=issue.smem_offset_bytes,
                expected=f"multiple of {limits.SMEM_DESTINATION_ALIGN_BYTES}",
            )


def _check_global_addresses(plan: TensorMapPlan, walked: Walk, moves: list[dict[int, int]], boxes: Boxes) -> None:
    """Check the global byte address of every walked element at every origin where it is in bounds.

    The difference from the requested address is affine in the lattice point, and the in-bounds points form a box: it is
    0 on the box iff it is 0 at one corner and constant along every side of more than one point.
    """
    problem = plan.problem
    size = problem.element_bytes
    reach = sum(int(np.abs(axis).max()) * step for axis, step in zip(walked.coords, walked.steps_bytes, strict=True))
    wanted_reach = sum(
        (tile - 1) * step * abs(stride) * size
        for tile, step, stride in zip(problem.tile, problem.element_strides, problem.global_strides, strict=True)
    )
    if max(reach, wanted_reach) + plan.tensor_map.base_address + problem.base_elem_offset * size >= ADDRESS_LIMIT:
        raise MismatchError("addresses exceed 62 bits", reach_bytes=max(reach, wanted_reach))
    got = np.full(walked.coords[0].size, plan.tensor_map.base_address, dtype=np.int64)
    for axis, step in zip(walked.coords, walked.steps_bytes, strict=True):
        got += axis * step
    expected = np.full(got.size, problem.base_elem_offset * size, dtype=np.int64)
    for dim, axis in enumerate(walked.tile_coords):
        expected += axis * (problem.element_strides[dim] * problem.global_strides[dim] * size)
    wrong: npt.NDArray[np.bool_] = np.zeros(got.size, dtype=np.bool_)
    difference: npt.NDArray[Any] = got - expected
    some = ~boxes.empty()
    for dim, low in boxes.low.items():
        slope = sum(row.get(dim, 0) * step for row, step in zip(moves, walked.steps_bytes, strict=True))
        slope -= problem.origin_multiple[dim] * problem.global_strides[dim] * size
        if slope:  # varies along this side, so at most one point is right
            wrong |= low < boxes.high[dim]
            corner = np.where(some, low, 0)
            if abs(slope) * max(abs(int(corner.min())), abs(int(corner.max()))) >= ADDRESS_LIMIT:
                corner = corner.astype(object)
            difference = difference + slope * corner
    row = first(some & (wrong | (difference != 0).astype(np.bool_)))
    if row is not None:
        _report_address(plan, walked, moves, row, boxes)


def _report_address(plan: TensorMapPlan, walked: Walk, moves: list[dict[int, int]], row: int, boxes: Boxes) -> NoReturn:
    """Refute with an element and an origin, as near 0 as possible, at which its address is wrong."""
    problem = plan.problem
    box = {dim: (int(boxes.low[dim][row]), int(boxes.high[dim][row])) for dim in boxes.low}
    near = [0] * problem.rank
    for dim, (low, high) in box.items():
        near[dim] = min(max(0, low), high)
    points = [near]
    for dim, (_, high) in box.items():
        points.append([*near[:dim], near[dim] + (1 if near[dim] < high else -1), *near[dim + 1 :]])
    for u in points:
        if not all(low <= u[dim] <= high for dim, (low, high) in box.items()):
            continue
        origin = [value * step for value, step in zip(u, problem.origin_multiple, strict=True)]
        x = [o + t * step for o, t, step in zip(origin, walked.tile_at(row), problem.element_strides, strict=True)]
        element = problem.base_elem_offset + sum(a * b for a, b in zip(x, problem.global_strides, strict=True))
        got = plan.tensor_map.base_address
        for axis, terms, step in zip(walked.coords, moves, walked.steps_bytes, strict=True):
            got += (int(axis[row]) + sum(coefficient * u[dim] for dim, coefficient in terms.items())) * step
        if got != element * problem.element_bytes:
            raise MismatchError(
                "wrong global element",
                tile=walked.tile_at(row),
                origin=origin,
                expected_byte=element * problem.element_bytes,
                got_byte=got,
            )
    raise UndecidedError("a counterexample failed re-evaluation")


def _check_inner_alignment(plan: TensorMapPlan, moves: list[dict[int, int]]) -> None:
    """Check that inner start coordinates are multiples of 16 bytes; slices always are, others raise a device fault."""
    if plan.tensor_map.interleave != "NONE":
        return
    size = hardware.element_bytes(plan.tensor_map.dtype)
    for index, issue in enumerate(plan.issues):
        if issue.coords[0] * size % 16:
            raise MismatchError("inner start coordinate off 16 bytes", issue=index, coords=list(issue.coords))
    for dim, step in moves[0].items():
        if step * plan.problem.element_bytes % 16:
            origin = [0] * plan.problem.rank
            origin[dim] = plan.problem.origin_multiple[dim]
            raise MismatchError("inner start coordinate off 16 bytes", origin=origin)


def _origins(plan: TensorMapPlan) -> list[Interval]:
    """Return, per tile dimension, the lattice points with origin in bounds; if none, those whose tile overlaps.

    These are the origins that every plan must be able to start at.
    """
    problem = plan.problem
    answer: list[Interval] = []
    for dim, ((low, high), step) in enumerate(zip(problem.bounds, problem.origin_multiple, strict=True)):
        if step == 0:
            answer.append((0, 0))
            continue
        first, last = -(-low // step), (high - 1) // step
        if first > last:
            first = -(-(low - problem.element_strides[dim] * (problem.tile[dim] - 1)) // step)
        answer.append((first, last) if first <= last else (0, 0))
    return answer


def _check_starts(plan: TensorMapPlan, moves: list[dict[int, int]]) -> None:
    """Check that origins in bounds have 32-bit start coordinates, for stores nonnegative ones."""
    ratio = promotion(plan)
    origins = _origins(plan)
    floor = 0 if plan.direction == "store" else -(2**31)
    for j, terms in enumerate(moves[-len(plan.tensor_map.dims) :]):
        scale = ratio if j == 0 else 1
        stated = [issue.coords[j] for issue in plan.issues]
        for extreme in (min, max):
            u = [0] * plan.problem.rank
            for dim, step in terms.items():
                u[dim] = extreme(origins[dim], key=lambda point, step=step: point * step)  # type: ignore[misc]
            start = extreme(stated) + sum(step * u[dim] for dim, step in terms.items()) // scale
            if floor <= start < 2**31:
                continue
            store = plan.direction == "store" and start < 0
            raise MismatchError(
                "a store faults on a negative start coordinate" if store else "a start coordinate exceeds 32 bits",
                origin=[value * step for value, step in zip(u, plan.problem.origin_multiple, strict=True)],
                issue=stated.index(extreme(stated)),
                map_dim=j,
                coordinate=start,
            )


def _check_reach(plan: TensorMapPlan) -> None:
    """Check that the map covers no byte outside the tensor; negative strides extend it below the first element."""
    tm = plan.tensor_map
    last = tm.base_address + tm.dims[0] * SLICES.get(tm.interleave, hardware.element_bytes(tm.dtype))
    last += sum((extent - 1) * stride for extent, stride in zip(tm.dims[1:], tm.strides_bytes, strict=True))
    first, end = plan.problem.byte_span()
    if tm.base_address < first:
        raise MismatchError(
            "the map reaches before the tensor", expected_first_byte=first, got_first_byte=tm.base_address
        )
    if last > end:
        raise MismatchError("the map reaches past the tensor", expected_end_byte=end, got_end_byte=last)
    if max(tm.dims) > limits.MAX_DIM:
        raise MismatchError(
            "the engine faults on extents this large", field="dims", got=list(tm.dims), limit=limits.MAX_DIM
        )


def _check_store(plan: TensorMapPlan, oob: str) -> None:
    """Check that a store writes each global element once and nothing out of bounds."""
    if oob == "lost":
        raise MismatchError("a tile over the edge would write foreign elements", oob=oob)
    problem = plan.problem
    relative = np.zeros((1,) * problem.rank, dtype=np.int64)
    for dim, extent in enumerate(problem.tile):
        low, high = problem.bounds[dim]
        shape = [1] * problem.rank
        # two elements in bounds differ by less than the bounds along every dimension
        shape[dim] = min(extent, -(-(high - low) // problem.element_strides[dim]))
        step = problem.element_strides[dim] * problem.global_strides[dim]
        relative = relative + (np.arange(shape[dim], dtype=np.int64) * step).reshape(shape)
    ordered = np.sort(relative, axis=None)
    if bool((ordered[1:] == ordered[:-1]).any()):
        raise MismatchError("two tile elements are stored to one global address", tile_elements=relative.size)
    tm = plan.tensor_map  # slices are whole chunks
    inner_bytes = tm.dims[0] * SLICES.get(tm.interleave, hardware.element_bytes(tm.dtype))
    if inner_bytes % limits.STORE_CHUNK_BYTES:
        raise MismatchError(
            "a store writes whole chunks; the last one would cross the inner bound",
            rule="STORE_CHUNK",
            inner_bytes=inner_bytes,
            chunk_bytes=limits.STORE_CHUNK_BYTES,
        )


def _check_claims(plan: TensorMapPlan, walked: Walk, oob: str, undocumented: tuple[str, ...]) -> None:
    """Check the plan's numbers against those recomputed from the walk."""
    align = max(
        limits.SMEM_DESTINATION_ALIGN_BYTES, period_bytes(plan.tensor_map.swizzle), period_bytes(plan.problem.swizzle)
    )
    claims: tuple[tuple[str, object, object], ...] = (
        ("expect_tx_bytes", walked.addresses.size * plan.problem.element_bytes, plan.expect_tx_bytes),
        ("smem_align_bytes", align, plan.smem_align_bytes),
        ("smem_bytes", walked.footprint_bytes, plan.smem_bytes),
        ("oob", oob, plan.oob),
        ("undocumented", undocumented, plan.undocumented),
    )
    for field, expected, got in claims:
        if expected != got:
            raise MismatchError("wrong claim", field=field, expected=expected, got=got)
    if plan.direction == "load" and plan.expect_tx_bytes > limits.MAX_PHASE_BYTES:
        raise MismatchError("more bytes than a barrier counts", bytes=plan.expect_tx_bytes, most=limits.MAX_PHASE_BYTES)
    if OOB_CLASSES.index(oob) > OOB_CLASSES.index(plan.problem.oob_required):
        raise MismatchError(WEAKER, expected=plan.problem.oob_required, got=oob)
