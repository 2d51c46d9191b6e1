"""Tile products on a real GPU: copies and descriptors from the finders, results exact."""

from __future__ import annotations

import pytest
from instruments.operands import PRODUCTS, proved_operand

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
