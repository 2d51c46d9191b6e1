"""``la.wgmma``: one call from a layout of any family to descriptors, the same as the statement and its finder."""

from __future__ import annotations

import pytest

import layoutalg as la
from layoutalg.proofs.wgmma import check
from layoutalg.synth import InadmissibleOperandError, OperandProblem, synthesize_wgmma


@pytest.mark.parametrize(
    ("operand", "tile", "smem"),
    [
        ("A", (128, 64), "Sw<3,3,3> o 0 o (128,64):(64,1)"),
        ("A", (64, 64), "Sw<3,3,3> o 0 o (64,64):(1,64)"),
        ("B", (256, 64), "Sw<3,4,3,byte> o 0 o (256,64):(64,1)"),
        ("B", (128, 64), "#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>"),
    ],
)
def test_the_call_is_the_statement_and_its_finder(operand, tile, smem):
    plan = la.wgmma(operand, "bf16", tile, smem)
    assert plan == synthesize_wgmma(OperandProblem.of(operand, "bf16", smem, tile=tile))
    assert check(plan)
    assert plan.problem.shape == tile


def test_a_tensor_gives_its_type_and_the_swizzle_may_stand_beside():
    tensor = la.Tensor((1024, 512), dtype="half")
    plan = la.wgmma("A", tensor, (64, 64), la.CuteLayout((64, 64), (64, 1)), swizzle="128B")
    assert (plan.problem.dtype, plan.base.swizzle) == ("f16", "128B")


def test_what_no_descriptor_reads_is_refused_with_reasons():
    with pytest.raises(InadmissibleOperandError) as caught:
        la.wgmma("A", "bf16", (64, 64), "(64,64):(72,1)")
    assert caught.value.repairs
    with pytest.raises(la.MalformedError):
        la.wgmma("A", "f32", (64, 64))
    with pytest.raises(la.MalformedError):
        la.wgmma("C", "bf16", (64, 64))
