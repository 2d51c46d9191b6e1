"""Whether a TensorMap carries a layout of a tile.

Main definitions: ``find``.

Main statements: where no tensor is given, the layout is admissible if the tile of some tensor is copied into it: any
one dimension is contiguous in global memory and the others lie as far apart as nothing in the tile depends on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from layoutalg.ground.errors import BudgetError, Repair, RepresentabilityError
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.admission import Admission, Admitted, Refused
from layoutalg.proofs.certify.certificate import Certificate
from layoutalg.proofs.certify.plans import no_plan, plan
from layoutalg.proofs.tensor import Tensor, tensor_of
from layoutalg.proofs.tensormap import TensorMapProblem
from layoutalg.synth.admission.request import CHECK, Request
from layoutalg.synth.tensormap import InadmissibleError, synthesize_tensormap
from layoutalg.targets.nvidia.tensormap.checks import no_tensor_maps

UNMEASURED = "ARCH_UNMEASURED"
"""The planner's rule for a target whose descriptor bytes are not known, which refuses no layout."""
PITCH = 1 << 14
"""Elements between neighbours along a dimension that is not contiguous: more than any tile's extent."""


def find(request: Request) -> Admission:
    """Return the TensorMap plan, or why there is none.

    Example:
        >>> from layoutalg.synth.admission import admissible
        >>> admissible("(64,64):(64,1)", "tma").descriptor.tensor_map.box
        (64, 64)
    """
    request.only("tensor")
    if request.consumer not in ("tma", "tma.store"):
        raise CHECK.malformed("consumer", "must be tma or tma.store", request.consumer)
    for missing in no_tensor_maps(request.target):
        return _refused(request, (missing.rule,), (missing.message,), {})
    direction = "store" if request.consumer.endswith("store") else "load"
    refused: list[Refused] = []
    for tensor in _tensors(request):
        try:
            problem = TensorMapProblem.of(
                tensor, request.extents, request.layout, arch=request.target, direction=direction
            )
            found = synthesize_tensormap(problem)
            return Admitted(request.consumer, request.target, request.dtype.name, found, plan(found), "measured")
        except RepresentabilityError as error:
            said = error.diagnostic
            return _refused(request, ("TMA_LAYOUT",), (said.because,), said.witness or {})
        except InadmissibleError as error:
            broken = [violation for violation in error.violations if violation.rule != UNMEASURED]
            if not broken:
                return Unknown(error.violations[0].message, ("tma",))
            rules = tuple(violation.rule for violation in broken)
            reasons = tuple(violation.message for violation in broken)
            repairs = error.diagnostic.repairs
            refused.append(_refused(request, rules, reasons, {}, repairs, _evidence(problem)))
    return refused[0]


def _tensors(request: Request) -> Iterator[Tensor]:
    if "tensor" in request.options:
        yield tensor_of(request.options["tensor"])
        return
    rank = len(request.extents)
    for inner in reversed(range(rank)):
        strides = tuple(1 if dim == inner else PITCH << 2 * dim for dim in range(rank))
        yield Tensor(tuple(8 * extent for extent in request.extents), strides, request.dtype.name)


def _evidence(problem: TensorMapProblem) -> Certificate | None:
    try:
        return no_plan(problem)
    except BudgetError:
        return None


def _refused(
    request: Request,
    rules: tuple[str, ...],
    reasons: tuple[str, ...],
    witness: Mapping[str, object],
    repairs: tuple[Repair, ...] = (),
    certificate: Certificate | None = None,
) -> Refused:
    return Refused(request.consumer, request.target, request.dtype.name, rules, reasons, witness, repairs, certificate)
