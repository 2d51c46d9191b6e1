"""Certificates of TensorMap plans, of problems that no TensorMap carries, and of what ``wgmma`` reads of a copy.

Kind ``tensormap-plan``, for a problem, the 128 bytes of a map, issues and moves: for all tile origins, every box
element is at the shared byte of a tile element and has its global address wherever that is in bounds; every tile
element is reached; the engine moves no out-of-bounds element at any origin (``exact``) or at those in bounds
(``weak``). Kind ``no-tensormap``, for a problem alone: no map with any number of boxes, started anywhere for each
origin, achieves even the first two.

The evidence of infeasibility is searched here, 16-byte chunk by chunk, independently of the planner. The argument is
at ``no_tensormap`` in ``layoutalg.proofs.checker``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from layoutalg.ground import clock
from layoutalg.ground.errors import AdmissibilityError, BudgetError, Diagnostic, shown
from layoutalg.ground.verdict import Proved, Refuted
from layoutalg.proofs.certify.certificate import Certificate
from layoutalg.proofs.certify.evidence import false, proved
from layoutalg.proofs.certify.operands import operand_statement
from layoutalg.proofs.certify.stages import listed
from layoutalg.proofs.fields import instance
from layoutalg.proofs.handoff import OperandView, prove_handoff
from layoutalg.proofs.tensormap.listed_problem import ListedProblem
from layoutalg.proofs.tensormap.plan import TensorMapPlan
from layoutalg.proofs.tensormap.problem import TensorMapProblem
from layoutalg.proofs.tensormap.swizzle import CHUNK_BYTES, PHASES, period_bytes, swizzled
from layoutalg.proofs.wgmma.operand import OperandPlan
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.nvidia.tensormap.limits import MAX_SMEM_BYTES

_SWIZZLES = tuple(PHASES)
_ORIGINS = 48
"""Origins in bounds that are searched for evidence."""


def plan(value: TensorMapPlan) -> Certificate:
    """Return a certificate that a plan realises its problem for every tile origin.

    The swizzled box walks of all issues are the requested map from shared bytes to global elements.

    Args:
        value: A plan of class exact or weak; the class that the problem requires is not certified.

    Raises: MalformedError: LA372. AdmissibilityError: LA430, with the first wrong fact. BudgetError: LA431: the class
        is lost, or the stand-alone checker does not decide the plan (a map coordinate moved by several tile dimensions,
        numbers beyond 48 bits).

    Example:
        >>> import layoutalg as la
        >>> made = plan(la.tensormap(((1024, 512), None, "bf16"), (64, 64), "Sw<3,3,3> o 0 o (64,64):(64,1)"))
        >>> print(made.check().certificate["claim"])
        exact: 1 boxes of 4096 elements
    """
    instance("plan", value, TensorMapPlan)
    where = (f"plan of tile {list(value.problem.tile)}",)
    because = None
    if value.oob == "lost":
        because = "its out-of-bounds class is lost"
    elif value.tensor_map.dtype != value.problem.dtype:
        because = f"its map carries {value.problem.dtype} as {value.tensor_map.dtype}"
    elif value.tensor_map.swizzle not in _SWIZZLES or value.tensor_map.interleave != "NONE":
        because = "the engine was not measured with this swizzle or interleave"
    if because is not None:
        raise BudgetError(Diagnostic("LA431", "this plan cannot be certified", where, because))
    made = Certificate("tensormap-plan", _plan_statement(value), {"map": _map(value.tensor_map)})
    verdict = made.check()
    if isinstance(verdict, Proved):
        return made
    because = str(verdict.witness["what"]) if isinstance(verdict, Refuted) else verdict.reason
    if isinstance(verdict, Refuted) and not because.startswith("certificate."):  # otherwise a number beyond 48 bits
        raise AdmissibilityError(Diagnostic("LA430", "the plan is wrong", where, because))
    raise BudgetError(Diagnostic("LA431", "this plan cannot be certified", where, because))


def no_plan(problem: TensorMapProblem) -> Certificate:
    """Return a certificate that no TensorMap carries the tile of a problem, in any out-of-bounds class.

    No map of the measured target (tiled, not interleaved, an element type that preserves the bits, the required fill)
    with any set of boxes and any start coordinates for each tile origin in bounds puts every box element at the shared
    byte of a tile element, moves that element wherever it is in bounds, and reaches every tile element. This covers the
    library's plans and those with arbitrary starts per origin.

    Args:
        problem: A problem, usually one that ``synthesize_tensormap`` refused.

    Raises: MalformedError: LA372. BudgetError: LA432: no evidence was found. There is none if only the out-of-bounds
        class, the rank, the reach of the map or the number of issues prevents a plan.

    Example:
        >>> from layoutalg.proofs.tensormap import TensorMapProblem
        >>> made = no_plan(TensorMapProblem.of(((64, 61), None, "bf16"), (8, 8)))
        >>> made.evidence, made.check().certificate["claim"]
        ({'origin': [0, 0], 'chunk': 1}, 'no box writes the chunk 1')
    """
    instance("problem", problem, TensorMapProblem)
    found = _witness(problem)
    if found is not None:
        made = Certificate("no-tensormap", {"problem": _problem(problem)}, found)
        if isinstance(made.check(), Proved):
            return made
    because = "no short certificate: no single 16-byte chunk shows it"
    where = (f"problem of tile {list(problem.tile)}",)
    raise BudgetError(Diagnostic("LA432", "cannot certify that no TensorMap carries this tile", where, because))


def handoff(copy: TensorMapPlan, view: OperandView, consumer: OperandPlan) -> Certificate:
    """Return a certificate that ``wgmma`` reads at (mn, k) the tile element (mn, k).

    Kind ``handoff``: the copy is right as in ``plan``, the descriptors are as in ``operand``, and both define the same
    function from (mn, k) to shared bytes, for all tile bases that the copy allows.

    Args:
        copy: A load plan.
        view: Which tile dimensions are MN and K.
        consumer: Descriptors for the same tile base.

    Raises: MalformedError: LA372, LA435. AdmissibilityError: LA427: the tensor cores read something else; LA430.
        BudgetError: LA428, LA431.

    Example:
        >>> from layoutalg.proofs.handoff import operand_view
        >>> import layoutalg as la
        >>> from layoutalg.synth.wgmma import synthesize_wgmma
        >>> copy = la.tensormap(((1024, 512), None, "bf16"), (64, 64), "Sw<3,3,3> o 0 o (64,64):(64,1)")
        >>> view = operand_view(copy.problem, "A", "K")
        >>> print(handoff(copy, view, synthesize_wgmma(view.problem)).check().certificate["claim"])
        exact: 1 boxes of 4096 elements; 4 descriptors read 64 x 64 elements

    See also ``layoutalg.proofs.handoff.prove_handoff``, which walks both.
    """
    where = "handoff of a copy and an operand"
    verdict = prove_handoff(copy, view, consumer)
    if isinstance(verdict, Refuted):
        raise false(where, shown(dict(verdict.witness)))
    first = plan(copy)
    statement = {
        "plan": dict(first.statement),
        "operand": operand_statement(consumer),
        "axes": [view.mn_dim, view.k_dim],
    }
    return proved("handoff", statement, [first.evidence], where)


def _problem(problem: TensorMapProblem) -> dict[str, Any]:
    """Return a problem in the checker's form."""
    columns = (problem.tile, problem.element_strides, problem.origin_multiple, problem.global_strides)
    axes = [[*numbers, *ends] for *numbers, ends in zip(*columns, problem.bounds, strict=True)]
    digits = [(e, s * problem.element_bytes) for modes in problem.smem_modes for e, s in modes if e > 1] or [(1, 0)]
    stages: list[list[Any]] = [["split", [e for e, _ in digits]], ["affine", [[s for _, s in digits]], [0]]]
    if isinstance(problem, ListedProblem):
        stages = listed(problem.addresses().reshape(-1, order="F")).stages
    bits = period_bytes(problem.swizzle).bit_length() - 1
    if bits:
        stages.append(["xor", swizzled(problem.swizzle, 1 << np.arange(bits)).tolist(), 0])
    size = 1
    for extent in problem.tile:
        size *= extent
    return {
        "axes": axes,
        "dtype": problem.dtype,
        "base_elem_offset": problem.base_elem_offset,
        "base_align_bytes": problem.base_align_bytes,
        "oob_fill": problem.oob_fill,
        "direction": problem.direction,
        "shared": {"size": size, "stages": stages},
    }


