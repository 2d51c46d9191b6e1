"""Choices of spaces on a GPU: what the measuring functions launch is right, and takes time."""

from __future__ import annotations

import pytest

import layoutalg as la
from layoutalg.codegen.kernels.spaces import attention_space, gemm_space
from layoutalg.codegen.measure import MeasureAttention, MeasureGemm

pytestmark = pytest.mark.device("sm_90a")


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((1024, 1024, 4096), {}),
        ((300, 704, 504), {"major_b": "MN"}),
        ((520, 776, 512), {"dtype": "f16", "result": "f16", "major_a": "MN"}),
        ((1000, 1024, 1024), {"dtype": "e4m3"}),
    ],
)
def test_products_are_measured(shape, options):
    if options.get("major_a") == "MN" or options.get("major_b") == "MN":
        shape = tuple(-(-extent // 8) * 8 for extent in shape)
    tuned = la.tune(gemm_space(shape, **options), MeasureGemm(shape, **options), top=3)
    assert all(trial.measured is not None and 1e-3 < trial.measured < 10 for trial in tuned.trials), str(tuned)


@pytest.mark.parametrize("causal", [False, True])
def test_attentions_are_measured(causal):
    shape = (4, 500, 1000, 128)
    tuned = la.tune(attention_space(shape, causal=causal), MeasureAttention(shape, causal=causal), top=3)
    assert all(trial.measured is not None and 1e-3 < trial.measured < 10 for trial in tuned.trials), str(tuned)
