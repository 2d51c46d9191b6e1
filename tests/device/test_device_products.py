"""Tile products on a real GPU: copies and descriptors from the finders, results exact."""

from __future__ import annotations

import numpy as np
import pytest
from instruments.operands import PRODUCTS, proved_operand

from layoutalg.codegen import launch
from layoutalg.codegen.kernels import Form, gemm_kernel
from layoutalg.codegen.product import Operand, validate_product

pytestmark = pytest.mark.device("sm_90a")


@pytest.mark.parametrize(("major_a", "swizzle_a", "major_b", "swizzle_b", "m", "n", "k"), PRODUCTS)
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_products_are_exact(major_a, swizzle_a, major_b, swizzle_b, m, n, k, dtype):
    a, b = proved_operand("A", m, k, major_a, swizzle_a, dtype), proved_operand("B", n, k, major_b, swizzle_b, dtype)
    inside = tuple(tuple(multiple for multiple in side.copy.problem.origin_multiple) for side in (a, b))
    for origins in (None, inside):
        report = validate_product(a, b, origins, device="cuda", seed=3)
        assert report, report
        assert report.backend == "cuda"


def test_wrong_descriptors_give_a_wrong_product():
    a, b = proved_operand("A", 64, 64, "K", "128B"), proved_operand("B", 64, 64, "K", "128B")
    other = proved_operand("B", 64, 64, "K", "64B")
    report = validate_product(a, Operand(b.copy, b.view, other.consumer), device="cuda")
    assert report.difference is not None


@pytest.mark.parametrize("majors", ["KK", "MN", "KN"])
@pytest.mark.parametrize(
    "form",
    [
        Form(128, 256, swizzle="64B"),
        Form(128, 128, swizzle="64B", depth=192),
        Form(128, 128, depth=256),
        Form(192, 192, 3, swizzle="32B", depth=96),
        Form(64, 128, 1, swizzle="64B", cluster=2, behind=1),
    ],
    ids=str,
)
def test_products_of_any_span_are_exact(form, majors):
    m, n, k = 520, 776, 360
    sides = {f"major_{side}": "K" if major == "K" else "MN" for side, major in zip("ab", majors, strict=True)}
    made = gemm_kernel((m, n, k), "f16", form=form, result="f16", **sides)
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-3, 4, (rows, k)).astype(np.float16) for rows in (m, n))
    d, status = np.full((m, n), np.nan, np.float16), np.zeros(made.blocks, np.int32)
    given = [each if major == "K" else np.ascontiguousarray(each.T) for each, major in zip((a, b), majors, strict=True)]
    arrays = [launch.upload(array) for array in (*given, d)]
    launch.run(made.kernel, made.arguments(*arrays, made.blocks, status), blocks=made.blocks)
    found = launch.download(arrays[2], 0, d.nbytes).view(np.float16).reshape(m, n)
    assert (status == 1).all()
    assert np.array_equal(found, (a.astype(np.float32) @ b.T.astype(np.float32)).astype(np.float16))
