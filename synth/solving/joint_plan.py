"""One shared-memory layout for a TMA copy and all its readers, with the fewest issues and bank turns.

Layouts are compared by TMA issues, then turns. ``optimal`` means that no layout of the space is better; ``proof`` says
why: ``"bound"``: no layout at all is (each copy takes one issue, each access only the turns its words need);
``"complete search"``: every cheaper order of the space was excluded. The space: orders of the tile's digits
with 16-byte chunks under a swizzle of the target (``space``); if threads write the tile, also XORs of other widths and
rows padded by up to 128 bytes. Maps and issues are those the planner can produce. Every returned layout has been
planned and counted in full, not just evaluated by the cost model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Unpack

import numpy as np

from layoutalg.cute import ComposedLayout, CuteLayout
from layoutalg.ground import clock
from layoutalg.ground.errors import BudgetError, Diagnostic, InfeasibleError, LayoutError, RepresentabilityError
from layoutalg.ground.limits import PLAN_SECONDS
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.admission import Admitted
from layoutalg.proofs.joint import JointPlan
from layoutalg.proofs.tensor import Tensor
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProblem
from layoutalg.proofs.tensormap.problem import MapOptions
from layoutalg.synth.admission.request import request_of
from layoutalg.synth.admission.wgmma import find_wgmma
from layoutalg.synth.solving.accesses import CHECK, Access
from layoutalg.synth.solving.joint_question import Asked, bound_of, questions, read, space_of
from layoutalg.synth.solving.orders import Cost, Found, Question, by_search
from layoutalg.synth.solving.space import IntArray, padded
from layoutalg.synth.tensormap import InadmissibleError, synthesize_tensormap
from layoutalg.targets.nvidia.tensormap import limits

TRIES = 12
"""Orders from the search to plan before giving up."""
COMPLETE = "complete search"


@dataclass
class _Best:
    """The best layout so far, and why others were refused."""

    plan: JointPlan | None = None
    reasons: dict[str, str] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)

    @property
    def cost(self) -> Cost | None:
        return None if self.plan is None else (self.plan.issues, self.plan.turns)


def joint(
    tile: Sequence[int],
    dtype: object = "bf16",
    consumers: Sequence[object] = ("wgmma.A",),
    target: str = "sm_90a",
    *,
    tensor: object = None,
    fill: str = "tma",
    seconds: float = PLAN_SECONDS,
    **options: Unpack[MapOptions],
) -> JointPlan:
    """Return one shared layout of a tile that serves a copy and all its readers, with a proof of optimality if found.

    Mathematically: minimise (issues, turns) lexicographically over the layouts that TMA can write and every consumer
    accepts.

    Args:
        tile: Tile extents in elements, outermost dimension first; at most two of them above 1.
        dtype: Element type.
        consumers: ``"wgmma.A"``, ``"wgmma.B"``, ``"ldmatrix.x4.trans"``, ``"stmatrix.x4"``, ``"ld.shared.v4.b32"``,
            ``"st.shared.b32"``, ``"tma.store"``; or a pair of an instruction and a linear register layout:
            (register, lane, warp) to the two tile coordinates.
        target: Architecture.
        tensor: The tensor; None for a large row-major one.
        fill: ``"tma"``: a TensorMap fills the tile; ``"threads"``: threads store it, so any XOR or padding is allowed.
        seconds: Wall-clock time limit.
        options: Those of ``TensorMapProblem.of``.

    Example:
        >>> plan = joint((128, 64), "bf16", ["wgmma.A", "ld.shared.v4.b32"])
        >>> print(plan.smem, plan.optimal, plan.proof)
        Sw<3,3,3> o 0 o (128,64):(64,1) True bound
        >>> plan = joint((64, 64), "f32", ["ld.shared.b32", "ldmatrix.x4"])
        >>> plan.issues, plan.turns, plan.optimal
        (1, 256, True)

    Source: f2 conflict ranks (arXiv 2505.23819, section 5.4); PTX ISA, matrix descriptors and tensor maps.
    """
    CHECK.options(options, MapOptions.__annotations__, joint)
    asked = read(tile, dtype, consumers, target, tensor, fill, dict(options))
    given = clock.checked_seconds(seconds, "seconds")
    best = _Best()
    with clock.within(given):
        asked_for = list(questions(asked, best.reasons))
        bound = bound_of(asked)
        for question, found in _canonical(asked_for):
            _tried(asked, question, found, "algebra", best)
            cost = best.cost
            if cost is not None and (cost == bound or cost <= (question.cost(found.digits, found.case) or bound)):
                break
        if best.plan is not None and best.cost == bound:
            return _told(best.plan, bound, "bound")
        lower, proof = _improved(asked, asked_for, best, bound)
        if not asked.copies or best.plan is None:
            _padded(asked, best)
    if best.plan is None:
        raise _none(asked, best, proof)
    reached = best.plan.issues, best.plan.turns
    if reached == bound:
        return _told(best.plan, bound, "bound")
    if lower is None or reached < lower:  # a padding beats every order, and all paddings were tried
        lower = reached if proof == COMPLETE else bound
    return _told(best.plan, lower, proof)


def _told(plan: JointPlan, lower: Cost, proof: str) -> JointPlan:
    return replace(plan, lower_bound=lower, proof=proof)


def _canonical(questions: list[Question]) -> list[tuple[Question, Found]]:
    """Return the plain orders (whole rows, rows of one span, rows of one chunk), cheapest by the model first."""
    found: list[tuple[Any, Question, Found]] = []
    for question in questions:
        inner = [digit for digit in question.free if digit[0] == question.inner]
        across = [digit for digit in question.free if digit[0] != question.inner]
        for case in question.cases:
            cuts = {len(inner), 0, min(len(inner), max(0, case.span - 4))}
            for cut in sorted(cuts, reverse=True):
                digits = (*inner[:cut], *across, *inner[cut:])
                cost = question.cost(digits, case)
                if cost is not None:
                    found.append(
                        ((cost, -case.span if question.copies else case.span, -cut), question, Found(digits, case))
                    )
    found.sort(key=lambda entry: entry[0])
    return [(question, order) for _, question, order in found]


def _tried(asked: Asked, question: Question, found: Found, engine: str, best: _Best) -> Cost | None:
    """Plan and count an order in full; keep it if it is the best. Return its cost, or None if it is refused."""
    order = question.order(found.digits, found.case)
    return _kept(asked, order.layout(asked.places, len(asked.tile)), order.table, question.inner, engine, best)


def _kept(
    asked: Asked, smem: CuteLayout | ComposedLayout, table: IntArray, inner: int, engine: str, best: _Best
) -> Cost | None:
    clock.check("the search for a joint layout")
    plans: list[Any] = []
    tables: dict[str, IntArray] = {}
    turns = 0
    for name, by in asked.moves:
        access = by[inner]
        found = access if isinstance(access, str) else access.moved(table)
        if isinstance(found, str) or isinstance(access, str):
            best.reasons.setdefault(name, str(found))
            return None
        plans.append(found)
        tables[name] = np.ascontiguousarray(table[access.rows, access.columns]).reshape(-1)
        turns += found.turns
    if best.cost is not None and (len(asked.copies), turns) >= best.cost:
        return len(asked.copies), turns
    operands: list[Any] = []
    matrix = smem if len(asked.tile) == 2 else None
    for name in asked.operands:
        held = matrix if matrix is not None else table // asked.box.element_bytes
        request = request_of(held, name, asked.target, asked.dtype.name, asked.box.extents, 1024, {})
        admitted = find_wgmma(request)
        if not isinstance(admitted, Admitted):
            if isinstance(admitted, Unknown):
                best.unknown.append(f"{name}: {admitted.reason}")
            else:
                best.reasons.setdefault(name, admitted.reasons[0])
            return None
        operands.append(admitted)
    maps: list[Any] = []
    for name in asked.copies:
        direction = "store" if name.endswith("store") else "load"
        plan = copied(asked.tensor, asked.tile, smem, asked.target, direction, **asked.options)
        if isinstance(plan, str):
            best.reasons.setdefault(name, plan)
            return None
        maps.append(plan)
    cost = sum(len(plan.issues) for plan in maps), turns
    size = max([int(table.max()) + asked.box.element_bytes, *(plan.smem_bytes for plan in maps)])
    if best.plan is None or (*cost, size) < (best.plan.issues, best.plan.turns, best.plan.bytes):
        best.plan = JointPlan(
            smem, asked.names, (*maps, *operands, *plans), *cost, size, (0, 0), "", space_of(asked), engine,
            asked.target, tables,
        )  # fmt: skip
    return cost


def copied(
    tensor: Tensor, tile: tuple[int, ...], smem: object, target: str, direction: str, **options: Unpack[MapOptions]
) -> TensorMapPlan | str:
    """Return the proved plan of a copy, or the reason why there is none."""
    left = clock.left(PLAN_SECONDS)
    try:
        problem = TensorMapProblem.of(tensor, tile, smem, arch=target, direction=direction, **options)
        return synthesize_tensormap(problem, repair=False, seconds=left)
    except InadmissibleError as error:
        return str(error.violations[0]) if error.violations else error.diagnostic.what
    except RepresentabilityError as error:
        return error.diagnostic.because or error.diagnostic.what


def _improved(asked: Asked, questions: list[Question], best: _Best, bound: Cost) -> tuple[Cost | None, str]:
    """Search for cheaper orders; return a lower bound over all orders of the space, and its proof."""
    lower: Cost | None = None
    proofs: list[str] = []
    for question in questions:
        passed: tuple[Found, ...] = ()
        while True:
            try:
                found = by_search(question, best.cost, passed)
            except BudgetError as error:
                proofs.append(f"not decided: {error.diagnostic.because}")
                lower = bound
                break
            if found is None:
                break
            seen = question.cost(found.digits, found.case)
            cost = _tried(asked, question, found, "search", best)
            if cost is None or cost != seen:
                passed = (*passed, found)
                if len(passed) > TRIES:
                    proofs.append(f"{TRIES} orders of model cost {seen} could not be realised")
                    lower = min(lower or bound, bound)
                    break
            if best.cost == bound:
                return bound, "bound"
    proof = next(iter(proofs), COMPLETE)
    if lower is None:
        lower = best.cost
    return lower, proof


def _padded(asked: Asked, best: _Best) -> None:
    """Try every padding of rows and columns up to 128 bytes, the period of the banks."""
    size = asked.box.element_bytes
    step = max(size, max((access.bits // 8 for _, by in asked.moves for access in by.values()
                          if isinstance(access, Access)), default=size)) if not asked.copies else 16  # fmt: skip
    for inner in (1, 0):
        if any(isinstance(by[inner], str) for _, by in asked.moves):
            continue
        for pad in range(step, 129, step):
            layout = padded(asked.box, inner, pad)
            table = np.asarray(layout.table(), dtype=np.int64).reshape(asked.box.extents, order="F") * size
            if int(table.max()) + size <= limits.MAX_SMEM_BYTES:
                smem = padded(asked.box, inner, pad, asked.places, len(asked.tile))
                _kept(asked, smem, table, inner, "padding", best)


def _none(asked: Asked, best: _Best, proof: str) -> LayoutError:
    what = "no shared-memory layout serves every consumer"
    where = (f"tile {list(asked.tile)} of {asked.dtype.name} for {', '.join(asked.names)} on {asked.target}",)
    reasons = "\n         ".join(f"{name}: {reason}" for name, reason in best.reasons.items())
    if best.unknown or proof != COMPLETE:
        because = "; ".join(dict.fromkeys(best.unknown)) or proof
        what = "no joint layout was found, but none was excluded either"
        return BudgetError(Diagnostic("LA872", what, where, because))
    return InfeasibleError(Diagnostic("LA871", f"{what}, among {space_of(asked)}", where, reasons))
