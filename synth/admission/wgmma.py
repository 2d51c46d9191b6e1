"""Whether ``wgmma`` reads a layout as operand A or B.

Main definitions: ``find``.
"""

from __future__ import annotations

from collections.abc import Mapping

from layoutalg.ground.errors import BudgetError, Repair, RepresentabilityError
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.admission import Admission, Admitted, Refused
from layoutalg.proofs.certify.certificate import Certificate
from layoutalg.proofs.certify.operands import no_operand, operand
from layoutalg.proofs.wgmma import OperandProblem
from layoutalg.synth.admission.request import CHECK, Request
from layoutalg.synth.wgmma import InadmissibleOperandError, synthesize_wgmma
from layoutalg.targets.nvidia import wgmma as hardware

RULE = "WGMMA_LAYOUT"


def find(request: Request) -> Admission:
    """Return the descriptors, or why there are none.

    Example:
        >>> from layoutalg.synth.admission import admissible
        >>> admissible("(64,64):(1,64)", "wgmma.A", dtype="f16").descriptor.major
        'MN'
    """
    request.only()
    if request.consumer not in ("wgmma.A", "wgmma.B"):
        raise CHECK.malformed("consumer", "must be wgmma.A or wgmma.B", request.consumer)
    if not hardware.has_wgmma(request.target):
        return _refused(request, "WGMMA_ARCH", f"{request.target} has no wgmma, {hardware.ARCH} has")
    name = request.dtype.name
    if name not in hardware.DTYPES:
        return Unknown(f"descriptors of {name} operands are not known here", ("wgmma",))
    try:
        problem = OperandProblem.of(
            request.consumer[-1], name, request.layout, tile=request.extents, align_bytes=request.align_bytes
        )
        plan = synthesize_wgmma(problem)
    except RepresentabilityError as error:
        return _refused(request, RULE, error.diagnostic.because, error.diagnostic.witness or {})
    except InadmissibleOperandError as error:
        said = error.diagnostic
        return _refused(request, RULE, said.because, said.witness or {}, said.repairs, _evidence(problem))
    return Admitted(request.consumer, request.target, name, plan, operand(plan), "measured")


def _evidence(problem: OperandProblem) -> Certificate | None:
    try:
        return no_operand(problem)
    except BudgetError:
        return None


def _refused(
    request: Request,
    rule: str,
    reason: str,
    witness: Mapping[str, object] | None = None,
    repairs: tuple[Repair, ...] = (),
    certificate: Certificate | None = None,
) -> Refused:
    name = request.dtype.name
    return Refused(request.consumer, request.target, name, (rule,), (reason,), witness or {}, repairs, certificate)
