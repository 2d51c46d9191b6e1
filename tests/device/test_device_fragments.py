"""Register fragments on a real GPU: what the instruction computes is what the layouts say."""

from __future__ import annotations

import pytest
from instruments import fragment_checks as checks

from layoutalg.targets.layouts.nvidia_instructions import MMA

pytestmark = pytest.mark.device("sm_90a")


@pytest.mark.parametrize("name", sorted(MMA))
def test_mma_fragments(name: str) -> None:
    assert checks.mma_difference(name, checks.run_mma(name, 1)) is None


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("matrices", [1, 2, 4])
def test_matrix_loads_and_stores(matrices: int, transposed: bool) -> None:
    for run in (checks.run_ldmatrix, checks.run_stmatrix):
        arrays = run(matrices, transposed, 2)
        for bits in (16,) if transposed else (8, 16, 32):
            assert checks.matrix_move_difference(matrices, transposed, bits, arrays) is None
        # the judge sees a wrong form
        if not transposed:
            assert checks.matrix_move_difference(matrices, True, 16, arrays) is not None


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("n", [8, 24, 64, 200, 256])
def test_warpgroup_multiply_from_registers(n: int, dtype: str) -> None:
    assert checks.wgmma_difference(dtype, n, checks.run_wgmma(dtype, n, 3)) is None
