"""Certificates that the tensor cores read what a copy wrote."""

from __future__ import annotations

from layoutalg.ground.errors import shown
from layoutalg.ground.verdict import Refuted
from layoutalg.proofs.certify.certificate import Certificate
from layoutalg.proofs.certify.evidence import false, proved
from layoutalg.proofs.certify.operands import operand_statement
from layoutalg.proofs.certify.plans import plan
from layoutalg.proofs.handoff import OperandView, prove_handoff
from layoutalg.proofs.tensormap.plan import TensorMapPlan
from layoutalg.proofs.wgmma.operand import OperandPlan


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
        >>> from layoutalg.synth import synthesize_tensormap
        >>> from layoutalg.synth.wgmma import synthesize_wgmma
        >>> copy = synthesize_tensormap({
        ...     "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": "load",
        ...     "global": {"shape": [1024, 512], "stride": [512, 1], "dtype": "bf16", "base_align_bytes": 256},
        ...     "tile": [64, 64], "smem": {"modes": [[[64, 64]], [[64, 1]]], "swizzle": "128B"}})
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