def _plan_statement(value: TensorMapPlan) -> dict[str, Any]:
    multiple = value.problem.origin_multiple
    moves = []
    for terms in value.origin_map:
        row = [0] * value.problem.rank
        for dim, numerator, denominator in terms:
            row[dim] += numerator * multiple[dim] // denominator
        moves.append(row)
    return {
        "problem": _problem(value.problem),
        "bytes": value.hex,
        "issues": [[list(issue.coords), issue.smem_offset_bytes] for issue in value.issues],
        "moves": moves,
        "expect_tx_bytes": value.expect_tx_bytes,
        "smem_align_bytes": value.smem_align_bytes,
        "smem_bytes": value.smem_bytes,
        "oob": value.oob,
    }


def _map(tensor_map: hardware.TensorMap) -> dict[str, Any]:
    strides = (0, *tensor_map.strides_bytes)
    columns = (tensor_map.dims, strides, tensor_map.box, tensor_map.element_strides)
    return {
        "base": tensor_map.base_address,
        "swizzle": _SWIZZLES.index(tensor_map.swizzle),
        "fill": int(tensor_map.oob_fill == "NAN"),
        "promotion": ("NONE", "64B", "128B", "256B").index(tensor_map.l2_promotion),
        "dims": [list(row) for row in zip(*columns, strict=True)],
    }


