"""Kernels on routed and paged rows on a real GPU, exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from judges.indirect_kernels import copied_runs, paged, permuted, routed, unpermuted

from layoutalg.codegen import launch
from layoutalg.codegen.kernels.vectors import LOADS, STORES, CopyLoop
from layoutalg.proofs.indirect import Paged, PagedBatch

pytestmark = pytest.mark.device("sm_90a")


def on_the_device(kernel: Any, arguments: list[Any], blocks: int, regions: Any = ()) -> None:
    launch.run(kernel, arguments, blocks=blocks)


def there(array: Any) -> launch.DeviceTensor:
    """Descriptors hold addresses, so arrays have to be on the device before they are made."""
    found = launch.from_dlpack(pytest.importorskip("torch").from_numpy(array).cuda())
    assert isinstance(found, launch.DeviceTensor)
    return found


def here(tensor: launch.DeviceTensor) -> Any:
    return tensor.owner[0].cpu().numpy()


@pytest.mark.parametrize("tokens", [1, 100, 128, 129, 5000])
@pytest.mark.parametrize("dtype", ["s32", "s64"])
def test_the_inspector(tokens: int, dtype: str) -> None:
    rng = np.random.default_rng(tokens)
    for experts, block, local in ((8, 16, None), (128, 64, (32, 63)), (1000, 128, None)):
        routed(on_the_device, "sm_90a", rng.integers(0, experts, (tokens, 8)), experts, block, local, dtype)


@pytest.mark.parametrize("way", ["push", "pull"])
@pytest.mark.parametrize("row_bytes", [16, 272, 14336, 65600])
def test_permutations(way: str, row_bytes: int) -> None:
    for seed, tokens in enumerate((1, 7, 300)):
        permuted(on_the_device, "sm_90a", way, tokens, 1 + 3 * seed, row_bytes, seed)


@pytest.mark.parametrize("dtype", ["bf16", "f16", "f32"])
def test_weighted_sums(dtype: str) -> None:
    for seed, columns in enumerate((8, 136, 7168)):
        unpermuted(on_the_device, "sm_90a", dtype, 33, 8 - seed, columns, seed)


@pytest.mark.parametrize("direction", ["gather", "scatter"])
@pytest.mark.parametrize("way", ["vector", "bulk", "tma"])
@pytest.mark.parametrize("layout", ["NHD", "HND"])
def test_pages(direction: str, way: str, layout: str) -> None:
    rng = np.random.default_rng(7)
    for size, heads, dim in ((16, 8, 128), (1, 2, 64), (64, 1, 576)):
        tokens = 20 * size - (size // 2 if direction == "gather" else 0)
        cache = Paged(rng.permutation(24)[:20], size, heads, dim, 2, layout, tokens, 24, 2 * size * heads * dim + 256)
        paged(on_the_device, "sm_90a", cache, direction, way, size, there=there, here=here)


@pytest.mark.parametrize("direction", ["gather", "scatter"])
@pytest.mark.parametrize("layout", ["NHD", "HND"])
@pytest.mark.parametrize("apart", [False, True])
def test_batches_by_every_loop(direction: str, layout: str, apart: bool) -> None:
    rng = np.random.default_rng(9)
    whole = Paged(rng.permutation(40)[:33], 16, 8, 128, 2, layout, None, 40)
    batch = PagedBatch(whole, [0, 5, 5, 6, 30, 33], [3, 0, 16, 1, 9])
    operators = [(load, "") for load in LOADS] + [(".nc", store) for store in STORES]
    for number, (load, store) in enumerate(operators):
        loop = CopyLoop(256 << number % 3, 1 << number % 4, 1 + number % 4, apart, load, store)
        more = {"capacity": 400} if direction == "gather" else {}
        paged(on_the_device, "sm_90a", batch, direction, "vector", number, there=there, here=here, loop=loop, **more)


@pytest.mark.parametrize("row_bytes", [16, 272, 14336])
def test_runs_of_rows(row_bytes: int) -> None:
    rng = np.random.default_rng(row_bytes)
    lengths = rng.integers(1, 40, 50)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    pieces = np.stack([starts, rng.integers(0, 300, 50), rng.choice([1, 1, 0, -2], 50), lengths], axis=1)
    copied_runs(on_the_device, "sm_90a", pieces, 320, 5, row_bytes, 1)
