"""Explain an answer about banks, a swizzle, a padding, a conversion or a kernel, after checking it.

Implementation notes: plans are recounted or rerun first; a bank report is itself the count.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from layoutalg.ask.bank_turns import BankReport
from layoutalg.ask.fact import Fact, said
from layoutalg.codegen.kernels import ArrayKernel
from layoutalg.draw.conversion import steps_text
from layoutalg.ground.errors import MalformedError
from layoutalg.proofs.conversion import ConversionPlan
from layoutalg.proofs.gather import GatherPlan
from layoutalg.proofs.padding import PaddingPlan
from layoutalg.proofs.swizzling import SwizzlePlan
from layoutalg.proofs.universal import ClassPlan

ANSWERS = (BankReport, SwizzlePlan, PaddingPlan, ClassPlan, ConversionPlan, GatherPlan, ArrayKernel)
"""Answer types explained here."""
_AGAIN = {
    SwizzlePlan: "recounted from the addresses of every instruction",
    PaddingPlan: "recounted from the addresses of every instruction",
    ClassPlan: "recounted from the addresses of every instruction",
    ConversionPlan: "rerun on element labels; instructions and turns recounted",
    GatherPlan: "every index looked up again; instructions and turns recounted",
}


def answer_facts(answer: Any) -> tuple[list[Fact], bool]:
    """Return the facts of an answer, and whether its check passed.

    Args:
        answer: One of ``ANSWERS``.

    Example:
        >>> from layoutalg.ask.bank_turns import banks
        >>> for fact in answer_facts(banks("(32,8):(64,1)"))[0]:
        ...     print(fact.name, "-", fact.lines[0][:66].strip())
        banks - 1 x ld.shared.v4.b32: 32 turns where 4 would do, an 8-way conflict
        worst - warp 0, registers [0, 1, 2, 3, 4, 5, 6, 7]: 32 turns instead of 4;
        note - read as (thread, value) -> element offset; for a tile in shared me
        why - ld.shared.v4.b32 of sm_90a: 16 bytes a lane, 4 groups of 8 lanes,
        words per bank - 8888............................ lanes 0-7
        engine - residues
        >>> from layoutalg.synth.swizzles import swizzle
        >>> facts, holds = answer_facts(swizzle(["rows", "ldmatrix"], tile=(64, 64), form="tma"))
        >>> holds, [fact.name for fact in facts]
        (True, ['check', 'swizzle', 'access 0', 'access 1', 'turns', 'why', 'over F2', 'targets'])
        >>> from layoutalg.synth.conversions import conversion
        >>> facts, holds = answer_facts(conversion("(32,4):(4,1)", "(32,4):(1,32)", 32, mechanism="shuffles"))
        >>> print("\\n".join(next(fact.lines for fact in facts if fact.name == "steps")[1:4]))
        choose: each word is one of two of the thread's own, selected by lane
        read: 4 words, 4 of them from other lanes by shuffles
        choose: each word is one of two of the thread's own, selected by lane
    """
    if isinstance(answer, BankReport):
        return list(_bank_facts(answer)), True
    if isinstance(answer, ArrayKernel):
        return list(_kernel_facts(answer)), True
    again = _AGAIN[type(answer)]
    try:
        answer.check()
    except MalformedError as error:
        because = error.diagnostic.because or error.diagnostic.what
        return [said("check", f"refuted: {because}", {"verdict": "refuted", "because": because})], False
    facts = [said("check", f"holds: {again}", {"verdict": "holds", "by": again})]
    if isinstance(answer, ConversionPlan):
        return [*facts, *_conversion_facts(answer)], True
    if isinstance(answer, GatherPlan):
        return [*facts, *_gather_facts(answer)], True
    facts += _lines(str(answer))
    if isinstance(answer, SwizzlePlan):
        facts.append(said("why", answer.why))
        facts.append(said("over F2", str(answer.smem)))
    served = answer.plan.served if isinstance(answer, ClassPlan) else answer.served
    targets = list(dict.fromkeys(each.target for each in served))
    return [*facts, said("targets", ", ".join(targets), targets)], True


def _lines(text: str) -> Iterator[Fact]:
    """The lines of an answer, split into name and text."""
    for line in text.splitlines():
        name, _, words = line.partition("  ")
        yield said(name.strip(), words.strip())


def _bank_facts(report: BankReport) -> Iterator[Fact]:
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
    yield said("engine", report.engine, dict(report.engines))


def _conversion_facts(plan: ConversionPlan) -> Iterator[Fact]:
    head, first, second, *_ = (line.split(maxsplit=1)[1] for line in str(plan).splitlines())
    yield said("conversion", head, {"mechanism": plan.mechanism, "cost": plan.cost.to_json(), "least": plan.least})
    yield said("from", first, plan.source.to_json())
    yield said("to", second, plan.destination.to_json())
    steps = steps_text(plan)
    yield said("steps", list(steps) or "none: the layouts are equal", list(steps))
    yield from _choice(plan)


def _choice(plan: ConversionPlan | GatherPlan) -> Iterator[Fact]:
    yield said("why", plan.why)
    others = [each for each in plan.alternatives if each.mechanism != plan.mechanism]
    if others:
        yield said("others", [" ".join(str(each).split()) for each in others], [each.to_json() for each in others])


def _gather_facts(plan: GatherPlan) -> Iterator[Fact]:
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


def _kernel_facts(made: ArrayKernel) -> Iterator[Fact]:
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
