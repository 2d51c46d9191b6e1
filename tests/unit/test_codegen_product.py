"""Tile to both descriptors to product: every element exact on the CPU models of the engine and the tensor cores."""

from __future__ import annotations

import pytest
from instruments.operands import PRODUCTS, proved_operand

from layoutalg.codegen.product import Operand, product_kernel, validate_product, wgmma_tiles
from layoutalg.ground.errors import MalformedError
from layoutalg.proofs.handoff import operand_view
from layoutalg.synth import synthesize_tensormap
from layoutalg.synth.wgmma import synthesize_wgmma


@pytest.mark.nightly(one_of=5)
@pytest.mark.parametrize(("major_a", "swizzle_a", "major_b", "swizzle_b", "m", "n", "k"), PRODUCTS)
@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_products_are_exact(major_a, swizzle_a, major_b, swizzle_b, m, n, k, dtype):
    a, b = proved_operand("A", m, k, major_a, swizzle_a, dtype), proved_operand("B", n, k, major_b, swizzle_b, dtype)
    inside = tuple(tuple(multiple for multiple in side.copy.problem.origin_multiple) for side in (a, b))
    for origins in (None, inside):
        report = validate_product(a, b, origins, device="host", seed=3)
        assert report, report
        assert report.shape == (m, n, k)


def test_a_tile_that_hangs_over_the_edge_multiplies_zeros():
    a, b = proved_operand("A", 64, 64, "K", "128B"), proved_operand("B", 64, 64, "K", "128B")
    assert validate_product(a, b, ((448, 256), (448, 256)), device="host")


def test_a_tensor_whose_strides_fall_is_modelled_up_to_its_highest_element():
    """Only coordinate 0 of the first dimension is in bounds; the others lie before it in memory."""
    operands = []
    for name, base in (("A", 8192), ("B", 8192)):
        document = {
            "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": "load",
            "global": {"shape": [3, 64, 64], "stride": [-4096, 64, 1], "dtype": "bf16", "base_align_bytes": 256},
            "base_elem_offset": base, "bounds": [[0, 1], [0, 64], [0, 64]], "tile": [1, 64, 64],
            "smem": {"modes": [[[1, 1]], [[64, 64]], [[64, 1]]], "swizzle": "128B"},
        }  # fmt: skip
        copy = synthesize_tensormap(document)
        assert copy.problem.byte_span() == (0, 2 * (base + 4096))
        view = operand_view(copy.problem, name, "K")
        operands.append(Operand(copy, view, synthesize_wgmma(view.problem)))
    assert validate_product(*operands, device="host")


def test_wrong_descriptors_give_a_wrong_product():
    a, b = proved_operand("A", 64, 64, "K", "128B"), proved_operand("B", 64, 64, "K", "128B")
    plain = proved_operand("B", 64, 64, "K", "64B")
    assert wgmma_tiles(plain.consumer) != wgmma_tiles(b.consumer)
    report = validate_product(a, Operand(b.copy, b.view, plain.consumer), device="host")
    assert report.difference is not None


def test_bad_arguments_are_named():
    a, b = proved_operand("A", 64, 64, "K", "128B"), proved_operand("B", 64, 32, "K", "64B")
    with pytest.raises(MalformedError, match="different numbers of K steps"):
        product_kernel(a, b)
    with pytest.raises(MalformedError, match="no such backend"):
        validate_product(a, a, device="abacus")
