"""Emitters at the edges: tiles as large as their room, maps at an address, parts of shared memory behind each other."""

from __future__ import annotations

import re

import pytest

from layoutalg.codegen.kernels import copy_kernel, transpose_kernel
from layoutalg.codegen.launch import place_map
from layoutalg.targets.nvidia import tensormap


@pytest.mark.parametrize("address", [0, 16, 128, 0x180, 2**40])
def test_a_map_is_placed_behind_what_it_already_adds(address: int):
    tm = tensormap.TensorMap("bf16", (512, 1024), (1024,), (64, 64), base_address=0x180)
    assert tensormap.decode(place_map(tensormap.encode(tm), address)).base_address == 0x180 + address


@pytest.mark.parametrize(
    ("shape", "dtype", "tile"),
    [((512, 1024), "bf16", "32 x 256"), ((512, 1024), "f32", "16 x 256"), ((64, 64, 64), "u8", "4 x 64 x 64"),
     ((100, 96), "bf16", "85 x 96")],
)  # fmt: skip
def test_a_tile_fills_the_room_of_a_stage(shape: tuple[int, ...], dtype: str, tile: str):
    kernel = copy_kernel(shape, dtype, way="tma").kernel
    assert f"tiles of {tile}." in kernel.text
    stage = int(re.search(r"shared \+ (\d+) \* slot", kernel.text)[1])  # type: ignore[index]
    assert stage % 128 == 0
    assert 2**13 < stage <= 2**14


def test_a_transpose_reads_and_writes_vectors_that_its_own_rows_hold():
    """Rows of 96 elements of two bytes are whole vectors of 16 bytes, columns of 100 of 8."""
    text = transpose_kernel((100, 96), "bf16", tile=(128, 128)).kernel.text
    assert "a thread reads 8 elements of a row, writes 4 of a column" in text
