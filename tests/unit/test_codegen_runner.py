"""Runner kernels and their tables."""

from __future__ import annotations

import pytest
from instruments.runner import runner_kernel, runner_smem_bytes, runner_tables

from layoutalg.codegen.kernel import KernelSource, signature
from layoutalg.codegen.prelude import PRELUDE, wgmma_prelude
from layoutalg.ground.errors import MalformedError
from layoutalg.targets.nvidia.tensormap.limits import MAX_SMEM_BYTES


def test_one_kernel_per_rank_and_direction() -> None:
    names = {runner_kernel(rank, direction).name for rank in range(1, 6) for direction in ("load", "store")}
    assert len(names) == 10
    assert runner_kernel(2, "load") == runner_kernel(2, "load")
    assert hash(runner_kernel(2, "load")) == hash(runner_kernel(2, "load"))
    assert eval(repr(runner_kernel(4, "store"))) == runner_kernel(4, "store")


@pytest.mark.parametrize("rank", [0, 6, True, 2.0, "2"])
def test_bad_rank(rank: object) -> None:
    with pytest.raises(MalformedError, match="LA500"):
        runner_kernel(rank, "load")  # type: ignore[arg-type]


def test_bad_direction() -> None:
    with pytest.raises(MalformedError, match="LA500"):
        runner_kernel(2, "both")


def test_tables_index_their_issues() -> None:
    tables = runner_tables(
        [(bytes(128), [(0, (1, 2)), (1024, (3, 4))], 64, 0), (bytes([7]) * 128, [(128, (-5,))], 32, 256)]
    )
    assert tables.heads.tolist() == [[0, 2, 64, 0], [2, 1, 32, 256]]
    assert tables.issues.tolist() == [[0, 1, 2, 0, 0, 0], [1024, 3, 4, 0, 0, 0], [128, -5, 0, 0, 0, 0]]
    assert tables.maps.shape == (2, 128)


def test_tables_refuse_what_does_not_fit() -> None:
    for entry in ((bytes(64), [(0, (0,))], 0, 0), (bytes(128), [(0, (2**31,))], 0, 0), (bytes(128), [], 2**31, 0)):
        with pytest.raises(MalformedError, match="LA506"):
            runner_tables([entry])


def test_shared_memory_of_a_launch() -> None:
    assert runner_smem_bytes(1024) == 2064
    assert runner_smem_bytes(232000) == MAX_SMEM_BYTES


@pytest.mark.parametrize(
    ("dtype", "n"), [("f32", 8), ("bf16", 0), ("bf16", 12), ("f16", 264), ("f16", True), ("f16", 8.0)]
)
def test_no_such_multiply(dtype: str, n: object) -> None:
    with pytest.raises(MalformedError, match="LA500"):
        wgmma_prelude(dtype, n)  # type: ignore[arg-type]


def test_the_prelude_includes_nothing() -> None:
    assert "#include" not in PRELUDE


def test_a_kernel_prints_its_signature() -> None:
    kernel = KernelSource("f", "", "sm_90a", 32, 0, (("int", "x"), ("float*", "y")))
    assert signature(kernel.parameters) == "int x, float* y"