def _witness(problem: TensorMapProblem) -> dict[str, Any] | None:
    """Return an origin in bounds and a chunk that no box can write from there, or None."""
    size, at = problem.element_bytes, problem.addresses().reshape(-1)
    chunk, rest = at // CHUNK_BYTES, at % CHUNK_BYTES
    places, counts = np.unique(np.unique(at) // CHUNK_BYTES, return_counts=True)
    full = places[(counts * size == CHUNK_BYTES) & (places < MAX_SMEM_BYTES // CHUNK_BYTES)]
    store = problem.direction == "store"
    never = problem.base_align_bytes % CHUNK_BYTES > 0
    never |= not store and problem.oob_fill == "NAN" and problem.dtype not in hardware.FLOAT_DTYPES
    broken = ~np.isin(chunk, full)
    for origin in _origins(problem):
        clock.check("evidence that no plan exists")
        element, inside = (array.reshape(-1) for array in problem.elements(origin))
        begin = element * size - rest
        order = np.argsort(chunk[inside], kind="stable")
        ordered, first = chunk[inside][order], begin[inside][order]
        mixed = ordered[1:][(ordered[1:] == ordered[:-1]) & (first[1:] != first[:-1])]
        wrong = inside & (never | broken | (begin % CHUNK_BYTES != 0) | (begin < 0) | np.isin(chunk, mixed))
        if store:
            wrong |= inside & np.isin(chunk, chunk[~inside])
        if wrong.any():
            return {"origin": origin, "chunk": int(chunk[wrong].min())}
    return None


def _origins(problem: TensorMapProblem) -> Iterator[list[int]]:
    """Yield origins in bounds: near the ends of the bounds along each dimension."""
    axes = []
    for (low, high), step in zip(problem.bounds, problem.origin_multiple, strict=True):
        first, last = (-(-low // step), (high - 1) // step) if step else (0, 0)
        if first > last:
            return
        axes.append([u * step for u in dict.fromkeys((first, last, min(first + 1, last), max(last - 1, first)))])
    base = [axis[0] for axis in axes]
    seen: set[tuple[int, ...]] = set()
    alone = ([*base[:dim], o, *base[dim + 1 :]] for dim, axis in enumerate(axes) for o in axis)
    for origin in itertools.islice(itertools.chain(alone, itertools.product(*axes)), 4 * _ORIGINS):
        if tuple(origin) not in seen and len(seen) < _ORIGINS:
            seen.add(tuple(origin))
            yield list(origin)
