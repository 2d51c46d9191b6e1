"""Decide whether ``wgmma`` accepts a layout: A or B in shared memory, dense or sparse; A in registers; accumulators."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from layoutalg.ground.errors import BudgetError, Repair, RepresentabilityError
from layoutalg.ground.refusal import Broken
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs import certify
from layoutalg.proofs.admission import Admission, Admitted, Refused
from layoutalg.proofs.certify import conditions
from layoutalg.proofs.certify.certificate import Certificate
from layoutalg.proofs.wgmma import OperandPlan, OperandProblem
from layoutalg.synth.admission import movement
from layoutalg.synth.admission.repairs import MOVED, ranked
from layoutalg.synth.admission.request import CHECK, IntArray, Request
from layoutalg.synth.wgmma import InadmissibleOperandError, synthesize_wgmma
from layoutalg.synth.wgmma.parts import ALIGN_BYTES as PART_BYTES
from layoutalg.synth.wgmma.parts import parts
from layoutalg.synth.wgmma.refusal import closest
from layoutalg.targets.nvidia import wgmma as hardware

RULE = "WGMMA_LAYOUT"
OPTIONS = {
    **dict.fromkeys(("wgmma.A", "wgmma.B", "wgmma.B.sparse", "wgmma.A.registers", "wgmma.A.registers.sparse"), ()),
    "wgmma.A.sparse": ("metadata", "selector"),
    "wgmma.D": ("n",),
}
"""The consumers and their options; those of registers map (register, lane, warp) to coordinates."""
ACCUMULATORS = ("f16", "f32", "s32")


def typed(request: Request) -> Request | Refused:
    """Return the request with its element type as ``wgmma`` calls it, or why it has no such operand."""
    CHECK.choice(request.consumer, "consumer", OPTIONS)
    request.only(*OPTIONS[request.consumer])
    if not hardware.has_wgmma(request.target):
        return request.refused(Broken("WGMMA_ARCH", f"{request.target} has no wgmma; use {hardware.ARCH}"))
    of_result = request.consumer == "wgmma.D"
    what, known = ("accumulators", ACCUMULATORS) if of_result else ("operands", hardware.DTYPES)
    name = request.dtype.name if of_result else request.dtype.operand
    if name not in known:
        because = f"{what} must be one of {', '.join(known)}, got {request.dtype.name}"
        return request.refused(Broken("WGMMA_DTYPE", because, {}, conditions.named(name, *known)))
    if request.consumer.endswith(".sparse") and not hardware.multiply(name).sparse:
        evidence = conditions.named(name, *(kind for kind in known if hardware.multiply(kind).sparse))
        return request.refused(Broken("WGMMA_SPARSE", f"wgmma has no sparse A of {name}", {}, evidence))
    return request if name == request.dtype.name else replace(request, dtype=replace(request.dtype, name=name))


def find_wgmma(request: Request) -> Admission:
    """Return the descriptors of an operand in shared memory, or why there are none.

    Each instruction has a descriptor that denotes its part of the layout, all with one major and one swizzle;
    ``.sparse``: the stored elements of sparse A, or B of a sparse instruction.

    Example:
        >>> from layoutalg.synth.admission import admissible
        >>> admissible("Sw<3,3,3> o 0 o (64,64):(1,64)", "wgmma.A", dtype="f16").descriptor.major
        'MN'
        >>> admissible("(64,64):(1,64)", "wgmma.A", dtype="e4m3").rules
        ('WGMMA_MAJOR', 'WGMMA_PITCH')
    """
    operand = typed(request)
    if isinstance(operand, Request):
        return _shared(operand)
    return operand.deferred(repairs=lambda: _repairs(request)) if operand.rules == ("WGMMA_DTYPE",) else operand


def _shared(request: Request) -> Admission:
    sparse, side, name = request.consumer.endswith(".sparse"), request.consumer.split(".")[1], request.dtype.name
    if "metadata" in request.options:
        selector = CHECK.integer(request.options.get("selector", 0), "selector", 0, 2)
        read = hardware.metadata_coordinates(hardware.multiply(name).bits, selector)
        if (other := request.other_metadata(read, "thread", "WGMMA_METADATA")) is not None:
            return request.refused(other)
    try:
        problem = OperandProblem.of(
            side, name, request.layout, tile=request.extents, align_bytes=request.align_bytes, sparse=sparse
        )
    except RepresentabilityError as error:
        found = _by_parts(request, side, sparse) if request.dtype.bits in (1, 8, 16, 32) else None
        if found is not None:
            return found
        rule, said = "WGMMA_BITS" if name == "b1" else RULE, error.diagnostic
        return request.refused(
            Broken(rule, said.because, said.witness or {}, lambda f: _undescribed(request, f)),
            repairs=lambda: _repairs(request),
        )
    try:
        plan = synthesize_wgmma(problem, repair=False)
    except InadmissibleOperandError as error:
        first, *others = error.broken or (Broken(RULE, error.diagnostic.because),)
        first = replace(first, evidence=lambda f: _unread(problem) or _undescribed(request, f))
        refused = request.refused(first, *others, repairs=lambda: _repairs(request))
        return refused.deferred(witness=lambda: closest(problem) or {})
    return request.admitted(plan, certify.operand(plan), "measured")


def _repairs(request: Request) -> tuple[Repair, ...]:
    from layoutalg.synth.admission.accesses import find_access  # only a refusal needs other instructions

    def stated(answer: Admitted) -> Mapping[str, object] | None:
        plan = answer.descriptor
        return plan.problem.to_json() if isinstance(plan, OperandPlan) else None

    def find(part: Request) -> Admission:
        return find_wgmma(part) if part.consumer.startswith("wgmma") else find_access(part)

    own = (lambda asked: movement.into_registers(asked, find_access),)
    found = ranked(request, find, stated=stated, own=own)
    cycles = {each.name: each.movement["cycles"] for each in found if each.movement is not None}
    least = min((cycles[name] for name in MOVED if name in cycles), default=math.inf)
    return tuple(each for each in found if each.name != movement.READ or cycles[each.name] < least)


def _by_parts(request: Request, side: str, sparse: bool) -> Admitted | Unknown | None:
    """Return the descriptors of a tile that has no digits, part by part; None if some part has none."""
    bits = request.dtype.bits
    if bits == 1 and (request.offsets % 8 != np.arange(request.offsets.shape[-1]) % 8).any():
        return None  # a bit must keep its position in the byte
    places = request.offsets * bits // 8
    k = hardware.instruction_k(bits, sparse and side == "B")
    plan = parts(places, hardware.instruction_rows(side, request.dtype.name), bits, k)
    if plan is None:
        return None
    if request.align_bytes < PART_BYTES:
        because = f"descriptors exist for a base aligned to {PART_BYTES} bytes; other bases were not tried"
        return Unknown(because, ("wgmma",))
    seal = certify.same_tables(plan.read(), places, f"{request.consumer} reads the requested layout")
    return request.admitted(plan, seal, "measured")


def _unread(problem: OperandProblem) -> Certificate | None:
    try:
        return certify.no_operand(problem)
    except BudgetError:
        return None


def _undescribed(request: Request, f: IntArray) -> Certificate | None:
    """Exclude every descriptor of a dense operand of whole bytes."""
    if request.consumer not in ("wgmma.A", "wgmma.B") or request.dtype.bits < 8:
        return None
    rows = 64 if request.consumer == "wgmma.A" else 8
    modes = certify.forced.modes(request.element_bytes, ("K", "MN") if request.dtype.bits == 16 else ("K",))
    deep = hardware.instruction_k(request.dtype.bits)
    return certify.forced.no_descriptors(
        f, request.extents, request.element_bytes, request.align_bytes, (rows,), deep, modes
    )
