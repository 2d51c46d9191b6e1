"""Attention on a real GPU: results near those of 64-bit floats, for whole tiles and rests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from judges.attention_judge import Halves, compared

from layoutalg.codegen import launch
from layoutalg.codegen.kernels.attention import AttentionKernel, attention_kernel

pytestmark = pytest.mark.device("sm_90a")


def on_the_device(made: AttentionKernel, given: Sequence[Halves]) -> tuple[Halves, np.ndarray]:
    into, status = np.full(given[0].shape, 0x7FFF, np.uint16), np.zeros(made.blocks, np.int32)
    arrays = [launch.upload(array) for array in (*given, into)]
    launch.run(made.kernel, made.arguments(*arrays, status), blocks=made.blocks)
    return launch.download(arrays[3], 0, into.nbytes).view(np.uint16).reshape(into.shape), status


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
@pytest.mark.parametrize("columns", [64, 128])
@pytest.mark.parametrize("way", [{"ahead": False}, {"ahead": True}, {"alternate": True}], ids=str)
@pytest.mark.parametrize(
    ("queries", "keys", "options"),
    [
        (512, 1024, {}),
        (1, 1, {}),
        (333, 777, {"stages": 1}),
        (640, 640, {"causal": True}),
        (130, 901, {"causal": True, "shift": 771, "tile": (128, 176)}),
        (300, 200, {"causal": True, "shift": -140, "tile": (192, 80), "consumers": 3}),
    ],
)
def test_attention(
    queries: int, keys: int, options: dict[str, Any], way: dict[str, bool], columns: int, dtype: str
) -> None:
    made = attention_kernel((6, queries, keys, columns), dtype, **way, **options)
    compared(on_the_device, made, dtype, seed=queries)


def test_large_scores_do_not_overflow() -> None:
    compared(on_the_device, attention_kernel((2, 200, 500, 128), "f16"), "f16", spread=100.0)
