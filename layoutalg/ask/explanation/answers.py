"""Facts of answers about banks, sectors, swizzles, paddings, conversions, gathers and kernels.

Implementation notes: plans are recounted or rerun before anything is said; a bank report is itself the count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from layoutalg.ask.facts import Fact, said
from layoutalg.draw.registers import steps_text
from layoutalg.ground.errors import MalformedError
from layoutalg.proofs.conversion import ConversionPlan
from layoutalg.proofs.gather import GatherPlan
from layoutalg.proofs.padding import PaddingPlan
from layoutalg.proofs.swizzling import SwizzlePlan
from layoutalg.proofs.universal import ClassPlan

if TYPE_CHECKING:
    from layoutalg.ask.bank_turns import BankReport
    from layoutalg.ask.global_sectors import TransactionReport
    from layoutalg.codegen.kernels import ArrayKernel


def bank_facts(report: BankReport, _target: str) -> Iterator[Fact]:
    """Yield the turns of an access, its worst phase and its cure."""
    head, *_ = str(report).splitlines()
    yield said("banks", head, {"turns": report.turns, "ideal": report.ideal, "conflict_free": report.conflict_free})
    if not report.conflict_free:
        yield said("worst", str(report.worst), report.worst.to_json())
        if (cure := report.cure) is not None:
            yield said("cure", f"{cure}: free of bank conflicts", str(cure))
    if report.assumed:
        yield said("note", report.assumed)
    yield said("why", report.why)
    yield said("words per bank", report.map_text.splitlines()[1:])


def transaction_facts(report: TransactionReport, _target: str) -> Iterator[Fact]:
    """Yield the sectors and lines of an access, and registers that touch fewer."""
    head, *_ = str(report).splitlines()
    counts = {"sectors": report.sectors, "lines": report.lines, "ideal": report.ideal, "coalesced": report.coalesced}
    yield said("transactions", head, counts)
    yield said("why", report.why)
    if (after := report.after) is not None:
        better = {"registers": str(report.better), "sectors": after.sectors}
        yield said("better", f"{report.better}: {after.sectors:,} sectors", better)
    for note in report.notes:
        yield said("note", note)
    yield said("sizes", f"{report.sector_bytes} and {report.line_bytes} bytes: {'; '.join(report.sources)}")


def array_kernel_facts(made: ArrayKernel, _target: str) -> Iterator[Fact]:
    """Yield the launch, the arguments and the traffic of a kernel."""
    kernel, launch, *shared = (line.split(maxsplit=1)[1] for line in str(made).splitlines())
    yield said("kernel", kernel)
    yield said("launch", launch, {"blocks": made.blocks, "threads": made.kernel.threads})
    yield said("moves", f"at least {made.moved_bytes} bytes", {"bytes": made.moved_bytes})
    for argument in made.arrays:
        extents = " x ".join(map(str, argument.shape))
        does = "written" if argument.written else "read"
        text = f"{extents} elements of {argument.element_bytes} bytes, {argument.align_bytes}-byte aligned, {does}"
        yield said(argument.name, text)
    if shared:
        yield said("shared", shared)
    if made.swizzle is not None:
        yield said("swizzle", made.swizzle.cute or str(made.swizzle.smem))


def checked_facts(plan: Any, _target: str) -> Iterator[Fact]:
    """Yield the verdict of a plan's own check, then the plan if it holds."""
    by, told = _CHECKED[type(plan)]
    try:
        plan.check()
    except MalformedError as error:
        because = error.diagnostic.because or error.diagnostic.what
        yield said("check", f"refuted: {because}", {"verdict": "refuted", "because": because}, holds=False)
        return
    yield said("check", f"holds: {by}", {"verdict": "holds", "by": by})
    yield from told(plan)


def _of_served(plan: SwizzlePlan | PaddingPlan | ClassPlan) -> Iterator[Fact]:
    for line in str(plan).splitlines():
        name, _, words = line.partition("  ")
        yield said(name.strip(), words.strip())
    if isinstance(plan, SwizzlePlan):
        yield said("why", plan.why)
        yield said("over F2", str(plan.smem))
    served = plan.plan.served if isinstance(plan, ClassPlan) else plan.served
    targets = list(dict.fromkeys(each.target for each in served))
    yield said("targets", ", ".join(targets), targets)


def _of_conversion(plan: ConversionPlan) -> Iterator[Fact]:
    head, first, second, *_ = (line.split(maxsplit=1)[1] for line in str(plan).splitlines())
    yield said("conversion", head, {"mechanism": plan.mechanism, "cost": plan.cost.to_json(), "least": plan.least})
    yield said("from", first, plan.source.to_json())
    yield said("to", second, plan.destination.to_json())
    if movement := plan.movement:
        yield said("moves", movement)
    steps = steps_text(plan)
    yield said("steps", list(steps) or "none: the layouts are equal", list(steps))
    yield from _choice(plan)


def _choice(plan: ConversionPlan | GatherPlan) -> Iterator[Fact]:
    yield said("why", plan.why)
    if plan.excess:
        yield said("spills", plan.excess)
    others = [each for each in plan.alternatives if each.mechanism != plan.mechanism]
    if others:
        yield said("others", [" ".join(str(each).split()) for each in others], [each.to_json() for each in others])


def _of_gather(plan: GatherPlan) -> Iterator[Fact]:
    head, first, second, along, *_ = (line.split(maxsplit=1)[1] for line in str(plan).splitlines())
    yield said("gather", head, {"mechanism": plan.mechanism, "cost": plan.cost.to_json()})
    yield said("from", first, plan.source.to_json())
    yield said("indices", second, plan.index.to_json())
    yield said("along", along, {"axis": plan.axis, "extent": plan.extent, "count": plan.count})
    if plan.stage is not None:
        turns = "an unknown number of turns" if plan.stage.turns < 0 else f"{plan.stage.turns} turns for equal indices"
        text = f"{plan.stage.smem_bytes} bytes, {plan.stage.store.instruction} then {plan.stage.load} in {turns}"
        yield said("shared", f"{text}, with a {plan.stage.barrier} barrier")
    yield from _choice(plan)


_CHECKED: Mapping[type, tuple[str, Callable[[Any], Iterator[Fact]]]] = {
    **dict.fromkeys(
        (SwizzlePlan, PaddingPlan, ClassPlan), ("recounted from the addresses of every instruction", _of_served)
    ),
    ConversionPlan: ("rerun on element labels; instructions and turns recounted", _of_conversion),
    GatherPlan: ("every index looked up again; instructions and turns recounted", _of_gather),
}
"""By type: how its check works, and its facts."""
