"""Kernels that move arrays and registers on a real GPU: gathers, staging, transposes, conversions, exact."""

from __future__ import annotations

from typing import Any

import pytest
from judges.array_kernels import converted, crossed, gathered, picked, relabelled, staged, transposed

from layoutalg.codegen import launch

pytestmark = pytest.mark.device("sm_90a")


def on_the_device(kernel: Any, arguments: list[Any], blocks: int) -> None:
    launch.run(kernel, arguments, blocks=blocks)


@pytest.mark.parametrize("size", [1, 2, 4, 8])
@pytest.mark.parametrize("way", ["warp", "shared", "direct"])
def test_gathers(way: str, size: int) -> None:
    for seed in range(3):
        gathered(on_the_device, "sm_90a", way, size, seed)


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_staging(size: int) -> None:
    for seed in range(4):
        staged(on_the_device, "sm_90a", size, seed)


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_transposes(size: int) -> None:
    for seed in range(4):
        transposed(on_the_device, "sm_90a", size, seed)


@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("dense", [False, True])
def test_conversions(bits: int, dense: bool) -> None:
    for seed in range(6):
        converted(on_the_device, "sm_90a", bits, seed, dense=dense)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_conversions_of_tables_and_gathers_of_registers(bits: int) -> None:
    for seed in range(6):
        relabelled(on_the_device, "sm_90a", bits, seed)
        picked(on_the_device, "sm_90a", bits, seed)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_conversions_across_the_blocks_of_a_cluster(bits: int) -> None:
    for seed in range(8):
        crossed(on_the_device, "sm_90a", bits, seed)
