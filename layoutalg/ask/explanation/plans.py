"""Facts of problems, plans and tensors: a plan is checked before anything is said about it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from layoutalg.ask.explanation.descriptors import bytes_facts
from layoutalg.ask.facts import Fact, said, symbolic_facts
from layoutalg.cute.symbolic import SymbolicLayout
from layoutalg.ground import clock
from layoutalg.ground.errors import LayoutError
from layoutalg.ground.limits import PLAN_SECONDS
from layoutalg.ground.polynomial import product_of
from layoutalg.ground.polynomial_text import polynomial
from layoutalg.proofs import tensormap as tensormaps
from layoutalg.proofs import wgmma as operands
from layoutalg.proofs.tensor import Tensor, size_text
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProbe, TensorMapProblem
from layoutalg.synth import InadmissibleError
from layoutalg.synth.tensormap.probe import plan_or_probe
from layoutalg.synth.wgmma import InadmissibleOperandError, OperandPlan, OperandProblem, synthesize_wgmma
from layoutalg.targets.nvidia.tensormap import element_bytes


def problem_facts(problem: TensorMapProblem | OperandProblem, _target: str) -> Iterator[Fact]:
    """Yield the plan of a problem, or why there is none."""
    try:
        if isinstance(problem, TensorMapProblem):
            plan: Any = plan_or_probe(problem, seconds=clock.left(PLAN_SECONDS))
        else:
            plan = synthesize_wgmma(problem)
    except (InadmissibleError, InadmissibleOperandError) as error:
        repairs = [repair.to_json() for repair in error.diagnostic.repairs]
        data = {"because": error.diagnostic.because.split("\n"), "repairs": repairs}
        yield said("inadmissible", str(error), data, holds=False)
        return
    yield from probe_facts(plan, problem.arch) if isinstance(plan, TensorMapProbe) else _told(plan)


def probe_facts(probe: TensorMapProbe, _target: str) -> Iterator[Fact]:
    """Yield the plan that a device has to confirm, and what is proved of it for the target that was measured."""
    yield said("probe", str(probe), probe.to_json())
    verdict = tensormaps.check(probe.plan)
    yield said(f"check on {probe.plan.problem.arch}", str(verdict), holds=bool(verdict))


def _told(plan: TensorMapPlan | OperandPlan) -> Iterator[Fact]:
    yield said("plan", str(plan), plan.to_json())
    if isinstance(plan, TensorMapPlan) and plan.road:
        yield said("road", plan.road)


def plan_facts(plan: TensorMapPlan | OperandPlan, target: str) -> Iterator[Fact]:
    """Yield the verdict of the checker, then the plan if that is proved."""
    verdict = str(tensormaps.check(plan) if isinstance(plan, TensorMapPlan) else operands.check(plan))
    proved = verdict.startswith("proved")
    yield said("check", verdict, verdict.split("\n")[0].split()[0], holds=proved)
    if proved:
        yield from _told(plan)
    if isinstance(plan, TensorMapPlan):
        yield from bytes_facts(bytes.fromhex(plan.hex), target)


def tensor_facts(tensor: Tensor, target: str) -> Iterator[Fact]:
    """Yield the pitches of a tensor, and the plan of a tile of it or what divides its offsets at all sizes."""
    yield said("tensor", str(tensor))
    size = element_bytes(tensor.dtype)
    if tensor.names:
        yield said("names", ", ".join(tensor.names), list(tensor.names))
        pitches = [str(size_text(product_of([polynomial(stride), polynomial(size)]))) for stride in tensor.strides]
        yield said("pitches", f"[{', '.join(pitches)}] bytes", pitches)
        with contextlib.suppress(LayoutError):  # an extent may be below 1 at all sizes
            offsets = SymbolicLayout(tensor.shape, tensor.strides, tensor.assumptions)
            yield from (fact for fact in symbolic_facts(offsets) if fact.name != "normal form")
        yield said("TMA", "layoutalg.tensormap plans for all sizes at once; the plan's guard says which")
        return
    yield said("pitches", f"{[stride * size for stride in tensor.strides]} bytes")
    tile = tuple(min(extent, 64) if place >= len(tensor.shape) - 2 else 1 for place, extent in enumerate(tensor.shape))
    yield said("assumed", f"a tile of {list(tile)}, row-major in shared memory", {"tile": list(tile)})
    try:
        problem = TensorMapProblem.of(tensor, tile, None, arch=target)
        plan = plan_or_probe(problem, repair=False, seconds=clock.left(PLAN_SECONDS))
    except InadmissibleError as error:
        violations = [violation.to_json() for violation in error.violations]
        yield said(
            "TMA", [str(each) for each in error.violations], {"verdict": "inadmissible", "violations": violations}
        )
        return
    answer = plan.to_json()
    yield said("TMA", str(plan), {"verdict": answer["verdict"], "plan": answer})
