"""The public names that other code relies on: each one is imported and called as the design writes it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import layoutalg as la

ROOT = Path(__file__).parents[2]
PROBLEM = json.loads((ROOT / "tests" / "data" / "examples" / "problem.json").read_text(encoding="utf-8"))
SWIZZLED = "Sw<3,3,3> o 0 o (64,64):(64,1)"


def test_parse_reads_text_and_takes_a_shape():
    assert la.parse("(4,8):(1,4)") == la.CuteLayout((4, 8), (1, 4))
    assert la.parse("Sw<3,4,3> o 0 o (64,64):(64,1)").cosize == 4096
    text = "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>"
    assert isinstance(la.parse(text, shape=(64, 64)), la.LinearLayout)


def test_a_cute_layout_evaluates_and_knows_itself():
    layout = la.CuteLayout((4, (2, 4)), (1, (16, 4)))
    assert layout(5) == layout(1, 1) == 17
    assert layout.table().shape == (32,)
    assert (layout.size, layout.cosize, layout.rank, layout.depth) == (32, 32, 2, 2)


def test_a_linear_layout_is_made_of_bases():
    layout = la.LinearLayout.from_bases({"lane": [(1, 0), (0, 1)]}, {"row": 2, "col": 2}, offset=None)
    assert layout(lane=2) == {"row": 0, "col": 1}


def test_equality_and_conversions():
    layout = la.parse("(4,8):(1,4)")
    assert la.equivalent(layout, la.parse("32:1"))
    for name in ("to_linear", "to_cute", "to_integer", "to_piecewise"):
        assert la.equivalent(getattr(la.convert, name)(layout), layout), name
    assert la.equivalent(la.convert.recognize(layout.table()), layout)


def test_cute_operations_are_there():
    for name in ("composition", "complement", "coalesce", "left_inverse", "right_inverse", "logical_divide"):
        assert callable(getattr(la.cute, name)), name
    assert la.cute.composition(la.parse("(4,8):(8,1)"), la.parse("8:1"))(5) == 9
    with pytest.raises(la.LayoutError):
        la.cute.composition(la.parse("(6,2):(1,7)"), la.parse("(3,2):(2,3)"))


def test_tensor_maps_are_judged_encoded_decoded_and_executed():
    from layoutalg.targets.nvidia import tensormap

    tm = tensormap.TensorMap(
        dtype="bf16", dims=(512, 1024), strides_bytes=(1024,), box=(64, 64), element_strides=(1, 1), interleave="NONE",
        swizzle="128B", l2_promotion="128B", oob_fill="ZERO", base_address=0,
    )  # fmt: skip
    assert tensormap.violations(tm, target="sm_90a", evidence="enforced") == ()
    wrong = tensormap.violations(tensormap.TensorMap("bf16", (512, 1024), (1000,), (64, 64)), target="sm_90a")
    assert all(violation.rule and violation.message for violation in wrong)
    assert wrong
    raw = tensormap.encode(tm, target="sm_90a")
    assert len(raw) == 128
    assert tensormap.decode(raw, target="sm_90a") == tm
    image = np.zeros(8192, np.uint8)
    assert tensormap.tile_load(tm, (0, 0), np.zeros(2**20, np.uint8), image) == 8192


def test_matrix_descriptors_are_encoded_and_read():
    from layoutalg.targets.nvidia import wgmma

    d = wgmma.MatrixDescriptor(
        start_address_bytes=0, leading_bytes=128, stride_bytes=256, base_offset=0, swizzle="128B"
    )
    assert wgmma.decode(d.encode()) == d
    assert wgmma.operand_offsets(d, rows=64, k=16, element_bits=16, major="K").shape == (64, 16)


def test_plans_from_documents_and_from_layouts():
    from layoutalg.synth import InadmissibleError, synthesize_tensormap

    plan = synthesize_tensormap(PROBLEM)
    tensor = la.Tensor((1024, 512), stride=None, dtype="bf16", base_align_bytes=256)
    assert la.tensormap(tensor, (64, 64), la.parse(SWIZZLED), target="sm_90a", direction="load") == plan
    assert la.tensormap(np.zeros((1024, 512), np.float16), (64, 64), SWIZZLED).problem.dtype == "f16"
    with pytest.raises(InadmissibleError) as caught:
        la.tensormap(tensor, (64, 64), "(64,64):(1,64)")
    assert caught.value.violations
    assert caught.value.repairs


def test_the_hardware_half_is_reached_from_the_door():
    assert la.synth.synthesize_tensormap(PROBLEM) == la.tensormap(((1024, 512), None, "bf16"), (64, 64), SWIZZLED)
    assert la.proofs.check(la.tensormap(((1024, 512), None, "bf16"), (64, 64), SWIZZLED))
    assert la.synth.synthesize_wgmma(la.proofs.OperandProblem.of("A", "bf16", SWIZZLED)).major == "K"
    assert la.targets.nvidia.tensormap.element_bytes("bf16") == 2
    assert la.codegen.load_kernel(la.tensormap(((1024, 512), None, "bf16"), (64, 64), SWIZZLED)).text
    assert la.interop.triton.to_attribute(la.parse("F2[offset=(1)(2) -> dim0:4]"))


def test_errors_are_one_tree():
    for name in ("AdmissibilityError", "BudgetError", "MalformedError", "RepresentabilityError", "TargetRuleError"):
        assert issubclass(getattr(la, name), la.LayoutError), name
    assert issubclass(la.MalformedError, ValueError)
    with pytest.raises(la.MalformedError) as caught:
        la.parse("(4,8:(1,4)")
    assert isinstance(caught.value.diagnostic, la.Diagnostic)
